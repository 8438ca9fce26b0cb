"""CPU time of NCGS with corrective beside the Frank-Wolfe methods and projected gradient, on sets with sparse atoms.

F = sum_i h_i (x_i - c_i)^2 / 2 with h_i from 1 to 2: a gradient is one pass over the variables, so that the rest of a step shows.
The solution has about 100 active atoms on the simplex and the hypersimplex. All methods start at the same vertex, a structured
atom, so that points with few entries stay sparse (projected gradient: an array), and stop at the same Frank-Wolfe gap, relative
to the first one. The run's own clock is read, which stands still while the driver measures.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Iterator
from time import process_time
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off

TARGETS = (1e-3, 1e-8)
WITHIN = 1.5
"""Claimed: corrective takes at most this many times the CPU time of the best other method."""
GRADIENTS, VECTORS = 3.0, 6.0
"""Claimed for the largest sizes: CPU time of a step in gradients, and peak memory in vectors, of corrective."""
ACTIVE = 100
SECONDS, QUICK_SECONDS = 60.0, 1.0
"""Most of a run."""
METHODS: dict[str, dict[str, Any]] = {
    "corrective": {"method": "ncgs", "inner": "corrective"},
    "frank-wolfe": {"method": "frank-wolfe", "rule": "short"},
    "away-step": {"method": "away-step"},
    "pairwise": {"method": "pairwise"},
    "blended-pairwise": {"method": "blended-pairwise"},
    "projection": {"method": "projected-gradient"},
}


def problem(name: str, n: int) -> tuple[Any, Any, Any]:
    """Objective, set and start."""
    rng = np.random.default_rng(0)
    domain = {
        "simplex": lambda: cg.Simplex(n),
        "hypersimplex": lambda: cg.Hypersimplex(n, ACTIVE // 2),
        "birkhoff": lambda: cg.Birkhoff(n),
    }[name]()
    h = 1 + rng.random(domain.shape)
    if name == "birkhoff":
        c = rng.random(domain.shape) / n
    else:
        c = -(1e-2 if name == "simplex" else 0.1) * (1 + rng.random(n))
        chosen = rng.choice(n, min(ACTIVE, n // 2), replace=False)
        c[chosen] = (1 if name == "simplex" else ACTIVE / 2) * rng.uniform(0.5, 1.5, len(chosen)) / len(chosen)

    def value_and_grad(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = x - c
        g = h * d
        return float(np.vdot(g, d)) / 2, g

    start = domain.atom(rng.standard_normal(domain.shape))
    return cg.Function(value_and_grad=value_and_grad, shape=domain.shape, smoothness=2.0), domain, start


def seconds_of_gradient(objective: Any, x: np.ndarray) -> float:
    objective.grad(x)
    begun = process_time()
    for _ in range(5):
        objective.grad(x)
    return (process_time() - begun) / 5


def compare(name: str, n: int, seconds: float) -> Iterator[Row]:
    objective, domain, atom = problem(name, n)
    dense = np.asarray(atom)
    g = objective.grad(dense)
    first = float(np.vdot(g, dense - domain.lmo(g)))
    price = seconds_of_gradient(objective, dense)
    for eps in TARGETS:
        for method, asked in METHODS.items():
            if method == "projection" and not hasattr(domain, "project"):
                continue
            x0 = dense if method == "projection" else atom
            stop = cg.Gap(eps * first) | cg.CpuSeconds(seconds)
            r = cg.minimize(objective, domain, x0, stop=stop, every=10**9, progress=False, **asked)
            tracemalloc.start()  # in a run of its own: it takes time
            stop = cg.CpuSeconds(seconds) | cg.Steps(min(r.steps, 20))
            cg.minimize(objective, domain, r.x, stop=stop, every=10**9, progress=False, **asked)
            peak = tracemalloc.get_traced_memory()[1] / (8 * dense.size)
            tracemalloc.stop()
            cpu = r.trace[-1].cpu
            yield {
                "set": name, "n": n, "eps": eps, "method": method, "reached": r.success, "cpu": cpu, "steps": r.steps,
                "lo": r.counts["lo"], "gradients": cpu / max(r.steps, 1) / price, "vectors": peak, "fun": r.fun,
            }  # fmt: skip


def main() -> None:
    args = arguments(__doc__)
    sizes = {"birkhoff": (6,), "hypersimplex": (1000,), "simplex": (1000,)}
    if not args.quick:
        sizes = {"birkhoff": (30, 100), "hypersimplex": (10**4, 10**6, 10**7), "simplex": (10**4, 10**6, 10**7)}
    jobs = [
        Job(float(n), lambda a=(name, n, QUICK_SECONDS if args.quick else SECONDS): compare(*a))
        for name, all_n in sizes.items()
        for n in all_n
    ]
    rows = work_off("corrective_time", jobs)

    claims = []
    for name, n, eps in dict.fromkeys((r["set"], r["n"], r["eps"]) for r in rows):
        here = {r["method"]: r for r in rows if (r["set"], r["n"], r["eps"]) == (name, n, eps)}
        own = here["corrective"]
        others = {method: r["cpu"] for method, r in here.items() if r["reached"] and method != "corrective"}
        best = min(others, key=lambda method: others[method], default="none")
        ratio = own["cpu"] / others[best] if others else 0.0
        measured = f"{ratio:.2f} times {best}" if own["reached"] else "not reached"
        claim = f"{name}, n = {n:,}, gap {eps:.0e} of the first: CPU time of corrective over the best other"
        claims.append(Claim(claim, f"<= {WITHIN}", measured, bool(own["reached"] and ratio <= WITHIN)))
        if n >= 10**6:
            claim = f"{name}, n = {n:,}, gap {eps:.0e}: a step of corrective in gradients, its memory in vectors"
            measured = f"{own['gradients']:.1f} gradients, {own['vectors']:.1f} vectors"
            fits = own["gradients"] <= GRADIENTS and own["vectors"] <= VECTORS
            claims.append(Claim(claim, f"<= {GRADIENTS:.0f}, <= {VECTORS:.0f}", measured, fits))

    columns = ("set", "n", "gap", "method", "reached", "CPU s", "steps", "LO", "gradients a step", "vectors")
    lines = [
        (
            r["set"], r["n"], f"{r['eps']:.0e}", r["method"], "yes" if r["reached"] else "no", r["cpu"], r["steps"],
            r["lo"], r["gradients"], r["vectors"],
        )
        for r in rows
    ]  # fmt: skip
    table(
        "CPU time to a Frank-Wolfe gap relative to the first",
        columns,
        lines,
        "gradients a step: CPU time of a step over that of a gradient; "
        "vectors: peak memory of 20 steps near the solution over that of one point.",
    )
    finish("corrective_time", args, rows, claims)


if __name__ == "__main__":
    main()
