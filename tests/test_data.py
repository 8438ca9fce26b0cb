"""Files of observations: what is written comes back, in every format, and the fast reader walks with the careful one."""

from __future__ import annotations

import gzip
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from scipy import io, sparse

from condgrad.data import BadData, Limits, Observations, arrow_columns, load, load_labelled
from condgrad.data.labels import INTEGER
from condgrad.data.lines import LineReader

DATA = Path(__file__).parents[2] / "shared" / "data"
CASES = settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.function_scoped_fixture])

numbers = st.floats(allow_nan=False, allow_infinity=False)
names = st.text(st.characters(exclude_categories=["Cc", "Cs", "Zs", "Zl", "Zp"]), min_size=1, max_size=8)
integers = st.integers(-(10**17), 10**17)


def entries(side: Any) -> Any:
    """Triples, each place once."""
    triples = st.tuples(side, side, numbers)
    return st.lists(triples, min_size=1, max_size=30, unique_by=lambda triple: triple[:2])


def triples_of(found: Observations) -> list[tuple[Any, Any, float]]:
    rows = found.rows if found.row_ids is None else found.row_ids[found.rows]
    cols = found.cols if found.col_ids is None else found.col_ids[found.cols]
    assert found.values is not None
    return list(zip(rows.tolist(), cols.tolist(), found.values.tolist(), strict=True))


def write(path: Path, text: str, encoding: str = "utf-8") -> Path:
    raw = text.encode(encoding)
    path.write_bytes(gzip.compress(raw) if path.suffix == ".gz" else raw)
    return path


def quoted(cell: Any) -> str:
    return '"' + str(cell).replace('"', '""') + '"'


# ----------------------------------------------------------------------------------------------------------- text


@pytest.mark.parametrize(("delimiter", "end"), [(",", "\n"), (";", "\r\n"), ("\t", "\n"), ("|", "\r"), ("  ", "\n")])
@pytest.mark.parametrize("suffix", [".csv", ".csv.gz"])
@CASES
@given(triples=entries(integers), header=st.booleans())
def test_integers_come_back(
    tmp_path: Path, triples: list[Any], header: bool, delimiter: str, end: str, suffix: str
) -> None:
    lines = [delimiter.join(map(repr, triple)) for triple in triples]
    head = [delimiter.join(("userId", "movie_id", "Rating"))] if header else []
    found = load(write(tmp_path / f"x{suffix}", end.join([*head, *lines])), strict=True)
    assert triples_of(found) == triples
    assert found.row_ids is not None and found.row_ids.dtype == np.int64
    assert found.cleanup.clean and found.cleanup.lines == len(triples)


@pytest.mark.parametrize("encoding", ["utf-8", "utf-8-sig", "utf-16"])
@CASES
@given(triples=entries(names))
def test_names_come_back(tmp_path: Path, triples: list[Any], encoding: str) -> None:
    lines = [f"{v!r},{quoted(b)},{quoted(a)}" for a, b, v in triples]
    found = load(write(tmp_path / "x.csv", "\n".join(["rating,item,user", *lines]), encoding), strict=True)
    assert [(str(a), str(b), v) for a, b, v in triples_of(found)] == triples


@CASES
@given(triples=entries(st.integers(0, 50)), base=st.integers(0, 1))
def test_positions_come_back(tmp_path: Path, triples: list[Any], base: int) -> None:
    text = "\n".join(f"{a + base} {b + base} {v!r}" for a, b, v in triples)
    found = load(write(tmp_path / "x.txt", text), ids=False, base=base, strict=True)
    assert triples_of(found) == triples and found.row_ids is None
    assert found.shape == (1 + max(a for a, _, _ in triples), 1 + max(b for _, b, _ in triples))


def assert_readers_agree(outcome: Callable[[], Any]) -> None:
    """pyarrow, lists of strings and the careful reader: all lines are odd for the last one."""
    fast = outcome()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(arrow_columns, "available", lambda: False)
        assert outcome() == fast
        patch.setattr(LineReader, "_not_plain", lambda self, text, data, lines: np.ones(lines, dtype=bool))
        assert outcome() == fast


cell = st.one_of(
    st.integers(-2, 12).map(str),
    st.sampled_from(
        ["", " ", "1.5", "007", "+7", "-0", "1e3", "1e999", "nan", "inf", "1_0", "1.2.3", "-", ".", "5.", "a b", '"a"']
    ),
    st.sampled_from(
        ['"', '"a,b"', '"a""b"', '"7"', ' "x"', "é", "\0", "\x0b", "1\x0b2", "#", "x" * 70, "9" * 25, "0." + "1" * 30]
    ),
)
anything = st.lists(st.lists(cell, min_size=1, max_size=4).map(",".join), max_size=8)
sound = st.lists(st.tuples(st.integers(0, 9), st.integers(0, 9), st.integers(1, 5)), min_size=3, max_size=20)


