"""The estimator `RobustCompletion`, which completes a matrix with missing entries and outliers."""

from __future__ import annotations

from dataclasses import replace
from typing import Any, Self

import numpy as np
from sklearn.base import BaseEstimator, OneToOneFeatureMixin, TransformerMixin, clone
from sklearn.utils.validation import check_is_fitted, validate_data

from condgrad import checks, kernels
from condgrad.learn.base import all_or_nothing, attach_partial_fit, seed_of, unfitted_copy
from condgrad.learn.completion import entries, storage
from condgrad.learn.completion.biases import Biases
from condgrad.learn.completion.choice import average_all, choose
from condgrad.learn.completion.coarse import MAX_SEARCHED_ENTRIES, choose_on_sample
from condgrad.learn.completion.consensus import refit_by_consensus
from condgrad.learn.completion.entries import Entries
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import InMemory, Observed
from condgrad.learn.completion.path import REDESCENDING_LOSSES, STEPS_PER_ROUND, Fit
from condgrad.learn.completion.prediction import FLOATS, SPARSE_FORMATS, Predicting
from condgrad.learn.completion.robust_scale import AUTO, loss_or_auto
from condgrad.learn.completion.table_labels import append_labels, labels_of, match_labels, named_by, renumber_new_rows
from condgrad.learn.completion.tensor_view import fit_view, require_periods
from condgrad.learn.progress import ProgressReporter
from condgrad.objectives import Completion
from condgrad.objectives.losses import check_loss
from condgrad.points import LowRank
from condgrad.runtime.cache import Cache, caching

MAX_SINGLE_THREAD_ENTRIES = 500_000
"""Fits with fewer entries use one thread, because each pass over the entries is too short for more threads to save time."""


