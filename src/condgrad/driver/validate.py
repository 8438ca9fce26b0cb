"""Is what a checkpoint held what a run can go on from? Its checksums hold for whatever somebody wrote into it.

Fields are looked at, never computed with: points remember what was computed of them, and the last bits depend on it.
"""

from __future__ import annotations

from dataclasses import is_dataclass
from numbers import Integral, Real
from typing import Any

import numpy as np

from condgrad.certificate import Certificate
from condgrad.checks import not_negative, positive, real, whole
from condgrad.driver.audit import Noticed
from condgrad.driver.result import Lowest
from condgrad.driver.snapshot import classes
from condgrad.points import LowRank, SparsePlusLowRank
from condgrad.protocols import Reason, Record
from condgrad.solvers.smoothness import Curvature
from condgrad.solvers.states import Descent, State

KINDS: dict[str, Any] = {"int": Integral, "float": Real, "bool": (bool, np.bool_), "str": str, "np.ndarray": np.ndarray}
KINDS |= {kind.__name__: kind for kind in (Certificate, Curvature, Descent)}
"""What fields of these types may hold."""


def check_run(moving: dict[str, Any], k: Any, solver: Any, shape: tuple[int, ...]) -> None:
    """All that moves in a run, after step ``k``, at points of this shape."""
    state, record = moving["state"], moving["record"]
    wanted = str(getattr(type(solver).init, "__annotations__", {}).get("return"))
    known = {cls.__name__ for cls in classes().values()}
    if wanted in known and wanted not in {cls.__name__ for cls in type(state).__mro__}:
        raise TypeError(f"a state of the kind {type(state).__name__}")
    for name, kinds in {
        "state": State,
        "record": Record,
        "current": Certificate | None,
        "best": Certificate | None,
        "lowest": Lowest | None,
        "unconfirmed": Reason | None,
        "noticed": Noticed,
    }.items():
        if not isinstance(moving[name], kinds):
            raise TypeError(f"{name} is a {type(moving[name]).__name__}")
        _check(moving[name], "", shape)
    for vertex in moving["noticed"].vertices:
        _check_point(vertex, shape)
    for point, fun in moving["known"]:
        _check(point, "Point", shape)
        real(fun, "F")
    for name in ("current_k", "best_k", "idle", "next_check", "next_measure", "next_gap"):
        whole(moving[name], name, least=0)
    if whole(k, "k", least=0) != state.k or record.k != k:
        raise ValueError("of different steps")
    positive(state.L, "L")


def check_spent(counts: dict[str, Any], spent: dict[str, Any]) -> None:
    for name, value in counts.items():
        whole(value, name, least=0)
    for name, value in spent.items():
        not_negative(value, name)


def _check(value: Any, kind: str, shape: tuple[int, ...]) -> None:
    """A field of this type, and what lies in it."""
    if kind == "Point":
        _check_point(value, shape)
    elif kind in KINDS and (not isinstance(value, KINDS[kind]) or (kind != "bool" and isinstance(value, bool))):
        raise TypeError(f"{value!r} is no {kind}")
    if is_dataclass(value) or hasattr(value, "_fields"):
        fields = {
            name: of
            for cls in reversed(type(value).__mro__)
            for name, of in vars(cls).get("__annotations__", {}).items()
        }
        for name, of in fields.items():
            said = str(getattr(of, "__forward_arg__", getattr(of, "__name__", of)))
            inside = getattr(value, name)
            _check(inside, said.removesuffix(" | None") if inside is not None else said, shape)
        if isinstance(value, Certificate):
            positive(value.gamma, "gamma")
            positive(value.gamma if value.step is None else value.step, "step")
            for part in ("noise", "rounding"):
                not_negative(getattr(value, part), part)
            not_negative(vars(value).get("norm", 0.0), "norm")
    elif isinstance(value, tuple | list):
        for part in value:
            _check(part, "Any", shape)


def _check_point(x: Any, shape: tuple[int, ...]) -> None:
    if tuple(x.shape) != shape:
        raise ValueError(f"a point of shape {x.shape}")
    arrays = [x]
    if isinstance(x, SparsePlusLowRank):
        _check_point(x.low, shape)
        if x.values.shape != (x.pattern.size,) or tuple(x.pattern.shape) != shape or not isinstance(x.scale, Real):
            raise ValueError("values that are not on the pattern")
        arrays = [x.values]
    elif isinstance(x, LowRank):
        for factor, term in x.terms:
            rank = term.U.shape[1]
            if not np.isfinite(factor) or (term.U.shape, term.V.shape) != ((shape[0], rank), (shape[1], rank)):
                raise ValueError("factors that do not fit")
        arrays = [part for _, term in x.terms for part in (term.U, term.V)]
    if not all(isinstance(part, np.ndarray) and part.dtype.kind == "f" and np.isfinite(part).all() for part in arrays):
        raise ValueError("a point that is not finite")
