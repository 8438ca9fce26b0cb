"""CPU time and endings of NCGS with corrective on many families, to compare two versions of it.

A family is a set, an objective and a seed. Half of the families (those that --aside runs) are not looked at while a rule is
chosen. Run the command once with each version, the second time with --against FILE, the JSON file of the first. The first
squared mapping is the one at the start; the tolerances are shares of it. With the share 1e-15 float64 may be too coarse: a run
must then end as `unverified`, and not when its budget is used up.
"""

from __future__ import annotations

import json
from argparse import ArgumentParser
from collections.abc import Iterator
from math import exp, log
from pathlib import Path
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.corrective_time import layers, least_cpu
from benchmarks.harness import Job, Row, arguments, finish, table, work_off
from condgrad.driver.metrics import mapping

SHARES = (1e-3, 1e-8)
TINY_SHARES = (1e-12, 1e-15)
SECONDS = 20.0
SETS = ("simplex", "l1 ball", "k-sparse", "hypersimplex", "transport", "paths", "birkhoff")
OBJECTIVES = ("quadratic 10", "quadratic 1000", "interior", "robust", "logistic")
SEEDS = (0, 1)


def chosen(aside: bool) -> Iterator[tuple[str, str, int]]:
    """The families; sets and objectives are on both sides, but no pair of them is."""
    for i, name in enumerate(SETS):
        for j, kind in enumerate(OBJECTIVES):
            if (i + j) % 2 == aside:
                yield from ((name, kind, seed) for seed in SEEDS)


def problem(name: str, kind: str, seed: int) -> tuple[Any, Any, Any]:
    """Objective, set and start, a vertex."""
    rng = np.random.default_rng((seed, SETS.index(name), OBJECTIVES.index(kind)))
    domain: Any = {
        "simplex": lambda: cg.Simplex(1000),
        "l1 ball": lambda: cg.L1Ball(1000, 3.0),
        "k-sparse": lambda: cg.KSparsePolytope(1000, 10, 1.0),
        "hypersimplex": lambda: cg.Hypersimplex(1000, 20),
        "transport": lambda: cg.TransportPolytope(rng.dirichlet(np.full(12, 3.0)), rng.dirichlet(np.full(15, 3.0))),
        "paths": lambda: cg.PathPolytope(layers(12), 0, 145),
        "birkhoff": lambda: cg.Birkhoff(20),
    }[name]()
    shape, size = domain.shape, int(np.prod(domain.shape))
    c = sum(w * domain.lmo(rng.standard_normal(shape)) for w in rng.dirichlet(np.full(12, 5.0)))
    start = getattr(domain, "atom", domain.lmo)(rng.standard_normal(shape))
    if kind in ("robust", "logistic"):
        A = rng.standard_normal((200, size))
        y = A @ c.reshape(-1)
        if kind == "robust":
            y[:20] += 10 * np.abs(y).max()
            model = cg.LinearModel(A, y, cg.Welsch(float(np.abs(y[20:]).max())))
        else:
            model = cg.LinearModel(A, np.sign(y - np.median(y) + 1e-9), cg.Logistic())
        if len(shape) == 1:
            return model, domain, start
        F = cg.Function(
            lambda x: model.value(x.reshape(-1)),
            lambda x: model.grad(x.reshape(-1)).reshape(shape),
            shape,
            smoothness=model.smoothness,
        )
        return F, domain, start
    condition = 10.0 if kind == "interior" else float(kind.split()[1])
    h = condition ** rng.random(shape)
    if kind != "interior":
        c = np.where(c > 0, c, -0.2 * np.abs(c).max() * rng.random(shape))
    both = lambda x: (float(np.vdot(h * (x - c), x - c)) / 2, h * (x - c))  # noqa: E731
    return cg.Function(value_and_grad=both, shape=shape, smoothness=condition), domain, start


def measure(name: str, kind: str, seed: int, shares: tuple[float, ...]) -> Iterator[Row]:
    F, domain, start = problem(name, kind, seed)
    first = mapping(cg.Problem(F, domain), start, 1 / (2 * F.smoothness)).upper
    for share in shares:
        stop = cg.Mapping(share * first) | cg.CpuSeconds(SECONDS)
        asked = {"method": "ncgs", "inner": "corrective", "stop": stop, "max_steps": 10**6, "every": 10**9}
        r, cpu = least_cpu(lambda asked=asked: cg.minimize(F, domain, start, progress=False, **asked))
        yield {
            "family": f"{name}, {kind}, {seed}", "share": share, "status": r.status, "cpu": cpu, "steps": r.steps,
            "lo": r.counts["lo"], "fo": r.counts["fo"], "exhausted": "Precision is exhausted" in r.message,
        }  # fmt: skip


def main() -> None:
    def more(parser: ArgumentParser) -> None:
        parser.add_argument("--aside", action="store_true", help="the families that no rule was chosen on")
        parser.add_argument("--tiny", action="store_true", help="the shares 1e-12 and 1e-15")
        parser.add_argument("--sets", nargs="*", default=list(SETS))
        parser.add_argument("--against", type=Path, help="the JSON file of another version")

    args = arguments(__doc__, more)
    shares = TINY_SHARES if args.tiny else SHARES
    families = [family for family in chosen(args.aside) if family[0] in args.sets]
    rows = work_off("families", [Job(1.0, lambda a=family: measure(*a, shares)) for family in families])
    before: dict[tuple[str, float], Row] = {}
    if args.against:
        before = {(r["family"], r["share"]): r for r in json.loads(args.against.read_text(encoding="utf-8"))["rows"]}
    lines, ratios = [], []
    for r in rows:
        other = before.get((r["family"], r["share"]), {"cpu": float("nan"), "lo": 0, "status": "-"})
        if r["status"] == other["status"] == "converged":
            ratios.append(r["cpu"] / other["cpu"])
        ratio = r["cpu"] / other["cpu"]
        ending = "precision exhausted" if r["exhausted"] else r["status"]
        lines.append(
            (r["family"], f"{r['share']:.0e}", ending, r["cpu"], r["steps"], r["fo"], r["lo"], ratio, other["lo"])
        )
    columns = ("family", "share", "ending", "CPU s", "steps", "FO", "LO", "over the other version", "its LO")
    table("NCGS with corrective", columns, lines)
    if ratios:
        mean = exp(sum(map(log, ratios)) / len(ratios))
        print(f"\n{len(ratios)} runs: geometric mean {mean:.2f}, smallest {min(ratios):.2f}, largest {max(ratios):.2f}")
    finish("corrective_families_aside" if args.aside else "corrective_families", args, rows, [])


if __name__ == "__main__":
    main()
