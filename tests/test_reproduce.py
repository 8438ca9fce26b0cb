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
from condgrad.experiments import pool
from condgrad.experiments import reproduce as module
from condgrad.experiments.exponents import Estimate
from condgrad.experiments.figures import FIGURE_1A, FIGURE_1B, HEADLINES, known, radius, reached
from condgrad.experiments.recovery import LOSSES, SHARES, how_they_ended
from condgrad.experiments.reproduce import FULL, PARTS, QUICK, in_text, reproduce, without_curves
from condgrad.experiments.runs import law
from condgrad.experiments.tables import exponent, reading
from condgrad.experiments.verdicts import OURS, PAPER, RIVAL, TUNED, Claim, note, verdict
from condgrad.report import Curve, quartiles, writing
from condgrad.report.look import looks
from condgrad.solvers.frank_wolfe import RULES

ROOT = Path(__file__).parents[1]


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Everything, once and without interruption."""
    out = tmp_path_factory.mktemp("whole")
    reproduce(out, TINY, command="condgrad reproduce")
    return out


def data(out: Path) -> dict[str, Any]:
    return json.loads((out / "data.json").read_text(encoding="utf-8"))


@pytest.fixture
def undrawn(monkeypatch: pytest.MonkeyPatch) -> None:
    """Figures for print take seconds, and what they show is tested elsewhere."""
    for name in ("draw_plot", "draw_picture"):
        monkeypatch.setattr(writing.figures, name, lambda block, folder: None)


def test_the_report_has_every_part(whole: Path) -> None:
    page = (whole / "report.html").read_text(encoding="utf-8")
    assert all(said in page for said in ("Figure 1a", "Figure 1b", "Table 1", "Table 2", "Table 3", "Recovery"))
    for name in ("fig1a-orthonormal", "fig1a-gaussian", "fig1b-orthonormal", "fig1b-gaussian", "recovery"):
        assert all((whole / f"{name}.{kind}").stat().st_size > 1000 for kind in ("png", "svg", "pdf"))
    facts = data(whole)["facts"]
    assert "condgrad reproduce" in page and facts["side by side"] == "1" and facts["on"] in page
    assert "colours are scaled to the truth" in page


def test_the_raw_data_has_every_number(whole: Path) -> None:
    found = data(whole)
    assert set(found) == {"facts", *PARTS}
    for name, lines in (("fig1a", FIGURE_1A), ("fig1b", FIGURE_1B)):
        for generator in ("orthonormal", "gaussian"):
            part = found[name][generator]
            assert [row["method"] for row in part["rows"]] == [line.label for line in lines] == list(part["curves"])
            assert all(row["runs"] == TINY.seeds and row["mapping at the end"] > 0 for row in part["rows"])
            assert len(part["verdict"]) == (4 if name == "fig1a" else 3)
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

    monkeypatch.setattr(pool, "made", refuse)
    reproduce(whole, TINY)
    assert {part: data(whole)[part] for part in PARTS} == {part: before[part] for part in PARTS}


def test_killed_in_the_middle_it_goes_on_and_says_the_same(whole: Path, undrawn: None, tmp_path: Path) -> None:
    """It kills itself when 25 runs are done: a signal from here would come too late or too early on some machine."""
    command = [sys.executable, "-m", "tests.tiny", str(tmp_path), "25", "fig1b", "tables"]
    assert subprocess.run(command, cwd=ROOT, stderr=subprocess.DEVNULL).returncode == -signal.SIGKILL
    assert not (tmp_path / "report.html").exists()
    runs = tmp_path / "runs"
    kept = {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}
    assert len(kept) >= 25

    reproduce(tmp_path, TINY, ["fig1b", "tables"], jobs=2)
    assert kept.items() <= {path: path.stat().st_mtime_ns for path in runs.glob("*.json")}.items()
    for part in ("fig1b", "tables"):
        assert but_for_times(data(tmp_path)[part]) == but_for_times(data(whole)[part])


# -------------------------------------------------------------------------------------------------------- command line


@pytest.fixture
def tiny(monkeypatch: pytest.MonkeyPatch, undrawn: None) -> None:
    monkeypatch.setattr(module, "QUICK", TINY)


def test_the_command_prints_tables_and_the_path(whole: Path, tiny: None, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["reproduce", "--quick", "--out", str(whole)]) == 0
    said = capsys.readouterr().out
    assert "Figure 1b, gaussian: what is seen" in said and "Table 3" in said and "Relative recovery error" in said
    assert said.endswith(f"Report: {whole / 'report.html'}\n")


def test_the_command_prints_json(whole: Path, tiny: None, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    assert main(["reproduce", "tables", "--quick", "--json", "--out", str(tmp_path)]) == 0
    printed = json.loads(capsys.readouterr().out)
    assert list(printed) == ["tables"] and printed["tables"] == without_curves(data(whole)["tables"])


def test_fresh_makes_the_runs_of_its_part_anew(whole: Path, undrawn: None, tmp_path: Path) -> None:
    shutil.copytree(whole, tmp_path, dirs_exist_ok=True)
    for path in (tmp_path / "runs").iterdir():
        os.utime(path, (1, 1))
    reproduce(tmp_path, TINY, ["recovery"], fresh=True)
    anew = [path for path in (tmp_path / "runs").iterdir() if path.stat().st_mtime > 1]
    assert anew and all('"what": "recovery"' in path.read_text() for path in anew)
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

    monkeypatch.setattr(pool, "made", interrupted)
    assert main(["reproduce", "tables", "--quick", "--out", str(tmp_path)]) == 130
    error = capsys.readouterr().err
    assert error.startswith("condgrad: interrupted: 0 of ") and error.count("\n") == 1


# ------------------------------------------------------------------------------------------------------------- numbers


def test_both_forms_have_the_papers_sizes() -> None:
    for form in (FULL, QUICK):
        assert form.fig1a == (200, 5) and form.fig1b == (400, 8)
    run = FULL.sections(0)["fig1a"].runs()[0]
    assert run["set"]["radius"] == 5.0 and run["problem"]["sigma"] == 1.0 and run["problem"]["shape"] == [200, 200]
    rules = {line.settings[0]["rule"] for line in FIGURE_1A if line.whose == RIVAL}
    assert rules == set(RULES)


def test_the_law_of_the_output_is_the_papers() -> None:
    k = np.arange(5)
    assert law("stochastic-ncgs", k).tolist() == [0, 2, 6, 12, 20]
    assert law("ncgs-vr", k).tolist() == [1, 1, 1, 1, 0]


def test_the_target_is_reached_at_the_first_row_below_it() -> None:
    trace = {"mapping": [1.0, None, 5e-4, 2e-3, 1e-4], **{unit: [0, 1, 2, 3, 4] for unit in ("cpu", "fo", "ifo", "lo")}}
    assert reached({"trace": trace})["cpu"] == 2
    assert known(quartiles([1.0, 2.0, 3.0, np.inf, np.inf])) == [2.0, 3.0, None]
    assert known(quartiles([1.0, np.inf, np.inf])) == [1.0, None, None]


def test_a_radius_has_twelve_digits() -> None:
    R = radius(24, 2, "gaussian", 0)
    assert float(f"{R:.12g}") == R


def test_headlines_have_their_own_colours() -> None:
    for lines in (FIGURE_1A, FIGURE_1B):
        curves = [Curve(line.label, [], line.whose, headline=line.label in HEADLINES) for line in lines]
        colours = {curve.label: look.colour for curve, look in zip(curves, looks(curves), strict=True)}
        others = {colour for label, colour in colours.items() if label not in HEADLINES}
        own = [colours[label] for label in HEADLINES if label in colours]
        assert own and len(set(own)) == len(own) and not others & set(own)


def test_seeds_that_were_not_fitted_are_said() -> None:
    nan = float("nan")
    assert exponent(Estimate(0.9, 0.05, 5)._asdict(), 5) == "0.90±0.05"
    assert exponent(Estimate(0.9, 0.05, 3)._asdict(), 5) == "0.90±0.05 (3 of 5 seeds)"
    assert exponent(Estimate(0.9, nan, 1)._asdict(), 5) == "0.90 (1 of 5 seeds)"
    none = Estimate(nan, nan, 0)
    assert exponent(none._asdict(), 5) == "-" and reading([(none, 1.0)]) == "not fitted"
    assert reading([], (Estimate(0.9, 0.05, 5), none)) == "not fitted"


def test_recovery_says_how_many_converged() -> None:
    points = [{"status": status} for status in ("converged", "converged", "out_of_budget", "failed", "unverified")]
    assert how_they_ended(points[:2]) == "2 of 2 runs converged."
    assert how_they_ended(points) == "2 of 5 runs converged, 1 ended at their budget, 2 failed and are left out."


def test_curves_are_not_printed(whole: Path) -> None:
    said = json.dumps(without_curves(data(whole)))
    assert "curves" not in said and '"points"' not in said


# ------------------------------------------------------------------------------------------------------------ verdicts

CLAIM = Claim("NCGS", "the best rule", 6.0, "")


def row(whose: str, cpu: float | None, end: float = 1e-4, spent: float = 10.0, **more: Any) -> dict[str, Any]:
    at = {"method": f"a {whose}", "whose": whose, "cpu": cpu, "mapping at the end": end, "cpu spent": spent}
    return {**at, "reached": 5 if cpu else 0, "runs": 5, "steps": 9, "failed": 0, "why": "", **more}


@pytest.mark.parametrize(
    ("own", "rival", "said"),
    [
        (row(PAPER, 1.0), row(RIVAL, 7.0), "7 times as long. This agrees with the paper (6 times or more)."),
        (row(PAPER, 1.0), row(RIVAL, 3.0), "in direction, but by less than a factor of 6."),
        (row(TUNED, 1.0), row(RIVAL, None, 0.1), "more than 10 times as long. This agrees with the paper (6"),
        (
            row(PAPER, 4.0),
            row(RIVAL, None, 0.1),
            "more than 2.5 times as long. This agrees with the paper in direction; whether",
        ),
        (row(PAPER, 20.0), row(RIVAL, None, 0.1), "can't be judged: the rival was given less time"),
        (row(PAPER, 3.0), row(RIVAL, 2.0), "0.67 times as long. This disagrees with the paper: the order is reversed."),
        (
            row(PAPER, None, 0.5),
            row(RIVAL, 2.0),
            "(it came to 0.5); the best rule (a compared with) reached 0.001 in 2 s",
        ),
        (row(PAPER, None, 0.5), row(RIVAL, 2.0), "This disagrees with the paper: the order is reversed."),
        (row(TUNED, None, 0.5), row(RIVAL, None, 0.1), "NCGS's mapping is not the lower one."),
        (row(TUNED, None, 0.05), row(RIVAL, None, 0.1), "NCGS's mapping is the lower one."),
        (
            row(PAPER, 1.0),
            row(RIVAL, None, 0.1, reached=2),
            "0.001 in 10 s (it came to 0.1) in the median; 2 of 5 seeds did. This agrees with the paper in direction, in the",
        ),
        (row(PAPER, 1.0), row(RIVAL, None, 0.1, failed=5), "failed in 5 of 5 runs, after 10 s (it came to 0.1)"),
        (row(PAPER, 1.0), row(RIVAL, None, 0.1, failed=5), "The claim can't be judged: the best rule failed."),
        (row(PAPER, None, 0.1, failed=1), row(RIVAL, 1.0), "The claim can't be judged: NCGS failed."),
        (row(PAPER, None, 30.0, steps=0), row(RIVAL, 1.0), "did not finish its first step in 10 s; the best rule"),
        (row(PAPER, None, 30.0, steps=0), row(RIVAL, None, 50.0), ". The claim can't be judged."),
        (row(OURS, 1.0), row(RIVAL, 7.0), "7 times as long. This is condgrad's implementation (spectral solver, adap"),
    ],
)
def test_the_verdict_says_what_the_rows_say(own: dict[str, Any], rival: dict[str, Any], said: str) -> None:
    (sentence,) = verdict([own, rival], CLAIM, 1e-3)
    assert said in sentence
    assert own["whose"] != OURS or "agrees" not in sentence
    assert not (rival["failed"] or (rival["reached"] and rival["cpu"] is None)) or "more than" not in sentence


@pytest.mark.parametrize(
    ("ended", "said"),
    [
        (row(RIVAL, 1.0), ""),
        (row(RIVAL, None, 0.1), "ended at its budget, after 10 s, at 0.1"),
        (row(RIVAL, None, 0.1, reached=1), "ended at its budget, after 10 s, at 0.1; 1 of 5 seeds reached the target"),
        (row(RIVAL, None, 0.1, steps=0), "did not finish its first step in 10 s"),
        (row(RIVAL, None, 0.1, failed=2, why="NaN."), "2 of 5 runs failed: NaN."),
    ],
)
def test_a_curve_says_why_it_ends(ended: dict[str, Any], said: str) -> None:
    assert note(ended) == said


def test_a_failed_run_is_not_said_to_take_longer() -> None:
    def outcome(status: str, found: float) -> dict[str, Any]:
        trace = {"mapping": [1.0, found], **{unit: [0.0, 1.0] for unit in ("cpu", "fo", "ifo", "lo")}}
        return {"status": status, "message": "Why.", "steps": 3, "cpu": 2.0, "trace": trace}

    figure = TINY.sections(0)["fig1a"]
    there, not_there, failed = outcome("converged", 1e-4), outcome("out_of_budget", 0.1), outcome("failed", 0.1)
    assert figure.row(FIGURE_1A[0], 0, [there, not_there, not_there])["cpu"] is None
    with_failures = figure.row(FIGURE_1A[0], 0, [there, failed, failed])
    assert with_failures["cpu"] == 1.0 and with_failures["reached"] == 1 and with_failures["failed"] == 2
    none = figure.row(FIGURE_1A[0], 0, [failed, failed])
    assert none["cpu"] is None and note(none) == "2 of 2 runs failed: Why."


def test_the_verdict_of_figure_1a_speaks_of_the_rough_oracle() -> None:
    rows = [row(PAPER, 5.0), row(RIVAL, 8.0)]
    assert "'rough frank-wolfe'" in verdict(rows, module.CLAIM_1A, 1e-3)[-1] and len(verdict(rows, CLAIM, 1e-3)) == 1


def test_the_verdict_takes_the_best_of_each_side() -> None:
    rows = [row(OURS, 5.0), row(OURS, 1.0), row(PAPER, None), row(RIVAL, 8.0), row(RIVAL, None, 1e-9)]
    paper, ours = verdict(rows, CLAIM, 1e-3)
    assert "8 times as long" in ours and ours.startswith("NCGS, as a user gets it")
    assert paper.startswith("NCGS, the paper to the letter") and "reversed" in paper


def test_the_terminal_sees_tables_and_findings() -> None:
    from condgrad.report import Table, Text

    text = "".join(in_text([Text("Recipe", ["long"]), Text("1a: what is seen", ["A."]), Table("T", ["a"], [[1.0]])]))
    assert "- A." in text and "T\n\na" in text and "long" not in text
