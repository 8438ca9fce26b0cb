"""Files with faults: a strict reader says where and what to do, another one counts, lists and goes on."""

from __future__ import annotations

import gzip
import os
import re
from pathlib import Path
from typing import Any

import pytest
from tests.data_files import MM, ROWS, put

from condgrad.data import BadData, Limits, load, load_labelled

LINES: dict[str, tuple[bytes, str, str]] = {
    "too few fields": (b"7,8", "wrong number of fields", "2 fields in '7,8', but 3 were expected: correct the line"),
    "too many": (b"7,8,9,1", "wrong number of fields", "4 fields in '7,8,9,1', but 3 were expected"),
    "no row": (b",8,9", "missing id", "the row is empty, but a name or a number was expected: name the row"),
    "no column": (b"7, ,9", "missing id", "the column is empty"),
    "no value": (b"7,8,", "missing value", "the value is '', but a number was expected: fill in the value or delete"),
    "NA": (b"7,8,NA", "missing value", "the value is 'NA'"),
    "NaN": (b"7,8,nan", "missing value", "the value is 'nan'"),
    "infinite": (b"7,8,-inf", "not finite", "the value is '-inf', but a finite number was expected"),
    "too large": (b"7,8,1e999", "not finite", "the value '1e999' is too large"),
    "a word": (
        b"7,8,five",
        "not a number",
        "the value is 'five', but a number was expected: write a number with a decimal",
    ),
    "underscores": (b"7,8,1_0", "not a number", "the value is '1_0'"),
    "hexadecimal": (b"7,8,0x10", "not a number", "the value is '0x10'"),
    "an open quote": (b'"7,8,9', "open quote", "the quotes are wrong (unexpected end of data)"),
    "a NUL byte": (b"7\0,8,9", "NUL byte", "the line holds a NUL byte, but text was expected: export the file again"),
    "a long line": (b"7,8," + b"9" * 300, "long line", "304 bytes, but at most 200 are allowed: check the line's end"),
    "Latin-1": (b"caf\xe9,8,9", "not UTF-8", "byte 0xe9 at position 4 is not UTF-8 and was read as Latin-1, but UTF-8"),
    "repeated": (b"2,1,3", "repeated entry", "('2', '1') stands on line 3 already, but each entry was expected once"),
    "conflicting": (b"2,1,4", "conflicting entry", "('2', '1') is 4 here and 3 on line 3"),
}


@pytest.mark.parametrize("name", LINES)
def test_a_fault_is_told_with_its_line(name: str, tmp_path: Path) -> None:
    line, kind, sentence = LINES[name]
    path, limits = put(tmp_path, ROWS + b"\n# note\n" + line + b"\n9,9,1\n"), Limits(line=200)
    with pytest.raises(BadData, match=re.escape(f"x.csv, line 7: {sentence}")) as caught:
        load(path, strict=True, limits=limits)
    assert str(caught.value).endswith(".") and "\n" not in str(caught.value)
    found = load(path, limits=limits)
    assert (found.cleanup.count(kind), found.cleanup.faults[0].examples[0][0]) == (1, 7)
    assert (found.cleanup.lines, found.cleanup.blank, found.cleanup.comments) == (6, 1, 1)
    assert len(found) == (6 if kind == "not UTF-8" else 5)
    assert kind in str(found.cleanup) and found.cleanup.summary()["faults"][0]["count"] == 1


def test_a_strict_reader_names_the_first_fault_though_later_lines_are_decoded_already(tmp_path: Path) -> None:
    with pytest.raises(BadData, match=r"x\.csv, line 5: the value is 'x'"):
        load(put(tmp_path, ROWS + b"9,9,x\ncaf\xe9,8,9"), strict=True)


def test_the_last_of_conflicting_entries_counts(tmp_path: Path) -> None:
    found = load(put(tmp_path, b"a,x,1\na,x,2\nb,x,7\na,x,2\n"))
    assert found.values is not None
    assert sorted(zip(found.rows.tolist(), found.values.tolist(), strict=True)) == [(0, 2.0), (1, 7.0)]
    assert [(f.kind, f.count, f.done) for f in found.cleanup.faults] == [
        ("conflicting entry", 1, "merged"),
        ("repeated entry", 1, "merged"),
    ]


@pytest.mark.parametrize("index", [b"-1", b"1.5", b"100000000000000000000", b"1e18", b"x", b"nan", b"3"])
def test_a_position_that_can_not_be(index: bytes, tmp_path: Path) -> None:
    path = put(tmp_path, b"0,0,1\n1,1,2\n2,2,3\n" + index + b",0,4\n")
    found = load(path, ids=False, shape=(3, 3))
    assert found.shape == (3, 3) and len(found) == 3
    message = f"line 4: the row is {index.decode()!r}, but a whole number from 0 to 2 was expected: correct the index"
    with pytest.raises(BadData, match=re.escape(message)):
        load(path, ids=False, shape=(3, 3), strict=True)