@pytest.mark.parametrize("options", [{}, {"ids": False}, {"values": False}, {"strict": True}, {"delimiter": " "}])
@settings(CASES, max_examples=40)
@given(odd=anything, lines=sound, seed=st.randoms(use_true_random=False))
def test_the_fast_reader_walks_with_the_careful_one(
    tmp_path: Path, odd: list[str], lines: list[Any], seed: Any, options: dict[str, Any]
) -> None:
    mixed = odd + [",".join(map(str, line)) for line in lines]
    seed.shuffle(mixed)
    path = write(tmp_path / "x.csv", "\n".join(mixed).replace(",", options.get("delimiter", ",")))

    def outcome() -> Any:
        try:
            found = load(path, header=False, **{"delimiter": ","} | options)
        except BadData as error:
            return str(error)
        ids = [None if ids is None else ids.tolist() for ids in (found.row_ids, found.col_ids)]
        values = None if found.values is None else found.values.tolist()
        return found.rows.tolist(), found.cols.tolist(), values, found.shape, ids, found.cleanup

    assert_readers_agree(outcome)


@pytest.mark.parametrize(
    "cells",
    [
        *(["7"], ["0", "-5", "12"], ["9" * 18], ["-" + "9" * 18, "3"]),
        *([""], ["", ""], ["1", ""], ["007"], ["0", "00"], ["+7"], ["-0"], ["1", "-"], [" 7"], ["7 "], ["0x7"]),
        *(["7", "1.0"], ["9" * 19], ["1" + "0" * 18], ["-1" + "0" * 18], ["é"]),
    ],
    ids=str,
)
def test_integers_are_those_that_python_writes(cells: list[str]) -> None:
    pa = pytest.importorskip("pyarrow")
    found = arrow_columns.integers(pa.array(["x", *cells], pa.string())[1:])
    written = all(map(INTEGER.fullmatch, cells))
    assert (None if found is None else found.tolist()) == ([int(cell) for cell in cells] if written else None)


token = st.sampled_from(
    ["1:2", "2:3.5", "3:-1e-3", "1:1_0", ":5", "3:", "1:2:3", "0:1", "qid:3", "2: 5", "# x", "x", "+3:4", "1.0:2"]
)
line_of_labelled = st.lists(token, max_size=4).map(lambda tokens: " ".join(["1", *tokens]))
line_of_table = st.lists(cell, min_size=1, max_size=4).map(",".join)
line_of_market = st.lists(cell, min_size=1, max_size=4).map(" ".join)


@pytest.mark.parametrize(
    ("name", "top", "plain", "odd", "options"),
    [
        ("x.svm", [], "-1  1:2\t3:4.5", line_of_labelled, {}),
        ("x.csv", ["t,a,b"], "x,1.5,", line_of_table, {"wide": True}),
        ("x.csv", ["t,a,b"], " y , NA,-2", line_of_table, {"wide": True}),
        ("x.mtx", ["%%MatrixMarket matrix coordinate real general", "9 9 9"], " 3\t4  1.5 ", line_of_market, {}),
        ("x.mtx", ["%%MatrixMarket matrix array real general", "9 9"], " 1.5", cell, {}),
    ],
)
@CASES
@given(data=st.data())
def test_other_formats_walk_with_the_careful_reader(
    tmp_path: Path, name: str, top: list[str], plain: str, odd: Any, options: dict[str, Any], data: Any
) -> None:
    lines = data.draw(st.permutations([*data.draw(st.lists(odd, max_size=5)), *[plain] * 6]))
    path = write(tmp_path / name, "\n".join([*top, *lines]))

    def outcome() -> Any:
        try:
            if name == "x.svm":
                labelled = load_labelled(path)
                return labelled.X.toarray().tolist(), labelled.y.tolist(), labelled.cleanup
            found = load(path, **options)
        except BadData as error:
            return str(error)
        ids = [None if ids is None else ids.tolist() for ids in (found.row_ids, found.col_ids)]
        return found.rows.tolist(), found.cols.tolist(), found.values.tolist(), found.shape, ids, found.cleanup

    assert_readers_agree(outcome)


def test_names_that_look_like_something_else(tmp_path: Path) -> None:
    """pyarrow and pandas would make numbers, missing values and truth values of them."""
    names = ["NA", "null", "True", "1e5", "007", "0x10", "+7", "-0", "nan", "inf", "1.0", "9" * 19, "2024-01-02"]
    text = "".join(f"{name},{name},1.5\n" for name in names)
    found = load(write(tmp_path / "x.csv", text), header=False, delimiter=",", strict=True)
    assert [row for row, _, _ in triples_of(found)] == names == [col for _, col, _ in triples_of(found)]


