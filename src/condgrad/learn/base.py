"""Helpers of all estimators. A fit that fails does not change the estimator. An interrupted fit keeps its partial result."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import wraps
from numbers import Integral
from typing import Any, Concatenate, ParamSpec, TypeVar

from sklearn.base import clone
from sklearn.utils import check_random_state

from condgrad.runtime.interruption import Terminated, attach

S = TypeVar("S")
P = ParamSpec("P")
T = TypeVar("T")


def all_or_nothing(method: Callable[Concatenate[S, P], T]) -> Callable[Concatenate[S, P], T]:
    """Decorate a method of an estimator: after an exception, the estimator has the same attributes as before the call."""

    @wraps(method)
    def guarded(self: S, /, *args: P.args, **kwargs: P.kwargs) -> T:
        before = dict(vars(self))
        try:
            return method(self, *args, **kwargs)
        except BaseException:
            vars(self).clear()
            vars(self).update(before)
            raise

    return guarded


@contextmanager
def attach_partial_fit(partial_fit: Callable[[KeyboardInterrupt], Any]) -> Iterator[None]:
    """Context that attaches the result of ``partial_fit`` to a KeyboardInterrupt that is raised in the block.

    If ``partial_fit`` is interrupted too, None is attached. After SIGTERM nothing is attached, because the process ends.
    """
    try:
        yield
    except Terminated:
        raise
    except KeyboardInterrupt as interruption:
        try:
            found = partial_fit(interruption)
        except KeyboardInterrupt:
            found = None
        attach(interruption, partial_fit=found)
        raise


DATA_ATTRIBUTES = ("n_features_in_", "feature_names_in_", "classes_")
"""Names of attributes that are set from the data before the fit."""


def unfitted_copy(estimator: T) -> T:
    """Copy of an estimator, with its parameters and DATA_ATTRIBUTES, but without the results of an earlier fit."""
    copy = clone(estimator)
    vars(copy).update({name: value for name, value in vars(estimator).items() if name in DATA_ATTRIBUTES})
    return copy


def seed_of(random_state: Any) -> int:
    """The seed for a ``random_state``: an integer is returned as it is, None gives 0, and a RandomState draws a number."""
    if random_state is None:
        return 0
    state = check_random_state(random_state)
    return int(random_state) if isinstance(random_state, Integral) else int(state.randint(2**31 - 1))
