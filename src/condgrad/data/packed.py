"""NPZ: a matrix that scipy.sparse.save_npz wrote, or arrays row, col, data and shape. Nothing in it can run code."""

from __future__ import annotations

import os
import struct
import warnings
import zipfile
import zlib
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import Any

import numpy as np
from numpy.lib import format as npy

from condgrad.data.notes import Limits, Notes
from condgrad.data.observations import Observations, bounded, observations
from condgrad.data.text import FREE, opened

SAVE = "save it by scipy.sparse.save_npz(path, matrix.tocoo()), or by numpy.savez with row, col, data and shape"
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    EOFError,
    ValueError,
    TypeError,
    LookupError,
    OverflowError,
    NotImplementedError,
    RuntimeError,
    SyntaxError,
    TokenError,
    OSError,
)
"""What zipfile and numpy raise of bytes that are not what they expect."""


def read(path: Path, notes: Notes, limits: Limits, values: bool = True) -> Observations:
    arrays = _arrays(path, notes, limits)
    layout = arrays.pop("format", None)
    if layout is not None:
        kind = _word(layout)
        if kind not in ("coo", "csr", "csc"):
            notes.refuse(f"the sparse matrix has the format {kind!r}, but coo, csr or csc was expected", SAVE)
        rows, cols, data, shape = (_coordinates if kind == "coo" else _compressed)(arrays, kind, notes)
    else:
        rows, cols, data, shape = _coordinates(arrays, "coo", notes, values)
    bounded(shape, notes, limits)
    notes.lines = len(rows)
    numbers = np.arange(1, len(rows) + 1)
    ok = _inside(rows, shape[0], "row", numbers, notes)
    ok &= _inside(cols, shape[1], "column", numbers, notes)
    if values:
        if data is None:
            notes.refuse("there is no array 'data', but values were expected", SAVE)
        with np.errstate(over="ignore"):  # a longer float may be too large for one of 64 bits
            taken = data.astype(float)
        bad = np.flatnonzero(~np.isfinite(taken) & ok)
        ok[bad] = False
        notes.faults(
            "not finite", numbers[bad], lambda k: f"the value is {data[bad[k]]!s}", "a finite number was expected"
        )
    sides = ((rows[ok], None, shape[0]), (cols[ok], None, shape[1]))
    return observations(*sides, taken[ok] if values else None, numbers[ok], notes, limits)


def _inside(given: np.ndarray, size: int, what: str, numbers: np.ndarray, notes: Notes) -> np.ndarray:
    ok = (given >= 0) & (given < size)
    wrong = np.flatnonzero(~ok)
    expected = f"a number from 0 to {size - 1} was expected"
    notes.faults("bad index", numbers[wrong], lambda k: f"the {what} is {given[wrong[k]]}", expected)
    return ok


def _arrays(path: Path, notes: Notes, limits: Limits) -> dict[str, np.ndarray]:
    """All that the file holds, after what it says of its sizes is within the limits; it can't give more than it says."""
    with opened(path, notes) as file:
        size = file.seek(0, os.SEEK_END)
        allowed = min(limits.bytes, max(FREE, limits.ratio * size))
        try:
            with zipfile.ZipFile(file) as members:
                if sum(member.file_size for member in members.infolist()) > allowed:
                    raise _TooLarge
                names = [name.removesuffix(".npy") for name in members.namelist()]
                wanted = {"format", "row", "col", "data", "shape", "indices", "indptr"}
                return {name: _array(members, name, limits) for name in names if name in wanted}
        except _TooLarge:
            notes.refuse(
                f"the file's {size} bytes unpack to more than {allowed} bytes or {limits.entries} entries, but that much is "
                "not allowed",
                "check where it comes from, or raise Limits(bytes=..., entries=..., ratio=...)",
            )
        except DAMAGE:
            notes.refuse("this is no NPZ file of arrays of numbers, or it is damaged", SAVE)


class _TooLarge(Exception):
    """More than the limits allow."""


def _array(members: zipfile.ZipFile, name: str, limits: Limits) -> np.ndarray:
    """The header is believed only as far as the member has bytes; objects, which could run code, are refused."""
    info = members.getinfo(f"{name}.npy")
    with members.open(info) as member:
        version = npy.read_magic(member)
        head = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # numpy's advice about headers of Python 2
            shape, _, dtype = head(member)
        if dtype.kind not in "biufSU":
            raise ValueError
        if prod(shape) > limits.entries + 1:
            raise _TooLarge
        nbytes = prod(shape) * dtype.itemsize
        if nbytes > info.file_size:
            raise ValueError
        content = member.read(nbytes + 1)
        if len(content) != nbytes:
            raise ValueError
        return np.frombuffer(content, dtype=dtype).reshape(shape)


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
        found = "there is no" if array is None else f"{array.dtype} of {array.ndim} axes is the"
        notes.refuse(f"{found} array '{name}', but {what} were expected", SAVE)
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
