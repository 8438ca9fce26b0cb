"""A fitted RobustCompletion that is saved comes back as it was, and one that was made up is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.completions import problem

import condgrad as cg
from condgrad.cli import main
from condgrad.learn import RobustCompletion
from condgrad.learn.completion import storage
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive

pd = pytest.importorskip("pandas")


@pytest.mark.parametrize("loss", ["welsch", "geman-mcclure", "cauchy", "huber", "squared", cg.Welsch(0.5)])
def test_every_loss_fits_and_is_saved(loss: object, tmp_path: Path) -> None:
    _, holes = problem(noise=0.1)
    model = RobustCompletion(loss, random_state=3).fit(holes)
    model.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert np.array_equal(again.fill(), model.fill()) and again.get_params() == model.get_params()
    assert (
        again.path_ == model.path_
        and again.validation_rmse_ == model.validation_rmse_
        and (again.outliers_ == model.outliers_).all()
    )
    again.partial_fit(holes)
    assert np.allclose(again.recommend([0])[1], model.recommend([0])[1], atol=0.5)
    (tmp_path / "model.npz").write_bytes(b"nothing")
    with pytest.raises(BadArchive, match="can't be used"):
        RobustCompletion.load(tmp_path / "model.npz")


def test_names_are_saved(tmp_path: Path) -> None:
    frame = pd.DataFrame({"a": list("xyzxyz"), "b": [1, 1, 1, 2, 2, 2], "c": [1.0, 2, 3, 2, 3, 4]})
    model = RobustCompletion().fit(frame)
    model.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert np.array_equal(again.predict(frame[["a", "b"]]), model.predict(frame[["a", "b"]]))
    assert list(again.row_ids_) == list("xyz") and list(again.col_ids_) == [1, 2]


FORGED = {
    "shape": lambda data, _: data.update(shape=[10**11, 20]),
    "no parameter": lambda data, _: data["parameters"].pop("clip"),
    "parameter": lambda data, _: data["parameters"].update(tol=[1]),
    "mean": lambda data, _: data["numbers"].update(mean_="x"),
    "no mean": lambda data, _: data["numbers"].pop("mean_"),
    "features": lambda data, _: data["numbers"].update(n_features_in_=0.5),
    "range": lambda data, _: data.update(range=[float("nan"), 1.0]),
    "path": lambda data, _: data.update(path=[[1.0]]),
    "choice": lambda data, _: data.update(best_index=99),
    "held out": lambda data, _: data.update(n_validation=-1),
    "losses": lambda data, _: data.update(losses=["x"]),
    "rank": lambda data, _: data.update(rank=-1),
    "loss": lambda data, _: data.update(loss=["welsch", "wide"]),
    "another loss": lambda data, _: data.update(loss=["mine", 1.0]),
    "names": lambda data, _: data["names"].update(row_ids_=["z", "y", "x"]),
    "no names": lambda data, _: data["names"].pop("row_ids_"),
    "a long name": lambda data, _: data["names"].update(row_ids_=["a" * 10**7] + [""] * 10**5),
    "lists": lambda data, _: data.update(numbers=[]),
    "outlier": lambda _, arrays: arrays.update({f"outliers.{name}": np.array([7]) for name in storage.FIELDS}),
    "NaN": lambda _, arrays: arrays.update(row_biases_=np.full(3, np.nan)),
    "places": lambda _, arrays: arrays.update(rows=np.full(6, 9)),
    "scalar": lambda _, arrays: arrays.update(row_biases_=np.array(1.0)),
}


@pytest.fixture(scope="module")
def named_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = pd.DataFrame({"a": list("xyzxyz"), "b": [1, 1, 1, 2, 2, 2], "c": [1.0, 2, 3, 2, 3, 4]})
    path = tmp_path_factory.mktemp("models") / "model.npz"
    RobustCompletion().fit(frame).save(path)
    return path


@pytest.mark.parametrize("forged", FORGED)
def test_a_model_that_was_made_up_is_refused(
    forged: str, named_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    data, arrays = archive.read(named_file, storage.KIND, storage.VERSION)
    FORGED[forged](data, arrays)
    archive.write(tmp_path / "forged.npz", storage.KIND, storage.VERSION, data, arrays)
    (tmp_path / "pairs.csv").write_text("x,1\ny,2\n")
    assert main(["predict", str(tmp_path / "forged.npz"), str(tmp_path / "pairs.csv")]) == 2
    said = capsys.readouterr().err
    assert "forged.npz can't be used: what it holds does not fit together" in said and said.count("\n") == 1


def test_a_model_that_lacks_an_array_is_refused(named_file: Path, tmp_path: Path) -> None:
    data, arrays = archive.read(named_file, storage.KIND, storage.VERSION)
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        for held in (rest, rest | {name: np.zeros((2, 2, 2))}):
            archive.write(tmp_path / "m", storage.KIND, storage.VERSION, data, held)
            with pytest.raises(BadArchive, match="does not fit together"):
                RobustCompletion.load(tmp_path / "m")
