"""Performs the runs that are not in the cache yet, in worker processes of one thread each, and reports progress."""

from __future__ import annotations

import json
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path

from condgrad.checks import whole
from condgrad.paper.cache import Cache, code_versions
from condgrad.paper.runs import Outcome, Run
from condgrad.runtime import workers
from condgrad.runtime.workers import Progress, Worker, answers_of, cores


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
        progress = Progress(title, len(wanted), list(missing), jobs, kind, expected_seconds)
        with explaining_interruption(progress, folder):
            for run, outcome in run_in_workers(missing, folder, jobs):
                by_key[cache.key(run)] = outcome
                progress.done(run)
    return Outcomes(cache, by_key)


def limit_jobs(jobs: int) -> int:
    """Validated number of jobs, at most one per core."""
    return min(whole(jobs, "The number of jobs"), cores())


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
    """Yield each run and its outcome as soon as it is finished. Raises ValueError if a worker could not perform a run."""
    for run, answer in answers_of([start_worker(folder, jobs) for _ in range(jobs)], runs):
        if "error" in answer:
            raise ValueError(f"A run of {run['method']['name']} failed: {answer['error']}")
        yield run, answer["outcome"]


def start_worker(folder: Path, jobs: int = 1) -> Worker:
    """Start a worker process for runs."""
    return workers.start_worker("condgrad.paper.worker", str(folder), str(jobs))


def kind(run: Run) -> str:
    """Key that is equal for runs that differ in their seeds only."""
    method = {key: value for key, value in run["method"].items() if key != "seed"}
    problem = {key: value for key, value in run["problem"].items() if key != "seed"}
    return json.dumps([method, problem, run["stop"]], sort_keys=True)


def expected_seconds(run: Run) -> float:
    """Expected duration of a run without a finished run of its kind: its CPU budget, and the same again for measuring."""
    return float(2 * run["stop"]["cpu"]) if "cpu" in run["stop"] else 0.5
