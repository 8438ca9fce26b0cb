"""`condgrad report`: pages of runs that were solved, and what is refused."""

from __future__ import annotations

import csv
import sys
from dataclasses import replace
from math import nan
from pathlib import Path

import numpy as np
import pytest
from tests.pages import Elements, strictly, undrawn

from condgrad.cli import BAD_INPUT, main
from condgrad.report.run_report import read, read_all, report_runs

SPEC = """
[problem]
objective = "quadratic"
matrix = "Q.npy"
[set]
name = "simplex"
[method]
name = "METHOD"
[stop]
steps = 6
"""


def solved(folder: Path, name: str, method: str) -> Path:
    folder.mkdir(parents=True, exist_ok=True)
    Q = np.random.default_rng(0).normal(size=(12, 12))
    np.save(folder / "Q.npy", Q + Q.T)
    spec = folder / f"{name}.toml"
    spec.write_text(SPEC.replace("METHOD", method), encoding="utf-8")
    with undrawn():
        assert main(["solve", str(spec), "--quiet", "--out", str(folder / name)]) == 0
    return folder / name


def labels_of(page: Path) -> list[str]:
    (plot,) = strictly(Elements(page.read_text(encoding="utf-8")).text("plots"))
    return [curve["label"] for curve in plot["curves"]]


@pytest.fixture(scope="module")
def runs(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("runs")
    solved(folder, "one", "ncgs")
    solved(folder, "two", "frank-wolfe")
    solved(folder / "more", "two", "frank-wolfe")
    return folder


def test_runs_become_a_report(runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    given = [str(runs / name) for name in ("one", "two")]
    assert main(["report", *given, "--out", str(tmp_path / "r"), "--title", "Mine & yours"]) == 0
    page = tmp_path / "r" / "report.html"
    assert capsys.readouterr().out == f"Report: {page}\n"
    assert labels_of(page) == ["ncgs", "frank-wolfe"]
    elements = Elements(page.read_text(encoding="utf-8"))
    assert elements.text("title").strip() == "Mine & yours" and "out of budget" in elements.text("td")
    data = strictly((tmp_path / "r" / "data.json").read_text(encoding="utf-8"))
    assert data["ncgs"]["summary"]["steps"] == 6 and len(data["frank-wolfe"]["trace"]["lo"]) == 7
    (plot,) = strictly(elements.text("plots"))
    assert [unit["key"] for unit in plot["units"]] == ["cpu", "lo", "fo", "po", "k"]


def test_solve_writes_the_same_report_of_its_run(runs: Path) -> None:
    assert labels_of(runs / "one" / "report.html") == ["ncgs"]


def test_labels_say_as_much_as_is_needed(runs: Path, tmp_path: Path) -> None:
    (tmp_path / "bare.csv").write_bytes((runs / "one" / "trace.csv").read_bytes())
    given = [runs / "two", runs / "more" / "two" / "trace.csv", tmp_path / "bare.csv"]
    with undrawn():
        assert main(["report", *map(str, given), "--out", str(tmp_path / "r")]) == 0
    same = [f"frank-wolfe ({(runs / name).as_posix()})" for name in ("two", "more/two")]
    assert labels_of(tmp_path / "r" / "report.html") == [*same, "bare"]


@pytest.mark.filterwarnings("default")
def test_missing_figures_are_said_in_a_sentence(
    runs: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    assert main(["report", str(runs / "one"), "--out", str(tmp_path / "r"), "--figures"]) == 2
    error = capsys.readouterr().err
    assert error.startswith("condgrad: Figures for print (PNG, SVG, PDF) need matplotlib") and error.count("\n") == 1
    assert main(["report", str(runs / "one"), "--out", str(tmp_path / "r")]) == 0
    assert capsys.readouterr().err == "" and (tmp_path / "r" / "report.html").exists()


def damaged(runs: Path, folder: Path, what: str) -> list[Path]:
    """A run that is none, in one of the ways in which that happens."""
    trace = (runs / "one" / "trace.csv").read_text(encoding="utf-8")
    run = folder / "run"
    run.mkdir()
    (run / "trace.csv").write_text(trace, encoding="utf-8")
    if what == "an empty folder":
        (run / "trace.csv").unlink()
    elif what == "a result that is none":
        (run / "result.json").write_text("[1, 2", encoding="utf-8")
    elif what == "another table":
        (run / "trace.csv").write_text("a,b\n1,2\n", encoding="utf-8")
    elif what == "no rows":
        (run / "trace.csv").write_text(trace.splitlines()[0] + "\n", encoding="utf-8")
    elif what == "a cost that is none":
        (run / "trace.csv").write_text(trace.replace("\n1,", "\nnan,"), encoding="utf-8")
    elif what == "a row cut short":
        (run / "trace.csv").write_text(trace[: len(trace) - 30], encoding="utf-8")
    elif what == "bytes":
        (run / "trace.csv").write_bytes(b"\xff\xfe\x00")
    elif what == "no such thing":
        return [folder / "nowhere"]
    elif what == "a duplicate":
        return [runs / "one", runs / "two", runs / "one" / "trace.csv"]
    elif what == "nothing measured":
        header, *rows = csv.reader(trace.splitlines())
        at = header.index("mapping")
        lines = [header, *([*row[:at], "nan", *row[at + 1 :]] for row in rows)]
        (run / "trace.csv").write_text("\n".join(map(",".join, lines)), encoding="utf-8")
    return [run]


@pytest.mark.parametrize(
    ("what", "said"),
    [
        ("an empty folder", "has no trace.csv: give a folder that `condgrad solve` wrote"),
        ("a result that is none", "result.json is not the result of a run"),
        ("another table", "is not the trace of a run, as it has no column k"),
        ("no rows", "is not the trace of a run, as it has no rows"),
        ("a cost that is none", "has a cost that is not a number"),
        ("a row cut short", "an incomplete row"),
        ("bytes", "is not a CSV file"),
        ("no such thing", "No such file or directory"),
        ("a duplicate", "trace.csv is given twice: name each run once"),
        ("nothing measured", "set measure = true in its spec"),
    ],
)
def test_what_is_no_run_is_said_in_a_sentence(
    what: str, said: str, runs: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    given = damaged(runs, tmp_path, what)
    capsys.readouterr()
    assert main(["report", *map(str, given), "--out", str(tmp_path / "r")]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error and error.startswith("condgrad: ") and error.count("\n") == 1
    assert not (tmp_path / "r").exists()


def test_a_run_without_a_measurement_is_in_the_table_and_the_report_says_what_to_do(runs: Path, tmp_path: Path) -> None:
    """As when a run that has just ended never finished its first step."""
    ended = read(runs / "one")
    silent = replace(ended, trace={**ended.trace, "mapping": np.full(len(ended.trace["k"]), nan)})
    with undrawn():
        elements = Elements(report_runs([silent], tmp_path, "T", {}).read_text(encoding="utf-8"))
    assert strictly(elements.text("plots")) == [] and "set measure = true" in elements.text("p")
    assert "out of budget" in elements.text("td")


@pytest.mark.parametrize(
    "text", ["{}", "[]", "no", '{"run": {"method": {"name": "x"}}, "outcome": {"trace": {"cpu": []}}}']
)
def test_json_that_is_no_kept_run_is_refused_in_a_sentence(tmp_path: Path, text: str) -> None:
    (tmp_path / "abc.json").write_text(text)
    with pytest.raises(ValueError, match=r"abc.json is not a run with a trace of `condgrad reproduce`: give"):
        read_all([tmp_path / "abc.json"])
