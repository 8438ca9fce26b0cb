"""A process that makes runs, one a line of JSON on stdin, and answers each with a line: done, or what went wrong.

It is started with one thread (see pool.py), and has everything compiled, loaded and imported before the first run's clock starts.
"""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

from condgrad import __version__
from condgrad.experiments.runs import Cache, perform
from condgrad.experiments.spec import build

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


def main(folder: str) -> None:
    cache = Cache(Path(folder), __version__)
    warm_up()
    for line in sys.stdin:
        run = json.loads(line)
        try:
            cache.put(run, perform(run))
            answer: dict[str, Any] = {"done": True}
        except (ValueError, TypeError, OSError) as error:
            answer = {"done": False, "error": str(error)}
        print(json.dumps(answer), flush=True)


if __name__ == "__main__":
    main(sys.argv[1])
