"""A user's own objective whose data are on the workers of a Dask cluster."""

from __future__ import annotations

import hashlib
import pickle
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.distributed.cluster import Client, Cluster
from condgrad.distributed.held import HeldShards
from condgrad.distributed.shards import ShardError, explain
from condgrad.distributed.sources import Loader


@dataclass(frozen=True, eq=False)
class _Data:
    """What the user's function loaded for a shard, with its number for messages."""

    number: int
    data: Any


def _checksum(shard: _Data) -> str:
    """Return a checksum of the data, by which a checkpoint knows them; of data that can't be pickled, their type's name."""
    try:
        return hashlib.sha256(pickle.dumps(shard.data, protocol=5)).hexdigest()[:16]
    except (pickle.PicklingError, TypeError, AttributeError):
        return type(shard.data).__qualname__


def _evaluate(shard: _Data, x: np.ndarray, function: Any) -> np.ndarray:
    """Return the value and the gradient that the user's function gives for a shard, in one array; its exceptions become
    ShardErrors."""
    try:
        value, grad = checks.pair(function(shard.data, x))
        value, grad = float(value), np.asarray(grad, dtype=float)
        if grad.shape != x.shape:
            raise ValueError(f"the gradient has shape {grad.shape}, but the point {x.shape}")
    except (Exception, SystemExit) as error:
        raise ShardError(
            f"value_and_grad failed on shard {shard.number} ({explain(error)}): correct the function or the data."
        ) from None
    return np.append(grad.ravel(), value)


@final
class Sharded:
    """F(x) = sum over the shards i of f(data_i, x), with the data on the workers and a function of your own.

    Parameters
    ----------
    load : callable
        ``load(i)`` returns the data of shard i, any object. It runs on a worker, and again on another one if that worker dies:
        it must return the same data.
    shards : int
        Number of shards.
    value_and_grad : callable
        ``value_and_grad(data, x) -> (float, ndarray of shape)``: value and gradient of the shard's summand at x. It runs on a
        worker.
    shape : int or tuple of int
        Shape of a point.
    client : distributed.Client
        The cluster.
    smoothness : float, default None
        Lipschitz constant L of the gradient of F. None: estimated by the method.
    timeout : float, default None
        Seconds after which a computation on all shards fails with the names of the shards that gave no answer. None: no limit.

    Raises
    ------
    ShardError
        If ``load`` or ``value_and_grad`` fails; the message names the shard.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> from distributed import Client
    >>> from condgrad.distributed import Sharded
    >>> def load(i):
    ...     return np.full(3, float(i))
    >>> def value_and_grad(centre, x):
    ...     return float((x - centre) @ (x - centre)) / 2, x - centre
    >>> with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as client:
    ...     F = Sharded(load, 3, value_and_grad, 3, client=client, smoothness=3.0)
    ...     result = cg.minimize(F, cg.Box(np.zeros(3), np.full(3, 5.0)))
    >>> result.status, bool(np.abs(result.x - 1).max() < 1e-3)
    ('converged', True)
    """

    def __init__(
        self,
        load: Callable[[int], Any],
        shards: int,
        value_and_grad: Callable[[Any, np.ndarray], tuple[float, np.ndarray]],
        shape: int | tuple[int, ...],
        *,
        client: Client,
        smoothness: float | None = None,
        timeout: float | None = None,
    ):
        for function, name in ((load, "load"), (value_and_grad, "value_and_grad")):
            if not callable(function):
                raise TypeError(f"{name} is of type {type(function).__name__}: give a function.")
        self.shape = checks.as_shape(shape, "Sharded")
        self.smoothness = None if smoothness is None else checks.positive(smoothness, "smoothness")
        self._function = value_and_grad
        self._shards = HeldShards(Cluster(client, timeout), Loader(load, shards), _Data)
        self.checksums = tuple(self._shards.each(_checksum))

    def value(self, x: np.ndarray) -> float:
        """Return F(x)."""
        return self.value_and_grad(x)[0]

    def grad(self, x: np.ndarray) -> np.ndarray:
        """Return the gradient at x."""
        return self.value_and_grad(x)[1]

    def value_and_grad(self, x: np.ndarray) -> tuple[float, np.ndarray]:
        """Return F(x) and the gradient at x; the workers add up the summands, in an order that depends on their number alone."""
        x = checks.point(x, self.shape, "Sharded")
        total = self._shards.total(_evaluate, common=[x], last=(self._function,))
        return float(total[-1]), total[:-1].reshape(self.shape)
