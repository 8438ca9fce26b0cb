"""Gradient estimators by name, for the option ``estimator``. Their batch sizes and weights suit every method."""

from __future__ import annotations

from collections.abc import Callable
from math import ceil, sqrt
from typing import Any

from condgrad.checks import choice
from condgrad.estimators.clipped import Clipped
from condgrad.estimators.minibatch import Minibatch, growing
from condgrad.estimators.momentum import Momentum
from condgrad.estimators.saga import SAGA
from condgrad.estimators.spider import SPIDER
from condgrad.estimators.svrg import SVRG
from condgrad.estimators.transport import Transport
from condgrad.estimators.zero_sarah import ZeroSARAH
from condgrad.protocols import Estimator, FiniteSum, fits, missing


def _falling(power: float) -> Callable[[int], float]:
    return lambda k: float(k + 8) ** -power


def _root(objective: Any) -> int:
    return ceil(sqrt(objective.n_terms) - 1e-9)


def _cube_root(objective: Any) -> int:
    return max(1, int(objective.n_terms ** (1 / 3) + 1e-9))


ESTIMATORS: dict[str, Callable[[Any], Estimator]] = {
    "minibatch": lambda objective: Minibatch(growing),
    "svrg": lambda objective: SVRG(_cube_root(objective), _cube_root(objective) ** 2),
    "saga": lambda objective: SAGA(_cube_root(objective)),
    "spider": lambda objective: SPIDER(_root(objective), _root(objective)),
    "zero-sarah": lambda objective: ZeroSARAH(_root(objective), _root(objective) / (2 * objective.n_terms)),
    "momentum": lambda objective: Momentum(_falling(1 / 2)),
    "storm": lambda objective: Momentum(_falling(2 / 3), recursive=True),
    "transport": lambda objective: Transport(_falling(4 / 7)),
    "clipped": lambda objective: Clipped(_falling(1 / 2), _falling(-1 / 4)),
}
"""Name of an estimator, and function that builds the estimator for an objective. Weights in step k are powers of k + 8. Sizes are
powers of the number n of terms. SVRG has epochs of n^(1/3) steps and batches of n^(2/3) terms, SAGA has batches of n^(1/3),
SPIDER has epochs and batches of sqrt(n), and ZeroSARAH has batches of sqrt(n)."""

OF_TERMS = ("svrg", "saga", "spider", "zero-sarah")
"""Names of the estimators that need the terms of a finite sum."""


def check_estimator(estimator: Any, what: str) -> None:
    """Check the option ``estimator``: a name of ESTIMATORS, or an object with ``init`` and ``estimate``.

    Raises ValueError for an unknown name, and TypeError for any other object.
    """
    if isinstance(estimator, str):
        choice(estimator, ESTIMATORS, "estimator")
    elif isinstance(estimator, type) or missing(estimator, Estimator):
        raise TypeError(
            f"{what} is {estimator!r}, a name ({', '.join(ESTIMATORS)}) or an estimator such as SPIDER(epoch=5, batch=5) was "
            "expected."
        )


def estimator_for(objective: Any, estimator: str | Estimator) -> Estimator:
    """Return the estimator for this objective: built from its name, or the given estimator itself.

    Parameters
    ----------
    objective : Expectation or FiniteSum
    estimator : str or Estimator
        A name of ESTIMATORS, or an estimator.

    Returns
    -------
    Estimator

    Raises
    ------
    TypeError
        If the objective is not a finite sum, but the estimator takes full gradients of a finite sum or draws different terms of
        it.
    """
    if not fits(objective, FiniteSum):
        given: Any = estimator
        of_terms = estimator in OF_TERMS if isinstance(estimator, str) else isinstance(estimator, ZeroSARAH)
        if of_terms or getattr(given, "sample", 0) is None or getattr(given, "replace", True) is False:
            name = estimator if isinstance(estimator, str) else type(estimator).__name__
            rest = ", ".join(name for name in ESTIMATORS if name not in OF_TERMS)
            raise TypeError(
                f"The estimator {name} needs the terms of a finite sum, {type(objective).__name__} has none: use {rest}, or give "
                "SVRG, SAGA or SPIDER a sample=."
            )
    return ESTIMATORS[estimator](objective) if isinstance(estimator, str) else estimator
