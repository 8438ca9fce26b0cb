"""The README and the docs say what the registries say."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from benchmarks.figure1 import BEGIN, DATA, END, block, stale_presets

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
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links {target}"


def test_what_is_quoted_of_figure_1_is_that_of_the_json() -> None:
    found = json.loads(DATA.read_text(encoding="utf-8"))
    quoted = README.split(BEGIN)[1].split(END)[0].strip("\n")
    assert quoted == block(found)
    assert sum(line.startswith("| ") for line in quoted.splitlines()) <= 2 + 8 + 2 + 4, "the tables grow long"


def test_presets_are_the_settings_that_a_full_run_chose() -> None:
    assert stale_presets(json.loads(DATA.read_text(encoding="utf-8"))) == {}
