"""Reader of NPZ files that have a matrix written by scipy.sparse.save_npz, or the arrays row, col, data and shape.

Arrays of Python objects are refused, because reading them could run code.
"""

from __future__ import annotations

from pathlib import Path
from typing import Any

import numpy as np
from scipy import sparse

from condgrad.data.diagnostics import Limits, Notes
from condgrad.data.observations import Observations, bounded, observations
from condgrad.data.text_stream import opened
from condgrad.storage.files import FORMAT_ERRORS, TooLarge, open_zip, read_npy, size_of

SAVE = "save it by scipy.sparse.save_npz(path, matrix.tocoo()), or by numpy.savez with row, col, data and shape"
"""Advice at the end of messages."""
WANTED = {"format", "row", "col", "data", "shape", "indices", "indptr"}
"""Names of the arrays that are read. Other arrays in the file are ignored."""


def read(path: Path, notes: Notes, limits: Limits, values: bool = True) -> Observations:
    """Read the entries of a sparse matrix. Entries with faults are left out."""
    rows, cols, data, shape = _entries(path, notes, limits, values)
    bounded(shape, notes, limits)
    notes.lines = len(rows)
    numbers = np.arange(1, len(rows) + 1)
    ok = _inside(rows, cols, shape, numbers, notes)
    if values:
        if data is None:
            notes.refuse("there is no array 'data', but values were expected", SAVE)
        with np.errstate(over="ignore"):  # a long double may exceed the range of float64
            taken = data if data.dtype == np.float32 else data.astype(float)
        bad = np.flatnonzero(~np.isfinite(taken) & ok)
        ok[bad] = False
        notes.faults(
            "not finite", numbers[bad], lambda k: f"the value is {data[bad[k]]!s}", "a finite number was expected"
        )
    sides = ((rows[ok], None, shape[0]), (cols[ok], None, shape[1]))
    return observations(*sides, taken[ok] if values else None, numbers[ok], notes, limits)


def read_sparse(path: Path, notes: Notes, limits: Limits) -> sparse.csr_array:
    """Read a sparse matrix as scipy would: repeated entries are added, and NaN is kept. Entries outside of the shape are refused.

    The file is also refused if a vector of one float64 for each row and each column would exceed the limits, because computations
    with the matrix need such vectors.
    """
    rows, cols, data, shape = _entries(path, notes, limits)
    bounded(shape, notes, limits)
    allowed = limits.allowed(path.stat().st_size)
    if 8 * sum(shape) > allowed:
        notes.refuse(
            f"the shape of {len(rows)} entries is {shape[0]} x {shape[1]}, which takes more than the {allowed} bytes that are "
            "allowed for a file of this size",
            "leave out rows and columns without entries",
        )
    strict = Notes(path, strict=True, unit="element")
    _inside(rows, cols, shape, np.arange(1, len(rows) + 1), strict)
    return sparse.coo_array((data, (rows, cols)), shape=shape).tocsr()


def _entries(path: Path, notes: Notes, limits: Limits, values: bool = True) -> Any:
    """Return rows, columns, values and shape as in the file. The indices may lie outside of the shape."""
    arrays = _arrays(path, notes, limits)
    layout = arrays.pop("format", None)
    if layout is None:
        return _coordinates(arrays, "coo", notes, values)
    kind = _word(layout)
    if kind not in ("coo", "csr", "csc"):
        notes.refuse(f"the sparse matrix has the format {kind!r}, but coo, csr or csc was expected", SAVE)
    return (_coordinates if kind == "coo" else _compressed)(arrays, kind, notes)


def _inside(
    rows: np.ndarray, cols: np.ndarray, shape: tuple[int, int], numbers: np.ndarray, notes: Notes
) -> np.ndarray:
    """Mask of the entries inside of the shape. Each entry outside of the shape is recorded as a fault."""
    m, n = shape
    in_rows = (rows >= 0) & (rows < m)
    ok = in_rows & (cols >= 0) & (cols < n)
    wrong = np.flatnonzero(~ok)

    def found(k: int) -> str:
        at = wrong[k]
        return f"the column is {cols[at]}" if in_rows[at] else f"the row is {rows[at]}"

    if len(wrong):
        last = (n if in_rows[wrong[0]] else m) - 1
        notes.faults("bad index", numbers[wrong], found, f"a number from 0 to {last} was expected")
    return ok


