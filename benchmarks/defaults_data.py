"""Data sets of the benchmark of defaults: what is fitted, the truth, and whether a set is kept aside while code is built."""

from __future__ import annotations

import gzip
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SHARED = Path(__file__).parents[2] / "shared" / "data"
"""Where the ratings, the sensors and the LIBSVM files are. Sets that need them are left out if they are missing."""


class DataSet(NamedTuple):
    """One data set, drawn again for every seed."""

    name: str
    kind: str
    """"completion", "components", "regression", "classification" or "image"."""
    dirty: bool
    """Whether something is wrong in it, beyond normal noise."""
    held_out: bool
    """Kept aside: not run while the code was built."""
    make: Callable[[int], Any]
    needs: str = ""
    """File of the folder of shared data, if any."""


class Matrix(NamedTuple):
    """A matrix to complete: NaN is missing. The error is measured where ``test`` is True."""

    X: np.ndarray
    truth: np.ndarray
    test: np.ndarray


class Rows(NamedTuple):
    """Training rows, and clean test rows."""

    X: Any
    y: np.ndarray
    X_test: Any
    y_test: np.ndarray


# ----------------------------------------------------------------------------------------------------------- dirt


def dirt(kind: str, shape: tuple[int, int], size: float, rng: np.random.Generator) -> np.ndarray:
    """Errors of a matrix, 0 where there is none. ``size`` is the standard deviation of the right entries."""
    name, _, share = kind.partition(" ")
    amount = float(share or 0) / 100
    raised = rng.uniform(2, 6, shape) * size
    if name == "clean":
        return np.zeros(shape)
    if name == "scattered":
        return (rng.random(shape) < amount) * rng.choice([-1, 1], shape) * raised
    if name == "one-sided":
        return (rng.random(shape) < amount) * raised
    if name == "rows":  # most entries of some rows
        return (rng.random(shape) < 0.7) * (rng.random(shape[0]) < amount)[:, None] * raised
    if name == "block":
        sides = [int(np.sqrt(amount) * side) for side in shape]
        return np.outer(np.arange(shape[0]) < sides[0], np.arange(shape[1]) < sides[1]) * raised
    if name == "tails":
        return 0.3 * size * rng.standard_t(1.5, size=shape)
    raise ValueError(f"Unknown dirt {kind!r}.")


def low_rank(rng: np.random.Generator, m: int, n: int, rank: int) -> np.ndarray:
    """A matrix of this rank with entries of variance 1."""
    return rng.normal(size=(m, rank)) @ rng.normal(size=(rank, n)) / np.sqrt(rank)


# ----------------------------------------------------------------------------------------------------------- matrices


def synthetic(kind: str, rank: int = 3, observed: float = 0.4) -> Callable[[int], Matrix]:
    """150 x 120 with noise 0.1, of which a part is observed."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 1))
        truth = 3 + low_rank(rng, 150, 120, rank)
        if kind == "counts":
            truth = np.exp(1 + 0.7 * (truth - 3))
            X = rng.poisson(truth).astype(float)
        elif kind == "steps":
            X = np.clip(np.round(truth + 0.3 * rng.normal(size=truth.shape)), 1, 5)
        else:
            X = truth + 0.1 * rng.normal(size=truth.shape) + dirt(kind, truth.shape, 1.0, rng)
        seen = rng.random(truth.shape) < observed
        return Matrix(np.where(seen, X, np.nan), truth, ~seen)

    return make


def holes(load: Callable[[int], np.ndarray], kind: str, days: int = 0) -> Callable[[int], Matrix]:
    """A real matrix with 30 % random holes, or with holes of ``days`` columns in each row, and with dirt in what is seen."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 2))
        truth = load(seed)
        seen = rng.random(truth.shape) >= 0.3
        if days:
            for row in seen:
                row[:] = True
                for start in rng.choice(truth.shape[1] - days, 3, replace=False):
                    row[start : start + days] = False
        valid = ~np.isnan(truth)
        size = float(np.nanstd(truth))
        X = truth + dirt(kind, truth.shape, size, rng)
        return Matrix(np.where(seen & valid, X, np.nan), truth, ~seen & valid)

    return make


def _table(name: str) -> np.ndarray:
    with gzip.open(SHARED / "traffic" / name, "rt") as file:
        return np.loadtxt(file)


def traffic(seed: int) -> np.ndarray:
    """Sensors and hours side by side: 8 sensors x 24 hours in the columns of 150 days."""
    hours = _table("traffic.txt.gz")[: 24 * 150, :8]
    return hours.reshape(150, 24 * 8)


