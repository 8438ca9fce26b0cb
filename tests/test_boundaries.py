"""Imports go down only, heavy libraries stay in their rooms, and files stay small."""

from __future__ import annotations

import ast
import subprocess
import sys
from pathlib import Path

import pytest

SRC = Path(__file__).parent.parent / "src" / "condgrad"
FILES = sorted(SRC.rglob("*.py"))

LAYERS = (
    {"cli", "_api"},
    {"comparison", "paper", "learn", "testing"},
    {"spec"},
    {"own_parts", "report"},
    {"driver"},
    {"registration"},
    {"solvers"},
    {"distributed", "estimators", "inner"},
    {"objectives", "domains"},
    {"certificate"},
    {"points"},
    {"protocols"},
    {"data", "kernels", "linalg"},
    {"storage"},
    {"checks", "runtime"},
)
"""From the top down: a layer may import what stands below it, never a neighbour."""
DEPTH = {name: depth for depth, layer in enumerate(LAYERS) for name in layer}

APART = {"solvers", "estimators", "inner"}
"""They know problems only through the contracts."""


def room(path: Path) -> str:
    """The package or module right under condgrad that the file belongs to ('' for condgrad itself)."""
    first = path.relative_to(SRC).parts[0]
    return first.removesuffix(".py").removeprefix("__init__")


def imports(path: Path) -> list[tuple[str, bool]]:
    """(full name, at module level?) of everything that the file imports."""
    tree = ast.parse(path.read_text(encoding="utf-8"))
    functions = [node for node in ast.walk(tree) if isinstance(node, ast.FunctionDef)]
    late = {id(node) for function in functions for node in ast.walk(function)}
    found: list[tuple[str, bool]] = []
    for node in ast.walk(tree):
        if isinstance(node, ast.Import):
            found += [(alias.name, id(node) not in late) for alias in node.names]
        elif isinstance(node, ast.ImportFrom):
            assert node.level == 0, f"{path}: relative imports hide where they go"
            found += [(f"{node.module}.{alias.name}", id(node) not in late) for alias in node.names]
    return found


def own(path: Path) -> set[str]:
    """Which rooms of condgrad the file imports from."""
    names = [name.split(".") for name, _ in imports(path)]
    return {parts[1] for parts in names if parts[0] == "condgrad" and len(parts) > 1}


def where(path: Path) -> str:
    return str(path.relative_to(SRC))


def test_there_is_something_to_check() -> None:
    assert len(FILES) > 40
    assert own(SRC / "driver" / "verification.py") >= {"solvers", "certificate", "protocols"}
    assert ("pandas", False) in imports(SRC / "driver" / "trace.py")


@pytest.mark.parametrize("path", FILES, ids=where)
def test_every_file_has_a_layer(path: Path) -> None:
    assert room(path) in {"", "__main__", *DEPTH}, f"{where(path)} is in no layer: give it one in LAYERS"


@pytest.mark.parametrize("path", [path for path in FILES if room(path) in DEPTH], ids=where)
def test_imports_go_down_only(path: Path) -> None:
    here = room(path)
    up = {name for name in own(path) - {here} if DEPTH.get(name, -1) <= DEPTH[here] and name != "__version__"}
    assert not up, f"{where(path)} imports {sorted(up)}, which does not stand below {here}"


@pytest.mark.parametrize("path", [path for path in FILES if room(path) in APART], ids=where)
def test_methods_know_no_objective_and_no_set(path: Path) -> None:
    assert not own(path) & {"objectives", "domains"}


@pytest.mark.parametrize("path", FILES, ids=where)
def test_heavy_libraries_stay_in_their_rooms(path: Path) -> None:
    outside = {name.split(".")[0]: early for name, early in imports(path)}
    if "matplotlib" in outside:
        assert where(path) == "report/figures.py"
        assert not outside["matplotlib"], "matplotlib is imported at module level"
    for table in {"pandas", "pyarrow"} & set(outside):
        rooms = ("driver/trace.py", "data/arrow_columns.py", "data/parquet.py", "distributed/folders.py")
        rooms += ("learn/completion/table_labels.py", "comparison/costs.py", "data/parquet_stream.py")
        assert where(path) in rooms
        assert not outside[table], f"{table} is imported at module level"
    if "PIL" in outside:
        assert where(path) == "learn/images.py" and not outside["PIL"], "pillow is imported late, for pictures"
    if {"numba", "llvmlite"} & set(outside):
        assert room(path) == "kernels"
    if "sklearn" in outside:
        assert room(path) == "learn"
    if {"dask", "distributed"} & set(outside):
        assert room(path) == "distributed"
    solvers = {"highspy", "ot", "networkx"}
    for solver in solvers & set(outside):
        late = where(path).startswith("domains/polytopes/") and not outside[solver]
        assert late, f"{solver} is imported late, for oracles"
    allowed = {"sklearn", "numpy", "numba", "llvmlite", "scipy", "condgrad", "matplotlib", "pandas", "pyarrow", "PIL"}
    allowed |= solvers | {"dask", "distributed"}
    foreign = {name for name in outside if name not in allowed and name not in sys.stdlib_module_names}
    assert not foreign, f"{where(path)} imports {sorted(foreign)}, which nobody declared"


def summary(name: str) -> str:
    """The first line of a room's docstring."""
    path = SRC / name / "__init__.py" if (SRC / name).is_dir() else SRC / f"{name}.py"
    return (ast.get_docstring(ast.parse(path.read_text(encoding="utf-8"))) or "").splitlines()[0]


def picture() -> str:
    """The rooms, one a line, layers from the top down with an empty line between them."""
    shown = {name: f"{name}/" if (SRC / name).is_dir() else f"{name}.py" for name in DEPTH}
    wide = max(map(len, shown.values())) + 2
    return "\n\n".join("\n".join(f"{shown[name]:{wide}}{summary(name)}" for name in sorted(layer)) for layer in LAYERS)


def test_the_picture_in_the_docs_is_that_of_the_layers() -> None:
    page = (SRC.parents[1] / "docs" / "design.md").read_text(encoding="utf-8")
    assert f"```\n{picture()}\n```" in page, f"docs/design.md shows other layers; put this there:\n\n{picture()}"


def test_estimators_are_imported_by_name_only() -> None:
    code = "import sys, condgrad; sys.exit(bool({'sklearn', 'condgrad.learn'} & set(sys.modules)))"
    assert subprocess.run([sys.executable, "-c", code]).returncode == 0
