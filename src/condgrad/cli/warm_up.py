"""The command warm-up, which compiles the kernels in advance."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from condgrad.checks import counted
from condgrad.cli.exit_codes import FAILED


def add(commands: Any) -> None:
    """Add the command warm-up."""
    command = commands.add_parser(
        "warm-up",
        help="compile the kernels in advance, for example in a container image",
        description="Compile every kernel and store the code in NUMBA_CACHE_DIR if that is set, else in the user's cache "
        "directory, so that later runs on a machine with the same processor do not compile.",
    )
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.set_defaults(run=warm_up)


def warm_up(arguments: Any) -> int:
    """Run ``condgrad warm-up``."""
    from condgrad.kernels import warm_up

    started, calls = perf_counter(), list(warm_up.calls())
    for i, (name, call) in enumerate(calls, 1):
        call()
        if not arguments.quiet:
            print(f"{i:2} of {len(calls)}  {perf_counter() - started:6.1f} s  {name}", flush=True)
    folder, kept = warm_up.cache_status()
    if not kept:
        print(f"condgrad: nothing could be stored in {folder}: the next process compiles again.", file=sys.stderr)
        return FAILED
    print(f"{counted(len(calls), 'compiled kernel')} in {folder}")
    return 0
