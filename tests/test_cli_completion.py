"""complete, predict and fill as a new user types them: the right result, or one clear sentence."""

from __future__ import annotations

import csv
import json
import os
import re
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import refused

from condgrad.cli import main
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.choice import AUTO_LOSSES

ROWS, COLS = 40, 30


@pytest.fixture(scope="module")
def truth() -> np.ndarray:
    rng = np.random.default_rng(0)
    return 3 + rng.normal(size=(ROWS, 1)) @ rng.normal(size=(1, COLS))


def cells(truth: np.ndarray, seed: int = 1, share: float = 0.6) -> list[tuple[str, str, float]]:
    """(user, item, rating), with a little noise; u0 gave i0 a rating that is far off."""
    rng = np.random.default_rng(seed)
    seen = np.argwhere(rng.random(truth.shape) < share)
    found = [(f"u{i}", f"i{j}", truth[i, j] + 0.02 * rng.normal()) for i, j in seen if i or j]
    return [("u0", "i0", 500.0), *found]


def write(path: Path, header: str, lines: list[str]) -> Path:
    path.write_text("\n".join([header, *lines]) + "\n", encoding="utf-8")
    return path


@pytest.fixture(scope="module")
def folder(truth: np.ndarray, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """ratings.csv, and the model and report that `condgrad complete` made of it."""
    folder = tmp_path_factory.mktemp("ratings")
    write(folder / "ratings.csv", "user,item,rating", [f"{u},{i},{r:.4f}" for u, i, r in cells(truth)])
    assert main(["complete", str(folder / "ratings.csv"), "--out", str(folder / "model.npz"), "--quiet"]) == 0
    return folder


def predictions(capsys: pytest.CaptureFixture[str], *arguments: Any) -> tuple[dict[tuple[str, str], float], str]:
    capsys.readouterr()
    assert main(["predict", *map(str, arguments)]) == 0
    told = capsys.readouterr()
    return {(row["row"], row["column"]): float(row["value"]) for row in csv.DictReader(told.out.splitlines())}, told.err


# ---------------------------------------------------------------------------------------------------------- complete


def test_string_ids_are_kept_and_the_model_predicts(truth: np.ndarray, folder: Path) -> None:
    model = RobustCompletion.load(folder / "model.npz")
    assert sorted(model.row_ids_.tolist()) == sorted(f"u{i}" for i in range(ROWS))
    pairs = np.array([(f"u{i}", f"i{j}") for i in range(ROWS) for j in range(COLS)])
    assert np.median(np.abs(model.predict(pairs) - truth.ravel())) < 0.02
    worst = model.outliers_[0]
    assert (worst.row, worst.column, worst.value) == ("u0", "i0", 500.0)


def test_the_summary_says_what_was_found(truth: np.ndarray, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = folder / "again.npz"
    assert main(["complete", str(folder / "ratings.csv"), "--out", str(out), "--quiet", "--no-report"]) == 0
    told = capsys.readouterr().out
    lines = dict(re.split(r"  +", line, maxsplit=1) for line in told.splitlines()[1:])
    assert told.startswith("ratings.csv: 7") and "entries from" in told.splitlines()[0]
    assert lines["rows"] == "40" and lines["columns"] == "30" and lines["rank"] == "1" and lines["loss"] in AUTO_LOSSES
    assert float(lines["sigma"]) < 0.05 and 1 <= int(lines["outliers"]) <= 70
    assert lines["model"] == str(out) and "report" not in lines and not (folder / "again-report").exists()


def test_json_is_for_machines_and_a_certificate_is_told(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    said = ["--json", "--quiet", "--no-report", "--certify", "0.001", "--sigma", "0.5", "--radius", "40"]
    assert main(["complete", str(folder / "ratings.csv"), "--out", str(folder / "json.npz"), *said]) == 0
    found = json.loads(capsys.readouterr().out)
    assert found["status"] == "converged" and found["squared mapping"] <= 0.001
    assert found["sigma"] == 0.5 and found["radius"] == 40 and found["cleanup"]["faults"] == []


def test_the_report_tells_path_convergence_spectrum_and_outliers(folder: Path) -> None:
    report = folder / "model-report"
    page = (report / "report.html").read_text(encoding="utf-8")
    for words in (
        "RMSE on held-out entries along the path",
        "Loss of the last fit",
        "The strongest outliers",
        "u0",
        "500",
    ):
        assert words in page
    data = json.loads((report / "data.json").read_text())
    assert data["outliers"][0][:3] == ["u0", "i0", 500.0]
    model = RobustCompletion.load(folder / "model.npz")
    chosen = data["path"][model.best_index_]
    assert [data["found"][f"held-out {name}"] for name in ("RMSE", "MAE")] == [chosen["rmse"], chosen["mae"]]
    assert f"{chosen['rmse']:.4g}" in page and data["found"]["held-out entries"] == model.n_validation_
    assert len(data["singular values"]) == data["found"]["rank"] and len(data["losses"]) >= 1
    assert not list(report.glob("*.png")), "figures for print are drawn when asked"


def test_complete_draws_figures_for_print_when_asked(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    data = ["complete", folder / "ratings.csv", "--out", tmp_path / "m.npz", "--radius", "40", "--quiet", "--figures"]
    assert main([*map(str, data)]) == 0
    assert (tmp_path / "m-report" / "path.png").read_bytes().startswith(b"\x89PNG")
    assert "leave one of them out" in refused(capsys, *data, "--no-report")


def test_a_header_in_another_order(truth: np.ndarray, folder: Path, tmp_path: Path) -> None:
    lines = [f"{r:.4f};{i};x;{u}" for u, i, r in cells(truth)]
    write(tmp_path / "r.csv", "stars;movieId;note;userId", lines)
    assert main(["complete", str(tmp_path / "r.csv"), "--out", str(tmp_path / "m.npz"), "--quiet", "--no-report"]) == 0
    one, two = RobustCompletion.load(tmp_path / "m.npz"), RobustCompletion.load(folder / "model.npz")
    assert np.allclose(one.row_biases_, two.row_biases_) and (one.col_ids_ == two.col_ids_).all()


def test_columns_can_be_named(truth: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    path = write(tmp_path / "r.tsv", "when\twho\twhat\thow", [f"9\t{u}\t{i}\t{r:.4f}" for u, i, r in cells(truth)])
    told = refused(capsys, "complete", path, "--out", tmp_path / "m.npz")
    assert "no known name for the row" in told and "--columns" in told and "columns=" not in told
    told = refused(capsys, "complete", path, "--out", tmp_path / "m.npz", "--columns", "who,what,rating")
    assert "no column rating" in told
    for columns in ("who,what,how", "1,2,3"):
        said = ["--columns", columns, "--quiet", "--no-report"]
        assert main(["complete", str(path), "--out", str(tmp_path / "m.npz"), *said]) == 0
        assert "u0" in RobustCompletion.load(tmp_path / "m.npz").row_ids_


def test_duplicates_and_blanks_are_told(truth: np.ndarray, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    good = [f"{u},{i},{r:.4f}" for u, i, r in cells(truth)]
    bad = ["", "u1,i1,", ",i2,3", good[5], "u2,i2,many", "u1,i1,3.5", "u1,i1,2.5"]
    path = write(tmp_path / "r.csv", "user,item,rating", [*good, *bad])
    said = ["complete", path, "--out", tmp_path / "m.npz", "--quiet"]
    assert main(list(map(str, said))) == 0
    told = capsys.readouterr().out
    for kind in ("missing value", "missing id", "repeated entry", "not a number", "conflicting entry"):
        assert re.search(rf"{kind} +1 ", told) or re.search(rf"{kind} +2 ", told), told
    assert "Clean-up" in (tmp_path / "m-report" / "report.html").read_text(encoding="utf-8")
    assert f"line {len(good) + 3}" in refused(capsys, *said, "--strict")


def test_files_that_are_no_ratings(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    def told(name: str, text: str, *more: str) -> str:
        path = tmp_path / name
        path.write_text(text, encoding="utf-8")
        return refused(capsys, "complete", path, "--out", tmp_path / "m.npz", *more)

    assert "the file is empty" in told("empty.csv", "")
    assert "there is no data" in told("header.csv", "user,item,rating\n")
    assert "no delimiter" in told("odd.csv", "user~item~rating\na~b~3\nc~d~4\n")
    assert "give --delimiter or --columns, or" in told("odd.csv", "user~item~rating\na~b~3\nc~d~4\n")
    assert "--format npz" in told("zip.csv", "PK\x03\x04")
    assert "delimiter ';' makes 1 field" in told("wrong.csv", "user,item,rating\na,b,3\n", "--delimiter", ";")
    assert "No such file" in refused(capsys, "complete", tmp_path / "none.csv", "--out", tmp_path / "m.npz")
    assert "Unknown loss 'welch': did you mean 'welsch'?" in told(
        "good.csv", "user,item,rating\na,b,3\na,c,4\nb,c,2\n", "--loss", "welch"
    )
    assert not (tmp_path / "m.npz").exists() and not (tmp_path / "m-report").exists()


def test_a_file_of_one_line_is_a_model_of_its_mean(tmp_path: Path) -> None:
    path = write(tmp_path / "one.csv", "user,item,rating", ["ann,brazil,4"])
    assert main(["complete", str(path), "--out", str(tmp_path / "m.npz"), "--quiet"]) == 0
    assert RobustCompletion.load(tmp_path / "m.npz").predict(np.array([("ann", "brazil")])) == pytest.approx([4.0])


def test_parquet_npz_and_matrix_market(truth: np.ndarray, folder: Path, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    from scipy import io, sparse

    entries = cells(truth)
    pandas.DataFrame(entries, columns=["user", "item", "rating"]).to_parquet(tmp_path / "r.parquet")
    i, j = (np.array([int(entry[k][1:]) for entry in entries]) for k in (0, 1))
    matrix = sparse.coo_array(([entry[2] for entry in entries], (i, j)), shape=truth.shape)
    sparse.save_npz(tmp_path / "r.npz", matrix)
    io.mmwrite(tmp_path / "r.mtx", matrix)
    known = RobustCompletion.load(folder / "model.npz")
    for name, (row, col) in {"r.parquet": ("u3", "i4"), "r.npz": (3, 4), "r.mtx": (3, 4)}.items():
        out = tmp_path / f"{name}.model"
        assert main(["complete", str(tmp_path / name), "--out", str(out), "--quiet", "--no-report"]) == 0
        found = RobustCompletion.load(out).predict(np.array([[row, col]]))
        assert found == pytest.approx(known.predict(np.array([["u3", "i4"]])), abs=0.05)


def test_where_nothing_can_be_written(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    out = tmp_path / "new" / "folder" / "m.npz"
    assert main(["complete", str(folder / "ratings.csv"), "--out", str(out), "--quiet", "--no-report"]) == 0
    assert out.exists()
    assert "is a folder" in refused(capsys, "complete", folder / "ratings.csv", "--out", tmp_path)
    told = refused(capsys, "complete", folder / "ratings.csv", "--out", out / "m.npz")
    assert "m.npz" in told and ("exists" in told or "Not a directory" in told)
    locked = tmp_path / "locked"
    locked.mkdir(mode=0o500)
    if os.access(locked, os.W_OK):  # as root everything can be written to

        def denied(path: Path) -> None:
            raise PermissionError(13, "Permission denied", str(path))

        monkeypatch.setattr("condgrad.storage.atomic._create", denied)
    told = refused(capsys, "complete", folder / "ratings.csv", "--out", locked / "m.npz")
    assert told == f"condgrad: Permission denied: {locked}.\n"


def test_an_interrupted_fit_ends_with_a_sentence(
    folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any
) -> None:
    def interrupted(*arguments: Any, **more: Any) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("condgrad.learn.completion.path.refit_biases", interrupted)
    capsys.readouterr()
    assert main(["complete", str(folder / "ratings.csv"), "--out", str(tmp_path / "m.npz")]) == 130
    assert capsys.readouterr().err == "condgrad: Interrupted from the keyboard.\n" and not (tmp_path / "m.npz").exists()


# ----------------------------------------------------------------------------------------------------------- predict


def test_predict_takes_a_header_in_any_order_and_tells_what_is_unknown(
    truth: np.ndarray, folder: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pairs = write(folder / "pairs.csv", "item,user", ["i4,u3", "i4,nobody", "unheard,u3", "x,y"])
    found, told = predictions(capsys, folder / "model.npz", pairs)
    model = RobustCompletion.load(folder / "model.npz")
    assert found["u3", "i4"] == pytest.approx(truth[3, 4], abs=0.1)
    assert found["y", "x"] == pytest.approx(model.mean_, rel=1e-4)
    assert found["nobody", "i4"] == pytest.approx(model.predict(np.array([("nobody", "i4")]))[0], rel=1e-4)
    assert "2 of 4 pairs have a row that was not in the training data, such as 'nobody'" in told
    assert "2 of 4 pairs have a column that was not in the training data, such as 'unheard'" in told


def test_predictions_go_to_a_file_that_can_be_read_again(folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    pairs = write(folder / "some.csv", "user,item", ["u3,i4", "u5,i6"])
    out = folder / "found.csv"
    assert main(["predict", str(folder / "model.npz"), str(pairs), "--out", str(out)]) == 0
    assert f"2 predictions: {out}" in capsys.readouterr().out
    assert main(["complete", str(out), "--out", str(folder / "tiny.npz"), "--quiet", "--no-report"]) == 0


def test_numbers_as_ids_and_words_that_are_none(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    rng = np.random.default_rng(0)
    lines = [f"{i},{j},{rng.normal():.3f}" for i in range(7, 20) for j in range(8)]
    path = write(tmp_path / "r.csv", "user,item,rating", lines)
    assert main(["complete", str(path), "--out", str(tmp_path / "m.npz"), "--quiet", "--no-report"]) == 0
    pairs = write(tmp_path / "p.csv", "user,item", ["7,3", "somebody,3"])
    found, told = predictions(capsys, tmp_path / "m.npz", pairs)
    assert set(found) == {("7", "3"), ("somebody", "3")} and "1 of 2 pairs has a row" in told


def test_top_recommends_what_a_row_has_not(truth: np.ndarray, folder: Path, capsys: pytest.CaptureFixture[str]) -> None:
    found, _ = predictions(capsys, folder / "model.npz", "--top", 2, "--rows", "u3,u5")
    assert [row for row, _ in found] == ["u3", "u3", "u5", "u5"]
    seen = {(u, i) for u, i, _ in cells(truth)}
    assert not seen & set(found)
    left = [j for j in range(COLS) if ("u3", f"i{j}") not in seen]
    assert next(iter(found)) == ("u3", f"i{max(left, key=lambda j: truth[3, j])}")
    everyone, _ = predictions(capsys, folder / "model.npz", "--top", 1)
    assert len(everyone) == ROWS
    assert "no row 'zoe'" in refused(capsys, "predict", folder / "model.npz", "--top", 1, "--rows", "zoe")


def test_what_predict_refuses(folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    model, pairs = folder / "model.npz", write(tmp_path / "p.csv", "user,item", ["u3,i4"])
    assert "can't be used" in refused(capsys, "predict", folder / "ratings.csv", pairs)
    np.savez(tmp_path / "other.npz", a=np.ones(3))
    assert "can't be used" in refused(capsys, "predict", tmp_path / "other.npz", pairs)
    (tmp_path / "cut.npz").write_bytes(model.read_bytes()[:-100])
    assert "can't be used" in refused(capsys, "predict", tmp_path / "cut.npz", pairs)
    assert "Either PAIRS or --top" in refused(capsys, "predict", model)
    alone = write(tmp_path / "alone.csv", "user", ["u3", "u4"])
    assert "at least 2 columns" in refused(capsys, "predict", model, alone)
    assert "k must be a whole number" in refused(capsys, "predict", model, "--top", 0)


def test_the_smoothed_l0_loss_is_welsch(tmp_path: Path) -> None:
    data = write(tmp_path / "a.csv", "user,item,rating", ["a,x,1", "b,x,2", "a,y,2", "b,y,3"])
    words = ["complete", str(data), "--out", str(tmp_path / "m.npz"), "--loss", "smoothed-l0", "--no-report", "--quiet"]
    assert main(words) == 0 and RobustCompletion.load(tmp_path / "m.npz").loss == "welsch"


@pytest.mark.parametrize("linked", [False, True])
def test_no_input_is_written_over(
    linked: bool, folder: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    image = pytest.importorskip("PIL.Image")
    pixels = np.zeros((8, 8), dtype=np.uint8)
    for name in ("image.png", "mask.png"):
        image.fromarray(pixels).save(tmp_path / name)
    data, pairs, model = (tmp_path / name for name in ("data.csv", "pairs.csv", "model.npz"))
    data.write_bytes((folder / "ratings.csv").read_bytes())
    model.write_bytes((folder / "model.npz").read_bytes())
    pairs.write_text("user,item\nu1,i1\n")
    picture, mask = tmp_path / "image.png", tmp_path / "mask.png"
    for read, words in (
        (data, ["complete", data, "--quiet"]),
        (pairs, ["predict", model, pairs]),
        (model, ["predict", model, pairs]),
        (model, ["predict", model, "--top", "1"]),
        (picture, ["fill", picture, "--quiet"]),
        (mask, ["fill", picture, "--mask", mask, "--quiet"]),
    ):
        before, out = read.read_bytes(), read
        if linked:
            out = tmp_path / f"link-to-{read.name}"
            out.unlink(missing_ok=True)
            out.symlink_to(read)
        assert "is also an input file, which would be overwritten" in refused(capsys, *words, "--out", out)
        assert read.read_bytes() == before


def test_python_m_condgrad() -> None:
    for arguments, code, words in ((["--version"], 0, "condgrad "), (["predict"], 2, "required")):
        found = subprocess.run([sys.executable, "-m", "condgrad", *arguments], capture_output=True, text=True)
        assert found.returncode == code and words in found.stdout + found.stderr
