"""Plain-text tables for the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from condgrad.report.plain import format_value


def table(header: Sequence[str], rows: Sequence[Sequence[Any]]) -> str:
    """Table with aligned columns, numeric columns to the right; cells are written as in reports, in ASCII."""
    cells = [[format_value(value, unknown="-") for value in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(header, *cells, strict=True)]
    right = [all(row[i] is None or isinstance(row[i], int | float) for row in rows) for i in range(len(header))]

    def line(row: Sequence[str]) -> str:
        padded = (c.rjust(w) if r else c.ljust(w) for c, w, r in zip(row, widths, right, strict=True))
        return "  ".join(padded).rstrip()

    return "\n".join([line(header), line(["-" * w for w in widths]), *map(line, cells)])
