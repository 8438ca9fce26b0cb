"""RobustCompletion with its defaults on MovieLens 100K: clean, and with ratings replaced or far off."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest

from condgrad.learn import RobustCompletion

RATINGS = Path(__file__).parents[2] / "shared" / "data" / "ml-100k" / "u.data"
REQUIRED = {"clean": 0.914, "uniform 5 %": 0.918, "uniform 20 %": 0.940, "gross": 0.918}


def spoiled(values: np.ndarray, how: str) -> np.ndarray:
    """The training ratings, some replaced by uniform ones from 1 to 5, or 10 off."""
    values, share = values.copy(), 5 if "20" in how else 20
    rng = np.random.default_rng({"clean": 0, "uniform 5 %": 1, "uniform 20 %": 2, "gross": 3}[how])
    some = rng.choice(len(values), len(values) // share, replace=False)
    if how.startswith("uniform"):
        values[some] = rng.integers(1, 6, len(some))
    elif how == "gross":
        values[some] += rng.choice([-10.0, 10.0], len(some))
    return values


@pytest.mark.parametrize("how", REQUIRED)
def test_the_defaults_predict_ratings(how: str) -> None:
    if not RATINGS.exists():
        pytest.skip("../shared/data/ml-100k is not there")
    data = np.loadtxt(RATINGS, dtype=int)
    order = np.random.default_rng(0).permutation(len(data))
    test, train = data[order[:20_000]], data[order[20_000:]]
    model = RobustCompletion().fit(train[:, :2], spoiled(train[:, 2].astype(float), how))
    error = np.sqrt(np.mean((model.predict(test[:, :2]) - test[:, 2]) ** 2))
    assert error <= REQUIRED[how]
