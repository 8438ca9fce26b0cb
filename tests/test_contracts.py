"""What a part must have, what each further member switches on, and the one table of oracles."""

from __future__ import annotations

from dataclasses import fields
from pathlib import Path
from types import SimpleNamespace
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.checks import NotGiven
from condgrad.driver.counting import Counts, count
from condgrad.protocols import (
    COUNTERS,
    EXTRAS,
    ORACLES,
    Domain,
    Expectation,
    FiniteSum,
    Objective,
    Projectable,
    Record,
    SpectralSet,
    fits,
    members,
    missing,
)

DOCS = Path(__file__).parent.parent / "docs"
CENTRE = np.array([0.7, 0.2, 0.9])


class SmallestSet:
    """A user's set: the simplex, with what a set must have and nothing else."""

    shape = (3,)

    def lmo(self, direction: Any) -> Any:
        return np.eye(3)[int(np.argmin(direction))]


class SmallestObjective:
    """A user's objective: a squared distance, with what an objective must have and nothing else."""

    def value(self, x: Any) -> float:
        return float((x - CENTRE) @ (x - CENTRE)) / 2

    def grad(self, x: Any) -> Any:
        return x - CENTRE


class WithDiameter(SmallestSet):
    diameter = float(np.sqrt(2))


class Projecting(SmallestSet):
    def project(self, x: Any) -> Any:
        return cg.Simplex(3).project(x)


class Outside(SmallestSet):
    """Begins where it is not."""

    def start(self) -> Any:
        return np.array([0.0, 1.0, 0.0])

    def contains(self, x: Any, tolerance: float = 1e-9) -> bool:
        return bool(x[0] <= tolerance)


SOLUTION = np.array([0.4, 0.0, 0.6])


# ------------------------------------------------------------------------------------------------------------ contracts


def test_members_are_those_of_the_protocols() -> None:
    assert set(members(Domain)) == {"lmo", "shape"} and set(members(Objective)) == {"value", "grad"}
    assert set(members(FiniteSum)) == {*members(Objective), *members(Expectation), "n_terms"}
    assert set(members(SpectralSet)) > set(members(Domain)) and set(members(Projectable)) == {"lmo", "shape", "project"}
    assert missing(3, Domain) == ["shape", "lmo"] and missing(cg.Simplex(3), Domain, Projectable) == []
    half = SimpleNamespace(draw=1, grad_terms=1, term_rows=1)
    assert missing(half, Objective, Expectation) == ["assemble"]
    assert missing(SimpleNamespace(), Objective, Expectation) == ["value", "grad"]


def test_a_property_that_was_not_given_is_a_member() -> None:
    bare = cg.user_set(SmallestSet().lmo, 3)
    with pytest.raises(NotGiven):
        _ = bare.diameter
    assert missing(bare, Domain) == [] and fits(bare, Domain) and not fits(bare, Projectable)


def test_the_smallest_set_and_the_smallest_objective_are_enough() -> None:
    result = cg.minimize(SmallestObjective(), SmallestSet(), tol=1e-8)
    assert result.status == "converged" and np.allclose(result.x, SOLUTION, atol=1e-3)
    assert result.inner == "corrective"
    assert cg.minimize(SmallestObjective(), WithDiameter(), tol=1e-8).status == "converged"
    problem = cg.Problem(SmallestObjective(), SmallestSet())
    solver = cg.solvers.Backtracking(cg.solvers.FrankWolfe("short"))
    assert cg.run(problem, solver, np.eye(3)[0], cg.Gap(1e-2) | cg.Steps(500)).status == "converged"
    assert next(cg.iterate(problem, solver, np.eye(3)[0])).k == 0
    assert cg.check_gradient(SmallestObjective(), SmallestSet()).matches
    assert cg.estimate_smoothness(SmallestObjective(), SmallestSet()).seen == pytest.approx(1.0)


@pytest.mark.parametrize("part", ["set", "objective"])
@pytest.mark.parametrize("lacking", [("lmo",), ("shape",), ("lmo", "shape"), ("value",), ("grad",), ("value", "grad")])
def test_what_is_missing_is_said_and_nothing_else(part: str, lacking: tuple[str, ...]) -> None:
    whole = {"set": SmallestSet(), "objective": SmallestObjective()}
    contract = Domain if part == "set" else Objective
    absent = [name for name in members(contract) if name in lacking]
    if not absent:
        pytest.skip("members of the other part")
    whole[part] = SimpleNamespace(**{n: getattr(whole[part], n) for n in members(contract) if n not in absent})
    with pytest.raises(TypeError) as refused:
        cg.minimize(whole["objective"], whole["set"])
    said = str(refused.value)
    assert f"is of type SimpleNamespace, which has no {' and no '.join(absent)}: " in said and said.endswith(".")


