"""The benchmarks in their quick form: they run, write what they promise, and their claims hold."""

from __future__ import annotations

import json
import subprocess
import sys
from importlib import import_module
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[1]


@pytest.mark.slow
@pytest.mark.parametrize(
    "name", ["order_of_cost", "corrective", "problem5", "regressor", "soak", "mutants", "graph_matching", "set_inners"]
)
def test_the_claims_hold(name: str, tmp_path: Path) -> None:
    command = [sys.executable, "-m", f"benchmarks.{name}", "--quick", "--check", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    written = json.loads((tmp_path / f"{name}.json").read_text(encoding="utf-8"))
    assert written["rows"] and written["claims"]
    assert all(
        set(claim) == {"claim", "required", "measured", "holds"} and claim["holds"] for claim in written["claims"]
    )


@pytest.mark.filterwarnings("ignore::DeprecationWarning")  # copt's
@pytest.mark.parametrize("path", sorted((ROOT / "benchmarks").glob("*.py")), ids=lambda path: path.stem)
@pytest.mark.filterwarnings("ignore::SyntaxWarning")  # copt has invalid escapes, which Python 3.12 and newer warn of
def test_every_benchmark_can_be_imported(path: Path) -> None:
    import_module(f"benchmarks.{path.stem}")
