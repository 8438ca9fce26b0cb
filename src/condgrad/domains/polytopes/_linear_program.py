"""Linear programs over one polytope, for one cost after another: HiGHS, warm-started; answers depend on the cost alone."""

from __future__ import annotations

import threading
from functools import cached_property
from typing import Any

import numpy as np

from condgrad import checks
from condgrad.runtime.extras import needed_for

COST = 1024.0
"""Largest cost that HiGHS sees. Its tolerance for reduced costs is FEASIBLE, so answers are minimal to FEASIBLE / COST, relative
to the largest entry of the direction."""
FEASIBLE = 1e-10
"""Tolerance of HiGHS, the smallest one that it accepts."""
TIED = 1e-9
"""A variable with a reduced cost below this share of the largest cost may move without a change of the value."""
LEAN = 2.0**-20
"""Share of the fixed random cost in the cost of the first run after a tie. If the vertex is minimal for the direction alone too,
it is the one that the random cost chooses among the minimal ones: on these the direction is constant."""
STARTS = 16
"""Number of vertices, the last ones, of which the best one for a cost is where HiGHS begins."""
RUNNING = ("_lock", "_highs", "_after_tie", "_starts")
"""Fields that a copy does not take over: answers do not depend on them."""
AT_BOUND = 1e-9
"""Distance, relative to the size of the polytope, below which a variable or a row is at its bound."""
STEPS = 20
"""Steps of the simplex method for each row and column, after which a cycle is suspected."""
ROBUST = (
    ("simplex_strategy", 4, 1),
    ("simplex_scale_strategy", 0, 2),
    ("primal_simplex_bound_perturbation_multiplier", 0.0, 1.0),
)
"""Options of HiGHS, their usual values, and those of a second run from scratch if the first one found no minimum."""
DENSE = 128
"""Systems with at most as many unknowns are solved by dense factorisations."""


NEARLY_SINGULAR = 1e-12
"""Reciprocal condition number of a system below which it has no unique solution up to rounding."""


class EmptySet(ValueError):
    """The constraints contradict each other."""


class Unbounded(ValueError):
    """The minimum is not attained."""


