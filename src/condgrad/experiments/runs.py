"""The runs that an experiment is made of: plain data in, plain data out, so that both can be kept in a file.

A run has the four sections of a spec file (see spec.py), problem, set, method and stop, and ``keep``: what to keep of it.
"""

from __future__ import annotations

import hashlib
import json
import os
import sys
from collections.abc import Callable, Mapping
from math import ceil, isfinite
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import choice
from condgrad.driver import Result, Trace, wolfe_gap
from condgrad.driver.metrics import mapping
from condgrad.experiments.spec import Spec, build, paper_matrix
from condgrad.protocols import Problem
from condgrad.solvers import METHODS

Run = Mapping[str, Any]
Outcome = dict[str, Any]

FORMAT = 1
"""Of the files of outcomes; a file of another format, or of another version of condgrad, is not used."""
SECTIONS = ("problem", "set", "method", "stop")
COLUMNS = ("k", "cpu", "seconds", "fo", "ifo", "lo", "values", "fun", "mapping")


def perform(run: Run) -> Outcome:
    """Do the run; what came of it, with how it ended and what it took."""
    keep = dict(run["keep"])
    return KEEP[choice(keep.pop("what"), KEEP, "thing to keep")](run, **keep)


def spec_of(run: Run) -> Spec:
    return build({name: run[name] for name in SECTIONS}, Path())


def ended(result: Result) -> Outcome:
    facts = {"status": result.status, "message": result.message, "steps": result.steps, "counts": result.counts}
    return {**facts, "cpu": result.cpu, "warnings": list(result.warnings)}


def trace(run: Run) -> Outcome:
    """The rows at which the mapping was measured, from outside and off the clock, and the last one."""
    result = spec_of(run).solve(progress=False)
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

    result = spec.solve(progress=False, callback=look)
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
    result = spec_of(run).solve(progress=False)
    recipe = {key: value for key, value in run["problem"].items() if key not in ("objective", "loss", "sigma")}
    truth, found = paper_matrix(**recipe).truth, np.asarray(result.x)
    error = float(np.linalg.norm(found - truth) / np.linalg.norm(truth))
    return {**ended(result), "error": error, "point": found.round(4).tolist() if point else None}


KEEP: dict[str, Callable[..., Outcome]] = {"trace": trace, "output": output, "recovery": recovery}


# --------------------------------------------------------------------------------------------------------------- cache


class Cache:
    """Outcomes in a folder, each in a file that is named after the hash of its run."""

    def __init__(self, folder: Path, version: str):
        self.folder, self.version = folder, version

    def key(self, run: Run) -> str:
        whole = {"format": FORMAT, "condgrad": self.version, "run": run}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, allow_nan=False).encode()).hexdigest()[:24]

    def path(self, run: Run) -> Path:
        return self.folder / f"{self.key(run)}.json"

    def get(self, run: Run) -> Outcome | None:
        """None where the run has not been made; a file that can't be read is said, and taken for none."""
        path = self.path(run)
        try:
            kept = json.loads(path.read_text(encoding="utf-8"))
            if kept["run"] != json.loads(json.dumps(run)):
                raise ValueError("it is of another run")
            return dict(kept["outcome"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError) as error:
            print(f"condgrad: {path} is damaged ({error}): its run is made again.", file=sys.stderr)
            return None

    def put(self, run: Run, outcome: Outcome) -> None:
        """All or nothing: whoever is killed while writing leaves no file of this name."""
        self.folder.mkdir(parents=True, exist_ok=True)
        path = self.path(run)
        beside = path.with_suffix(f".{os.getpid()}")
        with open(beside, "w", encoding="utf-8") as file:
            json.dump({"run": run, "outcome": outcome}, file, allow_nan=False)
            file.flush()
            os.fsync(file.fileno())
        beside.replace(path)
