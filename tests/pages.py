"""A page taken apart as a browser does, and pages written without their figures for print."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from html.parser import HTMLParser
from typing import Any

import pytest

from condgrad.report import figures


@contextmanager
def undrawn() -> Iterator[None]:
    """Without the figures for print, which take a second each and have tests of their own."""
    with pytest.MonkeyPatch.context() as patch:
        for draw in ("draw_plot", "draw_picture"):
            patch.setattr(figures, draw, lambda block, folder: None)
        yield


class Elements(HTMLParser):
    """The page as a browser takes it apart."""

    def __init__(self, page: str):
        super().__init__()
        self.tags: list[tuple[str, dict[str, str | None]]] = []
        self.texts: list[tuple[str, str]] = []
        self.feed(page)

    def handle_starttag(self, tag: str, attrs: list[tuple[str, str | None]]) -> None:
        self.tags.append((tag, dict(attrs)))

    def handle_data(self, data: str) -> None:
        self.texts.append((self.tags[-1][1].get("id") or self.tags[-1][0] if self.tags else "", data))

    def text(self, of: str) -> str:
        return "".join(data for where, data in self.texts if where == of)

    def named(self, tag: str) -> list[dict[str, str | None]]:
        return [attributes for name, attributes in self.tags if name == tag]


def strictly(text: str) -> Any:
    def refuse(constant: str) -> None:
        raise AssertionError(f"{constant} is not JSON")

    return json.loads(text, parse_constant=refuse)
