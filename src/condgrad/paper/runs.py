"""The runs that an experiment is made of: plain data in, plain data out, so that both can be kept in a file.

A run has the four sections of a spec file (see spec.py), problem, set, method and stop, and ``keep``: what to keep of it.
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
ENDED = ("status", "message", "steps", "counts", "cpu", "warnings")
MADE = ("jobs", "machine", "date", "load")


def perform(run: Run, jobs: int = 1) -> Outcome:
    """Do the run; what came of it, with how it ended, what it took, and when and beside how many jobs it was made.

    A run that is interrupted raises: half a run must not be kept.
    """
    keep = dict(run["keep"])
    made = circumstances(jobs)
    return {**KEEP[choice(keep.pop("what"), KEEP, "thing to keep")](run, **keep), "made": made}


def circumstances(jobs: int) -> dict[str, Any]:
    """At the start of a run; the load is that of the last minute, None where the system does not tell."""
    load = round(os.getloadavg()[0], 2) if hasattr(os, "getloadavg") else None
    date = datetime.now(UTC).strftime("%Y-%m-%d %H:%M UTC")
    return {"jobs": jobs, "machine": machine(), "date": date, "load": load}


def failed(outcome: Mapping[str, Any]) -> bool:
    """A run ends when it is done or when its budget is; whatever else ends it is a failure."""
    return outcome["status"] not in ("converged", "out_of_budget")


def spec_of(run: Run) -> Spec:
    return build({name: run[name] for name in SECTIONS}, Path())


def ended(result: Result) -> Outcome:
    return {name: list(result.warnings) if name == "warnings" else getattr(result, name) for name in ENDED}


def trace(run: Run) -> Outcome:
    """The rows at which the mapping was measured, from outside and off the clock, and the last one."""
    result = spec_of(run).solve(progress=False, on_interrupt="raise")
    return {**ended(result), "trace": columns(result.trace)}


def columns(rows: Trace) -> dict[str, list[float | None]]:
    measured = np.isfinite(rows["mapping"])
    measured[-1:] = True
    kept = {name: rows[name][measured].tolist() for name in COLUMNS}
    return {name: [v if isfinite(v) else None for v in column] for name, column in kept.items()}


LOOKS = 128
"""A path is looked at so many times at most, evenly."""


def output(run: Run) -> Outcome:
    """What the theorems speak of: the mapping and the gap at the method's output after all N steps.

    The output of a stochastic method is a random iterate. Its expectation over that choice is the mean over the iterates of
    the path, weighted by the law of the choice; of a deterministic method the best iterate counts. Measured off the clock.
    """
    spec = spec_of(run)
    problem = Problem(spec.objective, spec.domain)
    gamma = 1 / (2 * spec.objective.smoothness)
    stride = ceil(run["stop"]["steps"] / LOOKS)
    seen: list[tuple[int, float, float]] = []

    def look(record: Any, x: Any) -> None:
        if record.k % stride == 0 or record.k == run["stop"]["steps"]:
            seen.append((record.k, mapping(problem, x, gamma).upper, max(wolfe_gap(problem, x), 0.0)))

    result = spec.solve(progress=False, callback=look, on_interrupt="raise")
    k, *found = np.array(seen).T
    if METHODS[spec.method].output_law:
        weights = law(spec.method, k)
        chosen = [float(np.average(values, weights=weights)) for values in found]
    else:
        chosen = [float(values.min()) for values in found]
    return {**ended(result), "mapping": chosen[0], "gap": chosen[1]}


def law(method: str, k: np.ndarray) -> np.ndarray:
    """Stochastic NCGS reports theta_md_k with p_k ~ k (k + 1), the others any of the iterates before the last."""
    return k * (k + 1) if method == "stochastic-ncgs" else np.where(k < k[-1], 1.0, 0.0)


def recovery(run: Run, point: bool = False) -> Outcome:
    """The distance to the matrix that the data was made from, relative to its norm; with ``point``, the matrix found."""
    result = spec_of(run).solve(progress=False, on_interrupt="raise")
    recipe = {key: value for key, value in run["problem"].items() if key not in ("objective", "loss", "sigma")}
    truth, found = paper_matrix(**recipe).truth, np.asarray(result.x)
    error = float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
    return {**ended(result), "error": error, "point": found.round(4).tolist() if point else None}


KEEP: dict[str, Callable[..., Outcome]] = {"trace": trace, "output": output, "recovery": recovery}
