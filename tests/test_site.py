"""The built site: strict, self-contained, with mathematics, search and every public name. And the wheel: typed."""

from __future__ import annotations

import importlib
import json
import re
import shutil
import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

import condgrad

ROOT = Path(__file__).parent.parent
PACKAGES = [
    "data",
    "distributed",
    "domains",
    "driver",
    "estimators",
    "inner",
    "learn",
    "objectives",
    "points",
    "report",
    "solvers",
    "testing",
]


@pytest.fixture(scope="module")
def site(tmp_path_factory: pytest.TempPathFactory) -> Path:
    for package in ("mkdocs", "mkdocstrings", "latex2mathml"):
        pytest.importorskip(package)
    folder = tmp_path_factory.mktemp("site")
    command = [sys.executable, "-m", "mkdocs", "build", "--strict", "--quiet", "--site-dir", str(folder)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600)
    assert done.returncode == 0, done.stdout + done.stderr
    return folder


def ids(page: Path) -> set[str]:
    return set(re.findall(r'id="([^"]+)"', page.read_text(encoding="utf-8")))


def test_pages_fetch_nothing(site: Path) -> None:
    pages = list(site.rglob("*.html"))
    assert len(pages) > 25
    for page in pages:
        text = page.read_text(encoding="utf-8")
        fetched = re.findall(r'<(?:script|img|iframe|link)\b[^>]*?(?:src|href)="((?:https?:)?//[^"]*)"', text)
        assert not fetched, (page.name, fetched)
    for style in site.rglob("*.css"):
        assert not re.findall(r"(?:@import|url\()\s*[\"']?(?:https?:)?//", style.read_text(encoding="utf-8")), (
            style.name
        )


def test_formulas_are_rendered(site: Path) -> None:
    for name, count in (("index", 1), ("certificates", 2)):
        page = (site / f"{name}.html").read_text(encoding="utf-8")
        assert page.count("<math") == count
    for name, count in (("driver", 2), ("learn", 4)):
        assert (site / "api" / f"{name}.html").read_text(encoding="utf-8").count("<math") >= count


def test_no_markup_is_shown_raw(site: Path) -> None:
    for page in site.rglob("*.html"):
        text = re.sub(r"<(pre|code|script)\b.*?</\1>", "", page.read_text(encoding="utf-8"), flags=re.DOTALL)
        assert not re.search(r"\\[a-zA-Z]{2}|\$\$|\.\. math|:(?:func|class|mod|meth|attr):|``", text), page.name


def test_the_reference_shows_each_constructor_argument_once_and_no_private_base(site: Path) -> None:
    for page in (site / "api").glob("*.html"):
        text = re.sub(r"<[^>]*>", "", page.read_text(encoding="utf-8"))
        assert "Bases:" not in text, page.name
        repeated = re.findall(r"^\s*(\w+) = \1\s*$", text, flags=re.MULTILINE)
        assert not repeated, (page.name, repeated)


def test_parameters_have_types_not_prose() -> None:
    """In numpydoc ``name : type``: what follows the colon is no sentence."""
    wrong = []
    for package in ("driver", "inner", "learn"):
        for path in (ROOT / "src" / "condgrad" / package).glob("*.py"):
            for found in re.finditer(r"^ {4,8}\w[\w, ]* : (.+)$", path.read_text(encoding="utf-8"), re.MULTILINE):
                if found[1].endswith(".") or ";" in found[1]:
                    wrong.append((path.name, found[0].strip()))
    assert not wrong, wrong


def test_search_knows_pages_and_names(site: Path) -> None:
    index = json.loads((site / "search" / "search_index.json").read_text(encoding="utf-8"))["docs"]
    titles = {entry["title"] for entry in index}
    assert {"Certificates", "Glossary", "NuclearBall", "RobustCompletion", "minimize"} <= titles
    assert 'role="search"' in (site / "index.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("package", PACKAGES)
def test_the_reference_has_every_public_name_of_a_package(site: Path, package: str) -> None:
    found = ids(site / "api" / f"{package}.html")
    for name in importlib.import_module(f"condgrad.{package}").__all__:
        full = f"condgrad.{package}.{name}"
        assert full in found or f"{full}.{name}" in found, full  # a function in a module of its own name


def test_the_reference_links_every_public_name_of_condgrad(site: Path) -> None:
    page = (site / "api" / "condgrad.html").read_text(encoding="utf-8")
    links = dict(re.findall(r'href="([^"]*)"><code>(\w+)</code>', page))
    assert sorted(links.values()) == sorted(condgrad.__all__)
    for link in links:
        path, _, anchor = link.partition("#")
        assert anchor in ids(site / "api" / (path or "condgrad.html")), link


def test_a_wheel_has_types_and_the_files_that_the_report_needs(tmp_path: Path) -> None:
    pytest.importorskip("setuptools", minversion="77")
    tree = tmp_path / "tree"
    shutil.copytree(ROOT / "src", tree / "src", ignore=shutil.ignore_patterns("__pycache__", "*.egg-info"))
    for name in ("pyproject.toml", "README.md", "LICENSE"):
        shutil.copy(ROOT / name, tree)
    command = [sys.executable, "-m", "pip", "wheel", "--quiet", "--no-deps", "--no-build-isolation", "--no-index"]
    done = subprocess.run(
        [*command, "--wheel-dir", str(tmp_path), str(tree)], capture_output=True, text=True, timeout=600
    )
    assert done.returncode == 0, done.stderr
    (wheel,) = tmp_path.glob("*.whl")
    assert f"-{condgrad.__version__}-" in wheel.name
    names = set(zipfile.ZipFile(wheel).namelist())
    assert {"condgrad/py.typed", "condgrad/report/page.css", "condgrad/report/page.js", "condgrad/_api.py"} <= names
