"""The paper, reproduced in very small: all of it, again, after a kill, and what is said of it."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.tiny import TINY, but_for_times

from condgrad.cli import BAD_INPUT, main
from condgrad.paper import pool
from condgrad.paper import reproduce as module
from condgrad.paper.exponents import Estimate
from condgrad.paper.figure1_methods import CLAIM_1A, CLAIM_1B, FIGURE_1A, FIGURE_1B
from condgrad.paper.figures import cost_at_target, finite_or_none, observed_count, radius
from condgrad.paper.recovery import LOSSES, SHARES, ending_text
from condgrad.paper.reproduce import FULL, PARTS, QUICK, reproduce, verdict_table, without_curves
from condgrad.paper.runs import output_weights, spec_of
from condgrad.paper.tables import compare_with_bounds, exponent_text
from condgrad.paper.verdicts import RIVAL, TUNED, compare, end_note
from condgrad.protocols import Problem
from condgrad.report import Curve, folder, quartiles
from condgrad.report.style import looks
from condgrad.solvers import Setup, build, practical

ROOT = Path(__file__).parents[1]
NOT_DRAWN = ("fig1a-gaussian", "fig1b-orthonormal", "fig1b-gaussian")


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything, once and without interruption; but one plot stands for the four that are drawn in the same way."""
    out = tmp_path_factory.mktemp("whole")
    draw = folder.print_figures.draw_plot
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(folder.print_figures, "draw_plot", lambda plot, out: plot.name in NOT_DRAWN or draw(plot, out))
        reproduce(out, TINY, command="condgrad reproduce")
    return out


