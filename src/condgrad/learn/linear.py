"""Linear regression that gross errors in y do not move, and classification that mislabelled rows do not."""

from __future__ import annotations

import logging
import math
import warnings
from typing import Any, Self

import numpy as np
from scipy.special import expit
from sklearn.base import BaseEstimator, ClassifierMixin, MultiOutputMixin, RegressorMixin
from sklearn.exceptions import ConvergenceWarning
from sklearn.utils import check_random_state
from sklearn.utils.metaestimators import available_if
from sklearn.utils.multiclass import check_classification_targets
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad.checks import choice, counted, positive, whole, yes_or_no
from condgrad.learn.base import all_or_nothing, attaching, seed_of, unfitted
from condgrad.learn.completion.robust_scale import CONVEX, LOSSES, NOT_BELIEVED, spread
from condgrad.learn.linear_problem import Design, Fits
from condgrad.learn.radius_search import ROUGH, Fit, Step, chosen, path, refined, rising, robust_fit
from condgrad.learn.robust_start import decided_by_leverage, dense, suits
from condgrad.learn.sample_weights import gathered, held_out, median, of_classes, row_weights, shuffled
from condgrad.learn.storage import Storable
from condgrad.objectives import Logistic, Loss, Sigmoid

logger = logging.getLogger(__name__)

HELD_OUT = 0.2
MANY_OUTLIERS = 0.45
"""Share of outliers above which a fit warns: a redescending loss can't tell two halves of the data apart."""
MOST_NUMBERS = 10_000_000
"""Features times rows up to which leverage points are looked for: a dense copy of them is made."""