def test_a_part_resumes_from_a_checkpoint_whatever_it_leaves_out(tmp_path: Path) -> None:
    asked: dict[str, Any] = {"tol": 1e-12, "checkpoint": tmp_path / "c", "method": "frank-wolfe", "rule": "adaptive"}
    cg.minimize(SmallestObjective(), SmallestSet(), max_steps=4, **asked)
    resumed = cg.minimize(SmallestObjective(), SmallestSet(), max_steps=9, resume=True, **asked)
    del asked["checkpoint"]
    whole = cg.minimize(SmallestObjective(), SmallestSet(), max_steps=9, **asked)
    assert np.array_equal(resumed.x, whole.x) and resumed.counts == whole.counts


# ------------------------------------------------------------------------------------- what each further member switches on


def on_set(domain: Any, **asked: Any) -> Any:
    return cg.minimize(SmallestObjective(), domain, **asked)


def test_diameter_switches_on_the_steps_that_depend_on_it() -> None:
    asked = {"method": "frank-wolfe", "rule": "bounded", "max_steps": 5, "tol": 1e-12}
    with pytest.raises(
        NotGiven, match=r"^The diameter of SmallestSet is needed, but the set does not state it: define"
    ):
        on_set(SmallestSet(), **asked)
    assert on_set(WithDiameter(), **asked).steps > 0


def test_project_switches_on_projections() -> None:
    with pytest.raises(TypeError, match="SmallestSet has no projection"):
        on_set(SmallestSet(), method="projected-gradient")
    assert on_set(Projecting(), method="projected-gradient", tol=1e-10).status == "converged"
    assert on_set(Projecting()).inner == "exact"
    with pytest.raises(ValueError, match="x0 lies outside the set"):
        on_set(Projecting(), x0=np.array([0.5, 0.5, 0.01]))


def test_start_and_contains_are_asked() -> None:
    seen: list[Any] = []
    on_set(Outside(), max_steps=0, callback=lambda record, x: seen.append(x))
    assert np.array_equal(seen[0], [0.0, 1.0, 0.0])
    on_set(SmallestSet(), max_steps=0, callback=lambda record, x: seen.append(x))
    assert np.array_equal(seen[-1], SmallestSet().lmo(np.ones(3)))
    with pytest.raises(ValueError, match="x0 lies outside the set"):
        on_set(Outside(), x0=np.array([1.0, 0.0, 0.0]))
    left = on_set(Outside(), x0=np.array([0.0, 1.0, 0.0]), method="frank-wolfe", rule="open-loop", tol=1e-12)
    assert left.status == "failed" and "outside of the set" in left.message


def test_smoothness_shape_and_value_and_grad_are_asked() -> None:
    class Knowing(SmallestObjective):
        smoothness = 1.0
        shape = 3

    asked: list[Any] = []

    class Both(SmallestObjective):
        def value_and_grad(self, x: Any) -> Any:
            asked.append(x)
            return self.value(x), self.grad(x)

    short: dict[str, Any] = {"method": "frank-wolfe", "rule": "short", "max_steps": 5}
    assert on_set(SmallestSet(), **short).counts["values"] > 0, "backtracking"
    assert cg.minimize(Knowing(), SmallestSet(), **short).counts["values"] == 0
    with pytest.raises(ValueError, match=r"points have shape \(3,\), the set's have shape \(4,\)"):
        cg.minimize(Knowing(), cg.Simplex(4))
    result = cg.minimize(Both(), SmallestSet(), tol=1e-8, polish=False)
    assert result.status == "converged" and len(asked) >= 5


def rows(contract: type) -> list[str]:
    return [f"| `{'`, `'.join(names.split(', '))}` | {switches} |" for names, switches in EXTRAS[contract].items()]


@pytest.mark.parametrize("contract", EXTRAS)
def test_the_table_in_the_docs_is_that_of_the_code(contract: type) -> None:
    page = (DOCS / "extending.md").read_text(encoding="utf-8")
    table = "\n".join(rows(contract))
    assert f"|---|---|\n{table}\n\n" in page, f"docs/extending.md has another table; put this there:\n\n{table}"
    named = {name for names in EXTRAS[contract] for name in names.split(", ")}
    assert not named & set(members(contract)), "what is required switches nothing on"


@pytest.mark.parametrize("contract", EXTRAS)
def test_what_the_table_names_is_read_somewhere(contract: type) -> None:
    source = "".join(
        path.read_text(encoding="utf-8")
        for room in ("driver", "solvers", "inner", "estimators", "points")
        for path in (DOCS.parent / "src" / "condgrad" / room).glob("*.py")
    )
    for name in [name for names in EXTRAS[contract] for name in names.split(", ")]:
        assert f".{name}" in source or f'"{name}"' in source, f"nobody asks for {name}"


# ------------------------------------------------------------------------------------------------------------- the oracles


def test_every_counter_is_a_field_of_counts_and_of_records() -> None:
    assert [f.name for f in fields(Counts)] == list(COUNTERS)
    assert set(COUNTERS) < {f.name for f in fields(Record)}
    assert {name for oracle in ORACLES.values() for name in oracle.counters} - {"terms"} <= set(COUNTERS)
    contracts = (Objective, FiniteSum, Domain, Projectable, SpectralSet)
    assert set(ORACLES) - {"value_and_grad", "atom", "atoms"} <= {
        name for contract in contracts for name in members(contract)
    }
    for name in COUNTERS:
        assert cg.Calls(3, name).oracle == name


