"""The README and the docs say what the registries say."""

from __future__ import annotations

from pathlib import Path

import pytest

from condgrad import METHODS
from condgrad.solvers import Method

ROOT = Path(__file__).parents[1]
README = (ROOT / "README.md").read_text(encoding="utf-8")


def row(m: Method) -> str:
    link = f"[{Path(m.file).name}](src/condgrad/{m.file})"
    return f"| `{m.name}` | {m.assumes} | {m.oracles} | {m.bound} | {link} | {m.reference} |"


@pytest.mark.parametrize("method", METHODS.values(), ids=lambda m: m.name)
def test_the_methods_table_has_each_method_as_the_registry_has_it(method: Method) -> None:
    assert row(method) in README


def test_every_picture_and_page_that_is_linked_is_there() -> None:
    import re

    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links {target}"
