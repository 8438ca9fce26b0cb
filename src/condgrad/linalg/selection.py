"""Positions of the smallest or largest entries of long arrays, in about one pass over memory and without arrays of their size.

Arrays are read in pieces that stay in the processor's cache. Of equal entries the first one is chosen. NonFinite
is raised if the result would be NaN or Inf.
"""

from __future__ import annotations

import math
from collections.abc import Iterator

import numpy as np

from condgrad.checks import NonFinite

PIECE = 1 << 16
"""Number of entries in a piece: 512 KB of float64, which fit in the second-level cache."""
ROW = 1 << 12
"""Number of entries in a row: to find the smallest entry of a long array, the minimum of each row is computed first."""
SAMPLE, SAMPLE_RANK = 1 << 14, 64
"""The k-th smallest entry of a long array is estimated from a sample with at least SAMPLE entries. The sample is so large that
the expected number of its entries below the k-th smallest is at least SAMPLE_RANK."""
FEW = PIECE // 8
"""Maximum k for which the k smallest entries are selected piece by piece. For larger k, a copy of the whole array is faster."""


def largest_size(x: np.ndarray) -> float:
    """Return the largest |x_i|; NaN if an entry is NaN."""
    return float(np.maximum(x.max(), -x.min()))


def finite_size(x: np.ndarray) -> float:
    """Return the largest |x_i| of a direction; NaN and Inf are refused."""
    return _finite(largest_size(x))


