"""The transportation polytope."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture, vertices_of
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._linear_program import LinearProgram, power_of_2
from condgrad.points import SparseArray
from condgrad.runtime.extras import needed_for

SOLVERS = ("auto", "network-simplex", "lp")
PRICES = (0.5, 1e6)
"""Largest absolute costs that are not scaled."""
USUAL = (2.0**-6, 2.0**6)
"""Sums of a plan that the network simplex method gets as they are: its tolerances are absolute."""
PIVOTS = 10**9
"""Steps that the network simplex method may make."""


@final
@dataclass(frozen=True, eq=False)
class TransportPolytope:
    """{X : X >= 0, the rows of X sum to ``row_sums`` and its columns to ``column_sums``}, the couplings of two distributions.

    The linear oracle is an optimal transport problem, solved exactly by the network simplex method of POT
    (``pip install 'condgrad[transport]'``), or where that is not installed as a linear program by HiGHS
    (``pip install 'condgrad[lp]'``). A vertex has at most m + n - 1 entries that are not 0.

    Parameters
    ----------
    row_sums : array_like of float, shape (m,)
        Not negative.
    column_sums : array_like of float, shape (n,)
        Not negative, with the same sum.
    solver : {"auto", "network-simplex", "lp"}, default "auto"
        POT, HiGHS, or POT where it is installed. Where several vertices are minimal, the two may answer with different ones.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> plans = cg.TransportPolytope([3.0, 1.0], [2.0, 2.0])
    >>> plans.lmo(np.array([[0.0, 1.0], [2.0, 5.0]]))
    array([[1., 2.],
           [1., 0.]])

    References
    ----------
    N. Bonneel, M. van de Panne, S. Paris, W. Heidrich, Displacement interpolation using Lagrangian mass transport, ACM
    Transactions on Graphics 30 (2011).
    """

    row_sums: Any
    column_sums: Any
    solver: str = "auto"

    def __post_init__(self) -> None:
        sums = {name: checks.finite_array(getattr(self, name), f"The {name} of TransportPolytope") for name in _SUMS}
        for name, values in sums.items():
            if values.ndim != 1 or not values.size or np.any(values < 0):
                raise ValueError(f"The {name} of TransportPolytope must be a vector of numbers of at least 0.")
        rows, columns = (float(values.sum()) for values in sums.values())
        if rows == 0 or abs(rows - columns) > 1e-9 * rows:
            raise ValueError(
                f"TransportPolytope is an empty set: row_sums sum to {rows:g} and column_sums to {columns:g}; give equal, "
                "positive sums."
            )
        checks.choice(self.solver, SOLVERS, "solver of TransportPolytope")
        checks.settle(self, **sums)
        if self.solver == "network-simplex":
            with needed_for("Network simplex solvers"):
                _network_simplex()
        elif self.solver == "lp":
            self._program  # noqa: B018  (refuses at once where HiGHS is not installed)

    @property
    def shape(self) -> tuple[int, ...]:
        return (len(self.row_sums), len(self.column_sums))

    @property
    def diameter(self) -> float:
        """An upper bound: two points of the largest norm that share no entry; 0 for one row or column."""
        return math.sqrt(2) * self.max_norm if min(self.shape) > 1 else 0.0

    @property
    def max_norm(self) -> float:
        """An upper bound: an entry is at most the smaller one of its two sums, and a row of it has at most the sum of the row."""
        if min(self.shape) == 1:
            return float(np.linalg.norm(self.row_sums if self.shape[1] == 1 else self.column_sums))
        rows, columns = self.row_sums, self.column_sums
        by_rows = float(rows @ np.minimum(rows, columns.max()))
        return math.sqrt(min(by_rows, float(columns @ np.minimum(columns, rows.max()))))

    @cached_property
    def _program(self) -> LinearProgram:
        import scipy.sparse as sp

        m, n = self.shape
        rows = sp.vstack([sp.kron(sp.eye_array(m), np.ones((1, n))), sp.kron(np.ones((1, m)), sp.eye_array(n))])
        # the same total to the last digit, whatever the rounding of the given sums is
        sides = np.concatenate([self.row_sums, self.column_sums * (self.row_sums.sum() / self.column_sums.sum())])
        most = np.full(m * n, math.inf)
        return LinearProgram(sp.csr_array(rows), sides, sides, np.zeros(m * n), most, "TransportPolytope")

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """A transport plan of minimum cost <direction, X>."""
        emd = None if self.solver == "lp" else _network_simplex(self.solver == "auto")
        if emd is None:
            g = scaled(direction, self.shape, "TransportPolytope")
            return np.maximum(self._program.minimiser(g.ravel()), 0.0).reshape(self.shape)
        return self._by_network_simplex(emd, _priced(direction, self.shape))

    def _by_network_simplex(self, emd: Any, g: np.ndarray) -> np.ndarray:
        total = float(self.row_sums.sum())
        size = 1.0 if USUAL[0] < total < USUAL[1] else float(power_of_2(self.row_sums.sum()))
        i, j = np.flatnonzero(self.row_sums), np.flatnonzero(self.column_sums)
        a, b = self.row_sums[i] / size, self.column_sums[j] / size
        whole = (len(i), len(j)) == self.shape
        costs = np.ascontiguousarray(g if whole else g[np.ix_(i, j)])
        # the sums were compared when the set was made, and the dual solution is not used
        plan, log = emd(a, b, costs, numItermax=PIVOTS, log=True, center_dual=False, check_marginals=False)
        if log["warning"] is not None:
            raise checks.BadOracle(f"The network simplex method failed: {log['warning']}; use solver='lp'.")
        if whole:
            np.maximum(plan, 0.0, out=plan)
            if size != 1.0:
                plan *= size
            return plan
        vertex = np.zeros(self.shape)
        vertex[np.ix_(i, j)] = size * np.maximum(plan, 0.0)
        return vertex

    def atom(self, direction: np.ndarray) -> SparseArray:
        """The answer of ``lmo`` as its entries that are not 0."""
        flat = self.lmo(direction).ravel()
        used = np.flatnonzero(flat)
        return SparseArray(used, flat[used], self.shape)

    def start(self) -> np.ndarray:
        """The product of the two distributions."""
        return np.outer(self.row_sums, self.column_sums / self.column_sums.sum())

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether no entry is negative and the sums are as required, up to ``tolerance`` times the diameter, and rounding."""
        x = checks.point(x, self.shape, "TransportPolytope")
        slack = tolerance * (self.diameter or self.max_norm)
        total = 1e-9 if tolerance > 1e-9 else max(tolerance, 1e-14)  # how well the two given sums agree
        off = [np.abs(x.sum(axis=1) - self.row_sums), np.abs(x.sum(axis=0) - self.column_sums)]
        near = all(
            np.all(gap <= slack * math.sqrt(size) + total * self.row_sums.sum())
            for gap, size in zip(off, self.shape[::-1], strict=True)
        )
        return bool(near and np.all(x >= -slack))


