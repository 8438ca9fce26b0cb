"""The commands complete, predict and fill. They complete matrices with missing entries and outliers, from files to files."""

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
from condgrad.cli.on_cluster import add_cluster_options, entries_on_workers, on_cluster
from condgrad.cli.tables import check_size, make_parent, recommendations, write_table, write_wide
from condgrad.cli.terminal import say
from condgrad.storage.atomic import check_folder, resolve_link

if TYPE_CHECKING:
    from condgrad.data import Cleanup, Observations
    from condgrad.learn import RobustCompletion

DATA_FORMATS = "CSV, TSV, Parquet, NPZ or Matrix Market; text may be gzipped"


def add(commands: Any) -> None:
    """Add the commands complete, predict and fill."""
    command = commands.add_parser(
        "complete",
        help="fit a low-rank matrix to known entries, such as ratings or sensor readings",
        description="Fit mean + row bias + column bias + low-rank matrix to the entries in a file. Outliers are ignored.",
    )
    command.add_argument(
        "data",
        type=Path,
        metavar="DATA",
        help=f"file with rows, columns and values in {DATA_FORMATS}. With workers: a folder of Parquet or CSV files, or a "
        "pattern of file names such as 'ratings/*.parquet'",
    )
    command.add_argument("--out", type=Path, required=True, metavar="MODEL.npz", help="file for the model")
    _add_reading_options(command, "user,item,rating")
    command.add_argument(
        "--wide",
        action="store_true",
        help="read the text as a wide table: each line has the name of a row and then one field for each column (default: only "
        "if the file can't be read otherwise)",
    )
    command.add_argument("--filled", type=Path, metavar="FILE.csv", help="write the completed table here, as wide CSV")
    command.add_argument("--keep", action="store_true", help="with --filled: do not change any observed value")
    _add_raw_option(command)
    add_cluster_options(command)
    _add_fitting_options(command)
    command.add_argument(
        "--period",
        type=int,
        metavar="N",
        help="number of columns in a day (or week), for a table whose rows are sensors and whose columns are times in order: "
        "also complete the table as a tensor of rows x days x times",
    )
    command.add_argument(
        "--report", type=Path, metavar="FOLDER", help="folder for the report (default: the model's name and -report)"
    )
    command.add_argument("--no-report", action="store_true", help="no report")
    add_figures(command)
    command.add_argument("--json", action="store_true", help="print the summary as JSON")
    command.set_defaults(run=complete)

    command = commands.add_parser(
        "predict",
        help="predict values with a model of `condgrad complete`",
        description="Predict the values at pairs of a row and a column. Rows and columns that were not in the training "
        "data have bias 0.",
    )
    command.add_argument("model", type=Path, metavar="MODEL.npz")
    command.add_argument("pairs", type=Path, metavar="PAIRS", nargs="?", help=f"rows and columns in {DATA_FORMATS}")
    command.add_argument(
        "--out",
        type=Path,
        metavar="FILE.csv",
        help="output file (default: standard output). If the name ends with .parquet, Parquet files are read and written part "
        "by part, so that they need not fit in memory",
    )
    command.add_argument(
        "--top",
        type=int,
        metavar="K",
        help="instead of PAIRS: for each row, predict the K columns with the largest predictions among those without an entry",
    )
    command.add_argument(
        "--rows",
        metavar="IDS",
        help="with --top: only these rows, such as ann,bob (put a name with a comma in quotes)",
    )
    command.add_argument(
        "--include-seen",
        action="store_true",
        help="with --top: include columns in which the row has an entry. Required if the entries of the model were on a cluster",
    )
    _add_raw_option(command)
    _add_reading_options(command, "user,item")
    command.set_defaults(run=predict)

    command = commands.add_parser(
        "fill",
        help="restore an image with missing or wrong pixels",
        description="Fill the missing pixels of an image, and replace outliers (salt and pepper noise).",
    )
    command.add_argument(
        "image", type=Path, metavar="IMAGE", help="PNG, TIFF, JPEG or another format that pillow reads"
    )
    command.add_argument("--out", type=Path, required=True, metavar="IMAGE", help="file for the restored image")
    command.add_argument(
        "--mask",
        type=Path,
        help="image of the same size, in which missing pixels are not black (default: transparent and NaN pixels are missing)",
    )
    command.add_argument("--invert", action="store_true", help="missing pixels are black in the mask")
    command.add_argument("--keep", action="store_true", help="change only missing pixels")
    _add_fitting_options(command)
    command.add_argument("--json", action="store_true", help="print the summary as JSON")
    command.set_defaults(run=fill)


