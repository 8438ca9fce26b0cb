"""RobustCompletion of wide DataFrames: index and columns come back in predictions, in the filled table and in outliers."""

from __future__ import annotations

import pickle
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.completions import problem
from tests.forging import forge

from condgrad.learn import RobustCompletion
from condgrad.storage.archive import BadArchive

pd = pytest.importorskip("pandas")

TIMES = pd.date_range("2024-03-01", periods=60, freq="h")
SENSORS = [f"sensor {j}" for j in range(40, 0, -1)]
"""Not sorted."""

LABELS = {
    "times": (TIMES, SENSORS),
    "times with a zone": (TIMES.tz_localize("Europe/Berlin"), SENSORS),
    "names": ([f"day {k}" for k in range(60, 0, -1)], SENSORS),
    "numbers": (np.arange(60)[::-1] + 7, np.arange(40) * 10),
    "default": (None, None),
}


def wide(index: Any = TIMES, columns: Any = tuple(SENSORS)) -> Any:
    columns = list(columns) if isinstance(columns, tuple) else columns
    return pd.DataFrame(problem(noise=0.1)[1], index=index, columns=columns).rename_axis("time")


@pytest.fixture(scope="module")
def plain() -> RobustCompletion:
    return RobustCompletion().fit(problem(noise=0.1)[1])


@pytest.fixture(scope="module")
def fitted() -> RobustCompletion:
    return RobustCompletion().fit(wide())


@pytest.mark.parametrize("kind", LABELS)
def test_labels_come_back_and_change_no_number(kind: str, plain: RobustCompletion, tmp_path: Path) -> None:
    frame = wide(*LABELS[kind])
    model = RobustCompletion().fit(frame)
    model.save(tmp_path / "m.npz")
    for again in (model, RobustCompletion.load(tmp_path / "m.npz"), pickle.loads(pickle.dumps(model))):
        filled = again.fill()
        assert filled.index.equals(frame.index) and filled.columns.equals(frame.columns)
        assert (filled.index.dtype, filled.index.name) == (frame.index.dtype, "time")
        assert (filled.dtypes == np.float64).all() and np.array_equal(filled.to_numpy(), plain.fill())
        places = [(3, 5), (59, 0), (0, 39)]
        pairs = [(frame.index[i], frame.columns[j]) for i, j in places]
        assert np.array_equal(again.predict(pd.DataFrame(pairs, columns=["row", "column"])), plain.predict(places))
        rows = [frame.index[k] for k in plain.outliers_.row]
        assert [pd.Timestamp(row) if kind == "times" else row for row in again.outliers_.row] == rows
        assert list(again.outliers_.column) == [frame.columns[k] for k in plain.outliers_.column]
        assert again.score(frame) == pytest.approx(plain.score(frame.to_numpy()))


def test_times_may_be_given_as_text_and_numbers_are_not_taken_for_labels(fitted: RobustCompletion) -> None:
    by_label = fitted.predict([("2024-03-01 02:00", "sensor 39"), ("2024-03-01 02:00", "sensor 99")])
    assert by_label[0] == pytest.approx(fitted.fill("nothing").loc["2024-03-01 02:00", "sensor 39"])
    assert by_label[1] == pytest.approx(fitted.mean_ + fitted.row_biases_[2])
    with pytest.raises(TypeError, match=r"The row 2 is a number.*labels such as Timestamp"):
        fitted.predict([(2, 3)])
    with pytest.raises(TypeError, match=r"The row 'noon' can't be read as a label such as Timestamp"):
        fitted.predict([("noon", "sensor 39")])
    with pytest.raises(TypeError, match=r"The column 3 is a number.*such as 'sensor 40'"):
        fitted.predict(pd.DataFrame({"row": TIMES[:1], "column": [3]}))


def test_rows_without_any_entry_stay() -> None:
    frame = wide()
    frame.iloc[[0, 17, 59]] = np.nan
    filled = RobustCompletion().fit(frame).fill()
    assert filled.index.equals(frame.index) and filled.notna().all().all()


