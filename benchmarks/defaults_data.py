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


def read_table(name: str) -> np.ndarray:
    """A table of the folder of traffic data."""
    with gzip.open(SHARED / "traffic" / name, "rt") as file:
        return np.loadtxt(file)


def traffic(seed: int) -> np.ndarray:
    """Sensors and hours side by side: 8 sensors x 24 hours in the columns of 150 days."""
    hours = read_table("traffic.txt.gz")[: 24 * 150, :8]
    return hours.reshape(150, 24 * 8)


def temperature(seed: int) -> np.ndarray:
    """25 stations x 300 days, from another day for each seed."""
    return read_table("temperature.txt.gz")[3000 * seed : 3000 * seed + 300].T


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


def photograph(name: str, corner: tuple[int, int], share: float = 0.05) -> Callable[[int], Matrix]:
    """100 x 100 grey pixels of one of scikit-learn's photographs: half of them lost, a share of the others black or white."""

    def make(seed: int) -> Matrix:
        from sklearn.datasets import load_sample_image

        rng = np.random.default_rng((seed, 6))
        y, x = corner
        truth = load_sample_image(name)[y : y + 100, x : x + 100].astype(float).mean(axis=2)
        salt = rng.random(truth.shape) < share
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


def libsvm(name: str, share: float, one_sided: bool = False) -> Callable[[int], Rows]:
    """1,500 training and 3,000 test rows of a LIBSVM file; a share of the training labels is flipped, in the first class only
    where the errors are one-sided."""

    def make(seed: int) -> Rows:
        from sklearn.datasets import load_svmlight_file

        rng = np.random.default_rng((seed, 9))
        X, y = load_svmlight_file(str(SHARED / "libsvm" / name))
        some = rng.permutation(len(y))[:4500]
        X, y = X[some].toarray(), y[some]
        wrong = _wrong(y[:1500], share, rng, False)
        if one_sided:
            wrong = np.where(y[:1500] == y.min(), wrong, y[:1500])
        return Rows(X[:1500], wrong, X[1500:], y[1500:])

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


def generated(classes: int, share: float, noise: str = "uniform", n: int = 600, d: int = 20) -> Callable[[int], Rows]:
    """Classes with two normal clusters each, of scikit-learn; 1,000 test rows.

    Wrong labels are uniform, or always the next class ("next"), or in the first class only ("one class").
    """

    def make(seed: int) -> Rows:
        from sklearn.datasets import make_classification

        rng = np.random.default_rng((seed, 11))
        X, y = make_classification(
            n + 1000, d, n_informative=d // 2, n_redundant=d // 5, n_classes=classes, class_sep=1.5, flip_y=0,
            random_state=seed,
        )  # fmt: skip
        wrong = rng.random(n) < share
        if noise == "uniform":
            labels = _wrong(y[:n], share, rng, False)
        else:
            labels = np.where(wrong & ((noise == "next") | (y[:n] == 0)), (y[:n] + 1) % classes, y[:n])
        return Rows(X[:n], labels, X[n:], y[n:])

    return make


def curves(name: str, share: float, one_sided: bool = False) -> Callable[[int], Rows]:
    """scikit-learn's moons or circles, with the powers of their features up to degree 3; 300 training rows."""

    def make(seed: int) -> Rows:
        from sklearn import datasets
        from sklearn.preprocessing import PolynomialFeatures

        rng = np.random.default_rng((seed, 12))
        draw = {"moons": datasets.make_moons, "circles": datasets.make_circles}[name]
        X, y = draw(1300, noise=0.15, random_state=seed)
        X = PolynomialFeatures(3, include_bias=False).fit_transform(X)
        wrong = (rng.random(300) < share) & ((y[:300] == 1) | (not one_sided))
        return Rows(X[:300], np.where(wrong, 1 - y[:300], y[:300]), X[300:], y[300:])

    return make