def _add_raw_option(command: Any) -> None:
    command.add_argument(
        "--raw",
        action="store_true",
        help="write names unchanged (default: put an apostrophe before a name that a spreadsheet would read as a formula)",
    )


def _add_reading_options(command: Any, example: str) -> None:
    command.add_argument(
        "--columns", metavar="NAMES", help=f"the columns to read, by name or counted from 0, such as {example}"
    )
    command.add_argument("--delimiter", help="character between the fields of a text file (default: detected)")
    command.add_argument("--no-header", action="store_true", help="the first line of a text file is data")
    command.add_argument(
        "--format",
        choices=["csv", "parquet", "npz", "matrix-market"],
        help="format of the file (default: from its name)",
    )
    command.add_argument(
        "--strict", action="store_true", help="refuse a file with a fault, instead of skipping or correcting lines"
    )


def _add_fitting_options(command: Any) -> None:
    command.add_argument(
        "--loss",
        default="auto",
        help="loss of the errors: auto (default), welsch (also called smoothed-l0), geman-mcclure, cauchy, huber or squared. "
        "auto: the best of squared, huber and welsch on held-out entries",
    )
    command.add_argument(
        "--sigma",
        type=_auto_or_positive,
        default="auto",
        help="scale of the errors of inliers (default: estimated from the data)",
    )
    command.add_argument(
        "--radius",
        type=_auto_or_positive,
        default="auto",
        help="radius of the nuclear-norm ball (default: chosen on held-out entries)",
    )
    command.add_argument(
        "--certify",
        type=_positive,
        metavar="TOL",
        help="continue until the squared gradient mapping is certified to be at most TOL",
    )
    command.add_argument("--seed", type=int, default=0, help="seed of the choice of held-out entries (default: 0)")
    command.add_argument("--quiet", action="store_true", help="no progress")


def _auto_or_positive(text: str) -> float | str:
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
    """Run ``condgrad complete``: fit a model, save it, and write the filled table and the report."""
    check_figures(arguments)
    check_writable(arguments.out, arguments.data)
    if arguments.filled is not None:
        check_writable(arguments.filled, arguments.data)
    elif arguments.keep:
        raise ValueError("--keep needs --filled FILE.csv, the completed table whose values it keeps: give both.")
    folder = (
        None if arguments.no_report else arguments.report or arguments.out.with_name(arguments.out.stem + "-report")
    )
    if folder is not None:
        check_writable(folder / "report.html")
    check_distinct(arguments.out, arguments.filled, folder)
    model = estimator(arguments)
    if on_cluster(arguments):
        with entries_on_workers(arguments) as (objective, read):
            model.client = objective.pattern.cluster.client
            return fit_and_write(arguments, model, objective, read, folder)
    given = load_entries(arguments, arguments.data)
    if not arguments.json:
        print_cleanup(given.cleanup)
    if given.mostly_empty:
        given = given.compact()
        say(
            f"condgrad: the model has the {given.shape[0]:,} x {given.shape[1]:,} rows and columns with entries; empty rows and "
            "columns are left out.",
            stream=sys.stderr,
        )
    if arguments.filled is not None:
        check_size(given.shape)
    return fit_and_write(arguments, model, given, given, folder)


