"""Graph matching: GraphMatcher from one start against scipy's FAQ from one start and from random starts for the same CPU time.

python -m benchmarks.graph_matching [--quick] [--check] [--out DIR]

A pair is a graph A and a graph B, which is A with 2 % of its edges removed, as many edges added where A has none, and its nodes
permuted. A is a stochastic block model (4 blocks of equal size, edges with probability 0.3 inside and 0.05 between blocks) or
grows by preferential attachment (each new node is joined to 5 others, drawn in proportion to their degrees), which gives a power
law of degrees.
A pair counts as found if every node has its true partner.
"""

from __future__ import annotations

from time import process_time

import numpy as np
from scipy.optimize import quadratic_assignment

from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.learn import GraphMatcher

KINDS = {"block": range(15), "power-law": range(15, 30)}
"""Seeds of each kind of graph."""
SIZES = (100, 175, 250, 325, 400)
"""Each with three seeds of each kind."""
FLIPPED = 0.02
METHODS = ("GraphMatcher", "FAQ", "FAQ, random starts")


def block_graph(n: int, rng: np.random.Generator) -> np.ndarray:
    """Adjacency matrix of a stochastic block model."""
    block = np.arange(n) * 4 // n
    upper = np.triu(rng.random((n, n)) < np.where(block[:, None] == block, 0.3, 0.05), 1)
    return (upper + upper.T).astype(float)


def power_law_graph(n: int, rng: np.random.Generator, joined: int = 5) -> np.ndarray:
    """Adjacency matrix of a graph that grows by preferential attachment."""
    A = np.zeros((n, n))
    ends: list[int] = []  # each node as often as it has edges
    targets = list(range(joined))
    for new in range(joined, n):
        A[new, targets] = A[targets, new] = 1.0
        ends += targets + [new] * joined
        drawn: set[int] = set()
        while len(drawn) < joined:
            drawn.add(ends[rng.integers(len(ends))])
        targets = sorted(drawn)
    return A


def flipped(A: np.ndarray, share: float, rng: np.random.Generator) -> np.ndarray:
    """The graph with this share of its edges removed, and as many added where it has none."""
    i, j = np.triu_indices(len(A), 1)
    present, absent = np.flatnonzero(A[i, j] > 0), np.flatnonzero(A[i, j] == 0)
    number = round(share * len(present))
    changed = A.copy()
    for pairs, weight in ((present, 0.0), (absent, 1.0)):
        k = rng.choice(pairs, number, replace=False)
        changed[i[k], j[k]] = changed[j[k], i[k]] = weight
    return changed


def noisy_pair(kind: str, n: int, seed: int, share: float = FLIPPED) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """(A, B, truth) with A near B[truth][:, truth]."""
    rng = np.random.default_rng(seed)
    A = {"block": block_graph, "power-law": power_law_graph}[kind](n, rng)
    noisy = flipped(A, share, rng)
    truth = rng.permutation(n)
    B = np.empty_like(A)
    B[np.ix_(truth, truth)] = noisy
    return A, B, truth


def random_starts(A: np.ndarray, B: np.ndarray, seconds: float, seed: int) -> tuple[np.ndarray, int]:
    """The best permutation of FAQ from random starts, begun as long as the CPU time is not used up; and their number."""
    rng, best, begun, number = np.random.default_rng(seed), None, process_time(), 0
    while number == 0 or process_time() - begun < seconds:
        found = quadratic_assignment(A, B, method="faq", options={"maximize": True, "P0": "randomized", "rng": rng})
        number += 1
        if best is None or found.fun > best.fun:
            best = found
    return best.col_ind, number


def compared(kind: str, n: int, seed: int) -> Row:
    """One pair, by all methods."""
    A, B, truth = noisy_pair(kind, n, seed)
    begun = process_time()
    matcher = GraphMatcher().fit(A, B)
    ours = process_time() - begun
    begun = process_time()
    faq = quadratic_assignment(A, B, method="faq", options={"maximize": True}).col_ind
    one = process_time() - begun
    begun = process_time()
    best, number = random_starts(A, B, ours, seed)
    several = process_time() - begun
    found = dict(zip(METHODS, (matcher.permutation_, faq, best), strict=True))
    return {
        "kind": kind,
        "n": n,
        "seed": seed,
        "accuracy": {name: float(np.mean(p == truth)) for name, p in found.items()},
        "as good as the truth": {name: bool(_matched(A, B, p) >= _matched(A, B, truth)) for name, p in found.items()},
        "cpu": dict(zip(METHODS, (ours, one, several), strict=True)),
        "starts": number,
        "steps": matcher.n_steps_,
        "status": matcher.result_.status,
    }


def _matched(A: np.ndarray, B: np.ndarray, permutation: np.ndarray) -> float:
    return float(np.sum(A * B[np.ix_(permutation, permutation)]))


def pairs(quick: bool) -> list[tuple[str, int, int]]:
    """(kind, n, seed) of each pair. The quick ones have seeds of their own, so that the others are seen in a full run only."""
    if quick:
        return [(kind, 40, 100 + k) for kind in KINDS for k in range(2)]
    return [(kind, SIZES[k % len(SIZES)], seed) for kind, seeds in KINDS.items() for k, seed in enumerate(seeds)]


def main() -> None:
    args = arguments(__doc__)
    for kind in KINDS:  # imports, before the clock runs
        compared(kind, 20, 1000)
    jobs = [Job(n**3, lambda pair=pair: [compared(*pair)]) for pair in pairs(args.quick) for n in pair[1:2]]  # type: ignore[misc]
    rows = work_off("Graph matching", jobs)
    table(
        "Graph matching: share of nodes with their true partner, and CPU seconds",
        ("kind", "n", "seed", *METHODS, "starts", *(f"s {name}" for name in METHODS)),
        [
            (row["kind"], row["n"], row["seed"], *row["accuracy"].values(), row["starts"], *row["cpu"].values())
            for row in rows
        ],
    )
    found = {name: sum(row["accuracy"][name] == 1.0 for row in rows) for name in METHODS}
    seconds = {name: sum(row["cpu"][name] for row in rows) for name in METHODS}
    table(
        "Pairs found",
        ("kind", *METHODS),
        [
            (kind, *(sum(row["accuracy"][name] == 1.0 for row in rows if row["kind"] == kind) for name in METHODS))
            for kind in KINDS
        ],
    )
    claims = [
        Claim(
            f"GraphMatcher finds the true matching at least as often as {name} ({about})",
            f">= {found[name]} of {len(rows)}",
            f"{found['GraphMatcher']} of {len(rows)}; {seconds['GraphMatcher']:.1f} s and {seconds[name]:.1f} s of CPU time",
            found["GraphMatcher"] >= found[name],
        )
        for name, about in (("FAQ", "one start"), ("FAQ, random starts", "the same CPU time"))
    ]
    finish("graph_matching", args, rows, claims, found=found, seconds=seconds, flipped=FLIPPED)


if __name__ == "__main__":
    main()
