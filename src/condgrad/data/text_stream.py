"""Reads a text file (plain or gzipped) in pieces of whole lines, converts the text to UTF-8, and checks limits on the size."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

import numpy as np

from condgrad.data.diagnostics import Limits, Notes
from condgrad.storage import files
from condgrad.storage.files import NotAFile, open_file

MAX_COMPRESSED_READ = 2**13
"""Maximum number of compressed bytes read at a time."""
BLOCK_BYTES = 2**22
"""Number of bytes that are read at a time (a piece). Smaller pieces would take longer, because pyarrow has a fixed cost for each
piece. Larger pieces would take more memory: the reader needs about ten times the size of a piece."""

TEXT_BYTES = bytes({*range(256)} - {*range(32)} | {*b"\t\n\f\r"})
"""All bytes except control characters. If more than one byte in twenty is a control character, the file is refused as binary."""

GZIP = b"\x1f\x8b"
"""First bytes of a gzip file."""
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz",
}
"""First bytes of files that are not text, with a description for messages."""


def opened(path: Path, notes: Notes) -> BinaryIO:
    """Open an ordinary file. A pipe or a device is refused, because it may never end."""
    try:
        return open_file(path)
    except NotAFile:
        notes.refuse("this is a pipe or a device", "copy the data into a file")


def head(path: Path, notes: Notes, size: int = 8) -> bytes:
    """The first ``size`` bytes of a file, by which its format is recognised."""
    with opened(path, notes) as file:
        return file.read(size)


def chunks(path: Path, limits: Limits, notes: Notes) -> Iterator[tuple[int, bytes]]:
    """Read a text file. Yields pieces of about 4 MiB: the number of the first line of the piece, and the text of whole lines.

    Each line has a newline at its end.
    """
    number, rest = 1, b""
    for block in _utf8(path, limits, notes):
        if end := _last_end(block):  # the usual case: each byte is copied once
            lines, rest = b"".join((rest, memoryview(block)[:end])), block[end:]
        else:
            rest += block
            end = _last_end(rest)
            lines, rest = rest[:end], rest[end:]
        if lines:
            lines = _repaired(_plain_ends(lines), number, notes)
            yield number, lines
            number += int(np.count_nonzero(np.frombuffer(lines, dtype=np.uint8) == ord("\n")))
        if len(rest) > limits.line:
            notes.refuse(
                f"the line has more than {limits.line} bytes, but at most {limits.line} are allowed",
                "check that it is text, or raise Limits(line=...)",
                number,
            )
    if rest:
        yield number, _repaired(_plain_ends(rest.removesuffix(b"\r") + b"\n"), number, notes)


def _last_end(text: bytes) -> int:
    """Position after the last whole line. A carriage return at the end is not counted, because a newline may follow."""
    return max(text.rfind(b"\n"), text.rfind(b"\r", 0, -1)) + 1


def _plain_ends(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in lines else lines


def _repaired(lines: bytes, number: int, notes: Notes) -> bytes:
    """Convert lines that are not UTF-8 from Latin-1, in which every byte is a character. Record a fault for each such line."""
    if lines.isascii():
        return lines
    try:
        lines.decode()
        return lines
    except UnicodeDecodeError:
        return b"\n".join(_as_utf8(line, number + i, notes) for i, line in enumerate(lines.split(b"\n")))


def _as_utf8(line: bytes, number: int, notes: Notes) -> bytes:
    try:
        line.decode()
        return line
    except UnicodeDecodeError as error:
        found = f"byte 0x{line[error.start]:02x} at position {error.start + 1} is not UTF-8 and was read as Latin-1"
        notes.fault("not UTF-8", number, found, "UTF-8 was expected")
        notes.encoding = "utf-8, in part latin-1"
        return line.decode("latin-1").encode()


def _utf8(path: Path, limits: Limits, notes: Notes) -> Iterator[bytes]:
    """Yield blocks of the text without its byte order mark. UTF-16 is converted to UTF-8. Other text may be invalid UTF-8."""
    blocks = _unpacked(path, limits, notes)
    first = next(blocks, b"")
    if not first.startswith(UTF16):
        for magic, what in PACKED.items():
            if first.startswith(magic):
                notes.refuse(f"this is {what}, but text was expected", "unpack it, or say which format it has")
        if 20 * len(first[:4096].translate(None, TEXT_BYTES)) > len(first[:4096]):
            notes.refuse(
                "the file is binary, but text was expected",
                "check its format; UTF-16 needs a byte order mark",
            )
        yield first.removeprefix(codecs.BOM_UTF8)
        yield from blocks
        return
    notes.encoding = "utf-16"
    decoder = codecs.getincrementaldecoder("utf-16")()
    try:
        yield decoder.decode(first).encode()
        for block in blocks:
            yield decoder.decode(block).encode()
        yield decoder.decode(b"", final=True).encode()
    except UnicodeDecodeError:
        notes.refuse("the file begins as UTF-16 and is not", "save it as UTF-8")


def _unpacked(path: Path, limits: Limits, notes: Notes) -> Iterator[bytes]:
    with opened(path, notes) as raw:
        packed = raw.read(2) == GZIP
        size = raw.seek(0, os.SEEK_END)
        raw.seek(0)
        if not packed:
            yield from _bounded(raw, raw, size, limits, notes)
            return
        try:
            for _ in _bounded(
                gzip.GzipFile(fileobj=_ShortReads(raw)), raw, size, limits, notes, files.MIN_ALLOWED_BYTES + 1
            ):
                pass  # refuse a decompression bomb before parsing, which takes more memory than unpacking
            raw.seek(0)
            yield from _bounded(gzip.GzipFile(fileobj=_ShortReads(raw)), raw, size, limits, notes)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            notes.refuse(f"the gzip file is damaged ({error})", "copy or download it again")


class _ShortReads:
    """Wrapper of a gzipped file that limits each read, so that the position in the file tells how much has been unpacked.

    Without the wrapper, gzip in Python 3.12 and newer would read 128 KiB ahead.
    """

    def __init__(self, raw: BinaryIO):
        self.raw = raw

    def read(self, size: int = -1) -> bytes:
        return self.raw.read(min(size, MAX_COMPRESSED_READ) if size >= 0 else MAX_COMPRESSED_READ)

    def seek(self, offset: int, whence: int = 0) -> int:
        return self.raw.seek(offset, whence)


def _bounded(file: Any, raw: BinaryIO, size: int, limits: Limits, notes: Notes, most: float = inf) -> Iterator[bytes]:
    """Yield blocks until ``most`` bytes are read. A file is refused if it unpacks to more bytes than its size allows."""
    done = 0
    while done < most and (block := file.read(BLOCK_BYTES)):
        done += len(block)
        if done > (allowed := limits.allowed(raw.tell())):
            notes.refuse(
                f"the file's {size} bytes unpack to more than {allowed}, but that much is not allowed",
                "check where it comes from, or raise Limits(bytes=..., ratio=...)",
            )
        yield block
