"""complete, predict and fill where something is unusual: headers, palettes, nothing lost, a disk that fails."""

from __future__ import annotations

import csv
import errno
import itertools
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import refused

from condgrad.checks import counted
from condgrad.cli import BAD_INPUT, main
from condgrad.learn import RobustCompletion

USERS, ITEMS = [f"u{i}" for i in range(12)], [f"i{j}" for j in range(9)]


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """Of users u0 ... u11 and items i0 ... i8, each with a bias of its own."""
    path = tmp_path_factory.mktemp("model") / "model.npz"
    triples = [(u, i, float(a + 10 * b)) for a, u in enumerate(USERS) for b, i in enumerate(ITEMS)]
    users, items, values = zip(*triples, strict=True)
    RobustCompletion().fit((list(users), list(items), list(values))).save(path)
    return path


def predicted(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[dict[tuple[str, str], float], str]:
    capsys.readouterr()
    assert main(["predict", *map(str, arguments)]) == 0
    told = capsys.readouterr()
    return {(row["row"], row["column"]): float(row["value"]) for row in csv.DictReader(told.out.splitlines())}, told.err


def written(path: Path, *lines: str) -> Path:
    path.write_text("".join(line + "\n" for line in lines), encoding="utf-8")
    return path


# --------------------------------------------------------------------------------------------------- headers of pairs


@pytest.mark.parametrize(
    "lines", [["user,item", "u3,i4"], ["movieId,userId", "i4,u3"], ["u3,i4"], ["note,item,user", "-,i4,u3"]]
)
def test_pairs_are_found_by_known_names_or_by_their_place(
    lines: list[str], model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, _ = predicted(capsys, model, written(tmp_path / "p.csv", *lines))
    assert list(found) == [("u3", "i4")] and found["u3", "i4"] == pytest.approx(43, abs=6)


@pytest.mark.parametrize(
    ("header", "told"),
    [
        ("movie,person", "has no known name for the row"),
        ("person,movie", "has no known name for the row"),
        ("user,thing", "has no known name for the column"),
        ("person,thing", "looks like a header"),
        ("u3,thing", None),
        ("zoe,i4", None),
    ],
)
def test_a_header_of_unknown_names_is_no_pair(
    header: str, told: str | None, model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = written(tmp_path / "p.csv", header, "u3,i4", "u5,i6", "new,i6")
    if told is None:
        assert len(predicted(capsys, model, pairs)[0]) == 4
        return
    said = refused(capsys, "predict", model, pairs)
    assert "p.csv" in said and told in said and "--columns" in said and "--no-header" in said
    assert len(predicted(capsys, model, pairs, "--columns", header)[0]) == 3
    assert len(predicted(capsys, model, pairs, "--no-header")[0]) == 4


def test_words_above_numbers_are_a_header(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RobustCompletion().fit(([1, 1, 2], [7, 8, 7], [1.0, 2.0, 3.0])).save(tmp_path / "m.npz")
    pairs = written(tmp_path / "p.csv", "person,thing", "2,8")
    assert "has no known name for the row" in refused(capsys, "predict", tmp_path / "m.npz", pairs)
    assert len(predicted(capsys, tmp_path / "m.npz", pairs, "--columns", "person,thing")[0]) == 1


def test_a_header_above_new_names_only_stays_one(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    found, said = predicted(capsys, model, written(tmp_path / "p.csv", "user,item", "zoe,tea", "u3,i4"))
    assert list(found) == [("zoe", "tea"), ("u3", "i4")] and "1 of 2 pairs has a row" in said


def test_pairs_the_other_way_round_are_told(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = written(tmp_path / "p.csv", "i4,u3", "i5,u3")
    assert "rows and columns are swapped" in predicted(capsys, model, pairs)[1]
    found, said = predicted(capsys, model, pairs, "--columns", "1,0")
    assert list(found) == [("u3", "i4"), ("u3", "i5")] and "other way" not in said


def test_each_line_of_pairs_gives_one_prediction_in_its_order(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    asked = [("u3", "i4"), ("u5", "i6"), ("u3", "i4"), ("new", "i1"), ("u3", "i4"), ("u0", "i0")]
    pairs = written(tmp_path / "p.csv", "user,item", *map(",".join, asked))
    for more in ([], ["--strict"]):
        assert main(["predict", str(model), str(pairs), *more]) == 0
        found = [tuple(line.split(",")) for line in capsys.readouterr().out.splitlines()]
        assert [line[:2] for line in found] == [("row", "column"), *asked]
        assert found[1][2] == found[3][2] == found[5][2] != found[2][2]


@pytest.mark.parametrize("name", ["p.npz", "p.mtx", "p.parquet"])
def test_pairs_stay_all_in_every_format(name: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    RobustCompletion().fit(np.add.outer(np.arange(6.0), np.arange(5.0))).save(tmp_path / "m.npz")
    pairs, rows, cols = tmp_path / name, [1, 3, 1], [2, 0, 2]
    if name == "p.npz":
        np.savez(pairs, row=rows, col=cols, shape=(6, 5))
    elif name == "p.mtx":
        lines = [f"{i + 1} {j + 1} {k}.5" for k, (i, j) in enumerate(zip(rows, cols, strict=True))]
        written(pairs, "%%MatrixMarket matrix coordinate real general", "6 5 3", *lines)
    else:
        pytest.importorskip("pyarrow")
        pytest.importorskip("pandas").DataFrame({"row": rows, "column": cols}).to_parquet(pairs)
    assert main(["predict", str(tmp_path / "m.npz"), str(pairs)]) == 0
    found = [line.split(",") for line in capsys.readouterr().out.splitlines()[1:]]
    assert [line[:2] for line in found] == [["1", "2"], ["3", "0"], ["1", "2"]] and found[0] == found[2]


# -------------------------------------------------------------------------------------------------- all or nothing


def full_disk(monkeypatch: pytest.MonkeyPatch) -> None:
    def fsync(_: int) -> None:
        raise OSError(errno.ENOSPC, "No space left on device")

    monkeypatch.setattr("os.fsync", fsync)


def test_predictions_that_can_not_be_written_leave_the_old_ones(
    model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs, out = written(tmp_path / "p.csv", "u3,i4"), written(tmp_path / "out.csv", "old")
    full_disk(monkeypatch)
    for words in ([pairs], ["--top", 2]):
        assert main(["predict", *map(str, [model, *words, "--out", out])]) == BAD_INPUT
        assert "No space left" in capsys.readouterr().err and out.read_text() == "old\n"
    assert sorted(path.name for path in tmp_path.iterdir()) == ["out.csv", "p.csv"]
    monkeypatch.undo()
    out.chmod(0o640)
    link = tmp_path / "link.csv"
    link.symlink_to(out)
    assert main(["predict", *map(str, [model, pairs, "--out", link])]) == 0
    assert link.is_symlink() and out.read_text().startswith("row,column,value\nu3,i4,")
    assert out.stat().st_mode & 0o777 == 0o640


def test_predictions_go_to_a_pipe_too(model: Path, tmp_path: Path) -> None:
    pairs, pipe = written(tmp_path / "p.csv", "u3,i4"), tmp_path / "pipe"
    os.mkfifo(pipe)
    reader = os.open(pipe, os.O_RDONLY | os.O_NONBLOCK)
    try:
        assert main(["predict", str(model), str(pairs), "--out", str(pipe)]) == 0
        assert os.read(reader, 1000).startswith(b"row,column,value\nu3,i4,")
    finally:
        os.close(reader)
    assert pipe.is_fifo()


def test_predictions_go_to_the_screen_by_its_name_too(model: Path, tmp_path: Path) -> None:
    pairs = written(tmp_path / "p.csv", "u3,i4")
    command = [sys.executable, "-m", "condgrad", "predict", str(model), str(pairs), "--out", "/dev/stdout"]
    found = subprocess.run(command, capture_output=True, text=True)
    assert found.returncode == 0 and found.stdout.startswith("row,column,value\nu3,i4,")
    assert found.stdout.count("\n") == 2


def test_a_link_to_itself_is_refused(model: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    loop = tmp_path / "loop.csv"
    loop.symlink_to(loop)
    told = refused(capsys, "predict", model, written(tmp_path / "p.csv", "user,item", "u3,i4"), "--out", loop)
    assert "symbolic links" in told and "loop.csv" in told


def test_a_picture_that_can_not_be_written_leaves_the_old_one(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(np.add.outer(np.arange(20), np.arange(30)).astype(np.uint8)).save(tmp_path / "in.png")
    out = written(tmp_path / "out.png", "old")
    full_disk(monkeypatch)
    assert main(["fill", str(tmp_path / "in.png"), "--out", str(out), "--quiet"]) == BAD_INPUT
    assert "No space left" in capsys.readouterr().err and out.read_text() == "old\n"
    monkeypatch.undo()
    for name in ("out.png", "out.TIF", "out.jpeg"):
        assert main(["fill", str(tmp_path / "in.png"), "--out", str(tmp_path / name), "--quiet"]) == 0
        assert np.asarray(pillow.open(tmp_path / name)).shape == (20, 30)
    assert not list(tmp_path.glob("*.partial"))


# ----------------------------------------------------------------------------------------------------------- options


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["--radius", "-1"], "Argument --radius: a number above 0 was expected, but got '-1'"),
        (["--sigma", "nan"], "Argument --sigma: a number above 0 was expected, but got 'nan'"),
        (["--certify", "0"], "Argument --certify: a number above 0 was expected, but got '0'"),
        (["--seed", "x"], "Argument --seed: invalid int value: 'x'"),
        (["--format", "xls"], "Argument --format: invalid choice: 'xls'"),
        (["--radios", "1"], "Unrecognized arguments: --radios 1"),
    ],
)
def test_a_bad_option_gets_one_sentence(words: list[str], told: str, capsys: pytest.CaptureFixture[str]) -> None:
    said = refused(capsys, "complete", "r.csv", "--out", "m.npz", *words)
    assert told in said and "--help`.\n" in said and "usage" not in said


def test_what_is_missing_is_named(capsys: pytest.CaptureFixture[str]) -> None:
    assert "The following arguments are required: DATA, --out: see `condgrad complete --help`" in refused(
        capsys, "complete"
    )
    assert "required: COMMAND: see `condgrad --help`" in refused(capsys)
    assert "'3x': give seconds, such as 30s" in refused(capsys, "solve", "s.toml", "--checkpoint-every", "3x")


@pytest.mark.parametrize(
    ("said", "meant"),
    [
        ("u3, u4", ["u3", "u4"]),
        (" u3 ,u4 ", ["u3", "u4"]),
        ('"Doe, u3",u4', ["Doe, u3", "u4"]),
        ('u4, "Doe, u3"', ["u4", "Doe, u3"]),
    ],
)
def test_rows_are_named_as_in_csv(
    said: str, meant: list[str], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    users, items = ["u3", "u4", "Doe, u3", "Doe", "u5"], ["a", "a", "a", "b", "b"]
    RobustCompletion().fit((users, items, [1.0, 2.0, 3.0, 4.0, 5.0])).save(tmp_path / "m.npz")
    assert main(["predict", str(tmp_path / "m.npz"), "--top", "1", "--rows", said]) == 0
    found = csv.reader(capsys.readouterr().out.splitlines())
    assert [line[:2] for line in found] == [["row", "column"], *([name, "b"] for name in meant)]


@pytest.mark.parametrize(
    ("said", "told"),
    [('"u3,u4', "can't be read"), ("", "no row ''"), ("u3,,u4", "no row ''"), ("u3,zoe", "no row 'zoe'")],
)
def test_rows_that_are_not_there_are_named(
    said: str, told: str, model: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    assert told in refused(capsys, "predict", model, "--top", 1, "--rows", said)


@pytest.mark.parametrize("entries", [1, 2])
def test_no_error_is_told_where_none_was_held_out(
    entries: int, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = written(tmp_path / "r.csv", *["user,item,rating", "ann,tea,4", "bob,rye,5"][: 1 + entries])
    words = ["complete", str(data), "--out", str(tmp_path / "m.npz"), "--quiet", "--no-report"]
    assert main(words) == 0
    told = capsys.readouterr().out
    assert ("held-out RMSE  " in told) == ("held-out MAE  " in told) == (entries > 1)
    assert ("held-out median absolute error  " in told) == (entries > 1)
    assert main([*words, "--json"]) == 0
    found = json.loads(capsys.readouterr().out)
    assert (found["held-out RMSE"] is None) == (found["held-out MAE"] is None) == (entries == 1)


# ---------------------------------------------------------------------------------------------------------- pictures


@pytest.mark.parametrize("quiet", [False, True])
def test_a_picture_in_which_nothing_is_lost_is_told(
    quiet: bool, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    clock = itertools.count(step=100.0)  # a machine so busy that every round takes longer than progress waits for
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: next(clock))
    pillow = pytest.importorskip("PIL.Image")
    pillow.fromarray(np.add.outer(np.arange(20), np.arange(30)).astype(np.uint8)).save(tmp_path / "in.png")
    pillow.fromarray(np.zeros((20, 30), np.uint8)).save(tmp_path / "mask.png")
    said = ["fill", str(tmp_path / "in.png"), "--out", str(tmp_path / "out.png"), *["--quiet"] * quiet]
    assert main([*said, "--quiet"]) == 0  # kernels that have to be compiled are announced here
    capsys.readouterr()
    told = []
    for more in ([], ["--keep"], ["--mask", str(tmp_path / "mask.png")]):
        assert main([*said, *more]) == 0
        told.append(capsys.readouterr().err)
    only = "only outliers are replaced.\n"
    assert told == [
        "" if quiet else "condgrad: no pixel is missing (none is transparent or NaN): " + only,
        "" if quiet else "condgrad: no pixel is missing (none is transparent or NaN): no pixel is changed.\n",
        "" if quiet else "condgrad: no pixel is missing (the mask has none): " + only,
    ]


@pytest.mark.parametrize(
    ("name", "clear"),
    [("p.png", None), ("p.png", 1), ("p.png", bytes([255, 0, 128, 255])), ("p.gif", None), ("p.gif", 1)],
)
def test_a_palette_is_read_as_its_colours(name: str, clear: Any, tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    from condgrad.learn import images

    which = np.random.default_rng(0).integers(0, 4, (20, 30)).astype(np.uint8)
    colours = np.array([[255, 0, 0], [0, 255, 0], [0, 0, 255], [10, 20, 30]])
    picture = pillow.frombytes("P", (30, 20), which.tobytes())
    picture.putpalette(colours.ravel().tolist())
    picture.save(tmp_path / name, **({} if clear is None else {"transparency": clear}))
    image = images.read(tmp_path / name)
    lost = (which == 1) & (clear is not None)
    assert image.kind == "RGB" and (image.lost == lost).all() and (image.pixels == colours[which])[~lost].all()


def test_a_grey_may_be_transparent_at_any_depth(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    from condgrad.learn import images

    steps = np.random.default_rng(0).integers(0, 4, (20, 30))
    for dtype, step in ((np.uint8, 60), (np.uint16, 1000)):
        pillow.fromarray((step * steps).astype(dtype)).save(tmp_path / "grey.png", transparency=step)
        image = images.read(tmp_path / "grey.png")
        assert (image.lost == (steps == 1)).all() and (image.pixels[:, :, 0] == step * steps)[steps != 1].all()


def test_a_palette_with_lost_pixels_is_filled_as_colour(tmp_path: Path) -> None:
    pillow = pytest.importorskip("PIL.Image")
    stripes = np.tile(np.arange(30) // 5 % 3 + 1, (20, 1))
    lost = np.random.default_rng(0).random(stripes.shape) < 0.2
    picture = pillow.frombytes("P", (30, 20), np.where(lost, 0, stripes).astype(np.uint8).tobytes())
    colours = np.array([[0, 0, 0], [250, 10, 10], [10, 250, 10], [10, 10, 250]])
    picture.putpalette(colours.ravel().tolist())
    picture.save(tmp_path / "in.png", transparency=0)
    assert main(["fill", str(tmp_path / "in.png"), "--out", str(tmp_path / "out.png"), "--quiet"]) == 0
    found = np.asarray(pillow.open(tmp_path / "out.png")).astype(float)
    assert found.shape == (20, 30, 3) and np.abs(found - colours[stripes]).max() < 10


# ----------------------------------------------------------------------------------------------------------- grammar


def test_one_is_singular_and_plurals_are_words(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    data, out = written(tmp_path / "r.csv", "user,item,rating", "ann,tea,4"), tmp_path / "m.npz"
    assert main(["complete", str(data), "--out", str(out), "--quiet"]) == 0
    assert capsys.readouterr().out.startswith("r.csv: 1 entry from 1 line\n")
    page = (tmp_path / "m-report" / "report.html").read_text(encoding="utf-8")
    assert (
        "1 entry of a matrix of 1 row and 1 column (100.00% of it) is explained" in page
        and "1 entry from 1 line" in page
    )
    pairs = written(tmp_path / "p.csv", "user,item", "bob,tea")
    assert main(["predict", str(out), str(pairs), "--out", str(tmp_path / "found.csv")]) == 0
    told = capsys.readouterr()
    assert "1 prediction: " in told.out and "1 of 1 pair has a row" in told.err
    with pytest.raises(ValueError, match="Known choices of biases: columns"):
        RobustCompletion(biases="rows").fit(np.eye(3))
    with pytest.raises(ValueError, match="Known choices of what to keep: inliers"):
        RobustCompletion().fit(np.eye(3)).fill("all")


@pytest.mark.parametrize(
    ("one", "many"),
    [("entry", "entries"), ("loss", "losses"), ("key", "keys"), ("thing to keep", "things to keep"), ("box", "boxes")],
)
def test_plurals(one: str, many: str) -> None:
    assert counted(1, one) == f"1 {one}" and counted(0, one) == f"0 {many}" and counted(1000, one) == f"1,000 {many}"
