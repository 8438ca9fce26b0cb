"""The commands solve, report and reproduce: runs and reports on them."""

from __future__ import annotations

import argparse
import json
import shlex
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.cli.complete import check_writable
from condgrad.cli.exit_codes import FAILED, INTERRUPTED
from condgrad.cli.figures import add_figures, check_figures
from condgrad.cli.terminal import say
from condgrad.storage.atomic import replacing_files

MAX_DENSE_ENTRIES = 2e7
"""Maximum number of entries of a low-rank point that is written as a dense array; a larger one is written as factors."""


def add(commands: Any) -> None:
    """Add the commands solve, report and reproduce."""
    command = commands.add_parser("solve", help="run a spec and write its result, trace and report")
    command.add_argument("spec", type=Path, metavar="SPEC.toml")
    command.add_argument(
        "--out",
        type=Path,
        help="folder for the results (default: the name of the spec with -run, in the spec's folder)",
    )
    command.add_argument("--json", action="store_true", help="print the result as JSON")
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.add_argument("--seconds", type=float, metavar="S", help="stop after S seconds")
    command.add_argument("--memory", type=float, metavar="MB", help="stop if the process uses more than MB megabytes")
    command.add_argument(
        "--check-gradient", action="store_true", help="first compare the gradient with difference quotients of values"
    )
    command.add_argument(
        "--checkpoint", type=Path, metavar="FILE", help="save the run to this file regularly and at its end"
    )
    command.add_argument(
        "--checkpoint-every",
        type=interval,
        metavar="30s",
        help="interval between checkpoints: seconds, such as 30s, or a number of steps, such as 100 (default: 30s)",
    )
    command.add_argument(
        "--resume",
        action="store_true",
        help="continue from the checkpoint, if there is one. The result is the same as without the interruption",
    )
    add_figures(command)
    command.set_defaults(run=solve)
    command = commands.add_parser("report", help="write one page with plots and tables of several runs")
    command.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="a folder of `condgrad solve`, a trace in CSV, or a file in runs/ of `condgrad reproduce`",
    )
    command.add_argument("--out", type=Path, default=Path("report"), help="folder for the report (default: report)")
    command.add_argument("--title", default="Runs of condgrad", help="heading of the page")
    add_figures(command)
    command.set_defaults(run=report)
    command = commands.add_parser("reproduce", help="reproduce the figures and tables of the paper, with a report")
    command.add_argument(
        "parts", nargs="*", metavar="PART", help="all, or any of fig1a, fig1b, tables, recovery (default: all)"
    )
    command.add_argument("--quick", action="store_true", help="use fewer seeds, smaller budgets and no tuning")
    command.add_argument("--out", type=Path, default=Path("reproduction"), help="folder for the report and its runs")
    command.add_argument("--seed", type=int, default=0, help="first seed (default: 0)")
    command.add_argument("--seeds", type=int, help="number of seeds (default: 5 for figures, 1 with --quick)")
    command.add_argument(
        "--jobs", type=int, default=1, help="number of simultaneous runs, in processes of one thread each (default: 1)"
    )
    command.add_argument(
        "--fresh", action="store_true", help="repeat every run, even if its result is stored in the folder"
    )
    command.add_argument("--json", action="store_true", help="print the results as JSON")
    command.set_defaults(run=reproduce)


def interval(text: str) -> dict[str, Any]:
    """Parse the interval between checkpoints: "30s" means seconds, "100" steps."""
    try:
        return {"seconds": float(text[:-1])} if text.endswith("s") else {"steps": int(text)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, such as 30s, or steps, such as 100") from None


def solve(arguments: Any) -> int:
    """Run ``condgrad solve``: run a spec and write its result, trace, point and report."""
    from condgrad.driver import Checkpoint
    from condgrad.driver.trace import NUMERIC_COLUMNS
    from condgrad.points import LowRank
    from condgrad.report.run_report import Run, report_runs
    from condgrad.spec import load

    check_figures(arguments)
    if arguments.spec.is_dir():
        raise ValueError(f"{arguments.spec} is a folder, but a spec was expected: give the name of a TOML file.")
    if arguments.checkpoint is None and (arguments.resume or arguments.checkpoint_every):
        raise ValueError("--resume and --checkpoint-every need --checkpoint FILE: add it.")
    saving = {}
    if arguments.checkpoint:
        saving = {
            "checkpoint": Checkpoint(arguments.checkpoint, **arguments.checkpoint_every or {}),
            "resume": arguments.resume,
        }
    out = arguments.out or arguments.spec.with_name(arguments.spec.stem + "-run")
    check_writable(out / "result.json")
    spec = load(arguments.spec).within(seconds=arguments.seconds, memory=arguments.memory)
    asked = {"check_gradient": arguments.check_gradient, "on_interrupt": "return", **saving}
    result = spec.solve(progress=False if arguments.quiet else None, **asked)
    with replacing_files(out) as temporary:  # signals are deferred only while the files are moved
        result.to_json(temporary / "result.json")
        result.trace.to_csv(temporary / "trace.csv")
        if isinstance(result.x, LowRank) and np.prod(result.x.shape, dtype=float) > MAX_DENSE_ENTRIES:
            U, V = result.x.factors()
            np.savez(temporary / "x.npz", U=U, V=V)
        else:
            np.save(temporary / "x.npy", np.asarray(result.x))
    columns = {name: result.trace[name] for name in NUMERIC_COLUMNS}
    run = Run(out, result.method, columns, result.summary())
    report_runs([run], out, f"{arguments.spec.stem}: {result.method}", {"spec": arguments.spec.name}, arguments.figures)
    say(json.dumps(result.summary(), indent=2) if arguments.json else f"{result}\n  written   {out}/")
    if result.status == "interrupted":
        return INTERRUPTED
    return FAILED if result.status in ("failed", "unverified") else 0


def report(arguments: Any) -> int:
    """Run ``condgrad report``: write one report on several runs."""
    from condgrad.report.run_report import read_all, report_runs

    check_figures(arguments)
    runs = read_all(arguments.runs)
    facts = {"runs": [str(run.path) for run in runs]}
    say(f"Report: {report_runs(runs, arguments.out, arguments.title, facts, arguments.figures)}")
    return 0


def reproduce(arguments: Any) -> int:
    """Run ``condgrad reproduce``: reproduce the paper."""
    from condgrad.checks import choice
    from condgrad.paper.reproduce import FULL, PARTS, QUICK, terminal_text, without_curves
    from condgrad.paper.reproduce import reproduce as make

    asked = [choice(part, [*PARTS, "all"], "part of the reproduction") for part in arguments.parts]
    parts = PARTS if not asked or "all" in asked else asked
    page, reports = make(
        arguments.out,
        QUICK if arguments.quick else FULL,
        parts,
        arguments.seed,
        arguments.seeds,
        arguments.jobs,
        arguments.fresh,
        shlex.join(["condgrad", *arguments.argv]),
    )
    if arguments.json:
        print(json.dumps({part.name: without_curves(part.facts) for part in reports}, indent=2))
    else:
        print(*terminal_text(reports), sep="\n")
        say(f"Report: {page}")
    return 0