def faces(share: float, people: int = 15) -> Callable[[int], Rows]:
    """Smooth pictures of 16 x 16 pixels, 12 of each of several people for training and 20 for testing, under changing light."""

    def make(seed: int) -> Rows:
        from scipy.ndimage import gaussian_filter

        rng = np.random.default_rng((seed, 13))
        each = 32
        common = gaussian_filter(rng.normal(size=(16, 16)), 2)
        persons = common + 0.7 * gaussian_filter(rng.normal(size=(people, 16, 16)), (0, 1.5, 1.5))
        light = rng.normal(size=(people * each, 1, 1)) * np.linspace(-1, 1, 16)
        y = np.repeat(np.arange(people), each)
        X = persons[y] / persons.std() + 0.7 * light + 0.8 * rng.normal(size=(len(y), 16, 16))
        train = np.arange(len(y)) % each < 12
        X = X.reshape(len(y), -1)
        return Rows(X[train], _wrong(y[train], share, rng, False), X[~train], y[~train])

    return make


def words(share: float) -> Callable[[int], Rows]:
    """Counts of 400 words, Zipf distributed, in 600 short texts of 5 topics."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 14))
        topics = rng.dirichlet(0.3 / np.arange(1, 401) ** 0.7, size=5) + 0.8 / np.arange(1, 401) / 6
        topics /= topics.sum(axis=1, keepdims=True)
        y = rng.integers(0, 5, 2600)
        X = np.array([rng.multinomial(30, topics[label]) for label in y]).astype(float)
        return Rows(X[:600], _wrong(y[:600], share, rng, False), X[600:], y[600:])

    return make


def friedman(share: float) -> Callable[[int], Rows]:
    """scikit-learn's first Friedman problem, with squares and products of its 10 features; a share of the targets is raised."""

    def make(seed: int) -> Rows:
        from sklearn.datasets import make_friedman1
        from sklearn.preprocessing import PolynomialFeatures

        rng = np.random.default_rng((seed, 15))
        X, y = make_friedman1(1400, 10, noise=1.0, random_state=seed)
        X = PolynomialFeatures(2, include_bias=False).fit_transform(X)
        return Rows(X[:400], _wrong(y[:400], share, rng, True), X[400:], y[400:])

    return make


def houses(share: float) -> Callable[[int], Rows]:
    """Prices, capped at 5: skewed features of different units, errors in proportion to the price; a share is divided by 10."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 16))
        n = 1600
        income = rng.lognormal(1.2, 0.45, n)
        age, rooms = rng.uniform(1, 52, n), rng.lognormal(1.6, 0.3, n)
        people = rng.lognormal(7, 0.8, n)
        north, east = rng.uniform(32, 42, n), rng.uniform(-124, -114, n)
        coast = np.abs(north - 36 + 0.8 * (east + 119))
        X = np.column_stack([income, age, rooms, people, rooms / 4 + 0.2 * rng.normal(size=n), north, east, coast])
        clean = np.clip(0.35 * income + 0.01 * age - 0.1 * coast + 0.1 * rooms + 0.5, 0.15, None)
        y = np.minimum(clean * np.exp(0.3 * rng.normal(size=n)), 5.0)
        train = np.where(rng.random(600) < share, y[:600] / 10, y[:600])
        return Rows(X[:600], train, X[600:], y[600:])

    return make


def correlated(kind: str, n: int = 120, d: int = 100) -> Callable[[int], Rows]:
    """Features whose neighbours are correlated, all with small coefficients; clean, with heavy tails or wrong targets."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 17))
        X = np.cumsum(rng.normal(size=(n + 500, d)), axis=1) / np.sqrt(d) + 0.3 * rng.normal(size=(n + 500, d))
        clean = X @ rng.normal(size=d) / np.sqrt(d)
        noise = rng.standard_t(2, size=n + 500) if kind == "tails" else rng.normal(size=n + 500)
        y = clean + 0.3 * clean.std() * noise
        labels = _wrong(y[:n], 0.1 if kind == "wrong" else 0.0, rng, True)
        return Rows(X[:n], labels, X[n:], clean[n:])

    return make


