"""Worker process: reads one run per line of JSON on stdin and answers each with a line of JSON, the outcome or an error.

The worker is started with one thread (see pool.py). It compiles and imports everything before the clock of the first run starts.
"""

from __future__ import annotations

import json
import os
import sys
from pathlib import Path
from typing import Any

from condgrad.paper.cache import Cache, code_versions
from condgrad.paper.runs import perform
from condgrad.runtime.workers import error_message
from condgrad.spec import build

WARM_UP_METHODS: tuple[dict[str, Any], ...] = (
    {"name": "ncgs"},
    {"name": "ncgs", "inner": {"name": "condg", "max_calls": 3}},
    {"name": "ncgs-vr"},
    {"name": "svfw"},
    {"name": "sagafw"},
    *({"name": "frank-wolfe", "rule": rule} for rule in ("open-loop", "line-search")),
)


def warm_up() -> None:
    """Compile and import everything that runs use, by small runs."""
    problem = {"objective": "paper", "shape": [30, 20], "rank": 2}
    for loss in ("welsch", "squared"):
        for method in WARM_UP_METHODS:
            small = {"problem": {**problem, "loss": loss}, "set": {"name": "nuclear-ball", "radius": 2.0}}
            build({**small, "method": {**method, "measure": True}, "stop": {"steps": 3}}, Path()).solve(progress=False)


def main(folder: str, jobs: str) -> None:
    """Perform the runs on stdin and store their outcomes in the cache folder."""
    cache = Cache(Path(folder), code_versions())
    warm_up()
    for line in sys.stdin:
        run = json.loads(line)
        try:
            outcome = perform(run, int(jobs))
            cache.put(run, outcome)
            answer: dict[str, Any] = {"outcome": outcome}
        except Exception as error:
            answer = {"error": error_message(error)}
        try:
            print(json.dumps(answer), flush=True)
        except BrokenPipeError:  # the parent process was killed; the outcomes are in the cache
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
