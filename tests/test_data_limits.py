"""Limits of what is read: small files that unpack to much, announce more than they have, or would take long."""

from __future__ import annotations

import gzip
import io
import zipfile
from pathlib import Path

import numpy as np
import pytest
from tests.data_files import MM, ROWS, put, tabled

from condgrad.data import BadData, Limits, arrow_columns, delimited, load, load_labelled
from condgrad.data.lines import LineReader
from condgrad.storage import files


def test_a_field_of_blanks_takes_no_time(tmp_path: Path) -> None:
    """The blanks around all fields of a chunk were cut off one by one."""
    found = load(put(tmp_path, ROWS * 20_000 + b"a," + b" " * 500_000 + b"b   ,7\n"))
    assert found.col_ids is not None and found.col_ids.tolist() == ["1", "2", "b"]


def test_bombs_are_refused(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MIN_ALLOWED_BYTES", 10**6)
    with pytest.raises(BadData, match=r"bytes unpack to more than 1000000, .*raise Limits\(bytes=\.\.\., ratio="):
        load(put(tmp_path, gzip.compress(b"1,1,1\n" * 200_000), "x.csv.gz"))
    with pytest.raises(BadData, match="the first 8 MiB hold no data"):
        load(put(tmp_path, b"\n" * 10_000_000))
    np.savez_compressed(tmp_path / "x.npz", row=np.zeros(10**7, int), col=np.zeros(10**7, int), data=np.zeros(10**7))
    with pytest.raises(BadData, match=r"bytes unpack to more than \d+ bytes or 500000000 entries"):
        load(tmp_path / "x.npz")
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.table({"row": np.zeros(10**5, int), "col": np.arange(10**5), "value": np.ones(10**5)})
    parquet.write_table(table, tmp_path / "x.parquet")
    for limits in (Limits(entries=99_999), Limits(bytes=1000)):
        with pytest.raises(BadData, match="in 100000 rows, but"):
            load(tmp_path / "x.parquet", limits=limits)


def test_a_long_comment_takes_no_time(tmp_path: Path) -> None:
    """All that followed a comment was copied for each line of it."""
    found = load(put(tmp_path, MM + b"%\n" * 600_000 + b"2 2 1\n1 2 3\n", "x.mtx"), strict=True)
    assert found.cleanup.comments == 600_000 and found.matrix().toarray().tolist() == [[0, 3], [0, 0]]


def test_more_names_than_allowed(tmp_path: Path) -> None:
    for names in (b"1,a,1\n2,a,1\n3,a,1\n", b"u,a,1\nv,a,1\nw,a,1\n"):
        with pytest.raises(BadData, match="there are more than 2 rows, but no more are allowed"):
            load(put(tmp_path, names), limits=Limits(side=2))


def lying(shape: tuple[int, ...]) -> bytes:
    """An .npy whose header announces more than follows."""
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<i8", "fortran_order": False, "shape": shape})
    return file.getvalue() + b"\0" * 8


@pytest.mark.parametrize("shape", [(10**12,), (2,), (10**6, 10**6)])
def test_an_array_that_announces_more_than_it_has(shape: tuple[int, ...], tmp_path: Path) -> None:
    with zipfile.ZipFile(tmp_path / "x.npz", "w") as members:
        members.writestr("row.npy", lying(shape))
    with pytest.raises(BadData, match=r"damaged|unpack to more"):
        load(tmp_path / "x.npz")


def test_a_parquet_file_that_is_small_only_in_its_encoding(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A repeated number or text takes no room in the file, whose own figure is that of what is encoded."""
    monkeypatch.setattr(files, "MIN_ALLOWED_BYTES", 10**6)
    n = 200_000
    path = tabled(tmp_path, user=np.zeros(n, int), item=np.zeros(n, int), rating=np.ones(n))
    with pytest.raises(BadData, match=r"announces 6400000 bytes in 200000 rows, but \d+ bytes and 500000000 rows are"):
        load(path)
    path = tabled(tmp_path, user=["a" * 10_000] * 1000, item=np.arange(1000), rating=np.ones(1000))
    with pytest.raises(BadData, match=r"x\.parquet: the cells unpack to more than \d+ bytes, but that much is not"):
        load(path)


def test_blank_lines_are_cut_out_before_any_is_parsed(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A small gzip of blank lines took seconds: each of them went through all steps of a line."""
    seen: list[int] = []
    parse, careful = arrow_columns.parse, LineReader._with_care
    monkeypatch.setattr(arrow_columns, "parse", lambda data, *a, **k: seen.append(len(data)) or parse(data, *a, **k))
    monkeypatch.setattr(LineReader, "_with_care", lambda self, n, d, w: seen.append(len(d)) or careful(self, n, d, w))
    gap = b"\n" * 1_500_000 + b" \t\n" * 200_000 + b"\r\n"
    blank = gap.count(b"\n")
    dense = MM.replace(b"coordinate", b"array")
    for name, top, one, two in (
        ("x.csv.gz", b"", b"1,1,5\n", b"2,2,x\n3,3,4\n"),
        ("x.mtx.gz", MM + gap + b"4 4 3\n", b"1 1 5\n", b"2 2 x\n3 3 4\n"),
        ("y.mtx.gz", dense + gap + b"3 1\n", b"5\n", b"x\n4\n"),
    ):
        found = load(put(tmp_path, gzip.compress(top + one + gap + two, 1), name))
        assert found.values is not None and found.values.tolist() == [5, 4]
        assert found.cleanup.blank == blank * (1 + bool(top))
        assert found.cleanup.faults[0].examples[0][0] == top.count(b"\n") + 2 + blank
    data = load_labelled(put(tmp_path, b"1 1:2\n" + gap + b"1 2:x\n-1 2:3\n", "x.svm"))
    assert data.y.tolist() == [1, -1] and data.cleanup.blank == blank
    assert data.cleanup.faults[0].examples[0][0] == 2 + blank
    assert sum(seen) < 200


def test_equal_cells_of_a_header_are_recognised_once(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A line of a million delimiters took five seconds: each of its empty cells was compared with all known titles."""
    asked: list[str] = []
    known = delimited.role
    monkeypatch.setattr(delimited, "role", lambda name: asked.append(name) or known(name))
    with pytest.raises(BadData, match="has no known name for the row"):
        load(put(tmp_path, b"," * 20_000, "x.csv"))
    assert len(asked) < 20


def test_an_old_name_of_a_dtype_is_no_warning(tmp_path: Path) -> None:
    """numpy warns about the name a8 of strings: one who turns warnings into errors got its DeprecationWarning."""
    header = ("{'descr': '|a8', 'fortran_order': False, 'shape': (2,), }").ljust(117) + "\n"
    array = b"\x93NUMPY\x01\x00" + len(header).to_bytes(2, "little") + header.encode() + bytes(16)
    path = tmp_path / "x.npz"
    with zipfile.ZipFile(path, "w") as archive:
        for name in ("row", "col", "data"):
            archive.writestr(f"{name}.npy", array)
    with pytest.raises(BadData, match="whole numbers in one axis were expected"):
        load(path)