def fit_and_write(arguments: Any, model: RobustCompletion, entries: Any, given: Any, folder: Path | None) -> int:
    """Fit the entries, and write the model, the filled table and the report, which is about ``given``."""
    from condgrad.learn.completion.report import report_fit, summary

    started = perf_counter()
    model.fit(entries)
    found = {**summary(model, given), "seconds": perf_counter() - started}
    model.save(make_parent(arguments.out))
    written = {"model": str(arguments.out)}
    if arguments.filled is not None:
        write_wide(arguments.filled, given, model, "observed" if arguments.keep else "inliers", arguments.raw)
        written["filled"] = str(arguments.filled)
    if folder is not None:
        facts = {"command": shlex.join(["condgrad", *arguments.argv])}
        written["report"] = str(
            report_fit(model, given, folder, f"Fit of {arguments.data.name}", facts, found, arguments.figures)
        )
    if arguments.json:
        print(json.dumps({**found, **written, "cleanup": given.cleanup.summary()}, indent=2))
    else:
        print_summary({**found, **written})
    return 0


def predict(arguments: Any) -> int:
    """Run ``condgrad predict``: write predictions at pairs, or the best columns of each row."""
    from condgrad.learn import RobustCompletion
    from condgrad.learn.completion.entries import named, pair_positions
    from condgrad.learn.completion.table_labels import names_of

    if (arguments.top is None) == (arguments.pairs is None):
        raise ValueError(
            "Either PAIRS or --top K was expected: give a file of pairs, or how many columns for each row."
        )
    if arguments.out is not None:
        check_writable(arguments.out, arguments.model, arguments.pairs)
    model = RobustCompletion.load(arguments.model)
    if arguments.top is not None and not model.has_entries and not arguments.include_seen:
        raise ValueError(
            "The entries of this model were on a cluster, so that what a row has seen is not known: give --include-seen."
        )
    if arguments.out is not None and arguments.out.suffix == ".parquet":
        return predict_in_parts(arguments, model)
    if arguments.top is not None:
        for number, found in enumerate(recommendations(model, arguments.top, arguments.rows, arguments.include_seen)):
            assert not number, "all rows are in one part"
            write_table(arguments.out, *found, raw=arguments.raw)
        return 0
    given = load_entries(arguments, arguments.pairs, values=False)
    row_ids, col_ids = named(given.rows, given.row_ids), named(given.cols, given.col_ids)
    known, shape = names_of(model), (len(model.row_biases_), len(model.col_biases_))
    rows, cols = pair_positions(given, known, shape)
    if arguments.columns is None and not arguments.no_header:
        check_header(given, (rows >= 0) & (cols >= 0), (rows < 0) & (cols < 0))
    print_cleanup(given.cleanup, sys.stderr)
    write_table(arguments.out, row_ids, col_ids, model.predict(given), raw=arguments.raw)
    for what, new, ids in (("row", rows < 0, row_ids), ("column", cols < 0, col_ids)):
        if new.any():
            have = "has" if new.sum() == 1 else "have"
            print(
                f"condgrad: {new.sum():,} of {counted(len(given), 'pair')} {have} a {what} that was not in the training data, "
                f"such as {str(ids[new][0])!r}: predicted from the biases alone.",
                file=sys.stderr,
            )
    swapped = replace(given, rows=given.cols, cols=given.rows, row_ids=given.col_ids, col_ids=given.row_ids)
    if (rows < 0).all() and (cols < 0).all() and (np.minimum(*pair_positions(swapped, known, shape)) >= 0).any():
        print(
            "condgrad: none of these rows and columns was in the training data, but some are if rows and columns are swapped: if "
            "each pair is column and row, give --columns 1,0.",
            file=sys.stderr,
        )
    if arguments.out is not None and arguments.out.is_file():  # no message in /dev/stdout after the table
        say(f"{counted(len(given), 'prediction')}: {arguments.out}")
    return 0


