"""Matrices with holes and outliers, from files to files: complete, predict, fill."""

from __future__ import annotations

import argparse
import json
import os
import re
import shlex
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from time import perf_counter
from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.checks import BadData, counted
from condgrad.cli.figures import add_figures, check_figures
from condgrad.cli.tables import check_size, housed, recommended, write_table, write_wide
from condgrad.cli.terminal import say
from condgrad.storage.atomic import target, try_folder

if TYPE_CHECKING:
    from condgrad.data import Cleanup, Observations
    from condgrad.learn import RobustCompletion

FORMATS = "CSV, TSV, Parquet, NPZ or Matrix Market; text may be gzipped"


def add(commands: Any) -> None:
    command = commands.add_parser(
        "complete",
        help="fit a matrix of which some entries are known: ratings, readings",
        description="Fit mean + row bias + column bias + a matrix of low rank to the entries in a file. Outliers are ignored.",
    )
    command.add_argument("data", type=Path, metavar="DATA", help=f"rows, columns and values in {FORMATS}")
    command.add_argument("--out", type=Path, required=True, metavar="MODEL.npz", help="file for the model")
    _reading(command, "user,item,rating")
    command.add_argument(
        "--wide",
        action="store_true",
        help="text is a table with a line for each row, its name first, and a column for each column (default: where it can be "
        "nothing else)",
    )
    command.add_argument("--filled", type=Path, metavar="FILE.csv", help="write the completed table here, as wide CSV")
    command.add_argument(
        "--keep", action="store_true", help="with --filled: leave all values that are there as they are"
    )
    _raw(command)
    _fitting(command)
    command.add_argument(
        "--report", type=Path, metavar="FOLDER", help="folder for the report (default: the model's name and -report)"
    )
    command.add_argument("--no-report", action="store_true", help="no report")
    add_figures(command)
    command.add_argument("--json", action="store_true", help="print what was found for machines")
    command.set_defaults(run=complete)

    command = commands.add_parser(
        "predict",
        help="what a model of `condgrad complete` says of pairs",
        description="Predict the values at pairs of a row and a column. A row or a column that the model has not seen counts "
        "with bias 0.",
    )
    command.add_argument("model", type=Path, metavar="MODEL.npz")
    command.add_argument("pairs", type=Path, metavar="PAIRS", nargs="?", help=f"rows and columns in {FORMATS}")
    command.add_argument("--out", type=Path, metavar="FILE.csv", help="where to write (default: the screen)")
    command.add_argument(
        "--top",
        type=int,
        metavar="K",
        help="in place of pairs: for each row the K best columns that it has no entry in",
    )
    command.add_argument(
        "--rows",
        metavar="IDS",
        help="with --top: these rows only, such as ann,bob (a name with a comma in it in quotes)",
    )
    _raw(command)
    _reading(command, "user,item")
    command.set_defaults(run=predict)

    command = commands.add_parser(
        "fill",
        help="restore a picture with lost or wrong pixels",
        description="Fill the lost pixels of a picture, and correct those that do not fit the others (salt and pepper).",
    )
    command.add_argument("image", type=Path, metavar="IMAGE", help="PNG, TIFF, JPEG or what else pillow reads")
    command.add_argument("--out", type=Path, required=True, metavar="IMAGE", help="file for the restored picture")
    command.add_argument(
        "--mask",
        type=Path,
        help="a picture of the same size: what is not black is lost (default: transparent or NaN pixels are lost)",
    )
    command.add_argument("--invert", action="store_true", help="black in the mask is lost")
    command.add_argument("--keep", action="store_true", help="leave all pixels that are not lost as they are")
    _fitting(command)
    command.add_argument("--json", action="store_true", help="print what was found for machines")
    command.set_defaults(run=fill)


def _raw(command: Any) -> None:
    command.add_argument(
        "--raw",
        action="store_true",
        help="write names as they are (default: one that a spreadsheet would take for a formula gets an apostrophe in front)",
    )


def _reading(command: Any, example: str) -> None:
    command.add_argument(
        "--columns", metavar="NAMES", help=f"the columns to read, by name or counted from 0, such as {example}"
    )
    command.add_argument("--delimiter", help="between the cells of text (default: as the file has it)")
    command.add_argument("--no-header", action="store_true", help="the first line of text is data")
    command.add_argument(
        "--format", choices=["csv", "parquet", "npz", "matrix-market"], help="(default: the name tells)"
    )
    command.add_argument("--strict", action="store_true", help="refuse the file at its first fault")


def _fitting(command: Any) -> None:
    command.add_argument(
        "--loss", default="welsch", help="welsch (default, also smoothed-l0), geman-mcclure, cauchy, huber or squared"
    )
    command.add_argument(
        "--sigma", type=_auto, default="auto", help="the size of ordinary errors (default: estimated from the data)"
    )
    command.add_argument(
        "--radius", type=_auto, default="auto", help="of the nuclear ball (default: chosen on held-out entries)"
    )
    command.add_argument(
        "--certify",
        type=_positive,
        metavar="TOL",
        help="go on until the squared gradient mapping is proven to be below",
    )
    command.add_argument("--seed", type=int, default=0, help="of the choice of held-out entries (default: 0)")
    command.add_argument("--quiet", action="store_true", help="no progress")


