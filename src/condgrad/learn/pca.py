"""The estimator `RobustPCA`: splits a matrix into a low-rank part and a sparse part (robust principal component analysis)."""

from __future__ import annotations

import math
import warnings
from typing import Any, NamedTuple, Self

import numpy as np
from sklearn.base import BaseEstimator, ClassNamePrefixFeaturesOutMixin, TransformerMixin
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad.checks import positive, whole
from condgrad.domains import NuclearBall
from condgrad.driver import Result
from condgrad.learn.base import all_or_nothing, attach_partial_fit, seed_of, unfitted_copy
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.entries import check_magnitudes, from_matrix
from condgrad.learn.completion.estimator import RobustCompletion
from condgrad.learn.completion.folding import fold_in_rows
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.path import Fit
from condgrad.learn.completion.prediction import FLOATS
from condgrad.learn.completion.robust_scale import CONVEX_LOSSES, OUTLIER_THRESHOLD, loss_for, loss_name
from condgrad.learn.low_rank_start import low_rank_start
from condgrad.learn.storage import Storable
from condgrad.objectives import Completion
from condgrad.points import LowRank
from condgrad.runtime.cache import Cache, caching


class Found(NamedTuple):
    """Result of a fit, from which the fitted attributes are set."""

    x: LowRank
    """The low-rank part."""
    mean: np.ndarray
    sigma: float
    radius: float
    multiplier: float
    path: list[Any]
    result: Result | None


