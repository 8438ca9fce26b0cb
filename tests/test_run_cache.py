"""Runs are made once, in processes of their own, and kept by the hash of what they are."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from condgrad.paper import pool
from condgrad.paper import runs as module
from condgrad.paper.cache import Cache, code_versions, source_digest
from condgrad.paper.pool import Progress, make_all
from condgrad.paper.runs import Outcome, Run, perform
from condgrad.runtime.workers import error_message, send
from condgrad.storage.atomic import replacing


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

    def here(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, Outcome]]:
        for run in runs:
            outcome = module.perform(run, jobs)
            Cache(folder, code_versions()).put(run, outcome)
            seen.append(run)
            yield run, outcome

    monkeypatch.setattr(pool, "run_in_workers", here)
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
    cache, run = Cache(tmp_path, {"condgrad": "1.0"}), small()
    assert cache.key(run) == cache.key(dict(reversed(run.items())))
    others = [small(steps=4), small(seed=1), {**run, "keep": {"what": "trace"}}]
    assert len({cache.key(other) for other in [run, *others]}) == 4
    assert Cache(tmp_path, {"condgrad": "1.1"}).key(run) != cache.key(run)


@pytest.mark.parametrize(
    "damage", ["", "{", "[]", '{"run": {}, "outcome": {}}', "another run", "half", "no gap", "list"]
)
def test_a_damaged_file_is_said_and_made_again(
    damage: str, tmp_path: Path, made: list[Run], capsys: pytest.CaptureFixture[str]
) -> None:
    make_all(RUNS, tmp_path)
    path = Cache(tmp_path, code_versions()).path(RUNS[0])
    good = path.read_text()
    other = Cache(tmp_path, code_versions()).path(RUNS[1]).read_text()
    lists, lacks = ({"run": RUNS[0], "outcome": outcome} for outcome in ([], json.loads(good)["outcome"]))
    lacks["outcome"].pop("gap")
    damages = {
        "another run": other,
        "half": good[: len(good) // 2],
        "no gap": json.dumps(lacks),
        "list": json.dumps(lists),
    }
    path.write_text(damages.get(damage, damage))
    make_all(RUNS, tmp_path)
    assert made == [*RUNS, RUNS[0]]
    error = capsys.readouterr().err
    assert f"{path} is damaged" in error and error.count("\n") == 1
    assert json.loads(path.read_text())["run"] == RUNS[0]


def test_a_write_that_is_cut_short_leaves_no_file(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    cache = Cache(tmp_path, {"condgrad": "1.0"})

    def cut(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no space"):
        cache.put(small(), {"status": "converged", "mapping": 1.0})
    assert cache.get(small()) is None


def test_the_key_is_that_of_the_source_too(tmp_path: Path) -> None:
    for name in ("solvers/ncgs.py", "paper/runs.py", "paper/verdicts.py", "report/page.py", "cli/solve.py"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        (tmp_path / name).write_text("x = 1")

    def after_a_change_of(name: str) -> str:
        (tmp_path / name).write_text("x = 2")
        return source_digest(tmp_path)

    first = source_digest(tmp_path)
    assert {after_a_change_of(name) for name in ("report/page.py", "cli/solve.py", "paper/verdicts.py")} == {first}
    assert len({first, after_a_change_of("paper/runs.py"), after_a_change_of("solvers/ncgs.py")}) == 3
    assert {"source", "numpy", "scipy", "numba"} <= set(code_versions())


def test_a_failed_run_is_not_kept_but_told(tmp_path: Path, made: list[Run], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(module, "perform", lambda run, jobs: {**perform(run, jobs), "status": "failed"})
    first = make_all([small()], tmp_path)
    assert first[small()]["status"] == "failed" and not list(tmp_path.iterdir())
    assert make_all([small()], tmp_path, before=first)[small()] == first[small()] and len(made) == 1
    make_all([small()], tmp_path)
    assert len(made) == 2


def test_fresh_deletes_the_wanted_files_alone(tmp_path: Path, made: list[Run]) -> None:
    make_all(RUNS, tmp_path)
    first = make_all(RUNS[:2], tmp_path, fresh=True)
    make_all(RUNS[:3], tmp_path, before=first, fresh=True)
    assert made == [*RUNS, *RUNS[:3]] and len(list(tmp_path.iterdir())) == len(RUNS)


def test_what_dead_writers_left_is_removed(tmp_path: Path, made: list[Run]) -> None:
    left, mine = ".abc.json.0123456789abcdef.partial", ["abc.1234", "abc.json.partial", ".abc.partial", "abc.txt"]
    for name in (left, *mine):
        (tmp_path / name).write_text("{")
    with replacing(tmp_path / "other.txt") as writing:
        make_all([small()], tmp_path)
        writing.write(b"whole")
    kept = {path.name for path in tmp_path.iterdir() if path.suffix != ".json"}
    assert kept == {*mine, "other.txt"} and (tmp_path / "other.txt").read_bytes() == b"whole"


def test_outcomes_say_where_and_when_they_were_made(tmp_path: Path, made: list[Run]) -> None:
    outcomes = make_all(RUNS[:2], tmp_path)
    one, two = (outcomes[run]["made"] for run in RUNS[:2])
    one |= {"date": "2026-01-01 00:00 UTC", "load": 0.5, "machine": "A", "jobs": 1}
    two |= {"date": "2026-01-02 00:00 UTC", "load": 2.5, "machine": "A", "jobs": 2}
    assert outcomes.circumstances() == {
        "runs made": "2026-01-01 00:00 UTC to 2026-01-02 00:00 UTC",
        "on": "A",
        "side by side": "mixed: 1, 2",
        "largest load average": "2.50",
    }


def test_a_worker_whose_asker_is_gone_ends_quietly(tmp_path: Path) -> None:
    command = [sys.executable, "-m", "condgrad.paper.worker", str(tmp_path), "1"]
    worker = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True)
    assert worker.stdin and worker.stdout and worker.stderr
    worker.stdout.close()
    worker.stdin.write(json.dumps(small()) + "\n")
    worker.stdin.close()
    assert worker.stderr.read() == "" and worker.wait() == 0
    worker.stderr.close()
    assert len(list(tmp_path.glob("*.json"))) == 1


def test_any_error_is_said() -> None:
    assert error_message(ValueError("Give a set.")) == "Give a set."
    assert error_message(ZeroDivisionError("by zero")) == "ZeroDivisionError: by zero"
    assert error_message(ValueError()) == "ValueError: "


def test_two_processes_give_the_outcomes_of_one(tmp_path: Path) -> None:
    one, two = make_all(RUNS, tmp_path / "one", jobs=1), make_all(RUNS, tmp_path / "two", jobs=2)
    for run in RUNS:
        a, b = dict(one[run]), dict(two[run])
        assert a.pop("cpu") >= 0 and b.pop("cpu") >= 0
        assert a.pop("made")["jobs"] == 1 and b.pop("made")["jobs"] == min(2, pool.cores())
        assert a == b


def test_a_worker_has_one_thread(tmp_path: Path) -> None:
    worker = pool.start_worker(tmp_path)
    try:
        assert worker.stdin and worker.stdout
        send(worker.stdin, worker.stdout, small())  # it has begun
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
    begin = pool.start_worker
    monkeypatch.setattr(pool, "start_worker", lambda folder, jobs: killed(begin(folder, jobs)))
    with pytest.raises(ValueError, match="the worker process ended unexpectedly"):
        make_all([small()], tmp_path)


def killed(worker: Any) -> Any:
    worker.kill()
    worker.wait()
    return worker


def test_an_interruption_says_what_is_kept(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def two_and_no_more(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, Outcome]]:
        yield from ((run, {}) for run in runs[:2])
        raise KeyboardInterrupt

    monkeypatch.setattr(pool, "run_in_workers", two_and_no_more)
    with pytest.raises(KeyboardInterrupt, match=r"2 of 6 runs are stored in .*; run the same command again"):
        make_all(RUNS, tmp_path)


def test_jobs_are_at_most_the_cores() -> None:
    assert pool.limit_jobs(1) == 1
    assert pool.limit_jobs(10_000) == pool.cores()
    with pytest.raises(ValueError, match="jobs"):
        pool.limit_jobs(0)


def test_the_time_left_follows_from_runs_like_those_left(monkeypatch: pytest.MonkeyPatch) -> None:
    clock = iter([0.0, 3.0, 10.0])
    monkeypatch.setattr("condgrad.runtime.progress.monotonic", lambda: next(clock))
    runs = [small(seed=0), {**small(seed=0), "stop": {"cpu": 5.0}}, small(seed=1), small(seed=2)]
    progress = Progress("runs", 9, list(runs), 2, pool.kind, pool.expected_seconds)
    assert progress.finished == 5 and progress.remaining_seconds() == (0.5 + 10 + 0.5 + 0.5) / 2
    progress.done(runs[0])  # took 3 s of two workers
    assert progress.finished == 6 and progress.remaining_seconds() == (10 + 6 + 6) / 2
