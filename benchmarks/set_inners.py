"""Linear oracle calls of every inner solver on every set, until the prox subproblem has a relative gap of 1e-8.

python -m benchmarks.set_inners [--quick] [--check] [--out DIR]

The subproblem is to project a random point that is half a diameter away from the set's start. The gap is relative to that of the
start. A solver that reaches the limit of calls is reported with the gap that it has reached. The spectral solver works by
products with blocks of vectors, which are not linear minimisations.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.domains import DOMAINS
from condgrad.inner import INNERS, absolute, with_gap
from condgrad.points import inner, norm2
from condgrad.protocols import missing

GAP = 1e-8
MAX_CALLS = 1000
SUBLINEAR = ("condg",)
"""Solvers whose theory promises no 1e-8 in any sensible number of calls: their gap is reported, and no claim is made."""


class Counted:
    """A set that counts the calls of its linear oracle; all else is passed on."""

    def __init__(self, domain: Any):
        self._domain, self.calls = domain, 0

    def __getattr__(self, name: str) -> Any:
        if name == "_domain" or name.startswith("__"):
            raise AttributeError(name)
        found = getattr(self._domain, name)
        if name not in ("lmo", "atom", "lmo_near", "project"):
            return found

        def counted(*args: Any, **kwargs: Any) -> Any:
            self.calls += 1
            return found(*args, **kwargs)

        return counted


def solved(name: str, solver: str, max_calls: int) -> Row:
    """One prox subproblem."""
    domain = DOMAINS[name].example()
    rng = np.random.default_rng(7)
    u = (
        np.asarray(domain.start(), dtype=float)
        if hasattr(domain, "start")
        else np.asarray(domain.lmo(np.ones(domain.shape)))
    )
    g = rng.standard_normal(domain.shape)
    g *= 0.5 * (getattr(domain, "diameter", None) or 1.0) / max(np.linalg.norm(g), 1e-300)
    first = inner(g, u - domain.lmo(g))
    counted = Counted(domain)
    built = INNERS[solver].build(max_calls) if solver != "spectral" else INNERS[solver].factory()
    memory = built.init(counted, u)
    prox = built.solve(counted, g, u, 1.0, absolute(GAP * max(first, 1e-300)), memory)
    calls = counted.calls
    gap = with_gap(prox, domain, g, u, 1.0).gap / max(first, 1e-300)
    moved = float(np.sqrt(norm2(prox.point - u)))
    return {"set": name, "inner": solver, "calls": calls, "gap": float(gap), "moved": moved}


def main() -> None:
    args = arguments(__doc__)
    limit = 200 if args.quick else MAX_CALLS
    pairs = [
        (name, solver)
        for name, entry in DOMAINS.items()
        for solver, about in INNERS.items()
        if not missing(entry.example(), about.needs)
    ]
    rows = work_off("Inner solvers", [Job(1.0, lambda pair=pair: [solved(*pair, limit)]) for pair in pairs])  # type: ignore[misc]
    found = {(row["set"], row["inner"]): row for row in rows}

    def cell(name: str, solver: str) -> str:
        row = found.get((name, solver))
        if row is None:
            return "-"
        return str(row["calls"]) if row["gap"] <= 2 * GAP else f">{row['calls']} (gap {row['gap']:.0e})"

    table(
        f"Oracle calls to a relative gap of {GAP:g}",
        ("set", *INNERS),
        [(name, *(cell(name, solver) for solver in INNERS)) for name in DOMAINS],
        "'-': the solver does not apply. exact: projections.",
    )
    claims = [
        Claim(f"{row['set']} by {row['inner']}", f"relative gap <= {GAP:g}", f"{row['gap']:.1e} in {row['calls']} calls",
              row["gap"] <= 2 * GAP)
        for row in rows if row["inner"] not in SUBLINEAR
    ]  # fmt: skip
    finish("set_inners", args, rows, claims)


if __name__ == "__main__":
    main()
