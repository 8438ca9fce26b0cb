"""The methods of a comparison, as users name them: ``frank-wolfe:rule=short``."""

from __future__ import annotations

import tomllib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from condgrad.checks import choice
from condgrad.registration import known

Methods = str | Sequence[Any] | Mapping[str, Any]
"""What ``compare`` accepts as methods."""


@dataclass(frozen=True)
class Requested:
    """A method with its options and settings, under the label by which tables name it."""

    label: str
    method: str
    settings: Mapping[str, Any] = field(default_factory=dict)


def requested(methods: Methods) -> list[Requested]:
    """The methods that are to be compared; raises ValueError for an unknown name, a doubled label or no method."""
    if isinstance(methods, str):
        methods = [*known("method")] if methods == "all" else methods.split(",")
    items = methods.items() if isinstance(methods, Mapping) else [(None, item) for item in methods]
    found = [one(item, label) for label, item in items]
    labels = [each.label for each in found]
    for label in labels:
        if labels.count(label) > 1:
            raise ValueError(f"The method '{label}' is given twice: name each once, or give labels, as a dict.")
    if not found:
        raise ValueError("There is no method to compare: name at least one, or give 'all'.")
    return found


def one(item: Any, label: str | None = None) -> Requested:
    """A method from ``"name"``, ``"name:option=value:..."`` or ``(name, {option: value})``."""
    if isinstance(item, str):
        name, *pairs = item.strip().split(":")
        settings = dict(option(pair, item) for pair in pairs)
        label = label or item.strip()
    elif isinstance(item, tuple) and len(item) == 2 and isinstance(item[1], Mapping):
        name, settings = item[0], dict(item[1])
        label = label or ":".join([str(name), *(f"{key}={value}" for key, value in settings.items())])
    else:
        raise TypeError(f"A method is {item!r}, but 'name', 'name:option=value' or (name, options) was expected.")
    choice(name, [*known("method", name), "auto"], "method")
    return Requested(label, name, settings)


def option(pair: str, item: str) -> tuple[str, Any]:
    """The name and the value of ``name=value``. The value is a number, true or false as in TOML, else text."""
    name, equals, text = pair.partition("=")
    if not equals or not name:
        raise ValueError(f"The method '{item}' has the option '{pair}', but name=value was expected.")
    try:
        return name, tomllib.loads(f"value = {text}")["value"]
    except tomllib.TOMLDecodeError:
        return name, text