class RobustCompletion(Predicting, storage.StoredCompletion, OneToOneFeatureMixin, TransformerMixin, BaseEstimator):
    r"""Complete a matrix by mean + row bias + column bias + a low-rank matrix, fitted with a robust loss.

    .. math:: \min_{b, \|X\|_* \le r} \sum_{(i, j)} \phi(\mu + b_i + c_j + X_{ij} - Y_{ij})

    The sum is over the observed entries. A tenth of the entries is held out. The radius r, the scale of the loss and, by default,
    the loss itself are chosen by the errors on the held-out entries. The squared loss and Huber's loss are tried first, then the
    smoothed l0 (Welsch) loss, which ignores large errors. The Welsch loss is used only if it reduces the held-out errors. The
    chosen model is averaged over its posterior distribution if this reduces the held-out errors further. It is then fitted to all
    entries.

    Parameters
    ----------
    loss : {"auto", "welsch", "smoothed-l0", "geman-mcclure", "cauchy", "huber", "squared"} or Loss, default "auto"
        Loss phi of the errors. "auto": squared, huber or welsch, whichever is best on held-out entries; see ``candidates_``.
        "smoothed-l0" is another name of "welsch". A loss object such as ``cg.Welsch(8.0)`` has its own width.
    sigma : float or "auto", default "auto"
        Scale (standard deviation) of the errors of inliers, in units of the data. "auto": estimated on held-out entries.
    radius : float or "auto", default "auto"
        Radius r of the nuclear-norm ball. "auto": chosen on held-out entries.
    biases : bool or "columns", default True
        Whether the model has a mean and biases of rows and columns. "columns": a mean and column biases only, as in PCA.
    average : bool or "auto", default "auto"
        Whether the model is an average over draws from its posterior distribution instead of a single fit in a ball. Draws shrink
        strong components less, and their average has a smaller variance. "auto": the average is used if its held-out errors are
        smaller. With "auto", averages are not tried if a loss other than "auto", a radius, ``certify`` or ``client`` is given, or
        if there are more than 2 million entries.
    implicit : bool or "auto", default "auto"
        Whether the average uses the pattern of the observed entries to predict the factors of rows and columns. (In ratings, for
        example, the choice of the rated items tells something about the rater.) "auto": only if this reduces the held-out errors.
    period : int, default None
        Number of columns in a period, such as 24 for hourly readings. Rows are then sensors, and columns are times, in order. The
        table is also completed as a tensor of rows x periods x times. The three unfoldings of the tensor have low rank. The
        tensor is also smooth in time, if smoothness reduces the held-out errors. This tensor view is used if its held-out errors
        are smaller than those of the matrix; see ``view_``. The number of columns must be a multiple of ``period``. In a list of
        entries, column names must be whole numbers without gaps.
    clip : bool, default True
        Whether predictions are clipped to the range of the data, if this range looks like a hard limit, as for ratings: at least
        0.1 % of the inliers equal the minimum (or the maximum).
    tol : float, default 1e-3
        The last fit ends when a round of two steps reduces the loss by less than this share.
    max_steps : int, default 40
        Maximum number of steps of the last fit.
    certify : float, default None
        Tolerance on the squared norm of the gradient mapping. The last fit continues until the tolerance is certified to be met;
        see ``result_.certificate``. By default the fit has no certificate, because it is then several times as fast.
    warm_start : bool, default False
        Whether each fit starts from the model, radius and sigma of the previous fit.
    random_state : int, RandomState instance or None, default None
        Seed that determines which entries are held out. None is the same as 0, so that fits are reproducible.
    verbose : bool, default False
        Whether progress lines are printed on stderr for fits that take more than two seconds.
    client : distributed.Client, default None
        Client of a Dask cluster, whose workers hold the entries during the fit. By default the entries are in memory. With a
        client, the model is a single fit, as with ``average=False``, and ``warm_start``, ``partial_fit`` and ``period`` are
        refused.

    Attributes
    ----------
    radius_ : float
        Radius of the nuclear-norm ball, as given or chosen. For an average, a tensor view or unshrunk singular values, it is the
        sum of the singular values.
    sigma_ : float
        Scale of the errors of inliers, as given or estimated.
    loss_ : str
        Name of the loss, as given or chosen.
    candidates_ : list of (loss, averaged, adaptive, implicit, evidence, rmse, mae, median_error, pursued, tensor)
        The candidates (losses, averages and tensor views), in the order in which they were compared. ``evidence`` is a sum of two
        t statistics: how clearly a candidate is better on held-out entries than the best candidate before it. ``pursued`` is True
        for a fit that started from a principal component pursuit. Such a fit is compared by its median error, the number of its
        inliers or its rank instead. The list is empty if nothing was compared.
    averaging_ : (rank, implicit, adaptive, radius) or None
        Settings of the average over the posterior; None for a single fit. ``radius`` is the radius of the fit from which the
        sampler started.
    view_ : (period, loss, sigma, truncations, smoothness, radius) or None
        Settings of the tensor view: the loss and the scale by which outliers are recognised, the shares of the singular values of
        each unfolding that are not shrunk (completions with several shares are averaged), the weight of the temporal smoothness,
        and the radius of the matrix fit from which the first outliers are found. None without ``period``, or if the matrix fit
        predicts held-out entries better.
    path_ : list of (radius, error, rank, loss, free, rmse, mae, median_error, averaged)
        One record for each fit of the path. These fits do not use the held-out entries. Radii are compared by ``error``, a root
        mean square error in which each held-out entry has its inlier weight under ``loss``. ``rmse``, ``mae`` and
        ``median_error`` are errors at all held-out entries. ``free`` is True if the singular values are unshrunk, that is, not
        limited by the ball. ``averaged`` is True in the last record if the model is an average. The list is empty if both a
        radius and a loss object are given.
    best_index_ : int or None
        Index in ``path_`` of the fit whose radius was chosen; None if nothing was held out.
    validation_rmse_, validation_mae_ : float or None
        Root mean squared error and mean absolute error at the held-out entries, including outliers. Predictions are clipped as in
        ``predict``. The errors are those of the fit ``path_[best_index_]``, which does not use the held-out entries. (The model
        itself is then refitted to all entries.) None if nothing was held out. After ``partial_fit``, or with ``warm_start``, the
        errors are those of the earlier fit that chose the radius.
    validation_median_error_ : float or None
        Median absolute error of the same predictions. It is a typical error, which outliers hardly change.
    n_validation_ : int
        Number of entries that were held out.
    losses_ : list of float
        Loss on all entries after each round of the last fit.
    singular_values_ : ndarray of shape (k,)
        Singular values of the low-rank part ``row_factors_ @ components_``.
    row_factors_ : ndarray of shape (m, k)
        Left singular vectors times singular values.
    components_ : ndarray of shape (k, n)
        Right singular vectors, as rows, as in PCA.
    mean_ : float
        Mean of the model.
    row_biases_ : ndarray of shape (m,)
        Bias of each row.
    col_biases_ : ndarray of shape (n,)
        Bias of each column.
    outliers_ : record array of (row, column, value, predicted, score)
        Entries with an inlier weight below 0.5, in decreasing order of their errors. Rows and columns are given by name if they
        have names. The score is 1 minus the inlier weight phi'(t)/(t phi''(0)) of the error t. With a client, at most a million
        outliers are listed.
    n_outliers_ : int
        Number of all outliers, also of those that are not listed.
    range_ : tuple of (float, float)
        Range to which predictions are clipped; infinite if the data have no hard limit.
    multiplier_ : float
        Lagrange multiplier of the constraint on the nuclear norm. It is used to fold in new rows.
    result_ : Result
        Result of the last run of the solver, with the trace, the counts, the number of steps and the times of all runs of the
        fit. The column ``phase`` of the trace has the radius or the rank of a fit on the path, and then "all entries" and
        "certificate". None for a model that was loaded from a file.
    row_ids_, col_ids_ : ndarray or None
        Sorted names of rows and columns; None if the entries have no names.
    index_, columns_ : pandas.Index or None
        Row and column labels if the model was fitted to a wide DataFrame; else None.

    Examples
    --------
    >>> import numpy as np
    >>> rng = np.random.default_rng(0)
    >>> truth = rng.normal(size=(60, 2)) @ rng.normal(size=(2, 40))
    >>> holes = np.where(rng.random(truth.shape) < 0.6, truth, np.nan)
    >>> holes[:3, :3] = 50.0                                              # wrong, and far off
    >>> model = RobustCompletion().fit(holes)
    >>> bool(np.abs(model.fill() - truth).max() < 0.1), len(model.outliers_)
    (True, 9)
    """

    def __init__(
        self,
        loss: Any = "auto",
        *,
        sigma: float | str = "auto",
        radius: float | str = "auto",
        biases: bool | str = True,
        average: bool | str = "auto",
        implicit: bool | str = "auto",
        period: int | None = None,
        clip: bool = True,
        tol: float = 1e-3,
        max_steps: int = 40,
        certify: float | None = None,
        warm_start: bool = False,
        random_state: Any = None,
        verbose: bool = False,
        client: Any = None,
    ):
        self.loss = loss
        self.sigma = sigma
        self.radius = radius
        self.biases = biases
        self.average = average
        self.implicit = implicit
        self.period = period
        self.clip = clip
        self.tol = tol
        self.max_steps = max_steps
        self.certify = certify
        self.warm_start = warm_start
        self.random_state = random_state
        self.verbose = verbose
        self.client = client

    # ------------------------------------------------------------------------------------------------------------ fit

    @all_or_nothing
    def fit(self, X: Any, y: Any = None) -> Self:
        """Fit the model to the observed entries.

        Parameters
        ----------
        X : array-like, sparse matrix, DataFrame, Observations, or tuple (rows, columns, values)
            The entries, in one of these forms:

            - A matrix of shape (m, n) in which NaN means missing.
            - A scipy sparse matrix, whose stored entries (also zeros) are observed.
            - A DataFrame with the columns row, column and value, or a tuple of these three. If exactly one column has a known
              name for each of the three, such as userId, movieId and rating, other columns are ignored. Any other DataFrame is a
              matrix. Its index and columns then name rows and columns in ``predict``, ``fill``, ``outliers_``, ``recommend``,
              ``partial_fit`` and ``fold_in``.
            - The result of ``condgrad.data.load``.
            - An array of pairs (row, column) of shape (n, 2), with the values y.
            - With a client: a Loader, an EntryFolder or a ShardedCompletion of ``condgrad.distributed``, whose entries this
              process does not hold.

            If the values are float32, the large arrays of the fit are float32 too, and the fit takes less memory. The fitted
            attributes are float64.
        y : array-like of shape (n,), default None
            Values of the pairs X. Ignored if X is a matrix.

        Returns
        -------
        RobustCompletion
            The estimator itself.

        Raises
        ------
        ValueError
            If a parameter is invalid, there is no entry, or an entry is given twice, is not finite or has a magnitude
            above 1e100. The estimator is then unchanged.
        """
        if self.client is not None:
            return self._fit_on_workers(X, y)
        continued = self.warm_start and hasattr(self, "singular_values_")
        if continued:
            given = self._read(X, y, reset=True)
            return self._fit(given, self._extended_model(given))
        return self._fit(self._read(X, y, reset=True), None)  # no name here: the places are freed once they are sorted

    @all_or_nothing
    def partial_fit(self, X: Any, y: Any = None) -> Self:
        """Continue the fit with more entries. If an entry is known already, its value is replaced.

        Sigma and the radius of the earlier fit are kept. If the singular values are unshrunk, the rank is kept instead of the
        radius.

        Parameters
        ----------
        X : as in ``fit``
            The entries, each given once.
        y : array-like of shape (n,), default None
            Values of the entries, if X has pairs.

        Returns
        -------
        RobustCompletion
            The estimator itself.

        Raises
        ------
        ValueError
            As in ``fit``. Also if X has names and the model was fitted to a matrix without names.
        """
        if self.client is not None:
            raise ValueError("partial_fit needs the entries in memory, but a client was given: fit all entries again.")
        if not hasattr(self, "singular_values_"):
            return self.fit(X, y)
        before = self._observed("fit all entries again")
        seen = before.pattern
        known = Entries(seen.rows, seen.cols, before.values, seen.shape, self.row_ids_, self.col_ids_)
        new = self._read(X, y, reset=False).require_unique()
        given = replace(entries.merge(known, new), index=new.index, columns=new.columns)
        return self._fit(given, self._extended_model(given))

    def _fit_on_workers(self, X: Any, y: Any) -> Self:
        """Fit the model to entries that are held by the workers of the client."""
        from condgrad.learn.completion.sharded import OnWorkers, names_of, objective_of

        memory = ("average", "implicit", "warm_start", "period")
        refused = [name for name in memory if getattr(self, name) not in (False, None, "auto")]
        if refused:
            raise ValueError(
                f"{refused[0]}={getattr(self, refused[0])!r} needs the entries in memory, but a client was given: leave one of "
                "them out."
            )
        source = X if hasattr(X, "open") or hasattr(X, "pattern") else self._read(X, y, reset=True)
        objective = objective_of(source, self.client)
        if source is X:
            given = names_of(objective)
            self.n_features_in_ = given.shape[1] if given.row_ids is None else 3
            self.__dict__.pop("feature_names_in_", None)
        else:
            given = source
        try:
            return self._fit(given, None, objective, OnWorkers())
        except BaseException:  # such as Ctrl-C: free the workers' memory, because the traceback refers to the entries
            objective.pattern.cluster.free()
            raise

    def _fit(self, given: Entries, last: Model | None, sharded: Any = None, observed: Observed | None = None) -> Self:
        """Validate the parameters and fit the entries, starting from the model ``last`` or along a path of radii.

        If the entries are on a cluster, ``sharded`` is their objective, ``observed`` has the operations on this objective, and
        ``given`` has only the names.
        """
        sigma = None if self._is_auto(self.sigma, "sigma") else checks.positive(self.sigma, "sigma")
        radius = np.inf if self._is_auto(self.radius, "radius") else checks.positive(self.radius, "radius")
        steps, tol = checks.whole(self.max_steps, "max_steps"), checks.positive(self.tol, "tol")
        certify = None if self.certify is None else checks.positive(self.certify, "certify")
        if not isinstance(self.clip, bool | np.bool_):
            raise ValueError(f"clip must be True or False, but got {self.clip!r}: the range is found from the entries.")
        loss = loss_or_auto(self.loss) if isinstance(self.loss, str) else self.loss
        average, implicit = self._switch("average"), self._switch("implicit")
        if average and (certify is not None or not isinstance(loss, str)):
            raise ValueError(
                f"average=True was given with {'certify' if certify is not None else 'a loss object'}: leave one of them out. "
                "Only a single fit can be certified, and an average adapts the width of its loss."
            )
        if self.period is not None:
            require_periods(checks.whole(self.period, "period"), given)
            if certify is not None or not isinstance(loss, str):
                raise ValueError(
                    f"period was given with {'certify' if certify is not None else 'a loss object'}: leave one of them out. Only "
                    "a fit in a ball can be certified, and the tensor view chooses the scale of a named loss."
                )
        if average is None and (loss != AUTO or np.isfinite(radius) or certify is not None or sharded is not None):
            average = False
        if not isinstance(loss, str):
            check_loss(loss, np.ones(1))
            if loss.labels != "real":
                raise ValueError(
                    f"{type(loss).__name__} is a loss for labels -1 and 1: give a loss for real values, such as 'welsch'."
                )
        try:
            all_entries: Any = sharded or Completion(
                given.rows, given.cols, given.require_magnitude().values, given.shape
            )
        except ValueError:
            given.require_unique()  # its message has names, not positions
            raise
        given = given.without_entries()  # frees memory
        rng = np.random.default_rng(seed_of(self.random_state))
        fit = Fit(
            all_entries,
            loss,
            sigma,
            self._biases(),
            rng,
            ProgressReporter(bool(self.verbose)),
            clip=bool(self.clip),
            entries=observed or InMemory(),
            average=average,
            implicit=implicit,
            period=self.period,
        )
        limit = 1 if all_entries.pattern.size < MAX_SINGLE_THREAD_ENTRIES else None
        partial_fit = attach_partial_fit(lambda interruption: self._partial_estimator(fit, given))
        with kernels.limit_threads(limit), partial_fit, caching(Cache()):
            if last is not None:
                model, fit.path = last, list(self.path_)
                fit.best_index, fit.n_held_out = self.best_index_, self.n_validation_
                fit.candidates, fit.averaging, fit.view = self.candidates_, self.averaging_, self.view_
                fit.loss = self.loss_ if loss == AUTO else loss
                fit.min_sigma = fit.smallest_scale()
            else:
                known = np.isfinite(radius) and not isinstance(loss, str)
                follow = choose if loss == AUTO or average or self.period else Fit.fit_up_to if known else Fit.follow
                large = all_entries.pattern.size > MAX_SEARCHED_ENTRIES and sharded is None and np.isinf(radius)
                if follow is choose and large and not average and self.period is None:
                    fit.average = False
                    model = choose_on_sample(fit)
                else:
                    model = follow(fit, radius)
            # one round is enough for an average, because its sampler starts from the last draw of the sampler on the path
            steps = steps if fit.averaging is None else min(steps, STEPS_PER_ROUND)
            model = fit.finish(model if model.radius else replace(model, radius=fit.path[0].radius), steps, tol)
            if fit.averaging is not None:
                model = average_all(fit, model)
            robust = loss == AUTO or loss in REDESCENDING_LOSSES
            if robust and fit.loss != "squared" and np.isinf(radius) and certify is None:
                model = refit_by_consensus(all_entries, model, fit.biases, fit.entries, rng)
            if fit.view is not None:
                fit.view = fit.view._replace(radius=model.radius)
                model = fit_view(all_entries, model, fit.view)
            if certify is not None:
                model = fit.certify(model, certify, steps)
        self._set_results(model, fit, given)
        fit.report(f"fitted, rank {len(self.singular_values_)}, radius {self.radius_:.4g}, sigma {self.sigma_:.4g}", 0)
        return self

    def _partial_estimator(self, fit: Fit, given: Entries) -> Self | None:
        """Copy of an interrupted estimator with the best model so far; None if there is no model yet."""
        if fit.partial_model is None:
            return None
        partial, model = unfitted_copy(self), fit.partial_model
        if model.rank is not None:  # singular values are unshrunk
            model = replace(model, radius=float(model.x.svd()[1].sum()))
        partial._set_results(model, fit, given)
        return partial

    def _set_results(self, model: Model, fit: Fit, given: Entries) -> None:
        """Set the fitted attributes."""
        self.row_ids_, self.col_ids_ = given.row_ids, given.col_ids
        self.index_, self.columns_ = given.index, given.columns
        self.losses_, self.candidates_, self.averaging_ = fit.losses, fit.candidates, fit.averaging
        self.view_ = fit.view
        self.loss_ = fit.loss if isinstance(fit.loss, str) else type(fit.loss).__name__
        self.best_index_, self.n_validation_ = fit.best_index, fit.n_held_out
        self.path_, self.radius_, self.sigma_, self.result_ = fit.path, model.radius, model.sigma, model.result
        left, self.singular_values_, right = model.x.svd()
        self.row_factors_, self.components_ = left * self.singular_values_, right.T
        self.mean_, self.row_biases_, self.col_biases_ = model.biases.mean, model.biases.rows, model.biases.cols
        self._loss, self._rank = model.loss, model.rank
        kept = isinstance(fit.all_entries, Completion)
        self._seen = fit.all_entries.replaced(loss=model.loss) if kept else None
        self.multiplier_ = self._multiplier(fit.target(fit.all_entries, model), model.x)
        self.range_ = fit.entries.inlier_range(fit.all_entries, model)
        found = fit.entries.outliers(fit.all_entries, model)
        self.n_outliers_, values = found.number, found.values.astype(float)
        self._outlier_places = found.rows, found.cols
        rows = entries.named(self._outlier_places[0], named_by(self.row_ids_, self.index_))
        cols = entries.named(self._outlier_places[1], named_by(self.col_ids_, self.columns_))
        self.outliers_ = storage.records(rows, cols, values, values - found.residuals, 1 - found.weights)

    @property
    def validation_rmse_(self) -> float | None:
        """Root mean squared error on held-out entries, outliers included."""
        return None if self.best_index_ is None else self.path_[self.best_index_].rmse

    @property
    def validation_mae_(self) -> float | None:
        """Mean absolute error on held-out entries, outliers included."""
        return None if self.best_index_ is None else self.path_[self.best_index_].mae

    @property
    def validation_median_error_(self) -> float | None:
        """Median absolute error on held-out entries. Outliers hardly change it."""
        return None if self.best_index_ is None else self.path_[self.best_index_].median_error

    def _multiplier(self, residual: Any, x: LowRank) -> float:
        """Lagrange multiplier of the constraint on the nuclear norm at x."""
        norm = float(self.singular_values_.sum())
        return max(-residual.grad(x).inner(x) / norm, 0.0) if norm else 0.0

    def _biases(self) -> str | None:
        if isinstance(self.biases, str):
            return checks.choice(self.biases, ("columns",), "choice of biases")
        return "both" if self.biases else None

    def _switch(self, name: str) -> bool | None:
        """The value of a parameter that is True, False or "auto". "auto" is returned as None."""
        value = getattr(self, name)
        if isinstance(value, bool | np.bool_):
            return bool(value)
        if isinstance(value, str) and value == "auto":
            return None
        raise ValueError(f"{name} is {value!r}: give True, False or 'auto'.")

    def _is_auto(self, value: Any, what: str) -> bool:
        """Whether a parameter is "auto". Raises ValueError for any other string."""
        if isinstance(value, str) and value != "auto":
            raise ValueError(f"{what} is {value!r}: give 'auto' or a number above 0.")
        return isinstance(value, str)

    def _read(self, X: Any, y: Any, reset: bool) -> Entries:
        """Read the entries of X and y. ``reset`` is True at the beginning of a fit. A matrix is validated by scikit-learn."""
        X = entries.positions_as_matrix(X)
        if entries.is_entry_list(X, y):
            if not reset and self.row_ids_ is None:
                raise ValueError(
                    "The model was fitted to a matrix, which has no names: give a matrix with as many columns."
                )
            if reset:
                self.n_features_in_ = 3 if y is None else 2
                self.__dict__.pop("feature_names_in_", None)  # from an earlier fit to a matrix
            return entries.from_list(X, y).require_nonempty()
        index, columns = labels_of(X)
        X = validate_data(
            self, X, reset=reset, accept_sparse=SPARSE_FORMATS, dtype=FLOATS, ensure_all_finite="allow-nan"
        )
        given = entries.from_matrix(X).require_nonempty()
        return replace(given, index=index, columns=columns) if reset else self._align_rows(given, index, columns)

    def _align_rows(self, given: Entries, index: Any, columns: Any) -> Entries:
        """Number the rows of a matrix as in the fitted matrix: by label if a DataFrame was fitted, else by position."""
        if self.index_ is None:
            return given
        if index is None:
            if given.shape[0] > len(self.index_):
                raise ValueError(
                    f"The matrix has {given.shape[0]} rows, but the DataFrame that was fitted has {len(self.index_)}: give a "
                    "DataFrame, whose index names the rows."
                )
            return replace(given, index=self.index_, columns=self.columns_)
        if not columns.equals(self.columns_):
            raise ValueError(
                "The columns are not those of the DataFrame that was fitted: give the same ones, in the same order."
            )
        if index.equals(self.index_):
            return replace(given, index=index, columns=columns)
        rows, places = append_labels(self.index_, index)
        return replace(given, rows=places[given.rows], shape=(len(rows), len(columns)), index=rows, columns=columns)

    def _extended_model(self, given: Entries) -> Model:
        """Extend the fitted model to the rows and columns of these entries. New rows are folded in; new columns get factors 0."""
        m, n = given.shape
        row_ids = match_labels(given.index, self.index_, m) if given.row_ids is None else given.row_ids
        col_ids = match_labels(given.columns, self.columns_, n) if given.col_ids is None else given.col_ids
        rows = entries.positions(row_ids, self.row_ids_, len(self.row_biases_))
        cols = entries.positions(col_ids, self.col_ids_, len(self.col_biases_))
        new, known_col = np.flatnonzero(rows < 0), cols >= 0
        factors, row_biases = self.row_factors_[rows], self.row_biases_[rows]
        of_new_rows = np.isin(given.rows, new) & known_col[given.cols]
        part = (np.searchsorted(new, given.rows[of_new_rows]), cols[given.cols[of_new_rows]], given.values[of_new_rows])
        row_biases[new], factors[new] = self._fold_in(*part, len(new))
        x = LowRank(factors, self.components_.T[cols] * known_col[:, None])
        biases, radius = Biases(self.mean_, row_biases, self.col_biases_[cols] * known_col), self.radius_
        if (
            plain := self.averaging_ or self.view_
        ) is not None:  # return to the ball, or to the rank, of the single fit
            left, values, right = x.svd()
            kept, radius = self._rank or len(values), plain.radius
            values = values[:kept] * min(1.0, radius / max(float(values[:kept].sum()), 1e-300))
            x = LowRank(left[:, :kept] * values, right[:, :kept])
        return Model(x, biases, self._loss, self.sigma_, radius, self._rank)

    def fold_in(self, X: Any, y: Any = None) -> Self:
        """Add new rows without refitting the model. The factors of each row come from a robust regression on the components.

        Parameters
        ----------
        X : as in ``fit``
            The new rows. The rows of a matrix are numbered after the known rows. Row names, and the labels of a DataFrame, must
            be new. Columns must be known.
        y : array-like of shape (n,), default None
            Values of the entries, if X has pairs.

        Returns
        -------
        RobustCompletion
            The estimator itself.

        Raises
        ------
        ValueError
            If a row is known already, or a column is not.
        """
        check_is_fitted(self)
        index = None
        if self.index_ is not None:
            if labels_of(X)[0] is None:
                raise ValueError("The model was fitted to a DataFrame: give new rows as one, whose index names them.")
            given = self._read(renumber_new_rows(self.index_, X), None, reset=False)
            if (known := given.rows < len(self.index_)).any():
                label = self.index_[given.rows[known][0]]
                raise ValueError(f"Row {label!r} is known already: use partial_fit for its new entries.")
            index, m = given.index, len(self.index_)
            given = replace(given, rows=given.rows - m, shape=(len(index) - m, given.shape[1]))
        else:
            given = self._read(X, y, reset=False).require_unique()
        if given.row_ids is not None and given.col_ids is not None:
            known = entries.positions(given.row_ids, self.row_ids_, 0) >= 0
            if known.any():
                raise ValueError(
                    f"Row {given.row_ids[known].tolist()[0]!r} is known already: use partial_fit for its new entries."
                )
            cols = entries.positions(given.col_ids, self.col_ids_, 0)
            if (cols < 0).any():
                raise ValueError(
                    f"Column {given.col_ids[cols < 0].tolist()[0]!r} is not known: folding in adds rows only."
                )
            given = replace(given, cols=cols[given.cols], shape=(given.shape[0], len(self.col_biases_)))
        new_biases, new_factors = self._fold_in(given.rows, given.cols, given.values, given.shape[0])
        seen = self._observed("give new rows to transform")
        old, m = seen.pattern, len(self.row_biases_)
        biases, factors = np.append(self.row_biases_, new_biases), np.concatenate([self.row_factors_, new_factors])
        rows, cols = np.append(old.rows, given.rows + m), np.append(old.cols, given.cols)
        values, row_ids = np.append(seen.values, given.values), self.row_ids_
        if row_ids is not None and given.row_ids is not None:
            ids = np.append(row_ids, given.row_ids)
            order = np.argsort(ids, kind="stable")
            row_ids, biases, factors, rows = ids[order], biases[order], factors[order], np.argsort(order)[rows]
        self._seen = Completion(rows, cols, values, (len(biases), len(self.col_biases_)), self._loss)
        self.row_biases_, self.row_factors_, self.row_ids_, self.index_ = biases, factors, row_ids, index
        return self

    def __sklearn_clone__(self) -> Self:
        given = self.get_params(deep=False)
        client = given.pop("client")  # a connection, which can't be copied
        copies = {name: clone(value, safe=False) for name, value in given.items()}
        return type(self)(**copies, client=client)

    def __sklearn_tags__(self) -> Any:
        tags = super().__sklearn_tags__()
        tags.input_tags.sparse = True
        tags.input_tags.allow_nan = True
        return tags
