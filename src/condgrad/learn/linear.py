"""Linear regression that is robust to gross errors, and linear classification that is robust to wrong labels."""

from __future__ import annotations

import logging
import math
import warnings
from dataclasses import replace
from typing import Any, Self

import numpy as np
from scipy.sparse import issparse
from scipy.special import expit, softmax
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad.checks import choice, counted, positive, whole, yes_or_no
from condgrad.learn.base import all_or_nothing, attach_partial_fit, seed_of, unfitted_copy
from condgrad.learn.completion.robust_scale import AUTO, CONVEX_LOSSES, LOSSES, OUTLIER_THRESHOLD, median_scale
from condgrad.learn.folds import Folds
from condgrad.learn.label_search import BOUNDED, CONVEX, LabelSearch, choose, losses_for
from condgrad.learn.linear_problem import Design, Fit, LinearProblem
from condgrad.learn.radius_search import PATH_TOLERANCE_FACTOR, Step, best_step, robust_fit
from condgrad.learn.robust_start import contradicted_leverage, dense, supports_robust_start
from condgrad.learn.sample_weights import (
    class_weights,
    fold_numbers,
    held_out_rows,
    holdout_keys,
    merge_equal_rows,
    row_weights,
    weighted_median,
)
from condgrad.learn.storage import Storable
from condgrad.objectives._matrices import times

logger = logging.getLogger(__name__)

FLOATS = (np.float64, np.float32)
"""Types of features: float32 stays float32, which takes half of the memory; all others become float64."""
FEW_FOLDS, FOLDS = 5, 8
ENOUGH_ROWS, MANY_ROWS = 100, 2000
"""Losses and radii are chosen on held-out rows. A regressor has FEW_FOLDS folds, and so has a classifier with fewer than
ENOUGH_ROWS rows. A classifier has FOLDS folds from there on, because a label says less than a number. From MANY_ROWS rows on, one
of these folds is enough."""
MAX_OUTLIER_SHARE = 0.45
"""Share of outliers above which a fit warns: with about one half, the fit may follow either half of the rows."""
MAX_LEVERAGE_ELEMENTS = 10_000_000
"""Maximum number of elements of X for which leverage points are searched, because the search needs a dense copy."""


