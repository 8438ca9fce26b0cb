"""`register`: makes sets, objectives, losses, methods and inner solvers from outside the package known by name."""

from __future__ import annotations

import inspect
import re
import warnings
from collections.abc import Callable
from functools import cache
from importlib.metadata import entry_points
from typing import Any

from condgrad.checks import choice
from condgrad.domains import DOMAINS, DomainEntry
from condgrad.inner import INNERS, InnerEntry
from condgrad.objectives import LOSSES, OBJECTIVES, Loss, LossEntry, ObjectiveEntry
from condgrad.protocols import Domain, Expectation, Inner, Objective, missing
from condgrad.solvers import METHODS, Method

GROUP = "condgrad"
"""Name of the group of entry points by which plugins register their parts. The plugins are loaded when a name is looked up that
is not in the registry."""
TABLES: dict[str, dict[str, Any]] = {
    "set": DOMAINS,
    "objective": OBJECTIVES,
    "loss": LOSSES,
    "method": METHODS,
    "inner": INNERS,
}
NAME = re.compile(r"[^\W_][\w.+-]*")
"""Pattern of the names that can be registered: names that need no quotes in a spec and on the command line."""
RESERVED = {"method": ("auto",), "inner": ("auto",)}


class PluginWarning(UserWarning):
    """An entry point of the group ``condgrad`` could not be loaded."""


def register(kind: str, name: str, factory: Callable[..., Any], **details: Any) -> Any:
    """Register your own set, objective, loss, method or inner solver under a name.

    ``minimize``, specs, the listings of the command line and the contract checks then know the name.

    Parameters
    ----------
    kind : {"set", "objective", "loss", "method", "inner"}
        The kind of part.
    name : str
        A new name of letters, digits, ``-``, ``_``, ``+`` and ``.`` that begins with a letter or a digit.
    factory : callable
        Class or function that builds the part. The names of its parameters are the keys in a spec. For a loss or an inner solver,
        each parameter needs a default. For a method, the factory is a function ``make(problem, setup, **options)`` that returns a
        solver.
    **details : Any
        Fields of the entry in the registry, which is one of :class:`condgrad.domains.DomainEntry`,
        :class:`condgrad.objectives.ObjectiveEntry`, :class:`condgrad.objectives.LossEntry`, :class:`condgrad.solvers.Method`,
        :class:`condgrad.inner.InnerEntry`. A set and an objective need ``example``, a function without parameters that builds a
        small instance. The members of this instance are checked.

    Returns
    -------
    DomainEntry, ObjectiveEntry, LossEntry, Method or InnerEntry
        The entry in the registry.

    Raises
    ------
    ValueError
        If the name is taken or not allowed, or if a detail is missing or unknown.
    TypeError
        If the part lacks a member that its contract requires, or its factory has parameters without names.

    Notes
    -----
    A package registers its parts by an entry point of the group ``condgrad``, which names a function without parameters that
    calls ``register``. This function is called before parts are listed, before a spec is read, and when a name is not in the
    registry.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> class Corners:
    ...     def __init__(self, shape, size=1.0):
    ...         self.shape, self.size = cg.checks.as_shape(shape, "Corners"), size
    ...     def lmo(self, direction):
    ...         return np.where(direction > 0, 0.0, self.size)
    >>> entry = cg.register("set", "corners", Corners, example=lambda: Corners(3), notation="{x : 0 <= x_i <= size}")
    >>> cg.DOMAINS["corners"] is entry, entry.parameters
    (True, ('shape', 'size'))
    >>> del cg.DOMAINS["corners"]
    """
    table = TABLES[choice(kind, TABLES, "kind of part")]
    if not isinstance(name, str) or not NAME.fullmatch(name) or name in RESERVED.get(kind, ()):
        raise ValueError(
            f"The name of the {_said(kind)} is {name!r}: give a word of letters, digits, '-', '_', '+' and '.' that begins "
            "with a letter or a digit and is not 'auto'."
        )
    if name in table:
        raise ValueError(f"The name of the {_said(kind)} {name!r} is taken: register yours under another name.")
    if not callable(factory):
        raise TypeError(f"The factory of {name!r} is {factory!r}, a class or a function was expected.")
    _check_signature(kind, name, factory)
    entry = ENTRIES[kind](name, factory, details)
    table[name] = entry
    return entry


def _check_signature(kind: str, name: str, factory: Callable[..., Any]) -> None:
    """Raise TypeError if a factory has parameters without names, such as ``*args``, because a spec gives parameters by name."""
    advice = "give a class or a function in which each parameter has a name"
    try:
        parameters = inspect.signature(factory).parameters.values()
    except (TypeError, ValueError):
        raise TypeError(f"The parameters of the factory of {name!r}, {factory!r}, are not known: {advice}.") from None
    nameless = [str(p) for p in parameters if p.kind not in (p.POSITIONAL_OR_KEYWORD, p.KEYWORD_ONLY)]
    if nameless and kind != "method":  # the options of a method are listed in its entry
        raise TypeError(f"The factory of {name!r} takes {', '.join(nameless)}: {advice}.")


def _said(kind: str) -> str:
    return "inner solver" if kind == "inner" else kind