def marks(kind: str) -> Callable[[int], Rows]:
    """Whole numbers: visits, with a variance that grows with their mean, or stars from 1 to 5; the test targets are the means."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 18))
        X = rng.normal(size=(1200, 8))
        mean = X @ rng.normal(size=8) / np.sqrt(8)
        if kind == "visits":
            clean = np.exp(1 + 0.8 * mean)
            y = rng.poisson(clean * rng.gamma(2, 0.5, 1200)).astype(float)
        else:
            clean = np.clip(3.5 + mean, 1, 5)
            y = np.clip(np.round(clean + 0.5 * rng.normal(size=1200)), 1, 5)
        return Rows(X[:500], y[:500], X[500:], clean[500:])

    return make


def group(height: int, width: int, kind: str = "clean", amount: float = 4.0) -> Callable[[int], Matrix]:
    """A matrix with a real group: rows and columns whose entries are all higher, besides dirt of the given kind."""

    def make(seed: int) -> Matrix:
        rng = np.random.default_rng((seed, 19))
        truth = low_rank(rng, 150, 120, 2)
        truth[:height, :width] += amount
        X = truth + 0.1 * rng.normal(size=truth.shape) + dirt(kind, truth.shape, 1.0, rng)
        seen = rng.random(truth.shape) < 0.5
        return Matrix(np.where(seen, X, np.nan), truth, ~seen)

    return make


def sensor_ahead(name: str, share: float) -> Callable[[int], Rows]:
    """The next value of one sensor from the last ones of all sensors; a share of the training targets is spoiled.

    "traffic": the next hour from two hours of 20 roads. "temperature": the next day from two days of 25 stations.
    """

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 20))
        table = read_table(f"{name}.txt.gz")
        first, column = 4000 * seed, int(rng.integers(table.shape[1]))
        table = table[first : first + 1302]
        X, y = np.hstack([table[1:-1], table[:-2]]), table[2:, column]
        wrong = rng.random(300) < share
        spoiled = np.where(wrong, 0.0 if name == "traffic" else y[:300] * 1.8 + 320, y[:300])  # no signal; Fahrenheit
        return Rows(X[:300], spoiled, X[300:], y[300:])

    return make


def stations(share: float) -> Callable[[int], Rows]:
    """Passengers of a metro station from those of the 30 next ones in the list; a share of the targets has ten times as many."""

    def make(seed: int) -> Rows:
        from scipy.io import loadmat

        rng = np.random.default_rng((seed, 21))
        tensor = loadmat(SHARED / METRO)["tensor"].astype(float)
        one = int(rng.integers(20, 45))
        X, y = tensor[one + 1 : one + 31].reshape(30, -1).T, tensor[one].ravel()
        order = rng.permutation(len(y))[:1400]
        X, y = X[order], y[order]
        return Rows(X[:400], np.where(rng.random(400) < share, 10 * y[:400], y[:400]), X[400:], y[400:])

    return make


def few_needed(share: float, n: int = 150, d: int = 120) -> Callable[[int], Rows]:
    """Autoregressive features, of which 8 are needed; errors of Laplace's distribution; a share of the targets has its sign
    changed."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 22))
        X = rng.normal(size=(n + 600, d))
        for j in range(1, d):
            X[:, j] = 0.7 * X[:, j - 1] + 0.71 * X[:, j]
        coef = np.zeros(d)
        coef[rng.permutation(d)[:8]] = rng.choice([-1, 1], 8) * rng.uniform(0.5, 2, 8)
        clean = 4 + X @ coef
        y = clean[:n] + 0.5 * rng.laplace(size=n)
        return Rows(X[:n], np.where(rng.random(n) < share, -2 * y, y), X[n:], clean[n:])

    return make


