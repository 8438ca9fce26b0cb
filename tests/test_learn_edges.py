"""RobustCompletion at the edges of what it takes: sizes, names, duplicates, rows that have seen everything."""

from __future__ import annotations

import pickle
from collections.abc import Callable
from functools import cache
from pathlib import Path

import numpy as np
import pytest
import scipy.sparse as sp

from condgrad.cli import BAD_INPUT, main
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier


def problem(seed: int = 0, share: float = 0.6) -> tuple[np.ndarray, np.ndarray]:
    """A matrix of low rank, and what is seen of it: noise, holes, and nine entries that are far off."""
    rng = np.random.default_rng(seed)
    truth = rng.normal(size=(40, 2)) @ rng.normal(size=(2, 30))
    seen = np.where(rng.random(truth.shape) < share, truth + 0.05 * rng.normal(size=truth.shape), np.nan)
    seen[:3, :3] = 50.0
    return truth, seen


@pytest.fixture(scope="module")
def fitted() -> RobustCompletion:
    """Not to be changed."""
    return RobustCompletion().fit(problem()[1])


# ------------------------------------------------------------------------------------------------------------- sizes

LARGE, SMALL = 2.0**323, 2.0**-334
"""The largest entry, 50, becomes 8.5e98 and 1.4e-99."""


@cache
def fitted_by(loss: str) -> RobustCompletion:
    return RobustCompletion(loss).fit(problem()[1])


@pytest.mark.parametrize("loss", ["welsch", "cauchy", "huber", "squared"])
@pytest.mark.parametrize("unit", [LARGE, SMALL])
def test_the_unit_of_the_values_does_not_matter(loss: str, unit: float) -> None:
    _, seen = problem()
    one, other = fitted_by(loss), RobustCompletion(loss).fit(seen * unit)
    assert np.abs(other.fill("nothing") / unit - one.fill("nothing")).max() < 1e-9
    assert len(other.outliers_) == len(one.outliers_)
    assert other.sigma_ / unit == pytest.approx(one.sigma_, rel=1e-9)
    assert np.isfinite(other.transform(seen * unit)).all()
    other.fold_in(seen[:2] * unit).partial_fit(seen[:2] * unit)
    assert other.fill().shape == (42, 30)


@pytest.mark.parametrize("unit", [LARGE, SMALL])
def test_the_unit_does_not_matter_to_components_either(unit: float) -> None:
    full = problem(share=1.1)[1]
    one, other = RobustPCA().fit(full), RobustPCA().fit(full * unit)
    assert np.abs(other.low_rank_ / unit - one.low_rank_).max() < 1e-9 and (other.outliers_ == one.outliers_).all()


def test_one_huge_outlier_is_an_outlier() -> None:
    truth, seen = problem()
    seen[0, 0] = 1e99
    model = RobustCompletion().fit(seen)
    assert np.abs(model.fill() - truth).max() < 0.5 and model.outliers_[0].value == 1e99


@pytest.mark.parametrize(("size", "told"), [(1e101, r"is 1e\+101"), (1e300, r"is 1e\+300"), (-1e200, r"is -1e\+200")])
def test_what_is_too_large_is_refused_by_its_name(size: float, told: str, fitted: RobustCompletion) -> None:
    _, seen = problem()
    seen[4, 5] = size
    for call in (RobustCompletion().fit, RobustPCA().fit, fitted.transform, fitted.fold_in, fitted.partial_fit):
        with pytest.raises(ValueError, match=rf"Entry \(4, 5\) {told}, but sizes up to 1e\+100 .* divide all values"):
            call(seen)
    with pytest.raises(ValueError, match=rf"Entry \('b', 7\) {told}"):
        RobustCompletion().fit((["a", "b"], [7, 7], [1.0, size]))
    with pytest.raises(ValueError, match=rf"Entry \(0, 1\) {told}"):
        RobustPCA().fit(problem(share=1.1)[1]).transform(np.where(np.arange(30) == 1, size, 1.0)[None])


@pytest.mark.parametrize("size", [1e-101, 1e-300, 5e-324])
def test_what_is_next_to_nothing_is_refused_by_its_name(size: float) -> None:
    for estimator in (RobustCompletion(), RobustPCA()):
        with pytest.raises(ValueError, match=r"Entry \(0, 1\) is .* below 1e-100 .* multiply all values"):
            estimator.fit(np.array([[0.0, size, 0.0], [size, 0.0, size]]))
    assert np.isfinite(RobustCompletion().fit([[0.0, size, 1.0], [size, 0.0, 2.0]]).fill()).all()
    assert (RobustCompletion().fit(np.zeros((3, 3))).fill() == 0).all()


