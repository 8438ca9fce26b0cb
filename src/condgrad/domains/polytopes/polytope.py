"""Any polytope that is given by linear constraints."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache, partial
from pathlib import Path
from typing import Any, final

import numpy as np

from condgrad import checks
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.polytopes._brute_force import mixture, vertices_of
from condgrad.domains.polytopes._direction import scaled
from condgrad.domains.polytopes._linear_program import LinearProgram, Unbounded
from condgrad.domains.polytopes._sparse import kept_rows
from condgrad.runtime.extras import needed_for


@final
@dataclass(frozen=True, eq=False)
class Polytope:
    """{x : A x <= b, C x = d, lower <= x <= upper}, which must be bounded and not empty.

    The linear oracle is a linear program, solved by HiGHS (``pip install 'condgrad[lp]'``). The model is kept, and each call
    starts from the best one of the last vertices for its direction. Among several minimal vertices a fixed random cost chooses,
    and the vertex is computed from the constraints that are active at it, so that answers do not depend on the calls before: runs
    are reproducible, also resumed ones, copies and threads (one at a time uses the model). This is tested, and holds where the
    active constraints determine the vertex and no reduced cost lies within HiGHS's tolerance (1e-9) of a tie. Answers are minimal
    to HiGHS's tolerances, relative to the direction.

    Parameters
    ----------
    A : array_like or scipy sparse array of float, shape (m, n), default None
        Left sides of the inequalities.
    b : array_like of float, shape (m,), default None
        Right sides of the inequalities.
    C : array_like or scipy sparse array of float, shape (k, n), default None
        Left sides of the equations.
    d : array_like of float, shape (k,), default None
        Right sides of the equations.
    lower, upper : float or array_like of float, shape (n,), default -inf and inf
        Bounds of the entries of x.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> knapsack = cg.Polytope(A=[[2.0, 3.0, 4.0]], b=[5.0], lower=0.0, upper=1.0)
    >>> knapsack.lmo(np.array([-2.0, -4.0, -5.0]))
    array([0. , 1. , 0.5])

    References
    ----------
    Q. Huangfu, J. A. J. Hall, Parallelizing the dual revised simplex method, Mathematical Programming Computation 10 (2018).
    """

    A: Any = None
    b: Any = None
    C: Any = None
    d: Any = None
    lower: Any = -math.inf
    upper: Any = math.inf
    _program: Any = field(init=False, repr=False)
    _reach: Any = field(init=False, repr=False)

    def __post_init__(self) -> None:
        import scipy.sparse as sp

        A, b = _block(self.A, self.b, "A", "b")
        C, d = _block(self.C, self.d, "C", "d")
        lower, upper = checks.real_array(self.lower, "lower"), checks.real_array(self.upper, "upper")
        sizes = [M.shape[1] for M in (A, C) if M is not None] + [len(v) for v in (lower, upper) if v.ndim == 1]
        if not sizes or max(lower.ndim, upper.ndim) > 1:
            raise ValueError(
                "Polytope can't tell the number of variables: give A or C with a column for each, or lower and upper as vectors."
            )
        n = sizes[0]
        if n == 0:
            raise ValueError("Polytope has no variables: give a matrix with columns, or bounds with entries.")
        for name, vector in (("lower", lower), ("upper", upper)):
            if vector.ndim:
                checks.same_shape(vector.shape, (n,), f"The {name} of Polytope")
            if np.isnan(vector).any():
                raise checks.NonFinite(f"The {name} of Polytope holds NaN: give -inf or inf where there is no bound.")
        A, C = (sp.csr_array((0, n)) if M is None else M for M in (A, C))
        if A.shape[1] != C.shape[1]:
            raise ValueError(
                f"A of Polytope has {A.shape[1]} columns, and C has {C.shape[1]}: give one for each variable."
            )
        lower, upper = (checks.read_only(np.array(np.broadcast_to(v, n))) for v in (lower, upper))
        if np.any(crossed := (lower > upper) | (lower == math.inf) | (upper == -math.inf)):
            i = int(np.argmax(crossed))
            raise ValueError(
                f"Polytope is an empty set: lower {lower[i]} and upper {upper[i]} at index {i} leave no number; correct them."
            )
        checks.settle(self, A=A, b=b, C=C, d=d, lower=lower, upper=upper)
        below = np.concatenate([np.full(len(b), -math.inf), d])
        rows = sp.vstack([A, C]) if A.shape[0] + C.shape[0] else A
        program = LinearProgram(rows, below, np.concatenate([b, d]), lower, upper, "Polytope")
        checks.settle(self, _program=program, _reach=_reach(program, lower, upper))

    @classmethod
    def from_linprog(
        cls, A_ub: Any = None, b_ub: Any = None, A_eq: Any = None, b_eq: Any = None, bounds: Any = (0, None)
    ) -> Polytope:
        """The feasible set of ``scipy.optimize.linprog`` with the same arguments.

        Parameters
        ----------
        A_ub, b_ub : array_like, default None
            Inequalities A_ub x <= b_ub.
        A_eq, b_eq : array_like, default None
            Equations A_eq x = b_eq.
        bounds : pair, or sequence of pairs, default (0, None)
            (lower, upper) for all variables or for each one; None where there is no bound.

        Returns
        -------
        Polytope

        Examples
        --------
        >>> import numpy as np, condgrad as cg
        >>> cg.Polytope.from_linprog(A_ub=[[1.0, 1.0]], b_ub=[1.0]).lmo(np.array([-1.0, -2.0]))
        array([0., 1.])
        """
        pairs = np.array((0, None) if bounds is None else bounds, dtype=object)
        if pairs.ndim not in (1, 2) or pairs.shape[-1] != 2:
            raise ValueError(
                f"The bounds of Polytope.from_linprog must be a pair (lower, upper) or a list of pairs, but got {bounds!r}."
            )
        ends = pairs.reshape(-1, 2).tolist()
        below = np.array([-math.inf if low is None else low for low, _ in ends])
        above = np.array([math.inf if high is None else high for _, high in ends])
        shape = pairs.shape[:-1]
        return cls(A_ub, b_ub, A_eq, b_eq, below.reshape(shape), above.reshape(shape))

    @classmethod
    def from_cvxpy(cls, problem: Any) -> tuple[Polytope, dict[Any, Callable[[np.ndarray], np.ndarray]]]:
        """The feasible set of a CVXPY problem whose constraints are linear, or that CVXPY makes linear with more variables.

        Parameters
        ----------
        problem : cvxpy.Problem
            Its objective is not used, beside its variables: it need not be linear. Integer variables are refused.

        Returns
        -------
        polytope : Polytope
            Its variables are those of the problem, one after the other, and those that CVXPY adds.
        read : dict of functions by variables
            ``read[variable](x)`` is the value of a variable of the problem at a point x of the polytope.

        Raises
        ------
        ValueError
            If a variable must be whole or has a form that CVXPY stores in another shape, if a parameter has no value, or if a
            constraint is not linear.

        Examples
        --------
        ::

            x, y = cvxpy.Variable(3, nonneg=True), cvxpy.Variable((2, 2))
            model = cvxpy.Problem(cvxpy.Minimize(0), [cvxpy.sum(x) == 1, cvxpy.abs(y) <= x[0]])
            polytope, read = condgrad.Polytope.from_cvxpy(model)
            read[y](polytope.lmo(direction))  # an array of shape (2, 2)
        """
        if not hasattr(problem, "constraints"):
            raise TypeError(f"Polytope.from_cvxpy needs a cvxpy.Problem, but got {problem!r:.60}.")
        variables = problem.variables()
        if not variables:
            raise ValueError(
                "Polytope.from_cvxpy got a problem without variables: give one whose constraints have some."
            )
        for variable in variables:
            packed = sorted(name for name in PACKED if variable.attributes.get(name))
            if packed:
                raise ValueError(
                    f"Polytope.from_cvxpy got the variable {variable} with {' and '.join(packed)}, which CVXPY stores in another "
                    "shape: make it a plain variable and state this by constraints."
                )
        # any linear objective will do: with its own one the problem may be no linear program
        feasible = type(problem)(type(problem.objective)(sum(v.sum() for v in variables)), problem.constraints)
        for parameter in feasible.parameters():
            if parameter.value is None:
                raise ValueError(f"Polytope.from_cvxpy got the parameter {parameter} without a value: set its value.")
        try:
            found = feasible.get_problem_data("SCIPY")[0]
        except Exception as error:  # CVXPY's SolverError, whose class is not imported here
            if type(error).__module__.partition(".")[0] != "cvxpy":
                raise
            raise ValueError(
                "Polytope.from_cvxpy needs linear constraints, but CVXPY makes no linear program "
                f"of this problem ({' '.join(str(error).split()):.200})."
            ) from error
        if found["bool_vars_idx"] or found["int_vars_idx"]:
            raise ValueError(
                "Polytope.from_cvxpy got a problem with variables that must be whole: make them real, for its linear relaxation."
            )
        n = len(found["c"])
        below, above = (
            np.full(n, default) if found.get(name) is None else np.asarray(found[name], dtype=float)
            for name, default in (("lower_bounds", -math.inf), ("upper_bounds", math.inf))
        )
        polytope = cls(found.get("G"), found.get("h"), found.get("A"), found.get("b"), below, above)
        columns = found["param_prob"].var_id_to_col
        return polytope, {
            variable: partial(_part, columns[variable.id], variable.shape)
            for variable in variables
            if variable.id in columns
        }

    @classmethod
    def from_file(cls, path: str | Path, relax: bool = False) -> Polytope:
        """The feasible set of a linear program in a file, as modelling tools and solvers write it.

        Parameters
        ----------
        path : str or pathlib.Path
            A file in LP or MPS format, with the ending .lp or .mps. Its objective is not used.
        relax : bool, default False
            Whether integer variables may take all values between their bounds; else a file with such variables is refused.

        Returns
        -------
        Polytope
            Its variables are in the order of the columns of the file.
        """
        import scipy.sparse as sp

        with needed_for("LP and MPS files"):
            import highspy

        path = Path(path)
        if path.suffix not in (".lp", ".mps") or not path.is_file():
            raise ValueError(f"Can't read {path}: name an existing file that ends in .lp or .mps.")
        highs = highspy.Highs()
        highs.setOptionValue("output_flag", False)
        if highs.readModel(str(path)) == highspy.HighsStatus.kError:
            raise checks.BadData(f"HiGHS can't read {path}: check that it is in {path.suffix[1:].upper()} format.")
        model = highs.getLp()
        mixed = sum(kind != highspy.HighsVarType.kContinuous for kind in model.integrality_)
        if mixed and not relax:
            raise ValueError(
                f"{path} has {checks.counted(mixed, 'variable')} that must be whole: pass relax=True for its linear relaxation."
            )
        matrix = model.a_matrix_
        shape, layout = (model.num_row_, model.num_col_), (matrix.value_, matrix.index_, matrix.start_)
        by_columns = matrix.format_ == highspy.MatrixFormat.kColwise
        rows = sp.csr_array(sp.csc_array(layout, shape=shape)) if by_columns else sp.csr_array(layout, shape=shape)
        below, above = np.array(model.row_lower_), np.array(model.row_upper_)
        equal, under, over = below == above, (below < above) & (above < math.inf), (below < above) & (below > -math.inf)
        return cls(
            sp.vstack([rows[under], -rows[over]]) if np.any(under | over) else None,
            np.concatenate([above[under], -below[over]]) if np.any(under | over) else None,
            rows[equal] if equal.any() else None,
            above[equal] if equal.any() else None,
            np.array(model.col_lower_),
            np.array(model.col_upper_),
        )

    @property
    def shape(self) -> tuple[int, ...]:
        return self.lower.shape

    @property
    def diameter(self) -> float:
        """An upper bound, by the bounds of the variables, and where there are none by the largest sum of these variables."""
        return self._reach[0]

    @property
    def max_norm(self) -> float:
        """An upper bound, by the same."""
        return self._reach[1]

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """A vertex that minimises <direction, x>, by HiGHS."""
        return self._program.minimiser(scaled(direction, self.shape, "Polytope"))

    def start(self) -> np.ndarray:
        """The middle between the vertices that minimise and maximise a fixed random direction."""
        return self._program.middle

    def contains(self, x: np.ndarray, tolerance: float = 1e-9) -> bool:
        """Whether each constraint holds up to a distance of ``tolerance`` times the diameter, and rounding."""
        x = checks.point(x, self.shape, "Polytope")
        if not np.isfinite(x).all():
            return False
        room, eps = tolerance * (self.diameter or self.max_norm), 8 * np.finfo(float).eps
        slack = room + eps * np.abs(x)
        if np.any(x < self.lower - slack) or np.any(x > self.upper + slack):
            return False
        for M, side, equal in ((self.A, self.b, False), (self.C, self.d, True)):
            if M.shape[0]:
                off = M @ x - side
                allowed = room * np.sqrt(np.asarray((M * M).sum(axis=1)).ravel())
                allowed = allowed + eps * (abs(M) @ np.abs(x) + np.abs(side))
                if np.any((np.abs(off) if equal else off) > allowed):
                    return False
        return True


PACKED = ("symmetric", "diag", "PSD", "NSD", "hermitian", "complex", "imag", "sparsity")
"""Attributes of a variable of CVXPY whose entries are not its columns."""


def _part(begin: int, shape: tuple[int, ...], x: np.ndarray) -> np.ndarray:
    """The value of a variable of CVXPY, which stands column after column from ``begin`` on in a point."""
    return np.asarray(x)[begin : begin + math.prod(shape)].reshape(shape, order="F")


def _block(matrix: Any, side: Any, left: str, right: str) -> tuple[Any, np.ndarray]:
    """A sparse matrix and its right sides, checked; None and no numbers where neither was given."""
    import scipy.sparse as sp

    if (matrix is None) != (side is None):
        raise ValueError(f"Polytope got one of {left} and {right}: give both or neither.")
    if matrix is None:
        return None, np.zeros(0)
    if sp.issparse(matrix):
        rows = kept_rows(matrix, f"{left} of Polytope")
    else:
        rows = checks.finite_array(matrix, f"{left} of Polytope")
        if rows.ndim != 2:
            raise ValueError(
                f"{left} of Polytope must be a matrix, but got shape {rows.shape}: give a row for each constraint."
            )
        rows = kept_rows(sp.csr_array(rows), f"{left} of Polytope")
    sides = checks.finite_array(side, f"{right} of Polytope", "leave out constraints without a bound")
    checks.same_shape(sides.shape, (rows.shape[0],), f"{right} of Polytope")
    return rows, sides


def _reach(program: LinearProgram, lower: np.ndarray, upper: np.ndarray) -> tuple[float, float]:
    """Upper bounds of the diameter and of the largest norm; refuses an unbounded set."""
    low, high = np.isfinite(lower), np.isfinite(upper)
    both = low & high
    squares = [float(np.sum((upper[both] - lower[both]) ** 2))]
    norms = [float(np.linalg.norm(np.maximum(np.abs(lower[both]), np.abs(upper[both]))))]
    try:
        for group, sign, ends in ((low & ~high, -1.0, lower), (high & ~low, 1.0, upper)):
            if group.any():  # the largest sum of their distances to the bound that they have
                cost = np.where(group, sign, 0.0)
                total = max(0.0, -program.minimum(cost) + sign * float(ends[group].sum()))
                squares.append((2 if group.sum() > 1 else 1) * total**2)
                norms.append(float(np.linalg.norm(ends[group])) + total)
        for i in np.flatnonzero(~low & ~high):
            cost = np.zeros(len(lower))
            cost[i] = 1.0
            least, most = program.minimum(cost), -program.minimum(-cost)
            squares.append((most - least) ** 2)
            norms.append(max(abs(least), abs(most)))
    except Unbounded:
        first = int(np.argmin(both))
        raise ValueError(
            "Polytope is unbounded: some entries can grow without end (the first one without two bounds is at index "
            f"{first}); give lower= and upper=, or more constraints."
        ) from None
    slightly = 1 + 1e-9  # the accuracy of HiGHS
    return slightly * math.sqrt(sum(squares)), slightly * math.hypot(*norms)


def _polytopes() -> Examples:
    signs = np.array(np.meshgrid(*[[-1.0, 1.0]] * 3)).reshape(3, -1).T
    return {
        "": Polytope([[1.0, 2.0, 1.0]], [4.0], [[1.0, 0.0, -1.0]], [0.5], lower=0.0, upper=3.0),
        "of inequalities": Polytope(signs, np.full(8, 2.0)),
        "without upper bounds": Polytope([[1.0, 1.0, 3.0], [0.0, 2.0, 1.0]], [6.0, 4.0], lower=[0.0, -1.0, 0.5]),
        "far away": Polytope([[1.0, 1.0]], [2e6 + 1.0], lower=1e6, upper=1e6 + 3.0),
        "small": Polytope([[1e3, 2e3]], [3e-5], lower=0.0, upper=2e-8),
        "a point": Polytope(None, None, [[1.0, 1.0], [1.0, -1.0]], [3.0, 1.0], lower=0.0, upper=5.0),
    }


@lru_cache(maxsize=4)
def _polytope_vertices(domain: Polytope) -> np.ndarray:
    return vertices_of(domain.A.toarray(), domain.b, domain.C.toarray(), domain.d, domain.lower, domain.upper)


def _in_polytope(domain: Polytope, rng: np.random.Generator) -> np.ndarray:
    return mixture(_polytope_vertices(domain), rng)


def _polytope_minimum(domain: Polytope, g: np.ndarray) -> float:
    return float((_polytope_vertices(domain) @ g).min())


ENTRY = DomainEntry(
    "polytope", Polytope, "{x : A x <= b, C x = d, lower <= x <= upper}", "a vertex, by a linear program (HiGHS)",
    _polytopes, _in_polytope, _polytope_minimum, arrays=("A", "b", "C", "d", "lower", "upper"),
    bounds=("diameter", "max_norm"),
)  # fmt: skip
