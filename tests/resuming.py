"""Runs that are cut and resumed, and all of them that must be the same to the bit."""

from __future__ import annotations

import shutil
from collections.abc import Callable
from pathlib import Path
from typing import Any

import numpy as np

import condgrad as cg
from condgrad.driver.trace import COLUMNS

TIMES = ("seconds", "cpu", "wall")


def completion() -> tuple[Any, Any]:
    """On low-rank points, large enough that the linear oracle is not a full SVD."""
    shape, rng = (90, 70), np.random.default_rng(2)
    Y = rng.standard_normal((90, 3)) @ rng.standard_normal((70, 3)).T + 0.1 * rng.standard_normal(shape)
    seen = rng.random(shape) < 0.3
    domain = cg.NuclearBall(shape, 0.3 * float(np.linalg.norm(Y, "nuc")))
    return cg.Completion.from_dense(Y, seen, cg.Welsch(2.0)), domain


def linear_model() -> tuple[Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((60, 8))
    return cg.LinearModel(A, np.sign(A[:, 0] + 0.3 * rng.standard_normal(60)), cg.Sigmoid()), cg.L1Ball(8, 3.0)


PROBLEMS: dict[str, Callable[[], tuple[Any, Any]]] = {"completion": completion, "linear-model": linear_model}


class Walk:
    """A run with every iterate's bits; it copies its checkpoints after some steps, as a kill there would leave them."""

    def __init__(self, problem: str, path: Path | None = None, copies: tuple[int, ...] = (), **asked: Any):
        objective, domain = PROBLEMS[problem]()
        self.iterates: list[bytes] = []
        self.steps: list[int] = []
        """The number of each iterate's step."""

        def callback(record: Any, x: Any) -> None:
            self.iterates.append(np.asarray(x).tobytes())
            self.steps.append(record.k)
            if path and record.k - 1 in copies:
                shutil.copy(path, f"{path}-{record.k - 1}")

        saving = {} if path is None else {"checkpoint": cg.Checkpoint(path, steps=1)}
        self.result = cg.minimize(objective, domain, callback=callback, **saving, **asked)

    def same_as(self, other: Walk) -> None:
        """From where this one was resumed."""
        late = other.iterates[len(other.iterates) - len(self.iterates) :]
        first = next((i for i, (a, b) in enumerate(zip(self.iterates, late, strict=True)) if a != b), None)
        assert first is None, f"another iterate {first + 1} steps after it was resumed"
        assert self.result.counts == other.result.counts
        mine, others = self.result.trace, other.result.trace
        differ = [c for c in COLUMNS if c not in TIMES and mine[c].tobytes() != others[c].tobytes()]
        assert not differ, f"the trace differs in {differ}"
        assert np.asarray(self.result.x).tobytes() == np.asarray(other.result.x).tobytes()
        assert (self.result.status, self.result.message) == (other.result.status, other.result.message)
        assert repr(self.result.fun) == repr(other.result.fun)
        (x, *rest), (others_x, *others_rest) = self.result.lowest, other.result.lowest
        assert repr(rest) == repr(others_rest) and np.asarray(x).tobytes() == np.asarray(others_x).tobytes()
        assert self.result.warnings == other.result.warnings
