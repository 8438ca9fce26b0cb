"""Runs of an experiment. A run and its outcome are plain data, so that both can be stored in a file.

A run has the four sections of a spec file (see spec.py), problem, set, method and stop, and ``keep``: the kind of outcome.
"""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from datetime import UTC, datetime
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import choice
from condgrad.driver import Result, Trace, wolfe_gap
from condgrad.driver.environment import machine
from condgrad.driver.metrics import mapping
from condgrad.protocols import Problem
from condgrad.solvers import METHODS
from condgrad.spec import Spec, build, paper_matrix

Run = Mapping[str, Any]
Outcome = dict[str, Any]

SECTIONS = ("problem", "set", "method", "stop")
COLUMNS = ("k", "cpu", "seconds", "fo", "ifo", "lo", "ub", "values", "fun", "mapping")
"""Columns of the trace that an outcome keeps."""
ENDING_KEYS = ("status", "message", "steps", "counts", "cpu", "warnings")
"""Keys of an outcome that say how the run ended and what it cost."""
CONDITION_KEYS = ("jobs", "machine", "date", "load")
"""Keys of the conditions under which a run was performed."""


def perform(run: Run, jobs: int = 1) -> Outcome:
    """Perform a run.

    Parameters
    ----------
    run : Run
    jobs : int, default 1
        Number of simultaneous runs, which the outcome records.

    Returns
    -------
    Outcome
        Results by kind of run, how the run ended, its cost, and under ``made`` the conditions of the measurement.

    Raises
    ------
    KeyboardInterrupt
        If the run is interrupted: an incomplete run must not be stored.
    """
    keep = dict(run["keep"])
    conditions = circumstances(jobs)
    return {**KEEP[choice(keep.pop("what"), KEEP, "thing to keep")](run, **keep), "made": conditions}


def circumstances(jobs: int) -> dict[str, Any]:
    """Conditions at the start of a run; the load average is that of the last minute, None if the system has none."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"jobs": jobs, "machine": machine(), "date": date, "load": load}


def failed(outcome: Mapping[str, Any]) -> bool:
    """Whether a run ended neither by convergence nor at its budget."""
    return outcome["status"] not in ("converged", "out_of_budget")


def spec_of(run: Run) -> Spec:
    """Spec with the problem, set, method and stopping rules of a run.

    ``polish`` is off: the methods are compared as the papers state them, without a factored phase.
    """
    sections = {name: run[name] for name in SECTIONS}
    return build({**sections, "method": {**run["method"], "polish": False}}, Path())


def ending_of(result: Result) -> Outcome:
    """Values of ``ENDING_KEYS``."""
    return {name: list(result.warnings) if name == "warnings" else getattr(result, name) for name in ENDING_KEYS}


def trace(run: Run) -> Outcome:
    """Outcome with the trace: the rows with a measured mapping (outside the measured time) and the last row."""
    result = spec_of(run).solve(progress=False, on_interrupt="raise")
    return {**ending_of(result), "trace": columns(result.trace)}


def columns(rows: Trace) -> dict[str, list[float | None]]:
    """Columns of the rows with a measured mapping and of the last row; None for NaN and infinity."""
    measured = np.isfinite(rows["mapping"])
    measured[-1:] = True
    kept = {name: rows[name][measured].tolist() for name in COLUMNS}
    return {name: [v if isfinite(v) else None for v in column] for name, column in kept.items()}


MAX_MEASUREMENTS = 128
"""Maximum number of measurements along a run, at equal distances."""


def output(run: Run) -> Outcome:
    """Outcome with the quantities of the theorems: the mapping and the gap at the output of the method after all N steps.

    The output of a stochastic method is a random iterate. Its expectation over that choice is the mean over the iterates,
    weighted by their probabilities. For a deterministic method the best iterate counts. Measurements take no measured time.
    """
    spec = spec_of(run)
    problem = Problem(spec.objective, spec.domain)
    gamma = 1 / (2 * spec.objective.smoothness)
    stride = ceil(run["stop"]["steps"] / MAX_MEASUREMENTS)
    measurements: list[tuple[int, float, float]] = []

    def measure(record: Any, x: Any) -> None:
        if record.phase != "warm-start" and (record.k % stride == 0 or record.k == run["stop"]["steps"]):
            measurements.append((record.k, mapping(problem, x, gamma).upper, max(wolfe_gap(problem, x), 0.0)))

    result = spec.solve(progress=False, callback=measure, on_interrupt="raise")
    k, *found = np.array(measurements).T
    if METHODS[spec.method].output_law:
        weights = output_weights(spec.method, k)
        chosen = [float(np.average(values, weights=weights)) for values in found]
    else:
        chosen = [float(values.min()) for values in found]
    return {**ending_of(result), "mapping": chosen[0], "gap": chosen[1]}


def output_weights(method: str, k: np.ndarray) -> np.ndarray:
    """Probabilities, up to a factor, with which iterates are returned.

    Stochastic NCGS returns theta_md_k with p_k ~ k (k + 1), the others any iterate before the last with equal probability.
    """
    return k * (k + 1) if method == "stochastic-ncgs" else np.where(k < k[-1], 1.0, 0.0)


def recovery(run: Run, point: bool = False) -> Outcome:
    """Outcome with the relative distance to the true matrix and, with ``point``, the recovered matrix."""
    result = spec_of(run).solve(progress=False, on_interrupt="raise")
    recipe = {key: value for key, value in run["problem"].items() if key not in ("objective", "loss", "sigma")}
    truth, found = paper_matrix(**recipe).truth, np.asarray(result.x)
    error = float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
    return {**ending_of(result), "error": error, "point": found.round(4).tolist() if point else None}


KEEP: dict[str, Callable[..., Outcome]] = {"trace": trace, "output": output, "recovery": recovery}
"""Function that performs a run, by ``run["keep"]["what"]``."""
