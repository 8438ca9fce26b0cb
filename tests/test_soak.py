"""The soak in small: solve after solve in one process, and nothing left of them."""

from __future__ import annotations

import gc
import os
import subprocess
import sys
import threading
import weakref

import numpy as np
import pytest
from benchmarks import soak

import condgrad as cg
from condgrad.runtime import process_memory


@pytest.fixture(autouse=True)
def reading_anew(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "CACHE_SECONDS", 0.0)


def test_nothing_is_left_of_forty_solves() -> None:
    rows = list(soak.soak(40, 40))
    first, last = rows[0], rows[-1]
    assert [row["solves"] for row in rows] == [0, 20, 40] and sum(last["endings"].values()) == 80
    for name in set(first) - {"solves", "megabytes", "endings"}:
        assert last[name] <= first[name], name
    assert last["megabytes"] - first["megabytes"] < 10


def test_every_method_and_every_set_is_in_a_round() -> None:
    kinds = list(soak.one_round())
    methods, sets = {kind.split()[0] for kind in kinds}, {kind.split()[1] for kind in kinds}
    assert methods == set(cg.METHODS) and sets == set(cg.DOMAINS)


def test_what_is_left_would_be_seen() -> None:
    """A file, a thread, a child; and memory, by the slope."""
    before = soak.left_over()
    end = threading.Event()
    thread = threading.Thread(target=end.wait)
    thread.start()
    child = subprocess.Popen([sys.executable, "-c", "input()"], stdin=subprocess.PIPE)
    file = os.open(os.devnull, os.O_RDONLY)
    try:
        after = soak.left_over()
        assert all(after[name] > before[name] for name in before)
    finally:
        os.close(file)
        child.communicate(b"\n")
        end.set()
        thread.join()
    rows = [{"solves": 20 * i, "megabytes": 100 + 0.1 * min(i, 5) + 0.04 * i} for i in range(51)]
    assert soak.slope(rows) == pytest.approx(2.0)


KEEPING = """
import numpy as np, condgrad as cg
from condgrad.runtime import process_memory
process_memory.CACHE_SECONDS, kept, sizes = 0.0, [], []
for seed in range(401):
    if seed % 100 == 0:
        sizes.append(process_memory.resident())
    objective = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))
    kept.append(cg.minimize(objective, cg.Simplex(3), method="frank-wolfe", seed=seed, stop=cg.Steps(10), progress=False))
print(1e3 * (sizes[-1] - sizes[1]) / 300)
"""


def test_a_result_that_stays_would_be_seen() -> None:
    """What one keeps in memory is more than what is granted to a solve; in a process of its own, where no memory lies free."""
    done = subprocess.run([sys.executable, "-c", KEEPING], capture_output=True, text=True, check=True)
    assert float(done.stdout) > soak.PER_SOLVE


def test_a_run_is_freed_when_it_ends_without_waiting_for_garbage() -> None:
    """What it looked at last may be as large as the data: two runs after each other must not take twice the memory."""

    def once() -> weakref.ref:
        objective = cg.Quadratic(np.diag([2.0, 1.0]), np.ones(2))
        assert cg.minimize(objective, cg.Simplex((2,)), stop=cg.Steps(3), progress=False).steps == 3
        return weakref.ref(objective)

    gc.collect()
    gc.disable()
    try:
        assert once()() is None
    finally:
        gc.enable()
