"""Wide tables in text: a line for each row, a column for each column, holes in between."""

from __future__ import annotations

import csv
import re
from pathlib import Path

import numpy as np
import pytest
from tests.commands import refused

from condgrad.cli import main
from condgrad.data import BadData, Limits, load
from condgrad.learn import RobustCompletion

HEADER = 'time,north,east,"south, low"'
LINES = ["2024-01-02,1.5,,3.25", "2024-01-01,2,NA,0.5", "2024-01-03,-1e-3,7.5,", "noon,,,"]


def write(path: Path, *lines: str) -> Path:
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")
    return path


def as_table(found: object) -> dict[tuple[str, str], float]:
    return {
        (str(found.row_ids[i]), str(found.col_ids[j])): value  # type: ignore[attr-defined]
        for i, j, value in zip(found.rows, found.cols, found.values, strict=True)  # type: ignore[attr-defined]
    }


EXPECTED = {
    ("2024-01-02", "north"): 1.5,
    ("2024-01-02", "south, low"): 3.25,
    ("2024-01-01", "north"): 2.0,
    ("2024-01-01", "south, low"): 0.5,
    ("2024-01-03", "north"): -1e-3,
    ("2024-01-03", "east"): 7.5,
}


def test_a_wide_table_is_its_cells_in_the_order_of_the_file(tmp_path: Path) -> None:
    found = load(write(tmp_path / "w.csv", HEADER, *LINES), wide=True)
    assert as_table(found) == EXPECTED and found.shape == (4, 3)
    assert found.row_ids.tolist() == ["2024-01-02", "2024-01-01", "2024-01-03", "noon"]
    assert found.col_ids.tolist() == ["north", "east", "south, low"]
    assert found.cleanup.clean and (found.cleanup.lines, found.cleanup.entries) == (4, 6)


@pytest.mark.parametrize("delimiter", [";", "\t", "|"])
def test_delimiters_quotes_and_blanks(delimiter: str, tmp_path: Path) -> None:
    lines = [
        delimiter.join(["name", "a", "b"]),
        delimiter.join(['"x y"', " 1.5 ", '"2"']),
        delimiter.join(["z", "", "3"]),
    ]
    for given in (None, delimiter):
        found = load(write(tmp_path / "w.txt", *lines, "", "# the end"), wide=True, delimiter=given)
        assert as_table(found) == {("x y", "a"): 1.5, ("x y", "b"): 2.0, ("z", "b"): 3.0}
    assert (found.cleanup.blank, found.cleanup.comments) == (1, 1)


def test_numbers_name_rows_too_and_long_names_are_kept(tmp_path: Path) -> None:
    found = load(write(tmp_path / "w.csv", "year,a,b", "2003,1.5,2.5", "1999,3.5,4.5"))
    assert found.row_ids.tolist() == [2003, 1999] and found.values.tolist() == [1.5, 2.5, 3.5, 4.5]
    long = "n" * 300
    found = load(write(tmp_path / "w.csv", "name,a,b", f"{long},1,2", "x,3,4"), wide=True)
    assert found.row_ids.tolist() == [long, "x"] and found.values.tolist() == [1, 2, 3, 4]


def test_faults_of_cells_and_lines_are_told(tmp_path: Path) -> None:
    path = write(tmp_path / "w.csv", "t,a,b", "x,1,2", "y,one,inf", "z,3", ",4,5", "x,1,9", "w,5,6")
    found = load(path, wide=True)
    cleanup = found.cleanup
    assert cleanup.count("no number in a cell") == 2 and cleanup.count("wrong number of fields") == 1
    assert cleanup.count("missing id") == 1 and cleanup.count("conflicting entry") == 1 == cleanup.count(
        "repeated entry"
    )
    assert as_table(found) == {("x", "a"): 1, ("x", "b"): 9, ("w", "a"): 5, ("w", "b"): 6} and found.shape == (3, 2)
    assert "line 3: the cell of column 'a' is 'one'" in str(cleanup) and "taken as missing" in str(cleanup)
    with pytest.raises(BadData, match=r"line 3: the cell of column 'a' is 'one', but a number or nothing was expected"):
        load(path, wide=True, strict=True)


@pytest.mark.parametrize(
    ("lines", "said"),
    [
        (["t,a,a", "x,1,2"], "the column 'a' twice"),
        (["t,a,", "x,1,2"], "column 2 has no name"),
        (["t", "x"], "for which that holds: none among"),
        (["t,a;b", "x,1;2"], "delimiters for which that holds: ',' and ';'"),
        (["t,a,b", "x,p,q", "y,r,s"], "4 cells hold no number|no entries"),
        (["t,a,b"], "there is no data"),
    ],
)
def test_what_is_no_wide_table_is_refused(lines: list[str], said: str, tmp_path: Path) -> None:
    with pytest.raises(BadData, match=said):
        load(write(tmp_path / "w.csv", *lines), wide=True)


