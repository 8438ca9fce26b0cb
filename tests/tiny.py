"""The reproduction in very small: what it does, in seconds, and with no budget of time, so that two times make no difference."""

from __future__ import annotations

import itertools
import os
import signal
import sys
from pathlib import Path
from typing import Any

from condgrad.paper import pool
from condgrad.paper.figure1_methods import GENERATORS
from condgrad.paper.reproduce import Configuration, reproduce

TINY = Configuration(
    "tiny",
    seeds=2,
    tuning=True,
    generators=GENERATORS,
    fig1a=(24, 2),
    fig1b=(24, 2),
    budget_1a={"steps": 6, "lo": 100},
    budget_1b={"steps": 6, "lo": 100},
    table_seeds=2,
    steps={
        "sliding": (8, 16, 32),
        "frank-wolfe": (16, 32, 64),
        "growing": (8, 12, 16),
        "sampling": (16, 32, 64),
        "sum": (8, 16),
        "sum, Frank-Wolfe": (16, 32),
    },
    recovery=(24, 1),
    recovery_seeds=1,
    recovery_stop={"mapping": 1e-3, "steps": 300},
)


def but_for_times(facts: Any) -> Any:
    """What must be the same in two runs of the same thing: all but what a clock said, and what follows from it."""
    if isinstance(facts, dict):
        timed = ("cpu", "cpu range", "cpu spent", "times", "spent", "seconds", "verdicts", "facts")
        return {key: but_for_times(value) for key, value in facts.items() if key not in timed}
    return [but_for_times(value) for value in facts] if isinstance(facts, list) else facts


def main(folder: str, runs: str, *parts: str) -> None:
    """The reproduction in a process that kills itself as soon as so many runs are done."""
    done, count = pool.Progress.done, itertools.count(1)

    def kill(progress: pool.Progress, run: Any) -> None:
        done(progress, run)
        if next(count) == int(runs):
            os.kill(os.getpid(), signal.SIGKILL)

    pool.Progress.done = kill  # type: ignore[method-assign]
    reproduce(Path(folder), TINY, parts)


if __name__ == "__main__":
    main(*sys.argv[1:])
