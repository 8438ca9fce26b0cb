r"""The spectral inner solver: on a spectral set the prox subproblem is one partial SVD.

Let z = u - gamma g. The solution of the subproblem is the projection of z onto the set. The *values* of a matrix are its singular
values, or its eigenvalues, depending on the set. A block of vectors gives Ritz vectors and Ritz values of z. The point u_t has
these Ritz vectors, and its values are the Ritz values after ``shrink``.

The gap of u_t is (max_v <z - u_t, v> - <z - u_t, u_t>) / gamma. An upper bound on the gap is found as follows.

- On the Ritz vectors, z - u_t is diagonal. The diagonal entries are the Ritz values minus the shrunk values (``rest``).
- Ritz vectors are not exactly singular vectors, so z - u_t also couples them to their orthogonal complement (``coupling``).
- Suppose that the values of z - u_t on the complement are at most ``limit``. By a Schur complement, all values of z - u_t are
  then at most y, if y - |coupling|^2, weighted with 1/(y - rest), is at least ``limit``.
- The largest sum of the values of a point of the set is ``trace``, and only values of z - u_t above ``level`` contribute to the
  gap. So the gap is at most trace (y - level) / gamma.

It remains to show that no value on the complement is above ``limit``. The set's method ``beyond`` bounds these values.
"""

from __future__ import annotations

from dataclasses import dataclass
from math import inf, sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import whole
from condgrad.inner.condg import EPS
from condgrad.inner.subspace import RANDOM_COLUMNS
from condgrad.linalg.extreme_eigen import Tridiagonal
from condgrad.linalg.lanczos import FULL, RITZ, SPARE, TIMES, random_block, rank_of, spare_columns, wider
from condgrad.points import LowRank, SparsePlusLowRank, norm2
from condgrad.points.low_rank import outer
from condgrad.points.pattern import MANY_ENTRIES
from condgrad.protocols import InnerStop, Point, Prox
from condgrad.runtime.process_memory import return_free_memory
from condgrad.runtime.signals import heartbeat

GAP_SHARE = 1 / 4
"""Target for the gap, as a share of the allowed gap. The target is what is reported, so with a share of 1 the reported gap would
always be the allowed gap."""
MAX_REFINEMENTS = 6
"""Maximum number of passes in one prox that only refine the block, before the values on the complement are bounded."""
MORE_REFINEMENTS = 12
"""Number of refining passes that are allowed in addition to MAX_REFINEMENTS, if a bound was too large although the rank of the
point has grown by at most one."""
SMALL = 64
"""If z has at most this number of rows or columns, a decomposition of z is its full SVD. For larger z, the vectors that
the set keeps are eigenvectors of the Gram matrix, which take a third of the time or less, and one pass from them follows."""
FULL_SHARE = 3
"""A block counts as wide if it has more than 1/FULL_SHARE of all columns. With a wide block, a full SVD is faster."""
SLOW = 0.9
"""A pass that leaves more than this share of the gap counts as no progress. The gap of singular values that are nearly equal
decreases by a fraction of a percent in a pass."""
DECOMPOSITION, PASS, PASS_ENTRY = 5, 1e7, 50
"""Predicted work; the unit is a multiplication in a matrix product. The Gram matrix of an m x n matrix, m >= n, takes m n^2, and
the eigenvectors that are needed DECOMPOSITION n^3. A pass with b columns takes PASS for what does not depend on the size, and
b PASS_ENTRY for each entry of its blocks and each stored entry of z. Fitted to CPU times of 30 to 1,200 rows."""

ESTIMATE_PASSES = 2
"""Number of passes of ``estimate``. After one pass, new singular vectors are still too inaccurate for the step to keep them."""
ESTIMATE_GROWTH, SMALL_GROWTH = 1.5, 2.5
"""Maximum factors by which the rank may grow in one ``estimate``, for a block of any size and for a small one; a rank below 8
counts as 8. Without a limit, the rank in the first steps is several times that of the solution, and these steps take most of the
time and of the memory."""
SMALL_BLOCK = 2**18
"""Maximum number of entries of the left and right vectors of a small block."""