# ------------------------------------------------------------------------------------------------- other formats


matrices = st.integers(0, 2**32 - 1).map(
    lambda seed: sparse.random_array((7, 5), density=0.3, rng=np.random.default_rng(seed), format="coo")
)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
@CASES
@given(matrix=matrices)
def test_npz_comes_back(tmp_path: Path, matrix: Any, kind: str) -> None:
    sparse.save_npz(tmp_path / "x.npz", matrix.asformat(kind))
    if not matrix.nnz:
        with pytest.raises(BadData, match="there is no data"):
            load(tmp_path / "x.npz")
        return
    assert (load(tmp_path / "x.npz", strict=True).matrix() != matrix.tocsr()).nnz == 0


@CASES
@given(matrix=matrices.filter(lambda matrix: matrix.nnz))
def test_plain_arrays_come_back(tmp_path: Path, matrix: Any) -> None:
    rows, cols = matrix.coords
    np.savez_compressed(tmp_path / "x.npz", row=rows, col=cols, data=matrix.data, shape=matrix.shape)
    assert (load(tmp_path / "x.npz", strict=True).matrix() != matrix.tocsr()).nnz == 0
    np.savez(tmp_path / "pairs.npz", row=rows, col=cols)
    pairs = load(tmp_path / "pairs.npz", values=False)
    assert pairs.values is None and pairs.rows.tolist() == rows.tolist()


@pytest.mark.parametrize("symmetry", ["general", "symmetric", "skew-symmetric"])
@pytest.mark.parametrize("dense", [False, True])
@pytest.mark.parametrize("suffix", [".mtx", ".mtx.gz"])
@CASES
@given(seed=st.integers(0, 2**32 - 1))
def test_matrix_market_comes_back(tmp_path: Path, seed: int, symmetry: str, dense: bool, suffix: str) -> None:
    A = np.random.default_rng(seed).normal(size=(5, 5))
    A = A if symmetry == "general" else A + A.T if symmetry == "symmetric" else A - A.T
    io.mmwrite(tmp_path / "x.mtx", A if dense else sparse.coo_array(A), symmetry=symmetry, comment="made", precision=17)
    path = write(tmp_path / f"x{suffix}", (tmp_path / "x.mtx").read_text())
    found = load(path, strict=True)
    assert np.array_equal(found.matrix().toarray(), A) and found.row_ids is None


@CASES
@given(triples=entries(names))
def test_parquet_comes_back(tmp_path: Path, triples: list[Any]) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    rows, cols, values = zip(*triples, strict=True)
    table = pa.table({"value": values, "row": rows, "weight": values, "column": cols})
    parquet.write_table(table, tmp_path / "x.parquet")
    found = load(tmp_path / "x.parquet", strict=True)
    assert [(str(a), str(b), v) for a, b, v in triples_of(found)] == triples


def test_parquet_of_integers_and_with_holes(tmp_path: Path) -> None:
    pa, parquet = pytest.importorskip("pyarrow"), pytest.importorskip("pyarrow.parquet")
    parquet.write_table(pa.table({"a": [3, 1, 3], "b": [7, 8, 9], "c": [1.0, 2.0, 3.0]}), tmp_path / "x.parquet")
    found = load(tmp_path / "x.parquet", columns=("a", "b", "c"), strict=True)
    assert triples_of(found) == [(3, 7, 1.0), (1, 8, 2.0), (3, 9, 3.0)]
    assert found.row_ids is not None and found.row_ids.dtype == np.int64
    holes = pa.table({"a": [3.0, None, 1.0, 2.5], "b": ["x", "y", "z", "x"], "c": [1.0, 2.0, None, 4.0]})
    parquet.write_table(holes, tmp_path / "y.parquet")
    found = load(tmp_path / "y.parquet", columns=("a", "b", "c"))
    assert triples_of(found) == [("3", "x", 1.0), ("2.5", "x", 4.0)]
    assert [(f.kind, f.examples[0][0]) for f in found.cleanup.faults] == [("missing id", 2), ("missing value", 3)]
    with pytest.raises(BadData, match=r"y\.parquet, row 2: the row is empty"):
        load(tmp_path / "y.parquet", columns=("a", "b", "c"), strict=True)


@pytest.mark.parametrize("suffix", [".libsvm", ".gz"])
@CASES
@given(matrix=matrices, seed=st.integers(0, 9))
def test_libsvm_comes_back(tmp_path: Path, matrix: Any, seed: int, suffix: str) -> None:
    A, y = matrix.toarray(), np.random.default_rng(seed).normal(size=7)
    lines = [
        f"{float(y[i])!r} " + " ".join(f"{j + 1}:{float(A[i, j])!r}" for j in np.flatnonzero(A[i])) for i in range(7)
    ]
    found = load_labelled(write(tmp_path / f"x{suffix}", "\n".join(lines)), features=5, strict=True)
    assert np.array_equal(found.X.toarray(), A) and np.array_equal(found.y, y)