def predict_in_parts(arguments: Any, model: RobustCompletion) -> int:
    """Write predictions to a Parquet file, a part at a time."""
    from condgrad.data import parquet_stream
    from condgrad.learn.completion.entries import positions
    from condgrad.learn.completion.table_labels import names_of

    many, new = 0, [0, 0]
    with parquet_stream.predictions(make_parent(arguments.out)) as write:
        if arguments.top is not None:
            parts = recommendations(
                model, arguments.top, arguments.rows, arguments.include_seen, parquet_stream.CHUNK_ROWS
            )
            for found in parts:
                write(*found)
                many += len(found[0])
        else:
            if arguments.pairs.suffix != ".parquet":
                raise ValueError(
                    f"The pairs in {arguments.pairs} are not in a Parquet file: write --out FILE.csv for them."
                )
            known, shape = names_of(model), (len(model.row_biases_), len(model.col_biases_))
            for rows, cols in parquet_stream.pairs(arguments.pairs, columns_of(arguments)):
                write(rows, cols, model.predict_names(rows, cols))
                many += len(rows)
                for k, names in enumerate((rows, cols)):
                    new[k] += int(np.count_nonzero(positions(names, known[k], shape[k]) < 0))
    for what, number in zip(("row", "column"), new, strict=True):
        if number:
            have = "has" if number == 1 else "have"
            print(
                f"condgrad: {number:,} of {counted(many, 'pair')} {have} a {what} that was not in the training data: predicted "
                "from the biases alone.",
                file=sys.stderr,
            )
    say(f"{counted(many, 'prediction')}: {arguments.out}")
    return 0


def fill(arguments: Any) -> int:
    """Run ``condgrad fill``: restore an image."""
    from condgrad.learn import images

    check_writable(arguments.out, arguments.image, arguments.mask)
    model = estimator(arguments)
    image = images.read(arguments.image)
    if arguments.mask is not None:
        image = image.without(images.read_mask(arguments.mask) != arguments.invert)
    elif arguments.invert:
        raise ValueError("--invert needs --mask: give a mask, or leave --invert out.")
    images.check_name(image, arguments.out)
    if not image.lost.any() and not arguments.quiet:
        why = "none is transparent or NaN" if arguments.mask is None else "the mask has none"
        done = "no pixel is changed" if arguments.keep else "only outliers are replaced"
        print(f"condgrad: no pixel is missing ({why}): {done}.", file=sys.stderr)
    started = perf_counter()
    restored = images.restore(image, model, correct=not arguments.keep)
    images.write(restored.image, make_parent(arguments.out))
    height, width, channels = image.pixels.shape
    found = {
        "width": width,
        "height": height,
        "channels": channels,
        "pixels filled": int(restored.filled.sum()),
        "pixels corrected": int(restored.corrected.sum()),
        "filled by": restored.method,
        "rank": len(restored.fit.singular_values_),
        "seconds": perf_counter() - started,
        "written": str(arguments.out),
    }
    if arguments.json:
        print(json.dumps(found, indent=2))
    else:
        print_summary(found)
    return 0


def estimator(arguments: Any) -> RobustCompletion:
    """Estimator with the parameters of the command line."""
    from condgrad.learn import RobustCompletion
    from condgrad.learn.completion.robust_scale import loss_or_auto

    return RobustCompletion(
        loss=loss_or_auto(arguments.loss),
        sigma=arguments.sigma,
        radius=arguments.radius,
        random_state=arguments.seed,
        certify=arguments.certify,
        period=getattr(arguments, "period", None),
        verbose=not arguments.quiet,
    )


