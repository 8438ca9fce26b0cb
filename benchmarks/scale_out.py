"""Matrix completion on a Dask cluster of processes on this machine: bits, kills, traffic, many entries, faults.

``bits``: every method that fits has the same bits in this process and on 1, 2, 3 and 8 worker processes, and the objectives agree
with the plain ones. ``kills``: workers are killed by SIGKILL at random moments of runs of four methods, and drivers that are
resumed; the result has the bits of an undisturbed run. ``traffic``: bytes that the workers send, by Dask's own counters, beside
the cost model of docs/distributed.md. ``split``: a worker in a network namespace of its own whose link is cut (needs root and
iproute2). ``cost``: constants of the cost model, and what follows for 10 billion entries on 100 workers. ``overhead``: a gradient
and a product beside one process with as many threads, for each entry. ``size``: entries that the workers make themselves, in
float32, until a certified mapping; memory of all processes. ``stream``: entries from Parquet files, whose shards exceed the
memory limit of the workers, which move them to disk and back.
"""

from __future__ import annotations

import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
import tempfile
import threading
from argparse import ArgumentParser
from collections.abc import Iterator
from contextlib import contextmanager
from functools import partial
from pathlib import Path
from statistics import median
from time import monotonic, process_time, sleep
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad import kernels
from condgrad.distributed import EntryFolder, Loader, ShardedCompletion, ShardedSum, ShardError
from condgrad.distributed import shards as computed
from condgrad.distributed.cluster import FAN_OUT, Cluster
from condgrad.distributed.held import FAN_IN, dealt
from condgrad.distributed.start import local_cluster
from condgrad.solvers import METHODS as ALL_METHODS

PARTS = ("bits", "kills", "traffic", "split", "cost", "overhead", "size", "stream")
KILLED = {"ncgs-ii": 1, "frank-wolfe": 8, "away-step": 6, "fully-corrective": 6}
"""Methods whose runs are disturbed, and their steps: 30 to 70 operations on all shards."""
RANK, OUTLIERS, NOISE, SHARE = 10, 0.05, 3.0, 0.9
AGREEMENT = 1e-10
MAX_TRAFFIC, MAX_OVERHEAD, MAX_MEMORY = 1.5, 1.3, 6000.0
"""Claimed: measured bytes over those of the cost model, time of a sharded gradient over that of one process, and MB."""


# ------------------------------------------------------------------------------------------------------------ the data


def row_factor(rows: int, shards: int, i: int) -> tuple[int, np.ndarray]:
    """The first row of a shard, and the rows of U that belong to it."""
    first, stop = rows * i // shards, rows * (i + 1) // shards
    return first, np.random.default_rng((1, i)).standard_normal((stop - first, RANK)) / np.sqrt(RANK)


def column_factor(columns: int) -> np.ndarray:
    return np.random.default_rng((0, 0)).standard_normal((columns, RANK))


