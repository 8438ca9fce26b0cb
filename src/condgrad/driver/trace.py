"""Trace of a run: a table with one row per recorded step."""

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
NUMERIC_COLUMNS = [name for name in COLUMNS if name != "phase"]


class Trace(Sequence[Record]):
    """Table of a run: a sequence with one :class:`condgrad.protocols.Record` for each recorded step.

    ``trace[0]`` is the first row, and ``trace["mapping"]`` is the column of this name, as an array.

    Parameters
    ----------
    rows : sequence of Record, default ()
        The first rows.
    """

    def __init__(self, rows: Sequence[Record] = ()):
        self._rows = list(rows)

    def append(self, record: Record) -> None:
        """Add a row."""
        self._rows.append(record)

    def amend(self, record: Record) -> None:
        """Replace the last row by ``record`` if both belong to the same step; otherwise do nothing."""
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
        """Write the trace as CSV with a header. The file is written completely or not at all.

        Parameters
        ----------
        path : str or Path
        """
        with replacing(path) as file:
            table = csv.DictWriter(codecs.getwriter("utf-8")(file), COLUMNS)
            table.writeheader()
            table.writerows(asdict(row) for row in self)

    def to_jsonl(self, path: str | Path) -> None:
        """Write each row as a JSON object on a line of its own. Values that were not measured are null.

        Parameters
        ----------
        path : str or Path
        """
        with replacing(path) as file:
            for row in self:
                plain = {k: v if isinstance(v, str) or isfinite(v) else None for k, v in asdict(row).items()}
                file.write(json.dumps(plain).encode() + b"\n")

    def to_dataframe(self) -> Any:
        """Convert the trace to a pandas DataFrame (needs the extra ``table``).

        Returns
        -------
        pandas.DataFrame
        """
        with needed_for("Data frames"):
            import pandas

        return pandas.DataFrame({name: self[name] for name in COLUMNS})

    def to_parquet(self, path: str | Path) -> None:
        """Write the trace as a Parquet file (needs the extra ``table``).

        Parameters
        ----------
        path : str or Path
        """
        with needed_for("Parquet files"):
            import pyarrow  # noqa: F401 (the message of pandas for a missing pyarrow is long)

        table = self.to_dataframe()
        with replacing(path) as file:
            table.to_parquet(file)
