"""The polytopes beyond the contract: other libraries as judges, and answers that don't depend on earlier calls."""

from __future__ import annotations

import copy
import pickle
import shutil
import subprocess
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import networkx as nx
import numpy as np
import pytest
import scipy.sparse as sp
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.optimize import linear_sum_assignment, linprog
from tests import resuming
from tests.resuming import Walk

import condgrad as cg
from condgrad.checks import BadData, BadOracle, NonFinite
from condgrad.domains import polytopes
from condgrad.domains.polytopes._graph import incidence
from condgrad.protocols import has

few = settings(max_examples=15, deadline=None, derandomize=True, database=None)
seeds = st.integers(0, 2**32 - 1)
SETS = {f"{e.name} {label}".strip(): domain for e in polytopes.ENTRIES for label, domain in e.examples().items()}
every_set = pytest.mark.parametrize("domain", SETS.values(), ids=SETS)


def direction(seed: int, shape: tuple[int, ...]) -> np.ndarray:
    """Normal, or with many ties."""
    rng = np.random.default_rng(seed)
    return rng.standard_normal(shape) if seed % 2 else rng.integers(-2, 3, shape).astype(float)


# ------------------------------------------------------------------------------------------------------- all of them


@pytest.mark.parametrize("domain", [d for d in SETS.values() if has(d, "atom")])
def test_atoms_are_the_answers_with_few_entries(domain: Any) -> None:
    for seed in range(6):
        g = direction(seed, domain.shape)
        atom = domain.atom(g)
        assert isinstance(atom, cg.SparseArray) and np.array_equal(atom.to_dense(), domain.lmo(g))
        assert len(atom.indices) == np.count_nonzero(domain.lmo(g))
    assert np.array_equal(domain.atom(np.zeros(domain.shape)).to_dense(), domain.lmo(np.zeros(domain.shape)))


@pytest.mark.parametrize("domain", [d for d in SETS.values() if not isinstance(d, cg.Box)])
@pytest.mark.parametrize("bad", [np.nan, np.inf])
def test_directions_that_are_not_finite_are_refused(domain: Any, bad: float) -> None:
    g = np.ones(domain.shape)
    g.flat[0] = bad
    with pytest.raises(NonFinite, match=rf"^The direction given to {type(domain).__name__} holds NaN or Inf \(1 of"):
        domain.lmo(g)


@every_set
def test_answers_are_the_same_in_any_order_and_in_copies(domain: Any) -> None:
    directions = [direction(seed, domain.shape) for seed in range(12)]
    answers = [domain.lmo(g).tobytes() for g in directions]
    assert [domain.lmo(g).tobytes() for g in reversed(directions)] == answers[::-1]
    for other in (pickle.loads(pickle.dumps(domain)), copy.deepcopy(domain)):
        assert [other.lmo(g).tobytes() for g in reversed(directions)] == answers[::-1]


# ------------------------------------------------------------------------------------------------- any polytope


def random_polytope(seed: int, m: int = 6, n: int = 9) -> dict[str, Any]:
    """Arguments of linprog: inequalities and an equation with a point inside, some variables without an upper bound."""
    rng = np.random.default_rng(seed)
    A, C, x = rng.integers(-2, 4, (m, n)) * 1.0, rng.integers(0, 3, (1, n)) + 1.0, rng.random(n)
    bounds = [(0.0, None if rng.random() < 0.5 else 1.0) for _ in range(n)]  # C > 0 bounds all of them
    return {"A_ub": A, "b_ub": A @ x + 0.1, "A_eq": C, "b_eq": C @ x, "bounds": bounds}


@few
@given(seeds)
def test_polytopes_agree_with_linprog(seed: int) -> None:
    model = random_polytope(seed)
    domain = cg.Polytope.from_linprog(**model)
    for k in range(3):
        g = direction(seed + k, domain.shape)
        v = domain.lmo(g)
        assert v @ g == pytest.approx(linprog(g, **model).fun, rel=1e-9, abs=1e-9)
        assert domain.contains(v, 1e-12)
        assert np.linalg.norm(v - domain.start()) <= domain.diameter and np.linalg.norm(v) <= domain.max_norm


