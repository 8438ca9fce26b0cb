"""What the tests of the driver share: small problems, functions that misbehave, a clock that is set by hand, refusals."""

from __future__ import annotations

import re
from collections.abc import Callable
from math import nan
from typing import Any

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver.trace import NUMERIC_COLUMNS
from condgrad.protocols import COUNTERS, Record

X0 = np.array([0.5, 0.2, 0.3])
CONVEX = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
SIMPLEX = cg.Simplex(3)
SUM = cg.LinearModel(np.eye(3), np.ones(3), cg.Squared())
EXPECTATION = cg.FunctionExpectation(
    lambda size, rng: rng.normal(size=(size, 3)), lambda x, batch: x - batch, (3,), 1.0, 0.0
)
ONLY_LMO = cg.user_set(SIMPLEX.lmo, 3)
NEVER = cg.Mapping(1e-300)
"""A tolerance that no run below reaches."""


def solve(objective: Any = CONVEX, domain: Any = SIMPLEX, x0: Any = X0, **more: Any) -> cg.Result:
    return cg.minimize(objective, domain, x0, **{"max_steps": 5} | more)


def function(value: Any = CONVEX.value, grad: Any = CONVEX.grad, L: float | None = 3.0) -> cg.Function:
    return cg.Function(value, grad, (3,), smoothness=L)


def on_call(number: int, act: Any, answer: Any) -> Any:
    """A function that answers, but does ``act`` first when it is called for the ``number``-th time."""
    calls = [0]

    def asked(x: np.ndarray) -> Any:
        calls[0] += 1
        if calls[0] == number:
            act()
        return answer(x)

    return asked


def interrupt() -> None:
    raise KeyboardInterrupt


def a_sum(n: int = 27) -> cg.LinearModel:
    rng = np.random.default_rng(3)
    return cg.LinearModel(rng.standard_normal((n, 3)), rng.standard_normal(n), cg.Squared())


def an_expectation() -> cg.FunctionExpectation:
    """E |x - xi|^2 / 2 for xi around (1, 2)."""
    return cg.FunctionExpectation(
        lambda size, rng: rng.normal((1.0, 2.0), size=(size, 2)), lambda x, batch: x - batch, (2,), 1.0, 0.0
    )


def passing(time: list[float], seconds: float, answer: Any) -> Any:
    def slow(*args: Any) -> Any:
        time[0] += seconds
        return answer(*args)

    return slow


def a_record(**known: Any) -> Record:
    return Record(
        **dict.fromkeys(NUMERIC_COLUMNS, nan) | dict.fromkeys(("k", "seconds", "cpu", "wall", *COUNTERS), 0) | known
    )


def assert_refused(do: Callable[[], object], kind: type[Exception], words: str) -> None:
    """In one sentence, of this kind, with these words."""
    with pytest.raises(kind, match=re.escape(words)) as caught:
        do()
    said = str(caught.value)
    assert "\n" not in said and said.endswith((".", "?")), said
    assert "_WithSmoothness" not in said and "object at 0x" not in said, said
