"""Names from strangers in tables and on the terminal."""

from __future__ import annotations

import csv
import io
import sys
from pathlib import Path

import pytest
from tests.commands import refused

from condgrad.cli import main
from condgrad.cli.tables import cell
from condgrad.cli.terminal import printable
from condgrad.data import load
from condgrad.learn import RobustCompletion

ESCAPE = "\x1b[2J\x1b]0;owned\x07"
NAMES = ["=1+1", "+cmd|' /C calc'!A0", "-2+3", "@SUM(A1)", "-5", "ann", "a;=1", f"bob{ESCAPE}", "'quoted", 'say "hi"']


@pytest.fixture
def model(tmp_path: Path) -> Path:
    rows = [name for name in NAMES for _ in range(2)]
    RobustCompletion().fit((rows, ["x", "=y"] * len(NAMES), [float(k % 5) for k in range(len(rows))])).save(
        tmp_path / "m.npz"
    )
    return tmp_path / "m.npz"


@pytest.mark.parametrize(
    ("value", "safe"),
    [
        ("=1+1", "'=1+1"),
        ("+1 2", "'+1 2"),
        ("-a", "'-a"),
        ("@x", "'@x"),
        ("\tx", '"\'\tx"'),
        ("\rx", '"\'\rx"'),
        ("\uff1d1", "'\uff1d1"),
        ("-5", "-5"),
        ("+1.5e3", "+1.5e3"),
        (-5, "-5"),
        (-1.5, "-1.5"),
        ("a=b", "a=b"),
        ("", ""),
        ("a,b", '"a,b"'),
        ("a;=b", '"a;=b"'),
        ('a"b', '"a""b"'),
    ],
)
def test_a_cell_is_no_formula(value: object, safe: str) -> None:
    assert cell(value) == safe
    assert next(csv.reader(io.StringIO(cell(value, raw=True), newline=""), strict=True), [""]) == [str(value)]


def predicted(model: Path, out: Path, *more: str) -> list[str]:
    pairs = out.with_name("pairs.csv")
    pairs.write_text("row,column\n" + "".join(f"{cell(name, raw=True)},=y\n" for name in NAMES))
    assert main(["predict", str(model), str(pairs), "--out", str(out), *more]) == 0
    with open(out, newline="") as file:
        rows = list(csv.reader(file))[1:]
    assert {row[1] for row in rows} == ({"=y"} if "--raw" in more else {"'=y"})
    return [row[0] for row in rows]


def test_predictions_are_safe_for_spreadsheets_and_raw_for_programs(model: Path, tmp_path: Path) -> None:
    safe = predicted(model, tmp_path / "safe.csv")
    assert safe == ["'" + name if name in NAMES[:4] else name for name in NAMES]
    raw = predicted(model, tmp_path / "raw.csv", "--raw")
    assert raw == NAMES
    again = load(tmp_path / "raw.csv")
    assert again.row_ids is not None and set(again.row_ids.tolist()) == set(NAMES)
    assert main(["predict", str(model), str(tmp_path / "raw.csv"), "--out", str(tmp_path / "o.csv"), "--raw"]) == 0
    assert (tmp_path / "o.csv").read_bytes() == (tmp_path / "raw.csv").read_bytes()


def test_recommendations_are_safe_too(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RobustCompletion().fit((["=a", "=a", "b"], ["=x", "y", "y"], [1.0, 2.0, 3.0])).save(tmp_path / "m.npz")
    assert main(["predict", str(tmp_path / "m.npz"), "--top", "1"]) == 0
    assert capsys.readouterr().out.splitlines()[1].startswith("b,'=x,")


def test_a_terminal_gets_no_escapes_and_a_program_gets_the_name(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    (tmp_path / "p.csv").write_text(f"row,column\nbob{ESCAPE},x\n" + "ann,x\n" * 20)
    words = ["predict", str(model), str(tmp_path / "p.csv")]
    assert main(words) == 0
    assert f'"bob{ESCAPE}",x,' in capsys.readouterr().out
    monkeypatch.setattr(sys.stdout, "isatty", lambda: True)
    assert main(words) == 0
    assert '"bob\\x1b[2J\\x1b]0;owned\\x07",x,' in capsys.readouterr().out


def test_messages_have_no_escapes(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data = tmp_path / f"data{ESCAPE}.csv"
    assert "data\\x1b[2J" in refused(capsys, "complete", data, "--out", tmp_path / "m2.npz")
    data.write_text(
        "user,item,rating\n" + "".join(f"{i},{j},{i + j}\n" for i in range(5) for j in range(5)) + f"{ESCAPE},1,\n"
    )
    assert main(["complete", str(data), "--out", str(tmp_path / f"m{ESCAPE}.npz"), "--quiet", "--no-report"]) == 0
    assert (
        main(["predict", str(model), str(data), "--columns", "user,item", "--out", str(tmp_path / f"o{ESCAPE}.csv")])
        == 0
    )
    told = capsys.readouterr()
    assert "\x1b" not in told.out + told.err and "\x07" not in told.out + told.err
    assert "o\\x1b[2J\\x1b]0;owned\\x07.csv" in told.out


def test_what_is_printable() -> None:
    assert printable("naïve ☃\nline") == "naïve ☃\nline"
    assert printable("\x1b[31m\x9b\r\t\u202e") == "\\x1b[31m\\x9b\\r\\t\\u202e"
