"""Faults of NPZ and Parquet files: arrays and columns that do not fit, and nothing in them that is run."""

from __future__ import annotations

import os
import re
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from scipy import sparse
from tests.data_files import tabled

from condgrad.data import BadData, Limits, load


class Trap:
    def __reduce__(self) -> Any:
        return os.mkdir, ("trapped",)


def test_nothing_in_an_npz_is_run(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.chdir(tmp_path)
    np.savez("x.npz", row=np.array([Trap()], dtype=object))
    with pytest.raises(BadData, match="no NPZ file of arrays of numbers"):
        load("x.npz")
    assert not Path("trapped").exists()


@pytest.mark.parametrize(
    ("arrays", "sentence"),
    [
        ({"row": [0], "col": [0]}, "there is no array 'data', but real numbers"),
        ({"row": [0], "col": [0, 1], "data": [1.0]}, "row, col and data have different lengths"),
        ({"row": [0.5], "col": [0], "data": [1.0]}, "entry 1 of 'row' is 0.5, but whole numbers were expected"),
        ({"row": [10**18], "col": [0], "data": [1.0]}, "the shape is 1000000000000000001 x 1, but at most"),
        ({"row": [3], "col": [0], "data": [1.0], "shape": [2, 2]}, "element 1: the row is 3, but a number from 0 to 1"),
        (
            {"row": [0], "col": [0], "data": [np.nan], "shape": [2, 2]},
            "element 1: the value is nan, but a finite number",
        ),
        ({"row": [0], "col": [0], "data": [1.0], "shape": [2]}, "the shape has 1 sizes, but rows and columns"),
    ],
)
def test_arrays_that_do_not_fit(arrays: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", **arrays)
    with pytest.raises(BadData, match=re.escape(sentence)):
        load(tmp_path / "x.npz", strict=True)


def test_a_clean_up_of_arrays_speaks_of_elements(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", row=[0, 1, 5], col=[0, 1, 0], data=[1.0, 2.0, 3.0], shape=[2, 2])
    told = "x.npz: 2 entries from 3 elements\n  bad index: 1 dropped (element 3: the row is 5)"
    assert str(load(tmp_path / "x.npz").cleanup) == told


def test_a_sparse_matrix_that_is_broken_or_of_another_format(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "x.npz", sparse.dia_array(np.eye(3)))
    with pytest.raises(BadData, match="the sparse matrix has the format 'dia', but coo, csr or csc was expected: save"):
        load(tmp_path / "x.npz")
    broken = {"indices": [0, 1], "indptr": [0, 2, 1], "data": [1.0, 2.0], "shape": [2, 2], "format": b"csr"}
    np.savez(tmp_path / "y.npz", **{name: np.array(value) for name, value in broken.items()})
    with pytest.raises(BadData, match="indptr, indices and data do not fit together"):
        load(tmp_path / "y.npz")


def test_a_number_that_is_too_large_for_64_bits(tmp_path: Path) -> None:
    """It was finite when it was checked, and infinite when it was kept."""
    if np.finfo(np.longdouble).maxexp <= 1024:
        pytest.skip("longdouble is a double here")
    np.savez(tmp_path / "x.npz", row=[0, 1], col=[0, 1], data=np.array([np.longdouble("1e400"), 2]), shape=[2, 2])
    with pytest.raises(BadData, match=r"element 1: the value is 1e\+400, but a finite number was expected"):
        load(tmp_path / "x.npz", strict=True)
    found = load(tmp_path / "x.npz")
    assert found.values is not None and found.values.tolist() == [2.0] and found.cleanup.count("not finite") == 1


def test_a_column_that_a_parquet_file_has_twice(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    table = pa.Table.from_arrays(
        [pa.array([1]), pa.array([2]), pa.array([3.0]), pa.array([4])], names=["a", "b", "c", "a"]
    )
    parquet.write_table(table, tmp_path / "x.parquet")
    with pytest.raises(BadData, match=r"x\.parquet: this is no Parquet file, or it is damaged \(.*exists 2 times"):
        load(tmp_path / "x.parquet", columns=("a", "b", "c"))


def test_parquet_names_that_are_too_long(tmp_path: Path) -> None:
    path = tabled(tmp_path, user=["a", None, "b" * 300, "a"], item=[1, 2, 3, 4], rating=[1.0, 2.0, 3.0, 4.0])
    found = load(path, limits=Limits(line=200))
    assert found.row_ids is not None and found.row_ids.tolist() == ["a"] and found.cols.tolist() == [0, 1]
    assert [(f.kind, f.examples[0][0]) for f in found.cleanup.faults] == [("missing id", 2), ("long line", 3)]


def test_parquet_columns_that_are_no_names(tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    path = tabled(tmp_path, user=pa.array([2**61, 1], pa.timestamp("us")), item=[1, 2], rating=[1.0, 2.0])
    with pytest.raises(
        BadData, match=r"a timestamp\[us\] in this column is outside of the range of Python: write it as text"
    ):
        load(path)
    with pytest.raises(BadData, match=r"the column 'user' holds 'list<element: int64>': give one value in each row"):
        load(tabled(tmp_path, user=[[1], [2]], item=[1, 2], rating=[1.0, 2.0]))
