"""Runs killed by SIGKILL, in checkpoint writes too, on full and read-only disks: resumed, is every bit the same?

Each run is made by processes that are killed (once, or twice) until one lives to the end. Every iterate that any of them
computed, the counts, the trace but for its times, and the answer are compared with those of a run that nobody disturbed.
Children are forks of this process, which has imported everything and computed nothing.
"""

from __future__ import annotations

import ctypes
import hashlib
import json
import os
import resource
import shutil
import signal
import subprocess
import tempfile
import warnings
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache
from itertools import cycle, islice
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import numpy as np

import condgrad as cg
import condgrad.kernels.loops
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.driver.trace import COLUMNS
from condgrad.solvers import METHODS
from condgrad.storage import archive

RUNS, QUICK = 200, 8
FAULTS = ("any moment", "in a write", "full disk", "read-only folder")
TIMES = ("seconds", "cpu", "wall")
TOO_LONG = 300.0
"""Seconds after which a child has hung."""


# -------------------------------------------------------------------------------------------------------------- tasks


@dataclass(frozen=True)
class Task:
    method: str
    problem: str
    inner: str
    schedule: str

    def solve(self, **saving: Any) -> cg.Result:
        steps, objective, domain = PROBLEMS[self.problem]()
        inner = {"condg": cg.CondG(4), "corrective": cg.Corrective(4)}.get(self.inner, self.inner)
        asked = {"method": self.method, "inner": inner, "schedule": self.schedule, "max_steps": steps, "tol": 1e-12}
        return cg.minimize(objective, domain, output="best", progress=False, **asked, **saving)


def completion() -> tuple[int, Any, Any]:
    """Low-rank points."""
    shape, rng = (90, 70), np.random.default_rng(2)
    Y = rng.standard_normal((90, 3)) @ rng.standard_normal((70, 3)).T + 0.1 * rng.standard_normal(shape)
    domain = cg.NuclearBall(shape, 0.3 * float(np.linalg.norm(Y, "nuc")))
    return 12, cg.Completion.from_dense(Y, rng.random(shape) < 0.3, cg.Welsch(2.0)), domain


def linear_model() -> tuple[int, Any, Any]:
    rng = np.random.default_rng(0)
    A = rng.standard_normal((200, 20))
    model = cg.LinearModel(A, np.sign(A[:, 0] + 0.3 * rng.standard_normal(200)), cg.Sigmoid())
    return 40, model, cg.L1Ball(20, 5.0)


PROBLEMS: dict[str, Callable[[], tuple[int, Any, Any]]] = {"completion": completion, "linear-model": linear_model}


def tasks() -> list[Task]:
    """Every method on both problems, sliding ones with every inner solver; the schedules by turns."""
    schedules = cycle(("practical", "theory", "practical"))
    return [
        Task(method.name, problem, inner, next(schedules))
        for problem in PROBLEMS
        for inner in ("auto", "corrective", "condg")
        for method in METHODS.values()
        if method.slides or inner == "auto"
    ]


# --------------------------------------------------------------------------------------------------------------- disks


class Disk:
    """A folder that can be made full and read-only: a small tmpfs of its own where root may mount one."""

    def __init__(self, folder: Path):
        self.folder, self.ballast = folder, folder / "ballast"
        mount = ["mount", "-t", "tmpfs", "-o", "size=16m", "tmpfs", str(folder)]
        self.mounted = os.geteuid() == 0 and not subprocess.run(mount, capture_output=True, check=False).returncode

    def fill(self) -> None:
        if not self.mounted:  # no file may grow: EFBIG in place of ENOSPC
            resource.setrlimit(resource.RLIMIT_FSIZE, (64, resource.RLIM_INFINITY))
            return
        try:
            with open(self.ballast, "wb", buffering=0) as file:
                while True:
                    file.write(bytes(2**16))
        except OSError:
            pass

    def lock(self) -> None:
        self._remount("ro")

    def mend(self) -> None:
        """As it was."""
        self._remount("rw")
        resource.setrlimit(resource.RLIMIT_FSIZE, (resource.RLIM_INFINITY, resource.RLIM_INFINITY))
        self.ballast.unlink(missing_ok=True)

    def _remount(self, mode: str) -> None:
        if not self.mounted:
            self.folder.chmod(0o555 if mode == "ro" else 0o755)
        elif LIBC.mount(b"tmpfs", os.fsencode(self.folder), b"tmpfs", MS_REMOUNT | (mode == "ro"), b"size=16m"):
            raise OSError(ctypes.get_errno(), "the file system could not be mounted again")

    def close(self) -> None:
        self.mend()
        if self.mounted:
            subprocess.run(["umount", str(self.folder)], check=True)
        shutil.rmtree(self.folder)


LIBC, MS_REMOUNT = ctypes.CDLL(None, use_errno=True), 32


