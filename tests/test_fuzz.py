"""Edited files of every kind: taken, or refused as documented. The long form is `make fuzz`; what it found stays here."""

from __future__ import annotations

import json
import zipfile
from pathlib import Path

import numpy as np
import pytest
from benchmarks.fuzz_targets import SEED, TARGETS, npy, target, zipped
from benchmarks.fuzzing import attempt, cases
from hypothesis import HealthCheck, given, seed, settings

from condgrad.data import BadData, load
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive


@pytest.mark.parametrize("name", TARGETS)
def test_no_error_but_the_documented_ones(name: str, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    reads = target(name, tmp_path)
    assert all(attempt(reads, valid) for valid in reads.seeds), "a valid file is refused"

    @seed(SEED)
    @settings(max_examples=60, deadline=None, database=None, suppress_health_check=list(HealthCheck))
    @given(case=cases(reads))
    def check(case: bytes) -> None:
        attempt(reads, case)

    check()


# ------------------------------------------------------------------------------------------------- what was found


@pytest.mark.parametrize("edit", [(b"{'descr'", b"[{'descr'"), (b"}  ", b"}\n ")], ids=["never ends", "repaired"])
def test_an_array_header_that_numpy_repairs(edit: tuple[bytes, bytes], tmp_path: Path) -> None:
    """numpy's reader of old headers raised an error of the tokenizer, and warned of Python 2."""
    assert edit[0] in npy(np.array([0, 1]))
    (tmp_path / "x.npz").write_bytes(zipped([npy(np.array([0, 1])).replace(*edit)]))
    with pytest.raises(BadData, match=r"no NPZ file of arrays of numbers|there is no array 'col'"):
        load(tmp_path / "x.npz")
    archive.write(tmp_path / "a.npz", "test", 1, None, {"x": np.arange(2)})
    whole = (tmp_path / "a.npz").read_bytes()
    assert edit[0] in whole
    with zipfile.ZipFile(tmp_path / "a.npz") as before, zipfile.ZipFile(tmp_path / "b.npz", "w") as after:
        for name in before.namelist():
            after.writestr(name, before.read(name).replace(*edit))
    with pytest.raises(BadArchive, match=r"b\.npz can't be used"):
        archive.read(tmp_path / "b.npz", "test", 1)


@pytest.mark.parametrize("lost", ["k", "problem", "tree", "nodes", "rows", "spent", "counts"])
def test_a_checkpoint_that_lacks_something(lost: str, tmp_path: Path) -> None:
    """Its checksums hold, as a stranger's may: what was looked up before the state was a KeyError."""
    reads = target("checkpoint", tmp_path)
    data = json.loads(reads.seeds[0])
    del data[lost]
    with pytest.raises(BadArchive, match=r"can't be used: its data does not have the keys of a checkpoint"):
        reads.read(json.dumps(data).encode())
