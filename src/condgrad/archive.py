"""A file of arrays and plain data, which can't run code, is never half written, and is not believed unless its checksums hold.

It is a zip whose members are stored as they are: ``header.json`` (the kind of file, its version, the plain data, and the SHA-256
of each array), ``header.sha256``, and the arrays as ``.npy``, so that ``numpy.load`` reads them too. Nothing is compressed:
what a file takes in memory is known from its size, before any of it is taken.
"""

from __future__ import annotations

import errno
import hashlib
import json
import os
import re
import shutil
import struct
import warnings
import zipfile
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from itertools import count
from math import prod
from pathlib import Path
from tokenize import TokenError
from typing import IO, Any

import numpy as np
from numpy.lib import format as npy

HEADER, SUM = "header.json", "header.sha256"
CHUNK = 2**20
NUMBERS = "biufc"
"""The kinds of dtype that are numbers, and no pointers."""
FAULTS = (
    zipfile.BadZipFile,
    struct.error,
    ValueError,
    LookupError,
    TypeError,
    AttributeError,
    EOFError,
    OverflowError,
    RuntimeError,
    TokenError,
)
"""What zipfile, json and numpy raise of a file that is not what they expect."""
DEEP = 200
"""So deep the brackets of a header may be nested: its reader is recursive."""
LARGEST = 64 * 2**20
"""Bytes of a header, some million names: parsed it takes many times as much."""
STRINGS = re.compile(rb'"(?:[^"\\]|\\.)*+"?', re.DOTALL)
"""Strings of JSON, the last one even if it does not end: then no byte is looked at twice."""
NO_BRACKETS = bytes({*range(256)} - {*b"[]{}"})


class BadArchive(ValueError):
    """A file that is damaged, truncated, foreign, of another kind or of another version."""


def previous(path: str | Path) -> Path:
    """Where the file that stood at ``path`` before the last one is kept."""
    return Path(f"{path}.previous")


def write(
    path: str | Path, kind: str, version: int, data: Any, arrays: Mapping[str, np.ndarray], keep: bool = False
) -> None:
    """Write ``data`` (what JSON can say, NaN and infinities too) and ``arrays`` of numbers, all or nothing.

    The file is made beside its place and moved there when it is safe on the disk: a reader finds the old one or the new one,
    whenever the machine stops. With ``keep`` the old one stays as PATH.previous (for a moment it is the only one).
    """
    with replacing(path, keep) as file, zipfile.ZipFile(file, "w", zipfile.ZIP_STORED) as members:
        sums = {name: _add(members, name, array) for name, array in arrays.items()}
        header = json.dumps({"kind": kind, "version": version, "data": data, "arrays": sums}).encode()
        if len(header) > LARGEST:
            raise OSError(errno.EFBIG, f"Its plain data takes more than {LARGEST >> 20} MiB", str(path))
        members.writestr(HEADER, header)
        members.writestr(SUM, hashlib.sha256(header).hexdigest())


@contextmanager
def replacing(path: str | Path, keep: bool = False) -> Iterator[IO[bytes]]:
    """A file to write to that takes its place when the block ends well; until then, and if it fails, the old one stands there.

    With ``keep`` the old one stays as PATH.previous. Else a link stays one, and what it leads to is replaced. What is no file, a
    pipe or a device, is written to as it is.
    """
    given = path = Path(path)
    if path.exists() and not path.is_file():  # asked of a link as it is: /dev/stdout leads to a pipe that has no path
        with open(path, "wb") as file:
            yield file
        return
    if not keep:
        path = led_to(path)
    partial = ""
    try:
        with _beside(path, keep) as file:
            partial = file.name
            yield file
            file.flush()
            os.fsync(file.fileno())
        if path.exists():
            shutil.copymode(path, partial)
            if keep:
                os.replace(path, previous(path))
        os.replace(partial, path)
        _sync_folder(path.parent)
    except BaseException as error:
        if partial:
            Path(partial).unlink(missing_ok=True)
        ours = not partial or (isinstance(error, OSError) and error.filename in (None, partial, str(path)))
        if isinstance(error, OSError) and error.errno and ours:
            raise OSError(error.errno, error.strerror, str(given)) from error  # by the name that was given
        raise


def led_to(path: Path) -> Path:
    """The path, or where it leads as a link, be there something or not."""
    end = Path(os.path.realpath(path)) if path.is_symlink() else path
    if end.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return end


def _beside(path: Path, keep: bool) -> IO[bytes]:
    """A new file beside this one. Where the last ones are kept, one is written again and again: what a killed process left of it
    is written over, else there would be more and more. Any other file that is there already is somebody's own."""
    if keep:
        return open(f"{path}.partial", "wb")
    for number in count():
        with suppress(FileExistsError):
            return open(f"{path}.partial{number or ''}", "xb")
    raise AssertionError  # numbers do not end


