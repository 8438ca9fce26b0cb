"""Render the formulas of the pages as MathML, which browsers show without a script or a network."""

from __future__ import annotations

import html
import re
from typing import Any

FORMULA = re.compile(r'<(span|div) class="arithmatex">\\([(\[])(.*?)\\[)\]]</\1>', re.DOTALL)


def on_page_content(content: str, **_: Any) -> str:
    """Called by mkdocs with the HTML of each page; `pymdownx.arithmatex` has marked the formulas."""
    return FORMULA.sub(_rendered, content)


def _rendered(found: re.Match[str]) -> str:
    from latex2mathml.converter import convert  # here: pytest imports this file, also where no page is built

    formula = convert(html.unescape(found[3]), display="block" if found[2] == "[" else "inline")
    if "\\" in formula:
        raise ValueError(f"latex2mathml does not know a command in {found[3]!r}: write it in other words.")
    return formula
