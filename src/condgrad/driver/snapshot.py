"""All that moves in a run as a tree of plain data and arrays, and back: what a checkpoint holds.

Only the classes listed here (and subclasses of State, which are frozen dataclasses) are taken apart and put together again, by
their names in a table; nothing is imported and no constructor runs. What was one object is one object again: points remember
their terms, and what has been computed of them, by identity. Some of these memories decide the last bits of what
is computed next (sampled values are carried along, not computed anew), so they are kept, weak references too.
"""

from __future__ import annotations

import weakref
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, fields, is_dataclass
from functools import cache, cached_property
from typing import Any
from weakref import WeakKeyDictionary

import numpy as np

from condgrad.certificate import Certificate
from condgrad.driver.audit import Noticed
from condgrad.driver.result import Lowest
from condgrad.estimators.saga import Table
from condgrad.estimators.svrg import Snapshot
from condgrad.inner.corrective import Hull
from condgrad.linalg.simplex_qp import Factor
from condgrad.points import LowRank, Pattern, SparsePlusLowRank
from condgrad.points.low_rank import Factors
from condgrad.protocols import Reason, Record
from condgrad.solvers.smoothness import Curvature
from condgrad.solvers.states import Descent, State
from condgrad.storage.archive import BadArchive

PLAIN = (type(None), bool, int, float, str)
NAMED = {cls.__name__: cls for cls in (Curvature, Descent, Lowest, Noticed, Reason, Snapshot, Table)}
NUMBERS = {np.dtype(kind).str: kind for kind in (np.float64, np.float32, np.int64, np.int32, np.bool_)}
POINTS: dict[type, tuple[str, ...]] = {
    Factors: ("U", "V", "base", "norm2", "seen", "apart"),
    LowRank: ("terms", "shape"),
    SparsePlusLowRank: ("pattern", "values", "low", "scale", "shape", "met"),
}
OBJECTS = (Certificate, Factor, Hull, Record, *POINTS)


def classes() -> dict[str, type]:
    """What may be taken apart, by name."""
    return {f"{cls.__module__}.{cls.__qualname__}": cls for cls in (*OBJECTS, *_states(State))}


def _states(cls: type[State]) -> Iterator[type]:
    yield cls
    for below in cls.__subclasses__():
        yield from _states(below)


@cache
def _attributes(cls: Any) -> tuple[str, ...]:
    """What is kept of an object; of dataclasses also what they have cached, which the last bits may depend on."""
    if cls in POINTS:
        return POINTS[cls]
    cached = [name for name, member in vars(cls).items() if isinstance(member, cached_property)]
    return (*(field.name for field in fields(cls)), *cached)


@dataclass(frozen=True)
class Frozen:
    """``tree`` is what JSON can say; it refers to ``nodes`` and these to ``arrays`` by their numbers."""

    tree: Any
    nodes: list[Any]
    arrays: list[np.ndarray]


def freeze(thing: Any, known: Mapping[str, Pattern]) -> Frozen:
    """``thing``, taken apart; ``known`` are the patterns that belong to the problem, and are only named."""
    return _Freezer(known).frozen(thing)


