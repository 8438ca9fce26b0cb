"""Edited files of every kind: taken, or refused as documented. The long form is `make fuzz`; what it found stays here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzzing import TARGETS, attempt, cases, npy, target, zipped
from hypothesis import HealthCheck, given, settings

from condgrad.data import BadData, load


@pytest.mark.parametrize("name", TARGETS)
def test_no_error_but_the_documented_ones(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    reads = target(name, tmp_path)
    assert all(attempt(reads, seed) for seed in reads.seeds), "a valid file is refused"

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(reads))
    def check(case: bytes) -> None:
        attempt(reads, case)

    check()


# ------------------------------------------------------------------------------------------------- what was found


def test_an_array_header_that_never_ends(tmp_path: Path) -> None:
    """numpy's reader of old headers raised an error of the tokenizer."""
    broken = npy(np.array([0, 1])).replace(b"{'descr'", b"[{'descr'")
    (tmp_path / "x.npz").write_bytes(zipped([broken]))
    with pytest.raises(BadData, match="no NPZ file of arrays of numbers, or it is damaged"):
        load(tmp_path / "x.npz")
