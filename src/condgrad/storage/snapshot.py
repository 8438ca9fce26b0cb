"""Snapshots: convert objects to a tree of plain data and arrays, and back. Checkpoints and model files hold such trees.

Only instances of stored classes (:func:`condgrad.stored`) are serialised, under the names of their classes. Restoring them
imports no module and runs no constructor. If several objects refer to the same object, it is restored as one object. This matters
because points recognise their terms by identity, and a cache finds its entries by the identity of their keys.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from numbers import Integral, Real
from types import NoneType, UnionType
from typing import Any, Union, get_args, get_origin, get_type_hints

import numpy as np

from condgrad.storage.archive import NUMBERS, BadArchive
from condgrad.storage.stored import CLASSES, NAMES, StoredClass, check_array, stored_bases

PLAIN = (NoneType, bool, int, float, str)
SCALARS = {np.dtype(kind).str: np.dtype(kind).type for kind in ("?", *"bhilqBHILQefd")}
"""Types of single numbers, by their names in a file."""
ABSTRACT: dict[Any, Any] = {kind: kind for kind in (str, np.ndarray, NoneType)}
ABSTRACT |= {int: Integral, float: Real, bool: (bool, np.bool_)}
"""Accepted types of the value of a field, by the annotation of the field."""
MAX_PADDING = 2**26
"""Maximum number of characters of padding in an array of strings: numpy pads each string to the length of the longest one."""
MAX_REASON = 200
"""Maximum number of characters of the reason in a message. There is a limit because the reason may quote the file."""
FAULTS = (LookupError, TypeError, ValueError, AttributeError, ArithmeticError, AssertionError, RecursionError)
"""Exceptions that reading raises if the parts of a file contradict each other."""


class AnyPoint:
    """Type of a field that is annotated ``Point``: a finite array of floats or a stored point, in the shape of the problem."""


@dataclass(frozen=True)
class Serialised:
    """An object, serialised.

    Attributes
    ----------
    tree : None, bool, int, float, str or list
        The object as data that JSON can represent. The list ``["node", i]`` refers to ``nodes[i]``.
    nodes : list
        Arrays and instances of stored classes. Each node refers only to nodes before it.
    arrays : dict of str to ndarray
        The arrays. The name of an array is the number of its node.
    """

    tree: Any
    nodes: list[Any]
    arrays: dict[str, np.ndarray]


Content = Callable[[Callable[[Any], bool]], Iterable[Any]]
"""Function ``content(holds)`` that yields the entries of a cache. Entries with a key for which ``holds(key)`` is False are left
out."""


def snapshot(thing: Any, shared: Mapping[str, Any] | None = None, content: Content | None = None) -> Serialised:
    """Serialise an object. Later changes of the object do not change the result, but arrays are not copied.

    Parameters
    ----------
    thing : object
        Anything that :func:`condgrad.stored` lists.
    shared : mapping of str to object, default None
        Objects of the problem, by name. The result has the names of these objects, not the objects.
    content : callable, default None
        ``content(holds)`` yields the entries of a cache, which are serialised after the object. ``holds(key)`` says whether the
        object contains the key; the other entries are left out. `restore` then returns a tuple of the object and the list of
        entries. None: only the object is serialised.

    Raises
    ------
    TypeError
        If ``thing`` holds an instance of a class that is not stored, or an object that contains itself.
    """
    writer = _Writer(shared or {})
    tree = writer.take(thing)
    if content is not None:
        tree = ["tuple", tree, ["list", *map(writer.take, content(writer.holds))]]
    return Serialised(tree, writer.nodes, writer.arrays)


class _Writer:
    def __init__(self, shared: Mapping[str, Any]):
        self.nodes: list[Any] = []
        self.arrays: dict[str, np.ndarray] = {}
        self.numbers: dict[int, int] = {}
        self.alive: list[Any] = []
        """All objects that have a number, kept alive: Python may give the id of a deleted object to a new one."""
        self.open: set[int] = set()
        self.shared = {id(thing): name for name, thing in shared.items()}

    def holds(self, thing: Any) -> bool:
        return id(thing) in self.numbers or id(thing) in self.shared

    def take(self, thing: Any) -> Any:
        kind = type(thing)
        if kind in PLAIN:
            return thing
        if kind in (tuple, list):
            return [kind.__name__, *map(self.take, thing)]
        if kind is dict:
            return ["dict", *([self.take(key), self.take(value)] for key, value in thing.items())]
        if id(thing) in self.numbers:
            return ["node", self.numbers[id(thing)]]
        if isinstance(thing, np.generic) and thing.dtype.str in SCALARS:
            return ["number", thing.dtype.str, thing.item()]
        if isinstance(thing, np.str_):
            return str(thing)
        if id(thing) in self.shared:
            return ["shared", self.shared[id(thing)]]
        if id(thing) in self.open:
            raise TypeError(f"A {kind.__name__} contains itself, which no file can hold.")
        self.open.add(id(thing))
        self.nodes.append(self.node(thing))
        self.open.remove(id(thing))
        self.alive.append(thing)
        self.numbers[id(thing)] = number = len(self.nodes) - 1
        return ["node", number]

    def node(self, thing: Any) -> list[Any]:
        kind = type(thing)
        if kind is np.ndarray and thing.dtype.kind in NUMBERS:
            # the order of the axes in memory
            axes = sorted(range(thing.ndim), key=lambda axis: -abs(thing.strides[axis]))
            self.arrays[str(len(self.nodes))] = thing.transpose(axes)
            return ["array", axes, bool(thing.flags.writeable)]
        if kind is np.ndarray:
            items = thing.tolist()
            if thing.ndim != 1 or thing.dtype.kind not in "UO" or not all(isinstance(item, str) for item in items):
                raise TypeError(f"An array of dtype {thing.dtype} can't be written to a file: numbers and strings can.")
            return ["strings", thing.dtype.kind, items]
        if kind not in CLASSES:
            raise TypeError(
                f"A {kind.__name__} can't be written to a file: put the decorator @condgrad.stored above its class, or keep "
                "numbers, strings, arrays of numbers, tuples, lists, dicts and points in its place."
            )
        entry = CLASSES[kind]
        there = getattr(thing, "__dict__", {})
        if lost := [name for name in there if name not in entry.names and name[0] != "_"]:
            raise TypeError(
                f"A {kind.__name__} has the attribute {lost[0]}, which its @stored does not name: add it to fields=, or begin "
                "its name with an underscore if it need not be stored."
            )
        names = (*entry.fields, *(name for name in entry.caches if name in there))
        return ["object", entry.name, {name: self.take(getattr(thing, name)) for name in names}]


def restore(
    serialised: Serialised, shared: Mapping[str, Any] | None = None, shape: tuple[int, ...] | None = None
) -> Any:
    """Return the object that :func:`snapshot` serialised. Call it inside of :func:`refusing`, as the file may be forged.

    Parameters
    ----------
    serialised : Serialised
    shared : mapping of str to object, default None
        The objects of the problem, by the names that :func:`snapshot` was given.
    shape : tuple of int, default None
        The shape that points must have. None: any.
    """
    return _Reader(serialised, shared or {}).restored(shape)


@contextmanager
def refusing(path: Any) -> Iterator[None]:
    """Convert errors in the block to BadArchive, with one sentence: the parts of the file at ``path`` contradict each other."""
    try:
        yield
    except FAULTS as error:
        said = " ".join(str(error)[: 2 * MAX_REASON].split())[:MAX_REASON].rstrip(".")
        reason = said if type(error) in (ValueError, TypeError) and said else type(error).__name__
        raise BadArchive(f"{path} can't be used: what it holds does not fit together ({reason}).") from error


class _Reader:
    def __init__(self, serialised: Serialised, shared: Mapping[str, Any]):
        self.serialised, self.shared = serialised, shared
        self.made: list[Any] = []

    def restored(self, shape: tuple[int, ...] | None) -> Any:
        for node in self.serialised.nodes:
            self.made.append(self.node(node))
        thing = self.put(self.serialised.tree)
        for made in self.made:
            if type(made) in CLASSES:
                validate(made, shape)
        return thing

    def at(self, number: Any) -> Any:
        if type(number) is not int or not 0 <= number < len(self.made):
            raise ValueError(f"something refers to object {number!r:.20}, which does not come before it")
        return self.made[number]

    def put(self, tree: Any) -> Any:
        match tree:
            case None | bool() | int() | float() | str():
                return tree
            case ["node", number]:
                return self.at(number)
            case ["tuple", *items]:
                return tuple(map(self.put, items))
            case ["list", *items]:
                return list(map(self.put, items))
            case ["dict", *pairs]:
                return {self.put(key): self.put(value) for key, value in pairs}
            case ["number", dtype, bool() | int() | float() as value]:
                with np.errstate(all="raise"):
                    return SCALARS[dtype](value)
            case ["shared", name]:
                return self.shared[name]
        raise ValueError(f"{tree!r:.40} is no value")

    def node(self, node: Any) -> Any:
        match node:
            case ["array", list() as axes, bool() as writeable] if sorted(axes) == [*range(len(axes))]:
                array = self.serialised.arrays[str(len(self.made))].transpose(np.argsort(axes).tolist())
                array.flags.writeable = writeable
                return array
            case ["strings", "U" | "O" as kind, list() as items]:
                return _strings(kind, items)
            case ["object", name, dict() as fields] if name in NAMES:
                return _instance(NAMES[name], {field: self.put(value) for field, value in fields.items()})
            case ["object", name, _]:
                raise ValueError(f"the class {name!r:.60} is not stored here: import the module that defines it")
        raise ValueError(f"{node!r:.40} is no object")


def _instance(entry: StoredClass, fields: dict[str, Any]) -> Any:
    cls: Any = entry.cls
    if not set(entry.fields) <= set(fields) <= entry.names:
        raise ValueError(f"{cls.__name__} has other fields")
    if issubclass(cls, tuple):
        return tuple.__new__(cls, (fields[name] for name in entry.fields))
    made = object.__new__(cls)
    for name, value in fields.items():
        object.__setattr__(made, name, value)
    return made


def _strings(kind: str, items: list[Any]) -> np.ndarray:
    """Return a 1-d array of strings. Refuses strings if the array would take far more memory than the file."""
    lengths = [len(item) for item in items if isinstance(item, str)]
    if len(lengths) < len(items):
        raise TypeError("a list of strings was expected")
    if kind == "U" and max(lengths, default=0) * len(items) > MAX_PADDING + 64 * sum(lengths):
        raise ValueError("one string is far longer than the others")
    return np.array(items, kind)


# ----------------------------------------------------------------------------------------------------------- validation


def validate(thing: Any, shape: tuple[int, ...] | None) -> None:
    """Compare the fields of a stored object with their annotations, then call the ``validate`` of its class and of its bases.

    Points must have the ``shape``; None: any shape. Validation computes nothing with points, because points cache computed
    results, and the last bits of a run depend on these caches.
    """
    for name, kind in annotations_of(type(thing)).items():
        if name in CLASSES[type(thing)].fields:
            check_type(getattr(thing, name), kind, f"{type(thing).__name__}.{name}", shape)
    for base in stored_bases(type(thing)):
        if base.validate is not None:
            try:
                base.validate(thing)
            except (TypeError, ValueError) as error:
                raise ValueError(f"{base.cls.__name__}: {error}") from error


def annotations_of(thing: Any) -> dict[str, Any]:
    """Return the annotations of a class or function as types; an empty dict if one of them can't be evaluated."""
    try:
        return get_type_hints(thing, localns={"Point": AnyPoint})
    except (NameError, TypeError):  # such as a name that only a type checker imports
        return {}