@pytest.mark.parametrize(("size", "told"), [("1e200", "divide"), ("1e-200", "multiply")])
def test_sizes_are_told_on_the_command_line(
    size: str, told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "r.csv").write_text(f"user,item,rating\nann,tea,{size}\nbob,tea,0\n")
    assert main(["complete", str(tmp_path / "r.csv"), "--out", str(tmp_path / "m.npz"), "--quiet"]) == BAD_INPUT
    said = capsys.readouterr().err
    assert "condgrad: Entry ('ann', 'tea') is 1e" in said and told in said and said.count("\n") == 1


# ---------------------------------------------------------------------------------------------------- recommendations


@pytest.mark.parametrize("name", [None, "v{:02d}".format, lambda j: 100 + j])
def test_no_column_that_a_row_has_seen_is_recommended(name: Callable[[int], object] | None, tmp_path: Path) -> None:
    """Rows 0, 1 and 2 have 3, 1 and no columns left."""
    _, seen = problem(share=1.1)
    seen[0, [4, 8, 9]] = seen[1, 6] = np.nan
    rows, cols = np.nonzero(~np.isnan(seen))
    model = RobustCompletion().fit(seen if name is None else (rows, [name(j) for j in cols], seen[rows, cols]))
    name = name or int
    best, values = model.recommend([0, 1, 2], k=10)
    assert best.shape == values.shape == (3, 3)
    left = [[name(j) for j in part] for part in ([4, 8, 9], [6], [])]
    assert [sorted(row.compressed().tolist()) for row in best] == left
    assert best.tolist()[1:] == [[name(6), None, None], [None, None, None]]
    assert set(best.data[2]) in ({-1}, {""}) and (np.isnan(values) == np.ma.getmaskarray(best)).all()
    assert model.recommend([2], k=4)[0].shape == (1, 0) and model.recommend([2], 4, exclude_seen=False)[0].count() == 4
    assert model.recommend([0], k=2)[0].tolist()[0] == best.tolist()[0][:2]


