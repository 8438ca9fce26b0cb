"""Registry entries of sets, and random arrays for the points with which sets are checked."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.protocols import Projectable, fits

Examples = dict[str, Any]
"""Instances of a set by their labels."""


@dataclass(frozen=True)
class DomainEntry:
    """A set as the documentation, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Its name in specs and listings.
    factory : callable
        Builds the set; its parameters are the keys of ``[set]`` in a spec.
    notation : str
        The set in set notation.
    oracle : str
        What its linear minimisation oracle answers.
    examples : callable
        ``examples() -> {label: set}``, the instances that are checked; the first one has the label "".
    sample : callable, default None
        ``sample(domain, rng)``, a random point of the set, made without its oracle. None: combinations of the oracle's answers.
    least : callable, default None
        ``least(domain, g)``, the minimum of <g, x> over the set in closed form.
    vertices : callable, default None
        ``vertices(domain)``, all vertices of a polytope; the oracle must answer with one of them.
    arrays : tuple of str, default ()
        Parameters that a spec gives as an array, as the name of a file, or as one number for all entries.
    in_specs : bool, default True
        Whether a spec may name it: not where a parameter is a function.
    sets : tuple of str, default ()
        Parameters that are sets: a spec gives each as a table with a name, a list of such tables, or a table of them by names.
    bounds : tuple of str, default ()
        Which of ``diameter`` and ``max_norm`` are upper bounds that no pair of points, or no point, need attain.
    accuracy : float, default 1e-12
        Relative error that the contract checks grant to the linear oracle.
    """

    name: str
    factory: Callable[..., Any]
    notation: str
    oracle: str
    examples: Callable[[], dict[str, Any]]
    sample: Callable[[Any, np.random.Generator], Any] | None = None
    least: Callable[[Any, np.ndarray], float] | None = None
    vertices: Callable[[Any], np.ndarray] | None = None
    arrays: tuple[str, ...] = ()
    in_specs: bool = True
    sets: tuple[str, ...] = ()
    bounds: tuple[str, ...] = ()
    accuracy: float = 1e-12

    def example(self) -> Any:
        """The first of the examples."""
        return next(iter(self.examples().values()))

    @property
    def parameters(self) -> tuple[str, ...]:
        """Names of the parameters of the factory."""
        return tuple(inspect.signature(self.factory).parameters)

    @property
    def projects(self) -> bool:
        """Whether the first example has a projection."""
        return fits(self.example(), Projectable)

    @property
    def polytope(self) -> bool:
        """Whether it has finitely many vertices, which are known."""
        return self.vertices is not None


def sparse_normal(shape: tuple[int, ...], rng: np.random.Generator) -> np.ndarray:
    """Normal entries, of which about a third are 0."""
    return rng.standard_normal(shape) * (rng.random(shape) < 0.7)


def in_ball(ball: Any, x: np.ndarray, norm: float, rng: np.random.Generator) -> np.ndarray:
    """x, of this norm, scaled into the ball: half of the time to its boundary."""
    return ball.radius * rng.choice([1.0, rng.random()]) * x / (norm or 1.0)
