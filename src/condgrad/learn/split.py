"""A matrix as low rank plus sparse: robust principal components."""

from __future__ import annotations

import math
import warnings
from dataclasses import dataclass
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad.checks import choice, positive, whole
from condgrad.domains import NuclearBall
from condgrad.driver import minimize
from condgrad.learn.radii import Fit, robust_fit
from condgrad.learn.saving import Saved
from condgrad.learn.scales import LOSSES, NOT_BELIEVED, loss_for, spread
from condgrad.objectives import Completion, Loss
from condgrad.points import LowRank
from condgrad.protocols import Point

HELD_OUT, ROUGHER = 0.1, 100.0
"""The share of entries that is held out, and how many times larger the tolerance on the path is."""
SMALL = 500
"""Up to so many rows or columns a full SVD is cheap, and takes fewer steps than one that keeps a few singular values."""
ROUNDS = 30
"""Of reweighting, when new rows are laid into the components."""


@dataclass(frozen=True, eq=False)
class Entries:
    """Fits of some entries of a matrix, in units of their errors."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    tol: float
    max_iter: int

    def part(self, which: np.ndarray, tol: float) -> Entries:
        return Entries(self.rows[which], self.cols[which], self.values[which], self.shape, tol, self.max_iter)

    def at(self, loss: Loss, radius: float, start: Point, scale: float) -> Fit:
        F = Completion(self.rows, self.cols, self.values / scale, self.shape, loss)
        ball = NuclearBall(self.shape, radius / scale)
        x0 = ball.project(start / scale)
        tol = self.tol * len(self.values)  # F is a sum
        inner = "auto" if isinstance(x0, LowRank) else "exact"
        result = minimize(F, ball, x0, tol=tol, max_steps=self.max_iter, inner=inner, every=10, progress=False)
        return Fit(scale * result.x, result, ball.norm(result.x) >= (1 - 1e-6) * ball.radius)

    def errors(self, x: Point) -> np.ndarray:
        return (np.asarray(x)[self.rows, self.cols] - self.values)[:, None]

    def spread(self) -> float:
        return spread(self.values) or float(np.abs(self.values).mean()) or 1.0

    def first_radius(self, scale: float) -> float:
        dense = np.zeros(self.shape)
        dense[self.rows, self.cols] = np.clip(self.values, -scale, scale)
        return float(np.linalg.norm(dense, 2)) * dense.size / len(self.values) or 1.0


class RobustPCA(Saved, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""A matrix as low rank plus sparse plus small errors, where the sparse part may be as large as it likes.

    .. math:: X = 1 m' + L + S + E, \quad \min_{|L|_* \le r} \sum_{ij} \varphi(X_{ij} - m_j - L_{ij})

    Entries of X that are NaN are holes, and left out.

    Parameters
    ----------
    n_components : keep so many; by default those with a singular value above the largest of noise of size sigma.
    loss : "welsch", "geman-mcclure", "cauchy", "huber" or "squared". The first two forget an error that is large enough.
    radius : of the nuclear-norm ball, or "auto": the best on held-out entries along a path of radii.
    sigma : the standard deviation of ordinary errors; by default estimated from the median error on held-out entries.
    center : take the median of each column out first, which may add a component: the low-rank part of what remains need not be 0
        in the median.
    tol : of the squared gradient mapping for each entry, in units of sigma.
    max_iter : steps at most, in each fit.
    random_state : decides which entries are held out.

    Attributes
    ----------
    components_, singular_values_, n_components_, mean_ : of the low-rank part, as in scikit-learn's PCA.
    low_rank_ : m + L, as an array.
    sparse_ : S: the errors of more than 3 sigma, 0 elsewhere; ``outliers_`` says where they are.
    radius_, sigma_, path_, status_, mapping_, n_iter_ : as in RobustLinearRegressor.

    Examples
    --------
    >>> import numpy as np
    >>> from condgrad.learn import RobustPCA
    >>> rng = np.random.default_rng(0)
    >>> L = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> X = L + 0.01 * rng.normal(size=L.shape)
    >>> wrong = rng.random(L.shape) < 0.1
    >>> X[wrong] += 20
    >>> pca = RobustPCA().fit(X)
    >>> bool((pca.outliers_ == wrong).all()), bool(abs(pca.low_rank_ - L).max() < 0.1)
    (True, True)
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: str = "welsch",
        radius: float | str = "auto",
        sigma: float | None = None,
        center: bool = True,
        tol: float = 1e-6,
        max_iter: int = 1000,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.loss = loss
        self.radius = radius
        self.sigma = sigma
        self.center = center
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    def fit(self, X: Any, y: Any = None) -> Self:
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", ensure_min_samples=2)
        choice(self.loss, LOSSES, "loss")
        positive(self.tol, "tol")
        whole(self.max_iter, "max_iter")
        sigma = None if self.sigma is None else positive(self.sigma, "sigma")
        if self.radius != "auto":
            positive(self.radius, "radius, where it is not 'auto',")
        seen = ~np.isnan(X)
        if not seen.any(axis=0).all():
            raise ValueError(f"Column {int(np.argmin(seen.any(axis=0)))} of X has no entry, only NaN: drop it.")
        self.mean_ = np.nanmedian(X, axis=0) if self.center else np.zeros(X.shape[1])
        rows, cols = np.nonzero(seen)
        entries = Entries(rows, cols, (X - self.mean_)[seen], X.shape, self.tol, self.max_iter)
        zero = np.zeros(X.shape) if min(X.shape) <= SMALL else LowRank.zeros(X.shape)
        found = robust_fit(entries, lambda: self._split(entries), self.loss, self.radius, sigma, zero)
        sigma = spread(entries.errors(found.fit.x)) if self.loss == "squared" else found.sigma
        self._settle(found.fit, sigma)
        self.radius_ = found.radius
        self.path_ = np.array([(step.radius, step.score) for step in found.steps]).reshape(-1, 2)
        errors = np.where(seen, X - self.low_rank_, 0.0)
        self.sigma_ = sigma
        self.outliers_ = np.abs(errors) > NOT_BELIEVED * self.sigma_
        self.sparse_ = np.where(self.outliers_, errors, 0.0)
        return self

    def _split(self, entries: Entries) -> tuple[Entries, Entries]:
        """Entries to fit on, to a rough tolerance, and entries held out."""
        order = check_random_state(self.random_state).permutation(len(entries.values))
        held = max(1, round(HELD_OUT * len(order)))
        return entries.part(order[held:], ROUGHER * self.tol), entries.part(order[:held], ROUGHER * self.tol)

    def _settle(self, fit: Fit, sigma: float) -> None:
        left, values, right = _svd(fit.x)
        m, n = fit.x.shape
        kept = int(np.sum(values > sigma * (math.sqrt(m) + math.sqrt(n))))  # the largest singular value of noise
        kept = max(1, kept if self.n_components is None else min(whole(self.n_components, "n_components"), len(values)))
        left, values, right = left[:, :kept], values[:kept], right[:, :kept]
        signs = np.sign(right[np.abs(right).argmax(axis=0), np.arange(kept)])
        self.components_, self.singular_values_, self.n_components_ = (right * signs).T, values, kept
        self.low_rank_ = self.mean_ + (left * values) @ right.T
        self.n_iter_, self.status_ = max(1, fit.result.steps), fit.result.status
        self.mapping_ = fit.result.certificate.upper if fit.result.certificate else math.inf
        if not fit.result.success:
            warnings.warn(
                f"RobustPCA did not converge: {fit.result.message} Raise max_iter or tol.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def transform(self, X: Any) -> np.ndarray:
        """The scores of rows, old or new, by reweighted least squares: outliers and NaN have no say in them.

        The loss begins as wide as each row's largest error and narrows, so that a row is not drawn to its outliers first.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=np.float64, ensure_all_finite="allow-nan", reset=False)
        seen = ~np.isnan(X)
        Z, V = np.where(seen, X - self.mean_, 0.0), self.components_
        if self.loss == "squared" and seen.all():
            return Z @ V.T
        pairs = (V[:, None, :] * V[None, :, :]).reshape(-1, V.shape[1]).T
        widest = np.maximum(np.abs(Z).max(axis=1, keepdims=True) / (NOT_BELIEVED * self.sigma_), 1.0)
        weights = seen.astype(float)
        counted = seen | ~seen.any(axis=1, keepdims=True)  # of an empty row all, which are 0
        for k in range(ROUNDS):
            normal = (weights @ pairs).reshape(len(Z), len(V), len(V))
            scores = (np.linalg.pinv(normal, hermitian=True) @ (weights * Z @ V.T)[:, :, None])[:, :, 0]
            errors = Z - scores @ V
            typical = 1.4826 * np.nanmedian(np.where(counted, np.abs(errors), np.nan), axis=1, keepdims=True)
            width = np.maximum(self.sigma_ * widest ** max(1 - 1.5 * k / ROUNDS, 0.0), typical)
            weights = seen * _belief(loss_for(self.loss, 1.0), errors / width)
        return scores

    def inverse_transform(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags


def _svd(x: Point) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Left vectors, singular values and right vectors; of 0 too."""
    if isinstance(x, LowRank) and x.svd()[1].size:
        return x.svd()
    left, values, right = np.linalg.svd(np.asarray(x), full_matrices=False)
    return left, values, right.T


def _belief(loss: Loss, errors: np.ndarray) -> np.ndarray:
    """phi'(t) / t over its value at 0: 1 for what the loss believes, near 0 for what it does not."""
    t = np.where(np.abs(errors) > 1e-6, errors, 1e-6)
    return loss.deriv(t, np.zeros_like(t)) / t / loss.smoothness
