"""Griffe extension: Sphinx markup in docstrings as Markdown, and no second listing of constructor arguments."""

from __future__ import annotations

import re
from typing import Any

import griffe

MATH = re.compile(r"^([ \t]*)\.\. math::[ \t]*(.+(?:\n\1[ \t]+\S.*)*)$", re.MULTILINE)
ROLE = re.compile(r":(?:py:)?(?:func|class|mod|meth|attr|data|exc):`~?([^`]+)`")


def as_markdown(text: str) -> str:
    """Replace ``.. math::`` by a display formula, and roles such as ``:func:`` by code."""
    text = MATH.sub(lambda found: f"{found[1]}$$\n{found[1]}{' '.join(found[2].split())}\n{found[1]}$$", text)
    return ROLE.sub(r"`\1`", text)


class Docstrings(griffe.Extension):
    """Called by mkdocstrings for each object that it reads."""

    def on_object(self, *, obj: Any, **_: Any) -> None:
        if obj.docstring is not None:
            obj.docstring.value = as_markdown(obj.docstring.value)

    def on_class(self, *, cls: Any, **_: Any) -> None:
        """Drop `self.name = name` of `__init__`: the parameters of the class describe it."""
        init = cls.members.get("__init__")
        arguments = {p.name for p in init.parameters} if init is not None and init.is_function else set()
        for name in [n for n, m in cls.members.items() if n in arguments and m.is_attribute and m.docstring is None]:
            del cls.members[name]