def load_entries(arguments: Any, path: Path, values: bool = True) -> Observations:
    """Load the entries (or, without values, the pairs) of a file with the reading options of the command line."""
    from condgrad.data import load

    with advice_for_command_line():
        return load(
            path,
            arguments.format,
            columns_of(arguments),
            strict=arguments.strict,
            values=values,
            delimiter={"\\t": "\t", "tab": "\t"}.get(arguments.delimiter, arguments.delimiter),
            header=False if arguments.no_header else None,
            wide=getattr(arguments, "wide", False) or None,
        )


def columns_of(arguments: Any) -> Any:
    """The columns of --columns, by name or counted from 0; None if they are not given."""
    if arguments.columns is None:
        return None
    names = [name.strip() for name in arguments.columns.split(",")]
    return [int(name) for name in names] if all(map(str.isdecimal, names)) else names


@contextmanager
def advice_for_command_line() -> Iterator[None]:
    """Translate Python arguments in error messages to options of the command line."""
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


def check_writable(path: Path, *inputs: Path | None) -> None:
    """Raise an error, before the work starts, if a path cannot be written or is one of the input files."""
    for given in inputs:
        if given is not None and path.exists() and given.exists() and path.samefile(given):
            raise ValueError(f"--out {path} is also an input file, which would be overwritten: give another name.")
    if path.is_dir():
        raise ValueError(f"{path} is a folder, but the name of an output file was expected: give the name of a file.")
    if path.exists() and not path.is_file():  # a pipe or a device: no file is created in its folder
        return
    folder = next(folder for folder in resolve_link(path).absolute().parents if folder.exists())
    try:
        check_folder(folder)
    except OSError as error:
        raise OSError(error.errno, error.strerror, str(path.parent)) from None


def check_distinct(out: Path, filled: Path | None, folder: Path | None) -> None:
    """Raise ValueError if two outputs are the same file, also through links."""
    outputs = {"--out": out, "--filled": filled}
    outputs |= (
        {} if folder is None else {f"{name} of the report": folder / name for name in ("report.html", "data.json")}
    )
    option_by_file: dict[str, str] = {}
    for what, path in outputs.items():
        if path is None or (path.exists() and not path.is_file()):  # several outputs may go to one pipe or device
            continue
        if (file := os.path.realpath(path)) in option_by_file:
            raise ValueError(f"{option_by_file[file]} and {what} are both {path}: give two names.")
        option_by_file[file] = what


def check_header(given: Observations, known: np.ndarray, new: np.ndarray) -> None:
    """Raise BadData if the first pair looks like a header: both names are new, and the model knows most other pairs."""
    from condgrad.learn.completion.entries import named

    text = given.cleanup.unit == "line" and given.row_ids is not None
    if text and not given.cleanup.headed and new[0] and 2 * known[1:].sum() > len(known) - 1:
        first = ", ".join(
            str(named(at, ids)[0]) for ids, at in ((given.row_ids, given.rows), (given.col_ids, given.cols))
        )
        raise BadData(
            f"{given.cleanup.file}: the first line, {first!r}, looks like a header, because the model knows most of the "
            "following names and neither of these: name the columns to read by --columns, or give --no-header if it is data."
        )


def print_cleanup(cleanup: Cleanup, stream: Any = None) -> None:
    """Print what was read and, if the file had faults, a table of them."""
    from condgrad.report.text_table import table

    stream = stream or sys.stdout
    say(str(cleanup).partition("\n  ")[0], stream=stream)
    if cleanup.faults:
        rows = [[f.kind, f.count, f.done, "{}: {}".format(*f.examples[0])] for f in cleanup.faults]
        say(table(["fault", "lines", "what was done", "the first, by line"], rows), stream=stream)


def print_summary(found: dict[str, Any]) -> None:
    """Print one name and value per line, except values that are None."""
    width = max(map(len, found))
    for name, value in ((name, value) for name, value in found.items() if value is not None):
        text = f"{value:,}" if isinstance(value, int) else f"{value:.4g}" if isinstance(value, float) else value
        say(f"{name.ljust(width)}  {text}")
