"""The fault campaign in its short form: each kind of fault twice, killed and resumed, the same to the bit."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

ROOT = Path(__file__).parents[1]


def test_killed_runs_go_on_bit_for_bit(tmp_path):
    command = [sys.executable, "-m", "benchmarks.faults", "--quick", "--check", "--out", str(tmp_path)]
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, timeout=600, check=False)
    assert done.returncode == 0, done.stdout + done.stderr
    rows = json.loads((tmp_path / "faults.json").read_text(encoding="utf-8"))["rows"]
    assert sum(row["kills"] for row in rows) >= 8
    assert all(row["same iterates"] and row["same end"] for row in rows)
    assert any(row["resumed from"] > 0 for row in rows)
