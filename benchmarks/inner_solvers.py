"""Linear minimisations of every inner solver on every set, to a relative Wolfe gap of 1e-8.

Two prox subproblems for each set: with the unconstrained minimiser inside of the set, and with it outside, so that the solution
lies on the boundary. There `condg` is sublinear, and the table says which gap it has reached when its budget ends.
"""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from typing import Any, NamedTuple

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.inner import INNERS, Corrective, absolute
from condgrad.protocols import ORACLES, fits

RELATIVE_GAP = 1e-8
BUDGET = 5_000
"""Linear minimisations at which a solver is ended."""
PLACES = ("inside", "outside")
LINEAR = {name for name, oracle in ORACLES.items() if {"lo", "ub"} & {*oracle.counters}}
"""Members of a set that are linear minimisations or upper bounds."""


class Subproblem(NamedTuple):
    """min <g, x> + |x - u|^2 / (2 gamma) over the set; ``gap`` is the Wolfe gap of u."""

    g: np.ndarray
    u: np.ndarray
    gamma: float
    gap: float


def subproblem(domain: Any, place: str, seed: int = 0) -> Subproblem:
    """The unconstrained minimiser is the mean of many vertices, or lies outside of the set; u is not far from the boundary."""
    rng = np.random.default_rng((PLACES.index(place), seed))
    size = int(np.prod(domain.shape))
    directions = np.concatenate([np.eye(size), -np.eye(size), rng.standard_normal((size, size))])
    vertices = np.array([np.asarray(domain.lmo(d.reshape(domain.shape))) for d in directions])
    target = vertices.mean(axis=0)
    if place == "outside":
        far = rng.standard_normal(domain.shape)
        target = target + np.linalg.norm((vertices - target).reshape(len(vertices), -1), axis=1).max() * far
    u, gamma = 0.7 * vertices[0] + 0.3 * vertices[-1], 0.5
    g = (u - target) / gamma
    return Subproblem(g, u, gamma, wolfe_gap(domain, g, u))


def wolfe_gap(domain: Any, slope: np.ndarray, x: np.ndarray) -> float:
    return float(np.vdot(slope, x - np.asarray(domain.lmo(slope))))


class Counted:
    """A set whose linear minimisations and upper bounds are written down in ``calls``."""

    def __init__(self, domain: Any):
        self.domain, self.calls = domain, []

    def __getattr__(self, name: str) -> Any:
        member = getattr(self.domain, name)
        return partial(self._ask, name) if name in LINEAR else member

    def _ask(self, name: str, *given: Any) -> Any:
        self.calls.append(name)
        return getattr(self.domain, name)(*given)


def solve(name: str, domain: Any, place: str, budget: int = BUDGET) -> Row:
    """One solve: its calls, and the relative gap of its point, measured again."""
    # the limit of corrective in practice leaves the rest to the next prox subproblem: here there is one
    task, solver = subproblem(domain, place), Corrective(budget) if name == "corrective" else INNERS[name].build(budget)
    region = Counted(domain)
    point = solver.solve(
        region, task.g, task.u, task.gamma, absolute(RELATIVE_GAP * task.gap), solver.init(region, task.u)
    ).point
    point = np.asarray(point)
    gap = wolfe_gap(domain, task.g + (point - task.u) / task.gamma, point)
    return {"calls": len(region.calls), "gap": max(gap, 0.0) / task.gap if task.gap > 0 else 0.0}


def cases() -> Iterator[tuple[str, str, str]]:
    """(set, inner solver, place), each that fits."""
    for name, entry in cg.DOMAINS.items():
        for inner, solver in INNERS.items():
            if fits(entry.example(), solver.needs):
                yield from ((name, inner, place) for place in PLACES)


def main() -> None:
    args = arguments(__doc__)

    def job(name: str, inner: str, place: str) -> Iterator[Row]:
        yield {"set": name, "inner": inner, "place": place, **solve(inner, cg.DOMAINS[name].example(), place)}

    rows = work_off(
        "inner solvers", [Job(100 if c[1:] == ("condg", "outside") else 1, partial(job, *c)) for c in cases()]
    )
    found = {(row["set"], row["inner"], row["place"]): row for row in rows}

    def cell(name: str, inner: str, place: str) -> str:
        row = found.get((name, inner, place))
        if row is None:
            return "-"
        return f"{row['calls']:,}" if row["gap"] <= 1.01 * RELATIVE_GAP else f">{row['calls']:,} ({row['gap']:.0e})"

    columns = [(inner, place) for inner in INNERS for place in PLACES]
    table(
        f"Linear minimisations (and upper bounds of spectral) to a relative gap of {RELATIVE_GAP:g}",
        ("set", *(f"{inner}, {place}" for inner, place in columns)),
        [(name, *(cell(name, *column) for column in columns)) for name in cg.DOMAINS],
        f"In brackets the relative gap at the budget of {BUDGET:,} calls. -: the solver needs what the set does not have.",
    )
    must = [row for row in rows if (row["inner"], row["place"]) != ("condg", "outside")]
    late = [f"{row['inner']} on {row['set']}" for row in must if row["gap"] > 1.01 * RELATIVE_GAP]
    claim = Claim(
        "every inner solver on every set, but for condg with a solution on the boundary",
        f"gap <= {RELATIVE_GAP:g}",
        f"{len(must) - len(late)} of {len(must)}" + (f"; not {', '.join(late)}" if late else ""),
        not late,
    )
    finish("inner_solvers", args, rows, [claim], budget=BUDGET)


if __name__ == "__main__":
    main()
