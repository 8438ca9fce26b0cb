"""Performs the runs that are not in the cache yet, in worker processes of one thread each, and reports progress."""

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
from typing import IO, Any

from condgrad.checks import whole
from condgrad.paper.cache import Cache, code_versions
from condgrad.paper.runs import Outcome, Run
from condgrad.runtime.progress import ProgressLine, duration, switched_off

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""One thread per worker: CPU time is measured per process, and threads that wait for each other would add to it."""


class Outcomes:
    """Outcomes of finished runs: ``outcomes[run]``."""

    def __init__(self, cache: Cache, by_key: dict[str, Outcome]):
        self.cache, self.by_key = cache, by_key

    def __getitem__(self, run: Run) -> Outcome:
        return self.by_key[self.cache.key(run)]

    def circumstances(self) -> dict[str, str]:
        """Dates, machine, number of jobs and load of the runs; "mixed: ..." if runs differ."""
        conditions = [outcome["made"] for outcome in self.by_key.values()]
        dates = sorted({at["date"] for at in conditions})
        loads = [at["load"] for at in conditions if at["load"] is not None]
        return {
            "runs made": " to ".join(dict.fromkeys((dates[0], dates[-1]))) if dates else "none",
            "on": single_or_mixed(sorted({at["machine"] for at in conditions}), "; "),
            "side by side": single_or_mixed([str(jobs) for jobs in sorted({at["jobs"] for at in conditions})], ", "),
            "largest load average": f"{max(loads):.2f}" if loads else "not known",
        }


def single_or_mixed(values: Sequence[str], separator: str) -> str:
    return f"mixed: {separator.join(values)}" if len(values) > 1 else "".join(values)


def make_all(
    runs: Sequence[Run],
    folder: Path,
    jobs: int = 1,
    title: str = "runs",
    before: Outcomes | None = None,
    fresh: bool = False,
) -> Outcomes:
    """Outcomes of the runs, performing those that are neither in ``before`` nor in the cache.

    Parameters
    ----------
    runs : sequence of Run
    folder : Path
        Folder of the cache.
    jobs : int, default 1
        Number of worker processes; at most one per core is started.
    title : str, default "runs"
        Beginning of the progress line.
    before : Outcomes, optional
        Outcomes that are already known.
    fresh : bool, default False
        Delete the cached outcomes of these runs first, except those in ``before``.

    Returns
    -------
    Outcomes

    Raises
    ------
    ValueError
        If a worker could not perform a run.
    """
    cache = Cache(folder, code_versions())
    wanted = {cache.key(run): run for run in runs}
    by_key = {key: outcome for key, outcome in (before.by_key if before else {}).items() if key in wanted}
    for key, run in wanted.items():
        if fresh and key not in by_key:
            cache.drop(run)
        if key not in by_key and (outcome := cache.get(run)) is not None:
            by_key[key] = outcome
    missing = [run for key, run in wanted.items() if key not in by_key]
    if missing:
        folder.mkdir(parents=True, exist_ok=True)
        cache.remove_leftovers()
        jobs = min(limit_jobs(jobs), len(missing))
        progress = Progress(title, len(wanted), list(missing), jobs)
        with explaining_interruption(progress, folder):
            for run, outcome in run_in_workers(missing, folder, jobs):
                by_key[cache.key(run)] = outcome
                progress.done(run)
    return Outcomes(cache, by_key)


def limit_jobs(jobs: int) -> int:
    """Validated number of jobs, at most one per core: processes that share a core disturb the timings and finish no sooner."""
    return min(whole(jobs, "The number of jobs"), cores())


def cores() -> int:
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


@contextmanager
def explaining_interruption(progress: Progress, folder: Path) -> Iterator[None]:
    """Add to a KeyboardInterrupt how many runs are stored and how to continue."""
    try:
        yield
    except KeyboardInterrupt:
        kept = f"{progress.finished} of {progress.total} runs are stored in {folder}"
        raise KeyboardInterrupt(f"interrupted: {kept}; run the same command again to continue.") from None
    finally:
        progress.close()


def run_in_workers(runs: list[Run], folder: Path, jobs: int) -> Iterator[tuple[Run, Outcome]]:
    """Yield each run and its outcome as soon as it is finished. One thread per worker sends it the runs."""
    waiting: SimpleQueue[Run] = SimpleQueue()
    for run in runs:
        waiting.put(run)
    answers: SimpleQueue[tuple[Run, Outcome] | Exception] = SimpleQueue()
    workers = [start_worker(folder, jobs) for _ in range(jobs)]
    feeders = [Thread(target=feed_worker, args=(worker, waiting, answers), daemon=True) for worker in workers]
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


def start_worker(folder: Path, jobs: int = 1) -> subprocess.Popen[str]:
    """Start a worker in its own session, so that Ctrl-C does not reach it. If this process is killed, it ends after its run."""
    return subprocess.Popen(
        [sys.executable, "-P", "-m", "condgrad.paper.worker", str(folder), str(jobs)],
        env={**os.environ, **ONE_THREAD},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def feed_worker(
    worker: subprocess.Popen[str], waiting: SimpleQueue[Run], answers: SimpleQueue[tuple[Run, Outcome] | Exception]
) -> None:
    """Send runs from the queue to a worker and queue its answers, until no run is waiting."""
    assert worker.stdin is not None and worker.stdout is not None
    while True:
        try:
            run = waiting.get_nowait()
        except Empty:
            return
        try:
            answer = send_run(worker.stdin, worker.stdout, run)
        except (OSError, ValueError):
            answer = {"error": "the worker process ended unexpectedly; check that there is enough memory"}
        message = f"A run of {run['method']['name']} failed: {answer['error']}" if "error" in answer else None
        answers.put(ValueError(message) if message else (run, answer["outcome"]))


def send_run(stdin: IO[str], stdout: IO[str], run: Run) -> dict[str, Any]:
    """Send a run to a worker and wait for its answer."""
    stdin.write(json.dumps(run) + "\n")
    stdin.flush()
    return dict(json.loads(stdout.readline()))


SECONDS_TO_FIRST_LINE = 5.0
"""Seconds before the first line of progress that is not on a terminal."""


class Progress:
    """Number of finished runs and an estimate of the remaining time.

    A run is expected to take as long as the last finished run of the same kind, or else as ``expected_seconds`` says.
    """

    def __init__(self, title: str, total: int, missing: list[Run], jobs: int):
        self.title, self.total, self.jobs = title, total, jobs
        self.remaining = missing
        self.display = ProgressLine(quiet_for=0.0 if sys.stderr.isatty() else SECONDS_TO_FIRST_LINE)
        self.last_done = self.display.started
        self.seconds_by_kind: dict[str, float] = {}

    @property
    def finished(self) -> int:
        return self.total - len(self.remaining)

    def done(self, run: Run) -> None:
        due = self.display.is_due()
        self.remaining.remove(run)
        self.seconds_by_kind[kind(run)] = self.jobs * (self.display.now - self.last_done)
        self.last_done = self.display.now
        if due and not switched_off():
            remaining = duration(self.remaining_seconds())
            self.display.show(f"{self.title}: {self.finished}/{self.total} runs, about {remaining} left")

    def remaining_seconds(self) -> float:
        return sum(self.seconds_by_kind.get(kind(run), expected_seconds(run)) for run in self.remaining) / self.jobs

    def close(self) -> None:
        self.display.close(keep=False)


def kind(run: Run) -> str:
    """Key that is equal for runs that differ in their seeds only."""
    method = {key: value for key, value in run["method"].items() if key != "seed"}
    problem = {key: value for key, value in run["problem"].items() if key != "seed"}
    return json.dumps([method, problem, run["stop"]], sort_keys=True)


def expected_seconds(run: Run) -> float:
    """Expected duration of a run without a finished run of its kind: its CPU budget, and the same again for measuring."""
    return float(2 * run["stop"]["cpu"]) if "cpu" in run["stop"] else 0.5