def _priced(direction: Any, shape: tuple[int, ...]) -> np.ndarray:
    """The direction as it is, where the network simplex method is exact for it, else scaled, which takes a copy.

    The price of no plan for a unit is (m + n) (h + 1), where h is the largest cost: above each cost if h is at least 0. The 1
    must not be large beside the costs.
    """
    given = checks.point(direction, shape, "TransportPolytope")
    low, high = float(given.min()), float(given.max())
    plain = high >= 0 and PRICES[0] <= max(-low, high) <= PRICES[1]
    return given if plain else scaled(given, shape, "TransportPolytope")


_SUMS = ("row_sums", "column_sums")


def _network_simplex(optional: bool = False) -> Any:
    """POT's solver; None where it is optional and not installed."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")  # its docstrings have escapes that Python warns of
            import ot
    except ModuleNotFoundError as error:
        if optional and error.name == "ot":
            return None
        raise
    return ot.emd


def _transport_polytopes() -> Examples:
    return {
        "": TransportPolytope([2.0, 3.0], [1.0, 2.0, 2.0]),
        "of fractions": TransportPolytope([0.3, 0.5, 0.2], [0.6, 0.0, 0.4]),
        "by HiGHS": TransportPolytope([2e3, 3e3], [1e3, 2e3, 2e3], solver="lp"),
        "of one row": TransportPolytope([3.0], [1.0, 2.0]),
    }


@lru_cache(maxsize=4)
def _extreme_plans(domain: TransportPolytope) -> np.ndarray:
    m, n = domain.shape
    rows = np.concatenate([np.kron(np.eye(m), np.ones((1, n))), np.kron(np.ones((1, m)), np.eye(n))])
    sides = np.concatenate([domain.row_sums, domain.column_sums])
    unbounded = np.full(m * n, np.inf)
    return vertices_of(np.zeros((0, m * n)), [], rows, sides, np.zeros(m * n), unbounded).reshape(-1, m, n)


def _in_transport_polytope(domain: TransportPolytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_extreme_plans(domain), rng)


def _transport_minimum(domain: TransportPolytope, g: np.ndarray) -> float:
    return min(float(np.vdot(g, plan)) for plan in _extreme_plans(domain))


ENTRY = DomainEntry(
    "transport-polytope", TransportPolytope, "{X >= 0 : rows sum to a, columns to b}", "an optimal transport plan (POT or HiGHS)",
    _transport_polytopes, _in_transport_polytope, _transport_minimum, arrays=_SUMS, bounds=("diameter", "max_norm"),
)  # fmt: skip
