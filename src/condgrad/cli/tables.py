"""Tables that commands make: the best columns of each row, and a completed matrix as wide CSV."""

from __future__ import annotations

import codecs
import csv
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.archive import replacing
from condgrad.interruption import held_back

if TYPE_CHECKING:
    from condgrad.data import Observations
    from condgrad.learn import RobustCompletion

LARGEST = 100_000_000
"""Cells of a completed table that is written: about a gigabyte of text."""


def housed(path: Path) -> Path:
    """The path, with a folder to be in: made when there is something to write."""
    path.parent.mkdir(parents=True, exist_ok=True)
    return path


def recommended(model: RobustCompletion, k: int, said: str | None) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(row, column, prediction), the best columns of each row."""
    rows: Any = np.arange(len(model.row_biases_)) if model.row_ids_ is None else model.row_ids_
    if model.index_ is not None:
        rows = np.array(model.index_, dtype=object)
    if said is not None:
        known = {str(row): row for row in rows.tolist()}
        for name in (asked := named_rows(said)):
            if name not in known:
                raise ValueError(f"The model has no row {name!r}: give rows of the file that it was fitted to.")
        rows = np.array([known[name] for name in asked])
    best, values = model.recommend(rows, k)
    there = ~np.ma.getmaskarray(best)
    return np.broadcast_to(rows[:, None], best.shape)[there], best.compressed(), values[there]


def named_rows(said: str) -> list[str]:
    """As the cells of a line of CSV: a name with a comma in it stands in quotes."""
    from condgrad.data.lines import fields_of

    try:
        return fields_of(said, ",")
    except csv.Error as error:
        raise ValueError(
            f'--rows {said!r} can\'t be read ({error}): give names with commas between, such as ann,"Doe, bob".'
        ) from None


def check_size(shape: tuple[int, int]) -> None:
    """Refuses a table that is too large to write, before the fit."""
    if (cells := shape[0] * shape[1]) > LARGEST:
        raise ValueError(
            f"The completed table would have {cells:,} cells, but at most {LARGEST:,} are written: leave out --filled, and ask "
            "`condgrad predict` for the pairs that you need."
        )


def write_wide(path: Path, given: Observations, model: RobustCompletion, keep: str) -> None:
    """The completed matrix as wide CSV, its rows and columns in the order of the file; observed values keep all their digits."""
    from condgrad.learn.entries import places

    (m, n), filled = given.shape, model.fill(keep)
    row_ids, col_ids = (np.arange(m), np.arange(n)) if given.row_ids is None else (given.row_ids, given.col_ids)
    assert col_ids is not None and given.values is not None
    rows, cols = places(row_ids, model.row_ids_, m), places(col_ids, model.col_ids_, n)
    ends = np.searchsorted(given.rows, np.arange(m + 1), sorter=(order := np.argsort(given.rows, kind="stable")))
    with held_back(), replacing(housed(path)) as file:
        writer = csv.writer(codecs.getwriter("utf-8")(file), lineterminator="\n")
        writer.writerow([given.title, *col_ids.tolist()])
        for i, name in enumerate(row_ids.tolist()):
            line = filled[rows[i], cols]
            cells = [f"{value:.6g}" for value in line.tolist()]
            for k in order[ends[i] : ends[i + 1]].tolist():
                if line[j := given.cols[k]] == given.values[k]:
                    cells[j] = repr(float(given.values[k]))
            writer.writerow([name, *cells])