def _set(name: str, factory: Callable[..., Any], details: dict[str, Any]) -> DomainEntry:
    details = {"notation": "", "oracle": "", **details}
    if callable(details.get("example")) and "examples" not in details:
        example = details.pop("example")
        details["examples"] = lambda: {"": example()}
    entry: DomainEntry = _made(DomainEntry, "set", name, factory, details, needed="example", field="examples")
    found = _built(entry.examples, "examples", name)
    if not isinstance(found, dict):
        raise TypeError(
            f"The examples of {name!r} are of type {type(found).__name__}, but a dict of sets was expected."
        )
    for label, built in found.items():
        _complete(built, f"set {name!r}{f' ({label})' if label else ''}", Domain)
    return entry


def _objective(name: str, factory: Callable[..., Any], details: dict[str, Any]) -> ObjectiveEntry:
    details = {"formula": "", **details}
    entry: ObjectiveEntry = _made(
        ObjectiveEntry, "objective", name, factory, details, needed="example", field="example"
    )
    _complete(_built(entry.example, "example", name), f"objective {name!r}", Objective, Expectation)
    return entry


def _loss(name: str, factory: Callable[..., Any], details: dict[str, Any]) -> LossEntry:
    entry: LossEntry = _made(LossEntry, "loss", name, factory, {"formula": "", **details})
    _complete(_default("loss", name, factory), f"loss {name!r}", Loss)
    return entry


def _inner(name: str, factory: Callable[..., Any], details: dict[str, Any]) -> InnerEntry:
    entry: InnerEntry = _made(InnerEntry, "inner", name, factory, details)
    _complete(_default("inner solver", name, factory), f"inner solver {name!r}", Inner)
    return entry


def _method(name: str, make: Callable[..., Any], details: dict[str, Any]) -> Method:
    entry: Method = _made(Method, "method", name, None, {"title": name, "make": make, **details})
    parameters = list(inspect.signature(make).parameters.values())
    options = [p.name for p in parameters[2:]]
    if len(parameters) < 2 or any(p.default is p.empty for p in parameters[2:]):
        raise TypeError(
            f"The method {name!r} is built by {getattr(make, '__name__', make)}({', '.join(p.name for p in parameters)}): "
            "make(problem, setup, **options) was expected, with a default for each option."
        )
    if options != list(entry.options):
        raise ValueError(
            f"The method {name!r} has the options {', '.join(options) or 'none'}, its entry describes "
            f"{', '.join(entry.options) or 'none'}: give options={{name: Option(check, example)}} in this order."
        )
    choice(entry.sees, ("gradient", "terms", "samples"), f"sees of the method {name!r}")
    return entry


ENTRIES: dict[str, Callable[[str, Callable[..., Any], dict[str, Any]], Any]] = {
    "set": _set,
    "objective": _objective,
    "loss": _loss,
    "method": _method,
    "inner": _inner,
}


def _made(
    entry: Any, kind: str, name: str, factory: Any, details: dict[str, Any], needed: str = "", field: str = ""
) -> Any:
    """Build the entry of the registry. Raises ValueError or TypeError if a detail is unknown, missing or of the wrong type."""
    for key in {needed, field} & set(details):
        if not callable(details[key]):
            found = type(details[key]).__name__
            raise TypeError(f"The {key} of {name!r} is of type {found}, but a function that builds one was expected.")
    known = [key for key in inspect.signature(entry).parameters if key not in ("name", "factory")]
    for key in details:
        choice(key, known, "detail", f" of the {_said(kind)} {name!r}")
    if field and field not in details:
        raise ValueError(
            f"The {kind} {name!r} is registered without an example: give {needed}=, a function that builds one."
        )
    given = details if factory is None else {"factory": factory, **details}
    return entry(name=name, **given)


def _built(example: Callable[[], Any], what: str, name: str) -> Any:
    try:
        return example()
    except Exception as error:  # any exception, because the function is the user's
        raise TypeError(
            f"The {what} of {name!r} can't be built ({type(error).__name__}: {error}): give a function without parameters."
        ) from error


def _default(kind: str, name: str, factory: Callable[..., Any]) -> Any:
    try:
        return factory()
    except TypeError as error:
        raise TypeError(
            f"The {kind} {name!r} can't be built without arguments ({error}): give each parameter a default."
        ) from None


def _complete(thing: Any, what: str, *contracts: type) -> None:
    if lacking := missing(thing, *contracts):
        raise TypeError(
            f"The {what} is of type {type(thing).__name__}, which has no {' and no '.join(lacking)}: add it."
        )


@cache
def load_plugins() -> None:
    """Load the entry points of the group ``condgrad``, once per process. If an entry point fails, a PluginWarning says why."""
    for point in entry_points(group=GROUP):
        try:
            point.load()()
        except Exception as error:
            sentence = (
                f"The entry point {point.name!r} ({point.value}) could not be loaded: {type(error).__name__}: {error}"
            )
            warnings.warn(sentence, PluginWarning, stacklevel=2)


def known(kind: str, name: Any = None) -> dict[str, Any]:
    """The registry of one kind of part. If ``name`` is not in the registry, plugins are loaded first."""
    table = TABLES[kind]
    if not isinstance(name, str) or name not in table:
        load_plugins()
    return table