def temperature(seed: int) -> np.ndarray:
    """25 stations x 300 days, from another day for each seed."""
    return _table("temperature.txt.gz")[3000 * seed : 3000 * seed + 300].T


def metro(seed: int) -> np.ndarray:
    """80 stations x 216 times of two days, other days for each seed."""
    from scipy.io import loadmat

    tensor = loadmat(SHARED / "traffic" / "Hangzhou_tensor.mat")["tensor"].astype(float)
    return tensor[:, 3 * seed : 3 * seed + 2].reshape(len(tensor), -1)


def ratings(kind: str) -> Callable[[int], Matrix]:
    """The 250 users and 200 films with most ratings of MovieLens 100K; a fifth of the ratings are for testing."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 3))
        users, items, values = np.loadtxt(SHARED / "ml-100k" / "u.data", dtype=int, usecols=(0, 1, 2)).T
        full = np.full((users.max() + 1, items.max() + 1), np.nan)
        full[users, items] = values
        known = ~np.isnan(full)
        full = full[np.argsort(-known.sum(axis=1))[:250]][:, np.argsort(-known.sum(axis=0))[:200]]
        test = ~np.isnan(full) & (rng.random(full.shape) < 0.2)
        X = full + dirt(kind, full.shape, 2.0, rng)
        return Matrix(np.where(test, np.nan, X), full, test)

    return make


def components(kind: str, rank: int) -> Callable[[int], Matrix]:
    """A full matrix, 200 x 150 with noise: the error is that of the low-rank part."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 4))
        truth = low_rank(rng, 200, 150, rank)
        X = truth + 0.05 * rng.normal(size=truth.shape) + dirt(kind, truth.shape, 1.0, rng)
        return Matrix(X, truth, np.ones(truth.shape, dtype=bool))

    return make


def video(seed: int) -> Matrix:
    """300 frames of 20 x 30 pixels: a background under changing light, and a square that moves in front of it."""
    rng = np.random.default_rng((seed, 5))
    frames, height, width = 300, 20, 30
    light = 1 + 0.2 * np.sin(np.arange(frames) / 40 + rng.uniform(0, 6))
    truth = light[:, None, None] * rng.uniform(50, 200, (height, width))
    X = truth.copy()
    for t in range(frames):
        y, x = int(7 + 6 * np.sin(t / 25)), int(0.2 * t) % (width - 6)
        X[t, y : y + 6, x : x + 6] = rng.uniform(0, 255)
    X = X + rng.normal(size=X.shape)
    return Matrix(X.reshape(frames, -1), truth.reshape(frames, -1), np.ones((frames, height * width), dtype=bool))


def photograph(name: str, corner: tuple[int, int]) -> Callable[[int], Matrix]:
    """100 x 100 grey pixels of one of scikit-learn's photographs: half of them lost, 5 % of the others black or white."""

    def make(seed: int) -> Matrix:
        from sklearn.datasets import load_sample_image

        rng = np.random.default_rng((seed, 6))
        y, x = corner
        truth = load_sample_image(name)[y : y + 100, x : x + 100].astype(float).mean(axis=2)
        salt = rng.random(truth.shape) < 0.05
        X = np.where(salt, rng.choice([0.0, 255.0], truth.shape), truth)
        return Matrix(np.where(rng.random(truth.shape) < 0.5, np.nan, X), truth, np.ones(truth.shape, dtype=bool))

    return make


# ----------------------------------------------------------------------------------------------------------- rows