def check_type(value: Any, kind: Any, what: str, shape: tuple[int, ...] | None = None) -> None:
    """Raise TypeError or ValueError if a value does not have the annotated type."""
    origin, parts = get_origin(kind) or kind, get_args(kind)
    expected = ABSTRACT.get(origin, origin if origin in CLASSES else object)
    if origin in (Union, UnionType):
        if value is not None and len(parts) == 2 and NoneType in parts:
            check_type(value, next(part for part in parts if part is not NoneType), what, shape)
        elif value is None and NoneType not in parts:
            raise TypeError(f"{what} is None")
    elif origin in (tuple, list) and parts:
        many = origin is list or parts[-1] is ...
        if type(value) is not origin or (not many and len(value) != len(parts)):
            raise TypeError(f"{what} is {_shown(value)}, a {origin.__name__} was expected")
        for at, item in enumerate(value):
            check_type(item, parts[0] if many else parts[at], f"{what}[{at}]", shape)
    elif origin is AnyPoint:
        if isinstance(value, np.ndarray):
            check_array(value, value.shape if shape is None else shape, what)
        elif type(value) not in CLASSES or not hasattr(value, "inner"):
            raise TypeError(f"{what} is {_shown(value)}, a point was expected")
        elif shape is not None and value.shape != shape:
            raise ValueError(f"{what} has shape {value.shape!r:.40}, {shape} was expected")
    elif (
        not isinstance(value, expected)
        or (origin in (int, float) and isinstance(value, bool))
        or (origin is float and isinstance(value, int) and abs(value) >= 2**63)  # too large for an array of floats
    ):
        raise TypeError(f"{what} is {_shown(value)}, a {origin.__name__} was expected")


def _shown(value: Any) -> str:
    return f"{value!r:.40}" if type(value) in PLAIN else f"of type {type(value).__name__}"
