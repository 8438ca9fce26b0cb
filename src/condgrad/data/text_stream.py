"""Lines of a text file, plain or gzipped, in UTF-8 whatever they were: bounded, in chunks that end with a line."""

from __future__ import annotations

import codecs
import gzip
import os
import zlib
from collections.abc import Iterator
from math import inf
from pathlib import Path
from typing import Any, BinaryIO

from condgrad.data.diagnostics import Limits, Notes
from condgrad.storage import files
from condgrad.storage.files import NotAFile, open_file

BLOCK = 2**20

TEXT = bytes({*range(256)} - {*range(32)} | {*b"\t\n\f\r"})
"""All bytes but control characters: of those a text may hold one in twenty."""

GZIP = b"\x1f\x8b"
UTF16 = (codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)
PACKED = {
    b"PK\x03\x04": "a zip archive",
    b"PAR1": "a Parquet file",
    b"BZh": "packed by bzip2",
    b"\xfd7zXZ": "packed by xz",
}


def opened(path: Path, notes: Notes) -> BinaryIO:
    """The file, if it is an ordinary one: a pipe or a device could give bytes forever."""
    try:
        return open_file(path)
    except NotAFile:
        notes.refuse("this is a pipe or a device", "copy the data into a file")


def head(path: Path, notes: Notes, size: int = 8) -> bytes:
    """The first bytes, which tell formats apart."""
    with opened(path, notes) as file:
        return file.read(size)


def chunks(path: Path, limits: Limits, notes: Notes) -> Iterator[tuple[int, bytes]]:
    """(number of the first line, whole lines that each end with a newline), about a mebibyte at a time."""
    number, rest = 1, b""
    for block in _utf8(path, limits, notes):
        rest += block
        end = max(rest.rfind(b"\n"), rest.rfind(b"\r", 0, -1)) + 1  # a last \r may be half of a \r\n
        lines, rest = rest[:end], rest[end:]
        if lines:
            lines = _repaired(_plain_ends(lines), number, notes)
            yield number, lines
            number += lines.count(b"\n")
        if len(rest) > limits.line:
            notes.refuse(
                f"the line has more than {limits.line} bytes, but at most {limits.line} are allowed",
                "check that it is text, or raise Limits(line=...)",
                number,
            )
    if rest:
        yield number, _repaired(_plain_ends(rest.removesuffix(b"\r") + b"\n"), number, notes)


def _plain_ends(lines: bytes) -> bytes:
    return lines.replace(b"\r\n", b"\n").replace(b"\r", b"\n") if b"\r" in lines else lines


def _repaired(lines: bytes, number: int, notes: Notes) -> bytes:
    """What is not UTF-8 was most likely Latin-1, in which any bytes are text: taken so, line by line, and told."""
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
    """Blocks of the text without its byte order mark; still with bytes that are not UTF-8 where the file has such."""
    blocks = _unpacked(path, limits, notes)
    first = next(blocks, b"")
    if not first.startswith(UTF16):
        for magic, what in PACKED.items():
            if first.startswith(magic):
                notes.refuse(f"this is {what}, but text was expected", "unpack it, or say which format it has")
        if 20 * len(first[:4096].translate(None, TEXT)) > len(first[:4096]):
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
            for _ in _bounded(gzip.GzipFile(fileobj=raw), raw, size, limits, notes, files.MIN_ALLOWED_BYTES + 1):
                pass  # a bomb is refused here, before any of it is parsed, which takes more memory than its bytes
            raw.seek(0)
            yield from _bounded(gzip.GzipFile(fileobj=raw), raw, size, limits, notes)
        except (EOFError, gzip.BadGzipFile, zlib.error) as error:
            notes.refuse(f"the gzip file is damaged ({error})", "copy or download it again")


def _bounded(file: Any, raw: BinaryIO, size: int, limits: Limits, notes: Notes, most: float = inf) -> Iterator[bytes]:
    """Blocks of about the first ``most`` bytes. They are no more than the part of the file that has been read may unpack to."""
    done = 0
    while done < most and (block := file.read(BLOCK)):
        done += len(block)
        if done > (allowed := limits.allowed(raw.tell())):
            notes.refuse(
                f"the file's {size} bytes unpack to more than {allowed}, but that much is not allowed",
                "check where it comes from, or raise Limits(bytes=..., ratio=...)",
            )
        yield block