def test_many_columns(tmp_path: Path) -> None:
    values = np.random.default_rng(0).normal(size=(3, 5000)).round(3)
    lines = [",".join([f"r{i}", *map(str, row)]) for i, row in enumerate(values.tolist())]
    found = load(write(tmp_path / "w.csv", ",".join(["t", *(f"c{j}" for j in range(5000))]), *lines), wide=True)
    assert found.shape == (3, 5000) and (found.matrix().toarray() == values).all()


def test_limits_hold(tmp_path: Path) -> None:
    path = write(tmp_path / "w.csv", "t,a,b,c", *[f"x{k},,," for k in range(20)], "y,1,2,3")
    with pytest.raises(BadData, match="more than 50 entries"):
        load(path, wide=True, limits=Limits(entries=50))
    with pytest.raises(BadData, match="more than 2 columns"):
        load(path, wide=True, limits=Limits(side=2))
    with pytest.raises(BadData, match="more than 10 rows"):
        load(path, wide=True, limits=Limits(side=10))


@pytest.mark.parametrize("more", [{"columns": ("a", "b", "c")}, {"header": False}, {"ids": False}, {"values": False}])
def test_what_a_wide_table_has_of_its_own_is_not_given(more: dict, tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="A wide table has a header and names of its own"):
        load(write(tmp_path / "w.csv", HEADER, *LINES), wide=True, **more)
    with pytest.raises(ValueError, match="is no text"):
        load(tmp_path / "w.npz", "npz", wide=True)


WIDE = ["time,s1,s2,s3", "10:00,1.5,2.5,", "10:01,1,0.25,3.5", "10:02,2,,4"]
NOT_CLEARLY_WIDE = {
    "whole numbers could be ids": ["when,who,what,stars", "1,7,8,3.5", "2,7,9,4.5"],
    "a word": ["when,who,what,stars", "1,7.5,ann,3.5", "2,7.5,9,4.5"],
    "a row twice": ["time,s1,s2,s3", "10:00,1.5,2.5,0.5", "10:00,1.5,2.5,0.5"],
    "fractions first": ["a,b,c", "0.1,1.5,2.5", "0.2,3.5,4.5"],
    "no header": ["10:00,1.5,2.5,0.5", "10:01,1.5,2.5,0.5"],
}


def test_a_table_that_can_be_nothing_else_is_taken_for_wide(tmp_path: Path) -> None:
    assert load(write(tmp_path / "w.csv", *WIDE)).shape == (3, 3)
    assert load(write(tmp_path / "w.csv", WIDE[0].replace("time", "user"), *WIDE[1:])).shape == (3, 3)
    with pytest.raises(BadData, match="say wide=True"):
        load(write(tmp_path / "w.csv", WIDE[0].replace("s2", "user"), *WIDE[1:]))
    with pytest.raises(BadData, match=r"no known name for the row.*say wide=True"):
        load(write(tmp_path / "w.csv", *WIDE), wide=False)


@pytest.mark.parametrize(
    ("head", "names"), [("country,2019,2020", ["2019", "2020"]), (",0,1", ["0", "1"]), ("time,1,-2", ["1", "-2"])]
)
def test_columns_may_have_whole_numbers_for_names(head: str, names: list[str], tmp_path: Path) -> None:
    """The header was read as an entry, and the cells below as names of columns and as values."""
    found = load(write(tmp_path / "w.csv", head, "a,1.5,2", "b,3,0.5", "c,,7"))
    assert found.col_ids.tolist() == names and found.row_ids.tolist() == ["a", "b", "c"]
    assert found.values.tolist() == [1.5, 2.0, 3.0, 0.5, 7.0] and found.cleanup.headed


FRACTIONS_AS_IDS = {
    "whole cells in one column": ["country,2019,2020", "a,1.5,2", "b,3,5"],
    "fractional names of columns": ["depth,0.5,1.5", "a,1.5,2.5", "b,3.5,4.5"],
    "no header": ["a,1.5,2.5,0.5", "b,1.25,2.5,0.5"],
    "fractions for rows": ["1.5,a,2", "2.5,b,3"],
    "one line": ["a,1.5,2.5"],
    "pandas' own header above whole numbers": [",0,1,2", "a,5,3,4", "b,1,2,3"],
}