def groups_of_rows(share: float) -> Callable[[int], Rows]:
    """Dummy variables of two labels with 12 and 5 values and two numbers; errors whose size depends on the label; a share of the
    targets is in another unit, a thousandth."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 23))
        n = 1200
        shop, day = rng.choice(12, n, p=np.arange(12, 0, -1) / 78), rng.integers(0, 5, n)
        numbers = rng.gamma(2.0, 1.0, size=(n, 2))
        X = np.column_stack([shop[:, None] == np.arange(12), day[:, None] == np.arange(5), numbers]).astype(float)
        clean = 50 + 10 * rng.normal(size=12)[shop] + 4 * rng.normal(size=5)[day] + numbers @ [3.0, -5.0]
        y = clean + rng.uniform(1, 10, 12)[shop] * rng.normal(size=n)
        return Rows(X[:350], np.where(rng.random(350) < share, y[:350] / 1000, y[:350]), X[350:], clean[350:])

    return make


def durations(share: float) -> Callable[[int], Rows]:
    """Durations with exponential errors, that is, much skewness, for which the mean is sought; a share is not stopped in time."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 24))
        X = rng.uniform(size=(1300, 6))
        clean = 10 + X @ rng.uniform(0, 20, 6)
        y = clean * rng.gamma(3.0, 1 / 3, 1300)
        return Rows(X[:500], np.where(rng.random(500) < share, y[:500] + 1000, y[:500]), X[500:], clean[500:])

    return make


def few_directions(share: float) -> Callable[[int], Rows]:
    """scikit-learn's regression with 60 features in about 10 directions; a share of the rows has other features."""

    def make(seed: int) -> Rows:
        from sklearn.datasets import make_regression

        rng = np.random.default_rng((seed, 25))
        X, clean = make_regression(1300, 60, n_informative=30, effective_rank=10, tail_strength=0.3, random_state=seed)
        y = clean + 0.3 * clean.std() * rng.normal(size=1300)
        wrong = rng.random(300) < share
        spoiled = np.where(wrong[:, None], X[:300] + 3 * X.std() * rng.standard_t(2, size=(300, 60)), X[:300])
        return Rows(spoiled, y[:300], X[300:], clean[300:])

    return make


def raters(share: float) -> Callable[[int], Rows]:
    """Films of MovieLens 100K with at least 20 ratings: above the median or not, from which of the 200 most active users have
    rated them."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 26))
        users, items, values = np.loadtxt(SHARED / ML, dtype=int, usecols=(0, 1, 2)).T
        full = np.zeros((items.max() + 1, users.max() + 1))
        full[items, users] = values
        full = full[(full > 0).sum(axis=1) >= 20]
        mean = full.sum(axis=1) / (full > 0).sum(axis=1)
        X = (full[:, np.argsort(-(full > 0).sum(axis=0))[:200]] > 0).astype(float)
        y, order = (mean > np.median(mean)).astype(int), rng.permutation(len(X))
        X, y = X[order], y[order]
        return Rows(X[:450], _wrong(y[:450], share, rng, False), X[450:], y[450:])

    return make


def part_of_day(share: float, hours: int = 6) -> Callable[[int], Rows]:
    """The part of the day (of ``hours`` hours) from the traffic on 20 roads."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 27))
        table = read_table("traffic.txt.gz")
        order = rng.permutation(len(table))[:2400]
        X, y = table[order], (order % 24) // hours
        return Rows(X[:400], _wrong(y[:400], share, rng, False), X[400:], y[400:])

    return make


def two_digits(pair: tuple[int, int], share: float) -> Callable[[int], Rows]:
    """Two of scikit-learn's digits; wrong labels in the first one only."""

    def make(seed: int) -> Rows:
        from sklearn import datasets

        rng = np.random.default_rng((seed, 28))
        X, y = datasets.load_digits(return_X_y=True)
        X, y = X[np.isin(y, pair)], y[np.isin(y, pair)]
        order = rng.permutation(len(X))
        X, y = X[order], y[order]
        wrong = (rng.random(150) < share) & (y[:150] == pair[0])
        return Rows(X[:150], np.where(wrong, pair[1], y[:150]), X[150:], y[150:])

    return make


