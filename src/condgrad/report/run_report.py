"""Report on runs: folders of ``condgrad solve``, traces, run files of ``condgrad reproduce``, or a run that has just ended."""

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
from condgrad.driver.trace import NUMERIC_COLUMNS
from condgrad.protocols import COUNTERS
from condgrad.report.blocks import Block, Curve, Plot, Table
from condgrad.report.folder import write
from condgrad.storage.files import read_bytes, read_json

MAX_TRACE_BYTES = 2**28
"""Maximum size of a trace file, about a million rows; parsed, they take many times as much memory."""
UNITS = {
    "cpu": "CPU seconds",
    **{name: f"{COUNTERS[name]} ({name.upper()})" for name in ("lo", "ub", "fo", "sfo", "ifo", "po")},
    "k": "steps",
}
"""Column of the trace and label of the x-axis, for each unit of cost."""
LATER_COLUMNS = ("ub",)
"""Columns that traces of older versions do not have. Upper bounds were counted as lo there: none are shown."""
MAPPING_NOTE = (
    "The mapping as recorded in the trace: measured if the spec has measure = true, else the upper bound that the method itself "
    "computes. To compare methods, measure all of them."
)
MEASURE_ADVICE = "the squared gradient mapping at its points: set measure = true in its spec and solve it again"


@dataclass(frozen=True)
class Run:
    """One run: its path, method, columns of the trace, and summary (empty if there is only a trace)."""

    path: Path
    method: str
    trace: Mapping[str, np.ndarray]
    summary: Mapping[str, Any]

    @property
    def measured(self) -> bool:
        """Whether the trace has a value of the mapping."""
        return bool(np.isfinite(self.trace["mapping"]).any())


def read_all(paths: Sequence[Path]) -> list[Run]:
    """Read runs. Raises ValueError if a path is no run, is given twice, or has no value of the mapping to draw."""
    runs = [read(path) for path in paths]
    for i, run in enumerate(runs):
        if run.path.resolve() in {other.path.resolve() for other in runs[:i]}:
            raise ValueError(f"The run {paths[i]} is given twice: name each run once.")
        if not run.measured:
            raise ValueError(f"The trace of {paths[i]} has no measurement of {MEASURE_ADVICE}.")
    return runs


def read(path: Path) -> Run:
    """Read a folder of ``condgrad solve``, a CSV trace (``trace.csv`` means its folder), or a run file of ``reproduce``."""
    if path.name == "trace.csv":
        path = path.parent
    if path.suffix == ".json":
        return read_reproduced(path)
    if not path.is_dir():
        return Run(path, path.stem, read_trace(path), {})
    if not (path / "trace.csv").exists():
        raise ValueError(f"The folder {path} has no trace.csv: give a folder that `condgrad solve` wrote, or a trace.")
    summary = read_summary(path / "result.json") if (path / "result.json").exists() else {}
    return Run(path, str(summary.get("method", path.resolve().name)), read_trace(path / "trace.csv"), summary)


def read_trace(path: Path) -> dict[str, np.ndarray]:
    """Read the columns of a trace as floats."""
    advice = "give a trace that `condgrad solve` or Trace.to_csv wrote"
    try:
        rows = list(csv.DictReader(io.StringIO(read_bytes(path, MAX_TRACE_BYTES).decode(), newline="")))
    except (UnicodeDecodeError, csv.Error):
        raise ValueError(f"{path} is not a CSV file: {advice}.") from None
    missing = [name for name in NUMERIC_COLUMNS if not rows or name not in (*rows[0], *LATER_COLUMNS)]
    if missing:
        problem = f"has no column {', '.join(missing)}" if rows else "has no rows"
        raise ValueError(f"{path} is not the trace of a run, as it {problem}: {advice}.")
    try:
        columns = {name: np.array([float(row.get(name, 0)) for row in rows]) for name in NUMERIC_COLUMNS}
        valid = all(np.isfinite(columns[unit]).all() for unit in UNITS)
    except (TypeError, ValueError):
        valid = False
    if not valid:
        raise ValueError(f"{path} has a cost that is not a number, or an incomplete row: {advice}.")
    return columns


