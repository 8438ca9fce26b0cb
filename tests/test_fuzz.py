"""Edited files of every kind: taken, or refused as documented. The long form is `make fuzz`; what it found stays here."""

from __future__ import annotations

from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzzing import attempt, cases, npy, targets, zipped
from hypothesis import HealthCheck, given, settings

from condgrad.data import BadData, load

NAMES = (
    "csv",
    "csv, strict",
    "csv of positions",
    "pairs",
    "gzip",
    "matrix-market",
    "libsvm",
    "npz",
    "npz of any members",
    "parquet",
    "spec",
    "trace",
    "result",
    "archive",
    "checkpoint",
)


def test_every_target_is_fuzzed(tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    known = targets(tmp_path)
    assert set(known) == set(NAMES)
    assert all(attempt(target, seed) for target in known.values() for seed in target.seeds), "a valid file is refused"


@pytest.mark.parametrize("name", NAMES)
def test_no_error_but_the_documented_ones(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    target = targets(tmp_path)[name]

    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(target))
    def check(case: bytes) -> None:
        attempt(target, case)

    check()


# ------------------------------------------------------------------------------------------------- what was found


def test_an_array_header_that_never_ends(tmp_path: Path) -> None:
    """numpy's reader of old headers raised an error of the tokenizer."""
    broken = npy(np.array([0, 1])).replace(b"{'descr'", b"[{'descr'")
    (tmp_path / "x.npz").write_bytes(zipped([broken]))
    with pytest.raises(BadData, match="no NPZ file of arrays of numbers, or it is damaged"):
        load(tmp_path / "x.npz")
