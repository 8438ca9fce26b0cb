"""RobustCompletion and its peers: each takes observed entries, positions and a seed, and gives its predictions there.

All have one thread. Peers' libraries are imported late, since only `make bench-completion` installs them. Where a library can
predict pairs only one by one, in Python, its factors are multiplied here: the watch shall not measure that.
"""

from __future__ import annotations

from collections.abc import Callable
from importlib.util import find_spec
from typing import Any, NamedTuple

import numpy as np
from scipy.sparse import coo_matrix, csr_matrix

from benchmarks.completion_data import Entries
from benchmarks.harness import Row

Peer = Callable[..., np.ndarray]
"""peer(train, at, seed, **settings): predictions at the positions of ``at``, whose values it does not look at."""


def products(U: np.ndarray, V: np.ndarray, at: Entries, chunk: int = 100_000) -> np.ndarray:
    """The entries of U V' at these positions."""
    starts = range(0, len(at.rows), chunk)
    parts = [(at.rows[i : i + chunk], at.cols[i : i + chunk]) for i in starts]
    return np.concatenate([np.einsum("ij,ij->i", U[rows], V[cols]) for rows, cols in parts])


class Biases:
    """The mean, and by alternation a damped bias for each row and column: what "centred" means."""

    def __init__(self, train: Entries, damping: float, sweeps: int = 10):
        rows, cols, values, (m, n) = train
        self.mean, self.rows, self.cols = values.mean(), np.zeros(m), np.zeros(n)
        in_rows, in_cols = np.bincount(rows, minlength=m) + damping, np.bincount(cols, minlength=n) + damping
        for _ in range(sweeps):
            self.cols = np.bincount(cols, values - self.mean - self.rows[rows], n) / np.maximum(in_cols, 1e-12)
            self.rows = np.bincount(rows, values - self.mean - self.cols[cols], m) / np.maximum(in_rows, 1e-12)

    def __call__(self, at: Entries) -> np.ndarray:
        return self.mean + self.rows[at.rows] + self.cols[at.cols]


class NoBiases:
    """For data that have none."""

    def __call__(self, at: Entries) -> np.ndarray:
        return np.zeros(len(at.rows))


def centred(train: Entries, damping: float | None) -> tuple[Entries, Biases | NoBiases]:
    biases = NoBiases() if damping is None else Biases(train, damping)
    return train._replace(values=train.values - biases(train)), biases


# --------------------------------------------------------------------------------------------------------------- fits


def robust_completion(train: Entries, at: Entries, seed: int, **settings: Any) -> tuple[np.ndarray, Row]:
    from condgrad.learn import RobustCompletion

    random = {"random_state": seed} if seed else {}  # seed 0: all defaults
    model = RobustCompletion(**random, **settings).fit((train.rows, train.cols, train.values))
    found = {"radius": model.radius_, "sigma": model.sigma_, "rank": len(model.components_)}
    return model.predict(np.column_stack([at.rows, at.cols])), found


def cornac_mf(
    train: Entries, at: Entries, seed: int, *, k: int, epochs: int, rate: float, reg: float, bias: bool = True
) -> np.ndarray:
    from cornac.data import Dataset
    from cornac.models import MF

    (m, n), ids = train.shape, [{i: i for i in range(size)} for size in train.shape]
    data = Dataset(m, n, ids[0], ids[1], (train.rows, train.cols, train.values))
    model = MF(k=k, max_iter=epochs, learning_rate=rate, lambda_reg=reg, use_bias=bias, num_threads=1, seed=seed)
    model.fit(data)
    biases = model.u_biases[at.rows] + model.i_biases[at.cols] + model.global_mean if bias else 0.0
    return products(model.u_factors, model.i_factors, at) + biases


def soft_impute(
    train: Entries, at: Entries, seed: int, *, shrinkage: float, damping: float | None, max_rank: int | None = None
) -> np.ndarray:
    import warnings

    from fancyimpute import SoftImpute

    np.random.seed(seed)  # the only way to seed its randomised SVD
    left, biases = centred(train, damping)
    X = np.full(train.shape, np.nan)
    X[left.rows, left.cols] = left.values
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", FutureWarning)  # of an argument that scikit-learn has renamed
        X = SoftImpute(shrinkage, max_rank=max_rank, verbose=False).fit_transform(X)
    return X[at.rows, at.cols] + biases(at)


