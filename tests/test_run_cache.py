"""Runs are made once, in processes of their own, and kept by the hash of what they are."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condgrad.experiments import pool
from condgrad.experiments.pool import Progress, make_all
from condgrad.experiments.runs import Cache, Run, perform


def small(steps: int = 3, seed: int = 0, name: str = "ncgs") -> dict[str, Any]:
    return {
        "problem": {"objective": "robust-regression", "terms": 30, "seed": seed},
        "set": {"name": "l1-ball", "radius": 1.0},
        "method": {"name": name, "schedule": "theory", "seed": seed, "output": "last"},
        "stop": {"steps": steps},
        "keep": {"what": "output"},
    }


RUNS = [small(steps, seed) for steps in (2, 3, 4) for seed in (0, 1)]


@pytest.fixture
def made(monkeypatch: pytest.MonkeyPatch) -> list[Run]:
    """The runs that are made, here and not in a process of their own."""
    seen: list[Run] = []

    def here(runs: list[Run], folder: Path, jobs: int) -> Iterator[Run]:
        for run in runs:
            Cache(folder, pool.__version__).put(run, perform(run))
            seen.append(run)
            yield run

    monkeypatch.setattr(pool, "made", here)
    return seen


def test_a_second_call_makes_nothing(tmp_path: Path, made: list[Run]) -> None:
    first = make_all(RUNS, tmp_path)
    assert made == RUNS
    again = make_all(RUNS, tmp_path)
    assert made == RUNS
    assert [again[run] for run in RUNS] == [first[run] for run in RUNS]


def test_one_changed_line_makes_one_run(tmp_path: Path, made: list[Run]) -> None:
    make_all(RUNS, tmp_path)
    changed = [*RUNS[:-1], {**RUNS[-1], "set": {"name": "l1-ball", "radius": 1.1}}]
    make_all(changed, tmp_path)
    assert made == [*RUNS, changed[-1]]


def test_the_same_run_twice_is_made_once(tmp_path: Path, made: list[Run]) -> None:
    make_all([small(), small()], tmp_path)
    assert made == [small()]


def test_the_key_is_that_of_the_content(tmp_path: Path) -> None:
    cache, run = Cache(tmp_path, "1.0"), small()
    assert cache.key(run) == cache.key(dict(reversed(run.items())))
    others = [small(steps=4), small(seed=1), {**run, "keep": {"what": "trace"}}]
    assert len({cache.key(other) for other in [run, *others]}) == 4
    assert Cache(tmp_path, "1.1").key(run) != cache.key(run)


@pytest.mark.parametrize("damage", ["", "{", "[]", '{"run": {}, "outcome": {}}', "another run", "half"])
def test_a_damaged_file_is_said_and_made_again(
    damage: str, tmp_path: Path, made: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    make_all(RUNS, tmp_path)
    path = Cache(tmp_path, pool.__version__).path(RUNS[0])
    good = path.read_text()
    other = Cache(tmp_path, pool.__version__).path(RUNS[1]).read_text()
    path.write_text({"another run": other, "half": good[: len(good) // 2]}.get(damage, damage))
    make_all(RUNS, tmp_path)
    assert made == [*RUNS, RUNS[0]]
    error = capsys.readouterr().err
    assert f"{path} is damaged" in error and error.count("\n") == 1
    assert json.loads(path.read_text())["run"] == RUNS[0]


def test_a_write_that_is_cut_short_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, "1.0")

    def cut(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no space"):
        cache.put(small(), {"mapping": 1.0})
    assert cache.get(small()) is None


def test_two_processes_give_the_outcomes_of_one(tmp_path: Path) -> None:
    one, two = make_all(RUNS, tmp_path / "one", jobs=1), make_all(RUNS, tmp_path / "two", jobs=2)
    for run in RUNS:
        a, b = dict(one[run]), dict(two[run])
        assert a.pop("cpu") >= 0 and b.pop("cpu") >= 0
        assert a == b


def test_a_worker_has_one_thread(tmp_path: Path) -> None:
    worker = pool.start(tmp_path)
    try:
        assert worker.stdin and worker.stdout
        pool.ask(worker.stdin, worker.stdout, small())  # it has begun
        environment = Path(f"/proc/{worker.pid}/environ")
        if environment.exists():
            settings = environment.read_text().split("\0")
            assert {"OPENBLAS_NUM_THREADS=1", "OMP_NUM_THREADS=1", "NUMBA_NUM_THREADS=1"} <= set(settings)
    finally:
        worker.kill()
        worker.communicate()


def test_a_run_that_fails_is_said(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match=r"A run of ncsg failed: .*did you mean 'ncgs'"):
        make_all([small(name="ncsg")], tmp_path)


def test_a_worker_that_dies_is_said(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    begin = pool.start
    monkeypatch.setattr(pool, "start", lambda folder: killed(begin(folder)))
    with pytest.raises(ValueError, match="its process ended before it did"):
        make_all([small()], tmp_path)


def killed(worker: Any) -> Any:
    worker.kill()
    worker.wait()
    return worker


def test_an_interruption_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_and_no_more(runs: list[Run], folder: Path, jobs: int) -> Iterator[Run]:
        yield from runs[:2]
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "made", two_and_no_more)
    with pytest.raises(KeyboardInterrupt, match=r"2 of 6 runs are kept in .*, the same command goes on"):
        make_all(RUNS, tmp_path)


def test_jobs_are_at_most_the_cores() -> None:
    assert pool.allowed(1) == 1
    assert pool.allowed(10_000) == pool.cores()
    with pytest.raises(ValueError, match="jobs"):
        pool.allowed(0)


def test_the_time_left_follows_from_runs_like_those_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 3.0, 10.0])
    monkeypatch.setattr(pool, "monotonic", lambda: next(clock))
    runs = [small(seed=0), {**small(seed=0), "stop": {"cpu": 5.0}}, small(seed=1), small(seed=2)]
    progress = Progress("runs", 9, list(runs), jobs=2)
    assert progress.finished == 5 and progress.seconds_left() == (0.5 + 10 + 0.5 + 0.5) / 2
    progress.done(runs[0])  # took 3 s of two workers
    assert progress.finished == 6 and progress.seconds_left() == (10 + 6 + 6) / 2