def near_boundary(share: float) -> Callable[[int], Rows]:
    """Two overlapping normal classes, one of them with a quarter of the rows; labels near the boundary are wrong more often."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 29))
        y = (rng.random(1500) < 0.25).astype(int)
        middle = rng.normal(size=15)
        X = rng.normal(size=(1500, 15)) * np.where(y, 1.5, 1.0)[:, None] + 2.5 * y[:, None] * middle / np.linalg.norm(
            middle
        )
        distance = np.abs(X[:500] @ middle / np.linalg.norm(middle) - 1.25)
        wrong = rng.random(500) < 2 * share * np.exp(-distance)
        return Rows(X[:500], np.where(wrong, 1 - y[:500], y[:500]), X[500:], y[500:])

    return make


def counted_events(share: float) -> Callable[[int], Rows]:
    """Poisson counts of 30 kinds of events in three states; a share of the labels is always the first state."""

    def make(seed: int) -> Rows:
        rng = np.random.default_rng((seed, 30))
        y = rng.integers(0, 3, 1600)
        rates = rng.gamma(1.0, 2.0, 30) * np.exp(0.35 * rng.normal(size=(3, 30)))
        X = rng.poisson(rates[y] * rng.gamma(5, 0.2, size=(1600, 1))).astype(float)
        return Rows(X[:400], np.where(rng.random(400) < share, 0, y[:400]), X[400:], y[400:])

    return make


def spheres(share: float) -> Callable[[int], Rows]:
    """scikit-learn's normal quantiles in 5 dimensions, 3 classes, with the squares and products of the features."""

    def make(seed: int) -> Rows:
        from sklearn.datasets import make_gaussian_quantiles
        from sklearn.preprocessing import PolynomialFeatures

        rng = np.random.default_rng((seed, 31))
        X, y = make_gaussian_quantiles(n_samples=1500, n_features=5, n_classes=3, random_state=seed)
        order = rng.permutation(1500)
        X, y = PolynomialFeatures(2, include_bias=False).fit_transform(X[order]), y[order]
        return Rows(X[:400], _wrong(y[:400], share, rng, False), X[400:], y[400:])

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
    DataSet("matrix, clean, rank 8", "completion", False, False, synthetic("clean", 8)),
    DataSet("matrix, scattered 5 %", "completion", True, False, synthetic("scattered 5")),
    DataSet("matrix, scattered 20 %", "completion", True, False, synthetic("scattered 20")),
    DataSet("matrix, scattered 40 %", "completion", True, False, synthetic("scattered 40")),
    DataSet("matrix, one-sided 10 %", "completion", True, False, synthetic("one-sided 10")),
    DataSet("matrix, one-sided 30 %", "completion", True, False, synthetic("one-sided 30")),
    DataSet("matrix, rows 15 %", "completion", True, False, synthetic("rows 15")),
    DataSet("matrix, block 8 %", "completion", True, False, synthetic("block 8")),
    DataSet("matrix, heavy tails", "completion", True, False, synthetic("tails")),
    DataSet("matrix, counts", "completion", False, False, synthetic("counts")),
    DataSet("matrix, steps", "completion", False, False, synthetic("steps")),
    DataSet("ratings", "completion", False, False, ratings("clean"), ML),
    DataSet("ratings, scattered 5 %", "completion", True, False, ratings("scattered 5"), ML),
    DataSet("traffic", "completion", False, False, holes(traffic, "clean"), TRAFFIC),
    DataSet("traffic, scattered 5 %", "completion", True, False, holes(traffic, "scattered 5"), TRAFFIC),
    DataSet("traffic, block holes", "completion", False, False, holes(traffic, "clean", 24), TRAFFIC),
    DataSet("temperature", "completion", False, False, holes(temperature, "clean"), TEMPERATURE),
    DataSet("temperature, one-sided 10 %", "completion", True, False, holes(temperature, "one-sided 10"), TEMPERATURE),
    DataSet("metro", "completion", False, False, holes(metro, "clean"), METRO),
    DataSet("metro, scattered 5 %", "completion", True, False, holes(metro, "scattered 5"), METRO),
    DataSet("components, clean, rank 3", "components", False, False, components("clean", 3)),
    DataSet("components, one-sided 20 %, rank 3", "components", True, False, components("one-sided 20", 3)),
    DataSet("components, one-sided 30 %, rank 10", "components", True, False, components("one-sided 30", 10)),
    DataSet("components, one-sided 40 %, rank 3", "components", True, False, components("one-sided 40", 3)),
    DataSet("components, scattered 20 %, rank 10", "components", True, False, components("scattered 20", 10)),
    DataSet("components, rows 15 %, rank 3", "components", True, False, components("rows 15", 3)),
    DataSet("components, block 8 %, rank 3", "components", True, False, components("block 8", 3)),
    DataSet("components, heavy tails, rank 3", "components", True, False, components("tails", 3)),
    DataSet("components, video", "components", True, False, video),
    DataSet("regression, clean", "regression", False, False, linear("clean")),
    DataSet("regression, one-sided 10 %", "regression", True, False, linear("one-sided 10")),
    DataSet("regression, one-sided 30 %", "regression", True, False, linear("one-sided 30")),
    DataSet("regression, one-sided 40 %", "regression", True, False, linear("one-sided 40")),
    DataSet("regression, scattered 40 %", "regression", True, False, linear("scattered 40")),
    DataSet("regression, cluster 10 %", "regression", True, False, linear("cluster 10")),
    DataSet("regression, rows 30 %", "regression", True, False, linear("rows 30")),
    DataSet("regression, heavy tails", "regression", True, False, linear("tails")),
    DataSet("regression, 200 x 300, one-sided 10 %", "regression", True, False, linear("one-sided 10", 200, 300)),
    DataSet("regression, counts", "regression", False, False, linear("counts", 500, 10)),
    DataSet("diabetes", "regression", False, False, bundled("diabetes")),
    DataSet("diabetes, one-sided 20 %", "regression", True, False, bundled("diabetes", 0.2)),
    DataSet("breast cancer", "classification", False, False, bundled("breast_cancer")),
    DataSet("breast cancer, 10 % wrong", "classification", True, False, bundled("breast_cancer", 0.1)),
    DataSet("breast cancer, 30 % wrong", "classification", True, False, bundled("breast_cancer", 0.3)),
    DataSet("wine, 20 % wrong", "classification", True, False, bundled("wine", 0.2)),
    DataSet("iris, 20 % wrong", "classification", True, False, bundled("iris", 0.2)),
    DataSet("digits, 20 % wrong", "classification", True, False, bundled("digits", 0.2)),
    DataSet("half planes, 40 % wrong", "classification", True, False, half_planes(0.4)),
    DataSet("half planes, 30 % of one class wrong", "classification", True, False, half_planes(0.3, one_sided=True)),
    DataSet("a9a", "classification", False, False, libsvm("a9a.gz", 0.0), "libsvm/a9a.gz"),
    DataSet("a9a, 20 % wrong", "classification", True, False, libsvm("a9a.gz", 0.2), "libsvm/a9a.gz"),
    DataSet("w8a", "classification", False, False, libsvm("w8a.gz", 0.0), "libsvm/w8a.gz"),
    DataSet("w8a, 10 % wrong", "classification", True, False, libsvm("w8a.gz", 0.1), "libsvm/w8a.gz"),
    DataSet("photograph, buildings", "image", True, False, photograph("china.jpg", (120, 220))),
    DataSet("photograph, flower", "image", True, False, photograph("flower.jpg", (120, 220))),
    DataSet("photograph, buildings, 30 % wrong", "image", True, False, photograph("china.jpg", (120, 220), 0.3)),
    DataSet("photograph, flower, 30 % wrong", "image", True, False, photograph("flower.jpg", (120, 220), 0.3)),
    DataSet("matrix, real group of 4 %", "completion", False, False, group(30, 24)),
    DataSet("matrix, real group of 5 %, taller", "completion", False, False, group(60, 15, amount=3.0)),
    DataSet("matrix, real group of 3 %, scattered 5 %", "completion", True, False, group(27, 20, "scattered 5")),
    DataSet("matrix, rows 10 %", "completion", True, False, synthetic("rows 10")),
    DataSet("friedman", "regression", False, False, friedman(0.0)),
    DataSet("friedman, one-sided 20 %", "regression", True, False, friedman(0.2)),
    DataSet("houses", "regression", False, False, houses(0.0)),
    DataSet("houses, 15 % divided by 10", "regression", True, False, houses(0.15)),
    DataSet("correlated features", "regression", False, False, correlated("clean")),
    DataSet("correlated features, heavy tails", "regression", True, False, correlated("tails")),
    DataSet("correlated features, 10 % wrong", "regression", True, False, correlated("wrong")),
    DataSet("visits", "regression", False, False, marks("visits")),
    DataSet("stars", "regression", False, False, marks("stars")),
    DataSet("4 classes, 30 % wrong", "classification", True, False, generated(4, 0.3)),
    DataSet("8 classes", "classification", False, False, generated(8, 0.0)),
    DataSet("8 classes, 10 % wrong", "classification", True, False, generated(8, 0.1)),
    DataSet("5 classes, 30 % the next class", "classification", True, False, generated(5, 0.3, "next")),
    DataSet("3 classes, 40 % of one wrong", "classification", True, False, generated(3, 0.4, "one class")),
    DataSet("moons, 20 % wrong", "classification", True, False, curves("moons", 0.2)),
    DataSet("circles, 30 % of one class wrong", "classification", True, False, curves("circles", 0.3, one_sided=True)),
    DataSet("faces, 15 people", "classification", False, False, faces(0.0)),
    DataSet("faces, 15 people, 20 % wrong", "classification", True, False, faces(0.2)),
    DataSet("words, 5 topics, 20 % wrong", "classification", True, False, words(0.2)),
    DataSet("a9a, test file", "classification", False, False, libsvm("a9a.t.gz", 0.0), "libsvm/a9a.t.gz"),
    DataSet("a9a, test file, 30 % wrong", "classification", True, False, libsvm("a9a.t.gz", 0.3), "libsvm/a9a.t.gz"),
    DataSet(
        "a9a, test file, 20 % of one class wrong",
        "classification",
        True,
        False,
        libsvm("a9a.t.gz", 0.2, one_sided=True),
        "libsvm/a9a.t.gz",
    ),
    DataSet("traffic, next hour", "regression", False, True, sensor_ahead("traffic", 0.0), TRAFFIC),
    DataSet(
        "traffic, next hour, 15 % without signal", "regression", True, True, sensor_ahead("traffic", 0.15), TRAFFIC
    ),
    DataSet("temperature, next day", "regression", False, True, sensor_ahead("temperature", 0.0), TEMPERATURE),
    DataSet(
        "temperature, next day, 20 % in Fahrenheit",
        "regression",
        True,
        True,
        sensor_ahead("temperature", 0.2),
        TEMPERATURE,
    ),
    DataSet("stations", "regression", False, True, stations(0.0), METRO),
    DataSet("stations, 10 % tenfold", "regression", True, True, stations(0.1), METRO),
    DataSet("8 of 120 features", "regression", False, True, few_needed(0.0)),
    DataSet("8 of 120 features, 20 % of the signs wrong", "regression", True, True, few_needed(0.2)),
    DataSet("dummy variables, 25 % in another unit", "regression", True, True, groups_of_rows(0.25)),
    DataSet("durations", "regression", False, True, durations(0.0)),
    DataSet("durations, 5 % not stopped", "regression", True, True, durations(0.05)),
    DataSet("10 directions, 15 % of the rows wrong", "regression", True, True, few_directions(0.15)),
    DataSet("raters of films", "classification", False, True, raters(0.0), ML),
    DataSet("raters of films, 20 % wrong", "classification", True, True, raters(0.2), ML),
    DataSet("part of the day", "classification", False, True, part_of_day(0.0), TRAFFIC),
    DataSet("part of the day, 30 % wrong", "classification", True, True, part_of_day(0.3), TRAFFIC),
    DataSet("digits 3 and 8, 40 % of one wrong", "classification", True, True, two_digits((3, 8), 0.4)),
    DataSet("labels wrong near the boundary", "classification", True, True, near_boundary(0.2)),
    DataSet("counted events", "classification", False, True, counted_events(0.0)),
    DataSet("counted events, 30 % in the first state", "classification", True, True, counted_events(0.3)),
    DataSet("spheres, 25 % wrong", "classification", True, True, spheres(0.25)),
]