def _auto(text: str) -> float | str:
    return text if text == "auto" else _positive(text)


def _positive(text: str) -> float:
    try:
        number = float(text)
    except ValueError:
        number = np.nan
    if not 0 < number < np.inf:
        raise argparse.ArgumentTypeError(f"a number above 0 was expected, but got {text!r}")
    return number


def complete(arguments: Any) -> int:
    from condgrad.learn.completion.report import report_fit, summary

    check_figures(arguments)
    writable(arguments.out, arguments.data)
    if arguments.filled is not None:
        writable(arguments.filled, arguments.data)
    elif arguments.keep:
        raise ValueError("--keep needs --filled FILE.csv, the completed table whose values it keeps: give both.")
    folder = (
        None if arguments.no_report else arguments.report or arguments.out.with_name(arguments.out.stem + "-report")
    )
    if folder is not None:
        writable(folder / "report.html")
    apart(arguments.out, arguments.filled, folder)
    model = estimator(arguments)
    given = read(arguments, arguments.data)
    if not arguments.json:
        tell(given.cleanup)
    if given.mostly_empty:
        given = given.compact()
        say(
            f"condgrad: the model is of the {given.shape[0]:,} x {given.shape[1]:,} rows and columns that have entries: the "
            "others would take memory and tell nothing.",
            stream=sys.stderr,
        )
    if arguments.filled is not None:
        check_size(given.shape)
    begun = perf_counter()
    model.fit(given)
    found = {**summary(model, given), "seconds": perf_counter() - begun}
    model.save(housed(arguments.out))
    written = {"model": str(arguments.out)}
    if arguments.filled is not None:
        write_wide(arguments.filled, given, model, "observed" if arguments.keep else "inliers", arguments.raw)
        written["filled"] = str(arguments.filled)
    if folder is not None:
        facts = {"command": shlex.join(["condgrad", *arguments.said])}
        written["report"] = str(
            report_fit(model, given, folder, f"Fit of {arguments.data.name}", facts, found, arguments.figures)
        )
    if arguments.json:
        print(json.dumps({**found, **written, "cleanup": given.cleanup.summary()}, indent=2))
    else:
        show({**found, **written})
    return 0


def predict(arguments: Any) -> int:
    from condgrad.learn import RobustCompletion
    from condgrad.learn.completion.entries import pair_positions
    from condgrad.learn.completion.table_labels import names_of

    if (arguments.top is None) == (arguments.pairs is None):
        raise ValueError(
            "Either PAIRS or --top K was expected: give a file of pairs, or how many columns for each row."
        )
    if arguments.out is not None:
        writable(arguments.out, arguments.model, arguments.pairs)
    model = RobustCompletion.load(arguments.model)
    if arguments.top is not None:
        write_table(arguments.out, *recommended(model, arguments.top, arguments.rows), raw=arguments.raw)
        return 0
    given = read(arguments, arguments.pairs, values=False)
    row_ids, col_ids = names(given.row_ids, given.rows), names(given.col_ids, given.cols)
    known, shape = names_of(model), (len(model.row_biases_), len(model.col_biases_))
    rows, cols = pair_positions(given, known, shape)
    if arguments.columns is None and not arguments.no_header:
        check_header(given, (rows >= 0) & (cols >= 0), (rows < 0) & (cols < 0))
    tell(given.cleanup, sys.stderr)
    write_table(arguments.out, row_ids, col_ids, model.predict(given), raw=arguments.raw)
    for what, new, ids in (("row", rows < 0, row_ids), ("column", cols < 0, col_ids)):
        if new.any():
            have = "has" if new.sum() == 1 else "have"
            print(
                f"condgrad: {new.sum():,} of {counted(len(given), 'pair')} {have} a {what} that the model has not seen, such as "
                f"{str(ids[new][0])!r}: predicted without it, by the biases.",
                file=sys.stderr,
            )
    turned = replace(given, rows=given.cols, cols=given.rows, row_ids=given.col_ids, col_ids=given.row_ids)
    if (rows < 0).all() and (cols < 0).all() and (np.minimum(*pair_positions(turned, known, shape)) >= 0).any():
        print(
            "condgrad: the model has seen none of these rows and columns, but some the other way round: if the pairs are "
            "column and row, say so by --columns 1,0.",
            file=sys.stderr,
        )
    if arguments.out is not None and arguments.out.is_file():  # /dev/stdout gets the table alone
        say(f"{counted(len(given), 'prediction')}: {arguments.out}")
    return 0


