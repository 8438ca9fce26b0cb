"""`load_array`: reads arrays and sparse matrices from the files that a spec names. A spec is a file that describes a problem."""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import BadData, choice
from condgrad.data.diagnostics import Limits, Notes
from condgrad.data.npz import read_sparse
from condgrad.data.text_stream import chunks, opened
from condgrad.storage.files import FORMAT_ERRORS, TooLarge, read_npy, size_of

MAX_ROW_BYTES = 16 * 2**20
"""Maximum length in bytes of a line of a table. A line of this length has about a million numbers."""


def load_array(path: Path, limits: Limits | None = None) -> Any:
    """Read an array of numbers from .npy, a sparse matrix from .npz, or a table of numbers from .csv.

    Parameters
    ----------
    path : Path
        The file.
    limits : Limits, optional
        Limits on the size of the file. By default ``Limits()``.

    Returns
    -------
    array : ndarray or scipy.sparse.csr_array
        The numbers. NaN in the file stays NaN.

    Raises
    ------
    BadData
        If the file is damaged, contains Python objects, or has indices outside of its shape. Also if the file declares a size
        that is larger than its real size or than the limits.
    """
    readers = {".npy": _dense, ".npz": read_sparse, ".csv": _table}
    suffix = choice(path.suffix, readers, "kind of file with an array")
    return readers[suffix](path, Notes(path, unit="row" if suffix == ".csv" else "element"), limits or Limits())


def _dense(path: Path, notes: Notes, limits: Limits) -> np.ndarray:
    with opened(path, notes) as file:
        try:
            return read_npy(file, size_of(file), "biuf", limits.entries)
        except TooLarge:
            notes.refuse(
                f"the array has more than {limits.entries} numbers, but no more are allowed", "give a smaller one"
            )
        except FORMAT_ERRORS:
            notes.refuse(
                "this is no .npy file with an array of real numbers, or it is damaged", "write it by numpy.save"
            )


def _table(path: Path, notes: Notes, limits: Limits) -> np.ndarray:
    try:
        with warnings.catch_warnings():
            warnings.simplefilter(
                "ignore", UserWarning
            )  # numpy warns about a file without data; such a file is refused below
            table = np.loadtxt(_lines(path, notes, limits), delimiter=",")
    except BadData:
        raise
    except FORMAT_ERRORS as error:
        said = str(error).splitlines()[0][:100] if str(error) else type(error).__name__
        notes.refuse(f"this is no .csv file of numbers ({said})", "give rows of numbers with commas between")
    if not table.size:
        notes.refuse("there are no numbers in it", "give rows of numbers with commas between")
    return table


def _lines(path: Path, notes: Notes, limits: Limits) -> Iterator[str]:
    for _, chunk in chunks(path, replace(limits, line=MAX_ROW_BYTES), notes):
        yield from chunk.decode().split("\n")[:-1]
