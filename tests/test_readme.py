"""The README and the docs say what the registries say."""

from __future__ import annotations

import json
import re
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
    pages = [ROOT / "README.md", *(ROOT / "docs").glob("*.md")]
    for page in pages:
        for target in re.findall(r"\]\(([^)#]+)\)", page.read_text(encoding="utf-8")):
            if "://" not in target:
                assert (page.parent / target).exists(), f"{page.name} links {target}"


def figure_rows() -> set[str]:
    """Every row of Figure 1's tables, as the README would show it, from what `condgrad reproduce --json` printed."""
    found = json.loads((ROOT / "docs" / "figure1.json").read_text(encoding="utf-8"))
    rows = set()
    for name in ("fig1a", "fig1b"):
        for generator in ("orthonormal", "gaussian"):
            for r in found[name][generator]["rows"]:
                gradients = r["fo"] if "fo" in r else r["ifo"]
                cpu = "not reached" if r["cpu"] is None else f"{r['cpu']:.3g}"
                counts = ["-" if count is None else f"{count:,}" for count in (gradients, r["lo"])]
                there = f"{r['reached']} of {r['runs']}"
                rows.add(f"| {name[3:]} | {generator} | {r['method']} | {there} | {cpu} | {' | '.join(counts)} |")
    return rows


def test_the_figures_quoted_of_figure_1_are_those_of_the_json() -> None:
    quoted = [line for line in README.splitlines() if line.startswith(("| 1a |", "| 1b |"))]
    assert len(quoted) >= 8
    assert set(quoted) <= figure_rows()
