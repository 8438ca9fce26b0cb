"""The only way in which condgrad opens a file to read: an ordinary file, and no more bytes than are allowed.

A file may come from a stranger. What it declares (a shape, the size of a member of a zip) is compared with what it holds and with
the limits before memory is taken, nothing in it can run code, and nothing is waited for.
"""

from __future__ import annotations

import json
import os
import re
import stat
import struct
import warnings
import zipfile
import zlib
from dataclasses import dataclass, fields
from math import prod
from tokenize import TokenError
from typing import IO, Any, BinaryIO, Protocol

import numpy as np
from numpy.lib import format as npy

from condgrad.checks import BadData, whole

FREE = 64 * 2**20
"""Bytes that any file may decompress to."""
CHUNK = 2**20
MAX_JSON_BYTES = 64 * 2**20
"""Of a JSON text: parsed it takes many times as much."""
MAX_JSON_DEPTH = 200
"""Levels of brackets in a JSON text: its parser is recursive."""
MAX_DIRECTORY_BYTES = 16 * 2**20
"""Of the list of members at the end of a zip: parsed it takes ten times as much."""
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Strings of JSON, the last one even if it does not end: then no byte is looked at twice."""
NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
DAMAGE = (
    zipfile.BadZipFile,
    zlib.error,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,
    RuntimeError,
    SyntaxError,
    TokenError,
)
"""What zipfile, json and numpy raise for bytes that are not what they expect."""


class NotAFile(BadData):
    """A pipe or a device, which may never give an end."""


class TooLarge(BadData):
    """More than the limits allow."""


@dataclass(frozen=True)
class Limits:
    """What a file may take. It is compared before memory is taken: raise what is too small for your data.

    Parameters
    ----------
    bytes : int, default 8 GiB
        Bytes after decompression.
    ratio : int, default 200
        Beyond 64 MiB, bytes after decompression for each byte of the file.
    entries : int, default 500,000,000
        Entries of a matrix.
    side : int, default 100,000,000
        Rows, or columns.
    line : int, default 1 MiB
        Bytes of one line of text or of one name.
    """

    bytes: int = 8 * 2**30
    ratio: int = 200
    entries: int = 500_000_000
    side: int = 100_000_000
    line: int = 2**20

    def __post_init__(self) -> None:
        for field in fields(self):
            whole(getattr(self, field.name), f"The limit '{field.name}'")

    def allowed(self, size: int) -> int:
        """Bytes that a file may take in memory.

        Parameters
        ----------
        size : int
            Bytes of the file.

        Returns
        -------
        allowed : int
        """
        return min(self.bytes, max(FREE, self.ratio * size))


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open an ordinary file for reading.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    file : binary file object

    Raises
    ------
    NotAFile
        For a pipe or a device, without waiting for it.
    OSError
        Where there is no such file, or it can't be opened.
    """
    refusal = NotAFile(f"{path} is a pipe or a device, but a file was expected: copy the data into a file.")
    if not _ordinary(os.stat(path)):  # before it is opened: opening some devices does something
        raise refusal
    file = open(path, "rb", opener=_without_waiting)  # noqa: SIM115
    if not _ordinary(os.fstat(file.fileno())):  # what stands there has changed since
        file.close()
        raise refusal
    return file


def _without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _ordinary(found: os.stat_result) -> bool:
    """A file; or a folder, which ``open`` refuses in its own words."""
    return stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)


def size_of(file: IO[bytes]) -> int:
    """Bytes of an open file.

    Parameters
    ----------
    file : binary file object

    Returns
    -------
    size : int
    """
    return os.fstat(file.fileno()).st_size


def read_bytes(path: str | os.PathLike[str], most: int) -> bytes:
    """Read a whole file.

    Parameters
    ----------
    path : str or os.PathLike
    most : int
        Bytes that it may have; more are refused as TooLarge.

    Returns
    -------
    content : bytes
    """
    with open_file(path) as file:
        content = b"" if size_of(file) > most else file.read(most + 1)
        if size_of(file) > most or len(content) > most:
            raise TooLarge(f"{path} has more than the {most:,} bytes that such a file may have: check what it is.")
    return content