def test_answers_do_not_depend_on_earlier_ones_where_many_vertices_tie() -> None:
    """An assignment polytope is degenerate at every vertex; directions of small whole numbers tie."""
    n = 6
    rows = np.concatenate([np.kron(np.eye(n), np.ones((1, n))), np.kron(np.ones((1, n)), np.eye(n))])
    make = lambda: cg.Polytope(None, None, rows, np.ones(2 * n), lower=0.0)  # noqa: E731
    directions = [direction(seed, (n * n,)) for seed in range(16)]
    domain, order = make(), np.random.default_rng(0).permutation(16)
    answers = [domain.lmo(g) for g in directions]
    for i in order:
        assert np.array_equal(domain.lmo(directions[i]), answers[i])
        assert np.array_equal(make().lmo(directions[i]), answers[i])  # cold
    for g, v in zip(directions, answers, strict=True):
        i, j = linear_sum_assignment(g.reshape(n, n))
        assert v @ g == pytest.approx(g.reshape(n, n)[i, j].sum(), abs=1e-12)
        assert np.isin(v, [0.0, 1.0]).all()


def test_threads_may_share_a_polytope() -> None:
    domain = cg.Polytope.from_linprog(**random_polytope(3))
    directions = [direction(seed, domain.shape) for seed in range(30)]
    expected = [domain.lmo(g).tobytes() for g in directions]
    failures: list[int] = []

    def ask(first: int) -> None:
        for i in [*range(first, 30), *range(first)]:
            if domain.lmo(directions[i]).tobytes() != expected[i]:
                failures.append(i)

    threads = [threading.Thread(target=ask, args=(7 * i,)) for i in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert not failures


def polytope_problem() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    domain = cg.Polytope.from_linprog(**random_polytope(5))
    A = rng.standard_normal((40, domain.shape[0]))
    return cg.LinearModel(A, A @ domain.start() + rng.standard_normal(40), cg.Welsch(2.0)), domain


@pytest.mark.parametrize("method", ["ncgs", "frank-wolfe"])
def test_a_resumed_run_over_a_polytope_is_the_same_run(
    method: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(resuming.PROBLEMS, "polytope", polytope_problem)
    asked = {"method": method, "max_steps": 12, "tol": 1e-14}
    copies = (1, 3) if method == "ncgs" else (3, 8)  # the face phase ends the run of ncgs after a few steps
    whole = Walk("polytope", tmp_path / "c", copies=copies, **asked)
    for k in copies:
        shutil.copy(tmp_path / f"c-{k}", tmp_path / "r")
        Walk("polytope", tmp_path / "r", resume=True, **asked).same_as(whole)


LP_FILE = """Minimize
 obj: x + y
Subject To
 c1: x + 2 y <= 4
 c2: x - y >= -1
 c3: x + y + z = 3
Bounds
 0 <= x <= 3
 -1 <= y <= 2
 z >= 0.5
End
"""


def test_a_model_can_be_read_from_a_file(tmp_path: Path) -> None:
    import highspy

    (tmp_path / "model.lp").write_text(LP_FILE)
    highs = highspy.Highs()
    highs.setOptionValue("output_flag", False)
    highs.readModel(str(tmp_path / "model.lp"))
    highs.writeModel(str(tmp_path / "model.mps"))
    model = {"A_ub": [[1, 2, 0], [-1, 1, 0]], "b_ub": [4, 1], "A_eq": [[1, 1, 1]], "b_eq": [3]}
    bounds = [(0, 3), (-1, 2), (0.5, None)]
    for name in ("model.lp", "model.mps"):
        domain = cg.Polytope.from_file(tmp_path / name)
        for seed in range(6):
            g = direction(seed, (3,))
            assert domain.lmo(g) @ g == pytest.approx(linprog(g, **model, bounds=bounds).fun, abs=1e-12)
    (tmp_path / "whole.lp").write_text(LP_FILE.replace("End", "General\n x\nEnd"))
    with pytest.raises(ValueError, match="has 1 variable that must be whole: pass relax=True"):
        cg.Polytope.from_file(tmp_path / "whole.lp")
    assert cg.Polytope.from_file(tmp_path / "whole.lp", relax=True).shape == (3,)
    (tmp_path / "broken.mps").write_text("ROWS\n what is this\n")
    with pytest.raises(BadData, match=r"HiGHS can't read .*broken\.mps: check that it is in MPS format"):
        cg.Polytope.from_file(tmp_path / "broken.mps")


class _SolverError(Exception):
    """As CVXPY raises it."""

    __module__ = "cvxpy.error"


class _Variable:
    def __init__(self, number: int, shape: tuple[int, ...], **attributes: bool):
        self.id, self.shape, self.attributes = number, shape, attributes

    def __str__(self) -> str:
        return f"var{self.id}"

    def sum(self) -> float:
        """The value 0.0 stands for a linear expression."""
        return 0.0


class _Minimize:
    def __init__(self, expression: Any):
        self.linear = expression == 0.0


class _Stored:
    """A problem as CVXPY 1.9 describes it: sum(x) == 1, |y| <= x[0] entry by entry, x >= 0, with a bound for each |y|."""

    def __init__(self, objective: Any, constraints: Any):
        self.objective, self.constraints = objective, constraints
        self.x, self.y, self.whole, self.linear, self.price = constraints

    def variables(self) -> list[Any]:
        return [self.y, self.x]

    def parameters(self) -> list[Any]:
        return [SimpleNamespace(value=self.price)]

    def get_problem_data(self, solver: str) -> tuple[dict[str, Any], None, None]:
        assert solver == "SCIPY"
        if not (self.linear and self.objective.linear):
            raise _SolverError("The solver SCIPY cannot solve this problem.")
        one, none = np.eye(4), np.zeros((4, 4))
        first = np.repeat([[-1.0, 0.0, 0.0]], 4, axis=0)
        G = np.block([[0 * first, one, -one], [0 * first, -one, -one], [first, none, one]])
        found = {
            "c": np.zeros(11),
            "A": sp.csc_array(np.eye(1, 11) + np.eye(1, 11, 1) + np.eye(1, 11, 2)),
            "b": np.ones(1),
        }
        found |= {"G": sp.csc_array(G), "h": np.zeros(12), "upper_bounds": None, "bool_vars_idx": []}
        found |= {"lower_bounds": np.r_[np.zeros(3), np.full(8, -np.inf)], "int_vars_idx": self.whole}
        return found | {"param_prob": SimpleNamespace(var_id_to_col={7: 0, 8: 3, 9: 7})}, None, None


def _stored(
    objective: str = "linear", whole: Sequence[int] = (), linear: bool = True, price: Any = 1.0, **attributes: bool
) -> _Stored:
    """The problem, with an objective or constraints that are not linear, or a parameter without a value."""
    x, y = _Variable(7, (3,)), _Variable(8, (2, 2), **attributes)
    return _Stored(_Minimize(0.0 if objective == "linear" else objective), (x, y, list(whole), linear, price))


@pytest.mark.parametrize("objective", ["linear", "quadratic"])
def test_a_model_can_be_taken_from_cvxpy(objective: str) -> None:
    model = _stored(objective)
    domain, read = cg.Polytope.from_cvxpy(model)
    weight = np.array([[1.0, -2.0], [3.0, 0.5]])
    g = np.r_[0.0, 0.1, 0.2, weight.ravel(order="F"), np.zeros(4)]
    vertex = domain.lmo(g)
    assert np.array_equal(read[model.x](vertex), [1.0, 0.0, 0.0])
    assert np.array_equal(read[model.y](vertex), -np.sign(weight))


@pytest.mark.parametrize(
    ("model", "sentence"),
    [
        (_stored(whole=[2]), "variables that must be whole"),
        (_stored(symmetric=True), "got the variable var8 with symmetric, which CVXPY stores in another shape"),
        (_stored(linear=False), r"needs linear constraints, .*\(The solver SCIPY cannot"),
        (_stored(price=None), "got the parameter .* without a value"),
        (3, "needs a cvxpy.Problem, but got 3"),
    ],
)
def test_a_model_of_cvxpy_that_can_not_be_taken_is_refused(model: Any, sentence: str) -> None:
    with pytest.raises((ValueError, TypeError), match=sentence):
        cg.Polytope.from_cvxpy(model)


def test_models_of_the_installed_cvxpy_can_be_taken() -> None:
    cvxpy = pytest.importorskip("cvxpy")
    x, y = cvxpy.Variable(3, nonneg=True), cvxpy.Variable((2, 2))
    constraints = [cvxpy.sum(x) == 1, cvxpy.abs(y) <= x[0]]
    for objective in (cvxpy.Minimize(cvxpy.sum_squares(x)), cvxpy.Maximize(cvxpy.sum(cvxpy.log(x)))):
        domain, read = cg.Polytope.from_cvxpy(cvxpy.Problem(objective, [*constraints, cvxpy.sum(y) >= 1]))
        found = read[y](domain.lmo(direction(0, domain.shape)))
        assert found.sum() >= 1 - 1e-9 and np.abs(found).max() <= 1 + 1e-9


def test_rows_without_entries_are_left_out() -> None:
    code = (
        "import numpy as np, condgrad as cg\n"
        "box = cg.Polytope([[0.0, 0.0]], [1.0], [[0.0, 0.0]], [0.0], lower=[0.0, -1.0], upper=[1.0, 2.0])\n"
        "print(box.lmo(np.array([1.0, -1.0])), box.contains(np.zeros(2)))"
    )  # HiGHS crashes on a model of such rows only, and the process with it
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[0. 2.] True", done.stderr
    mixed = cg.Polytope([[0.0, 0.0], [1.0, 1.0]], [0.0, 1.0], lower=0.0)
    assert np.array_equal(mixed.lmo(np.array([-1.0, -2.0])), [0.0, 1.0])
    for empty in ({"A": [[0.0]], "b": [-1.0]}, {"C": [[0.0]], "d": [1e-3]}, {"C": [[0.0]], "d": [-1e-3]}):
        with pytest.raises(ValueError, match="Polytope is an empty set"):
            cg.Polytope(**empty, lower=0.0, upper=1.0)
    with pytest.raises(ValueError, match="Polytope has no variables"):
        cg.Polytope(lower=np.zeros(0), upper=np.zeros(0))


def test_another_user_of_highs_may_have_chosen_its_threads() -> None:
    code = (
        "import highspy, numpy as np, condgrad as cg\n"
        "other = highspy.Highs(); other.setOptionValue('output_flag', False); other.setOptionValue('threads', 2)\n"
        "other.addVar(0.0, 1.0); other.addRow(0.0, 1.0, 1, np.array([0]), np.array([1.0])); other.run()\n"
        "print(cg.Polytope([[1.0, 1.0]], [1.0], lower=0.0).lmo(np.array([-1.0, -2.0])))"
    )
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.stdout.strip() == "[0. 1.]", done.stderr


# --------------------------------------------------------------------------------------------- graphs and plans


def random_graph(seed: int, nodes: int, share: float) -> np.ndarray:
    rng = np.random.default_rng(seed)
    pairs = np.array([(i, j) for i in range(nodes) for j in range(i + 1, nodes)])
    chain = pairs[:, 1] == pairs[:, 0] + 1  # connected
    return pairs[chain | (rng.random(len(pairs)) < share)]


@few
@given(seeds)
def test_paths_and_trees_agree_with_networkx(seed: int) -> None:
    edges = random_graph(seed, 12, 0.3)
    g = direction(seed, (len(edges),))
    directed = nx.DiGraph()
    directed.add_weighted_edges_from((u, v, c) for (u, v), c in zip(edges.tolist(), g, strict=True))
    paths = cg.PathPolytope(edges, 0, 11)
    assert paths.lmo(g) @ g == pytest.approx(nx.bellman_ford_path_length(directed, 0, 11), abs=1e-12)
    assert paths.contains(paths.start(), 1e-12)
    tree = nx.minimum_spanning_tree(directed.to_undirected()).size(weight="weight")
    trees = cg.SpanningTreePolytope(edges)
    assert trees.lmo(g) @ g == pytest.approx(tree, abs=1e-12)
    assert trees.contains(trees.start()) and trees.lmo(g).sum() == 11


@few
@given(seeds)
def test_flows_agree_with_linprog(seed: int) -> None:
    rng = np.random.default_rng(seed)
    edges = random_graph(seed, 7, 0.4)
    edges = np.concatenate([edges, edges[::3, ::-1]])  # with cycles
    capacity = rng.integers(1, 4, len(edges)) * (1.0 if seed % 2 else 0.37)
    D = incidence(edges, 7)
    supply = D @ (capacity * rng.integers(0, 2, len(edges)))
    domain = cg.FlowPolytope(edges, supply, capacity)
    for k in range(2):
        g = direction(seed + k, domain.shape)
        expected = linprog(g, A_eq=D.toarray(), b_eq=supply, bounds=np.c_[0 * capacity, capacity]).fun
        v = domain.lmo(g)
        assert v @ g == pytest.approx(expected, rel=1e-9, abs=1e-9) and domain.contains(v, 1e-12)
        assert seed % 2 == 0 or np.array_equal(v, np.rint(v))


@few
@given(seeds)
def test_matchings_agree_with_linear_programs(seed: int) -> None:
    rng = np.random.default_rng(seed)
    pairs = np.argwhere(rng.random((6, 5)) < 0.5) if seed % 3 else np.argwhere(np.ones((5, 5)))
    pairs = pairs if len(pairs) else np.array([[0, 0]])
    g = direction(seed, (len(pairs),))
    degrees = np.array(
        [[(p[0] == i) for p in pairs] for i in range(6)] + [[(p[1] == j) for p in pairs] for j in range(5)]
    )
    expected = linprog(g, A_ub=degrees * 1.0, b_ub=np.ones(11)).fun
    bipartite = cg.BipartiteMatchingPolytope(pairs)
    assert bipartite.lmo(g) @ g == pytest.approx(expected, abs=1e-9) and bipartite.contains(bipartite.start())
    assert cg.MatchingPolytope(pairs + np.array([0, 6])).lmo(g) @ g == pytest.approx(expected, abs=1e-9)
    if len(pairs) == 25:
        cost = g.reshape(5, 5)
        i, j = linear_sum_assignment(cost)
        perfect = cg.BipartiteMatchingPolytope(pairs, perfect=True)
        assert perfect.lmo(g) @ g == pytest.approx(cost[i, j].sum(), abs=1e-9) and perfect.contains(perfect.start())


@few
@given(seeds, st.sampled_from([1, 2, 4]))
def test_partial_assignments_agree_with_linprog(seed: int, k: int) -> None:
    g = direction(seed, (4, 5))
    sums = np.concatenate([np.kron(np.eye(4), np.ones((1, 5))), np.kron(np.ones((1, 4)), np.eye(5))])
    model = {"A_ub": sums, "b_ub": np.ones(9)}
    exactly = linprog(g.ravel(), **model, A_eq=np.ones((1, 20)), b_eq=[k]).fun
    assert np.vdot(g, cg.PartialAssignment((4, 5), k).lmo(g)) == pytest.approx(exactly, abs=1e-9)
    assert np.vdot(g, cg.PartialAssignment((4, 5)).lmo(g)) == pytest.approx(linprog(g.ravel(), **model).fun, abs=1e-9)


@few
@given(seeds)
def test_transport_plans_of_both_solvers_are_optimal(seed: int) -> None:
    rng = np.random.default_rng(seed)
    a, b = rng.random(5) * (rng.random(5) < 0.9) + 1e-3, rng.random(7)
    b *= a.sum() / b.sum()
    g = direction(seed, (5, 7))
    sums = np.concatenate([np.kron(np.eye(5), np.ones((1, 7))), np.kron(np.ones((1, 5)), np.eye(7))])
    expected = linprog(g.ravel(), A_eq=sums, b_eq=np.concatenate([a, b])).fun
    for solver in ("network-simplex", "lp"):
        domain = cg.TransportPolytope(a, b, solver=solver)
        v = domain.lmo(g)
        assert np.vdot(g, v) == pytest.approx(expected, rel=1e-9, abs=1e-9)
        assert domain.contains(v, 1e-12) and np.count_nonzero(v) <= 11
        assert np.linalg.norm(v) <= domain.max_norm and np.linalg.norm(v - domain.start()) <= domain.diameter


def test_transport_needs_no_pot(monkeypatch: pytest.MonkeyPatch) -> None:
    domain, g = cg.TransportPolytope([0.5, 0.5], [0.25, 0.75]), np.array([[0.0, 1.0], [3.0, 2.0]])
    by_pot = domain.lmo(g)
    monkeypatch.setitem(sys.modules, "ot", None)
    assert np.allclose(domain.lmo(g), by_pot, atol=1e-15) and "_program" in vars(domain)


def test_total_variation_on_a_path_graph_is_that_of_a_sequence() -> None:
    sequence, graph = (
        cg.TotalVariationBall(7, 2.0, 0.5),
        cg.GraphTotalVariationBall([(i, i + 1) for i in range(6)], 2.0, mean=0.5),
    )
    for seed in range(10):
        g = direction(2 * seed + 1, (7,))
        assert np.allclose(graph.lmo(g), sequence.lmo(g), rtol=1e-14, atol=1e-15)
    assert graph.diameter == pytest.approx(sequence.diameter) and graph.max_norm == pytest.approx(sequence.max_norm)


# ------------------------------------------------------------------------------------------------------ membership


def test_points_that_only_the_many_constraints_exclude_are_outside() -> None:
    """A triangle of ones has the right sum and the right degrees, and is in no tree; halves of a triangle are in no matching."""
    trees = cg.SpanningTreePolytope([(0, 1), (1, 2), (0, 2), (2, 3), (3, 4), (4, 2)])
    assert not trees.contains(np.array([1.0, 1.0, 1.0, 0.5, 0.5, 0.0]))
    assert trees.contains(np.array([1.0, 0.5, 0.5, 1.0, 0.5, 0.5]))
    matchings = cg.MatchingPolytope([(0, 1), (1, 2), (0, 2)])
    assert not matchings.contains(np.full(3, 0.5)) and matchings.contains(np.full(3, 1 / 3))
    assert not cg.PathPolytope([(0, 1), (1, 2), (3, 1)], 0, 2).contains(np.array([1.0, 1.0, 0.1]))


def test_the_least_norm_of_bases_tells_where_a_submodular_function_is_smallest() -> None:
    rng = np.random.default_rng(0)
    linear = rng.standard_normal(6)
    domain = cg.SubmodularBasePolytope(6, lambda chosen: 2 * np.sqrt(len(chosen)) + linear[chosen].sum())
    x = cg.minimize(cg.Quadratic(np.eye(6)), domain, tol=1e-16).x
    values = {}
    for bits in range(64):
        chosen = np.flatnonzero([bits >> i & 1 for i in range(6)])
        values[tuple(chosen)] = domain.function(chosen)
    assert min(values, key=lambda s: values[s]) == tuple(np.flatnonzero(x < 0))


def test_a_hull_of_many_points_has_a_bound_for_its_diameter() -> None:
    points = np.random.default_rng(0).standard_normal((2500, 3))
    dense, sparse = cg.ConvexHull(points), cg.ConvexHull(sp.csr_array(points))
    exact = cg.ConvexHull(points[:1500]).diameter
    assert exact <= dense.diameter <= 2 * dense.max_norm + 1 and sparse.diameter == pytest.approx(dense.diameter)
    g = np.array([1.0, -2.0, 0.5])
    assert np.array_equal(dense.lmo(g), sparse.lmo(g)) and np.array_equal(dense.lmo(g), points[np.argmin(points @ g)])


# -------------------------------------------------------------------------------------------------------- refusals

REFUSED = {
    "Birkhoff of rectangles": (lambda: cg.Birkhoff((2, 3)), "Birkhoff is a set of square matrices, but got shape (2, 3)"),
    "an empty polytope": (
        lambda: cg.Polytope([[1.0, 1.0]], [-1.0], lower=0.0),
        "Polytope is an empty set: no point satisfies its constraints; relax them.",
    ),
    "crossed bounds": (lambda: cg.Polytope(lower=[0.0, 2.0], upper=[1.0, 1.0]), "lower 2.0 and upper 1.0 at index 1 leave no"),
    "an unbounded polytope": (
        lambda: cg.Polytope([[1.0, -1.0]], [1.0], lower=0.0),
        "Polytope is unbounded: some entries can grow without end (the first one without two bounds is at index 0)",
    ),
    "an unbounded free variable": (lambda: cg.Polytope([[1.0, 1.0]], [1.0]), "Polytope is unbounded"),
    "no size": (lambda: cg.Polytope(lower=0.0, upper=1.0), "Polytope can't tell the number of variables"),
    "A without b": (lambda: cg.Polytope(A=[[1.0]]), "Polytope got one of A and b: give both or neither."),
    "b too long": (lambda: cg.Polytope([[1.0]], [1.0, 2.0]), "b of Polytope has shape (2,), but (1,) was expected"),
    "A and C of two widths": (
        lambda: cg.Polytope([[1.0]], [1.0], [[1.0, 1.0]], [1.0]),
        "A of Polytope has 1 columns, and C has 2",
    ),
    "NaN in A": (lambda: cg.Polytope([[np.nan]], [1.0]), "A of Polytope holds NaN or Inf"),
    "NaN in a sparse A": (lambda: cg.Polytope(sp.csr_array([[np.nan]]), [1.0]), "A of Polytope holds NaN or Inf"),
    "bounds that are no pair": (
        lambda: cg.Polytope.from_linprog(bounds=(1, 2, 3)),
        "must be a pair (lower, upper) or a list of pairs, but got (1, 2, 3).",
    ),
    "no file": (
        lambda: cg.Polytope.from_file("nowhere.lp"),
        "Can't read nowhere.lp: name an existing file that ends in .lp or .mps.",
    ),
    "a cycle": (lambda: cg.PathPolytope([(0, 1), (1, 0), (1, 2)], 0, 2), "with a cycle between source and target"),
    "no path": (lambda: cg.PathPolytope([(0, 1), (2, 1)], 0, 2), "PathPolytope is an empty set: no path leads from 0 to 2"),
    "a loop": (lambda: cg.PathPolytope([(0, 0), (0, 1)], 0, 1), "have a loop at node 0 (edge 0): remove it."),
    "half a node": (lambda: cg.PathPolytope([(0, 1.5)], 0, 1), "must be whole numbers of at least 0"),
    "edges of three": (lambda: cg.SpanningTreePolytope([(0, 1, 2)]), "have shape (1, 3), but one row (node, node)"),
    "a graph in parts": (
        lambda: cg.SpanningTreePolytope([(0, 1), (2, 3)]),
        "SpanningTreePolytope is an empty set: the graph of 4 nodes has 2 parts; connect them by edges.",
    ),
    "supplies that don't cancel": (lambda: cg.FlowPolytope([(0, 1)], [1.0, 0.0]), "the supplies sum to 1, 0 was expected"),
    "capacities too small": (lambda: cg.FlowPolytope([(0, 1)], [2.0, -2.0]), "FlowPolytope is an empty set: no point"),
    "endless capacity": (lambda: cg.FlowPolytope([(0, 1)], [1.0, -1.0], np.inf), "flows need finite capacities"),
    "unequal sums": (
        lambda: cg.TransportPolytope([1.0, 2.0], [1.0, 1.0]),
        "TransportPolytope is an empty set: row_sums sum to 3 and column_sums to 2; give equal, positive sums.",
    ),
    "negative sums": (lambda: cg.TransportPolytope([-1.0, 2.0], [1.0]), "must be a vector of numbers of at least 0"),
    "another solver": (lambda: cg.TransportPolytope([1.0], [1.0], "sinkhorn"), "Unknown solver of TransportPolytope 'sinkhorn'"),
    "no perfect matching": (
        lambda: cg.BipartiteMatchingPolytope([(0, 0), (1, 0)], perfect=True),
        "of 2 rows and 1 columns at most 1 pairs can be matched",
    ),
    "an edge twice": (lambda: cg.MatchingPolytope([(0, 1), (1, 0)]), "connect two nodes twice: keep one"),
    "a pair twice": (lambda: cg.BipartiteMatchingPolytope([(0, 1), (0, 1)]), "contain a pair twice: remove one"),
    "k too large": (lambda: cg.PartialAssignment((2, 3), 3), "The k of PartialAssignment is at most 2"),
    "a rank that is none": (
        lambda: cg.MatroidBasePolytope(3, lambda chosen: 2 * len(chosen)),
        "The answer of rank to 3 elements is 6, a whole number from 0 to 3 was expected.",
    ),
    "no matroid": (
        lambda: cg.MatroidBasePolytope(3, lambda chosen: 2 * (len(chosen) == 3)).lmo(np.ones(3)),
        "The answers of rank are not those of a matroid: it is 2 for all elements, but the greedy algorithm ends with 0.",
    ),
    "not submodular": (
        lambda: cg.SubmodularBasePolytope(3, lambda chosen: len(chosen) ** 2),
        "is not submodular: element 0 adds 1 to no elements and 5 to all others",
    ),
    "one point": (lambda: cg.ConvexHull([1.0, 2.0]), "at least one point along the first axis was expected"),
    "a sequence of one": (lambda: cg.TotalVariationBall(1), "of at least 2 entries, but got shape (1,)"),
    "a graph that is not connected": (
        lambda: cg.GraphTotalVariationBall([(0, 1), (2, 3)]),
        "GraphTotalVariationBall is unbounded",
    ),
    "no weight": (lambda: cg.GraphTotalVariationBall([(0, 1)], weights=0.0), "must be positive: leave out edges of no weight"),
}  # fmt: skip


@pytest.mark.parametrize(("action", "said"), REFUSED.values(), ids=REFUSED)
def test_what_is_no_polytope_is_refused_in_one_sentence(action: Any, said: str) -> None:
    with pytest.raises((ValueError, BadOracle)) as refusal:
        action()
    assert said in str(refusal.value) and "\n" not in str(refusal.value)
