"""What the fits of all estimators share: a refused one changes nothing, and a seed is a seed."""

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
    """A method after whose failure the estimator is what it was: half of it would be of the old data, half of the new."""

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
def attaching(partial_fit: Callable[[KeyboardInterrupt], Any]) -> Iterator[None]:
    """Ctrl-C in the block leaves it with ``partial_fit`` attached: None where that is interrupted too.

    After SIGTERM nothing is attached: the process ends.
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


READ = ("n_features_in_", "feature_names_in_", "classes_")
"""What an estimator learns of its data before it fits them."""


def unfitted(estimator: T) -> T:
    """A copy that has read the data of the present fit, and nothing of an earlier one."""
    copy = clone(estimator)
    vars(copy).update({name: value for name, value in vars(estimator).items() if name in READ})
    return copy


def seed_of(random_state: Any) -> int:
    """A whole number is the seed itself, None is 0; of a RandomState the next number."""
    if random_state is None:
        return 0
    state = check_random_state(random_state)
    return int(random_state) if isinstance(random_state, Integral) else int(state.randint(2**31 - 1))