def _arrays(path: Path, notes: Notes, limits: Limits) -> dict[str, np.ndarray]:
    """Read the arrays of a sparse matrix, by name. Before an array is read, the size that the file states for it is checked."""
    with opened(path, notes) as file:
        allowed = limits.allowed(size := size_of(file))
        try:
            with open_zip(file, allowed) as members:
                names = {name.removesuffix(".npy"): members.getinfo(name) for name in members.namelist()}
                arrays = {}
                for name in WANTED & set(names):
                    with members.open(names[name]) as member:
                        arrays[name] = read_npy(member, names[name].file_size, "biufSU", limits.entries + 1)
                return arrays
        except TooLarge:
            notes.refuse(
                f"the file's {size} bytes unpack to more than {allowed} bytes or {limits.entries} entries, but that much is "
                "not allowed",
                "check where it comes from, or raise Limits(bytes=..., entries=..., ratio=...)",
            )
        except (*FORMAT_ERRORS, OSError):
            notes.refuse("this is no NPZ file of arrays of numbers, or it is damaged", SAVE)


def _word(array: np.ndarray) -> str:
    word = array.item() if array.size == 1 else ""
    return word.decode(errors="replace") if isinstance(word, bytes) else str(word)


def _coordinates(arrays: dict[str, np.ndarray], kind: str, notes: Notes, values: bool = True) -> Any:
    rows, cols = _whole(arrays, "row", notes), _whole(arrays, "col", notes)
    data = _numbers(arrays, notes) if values or "data" in arrays else None
    if len(rows) != len(cols) or (data is not None and len(data) != len(rows)):
        notes.refuse("row, col and data have different lengths", SAVE)
    if "shape" in arrays:
        return rows, cols, data, _shape(arrays, notes)
    return rows, cols, data, (int(rows.max(initial=-1)) + 1, int(cols.max(initial=-1)) + 1)


def _compressed(arrays: dict[str, np.ndarray], kind: str, notes: Notes) -> Any:
    m, n = _shape(arrays, notes)
    along, pointers = _whole(arrays, "indices", notes), _whole(arrays, "indptr", notes)
    data = _numbers(arrays, notes)
    major = m if kind == "csr" else n
    steps = np.diff(pointers)
    if (
        len(pointers) != major + 1
        or pointers[0] != 0
        or (steps < 0).any()
        or not pointers[-1] == len(along) == len(data)
    ):
        notes.refuse("indptr, indices and data do not fit together", SAVE)
    across = np.repeat(np.arange(major), steps)
    return (across, along, data, (m, n)) if kind == "csr" else (along, across, data, (m, n))


def _take(arrays: dict[str, np.ndarray], name: str, kinds: str, what: str, notes: Notes) -> np.ndarray:
    array = arrays.get(name)
    if array is None or array.ndim != 1 or array.dtype.kind not in kinds:
        found = f"there is no array '{name}'" if array is None else f"'{name}' is {array.dtype} with {array.ndim} axes"
        notes.refuse(f"{found}, but {what} were expected", SAVE)
    return array


def _whole(arrays: dict[str, np.ndarray], name: str, notes: Notes) -> np.ndarray:
    array = _take(arrays, name, "iuf", "whole numbers in one axis", notes)
    with np.errstate(invalid="ignore"):
        number = array.astype(np.int64)
    wrong = np.flatnonzero(number != array)
    if len(wrong):
        notes.refuse(f"entry {wrong[0] + 1} of '{name}' is {array[wrong[0]]}, but whole numbers were expected", SAVE)
    return number


def _numbers(arrays: dict[str, np.ndarray], notes: Notes) -> np.ndarray:
    return _take(arrays, "data", "biuf", "real numbers in one axis", notes)


def _shape(arrays: dict[str, np.ndarray], notes: Notes) -> tuple[int, int]:
    shape = _whole(arrays, "shape", notes)
    if len(shape) != 2:
        notes.refuse(f"the shape has {len(shape)} sizes, but rows and columns were expected", SAVE)
    return int(shape[0]), int(shape[1])