@pytest.mark.parametrize("why", FRACTIONS_AS_IDS)
def test_fractions_are_not_taken_for_ids_without_a_word(
    why: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = write(tmp_path / "w.csv", *FRACTIONS_AS_IDS[why])
    with pytest.raises(BadData, match=r"say wide=True for a wide table, or header=False if the first line is an entry"):
        load(path)
    said = refused(capsys, "complete", path, "--out", tmp_path / "m.npz")
    assert "say --wide for a wide table, or --no-header if" in said
    assert len(load(path, header=False)) >= len(FRACTIONS_AS_IDS[why]) - 1


def test_ids_that_are_whole_numbers_or_words_need_no_header(tmp_path: Path) -> None:
    for lines in (["1,2,3.5", "2,3,4.5"], ["a,b,3.5", "c,d,4.5"], ["a,7,3.5,88", "b,7,4.5,99"]):
        assert len(load(write(tmp_path / "r.csv", *lines))) == 2


@pytest.mark.parametrize("why", NOT_CLEARLY_WIDE)
def test_what_may_be_a_list_of_entries_is_not_taken_for_wide(why: str, tmp_path: Path) -> None:
    path = write(tmp_path / "w.csv", *NOT_CLEARLY_WIDE[why])
    try:
        assert load(path).shape[1] != len(NOT_CLEARLY_WIDE[why][0].split(",")) - 1 or why == "no header"
    except BadData as error:
        assert "wide=True" in str(error) or why == "no header"


def test_a_list_with_known_names_stays_a_list(tmp_path: Path) -> None:
    lines = ["time,user,item,rating", "1.5,7.5,8.5,3.5", "2.5,7.5,9.5,4.5"]
    assert load(write(tmp_path / "r.csv", *lines)).values.tolist() == [3.5, 4.5]


# ------------------------------------------------------------------------------------------------------- command line


def test_complete_reads_a_wide_table_and_writes_one(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    truth = 3 + np.outer(rng.normal(size=40), rng.normal(size=12))
    seen = rng.random(truth.shape) < 0.7
    seen[5] = False
    times = [f"day {40 - i}" for i in range(40)]
    given = truth + 1e-9 * rng.normal(size=truth.shape)
    given[0, 0], seen[0, 0] = 500.0, True
    rows = [
        ",".join([times[i], *(repr(v) if s else "" for v, s in zip(given[i].tolist(), seen[i], strict=True))])
        for i in range(40)
    ]
    path = write(tmp_path / "w.csv", ",".join(["time", *(f"s{12 - j}" for j in range(12))]), *rows)
    out, filled = tmp_path / "m.npz", tmp_path / "filled.csv"
    words = ["complete", str(path), "--out", str(out), "--filled", str(filled), "--no-report", "--quiet"]
    for more, kept in (([], False), (["--wide", "--keep"], True)):
        assert main([*words, *more]) == 0
        told = capsys.readouterr().out
        assert re.search(rf"^filled +{re.escape(str(filled))}$", told, re.MULTILINE) and "w.csv: " in told
        head, *lines = csv.reader(filled.read_text().splitlines())
        assert head == ["time", *(f"s{12 - j}" for j in range(12))] and [line[0] for line in lines] == times
        table = np.array([line[1:] for line in lines], dtype=float)
        assert (table[0, 0] == 500.0) == kept and (table[seen][1:] == given[seen][1:]).all()
        assert np.abs(table - truth)[~seen & (np.arange(40) != 5)[:, None]].max() < 0.05
    model = RobustCompletion.load(out)
    assert model.predict([("day 38", "s10")]) == pytest.approx(truth[2, 2], abs=0.05)
    assert load(filled).shape == (40, 12), "what is written can be read again"


def test_what_complete_says_of_wide_tables(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path, out = write(tmp_path / "w.csv", "t,a,b", "x,1,2", "y,3,4"), tmp_path / "m.npz"
    assert "say --wide" in refused(capsys, "complete", path, "--out", out)
    assert "--keep needs --filled" in refused(capsys, "complete", path, "--out", out, "--wide", "--keep")
    assert "which would be overwritten" in refused(capsys, "complete", path, "--out", out, "--wide", "--filled", path)
    assert "give two names" in refused(capsys, "complete", path, "--out", out, "--wide", "--filled", out)


def test_a_completed_table_that_is_too_large_is_refused_before_the_fit(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("condgrad.cli.tables.MAX_CELLS", 3)
    path = write(tmp_path / "r.csv", "user,item,rating", "a,b,1", "c,d,2")
    assert main(["complete", str(path), "--out", str(tmp_path / "m"), "--filled", str(tmp_path / "f.csv")]) == 2
    assert "would have 4 cells, but at most 3" in capsys.readouterr().err and not (tmp_path / "m").exists()
