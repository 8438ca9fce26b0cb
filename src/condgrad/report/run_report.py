"""A report of runs: of folders that ``condgrad solve`` wrote, of traces, of what ``reproduce`` kept, or of a run just ended."""

from __future__ import annotations

import csv
import io
from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.driver.environment import environment
from condgrad.driver.trace import COLUMNS
from condgrad.protocols import COUNTERS
from condgrad.report.blocks import Block, Curve, Plot, Table
from condgrad.report.folder import write
from condgrad.storage.files import read_bytes, read_json

MAX_TRACE_BYTES = 2**28
"""About a million rows: parsed they take many times as much."""
UNITS = {
    "cpu": "CPU seconds",
    **{name: f"{COUNTERS[name]} ({name.upper()})" for name in ("lo", "ub", "fo", "sfo", "ifo", "po")},
    "k": "steps",
}
LATER_COLUMNS = ("ub",)
"""Columns that traces of older versions do not have. Upper bounds were counted as lo there: none are shown."""
PROVEN = (
    "The mapping as the trace has it: measured where the spec says measure = true, else the upper bound that the method proves "
    "of itself. Compare methods that were measured."
)
MEASURE = "the squared gradient mapping at its points: set measure = true in its spec and solve it again"


@dataclass(frozen=True)
class Run:
    """One run: where it was found, its method, the columns of its trace, and its summary, empty for a bare trace."""

    path: Path
    method: str
    trace: Mapping[str, np.ndarray]
    summary: Mapping[str, Any]

    @property
    def measured(self) -> bool:
        return bool(np.isfinite(self.trace["mapping"]).any())


def read_all(paths: Sequence[Path]) -> list[Run]:
    """The runs; each is refused where it is none, has nothing to draw, or is named twice."""
    runs = [read(path) for path in paths]
    for i, run in enumerate(runs):
        if run.path.resolve() in {other.path.resolve() for other in runs[:i]}:
            raise ValueError(f"The run {paths[i]} is given twice: name each run once.")
        if not run.measured:
            raise ValueError(f"The trace of {paths[i]} has no measurement of {MEASURE}.")
    return runs


def read(path: Path) -> Run:
    """A folder of ``condgrad solve``, a trace in CSV (``trace.csv`` stands for its folder), or a run that ``reproduce`` kept."""
    if path.name == "trace.csv":
        path = path.parent
    if path.suffix == ".json":
        return read_kept(path)
    if not path.is_dir():
        return Run(path, path.stem, read_trace(path), {})
    if not (path / "trace.csv").exists():
        raise ValueError(
            f"The folder {path} holds no trace.csv: give a folder that `condgrad solve` wrote, or a trace."
        )
    summary = read_summary(path / "result.json") if (path / "result.json").exists() else {}
    return Run(path, str(summary.get("method", path.resolve().name)), read_trace(path / "trace.csv"), summary)


