"""What the completion benchmark fits: MovieLens 100K with four kinds of training sets, and a synthetic matrix with outliers."""

from __future__ import annotations

from pathlib import Path
from typing import NamedTuple

import numpy as np

MOVIELENS = Path(__file__).parents[2] / "shared" / "data" / "ml-100k" / "u.data"
SETS = ("clean", "5 % uniform", "20 % uniform", "gross")
NOISE, OUTLIERS, GROSS = 0.05, 0.1, 10.0
"""Of the synthetic matrix, whose entries have variance 1: the noise on all observations, the share of gross outliers, and their
largest size."""


class Entries(NamedTuple):
    """Observed entries of a matrix, by position."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]

    def at(self, where: np.ndarray) -> Entries:
        return Entries(self.rows[where], self.cols[where], self.values[where], self.shape)


def rmse(predicted: np.ndarray, values: np.ndarray) -> float:
    return float(np.sqrt(np.mean((predicted - values) ** 2)))


def held_out(entries: Entries, share: float = 0.1, seed: int = 0) -> tuple[Entries, Entries]:
    """The entries without a random share, and that share: to choose settings with, never with the test set."""
    order = np.random.default_rng(seed).permutation(len(entries.values))
    cut = int(share * len(order))
    return entries.at(np.sort(order[cut:])), entries.at(np.sort(order[:cut]))


# ---------------------------------------------------------------------------------------------------------- MovieLens


def movielens(path: Path = MOVIELENS) -> Entries:
    users, items, ratings = np.loadtxt(path, dtype=np.int64, usecols=(0, 1, 2)).T
    return Entries(users - 1, items - 1, ratings.astype(float), (int(users.max()), int(items.max())))


def split(ratings: Entries) -> tuple[Entries, Entries]:
    """Training set and test set: a random fifth is the test set."""
    order = np.random.default_rng(0).permutation(len(ratings.values))
    fifth = len(order) // 5
    return ratings.at(order[fifth:]), ratings.at(order[:fifth])


def contaminated(train: Entries, kind: str) -> Entries:
    """The training set with ratings replaced by uniform ones, or with 10 added to or taken from some. The test set stays."""
    values, n = train.values.copy(), len(train.values)
    if kind == "gross":
        rng = np.random.default_rng(3)
        bad = rng.permutation(n)[: n // 20]
        values[bad] += rng.choice([-10.0, 10.0], len(bad))
    elif kind != "clean":
        share, seed = {"5 % uniform": (0.05, 1), "20 % uniform": (0.2, 2)}[kind]
        rng = np.random.default_rng(seed)
        bad = rng.permutation(n)[: int(share * n)]
        values[bad] = rng.integers(1, 6, len(bad))
    return train._replace(values=values)


# ---------------------------------------------------------------------------------------------------------- synthetic


def synthetic(size: int, rank: int, entries: int, seed: int = 0) -> tuple[Entries, Entries]:
    """Observations of a gaussian matrix of this rank with noise and gross outliers; and, to judge the recovery, the truth at
    200,000 positions that nobody has seen."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((size, rank)) / np.sqrt(rank), rng.standard_normal((size, rank))
    unseen = min(200_000, entries // 4)
    flat = rng.choice(size * size, entries + unseen, replace=False)
    rows, cols = flat // size, flat % size
    truth = Entries(rows, cols, np.einsum("ij,ij->i", U[rows], V[cols]), (size, size))
    seen = truth.at(np.arange(entries))
    values = seen.values + NOISE * rng.standard_normal(entries)
    bad = rng.random(entries) < OUTLIERS
    values[bad] += rng.uniform(-GROSS, GROSS, int(bad.sum()))
    return seen._replace(values=values), truth.at(np.arange(entries, len(flat)))
