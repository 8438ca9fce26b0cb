"""Linear models whose rows are on the workers of a Dask cluster: a finite sum for every method."""

from __future__ import annotations

import math
from functools import cached_property, partial
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.distributed import rows
from condgrad.distributed.cluster import Client, Cluster
from condgrad.distributed.held import HeldShards
from condgrad.distributed.sources import Rows, Source
from condgrad.objectives._matrices import SMALL, largest_eigenvalue
from condgrad.objectives.losses import Loss
from condgrad.objectives.sums import Sum


@final
class ShardedSum(Sum):
    """F(w) = (1/n) sum_i omega_i phi(a_i'w, y_i), as :class:`condgrad.LinearModel`, with the rows a_i on workers.

    The driver holds the point w and runs the solver. Full gradients are the sums of those of the shards, which the workers add
    up. Of a batch every worker gets the numbers of its own rows, and computes the sum of their gradients. Results do not depend
    on the number of workers, to the last bit, and a worker that dies costs time only: its shards are loaded again on another one.

    Parameters
    ----------
    source : tuple of arrays, Loader or RowFolder
        The rows: (A, y) or (A, y, weights) in memory, A dense or scipy-sparse; a Loader whose ``load(i)`` returns such a tuple
        with the rows of shard i; or files that the workers read.
    loss : Loss
        The loss phi.
    client : distributed.Client
        The cluster.
    shards : int, default None
        Number of shards of arrays in memory. None: one for every 262,144 rows, at least 8 and at most one for each row. Another
        number gives other last bits.
    timeout : float, default None
        Seconds after which a computation on all shards fails with the names of the shards that gave no answer. None: no limit.

    Raises
    ------
    ShardError
        If a shard can't be loaded or has rows that can't be used.

    Notes
    -----
    ``omega`` are the weights, divided by their mean. Variance reduction with a table (SAGA) keeps one number for each row on the
    driver.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> from distributed import Client
    >>> from condgrad.distributed import ShardedSum
    >>> rng = np.random.default_rng(0)
    >>> A = rng.standard_normal((60, 5))
    >>> y = A @ [1.0, -1.0, 0.0, 0.0, 0.0]
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     F = ShardedSum((A, y), cg.Huber(), client=client)
    ...     result = cg.minimize(F, cg.L1Ball(5, 2.0), method="ncgs")
    >>> result.status, bool(np.abs(result.x - [1, -1, 0, 0, 0]).max() < 1e-2)
    ('converged', True)
    """

    def __init__(
        self,
        source: tuple[Any, ...] | Source,
        loss: Loss,
        *,
        client: Client,
        shards: int | None = None,
        timeout: float | None = None,
    ):
        if shards is not None:
            checks.whole(shards, "The number of shards")
        if isinstance(source, tuple | list):
            source = Rows(tuple(source))
        elif not hasattr(source, "open"):
            raise TypeError(f"The source is of type {type(source).__name__}: give (A, y), a Loader or a RowFolder.")
        cluster = Cluster(client, timeout)
        self.loss = loss
        self._shards = HeldShards(cluster, source.open(cluster, None, shards), partial(rows.build_rows, loss=loss))
        self.summaries: tuple[rows.RowSummary, ...] = self._shards.summarise(rows.summarise_rows, loss)
        if not all(summary.features for summary in self.summaries):
            raise ValueError("The matrix A of ShardedSum has no columns: give at least one feature.")
        features = {summary.features for summary in self.summaries}
        if len(features) > 1:
            raise ValueError(
                f"The shards have {', '.join(map(str, sorted(features)))} columns: give all rows the same number of features."
            )
        self._ends = np.cumsum([summary.rows for summary in self.summaries])
        self.n_terms = int(self._ends[-1])
        if not self.n_terms:
            raise ValueError("The source of ShardedSum has no rows: give at least one sample.")
        self.shape = (features.pop(),)
        self._total_weight = math.fsum(summary.weight for summary in self.summaries)

    @property
    def lower_bound(self) -> float:
        """A lower bound of F."""
        return self.loss.lower_bound

    @property
    def smoothness(self) -> float:
        """Lipschitz constant L of the gradient of F."""
        return self.loss.smoothness * self._mean_square

    @property
    def lower_smoothness(self) -> float:
        """Non-convexity l: F + (l/2) |w|^2 is convex."""
        return self.loss.lower_smoothness * self._mean_square

    @property
    def term_smoothness(self) -> float:
        """Largest Lipschitz constant of the gradient of a term."""
        most = max(summary.max_weighted_square for summary in self.summaries)
        return self.loss.smoothness * most * self.n_terms / self._total_weight

    @cached_property
    def mean_square_smoothness(self) -> float:
        """Lipschitz constant of the gradients of the terms, in the mean square."""
        scale = self.n_terms / self._total_weight
        return self.loss.smoothness * scale * math.sqrt(self._top_of_gram(by_norm=True) / self.n_terms)

    @cached_property
    def _mean_square(self) -> float:
        """The largest eigenvalue of A' diag(omega) A / n."""
        return self._top_of_gram(by_norm=False) / self._total_weight

    def _top_of_gram(self, by_norm: bool) -> float:
        """Return the largest eigenvalue of sum_i c_i a_i a_i'; ``by_norm`` as in :func:`rows.gram_matrix`."""
        (d,) = self.shape
        if d <= SMALL:
            total = self._shards.total(rows.gram_matrix, last=(by_norm,))
            return max(float(np.linalg.eigvalsh(total)[-1]), 0.0)
        if not any(summary.squares for summary in self.summaries):
            return 0.0
        return largest_eigenvalue(lambda x: self._shards.total(rows.gram_times, common=[x.ravel()], last=(by_norm,)), d)

    def value(self, x: np.ndarray) -> float:
        """Return F(x)."""
        parts = self._shards.each(rows.loss_sum, common=[self._point(x)], last=(self.loss,))
        return math.fsum(parts) / self._total_weight

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient at x."""
        total = self._shards.total(rows.gradient_sum, common=[self._point(x)], last=(self.loss,))
        return total / self._total_weight

    def grad_scale(self, x: np.ndarray) -> float:
        """Return an upper bound of the size of the terms that are summed to the gradient at x, for its rounding errors."""
        size = math.sqrt(math.fsum(summary.squares for summary in self.summaries))
        at_0 = math.sqrt(math.fsum(summary.slopes2 for summary in self.summaries))
        steepest = self.loss.smoothness * max(summary.max_weight for summary in self.summaries)
        return size / self._total_weight * (at_0 + steepest * size * float(np.linalg.norm(x)))

    def term_rows(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Return the slopes omega_i phi' of the terms of a batch, which may be empty."""
        numbers, places, chosen = self._divided(batch, least=0)
        found = self._shards.each(
            rows.term_slopes, by_shard=[chosen], common=[self._point(x)], last=(self.loss,), only=numbers
        )
        slopes = np.empty(len(batch))
        for place, part in zip(places, found, strict=True):
            slopes[place] = part
        return slopes * (self.n_terms / self._total_weight)

    def assemble(self, slopes: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Return the mean gradient of the terms of a batch with these slopes."""
        numbers, places, chosen = self._divided(batch)
        parts = [np.asarray(slopes)[place] for place in places]
        return self._shards.total(rows.assembled, by_shard=[chosen, parts], only=numbers) / len(batch)

    def grad_terms(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        """Return the mean gradient of the terms of a batch at x: in one round, where slopes stay on the workers."""
        numbers, _, chosen = self._divided(batch)
        total = self._shards.total(
            rows.term_gradients, by_shard=[chosen], common=[self._point(x)], last=(self.loss,), only=numbers
        )
        return total * (self.n_terms / self._total_weight / len(batch))

    def _point(self, x: Any) -> np.ndarray:
        return checks.point(x, self.shape, "ShardedSum")

    def _divided(self, batch: np.ndarray, least: int = 1) -> tuple[list[int], list[np.ndarray], list[np.ndarray]]:
        """Return the shards with rows of a batch and, for each, the places in the batch and the row numbers in the shard."""
        batch = np.asarray(batch)
        if batch.ndim != 1 or batch.size < least or batch.dtype.kind not in "iu":
            raise ValueError(
                f"A batch of ShardedSum has shape {batch.shape} and dtype {batch.dtype}: give a list of row numbers."
            )
        if batch.size and (batch.min() < 0 or batch.max() >= self.n_terms):
            raise ValueError(
                f"A batch goes from {batch.min()} to {batch.max()}, but ShardedSum has {self.n_terms} rows: count from 0."
            )
        shard = np.searchsorted(self._ends, batch, side="right")
        numbers = np.unique(shard).tolist()
        places = [np.flatnonzero(shard == number) for number in numbers]
        starts = self._ends - [summary.rows for summary in self.summaries]
        return numbers, places, [batch[place] - starts[number] for number, place in zip(numbers, places, strict=True)]
