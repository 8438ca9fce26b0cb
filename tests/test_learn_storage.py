"""A fitted RobustCompletion that is saved comes back as it was, and one that was made up is refused."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from tests.completions import problem
from tests.forging import content, forge

import condgrad as cg
from condgrad.cli import main
from condgrad.learn import RobustCompletion
from condgrad.learn.completion import storage
from condgrad.learn.storage import VERSION
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


def fitted(**new):
    return lambda found: found["fitted"].update(new)


FORGED = {
    "no parameter": lambda found: found["parameters"].pop("clip"),
    "parameter": lambda found: found["parameters"].update(tol=[1]),
    "another parameter": lambda found: found["parameters"].update(bogus=1),
    "a loss that is none": lambda found: found["parameters"].update(loss=np.ones(3)),
    "mean": fitted(mean_="x"),
    "mean of NaN": fitted(mean_=float("nan")),
    "no mean": lambda found: found["fitted"].pop("mean_"),
    "features": fitted(n_features_in_=0.5),
    "names of features": fitted(feature_names=np.array(["a"], object)),
    "range": fitted(range_=(float("nan"), 1.0)),
    "range of three": fitted(range_=(1.0, 2.0, 3.0)),
    "path": fitted(path_=[(1.0,)]),
    "rank on the path": lambda found: found["fitted"].update(path_=[found["fitted"]["path_"][0]._replace(rank=-1)]),
    "choice": fitted(best_index_=99),
    "choice from the end": fitted(best_index_=-1),
    "held out": fitted(n_validation_=-1),
    "losses": fitted(losses_=["x"]),
    "rank": fitted(_rank=-1),
    "loss": fitted(_loss=["welsch", "wide"]),
    "a loss without a width": lambda found: vars(found["fitted"]["_loss"]).update(sigma=-1.0),
    "another loss": fitted(_loss=cg.LowRank(np.ones((3, 1)), np.ones((2, 1)))),
    "names": fitted(row_ids_=np.array(["z", "y", "x"])),
    "no names": fitted(row_ids_=None),
    "too many names": fitted(row_ids_=np.array(["w", "x", "y", "z"])),
    "lists": lambda found: found.update(fitted=[]),
    "no fit": lambda found: found.pop("fitted"),
    "outlier": fitted(outliers=tuple(np.array([7]) for _ in storage.FIELDS)),
    "half an outlier": fitted(outliers=(np.array([0]), np.array([0, 1]), *[np.zeros(1)] * 3)),
    "NaN": fitted(row_biases_=np.full(3, np.nan)),
    "places": lambda found: found["fitted"].update(entries=(np.full(6, 9), *found["fitted"]["entries"][1:])),
    "scalar": fitted(row_biases_=np.array(1.0)),
    "labels of one side": fitted(labels=({"kind": "number", "labels": np.arange(3), "name": None}, None)),
}


@pytest.fixture(scope="module")
def named_file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    frame = pd.DataFrame({"a": list("xyzxyz"), "b": [1, 1, 1, 2, 2, 2], "c": [1.0, 2, 3, 2, 3, 4]})
    path = tmp_path_factory.mktemp("models") / "model.npz"
    RobustCompletion("welsch").fit(frame).save(path)
    return path


@pytest.mark.parametrize("forged", FORGED)
def test_a_model_that_was_made_up_is_refused(
    forged: str, named_file: Path, tmp_path: Path, capsys: pytest.CaptureFixture
) -> None:
    forge(named_file, tmp_path / "forged.npz", "RobustCompletion", FORGED[forged])
    (tmp_path / "pairs.csv").write_text("x,1\ny,2\n")
    assert main(["predict", str(tmp_path / "forged.npz"), str(tmp_path / "pairs.csv")]) == 2
    said = capsys.readouterr().err
    assert "forged.npz can't be used: what it holds does not fit together" in said and said.count("\n") == 1


def test_a_model_that_lacks_something_is_refused(named_file: Path, tmp_path: Path) -> None:
    for name, value in content(named_file, "RobustCompletion")["fitted"].items():
        changes = [lambda found, name=name: found["fitted"].pop(name)]
        if isinstance(value, np.ndarray):
            changes.append(lambda found, name=name: found["fitted"].update({name: np.zeros((2, 2, 2))}))
        for change in changes:
            forge(named_file, tmp_path / "m", "RobustCompletion", change)
            with pytest.raises(BadArchive, match="does not fit together"):
                RobustCompletion.load(tmp_path / "m")


def test_a_model_without_one_of_its_arrays_is_refused(named_file: Path, tmp_path: Path) -> None:
    data, arrays = archive.read(named_file, "RobustCompletion", VERSION)
    for name in arrays:
        rest = {other: array for other, array in arrays.items() if other != name}
        archive.write(tmp_path / "m", "RobustCompletion", VERSION, data, rest)
        with pytest.raises(BadArchive, match="does not fit together"):
            RobustCompletion.load(tmp_path / "m")


def test_an_own_loss_is_saved_if_its_class_is_stored(tmp_path: Path) -> None:
    class Mine(type(cg.Squared())):  # type: ignore[misc]
        """A loss of somebody else's."""

    _, holes = problem(noise=0.1)
    model = RobustCompletion(Mine(), radius=20.0).fit(holes)
    with pytest.raises(TypeError, match=r"A Mine can't be written to a file: put the decorator @condgrad\.stored"):
        model.save(tmp_path / "m")
    assert not (tmp_path / "m").exists()
    cg.stored(Mine)
    model.save(tmp_path / "m")
    again = RobustCompletion.load(tmp_path / "m")
    assert type(again.loss) is Mine and np.array_equal(again.fill(), model.fill())


def test_a_model_of_an_older_version_is_refused(tmp_path: Path) -> None:
    archive.write(tmp_path / "m", "RobustCompletion", 3, {}, {})
    with pytest.raises(BadArchive, match=r"version 3, of an older condgrad; this one reads version 5: write it again"):
        RobustCompletion.load(tmp_path / "m")
