"""Compiled kernels are kept on disk, for every environment of the user, and compiled once for each type of arrays."""

from __future__ import annotations

import hashlib
import io
import os
import pickle
import shutil
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from numba.core import config

import condgrad
from condgrad.kernels import loops
from condgrad.kernels.compile_progress import CompileProgress

SOURCES = Path(condgrad.__file__).parent.parent
ADD = """
import numpy as np
from condgrad import kernels
total = np.ones(3)
kernels.add(total, 2.0, np.arange(3.0))
assert total.tolist() == [1, 3, 5]
"""
WORK = """
import numpy as np
import condgrad as cg
from condgrad.learn import RobustCompletion
rng = np.random.default_rng(0)
X = rng.normal(size=(12, 2)) @ rng.normal(size=(2, 10))
known = rng.random(X.shape) < 0.7
model = RobustCompletion().fit(np.where(known, X, np.nan))
model.predict(np.argwhere(known))
rows, cols = np.nonzero(known)
ball = cg.NuclearBall(X.shape, 10.0)
for loss in (cg.Squared(), cg.Welsch(1), cg.Huber(1.0)):
    F = cg.Completion(rows, cols, X[rows, cols], X.shape, loss)
    for method in ("ncgs", "frank-wolfe", "ncgs-vr"):
        cg.minimize(F, ball, method=method, max_steps=5)
"""
COMPILING = "condgrad: compiling kernels, once on this machine"


def begin(code: str, cache: Path, sources: Path = SOURCES) -> subprocess.Popen[str]:
    environment = os.environ | {"NUMBA_CACHE_DIR": str(cache), "PYTHONPATH": str(sources)}
    return subprocess.Popen([sys.executable, "-c", code], stderr=subprocess.PIPE, text=True, env=environment)


def run(code: str, cache: Path, sources: Path = SOURCES) -> str:
    """What a new process says on stderr."""
    process = begin(code, cache, sources)
    error = process.communicate(timeout=600)[1]
    assert process.returncode == 0, error
    return error


def was_loaded(folder: Path, monkeypatch: pytest.MonkeyPatch) -> bool:
    """Call the kernel of ADD as a new process would, with this cache, and tell whether its code came from there."""
    monkeypatch.setattr(config, "CACHE_DIR", str(folder))
    kernel, total = loops.Kernel(loops.add.dispatcher.py_func, ("part",)), np.ones(3)
    kernel(0, 3, total, 2.0, np.arange(3.0))
    assert total.tolist() == [1, 3, 5]
    hits, misses = (
        sum(counts.values()) for counts in (kernel.dispatcher.stats.cache_hits, kernel.dispatcher.stats.cache_misses)
    )
    assert hits + misses == 1
    return bool(hits)


@pytest.fixture
def kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The file with the kernel of ADD."""
    assert not was_loaded(tmp_path, monkeypatch)
    (file,) = (tmp_path / "condgrad-kernels").iterdir()
    return file


def test_compilation_is_announced_and_another_clone_does_not_compile(tmp_path: Path) -> None:
    cache, clone = tmp_path / "cache", tmp_path / "clone"
    cold = run(ADD, cache)
    assert cold.startswith(COMPILING) and cold.count("\n") == 1
    shutil.copytree(SOURCES / "condgrad", clone / "condgrad", ignore=shutil.ignore_patterns("__pycache__"))
    os.utime(clone / "condgrad" / "kernels" / "loops.py", (1, 1))
    assert run(f"{ADD}\nassert {str(clone)!r} in kernels.__file__", cache, clone) == ""
    with open(clone / "condgrad" / "kernels" / "loops.py", "a") as file:
        file.write("# other source\n")
    assert run(ADD, cache, clone).startswith(COMPILING), "another source must not run this code"


@pytest.mark.slow
def test_warm_up_leaves_nothing_to_compile(tmp_path: Path) -> None:
    run("from condgrad.cli import main; raise SystemExit(main(['warm-up', '--quiet']))", tmp_path)
    assert COMPILING not in run(WORK, tmp_path)


def test_processes_that_compile_at_the_same_time_do_not_meet(tmp_path: Path) -> None:
    processes = [begin(ADD, tmp_path) for _ in range(2)]
    for process in processes:
        error = process.communicate(timeout=600)[1]
        assert process.returncode == 0, error
    (kept,) = (tmp_path / "condgrad-kernels").iterdir()
    assert kept.name.startswith("add-") and kept.suffix == ".bin"


def test_a_whole_file_is_not_compiled_again(kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    assert was_loaded(tmp_path, monkeypatch)


@pytest.mark.parametrize("damage", ["empty", "short", "one bit", "too few", "no pickle"])
def test_a_damaged_file_is_compiled_again(
    damage: str, kept: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    whole = kept.read_bytes()
    content = {"empty": b"", "short": b"cut short", "one bit": whole[:-1] + bytes([whole[-1] ^ 1])}
    for title, code in (("too few", pickle.dumps(("too", "few"))), ("no pickle", b"no pickle")):
        content[title] = hashlib.sha256(code).digest() + code  # whole, and of no use
    kept.write_bytes(content[damage])
    assert not was_loaded(tmp_path, monkeypatch)
    assert was_loaded(tmp_path, monkeypatch)


def test_a_folder_that_can_not_be_written_is_said_and_kernels_work(tmp_path: Path) -> None:
    (tmp_path / "file").write_text("")
    said = run(ADD, tmp_path / "file").splitlines()
    assert len(said) == 2 and "set NUMBA_CACHE_DIR to a folder that can be written" in said[1]
    one = "from condgrad.kernels import warm_up; calls = list(warm_up.calls())[:1]; warm_up.calls = lambda: iter(calls)"
    code = f"{one}\nfrom condgrad.cli import main; raise SystemExit(main(['warm-up', '--quiet']))"
    process = begin(code, tmp_path / "file")
    assert "compiles again" in process.communicate(timeout=600)[1] and process.returncode == 3


def test_read_only_arrays_and_others_share_the_compiled_code() -> None:
    total, part = np.ones(4), np.arange(4.0)
    loops.add(0, 4, total, 1.0, part)
    before = len(loops.add.dispatcher.signatures)
    part.flags.writeable = False
    loops.add(0, 4, total, 1.0, part)
    assert total.tolist() == [1, 3, 5, 7] and len(loops.add.dispatcher.signatures) == before
    assert total.flags.writeable


class Event:
    def __init__(self, function: Any):
        self.data = {"dispatcher": type("Dispatcher", (), {"py_func": function})}


@pytest.mark.parametrize("terminal", [False, True])
def test_progress_shows_time_that_has_passed(terminal: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    time, screen = [0.0], io.StringIO()
    monkeypatch.setattr(screen, "isatty", lambda: terminal)
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: time[0])
    monkeypatch.setattr(sys, "stderr", screen)
    progress, kernel = CompileProgress(__name__), Event(run)
    for _ in range(4):
        progress.on_start(kernel)
        time[0] += 6
        progress.on_end(kernel)
    progress.on_start(Event(np.sum))
    lines = [f"{COMPILING}{so_far} ...\n" for so_far in ("", " (2 done in 12 s)")]
    if terminal:
        assert "compiling the kernel run, once on this machine (3 done in 18 s)" in screen.getvalue()
        assert screen.getvalue().endswith("\r\x1b[K")
    else:
        assert screen.getvalue() == "".join(lines)