def test_names_are_kept_as_they_are_written(tmp_path: Path) -> None:
    found = load(put(tmp_path, b"007,a,1\n7,a,2\n+7,a,3\n 7 ,b,4\n"), strict=True)
    assert found.row_ids is not None and found.row_ids.tolist() == ["+7", "007", "7"]


HEADERS = {
    "another order": (b"rating;item;user\n5;a;ann\n", {}),
    "more columns": (b"time,user_id,extra,movieId,stars\n9,ann,?,a,5\n", {}),
    "by name": (b"when,who,what,how much\n1,ann,a,5\n", {"columns": ("who", "what", "how much")}),
    "by number": (b"5 a ann\n", {"columns": (2, 1, 0)}),
    "by number, with a header": (b"x y z\n5 a ann\n", {"columns": (2, 1, 0)}),
    "a header that is none of ours": (b"p,q,r\nann,a,5\n", {"header": True, "columns": (0, 1, 2)}),
    "an unnamed first column": (b",user,item,rating\n0,ann,a,5\n", {}),
}


@pytest.mark.parametrize("name", HEADERS)
def test_columns_in_any_order(name: str, tmp_path: Path) -> None:
    content, options = HEADERS[name]
    found = load(put(tmp_path, content), strict=True, **options)
    assert found.row_ids is not None and found.col_ids is not None and found.values is not None
    assert (found.row_ids.tolist(), found.col_ids.tolist(), found.values.tolist()) == (["ann"], ["a"], [5.0])


SVM = b"1 1:2 3:4\n-1 2:1 # note\n"
FILES: dict[str, tuple[str, bytes, str, dict[str, Any]]] = {
    "empty": ("x.csv", b"", "x.csv: the file is empty, but lines of row, column and value were expected", {}),
    "comments only": ("x.csv", b"# a\n\n", "the file is empty", {}),
    "a header only": (
        "x.csv",
        b"user,item,rating\n",
        "x.csv: there is no data, but at least one entry was expected",
        {},
    ),
    "no delimiter": (
        "x.csv",
        b"a:b:1\na:c:2\n",
        "line 2: no delimiter among , ; tab | and blanks makes at least 3",
        {},
    ),
    "decimal commas": ("x.csv", b"i;j;x\na;c;2,5\n", "of 'a;c;2,5': give delimiter= or columns=, or correct", {}),
    "two delimiters": (
        "x.csv",
        b"a,b,1,c;d;2\n" * 3,
        "',' and ';' could each be the delimiter of 'a,b",
        {"header": False},
    ),
    "a wrong delimiter": ("x.csv", ROWS, "line 1: the delimiter ';' makes 1 field of '1,1,5'", {"delimiter": ";"}),
    "an unknown header": (
        "x.csv",
        b"p,q,r\n1,2,3\n",
        "line 1: the header 'p, q, r' has no known name for the row (known: ",
        {},
    ),
    "two users": ("x.csv", b"user,row,item,x\n1,1,2,3\n", "has several known names for the row", {}),
    "a short header": ("x.csv", b"user,item,x\n1,2,3,4\n2,2,3,4\n", "the header has 3 names and the lines have 4", {}),
    "no such column": (
        "x.csv",
        ROWS,
        "there is no column a, b, c in the header '1, 1, 5'",
        {"columns": ("a", "b", "c")},
    ),
    "column 9": ("x.csv", ROWS, "'1,1,5' has 3 columns, but column 9 was asked for", {"columns": (0, 1, 9)}),
    "mostly faults": (
        "x.csv",
        ROWS + b"1,9,x\n" * 5,
        "only 4 of 9 lines can be used, but at least half are expected (5 x",
        {"delimiter": ","},
    ),
    "binary": ("x.csv", bytes(range(256)), "the file is binary, but text was expected", {}),
    "a zip": ("x.csv", b"PK\x03\x04abc", "the name ends with .csv, but the file begins as npz: say format='npz'", {}),
    "cut gzip": ("x.csv.gz", gzip.compress(ROWS * 99)[:-12], "the gzip file is damaged", {}),
    "cut UTF-16": ("x.csv", ROWS.decode().encode("utf-16")[:-1], "the file begins as UTF-16 and is not", {}),
    "one endless line": ("x.csv", b"1" * 4_000_000, "line 1: the line has more than 1048576 bytes", {}),
    "LIBSVM": ("x.libsvm", SVM, "LIBSVM files have labels and features: read it by load_labelled", {}),
    "no Parquet": ("x.parquet", b"PAR1 nothing", "this is no Parquet file, or it is damaged", {}),
    "no NPZ": (
        "x.npz",
        b"PK\x03\x04 nothing",
        "this is no NPZ file of arrays of numbers, or it is damaged: save it by",
        {},
    ),
    "no header": ("x.mtx", b"1 1 1\n1 1 1\n", "line 1: the header is '1 1 1': Matrix Market begins with", {}),
    "complex": ("x.mtx", MM.replace(b"real", b"complex"), "line 1: Unknown word 'complex'", {}),
    "a pattern": ("x.mtx", MM.replace(b"real", b"pattern"), "line 1: the matrix is a pattern, but values", {}),
    "bad sizes": (
        "x.mtx",
        MM + b"% c\n2 -2 1\n",
        "line 3: the sizes are '2 -2 1', but 3 whole numbers were expected",
        {},
    ),
    "no sizes": ("x.mtx", MM, "the file ends before its sizes", {}),
    "not square": ("x.mtx", MM.replace(b"general", b"symmetric") + b"2 3 1\n", "the matrix is symmetric and 2 x 3", {}),
    "a vast shape": (
        "x.mtx",
        MM + b"1000000000000000000 3 1\n1 1 1\n",
        "the shape is 1000000000000000000 x 3, but at",
        {},
    ),
    "a vast count": ("x.mtx", MM + b"3 3 999999999999\n", "line 2: 999999999999 entries are announced", {}),
    "too few": (
        "x.mtx",
        MM + b"3 3 2\n1 1 1\n",
        "line 2: 1 entry follows, but 2 were announced: copy",
        {"strict": True},
    ),
    "from 0": (
        "x.mtx",
        MM + b"3 3 1\n0 1 1\n",
        "line 3: the row is '0', but a whole number from 1 to 3",
        {"strict": True},
    ),
}