class RobustPCA(Storable, ClassNamePrefixFeaturesOutMixin, TransformerMixin, BaseEstimator):
    r"""Split a matrix into a low-rank part, a sparse part with entries of any size, and small errors.

    .. math:: X = 1 m' + L + S + E, \quad \min_{|L|_* \le r} \sum_{ij} \varphi(X_{ij} - m_j - L_{ij})

    NaN marks a missing entry, which is ignored. m is chosen so that the mean of the rows of L is 0.

    A fit with a redescending loss ends in a local minimum near its start. Therefore it starts from principal component pursuit, a
    convex problem, on a sample of at most 300 rows and columns. The loss is then narrowed step by step. Up to about 40 % of the
    entries may be wrong, even if the errors all have the same sign, or fill blocks or most of a row. With a convex loss, the
    model is fitted by RobustCompletion with column biases only.

    Parameters
    ----------
    n_components : int, default None
        Number of components to keep, at most the number of rows and of columns. A warning is given if L has fewer components. By
        default, all components with a singular value above sigma (sqrt(m) + sqrt(n)) are kept. This is about the largest singular
        value of a matrix of noise.
    loss : {"welsch", "smoothed-l0", "geman-mcclure", "cauchy", "huber", "squared"}, default "welsch"
        Loss phi of the errors. Welsch's loss (also called "smoothed-l0") and Geman and McClure's loss ignore large errors.
    radius : float or "auto", default "auto"
        Radius r of the nuclear-norm ball. "auto" with a convex loss: the best radius on held-out entries along a path of radii.
        "auto" with another loss: there is no ball. The rank of L is limited instead, and is chosen on held-out entries.
    sigma : float, default None
        Standard deviation of the errors of inliers. By default it is estimated. Nearly half of the errors may be outliers.
    center : bool, default True
        Whether the model has a mean m.
    tol : float, default 1e-4
        The fit ends when a round of two steps reduces the loss by less than this share.
    max_steps : int, default 100
        Maximum number of steps.
    random_state : int, RandomState instance or None, default 0
        Seed that determines which entries are held out, and which rows and columns are in the sample.

    Attributes
    ----------
    components_ : ndarray of shape (k, n)
        Principal axes, as rows.
    singular_values_ : ndarray of shape (k,)
        Singular values of L.
    n_components_ : int
        Number k of components.
    mean_ : ndarray of shape (n,)
        The mean m.
    low_rank_ : ndarray of shape (m, n)
        The matrix 1 m' + L. ``low_rank_`` and ``sparse_`` are float32 if X is; all other arrays are float64.
    sparse_ : ndarray of shape (m, n)
        The matrix S: the errors of more than 3 sigma, and 0 elsewhere.
    outliers_ : ndarray of bool of shape (m, n)
        Mask of the entries of S that are not 0.
    radius_, sigma_, multiplier_ : float
        Radius of the ball (or nuclear norm of L), scale of the errors of inliers, and multiplier of the constraint on the nuclear
        norm; see RobustCompletion.
    path_ : ndarray of shape (p, 3)
        Radius (or nuclear norm), held-out error and rank of each fit that was compared. With a redescending loss, these are fits
        of the sample.
    result_ : Result
        Result of the last run of the solver, with the trace and the counts of all runs. None for a model that was loaded from a
        file.

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
    >>> bool(pca.outliers_[wrong].all()), bool(abs(pca.low_rank_ - L).max() < 0.1)
    (True, True)
    >>> bool(pca.outliers_[~wrong].mean() < 0.01)              # 0.3 % of normal errors are above 3 sigma
    True
    """

    def __init__(
        self,
        n_components: int | None = None,
        *,
        loss: str = "welsch",
        radius: float | str = "auto",
        sigma: float | None = None,
        center: bool = True,
        tol: float = 1e-4,
        max_steps: int = 100,
        random_state: Any = 0,
    ):
        self.n_components = n_components
        self.loss = loss
        self.radius = radius
        self.sigma = sigma
        self.center = center
        self.tol = tol
        self.max_steps = max_steps
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like of shape (m, n)
            The matrix. NaN marks missing entries. float32 stays float32, which takes half of the memory; all other types become
            float64.
        y : None
            Ignored.

        Returns
        -------
        RobustPCA
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter is invalid, or a column of X has no entry. The estimator is then unchanged.

        Warns
        -----
        UserWarning
            If L has fewer than ``n_components`` components.
        """
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan", ensure_min_samples=2)
        requested = None if self.n_components is None else whole(self.n_components, "n_components")
        if requested is not None and requested > min(X.shape):
            raise ValueError(
                f"n_components={requested} was given, but X has {X.shape[0]} rows and {X.shape[1]} columns: give at most "
                f"{min(X.shape)}, or None."
            )
        observed = ~np.isnan(X)
        if not observed.any(axis=0).all():
            raise ValueError(f"Column {int(np.argmin(observed.any(axis=0)))} of X has no entry, only NaN: drop it.")
        name, sigma = loss_name(self.loss), None if self.sigma is None else positive(self.sigma, "sigma")
        find = self._find_with_convex_loss if name in CONVEX_LOSSES else self._find_from_robust_start
        return self._set_results(find(X, name, sigma, requested), X, requested)

    def _find_with_convex_loss(self, X: np.ndarray, name: str, sigma: float | None, requested: int | None) -> Found:
        """Fit X by RobustCompletion. A convex loss needs no robust start."""
        completion = RobustCompletion(
            name,
            sigma="auto" if sigma is None else sigma,
            radius=self.radius,
            biases="columns" if self.center else False,
            clip=False,
            tol=self.tol,
            max_steps=self.max_steps,
            random_state=self.random_state,
        )

        def found(model: RobustCompletion) -> Found:
            x = LowRank(model.row_factors_, model.components_.T)
            path = [point[:3] for point in model.path_]
            mean = model.mean_ + model.col_biases_
            return Found(x, mean, model.sigma_, model.radius_, model.multiplier_, path, model.result_)

        def partial_fit(interruption: KeyboardInterrupt) -> Self | None:
            partial = getattr(interruption, "partial_fit", None)
            return None if partial is None else unfitted_copy(self)._set_results(found(partial), X, requested)

        with attach_partial_fit(partial_fit):
            return found(completion.fit(X))

    def _find_from_robust_start(self, X: np.ndarray, name: str, sigma: float | None, requested: int | None) -> Found:
        """Fit X with a redescending loss, from a robust start."""
        given, shape, seed = from_matrix(X).require_magnitude(), X.shape, seed_of(self.random_state)
        steps, tol = whole(self.max_steps, "max_steps"), positive(self.tol, "tol")
        radius = None if self.radius == "auto" else positive(self.radius, "radius, where it is not 'auto',")
        start = low_rank_start(X, self.center, seed)
        scale, x = sigma or start.sigma, LowRank(start.left, start.right)
        rank = x.rank if radius is None else None  # x is limited by the given radius, or else by its rank
        size = radius or float(x.svd()[1].sum()) or scale
        x = x if radius is None else NuclearBall(shape, radius).project(x)
        biases = Biases(0.0, np.zeros(shape[0]), start.mean)
        entries = Completion(given.rows, given.cols, given.values, shape)
        fit = Fit(entries, name, scale, "columns" if self.center else None, np.random.default_rng(seed))

        def found(model: Model) -> Found:
            norm = float(model.x.svd()[1].sum())
            residual = fit.target(entries, model)
            multiplier = max(-residual.grad(model.x).inner(model.x) / norm, 0.0) if norm else 0.0
            mean = model.biases.mean + model.biases.cols
            return Found(model.x, mean, scale, size if radius else norm, multiplier, start.trials, model.result)

        def partial_fit(interruption: KeyboardInterrupt) -> Self | None:
            model = fit.partial_model
            return None if model is None else unfitted_copy(self)._set_results(found(model), X, requested)

        with attach_partial_fit(partial_fit), caching(Cache()):
            return found(fit.finish(Model(x, biases, loss_for(name, scale), scale, size, rank), steps, tol))

    def _set_results(self, found: Found, X: np.ndarray, requested: int | None) -> Self:
        """Set the fitted attributes."""
        observed = ~np.isnan(X)
        self.radius_, self.sigma_, self.multiplier_ = found.radius, found.sigma, found.multiplier
        self.result_ = found.result
        self.path_ = np.array(found.path, dtype=float).reshape(-1, 3)
        scores, V = found.x.factors()
        self.mean_ = found.mean
        if self.center:
            middle = scores.mean(axis=0)
            self.mean_, scores = self.mean_ + V @ middle, scores - middle
        low_rank = self._set_components(LowRank(scores, V), requested) + self.mean_
        errors = np.where(observed, X - low_rank, 0.0)
        self.outliers_ = np.abs(errors) > OUTLIER_THRESHOLD * self.sigma_
        self.low_rank_ = low_rank.astype(X.dtype, copy=False)
        self.sparse_ = np.where(self.outliers_, errors, 0.0).astype(X.dtype, copy=False)
        return self

    def _set_components(self, x: LowRank, requested: int | None) -> np.ndarray:
        """Choose the components to keep, and set their attributes. Returns the part of x that consists of these components."""
        left, values, right = x.svd()
        m, n = x.shape
        if not len(values):  # x is 0: keep one component with singular value 0
            left, values, right = np.zeros((m, 1)), np.zeros(1), np.eye(n, 1)
        kept = int(np.sum(values > self.sigma_ * (math.sqrt(m) + math.sqrt(n))))  # the largest singular value of noise
        kept = max(1, kept if requested is None else min(requested, len(values)))
        if requested is not None and kept < requested:
            warnings.warn(
                f"n_components={requested} was asked for, but the fitted low-rank part has rank {kept}: n_components_ is {kept}. "
                "A larger radius allows a larger rank.",
                UserWarning,
                stacklevel=4,
            )
        left, values, right = left[:, :kept], values[:kept], right[:, :kept]
        signs = np.sign(right[np.abs(right).argmax(axis=0), np.arange(kept)])
        self.components_, self.singular_values_, self.n_components_ = (right * signs).T, values, kept
        return (left * values) @ right.T

    def transform(self, X: Any) -> np.ndarray:
        """Compute the scores of rows by robust regressions on the components, which ignore outliers and NaN.

        Parameters
        ----------
        X : array-like of shape (k, n)
            Rows of the fitted matrix, or new rows.

        Returns
        -------
        ndarray of shape (k, n_components_)
            The scores.
        """
        check_is_fitted(self)
        X = validate_data(self, X, dtype=FLOATS, ensure_all_finite="allow-nan", reset=False)
        rows, cols = np.nonzero(~np.isnan(X))
        check_magnitudes(X[rows, cols], lambda k: (int(rows[k]), int(cols[k])))
        entries = rows, cols, X[rows, cols] - self.mean_[cols]
        columns, loss = self.components_.T, loss_for(self.loss, self.sigma_)
        return fold_in_rows(columns, self.singular_values_, entries, len(X), loss, self.multiplier_, ridge=None)[1]

    def inverse_transform(self, X: Any) -> np.ndarray:
        """Compute rows from their scores.

        Parameters
        ----------
        X : array-like of shape (k, n_components_)
            Scores, as returned by ``transform``.

        Returns
        -------
        ndarray of shape (k, n)
        """
        check_is_fitted(self)
        return np.asarray(X) @ self.components_ + self.mean_

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        k, n = self.n_components_, self.n_features_in_
        whole = dict.fromkeys(("low_rank_", "sparse_"), (len(self.low_rank_), n))
        parts = {"components_": (k, n), "singular_values_": (k,), "mean_": (n,)}
        return whole | parts | dict.fromkeys(("n_components_", "n_features_in_", "sigma_", "multiplier_"), ())

    @property
    def _n_features_out(self) -> int:
        return self.n_components_

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.allow_nan = True
        return tags
