"""Tables with holes and outliers, and the truth at the holes: sensors, and synthetic matrices of low rank."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import NamedTuple

import numpy as np
from scipy.io import loadmat

FOLDER = Path(__file__).parents[2] / "shared" / "data" / "traffic"
MISSING, OUTLIERS = 0.3, 0.05
"""Shares of missing entries and of gross outliers in the sensor tables."""
HOLES = ("random holes", "block holes", "random holes, outliers", "block holes, outliers")
DIRT = ("scattered", "one-sided", "by row", "by block")
SHARES = (0.0, 0.1, 0.2, 0.3, 0.4)


class Case(NamedTuple):
    """One matrix to complete."""

    seen: np.ndarray
    """The matrix that estimators get; NaN is missing."""
    truth: np.ndarray
    asked: np.ndarray
    """Where predictions are compared with the truth."""

    def error(self, predicted: np.ndarray) -> float:
        """Relative error at the entries that are asked for."""
        return float(
            np.linalg.norm((predicted - self.truth)[self.asked])
            / np.linalg.norm((self.truth - self.truth.mean())[self.asked])
        )


# -------------------------------------------------------------------------------------------------------------- sensors


def traffic(seed: int) -> tuple[np.ndarray, int]:
    """Hourly occupancy of roads: 42 days x 20 sensors; and the rows of a day."""
    return _window(np.loadtxt(FOLDER / "traffic.txt.gz"), 42 * 24, 24, seed), 24


def temperature(seed: int) -> tuple[np.ndarray, int]:
    """Daily temperatures: 1,000 days x 25 stations; blocks are ten days."""
    return _window(np.loadtxt(FOLDER / "temperature.txt.gz"), 1000, 10, seed), 10


def metro(seed: int) -> tuple[np.ndarray, int]:
    """Passengers: 8 days of 108 times x 80 stations."""
    flow = loadmat(FOLDER / "Hangzhou_tensor.mat")["tensor"].astype(float)
    return _window(flow.reshape(80, -1).T, 8 * 108, 108, seed), 108


def _window(X: np.ndarray, rows: int, day: int, seed: int) -> np.ndarray:
    """Some whole days, one after the other."""
    first = np.random.default_rng((seed, 1)).integers((len(X) - rows) // day) * day
    return X[first : first + rows]


SENSORS: dict[str, Callable[[int], tuple[np.ndarray, int]]] = {
    "traffic": traffic,
    "temperature": temperature,
    "metro": metro,
}


def sensors(name: str, holes: str, seed: int) -> Case:
    """A sensor table with random holes or whole days of a sensor missing, and, in the last two kinds, gross outliers.

    An outlier is a value of any sign between three and ten standard deviations of the table away from the true one.
    """
    X, day = SENSORS[name](seed)
    rng = np.random.default_rng((seed, 2))
    if holes.startswith("block"):
        missing = np.repeat(rng.random((-(-len(X) // day), X.shape[1])) < MISSING, day, axis=0)[: len(X)]
    else:
        missing = rng.random(X.shape) < MISSING
    seen = X.copy()
    if holes.endswith("outliers"):
        wrong = rng.random(X.shape) < OUTLIERS
        seen[wrong] += (X.std() * rng.choice([-1, 1], X.shape) * rng.uniform(3, 10, X.shape))[wrong]
    seen[missing] = np.nan
    return Case(seen, X, missing)


# ------------------------------------------------------------------------------------------------------------ synthetic


def synthetic(dirt: str, share: float, seed: int, noise: float = 0.1, rank: int = 4) -> Case:
    """A gaussian matrix of 200 x 120 with variance 1 and offsets of rows and columns, half of it observed, and wrong entries.

    Wrong entries are scattered with both signs; one-sided; in rows that are wrong by 80 % of their entries; or in a block of
    equal values, of which at most 40 % of the entries of its rows and of its columns are part.
    """
    rng = np.random.default_rng((seed, 3))
    m, n = 200, 120
    truth = rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) / np.sqrt(rank)
    truth += 0.5 * rng.normal(size=(m, 1)) + 0.5 * rng.normal(size=n)
    seen = truth + noise * rng.normal(size=(m, n))
    size = rng.uniform(3, 10, (m, n))
    if dirt == "by row":
        wrong = (rng.random((m, 1)) < share / 0.8) & (rng.random((m, n)) < 0.8)
        seen[wrong] += (size * rng.choice([-1, 1], (m, n)))[wrong]
    elif dirt == "by block":
        wrong = np.zeros((m, n), dtype=bool)
        side = np.sqrt(share * 0.4)
        wrong[: int(side * m), : int(side * n)] = True
        seen[wrong] = 8.0
    else:
        wrong = rng.random((m, n)) < share
        seen[wrong] += (size * (rng.choice([-1, 1], (m, n)) if dirt == "scattered" else 1))[wrong]
    missing = rng.random((m, n)) < 0.5
    seen[missing] = np.nan
    asked = missing.copy()
    if dirt == "by row":
        asked &= ~(wrong.mean(axis=1) > 0.5)[:, None]
    return Case(seen, truth, asked)
