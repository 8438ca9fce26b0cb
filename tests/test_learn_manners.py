"""RobustCompletion with the tools and the checks of scikit-learn."""

from __future__ import annotations

import pickle

import numpy as np
import pytest
from sklearn.base import clone
from sklearn.model_selection import GridSearchCV, KFold, cross_validate
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import parametrize_with_checks
from tests.completions import problem, table

from condgrad.learn import RobustCompletion


def test_it_works_with_the_tools_of_scikit_learn() -> None:
    _, holes = problem(noise=0.1)
    rows, cols, values = table(holes)
    pairs = np.c_[rows, cols]
    folds = KFold(2, shuffle=True, random_state=0)
    scores = cross_validate(RobustCompletion(), pairs, values, cv=folds, scoring="neg_median_absolute_error")
    assert (scores["test_score"] > -0.3).all()
    search = GridSearchCV(RobustCompletion(), {"loss": ["welsch", "huber"]}, cv=2).fit(pairs, values)
    assert search.best_params_["loss"] in ("welsch", "huber")
    scaled = make_pipeline(RobustCompletion(), StandardScaler()).fit_transform(holes, np.zeros(60))
    assert scaled.shape == holes.shape and np.allclose(scaled.mean(axis=0), 0.0)
    assert clone(RobustCompletion(sigma=2.0)).sigma == 2.0
    assert np.array_equal(pickle.loads(pickle.dumps(search.best_estimator_)).predict(pairs), search.predict(pairs))
    again = RobustCompletion(random_state=0).fit(holes)
    assert np.array_equal(again.fill(), RobustCompletion(random_state=0).fit(holes).fill())


@pytest.mark.slow
def test_it_works_in_other_processes() -> None:
    rows, cols, values = table(problem(noise=0.1)[1])
    folds = KFold(2, shuffle=True, random_state=0)
    alone, together = (
        cross_validate(RobustCompletion(), np.c_[rows, cols], values, cv=folds, n_jobs=jobs)["test_score"]
        for jobs in (1, 2)
    )
    assert np.allclose(alone, together)


PAIRS = "predict takes pairs (row, column), not the matrix that fit takes"
NOT_APPLICABLE = dict.fromkeys(
    (
        "check_methods_subset_invariance",
        "check_methods_sample_order_invariance",
        "check_n_features_in_after_fitting",
        "check_estimators_dtypes",
        "check_dtype_object",
        "check_estimator_sparse_array",
        "check_estimator_sparse_matrix",
        "check_estimators_pickle",
        "check_f_contiguous_array_estimator",
        "check_dict_unchanged",
    ),
    PAIRS,
)


@parametrize_with_checks([RobustCompletion()], expected_failed_checks=lambda estimator: NOT_APPLICABLE)
def test_manners(estimator: object, check: object) -> None:
    check(estimator)