def test_wrappers_are_built_once_and_form_no_cycle() -> None:
    import gc
    import weakref

    counted = count(cg.Problem(cg.Quadratic(np.eye(3)), cg.Simplex(3)), Counts(), lambda price: None)
    assert counted.objective.grad is counted.objective.grad and counted.domain.lmo is counted.domain.lmo
    assert not hasattr(counted.domain, "beyond") and counted.domain.radius == 1.0
    gc.disable()
    try:
        gone = weakref.ref(counted.domain)
        del counted
        assert gone() is None
    finally:
        gc.enable()


@pytest.mark.parametrize("name", ORACLES)
def test_an_answer_that_is_not_finite_is_refused_under_its_noun(name: str) -> None:
    bad = np.array([1.0, np.nan])
    answers = {
        "value": np.nan,
        "value_and_grad": (1.0, bad),
        "lmo_near": (bad, None),
        "beyond": (1.0, bad),
        "atoms": [bad],
    }
    thing = SimpleNamespace(**{name: lambda *args: answers.get(name, bad)}, n_terms=7)
    counts = Counts()
    counted = count(cg.Problem(thing, thing), counts, lambda price: None)
    with pytest.raises(ValueError) as refused:
        getattr(counted.objective, name)(np.ones(2), [1, 2, 3])
    assert str(refused.value).startswith(f"{ORACLES[name].finite[-1].noun} of SimpleNamespace ")
    spent = {counter: n for counter, n in vars(counts).items() if n}
    expected = {"grad": {"fo": 1, "ifo": 7}, "value_and_grad": {"values": 1, "fo": 1, "ifo": 7}, "beyond": {"ub": 1}}
    expected |= {"grad_terms": {"ifo": 3}, "term_rows": {"ifo": 3}, "value": {"values": 1}, "project": {"po": 1}}
    assert spent == expected.get(name, {"lo": 1})


# ------------------------------------------------------------------------------------------------------------ upper bounds


def test_upper_bounds_are_no_linear_minimisations(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    F = cg.Completion.from_dense(rng.standard_normal((12, 9)), rng.random((12, 9)) < 0.5)
    asked: dict[str, Any] = {"inner": "spectral", "warm_start": 0, "tol": 1e-12, "polish": False}
    result = cg.minimize(F, cg.NuclearBall((12, 9), 2.0), max_steps=8, checkpoint=tmp_path / "c", **asked)
    assert result.counts["ub"] >= 8 and result.counts["lo"] == 0
    assert result.trace["ub"][-1] == result.counts["ub"] and f"UB {result.counts['ub']}" in repr(result)
    assert result.summary()["counts"]["ub"] == result.counts["ub"]
    result.trace.to_csv(tmp_path / "trace.csv")
    assert ",lo,ub,po," in (tmp_path / "trace.csv").read_text().splitlines()[0]
    ended = cg.minimize(F, cg.NuclearBall((12, 9), 2.0), stop=cg.Mapping(1e-30) | cg.Calls(5, "ub"), **asked)
    assert (ended.status, ended.counts["ub"]) == ("out_of_budget", 5) and "5 UB calls" in ended.message
    resumed = cg.minimize(
        F, cg.NuclearBall((12, 9), 2.0), max_steps=12, checkpoint=tmp_path / "c", resume=True, **asked
    )
    whole = cg.minimize(F, cg.NuclearBall((12, 9), 2.0), max_steps=12, **asked)
    assert resumed.counts == whole.counts and np.array_equal(resumed.trace["ub"], whole.trace["ub"])


def test_progress_and_reports_show_upper_bounds(tmp_path: Path) -> None:
    from tests.driving import a_record

    from condgrad.driver.progress import Progress
    from condgrad.driver.trace import Trace
    from condgrad.report.run_report import UNITS, read_trace

    shown = Progress("ncgs", cg.Steps(4)).line(a_record(k=2, lo=3, ub=5), 0.5, 1.0)
    assert "LO 3  UB 5" in shown and "UB" not in Progress("ncgs", cg.Steps(4)).line(a_record(k=2, lo=3), 0.5, 1.0)
    assert UNITS["ub"] == "upper bounds (UB)"
    Trace([a_record(k=0, ub=0), a_record(k=1, ub=7, mapping=1.0)]).to_csv(tmp_path / "t.csv")
    assert read_trace(tmp_path / "t.csv")["ub"].tolist() == [0.0, 7.0]
    header, *lines = (line.split(",") for line in (tmp_path / "t.csv").read_text().splitlines())
    at = header.index("ub")
    old = "\n".join(",".join(cells[:at] + cells[at + 1 :]) for cells in (header, *lines))
    (tmp_path / "old.csv").write_text(old)
    assert read_trace(tmp_path / "old.csv")["ub"].tolist() == [0.0, 0.0]
