"""The trace of a run: a table, one row a recorded step."""

from __future__ import annotations

import codecs
import csv
import json
from collections.abc import Iterator, Sequence
from dataclasses import asdict, fields
from math import isfinite
from pathlib import Path
from typing import Any, overload

import numpy as np

from condgrad.checks import choice
from condgrad.protocols import Record
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing

COLUMNS = [field.name for field in fields(Record)]


class Trace(Sequence[Record]):
    """Rows of :class:`condgrad.protocols.Record`; ``trace["mapping"]`` is a column."""

    def __init__(self, rows: Sequence[Record] = ()):
        self._rows = list(rows)

    def append(self, record: Record) -> None:
        self._rows.append(record)

    def amend(self, record: Record) -> None:
        """The last row again, where more is known of it."""
        if self._rows and self._rows[-1].k == record.k:
            self._rows[-1] = record

    @overload
    def __getitem__(self, key: str) -> np.ndarray: ...
    @overload
    def __getitem__(self, key: int) -> Record: ...
    @overload
    def __getitem__(self, key: slice) -> Trace: ...
    def __getitem__(self, key: Any) -> Any:
        if isinstance(key, str):
            return np.array([getattr(row, choice(key, COLUMNS, "column")) for row in self._rows])
        return Trace(self._rows[key]) if isinstance(key, slice) else self._rows[key]

    def __len__(self) -> int:
        return len(self._rows)

    def __iter__(self) -> Iterator[Record]:
        return iter(self._rows)

    def __repr__(self) -> str:
        return f"Trace({len(self)} rows: {', '.join(COLUMNS)})"

    def to_csv(self, path: str | Path) -> None:
        """A table with a header, whole or not at all."""
        with replacing(path) as file:
            table = csv.DictWriter(codecs.getwriter("utf-8")(file), COLUMNS)
            table.writeheader()
            table.writerows(asdict(row) for row in self)

    def to_jsonl(self, path: str | Path) -> None:
        """One JSON object a line; what was not measured is null."""
        with replacing(path) as file:
            for row in self:
                plain = {k: v if isfinite(v) else None for k, v in asdict(row).items()}
                file.write(json.dumps(plain).encode() + b"\n")

    def to_dataframe(self) -> Any:
        """A pandas DataFrame (needs the extra ``table``)."""
        with needed_for("Data frames"):
            import pandas

        return pandas.DataFrame({name: self[name] for name in COLUMNS})

    def to_parquet(self, path: str | Path) -> None:
        """A Parquet file (needs the extra ``table``)."""
        with needed_for("Parquet files"):
            import pyarrow  # noqa: F401 (pandas says in many words that it is missing)

        table = self.to_dataframe()
        with replacing(path) as file:
            table.to_parquet(file)
