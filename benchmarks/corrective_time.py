"""CPU time of NCGS with corrective beside the Frank-Wolfe methods and projected gradient, on sets with sparse atoms.

F = sum_i h_i (x_i - c_i)^2 / 2 with h_i from 1 to 2: a gradient is a few passes over the variables, so that the rest of a step
shows. The entries of c that are not in the support of the solution are negative, so that the solution is strict. All methods
start at the same vertex, a structured atom, so that points with few entries stay sparse (projected gradient: an array), and
stop at the same Frank-Wolfe gap, relative to the first one. The run's own clock is read, which stands still while the driver
measures. Another method is ended after PATIENCE times corrective's CPU time.
"""

from __future__ import annotations

import tracemalloc
from collections.abc import Callable, Iterator
from itertools import pairwise
from time import process_time
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Row, table

TARGETS = (1e-3, 1e-8)
WITHIN = 1.5
"""Claimed: corrective takes at most this many times the CPU time of the best other method."""
GRADIENTS, VECTORS, LARGE = 3.0, 6.0, 10**7
"""Claimed on the simplex with LARGE variables: CPU time of a step in gradients, and peak memory in vectors."""
ACCURATE = 2.0
"""Claimed: CPU time of corrective to the second target over that to the first one."""
BIRKHOFF_STEPS, BIRKHOFF_SECONDS = 500, 5.0
"""Claimed: CPU time of this many steps of ncgs-ii on the Birkhoff polytope with n = 30."""
ACTIVE = 100
SECONDS, PATIENCE, SHORTEST = 60.0, 2.0, 0.5
"""Maximum CPU time of a run of corrective; another method gets PATIENCE times what corrective took, and at least SHORTEST."""
ROUNDS, REPEATED = 4, 0.3
"""Runs of less than REPEATED seconds are made ROUNDS more times, and the least time counts."""
METHODS: dict[str, dict[str, Any]] = {
    "corrective": {"method": "ncgs", "inner": "corrective"},
    "frank-wolfe": {"method": "frank-wolfe", "rule": "short"},
    "away-step": {"method": "away-step"},
    "pairwise": {"method": "pairwise"},
    "blended-pairwise": {"method": "blended-pairwise"},
    "projection": {"method": "projected-gradient"},
    "default": {},
    "without phases": {"method": "ncgs", "inner": "corrective", "polish": False},
}
PROJECTS = ("projection", "default")
"""The methods that are run only where the set projects. There the default solves prox subproblems by projection."""
OF_NCGS = ("default", "without phases")
"""Variants of ncgs that are not among the other methods. A step without a phase has as many gradients as its step size needs."""
SIZES = {
    "birkhoff": (30, 100),
    "birkhoff interior": (30,),
    "paths": (20,),
    "hypersimplex": (10**4, 10**6, 10**7),
    "simplex": (10**4, 10**6, 10**7),
}
QUICK_SIZES = {"birkhoff": (6,), "paths": (5,), "hypersimplex": (1000,), "simplex": (1000,)}


