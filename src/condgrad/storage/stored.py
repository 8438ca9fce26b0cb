"""The decorator ``@stored``: checkpoints and model files can hold instances of the classes that it decorates."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass
from dataclasses import fields as dataclass_fields
from functools import cached_property
from inspect import get_annotations
from typing import Any, TypeVar, overload

import numpy as np

C = TypeVar("C", bound=type)


@dataclass(frozen=True)
class StoredClass:
    """How the instances of a class are written and validated."""

    cls: type
    name: str
    fields: tuple[str, ...]
    caches: tuple[str, ...]
    """Cached properties of a dataclass. Those that have been computed are written to the file, because the last bits of a run may
    depend on them."""
    validate: Callable[[Any], object] | None

    @cached_property
    def names(self) -> frozenset[str]:
        """Names of all attributes of an instance that a file may hold."""
        return frozenset((*self.fields, *self.caches))


CLASSES: dict[type, StoredClass] = {}
NAMES: dict[str, StoredClass] = {}


@overload
def stored(cls: C, /) -> C: ...
@overload
def stored(
    *, fields: tuple[str, ...] | None = None, validate: Callable[[Any], object] | None = None, name: str | None = None
) -> Callable[[C], C]: ...
def stored(
    cls: Any = None,
    /,
    *,
    fields: tuple[str, ...] | None = None,
    validate: Callable[[Any], object] | None = None,
    name: str | None = None,
) -> Any:
    """Decorate a class so that checkpoints and model files can hold its instances.

    A file names the class and holds the values of its fields. When the file is read, the class must already be defined, because
    nothing is imported. The constructor does not run. The fields are validated in two steps. First they are compared with their
    annotations, if these are ``int``, ``float``, ``bool``, ``str``, ``np.ndarray``, ``Point``, a stored class, or a tuple, list
    or optional of these types. Then ``validate`` is called, for stored base classes before the class itself. Annotations that
    can't be evaluated when the file is read, such as names that only a type checker imports, are not compared.

    Fields may hold None, numbers, strings, tuples, lists, dicts, arrays of numbers or strings, and stored objects. If two fields
    refer to the same object, they refer to one object again after reading.

    Parameters
    ----------
    cls : type
        A dataclass, a ``NamedTuple``, or any other class if ``fields`` is given. Put ``@stored`` above ``@dataclass``.
    fields : tuple of str, default None
        The attributes of an instance that are stored. None: the fields of the dataclass or ``NamedTuple``. Attributes whose name
        begins with an underscore need not be listed if the class has a default for them.
    validate : callable, default None
        ``validate(instance)`` raises ValueError or TypeError for an instance that the program can't have written, because a file
        may be forged. The function should check shapes, finiteness and invariants, and must not change the instance.
    name : str, default None
        The name in the file. None: the top-level package and the qualified name of the class, so that the class may move
        to another module of its package.

    Returns
    -------
    type
        The class itself.

    Raises
    ------
    TypeError
        If the fields are not known, if they lack an attribute in ``__slots__``, or if another class already has the name.

    Examples
    --------
    >>> from dataclasses import dataclass
    >>> import condgrad as cg
    >>> from condgrad.solvers.states import State
    >>> @cg.stored
    ... @dataclass(frozen=True, kw_only=True)
    ... class MomentumState(State):
    ...     average: cg.LowRank
    """
    if cls is None:
        return lambda cls: _register(cls, fields, validate, name)
    return _register(cls, fields, validate, name)


def _register(cls: Any, fields: tuple[str, ...] | None, validate: Any, name: str | None) -> Any:
    name = f"{cls.__module__.partition('.')[0]}.{cls.__qualname__}" if name is None else name
    known = NAMES.get(name)
    if known is not None and (known.cls.__module__, known.cls.__qualname__) != (cls.__module__, cls.__qualname__):
        raise TypeError(
            f"The class {known.cls.__module__}.{known.cls.__qualname__} is stored under the name {name!r} already: "
            f"give {cls.__module__}.{cls.__qualname__} another one by @stored(name=...)."
        )
    caches: tuple[str, ...] = ()
    if fields is None and hasattr(cls, "__dataclass_fields__"):
        if "__dataclass_fields__" not in vars(cls) and get_annotations(cls):
            raise TypeError(f"The fields of {cls.__name__} are not known yet: put @stored above @dataclass.")
        fields = tuple(field.name for field in dataclass_fields(cls))
        members = {member: value for base in cls.__mro__ for member, value in vars(base).items()}
        caches = tuple(member for member, value in members.items() if isinstance(value, cached_property))
    elif fields is None:
        fields = getattr(cls, "_fields", None)
    if fields is None:
        raise TypeError(
            f"{cls.__name__} is neither a dataclass nor a NamedTuple: name its attributes, as in @stored(fields=('U', 'V'))."
        )
    lost = [slot for slot in _slots(cls) if slot not in fields]
    if lost:
        raise TypeError(
            f"{cls.__name__} has the slots {', '.join(lost)}, which are not among its fields and would be lost: name all "
            "attributes, as in @stored(fields=('U', 'V'))."
        )
    CLASSES[cls] = NAMES[name] = StoredClass(cls, name, tuple(fields), caches, validate)
    return cls


def _slots(cls: type) -> Iterator[str]:
    """Attributes in ``__slots__`` of a class and its bases. Names that begin with two underscores are mangled, as by Python."""
    for base in cls.__mro__:
        given = vars(base).get("__slots__", ())
        for slot in (given,) if isinstance(given, str) else given:
            if slot not in ("__dict__", "__weakref__"):
                private = slot.startswith("__") and not slot.endswith("__")
                yield f"_{base.__name__.lstrip('_')}{slot}" if private else slot


def check_array(array: Any, shape: tuple[int, ...], what: str, kinds: str = "f") -> None:
    """Raise ValueError if an array holds numbers that are not finite, or has another shape or dtype. For ``validate`` functions.

    Parameters
    ----------
    array : array-like
    shape : tuple of int
    what : str
        What the array is, for the message.
    kinds : str, default "f"
        Accepted kinds of dtype. "f": floats; "iuf": floats and whole numbers.
    """
    found = np.asarray(array)
    if found.dtype.kind not in kinds or found.shape != shape or not np.isfinite(found).all():
        raise ValueError(f"{what} is no array of finite numbers of shape {shape}")


def stored_bases(cls: type) -> Iterator[StoredClass]:
    """The stored classes among the bases of a class, followed by the class itself if it is stored."""
    return (CLASSES[base] for base in reversed(cls.__mro__) if base in CLASSES)