def _add(members: zipfile.ZipFile, name: str, array: np.ndarray) -> str:
    """Write one array; the checksum of its member."""
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
    """Passes bytes on, either way, and hashes them on the way."""

    def __init__(self, file: IO[bytes]):
        self.file, self.sum = file, hashlib.sha256()

    def write(self, chunk: Any) -> int:
        self.sum.update(chunk)
        return self.file.write(chunk)

    def read(self, size: int = -1, /) -> bytes:
        chunk = self.file.read(size)
        self.sum.update(chunk)
        return chunk


def _sync_folder(folder: Path) -> None:
    """Have the rename itself on the disk, where the system lets a folder be opened."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)


def read(path: str | Path, kind: str, version: int) -> tuple[Any, dict[str, np.ndarray]]:
    """The data and the arrays of a file that :func:`write` made; whatever else it is, BadArchive says in one sentence."""
    if (path := Path(path)).exists() and not path.is_file():  # a pipe would be waited for, a device may never end
        raise BadArchive(f"{path} can't be used: it is a folder, a pipe or a device, a file was expected.")
    with open(path, "rb") as file, _refusing(path), zipfile.ZipFile(file) as members:
        _check_sizes(members, os.fstat(file.fileno()).st_size)
        header = _header(members)
        if header["kind"] != kind:
            raise BadArchive(f"it is of the kind {str(header['kind'])[:40]!r}, {kind!r} was expected")
        if header["version"] != version:
            age = "a newer" if header["version"] > version else "an older"
            raise BadArchive(
                f"its format is version {header['version']}, of {age} condgrad; this one reads version {version}"
            )
        sums = header["arrays"]
        if set(members.namelist()) != {HEADER, SUM, *(f"{name}.npy" for name in sums)}:
            raise BadArchive("its members are not those that its header names")
        return header["data"], {name: _array(members, name, sums[name]) for name in sums}


@contextmanager
def _refusing(path: Path) -> Iterator[None]:
    """Whatever goes wrong in the parsers is the file's fault, and is said in one sentence."""
    try:
        yield
    except BadArchive as error:
        raise BadArchive(f"{path} can't be used: {error}.") from None
    except OSError as error:
        if error.errno != errno.EINVAL:  # a seek to where no file can be
            raise
        raise BadArchive(f"{path} can't be used: it is damaged.") from error
    except FAULTS as error:
        raise BadArchive(f"{path} can't be used: it is damaged, truncated, or no file of condgrad's.") from error


def _check_sizes(members: zipfile.ZipFile, size: int) -> None:
    """Members are stored as they are and lie in the file: then reading them takes no more memory than the file has bytes."""
    infos = members.infolist()
    if any(info.compress_type != zipfile.ZIP_STORED or info.file_size != info.compress_size for info in infos):
        raise BadArchive("it is compressed, which no file of condgrad's is")
    if sum(info.file_size for info in infos) > size or len({info.filename for info in infos}) < len(infos):
        raise BadArchive("it declares more than it holds")


def _header(members: zipfile.ZipFile) -> Any:
    if members.getinfo(HEADER).file_size > LARGEST:
        raise BadArchive(f"its header takes more than {LARGEST >> 20} MiB")
    text = members.read(HEADER)
    if hashlib.sha256(text).hexdigest().encode() != members.read(SUM):
        raise BadArchive("its checksum does not hold, it is damaged")
    brackets = np.frombuffer(STRINGS.sub(b"", text).translate(None, NO_BRACKETS), np.uint8)
    steps = np.where((brackets == ord("[")) | (brackets == ord("{")), np.int8(1), np.int8(-1))
    if np.cumsum(steps, dtype=np.int32).max(initial=0) > DEEP:
        raise BadArchive("its header is nested too deeply")
    return json.loads(text.decode())


def _array(members: zipfile.ZipFile, name: str, expected: str) -> np.ndarray:
    info = members.getinfo(f"{name}.npy")
    with members.open(info) as member:
        hashed = _Hashed(member)
        if npy.read_magic(hashed) != (2, 0):
            raise BadArchive(f"its array {name!r} is in another format")
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", UserWarning)  # numpy's, of a header that it repaired: the checksum tells
            shape, fortran, dtype = npy.read_array_header_2_0(hashed)
        if dtype.kind not in NUMBERS:
            raise BadArchive(f"its array {name!r} has dtype {dtype}, numbers were expected")
        if prod(shape) * dtype.itemsize > info.file_size:
            raise BadArchive(f"its array {name!r} declares more than it holds")
        array = np.empty(shape, dtype, order="F" if fortran else "C")
        flat = (array.T if fortran else array).reshape(-1).view(np.uint8)
        at = 0
        while chunk := hashed.read(CHUNK):
            flat[at : at + len(chunk)] = np.frombuffer(chunk, np.uint8)
            at += len(chunk)
    if at != len(flat) or hashed.sum.hexdigest() != expected:
        raise BadArchive(f"the checksum of its array {name!r} does not hold, it is damaged")
    return array
