"""Fingerprints, which show whether two runs have the same problem, method and settings.

A run is continued only from a checkpoint with the fingerprint of this run. The continued run then takes the same steps as the
saved run would have taken.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from dataclasses import fields, is_dataclass
from math import isclose, sqrt
from typing import Any

import numpy as np

from condgrad.checks import BadOracle, NotGiven
from condgrad.driver.resolve import checked_answers, unwrapped
from condgrad.points import LowRank, norm2
from condgrad.protocols import Objective, Point, Problem, fits

Fingerprint = dict[str, Any]
"""Description of a run. The keys are paths of attributes, such as ``objective.smoothness``. The values are numbers, strings, and
checksums of arrays."""

MAX_DEPTH = 6
"""Maximum depth to which attributes of attributes are described."""
OWN = ("condgrad.", "array ", "scipy.sparse", "builtins.")
"""A description that begins with one of these texts determines its object. Any other description is the name of a user's class or
function, whose code is not described."""


def digest(found: Fingerprint) -> str:
    """Hash of a fingerprint, of 16 characters."""
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def fingerprint(
    problem: Problem, solver: Any, x0: Point, options: Mapping[str, Any], probing: bool = True
) -> Fingerprint:
    """Describe a run by the names of classes, the parameters, and the checksums of all arrays.

    A user's function is described by its name, because its code can't be compared. With ``probing``, the norms of the answers of
    users' functions at the start are added.
    """
    objective, domain = unwrapped(problem.objective), unwrapped(problem.domain)
    found: Fingerprint = {}
    describe("objective", objective, found, MAX_DEPTH)
    describe("set", domain, found, MAX_DEPTH)
    if probing and any(isinstance(value, str) and not value.startswith(OWN) for value in found.values()):
        found |= probe(Problem(checked_answers(objective), domain), x0)
    found["objective.smoothness"] = problem.objective.smoothness
    for name, asked in {"method": solver, "x0": x0, **options}.items():
        describe(name, asked, found, MAX_DEPTH)
    return found


def describe(path: str, thing: Any, found: Fingerprint, depth: int) -> None:
    """Add an object to ``found`` under ``path``, and up to ``depth`` levels of its attributes under longer paths."""
    if isinstance(thing, bool | int | float | str | np.generic) or thing is None:
        found[path] = thing.item() if isinstance(thing, np.generic) else thing
    elif isinstance(thing, np.ndarray):
        found[path] = checksum(thing)
    elif isinstance(thing, type) or (callable(thing) and hasattr(thing, "__qualname__")):
        found[path] = f"function {thing.__module__}.{thing.__qualname__}"
    elif isinstance(thing, LowRank):
        found[path] = f"low rank {' '.join(checksum(factor) for factor in thing.factors())}"
    else:
        found[path] = f"{type(thing).__module__}.{type(thing).__qualname__}"
        for name, part in _parts(thing).items() if depth else ():
            describe(f"{path}.{name}", part, found, depth - 1)


def _parts(thing: Any) -> dict[str, Any]:
    if isinstance(thing, Mapping):
        return {str(key): value for key, value in thing.items()}
    if isinstance(thing, tuple | list | set):
        return {str(i): part for i, part in enumerate(sorted(thing) if isinstance(thing, set) else thing)}
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {name: part for name, part in getattr(thing, "__dict__", {}).items() if not name.startswith("_")}


def checksum(array: np.ndarray) -> str:
    """Describe an array by its shape, its type and a hash of its entries."""
    if array.dtype.hasobject:
        return f"array {array.shape} of objects"
    digest = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"").hexdigest()
    return f"array {array.shape} {array.dtype.str} {digest[:16]}"


def probe(problem: Problem, x0: Point) -> Fingerprint:
    """Compute the norms of the gradient g at x0 and of x0 - lmo(g). They are the same on any machine, up to rounding."""
    objective = problem.objective
    try:
        if fits(objective, Objective):
            grad = objective.grad(x0)
        else:
            grad = objective.grad_terms(x0, objective.draw(100, np.random.default_rng((0, 0, 5))))
        vertex = problem.domain.lmo(grad)
        return {
            "the gradient's length at x0": sqrt(norm2(grad)),
            "the length of x0 minus the linear oracle's answer": sqrt(norm2(x0 - vertex)),
        }
    except (BadOracle, NotGiven):  # the run will report the error
        return {}


def differences(before: Fingerprint, now: Fingerprint) -> list[str]:
    """Describe each difference between two fingerprints in words."""
    return [
        f"{path} was {before.get(path, 'not there')}, is {now.get(path, 'not there')}"
        for path in sorted(before.keys() | now.keys())
        if not _same(before.get(path), now.get(path))
    ]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or isclose(one, other, rel_tol=1e-9) or (one != one and other != other)
    return bool(one == other)