def data(out: Path) -> dict[str, Any]:
    return json.loads((out / "data.json").read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures for print take seconds, and what they show is tested elsewhere."""
    for name in ("draw_plot", "draw_picture"):
        monkeypatch.setattr(folder.print_figures, name, lambda block, folder: None)


def test_the_report_has_every_part(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert all(said in page for said in ("Figure 1a", "Figure 1b", "Table 1", "Table 2", "Table 3", "Recovery"))
    for name in ("fig1a-orthonormal", "recovery"):
        assert all((whole / f"{name}.{kind}").stat().st_size > 1000 for kind in ("png", "svg", "pdf"))
    facts = data(whole)["facts"]
    assert "condgrad reproduce" in page and facts["side by side"] == "1" and facts["on"] in page
    assert "colours are scaled to the truth" in page


@pytest.mark.slow
def test_the_other_plots_are_drawn_too(whole: Path, tmp_path: Path) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    reproduce(tmp_path, TINY, ["fig1a", "fig1b"])
    for name in NOT_DRAWN:
        assert all((tmp_path / f"{name}.{kind}").stat().st_size > 1000 for kind in ("png", "svg", "pdf"))


def test_the_raw_data_has_every_number(whole: Path) -> None:
    found = data(whole)
    assert set(found) == {"facts", *PARTS}
    for name, lines in (("fig1a", FIGURE_1A), ("fig1b", FIGURE_1B)):
        for generator in ("orthonormal", "gaussian"):
            part = found[name][generator]
            assert [row["method"] for row in part["rows"]] == [line.label for line in lines] == list(part["curves"])
            assert all(row["runs"] == TINY.seeds and row["mapping at the end"] > 0 for row in part["rows"])
            claim = {"fig1a": CLAIM_1A, "fig1b": CLAIM_1B}[name]
            assert [verdict["reading"] for verdict in part["verdicts"]] == [r.text for r in claim.readings]
            grids = {line.label: list(line.grid) for line in lines if len(line.grid) > 1}
            assert {label: list(found) for label, found in part["tuning"].items()} == grids
            assert part["R"] == [radius(24, 2, generator, seed) for seed in range(TINY.seeds)]
            for curves in part["curves"].values():
                assert len(curves) == TINY.seeds
                assert all(len(c["cpu"]) == len(c["y"]) == len(c["lo"]) for c in curves)
    for number, methods in (("1", 5), ("2", 3), ("3", 4)):
        assert len(found["tables"]["tables"][number]) == methods
    points = found["tables"]["tables"]["1"][0]["points"]
    assert [(p["seed"], p["n"], p["N"]) for p in points] == [(s, 1000, N) for s in (0, 1) for N in (8, 16, 32)]
    assert all(p["eps"] > 0 and p["counts"]["fo"] > 0 and p["counts"]["lo"] > 0 for p in points)
    assert [row["corrupted"] for row in found["recovery"]["rows"]] == list(SHARES)
    errors = {(p["loss"], p["corrupted"]): p["error"] for p in found["recovery"]["points"]}
    assert all(row[loss] == errors[loss, row["corrupted"]] for row in found["recovery"]["rows"] for loss in LOSSES)


def test_a_rule_without_a_bound_is_shown_without_one(whole: Path) -> None:
    row = next(row for row in data(whole)["tables"]["tables"]["1"] if row["method"] == "FW, 2/(k+2)")
    assert row["gradients bound"] is None and row["lo bound"] is None and row["reading"] == "no bound"


def test_the_robust_loss_recovers_more(whole: Path) -> None:
    for row in data(whole)["recovery"]["rows"]:
        assert row["corrupted"] == 0 or row["welsch"] < row["squared"]


def test_a_second_call_makes_no_run_and_says_the_same(
    whole: Path, undrawn: None, monkeypatch: pytest.MonkeyPatch
) -> None:
    before = data(whole)

    def refuse(*args: Any) -> None:
        raise AssertionError("a run was made again")

    monkeypatch.setattr(pool, "run_in_workers", refuse)
    reproduce(whole, TINY)
    assert {part: data(whole)[part] for part in PARTS} == {part: before[part] for part in PARTS}


@pytest.mark.parametrize(("part", "done"), [("recovery", 5), pytest.param("fig1b", 25, marks=pytest.mark.slow)])
def test_killed_in_the_middle_it_goes_on_and_says_the_same(
    part: str, done: int, whole: Path, undrawn: None, tmp_path: Path
) -> None:
    """It kills itself when some runs are done: a signal from here would come too late or too early on some machine."""
    command = [sys.executable, "-m", "tests.tiny", str(tmp_path), str(done), part]
    assert subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert not (tmp_path / "report.html").exists()
    runs = tmp_path / "runs"
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= done

    reproduce(tmp_path, TINY, [part], jobs=2)
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}.items()
    assert but_for_times(data(tmp_path)[part]) == but_for_times(data(whole)[part])


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, undrawn: None) -> None:
    monkeypatch.setattr(module, "QUICK", TINY)


def test_the_command_prints_tables_and_the_path(whole: Path, tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--quick", "--out", str(whole)]) == 0
    said = capsys.readouterr().out
    assert "What the paper claims of Figure 1" in said and "Table 3" in said and "Relative recovery error" in said
    *_, first, second, third, empty, path = said.splitlines()
    assert path == f"Report: {whole / 'report.html'}" and empty == ""
    assert first.startswith("condgrad's NCGS I ") and second.startswith("condgrad's NCGS-VR ")
    assert third.startswith("With 20% of the entries corrupted")


def test_the_command_takes_several_parts(
    whole: Path, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    assert main(["reproduce", "fig1b", "fig1a", "--quick", "--json", "--out", str(tmp_path)]) == 0
    assert list(json.loads(capsys.readouterr().out)) == ["fig1a", "fig1b"]


def test_an_unknown_part_is_refused_in_a_sentence(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "fig1a", "fig1c", "--out", str(tmp_path)]) == BAD_INPUT
    error = capsys.readouterr().err
    assert "Unknown part of the reproduction 'fig1c'" in error and error.count("\n") == 1


def test_the_command_prints_json(whole: Path, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    assert main(["reproduce", "tables", "--quick", "--json", "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["tables"] and printed["tables"] == without_curves(data(whole)["tables"])


def test_fresh_repeats_the_runs_of_its_part(whole: Path, undrawn: None, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "runs").iterdir():
        os.utime(path, (1, 1))
    reproduce(tmp_path, TINY, ["recovery"], fresh=True)
    repeated = [path for path in (tmp_path / "runs").iterdir() if path.stat().st_mtime > 1]
    assert repeated and all('"what": "recovery"' in path.read_text() for path in repeated)
    assert sorted(p.name for p in (tmp_path / "runs").iterdir()) == sorted(p.name for p in (whole / "runs").iterdir())
    assert but_for_times(data(tmp_path)["recovery"]) == but_for_times(data(whole)["recovery"])


def test_what_it_kept_can_be_made_into_a_report(whole: Path, undrawn: None, tmp_path: Path) -> None:
    kept = [path for path in sorted((whole / "runs").iterdir()) if '"what": "trace"' in path.read_text()][:3]
    assert main(["report", *map(str, kept), "--out", str(tmp_path)]) == 0
    drawn = json.loads((tmp_path / "data.json").read_text())
    assert len(drawn) == 3
    for path, run in zip(kept, drawn.values(), strict=True):
        assert run["trace"]["mapping"] == json.loads(path.read_text())["outcome"]["trace"]["mapping"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--jobs", "0"], "jobs"),
        (["--seed", "-1"], "seed"),
        (["--seeds", "0"], "number of seeds"),
    ],
)
def test_bad_input_is_said_in_a_sentence(
    arguments: list[str], said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert main(["reproduce", "--quick", "--out", str(tmp_path), *arguments]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error and error.startswith("condgrad: ") and error.count("\n") == 1
    assert not list(tmp_path.iterdir())


def test_an_out_that_is_a_file_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    (tmp_path / "file").write_text("")
    assert main(["reproduce", "tables", "--quick", "--out", str(tmp_path / "file")]) == BAD_INPUT
    error = capsys.readouterr().err
    assert "file" in error and error.count("\n") == 1


def test_an_unknown_part_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Unknown part of the reproduction 'fig1c'"):
        reproduce(tmp_path, TINY, ["fig1c"])


def test_an_interruption_is_one_sentence(
    tiny: None, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    def interrupted(*args: Any) -> Any:
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "run_in_workers", interrupted)
    assert main(["reproduce", "tables", "--quick", "--out", str(tmp_path)]) == 130
    error = capsys.readouterr().err
    assert error.startswith("condgrad: interrupted: 0 of ") and error.count("\n") == 1


# ------------------------------------------------------------------------------------------------------------- numbers


def test_both_forms_have_the_papers_sizes() -> None:
    for form in (FULL, QUICK):
        assert form.fig1a == (200, 5) and form.fig1b == (400, 8)
    run = FULL.sections(0)["fig1a"].runs()[0]
    assert run["set"]["radius"] == 5.0 and run["problem"]["sigma"] == 1.0 and run["problem"]["shape"] == [200, 200]
    rules = {setting["rule"] for line in FIGURE_1A if line.whose == RIVAL for setting in line.grid.values()}
    assert rules == {"short", "bounded", "adaptive", "open-loop", "line-search"}


def test_all_sides_get_grids_of_the_same_order() -> None:
    sizes: dict[str, int] = {}
    for line in (*FIGURE_1A, *FIGURE_1B):
        if line.whose in (TUNED, RIVAL):
            name = line.label.split(",")[0]
            sizes[name] = sizes.get(name, 0) + len(line.grid)
    assert set(sizes) == {"NCGS I", "NCGS II", "FW", "NCGS-VR", "SVFW", "SAGAFW"}
    assert all(10 <= size <= 18 for size in sizes.values()), sizes
    condg = {(s["inner"]["max_calls"], s["step_scale"]) for s in FIGURE_1A[3].grid.values()}
    assert condg == {(k, scale) for k in (1, 2, 3, 10) for scale in (1.0, 2.0, 5.0)}
    assert [{**s, "name": ""} for s in FIGURE_1A[3].grid.values()] == [
        {**s, "name": ""} for s in FIGURE_1A[4].grid.values()
    ]


def test_settings_are_chosen_on_a_seed_that_is_not_shown(whole: Path) -> None:
    for form in (FULL, TINY):
        figure = form.sections(3)["fig1a"]
        tuned = {json.dumps(run["method"]) for run in figure.runs() if run["problem"]["seed"] == figure.tuning_seed}
        assert figure.tuning_seed not in figure.seeds and list(figure.seeds) == list(range(3, 3 + form.seeds))
        assert len(tuned) == sum(len(line.grid) for line in FIGURE_1A if len(line.grid) > 1)
    part = data(whole)["fig1a"]["orthonormal"]
    for row in part["rows"]:
        if row["setting"]:
            ends = {said: found["mapping at the end"] for said, found in part["tuning"][row["method"]].items()}
            assert row["setting"] == min(ends, key=ends.__getitem__)


def test_quick_takes_presets_and_what_is_drawn() -> None:
    figure = QUICK.sections(0)["fig1b"]
    runs = figure.runs()
    assert len(runs) == sum(line.drawn for line in FIGURE_1B) and figure.follow_up_runs(None) == []
    assert {run["problem"]["seed"] for run in runs} == {0}


def solver_of(label: str, setting: int) -> Any:
    """The solver that a run of Figure 1 makes, and its problem; without a warm start around it."""
    name, lines = ("fig1a", FIGURE_1A) if label in {line.label for line in FIGURE_1A} else ("fig1b", FIGURE_1B)
    line = next(line for line in lines if line.label == label)
    run = TINY.sections(0)[name].run("orthonormal", 0, list(line.grid.values())[setting])
    spec = spec_of(run)
    options = {key: value for key, value in spec.keywords.items() if key in run["method"]}
    for key in ("inner", "schedule", "warm_start", "output", "seed", "measure", "name"):
        options.pop(key, None)
    problem = Problem(spec.objective, spec.domain)
    setup = Setup(spec.keywords.get("schedule", practical()), spec.keywords.get("inner"), 10)
    return build(spec.method, problem, setup, options), problem


def test_the_papers_method_has_the_papers_steps() -> None:
    for label in ("NCGS I, condg tuned", "NCGS-VR, condg tuned", "NCGS-VR, condg tuned, b = n/4"):
        solver, _ = solver_of(label, 0)
        assert not solver.adaptive
    lams = [solver_of("NCGS-VR, condg tuned", i)[0].lam for i in range(3)]
    assert lams == pytest.approx([0.2 / 6, 1 / 6, 5 / 6])
    assert solver_of("NCGS II, condg tuned", 2)[0].step_scale == 5.0


def test_rivals_get_the_same_epochs_and_batches() -> None:
    n = observed_count(24, 2, "orthonormal", 0)
    for label in ("NCGS-VR, condg tuned, b = n/4", "SVFW, tuned, b = n/4"):
        estimator = solver_of(label, 0)[0].estimator
        assert (estimator.epoch, estimator.batch) == (5, n // 4)
    assert solver_of("SAGAFW, tuned", 6)[0].estimator.batch == n // 4


@pytest.mark.parametrize("label", ["SVFW, tuned", "SAGAFW, tuned"])
def test_the_step_of_a_tuned_rival_is_the_one_that_is_named(label: str) -> None:
    solver, problem = solver_of(label, 2)
    assert solver.init(problem, problem.domain.start()).scale == pytest.approx(0.1)


def test_the_law_of_the_output_is_the_papers() -> None:
    k = np.arange(5)
    assert output_weights("stochastic-ncgs", k).tolist() == [0, 2, 6, 12, 20]
    assert output_weights("ncgs-vr", k).tolist() == [1, 1, 1, 1, 0]


def test_the_target_is_reached_at_the_first_row_below_it() -> None:
    trace = {
        "mapping": [1.0, None, 5e-4, 2e-3, 1e-4],
        **{unit: [0, 1, 2, 3, 4] for unit in ("cpu", "fo", "ifo", "lo", "ub")},
    }
    assert cost_at_target({"trace": trace})["cpu"] == 2
    assert finite_or_none(quartiles([1.0, 2.0, 3.0, np.inf, np.inf])) == [2.0, 3.0, None]
    assert finite_or_none(quartiles([1.0, np.inf, np.inf])) == [1.0, None, None]


def test_a_radius_has_twelve_digits() -> None:
    R = radius(24, 2, "gaussian", 0)
    assert float(f"{R:.12g}") == R


def test_no_two_curves_of_a_figure_have_one_colour() -> None:
    for lines in (FIGURE_1A, FIGURE_1B):
        curves = [Curve(line.label, [], line.whose) for line in lines if line.drawn]
        assert len({look.colour for look in looks(curves)}) == len(curves)


def test_seeds_that_were_not_fitted_are_said() -> None:
    nan = float("nan")
    assert exponent_text(Estimate(0.9, 0.05, 5)._asdict(), 5) == "0.90±0.05"
    assert exponent_text(Estimate(0.9, 0.05, 3)._asdict(), 5) == "0.90±0.05 (3 of 5 seeds)"
    assert exponent_text(Estimate(0.9, nan, 1)._asdict(), 5) == "0.90 (1 of 5 seeds)"
    none = Estimate(nan, nan, 0)
    assert exponent_text(none._asdict(), 5) == "-" and compare_with_bounds([(none, 1.0)]) == "not fitted"
    assert compare_with_bounds([], (Estimate(0.9, 0.05, 5), none)) == "not fitted"


def test_recovery_says_how_many_converged() -> None:
    points = [{"status": status} for status in ("converged", "converged", "out_of_budget", "failed", "unverified")]
    assert ending_text(points[:2]) == "2 of 2 runs converged."
    assert ending_text(points) == "2 of 5 runs converged, 1 ended at their budget, 2 failed and are left out."


def test_curves_are_not_printed(whole: Path) -> None:
    said = json.dumps(without_curves(data(whole)))
    assert "curves" not in said and '"points"' not in said


# ------------------------------------------------------------------------------------------------------------ verdicts


def row(
    times: list[float | None], ends: list[float] | None = None, budget: float = 10.0, **more: Any
) -> dict[str, Any]:
    """A method's row, from the time to the target and the least mapping of each seed."""
    ends = ends or [1e-4] * len(times)
    middle = finite_or_none([quartiles([np.inf if t is None else t for t in times])[1]])[0]
    spent = [budget if t is None else t for t in times]
    return {
        "method": "a method",
        "cpu": middle,
        "cpu spent": float(np.median(spent)),
        "mapping at the end": float(np.median(ends)),
        "times": times,
        "spent": spent,
        "ends": ends,
        "failures": [False] * len(times),
        "runs": len(times),
        "reached": sum(t is not None for t in times),
        "steps": 9,
        "failed": 0,
        "why": "",
        **more,
    }


NONE = [None, None, None]


@pytest.mark.parametrize(
    ("own", "rival", "seen", "by"),
    [
        (row([1.0, 1.0, 2.0]), row([7.0, 6.0, 8.0]), "yes", "7 times as fast (4 to 7)"),
        (row([2.0, 2.0, 2.0]), row([1.0, 1.0, 0.5]), "no", "2 times slower (2 to 4)"),
        (row([2.0, 2.0, 2.0]), row([2.2, 1.9, 2.1]), "tie", "1.05 times as fast (0.95 to 1.1)"),
        (row([2.0, 2.0, 2.0]), row([2.2, 2.1, 2.1]), "yes", "1.05 times as fast (1.05 to 1.1)"),
        (row([2.0, 2.0, 2.0]), row([3.0, 3.0, 1.0]), "yes", "1.5 times as fast (0.5 to 1.5)"),
        (row([2.0, 2.0, 4.0]), row(NONE, [0.1] * 3), "yes", "more than 5 times as fast (>2.5 to >5)"),
        (row(NONE, [0.1] * 3), row([2.0, 2.0, 4.0]), "no", "more than 5 times slower (>2.5 to >5)"),
        (row([2.0, 2.0, None]), row([4.0, 6.0, 5.0]), "yes", "2.5 times as fast (0.5 to 3)"),
        (row(NONE, [0.1, 0.2, 0.1]), row(NONE, [0.3, 0.4, 0.5]), "yes", "mapping 4 times lower after 10 s (2 to 5)"),
        (row(NONE, [0.4] * 3), row(NONE, [0.1] * 3), "no", "mapping 4 times higher after 10 s (4 to 4)"),
        (row([2.0]), row([2.4]), "tie", "1.2 times as fast"),
        (row([2.0]), row([3.0]), "yes", "1.5 times as fast"),
        (row([2.0]), row([None]), "yes", "more than 5 times as fast"),
    ],
)
def test_the_verdict_follows_from_the_numbers(own: dict[str, Any], rival: dict[str, Any], seen: str, by: str) -> None:
    found = compare(own, rival)
    assert (found["seen"], found["by"]) == (seen, by)


def test_a_failed_run_is_no_ratio() -> None:
    own = row([1.0, 1.0, 1.0])
    rival = row([None, 3.0, 3.0], failures=[True, False, False], failed=1, cpu=3.0)
    found = compare(own, rival)
    assert found["ratios"] == [None, 3.0, 3.0] and found["by"].endswith("; 1 of 3 runs of a method failed")
    lost = row(NONE, failures=[True] * 3, failed=3, why="NaN.")
    assert compare(own, lost)["seen"] == "a method failed" and compare(own, lost)["ratio"] is None


def verdicts(claim: str, *seen: str) -> list[dict[str, Any]]:
    return [{"reading": f"{claim} {i}", "seen": said, "by": f"by {i}"} for i, said in enumerate(seen)]


def test_the_verdict_table_is_short_and_names_each_claim_once() -> None:
    first = {"claim": "1a", "seeds": [0, 1], "orthonormal": {"verdicts": verdicts("a", "yes", "tie")}}
    second = {"claim": "1b", "seeds": [0, 1], "orthonormal": {"verdicts": verdicts("b", "no")}}
    table = verdict_table([first, second])
    assert table.header == ["claim of the paper", "reading", "seen", "by how much"]
    assert table.rows == [["1a", "a 0", "yes", "by 0"], ["", "a 1", "tie", "by 1"], ["1b", "b 0", "no", "by 0"]]
    assert "orthonormal" in table.caption and "order is not the same on all seeds" in table.note
    one = verdict_table([{**first, "seeds": [0]}])
    assert one.note.startswith("One seed") and "range" not in one.note
    both = verdict_table([{**first, "gaussian": first["orthonormal"]}])
    assert both.header[2:] == ["orthonormal", "by how much", "gaussian", "by how much"]


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (row([1.0]), ""),
        (row(NONE, [0.1] * 3), "0.1 after 10 s"),
        (row([None, None, 3.0], [0.1] * 3), "0.1 after 10 s, 1 of 3 seeds at the target"),
        (row(NONE, [0.1] * 3, steps=0), "no step done in 10 s"),
        (row(NONE, [0.1] * 3, failed=2, why="NaN."), "2 of 3 runs failed: NaN."),
    ],
)
def test_a_curve_says_why_it_ends(ended: dict[str, Any], said: str) -> None:
    assert end_note(ended) == said