def pymanopt_fixed_rank(
    train: Entries,
    at: Entries,
    seed: int,
    *,
    rank: int,
    steps: int,
    shrinkage: float,
    damping: float | None,
    sigma: float | None = None,
) -> np.ndarray:
    """Conjugate gradients on the matrices of a rank; squared loss, or Welsch's with this sigma, and the nuclear norm as a
    penalty, without which a rank above 2 overfits ratings."""
    import pymanopt
    from pymanopt.manifolds import FixedRankEmbedded
    from pymanopt.optimizers import ConjugateGradient

    np.random.seed(seed)  # the only way to seed pymanopt
    left, biases = centred(train, damping)
    manifold = FixedRankEmbedded(*train.shape, rank)

    def residuals(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> np.ndarray:
        return products(u * s, vt.T, left) - left.values

    @pymanopt.function.numpy(manifold)
    def cost(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> float:
        z = residuals(u, s, vt)
        loss = z @ z / 2 if sigma is None else sigma**2 / 2 * np.sum(-np.expm1(-((z / sigma) ** 2)))
        return float(loss + shrinkage * s.sum())

    @pymanopt.function.numpy(manifold)
    def gradient(u: np.ndarray, s: np.ndarray, vt: np.ndarray) -> Any:
        z = residuals(u, s, vt)
        weights = z if sigma is None else z * np.exp(-((z / sigma) ** 2))
        point = (u, s, vt)
        slope = manifold.projection(point, csr_matrix((weights, (left.rows, left.cols)), train.shape))
        return type(slope)(slope.Up, slope.M + shrinkage * np.eye(rank), slope.Vp)

    problem = pymanopt.Problem(manifold, cost, riemannian_gradient=gradient)
    u, _, vt = manifold.random_point()
    start = type(manifold.random_point())(u, np.full(rank, 1.0), vt)
    u, s, vt = ConjugateGradient(max_iterations=steps, verbosity=0).run(problem, initial_point=start).point
    return products(u * s, vt.T, at) + biases(at)


def cmfrec_cmf(
    train: Entries,
    at: Entries,
    seed: int,
    *,
    k: int,
    reg: float,
    implicit: float | None = None,
    sigma: float | None = None,
    rounds: int = 5,
    bias: bool = True,
    sweeps: int = 10,
) -> np.ndarray:
    """Alternating least squares; ``implicit`` is the weight of implicit features. With sigma, it is fitted again ``rounds``
    times with Welsch's weights of the residuals before."""
    from cmfrec import CMF

    def fit(weights: np.ndarray | None) -> Any:
        model = CMF(
            k=k,
            lambda_=reg,
            niter=sweeps,
            user_bias=bias,
            item_bias=bias,
            center=bias,
            add_implicit_features=implicit is not None,
            w_implicit=0.5 if implicit is None else implicit,
            random_state=seed + 1,
            nthreads=1,
            verbose=False,
        )
        W = None if weights is None else coo_matrix((weights, (train.rows, train.cols)), train.shape)
        return model.fit(coo_matrix((train.values, (train.rows, train.cols)), train.shape), W=W)

    model = fit(None)
    if sigma is not None:
        for _ in range(rounds):
            z = model.predict(train.rows, train.cols) - train.values
            model = fit(np.maximum(np.exp(-((z / sigma) ** 2)), 1e-6))
    return np.asarray(model.predict(at.rows, at.cols), dtype=float)


def surprise_svd(
    train: Entries, at: Entries, seed: int, *, k: int, epochs: int, rate: float, reg: float, bias: bool = True
) -> np.ndarray:
    from surprise import SVD, Trainset

    (m, n), by_row = train.shape, {i: [] for i in range(train.shape[0])}
    by_col: dict[int, list[Any]] = {j: [] for j in range(n)}
    for i, j, value in zip(train.rows.tolist(), train.cols.tolist(), train.values.tolist(), strict=True):
        by_row[i].append((j, value))
        by_col[j].append((i, value))
    data = Trainset(by_row, by_col, m, n, len(train.values), (1, 5), {i: i for i in range(m)}, {j: j for j in range(n)})
    model = SVD(n_factors=k, n_epochs=epochs, lr_all=rate, reg_all=reg, biased=bias, random_state=seed)
    model.fit(data)
    biases = model.bu[at.rows] + model.bi[at.cols] + data.global_mean if bias else 0.0
    return products(model.pu, model.qi, at) + biases


def myfm_gibbs(train: Entries, at: Entries, seed: int, *, rank: int, samples: int) -> np.ndarray:
    from myfm import MyFMGibbsRegressor

    m, n = train.shape

    def one_hot(entries: Entries) -> csr_matrix:
        N = len(entries.rows)
        columns = np.column_stack([entries.rows, m + entries.cols]).ravel()
        return csr_matrix((np.ones(2 * N), columns, np.arange(0, 2 * N + 1, 2)), (N, m + n))

    model = MyFMGibbsRegressor(rank=rank, random_seed=seed)
    model.fit(one_hot(train), train.values, n_iter=samples, n_kept_samples=samples, group_shapes=[m, n])
    return np.asarray(model.predict(one_hot(at)))


# ------------------------------------------------------------------------------------------------------------ settings


class Contender(NamedTuple):
    """A peer, its settings for ratings and for the synthetic matrix of rank 10, and the grid that the former come from."""

    fit: Peer
    library: str
    ratings: dict[str, Any]
    synthetic: dict[str, Any]
    grid: dict[str, list[Any]]
    robust: bool = False
    """Whether its loss bounds what an outlier can do."""


OURS = "RobustCompletion()"
PEERS = {
    "cornac MF": Contender(
        cornac_mf,
        "cornac",
        {"k": 50, "epochs": 30, "rate": 0.02, "reg": 0.1},
        {"k": 10, "epochs": 20, "rate": 0.01, "reg": 0.02, "bias": False},
        {"k": [10, 20, 50], "epochs": [30, 50, 100], "rate": [0.005, 0.01, 0.02], "reg": [0.06, 0.1, 0.15]},
    ),
    "fancyimpute SoftImpute, centred": Contender(
        soft_impute,
        "fancyimpute",
        {"shrinkage": 15.0, "damping": 5.0, "max_rank": 20},
        {"shrinkage": 20.0, "damping": None, "max_rank": 10},
        {"shrinkage": [15.0, 17.5, 20.0], "damping": [2.0, 5.0, 10.0], "max_rank": [20]},
    ),
    "pymanopt fixed rank, squared": Contender(
        pymanopt_fixed_rank,
        "pymanopt",
        {"rank": 6, "steps": 40, "shrinkage": 15.0, "damping": 5.0},
        {"rank": 10, "steps": 50, "shrinkage": 20.0, "damping": None},
        {"rank": [6, 12], "steps": [20, 40, 80], "shrinkage": [10.0, 15.0, 20.0], "damping": [5.0]},
    ),
    "pymanopt fixed rank, Welsch": Contender(
        pymanopt_fixed_rank,
        "pymanopt",
        {"rank": 6, "steps": 40, "shrinkage": 10.0, "damping": 5.0, "sigma": 3.0},
        {"rank": 10, "steps": 50, "shrinkage": 0.0, "damping": None, "sigma": 2.0},
        {"rank": [6], "steps": [20, 40], "shrinkage": [10.0, 15.0], "damping": [2.0, 5.0], "sigma": [2.0, 3.0, 5.0]},
        robust=True,
    ),
    "cmfrec, implicit features": Contender(
        cmfrec_cmf,
        "cmfrec",
        {"k": 5, "reg": 7.0, "implicit": 0.5},
        {"k": 10, "reg": 20.0, "bias": False},
        {"k": [5, 10, 20, 40], "reg": [5.0, 7.0, 10.0, 15.0], "implicit": [0.25, 0.5, 1.0]},
    ),
    "cmfrec reweighted, Welsch": Contender(
        cmfrec_cmf,
        "cmfrec",
        {"k": 10, "reg": 15.0, "sigma": 3.0},
        {"k": 10, "reg": 1.0, "sigma": 1.0, "bias": False},
        {"k": [5, 10, 20], "reg": [7.0, 10.0, 15.0, 20.0], "sigma": [2.0, 3.0, 5.0]},
        robust=True,
    ),
    "surprise SVD": Contender(
        surprise_svd,
        "surprise",
        {"k": 50, "epochs": 60, "rate": 0.01, "reg": 0.1},
        {"k": 10, "epochs": 20, "rate": 0.01, "reg": 0.02, "bias": False},
        {"k": [20, 50, 100], "epochs": [30, 60], "rate": [0.005, 0.01], "reg": [0.06, 0.1, 0.15]},
    ),
    "myFM, Gibbs": Contender(
        myfm_gibbs, "myfm", {"rank": 10, "samples": 200}, {"rank": 10, "samples": 200}, {"rank": [10], "samples": [200]}
    ),
}


def missing(name: str) -> str | None:
    """Why a peer can't be run; None if it can."""
    library = PEERS[name].library
    return None if find_spec(library) else f"{library} is not installed, which `make bench-completion` does"


def predict(name: str, train: Entries, at: Entries, seed: int, settings: dict[str, Any]) -> tuple[np.ndarray, Row]:
    """Predictions, and what else the fit has found. Peers' are clipped to the range of the training values, as cornac and
    surprise do by themselves."""
    if name == OURS:
        return robust_completion(train, at, seed, **settings)
    found = PEERS[name].fit(train, at, seed, **settings)
    return np.clip(found, train.values.min(), train.values.max()), {}
