"""The problem of a comparison: one problem, a problem for each seed, or a spec."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from condgrad.driver import estimate_smoothness
from condgrad.driver.metrics import mapping, validation
from condgrad.driver.resolve import check_problem, check_start
from condgrad.protocols import Objective, Point, Problem, fits
from condgrad.solvers import METHODS
from condgrad.spec import RUN, load

Given = Problem | tuple[Any, Any] | Callable[[int], Any] | str | os.PathLike[str]
"""What ``compare`` accepts as a problem."""


@dataclass(eq=False)
class Source:
    """The problem for each seed, the start, and the L of the mapping that is measured."""

    make: Callable[[int], Any] | Problem
    x0: Point | None = None
    L: float | None = None
    """The constant L of the measured mapping; None: the objective's own, or an estimate."""
    keywords: Mapping[str, Any] = field(default_factory=dict)
    """Keywords of ``minimize`` from a spec."""
    method: str | None = None
    """The method of a spec, with its options."""
    options: Mapping[str, Any] = field(default_factory=dict)
    stop: Any = None
    """The stopping rule of a spec."""
    spec: Path | None = None
    _last: tuple[int, Problem, float] | None = field(default=None, init=False, repr=False)

    @classmethod
    def of(cls, given: Given, x0: Point | None = None, L: float | None = None) -> Source:
        """The source from what the user gave."""
        if isinstance(given, str | os.PathLike):
            return cls._of_spec(Path(given), x0, L)
        if isinstance(given, tuple) and len(given) == 2:
            given = Problem(*given)
        if not isinstance(given, Problem) and not callable(given):
            raise TypeError(
                f"The problem is of type {type(given).__name__}, but a Problem, a pair (objective, set), a function of the "
                "seed that returns one, or the path of a spec was expected."
            )
        return cls(given, x0, L)

    @classmethod
    def _of_spec(cls, path: Path, x0: Point | None, L: float | None) -> Source:
        spec = load(path)
        options = {key: value for key, value in spec.keywords.items() if key in _options(spec.method)}
        settings = {key: value for key, value in spec.keywords.items() if key not in options}
        dropped = ("seed", "every", "measure", "output")  # compare sets them
        keywords = {key: value for key, value in settings.items() if key in RUN and key not in dropped}
        made = Problem(spec.objective, spec.domain)
        return cls(made, x0, L, keywords, spec.method, options, spec.stop, path)

    def problem(self, seed: int) -> Problem:
        """The problem for a seed."""
        return self._prepared(seed)[0]

    def smoothness(self, seed: int) -> float:
        """The constant L of the mapping that is measured for a seed."""
        return self._prepared(seed)[1]

    def _prepared(self, seed: int) -> tuple[Problem, float]:
        key = -1 if isinstance(self.make, Problem) else seed
        if self._last is None or self._last[0] != key:
            made = self.make if isinstance(self.make, Problem) else self.make(seed)
            problem = check_problem(Problem(*made) if isinstance(made, tuple) else made)
            L = self.L or problem.objective.smoothness or float(estimate_smoothness(problem.objective, problem.domain))
            self._last = (key, problem, L)
        return self._last[1:]

    def mapping_at_start(self, seed: int, validate: int) -> float:
        """The squared mapping at the start."""
        problem, L = self._prepared(seed)
        measured = problem if fits(problem.objective, Objective) else validation(problem, validate, seed)
        return mapping(measured, check_start(problem, self.x0), 1 / (2 * L), exact=True).upper


def _options(method: str) -> Mapping[str, Any]:
    return METHODS[method].options if method in METHODS else {}