# ------------------------------------------------------------------------------------------------------ real files


def real(name: str) -> Path:
    if not (DATA / name).exists():
        pytest.skip(f"{name} is not in ../shared/data")
    return DATA / name


def test_movielens() -> None:
    found = load(real("ml-100k/u.data"), strict=True)
    assert len(found) == 100_000 and found.shape == (943, 1682) and found.values is not None
    assert triples_of(found)[:2] == [(196, 242, 3.0), (186, 302, 3.0)]
    assert found.values.mean() == 3.52986


def test_a9a() -> None:
    found = load_labelled(real("libsvm/a9a.gz"), strict=True)
    assert found.X.shape == (32561, 123) and found.X.nnz == 451592
    assert sorted(set(found.y.tolist())) == [-1.0, 1.0] and int((found.y > 0).sum()) == 7841


# ---------------------------------------------------------------------------------------------------------- pairs


def test_pairs_find_their_places_in_another_file(tmp_path: Path) -> None:
    known = load(write(tmp_path / "x.csv", "user,item,rating\nann,7,5\nbob,8,4\nann,9,1\n"))
    pairs = load(write(tmp_path / "pairs.csv", "item,user\n9,bob\n8,zoe\nseven,ann\n"), values=False)
    rows, cols = pairs.positions(known.row_ids, known.col_ids)
    assert (rows.tolist(), cols.tolist()) == ([1, -1, 0], [2, 1, -1])
    plain = load(write(tmp_path / "plain.csv", "0,5\n12345678901234567890,-1\n"), values=False)
    rows, cols = plain.positions()
    assert (rows.tolist(), cols.tolist()) == ([0, -1], [5, -1])
    with pytest.raises(ValueError, match="pairs without values"):
        pairs.matrix()


def test_a_large_file_is_read_in_chunks(tmp_path: Path) -> None:
    """Three blocks, with a fault, a header of its own and a name that is no integer only in the last one."""
    lines = [f"{k % 977},{k},{k % 5}" for k in range(250_000)]
    lines[200_000] = "1,2,x"
    path = write(tmp_path / "x.csv", "\n".join(["i,j,x", *lines, "ann,5,3"]))
    found = load(path, limits=Limits(entries=250_001))
    assert found.cleanup.faults[0].examples == ((200_002, "the value is 'x'"),)
    assert len(found) == 250_000 and found.row_ids is not None and found.row_ids[-1] == "ann"
    assert [str(found.row_ids[i]) for i in found.rows[:3]] == ["0", "1", "2"]
    with pytest.raises(BadData, match="more than 1000 entries"):
        load(path, limits=Limits(entries=1000))


@pytest.mark.parametrize("title", ["film", "song", "title", "Track", "book_id", "product", "game", "album"])
def test_headers_name_the_column_by_what_it_holds(title: str, tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text(f"user,{title},rating\nann,x,4\nbob,y,3\n")
    given = load(tmp_path / "r.csv")
    assert given.shape == (2, 2) and given.values.tolist() == [4.0, 3.0]


def test_a_header_without_a_known_name_is_refused_with_the_names_that_are_known(tmp_path: Path) -> None:
    (tmp_path / "r.csv").write_text("user,gizmo,rating\nann,x,4\nbob,y,3\n")
    with pytest.raises(BadData, match=r"'user, gizmo, rating' has no known name for the column \(known: .*film.*item"):
        load(tmp_path / "r.csv")


def test_a_pyarrow_that_can_not_be_imported_is_said_and_text_is_read() -> None:
    code = """
import io, sys, warnings
class Broken:
    def find_spec(name, path=None, target=None):
        if name == "pyarrow":
            raise ImportError("libarrow.so: cannot open shared object file")
sys.meta_path.insert(0, Broken)
from pathlib import Path
from condgrad.data import load
Path(sys.argv[1]).write_text("a,b,1\\nc,d,2\\n")
with warnings.catch_warnings(record=True) as caught:
    warnings.simplefilter("always")
    print(len(load(Path(sys.argv[1]))), [str(w.message)[:58] for w in caught])
"""
    with TemporaryDirectory() as folder:
        done = subprocess.run(
            [sys.executable, "-c", code, f"{folder}/x.csv"], capture_output=True, text=True, check=True
        )
    assert done.stdout.startswith("2 [") and "pyarrow is installed but can't be imported (libarrow" in done.stdout