def index_of_smallest(x: np.ndarray) -> int:
    """Return the flat index of the smallest entry; the first one, if several are smallest."""
    flat = x.reshape(-1)
    if flat.flags.writeable or flat.size <= ROW:  # numpy's argmin copies an array that is read-only
        found = int(flat.argmin())
        _finite(flat[found])
        return found
    rows = flat[: flat.size // ROW * ROW].reshape(-1, ROW)
    minima = rows.min(axis=1)
    if rows.size < flat.size:
        minima = np.append(minima, flat[rows.size :].min())
    best = int(minima.argmin())
    _finite(minima[best])
    return best * ROW + int(flat[best * ROW : (best + 1) * ROW].argmin())


def indices_of_smallest_along(x: np.ndarray, axis: int) -> np.ndarray:
    """Return, for each row of x along an axis, the flat index of its smallest entry; the first one, if several are smallest.

    Examples
    --------
    >>> import numpy as np
    >>> indices_of_smallest_along(np.array([[3.0, 1.0], [2.0, 4.0]]), 1), indices_of_smallest_along(np.ones((2, 2)), 0)
    (array([1, 2]), array([0, 1]))
    """
    width, after = x.shape[axis], math.prod(x.shape[axis + 1 :])
    blocks = x.reshape(-1, width, after)
    found = np.empty((len(blocks), after), np.int64)
    rows, columns = max(1, PIECE // (width * after)), max(64, PIECE // width)
    for i in range(0, len(blocks), rows):
        for j in range(0, after, columns):
            found[i : i + rows, j : j + columns] = blocks[i : i + rows, :, j : j + columns].argmin(axis=1)
    if after > 1:
        found *= after
        found += np.arange(after)
    found += np.arange(0, x.size, width * after)[:, None]
    return found.reshape(-1)


def index_of_largest_size(x: np.ndarray, weights: np.ndarray | None = None) -> int:
    """Return the flat index of the largest |x_i|, or of the largest |x_i| / weights_i.

    Parameters
    ----------
    x : ndarray of float
        The entries, in any shape.
    weights : ndarray of float, default None
        Positive weights in the same shape, of which none is below 1.

    Returns
    -------
    int
        The index; the first one, if several are largest.

    Examples
    --------
    >>> import numpy as np
    >>> index_of_largest_size(np.array([1.0, -3.0, 2.0])), index_of_largest_size(np.array([1.0, -3.0]), np.array([1.0, 4.0]))
    (1, 0)
    """
    flat, found, top = x.reshape(-1), 0, -1.0
    if weights is None:
        if flat.size <= PIECE:
            sizes = np.abs(flat)
            found = int(sizes.argmax())
            _finite(sizes[found])
            return found
        for start, piece in _pieces(flat):
            size = _finite(largest_size(piece))
            if size > top:
                found, top = start, size
        return found + int(np.abs(flat[found : found + PIECE]).argmax())
    for start, piece in _pieces(flat):
        sizes = np.abs(piece) / weights.reshape(-1)[start : start + PIECE]
        size = _finite(float(sizes.max()))
        if size > top:
            found, top = start + int(sizes.argmax()), size
    if not top > 1e-290:  # small quotients are rounded, perhaps to 0: the order may be wrong
        size = finite_size(flat)
        if 0 < size < 1:
            return index_of_largest_size(flat / size, weights)
    return found


def indices_of_smallest(x: np.ndarray, k: int, sizes: bool = False) -> np.ndarray:
    """Return the flat indices of the k smallest entries, increasing.

    Parameters
    ----------
    x : ndarray of float
        The entries, in any shape.
    k : int
        How many, from 1 to the number of entries.
    sizes : bool, default False
        Look for the k largest |x_i| instead.

    Returns
    -------
    ndarray of int, shape (k,)
        The indices; of equal entries those that come first.

    Examples
    --------
    >>> import numpy as np
    >>> indices_of_smallest(np.array([3.0, -4.0, 2.0, 2.0]), 2), indices_of_smallest(np.array([3.0, -4.0, 2.0]), 2, sizes=True)
    (array([1, 2]), array([0, 1]))
    """
    flat = x.reshape(-1)
    if k > FEW or flat.size <= PIECE:
        keys = np.abs(flat) if sizes else flat
        if sizes:
            np.negative(keys, out=keys)
        _finite(keys.min())
        likely = _likely_smallest(keys, k)
        return _smallest(keys, k) if likely is None else likely[_smallest(keys[likely], k)]
    bound, kept, found = math.inf, np.empty(0), np.empty(0, np.int64)
    for start, piece in _pieces(flat):
        least = -largest_size(piece) if sizes else piece.min()
        if not _finite(least) < bound:
            continue
        keys = -np.abs(piece) if sizes else piece
        new = np.flatnonzero(keys < bound)  # an entry equal to the bound is not selected: the first ones are
        kept, found = np.concatenate([kept, keys[new]]), np.concatenate([found, new + start])
        if len(found) > k:
            best = _smallest(kept, k)
            kept, found = kept[best], found[best]
            bound = float(kept.max())
    return found


def indices_in_increasing_order(x: np.ndarray, k: int, sizes: bool = False) -> np.ndarray:
    """Return the flat indices of the k smallest entries, or of all if there are fewer, the smallest entry first.

    With ``sizes``, those of the k largest |x_i|, the largest first. Of equal entries the first ones are chosen, in the order of
    their indices.

    Examples
    --------
    >>> import numpy as np
    >>> x = np.array([3.0, -4.0, 2.0])
    >>> indices_in_increasing_order(x, 2), indices_in_increasing_order(x, 9, sizes=True)
    (array([1, 2]), array([1, 0, 2]))
    """
    chosen = indices_of_smallest(x, min(k, x.size), sizes)
    keys = x.reshape(-1)[chosen]
    return chosen[increasing_order(-np.abs(keys) if sizes else keys)]


def increasing_order(keys: np.ndarray) -> np.ndarray:
    """Return the indices that sort finite keys; of equal keys the one that comes first is first.

    The sort that keeps this order takes several times as long, so it is used only if two keys are equal.

    Examples
    --------
    >>> import numpy as np
    >>> increasing_order(np.array([3.0, 1.0, 2.0])), increasing_order(np.array([1.0, 0.0, 1.0, 0.0]))
    (array([1, 2, 0]), array([1, 3, 0, 2]))
    """
    order = np.argsort(keys)
    rising = keys[order]
    return np.argsort(keys, kind="stable") if np.any(rising[1:] == rising[:-1]) else order


def _likely_smallest(keys: np.ndarray, k: int) -> np.ndarray | None:
    """Indices of at least k keys, among them the k smallest and all keys equal to these; None if a full selection is as fast.

    A bound on the k-th smallest key is estimated from a sample. If it is too low, fewer than k keys are below it.
    """
    step = min(len(keys) // SAMPLE, k // SAMPLE_RANK)
    if step < 2 or k > len(keys) // 4:
        return None
    rank = math.ceil(k / step + 5 * math.sqrt(k / step))
    likely = np.flatnonzero(keys <= np.partition(keys[::step], rank)[rank])
    return likely if len(likely) >= k else None


def _smallest(keys: np.ndarray, k: int) -> np.ndarray:
    """Indices of the k smallest keys, increasing; of equal keys the first ones are selected."""
    if k == len(keys):
        return np.arange(k)
    bound = np.partition(keys, k - 1)[k - 1]
    below, ties = np.flatnonzero(keys < bound), np.flatnonzero(keys == bound)
    return np.sort(np.concatenate([below, ties[: k - len(below)]]))


def _pieces(flat: np.ndarray) -> Iterator[tuple[int, np.ndarray]]:
    for start in range(0, flat.size, PIECE):
        yield start, flat[start : start + PIECE]


def _finite(value: float) -> float:
    if not math.isfinite(value):
        raise NonFinite("The direction given to a linear oracle holds NaN or Inf: check the gradient it comes from.")
    return float(value)