class LinearProgram:
    """min <cost, x> over {x : row_lower <= M x <= row_upper, lower <= x <= upper}, for one cost after another.

    HiGHS keeps the model, and each call starts from the best one of the last vertices for its cost. The answer is made
    independent of that: where several points are minimal, a fixed random cost chooses one vertex among them, by another run, and
    the vertex is computed from the constraints that are active there, not from the basis. So answers are reproducible, in a
    resumed run, a copy and another thread too. A lock lets one thread in at a time.

    Parameters
    ----------
    rows : scipy sparse array of float, shape (m, n)
        M.
    row_lower, row_upper : np.ndarray of float, shape (m,)
        Bounds of the rows, -inf or inf where there are none.
    lower, upper : np.ndarray of float, shape (n,)
        Bounds of the variables.
    owner : str
        Name of the set, for messages.
    integral : bool, default False
        Whether all vertices are known to be integral: they are then rounded.

    Raises
    ------
    EmptySet
        If no point satisfies the constraints.
    """

    def __init__(
        self,
        rows: Any,
        row_lower: np.ndarray,
        row_upper: np.ndarray,
        lower: np.ndarray,
        upper: np.ndarray,
        owner: str,
        integral: bool = False,
    ):
        import scipy.sparse as sp

        self.owner, self.integral = owner, integral
        # powers of 2: the scaled model has the bits of the given one
        tops = abs(rows).max(axis=1).toarray().ravel() if rows.shape[0] else np.zeros(0)
        used = tops > 0
        if np.any((row_lower > 0) & ~used) or np.any((row_upper < 0) & ~used):  # 0 <= -1
            raise EmptySet(f"{owner} is an empty set: no point satisfies its constraints; relax them.")
        if not used.all():  # HiGHS crashes if all rows are 0
            rows, row_lower, row_upper, tops = sp.csr_array(rows)[used], row_lower[used], row_upper[used], tops[used]
        row_scale = power_of_2(tops)
        sizes = [np.abs(v[np.isfinite(v)]) for v in (row_lower / row_scale, row_upper / row_scale, lower, upper)]
        top = max((float(size.max()) for size in sizes if size.size), default=0.0)
        self.size = float(power_of_2(np.array(top))) if top > 0 else 1.0
        self.rows = sp.csc_array(sp.diags_array(1 / row_scale) @ rows) if rows.shape[0] else sp.csc_array(rows)
        self.rows.sort_indices()
        self.row_lower, self.row_upper = row_lower / row_scale / self.size, row_upper / row_scale / self.size
        self.lower, self.upper = lower / self.size, upper / self.size
        self._forget()
        with self._lock:
            self._run(np.zeros(len(lower)))

    def _forget(self) -> None:
        self._lock = threading.Lock()
        self._highs: Any = None
        self._after_tie = False
        self._starts: list[tuple[Any, np.ndarray]] = []

    def __getstate__(self) -> dict[str, Any]:
        return {key: value for key, value in vars(self).items() if key not in RUNNING}

    def __setstate__(self, state: dict[str, Any]) -> None:
        vars(self).update(state)
        self._forget()

    def minimum(self, cost: np.ndarray) -> float:
        """The minimum of <cost, x>, to the accuracy of HiGHS.

        Raises
        ------
        Unbounded
            If there is none.
        """
        with self._lock:
            columns, *_ = self._run(cost)
        return self.size * float(cost @ columns)

    def minimiser(self, cost: np.ndarray) -> np.ndarray:
        """The vertex that minimises <cost, x>; the entries of the cost are at most 1 in size."""
        with self._lock:
            self._choose_start(cost)
            if (
                self._after_tie
            ):  # a start that is minimal for a cost near this one: the one to choose if this one is tied
                self._run(COST * (cost + LEAN * self._choice))
            columns, rows, column_duals, row_duals = self._run(COST * cost)
            settled = self._after_tie and self._highs.getInfo().simplex_iteration_count == 0
            self._starts = [*self._starts[1 - STARTS :], (self._highs.getBasis(), columns)]
            self._after_tie = self._tied(column_duals, row_duals)
            if self._after_tie and not settled:
                columns, rows = self._break_tie(columns, rows, column_duals, row_duals)
        return self._exact(columns, rows)

    def _choose_start(self, cost: np.ndarray) -> None:
        """Begin at the best of the last vertices for this cost; HiGHS itself begins at the last one."""
        if self._starts:
            values = np.array([columns for _, columns in self._starts]) @ cost
            best = int(np.argmin(values[::-1]))  # of equal ones the last
            if best:
                self._solver().setBasis(self._starts[-1 - best][0])

    @cached_property
    def _choice(self) -> np.ndarray:
        """The fixed random cost that chooses one of several minimal vertices."""
        n = len(self.lower)
        return np.random.default_rng((0, n)).standard_normal(n)

    @cached_property
    def middle(self) -> np.ndarray:
        """The middle between the vertices that minimise and maximise a fixed random direction."""
        n = len(self.lower)
        direction = np.random.default_rng((1, n)).uniform(-1, 1, n)
        return checks.read_only(self.minimiser(direction) / 2 + self.minimiser(-direction) / 2)

    # ---------------------------------------------------------------------------------------------------------- HiGHS

    def _solver(self) -> Any:
        if self._highs is not None:
            return self._highs
        with needed_for(f"Sets of type {self.owner}"):
            import highspy

        m, n = self.rows.shape
        model = highspy.HighsLp()
        model.num_col_, model.num_row_ = n, m
        model.col_cost_, model.col_lower_, model.col_upper_ = np.zeros(n), self.lower, self.upper
        model.row_lower_, model.row_upper_ = self.row_lower, self.row_upper
        model.a_matrix_.format_ = highspy.MatrixFormat.kColwise
        model.a_matrix_.start_, model.a_matrix_.index_ = self.rows.indptr, self.rows.indices
        model.a_matrix_.value_ = self.rows.data
        highs = highspy.Highs()
        options: dict[str, Any] = {
            "output_flag": False, "threads": 1, "parallel": "off", "presolve": "off", "solver": "simplex",
            "simplex_strategy": 4,  # primal: the last basis stays feasible under another cost
            "primal_feasibility_tolerance": FEASIBLE, "dual_feasibility_tolerance": FEASIBLE,
            # the rows are scaled already. Perturbed bounds take more steps, and cycles without them end at the limit of steps
            "simplex_scale_strategy": 0, "primal_simplex_bound_perturbation_multiplier": 0.0,
            "simplex_iteration_limit": STEPS * (m + n),
        }  # fmt: skip
        for name, value in options.items():
            highs.setOptionValue(name, value)
        if highs.passModel(model) == highspy.HighsStatus.kError:
            raise ValueError(f"HiGHS refuses the constraints of {self.owner}: check that no entry exceeds 1e15.")
        self._highs = highs
        return highs

    def _run(self, cost: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray, np.ndarray]:
        """Values of the variables and rows, and their reduced costs, at a minimiser."""
        highs = self._solver()
        import highspy

        highs.changeColsCost(len(cost), np.arange(len(cost), dtype=np.int32), cost)
        if highs.run() == highspy.HighsStatus.kError:  # another user of HiGHS in this process has chosen its threads
            highs.setOptionValue("threads", 0)
            highs.run()
        known = highspy.HighsModelStatus
        status = highs.getModelStatus()
        if status not in (known.kOptimal, known.kInfeasible, known.kUnbounded):
            highs.clearSolver()
            for name, _, robust in ROBUST:
                highs.setOptionValue(name, robust)
            highs.run()
            status = highs.getModelStatus()
            for name, usual, _ in ROBUST:
                highs.setOptionValue(name, usual)
        if status == known.kInfeasible:
            raise EmptySet(f"{self.owner} is an empty set: no point satisfies its constraints; relax them.")
        if status in (known.kUnbounded, known.kUnboundedOrInfeasible):
            raise Unbounded(f"{self.owner} is unbounded: add constraints or bounds.")
        if status != known.kOptimal:
            raise checks.BadOracle(
                f"HiGHS ended with '{highs.modelStatusToString(status)}' on the constraints of {self.owner}: rescale them."
            )
        found = highs.getSolution()
        parts = (found.col_value, found.row_value, found.col_dual, found.row_dual)
        columns, rows, column_duals, row_duals = (np.array(part) for part in parts)
        return columns, rows, column_duals, row_duals

    def _tied(self, column_duals: np.ndarray, row_duals: np.ndarray) -> bool:
        """Whether a variable or a row that is not in the basis can leave its bound without a change of the value."""
        basic = np.asarray(self._highs.getBasicVariables()[1])
        for duals, lower, upper, inside in (
            (column_duals, self.lower, self.upper, basic[basic >= 0]),
            (row_duals, self.row_lower, self.row_upper, -1 - basic[basic < 0]),
        ):
            free = (np.abs(duals) <= TIED * COST) & (lower < upper)
            free[inside] = False
            if free.any():
                return True
        return False

    def _break_tie(
        self, columns: np.ndarray, rows: np.ndarray, column_duals: np.ndarray, row_duals: np.ndarray
    ) -> tuple[np.ndarray, np.ndarray]:
        """The minimiser of a fixed random cost among all minimisers: those that agree where the reduced cost is not 0."""
        highs = self._solver()
        basis = highs.getBasis()
        changes = []
        for values, duals, lower, upper, change in (
            (columns, column_duals, self.lower, self.upper, highs.changeColsBounds),
            (rows, row_duals, self.row_lower, self.row_upper, highs.changeRowsBounds),
        ):
            held = np.flatnonzero((np.abs(duals) > TIED * COST) & (lower < upper)).astype(np.int32)
            if held.size:
                value = nearest_bound(values[held], lower[held], upper[held])
                change(held.size, held, value, value)
                changes.append((change, held, lower[held], upper[held]))
        try:
            columns, rows, *_ = self._run(self._choice)
        finally:
            for change, held, below, above in changes:
                change(held.size, held, below, above)
            highs.setBasis(basis)
        return columns, rows

    # ----------------------------------------------------------------------------------------------- the same bits

    def _exact(self, columns: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The vertex, computed from the constraints that are active at it, so that it does not depend on the basis."""
        bounds = nearest_bound(columns, self.lower, self.upper)
        moving = np.flatnonzero(~(np.abs(columns - bounds) <= AT_BOUND))
        x = np.array(bounds)
        if moving.size:
            x[moving] = columns[moving]
            if not (self.integral and whole(self.size * x[moving])):
                x[moving] = self._solve(x, moving, rows)
        x = self.size * x
        if self.integral and whole(x):
            return np.rint(x)
        near = np.rint(x)  # a whole number with the rounding of the last step is meant to be one
        return np.where((np.abs(x - near) <= 1e-14 * np.abs(near)) & (near != 0), near, x)

    def _solve(self, x: np.ndarray, moving: np.ndarray, rows: np.ndarray) -> np.ndarray:
        """The entries of x that are not at a bound, by the active rows."""
        sides = nearest_bound(rows, self.row_lower, self.row_upper)
        active = np.flatnonzero(np.abs(rows - sides) <= AT_BOUND)
        fixed = np.array(x)
        fixed[moving] = 0.0
        right = (sides - self.rows @ fixed)[active]
        found = solve_full_rank(*self._entries(active, moving), len(active), len(moving), right)
        if found is None or not np.abs(found - x[moving]).max() <= 1e-6:  # not a vertex to the accuracy of HiGHS
            return x[moving]
        return np.clip(found, self.lower[moving], self.upper[moving])

    def _entries(self, rows: np.ndarray, columns: np.ndarray) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Row numbers, column numbers and values of the entries in these rows and columns, counted within them."""
        starts, ends = self.rows.indptr[columns], self.rows.indptr[columns + 1]
        counts = ends - starts
        among = np.repeat(ends - np.cumsum(counts), counts) + np.arange(counts.sum())
        place = np.full(self.rows.shape[0], -1)
        place[rows] = np.arange(len(rows))
        i, j = place[self.rows.indices[among]], np.repeat(np.arange(len(columns)), counts)
        kept = i >= 0
        return i[kept], j[kept], self.rows.data[among][kept]


def power_of_2(values: np.ndarray) -> np.ndarray:
    """The smallest powers of 2 above the values."""
    return np.ldexp(1.0, np.frexp(values)[1])


def nearest_bound(values: np.ndarray, lower: np.ndarray, upper: np.ndarray) -> np.ndarray:
    """The nearer one of two bounds; infinite where both are."""
    return np.where(np.abs(values - lower) <= np.abs(upper - values), lower, upper)


def whole(x: np.ndarray) -> bool:
    """Whether all entries are integers, up to the accuracy of HiGHS."""
    return bool(np.all(np.abs(x - np.rint(x)) <= 1e-6))


def solve_square(matrix: np.ndarray, right: np.ndarray) -> np.ndarray | None:
    """The solution of a system with a square matrix; None if it is singular, or nearly so."""
    from scipy.linalg import lapack

    size = float(np.abs(matrix).sum(axis=0).max())
    factors, pivots, _ = lapack.dgetrf(matrix)
    share, _ = lapack.dgecon(factors, size)
    return lapack.dgetrs(factors, pivots, right)[0] if share > NEARLY_SINGULAR else None


def solve_full_rank(
    i: np.ndarray, j: np.ndarray, values: np.ndarray, m: int, n: int, right: np.ndarray
) -> np.ndarray | None:
    """The solution of a consistent system of m equations, given by its entries, in n unknowns; None if it is not unique."""
    if m < n:
        return None
    if n <= DENSE and m <= 4 * DENSE:
        matrix = np.zeros((m, n))
        matrix[i, j] = values
        if m == n:
            return solve_square(matrix, right)
        q, r = np.linalg.qr(matrix)
        diagonal = np.abs(np.diag(r))
        return np.linalg.solve(r, q.T @ right) if diagonal.min() > NEARLY_SINGULAR * diagonal.max() else None
    import scipy.sparse as sp
    from scipy.sparse.linalg import splu

    size = n if m == n else m + n
    if m > n:  # least squares, as one square system in the residuals and the unknowns
        diagonal, right = np.arange(m), np.concatenate([right, np.zeros(n)])
        i, j = np.concatenate([diagonal, i, m + j]), np.concatenate([diagonal, m + j, i])
        values = np.concatenate([np.ones(m), values, values])
    system = sp.csc_matrix((values, (i, j)), shape=(size, size))
    try:
        factors = splu(system)
    except RuntimeError:  # singular
        return None
    found = factors.solve(right)
    found = found + factors.solve(right - system @ found)
    return found[-n:]
