"""The command compare: several methods on one problem."""

from __future__ import annotations

import json
import shlex
from argparse import ArgumentTypeError
from pathlib import Path
from typing import Any

from condgrad.cli.complete import check_writable
from condgrad.cli.exit_codes import FAILED, INTERRUPTED
from condgrad.cli.figures import add_figures, check_figures
from condgrad.cli.terminal import say


def add(commands: Any) -> None:
    """Add the command compare."""
    command = commands.add_parser(
        "compare", help="run several methods on the problem of a spec, and compare their costs"
    )
    command.add_argument("spec", type=Path, metavar="SPEC.toml")
    command.add_argument(
        "--methods",
        default="all",
        metavar="A,B:OPTION=VALUE",
        help="methods to compare, with or without options (default: all methods that fit)",
    )
    command.add_argument("--seeds", type=int, default=5, help="number of runs of each method (default: 5)")
    command.add_argument(
        "--targets",
        type=_numbers,
        metavar="1e-2,1e-4",
        help="targets for the squared gradient mapping (default: `mapping` of the spec, or shares of its value at the start)",
    )
    command.add_argument(
        "--budget", type=float, metavar="S", help="CPU seconds for each run (default: the budget in the spec, or 10)"
    )
    command.add_argument(
        "--jobs", type=int, default=1, help="number of simultaneous runs, in processes of one thread each (default: 1)"
    )
    command.add_argument(
        "--out", type=Path, help="folder for the results (default: name of the spec with -compared, in its folder)"
    )
    command.add_argument("--json", action="store_true", help="print the comparison as JSON")
    command.add_argument("--quiet", action="store_true", help="no progress")
    add_figures(command)
    command.set_defaults(run=compare)


def _numbers(text: str) -> list[float]:
    try:
        return [float(part) for part in text.split(",")]
    except ValueError:
        raise ArgumentTypeError(f"{text!r}: give numbers, separated by commas, such as 1e-2,1e-4") from None


def compare(arguments: Any) -> int:
    """Run ``condgrad compare``: compare methods, and write tables, traces and a report."""
    from condgrad.comparison import compare as run_all

    check_figures(arguments)
    if arguments.spec.is_dir():
        raise ValueError(f"{arguments.spec} is a folder, but a spec was expected: give the name of a TOML file.")
    out = arguments.out or arguments.spec.with_name(arguments.spec.stem + "-compared")
    check_writable(out / "comparison.csv")
    found = run_all(
        arguments.spec,
        arguments.methods,
        arguments.seeds,
        targets=arguments.targets,
        budget=arguments.budget,
        jobs=arguments.jobs,
        progress=False if arguments.quiet else None,
        on_interrupt="return",
    )
    written = f"Written: {out}/" if found.runs else "Nothing was written."
    if found.runs:
        facts = {"spec": arguments.spec.name, "command": shlex.join(["condgrad", *arguments.argv])}
        found.report(out, f"{arguments.spec.stem}: comparison of methods", facts, arguments.figures)
        found.to_csv(out / "comparison.csv")
    say(json.dumps(found.plain(), indent=2) if arguments.json else f"{found}\n\n{written}")
    if found.interrupted:
        return INTERRUPTED
    return 0 if found.runs else FAILED