def linear(kind: str, n: int = 500, d: int = 30) -> Callable[[int], Rows]:
    """A linear model with noise 0.1; test rows are clean."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 7))
        X, coef = rng.normal(size=(n + 500, d)), rng.normal(size=d)
        coef[5:] *= n > d
        name, _, share = kind.partition(" ")
        noise = rng.standard_t(1.5, size=n + 500) if name == "tails" else rng.normal(size=n + 500)
        clean = X @ coef + 1
        y = clean + 0.1 * noise
        if name == "counts":
            clean = np.exp(0.2 * clean)
            y = rng.poisson(clean).astype(float)
        train, test = slice(0, n), slice(n, None)
        X_train, y_train = X[train].copy(), y[train].copy()
        bad = rng.permutation(n)[: int(float(share or 0) / 100 * n)]
        if name == "one-sided":
            y_train[bad] += rng.uniform(5, 35, len(bad))
        elif name == "scattered":
            y_train[bad] += rng.choice([-1, 1], len(bad)) * rng.uniform(5, 35, len(bad))
        elif name == "cluster":
            X_train[bad] = 0.3 * rng.normal(size=(len(bad), d)) + 20 * rng.normal(size=d) / np.sqrt(d)
            y_train[bad] = -50 + rng.normal(size=len(bad))
        elif name == "rows":
            X_train[bad] *= 8
            y_train[bad] = 20 * rng.normal(size=len(bad))
        return Rows(X_train, y_train, X[test], clean[test])

    return make


def bundled(name: str, share: float = 0.0) -> Callable[[int], Rows]:
    """One of scikit-learn's own sets; a share of the training labels is replaced, or of the training targets raised."""

    def make(seed: int) -> Rows:
        from sklearn import datasets
        from sklearn.model_selection import train_test_split

        rng = np.random.default_rng((seed, 8))
        X, y = getattr(datasets, f"load_{name}")(return_X_y=True)
        if len(X) > 800:
            some = rng.permutation(len(X))[:800]
            X, y = X[some], y[some]
        X, X_test, y, y_test = train_test_split(X, y, test_size=0.4, random_state=seed)
        return Rows(X, _wrong(y, share, rng, name == "diabetes"), X_test, y_test)

    return make


def libsvm(name: str, share: float) -> Callable[[int], Rows]:
    """1,500 training and 3,000 test rows of a LIBSVM file; a share of the training labels is flipped."""

    def make(seed: int) -> Rows:
        from sklearn.datasets import load_svmlight_file

        rng = np.random.default_rng((seed, 9))
        X, y = load_svmlight_file(str(SHARED / "libsvm" / name))
        some = rng.permutation(len(y))[:4500]
        X, y = X[some].toarray(), y[some]
        return Rows(X[:1500], _wrong(y[:1500], share, rng, False), X[1500:], y[1500:])

    return make