@pytest.mark.parametrize("name", FILES)
def test_a_file_that_can_not_be_used(name: str, tmp_path: Path) -> None:
    file, content, sentence, options = FILES[name]
    if file.endswith(".parquet"):
        pytest.importorskip("pyarrow")
    with pytest.raises(BadData, match=re.escape(sentence)) as caught:
        load(put(tmp_path, content, file), **options)
    assert "\n" not in str(caught.value) and str(caught.value).endswith(".")


def test_no_file_at_all(tmp_path: Path) -> None:
    with pytest.raises(FileNotFoundError):
        load(tmp_path / "x.csv")
    with pytest.raises(IsADirectoryError):
        load(tmp_path)
    os.mkfifo(tmp_path / "pipe.csv")
    with pytest.raises(BadData, match="this is a pipe or a device: copy the data into a file"):
        load(tmp_path / "pipe.csv")


@pytest.mark.parametrize(
    ("options", "sentence"),
    [
        ({"format": "xls"}, "Unknown format 'xls'"),
        ({"columns": (0, 1)}, "columns must be 3 names or numbers from 0 (row, column, value), but got (0, 1)"),
        ({"columns": ("a", 1, 2)}, "columns must be 3 names or numbers"),
        ({"delimiter": ",,"}, "The delimiter must be one character"),
        ({"shape": (3, 3)}, "A shape or a base is for positions, but ids are read: say ids=False too"),
        ({"ids": False, "shape": (3, 3, 3)}, "The shape must be (rows, columns), but got (3, 3, 3)"),
        (
            {"format": "npz", "delimiter": ","},
            "delimiter= can't be given for x.csv, because its format does not use it",
        ),
        ({"strict": 1}, "strict must be True or False"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], sentence: str, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=re.escape(sentence)):
        load(put(tmp_path, ROWS), **options)
    with pytest.raises(ValueError, match="The limit 'side' must be a whole number of at least 1"):
        Limits(side=0)


def test_rows_without_entries_are_counted(tmp_path: Path) -> None:
    found = load(put(tmp_path, b"0,0,1\n4,0,2\n"), ids=False, shape=(6, 2))
    assert found.shape == (6, 2) and found.cleanup.empty == (4, 1) and found.cleanup.clean
    assert str(found.cleanup) == "x.csv: 2 entries from 2 lines, 4 rows and 1 column without entries"
    found = load(put(tmp_path, MM.replace(b"general", b"symmetric") + b"3 3 1\n2 1 7\n", "x.mtx"))
    assert len(found) == 2 and found.cleanup.empty == (1, 1)


# ---------------------------------------------------------------------------------------------------------- LIBSVM


@pytest.mark.parametrize(
    ("line", "sentence"),
    [
        (b"1 0:5", "the index is '0', but a whole number from 1 to"),
        (b"1 a:5", "the index is 'a'"),
        (b"1 2:", "the value is '', but a number was expected"),
        (b"1 2: 5", "the value is ''"),
        (b"1 25", "'25' is no pair, but a label and pairs index:value were expected"),
        (b"\x0b# 1:2", "the value is '', but a number"),
        (b"1,2 2:5", "the value is '1,2', but a number"),
        (b"1 2:1 2:3", "('2', '1') is 3 here and 1 on line 3"),
    ],
)
def test_libsvm_faults(line: bytes, sentence: str, tmp_path: Path) -> None:
    path = put(tmp_path, SVM + line + b"\n+1 4:.5\n", "x.svm")
    with pytest.raises(BadData, match=re.escape(f"x.svm, line 3: {sentence}")):
        load_labelled(path, strict=True)
    found = load_labelled(path)
    assert found.X.toarray()[[0, 1, -1]].tolist() == [[2, 0, 4, 0], [0, 1, 0, 0], [0, 0, 0, 0.5]]
    assert len(found.y) == len(found.X.toarray()) and found.cleanup.faults[0].examples[0][0] == 3


def test_libsvm_from_zero_and_without_features(tmp_path: Path) -> None:
    assert load_labelled(put(tmp_path, b"1 0:5\n"), base=0, strict=True).X.toarray().tolist() == [[5]]
    assert load_labelled(put(tmp_path, b"1\n2\n"), features=3, strict=True).X.shape == (2, 3)


# ------------------------------------------------------------------------------------------- symmetric Matrix Market


@pytest.mark.parametrize(("symmetry", "sign"), [("symmetric", 1.0), ("skew-symmetric", -1.0)])
def test_both_triangles_do_not_count_twice(symmetry: str, sign: float, tmp_path: Path) -> None:
    lines = b"3 3 3\n2 1 5\n1 2 %d\n1 3 7\n" % (5 * sign)
    path = put(tmp_path, MM.replace(b"general", symmetry.encode()) + lines, "x.mtx")
    told = f"line 4: entry (1, 2) of a {symmetry} matrix is above the diagonal, but only those below it were expected: "
    with pytest.raises(BadData, match=re.escape(told)):
        load(path, strict=True)
    found = load(path)
    assert found.matrix().toarray().tolist() == [[0, 5 * sign, 7], [5, 0, 0], [sign * 7, 0, 0]]
    faults = [(f.kind, f.count, f.done, f.examples[0][0]) for f in found.cleanup.faults]
    assert faults == [("above the diagonal", 2, "mirrored", 4), ("repeated entry", 1, "merged", 4)]


def test_triangles_that_differ_conflict(tmp_path: Path) -> None:
    path = put(tmp_path, MM.replace(b"general", b"symmetric") + b"2 2 2\n2 1 5\n1 2 6\n", "x.mtx")
    found = load(path)
    assert found.matrix().toarray().tolist() == [[0, 6], [6, 0]] and found.cleanup.count("conflicting entry") == 1


def test_a_skew_symmetric_diagonal(tmp_path: Path) -> None:
    path = put(tmp_path, MM.replace(b"general", b"skew-symmetric") + b"2 2 2\n2 1 5\n2 2 3\n", "x.mtx")
    with pytest.raises(BadData, match=r"line 4: entry \(2, 2\) of a skew-symmetric matrix is on the diagonal, but"):
        load(path, strict=True)
    found = load(path)
    assert found.matrix().toarray().tolist() == [[0, -5], [5, 0]] and found.cleanup.dropped == 1


@pytest.mark.parametrize("line", [b"a\0", b"9" * 300], ids=["NUL byte", "long line"])
def test_an_unusable_line_of_a_dense_matrix_keeps_its_place(line: bytes, tmp_path: Path) -> None:
    """All numbers below it moved up by one place."""
    content = MM.replace(b"coordinate", b"array") + b"2 2\n1\n" + line + b"\n3\n4\n"
    found = load(put(tmp_path, content, "x.mtx"), limits=Limits(line=200))
    assert found.matrix().toarray().tolist() == [[1, 3], [0, 4]] and found.cleanup.dropped == 1


# ------------------------------------------------------------------------------------------------------ blank lines


def test_a_wide_table_is_told_to_be_one(tmp_path: Path) -> None:
    path = tmp_path / "wide.csv"
    path.write_text("user,item 0,item 1,item 2\nann,1,2,3\nbob,4,5,6\n", encoding="utf-8")
    with pytest.raises(BadData, match=r"no known name for the column \(known: .* for a wide table, .* say wide=True"):
        load(path)
    for options in ({"columns": ["user", "item", "rating"]}, {"values": False}):
        with pytest.raises(BadData) as told:
            load(path, **options)
        assert "wide table" not in str(told.value)


def test_the_first_value_that_is_no_number_is_shown(tmp_path: Path) -> None:
    path = tmp_path / "commas.csv"
    path.write_text("user;item;rating\nann;tea;3,5\nbob;rye;4,0\n", encoding="utf-8")
    with pytest.raises(
        BadData, match=r"only 0 of 2 lines .* \(2 x not a number, first on line 2: the value is '3,5'\): check"
    ):
        load(path, delimiter=";")
