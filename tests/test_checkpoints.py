"""What a checkpoint promises when something goes wrong: damage, another problem, a disk that is full."""

from __future__ import annotations

import errno
import json
import os
import shutil
from pathlib import Path
from types import SimpleNamespace

import numpy as np
import pytest
from tests.driving import passing
from tests.resuming import Walk, linear_model

import condgrad as cg
from condgrad.cli import main
from condgrad.driver.checkpoint import VERSION
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive
from condgrad.storage.snapshot import Serialised, refusing, restore, snapshot

ASKED = {"method": "ncgs", "max_steps": 8, "tol": 1e-12}


@pytest.fixture
def path(tmp_path):
    """A checkpoint of step 5, with the one of step 4 before it."""
    path = tmp_path / "c"
    Walk("linear-model", path, **(ASKED | {"max_steps": 5}))
    return path


def resumed(path, **asked):
    return Walk("linear-model", path, resume=True, **(ASKED | asked))


def step_of(path):
    return archive.read(path, "checkpoint", VERSION)[0]["k"]


# ------------------------------------------------------------------------------------------------------------ damage


def test_a_larger_budget_goes_on_where_the_run_ended(path):
    assert (step_of(path), step_of(archive.previous(path))) == (5, 4)
    resumed(path).same_as(Walk("linear-model", **ASKED))
    assert step_of(path) == 8


def test_a_run_that_was_done_is_still_done(path):
    again = resumed(path, max_steps=5)
    assert not again.iterates
    again.same_as(Walk("linear-model", **(ASKED | {"max_steps": 5})))


@pytest.mark.parametrize("damage", [lambda b: b[:-100], lambda b: b"", lambda b: b[:300] + b"?" + b[301:]])
def test_of_a_damaged_one_the_one_before_is_used(path, damage):
    path.write_bytes(damage(path.read_bytes()))
    with pytest.warns(cg.CheckpointWarning, match=r"c can't be used.*is used instead: .*c\.previous, of step 4"):
        walk = resumed(path)
    walk.same_as(Walk("linear-model", **ASKED))
    assert step_of(archive.previous(path)) > 4


def test_a_damaged_one_never_takes_the_good_one_s_place(path):
    path.write_bytes(b"damaged")
    with pytest.warns(cg.CheckpointWarning):
        resumed(path, max_steps=5)  # one write
    assert (step_of(path), step_of(archive.previous(path))) == (5, 4)


def test_killed_between_the_two_renames(path):
    os.replace(path, archive.previous(path))
    resumed(path).same_as(Walk("linear-model", **ASKED))


def test_two_damaged_ones_are_both_named(path):
    for file in (path, archive.previous(path)):
        file.write_bytes(b"damaged")
    with pytest.raises(BadArchive, match=r"c can't be used.*c\.previous can't be used"):
        resumed(path)


def test_a_foreign_file_is_refused(tmp_path):
    path = tmp_path / "c"
    archive.write(path, "model", 1, {}, {})
    with pytest.raises(BadArchive, match="kind 'model', 'checkpoint' was expected"):
        resumed(path)


@pytest.mark.parametrize("change", [{"problem": 3}, {"counts": {"x": 1}}, {"rows": 7}, {"tree": 1}, {"more": 0}])
def test_a_file_that_was_made_up_is_refused(path, change):
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink()
    archive.write(path, "checkpoint", VERSION, data | change, arrays)
    with pytest.raises(BadArchive, match="can't be used: "):
        resumed(path)


def held(data, kind):
    """What is held of the first object of this kind."""
    return next(node[2] for node in data["nodes"] if node[0] == "object" and node[1].endswith(kind))


def moving(data, name, value):
    """Put another value in the place of one that moves in the run."""
    next(pair for pair in data["tree"][1][1][1:] if pair[0] == name)[1] = value


def cached(data, part):
    """A list of what is cached, after its tag: 1 for evaluations, 2 for values on the pattern, 3 for numbers."""
    return data["tree"][2][part][1:] if len(data["tree"][2][part]) > 1 else pytest.fail("nothing is cached")


def evaluation(data, *parts):
    data["tree"][2][1].append(["tuple", *parts])