def half_planes(share: float, one_sided: bool = False) -> Callable[[int], Rows]:
    """Two classes on the sides of a plane in 10 dimensions; wrong labels in both classes, or in one only."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 10))
        X, coef = rng.normal(size=(1400, 10)), rng.normal(size=10)
        labels = (X @ coef > 0).astype(int)
        flipped = (rng.random(400) < share) & ((labels[:400] == 1) | (not one_sided))
        return Rows(X[:400], np.where(flipped, 1 - labels[:400], labels[:400]), X[400:], labels[400:])

    return make


def _wrong(y: np.ndarray, share: float, rng: np.random.Generator, numbers: bool) -> np.ndarray:
    """The targets with a share of them raised, or labels of which a share is replaced by another class."""
    bad = rng.random(len(y)) < share
    if numbers:
        return np.where(bad, y + rng.uniform(5, 10, len(y)) * y.std(), y)
    classes, number = np.unique(y, return_inverse=True)
    other = (number + rng.integers(1, len(classes), len(y))) % len(classes)
    return np.where(bad, classes[other], y)


# ----------------------------------------------------------------------------------------------------------- all sets

ML, TRAFFIC, TEMPERATURE = "ml-100k/u.data", "traffic/traffic.txt.gz", "traffic/temperature.txt.gz"
METRO = "traffic/Hangzhou_tensor.mat"

SETS = [
    DataSet("matrix, clean", "completion", False, False, synthetic("clean")),
    DataSet("matrix, clean, rank 8", "completion", False, True, synthetic("clean", 8)),
    DataSet("matrix, scattered 5 %", "completion", True, False, synthetic("scattered 5")),
    DataSet("matrix, scattered 20 %", "completion", True, True, synthetic("scattered 20")),
    DataSet("matrix, scattered 40 %", "completion", True, False, synthetic("scattered 40")),
    DataSet("matrix, one-sided 10 %", "completion", True, True, synthetic("one-sided 10")),
    DataSet("matrix, one-sided 30 %", "completion", True, False, synthetic("one-sided 30")),
    DataSet("matrix, rows 15 %", "completion", True, True, synthetic("rows 15")),
    DataSet("matrix, block 8 %", "completion", True, False, synthetic("block 8")),
    DataSet("matrix, heavy tails", "completion", True, True, synthetic("tails")),
    DataSet("matrix, counts", "completion", False, False, synthetic("counts")),
    DataSet("matrix, steps", "completion", False, True, synthetic("steps")),
    DataSet("ratings", "completion", False, False, ratings("clean"), ML),
    DataSet("ratings, scattered 5 %", "completion", True, True, ratings("scattered 5"), ML),
    DataSet("traffic", "completion", False, True, holes(traffic, "clean"), TRAFFIC),
    DataSet("traffic, scattered 5 %", "completion", True, False, holes(traffic, "scattered 5"), TRAFFIC),
    DataSet("traffic, block holes", "completion", False, True, holes(traffic, "clean", 24), TRAFFIC),
    DataSet("temperature", "completion", False, False, holes(temperature, "clean"), TEMPERATURE),
    DataSet("temperature, one-sided 10 %", "completion", True, True, holes(temperature, "one-sided 10"), TEMPERATURE),
    DataSet("metro", "completion", False, False, holes(metro, "clean"), METRO),
    DataSet("metro, scattered 5 %", "completion", True, True, holes(metro, "scattered 5"), METRO),
    DataSet("components, clean, rank 3", "components", False, False, components("clean", 3)),
    DataSet("components, one-sided 20 %, rank 3", "components", True, True, components("one-sided 20", 3)),
    DataSet("components, one-sided 30 %, rank 10", "components", True, False, components("one-sided 30", 10)),
    DataSet("components, one-sided 40 %, rank 3", "components", True, True, components("one-sided 40", 3)),
    DataSet("components, scattered 20 %, rank 10", "components", True, False, components("scattered 20", 10)),
    DataSet("components, rows 15 %, rank 3", "components", True, True, components("rows 15", 3)),
    DataSet("components, block 8 %, rank 3", "components", True, False, components("block 8", 3)),
    DataSet("components, heavy tails, rank 3", "components", True, True, components("tails", 3)),
    DataSet("components, video", "components", True, False, video),
    DataSet("regression, clean", "regression", False, False, linear("clean")),
    DataSet("regression, one-sided 10 %", "regression", True, True, linear("one-sided 10")),
    DataSet("regression, one-sided 30 %", "regression", True, False, linear("one-sided 30")),
    DataSet("regression, one-sided 40 %", "regression", True, True, linear("one-sided 40")),
    DataSet("regression, scattered 40 %", "regression", True, False, linear("scattered 40")),
    DataSet("regression, cluster 10 %", "regression", True, True, linear("cluster 10")),
    DataSet("regression, rows 30 %", "regression", True, False, linear("rows 30")),
    DataSet("regression, heavy tails", "regression", True, True, linear("tails")),
    DataSet("regression, 200 x 300, one-sided 10 %", "regression", True, False, linear("one-sided 10", 200, 300)),
    DataSet("regression, counts", "regression", False, True, linear("counts", 500, 10)),
    DataSet("diabetes", "regression", False, False, bundled("diabetes")),
    DataSet("diabetes, one-sided 20 %", "regression", True, True, bundled("diabetes", 0.2)),
    DataSet("breast cancer", "classification", False, False, bundled("breast_cancer")),
    DataSet("breast cancer, 10 % wrong", "classification", True, True, bundled("breast_cancer", 0.1)),
    DataSet("breast cancer, 30 % wrong", "classification", True, False, bundled("breast_cancer", 0.3)),
    DataSet("wine, 20 % wrong", "classification", True, True, bundled("wine", 0.2)),
    DataSet("iris, 20 % wrong", "classification", True, False, bundled("iris", 0.2)),
    DataSet("digits, 20 % wrong", "classification", True, True, bundled("digits", 0.2)),
    DataSet("half planes, 40 % wrong", "classification", True, False, half_planes(0.4)),
    DataSet("half planes, 30 % of one class wrong", "classification", True, True, half_planes(0.3, one_sided=True)),
    DataSet("a9a", "classification", False, False, libsvm("a9a.gz", 0.0), "libsvm/a9a.gz"),
    DataSet("a9a, 20 % wrong", "classification", True, True, libsvm("a9a.gz", 0.2), "libsvm/a9a.gz"),
    DataSet("w8a", "classification", False, True, libsvm("w8a.gz", 0.0), "libsvm/w8a.gz"),
    DataSet("w8a, 10 % wrong", "classification", True, False, libsvm("w8a.gz", 0.1), "libsvm/w8a.gz"),
    DataSet("photograph, buildings", "image", True, False, photograph("china.jpg", (120, 220))),
    DataSet("photograph, flower", "image", True, True, photograph("flower.jpg", (120, 220))),
]
