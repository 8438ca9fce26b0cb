"""Archives: files of arrays and plain data, which can't run code, are never half written, and have checksums.

An archive is a zip file. Its members are ``header.json`` (the kind of file, its version, the plain data, and the SHA-256 of each
array), ``header.sha256``, and the arrays as ``.npy``, so that ``numpy.load`` can read the arrays too. A file with a wrong
checksum is refused. Members are not compressed, so the memory that reading takes is known from the size of the file before memory
is allocated.
"""

from __future__ import annotations

import errno
import hashlib
import json
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

from condgrad.checks import BadData
from condgrad.storage import files
from condgrad.storage.atomic import previous as previous
from condgrad.storage.atomic import replacing
from condgrad.storage.files import CHUNK

HEADER, SUM = "header.json", "header.sha256"
NUMBERS = "biufc"
"""Kinds of dtype (``dtype.kind``) that an array in an archive may have: numbers, no references to objects."""


class BadArchive(ValueError):
    """The file is damaged or truncated, is no archive of condgrad, or is of another kind or version."""


def write(
    path: str | Path, kind: str, version: int, data: Any, arrays: Mapping[str, np.ndarray], keep: bool = False
) -> None:
    """Write a file completely or not at all.

    The file is written under a temporary name, synchronised with the disk, and then moved to its place. So after a crash at any
    moment, ``path`` is the old file or the new one.

    Parameters
    ----------
    path : str or Path
    kind : str
        Kind of file, such as "checkpoint". :func:`read` refuses a file of another kind.
    version : int
        Version of the format. :func:`read` refuses a file of another version.
    data : Any
        Plain data: everything that JSON can represent, and also NaN and infinite numbers.
    arrays : mapping of str to ndarray
        Arrays of numbers, by name.
    keep : bool, default False
        Keep the old file as PATH.previous. While the new file is moved to its place, only PATH.previous exists.

    Raises
    ------
    TypeError
        If an array does not hold numbers.
    OSError
        If the file can't be written, or if the plain data is larger than :func:`read` accepts.
    """
    with replacing(path, keep) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as members:
        sums = {name: _add(members, name, array) for name, array in arrays.items()}
        header = json.dumps({"kind": kind, "version": version, "data": data, "arrays": sums}).encode()
        if len(header) > files.MAX_JSON_BYTES:
            raise OSError(errno.EFBIG, f"Its plain data takes more than {files.MAX_JSON_BYTES >> 20} MiB", str(path))
        members.writestr(HEADER, header)
        members.writestr(SUM, hashlib.sha256(header).hexdigest())


def _add(members: zipfile.ZipFile, name: str, array: np.ndarray) -> str:
    """Write one array; return the checksum of its member."""
    if array.dtype.kind not in NUMBERS:
        raise TypeError(f"The array {name!r} has dtype {array.dtype}: an archive takes arrays of numbers.")
    array = array if array.flags.c_contiguous or array.flags.f_contiguous else array.copy()
    with members.open(f"{name}.npy", "w", force_zip64=True) as member:
        hashed = _Hashed(member)
        npy.write_array_header_2_0(hashed, npy.header_data_from_array_1_0(array))
        flat = (array if array.flags.c_contiguous else array.T).reshape(-1).view(np.uint8)
        for at in range(0, len(flat), CHUNK):
            hashed.write(flat[at : at + CHUNK].data)
    return hashed.sum.hexdigest()


class _Hashed:
    """Wrapper of a binary file that computes the SHA-256 of the bytes that are read or written."""

    def __init__(self, file: IO[bytes]):
        self.file, self.sum = file, hashlib.sha256()

    def write(self, chunk: Any) -> int:
        self.sum.update(chunk)
        return self.file.write(chunk)

    def read(self, size: int = -1, /) -> bytes:
        chunk = self.file.read(size)
        self.sum.update(chunk)
        return chunk


def read(path: str | Path, kind: str, version: int) -> tuple[Any, dict[str, np.ndarray]]:
    """Read a file that :func:`write` wrote.

    Parameters
    ----------
    path : str or Path
    kind : str
    version : int
        Expected kind and version of the file.

    Returns
    -------
    data : Any
    arrays : dict of str to ndarray

    Raises
    ------
    BadArchive
        If the file is damaged or truncated, is no archive of condgrad, or is of another kind or version.
    """
    if Path(path).is_dir():
        raise BadArchive(f"{path} can't be used: it is a folder, a file was expected.")
    try:
        file = files.open_file(path)
    except files.NotAFile:
        raise BadArchive(f"{path} can't be used: it is a pipe or a device, a file was expected.") from None
    with file, _refusing(path), files.open_zip(file, files.size_of(file)) as members:
        _check_stored(members)
        header = _header(members)
        if header["kind"] != kind:
            raise BadArchive(f"it is of the kind {str(header['kind'])[:40]!r}, {kind!r} was expected")
        if header["version"] != version:
            age = "a newer" if header["version"] > version else "an older"
            raise BadArchive(
                f"its format is version {header['version']}, of {age} condgrad; this one reads version {version}: write it again "
                "with this one"
            )
        sums = header["arrays"]
        if set(members.namelist()) != {HEADER, SUM, *(f"{name}.npy" for name in sums)}:
            raise BadArchive("its members are not those that its header names")
        return header["data"], {name: _array(members, name, sums[name]) for name in sums}


@contextmanager
def _refusing(path: str | Path) -> Iterator[None]:
    """Convert exceptions inside the block to BadArchive, with one sentence about the file at ``path``."""
    try:
        yield
    except BadArchive as error:
        raise BadArchive(f"{path} can't be used: {error}.") from None
    except files.TooLarge:
        raise BadArchive(f"{path} can't be used: it declares more than it holds.") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # EINVAL: a damaged file led to a seek to an impossible position
            raise
        raise BadArchive(f"{path} can't be used: it is damaged.") from error
    except files.FORMAT_ERRORS as error:
        raise BadArchive(f"{path} can't be used: it is damaged, truncated, or no file of condgrad's.") from error


def _check_stored(members: zipfile.ZipFile) -> None:
    """Refuse compressed members, so that reading takes no more memory than the file has bytes."""
    if any(
        info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in members.infolist()
    ):
        raise BadArchive("it is compressed, which no file of condgrad's is")


def _header(members: zipfile.ZipFile) -> Any:
    if members.getinfo(HEADER).file_size > files.MAX_JSON_BYTES:
        raise BadArchive(f"its header takes more than {files.MAX_JSON_BYTES >> 20} MiB")
    text = members.read(HEADER)
    if hashlib.sha256(text).hexdigest().encode() != members.read(SUM):
        raise BadArchive("its checksum does not hold, it is damaged")
    try:
        return files.parse_json(text)
    except BadData as error:
        raise BadArchive(f"its header can't be used: {error}") from None


def _array(members: zipfile.ZipFile, name: str, expected: str) -> np.ndarray:
    info = members.getinfo(f"{name}.npy")
    with members.open(info) as member:
        hashed = _Hashed(member)
        try:
            array = files.read_npy(hashed, info.file_size, NUMBERS)
        except EOFError:
            raise BadArchive(f"the checksum of its array {name!r} does not hold, it is damaged") from None
        except BadData as error:
            raise BadArchive(f"its array {name!r} can't be used: {error}") from None
    if hashed.sum.hexdigest() != expected:
        raise BadArchive(f"the checksum of its array {name!r} does not hold, it is damaged")
    return array