# ------------------------------------------------------------------------------------------------------------ children


@dataclass(frozen=True)
class Trouble:
    """What befalls a process: it kills itself in the n-th operation of its writes, or is killed after a time; between two
    steps the disk is full or read-only."""

    operation: int = 0
    seconds: float = TOO_LONG
    disk: str = ""
    steps: tuple[int, int] = (0, 0)


class Life:
    """One process: what it said before it ended, and how it ended."""

    def __init__(self, task: Task, folder: Disk | None, trouble: Trouble = Trouble()):  # noqa: B008 - a frozen value
        begun = monotonic()
        out, into = os.pipe()
        child = os.fork()
        if not child:
            code = 1
            try:
                os.close(out)
                _live(task, folder, trouble, into)
                code = 0
            except BaseException as error:
                _say(into, "error", f"{type(error).__name__}: {error}")
            finally:
                os._exit(code)
        os.close(into)
        code = self._wait(child, begun + trouble.seconds)
        self.seconds = monotonic() - begun
        with open(out, encoding="utf-8") as said:
            lines = [line.split(" ", 2) for line in said.read().splitlines()]
        self.iterates = {int(k): digest for what, k, digest in lines if what == "x"}
        self.end = next((json.loads(text) for what, _, text in lines if what == "end"), None)
        self.unwritten = sum(what == "unwritten" for what, *_ in lines)
        self.killed = code == -signal.SIGKILL
        errors = [text for what, _, text in lines if what == "error"]
        if errors or (not self.killed and self.end is None) or self.seconds > TOO_LONG:
            raise RuntimeError(f"{task}, {trouble}: {errors or code} after {self.seconds:.1f} s")

    def _wait(self, child: int, until: float) -> int:
        while monotonic() < until:
            done, status = os.waitpid(child, os.WNOHANG)
            if done:
                return os.waitstatus_to_exitcode(status)
            sleep(min(0.002, max(until - monotonic(), 0.0)))
        os.kill(child, signal.SIGKILL)
        return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def _say(into: int, *words: Any) -> None:
    os.write(into, (" ".join(map(str, words)) + "\n").encode())


def _live(task: Task, disk: Disk | None, trouble: Trouble, into: int) -> None:
    warnings.simplefilter("ignore")
    warnings.filterwarnings("always", message=".*could not be written.*")
    warnings.showwarning = lambda *said: _say(into, "unwritten", 0, said[0])  # type: ignore[assignment]
    warnings.filterwarnings("error", message=".*can't be used.*")  # a checkpoint that is damaged
    operations = _count_operations(trouble.operation)
    first, last = trouble.steps

    def callback(record: Any, x: Any) -> None:
        _say(into, "x", record.k, digest(x))
        if disk and trouble.disk and record.k == first:
            (disk.fill if trouble.disk == "full disk" else disk.lock)()
        if disk and trouble.disk and record.k == last:
            disk.mend()

    saving = {"checkpoint": cg.Checkpoint(disk.folder / "c", steps=1), "resume": True} if disk else {}
    result = task.solve(callback=callback, **saving)
    told = {
        "x": digest(result.x),
        "answer": [
            repr(result.fun),
            result.status,
            result.message,
            repr(result.certificate and result.certificate.upper),
        ],
        "counts": result.counts,
        "trace": {name: digest(result.trace[name]) for name in COLUMNS if name not in TIMES},
    }
    _say(into, "end", 0, json.dumps({"told": told, "operations": operations[0]}))


def digest(x: Any) -> str:
    return hashlib.sha256(np.ascontiguousarray(x).tobytes()).hexdigest()[:24]


