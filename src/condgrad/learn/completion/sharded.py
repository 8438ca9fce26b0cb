"""The computations of a fit that need the observed entries, if the entries are on the workers of a cluster (class `OnWorkers`).

The same computations for entries in memory are in observed.py. The workers compute sums over all entries. The held-out entries
are in the memory of the driver process, which compares models. If there are very many entries, a smaller share of them is held
out. The driver process also computes medians of the values. With more than ``MAX_IN_DRIVER`` entries, these are medians of a
sample of evenly spaced entries.
"""

from __future__ import annotations

from math import fsum
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from condgrad.distributed import ShardedCompletion
from condgrad.distributed import shards as computed
from condgrad.distributed.held import DerivedShards
from condgrad.distributed.pattern import ShardedPattern
from condgrad.distributed.shards import Shard
from condgrad.learn.completion.biases import Biases, ReweightedEntries
from condgrad.learn.completion.entries import (
    MAX_FLOAT32_MAGNITUDE,
    MAX_MAGNITUDE,
    MIN_FLOAT32_MAGNITUDE,
    MIN_MAGNITUDE,
    Entries,
)
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import Outliers, selection
from condgrad.learn.completion.robust_scale import MIN_COMMON_SHARE
from condgrad.learn.completion.validation import HeldOut
from condgrad.objectives.losses import Loss, Squared
from condgrad.points import LowRank

MAX_IN_DRIVER = 1_000_000
"""Maximum number of held-out entries, of entries for medians, and of listed outliers. A full list of entries takes up to 24 MB,
and a full list of outliers up to 40 MB."""
SIZE_SHIFT = 46
"""Errors are counted in bins by their size. A bin has all float64 numbers that differ only in the last SIZE_SHIFT bits, so that
there are 64 bins from a power of 2 to the next."""


