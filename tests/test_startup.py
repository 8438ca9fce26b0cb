"""What `import condgrad` and the commands load, seen in a process of their own; and the names that are loaded on demand."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

import condgrad

HEAVY = {"numba", "llvmlite", "scipy", "sklearn", "matplotlib", "pandas", "pyarrow", "PIL"}


def in_new_process(code: str) -> str:
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stderr
    return done.stdout


def loaded_by(code: str) -> set[str]:
    """The heavy packages that a new process has imported after this code."""
    report = "import sys; print(*sorted({name.split('.')[0] for name in sys.modules}))"
    return HEAVY & set(in_new_process(f"{code}\n{report}").splitlines()[-1].split())


def test_the_check_sees_what_is_loaded() -> None:
    assert loaded_by("import condgrad; condgrad.minimize") >= {"scipy"}


def test_import_condgrad_loads_no_heavy_library() -> None:
    assert loaded_by("import condgrad; condgrad.__version__") == set()


@pytest.mark.parametrize(
    "arguments", [["--version"], ["--help"], ["solve", "--help"], ["complete", "--help"]], ids=" ".join
)
def test_version_and_help_load_no_heavy_library(arguments: list[str]) -> None:
    run = "from contextlib import suppress\nfrom condgrad.cli import main"
    assert loaded_by(f"{run}\nwith suppress(SystemExit): main({arguments!r})") == set()


def test_every_public_name_is_found_on_demand() -> None:
    for name in condgrad.__all__:
        assert getattr(condgrad, name) is not None
    code = "import condgrad; assert set(condgrad.__all__) <= set(dir(condgrad)), dir(condgrad)"
    in_new_process(code)
    in_new_process("from condgrad import *; minimize, Simplex, BadArchive")


def test_subpackages_are_found_on_demand() -> None:
    in_new_process("import condgrad; condgrad.learn.RobustCompletion; condgrad.data.load; condgrad.driver.mapping")
    assert {"learn", "data", "driver", "domains"} <= set(dir(condgrad))
    code = "from condgrad import kernels; import sys; assert 'condgrad.driver' not in sys.modules"
    in_new_process(code)


def test_a_name_that_does_not_exist_is_an_attribute_error() -> None:
    with pytest.raises(AttributeError, match="module 'condgrad' has no attribute 'minimise'"):
        condgrad.minimise  # type: ignore[attr-defined] # noqa: B018
    assert not hasattr(condgrad, "__wrapped__")


def test_no_public_name_is_that_of_a_module() -> None:
    """`condgrad.name` would be one or the other, by the order of imports."""
    package = Path(condgrad.__file__).parent
    assert not {path.stem for path in package.iterdir()} & set(condgrad.__all__)


def test_public_names_are_imported_and_listed_once() -> None:
    tree = ast.parse((Path(condgrad.__file__).parent / "_api.py").read_text(encoding="utf-8"))
    imported = [alias.name for node in tree.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert sorted(imported) == sorted(condgrad.__all__)