@dataclass(frozen=True)
class Spectral:
    """Projection of z = u - gamma g, by a few passes of subspace iteration.

    The block starts with the singular vectors of the last prox point and a few more vectors. A pass multiplies the block with z
    and z', and the set shrinks the Ritz values. Passes are repeated until the block is so accurate that the gap is certified if
    the values outside the block are below a limit. One call to the set's oracle ``beyond`` checks whether these values are below
    the limit. If a value is above the limit, the vectors that the oracle has found join the block.

    Parameters
    ----------
    max_calls : int, default None
        Maximum number of passes and oracle calls in one prox; None: no limit.
    growth : float, default None
        Maximum factor, above 1, by which the rank may grow in one prox. A rank below 8 counts as 8. Far from a solution, the
        projection has nearly full rank. With a limit, the prox point then has a lower rank than the projection, and the reported
        gap is the gap of this prox point. None: no limit.
    full_below : int, default 0
        A prox may decompose z as an array if z has at most this number of rows or columns, and at most four times its square
        entries. It does so once its passes have taken as much work as the decomposition will take, as predicted from the sizes.
        So the work is at most about twice that of the better of the two. For the smallest z, no pass precedes.
    """

    max_calls: int | None = None
    growth: float | None = None
    full_below: int = 0

    def __post_init__(self) -> None:
        if self.max_calls is not None:
            whole(self.max_calls, "max_calls")
        if self.growth is not None and self.growth <= 1:
            raise ValueError(f"The growth of Spectral must be above 1, but got {self.growth!r}.")

    def init(self, domain: Any, x: Point) -> np.ndarray:
        """Return the initial block: the right singular vectors of x."""
        if isinstance(x, LowRank):
            return x.svd()[2]
        _, sigma, right = np.linalg.svd(x, full_matrices=False)
        return right[: int(np.sum(sigma > 1e-15 * max(x.shape) * sigma[0]))].T

    def solve(self, domain: Any, g: Point, u: Point, gamma: float, stop: InnerStop, memory: np.ndarray) -> Prox:
        """Solve the prox subproblem at u with gradient g and step size gamma, until ``stop`` allows the gap."""
        z, times = gradient_step(u, g, gamma), TIMES[domain.spectrum]
        most, block, image = min(z.shape), memory, None
        rank = memory.shape[1] - SPARE  # not the rank of u, which is unknown if u is an array
        wide = inf if self.growth is None else max(int(self.growth * max(8, rank)), rank + 1, domain.narrowest)
        widest = int(min(most, wide + SPARE))
        spare, calls, refined, last, stuck = SPARE, 0, 0, inf, False
        best: Prox | None = None
        passes, worth, full = 0, self.passes_before_decomposition(z, memory), False
        before, before_image = memory[:, :0], np.zeros((z.shape[0], 0))
        while True:
            heartbeat()
            image = None if image is None or image.shape[1] < domain.narrowest + SPARE else image[:, :widest]
            if passes == worth:
                full = domain.spectrum == "eigen" or most <= SMALL or FULL_SHARE * memory.shape[1] > most
                if not full:
                    block, image = kept_vectors(domain, z, memory.shape[1]), None
                    widest = max(widest, block.shape[1])
            passes += 1
            if full:
                left, values, right = FULL[domain.spectrum](z)
            else:
                left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, widest), image)
            shrunk = domain.shrink(values)
            k = rank_of(shrunk)
            u_t = outer(left[:, :k] * shrunk[:k], right[:, :k], z)
            allowed = stop(norm2(u_t - u) / gamma)

            image = times(z, right)
            rest = values - np.where(np.arange(len(values)) < k, shrunk, 0.0)
            level = max(np.sort(rest[:k])[-domain.narrowest] if k >= domain.narrowest else -inf, domain.floor)
            enough = level + gamma * GAP_SHARE * allowed / domain.trace
            coupling = left * -values
            coupling += image
            known = BlockResidual(domain.spectrum, np.clip(rest, domain.floor, level), coupling, level)
            if len(values) < most:
                known = known.best_split(k, enough)
            n, limit = len(known.rest), known.limit(enough)
            comfortable = (level + rest[n]) / 2 if n < len(rest) else -inf
            now = spare_columns(values, k, spare)
            if limit < comfortable and refined < MAX_REFINEMENTS and len(values) < most:
                refined += 1
                block, image = np.c_[right[:, now], before], np.c_[image[:, now], before_image]
                before, before_image = right[:, now], image[:, : len(now)]
                continue

            size = float(np.abs(values).max())
            needed = limit if stuck else max(limit, comfortable)
            bound, found = domain.beyond(z, left[:, :n], right[:, :n], needed, size)
            calls += 1
            V = GAP_SHARE * allowed if bound <= limit else domain.trace / gamma * (known.least_bound(bound) - level)
            if best is None or best.gap > V or bound <= limit:
                best = Prox(u_t, max(V, 0.0), right[:, spare_columns(values, k, SPARE)])
            if bound <= limit or len(values) == most:
                break
            if 8 * EPS * (sqrt(norm2(u_t)) + sqrt(norm2(z))) / gamma * (sqrt(norm2(u_t)) + domain.trace) >= V:
                break  # the remaining gap is a rounding error
            narrow = k > len(values) - SPARE  # the set keeps nearly all Ritz values
            spent = self.max_calls is not None and calls >= self.max_calls
            stuck, last = last * SLOW <= V, V
            if (
                k <= rank + 1
            ):  # the rank does not grow: the vectors found stay in the block, and a pass costs less than a bound
                spare, refined = max(spare, SPARE + found.shape[1]), -MORE_REFINEMENTS
                widest = int(min(most, max(widest, k + spare)))
            if spent or (len(values) == widest and (narrow or stuck)):
                if norm2(u_t - z) <= gamma**2 * norm2(g):  # u_t is nearer to z than u is, so the step decreases F
                    break
                widest = min(most, 2 * widest)
            if stuck:  # the subspace is too small; if a large subspace does not help, the reason is rounding
                if spare > most:
                    break
                spare *= 2
            new = np.c_[found, random_block(len(right), k // 2 + SPARE)] if narrow else found
            block, image = np.c_[right[:, now], new], np.c_[image[:, now], times(z, new)]
        return best

    def passes_before_decomposition(self, z: Point, memory: np.ndarray) -> float:
        """Return the number of passes from this block after which z is decomposed; infinite if it never is."""
        n, m = sorted(z.shape)
        if n > self.full_below or m * n > 4 * self.full_below**2:
            return inf
        entries = z.pattern.size if isinstance(z, SparsePlusLowRank) else 0
        columns = memory.shape[1]
        one_pass = PASS + PASS_ENTRY * columns * ((m + n) * columns + entries)
        return n**2 * (m + DECOMPOSITION * n) // one_pass

    def estimate(self, domain: Any, g: Point, u: Point, gamma: float, memory: np.ndarray) -> Prox:
        """Return an approximate solution of the prox subproblem by ESTIMATE_PASSES passes, without an upper bound.

        The gap of this solution is not known and is reported as infinite. A few random columns join the block, so that a missing
        singular vector is found within a few steps. Many random columns join if the set keeps nearly all Ritz values.
        """
        z, rank = gradient_step(u, g, gamma), memory.shape[1] - SPARE
        small = min(int(SMALL_GROWTH * max(8, rank)), SMALL_BLOCK // sum(u.shape))
        largest = max(int(ESTIMATE_GROWTH * max(8, rank)), small, rank + 1, domain.narrowest)
        widest = min(largest + SPARE, *u.shape)
        block, wide = memory, RANDOM_COLUMNS
        for _ in range(ESTIMATE_PASSES):
            heartbeat()
            block = np.c_[block, random_block(len(block), wide)]
            left, values, right = RITZ[domain.spectrum](z, wider(block, domain.narrowest, widest), None)
            shrunk = domain.shrink(values)
            k = rank_of(shrunk)
            narrow = k > len(values) - SPARE
            block, wide = right[:, : k + SPARE], k // 2 + SPARE if narrow else 0
        return Prox(outer(left[:, :k] * shrunk[:k], right[:, :k], z), inf, right[:, spare_columns(values, k, SPARE)])


def gradient_step(u: Point, g: Point, gamma: float) -> Point:
    """Return z = u - gamma g. If z has very many entries, freed memory is first returned to the operating system.

    The blocks of a pass are allocated next, and may not fit into the pieces of memory that earlier computations have freed.
    """
    if isinstance(g, SparsePlusLowRank) and g.pattern.size > MANY_ENTRIES:
        return_free_memory()
    return u - gamma * g


def kept_vectors(domain: Any, z: Point, columns: int) -> np.ndarray:
    """Return a block that spans, up to rounding, the right singular vectors that the set keeps of z, and a few of the next ones.

    They are eigenvectors of the Gram matrix. ``columns`` is the expected number of them; if this is too small, it is doubled.
    """
    A = np.asarray(z)
    tall = len(A) >= A.shape[1]
    reduced = Tridiagonal(A.T @ A if tall else A @ A.T)
    while True:
        columns = min(max(columns, domain.narrowest + SPARE), reduced.n)
        squares, vectors = reduced.eigenpairs(reduced.n - columns, reduced.n - 1, "stemr")
        kept = rank_of(domain.shrink(np.sqrt(np.maximum(squares[::-1], 0.0))))
        if columns == reduced.n or kept + SPARE // 2 <= columns:
            break
        columns *= 2
    vectors = vectors[:, : -max(kept, domain.narrowest) - SPARE - 1 : -1]
    return vectors if tall else A.T @ vectors


class BlockResidual(NamedTuple):
    """The matrix z - u_t on a block of Ritz vectors: its diagonal ``rest`` and its coupling to the orthogonal complement.

    Entries of the diagonal above ``level`` are replaced by ``level``.
    """

    spectrum: str
    rest: np.ndarray
    coupling: np.ndarray
    level: float

    def weights(self, y: float) -> np.ndarray:
        """The weights 1/(y - rest). For singular values, they are the mean of 1/(y - rest) and 1/(y + rest).

        The reason is that a singular value of A gives two eigenvalues of [0 A; A' 0], with opposite signs.
        """
        return (1 / (y - self.rest) + 1 / (y + self.rest)) / 2 if self.spectrum == "singular" else 1 / (y - self.rest)

    def best_split(self, k: int, y: float) -> BlockResidual:
        """Return the part of the first k columns, which the set keeps, and of as many further columns as give the largest margin.

        The margin is the limit on the values outside of these columns, minus the first Ritz value outside.
        """
        if y <= self.level or len(self.rest) == k:
            return self.first_columns(k)
        squares = np.einsum("ij,ij->j", self.coupling, self.coupling)
        price = np.cumsum(np.append(0.0, squares * self.weights(y)))
        return self.first_columns(k + int(np.argmin(price[k:-1] + self.rest[k:])))

    def first_columns(self, k: int) -> BlockResidual:
        """Return the part of this object for the first k Ritz vectors."""
        return self._replace(rest=self.rest[:k], coupling=self.coupling[:, :k])

    def limit(self, y: float) -> float:
        """Return the largest limit: if all values outside the block are at most this limit, no value of z - u_t is above y."""
        if not len(self.rest):
            return y
        if y <= self.level:
            return -inf
        weighted = self.coupling * np.sqrt(self.weights(y))
        return y - float(np.linalg.eigvalsh(weighted.T @ weighted)[-1])

    def least_bound(self, limit: float) -> float:
        """Return the least y with limit(y) >= limit, with an error of at most 1 % of y - level."""
        low, high = (
            0.0,
            max(limit - self.level, 0.0) + float(np.linalg.norm(self.coupling)) + EPS * abs(self.level),
        )
        while 0 < high < inf and self.limit(self.level + high) < limit:
            low, high = high, 2 * high
        while high < inf and high - low > 0.01 * high > EPS * abs(self.level):
            middle = sqrt(low * high) if low else 1e-3 * high
            low, high = (middle, high) if self.limit(self.level + middle) < limit else (low, middle)
        return self.level + high