class _Linear(Storable, BaseEstimator):
    """Abstract: what the regressor and the classifier have in common."""

    def _fits(self, X: Any, Y: np.ndarray, weights: np.ndarray | None) -> Fits:
        positive(self.tol, "tol")
        whole(self.max_iter, "max_iter")
        if self.radius != "auto":
            positive(self.radius, "radius, where it is not 'auto',")
            if self.constraint is None:
                raise ValueError(
                    f"radius={self.radius} is that of a ball, but constraint=None has none: leave one of them out."
                )
        if self.groups is not None and self.constraint != "group":
            raise ValueError(f"groups are for constraint='group', but got {self.constraint!r}: leave one of them out.")
        design = Design.of(X, self.fit_intercept, weights, yes_or_no(self.scale, "scale"))
        constraint = "l1" if self.constraint == "auto" else self.constraint
        seed = seed_of(self.random_state)
        return Fits(design, Y, constraint, self.groups, self.tol, self.max_iter, weights, seed)

    def _keys(self, X: Any, Y: np.ndarray) -> np.ndarray:
        """A number for each row, by which equal rows are found and rows are held out."""
        return shuffled(X, Y, check_random_state(self.random_state))

    def _split(self, fits: Fits, keys: np.ndarray) -> tuple[Fits, Fits]:
        """Rows to fit on, to a rough tolerance, and rows held out; of a single row, it is both."""
        held = held_out(keys, fits.weights, HELD_OUT)
        rough, train = ROUGH * self.tol, ~held if len(held) > 1 else held
        return fits.rows(np.flatnonzero(train), rough), fits.rows(np.flatnonzero(held), rough)

    def _radius(self, fits: Fits) -> Any:
        """In the units of the design; None where there is no constraint."""
        if self.constraint is None:
            return None
        return self.radius if self.radius == "auto" else self.radius * fits.design.unit

    def _settle(self, fits: Fits, fit: Fit, steps: list[Step], radius: float | None) -> None:
        """The fitted attributes that do not depend on the kind of y."""
        coef, self.intercept_ = fits.design.to_user(fit.x)
        self.coef_ = coef.T
        unit = fits.design.unit
        self.radius_ = None if radius is None else radius / unit
        self.path_ = np.array([(step.radius / unit, step.score) for step in steps if step.radius is not None]).reshape(
            -1, 2
        )
        self.n_iter_ = max(1, fit.result.steps)
        self.status_ = fit.result.status
        self.mapping_ = fit.result.certificate.upper if fit.result.certificate else math.inf
        logger.info("%s: %s after %d steps, radius %s", type(self).__name__, self.status_, self.n_iter_, self.radius_)
        if not fit.result.success:
            warnings.warn(
                f"{type(self).__name__} did not converge: {fit.result.message} Raise max_iter or tol, or scale the features.",
                ConvergenceWarning,
                stacklevel=3,
            )

    def _partial(self, fits: Fits) -> Self | None:
        """A copy that has the coefficients of the fit which was finished last when another one was interrupted."""
        if not fits.reached:
            return None
        partial, (radius, fit) = unfitted(self), fits.reached[0]
        with warnings.catch_warnings():
            warnings.simplefilter("ignore", ConvergenceWarning)
            partial._settle(fits, fit, [], None if self.constraint is None else radius)
        partial.status_ = "interrupted"
        return partial

    def _scores(self, X: Any) -> np.ndarray:
        check_is_fitted(self)
        X = validate_data(self, X, accept_sparse="csr", dtype=np.float64, reset=False)
        return X @ self.coef_.T + self.intercept_

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
    loss : {"welsch", "geman-mcclure", "cauchy", "huber", "squared"}, default "welsch"
        Loss phi of the errors, tuned for an efficiency of 95 % under normal errors. The first two ignore errors that are large
        enough.
    constraint : {"auto", "l1", "l2", "group", "nuclear"} or None, default "auto"
        Norm of the ball: "l1" (few coefficients), "l2", "group" (few features or groups of them, for all tasks together),
        "nuclear" (tasks that share a few directions). None: no ball. "auto": "l1" where held-out rows clearly prefer such a
        ball, where a radius is given, and with fewer than 5 rows for a coefficient or more than 500 features; else None.
    radius : float or "auto", default "auto"
        Radius r of the ball. "auto": the best on held-out rows along a path of radii.
    groups : array-like of shape (n_features,), default None
        Label of the group of each feature, for constraint="group". None: every feature is a group.
    sigma : float, default None
        Standard deviation of ordinary errors, the same for all tasks. None: estimated by a scale that nearly half of the
        errors can't move.
    fit_intercept : bool, default True
        Whether the model has an intercept b, which is not in the ball.
    scale : bool, default True
        Divide each feature by its standard deviation (a sparse one by its largest absolute value) before the fit. The ball and
        its radius are those of the scaled coefficients; ``coef_`` is in the units of the features as given.
    tol : float, default 1e-6
        A fit ends when the squared gradient mapping is certified to be at most this, in units in which y / sigma and X have
        scale 1.
    max_iter : int, default 2000
        Maximum number of steps of each fit.
    random_state : int, RandomState instance or None, default 0
        Decides which rows are held out and which subsets of rows give a robust start.

    Attributes
    ----------
    coef_ : ndarray of shape (n_features,) or (n_tasks, n_features)
        Coefficients w.
    intercept_ : float or ndarray of shape (n_tasks,)
        Intercept b.
    radius_ : float or None
        Radius of the ball, as given or found; None if there is no ball.
    sigma_ : float
        Standard deviation of ordinary errors, as given or found.
    leverage_ : ndarray of bool of shape (n_samples,), or None
        Which rows have features far outside the bulk of the rows; False for rows of weight 0. A warning is given if the
        coefficients follow such rows and the other rows contradict them. None for the convex losses, and with fewer than 4
        rows for a coefficient, more than 500 features or more than 10 million numbers in X.
    path_ : ndarray of shape (p, 2)
        Radius and held-out loss of each fit of the path.
    outliers_ : ndarray of bool of shape (n_samples,) or (n_samples, n_tasks)
        Which y are farther than 3 sigma from the fit, whatever their weight.
    status_ : str
        How the last fit ended, "converged" if its mapping is at most ``tol``.
    mapping_ : float
        Certified upper bound on the squared gradient mapping of the last fit.
    n_iter_ : int
        Number of steps of the last fit.
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
        loss: str = "welsch",
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
            Features.
        y : array-like of shape (n_samples,) or (n_samples, n_tasks)
            Targets.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows, 0 or more. A row of weight 2 counts as two equal rows, also where rows are held out and where
            sigma is estimated; one of weight 0 as none. None: all are 1.

        Returns
        -------
        RobustLinearRegressor
            The estimator itself.
        """
        X, y = validate_data(
            self, X, y, accept_sparse="csr", dtype=np.float64, multi_output=True, y_numeric=True, ensure_min_samples=2
        )
        choice(self.loss, LOSSES, "loss")
        given, observed = X, np.asarray(y, dtype=float).reshape(len(y), -1)
        weight = row_weights(sample_weight, X)
        there = weight > 0  # a row of weight 0 must not draw a number, as if it were not there
        X, Y = (given, observed) if there.all() else (given[there], observed[there])
        keys = self._keys(X, Y)
        rows, weights = gathered(weight[there], keys)
        middle = median(Y[rows], weights) if self.fit_intercept else np.zeros(Y.shape[1])
        fits = self._fits(X[rows], Y[rows] - middle, weights)
        sigma = None if self.sigma is None else positive(self.sigma, "sigma")

        def partial_fit(interruption: KeyboardInterrupt) -> Self | None:
            partial = self._partial(fits)
            if partial is not None:
                partial.intercept_ = partial.intercept_ + middle
                if y.ndim == 1:
                    partial.coef_, partial.intercept_ = partial.coef_[0], partial.intercept_[0]
            return partial

        with attaching(partial_fit):
            fit, radius, sigma, steps = robust_fit(
                fits,
                lambda: self._split(fits, keys[rows]),
                self.loss,
                self._radius(fits),
                sigma,
                fits.zero(),
                unconstrained=self.constraint == "auto",
            )
        self._settle(fits, fit, steps, radius)
        self.intercept_ = self.intercept_ + middle
        self.sigma_ = spread(fits.errors(fit.x), weights) if self.loss == "squared" else sigma
        errors = given @ self.coef_.T + self.intercept_ - observed
        self.outliers_ = np.abs(errors) > NOT_BELIEVED * self.sigma_
        self._look_at_leverage(fits, fit.x, there, keys, keys[rows])
        share = np.average(self.outliers_.mean(axis=1), weights=weight)
        if share > MANY_OUTLIERS and self.sigma is None and self.radius == "auto":
            warnings.warn(
                f"{share:.0%} of the targets are more than 3 sigma_ ({self.sigma_:.3g}) from the fit: it may not have found the "
                "structure of most rows. Look at outliers_, or use loss='huber'.",
                UserWarning,
                stacklevel=2,
            )
        if y.ndim == 1:
            self.coef_, self.intercept_, self.outliers_ = self.coef_[0], self.intercept_[0], self.outliers_[:, 0]
        return self

    def _look_at_leverage(
        self, fits: Fits, W: np.ndarray, there: np.ndarray, keys: np.ndarray, fitted: np.ndarray
    ) -> None:
        """Set ``leverage_``, and warn where the coefficients rest on leverage points that the other rows contradict."""
        A, self.leverage_ = fits.design.A, None
        if self.loss in CONVEX or not suits(*A.shape) or A.shape[0] * A.shape[1] > MOST_NUMBERS:
            return
        leverage, decided = decided_by_leverage(dense(A), fits.Y, W, self.sigma_, fits.weights)
        self.leverage_ = np.zeros(len(there), dtype=bool)
        self.leverage_[there] = np.isin(keys, fitted[leverage])
        if decided:
            warnings.warn(
                f"The coefficients follow {counted(decided, 'row')} with extreme features (see leverage_), and the rows with "
                "ordinary features contradict them: check these rows, or fit without them.",
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

    .. math:: \min_{|W| \le r,\, b} \; \frac1n \sum_i \sum_c \varphi(w_c'x_i + b_c, y_{ic}), \quad y_{ic} = \pm 1

    The sigmoid loss 1 / (1 + exp(y z)) is a smooth count of the mistakes: a mislabelled row costs at most 1. With more than two
    classes each is fitted against the rest, with the coefficients of all of them in one ball.

    Parameters
    ----------
    loss : {"sigmoid", "logistic"}, default "sigmoid"
        Loss phi. Only the logistic loss, which is convex, has probabilities: ``predict_proba`` exists for it alone.
    constraint : {"l2", "l1", "group", "nuclear"}, default "l2"
        Norm of the ball, as in :class:`RobustLinearRegressor`.
    radius : float or "auto", default "auto"
        Radius r of the ball. "auto": the best on held-out rows along a path of radii.
    groups : array-like of shape (n_features,), default None
        Label of the group of each feature, for constraint="group". None: every feature is a group.
    fit_intercept : bool, default True
        Whether the model has intercepts b, which are not in the ball.
    scale : bool, default True
        Divide each feature by its standard deviation (a sparse one by its largest absolute value) before the fit. The ball and
        its radius are those of the scaled coefficients; ``coef_`` is in the units of the features as given.
    tol : float, default 1e-6
        A fit ends when the squared gradient mapping is certified to be at most this, in units in which X has scale 1.
    max_iter : int, default 2000
        Maximum number of steps of each fit.
    random_state : int, RandomState instance or None, default 0
        Decides which rows are held out.
    class_weight : dict, "balanced" or None, default None
        Weights of the classes, by which those of their rows are multiplied; a class that a dict does not name has weight 1.
        "balanced": in inverse proportion to the weight that the rows of a class have together.

    Attributes
    ----------
    classes_ : ndarray of shape (n_classes,)
        Sorted class labels.
    coef_ : ndarray of shape (1, n_features) or (n_classes, n_features)
        Coefficients w; one row if there are two classes.
    intercept_ : ndarray of shape (1,) or (n_classes,)
        Intercepts b.
    radius_ : float
        Radius of the ball, as given or found.
    path_ : ndarray of shape (p, 2)
        Radius and held-out loss of each fit of the path.
    status_ : str
        How the last fit ended, "converged" if its mapping is at most ``tol``.
    mapping_ : float
        Certified upper bound on the squared gradient mapping of the last fit.
    n_iter_ : int
        Number of steps of the last fit.
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
        loss: str = "sigmoid",
        *,
        constraint: str | None = "l2",
        radius: float | str = "auto",
        groups: Any = None,
        fit_intercept: bool = True,
        scale: bool = True,
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
            Features.
        y : array-like of shape (n_samples,)
            Class labels.
        sample_weight : array-like of shape (n_samples,), default None
            Weights of the rows, 0 or more. A row of weight 2 counts as two equal rows, one of weight 0 as none; a class all of
            whose rows have weight 0 is not known. None: all are 1.

        Returns
        -------
        SigmoidClassifier
            The estimator itself.
        """
        X, y = validate_data(self, X, y, accept_sparse="csr", dtype=np.float64, ensure_min_samples=2)
        check_classification_targets(y)
        loss: Loss = Sigmoid() if choice(self.loss, ("sigmoid", "logistic"), "loss") == "sigmoid" else Logistic()
        if self.constraint is None:
            raise ValueError(
                "Without a constraint separable classes have no best coefficients: give one, such as 'l2'."
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
        of_class = of_classes(self.class_weight, self.classes_, number, given)
        rows, weights = gathered(row_weights(given * of_class[number], X), keys)
        fits = self._fits(X[rows], Y[rows], weights)
        radius, start, steps = self._radius(fits), fits.zero(), []
        with attaching(lambda interruption: self._partial(fits)):
            if radius == "auto":
                steps = self._path(*self._split(fits, keys[rows]), loss)
                radius, start = chosen(steps).radius, chosen(steps).fit.x
            elif self.loss == "sigmoid":
                start = fits.at(Logistic(), radius, start).x
            fit = fits.at(loss, radius, start)
        self._settle(fits, fit, steps, radius)
        return self

    def _path(self, train: Fits, held: Fits, loss: Loss) -> list[Step]:
        """Each radius from the logistic loss's fit, which has no bad minima."""
        convex = train.zero()

        def fit(radius: float, _: np.ndarray) -> tuple[Fit, float]:
            nonlocal convex
            found = train.at(Logistic(), radius, convex)
            convex = found.x
            if self.loss == "sigmoid":
                found = train.at(loss, radius, convex)
            losses = loss.value(held.design.A @ found.x, held.Y).sum(axis=1)
            return found, float(np.average(losses, weights=held.weights))

        return refined(path(rising(train.first_radius(1.0)), fit, convex), fit)

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        (classes,) = self.classes_.shape
        tasks = 1 if classes == 2 else classes
        return super()._shapes() | {"coef_": (tasks, self.n_features_in_), "intercept_": (tasks,)}

    def decision_function(self, X: Any) -> np.ndarray:
        """Compute w'x + b for each row, which is positive for a class and negative for the rest.

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

        With more than two classes, these are the probabilities of each against the rest, divided by their sum.

        Parameters
        ----------
        X : array-like or sparse matrix of shape (n_samples, n_features)
            Features.

        Returns
        -------
        ndarray of shape (n_samples, n_classes)
            In the order of ``classes_``.
        """
        chances = expit(self.decision_function(X))
        if chances.ndim == 1:
            return np.column_stack([1 - chances, chances])
        return chances / chances.sum(axis=1, keepdims=True)
