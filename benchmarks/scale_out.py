"""Matrix completion on a Dask cluster of processes on this machine: bits, killed workers, traffic, and many entries.

``bits``: runs on 1, 2, 3 and 8 workers have the same bits, and agree with the plain objective. ``kills``: workers are killed by
SIGKILL at random moments of runs; the result has the bits of an undisturbed run. ``traffic``: bytes that reach and leave the
driver, by Dask's own counters, beside the cost model of docs/distributed.md. ``size``: entries that the workers make themselves,
in float32, until a certified mapping; memory of all processes, and entries per second of a gradient beside one process with as
many threads.
"""

from __future__ import annotations

import os
import signal
import threading
from collections.abc import Iterator
from functools import partial
from statistics import median
from time import monotonic, sleep
from typing import Any

import numpy as np
from distributed import Client, LocalCluster

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad import kernels
from condgrad.distributed import Loader, ShardedCompletion

PARTS = ("bits", "kills", "traffic", "size")
METHODS: dict[str, dict[str, Any]] = {
    "ncgs": {},
    "ncgs without polish": {"method": "ncgs", "polish": False},
    "ncgs-ii": {},
    "frank-wolfe": {},
}
"""Methods with full gradients on low-rank points; by default the key is the method's name."""
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


def start(workers: int) -> LocalCluster:
    return LocalCluster(n_workers=workers, threads_per_worker=1, processes=True, dashboard_address=":0", memory_limit=0)


def solve(F: Any, domain: Any, name: str, steps: int, **more: Any) -> Any:
    return cg.minimize(
        F,
        domain,
        **({"method": name} | METHODS[name]),
        max_steps=steps,
        tol=1e-12,
        output="last",
        progress=False,
        **more,
    )


# -------------------------------------------------------------------------------------------------------------- parts

SMALL = 200, 12_000, 6, 5
"""Rows (and columns), entries, shards and steps of the runs whose bits are compared."""


def disagreement(F: Any, alone: Any, size: int) -> float:
    """Relative difference of value, gradient and its products from those of the plain objective, at a random point."""
    rng = np.random.default_rng(0)
    x = cg.LowRank(rng.standard_normal((size, RANK)), rng.standard_normal((size, RANK)))
    block = rng.standard_normal((size, 3))
    pairs = [(G.value(x), np.asarray(G.grad(x)), G.grad(x) @ block, G.grad(x).T @ block) for G in (F, alone)]
    return max(float(np.linalg.norm(a - b) / np.linalg.norm(b)) for a, b in zip(*pairs, strict=True))


def bits() -> Iterator[Row]:
    size, entries, shards, steps = SMALL
    domain, first, alone = ball(size, shards), {}, plain(size, entries, shards)
    for workers in (1, 2, 3, 8):
        with start(workers) as cluster, Client(cluster) as client:
            F = objective(client, size, entries, shards)
            off = disagreement(F, alone, size)
            for name in METHODS:
                found = np.asarray(solve(F, domain, name, steps).x).tobytes()
                same = first.setdefault(name, found) == found
                yield {"part": "bits", "method": name, "workers": workers, "same": same, "off": off}


def kills(number: int) -> Iterator[Row]:
    """Random kills, at most one at a time, while runs of all methods follow each other."""
    size, entries, shards, steps = SMALL
    domain, rng = ball(size, shards), np.random.default_rng(0)
    with start(2) as cluster, Client(cluster) as client:
        F = objective(client, size, entries, shards)
        undisturbed, took = {}, {}
        for name in METHODS:
            begun = monotonic()
            undisturbed[name] = np.asarray(solve(F, domain, name, steps).x).tobytes()
            took[name] = monotonic() - begun
        for i in range(number):
            name = list(METHODS)[i % len(METHODS)]
            client.wait_for_workers(2, timeout=120)
            pids = list(client.run(os.getpid).values())
            timer = threading.Timer(took[name] * rng.random(), os.kill, (int(rng.choice(pids)), signal.SIGKILL))
            begun = monotonic()
            timer.start()
            found = np.asarray(solve(F, domain, name, steps).x).tobytes()
            stall = monotonic() - begun - took[name]
            timer.join()
            yield {"part": "kills", "method": name, "same": found == undisturbed[name], "stall": stall}
            sleep(0.5)  # a worker killed at the end of a run: the scheduler notices


def sent_by_workers(client: Client) -> int:
    """Bytes that all workers have sent, to the driver and to each other."""
    return sum(client.run(lambda dask_worker: dask_worker.transfer_outgoing_bytes_total).values())


def traffic() -> Iterator[Row]:
    """Bytes that workers send for one product with D' of a block of 8 columns, at sizes that differ in the entries only."""
    size, shards, columns = 2000, 8, 8
    with start(2) as cluster, Client(cluster) as client:
        for entries in (50_000, 200_000, 800_000):
            F = objective(client, size, entries, shards)
            rng = np.random.default_rng(0)
            x = cg.LowRank(rng.standard_normal((size, RANK)), rng.standard_normal((size, RANK)))
            D, Q = F.grad(x), rng.standard_normal((size, columns))
            before = sent_by_workers(client)
            for _ in range(5):
                _ = D.T @ Q
            model = 8 * size * columns * (1 + shards)  # to the driver, and partial sums to each other at most
            measured = (sent_by_workers(client) - before) / 5
            yield {"part": "traffic", "entries": F.pattern.size, "measured": measured, "model": model}