def fill(arguments: Any) -> int:
    from condgrad.learn import images

    writable(arguments.out, arguments.image, arguments.mask)
    model = estimator(arguments)
    image = images.read(arguments.image)
    if arguments.mask is not None:
        image = image.without(images.read_mask(arguments.mask) != arguments.invert)
    elif arguments.invert:
        raise ValueError("--invert needs --mask: give a mask, or leave --invert out.")
    images.check_name(image, arguments.out)
    if not image.lost.any() and not arguments.quiet:
        why = "none is transparent or NaN" if arguments.mask is None else "the mask has none"
        done = "nothing is replaced" if arguments.keep else "only those that do not fit the others are replaced"
        print(f"condgrad: no pixel is lost ({why}): {done}.", file=sys.stderr)
    begun = perf_counter()
    restored = images.restore(image, model, correct=not arguments.keep)
    images.write(restored.image, housed(arguments.out))
    height, width, channels = image.pixels.shape
    found = {
        "width": width,
        "height": height,
        "channels": channels,
        "pixels filled": int(restored.filled.sum()),
        "pixels corrected": int(restored.corrected.sum()),
        "rank": len(restored.fit.singular_values_),
        "seconds": perf_counter() - begun,
        "written": str(arguments.out),
    }
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        show(found)
    return 0


def estimator(arguments: Any) -> RobustCompletion:
    from condgrad.learn import RobustCompletion
    from condgrad.learn.completion.robust_scale import loss_name

    return RobustCompletion(
        loss=loss_name(arguments.loss),
        sigma=arguments.sigma,
        radius=arguments.radius,
        random_state=arguments.seed,
        certify=arguments.certify,
        verbose=not arguments.quiet,
    )


def read(arguments: Any, path: Path, values: bool = True) -> Observations:
    from condgrad.data import load

    columns: Any = None if arguments.columns is None else [name.strip() for name in arguments.columns.split(",")]
    if columns is not None and all(map(str.isdecimal, columns)):
        columns = [int(name) for name in columns]
    with in_options():
        return load(
            path,
            arguments.format,
            columns,
            strict=arguments.strict,
            values=values,
            delimiter={"\\t": "\t", "tab": "\t"}.get(arguments.delimiter, arguments.delimiter),
            header=False if arguments.no_header else None,
            wide=getattr(arguments, "wide", False) or None,
        )


@contextmanager
def in_options() -> Iterator[None]:
    """Advice for Python turned into advice for the command line."""
    try:
        yield
    except BadData as error:
        advice = (
            str(error)
            .replace("header=False", "--no-header")
            .replace("=(row, column, value)", "=")
            .replace("wide=True", "--wide")
        )
        advice = re.sub(r"\bformat='([\w-]+)'", r"--format \1", advice)
        raise BadData(re.sub(r"\b(columns|delimiter)=", r"--\1", advice)) from None


def writable(path: Path, *inputs: Path | None) -> None:
    """Refuses before the work what could not be written after it, or only over what is read."""
    for given in inputs:
        if given is not None and path.exists() and given.exists() and path.samefile(given):
            raise ValueError(f"--out {path} is the file that is read, which would be lost: give another name.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, but a file is to be written there: give the name of a file.")
    if path.exists() and not path.is_file():  # a pipe or a device: nothing is made in its folder
        return
    folder = next(folder for folder in target(path).absolute().parents if folder.exists())
    try:
        try_folder(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent)) from None


def apart(out: Path, filled: Path | None, folder: Path | None) -> None:
    """Refuses outputs of which one would replace another, by whatever links."""
    outputs = {"--out": out, "--filled": filled}
    outputs |= (
        {} if folder is None else {f"{name} of the report": folder / name for name in ("report.html", "data.json")}
    )
    seen: dict[str, str] = {}
    for what, path in outputs.items():
        if path is None or (path.exists() and not path.is_file()):  # a pipe or a device may take several
            continue
        if (place := os.path.realpath(path)) in seen:
            raise ValueError(f"{seen[place]} and {what} are both {path}: give two names.")
        seen[place] = what


def check_header(given: Observations, seen: np.ndarray, new: np.ndarray) -> None:
    """Refuses a first line of new names above pairs most of which the model has seen: they are titles, not names."""
    text = given.cleanup.unit == "line" and given.row_ids is not None
    if text and not given.cleanup.headed and new[0] and 2 * seen[1:].sum() > len(seen) - 1:
        first = ", ".join(
            str(names(ids, at)[0]) for ids, at in ((given.row_ids, given.rows), (given.col_ids, given.cols))
        )
        raise BadData(
            f"{given.cleanup.file}: the first line, {first!r}, looks like a header, since the model has seen most of what "
            "follows and neither of these: name the row and the column by --columns, or say --no-header if it is none."
        )


def names(ids: np.ndarray | None, positions: np.ndarray) -> np.ndarray:
    return positions if ids is None else ids[positions]


def tell(cleanup: Cleanup, stream: Any = None) -> None:
    """What was done to the file's lines, as a table where there is something to tell."""
    from condgrad.report.text_table import table

    stream = stream or sys.stdout
    say(str(cleanup).partition("\n  ")[0], stream=stream)
    if cleanup.faults:
        rows = [[f.kind, f.count, f.done, "{}: {}".format(*f.examples[0])] for f in cleanup.faults]
        say(table(["fault", "lines", "what was done", "the first, by line"], rows), stream=stream)


def show(found: dict[str, Any]) -> None:
    """Name and value, one a line, without what is not known."""
    width = max(map(len, found))
    for name, value in ((name, value) for name, value in found.items() if value is not None):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else value
        say(f"{name.ljust(width)}  {text}")