def test_a_failed_run_is_not_said_to_take_longer() -> None:
    def outcome(status: str, found: float) -> dict[str, Any]:
        trace = {"mapping": [1.0, found], **{unit: [0.0, 1.0] for unit in ("cpu", "fo", "ifo", "lo", "ub")}}
        return {"status": status, "message": "Why.", "steps": 3, "cpu": 2.0, "trace": trace}

    figure = TINY.sections(0)["fig1a"]
    there, not_there, failed = outcome("converged", 1e-4), outcome("out_of_budget", 0.1), outcome("failed", 0.1)
    assert figure.row(FIGURE_1A[0], "", [there, not_there, not_there])["cpu"] is None
    with_failures = figure.row(FIGURE_1A[0], "", [there, failed, failed])
    assert with_failures["cpu"] == 1.0 and with_failures["reached"] == 1 and with_failures["failed"] == 2
    none = figure.row(FIGURE_1A[0], "", [failed, failed])
    assert none["cpu"] is None and end_note(none) == "2 of 2 runs failed: Why."


# --------------------------------------------------------------------------------------------------- the first screen


def test_the_page_begins_with_the_paper_its_problem_one_figure_and_the_verdicts(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    order = ['class="opening"', "https://arxiv.org/abs/1708.04783", "Non-convex Conditional Gradient Sliding", "<math "]
    order += ['class="finding"', '<figure class="plot">', "What the paper claims of Figure 1", "cost to the target"]
    places = [page.index(said) for said in order]
    assert places == sorted(places)
    assert page[: page.index("What the paper claims")].count("<figure") == 2
    assert "can't be judged" not in page
    body = page[: page.index('<script type="application/json"')]
    paragraphs = [p.split("</p>")[0] for p in body.split("<p")[1:]]
    assert len(set(paragraphs)) == len(paragraphs), "a paragraph stands twice"


def test_one_seed_has_no_quartiles_and_no_range(whole: Path, undrawn: None, tmp_path: Path) -> None:
    shutil.copytree(whole / "runs", tmp_path / "runs")
    page, _ = reproduce(tmp_path, TINY, ["fig1a", "recovery"], seeds=1)
    shown = page.read_text(encoding="utf-8")
    body = shown[: shown.index('<script type="application/json"')]
    assert not any(word in body.lower() for word in ("quartile", "median", ">range<", "(s)"))
    assert '"low"' not in shown[shown.index('id="plots"') : shown.index('id="data"')]
