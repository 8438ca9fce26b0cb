"""A process that makes runs, one a line of JSON on stdin, and answers each with a line: its outcome, or what went wrong.

It is started with one thread (see pool.py), and has everything compiled, loaded and imported before the first run's clock starts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from condgrad.paper.cache import Cache, code
from condgrad.paper.runs import perform
from condgrad.spec import build

WARM: tuple[dict[str, Any], ...] = (
    {"name": "ncgs"},
    {"name": "ncgs", "inner": {"name": "condg", "max_calls": 3}},
    {"name": "ncgs-vr"},
    {"name": "svfw"},
    {"name": "sagafw"},
    *({"name": "frank-wolfe", "rule": rule} for rule in ("open-loop", "line-search")),
)


def warm_up() -> None:
    problem = {"objective": "paper", "shape": [30, 20], "rank": 2}
    for loss in ("welsch", "squared"):
        for method in WARM:
            small = {"problem": {**problem, "loss": loss}, "set": {"name": "nuclear-ball", "radius": 2.0}}
            build({**small, "method": {**method, "measure": True}, "stop": {"steps": 3}}, Path()).solve(progress=False)


def main(folder: str, jobs: str) -> None:
    cache = Cache(Path(folder), code())
    warm_up()
    for line in sys.stdin:
        run = json.loads(line)
        try:
            outcome = perform(run, int(jobs))
            cache.put(run, outcome)
            answer: dict[str, Any] = {"outcome": outcome}
        except Exception as error:
            answer = {"error": sentence(error)}
        try:
            print(json.dumps(answer), flush=True)
        except BrokenPipeError:  # whoever asked was killed; what was made is kept
            os._exit(0)


def sentence(error: Exception) -> str:
    """What was written for people to read, or else what kind of error it was too."""
    meant = isinstance(error, ValueError | TypeError | OSError) and str(error)
    return str(error) if meant else f"{type(error).__name__}: {error}"


if __name__ == "__main__":
    main(*sys.argv[1:])