def read_reproduced(path: Path) -> Run:
    """Read a file of the folder runs/ of ``condgrad reproduce``. Costs that it does not have are 0."""
    try:
        stored = read_json(path)
        trace, outcome = stored["outcome"]["trace"], stored["outcome"]
        columns = {name: np.array(column, dtype=float) for name, column in trace.items()}
        (rows,) = {len(column) for column in columns.values()}
        missing = {name: np.zeros(rows) if name in UNITS else np.full(rows, np.nan) for name in NUMERIC_COLUMNS}
        valid = rows > 0 and all(np.isfinite(columns[unit]).all() for unit in columns.keys() & UNITS.keys())
        method = str(stored["run"]["method"]["name"])
    except (ValueError, KeyError, TypeError, AttributeError):
        valid = False
    if not valid:
        raise ValueError(
            f"{path} is not a run with a trace of `condgrad reproduce`: give a file in runs/ that belongs to a figure, a "
            "folder that `condgrad solve` wrote, or a trace in CSV."
        )
    return Run(path, method, {**missing, **columns}, {"status": outcome["status"]})


def read_summary(path: Path) -> dict[str, Any]:
    """Read the file result.json of ``condgrad solve``."""
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
    """Unique labels: the method; if that is not unique, with the name of the folder or, if necessary, its path."""
    methods = Counter(run.method for run in runs)
    named = [run.method if methods[run.method] == 1 else f"{run.method} ({run.path.resolve().name})" for run in runs]
    names = Counter(named)
    return [
        name if names[name] == 1 else f"{run.method} ({run.path.as_posix()})"
        for run, name in zip(runs, named, strict=True)
    ]


def report_runs(runs: Sequence[Run], out: Path, title: str, facts: Mapping[str, Any], figures: bool = False) -> Path:
    """Write the report on these runs into a folder.

    Parameters
    ----------
    runs : sequence of Run
    out : Path
        Folder of the report.
    title : str
        Heading of the page.
    facts : mapping of str to Any
        Shown at the end of the page, followed by versions and machine.
    figures : bool, default False
        Also draw figure files for print.

    Returns
    -------
    Path
        The file report.html.
    """
    names = labels(runs)
    units = {unit: label for unit, label in UNITS.items() if any((run.trace[unit] > 0).any() for run in runs)}
    curves = [curve(run, name, units) for run, name in zip(runs, names, strict=True) if run.measured]
    unmeasured = [name for run, name in zip(runs, names, strict=True) if not run.measured]
    note = (
        f"Not drawn, because the trace has no measurement of {MEASURE_ADVICE}: {', '.join(unmeasured)}."
        if unmeasured
        else ""
    )
    y = "squared gradient mapping, best so far"
    table = Table("How the runs ended", *endings(runs, names, units), note)
    plots = [Plot("convergence", "Convergence", y, units, curves, note=MAPPING_NOTE)] if curves and units else []
    blocks: list[Block] = [*plots, table]
    raw = {name: {"summary": run.summary, "trace": run.trace} for run, name in zip(runs, names, strict=True)}
    return write(out, title, blocks, {**facts, **environment()}, raw, figures)


def curve(run: Run, name: str, units: Mapping[str, str]) -> Curve:
    """Curve of the mapping of a run, with its status as a note unless it converged."""
    columns = {unit: run.trace[unit] for unit in units}
    ended = run.summary.get("status")
    note = "" if ended in (None, "converged", "finished") else str(ended).replace("_", " ")
    return Curve(name, [{**columns, "y": run.trace["mapping"]}], note=note)


def endings(runs: Sequence[Run], names: Sequence[str], units: Mapping[str, str]) -> tuple[list[str], list[list[Any]]]:
    """Header and rows of the table on how each run ended and what it cost."""
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