def _count_operations(deadly: int) -> list[int]:
    """Count what a write does to the disk (in this process alone), and die in one of these."""
    seen = [0]

    def counted(operate: Callable[..., Any]) -> Callable[..., Any]:
        def operation(*args: Any) -> Any:
            seen[0] += 1
            if seen[0] == deadly:
                if operate is write:  # half of it
                    operate(args[0], bytes(args[1])[: len(args[1]) // 2])
                    args[0].file._fileobj.flush()
                os.kill(os.getpid(), signal.SIGKILL)
            return operate(*args)

        return operation

    write = archive._Hashed.write
    archive._Hashed.write = counted(write)  # type: ignore[method-assign]
    for name in ("fsync", "replace"):
        setattr(os, name, counted(getattr(os, name)))
    return seen


# ------------------------------------------------------------------------------------------------------------ campaign


@cache
def undisturbed(task: Task) -> tuple[Life, Life]:
    """Without checkpoints, and with them: how long it takes, and how often it touches the disk."""
    whole = Life(task, None)
    disk = Disk(Path(tempfile.mkdtemp()))
    try:
        saved = Life(task, disk)
    finally:
        disk.close()
    assert saved.end["told"] == whole.end["told"], f"{task}: saving changes the run"
    return whole, saved


def trouble_for(fault: str, task: Task, share: float, rng: np.random.Generator) -> Trouble:
    """A moment up to a ``share`` of what the undisturbed run takes."""
    whole, saved = undisturbed(task)
    if fault == "in a write":
        return Trouble(operation=int(rng.integers(1, max(2, int(share * saved.end["operations"])))))
    if fault == "any moment":
        return Trouble(seconds=float(rng.uniform(0.0, share * saved.seconds)))
    n = len(whole.iterates)
    steps = int(rng.integers(1, max(2, n // 3))), int(rng.integers(n // 3, n))
    return Trouble(seconds=float(rng.uniform(0.4, 1.0)) * share * saved.seconds, disk=fault, steps=steps)


def disturbed(number: int, task: Task, fault: str) -> Row:
    """One run: killed until it was killed once or twice, then to the end."""
    rng, whole = np.random.default_rng((number, 2026)), undisturbed(task)[0]
    disk, kills, share = Disk(Path(tempfile.mkdtemp())), 1 + number % 2, 1.0
    lives: list[Life] = []
    try:
        while sum(life.killed for life in lives) < kills:
            life = Life(task, disk, trouble_for(fault, task, share, rng))
            disk.mend()
            if life.killed or lives:
                lives.append(life)
            if not life.killed and lives:  # it was nearly done
                break
            if not life.killed:  # it was faster than the kill: once more from the start
                share /= 2
                for file in disk.folder.iterdir():
                    file.unlink()
        last = Life(task, disk)
        left = sorted(file.name for file in disk.folder.iterdir())
    finally:
        disk.close()
    seen = [pair for life in (*lives, last) for pair in life.iterates.items()]
    return {
        "run": number,
        "method": task.method,
        "problem": task.problem,
        "inner": task.inner,
        "schedule": task.schedule,
        "fault": fault,
        "kills": sum(life.killed for life in lives),
        "resumed from": min(last.iterates, default=len(whole.iterates)) - 1,
        "lives with a failed write": sum(life.unwritten > 0 for life in lives),
        "iterates compared": len(seen),
        "same iterates": all(whole.iterates[k] == digest for k, digest in seen)
        and {k for k, _ in seen} == {*whole.iterates},
        "same end": last.end["told"] == whole.end["told"],
        "tidy": set(left) <= {"c", "c.previous"},
        "mounted": disk.mounted,
    }


def main() -> None:
    args = arguments(__doc__)
    every = tasks()
    if args.quick:
        every = [
            task for task in every if task.inner == "auto" and (task.problem == "completion") == (task.method in SHOWN)
        ]
    runs = QUICK if args.quick else RUNS
    plan = [
        (i, task, FAULTS[(i + i // len(FAULTS)) % len(FAULTS)]) for i, task in enumerate(islice(cycle(every), runs))
    ]
    rows = work_off("faults", [Job(1.0, lambda a=one: [disturbed(*a)]) for one in plan])

    def line(fault: str) -> tuple[Any, ...]:
        of = [row for row in rows if row["fault"] == fault]
        resumed = [row for row in of if row["resumed from"] >= 0]
        same = [row for row in of if row["same iterates"] and row["same end"]]
        compared = sum(row["iterates compared"] for row in of)
        failed = sum(row["lives with a failed write"] for row in of)
        return fault, len(of), sum(row["kills"] for row in of), failed, len(resumed), compared, len(same)

    how = "a tmpfs, filled or mounted read-only" if all(r["mounted"] for r in rows) else "RLIMIT_FSIZE and permissions"
    table(
        f"{runs} runs killed by SIGKILL and resumed",
        (
            "killed",
            "runs",
            "kills",
            "after a failed write",
            "from a checkpoint",
            "iterates compared",
            "same to the bit",
        ),
        [line(fault) for fault in FAULTS],
        f"The disk that fails: {how}. {len({row['method'] for row in rows})} methods.",
    )
    kills, same = sum(r["kills"] for r in rows), sum(r["same iterates"] and r["same end"] for r in rows)
    tidy = sum(r["tidy"] for r in rows)
    claims = [
        Claim(
            "every run was killed at least once",
            f"{runs} runs",
            f"{len(rows)} runs, {kills} kills",
            all(r["kills"] for r in rows),
        ),
        Claim("resumed runs are the same to the bit", f"{runs} of {runs}", f"{same} of {runs}", same == runs),
        Claim(
            "nothing is left behind but the last two checkpoints",
            f"{runs} of {runs}",
            f"{tidy} of {runs}",
            tidy == runs,
        ),
    ]
    finish("faults", args, rows, claims)


SHOWN = ("ncgs", "ncgs-vr", "stochastic-ncgs", "frank-wolfe", "sagafw", "cgs")
"""The methods that the quick form runs on low-rank points; the others run on arrays."""


if __name__ == "__main__":
    main()
