"""Matrix sets of the benchmark of defaults that were kept aside: to complete, to split, and photographs."""

from __future__ import annotations

from collections.abc import Callable

import numpy as np

from benchmarks.defaults_data import (
    METRO,
    ML,
    SHARED,
    TEMPERATURE,
    TRAFFIC,
    DataSet,
    Matrix,
    photograph,
    read_table,
)


def _seen(X: np.ndarray, truth: np.ndarray, missing: float, rng: np.random.Generator) -> Matrix:
    """Observe all entries but a random share. The error is measured at the others."""
    lost = (rng.random(truth.shape) < missing) & ~np.isnan(truth)
    return Matrix(np.where(lost, np.nan, X), truth, lost)


def distances(seed: int) -> Matrix:
    """Squared distances of 140 places to 100 others in three dimensions, 4 % of them in another unit (a tenth)."""
    rng = np.random.default_rng((seed, 31))
    a, b = rng.normal(size=(140, 1, 3)), rng.normal(size=(1, 100, 3))
    truth = ((a - b) ** 2).sum(axis=2)
    X = truth * np.where(rng.random(truth.shape) < 0.04, 0.1, 1.0) + 0.05 * rng.normal(size=truth.shape)
    return _seen(X, truth, 0.5, rng)


def answers(careless: float) -> Callable[[int], Matrix]:
    """Answers from 1 to 7 of 250 persons to 60 questions; the truth is their mean. Careless persons answer at random."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 32))
        score = rng.normal(size=(250, 2)) @ rng.normal(size=(2, 60)) + rng.normal(size=60)
        truth = 1 + 6 / (1 + np.exp(-score))
        X = np.clip(np.round(truth + 0.7 * rng.normal(size=truth.shape)), 1, 7)
        guessing = rng.random(250) < careless
        X = np.where(guessing[:, None], rng.integers(1, 8, truth.shape), X)
        made = _seen(X, truth, 0.3, rng)
        return made._replace(test=made.test & ~guessing[:, None])

    return make


def waves(share: float) -> Callable[[int], Matrix]:
    """80 signals of three frequencies with 200 times; holes of 20 times, and a share of the values repeats the value before."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 33))
        time = np.arange(200)
        truth = sum(
            rng.normal(size=(80, 1)) * np.sin(time / period + rng.uniform(0, 6, (80, 1)))
            for period in (5.0, 13.0, 40.0)
        )
        X = truth + 0.1 * rng.normal(size=truth.shape)
        X = np.where(rng.random(truth.shape) < share, np.roll(X, 25, axis=1), X)
        lost = np.zeros(truth.shape, dtype=bool)
        for row in lost:
            for start in rng.choice(180, 3, replace=False):
                row[start : start + 20] = True
        return Matrix(np.where(lost, np.nan, X), truth, lost)

    return make


def stuck_sensors(seed: int) -> Matrix:
    """25 stations x 400 later days of the temperatures, 30 % lost; three stations repeat one value for 80 days."""
    rng = np.random.default_rng((seed, 34))
    truth = read_table("temperature.txt.gz")[9000 + 500 * seed : 9400 + 500 * seed].T
    X = truth.copy()
    for station in rng.choice(25, 3, replace=False):
        start = rng.integers(320)
        X[station, start : start + 80] = X[station, start]
    return _seen(X, truth, 0.3, rng)


def doubled_counts(seed: int) -> Matrix:
    """80 stations x 108 times of a later day of the metro, 40 % lost, 5 % of the counts twice as large."""
    from scipy.io import loadmat

    rng = np.random.default_rng((seed, 35))
    truth = loadmat(SHARED / METRO)["tensor"].astype(float)[:, 15 + seed]
    X = truth * np.where(rng.random(truth.shape) < 0.05, 2.0, 1.0)
    return _seen(X, truth, 0.4, rng)


def later_hours(seed: int) -> Matrix:
    """20 roads x 336 later hours, 20 % lost and 3 % of the values 0."""
    rng = np.random.default_rng((seed, 36))
    truth = read_table("traffic.txt.gz")[5000 + 400 * seed : 5336 + 400 * seed].T
    return _seen(np.where(rng.random(truth.shape) < 0.03, 0.0, truth), truth, 0.2, rng)


def digits(share: float) -> Callable[[int], Matrix]:
    """300 of scikit-learn's digits, 64 pixels each, 30 % lost; a share of the others is any grey value."""

    def make(seed: int) -> Matrix:
        from sklearn.datasets import load_digits

        rng = np.random.default_rng((seed, 37))
        truth = load_digits().data[rng.permutation(1797)[:300]]
        X = np.where(rng.random(truth.shape) < share, rng.integers(0, 17, truth.shape), truth)
        return _seen(X, truth, 0.3, rng)

    return make