def read_trace(path: Path) -> dict[str, np.ndarray]:
    """The columns of a trace as floats."""
    advice = "give a trace that `condgrad solve` or Trace.to_csv wrote"
    try:
        rows = list(csv.DictReader(io.StringIO(read_bytes(path, MAX_TRACE_BYTES).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not a CSV file: {advice}.") from None
    missing = [name for name in COLUMNS if not rows or name not in (*rows[0], *LATER_COLUMNS)]
    if missing:
        lacks = f"has no column {', '.join(missing)}" if rows else "has no rows"
        raise ValueError(f"{path} is not the trace of a run, as it {lacks}: {advice}.")
    try:
        columns = {name: np.array([float(row.get(name, 0)) for row in rows]) for name in COLUMNS}
        sound = all(np.isfinite(columns[unit]).all() for unit in UNITS)
    except (TypeError, ValueError):
        sound = False
    if not sound:
        raise ValueError(f"{path} holds a cost that is not a number, or a row that is cut short: {advice}.")
    return columns


def read_kept(path: Path) -> Run:
    """A file of the folder runs/ of ``condgrad reproduce``: what it did not keep of the trace counts as not spent."""
    try:
        kept = read_json(path)
        trace, outcome = kept["outcome"]["trace"], kept["outcome"]
        columns = {name: np.array(column, dtype=float) for name, column in trace.items()}
        (rows,) = {len(column) for column in columns.values()}
        missing = {name: np.zeros(rows) if name in UNITS else np.full(rows, np.nan) for name in COLUMNS}
        sound = rows > 0 and all(np.isfinite(columns[unit]).all() for unit in columns.keys() & UNITS.keys())
        method = str(kept["run"]["method"]["name"])
    except (ValueError, KeyError, TypeError, AttributeError):
        sound = False
    if not sound:
        raise ValueError(
            f"{path} is not a run with a trace that `condgrad reproduce` kept: give one of those in runs/ that belong to a "
            "figure, a folder that `condgrad solve` wrote, or a trace in CSV."
        )
    return Run(path, method, {**missing, **columns}, {"status": outcome["status"]})


def read_summary(path: Path) -> dict[str, Any]:
    try:
        summary = read_json(path)
    except ValueError:
        summary = None
    if not isinstance(summary, dict):
        raise ValueError(
            f"{path} is not the result of a run: delete it to use the trace alone, or solve the spec again."
        )
    return summary


def labels(runs: Sequence[Run]) -> list[str]:
    """The method where that is enough, else with the folder's name, else with its whole path."""
    methods = Counter(run.method for run in runs)
    named = [run.method if methods[run.method] == 1 else f"{run.method} ({run.path.resolve().name})" for run in runs]
    names = Counter(named)
    return [
        name if names[name] == 1 else f"{run.method} ({run.path.as_posix()})"
        for run, name in zip(runs, named, strict=True)
    ]


def report_runs(runs: Sequence[Run], out: Path, title: str, facts: Mapping[str, Any], figures: bool = False) -> Path:
    """Write the report of these runs into the folder, with figures for print if asked; return the path of its page."""
    names = labels(runs)
    units = {unit: label for unit, label in UNITS.items() if any((run.trace[unit] > 0).any() for run in runs)}
    curves = [curve(run, name, units) for run, name in zip(runs, names, strict=True) if run.measured]
    silent = [name for run, name in zip(runs, names, strict=True) if not run.measured]
    note = f"Not drawn, as the trace has no measurement of {MEASURE}: {', '.join(silent)}." if silent else ""
    y = "squared gradient mapping, best so far"
    table = Table("How the runs ended", *ends(runs, names, units), note)
    plots = [Plot("convergence", "Convergence", y, units, curves, note=PROVEN)] if curves and units else []
    blocks: list[Block] = [*plots, table]
    raw = {name: {"summary": run.summary, "trace": run.trace} for run, name in zip(runs, names, strict=True)}
    return write(out, title, blocks, {**facts, **environment()}, raw, figures)


def curve(run: Run, name: str, units: Mapping[str, str]) -> Curve:
    columns = {unit: run.trace[unit] for unit in units}
    ended = run.summary.get("status")
    note = "" if ended in (None, "converged", "finished") else str(ended).replace("_", " ")
    return Curve(name, [{**columns, "y": run.trace["mapping"]}], note=note)


def ends(runs: Sequence[Run], names: Sequence[str], units: Mapping[str, str]) -> tuple[list[str], list[list[Any]]]:
    """How each run ended and what it cost: a header and rows."""
    costs = [unit for unit in units if unit != "k"]
    header = ["run", "status", "F", "best mapping", "steps", *("CPU s" if c == "cpu" else c.upper() for c in costs)]
    rows = []
    for run, name in zip(runs, names, strict=True):
        last = {unit: float(run.trace[unit][-1]) if len(run.trace[unit]) else 0.0 for unit in ("fun", "k", *costs)}
        best = float(np.nanmin(run.trace["mapping"])) if run.measured else None
        spent = [last[c] if c == "cpu" else int(last[c]) for c in costs]
        status = str(run.summary["status"]).replace("_", " ") if "status" in run.summary else None
        rows.append([name, status, run.summary.get("fun", last["fun"]), best, int(last["k"]), *spent])
    return header, rows
