"""Worker processes with one thread each. Tasks are sent to the workers as lines of JSON, and progress is shown."""

from __future__ import annotations

import json
import os
import subprocess
import sys
from collections.abc import Callable, Iterator, Sequence
from queue import Empty, SimpleQueue
from threading import Thread
from typing import IO, Any

from condgrad.runtime.progress import ProgressLine, duration, switched_off

Worker = subprocess.Popen[str]
Task = Any
"""A task: plain data, which is sent as a line of JSON."""

ONE_THREAD = dict.fromkeys(("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS", "NUMBA_NUM_THREADS"), "1")
"""Environment variables of a worker, for one thread. CPU time is measured per process, and threads that wait for each other would
add to the CPU time."""


def cores() -> int:
    """Number of cores that this process may use. More workers would disturb the timings and finish no sooner."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def start_worker(module: str, *arguments: str) -> Worker:
    """Start a worker in its own session, so that Ctrl-C does not reach the worker.

    If this process is killed, the worker ends after its task.
    """
    return subprocess.Popen(
        [sys.executable, "-P", "-m", module, *arguments],
        env={**os.environ, **ONE_THREAD},
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        text=True,
        start_new_session=True,
    )


def answers_of(workers: Sequence[Worker], tasks: Sequence[Task]) -> Iterator[tuple[Task, dict[str, Any]]]:
    """Yield each task with its answer, as soon as a worker has finished the task.

    For each worker, a thread of this process sends tasks to the worker.

    The answer of a worker that ends unexpectedly has the key ``error``. The workers are killed at the end.
    """
    waiting: SimpleQueue[Task] = SimpleQueue()
    for task in tasks:
        waiting.put(task)
    answers: SimpleQueue[tuple[Task, dict[str, Any]]] = SimpleQueue()
    feeders = [Thread(target=_feed, args=(worker, waiting, answers), daemon=True) for worker in workers]
    try:
        for feeder in feeders:
            feeder.start()
        for _ in tasks:
            yield answers.get()
    finally:
        for worker in workers:
            worker.kill()
        for worker, feeder in zip(workers, feeders, strict=True):
            feeder.join()
            worker.communicate()


def _feed(worker: Worker, waiting: SimpleQueue[Task], answers: SimpleQueue[tuple[Task, dict[str, Any]]]) -> None:
    """Send tasks from the queue to a worker and queue its answers, until no task is waiting."""
    assert worker.stdin is not None and worker.stdout is not None
    while True:
        try:
            task = waiting.get_nowait()
        except Empty:
            return
        try:
            answer = send(worker.stdin, worker.stdout, task)
        except (OSError, ValueError):
            answer = {"error": "the worker process ended unexpectedly; check that there is enough memory"}
        answers.put((task, answer))


def send(stdin: IO[str], stdout: IO[str], task: Task) -> dict[str, Any]:
    """Send a task to a worker and wait for its answer."""
    stdin.write(json.dumps(task) + "\n")
    stdin.flush()
    return dict(json.loads(stdout.readline()))


SECONDS_TO_FIRST_LINE = 5.0
"""Seconds before the first line of progress if stderr is not a terminal."""


class Progress:
    """Shows the number of finished tasks and an estimate of the remaining time.

    A task is expected to take as long as the last finished task of the same kind, or else ``expected(task)`` seconds.
    """

    def __init__(
        self,
        title: str,
        total: int,
        missing: list[Task],
        jobs: int,
        kind: Callable[[Task], Any],
        expected: Callable[[Task], float],
    ):
        self.title, self.total, self.jobs, self.kind, self.expected = title, total, jobs, kind, expected
        self.remaining = missing
        self.display = ProgressLine(quiet_for=0.0 if sys.stderr.isatty() else SECONDS_TO_FIRST_LINE)
        self.last_done = self.display.started
        self.seconds_by_kind: dict[Any, float] = {}

    @property
    def finished(self) -> int:
        return self.total - len(self.remaining)

    def done(self, task: Task) -> None:
        due = self.display.is_due()
        self.remaining.remove(task)
        self.seconds_by_kind[self.kind(task)] = self.jobs * (self.display.now - self.last_done)
        self.last_done = self.display.now
        if due and not switched_off():
            remaining = duration(self.remaining_seconds())
            self.display.show(f"{self.title}: {self.finished}/{self.total} runs, about {remaining} left")

    def remaining_seconds(self) -> float:
        known = self.seconds_by_kind
        seconds = (
            known[self.kind(task)] if self.kind(task) in known else self.expected(task) for task in self.remaining
        )
        return sum(seconds) / self.jobs

    def close(self) -> None:
        self.display.close(keep=False)


def error_message(error: Exception) -> str:
    """Message of an error. The type of the error is added if the message was not written for users."""
    readable = isinstance(error, ValueError | TypeError | OSError) and str(error)
    return str(error) if readable else f"{type(error).__name__}: {error}"
