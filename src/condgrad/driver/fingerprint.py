"""What a run was asked to do, by content: two runs with the same fingerprint walk the same way."""

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
"""Path -> what stands there: a number, a word, or the checksum of an array."""

DEEP = 6
"""So deep an object is looked into."""
OWN = ("condgrad.", "array ", "scipy.sparse", "builtins.")
"""What has content, and nothing of the user's own in it."""


def digest(found: Fingerprint) -> str:
    """A fingerprint in 16 characters."""
    return hashlib.sha256(json.dumps(found, sort_keys=True, default=repr).encode()).hexdigest()[:16]


def fingerprint(
    problem: Problem, solver: Any, x0: Point, options: Mapping[str, Any], probing: bool = True
) -> Fingerprint:
    """Classes, parameters, and checksums of all arrays. A user's function has no content to look at: its name stands for it, and
    where ``probing``, what it answers at the start."""
    objective, domain = unwrapped(problem.objective), unwrapped(problem.domain)
    found: Fingerprint = {}
    describe("objective", objective, found, DEEP)
    describe("set", domain, found, DEEP)
    if probing and any(isinstance(value, str) and not value.startswith(OWN) for value in found.values()):
        found |= probe(Problem(checked_answers(objective), domain), x0)
    found["objective.smoothness"] = problem.objective.smoothness
    for name, asked in {"method": solver, "x0": x0, **options}.items():
        describe(name, asked, found, DEEP)
    return found


def describe(path: str, thing: Any, found: Fingerprint, deep: int) -> None:
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
        for name, part in _parts(thing).items() if deep else ():
            describe(f"{path}.{name}", part, found, deep - 1)


def _parts(thing: Any) -> dict[str, Any]:
    if isinstance(thing, Mapping):
        return {str(key): value for key, value in thing.items()}
    if isinstance(thing, tuple | list | set):
        return {str(i): part for i, part in enumerate(sorted(thing) if isinstance(thing, set) else thing)}
    if is_dataclass(thing):
        return {field.name: getattr(thing, field.name) for field in fields(thing)}
    return {name: part for name, part in getattr(thing, "__dict__", {}).items() if not name.startswith("_")}


def checksum(array: np.ndarray) -> str:
    if array.dtype.hasobject:
        return f"array {array.shape} of objects"
    digest = hashlib.sha256(np.ascontiguousarray(array).view(np.uint8).data if array.size else b"").hexdigest()
    return f"array {array.shape} {array.dtype.str} {digest[:16]}"


def probe(problem: Problem, x0: Point) -> Fingerprint:
    """How large the gradient at the start is, and what the linear oracle makes of it: a few digits, the same on any machine."""
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
    except (BadOracle, NotGiven):  # the run will say so
        return {}


def differences(before: Fingerprint, now: Fingerprint) -> list[str]:
    """What is not as it was, in words."""
    return [
        f"{path} was {before.get(path, 'not there')}, is {now.get(path, 'not there')}"
        for path in sorted(before.keys() | now.keys())
        if not _same(before.get(path), now.get(path))
    ]


def _same(one: Any, other: Any) -> bool:
    if isinstance(one, float) and isinstance(other, float):
        return one == other or isclose(one, other, rel_tol=1e-9) or (one != one and other != other)
    return bool(one == other)