FORGED = {
    "L = 0": lambda data: held(data, "State").update(L=0),
    "L = NaN": lambda data: held(data, "State").update(L=float("nan")),
    "L = text": lambda data: held(data, "State").update(L="1"),
    "k": lambda data: held(data, "State").update(k=-1),
    "another k": lambda data: data.update(k=3),
    "x": lambda data: held(data, "State").update(x=1.0),
    "local": lambda data: held(data, "State").update(local=None),
    "theta": lambda data: held(data, "State").update(theta_ag=["list", 1.0]),
    "due": lambda data: held(data, "State").update(due=3),
    "certificate": lambda data: held(data, "State").update(certificate=1),
    "memory": lambda data: held(data, "State").update(memory=["list"]),
    "descent_fun": lambda data: held(data, "State").update(descent=None, descent_fun=1.0),
    "gamma": lambda data: held(data, "Certificate").update(gamma=0.0),
    "gap": lambda data: held(data, "Certificate").update(gap=None),
    "prox": lambda data: held(data, "Certificate").update(prox=None),
    "record": lambda data: held(data, "Record").update(seconds=None),
    "no record": lambda data: moving(data, "record", None),
    "best": lambda data: moving(data, "best", 7),
    "best_k": lambda data: moving(data, "best_k", 0.5),
    "current_k": lambda data: moving(data, "current_k", -1),
    "lowest": lambda data: moving(data, "lowest", 7),
    "lowest fun": lambda data: held(data, "Lowest").update(fun=None),
    "lowest x": lambda data: held(data, "Lowest").update(x=1.0),
    "next_check": lambda data: moving(data, "next_check", None),
    "findings": lambda data: moving(data, "findings", None),
    "a finding": lambda data: held(data, "Findings").update(inexact="1"),
    "vertices": lambda data: held(data, "Findings").update(vertices=["tuple", 1.0]),
    "known": lambda data: moving(data, "known", ["list", ["tuple", 1.0, 1.0]]),
    "rows": lambda data: data.update(rows=""),
    "phases": lambda data: data.update(phases=[["main", 10**9]]),
    "a phase": lambda data: data["phases"][0].__setitem__(0, 1),
    "counts": lambda data: data["counts"].update(lo=-1),
    "counts too large": lambda data: data["counts"].update(lo=10**30),
    "record too large": lambda data: held(data, "Record").update(lo=10**30),
    "smoothness too large": lambda data: held(data, "Record").update(smoothness=10**30),
    "remembered": lambda data: data["tree"][1].__setitem__(2, ["tuple", 1.0, 2.0]),
    "cache": lambda data: data["tree"].__setitem__(2, ["list", 1.0]),
    "no cache": lambda data: data["tree"].pop(),
    "an evaluation": lambda data: evaluation(data, ["shared", "objective"], None, 1.0, None),
    "counts of what": lambda data: data["counts"].update(lo=[1]),
    "spent": lambda data: data["spent"].update(seconds=float("nan")),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_state_that_no_run_was_in_is_refused(path, forged):
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink()
    FORGED[forged](data)
    archive.write(path, "checkpoint", VERSION, data, arrays)
    with pytest.raises(BadArchive, match="can't be used: what it holds does not fit together"):
        resumed(path)


@pytest.mark.parametrize(
    "change", [lambda a: np.full_like(a, np.nan), lambda a: a.astype(bool), lambda a: a[..., None]]
)
def test_points_that_no_run_was_at_are_refused(path, change):
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink()
    at = held(data, "State")["x"][1]
    archive.write(path, "checkpoint", VERSION, data, arrays | {str(at): change(arrays[str(at)])})
    with pytest.raises(BadArchive, match="can't be used: what it holds does not fit together"):
        resumed(path)


@pytest.mark.parametrize("change", [lambda a: a.astype(complex), lambda a: a[:-1], lambda a: a[None], lambda a: a > 0])
def test_a_trace_that_no_run_had_is_refused(path, change):
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink()
    archive.write(path, "checkpoint", VERSION, data, arrays | {"trace.mapping": change(arrays["trace.mapping"])})
    with pytest.raises(BadArchive, match="a trace of 5 rows was expected"):
        resumed(path)


def number_of(data, kind):
    """The number of the first object of this kind."""
    return next(i for i, node in enumerate(data["nodes"]) if node[0] == "object" and node[1].endswith(kind))


LOW_RANK = {
    "remembered": lambda data, _: data["tree"][1].__setitem__(2, 1.0),
    "the last objective": lambda data, _: evaluation(data, "F", ["node", number_of(data, "LowRank")], 1.0, None),
    "the last point": lambda data, _: evaluation(data, ["shared", "objective"], "x", 1.0, None),
    "the last value": lambda data, _: cached(data, 1)[-1].__setitem__(3, None),
    "the last gradient": lambda data, _: cached(data, 1)[-1].__setitem__(4, ["node", number_of(data, "LowRank")]),
    "whose values": lambda data, _: cached(data, 2)[-1].__setitem__(2, ["node", number_of(data, "State")]),
    "the pattern of values": lambda data, _: cached(data, 2)[-1].__setitem__(1, 1.0),
    "cached values": lambda data, arrays: spoil(arrays, cached(data, 2)[-1][3]),
    "other cached values": lambda data, _: cached(data, 2)[-1].__setitem__(3, held(data, "Factors")["U"]),
    "whose number": lambda data, _: cached(data, 3)[-1].__setitem__(1, None),
    "a number of what": lambda data, _: cached(data, 3)[-1].__setitem__(2, None),
    "a number": lambda data, _: cached(data, 3)[-1].__setitem__(3, "1"),
    "coefficient": lambda data, _: held(data, "condgrad.LowRank")["terms"][1].__setitem__(1, float("nan")),
    "terms": lambda data, _: held(data, "condgrad.LowRank").update(terms=["tuple", ["tuple", 1.0, ["node", 0]]]),
    "base": lambda data, _: held(data, "Factors").update(base=-1),
    "a pattern of another problem": lambda data, _: held(data, "SparsePlusLowRank").update(pattern=["shared", "other"]),
    "no pattern": lambda data, _: held(data, "SparsePlusLowRank").update(pattern=None),
    "scale": lambda data, _: held(data, "SparsePlusLowRank").update(scale=float("inf")),
    "no hull": lambda data, _: held(data, "State").update(memory=None),
    "another memory": lambda data, _: held(data, "State").update(memory=["node", number_of(data, "Certificate")]),
    "atoms": lambda data, _: held(data, "Stack").update(others=["tuple"]),
    "weights": lambda data, arrays: spoil(arrays, held(data, "ActiveSet")["weights"]),
    "gram": lambda data, arrays: spoil(arrays, held(data, "ActiveSet")["gram"]),
    "U": lambda data, arrays: spoil(arrays, held(data, "Factors")["U"]),
    "values": lambda data, arrays: spoil(arrays, held(data, "SparsePlusLowRank")["values"]),
}


def spoil(arrays, reference):
    arrays[str(reference[1])] = np.full_like(arrays[str(reference[1])], np.nan)


@pytest.mark.parametrize("forged", LOW_RANK)
def test_points_and_memories_that_no_run_had_are_refused(forged, tmp_path):
    path, asked = tmp_path / "c", ASKED | {"inner": cg.Corrective(3), "max_steps": 3}
    Walk("completion", path, **asked)
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink()
    LOW_RANK[forged](data, arrays)
    archive.write(path, "checkpoint", VERSION, data, arrays)
    with pytest.raises(BadArchive, match="can't be used: what it holds does not fit together") as refused:
        Walk("completion", path, resume=True, **asked)
    assert "\n" not in str(refused.value)


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
def test_an_objective_that_remembers_is_asked(tmp_path):
    class Drifting:
        """Its answers depend on how often it was asked."""

        shape, smoothness = (3,), 4.0

        def __init__(self):
            self.asked = 0

        def value(self, x):
            return float(x @ x)

        def grad(self, x):
            self.asked += 1
            return (2 + 1 / self.asked) * x - np.arange(3.0)

        def remembered(self):
            return self.asked

        def remember(self, asked):
            self.asked = asked

    def solve(steps, **saving):
        asked = {"method": "projected-gradient", "output": "last", "max_steps": steps}
        return cg.minimize(Drifting(), cg.Box(np.full(3, -1.0), np.ones(3)), **asked, **saving)

    whole, path = solve(12, checkpoint=tmp_path / "whole"), tmp_path / "c"
    solve(5, checkpoint=path)
    assert solve(12, checkpoint=path, resume=True).x.tobytes() == whole.x.tobytes()


def test_a_checkpoint_is_not_overwritten_by_another_run(path):
    with pytest.raises(ValueError, match=r"already: continue it with resume=True"):
        Walk("linear-model", path, **ASKED)
    assert step_of(path) == 5


def test_without_a_checkpoint_resume_begins(tmp_path):
    resumed(tmp_path / "c").same_as(Walk("linear-model", **ASKED))
    with pytest.raises(TypeError, match="give its path"):
        cg.minimize(*linear_model(), resume=True)


def test_the_watch_goes_on_from_where_it_was(tmp_path, fake_clock):
    """What was spent before the cut counts, and what passed in between does not."""
    objective, domain = linear_model()
    slow = cg.Function(objective.value, passing(fake_clock, 1.0, objective.grad), objective.shape, smoothness=0.2)
    asked = {"method": "projected-gradient", "tol": 1e-12, "checkpoint": cg.Checkpoint(tmp_path / "c", steps=1)}
    first = cg.minimize(slow, domain, max_steps=5, **asked)
    fake_clock[0] += 1e6
    rest = cg.minimize(slow, domain, max_steps=8, resume=True, **asked)
    assert first.seconds >= 5 and (rest.seconds, rest.cpu) == (first.seconds + 3, first.cpu + 6)
    wall = rest.trace["wall"]
    assert wall[:6].tolist() == first.trace["wall"].tolist() and np.all(np.diff(wall) > 0) and wall[-1] < 1e3


def test_a_callback_that_fails_loses_nothing(tmp_path):
    def callback(record, x):
        if record.k == 4:
            raise RuntimeError("mine")

    path = tmp_path / "c"
    with pytest.raises(RuntimeError, match="mine"):
        cg.minimize(*linear_model(), callback=callback, checkpoint=path, **ASKED)
    assert step_of(path) == 3
    resumed(path).same_as(Walk("linear-model", **ASKED))


def test_a_budget_that_ends_inside_a_step_leaves_the_step_before(tmp_path):
    path, calls = tmp_path / "c", {"method": "ncgs", "tol": 1e-12, "inner": cg.CondG(20)}
    cut = cg.minimize(*linear_model(), checkpoint=path, stop=cg.Mapping(1e-12) | cg.Calls(50, "lo"), **calls)
    assert step_of(path) == cut.steps
    asked = calls | {"stop": cg.Mapping(1e-12) | cg.Calls(200, "lo")}
    Walk("linear-model", path, resume=True, **asked).same_as(Walk("linear-model", **asked))


# --------------------------------------------------------------------------------------------------- another problem


@pytest.mark.parametrize(
    ("asked", "said"),
    [
        (
            {"method": "frank-wolfe"},
            "method was condgrad.solvers.ncgs.NCGS, is condgrad.solvers.frank_wolfe.FrankWolfe",
        ),
        ({"seed": 1}, "seed was 0, is 1"),
        ({"tol": 1e-9}, "method.schedule.eps was 1e-12, is 1e-09"),
        ({"x0": np.full(8, 0.1)}, "x0 was array"),
        ({"smoothness": 7.0}, "objective.smoothness was"),
        ({"stop": cg.Gap(1e-3) | cg.Steps(8), "schedule": cg.practical(1e-12)}, "tolerance was 1e-12, is None"),
        ({"inner": "condg"}, "method.inner was"),
        ({"every": 2}, "every was 1, is 2"),
    ],
    ids=lambda value: next(iter(value)) if isinstance(value, dict) else "",
)
def test_another_run_is_refused_with_what_differs(path, asked, said):
    with pytest.raises(ValueError, match="is of another run") as refused:
        resumed(path, **asked)
    assert said in str(refused.value)
    assert step_of(path) == 5


def test_other_data_is_refused(path):
    objective, domain = linear_model()
    y = objective.y.copy()
    y[3] *= -1
    for other, said in (
        ((cg.LinearModel(objective.A, y, cg.Sigmoid()), domain), "objective.y was array"),
        ((cg.LinearModel(objective.A, objective.y, cg.Squared()), domain), "objective.loss was"),
        ((objective, cg.L1Ball(8, 2.0)), "set.radius was 3.0, is 2.0"),
        (
            (cg.LinearModel(objective.A[:, :7], objective.y, cg.Sigmoid()), cg.L1Ball(7, 3.0)),
            "of another run: .*A was array",
        ),
    ):
        with pytest.raises(ValueError, match=said):
            cg.minimize(*other, checkpoint=path, resume=True, **ASKED)


def test_of_a_user_s_function_its_answers_are_compared(tmp_path):
    def function(factor):
        return cg.Function(lambda x: factor * x @ x, lambda x: 2 * factor * x, (3,))

    path, ball = tmp_path / "c", cg.Simplex(3)
    cg.minimize(function(1.0), ball, np.array([1.0, 0, 0]), max_steps=2, checkpoint=path)
    cg.minimize(function(1.0), ball, np.array([1.0, 0, 0]), max_steps=3, checkpoint=path, resume=True)
    with pytest.raises(ValueError, match="the gradient's length at x0 was"):
        cg.minimize(function(2.0), ball, np.array([1.0, 0, 0]), max_steps=2, checkpoint=path, resume=True)


# ------------------------------------------------------------------------------------------------- a disk that fails


def failing(monkeypatch, steps, code=errno.ENOSPC):
    """The disk is full while these steps are written."""
    write = archive.write

    def full(path, kind, version, data, arrays, keep=False):
        if data["k"] in steps:
            raise OSError(code, os.strerror(code), str(path))
        write(path, kind, version, data, arrays, keep)

    monkeypatch.setattr(archive, "write", full)


def test_a_full_disk_costs_a_warning_and_is_tried_again(monkeypatch, tmp_path):
    failing(monkeypatch, {3, 4})
    with pytest.warns(cg.CheckpointWarning, match="after step 3: No space left on device") as said:
        walk = Walk("linear-model", tmp_path / "c", **ASKED)
    assert len(said) == 1
    assert walk.result.warnings == () and step_of(tmp_path / "c") == 8
    walk.same_as(Walk("linear-model", **ASKED))


def test_the_result_says_which_checkpoint_is_the_last(monkeypatch, tmp_path):
    failing(monkeypatch, {6, 7, 8})
    with pytest.warns(cg.CheckpointWarning):
        walk = Walk("linear-model", tmp_path / "c", **ASKED)
    assert "No space left on device; the last checkpoint is from step 5" in walk.result.warnings[0]
    monkeypatch.undo()
    resumed(tmp_path / "c").same_as(Walk("linear-model", **ASKED))


def test_where_nothing_can_be_written_the_run_does_not_begin(tmp_path):
    for path in (tmp_path / "nowhere" / "c", tmp_path):
        with pytest.raises(OSError, match="No checkpoint can be written here"):
            Walk("linear-model", path, **ASKED)


def test_what_can_t_be_saved_is_said_at_once(tmp_path):
    with pytest.raises(TypeError, match="A SimpleNamespace can't be written to a file"):
        snapshot([SimpleNamespace()])
    for wrong in (-1, "often"):
        with pytest.raises((TypeError, ValueError), match="steps between checkpoints"):
            cg.Checkpoint(tmp_path / "c", steps=wrong)
    with pytest.raises(TypeError, match="the name of a file was expected"):
        cg.minimize(*linear_model(), checkpoint=3)


# -------------------------------------------------------------------------------------------------- the serialised tree


def test_one_object_stays_one_object_and_bits_stay():
    x = cg.LowRank(np.ones((3, 1)), np.ones((4, 1)))
    layout = np.arange(24.0).reshape(2, 3, 4).transpose(1, 2, 0)
    thing = {"points": (x, 2.0 * x, x), "numbers": [np.float64(0.1), np.int64(3), float("nan"), -0.0], "a": layout}
    found = snapshot(thing)
    again = restore(Serialised(*json.loads(json.dumps([found.tree, found.nodes])), found.arrays))
    one, two, three = again["points"]
    assert one is three and one.terms[0][1] is two.terms[0][1]
    assert repr(again["numbers"]) == repr(thing["numbers"])
    assert again["a"].strides == layout.strides and np.array_equal(again["a"], layout)


@pytest.mark.parametrize(
    ("tree", "nodes"),
    [
        (["node", 0], []),
        (["node", True], [["object", "condgrad.Squared", {}]] * 2),
        (["node", 0], [["node"]]),
        (["node", 0], [["array", [0], True]]),
        (["node", 0], [["object", "os.system", {}]]),
        (["node", 0], [["object", "condgrad.Certificate", {"x": 1}]]),
        (["node", 0], [["object", "condgrad.LowRank", {"terms": ["node", 0], "shape": 1}]]),
        (["node", 0], [["object", "condgrad.LowRank", {"terms": ["tuple"], "shape": ["list", 1, 1]}]]),
        (["node", 0], [["object", "condgrad.Descent", {"x": 1}]]),
        (["node", 0], [["object", "condgrad.Reason", {"status": "a", "message": 3}]]),
        (["weak", 0], [["object", "condgrad.Reason", {"status": "a", "message": "b"}]]),
        (["dict", [["list"], 1]], []),
        (["number", "O", 1], []),
        (["number", "<f4", 1e300], []),
        (["number", "|i1", 1000], []),
        (["number", "<f8", [1.0, 2.0]], []),
        (["shared", "pattern"], []),
        ({}, []),
        ([], []),
    ],
    ids=str,
)
def test_a_tree_that_does_not_fit_is_refused(tree, nodes):
    with pytest.raises(BadArchive, match=r"^file can't be used: what it holds does not fit together"), refusing("file"):
        restore(Serialised(tree, nodes, {}))


# ------------------------------------------------------------------------------------------------------ command line


def test_from_the_command_line(tmp_path, capsys):
    np.save(tmp_path / "Q.npy", np.diag([1.0, -2.0, 3.0]) + 1)
    spec, file = tmp_path / "q.toml", tmp_path / "c"
    text = '[problem]\nobjective = "quadratic"\nmatrix = "Q.npy"\n[set]\nname = "simplex"\n'
    text += '[method]\nname = "frank-wolfe"\n[stop]\nsteps = '
    spec.write_text(text + "20\n")
    assert main(["solve", str(spec), "--quiet", "--out", str(tmp_path / "whole")]) == 0
    spec.write_text(text + "9\n")
    saving = ["solve", str(spec), "--quiet", "--checkpoint", str(file), "--out", str(tmp_path / "cut")]
    assert main([*saving, "--checkpoint-every", "4"]) == 0
    assert step_of(file) == 9
    assert main(saving) == 2 and "resume" in capsys.readouterr().err
    spec.write_text(text + "20\n")
    assert main([*saving, "--resume", "--checkpoint-every", "5s"]) == 0
    assert (tmp_path / "cut" / "x.npy").read_bytes() == (tmp_path / "whole" / "x.npy").read_bytes()
    shutil.copy(tmp_path / "Q.npy", file)
    archive.previous(file).unlink()
    assert main([*saving, "--resume"]) == 2 and "can't be used" in capsys.readouterr().err
    assert main(["solve", str(spec), "--resume"]) == 2
    assert main(["solve", str(spec), "--checkpoint", str(Path("/dev/null/x"))]) == 2
    said = capsys.readouterr().err
    assert "need --checkpoint" in said and "No checkpoint can be written here" in said


def test_a_run_that_had_converged_says_the_same_when_it_is_resumed(path):
    asked = {
        "method": "ncgs",
        "inner": "corrective",
        "tol": 1e-5,
        "max_steps": 500,
        "checkpoint": path.with_name("done"),
    }
    whole = cg.minimize(*linear_model(), **asked)
    again = cg.minimize(*linear_model(), resume=True, **asked)
    assert whole.status == "converged" and "from step " in whole.message and "from step 0." not in whole.message
    assert (again.status, again.message, again.lowest.step) == (whole.status, whole.message, whole.lowest.step)
    assert again.x.tobytes() == whole.x.tobytes()


def test_term_gradients_of_another_problem_are_refused(tmp_path):
    """Fewer rows were an IndexError."""
    rng = np.random.default_rng(0)
    f = cg.LinearModel(rng.standard_normal((20, 3)), rng.standard_normal(20), cg.Welsch())
    path = tmp_path / "c"
    asked = {"method": "svfw", "store": True, "epoch": 50, "tol": 1e-12, "checkpoint": path, "validate": 1}
    cg.minimize(f, cg.L1Ball(3), max_steps=4, **asked)
    data, arrays = archive.read(path, "checkpoint", VERSION)
    archive.previous(path).unlink(missing_ok=True)
    rows = next(name for name, array in arrays.items() if len(array) == 20 and not name.startswith("trace."))
    archive.write(path, "checkpoint", VERSION, data, arrays | {rows: arrays[rows][:3]})
    with pytest.raises(ValueError, match="the gradients of 3 terms, but the objective has 20 terms"):
        cg.minimize(f, cg.L1Ball(3), max_steps=8, resume=True, **asked)