def make(rows: int, columns: int, entries: int, shards: int, dtype: str, i: int) -> tuple[np.ndarray, ...]:
    """The entries of shard i: random positions of U V', some with gross errors."""
    rng = np.random.default_rng((2, i))
    first, U = row_factor(rows, shards, i)
    flat = np.unique(rng.integers(len(U) * columns, size=entries // shards))
    local, cols = flat // columns, (flat % columns).astype(np.int32)
    values = kernels.sample_at(local.astype(np.int32), cols, U, column_factor(columns))
    bad = rng.random(len(values)) < OUTLIERS
    values[bad] += rng.uniform(-NOISE, NOISE, int(bad.sum()))
    return (local + first).astype(np.int32), cols, values.astype(dtype)


def nuclear_norm(rows: int, columns: int, shards: int) -> float:
    U = np.concatenate([row_factor(rows, shards, i)[1] for i in range(shards)])
    core = np.linalg.qr(U)[1] @ np.linalg.qr(column_factor(columns))[1].T
    return float(np.linalg.norm(core, "nuc"))


def objective(client: Client, size: int, entries: int, shards: int, dtype: str = "float64") -> ShardedCompletion:
    loader = Loader(partial(make, size, size, entries, shards, dtype), shards)
    return ShardedCompletion(loader, (size, size), cg.Welsch(1.0), client=client)


def plain(size: int, entries: int, shards: int, dtype: str = "float64") -> cg.Completion:
    """The same entries in this process."""
    data = [make(size, size, entries, shards, dtype, i) for i in range(shards)]
    return cg.Completion(*(np.concatenate(part) for part in zip(*data, strict=True)), (size, size), cg.Welsch(1.0))


def ball(size: int, shards: int) -> cg.NuclearBall:
    return cg.NuclearBall((size, size), SHARE * nuclear_norm(size, size, shards))


def dimensions(entries: int) -> tuple[int, int]:
    """Rows (and columns) of a matrix with 1 % of its entries observed, and its number of shards, of 2 million entries."""
    return int(np.sqrt(100 * entries)), max(8, entries // 2**21)


@contextmanager
def started(workers: int, memory_limit: Any = 0) -> Iterator[Client]:
    """A client of this number of worker processes; a memory limit of 0 is none."""
    with local_cluster(workers, memory_limit=memory_limit) as cluster, Client(cluster) as client:
        yield client


def solve(F: Any, domain: Any, method: str, steps: int, **more: Any) -> Any:
    return cg.minimize(F, domain, method=method, max_steps=steps, tol=1e-12, output="last", progress=False, **more)


# -------------------------------------------------------------------------------------------------------------- parts

SMALL = 100, 4_000, 6
TINY = 40, 800, 6
"""Rows (and columns), entries and shards of the runs whose bits are compared, and of those that are disturbed."""
STEPS, ROWS, FEATURES = 2, 600, 20


def regression(shards: int, i: int) -> tuple[np.ndarray, np.ndarray]:
    """The rows of shard i of a linear model."""
    rng = np.random.default_rng((5, i))
    A = rng.standard_normal((ROWS // shards, FEATURES))
    return A, A[:, 0] - A[:, 1] + 0.1 * rng.standard_normal(len(A))


def problems(client: Client) -> dict[str, tuple[Any, Any, Any]]:
    """Objectives on workers, their sets, and the same objectives in this process."""
    size, entries, shards = SMALL
    rows = [np.concatenate(part) for part in zip(*(regression(shards, i) for i in range(shards)), strict=True)]
    linear = ShardedSum(Loader(partial(regression, shards), shards), cg.Welsch(1.0), client=client)
    return {
        "completion": (objective(client, size, entries, shards), ball(size, shards), plain(size, entries, shards)),
        "linear model": (linear, cg.L1Ball(FEATURES, 1.5), cg.LinearModel(*rows, cg.Welsch(1.0))),
    }


def disagreement(F: Any, alone: Any) -> float:
    """Relative difference of value, gradient and its products from those of the plain objective, at a random point."""
    if len(F.shape) == 1:
        x = np.random.default_rng(0).standard_normal(F.shape)
        pairs = [(G.value(x), G.grad(x)) for G in (F, alone)]
    else:
        x, block = point_of(F.shape[0]), np.random.default_rng(0).standard_normal((F.shape[1], 3))
        pairs = [(G.value(x), np.asarray(G.grad(x)), G.grad(x) @ block, G.grad(x).T @ block) for G in (F, alone)]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(*pairs, strict=True))


def answers(F: Any, domain: Any, names: Any) -> dict[str, bytes]:
    """The bits of the answer of each method that this objective and this set have the oracles for."""
    found = {}
    for name in names:
        try:
            found[name] = np.asarray(solve(F, domain, name, STEPS).x).tobytes()
        except (ValueError, TypeError):  # a method of another kind says so
            continue
    return found


def bits() -> Iterator[Row]:
    first: dict[str, dict[str, bytes]] = {}
    for workers in (0, 1, 2, 3, 8):
        with (
            started(workers)
            if workers
            else Client(processes=False, n_workers=1, threads_per_worker=1, dashboard_address=":0")
        ) as client:
            for problem, (F, domain, alone) in problems(client).items():
                found = answers(F, domain, first.get(problem, ALL_METHODS))
                reference = first.setdefault(problem, found)
                yield {
                    "part": "bits",
                    "problem": problem,
                    "workers": workers,
                    "methods": len(reference),
                    "same": sum(found.get(name) == bits for name, bits in reference.items()),
                    "off": disagreement(F, alone),
                    "names": ", ".join(reference),
                }


def drive(address: str, name: str, folder: str, resume: bool) -> None:
    """The driver of a run, in a process of its own: with a checkpoint after every step, it writes the bits of the answer."""
    size, entries, shards = TINY
    with Client(address) as client:
        saving = {"checkpoint": cg.Checkpoint(Path(folder) / "checkpoint", steps=1), "resume": resume}
        F = objective(client, size, entries, shards)
        answer = np.asarray(solve(F, ball(size, shards), name, KILLED[name], **saving).x).tobytes()
    (Path(folder) / "answer").write_bytes(answer)


def driven(client: Client, name: str, killed_after: float | None = None) -> tuple[bytes, float, bool]:
    """The answer of a driver in a process of its own, the seconds, and whether it was killed and its run resumed."""
    spawn = multiprocessing.get_context("spawn")
    with tempfile.TemporaryDirectory() as folder:
        given, begun, killed = (client.scheduler.address, name, folder), monotonic(), False
        process = spawn.Process(target=drive, args=(*given, False))
        process.start()
        process.join(killed_after)
        if process.is_alive():
            process.kill()
            process.join()
            killed = True
            saved = any(Path(folder).iterdir())  # killed before the first step: the run begins again
            process = spawn.Process(target=drive, args=(*given, saved))
            process.start()
            process.join()
        return (Path(folder) / "answer").read_bytes(), monotonic() - begun, killed


def kills(workers: int, drivers: int) -> Iterator[Row]:
    """Random kills, at most one at a time, while runs of the four methods follow each other.

    The stall of a killed worker is the longest operation of the run, less the longest of the undisturbed run; that of a killed
    driver is the time of both processes less that of one undisturbed process, with the first method.
    """
    size, entries, shards = TINY
    domain, rng = ball(size, shards), np.random.default_rng(0)
    with started(3) as client:
        F = objective(client, size, entries, shards)
        undisturbed, took, longest = {}, {}, {}
        for name in KILLED:
            solve(F, domain, name, 1)  # compiles
            begun = monotonic()
            with longest_operation() as seconds:
                undisturbed[name] = np.asarray(solve(F, domain, name, KILLED[name]).x).tobytes()
            took[name], longest[name] = monotonic() - begun, max(seconds)
        for i in range(workers):
            name = list(KILLED)[i % len(KILLED)]
            replace_workers(client)
            pids = list(client.run(os.getpid, on_error="ignore").values())
            timer = threading.Timer(took[name] * rng.random(), os.kill, (int(rng.choice(pids)), signal.SIGKILL))
            timer.start()
            with longest_operation() as seconds:
                found = np.asarray(solve(F, domain, name, KILLED[name]).x).tobytes()
            killed = not timer.is_alive()
            timer.join()
            yield {
                "part": "kills", "of": "worker", "method": name, "same": found == undisturbed[name], "killed": killed,
                "stall": max(seconds) - longest[name],
            }  # fmt: skip
            sleep(0.5)  # a worker killed at the end of a run: the scheduler notices
        first, *_ = KILLED
        answer, alone, _ = driven(client, first)
        assert answer == undisturbed[first]
        for i in range(drivers):
            name = list(KILLED)[i % len(KILLED)]
            found, seconds, killed = driven(client, name, alone * (0.4 + 0.6 * rng.random()))
            yield {
                "part": "kills", "of": "driver", "method": name, "same": found == undisturbed[name], "killed": killed,
                "stall": seconds - alone,
            }  # fmt: skip


def replace_workers(client: Client, number: int = 3) -> None:
    """Wait for this number of workers; start others if Dask does not replace those that were killed, as while they start."""
    try:
        client.wait_for_workers(number, timeout=60)
    except TimeoutError:
        client.cluster.scale(len(client.cluster.workers) + number)
        client.wait_for_workers(number, timeout=120)


@contextmanager
def longest_operation() -> Iterator[list[float]]:
    """The seconds of each operation on all shards within the block."""
    results, seconds = Cluster.results, [0.0]

    def timed(self: Any, *given: Any) -> Any:
        begun = monotonic()
        try:
            return results(self, *given)
        finally:
            seconds.append(monotonic() - begun)

    Cluster.results = timed  # type: ignore[method-assign]
    try:
        yield seconds
    finally:
        Cluster.results = results  # type: ignore[method-assign]


def sent_by_workers(client: Client) -> int:
    """Bytes that all workers have sent, to the driver and to each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


REPEATS, COLUMNS = 5, 8


def operations(F: Any, size: int, shards: int, workers: int) -> dict[str, tuple[Any, int]]:
    """The operations of a step at points and with blocks that differ, and the bytes of the cost model that workers send."""
    rng = np.random.default_rng(0)
    points = [point_of(size, seed) for seed in range(2, 3 + REPEATS)]
    D, blocks = F.grad(point_of(size)), [rng.standard_normal((size, COLUMNS)) for _ in points]
    return {
        "gradient": (lambda i: F.grad(points[i]), 24 * shards + 8 * size * RANK * (workers - 1)),
        "D @ W": (lambda i: D @ blocks[i], 8 * size * COLUMNS * workers),
        "D.T @ Q": (lambda i: D.T @ blocks[i], 8 * size * COLUMNS * (1 + sums_moved(shards, workers))),
    }


def sums_moved(shards: int, workers: int) -> int:
    """Number of partial sums that are added on another worker than the one that has them."""
    owners, moved = dealt([""] * shards, [str(i) for i in range(workers)]), 0
    while len(owners) > 1:
        moved += sum(owner != owners[i - i % FAN_IN] for i, owner in enumerate(owners))
        owners = owners[::FAN_IN]
    return moved


def point_of(size: int, seed: int = 1) -> cg.LowRank:
    rng = np.random.default_rng(seed)
    return cg.LowRank(rng.standard_normal((size, RANK)), rng.standard_normal((size, RANK)))


def traffic() -> Iterator[Row]:
    """Bytes that workers send for each operation of a step, at sizes that differ in the entries only, with Dask's defaults."""
    size, shards, workers = 2000, 8, 2
    with (
        LocalCluster(n_workers=workers, threads_per_worker=1, dashboard_address=":0") as cluster,
        Client(cluster) as client,
    ):
        for entries in (400_000, 800_000, 1_600_000):
            F = objective(client, size, entries, shards)
            found = operations(F, size, shards, workers)
            for call, _ in found.values():  # Dask places a task by the time that others like it have taken
                call(REPEATS)
            for name, (call, model) in found.items():
                before = sent_by_workers(client)
                for i in range(REPEATS):
                    call(i)
                measured = (sent_by_workers(client) - before) / REPEATS
                yield {
                    "part": "traffic", "operation": name, "entries": F.pattern.size, "measured": measured, "model": model,
                }  # fmt: skip


def constants() -> dict[str, float]:
    """CPU time: nanoseconds for an entry in each operation, on one thread in float32, and seconds of driver and scheduler."""
    size, entries = 100_000, 2**21
    data = make(size, size, 10 * entries, 10, "float32", 0)
    shard = computed.build(0, data, (size, size), cg.Welsch(1.0))
    rng, found = np.random.default_rng(0), {}
    U, V = rng.standard_normal((shard.pattern.shape[0], RANK)), rng.standard_normal((size, RANK))
    W, Q = rng.standard_normal((size, COLUMNS)), rng.standard_normal((shard.pattern.shape[0], COLUMNS))
    slopes = computed.evaluate(shard, U, V, cg.Welsch(1.0))
    calls = {
        "gradient": lambda: computed.evaluate(shard, U, V, cg.Welsch(1.0)),
        "D @ W": lambda: computed.times(shard, W, (1.0,), slopes),
        "D.T @ Q": lambda: computed.transposed_times(shard, Q, (1.0,), slopes),
    }
    with kernels.limit_threads(1):
        for name, call in calls.items():
            times = []
            for _ in range(6):
                begun = process_time()
                call()
                times.append(process_time() - begun)
            found[name] = 1e9 * median(times[1:]) / shard.pattern.size
    with started(2) as client:
        seconds = {}
        for shards in (8, 200):
            F, times = objective(client, 400, 40_000, shards), []
            for _ in range(10):
                begun = process_time()
                F.pattern.each(computed.largest_value)
                times.append(process_time() - begun)
            seconds[shards] = median(times)
    found["a shard"] = (seconds[200] - seconds[8]) / 192
    found["an operation"] = max(seconds[8] - 8 * found["a shard"], 0.0)
    return found


ROUNDS = 8
"""Operations on all shards in a step: its gradient, its products, and inner products of which only numbers travel."""


def step_cost(
    measured: dict[str, float], entries: float, rows: float, columns: float, workers: int, shards: int, bandwidth: float
) -> dict[str, tuple[float, float]]:
    """Bytes and seconds of the parts of a step with one gradient, one ``D @ W`` and one ``D.T @ Q``; formulas of the docs."""
    nanoseconds = sum(measured[name] for name in ("gradient", "D @ W", "D.T @ Q"))
    depth, reached = 0, 1
    while reached < workers:
        depth, reached = depth + 1, reached * FAN_OUT + 1
    common, sums = 8 * columns * (RANK + COLUMNS), 8 * columns * COLUMNS * sums_moved(shards, workers)
    driver = 8 * (rows + columns) * RANK + 2 * 8 * (rows + columns) * COLUMNS
    return {
        "computing": (0.0, nanoseconds * 1e-9 * entries / workers),
        "V and W, passed on": (common * (workers - 1), common * min(FAN_OUT, workers - 1) * depth / bandwidth),
        "partial sums": (sums, sums / workers / bandwidth),
        "in and out of the driver": (driver, driver / bandwidth),
        "the scheduler": (0.0, ROUNDS * (measured["an operation"] + shards * measured["a shard"])),
    }


def cost() -> Iterator[Row]:
    """The cost model at 10 billion entries of a matrix with a million rows and columns, on workers with 10 Gbit/s: calculated."""
    measured = constants()
    for name, number in measured.items():
        seconds = name.startswith("a")
        yield {
            "part": "cost",
            "measured": name,
            "number": 1e3 * number if seconds else number,
            "unit": "ms" if seconds else "ns",
        }
    entries, size, bandwidth = 1e10, 1e6, 1.25e9

    def total(workers: int) -> tuple[float, float]:
        found = step_cost(measured, entries, size, size, workers, 4 * workers, bandwidth)
        return found["computing"][1], sum(seconds for _, seconds in found.values())

    for workers, shards in ((100, 4769), (100, 400)):
        for name, (volume, seconds) in step_cost(measured, entries, size, size, workers, shards, bandwidth).items():
            about = f"{workers} workers, {shards} shards: {name}"
            yield {"part": "cost", "measured": f"{about}, MB", "number": volume / 1e6, "unit": "calculated"}
            yield {"part": "cost", "measured": f"{about}, s", "number": seconds, "unit": "calculated"}
    workers = 1
    while 2 * total(workers)[0] > total(workers)[1]:
        workers += max(1, workers // 50)
    yield {
        "part": "cost",
        "measured": "workers from which computing is less than half",
        "number": workers,
        "unit": "calculated",
    }


NAMESPACE, HOST, GUEST = "condgrad-split", "10.213.77.1", "10.213.77.2"
TIMEOUT = 5.0


def split() -> Iterator[Row]:
    """Cut the link to a worker that holds shards: with a time limit they are named. Without one, Dask notices, and they move."""
    commands = [
        f"netns add {NAMESPACE}", f"link add cgsplit0 type veth peer name cgsplit1 netns {NAMESPACE}",
        f"addr add {HOST}/24 dev cgsplit0", "link set cgsplit0 up", f"-n {NAMESPACE} addr add {GUEST}/24 dev cgsplit1",
        f"-n {NAMESPACE} link set cgsplit1 up", f"-n {NAMESPACE} link set lo up",
    ]  # fmt: skip
    children = []
    try:
        for command in commands:
            subprocess.run(["ip", *command.split()], check=True)
        python, address = [sys.executable, "-m"], f"tcp://{HOST}:8799"
        scheduler = [*python, "distributed.cli.dask_scheduler", "--host", HOST, "--port", "8799", "--no-dashboard"]
        worker = [*python, "distributed.cli.dask_worker", address, "--nthreads", "1", "--no-dashboard"]
        quiet = {"stdout": subprocess.DEVNULL, "stderr": subprocess.DEVNULL}
        children.append(subprocess.Popen(scheduler, **quiet))
        children.append(subprocess.Popen(worker, **quiet))
        children.append(subprocess.Popen(["ip", "netns", "exec", NAMESPACE, *worker], **quiet))
        with Client(address, timeout=60) as client:
            client.wait_for_workers(2, timeout=120)
            size, entries, shards = SMALL
            loader = Loader(partial(make, size, size, entries, shards, "float64"), shards)
            F = ShardedCompletion(loader, (size, size), client=client)
            before = F.value(point_of(size))
            places = client.who_has(F.pattern.shards())
            lost = [i for i, shard in enumerate(F.pattern.shards()) if GUEST in places[shard.key][0]]
            subprocess.run(["ip", "link", "set", "cgsplit0", "down"], check=True)
            F.pattern.cluster.timeout = TIMEOUT
            begun, said = monotonic(), ""
            try:
                F.value(point_of(size, 2))
            except ShardError as error:
                said = str(error)
            waited = monotonic() - begun
            named = said.startswith(f"Shards {', '.join(map(str, lost))} gave no answer within {TIMEOUT:g} s")
            F.pattern.cluster.timeout = None
            begun = monotonic()
            went_on = F.value(point_of(size)) == before
            moved = monotonic() - begun
            subprocess.run(["ip", "link", "set", "cgsplit0", "up"], check=True)
            sleep(2)
            same = went_on and F.value(point_of(size)) == before
            assert lost, "the worker behind the link held no shard"
            yield {
                "part": "split", "shards there": len(lost), "seconds": waited, "named": named, "moved after": moved,
                "same": same, "said": said,
            }  # fmt: skip
    finally:
        for child in children:
            child.kill()
            child.wait()
        subprocess.run(["ip", "link", "del", "cgsplit0"], check=False, stderr=subprocess.DEVNULL)
        subprocess.run(["ip", "netns", "del", NAMESPACE], check=False, stderr=subprocess.DEVNULL)


def memory(pid: int) -> float:
    """Peak memory of a process in MB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def cpu_of(pid: int) -> float:
    """CPU seconds of a process so far."""
    with open(f"/proc/{pid}/stat", encoding="utf-8") as line:
        fields = line.read().rpartition(")")[2].split()
    return (int(fields[11]) + int(fields[12])) / os.sysconf("SC_CLK_TCK")


def cpu_seconds(client: Client) -> float:
    """CPU seconds of this process and of the workers so far."""
    return process_time() + sum(map(cpu_of, client.run(os.getpid).values()))


def overhead(entries: int, rounds: int = 5) -> Iterator[Row]:
    """A gradient and a product with its transpose, by turns: two workers of one thread, and two threads in one process.

    With a tenth of the entries on both sides, where messages take most of what is added; with all entries on the workers, beside
    one process with all of them and one with a tenth.
    """

    def made(factory: Any, n: int) -> tuple[Any, int]:
        size, shards = dimensions(n)
        return factory(size, n, shards, "float32"), size

    with started(2) as client, kernels.limit_threads(2):
        for sharded, alone in ((entries // 10, (entries // 10,)), (entries, (entries // 10, entries))):
            both = [made(partial(objective, client), sharded), *(made(plain, n) for n in alone)]
            found = []
            for i in range(rounds + 1):
                for F, size in both:
                    x, block = point_of(size, i), np.random.default_rng(0).standard_normal((size, COLUMNS))
                    begun, cpu = monotonic(), cpu_seconds(client)
                    _ = F.grad(x).T @ block
                    took = np.array([monotonic() - begun, cpu_seconds(client) - cpu])
                    found.append(1e9 * took / F.pattern.size)
            each = np.array(found[len(both) :]).reshape(rounds, len(both), 2)  # the first round compiles
            wall, cpu = np.median(each, axis=0).T
            for j, (F, _) in enumerate(both[1:], 1):
                yield {
                    "part": "overhead", "entries": both[0][0].pattern.size, "alone": F.pattern.size, "ns": wall[0],
                    "ns alone": wall[j], "cpu": cpu[0], "cpu alone": cpu[j],
                    "ratio": float(median(each[:, 0, 0] / each[:, j, 0])),
                    "cpu ratio": float(median(each[:, 0, 1] / each[:, j, 1])),
                }  # fmt: skip
            del both, F


def many(entries: int, target: float, workers: int, limit: float | None) -> Iterator[Row]:
    """A run on entries that the workers make, until a certified squared mapping or a limit in seconds."""
    size, shards = dimensions(entries)
    Path("/proc/self/clear_refs").write_text("5", encoding="ascii")  # the peak of this process begins here
    with started(workers) as client:
        begun, cpu = monotonic(), cpu_seconds(client)
        F = objective(client, size, entries, shards, "float32")
        made, made_cpu = monotonic() - begun, cpu_seconds(client) - cpu

        def tell(record: Any, x: Any) -> None:
            said = f"step {record.k}: {record.fo} gradients, {monotonic() - begun:.0f} s"
            print(f"size: {said}, {cpu_seconds(client) - cpu:.0f} s of CPU time", file=sys.stderr, flush=True)

        print(f"size: {F.pattern.size:,} entries made, {made:.0f} s", file=sys.stderr, flush=True)
        stop = cg.Mapping(target) if limit is None else cg.Mapping(target) | cg.Seconds(limit)
        begun, cpu = monotonic(), cpu_seconds(client)
        result = cg.minimize(F, ball(size, shards), stop=stop, every=10**9, callback=tell, progress=False)
        took, cpu = monotonic() - begun, cpu_seconds(client) - cpu
        pids = [os.getpid(), *client.run(os.getpid).values()]
        gradients = result.counts["fo"]
        yield {
            "part": "size", "size": size, "workers": workers, "entries": F.pattern.size, "made": made, "cpu to make": made_cpu,
            "status": result.status, "steps": result.steps, "gradients": gradients, "mapping": result.certificate.upper,
            "seconds": took, "cpu": cpu, "megabytes": sum(map(memory, pids)),
            "per CPU second": F.pattern.size * gradients / cpu,
        }  # fmt: skip


def write(folder: str, size: int, entries: int, shards: int, i: int) -> None:
    """Write the entries of a shard to a Parquet file."""
    import pyarrow as pa
    from pyarrow import parquet

    columns = zip(("row", "col", "value"), make(size, size, entries, shards, "float32", i), strict=True)
    parquet.write_table(pa.table(dict(columns)), f"{folder}/{i:05}.parquet")


def stream(entries: int, limit: int, steps: int) -> Iterator[Row]:
    """The same steps from Parquet files with a memory limit of each of two workers, and without one."""
    (size, shards), found = dimensions(entries), []
    folder = tempfile.mkdtemp(prefix="condgrad-stream-")
    try:
        for sub in ("data", "scratch"):
            Path(folder, sub).mkdir()
        with started(2) as client:
            client.gather(client.map(partial(write, f"{folder}/data", size, entries, shards), range(shards)))
        for bytes_ in (limit, 0):
            with started(2, bytes_) as client:
                source = EntryFolder(f"{folder}/data", f"{folder}/scratch")
                begun, cpu = monotonic(), cpu_seconds(client)
                F = ShardedCompletion(source, (size, size), cg.Welsch(1.0), client=client, shards=shards)
                opened = monotonic() - begun
                begun = monotonic()
                result = solve(F, ball(size, shards), "frank-wolfe", steps)
                took = monotonic() - begun
                spilled = sum(
                    client.run(
                        lambda dask_worker: (
                            dask_worker.data.spilled_total.disk if hasattr(dask_worker.data, "spilled_total") else 0
                        )
                    ).values()
                )
                found.append(result.fun)
                workers = sum(map(memory, client.run(os.getpid).values()))
                yield {
                    "part": "stream", "entries": F.pattern.size, "limit": 2 * bytes_ / 1e6, "opened": opened,
                    "seconds": took, "cpu": cpu_seconds(client) - cpu, "on disk": spilled / 1e6, "megabytes": workers,
                    "same": result.fun == found[0],
                }  # fmt: skip
                del F
    finally:
        shutil.rmtree(folder, ignore_errors=True)


# ------------------------------------------------------------------------------------------------------------- claims


def claims(rows: list[Row]) -> list[Claim]:
    made = []
    by = {part: [row for row in rows if row["part"] == part] for part in PARTS}
    if by["bits"]:
        same = all(row["same"] == row["methods"] for row in by["bits"])
        off = max(row["off"] for row in by["bits"])
        runs = " and ".join(f"{row['methods']} methods ({row['problem']})" for row in by["bits"][:2])
        measured = f"{runs}: {'all' if same else 'not all'}"
        made.append(Claim("the same bits in one process and on 1, 2, 3 and 8 workers", "all", measured, same))
        made.append(
            Claim("relative distance to the plain objective", f"<= {AGREEMENT:g}", f"{off:.1e}", off <= AGREEMENT)
        )
    for of in ("worker", "driver"):
        if rows_of := [row for row in by["kills"] if row["of"] == of]:
            same, stalls = sum(row["same"] for row in rows_of), [row["stall"] for row in rows_of]
            killed = sum(row["killed"] for row in rows_of)
            stall = f"stall {median(stalls):.1f} s in the median, {max(stalls):.1f} s at most"
            measured = f"{same} of {len(stalls)} ({killed} killed before the end); {stall}"
            made.append(Claim(f"the undisturbed bits after a kill of a {of}", "all", measured, same == len(stalls)))
    if by["traffic"]:
        ratios = [row["measured"] / row["model"] for row in by["traffic"]]
        made.append(
            Claim("bytes over the cost model", f"<= {MAX_TRAFFIC}", f"{max(ratios):.2f}", max(ratios) <= MAX_TRAFFIC)
        )
        grows = max(
            last["measured"] / max(first["measured"], 1.0)
            for first, last in zip(by["traffic"][:3], by["traffic"][-3:], strict=True)
        )
        made.append(Claim("bytes with 4 times the entries", "<= 1.1", f"{grows:.2f}", grows <= 1.1))
    for row in by["split"]:
        holds, measured = row["named"] and row["seconds"] <= TIMEOUT + 1, f"after {row['seconds']:.1f} s: {row['said']}"
        made.append(Claim("a cut link: the shards behind it are named", f"within {TIMEOUT:g} s", measured, holds))
        measured = f"{row['same']}, after {row['moved after']:.1f} s"
        made.append(
            Claim("with the other worker, and when the link is back: the same value", "yes", measured, row["same"])
        )
    if by["stream"]:
        limited, free = by["stream"]
        made.append(Claim("beyond the memory limit: the same value", "yes", str(free["same"]), free["same"]))
        slower = limited["seconds"] / free["seconds"]
        made.append(Claim("beyond the memory limit: times slower", "reported", f"{slower:.2f}", True))
    for row in by["size"]:
        about = f"{row['entries']:,} entries"
        made.append(Claim(f"{about}: certified", "converged", row["status"], row["status"] == "converged"))
        made.append(
            Claim(f"{about}: MB", f"<= {MAX_MEMORY:g}", f"{row['megabytes']:.0f}", row["megabytes"] <= MAX_MEMORY)
        )
    for row in by["overhead"]:
        for name, what in (("ratio", "seconds"), ("cpu ratio", "CPU seconds")):
            claim = f"gradient and product, {row['entries']:,} entries: {what} an entry over one process with {row['alone']:,}"
            made.append(Claim(claim, f"<= {MAX_OVERHEAD}", f"{row[name]:.2f}", row[name] <= MAX_OVERHEAD))
    return made


def options(parser: ArgumentParser) -> None:
    parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    parser.add_argument("--kills", nargs=2, type=int, help="of kills: workers and drivers killed (default: 30 5)")
    parser.add_argument("--entries", type=int, help="of size: default 100 million (a tenth is compared)")
    parser.add_argument("--workers", type=int, default=2, help="of size: worker processes of one thread (default: 2)")
    parser.add_argument(
        "--mapping", type=float, default=1e-2, help="of size: certified squared mapping (default: 0.01)"
    )
    parser.add_argument("--seconds", type=float, help="of size: limit of the run (default: none)")
    parser.add_argument("--streamed", type=int, help="entries of stream: default 300 million")
    parser.add_argument("--limit", type=float, help="of stream: megabytes of each of two workers, default 1500")


def told(work: Any) -> Iterator[Row]:
    """The rows of a part, each printed on stderr when it is there: a part may take long."""
    for row in work():
        cells = (f"{name} {cell:.6g}" if isinstance(cell, float) else f"{name} {cell}" for name, cell in row.items())
        print(", ".join(cells), file=sys.stderr, flush=True)
        yield row


def main() -> None:
    args = arguments(__doc__, options)
    entries = args.entries or (600_000 if args.quick else 100_000_000)
    streamed = args.streamed or (600_000 if args.quick else 300_000_000)
    limit = int(1e6 * (args.limit or (700 if args.quick else 1500)))
    jobs = {
        "bits": Job(3, bits),
        "kills": Job(5, partial(kills, *(args.kills or ((4, 1) if args.quick else (30, 5))))),
        "traffic": Job(1, traffic),
        "split": Job(1, split),
        "cost": Job(1, cost),
        "overhead": Job(2, partial(overhead, max(entries, 1_000_000))),
        "size": Job(20, partial(many, entries, args.mapping, args.workers, args.seconds)),
        "stream": Job(20, partial(stream, streamed, limit, 3)),
    }
    rows = work_off("scale-out", [Job(jobs[part].weight, partial(told, jobs[part].work)) for part in args.parts])
    for part in args.parts:
        own = [row for row in rows if row["part"] == part]
        columns = [name for name in own[0] if name not in ("part", "said", "names")]
        cells = [[str(row[c]) if isinstance(row[c], bool) else row[c] for c in columns] for row in own]
        table(part, columns, cells)
    finish("scale_out", args, rows, claims(rows))


if __name__ == "__main__":
    main()
