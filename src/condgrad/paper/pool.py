"""Makes the runs that are not in the cache yet, in processes of one thread each, and says how long it will take."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from queue import Empty, SimpleQueue
from threading import Thread
from time import monotonic
from typing import IO, Any

from condgrad.checks import whole
from condgrad.driver.progress import EVERY_ELSEWHERE, EVERY_ON_TERMINAL, duration, switched_off
from condgrad.paper.cache import Cache, code
from condgrad.paper.runs import Outcome, Run

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""CPU time is that of a process; with threads of its own that wait for each other it would not be that of the method."""


class Outcomes:
    """What has been made, looked up by run."""

    def __init__(self, cache: Cache, known: dict[str, Outcome]):
        self.cache, self.known = cache, known

    def __getitem__(self, run: Run) -> Outcome:
        return self.known[self.cache.key(run)]

    def circumstances(self) -> dict[str, str]:
        """When, where and beside how many others the runs were made; "mixed" where that differs."""
        made = [outcome["made"] for outcome in self.known.values()]
        dates = sorted({at["date"] for at in made})
        loads = [at["load"] for at in made if at["load"] is not None]
        return {
            "runs made": " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "none",
            "on": several(sorted({at["machine"] for at in made}), "; "),
            "side by side": several([str(jobs) for jobs in sorted({at["jobs"] for at in made})], ", "),
            "largest load average": f"{max(loads):.2f}" if loads else "not known",
        }


def several(found: Sequence[str], between: str) -> str:
    return f"mixed: {between.join(found)}" if len(found) > 1 else "".join(found)


def make_all(
    runs: Sequence[Run],
    folder: Path,
    jobs: int = 1,
    title: str = "runs",
    before: Outcomes | None = None,
    fresh: bool = False,
) -> Outcomes:
    """The outcomes of the runs; what was made before or is in the folder is not made again, and what is made is kept there.

    With ``fresh`` the folder's files of these runs are deleted first, and no others.
    """
    cache = Cache(folder, code())
    wanted = {cache.key(run): run for run in runs}
    known = {key: outcome for key, outcome in (before.known if before else {}).items() if key in wanted}
    for key, run in wanted.items():
        if fresh and key not in known:
            cache.drop(run)
        if key not in known and (outcome := cache.get(run)) is not None:
            known[key] = outcome
    missing = [run for key, run in wanted.items() if key not in known]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        cache.sweep()
        jobs = min(allowed(jobs), len(missing))
        progress = Progress(title, len(wanted), list(missing), jobs)
        with closed_to_interruption(progress, folder):
            for run, outcome in made(missing, folder, jobs):
                known[cache.key(run)] = outcome
                progress.done(run)
    return Outcomes(cache, known)


def allowed(jobs: int) -> int:
    """No more than there are cores: processes that share one would be in each other's CPU caches, and finish no sooner."""
    return min(whole(jobs, "The number of jobs"), cores())


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def closed_to_interruption(progress: Progress, folder: Path) -> Iterator[None]:
    """Ctrl-C loses only the runs that were going on, and says so."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"{progress.finished} of {progress.total} runs are kept in {folder}"
        raise KeyboardInterrupt(f"interrupted: {kept}, the same command goes on from there.") from None
    finally:
        progress.close()


def made(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, Outcome]]:
    """Each run when it has been made, and its outcome. Every worker has a thread here that hands it run after run."""
    waiting: SimpleQueue[Run] = SimpleQueue()
    for run in runs:
        waiting.put(run)
    answers: SimpleQueue[tuple[Run, Outcome] | Exception] = SimpleQueue()
    workers = [start(folder, jobs) for _ in range(jobs)]
    feeders = [Thread(target=feed, args=(worker, waiting, answers), daemon=True) for worker in workers]
    try:
        for feeder in feeders:
            feeder.start()
        for _ in runs:
            answer = answers.get()
            if isinstance(answer, Exception):
                raise answer
            yield answer
    finally:
        for worker in workers:
            worker.kill()
        for worker, feeder in zip(workers, feeders, strict=True):
            feeder.join()
            worker.communicate()


def start(folder: Path, jobs: int = 1) -> subprocess.Popen[str]:
    """In a session of its own, so that Ctrl-C comes to us and not to it; where we are killed, it ends after its run."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "condgrad.paper.worker", str(folder), str(jobs)],
        env={**os.environ, **ONE_THREAD},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def feed(
    worker: subprocess.Popen[str], waiting: SimpleQueue[Run], answers: SimpleQueue[tuple[Run, Outcome] | Exception]
) -> None:
    assert worker.stdin is not None and worker.stdout is not None
    while True:
        try:
            run = waiting.get_nowait()
        except Empty:
            return
        try:
            answer = ask(worker.stdin, worker.stdout, run)
        except (OSError, ValueError):
            answer = {"error": "its process ended before it did; was there memory enough?"}
        said = f"A run of {run['method']['name']} failed: {answer['error']}" if "error" in answer else None
        answers.put(ValueError(said) if said else (run, answer["outcome"]))


def ask(stdin: IO[str], stdout: IO[str], run: Run) -> dict[str, Any]:
    stdin.write(json.dumps(run) + "\n")
    stdin.flush()
    return dict(json.loads(stdout.readline()))


class Progress:
    """Runs done of all, and the time left: of a run like one that is done, what that took; of another, its budget."""

    def __init__(self, title: str, total: int, missing: list[Run], jobs: int):
        self.title, self.total, self.jobs = title, total, jobs
        self.left = missing
        self.terminal = sys.stderr.isatty()
        self.begun = self.last = monotonic()
        self.due = self.begun + (0.0 if self.terminal else 5.0)
        self.took: dict[str, float] = {}

    @property
    def finished(self) -> int:
        return self.total - len(self.left)

    def done(self, run: Run) -> None:
        now = monotonic()
        self.left.remove(run)
        self.took[kind(run)] = self.jobs * (now - self.last)
        self.last = now
        if now >= self.due:
            self.due = now + (EVERY_ON_TERMINAL if self.terminal else EVERY_ELSEWHERE)
            self.say(f"{self.title}: {self.finished}/{self.total} runs, about {duration(self.seconds_left())} left")

    def seconds_left(self) -> float:
        return sum(self.took.get(kind(run), budget(run)) for run in self.left) / self.jobs

    def say(self, line: str) -> None:
        if switched_off():
            return
        print(
            f"\r\x1b[K{line}" if self.terminal else line, end="" if self.terminal else "\n", file=sys.stderr, flush=True
        )

    def close(self) -> None:
        if self.terminal and not switched_off():
            print("\r\x1b[K", end="", file=sys.stderr, flush=True)


def kind(run: Run) -> str:
    """What two runs that differ in nothing but their seeds have in common."""
    method = {key: value for key, value in run["method"].items() if key != "seed"}
    problem = {key: value for key, value in run["problem"].items() if key != "seed"}
    return json.dumps([method, problem, run["stop"]], sort_keys=True)


def budget(run: Run) -> float:
    """A guess of the seconds of a run nothing like which has been made: its budget, and as much again for measuring."""
    return float(2 * run["stop"]["cpu"]) if "cpu" in run["stop"] else 0.5
