"""Without an optional dependency every entry point that needs it says which pip command installs it."""

from __future__ import annotations

import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from condgrad.runtime.extras import EXTRAS, MissingExtra, needed_for

ROOT = Path(__file__).parent.parent

IN_PYTHON = {
    "distributed": ["import condgrad.distributed", "cg.distributed.ShardedCompletion"],
    "highspy": ["cg.Polytope(lower=[0.0], upper=[1.0])", "cg.Polytope.from_file('model.lp')"],
    "networkx": ["cg.MatchingPolytope([(0, 1)])"],
    "ot": ["cg.TransportPolytope([1.0], [1.0], solver='network-simplex')"],
    "sklearn": ["import condgrad.learn", "from condgrad.learn.images import read", "cg.learn.RobustPCA"],
    "pandas": ["trace.to_dataframe()", "trace.to_parquet('t.parquet')"],
    "pyarrow": ["trace.to_parquet('t.parquet')", "cg.data.load('ratings.parquet')"],
    "PIL": ["from condgrad.learn import images; images.read('in.png')"],
    "matplotlib": ["from condgrad.report.figures import draw_picture; draw_picture(picture, Path('.'))"],
}
COMMANDS = {
    "sklearn": ["complete ratings.csv --out m.npz", "predict m.npz ratings.csv", "fill in.png --out out.png"],
    "pyarrow": ["complete ratings.parquet --out m.npz --no-report"],
    "PIL": ["fill in.png --out out.png"],
    "matplotlib": [
        "solve spec.toml --figures",
        "report run --figures",
        "complete ratings.csv --out m.npz --figures",
    ],
}
PREAMBLE = """
import sys
class Blocker:
    def find_spec(name, path=None, target=None):
        if name == BLOCKED:
            raise ModuleNotFoundError(f"No module named {name!r}", name=name)
sys.meta_path.insert(0, Blocker)
from pathlib import Path
import numpy as np
import condgrad as cg
from condgrad.cli import main
from condgrad.report import Picture
picture = Picture("p", "P", {"a": np.eye(2)})
trace = cg.minimize(cg.Quadratic(np.eye(2)), cg.Simplex(2)).trace
for code in CODES:
    try:
        exec(code)
    except ImportError as error:
        print(error)
    else:
        print("nothing said by", code)
for command in COMMANDS:
    assert main(command.split()) == 2
"""


@pytest.mark.parametrize("module", EXTRAS)
def test_each_missing_package_is_named_with_its_pip_command(module: str, tmp_path: Path) -> None:
    (tmp_path / "ratings.csv").write_text("user,item,rating\na,b,1\nc,d,2\n")
    for name in ("in.png", "ratings.parquet", "spec.toml"):
        (tmp_path / name).write_bytes(b"")
    codes, commands = IN_PYTHON[module], COMMANDS.get(module, [])
    code = f"BLOCKED, CODES, COMMANDS = {module!r}, {codes!r}, {commands!r}\n{PREAMBLE}"
    done = subprocess.run([sys.executable, "-c", code], cwd=tmp_path, capture_output=True, text=True, timeout=300)
    assert done.returncode == 0, done.stdout + done.stderr
    distribution, extra = EXTRAS[module]
    ending = f"need {distribution}, which is not installed: pip install 'condgrad[{extra}]'."
    said = done.stdout.splitlines() + done.stderr.splitlines()
    assert len(said) == len(codes) + len(commands), said
    assert all(line.endswith(ending) for line in said), said
    assert all(line.startswith("condgrad: ") for line in done.stderr.splitlines())


def test_the_extras_install_what_they_are_named_for() -> None:
    declared = tomllib.loads((ROOT / "pyproject.toml").read_text())["project"]["optional-dependencies"]
    for distribution, extra in EXTRAS.values():
        assert any(requirement.startswith(f"{distribution}>=") for requirement in declared[extra])


def test_a_broken_installation_is_not_taken_for_a_missing_one() -> None:
    with pytest.raises(ImportError, match="libfoo") as caught, needed_for("Tables"):
        raise ImportError("libfoo.so: cannot open shared object file", name="pandas._libs")
    assert not isinstance(caught.value, MissingExtra)


def test_a_missing_part_of_a_package_is_named_by_the_package() -> None:
    with pytest.raises(MissingExtra, match=r"pip install 'condgrad\[table\]'"), needed_for("Parquet files"):
        raise ModuleNotFoundError("No module named 'pyarrow.parquet'", name="pyarrow.parquet")
