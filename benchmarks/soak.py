"""One process, a thousand small solves over all methods and sets: memory stays flat, and nothing is left behind.

Each solve builds a new problem. After a warm-up in which everything is imported, compiled and seen once, the resident
memory is read after each round; its slope is fitted from there on. Files, threads and child processes are counted too.
"""

from __future__ import annotations

import gc
import os
import threading
import warnings
from collections import Counter
from collections.abc import Iterator
from itertools import count, islice
from pathlib import Path
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.runtime import process_memory

SOLVES, QUICK = 1000, 400
PER_SOLVE = 2.0
"""Kilobytes that the memory may grow by in a solve: less than what a result holds, so that one that stays is seen."""
ROUND = 20
"""Solves between two readings."""


def problems() -> Iterator[tuple[str, str, Any, Any, dict[str, Any]]]:
    """(method, set, objective, domain, options), round and round: each method on each set that it can work on, then others'
    objectives, a checked gradient, a set of the user's own, and runs that fail or run out of a budget."""
    for seed in count():
        for entry in cg.DOMAINS.values():
            domain = entry.example()
            for method in cg.METHODS.values():
                if method.projects and not hasattr(domain, "project"):
                    continue
                rng = np.random.default_rng(seed)
                size = int(np.prod(domain.shape))
                A, y = rng.standard_normal((30, size)), rng.standard_normal(30)
                flat = cg.LinearModel(A, y, cg.Welsch(2.0))
                yield (
                    method.name,
                    entry.name,
                    flat if domain.shape == flat.shape else shaped(A, y, domain.shape),
                    domain,
                    {},
                )
        yield "ncgs", "nuclear-ball", completion(seed), cg.NuclearBall((70, 66), 5.0), {"check_gradient": True}
        yield "frank-wolfe", "simplex", failing(), cg.Simplex(5), {"stop": cg.Steps(20)}
        yield (
            "ncgs",
            "l1-ball",
            unknown(seed),
            cg.L1Ball(6, 2.0),
            {"stop": cg.Mapping(1e-12) | cg.Memory(1e6) | cg.Calls(9)},
        )


def shaped(A: np.ndarray, y: np.ndarray, shape: tuple[int, ...]) -> cg.FunctionSum:
    """The same model for points of any shape."""

    def value(x: np.ndarray) -> float:
        return float(np.mean((A @ x.ravel() - y) ** 2)) / 2

    def terms(x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        return ((A[batch] @ x.ravel() - y[batch])[:, None] * A[batch]).reshape(len(batch), *shape)

    return cg.FunctionSum(
        value, terms, len(y), shape, term_smoothness=float((A**2).sum(axis=1).max()), lower_smoothness=0.0
    )


def completion(seed: int) -> cg.Completion:
    data = cg.paper_data(70, 66, 2, seed=seed, generator="gaussian", observe=0.2)
    return cg.Completion(data.rows, data.cols, data.values, data.truth.shape)


def failing() -> cg.Function:
    """NaN from the fourth gradient on."""
    asked = count(1)
    return cg.Function(lambda x: float(x @ x), lambda x: 2 * x if next(asked) < 4 else x * np.nan, (5,), smoothness=2.0)


def unknown(seed: int) -> cg.Function:
    Q = np.random.default_rng(seed).standard_normal((6, 6))
    return cg.Function(lambda x: float(np.sum(np.cos(Q @ x))), lambda x: -Q.T @ np.sin(Q @ x), (6,))


def solve(method: str, objective: Any, domain: Any, options: dict[str, Any], seed: int) -> str:
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", cg.SmoothnessWarning)
        given = {"stop": cg.Mapping(1e-6) | cg.Steps(10)} | options
        return cg.minimize(objective, domain, method=method, seed=seed, validate=20, progress=False, **given).status


def left_over() -> dict[str, int]:
    """What a process can leave behind; where the system does not tell, what Python knows."""
    folders = {"files": Path("/proc/self/fd"), "threads of the process": Path("/proc/self/task")}
    seen = {name: len(os.listdir(folder)) for name, folder in folders.items() if folder.exists()}
    children = Path(f"/proc/self/task/{os.getpid()}/children")
    if children.exists():
        seen["child processes"] = len(children.read_text(encoding="ascii").split())
    return {**seen, "threads of Python": threading.active_count()}


def soak(solves: int, warm_up: int) -> Iterator[Row]:
    """One row a reading: how many solves are done, what the process holds, and how they ended."""
    process_memory.CACHE_SECONDS = 0.0
    endings: Counter[str] = Counter()
    for number, (method, _, objective, domain, options) in enumerate(islice(problems(), warm_up + solves)):
        endings[solve(method, objective, domain, options, number)] += 1
        done = number + 1 - warm_up
        if done >= 0 and done % ROUND == 0:
            gc.collect()
            yield {"solves": done, "megabytes": process_memory.resident(), **left_over(), "endings": dict(endings)}


def slope(rows: list[Row]) -> float:
    """Kilobytes a solve, by least squares over the second half: an allocator settles for a while."""
    late = rows[len(rows) // 2 :]
    return 1e3 * float(np.polyfit([row["solves"] for row in late], [row["megabytes"] for row in late], 1)[0])


def main() -> None:
    args = arguments(__doc__)
    solves, kinds = QUICK if args.quick else SOLVES, sum(1 for _ in one_round())
    rows = work_off("soak", [Job(1, lambda: soak(solves, kinds))])
    first, last = rows[0], rows[-1]
    names = [name for name in first if name not in ("solves", "megabytes", "endings")]
    shown = [rows[i] for i in sorted({0, len(rows) // 4, len(rows) // 2, 3 * len(rows) // 4, len(rows) - 1})]
    table(
        f"One process, {solves:,} small solves after {kinds} to warm up",
        ("solves", "MB", *names),
        [(row["solves"], row["megabytes"], *(row[name] for name in names)) for row in shown],
        f"All {len(cg.METHODS)} methods, {len(cg.DOMAINS)} sets. Endings: "
        + ", ".join(f"{status} {n}" for status, n in sorted(last["endings"].items())),
    )
    growth = slope(rows)
    claims = [
        Claim(
            "memory: growth a solve, over the second half",
            f"<= {PER_SOLVE:g} kB",
            f"{growth:.2f} kB",
            growth <= PER_SOLVE,
        )
    ]
    for name in names:
        more = last[name] - first[name]
        claims.append(Claim(f"{name} left after {solves:,} solves", "none", f"{max(more, 0)}", more <= 0))
    finish("soak", args, rows, claims, solves=solves, warm_up=kinds)


def one_round() -> Iterator[str]:
    """The names of the problems of one round."""
    seen = set()
    for method, name, objective, _, _ in problems():
        kind = f"{method} {name} {type(objective).__name__}"
        if kind in seen:
            return
        seen.add(kind)
        yield kind


if __name__ == "__main__":
    main()