def test_transform_keeps_the_labels_of_what_it_is_given(fitted: RobustCompletion, plain: RobustCompletion) -> None:
    part = wide().iloc[5:9]
    found = fitted.transform(part)
    assert found.index.equals(part.index) and found.columns.equals(part.columns)
    assert np.array_equal(found.to_numpy(), plain.transform(part.to_numpy()))
    assert isinstance(plain.transform(part.to_numpy()), np.ndarray)


def test_recommended_columns_have_labels(fitted: RobustCompletion, plain: RobustCompletion) -> None:
    columns, values = fitted.recommend([TIMES[4], TIMES[2]], k=3)
    places, expected = plain.recommend([4, 2], k=3)
    assert np.array_equal(values, expected)
    assert columns.tolist() == [[SENSORS[j] for j in row] for row in places.tolist()]
    with pytest.raises(ValueError, match="is not known"):
        fitted.recommend([TIMES[-1] + pd.Timedelta("1h")])


def test_more_rows_are_known_by_their_labels(fitted: RobustCompletion) -> None:
    frame, later = wide(), TIMES[-1] + pd.Timedelta("1h")
    model = RobustCompletion().fit(frame)
    new = pd.DataFrame([frame.iloc[7], frame.iloc[8]], index=[later, TIMES[8]], columns=SENSORS)
    model.partial_fit(new)
    filled = model.fill("nothing")
    assert filled.index.equals(TIMES.append(pd.DatetimeIndex([later])))
    assert np.abs(filled.loc[later] - filled.loc[TIMES[7]]).max() < 0.5
    next_one = later + pd.Timedelta("1h")
    model.fold_in(frame.iloc[[3]].set_axis([next_one]))
    assert model.fill().index[-1] == next_one and np.isfinite(model.predict([(next_one, "sensor 1")])).all()
    with pytest.raises(ValueError, match="is known already: use partial_fit"):
        model.fold_in(frame.iloc[[3]])
    with pytest.raises(ValueError, match="give new rows as one, whose index names them"):
        model.fold_in(frame.to_numpy()[:2])
    numbered = RobustCompletion().fit(frame.set_axis(range(40), axis=1))
    with pytest.raises(ValueError, match="give a DataFrame, whose index names the rows"):
        numbered.partial_fit(np.vstack([frame.to_numpy()] * 2))


def test_rows_of_the_default_index_are_numbered_on() -> None:
    frame = wide(None, None)
    model = RobustCompletion().fit(frame).fold_in(frame.iloc[:2])
    assert model.fill().index.tolist() == list(range(62))


def test_labels_that_stand_twice_are_refused_only_where_they_matter(plain: RobustCompletion) -> None:
    frame = wide(np.repeat(np.arange(30), 2))
    model = RobustCompletion().fit(frame)
    assert np.array_equal(model.fill(), plain.fill()) and model.fill().index.equals(frame.index)
    assert model.score(frame) == pytest.approx(plain.score(frame.to_numpy()))
    with pytest.raises(ValueError, match="The label 0 stands for more than one row"):
        model.predict([(0, "sensor 1")])


def test_a_warm_start_knows_rows_by_their_labels() -> None:
    frame = wide()
    model = RobustCompletion(warm_start=True, max_steps=2).fit(frame)
    before = model.fill("nothing")
    turned = model.fit(frame.iloc[::-1]).fill("nothing")
    assert turned.index.equals(frame.index[::-1]) and np.abs(turned.loc[TIMES] - before).max().max() < 0.5


def test_three_columns_of_numbers_with_row_labels_are_a_matrix() -> None:
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(20, 3)), index=TIMES[:20], columns=["a", "b", "c"])
    assert RobustCompletion().fit(frame).fill().shape == (20, 3)
    with pytest.raises(ValueError, match="is not clear"):
        RobustCompletion().fit(frame.reset_index(drop=True))