def memory(pid: int) -> float:
    """Peak memory of a process in MB."""
    with open(f"/proc/{pid}/status", encoding="utf-8") as lines:
        return next(int(line.split()[1]) / 1024 for line in lines if line.startswith("VmHWM"))


def gradient_seconds(F: Any, size: int) -> float:
    """Median wall time of a value and gradient and one product with its transpose, at points that differ."""
    rng, times = np.random.default_rng(0), []
    for _ in range(4):
        x = cg.LowRank(rng.standard_normal((size, RANK)), rng.standard_normal((size, RANK)))
        begun = monotonic()
        _ = F.grad(x).T @ rng.standard_normal((size, 8))
        times.append(monotonic() - begun)
    return median(times[1:])


def many(size: int, entries: int, compared: int, target: float) -> Iterator[Row]:
    """A run on ``entries`` entries on two workers, and the speed of a gradient with ``compared`` ones beside one process."""
    with start(2) as cluster, Client(cluster) as client:
        shards = max(8, compared // 2**21)
        F = objective(client, size, compared, shards, "float32")
        on_workers = gradient_seconds(F, size)
        del F
        with kernels.limit_threads(2):
            alone = gradient_seconds(plain(size, compared, shards, "float32"), size)
        shards = max(8, entries // 2**21)
        F = objective(client, size, entries, shards, "float32")
        stop = cg.Mapping(target) | cg.Seconds(1800)
        begun = monotonic()
        result = cg.minimize(F, ball(size, shards), stop=stop, every=10**9)
        took = monotonic() - begun
        pids = [os.getpid(), *client.run(os.getpid).values()]
        yield {
            "part": "size", "size": size, "entries": F.pattern.size, "status": result.status, "steps": result.steps,
            "mapping": result.certificate.upper, "seconds": took, "megabytes": sum(map(memory, pids)),
            "overhead": on_workers / alone, "per_second": F.pattern.size * result.counts["fo"] / took,
        }  # fmt: skip


# ------------------------------------------------------------------------------------------------------------- claims


def claims(rows: list[Row]) -> list[Claim]:
    made = []
    by = {part: [row for row in rows if row["part"] == part] for part in PARTS}
    if by["bits"]:
        same, off = sum(row["same"] for row in by["bits"]), max(row["off"] for row in by["bits"])
        made.append(
            Claim(
                "the same bits on 1, 2, 3 and 8 workers", "all", f"{same} of {len(by['bits'])}", same == len(by["bits"])
            )
        )
        made.append(
            Claim("relative distance to the plain objective", f"<= {AGREEMENT:g}", f"{off:.1e}", off <= AGREEMENT)
        )
    if by["kills"]:
        same, stalls = sum(row["same"] for row in by["kills"]), [row["stall"] for row in by["kills"]]
        measured = f"{same} of {len(stalls)}; stall {median(stalls):.1f} s in the median, {max(stalls):.1f} s at most"
        made.append(Claim("the undisturbed bits after a kill", "all", measured, same == len(stalls)))
    if by["traffic"]:
        ratios = [row["measured"] / row["model"] for row in by["traffic"]]
        grows = by["traffic"][-1]["measured"] / by["traffic"][0]["measured"]
        made.append(
            Claim("bytes over the cost model", f"<= {MAX_TRAFFIC}", f"{max(ratios):.2f}", max(ratios) <= MAX_TRAFFIC)
        )
        made.append(Claim("bytes with 16 times the entries", "<= 1.1", f"{grows:.2f}", grows <= 1.1))
    for row in by["size"]:
        about = f"{row['entries']:,} entries"
        made.append(Claim(f"{about}: certified", "converged", row["status"], row["status"] == "converged"))
        made.append(
            Claim(f"{about}: MB", f"<= {MAX_MEMORY:g}", f"{row['megabytes']:.0f}", row["megabytes"] <= MAX_MEMORY)
        )
        made.append(
            Claim(
                "a gradient over one process",
                f"<= {MAX_OVERHEAD}",
                f"{row['overhead']:.2f}",
                row["overhead"] <= MAX_OVERHEAD,
            )
        )
    return made


def main() -> None:
    args = arguments(
        __doc__, lambda parser: parser.add_argument("--parts", nargs="+", choices=PARTS, default=list(PARTS))
    )
    sizes = (3_000, 600_000, 300_000, 1e-2) if args.quick else (100_000, 100_000_000, 10_000_000, 1e-3)
    jobs = {
        "bits": Job(3, bits),
        "kills": Job(5, partial(kills, 4 if args.quick else 30)),
        "traffic": Job(1, traffic),
        "size": Job(20, partial(many, *sizes)),
    }
    rows = work_off("scale-out", [jobs[part] for part in args.parts])
    for part in args.parts:
        own = [row for row in rows if row["part"] == part]
        columns = [name for name in own[0] if name != "part"]
        cells = [[str(row[c]) if isinstance(row[c], bool) else row[c] for c in columns] for row in own]
        table(part, columns, cells)
    finish("scale_out", args, rows, claims(rows))


if __name__ == "__main__":
    main()
