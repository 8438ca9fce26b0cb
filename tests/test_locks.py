"""The lock files: every package has hashes, the locks agree with each other and with pyproject.toml, and name no place."""

from __future__ import annotations

import re
import tomllib
from pathlib import Path

import pytest

packaging_requirements = pytest.importorskip("packaging.requirements")

ROOT = Path(__file__).parent.parent
LOCKS = {
    "requirements.lock": "dev",
    "demo.lock": "plot",
    "benchmarks/fuzz.lock": "fuzz",
    "benchmarks/peers.lock": "completion-peers",
}
"""Lock file: the extra that it locks."""


def canonical(name: str) -> str:
    return re.sub(r"[-_.]+", "-", name).lower()


def locked(name: str) -> dict[str, tuple[str, str, frozenset[str]]]:
    """Package and marker: name, version, hashes."""
    found = {}
    for line in (ROOT / name).read_text(encoding="utf-8").replace("\\\n", " ").splitlines():
        requirement, *hashes = re.split(r"\s+--hash=", line.strip())
        read = packaging_requirements.Requirement(requirement)
        (pin,) = read.specifier
        assert pin.operator == "==" and hashes, f"{name}: {line}"
        assert all(re.fullmatch(r"sha256:[0-9a-f]{64}", value) for value in hashes)
        found[f"{canonical(read.name)} {read.marker}"] = (canonical(read.name), pin.version, frozenset(hashes))
    return found


@pytest.mark.parametrize("name", LOCKS)
def test_every_package_has_hashes_and_no_place_is_named(name: str) -> None:
    assert len(locked(name)) > 10
    assert not re.search(r"://|index|file:|^-|(?<![a-z0-9])/", (ROOT / name).read_text(encoding="utf-8"), re.MULTILINE)


@pytest.mark.parametrize("name", ["demo.lock", "benchmarks/fuzz.lock"])
def test_locks_share_their_versions(name: str) -> None:
    everything = locked("requirements.lock")
    for package, pinned in locked(name).items():
        assert package in everything or (name != "demo.lock" and pinned[0] == "atheris"), package
        assert everything.get(package, pinned) == pinned


@pytest.mark.parametrize(("name", "extra"), LOCKS.items())
def test_locks_have_what_the_project_asks_for(name: str, extra: str) -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    extras = project["project"]["optional-dependencies"]
    versions = {package: version for package, version, _ in locked(name).values()}
    asked = [*project["build-system"]["requires"], *project["project"]["dependencies"], *extras[extra]]
    while asked:
        requirement = packaging_requirements.Requirement(asked.pop())
        if requirement.name == "condgrad":
            asked += [one for part in requirement.extras for one in extras[part]]
        else:
            assert requirement.specifier.contains(versions[canonical(requirement.name)]), str(requirement)


def test_the_demo_installs_no_tools() -> None:
    tools = {"ruff", "mypy", "pytest", "hypothesis", "mkdocs", "copt", "scikit-learn", "pyarrow"}
    assert not tools & {package for package, *_ in locked("demo.lock").values()}


def test_make_installs_by_hash_only() -> None:
    makefile = (ROOT / "Makefile").read_text(encoding="utf-8")
    installs = re.findall(r"^\t\S*/pip (.*)$", makefile, re.MULTILINE)
    assert len(installs) >= 8
    for install in installs:
        assert install.startswith(("$(INSTALL)", "$(EDITABLE)")) or "uv" in install, install
    assert "--require-hashes" in makefile and "--no-build-isolation" in makefile
