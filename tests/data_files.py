"""What the tests of files with faults share: a few lines, and files that hold them."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

ROWS = b"1,1,5\n1,2,4\n2,1,3\n2,2,2\n"
MM = b"%%MatrixMarket matrix coordinate real general\n"


def put(folder: Path, content: bytes, name: str = "x.csv") -> Path:
    path = folder / name
    path.write_bytes(content)
    return path


def tabled(folder: Path, **columns: Any) -> Path:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table(columns), folder / "x.parquet", compression="zstd")
    return folder / "x.parquet"