def promoted_films(seed: int) -> Matrix:
    """300 users that are not the most active, and the 150 films with most ratings; 15 more users rate ten films 5, others 1."""
    rng = np.random.default_rng((seed, 38))
    users, items, values = np.loadtxt(SHARED / ML, dtype=int, usecols=(0, 1, 2)).T
    full = np.full((users.max() + 1, items.max() + 1), np.nan)
    full[users, items] = values
    known = ~np.isnan(full)
    full = full[np.argsort(-known.sum(axis=1))[250:550]][:, np.argsort(-known.sum(axis=0))[:150]]
    test = ~np.isnan(full) & (rng.random(full.shape) < 0.2)
    fakes = np.where(np.isin(np.arange(150), rng.choice(150, 10, replace=False)), 5.0, 1.0) * np.ones((15, 1))
    fakes[rng.random(fakes.shape) < 0.5] = np.nan
    return Matrix(
        np.vstack([np.where(test, np.nan, full), fakes]),
        np.vstack([full, fakes]),
        np.vstack([test, np.zeros(fakes.shape, dtype=bool)]),
    )


def spectra(seed: int) -> Matrix:
    """180 mixtures of five spectra with 250 channels, noise in proportion to the values, and spikes in 6 % of the channels."""
    rng = np.random.default_rng((seed, 39))
    channel = np.arange(250)
    peaks = np.exp(-(((channel - rng.uniform(0, 250, (5, 4, 1))) / rng.uniform(4, 15, (5, 4, 1))) ** 2)).sum(axis=1)
    truth = rng.gamma(1.5, 1.0, (180, 5)) @ peaks
    X = truth * (1 + 0.02 * rng.normal(size=truth.shape)) + 0.01 * rng.normal(size=truth.shape)
    X += (rng.random(truth.shape) < 0.06) * rng.exponential(4 * truth.std(), truth.shape)
    return Matrix(X, truth, np.ones(truth.shape, dtype=bool))


def scene(seed: int) -> Matrix:
    """90 frames of a piece of scikit-learn's photograph of buildings under flicker; a disc crosses it, and 2 % of pixels fail."""
    from sklearn.datasets import load_sample_image

    rng = np.random.default_rng((seed, 40))
    grey = load_sample_image("china.jpg")[200:224, 300:332].astype(float).mean(axis=2)
    truth = rng.uniform(0.8, 1.2, (90, 1, 1)) * grey + rng.uniform(-10, 10, (90, 1, 1))
    X, (y, x) = truth + 2 * rng.normal(size=truth.shape), np.indices(grey.shape)
    for t in range(90):
        X[t][(y - 12) ** 2 + (x - 32 * t / 90) ** 2 < 16] = 230.0
    X[rng.random(X.shape) < 0.02] = 0.0
    return Matrix(X.reshape(90, -1), truth.reshape(90, -1), np.ones((90, grey.size), dtype=bool))


def swapped_columns(seed: int) -> Matrix:
    """220 x 80 of rank 4; in 12 % of the rows, the second half of the columns is in reverse order."""
    rng = np.random.default_rng((seed, 41))
    truth = rng.normal(size=(220, 4)) @ rng.normal(size=(4, 80)) + 2 * rng.normal(size=80)
    X = truth + 0.1 * rng.normal(size=truth.shape)
    swapped = rng.random(220) < 0.12
    X[swapped, 40:] = X[swapped, :39:-1]
    return Matrix(X, truth, np.ones(truth.shape, dtype=bool))


ASIDE = [
    DataSet("distances, 4 % in another unit", "completion", True, True, distances),
    DataSet("answers from 1 to 7", "completion", False, True, answers(0.0)),
    DataSet("answers from 1 to 7, 10 % careless persons", "completion", True, True, answers(0.1)),
    DataSet("waves with holes", "completion", False, True, waves(0.0)),
    DataSet("waves with holes, 10 % late", "completion", True, True, waves(0.1)),
    DataSet("temperature, stuck sensors", "completion", True, True, stuck_sensors, TEMPERATURE),
    DataSet("metro, 5 % doubled", "completion", True, True, doubled_counts, METRO),
    DataSet("traffic, later hours, 3 % zeros", "completion", True, True, later_hours, TRAFFIC),
    DataSet("digits as a matrix", "completion", False, True, digits(0.0)),
    DataSet("digits as a matrix, 10 % wrong", "completion", True, True, digits(0.1)),
    DataSet("ratings, promoted films", "completion", True, True, promoted_films, ML),
    DataSet("spectra with spikes", "components", True, True, spectra),
    DataSet("scene with a disc", "components", True, True, scene),
    DataSet("rows with swapped columns", "components", True, True, swapped_columns),
    DataSet("photograph, courtyard, 10 % wrong", "image", True, True, photograph("china.jpg", (300, 60), 0.1)),
    DataSet("photograph, petals", "image", True, True, photograph("flower.jpg", (200, 400))),
]
"""Sets that were not run while the code was built."""