class _Linear(Storable, BaseEstimator):
    """Abstract base class of the regressor and the classifier."""

    def _problem(self, X: Any, Y: np.ndarray, weights: np.ndarray | None, scale: bool) -> LinearProblem:
        """Validate the parameters and set up the problem."""
        positive(self.tol, "tol")
        whole(self.max_iter, "max_iter")
        if self.radius != "auto":
            positive(self.radius, "radius, where it is not 'auto',")
            if self.constraint is None:
                raise ValueError(
                    f"radius={self.radius} was given, but constraint=None means that there is no ball: leave out the radius, or "
                    "choose a constraint."
                )
        if self.groups is not None and self.constraint != "group":
            raise ValueError(f"groups are for constraint='group', but got {self.constraint!r}: leave one of them out.")
        design = Design.of(X, self.fit_intercept, weights, scale)
        constraint = "l1" if self.constraint == "auto" else self.constraint
        seed = seed_of(self.random_state)
        return LinearProblem(design, Y, constraint, self.groups, self.tol, self.max_iter, weights, seed)

    def _keys(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """A key for each row, by which rows are held out. Equal rows have equal keys."""
        return holdout_keys(X, Y, check_random_state(self.random_state))

    def _folds(self, problem: LinearProblem, keys: np.ndarray, count: int) -> tuple[Folds, Folds]:
        """The training rows and the held-out rows of several folds, with a larger tolerance.

        With many rows, or fewer rows than folds, there is one fold. A single row is in both parts.
        """
        if count <= len(keys) < MANY_ROWS:
            number = fold_numbers(keys, problem.weights, count)
            held_out = [number == fold for fold in np.unique(number)]
        else:
            held_out = [held_out_rows(keys, problem.weights, 1 / count)]
        training = [~rows if len(rows) > 1 else rows for rows in held_out]
        tol = PATH_TOLERANCE_FACTOR * self.tol

        def select(masks: list[np.ndarray]) -> Folds:
            parts = [problem.select_rows(np.flatnonzero(rows), tol) for rows in masks]
            return Folds([replace(part, phase=f"path, fold {fold}") for fold, part in enumerate(parts, 1)])

        return select(training), select(held_out)

    def _radius(self, problem: LinearProblem) -> Any:
        """The given radius, in units of the design matrix; None if there is no constraint."""
        if self.constraint is None:
            return None
        return self.radius if self.radius == "auto" else self.radius * problem.design.unit

    def _set_results(self, problem: LinearProblem, fit: Fit, steps: list[Step], radius: float | None) -> None:
        """Set the fitted attributes that the regressor and the classifier share, and warn if the fit did not converge."""
        coef, self.intercept_ = problem.design.to_user(fit.x)
        self.coef_ = coef.T
        unit = problem.design.unit
        self.radius_ = None if radius is None else radius / unit
        self.path_ = np.array([(step.radius / unit, step.score) for step in steps if step.radius is not None]).reshape(
            -1, 2
        )
        self.n_iter_ = max(1, fit.result.steps)
        self.status_ = fit.result.status
        self.result_ = problem.session.whole(fit.result)
        self.mapping_ = fit.result.certificate.upper if fit.result.certificate else math.inf
        logger.info("%s: %s after %d steps, radius %s", type(self).__name__, self.status_, self.n_iter_, self.radius_)
        if not fit.result.success:
            warnings.warn(
                f"{type(self).__name__} did not converge: {fit.result.message} Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _partial_estimator(self, problem: LinearProblem) -> Self | None:
        """A copy of an interrupted estimator, with the coefficients of the last finished fit; None if no fit has finished."""
        if not problem.last_fit:
            return None
        partial, (radius, fit) = unfitted_copy(self), problem.last_fit[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            partial._set_results(problem, fit, [], None if self.constraint is None else radius)
        partial.status_ = "interrupted"
        return partial

    def _scores(self, X: Any) -> np.ndarray:
        """Compute w'x + b for each row and task."""
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=FLOATS, reset=False)
        return times(X, self.coef_.T) + self.intercept_

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        tasks = np.shape(self.intercept_)[:1]
        return {"n_features_in_": (), "coef_": (*tasks, self.n_features_in_), "intercept_": tasks}

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        return tags


class RobustLinearRegressor(MultiOutputMixin, RegressorMixin, _Linear):
    r"""Linear regression that is robust to gross errors in y and in the features, with coefficients in a ball.

    .. math:: \min_{|W| \le r,\, b} \; \frac1n \sum_i \sum_t \varphi(w_t'x_i + b_t - y_{it})

    Parameters
    ----------
    loss : {"auto", "welsch", "geman-mcclure", "cauchy", "huber", "squared"}, default "auto"
        Loss phi of the errors, tuned for an efficiency of 95 % under normal errors. "welsch" and "geman-mcclure" ignore errors
        that are large enough. "auto": "squared", "huber" or "welsch", the last only if held-out rows prefer it to the others.
    constraint : {"auto", "l1", "l2", "group", "nuclear"} or None, default "auto"
        Norm of the ball: "l1" (few coefficients), "l2", "group" (few features or groups of them, for all tasks together),
        "nuclear" (tasks that share a few directions). None: no ball. "auto": "l1" if a radius is given. Otherwise "l1" or "l2",
        as held-out rows prefer, if there are fewer than 5 rows per coefficient or more than 500 features, or if the held-out loss
        is clearly smaller with such a ball; else None.
    radius : float or "auto", default "auto"
        Radius r of the ball. "auto": the best on held-out rows along a path of radii, in 5 folds with fewer than 2,000 rows.
    groups : array-like of shape (n_features,), default None
        Label of the group of each feature, for constraint="group". By default every feature is a group.
    sigma : float, default None
        Standard deviation of the errors of inliers, the same for all tasks. By default it is estimated. Nearly half of the errors
        may be outliers.
    fit_intercept : bool, default True
        Whether the model has an intercept b, which is not in the ball.
    scale : bool, default True
        Whether each feature is divided by its standard deviation before the fit (a sparse feature by its largest absolute value).
        The ball limits the coefficients of the scaled features. ``coef_`` has the coefficients of the features as given.
    tol : float, default 1e-6
        A fit ends when the squared gradient mapping is certified to be at most ``tol``, for y in units of sigma and X divided by
        its scale.
    max_iter : int, default 2000
        Maximum number of steps of each fit.
    random_state : int, RandomState instance or None, default 0
        Decides which rows are held out and which subsets of rows are drawn for a robust start.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_tasks, n_features)
        Coefficients w.
    intercept_ : float or ndarray of shape (n_tasks,)
        Intercept b.
    radius_ : float or None
        Radius of the ball, as given or found; None if there is no ball.
    constraint_ : str or None
        Norm of the ball, as given or found; None if there is no ball.
    loss_ : str
        Loss, as given or chosen.
    candidates_ : dict of str and float
        Mean absolute held-out error for each loss that was compared. Empty if the loss was given.
    sigma_ : float
        Standard deviation of the errors of inliers, as given or found.
    leverage_ : ndarray of bool of shape (n_samples,), or None
        Mask of the leverage points, that is, rows with features far outside the bulk of the rows; False for rows of weight 0. A
        warning is given if the coefficients fit such rows and the other rows contradict them. None if leverage points are not
        searched for: with a convex loss, fewer than 4 rows per coefficient, more than 500 features or more than 10 million
        numbers in X.
    path_ : ndarray of shape (p, 2)
        Radius and held-out loss of each fit of the path.
    outliers_ : ndarray of bool of shape (n_samples,) or (n_samples, n_tasks)
        Mask of the targets that are farther than 3 sigma from the fit, also of rows of weight 0.
    status_ : str
        How the last fit ended: "converged" if its squared mapping is at most ``tol``.
    mapping_ : float
        Certified upper bound on the squared gradient mapping of the last fit.
    n_iter_ : int
        Number of steps of the last fit.
    result_ : Result
        Result of the last fit, in the units of the scaled features and targets. Its trace, counts, number of steps and times are
        those of all fits, including those of the path. The column ``phase`` of the trace names each of them. None for a model
        that was loaded from a file.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from condgrad.learn import RobustLinearRegressor
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(200, 10))
    >>> y = 3 * X[:, 0] - 2 * X[:, 1] + 1 + 0.1 * rng.normal(size=200)
    >>> y[:40] += 50                                          # a fifth of the data is wrong
    >>> model = RobustLinearRegressor().fit(X, y)
    >>> model.coef_[:3].round(1) + 0.0, model.intercept_.round(1), model.outliers_[:40].all()
    (array([ 3., -2.,  0.]), np.float64(1.0), np.True_)
    """

    def __init__(
        self,
        loss: str = "auto",
        *,
        constraint: str | None = "auto",
        radius: float | str = "auto",
        groups: Any = None,
        sigma: float | None = None,
        fit_intercept: bool = True,
        scale: bool = True,
        tol: float = 1e-6,
        max_iter: int = 2000,
        random_state: Any = 0,
    ):
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.groups = groups
        self.sigma = sigma
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. float32 stays float32, which takes half of the memory. All other types become float64. The coefficients are
            float64.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows, not negative. A row of weight 2 counts as two equal rows, also when rows are held out and sigma
            is estimated; a row of weight 0 is ignored. None: all weights are 1.

        Returns
        -------
        RobustLinearRegressor
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid. The estimator is then unchanged.

        Warns
        -----
        ConvergenceWarning
            If the last fit did not converge within ``max_iter`` steps.
        UserWarning
            If the coefficients follow leverage points, or if nearly half of the targets are outliers.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=FLOATS, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        choice(self.loss, (AUTO, *LOSSES), "loss")
        given, observed = X, np.asarray(y, dtype=float).reshape(len(y), -1)
        weight = row_weights(sample_weight, X)
        used = weight > 0  # rows of weight 0 get no key, so that they do not change the keys of the other rows
        X, Y = (given, observed) if used.all() else (given[used], observed[used])
        keys = self._keys(X, Y)
        rows, weights = merge_equal_rows(weight[used], keys)
        middle = weighted_median(Y[rows], weights) if self.fit_intercept else np.zeros(Y.shape[1])
        problem = self._problem(X[rows], Y[rows] - middle, weights, yes_or_no(self.scale, "scale"))
        sigma = None if self.sigma is None else positive(self.sigma, "sigma")

        def partial_fit(interruption: KeyboardInterrupt) -> Self | None:
            partial = self._partial_estimator(problem)
            if partial is not None:
                partial.intercept_ = partial.intercept_ + middle
                if y.ndim == 1:
                    partial.coef_, partial.intercept_ = partial.coef_[0], partial.intercept_[0]
            return partial

        with attach_partial_fit(partial_fit):
            found = robust_fit(
                problem,
                lambda: self._folds(problem, keys[rows], FEW_FOLDS),
                self.loss,
                ("l1", "l2") if self.constraint == self.radius == "auto" else (problem.constraint,),
                self._radius(problem),
                sigma,
                unconstrained=self.constraint == "auto",
            )
        self._set_results(problem, found.fit, found.steps, found.radius)
        self.loss_, self.constraint_, self.candidates_ = found.loss, found.constraint, found.candidates
        self.intercept_ = self.intercept_ + middle
        self.sigma_ = median_scale(problem.errors(found.fit.x), weights) if self.loss_ == "squared" else found.sigma
        errors = times(given, self.coef_.T) + self.intercept_ - observed
        self.outliers_ = np.abs(errors) > OUTLIER_THRESHOLD * self.sigma_
        self._check_leverage(problem, found.fit.x, used, keys, keys[rows])
        share = np.average(self.outliers_.mean(axis=1), weights=weight)
        if share > MAX_OUTLIER_SHARE and self.sigma is None and self.radius == "auto":
            warnings.warn(
                f"{share:.0%} of the targets are more than 3 sigma_ ({self.sigma_:.3g}) from the fit: it may not have found the "
                "structure of most rows. Look at outliers_, or use loss='huber'.",
                UserWarning,
                stacklevel=2,
            )
        if y.ndim == 1:
            self.coef_, self.intercept_, self.outliers_ = self.coef_[0], self.intercept_[0], self.outliers_[:, 0]
        return self

    def _check_leverage(
        self, problem: LinearProblem, W: np.ndarray, used: np.ndarray, keys: np.ndarray, fitted: np.ndarray
    ) -> None:
        """Set ``leverage_``, and warn if the coefficients fit leverage points that the other rows contradict."""
        A, self.leverage_ = problem.design.A, None
        if (
            self.loss in CONVEX_LOSSES
            or not supports_robust_start(*A.shape)
            or A.shape[0] * A.shape[1] > MAX_LEVERAGE_ELEMENTS
        ):
            return
        leverage, contradicted = contradicted_leverage(dense(A), problem.Y, W, self.sigma_, problem.weights)
        self.leverage_ = np.zeros(len(used), dtype=bool)
        self.leverage_[used] = np.isin(keys, fitted[leverage])
        if contradicted:
            warnings.warn(
                f"The coefficients follow {counted(contradicted, 'row')} with extreme features (see leverage_), but the rows "
                "with ordinary features contradict them: check the extreme rows, or fit without them.",
                UserWarning,
                stacklevel=3,
            )

    def predict(self, X: Any) -> np.ndarray:
        """Predict the targets of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_tasks)
        """
        return self._scores(X)


class SigmoidClassifier(ClassifierMixin, _Linear):
    r"""Linear classification that is robust to wrong labels, with coefficients in a ball.

    .. math:: \min_{|W| \le r,\, b} \; \frac1n \sum_i \varphi(W'x_i + b, y_i)

    The sigmoid loss is a smooth count of the mistakes: 1 minus the softmax of the score of the right class. So a mislabelled row
    costs at most 1. With two classes it is 1 / (1 + exp(y z)), where y = +-1 and z is the difference of the two scores. The
    logistic loss, minus the logarithm of the softmax, is convex, but a single mislabelled row can cost much.

    Parameters
    ----------
    loss : {"auto", "sigmoid", "logistic"}, default "auto"
        Loss phi. "auto": the loss that makes fewer mistakes on held-out rows. ``predict_proba`` exists for "logistic" only,
        because the sigmoid loss does not estimate probabilities.
    constraint : {"l2", "l1", "group", "nuclear"}, default "l2"
        Norm of the ball, as in :class:`RobustLinearRegressor`.
    radius : float or "auto", default "auto"
        Radius r of the ball. "auto": the best on held-out rows along a path of radii: in 8 folds with 100 to
        1,999 rows, in 5 with fewer. The largest radii of the path are so large that the ball is hardly active.
    groups : array-like of shape (n_features,), default None
        Label of the group of each feature, for constraint="group". None: every feature is a group.
    fit_intercept : bool, default True
        Whether the model has intercepts b, which are not in the ball.
    scale : bool or "auto", default "auto"
        Divide each feature by its standard deviation (a sparse one by its largest absolute value) before the fit. "auto": also
        try to divide by the largest absolute value, and take the scale for which the first loss has the smaller held-out loss;
        the standard deviation if a radius is given. The ball and its radius are those of the scaled coefficients; ``coef_`` is in
        the units of the features as given.
    tol : float, default 1e-6
        A fit ends when the squared gradient mapping is certified to be at most this, in units in which X has scale 1.
    max_iter : int, default 2000
        Maximum number of steps of each fit.
    random_state : int, RandomState instance or None, default 0
        Decides which rows are held out.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, by which the weights of their rows are multiplied; 1 for a class that the dict does not have.
        "balanced": inversely proportional to the total weight of the rows of the class.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients w; one row if there are two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts b.
    loss_ : {"sigmoid", "logistic"}
        Loss, as given or chosen.
    candidates_ : dict of str and float
        Mean held-out loss of each loss that was tried, at its best radius: the smooth count of the mistakes, or the logistic loss
        if it was given. Empty if loss and radius were given.
    radius_ : float
        Radius of the ball, as given or found.
    path_ : ndarray of shape (p, 2)
        Radius and held-out loss of each fit of the path, for the chosen loss.
    status_ : str
        How the last fit ended: "converged" if its squared mapping is at most ``tol``.
    mapping_ : float
        Certified upper bound on the squared gradient mapping of the last fit.
    n_iter_ : int
        Number of steps of the last fit.
    result_ : Result
        Result of the last fit, in the units of the scaled features and targets. Its trace, counts, number of steps and times are
        those of all fits, including those of the path. The column ``phase`` of the trace names each of them. None for a model
        that was loaded from a file.
    n_features_in_ : int
        Number of features.

    Examples
    --------
    >>> import numpy as np
    >>> from condgrad.learn import SigmoidClassifier
    >>> rng = np.random.default_rng(0)
    >>> X = rng.normal(size=(300, 5))
    >>> y = np.where(X[:, 0] > X[:, 1], "up", "down")
    >>> model = SigmoidClassifier().fit(X, y)
    >>> bool(model.score(X, y) > 0.98)
    True
    """

    def __init__(
        self,
        loss: str = "auto",
        *,
        constraint: str | None = "l2",
        radius: float | str = "auto",
        groups: Any = None,
        fit_intercept: bool = True,
        scale: bool | str = "auto",
        tol: float = 1e-6,
        max_iter: int = 2000,
        random_state: Any = 0,
        class_weight: Any = None,
    ):
        self.loss = loss
        self.constraint = constraint
        self.radius = radius
        self.groups = groups
        self.fit_intercept = fit_intercept
        self.scale = scale
        self.tol = tol
        self.max_iter = max_iter
        self.random_state = random_state
        self.class_weight = class_weight

    @all_or_nothing
    def fit(self, X: Any, y: Any, sample_weight: Any = None) -> Self:
        """Fit the model.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features. float32 stays float32, which takes half of the memory. All other types become float64. The coefficients are
            float64.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows, not negative. A row of weight 2 counts as two equal rows; a row of weight 0 is ignored, and so is
            a class whose rows all have weight 0. None: all weights are 1.

        Returns
        -------
        SigmoidClassifier
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter, the data or the weights are invalid, or there are fewer than two classes. The estimator is then
            unchanged.

        Warns
        -----
        ConvergenceWarning
            If the last fit did not converge within ``max_iter`` steps.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=FLOATS, ensure_min_samples=2)
        check_classification_targets(y)
        choice(self.loss, ("auto", CONVEX, BOUNDED), "loss")
        if self.constraint is None:
            raise ValueError(
                "constraint=None is not possible: if the classes are separable, the best coefficients are infinite. Give a "
                "constraint, such as 'l2'."
            )
        given = row_weights(sample_weight, X)
        X, y, given = X[given > 0], y[given > 0], given[given > 0]
        self.classes_, number = np.unique(y, return_inverse=True)
        if len(self.classes_) < 2:
            raise ValueError(
                f"SigmoidClassifier needs at least two classes, but y has only one class, {self.classes_[0]!r}."
            )
        columns = [1] if len(self.classes_) == 2 else range(len(self.classes_))
        Y = np.column_stack([np.where(number == column, 1.0, -1.0) for column in columns])
        keys = self._keys(X, Y)
        of_class = class_weights(self.class_weight, self.classes_, number, given)
        rows, weights = merge_equal_rows(row_weights(given * of_class[number], X), keys)
        auto_scale = isinstance(self.scale, str) and choice(self.scale, ("auto",), "scale") == "auto"
        problem = self._problem(X[rows], Y[rows], weights, auto_scale or yes_or_no(self.scale, "scale"))
        radius, start, steps = self._radius(problem), problem.zero(), []
        losses, self.loss_, self.candidates_ = losses_for(Y.shape[1]), self.loss, {}
        with attach_partial_fit(lambda interruption: self._partial_estimator(problem)):
            if radius == "auto" or self.loss == "auto":
                problems = [problem]
                if auto_scale and radius == "auto" and not issparse(X):
                    largest = Design.of(X[rows], self.fit_intercept, weights, scale=True, largest=True)
                    problems.append(replace(problem, design=largest, last_fit=[]))
                names = (CONVEX, BOUNDED) if self.loss == "auto" else (self.loss,)
                count = FOLDS if len(keys[rows]) >= ENOUGH_ROWS else FEW_FOLDS
                searches = [LabelSearch(*self._folds(each, keys[rows], count), names) for each in problems]
                found, paths = choose(searches, None if radius == "auto" else [radius])
                problem = problems[found]
                self.candidates_ = {name: best_step(path).score for name, path in paths.items()}
                self.loss_ = min(names, key=lambda name: self.candidates_[name])
                steps = paths[self.loss_]
                radius, start = best_step(steps).radius, best_step(steps).fit.x[0]
            elif self.loss == BOUNDED:
                start = problem.fit(losses[CONVEX], radius, start).x
            fit = problem.fit(losses[self.loss_], radius, start)
        self._set_results(problem, fit, steps, radius)
        return self

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        (classes,) = self.classes_.shape
        tasks = 1 if classes == 2 else classes
        return super()._shapes() | {"coef_": (tasks, self.n_features_in_), "intercept_": (tasks,)}

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute the score w'x + b of each row and class: positive if the row looks like the class, negative if like the others.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,) or (n_samples, n_classes)
            One number for each row if there are two classes: positive for ``classes_[1]``.
        """
        scores = self._scores(X)
        return scores[:, 0] if len(self.classes_) == 2 else scores

    def predict(self, X: Any) -> np.ndarray:
        """Predict the classes of rows.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples,)
        """
        scores = self.decision_function(X)
        return self.classes_[(scores > 0).astype(int) if scores.ndim == 1 else scores.argmax(axis=1)]

    @available_if(lambda self: self.loss == "logistic")
    def predict_proba(self, X: Any) -> np.ndarray:
        """Compute the probability of each class, for loss="logistic" only.

        With more than two classes, they are the softmax of the scores.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        scores = self.decision_function(X)
        if scores.ndim == 1:
            chances = expit(scores)
            return np.column_stack([1 - chances, chances])
        return softmax(scores, axis=1)
