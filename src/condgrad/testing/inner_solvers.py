"""Checks of the contract of an inner solver."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from math import isfinite
from typing import Any

import numpy as np

from condgrad.domains import DOMAINS
from condgrad.inner import INNERS, absolute, relative
from condgrad.points import LowRank
from condgrad.protocols import Domain, Inner, fits, missing
from condgrad.runtime.extras import MissingExtra
from condgrad.testing.report import Check, CheckReport, Skipped, report, require

STOPS = {"an absolute accuracy": absolute(3e-2), "a relative accuracy": relative(0.3, 1e-3)}


def check_inner(
    solver: Any,
    domains: Mapping[str, Any] | None = None,
    *,
    trials: int = 2,
    seed: int = 0,
    strict: bool = False,
) -> CheckReport:
    """Check an inner solver against the contract of inner solvers.

    Parameters
    ----------
    solver : Inner
        The inner solver, with ``init(domain, x)`` and ``solve(domain, g, u, gamma, stop, memory)``.
    domains : mapping of str to Domain, default None
        Sets on which the solver is tried. None: one instance of each of the library's sets that the solver accepts, according to
        its registry entry.
    trials : int, default 2
        Number of random subproblems for each set.
    seed : int, default 0
        Seed of all random numbers.
    strict : bool, default False
        Raise ContractError if a check fails.

    Returns
    -------
    CheckReport
        The result of each check. ``print(report)`` shows it as a table.

    Examples
    --------
    >>> import condgrad as cg
    >>> from condgrad.testing import check_inner
    >>> check_inner(cg.Exact(), {"simplex": cg.Simplex(4)}).passed
    True
    """
    if domains is None:
        needs = next((entry.needs for entry in INNERS.values() if type(solver) is entry.factory), Domain)
        tried: dict[str, Any] = {}
        for entry in DOMAINS.values():
            with suppress(MissingExtra):  # sets whose oracle is not installed are left out
                tried |= {entry.name: entry.example()} if entry.in_specs else {}
        domains = {name: domain for name, domain in tried.items() if fits(domain, needs)}
    return report(f"Inner solver {solver!r}", _Inner(solver, domains, trials, seed).checks(), strict)


class _Inner:
    def __init__(self, solver: Any, domains: Mapping[str, Any], trials: int, seed: int):
        self.solver, self.domains, self.trials, self.seed = solver, domains, trials, seed
        self._solved: list[Any] | None = None

    def checks(self) -> Iterator[Check]:
        yield "members", self.members
        if missing(self.solver, Inner):
            return
        yield "the prox point lies in the set", self.inside
        yield "the gap is at least the true one", self.honest
        yield "the gap is as small as was asked for", self.accurate
        yield "a zero gradient leaves the centre where it is", self.zero
        yield "solve repeats its answers and does not write into its input", self.pure
        yield "the memory of one subproblem serves in the next", self.continues

    # ------------------------------------------------------------------------------------------------------- helpers

    def tasks(self) -> Iterator[tuple[str, Any, np.ndarray, np.ndarray, float]]:
        """Yield random subproblems: name of the set, set, gradient, centre and step size. The arrays are read-only."""
        for number, (label, domain) in enumerate(self.domains.items()):
            for trial in range(self.trials):
                rng = np.random.default_rng((self.seed, number, trial))
                g = 10.0 ** rng.integers(-1, 2) * rng.standard_normal(domain.shape)
                corners = [np.asarray(domain.lmo(rng.standard_normal(domain.shape))) for _ in range(3)]
                u = np.array(0.5 * corners[0] + 0.3 * corners[1] + 0.2 * corners[2])
                for x in (g, u):
                    x.setflags(write=False)
                yield label, domain, g, u, float(rng.uniform(0.05, 0.5))

    def solved(self) -> list[tuple[str, Any, np.ndarray, np.ndarray, float, Any, np.ndarray, float]]:
        """The subproblems with the stopping rule, the solver's point and its gap, computed once."""
        if self._solved is None:
            found = []
            for label, domain, g, u, gamma in self.tasks():
                for stop in STOPS.values():
                    point, gap, _ = self.solver.solve(domain, g, u, gamma, stop, self.solver.init(domain, u))
                    found.append((label, domain, g, u, gamma, stop, np.asarray(point, dtype=float), float(gap)))
            self._solved = found
        return self._solved

    def noise(self, domain: Any, g: np.ndarray, u: np.ndarray, gamma: float) -> float:
        """Upper bound on the rounding error of a gap."""
        size = max(float(np.linalg.norm(u)), float(np.linalg.norm(np.asarray(domain.lmo(g)))))
        return 1e-11 * (1 + float(np.linalg.norm(g)) + size / gamma) * (1 + size)

    # -------------------------------------------------------------------------------------------------------- checks

    def members(self) -> None:
        lacking = missing(self.solver, Inner)
        require(not lacking, f"it has no {' and no '.join(lacking)}")

    def inside(self) -> None:
        asked = 0
        for label, domain, _, _, _, _, point, _ in self.solved():
            require(point.shape == tuple(domain.shape), f"{label}: a point of shape {point.shape}")
            if hasattr(domain, "contains"):
                asked += 1
                require(domain.contains(point, 1e-9), f"{label}: the prox point is outside of the set")
        if not asked:
            raise Skipped("no set has contains")

    def honest(self) -> None:
        for label, domain, g, u, gamma, _, point, gap in self.solved():
            direction = g + (point - u) / gamma
            true = float(np.vdot(direction, point - np.asarray(domain.lmo(direction))))
            require(gap >= 0, f"{label}: the gap is {gap!r}")
            require(
                true <= gap + self.noise(domain, g, u, gamma), f"{label}: it says {gap:.6g}, the true gap is {true:.6g}"
            )

    def accurate(self) -> None:
        for label, domain, g, u, gamma, stop, point, gap in self.solved():
            allowed = stop(float(np.sum((point - u) ** 2)) / gamma)
            limited = getattr(self.solver, "max_calls", None) is not None
            met = gap <= allowed + self.noise(domain, g, u, gamma)
            require(met or limited, f"{label}: the gap is {gap:.6g}, at most {allowed:.6g} was asked for")

    def zero(self) -> None:
        for label, domain, g, u, gamma in self.tasks():
            memory = self.solver.init(domain, u)
            point, gap, _ = self.solver.solve(domain, np.zeros(g.shape), u, gamma, absolute(1e-9), memory)
            off = float(np.abs(np.asarray(point) - u).max())
            require(off <= 1e-8 * (1 + float(np.abs(u).max())), f"{label}: it moved by {off:.3g}")
            require(gap <= 1e-8 or not isfinite(gap), f"{label}: the gap is {gap:.3g}")

    def pure(self) -> None:
        for label, domain, g, u, gamma in self.tasks():
            memory = self.solver.init(domain, u)
            stop = STOPS["a relative accuracy"]
            one, two = (self.solver.solve(domain, g, u, gamma, stop, memory) for _ in range(2))
            same = _bits(one.point) == _bits(two.point) and (one.gap == two.gap)
            require(same, f"{label}: two answers to one question")

    def continues(self) -> None:
        for label, domain, g, u, gamma in self.tasks():
            memory = self.solver.init(domain, u)
            for share in (1.0, 0.9, 1.1):
                stop = STOPS["a relative accuracy"]
                point, gap, memory = self.solver.solve(domain, share * g, u, gamma, stop, memory)
                fine = np.isfinite(np.asarray(point, dtype=float)).all() and not np.isnan(gap)
                require(fine, f"{label}: a point or a gap that is not a number")


def _bits(point: Any) -> bytes:
    return (point.to_dense() if isinstance(point, LowRank) else np.asarray(point)).tobytes()
