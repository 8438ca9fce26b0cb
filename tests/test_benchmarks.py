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
    "name", ["order_of_cost", "corrective", "problem5", "regressor", "soak", "mutants", "graph_matching", "methods"]
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


def test_the_gallery_draws_every_set_of_the_registry() -> None:
    gallery = import_module("benchmarks.set_gallery")
    text = "\n".join(gallery.page())
    entries = [entry for family in gallery.families().values() for entry in family]
    assert sorted(entry.name for entry in entries) == sorted(gallery.DOMAINS)
    assert all(f"| {entry.name} | `{entry.factory.__name__}` |" in text for entry in entries)
    assert not set(gallery.DRAWN) - set(gallery.DOMAINS)
    pytest.importorskip("matplotlib")
    some = [gallery.DOMAINS[name] for name in ("simplex", "box", "l2-ball")]
    picture = gallery.picture(some, 60, "#0072B2")
    assert picture[:8] == b"\x89PNG\r\n\x1a\n"
    for entry in some:
        _, points = gallery.instance(entry, 60)
        assert points.shape[1] == (2 if entry.name == "simplex" else 3)


def test_every_row_of_the_benchmark_of_sets_is_right() -> None:
    """The alternatives have the minimum of the oracle, whatever the clock says."""
    sets = import_module("benchmarks.sets")
    for case in sets.CASES:
        if case.name not in sets.DOMAINS or case.by in ("POT emd", "networkx") or case.name == "polytope":
            continue  # extras; their oracles have tests of their own
        assert sets.measured(case, 200 if min(case.sizes) >= 1_000 else 12, 1e-3)["agree"], case.name
