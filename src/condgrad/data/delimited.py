"""Reader of delimited text such as CSV. It finds the delimiter, the header and the columns, and then reads the lines."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Iterable, Iterator, Sequence
from io import BytesIO
from itertools import chain, islice
from pathlib import Path

from condgrad.checks import counted
from condgrad.data.diagnostics import Limits, Notes, shortly
from condgrad.data.labels import Index, Names, Positions
from condgrad.data.lines import BLANKS, NOT_GIVEN, NUMBER, EntryReader, Layout
from condgrad.data.observations import Observations
from condgrad.data.text_stream import BLOCK_BYTES, chunks
from condgrad.data.wide import DELIMITERS, WideReader, delimiter_of, fields, looks_wide, wide_by_ids, width_of

MAX_SAMPLED_LINES = 200
"""Maximum number of lines that are inspected in each piece of the file to find the delimiter, the header and the columns."""

MAX_PIECES_WITHOUT_DATA = 2
"""A file is refused if this number of pieces at its beginning have only blank lines and comments."""

TITLES: tuple[set[str], ...] = (
    {"row", "rows", "i", "u", "user", "users", "customer", "reviewer", "rater", "viewer", "reader", "listener"},
    {"col", "cols", "column", "columns", "j", "item", "items", "movie", "film", "title", "show", "product", "article"}
    | {"book", "isbn", "song", "track", "album", "artist", "game", "restaurant", "business"},
    {"value", "values", "val", "rating", "ratings", "score", "stars", "x", "data", "observation"},
)
"""Known names of columns in headers, for each of the three ROLES. The names are in lower case, without blanks, underscores,
hyphens and dots, and without 'id' at the end."""

ROLES = ("row", "column", "value")
"""Roles of the columns of a file. Each line of the file gives the row, the column and the value of one entry of the matrix."""
WIDE_TABLE_ADVICE = "; for a wide table, with names in the first column and one column for each item, say wide=True"
"""Advice that is added to a message if the caller gave no ``columns``. (For a wide table, ``columns`` can't be given.)"""
Columns = Sequence[str] | Sequence[int] | None


def read(
    path: Path,
    notes: Notes,
    limits: Limits,
    columns: Columns = None,
    values: bool = True,
    delimiter: str | None = None,
    header: bool | None = None,
    ids: bool = True,
    base: int = 0,
    shape: tuple[int, int] | None = None,
    wide: bool | None = None,
) -> Observations:
    """Read delimited text. See `load` for the parameters."""
    needed = 3 if values else 2
    check_columns(columns, needed)
    check_delimiter(delimiter)
    begun: list[tuple[int, bytes]] = []
    sample: list[tuple[int, str]] = []
    pieces = chunks(path, limits, notes)
    for piece in pieces:
        begun.append(piece)
        sample += islice(_data_lines(piece), MAX_SAMPLED_LINES)
        if len(sample) > 1 or len(begun) == MAX_PIECES_WITHOUT_DATA:  # a header and one line of data are enough
            break
    if not sample:
        empty = (
            "the file is empty"
            if len(begun) < MAX_PIECES_WITHOUT_DATA
            else f"the first {MAX_PIECES_WITHOUT_DATA * BLOCK_BYTES >> 20} MiB hold no data"
        )
        notes.refuse(f"{empty}, but lines of row, column and value were expected", "give a file that has some")
    if wide is None:
        wide = values and columns is None and header is not False and ids and is_wide(sample, delimiter)
    if wide:
        return read_wide(chain(begun, pieces), sample, delimiter, notes, limits)
    delimiter = delimiter or sniff(sample, needed, columns, header, notes)
    layout, top = lay_out(sample, delimiter, needed, columns, header, notes, ids)
    notes.headed = top is not None
    reader = EntryReader(layout, *sides(notes, limits, ids, base, shape), notes, limits)
    reader.read(without(top, chain(begun, pieces)))
    return reader.close()


def without(top: int | None, pieces: Iterable[tuple[int, bytes]]) -> Iterator[tuple[int, bytes]]:
    """Yield the pieces of the file without the header, which has the line number ``top`` (None if there is no header)."""
    for first, chunk in pieces:
        if top is not None and first <= top:
            *before, after = chunk.split(b"\n", top - first + 1)
            if len(before) == top - first + 1:
                yield first, b"".join(line + b"\n" for line in before[:-1])
                first, chunk = top + 1, after
        yield first, chunk


def is_wide(sample: list[tuple[int, str]], delimiter: str | None) -> bool:
    """Whether the first lines of a file can only be the header and the first rows of a wide table."""
    for one in DELIMITERS if delimiter is None else (delimiter,):
        if width_of(sample[0][1], one) < 3:  # not a wide table: do not split the lines
            continue
        split = [fields(line, one) or [""] for _, line in sample]
        if looks_wide(split):
            first, *others = map(role, split[0])
            if first in (None, 0) and set(others) == {None}:
                return True
    return False


def read_wide(
    pieces: Iterable[tuple[int, bytes]],
    sample: list[tuple[int, str]],
    delimiter: str | None,
    notes: Notes,
    limits: Limits,
) -> Observations:
    """Read a wide table. Its header has the names of the columns, and the first cell of each line is the name of the row."""
    delimiter = delimiter or delimiter_of(sample, notes)
    top, line = sample[0]
    reader = WideReader(fields(line, delimiter), delimiter, notes, limits, top)
    notes.headed = True
    reader.read(without(top, pieces))
    return reader.close()


def check_columns(columns: Columns, needed: int) -> None:
    if columns is None:
        return
    kinds = {type(c) for c in columns} if isinstance(columns, list | tuple) else set()
    if len(columns) < needed or kinds not in ({str}, {int}) or any(isinstance(c, int) and c < 0 for c in columns):
        wanted = ", ".join(ROLES[:needed])
        raise ValueError(f"columns must be {needed} names or numbers from 0 ({wanted}), but got {columns!r}.")


def check_delimiter(delimiter: str | None) -> None:
    if delimiter is None:
        return
    if not isinstance(delimiter, str) or len(delimiter) != 1 or not delimiter.isascii() or delimiter in '\0\n\r"#':
        raise ValueError(f"The delimiter must be one character, such as ',' or '\\t', but got {delimiter!r}.")


def sides(notes: Notes, limits: Limits, ids: bool, base: int, shape: tuple[int, int] | None) -> tuple[Index, Index]:
    """Return the collectors of rows and of columns: for names if ``ids``, else for positions in a matrix of the given shape."""
    if ids:
        return Names("row", notes, limits), Names("column", notes, limits)
    m, n = shape or (None, None)
    return Positions("row", limits, base, m), Positions("column", limits, base, n)


def sniff(sample: list[tuple[int, str]], needed: int, columns: Columns, header: bool | None, notes: Notes) -> str:
    """Find the delimiter that splits the first lines into enough columns, with numbers in the column of values.

    The file is refused if no delimiter fits, or if more than one fits.
    """
    known = [d for d in DELIMITERS if any(d in line for _, line in sample)]
    fitting = [d for d in known if _fits(sample, d, needed, columns, header)]
    if not fitting and _fits(sample, BLANKS, needed, columns, header):
        return BLANKS
    number, line = sample[min(1, len(sample) - 1)]
    if not fitting:
        notes.refuse(
            f"no delimiter among , ; tab | and blanks makes at least {needed} columns"
            f"{' with numbers as values' if needed == 3 else ''} of {shortly(line)}",
            "give delimiter= or columns=, or correct the file (numbers have a decimal point, not a comma)",
            number,
        )
    if len(fitting) > 1:
        notes.refuse(
            f"{' and '.join(map(repr, fitting))} could each be the delimiter of {shortly(line)}",
            "say which by delimiter=",
            number,
        )
    return fitting[0]


def _fits(sample: list[tuple[int, str]], delimiter: str, needed: int, columns: Columns, header: bool | None) -> bool:
    """Whether the delimiter splits most lines into the same number of fields, at least ``needed``.

    If there are values, at least half of them must be numbers.
    """
    split = [fields(line, delimiter) for _, line in sample]
    width, count = _width(split)
    if width < needed or 2 * count <= len(split):
        return False
    headed, place = places(split[0], columns, needed, header, split[1:])
    if needed == 2 or isinstance(place, str) or max(place) >= width or (headed and len(split) == 1):
        return True  # lay_out refuses an unclear header, or a header without lines, with a better message
    data = [found for found in (split[1:] or split) if len(found) == width]
    return 2 * sum(bool(NUMBER.fullmatch(found[place[2]])) for found in data) >= len(data)


def _width(split: list[list[str]]) -> tuple[int, int]:
    return Counter(map(len, split)).most_common(1)[0]


def lay_out(
    sample: list[tuple[int, str]],
    delimiter: str,
    needed: int,
    columns: Columns,
    header: bool | None,
    notes: Notes,
    ids: bool,
) -> tuple[Layout, int | None]:
    """Find the layout of the lines. Returns the layout, and the line number of the header (None if there is no header)."""
    split = [fields(line, delimiter) for _, line in sample]
    width, _ = _width(split)
    number, line = sample[0]
    if width < needed:
        made = counted(width, "field")
        notes.refuse(
            f"the delimiter {delimiter!r} makes {made} of {shortly(line)}, but at least {needed} were expected",
            "give another delimiter=",
            number,
        )
    guessed = header is None and columns is None and needed == 3 and ids
    header, place = places(split[0], columns, needed, header, split[1:])
    if guessed and not header and (why := wide_by_ids(split, 0, 1)):
        notes.refuse(why, "say wide=True for a wide table, or header=False if the first line is an entry", number)
    if header and len(split[0]) != width and not isinstance(place, str):
        place = f"the header has {counted(len(split[0]), 'name')} and the lines have {counted(width, 'field')}"
    if isinstance(place, str):
        advice = "name them by columns=(row, column, value), or say header=False if the first line is no header"
        notes.refuse(place, advice + WIDE_TABLE_ADVICE * (columns is None and needed == 3), number)
    if max(place) >= width:
        notes.refuse(
            f"{shortly(line)} has {counted(width, 'column')}, but column {max(place)} was asked for",
            "count columns from 0",
            number,
        )
    return Layout(delimiter, width, place[0], place[1], place[2] if needed == 3 else None), number if header else None


def places(
    head: list[str], columns: Columns, needed: int, header: bool | None, below: Sequence[list[str]] = ()
) -> tuple[bool, list[int] | str]:
    """Find out whether the first line ``head`` is a header, and which columns have the row, the column and the value.

    Returns whether there is a header, and the numbers of these columns. If the columns are unclear, a message that says why is
    returned instead of their numbers.
    """
    named = columns is not None and isinstance(columns[0], str)
    # each name is looked up once, because a damaged line may have a million equal cells
    known_roles = {name: role(name) for name in set(head)}
    roles = [known_roles[name] for name in head]
    if header is None:
        words = not any(NUMBER.fullmatch(cell) or cell.lower() in NOT_GIVEN - {""} for cell in known_roles)
        header = named or (words and (needed == 3 or _titles(head, roles, below)))
    if columns is not None and not named:
        return header, [int(c) for c in columns][:needed]
    if not header:
        message = f"the columns {', '.join(map(str, columns or ()))} have names, but there is no header"
        return header, message if named else list(range(needed))
    if columns is not None:
        missing = [str(c) for c in columns[:needed] if c not in head]
        message = f"there is no column {', '.join(missing)} in the header {shortly(', '.join(head))}"
        return header, message if missing else [head.index(str(c)) for c in columns[:needed]]
    for part in range(needed):
        if roles.count(part) != 1:
            found = "several known names" if part in roles else "no known name"
            known = ", ".join(sorted(name for name in TITLES[part] if len(name) > 3))
            return header, f"the header {shortly(', '.join(head))} has {found} for the {ROLES[part]} (known: {known})"
    return header, [roles.index(part) for part in range(needed)]


def _titles(head: list[str], roles: list[int | None], below: Sequence[list[str]]) -> bool:
    """Whether the first line of a file of pairs (row, column) is a header.

    The line is a header if it has known titles, or if some column has only numbers below the first line. Otherwise its words may
    be the names of the first pair.
    """
    spelled = any(known is not None and len(name) > 2 for name, known in zip(head, roles, strict=True))
    lines = [found for found in below if len(found) == len(head)]
    numbers = bool(lines) and any(all(NUMBER.fullmatch(found[k]) for found in lines) for k in range(len(head)))
    return (0 in roles and 1 in roles) or spelled or numbers


def role(name: str) -> int | None:
    """Recognise the title of a column in a header.

    Parameters
    ----------
    name : str
        The title.

    Returns
    -------
    role : int or None
        Index of the role in ROLES: 0 for a known title of the row, 1 of the column, 2 of the value. None for any other title.

    Examples
    --------
    >>> role("Movie_ID"), role("rating"), role("time")
    (1, 2, None)
    """
    plain = re.sub(r"[\s_\-.]", "", name.lower())
    plain = plain.removesuffix("id") or plain
    return next((i for i, names in enumerate(TITLES) if plain in names), None)


def _data_lines(piece: tuple[int, bytes]) -> Iterator[tuple[int, str]]:
    first, chunk = piece
    if chunk.isspace():
        return
    for k, line in enumerate(BytesIO(chunk)):
        text = line.rstrip(b"\n").decode(errors="ignore")
        if text.strip() and not text.lstrip().startswith("#"):
            yield first + k, text
