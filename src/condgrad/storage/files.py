"""Safe reading of files: only regular files are opened, and no more bytes are read than the limits allow.

A file may come from an untrusted source. Sizes that the file declares (the shape of an array, the size of a member of a zip) are
compared with the size of the file and with the limits before memory is allocated. Nothing in a file can run code, and reading
never waits for a pipe or a device.
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

MIN_ALLOWED_BYTES = 64 * 2**20
"""Number of bytes to which a file of any size may decompress: ``Limits.ratio`` applies only above this number."""
CHUNK = 2**20
"""Number of bytes that are read or written at a time."""
MAX_JSON_BYTES = 64 * 2**20
"""Maximum size of a JSON text in bytes. The parsed data takes many times as much memory."""
MAX_JSON_DEPTH = 200
"""Maximum number of nested brackets in a JSON text. There is a limit because the parser is recursive."""
MAX_DIRECTORY_BYTES = 16 * 2**20
"""Maximum size in bytes of the central directory of a zip. The parsed directory takes ten times as much memory."""
JSON_STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Pattern of a JSON string. It also matches an unterminated string at the end of the text, so that matching takes linear time."""
NOT_BRACKETS = bytes({*range(256)} - {*b"[]{}"})
FORMAT_ERRORS = (
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
"""Exceptions that zipfile, json and numpy raise for malformed content."""


class NotAFile(BadData):
    """The path is a pipe or a device, from which reading may never end."""


class TooLarge(BadData):
    """A file exceeds the limits."""


@dataclass(frozen=True)
class Limits:
    """Limits on files, which are checked before memory is allocated. Increase a limit that is too small for your data.

    Parameters
    ----------
    bytes : int, default 8 GiB
        Maximum number of bytes after decompression.
    ratio : int, default 200
        Maximum ratio of the number of bytes after decompression to the size of the file. Only files that decompress to more than
        64 MiB are checked.
    entries : int, default 500,000,000
        Maximum number of entries of a matrix.
    side : int, default 100,000,000
        Maximum number of rows, and of columns.
    line : int, default 1 MiB
        Maximum number of bytes of one line of text or of one name.
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
        """Maximum number of bytes to which a file may decompress.

        Parameters
        ----------
        size : int
            Size of the file in bytes.

        Returns
        -------
        allowed : int
        """
        return min(self.bytes, max(MIN_ALLOWED_BYTES, self.ratio * size))


def open_file(path: str | os.PathLike[str]) -> BinaryIO:
    """Open a regular file for reading.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    file : binary file object

    Raises
    ------
    NotAFile
        If the path is a pipe or a device.
    OSError
        If there is no such file, or it cannot be opened.
    """
    refusal = NotAFile(f"{path} is a pipe or a device, but a file was expected: copy the data into a file.")
    if not _is_file_or_folder(os.stat(path)):  # checked before opening, because opening some devices has side effects
        raise refusal
    file = open(path, "rb", opener=_open_without_waiting)  # noqa: SIM115
    if not _is_file_or_folder(os.fstat(file.fileno())):  # the file was replaced between the two calls
        file.close()
        raise refusal
    return file


def _open_without_waiting(path: str, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NONBLOCK", 0))


def _is_file_or_folder(found: os.stat_result) -> bool:
    """Whether a path is a regular file or a folder. For a folder, ``open`` raises its own error."""
    return stat.S_ISREG(found.st_mode) or stat.S_ISDIR(found.st_mode)


def size_of(file: IO[bytes]) -> int:
    """Size of an open file in bytes.

    Parameters
    ----------
    file : binary file object

    Returns
    -------
    size : int
    """
    return os.fstat(file.fileno()).st_size


def read_bytes(path: str | os.PathLike[str], max_bytes: int) -> bytes:
    """Read a whole file.

    Parameters
    ----------
    path : str or os.PathLike
    max_bytes : int
        Maximum size of the file.

    Returns
    -------
    content : bytes

    Raises
    ------
    TooLarge
        If the file has more than ``max_bytes`` bytes.
    """
    with open_file(path) as file:
        content = b"" if size_of(file) > max_bytes else file.read(max_bytes + 1)
        if size_of(file) > max_bytes or len(content) > max_bytes:
            raise TooLarge(f"{path} has more than the {max_bytes:,} bytes that such a file may have: check what it is.")
    return content


def read_json(path: str | os.PathLike[str], max_bytes: int = MAX_JSON_BYTES) -> Any:
    """Read a JSON file.

    Parameters
    ----------
    path : str or os.PathLike
    max_bytes : int, default 64 MiB
        Maximum size of the file.

    Returns
    -------
    data : Any

    Raises
    ------
    ValueError
        If the file is not JSON in UTF-8, is too large, or is nested too deeply.
    """
    return parse_json(read_bytes(path, max_bytes))


def parse_json(content: bytes) -> Any:
    """Parse JSON with at most ``MAX_JSON_DEPTH`` levels of brackets.

    Parameters
    ----------
    content : bytes
        JSON in UTF-8.

    Returns
    -------
    data : Any

    Raises
    ------
    ValueError
        If the content is not JSON in UTF-8, or is nested too deeply.
    """
    brackets = np.frombuffer(JSON_STRINGS.sub(b"", content).translate(None, NOT_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    if np.cumsum(steps, dtype=np.int32).max(initial=0) > MAX_JSON_DEPTH:
        raise BadData("it is nested too deeply")
    return json.loads(content.decode())


class Readable(Protocol):
    """Stream from which arrays are read: a file, a member of a zip, or a reader that also computes a hash."""

    def read(self, size: int = -1, /) -> bytes: ...


def read_npy(stream: Readable, available: int, kinds: str, entries: int | None = None) -> np.ndarray:
    """Read an array in the npy format, up to the end of the stream.

    Parameters
    ----------
    stream : object with ``read``
    available : int
        Size of the stream in bytes. An array whose header declares more bytes is refused before memory is allocated.
    kinds : str
        Accepted kinds of dtype, such as "biuf". Objects are never accepted, because unpickling can run code.
    entries : int, optional
        Maximum number of entries.

    Returns
    -------
    array : ndarray

    Raises
    ------
    ValueError
        If the array is malformed or not accepted. Malformed content may also raise another of :data:`FORMAT_ERRORS`.
    TooLarge
        If the array has more than ``entries`` entries.
    """
    version = npy.read_magic(stream)
    with warnings.catch_warnings():
        # numpy warns of a header that it repaired, and of old names of dtypes
        for harmless in (UserWarning, DeprecationWarning):
            warnings.simplefilter("ignore", harmless)
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
    """Open a zip file whose members unpack to at most ``allowed`` bytes in total.

    Parameters
    ----------
    file : binary file object
    allowed : int
        Maximum number of bytes of all members.

    Returns
    -------
    members : zipfile.ZipFile
        Archive with unique names, whose members are stored or deflated, as numpy and scipy write them.

    Raises
    ------
    BadData
        If the archive has members of the same name or uses another compression.
    TooLarge
        If the members or their directory are too large.

    Notes
    -----
    ``zipfile`` never unpacks more bytes of a member than the member declares. So it is enough to check the declared sizes.
    """
    limited: Any = _LimitedReads(file)
    members = zipfile.ZipFile(limited)
    infos = members.infolist()
    if any(info.compress_type not in (zipfile.ZIP_STORED, zipfile.ZIP_DEFLATED) for info in infos):
        raise BadData("it is packed by a method that numpy does not use")
    if len({info.filename for info in infos}) < len(infos):
        raise BadData("it has two members of one name")
    if sum(info.file_size for info in infos) > allowed:
        raise TooLarge("it unpacks to too much")
    return members


class _LimitedReads:
    """File that refuses reads of more than ``MAX_DIRECTORY_BYTES``: zipfile reads the whole central directory at once."""

    def __init__(self, file: BinaryIO):
        self.file = file

    def read(self, size: int = -1) -> bytes:
        if size > MAX_DIRECTORY_BYTES:
            raise TooLarge("it lists too many members")
        return self.file.read(size)

    def __getattr__(self, name: str) -> Any:
        return getattr(self.file, name)