def test_a_list_of_entries_after_a_wide_one_has_no_labels_left() -> None:
    model = RobustCompletion().fit(wide())
    model.fit(pd.DataFrame({"user": list("xyzxyz"), "item": [1, 1, 1, 2, 2, 2], "rating": [1.0, 2, 3, 2, 3, 4]}))
    assert model.index_ is None and model.columns_ is None and isinstance(model.fill(), np.ndarray)


FORGED = {
    "too few": lambda labels: labels[0].update(labels=labels[0]["labels"][:3]),
    "another type": lambda labels: labels[0].update(kind="datetime64[ns], evil"),
    "no such zone": lambda labels: labels[0].update(kind="datetime64[ns, Nowhere/Town]"),
    "texts": lambda labels: labels[1].update(labels=np.ones(40)),
    "a list": lambda labels: labels[1].update(labels=["a"] * 40),
    "one side": lambda labels: labels.__setitem__(1, None),
    "none": lambda labels: labels.clear(),
    "name": lambda labels: labels[0].update(name=[1]),
}


@pytest.mark.parametrize("forged", FORGED)
def test_forged_labels_are_refused(forged: str, fitted: RobustCompletion, tmp_path: Path) -> None:
    def change(found: Any) -> None:
        labels = list(found["fitted"]["labels"])
        FORGED[forged](labels)
        found["fitted"]["labels"] = tuple(labels)

    fitted.save(tmp_path / "m.npz")
    forge(tmp_path / "m.npz", tmp_path / "m.npz", "RobustCompletion", change)
    with pytest.raises(BadArchive, match="does not fit together"):
        RobustCompletion.load(tmp_path / "m.npz")


@pytest.mark.parametrize("levels", ["rows", "columns", "both"])
def test_labels_that_are_tuples(levels: str, plain: RobustCompletion, tmp_path: Path) -> None:
    """A list of pairs with them was an error of numpy's, and `recommend` took a tuple for two labels."""
    index = pd.MultiIndex.from_product([["a", "b"], range(30)]) if levels != "columns" else TIMES
    columns = pd.MultiIndex.from_product([list("wxyz"), list("0123456789")]) if levels != "rows" else SENSORS
    frame = pd.DataFrame(problem(noise=0.1)[1], index=index, columns=columns)
    model, places = RobustCompletion().fit(frame), [(3, 5), (59, 0), (0, 39)]
    pairs = [(frame.index[i], frame.columns[j]) for i, j in places]
    array = np.empty((3, 2), dtype=object)
    for k, (row, column) in enumerate(pairs):
        array[k, 0], array[k, 1] = row, column
    for form in (pairs, [list(pair) for pair in pairs], array, pd.DataFrame(pairs, columns=["row", "column"])):
        assert np.array_equal(model.predict(form), plain.predict(places))
        assert np.array_equal(model.predict(form[:1]), plain.predict(places[:1]))
    found, values = model.recommend([row for row, _ in pairs], k=2)
    expected, same = plain.recommend([i for i, _ in places], k=2)
    assert np.array_equal(values, same) and found.tolist() == [[frame.columns[j] for j in row] for row in expected]
    if levels == "both":
        assert model.predict([(("c", 0), ("w", "7"))]) == pytest.approx(model.mean_ + model.col_biases_[7])  # a new row
        for wrong in (("a",), "a", ("a", 1, 2)):
            with pytest.raises(
                TypeError, match=r"^The row .* can't be read as a label such as \('a', 0\): give labels"
            ):
                model.predict([(wrong, ("w", "7"))])
        with pytest.raises(ValueError, match=r"^Row \('c', 1\) is not known"):
            model.recommend([("a", 1), ("c", 1)])
        model.save(tmp_path / "m.npz")  # labels that are neither numbers, texts nor times are texts in a file
        with pytest.raises(TypeError, match=r"^The row \('a', 3\) can't be read as a label such as \"\('a', 0\)\""):
            RobustCompletion.load(tmp_path / "m.npz").predict(pairs)