def problem(name: str, n: int) -> tuple[Any, Any, Any]:
    """Objective, set and start."""
    rng = np.random.default_rng(0)
    domain, c = {
        "simplex": lambda: (cg.Simplex(n), target(n, 1.0, rng)),
        "hypersimplex": lambda: (cg.Hypersimplex(n, ACTIVE // 2), target(n, ACTIVE / 2, rng)),
        "birkhoff": lambda: mixture(cg.Birkhoff(n), 10, 0.1, rng),
        "birkhoff interior": lambda: (cg.Birkhoff(n), rng.random((n, n)) / n),
        "paths": lambda: mixture(cg.PathPolytope(layers(n), 0, n * n + 1), 2 * n, 0.1, rng),
    }[name]()
    h = 1 + rng.random(domain.shape)

    def value_and_grad(x: np.ndarray) -> tuple[float, np.ndarray]:
        d = x - c
        g = h * d
        return float(np.vdot(g, d)) / 2, g

    start = domain.atom(rng.standard_normal(domain.shape))
    return cg.Function(value_and_grad=value_and_grad, shape=domain.shape, smoothness=2.0), domain, start


def target(n: int, total: float, rng: np.random.Generator) -> np.ndarray:
    """Negative entries, but for ACTIVE entries with about the given sum."""
    size = total / min(ACTIVE, n // 2)
    c = -size * rng.uniform(0.2, 0.4, n)
    chosen = rng.choice(n, min(ACTIVE, n // 2), replace=False)
    c[chosen] = size * rng.uniform(0.5, 1.5, len(chosen))
    return c


def mixture(domain: Any, atoms: int, margin: float, rng: np.random.Generator) -> tuple[Any, np.ndarray]:
    """The set, and a random mean of vertices, which is negative where all of them are 0."""
    weights = rng.dirichlet(np.full(atoms, 5.0))
    c = sum(w * domain.lmo(rng.standard_normal(domain.shape)) for w in weights)
    return domain, np.where(c > 0, c, -margin / atoms)


def layers(n: int) -> np.ndarray:
    """The edges of a graph of n layers of n nodes, each of which leads to all nodes of the next layer."""
    nodes = 1 + np.arange(n * n).reshape(n, n)
    edges = [(0, head) for head in nodes[0]]
    edges += [(tail, head) for one, other in pairwise(nodes) for tail in one for head in other]
    return np.array(edges + [(tail, n * n + 1) for tail in nodes[-1]])


def seconds_of_gradient(objective: Any, x: np.ndarray) -> float:
    objective.value_and_grad(x)
    begun = process_time()
    for _ in range(5):
        objective.value_and_grad(x)
    return (process_time() - begun) / 5


def least_cpu(run: Callable[[], Any]) -> tuple[Any, float]:
    """The result of a run, and its least CPU time; runs shorter than REPEATED are made several times."""
    r = run()
    cpu = r.trace[-1].cpu
    for _ in range(ROUNDS if cpu < REPEATED else 0):
        cpu = min(cpu, run().trace[-1].cpu)
    return r, cpu


def compare(name: str, n: int, seconds: float = SECONDS) -> Iterator[Row]:
    objective, domain, atom = problem(name, n)
    dense = np.asarray(atom)
    _, g = objective.value_and_grad(dense)
    first = float(np.vdot(g, dense - domain.lmo(g)))
    price = seconds_of_gradient(objective, dense)
    for eps in TARGETS:
        limit = seconds
        for method, asked in METHODS.items():
            if method in PROJECTS and not hasattr(domain, "project"):
                continue
            if method == "without phases" and n < LARGE:  # the price of a step alone, where it is claimed
                continue
            x0 = dense if method in PROJECTS else atom
            stop = cg.Gap(eps * first) | cg.CpuSeconds(limit)
            asked = {**asked, "stop": stop, "max_steps": 10**6, "every": 10**9, "progress": False}
            r, cpu = least_cpu(lambda x0=x0, asked=asked: cg.minimize(objective, domain, x0, **asked))
            if method == "corrective":
                limit = max(PATIENCE * cpu, SHORTEST)
            yield {
                "set": name, "n": n, "eps": eps, "method": method, "reached": r.success, "cpu": cpu, "steps": r.steps,
                "lo": r.counts["lo"], "gradients": cpu / max(r.steps, 1) / price,
                "per_gradient": cpu / max(r.counts["fo"], 1) / price, "fun": r.fun,
                "vectors": memory(objective, domain, r.x, METHODS[method]),
            }  # fmt: skip


def memory(objective: Any, domain: Any, x: Any, asked: dict[str, Any]) -> float:
    """Peak memory of three steps near the solution, in dense vectors; in a run of its own, since tracing takes time."""
    tracemalloc.start()
    cg.minimize(objective, domain, x, stop=cg.Steps(3), every=10**9, progress=False, **asked)
    peak = tracemalloc.get_traced_memory()[1] / (8 * np.prod(domain.shape))
    tracemalloc.stop()
    return float(peak)


def birkhoff_steps(steps: int = BIRKHOFF_STEPS) -> Row:
    """CPU time of many steps of ncgs-ii with corrective."""
    objective, domain, _ = problem("birkhoff interior", 30)
    r = cg.minimize(
        objective, domain, method="ncgs-ii", inner="corrective", stop=cg.Steps(steps), every=10**9, progress=False
    )
    cost = {"steps": r.steps, "cpu": r.trace[-1].cpu, "lo": r.counts["lo"]}
    return {"set": "birkhoff interior", "n": 30, "method": "ncgs-ii", **cost}


def birkhoff_claim(row: Row) -> Claim:
    """The claim about the row of :func:`birkhoff_steps`."""
    claim = f"birkhoff interior, n = 30: CPU seconds of {row['steps']} steps of ncgs-ii with corrective"
    return Claim(claim, f"<= {BIRKHOFF_SECONDS:.0f}", f"{row['cpu']:.2f}", row["cpu"] <= BIRKHOFF_SECONDS)


def print_times(rows: list[Row]) -> None:
    """The table of the rows of :func:`compare`."""
    columns = ("set", "n", "gap", "method", "reached", "CPU s", "steps", "LO", "gradients a step", "per FO", "vectors")
    lines = [
        (
            r["set"], r["n"], f"{r['eps']:.0e}", r["method"], "yes" if r["reached"] else "no", r["cpu"], r["steps"],
            r["lo"], r["gradients"], r["per_gradient"], r["vectors"],
        )
        for r in rows
    ]  # fmt: skip
    table(
        "CPU time to a Frank-Wolfe gap relative to the first",
        columns,
        lines,
        "gradients a step: CPU time of a step over that of a value and a gradient; per FO: the same, of a run for each gradient "
        "that it has evaluated; "
        "vectors: peak memory of 3 steps near the solution over that of one dense point.",
    )


def best_claim(claim: str, method: str, here: dict[str, Row]) -> Claim:
    """The claim that a method takes at most WITHIN times the CPU time of the best other one; ``here`` has the rows by method."""
    own = here[method]
    others = {other: r["cpu"] for other, r in here.items() if r["reached"] and other not in (*OF_NCGS, method)}
    best = min(others, key=lambda other: others[other], default="")
    measured = "not reached"
    if own["reached"]:
        measured = f"{own['cpu'] / others[best]:.2f} times {best}" if best else f"no other in {PATIENCE:.0f} times"
    holds = own["reached"] and (not best or own["cpu"] <= WITHIN * others[best])
    return Claim(claim, f"<= {WITHIN}", measured, bool(holds))


def time_claims(rows: list[Row]) -> Iterator[Claim]:
    """The claims about CPU time and memory; ``rows`` are those of :func:`compare`."""
    keys = dict.fromkeys((r["set"], r["n"], r["eps"]) for r in rows)
    of = {key: {r["method"]: r for r in rows if (r["set"], r["n"], r["eps"]) == key} for key in keys}
    for (name, n, eps), here in of.items():
        for method in ("corrective", "default"):
            if method in here:
                claim = f"{name}, n = {n:,}, gap {eps:.0e} of the first: CPU time of {method} over the best other"
                yield best_claim(claim, method, here)
        if (name, n) == ("simplex", LARGE):
            for method in ("corrective", "without phases", "away-step", "pairwise"):
                r = here[method]
                fits = r["gradients"] <= GRADIENTS and r["vectors"] <= VECTORS
                claim = f"{name}, n = {n:,}, gap {eps:.0e}: a step of {method} in gradients, its memory in vectors"
                measured = (
                    f"{r['gradients']:.1f} gradients ({r['per_gradient']:.1f} per FO), {r['vectors']:.1f} vectors"
                )
                yield Claim(claim, f"<= {GRADIENTS:.0f}, <= {VECTORS:.0f}", measured, bool(fits))
    for name, n in dict.fromkeys((r["set"], r["n"]) for r in rows):
        rough, fine = (of[name, n, eps]["corrective"] for eps in TARGETS)
        ratio = fine["cpu"] / rough["cpu"]
        claim = f"{name}, n = {n:,}: CPU time of corrective to {TARGETS[1]:.0e} over that to {TARGETS[0]:.0e}"
        yield Claim(claim, f"<= {ACCURATE:.0f}", f"{ratio:.2f}", bool(fine["reached"] and ratio <= ACCURATE))
