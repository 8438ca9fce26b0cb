"""The objective of matrix completion with its entries on the workers of a Dask cluster."""

from __future__ import annotations

import copy
from typing import Any, Self, final

import numpy as np

from condgrad import checks
from condgrad.distributed import shards as computed
from condgrad.distributed.cluster import Client, Cluster
from condgrad.distributed.direction import ShardedDirection, ShardedSlopes
from condgrad.distributed.pattern import ShardedPattern
from condgrad.distributed.sources import Arrays, Source
from condgrad.objectives.completion import Biases
from condgrad.objectives.losses import Loss, Welsch
from condgrad.points import LowRank
from condgrad.points.low_rank import Factors
from condgrad.runtime.cache import active


@final
class ShardedCompletion:
    """F(X) = sum over the observed (i, j) of w_ij phi(X_ij, Y_ij), as :class:`condgrad.Completion`, with the entries on workers.

    The driver holds the point and runs the solver. Workers hold shards of entries by rows, and their slopes. Points are LowRank;
    gradients are linear operators whose products the workers compute. Results do not depend on the number of workers, to the
    last bit, and a worker that dies costs time only: its shards are loaded again on another one.

    Parameters
    ----------
    source : tuple of arrays, Loader or EntryFolder
        The entries: (rows, cols, values) or (rows, cols, values, weights) in memory, a function that loads a shard, or files
        that the workers read.
    shape : tuple of two ints, default None
        Shape of the matrix. None: that of the source, for a Loader with a shape or an EntryFolder with names.
    loss : Loss, default None
        The loss phi; None: ``Welsch()``.
    client : distributed.Client
        The cluster.
    shards : int, default None
        Number of shards. None: one for every 2,097,152 entries, at least 8 and at most one for each row. Another number gives
        other last bits.
    timeout : float, default None
        Seconds after which a computation on all shards fails with the names of the shards that gave no answer. None: no limit.

    Raises
    ------
    ShardError
        If a shard can't be loaded or has entries that can't be used.

    Examples
    --------
    >>> import condgrad as cg
    >>> from distributed import Client
    >>> from condgrad.distributed import ShardedCompletion
    >>> data = cg.paper_data(20, 15, 2, seed=0, generator="gaussian", observe=0.6)
    >>> entries, ball = (data.rows, data.cols, data.values), cg.NuclearBall((20, 15), data.nuclear_norm)
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     F = ShardedCompletion(entries, (20, 15), cg.Welsch(1.0), client=client)
    ...     result = cg.minimize(F, ball, method="frank-wolfe", max_steps=2)
    >>> type(result.x).__name__, result.fun < F.pattern.size
    ('LowRank', True)
    """

    low_rank = True
    """LowRank points are accepted; the default start is a LowRank if the set provides one."""

    def __init__(
        self,
        source: tuple[Any, ...] | Source,
        shape: tuple[int, int] | None = None,
        loss: Loss | None = None,
        *,
        client: Client,
        shards: int | None = None,
        timeout: float | None = None,
    ):
        if shape is not None:
            given = checks.as_shape(shape, "ShardedCompletion")
            if len(given) != 2:
                raise ValueError(f"ShardedCompletion is about matrices, but got shape {given}: give (rows, columns).")
            shape = given[0], given[1]
        self.loss = Welsch() if loss is None else loss
        if shards is not None:
            checks.whole(shards, "The number of shards")
        if isinstance(source, tuple | list):
            if len(source) not in (3, 4):
                raise ValueError(
                    f"Got {len(source)} arrays of entries: give (rows, cols, values) or (rows, cols, values, weights)."
                )
            source = Arrays(tuple(source))
        elif not hasattr(source, "open"):
            raise TypeError(
                f"The source is of type {type(source).__name__}: give (rows, cols, values), a Loader or an EntryFolder."
            )
        cluster = Cluster(client, timeout)
        opened: Any = source.open(cluster, shape, shards)
        found: Any = getattr(opened, "shape", None) or shape  # files with names tell the shape, and a Loader may
        if shape is not None and tuple(found) != shape:
            raise ValueError(f"The shape is {shape}, but the source has {tuple(found)}: leave one of them out.")
        if found is None:
            raise ValueError("The shape is missing: give the number of rows and columns of the matrix.")
        self.shape: tuple[int, int] = tuple(found)
        names: Any = getattr(opened, "names", None) or (None, None)
        self.row_names, self.col_names = names
        """Names of the rows and columns of an EntryFolder with names, in the order of their numbers; else None."""
        try:
            self.pattern = ShardedPattern.load(cluster, opened, self.shape, self.loss)
        except BaseException:
            getattr(opened, "remove", list)()  # the copy of a folder, which a traceback would keep
            raise

    def _with(self, pattern: ShardedPattern) -> Self:
        """Return this objective with other shards, and the loss of these."""
        other = copy.copy(self)
        other.pattern, other.loss = pattern, pattern.loss
        return other

    def replaced(self, loss: Loss, biases: Biases | None = None) -> Self:
        """Return the objective with another loss and, with ``biases``, with its values minus these; they are subtracted on the
        workers, and again if a worker dies."""
        held = self.pattern.held
        if biases is not None:
            rows, cols = biases.factors()
            held = self.pattern.derived(computed.minus_biases, lambda: [self.pattern.rows(rows)], [cols])
        return self._with(ShardedPattern(held, self.shape, loss, self.pattern.summaries))

    def without(self, positions: np.ndarray) -> Self:
        """Return the objective without some entries, given by increasing positions in the row-major order of all of them."""
        pattern, parts = self.pattern, self.pattern.by_shard(positions)
        left = tuple(
            about._replace(entries=about.entries - len(part), weight=about.weight - len(part))
            for about, part in zip(pattern.summaries, parts, strict=True)
        )
        held = pattern.derived(computed.without, lambda: [parts])
        return self._with(ShardedPattern(held, self.shape, self.loss, left))

    def entries_at(self, positions: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return rows, columns and values of the entries at increasing positions in the row-major order; they travel here."""
        parts = self.pattern.by_shard(positions)
        found = self.pattern.each(computed.entries_at, by_shard=[parts])
        rows, cols, values = (np.concatenate(arrays) for arrays in zip(*found, strict=True))
        return rows, cols, values

    @property
    def _max_weight(self) -> float:
        return max(summary.max_weight for summary in self.pattern.summaries)

    @property
    def lower_bound(self) -> float:
        """A lower bound of F."""
        return sum(summary.weight for summary in self.pattern.summaries) * self.loss.lower_bound

    @property
    def smoothness(self) -> float:
        """Lipschitz constant L of the gradient of F."""
        return self._max_weight * self.loss.smoothness

    @property
    def lower_smoothness(self) -> float:
        """Non-convexity l: F + (l/2) |X|^2 is convex."""
        return self._max_weight * self.loss.lower_smoothness

    def value(self, x: LowRank) -> float:
        """Return F(x)."""
        return self._evaluate(x)[0]

    def grad(self, x: LowRank) -> ShardedDirection:
        """Return the gradient at x."""
        return self._evaluate(x)[1]

    def _evaluate(self, x: LowRank) -> tuple[float, ShardedDirection]:
        """Return the value and the gradient at x, from one pass over the entries; cached."""
        if not isinstance(x, LowRank):
            raise TypeError(
                f"ShardedCompletion needs points of low rank, but got one of type {type(x).__name__}: start from a LowRank, "
                "as NuclearBall does by default, or use Completion."
            )
        evaluations = active().evaluations(self)
        known = evaluations.find(x, True)
        if known is not None:
            return known
        checks.same_shape(x.shape, self.shape, "The point given to ShardedCompletion")
        evaluations.release()
        U, V = x.merged_factors()
        single = len(x.terms) == 1 and x.terms[0][0] == 1.0
        slopes = ShardedSlopes(self.pattern, x.terms[0][1] if single else Factors(U, V))
        grad = ShardedDirection(self.pattern, ((1.0, slopes),))
        evaluations.put(x, slopes.value, grad)
        return slopes.value, grad