class OnWorkers:
    """Operations on a :class:`condgrad.distributed.ShardedCompletion`, whose entries are on workers."""

    def __init__(self) -> None:
        self._samples: WeakKeyDictionary[ShardedCompletion, tuple[np.ndarray, ...]] = WeakKeyDictionary()

    def _sample(self, objective: ShardedCompletion) -> tuple[np.ndarray, ...]:
        """Rows, columns and values of evenly spaced entries."""
        known = self._samples.get(objective)
        if known is None:
            size = objective.pattern.size
            known = objective.entries_at(np.arange(0, size, -(-size // MAX_IN_DRIVER)))
            self._samples[objective] = known
        return known

    def values(self, objective: ShardedCompletion) -> np.ndarray:
        return self._sample(objective)[2]

    def minus(self, objective: ShardedCompletion, biases: Biases | None, loss: Loss) -> ShardedCompletion:
        found = objective.replaced(loss, biases)
        if objective in self._samples:
            rows, cols, values = self._samples[objective]
            found_values = values if biases is None else (values - biases.at(rows, cols)).astype(values.dtype)
            self._samples[found] = rows, cols, found_values
        return found

    def reweighted(self, objective: ShardedCompletion, x: LowRank, loss: Loss) -> ReweightedShards:
        return ReweightedShards(objective.pattern, x.factors(), loss)

    def split(
        self, objective: ShardedCompletion, share: float, rng: np.random.Generator
    ) -> tuple[ShardedCompletion, HeldOut]:
        count = objective.pattern.size
        many = min(max(int(share * count), 1), MAX_IN_DRIVER)
        positions = np.sort(rng.choice(count, many, replace=False))
        train = objective.without(positions) if count > 1 else objective
        return train, HeldOut(*objective.entries_at(positions))

    def counts(self, objective: ShardedCompletion, axis: int) -> np.ndarray:
        pattern = objective.pattern
        if axis:
            return pattern.total(column_counts).astype(np.int64)
        return by_rows(pattern, pattern.each(row_counts)).astype(np.int64)

    def select(
        self, objective: ShardedCompletion, axis: int, chosen: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        found = objective.pattern.each(selected, common=[chosen], last=(axis, objective.shape[axis]))
        own, other, values = (np.concatenate(parts) for parts in zip(*found, strict=True))
        return own, other, values

    def inlier_range(self, objective: ShardedCompletion, model: Model) -> tuple[float, float]:
        parts = np.array(self._each(objective, model, extremes))
        least, most = parts[:, 0].min(), parts[:, 2].max()
        at_least = parts[parts[:, 0] == least, 1].sum()
        at_most = parts[parts[:, 2] == most, 3].sum()
        many = max(2, MIN_COMMON_SHARE * parts[:, 4].sum())
        return float(least) if at_least >= many else -np.inf, float(most) if at_most >= many else np.inf

    def count_below(self, objective: ShardedCompletion, model: Model, weight: float) -> int:
        return sum(self._each(objective, model, number_below, weight))

    def outliers(self, objective: ShardedCompletion, model: Model) -> Outliers:
        sizes, counts = zip(*self._each(objective, model, outlier_sizes), strict=True)
        known, places = np.unique(np.concatenate(sizes), return_inverse=True)
        number = np.bincount(places, np.concatenate(counts), len(known)).astype(np.int64)
        larger = np.cumsum(number[::-1])[::-1]  # number of outliers in this bin and in higher bins
        first = min(int(np.count_nonzero(larger > MAX_IN_DRIVER)), max(len(known) - 1, 0))
        least = int(known[first]) if len(known) else 0
        parts = self._each(objective, model, outliers_from, least)
        rows, cols, values, residuals, weights = (np.concatenate(arrays) for arrays in zip(*parts, strict=True))
        order = np.argsort(-np.abs(residuals), kind="stable")[:MAX_IN_DRIVER]
        return Outliers(rows[order], cols[order], values[order], residuals[order], weights[order], int(number.sum()))

    def _each(self, objective: ShardedCompletion, model: Model, function: Any, *last: Any) -> list[Any]:
        """Call ``function(shard, U, V, loss, *last)`` for each shard. The predictions at the entries of the shard are U V'."""
        U, V = model.factors()
        return objective.pattern.each(function, by_rows=[U], common=[V], last=(model.loss, *last))


class ReweightedShards:
    """Like ReweightedEntries, but the residuals and their inlier weights stay on the workers.

    Parameters
    ----------
    pattern : ShardedPattern
        The entries.
    factors : tuple of two ndarrays
        Factors U and V. The residuals are the values minus the entries of U V'.
    loss : Loss
        The loss, which determines the weights.
    """

    def __init__(self, pattern: ShardedPattern, factors: tuple[np.ndarray, np.ndarray], loss: Loss):
        U, V = factors
        self._pattern = pattern
        self._held: DerivedShards = pattern.derived(reweigh, lambda: [pattern.rows(U)], [V], (loss,))
        found = self._held.each(sums_of)
        self.value = fsum(part[0] for part in found)
        self.row_weight, self.row_sum = (by_rows(pattern, [part[k] for part in found]) for k in (1, 2))

    def row_sums(self, col_change: np.ndarray) -> np.ndarray:
        return by_rows(self._pattern, self._held.each(row_sums, common=[col_change]))

    def column_sums(self, row_change: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        weight, total = self._held.total(column_sums, by_shard=[self._pattern.rows(row_change)])
        return weight, total


def by_rows(pattern: ShardedPattern, parts: list[np.ndarray]) -> np.ndarray:
    """Join arrays with one number for each row of a shard; 0 for rows that are in no shard."""
    out = np.zeros(pattern.shape[0])
    for about, part in zip(pattern.summaries, parts, strict=True):
        out[about.first : about.stop] = part
    return out


# ------------------------------------------------------------------------------------------------ what a worker computes


class _Reweighted(ReweightedEntries):
    """Residuals of a shard. They state their size, so that Dask sends tasks to the data, and not the data to the tasks."""

    def __sizeof__(self) -> int:
        return self.residuals.nbytes + self.weights.nbytes


def reweigh(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss) -> ReweightedEntries:
    """Return the residuals of a shard (values minus U V') with their inlier weights. U has the rows of the shard."""
    return _Reweighted(shard.pattern, shard.values - shard.pattern.sample(U, V), loss)


def sums_of(entries: ReweightedEntries) -> tuple[float, np.ndarray, np.ndarray]:
    """Return the loss, and for each row the sum of the weights and of weight times residual."""
    return entries.value, entries.row_weight, entries.row_sum


def row_sums(entries: ReweightedEntries, col_change: np.ndarray) -> np.ndarray:
    return entries.row_sums(col_change)


def column_sums(entries: ReweightedEntries, row_change: np.ndarray) -> np.ndarray:
    return np.stack(entries.column_sums(row_change))


def row_counts(shard: Shard) -> np.ndarray:
    return np.diff(shard.pattern.indptr)


def column_counts(shard: Shard) -> np.ndarray:
    return np.bincount(shard.pattern.indices, minlength=shard.pattern.shape[1])


def selected(shard: Shard, chosen: np.ndarray, axis: int, size: int) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return the entries of some rows or columns of a shard; see :meth:`Observed.select`."""
    places = shard.pattern.rows + shard.first, shard.pattern.indices
    kept = selection(places[axis], chosen, size)
    return np.searchsorted(chosen, places[axis][kept]), places[1 - axis][kept], shard.values[kept]


def extremes(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss) -> tuple[float, int, float, int, int]:
    """Return the minimum of the inliers, its multiplicity, the maximum, its multiplicity, and the number of inliers."""
    inliers = shard.values[reweigh(shard, U, V, loss).weights >= 0.5]
    if not len(inliers):
        return np.inf, 0, -np.inf, 0, 0
    least, most = inliers.min(), inliers.max()
    numbers = int(np.count_nonzero(inliers == least)), int(np.count_nonzero(inliers == most))
    return float(least), numbers[0], float(most), numbers[1], len(inliers)


def number_below(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss, weight: float) -> int:
    return int(np.count_nonzero(reweigh(shard, U, V, loss).weights < weight))


def sizes_of(residuals: np.ndarray) -> np.ndarray:
    """Return the bin of each residual: the leading bits of its absolute value, a whole number that grows with the value."""
    return np.abs(residuals).astype(float).view(np.int64) >> SIZE_SHIFT


def outlier_sizes(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss) -> tuple[np.ndarray, np.ndarray]:
    """Return the bins of the residuals of outliers, and the number of outliers in each bin."""
    found = reweigh(shard, U, V, loss)
    return np.unique(sizes_of(found.residuals[found.weights < 0.5]), return_counts=True)


def outliers_from(shard: Shard, U: np.ndarray, V: np.ndarray, loss: Loss, least: int) -> tuple[np.ndarray, ...]:
    """Return rows, columns, values, residuals and inlier weights of the outliers in the bin ``least`` and in higher bins."""
    found = reweigh(shard, U, V, loss)
    worst = np.flatnonzero((found.weights < 0.5) & (sizes_of(found.residuals) >= least))
    pattern = shard.pattern
    rows = pattern.row_of(worst) + shard.first
    return rows, pattern.indices[worst], shard.values[worst], found.residuals[worst], found.weights[worst]


# --------------------------------------------------------------------------------------------------------- the data


def check_magnitude(objective: ShardedCompletion) -> None:
    """Raise ValueError if products of three values could overflow or underflow, in the type of the values."""
    largest = max(objective.pattern.each(computed.largest_value))
    single = objective.pattern.dtype == np.float32
    least, most = (MIN_FLOAT32_MAGNITUDE, MAX_FLOAT32_MAGNITUDE) if single else (MIN_MAGNITUDE, MAX_MAGNITUDE)
    if largest > most or 0 < largest < least:
        raise ValueError(
            f"The largest value of the entries is {largest:g}, but a size from {least:g} to {most:g} was expected for "
            f"{objective.pattern.dtype}: multiply all values by the same number, as a change of units does."
        )


def objective_of(source: Any, client: Any) -> ShardedCompletion:
    """Make the objective of entries on a cluster. Raises ValueError if they have weights, or values of extreme magnitude.

    ``source`` is a ShardedCompletion, Entries, or another source from which a ShardedCompletion can be made.
    """
    if isinstance(source, ShardedCompletion):
        found = source
    elif isinstance(source, Entries):
        arrays = source.rows, source.cols, source.require_magnitude().values
        found = ShardedCompletion(arrays, source.shape, Squared(), client=client)
    else:
        found = ShardedCompletion(source, None, Squared(), client=client)
    if any(about.weight != about.entries for about in found.pattern.summaries):
        raise ValueError("The entries have weights, but RobustCompletion has none: leave the weights out.")
    check_magnitude(found)
    return found


def names_of(objective: ShardedCompletion) -> Entries:
    """Entries object with the shape and the names of rows and columns of an objective, but without entries."""
    nothing = np.zeros(0, np.int64)
    names = objective.row_names, objective.col_names
    return Entries(nothing, nothing, np.zeros(0), objective.shape, *names)
