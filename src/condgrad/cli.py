"""The command line: parses, calls, prints."""

from __future__ import annotations

import argparse
import json
import shlex
import sys
import warnings
from pathlib import Path
from typing import Any

import numpy as np

from condgrad import __version__
from condgrad.domains import DOMAINS
from condgrad.driver import Checkpoint
from condgrad.driver.interruption import held_back, terminable
from condgrad.driver.trace import COLUMNS
from condgrad.experiments.text import table
from condgrad.objectives import LOSSES
from condgrad.solvers import METHODS

BAD_INPUT, FAILED, INTERRUPTED = 2, 3, 130


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 the run ended as asked (converged or out of budget), 2 bad input, 3 the run failed, 130 Ctrl-C or SIGTERM."""
    said = sys.argv[1:] if argv is None else argv
    arguments = parser().parse_args(said)
    arguments.said = said
    try:
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: print(f"condgrad: {message}", file=sys.stderr)
            with terminable():
                return arguments.run(arguments)
    except (ValueError, TypeError, ImportError) as error:
        print(f"condgrad: {error}", file=sys.stderr)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 0
    except OSError as error:
        print(f"condgrad: {error.strerror or error}: {error.filename}.", file=sys.stderr)
    except KeyboardInterrupt as interruption:
        print(f"condgrad: {interruption or 'interrupted.'}", file=sys.stderr)
        return INTERRUPTED
    return BAD_INPUT


def parser() -> argparse.ArgumentParser:
    top = argparse.ArgumentParser(prog="condgrad", description="Projection-free, non-convex optimisation.")
    top.add_argument("--version", action="version", version=f"condgrad {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for name, show, about in (
        ("methods", methods, "the methods: what they assume, what they call, their bounds"),
        ("sets", sets, "the sets and their linear oracles"),
        ("losses", losses, "the pointwise losses and their smoothness"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("--json", action="store_true", help="for machines")
        command.set_defaults(run=show)
    command = commands.add_parser("solve", help="run a spec: result, trace and report")
    command.add_argument("spec", type=Path, metavar="SPEC.toml")
    command.add_argument(
        "--out", type=Path, help="folder for the results (default: beside the spec, its name and -run)"
    )
    command.add_argument("--json", action="store_true", help="print the result for machines")
    command.add_argument("--quiet", action="store_true", help="no progress")
    command.add_argument("--seconds", type=float, metavar="S", help="and stop after so many seconds")
    command.add_argument("--memory", type=float, metavar="MB", help="and stop at so many megabytes of memory")
    command.add_argument(
        "--check-gradient", action="store_true", help="compare the gradient with differences of values first"
    )
    command.add_argument("--checkpoint", type=Path, metavar="FILE", help="save the run here as it goes, and at its end")
    command.add_argument(
        "--checkpoint-every",
        type=interval,
        metavar="30s",
        help="seconds (30s) or steps (100) between checkpoints (default: 30s)",
    )
    command.add_argument(
        "--resume", action="store_true", help="go on from the checkpoint, if there is one, as the run would have"
    )
    command.set_defaults(run=solve)
    command = commands.add_parser("report", help="one page with plots and tables of runs")
    command.add_argument(
        "runs",
        type=Path,
        nargs="+",
        metavar="RUN",
        help="a folder of `condgrad solve`, a trace in CSV, or a file in runs/ of `condgrad reproduce`",
    )
    command.add_argument("--out", type=Path, default=Path("report"), help="folder for the report (default: report)")
    command.add_argument("--title", default="Runs of condgrad", help="the heading of the page")
    command.set_defaults(run=report)
    command = commands.add_parser("reproduce", help="the paper's figures and tables, with a report")
    command.add_argument(
        "part", nargs="?", default="all", choices=["all", "fig1a", "fig1b", "tables", "recovery"], help="default: all"
    )
    command.add_argument("--quick", action="store_true", help="all of it in small: fewer seeds, smaller budgets")
    command.add_argument("--out", type=Path, default=Path("reproduction"), help="folder for the report and its runs")
    command.add_argument("--seed", type=int, default=0, help="the first seed")
    command.add_argument("--seeds", type=int, help="how many (default: 5 for figures, 1 with --quick)")
    command.add_argument(
        "--jobs", type=int, default=1, help="runs side by side, in processes of one thread (default: 1)"
    )
    command.add_argument("--fresh", action="store_true", help="make every run anew, in place of those in the folder")
    command.add_argument("--json", action="store_true", help="print what was found for machines")
    command.set_defaults(run=reproduce)
    return top


def interval(text: str) -> dict[str, Any]:
    """30s: so many seconds; 100: so many steps."""
    try:
        return {"seconds": float(text[:-1])} if text.endswith("s") else {"steps": int(text)}
    except ValueError:
        raise argparse.ArgumentTypeError(f"{text!r}: give seconds, such as 30s, or steps, such as 100") from None


def listing(arguments: Any, header: list[str], rows: list[dict[str, Any]]) -> int:
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        print(table(header, [[row[name] for name in header] for row in rows]))
    return 0


def methods(arguments: Any) -> int:
    rows = [
        {
            "name": m.name,
            "title": m.title,
            "assumes": m.assumes,
            "sees": m.sees,
            "oracles": m.oracles,
            "bound": m.bound,
            "options": ", ".join(m.options),
            "file": m.file,
            "reference": m.reference,
        }
        for m in METHODS.values()
    ]
    return listing(arguments, ["name", "assumes", "bound", "options", "reference"], rows)


def sets(arguments: Any) -> int:
    rows = [
        {
            "name": d.name,
            "set": d.notation,
            "parameters": ", ".join(d.parameters),
            "linear oracle": d.oracle,
            "projects": d.projects,
            "polytope": d.polytope,
        }
        for d in DOMAINS.values()
    ]
    return listing(arguments, ["name", "set", "parameters", "linear oracle", "projects", "polytope"], rows)


def losses(arguments: Any) -> int:
    rows = [
        {"name": e.name, "loss": e.formula, "L, l": e.smoothness, "convex": e.convex, "labels": e.labels}
        for e in LOSSES.values()
    ]
    return listing(arguments, ["name", "loss", "L, l", "convex", "labels"], rows)


def solve(arguments: Any) -> int:
    from condgrad.experiments.spec import load
    from condgrad.report.runs import Run, report_runs

    if arguments.checkpoint is None and (arguments.resume or arguments.checkpoint_every):
        raise ValueError("--resume and --checkpoint-every go with --checkpoint FILE: add it.")
    saving = {}
    if arguments.checkpoint:
        saving = {
            "checkpoint": Checkpoint(arguments.checkpoint, **arguments.checkpoint_every or {}),
            "resume": arguments.resume,
        }
    spec = load(arguments.spec).within(seconds=arguments.seconds, memory=arguments.memory)
    result = spec.solve(progress=False if arguments.quiet else None, check_gradient=arguments.check_gradient, **saving)
    out = arguments.out or arguments.spec.with_name(arguments.spec.stem + "-run")
    with held_back():
        out.mkdir(parents=True, exist_ok=True)
        result.to_json(out / "result.json")
        result.trace.to_csv(out / "trace.csv")
        np.save(out / "x.npy", np.asarray(result.x))
    columns = {name: result.trace[name] for name in COLUMNS}
    run = Run(out, result.method, columns, result.summary())
    report_runs([run], out, f"{arguments.spec.stem}: {result.method}", {"spec": arguments.spec.name})
    print(json.dumps(result.summary(), indent=2) if arguments.json else f"{result}\n  written   {out}/")
    if result.status == "interrupted":
        return INTERRUPTED
    return FAILED if result.status in ("failed", "unverified") else 0


def report(arguments: Any) -> int:
    from condgrad.report.runs import read_all, report_runs

    runs = read_all(arguments.runs)
    print(f"Report: {report_runs(runs, arguments.out, arguments.title, {'runs': [str(run.path) for run in runs]})}")
    return 0


def reproduce(arguments: Any) -> int:
    from condgrad.experiments.reproduce import FULL, PARTS, QUICK, in_text, without_curves
    from condgrad.experiments.reproduce import reproduce as make

    parts = PARTS if arguments.part == "all" else (arguments.part,)
    page, told = make(
        arguments.out,
        QUICK if arguments.quick else FULL,
        parts,
        arguments.seed,
        arguments.seeds,
        arguments.jobs,
        arguments.fresh,
        shlex.join(["condgrad", *arguments.said]),
    )
    if arguments.json:
        print(json.dumps({part.name: without_curves(part.facts) for part in told}, indent=2))
    else:
        for part in told:
            print(*in_text(part.blocks), sep="\n")
        print(f"Report: {page}")
    return 0
