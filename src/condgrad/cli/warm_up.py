"""warm-up: compile the kernels before they are needed."""

from __future__ import annotations

import sys
from time import perf_counter
from typing import Any

from condgrad.checks import counted
from condgrad.cli.exit_codes import FAILED


def add(commands: Any) -> None:
    command = commands.add_parser(
        "warm-up",
        help="compile the kernels now, as for a container image",
        description="Compile every kernel and keep the code in NUMBA_CACHE_DIR if that is set, else in the user's cache "
        "directory, so that no later run of condgrad on a machine with the same processor compiles.",
    )
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.set_defaults(run=warm_up)


def warm_up(arguments: Any) -> int:
    from condgrad.kernels import warm_up

    begun, calls = perf_counter(), list(warm_up.calls())
    for i, (name, call) in enumerate(calls, 1):
        call()
        if not arguments.quiet:
            print(f"{i:2} of {len(calls)}  {perf_counter() - begun:6.1f} s  {name}", flush=True)
    folder, kept = warm_up.cache_status()
    if not kept:
        print(f"condgrad: nothing was kept in {folder}: the next process compiles again.", file=sys.stderr)
        return FAILED
    print(f"{counted(len(calls), 'compiled kernel')} in {folder}")
    return 0