def read_json(path: str | os.PathLike[str], most: int = MAX_JSON_BYTES) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : str or os.PathLike
    most : int, default 64 MiB
        Bytes that it may have.

    Returns
    -------
    data : Any

    Raises
    ------
    ValueError
        Where it is no JSON in UTF-8, is too large, or is nested too deeply.
    """
    return parse_json(read_bytes(path, most))


def parse_json(content: bytes) -> Any:
    """Parse JSON whose brackets are not nested so deeply that the parser fails.

    Parameters
    ----------
    content : bytes
        In UTF-8.

    Returns
    -------
    data : Any
    """
    brackets = np.frombuffer(STRINGS.sub(b"", content).translate(None, NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    if np.cumsum(steps, dtype=np.int32).max(initial=0) > MAX_JSON_DEPTH:
        raise BadData("it is nested too deeply")
    return json.loads(content.decode())


class Readable(Protocol):
    """What arrays are read from: a file, a member of a zip, or one that hashes what it passes on."""

    def read(self, size: int = -1, /) -> bytes: ...


def read_npy(stream: Readable, available: int, kinds: str, entries: int | None = None) -> np.ndarray:
    """Read an array in numpy's format, up to the end of the stream.

    Parameters
    ----------
    stream : object with ``read``
    available : int
        Bytes that the stream has. An array that declares more is refused before memory is taken.
    kinds : str
        Kinds of dtype that are accepted, such as "biuf". Objects never are: they could run code.
    entries : int, optional
        Numbers that the array may have; more are refused as TooLarge.

    Returns
    -------
    array : ndarray

    Raises
    ------
    ValueError
        Where this is no such array, or one of :data:`DAMAGE`.
    """
    version = npy.read_magic(stream)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", UserWarning)  # numpy's, of a header that it repaired
        header = npy.read_array_header_1_0 if version == (1, 0) else npy.read_array_header_2_0
        shape, fortran, dtype = header(stream)
    if dtype.kind not in kinds or dtype.hasobject:
        raise BadData(f"it has dtype {dtype}")
    if min(shape, default=0) < 0 or prod(shape) * dtype.itemsize > available:
        raise BadData("it declares more than it holds")
    if entries is not None and prod(shape) > entries:
        raise TooLarge("it has too many entries")
    array = np.empty(shape, dtype, order="F" if fortran else "C")
    flat = (array.T if fortran else array).reshape(-1).view(np.uint8) if array.nbytes else np.empty(0, np.uint8)
    at = 0
    while chunk := stream.read(CHUNK):
        if at + len(chunk) > array.nbytes:
            raise BadData("it holds more than it declares")
        flat[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
        at += len(chunk)
    if at != array.nbytes:
        raise EOFError
    return array


def open_zip(file: BinaryIO, allowed: int) -> zipfile.ZipFile:
    """Open a zip whose members, all together, unpack to no more than is allowed.

    Parameters
    ----------
    file : binary file object
    allowed : int
        Bytes; more are refused as TooLarge.

    Returns
    -------
    members : zipfile.ZipFile
        Each name once; stored or deflated, as numpy and scipy write them.

    Notes
    -----
    ``zipfile`` does not unpack more of a member than it declares, so the declared sizes are limits.
    """
    capped: Any = _Capped(file)
    members = zipfile.ZipFile(capped)
    infos = members.infolist()
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise BadData("it is packed by a method that numpy does not use")
    if len({info.filename for info in infos}) < len(infos):
        raise BadData("it has two members of one name")
    if sum(info.file_size for info in infos) > allowed:
        raise TooLarge("it unpacks to too much")
    return members


class _Capped:
    """A file of which no more is read at once than a zip's list of members may have: zipfile asks for all of the list."""

    def __init__(self, file: BinaryIO):
        self.file = file

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY_BYTES:
            raise TooLarge("it lists too many members")
        return self.file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