def test_top_writes_nothing_for_rows_that_have_seen_everything(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    model = RobustCompletion().fit((["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0]))
    model.save(tmp_path / "m.npz")
    assert main(["predict", str(tmp_path / "m.npz"), "--top", "5"]) == 0
    assert [line.rsplit(",", 1)[0] for line in capsys.readouterr().out.splitlines()] == ["row,column", "b,y"]
    assert main(["predict", str(tmp_path / "m.npz"), "--top", "5", "--rows", "a"]) == 0
    assert capsys.readouterr().out == "row,column,value\n"


# -------------------------------------------------------------------------------------------------------- duplicates


@pytest.mark.parametrize("call", ["partial_fit", "fold_in"])
@pytest.mark.parametrize(
    ("kind", "told"),
    [("names", r"Entry \('zoe', 'x'\) is observed 2 times"), ("positions", r"Entry \(1, 0\) is observed 2 times")],
)
def test_an_entry_that_is_given_twice_is_refused_and_nothing_is_changed(call: str, kind: str, told: str) -> None:
    if kind == "names":
        model = RobustCompletion().fit((["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0]))
        more: object = (["zoe", "zoe", "zoe"], ["x", "y", "x"], [4.0, 1.0, 5.0])
    else:
        model = RobustCompletion().fit(np.array([[1.0, 2.0], [3.0, np.nan]]))
        more = sp.coo_array(([4.0, 5.0, 1.0], ([1, 1, 0], [0, 0, 1])), (2, 2))
    before = pickle.dumps(model)
    with pytest.raises(ValueError, match=told):
        getattr(model, call)(more)
    assert pickle.dumps(model) == before


def refused_fits(bad: object) -> list[tuple[str, object, dict]]:
    """(method, data, parameters)"""
    return [
        ("fit", bad, {}),
        ("fit", np.full((4, 3), np.nan), {}),
        ("fit", ([0, 0], [1, 1], [1.0, 2.0]), {}),
        ("fit", np.eye(4), {"sigma": -1.0}),
        ("fit", np.eye(4), {"random_state": -1}),
        ("partial_fit", bad, {}),
        ("fold_in", bad, {}),
    ]


@pytest.mark.parametrize("which", range(7))
def test_a_refused_fit_leaves_the_model_as_it_was(which: int) -> None:
    pd = pytest.importorskip("pandas")
    seen = problem()[1]
    model = RobustCompletion().fit(pd.DataFrame(seen, columns=[f"v{j:02d}" for j in range(30)]))
    method, data, parameters = refused_fits(pd.DataFrame(np.full((4, 3), 1e200), columns=["u", "v", "w"]))[which]
    model.set_params(**parameters)
    before, fitted = pickle.dumps(model), dict(vars(model))
    with pytest.raises(ValueError):
        getattr(model, method)(data)
    assert pickle.dumps(model) == before and vars(model) == fitted
    assert model.transform(pd.DataFrame(seen, columns=model.feature_names_in_)).shape == seen.shape


def test_a_refused_fit_leaves_components_and_coefficients_as_they_were() -> None:
    rng = np.random.default_rng(0)
    X, y = rng.normal(size=(30, 4)), rng.normal(size=30)
    for model in (RobustPCA(), RobustLinearRegressor(radius=1.0), SigmoidClassifier(radius=1.0)):
        model.fit(X, np.sign(y) if isinstance(model, SigmoidClassifier) else y)
        before = pickle.dumps(model.set_params(loss="none"))
        with pytest.raises(ValueError, match="loss"):
            model.fit(X[:, :2], np.sign(y))
        assert pickle.dumps(model) == before


def test_a_fit_that_ends_well_forgets_the_names_of_the_last_one() -> None:
    pd = pytest.importorskip("pandas")
    model = RobustCompletion().fit(pd.DataFrame(np.eye(5), columns=list("abcde")))
    model.fit((["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0]))
    assert not hasattr(model, "feature_names_in_") and model.n_features_in_ == 3


def test_a_whole_number_is_the_seed_itself(tmp_path: Path) -> None:
    seen = problem()[1]
    rows, cols = np.nonzero(~np.isnan(seen))
    lines = [f"{i},{j},{seen[i, j].item()!r}" for i, j in zip(rows.tolist(), cols.tolist(), strict=True)]
    (tmp_path / "r.csv").write_text("\n".join(["row,column,value", *lines]), encoding="utf-8")
    words = ["--out", str(tmp_path / "m.npz"), "--seed", "0", "--quiet", "--no-report"]
    assert main(["complete", str(tmp_path / "r.csv"), *words]) == 0
    plain, other = RobustCompletion().fit(seen), RobustCompletion(random_state=1).fit(seen)
    for same in (
        RobustCompletion(random_state=0).fit(seen),
        RobustCompletion(random_state=np.int64(0)).fit(seen),
        RobustCompletion.load(tmp_path / "m.npz"),
    ):
        assert (same.fill() == plain.fill()).all() and list(same.path_) == list(plain.path_)
    assert list(other.path_) != list(plain.path_)
    state = [RobustCompletion(random_state=np.random.RandomState(3)).fit(seen).fill() for _ in range(2)]
    assert (state[0] == state[1]).all()


def test_a_new_value_of_a_known_entry_is_no_duplicate() -> None:
    model = RobustCompletion().fit((["a", "a", "b"], ["x", "y", "x"], [1.0, 2.0, 3.0]))
    assert model.partial_fit((["a"], ["x"], [7.0])).fill("observed")[0, 0] == 7.0


def test_rows_that_are_folded_in_stand_in_the_order_of_their_names() -> None:
    truth, seen = problem()
    rows, cols = np.nonzero(~np.isnan(seen))
    late = rows % 7 == 3
    parts = [(rows[part], cols[part], seen[rows, cols][part]) for part in (~late, late)]
    model = RobustCompletion().fit(parts[0]).fold_in(parts[1])
    assert model.row_ids_.tolist() == list(range(40))
    assert np.abs(model.fill() - truth).max() < 0.5 and (model.fill("observed")[rows, cols] == seen[rows, cols]).all()


def test_a_row_of_holes_alone_is_filled_as_among_others(fitted: RobustCompletion) -> None:
    nothing = np.full((1, 30), np.nan)
    found = fitted.transform(nothing)
    assert np.allclose(found, np.clip(fitted.mean_ + fitted.col_biases_, *fitted.range_))
    assert (fitted.transform(np.concatenate([problem()[1][:3], nothing]))[-1] == found[0]).all()
    assert (fitted.transform(sp.csr_array((1, 30))) == found).all()  # what it does not store is not observed
    for call in (RobustCompletion().fit, fitted.partial_fit, fitted.fold_in, fitted.score):
        with pytest.raises(ValueError, match="no observed entry"):
            call(nothing)


# ------------------------------------------------------------------------------------------------------- DataFrames


def test_a_wide_frame_is_a_matrix_and_melted_it_has_names() -> None:
    pd = pytest.importorskip("pandas")
    truth, seen = problem()
    frame = pd.DataFrame(seen, index=[f"u{i:02d}" for i in range(40)], columns=[f"v{j:02d}" for j in range(30)])
    wide = RobustCompletion().fit(frame)
    assert wide.row_ids_ is None and wide.feature_names_in_.tolist() == frame.columns.tolist()
    named = RobustCompletion().fit(frame.rename_axis("row").reset_index().melt("row", var_name="column").dropna())
    assert named.row_ids_.tolist() == frame.index.tolist() and named.col_ids_.tolist() == frame.columns.tolist()
    assert np.allclose(named.fill(), wide.fill()) and np.abs(named.fill() - truth).max() < 0.5


@pytest.mark.parametrize(
    "frame",
    [
        {"tea": [5, 3, 4], "rye": [1, 2, 3], "oat": [2, 2, 1]},
        {"tea": [5.0, 3.0, 4.0], "rye": [1.0, 2.0, 3.0], "oat": [2.0, 2.0, np.nan]},
        {"tea": [5.0, 3.5, 4.0], "rye": [1, 2, 3], "oat": [2.0, 2.0, 1.0]},
        {0: [5.0, 3.5, 4.0], 1: [1, 2, 3], 2: [2, 2, 1]},
    ],
)
def test_three_columns_that_may_be_a_matrix_are_asked_about(frame: dict) -> None:
    pd = pytest.importorskip("pandas")
    given = pd.DataFrame(frame)
    told = "are row, column and value: name them so, or give a matrix of three columns as an array, by to_numpy"
    with pytest.raises(ValueError, match=told):
        RobustCompletion().fit(given)
    assert RobustCompletion().fit(given.to_numpy()).fill().shape == (3, 3)


@pytest.mark.parametrize(
    "frame",
    [
        {"a": [5, 3, 4], "b": [1, 2, 3], "c": [2.0, 2.5, 1.0]},
        {"user": [5, 3, 4], "b": [1, 2, 3], "c": [2, 2, 1]},
        {"a": ["x", "y", "x"], "b": [1, 2, 3], "c": [2, 2, 1]},
        {"value": [2, 2, 1], "column": [1, 2, 3], "row": [5, 3, 4]},
    ],
)
def test_three_columns_of_ids_and_values_are_entries(frame: dict) -> None:
    pd = pytest.importorskip("pandas")
    assert RobustCompletion().fit(pd.DataFrame(frame)).col_ids_.tolist() == [1, 2, 3]


def ratings() -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    seen = problem()[1]
    rows, cols = np.nonzero(~np.isnan(seen))
    return rows, cols, seen[rows, cols]


@pytest.mark.parametrize("names", [("userId", "movieId", "rating"), ("i", "j", "x"), ("row", "Item", "stars")])
def test_entries_are_found_by_their_names_among_more_columns(names: tuple[str, str, str]) -> None:
    pd = pytest.importorskip("pandas")
    rows, cols, values = ratings()
    plain = RobustCompletion().fit((rows, cols, values))
    times = np.arange(len(rows)) + 10**9
    frame = pd.DataFrame({"timestamp": times, names[2]: values, "note": "good", names[0]: rows, names[1]: cols})
    model = RobustCompletion().fit(frame)
    assert (model.fill() == plain.fill()).all() and model.row_ids_.tolist() == plain.row_ids_.tolist()
    assert (model.predict(frame) == plain.predict(np.column_stack([rows, cols]))).all()
    assert (model.predict(frame[["timestamp", *names[:2]]]) == model.predict(frame)).all()
    assert model.score(frame) == plain.score((rows, cols, values))
    if len(names[0]) > 2:
        assert model.score(frame[["timestamp", *names[:2]]], values) == model.score(frame)
    assert (model.partial_fit(frame[:5]).fill("observed")[rows, cols] == values).all()


@pytest.mark.parametrize(
    "columns",
    [
        [f"v{j}" for j in range(6)],
        ["user", "item", "a", "b", "c", "d"],
        ["user", "rater", "item", "rating", "a", "b"],
        range(6),
    ],
)
def test_a_frame_without_one_name_each_stays_a_matrix(columns: list) -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 6)), columns=columns)
    assert RobustCompletion().fit(frame).fill().shape == (8, 6)


def test_letters_do_not_make_pairs_of_a_matrix_with_a_y_which_it_ignores() -> None:
    pd = pytest.importorskip("pandas")
    frame = pd.DataFrame(np.random.default_rng(0).normal(size=(8, 10)), columns=list("abcdefghij"))
    assert RobustCompletion().fit(frame, np.ones(8)).fill().shape == (8, 10)