class _Freezer:
    def __init__(self, known: Mapping[str, Pattern]):
        self.nodes: list[Any] = []
        self.arrays: list[np.ndarray] = []
        self.numbers: dict[int, int] = {}
        self.names = {cls: name for name, cls in classes().items()}
        self.patterns = {id(pattern): name for name, pattern in known.items()}
        self.weak: list[tuple[Any, list[Any]]] = []

    def frozen(self, thing: Any) -> Frozen:
        tree = self.take(thing)
        for reference, node in self.weak:  # only what is held by something else too
            pairs = reference.items() if isinstance(reference, WeakKeyDictionary) else [(reference(), None)]
            node += [[self.numbers[id(key)], self.take(value)] for key, value in pairs if id(key) in self.numbers]
        return Frozen(tree, self.nodes, self.arrays)

    def take(self, thing: Any) -> Any:
        kind = type(thing)
        if kind in PLAIN:
            return thing
        if kind in (tuple, list):
            return [kind.__name__, *map(self.take, thing)]
        if kind is dict and all(type(key) is str for key in thing):
            return ["dict", {key: self.take(value) for key, value in thing.items()}]
        if NAMED.get(kind.__name__) is kind:
            return ["named", kind.__name__, *map(self.take, thing)]
        if NUMBERS.get(thing.dtype.str if isinstance(thing, np.generic) else "") is kind:
            return ["number", thing.dtype.str, thing.item()]
        if kind is Pattern and id(thing) in self.patterns:
            return ["pattern", self.patterns[id(thing)]]
        if id(thing) not in self.numbers:
            number = self.numbers[id(thing)] = len(self.nodes)
            self.nodes.append(None)
            self.nodes[number] = self.node(thing)
        return ["node", self.numbers[id(thing)]]

    def node(self, thing: Any) -> Any:
        if type(thing) is np.ndarray:
            axes = sorted(range(thing.ndim), key=lambda axis: -abs(thing.strides[axis]))  # its layout in memory
            self.arrays.append(thing.transpose(axes))
            return ["array", len(self.arrays) - 1, axes, bool(thing.flags.writeable)]
        if isinstance(thing, WeakKeyDictionary | weakref.ref):
            node: list[Any] = ["weak keys" if isinstance(thing, WeakKeyDictionary) else "weak"]
            self.weak.append((thing, node))
            return node
        kind: Any = type(thing)
        if kind in self.names:
            there = vars(thing) if is_dataclass(thing) else _attributes(kind)
            held = {name: self.take(getattr(thing, name)) for name in _attributes(kind) if name in there}
            return ["object", self.names[kind], held]
        raise TypeError(
            f"A checkpoint can't hold a {kind.__name__}, which the method keeps in its state: it takes numbers, "
            "arrays of numbers, tuples, condgrad's own points and dataclasses derived from condgrad.solvers.states.State."
        )


def thaw(frozen: Frozen, known: Mapping[str, Pattern]) -> Any:
    """The thing again; what does not fit together is refused."""
    try:
        return _Thawer(frozen, known).thing()
    except (LookupError, TypeError, ValueError, AttributeError, RecursionError) as error:
        raise BadArchive(f"what it holds does not fit together ({type(error).__name__})") from error


class _Thawer:
    def __init__(self, frozen: Frozen, known: Mapping[str, Pattern]):
        self.frozen, self.known, self.classes = frozen, known, classes()
        self.made: dict[int, Any] = {}
        self.weak: list[tuple[WeakKeyDictionary[Any, Any], list[Any]]] = []

    def thing(self) -> Any:
        thing = self.put(self.frozen.tree)
        for dictionary, pairs in self.weak:
            for number, value in pairs:
                dictionary[self.made[number]] = self.put(value)
        return thing

    def put(self, tree: Any) -> Any:
        if type(tree) in PLAIN:
            return tree
        kind, *rest = tree
        if kind in ("tuple", "list"):
            return (tuple if kind == "tuple" else list)(map(self.put, rest))
        if kind == "dict":
            return {key: self.put(value) for key, value in rest[0].items()}
        if kind == "named":
            return NAMED[rest[0]](*map(self.put, rest[1:]))
        if kind == "number":
            return NUMBERS[rest[0]](rest[1])
        if kind == "pattern":
            return self.known[rest[0]]
        if kind != "node":
            raise ValueError(kind)
        number = rest[0]
        if number not in self.made:
            self.made[number] = self.node(*self.frozen.nodes[number])
        return self.made[number]

    def node(self, kind: str, *rest: Any) -> Any:
        if kind == "array":
            index, axes, writeable = rest
            array = self.frozen.arrays[index].transpose(np.argsort(axes).tolist())
            array.flags.writeable = writeable
            return array
        if kind == "weak keys":
            dictionary: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()
            self.weak.append((dictionary, list(rest)))
            return dictionary
        if kind == "weak":
            return weakref.ref(self.put(["node", rest[0][0]])) if rest else None
        name, held = rest
        cls = self.classes[name]
        required = POINTS.get(cls) or tuple(field.name for field in fields(cls))
        if kind != "object" or not set(required) <= set(held) <= set(_attributes(cls)):
            raise ValueError(kind)
        made: Any = object.__new__(cls)
        for attribute, value in held.items():
            object.__setattr__(made, attribute, self.put(value))
        if isinstance(made, LowRank):
            made._whole = None
        return made
