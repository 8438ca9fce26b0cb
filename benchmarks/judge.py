"""One judge for all methods, and runs of condgrad's methods and of copt's Frank-Wolfe that last until it is content.

It measures the gradient mapping with gamma = 1/(2L) from outside, while the watch stands still, at steps with growing distance
(k, then the larger of k + 1 and 1.1 k). It has an objective of its own, so that nothing that it computes is there for a method to
find, and it only finds out on which side of the target the squared mapping is, which is cheap when that is far away.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from math import ceil, isnan, nan, sqrt
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Row
from condgrad.linalg.lbfgs import Iterate, lbfgs
from condgrad.points import inner, norm2
from condgrad.runtime.clock import Watch

try:
    import copt
except ImportError:
    copt = None

TARGET = 1e-3


def twin(known: cg.Problem) -> cg.Problem:
    """The same problem, with nothing in common: what the judge computes is not there for the method to find."""
    F = known.objective
    return cg.Problem(cg.Completion(F.pattern.rows, F.pattern.cols, F.values, F.shape, F.loss), known.domain)


@dataclass(frozen=True)
class Decisive:
    """The gap that a prox point may have: enough to tell its mapping from the target, or a hundredth of the target."""

    gamma: float
    share: float
    target: float

    def __call__(self, moved: float) -> float:
        away = sqrt(moved / self.gamma) - sqrt(self.target)
        return self.share * self.gamma * max(away**2 / 4, self.target / 100)


class Judge:
    """Says when the squared mapping is at most the target, and keeps the bounds that it saw last."""

    def __init__(self, known: cg.Problem, target: float = TARGET):
        self.problem, self.target = twin(known), target
        self.gamma = 1 / (2 * known.objective.smoothness)
        self.block = np.zeros((known.domain.shape[1], 0))
        self.lower, self.upper = 0.0, nan
        self.looked, self.next = -1, 0

    @property
    def reached(self) -> bool:
        return self.upper <= self.target

    def __call__(self, k: int, x: Any) -> bool:
        """Looks where it is due; True when the target is reached."""
        if k >= self.next:
            self.next = max(k + 1, ceil(1.1 * k))
            self.look(k, x)
        return self.reached

    def look(self, k: int, x: Any) -> None:
        if k == self.looked or self.reached:
            return
        self.looked = k
        x = cg.LowRank(*x.factors()) if isinstance(x, cg.LowRank) else np.array(x)
        grad = self.problem.objective.grad(x)
        self.lower, self.upper = self.by_a_vertex(x, grad), nan
        if self.lower <= self.target:
            self.by_a_prox_point(x, grad)

    def by_a_vertex(self, x: Any, grad: Any) -> float:
        """|g| >= <grad, x - v> / |gamma grad + x - v| for every v of the set: far from the target this is enough.

        With psi the prox point, <x - gamma grad - psi, v - psi> <= 0; write x - psi as gamma g and v - psi as v - x + gamma g.
        """
        v = self.problem.domain.lmo(grad)
        return max(inner(grad, x - v), 0.0) ** 2 / norm2(self.gamma * grad + (x - v))

    def by_a_prox_point(self, x: Any, grad: Any) -> None:
        """Verified by a linear oracle call of full accuracy: where that leaves it open, with a better prox point."""
        spectral = cg.Spectral(max_calls=1000)
        for share in (1.0, 1e-2, 1e-4):
            stop = Decisive(self.gamma, share, self.target)
            prox, gap, self.block = spectral.solve(self.problem.domain, grad, x, self.gamma, stop, self.block)
            seen = cg.Certificate(x, prox, self.gamma, gap).verify(self.problem)
            self.lower, self.upper = seen.lower, seen.upper
            if self.reached or self.lower > self.target:
                return

    def verdict(self) -> Row:
        upper = None if isnan(self.upper) else self.upper
        return {"reached": self.reached, "mapping_lower": self.lower, "mapping_upper": upper}


Run = Callable[[cg.Problem, float], Row]
"""(problem, limit of CPU seconds) -> what it took, and whether it got there."""


def with_condgrad(method: str, dense: bool = False, target: float = TARGET, **options: Any) -> Run:
    """A method of condgrad, with its defaults for this target, until the judge is content."""

    def reach(known: cg.Problem, limit: float) -> Row:
        judge = Judge(known, target)
        budget = cg.CpuSeconds(limit)
        # A method that certifies nothing would be measured by the driver too: of the gap alone, which costs little.
        stop = budget if cg.METHODS[method].deterministic else cg.Gap(1e-300) | budget
        r = cg.minimize(
            known.objective,
            known.domain,
            np.zeros(known.domain.shape) if dense else None,
            method=method,
            schedule=cg.practical(target),
            stop=stop,
            output="last",
            callback=lambda record, x: judge(record.k, x),
            every=10**9,
            progress=False,
            **options,
        )
        judge.look(r.steps, r.x)
        counts = {oracle: r.counts[oracle] for oracle in ("fo", "ifo", "lo", "ub", "po")}
        return {"cpu": r.cpu, "seconds": r.seconds, "steps": r.steps, **counts, **judge.verdict()}

    return reach


def until_certified(target: float = TARGET) -> Run:
    """ncgs until ``converged``: it certifies the mapping itself, and what is returned is verified. The judge is not asked."""

    def reach(known: cg.Problem, limit: float) -> Row:
        stop = cg.Mapping(target) | cg.CpuSeconds(limit)
        r = cg.minimize(known.objective, known.domain, stop=stop, every=10**9, progress=False)
        counts = {oracle: r.counts[oracle] for oracle in ("fo", "ifo", "lo", "ub", "po")}
        found = {
            "reached": r.status == "converged",
            "mapping_lower": r.certificate.lower,
            "mapping_upper": r.certificate.upper,
        }
        return {"cpu": r.cpu, "seconds": r.seconds, "steps": r.steps, **counts, **found}

    return reach


def with_copt(step: str, target: float = TARGET) -> Run:
    """copt's Frank-Wolfe: dense vectors, its own linear oracle (ARPACK). It is given L, which it would estimate otherwise."""

    def reach(known: cg.Problem, limit: float) -> Row:
        judge, F, shape = Judge(known, target), known.objective, known.domain.shape
        flat = np.ravel_multi_index((F.pattern.rows, F.pattern.cols), shape)
        ball = copt.constraint.TraceBall(known.domain.radius, shape)
        calls = {"fo": 0, "lo": 0}
        spent: Row = {}
        held: dict[str, np.ndarray] = {}
        watch = Watch()

        def value(x: np.ndarray) -> float:
            """And the gradient, which copt asks for right after: its own way to have both at once compares all of x."""
            calls["fo"] += 1
            r = x[flat] - F.values
            near = np.exp(-r * r)
            held["grad"] = np.zeros(len(x))
            held["grad"][flat] = 2 * r * near
            return len(r) - float(near.sum())

        def lmo(u: np.ndarray, x: np.ndarray, active_set: Any) -> Any:
            calls["lo"] += 1
            return ball.lmo(u, x, active_set)

        def callback(known_there: dict[str, Any]) -> bool:
            with watch.paused():
                spent.update(cpu=watch.cpu, seconds=watch.seconds, steps=known_there["it"])
                x = known_there["x"].reshape(shape)
                done = judge(spent["steps"], x)
                if not done and watch.cpu > limit:
                    judge.look(spent["steps"], x)
                    done = True
                return not done

        with np.errstate(all="ignore"):
            copt.minimize_frank_wolfe(
                value,
                np.zeros(shape[0] * shape[1]),
                lmo,
                jac=lambda x: held["grad"],
                step=step,
                lipschitz=F.smoothness,
                max_iter=10**9,
                tol=0.0,
                callback=callback,
            )
        return {**spent, **calls, "ifo": calls["fo"] * F.n_terms, "ub": 0, "po": 0, **judge.verdict()}

    return reach


def with_rough_oracle() -> Run:
    """Frank-Wolfe, 2/(k+2), with the oracle of our own warm start: begun near the last vectors, to a tenth of the last gap."""

    def reach(known: cg.Problem, limit: float) -> Row:
        judge, problem, watch = Judge(known), twin(known), Watch()
        F, ball = problem.objective, problem.domain
        x, gap, block, k = ball.low_rank_start(), 0.0, np.zeros((ball.shape[1], 0)), 0
        while True:
            grad = F.grad(x)
            s, block = ball.lmo_near(grad, block, 0.1 * gap)
            gap = max(inner(grad, x - s), 0.0)
            x, k = x + 2 / (k + 2) * (s - x), k + 1
            with watch.paused():
                if judge(k, x) or watch.cpu > limit:
                    judge.look(k, x)
                    spent = {"cpu": watch.cpu, "seconds": watch.seconds, "steps": k}
                    return {**spent, "fo": k, "lo": k, "ifo": k * F.n_terms, "ub": 0, "po": 0, **judge.verdict()}

    return reach


def with_fista(target: float = TARGET) -> Run:
    """Accelerated proximal gradient with full SVDs and step 1/L (FISTA): pyproximal's with ``acceleration="fista"``.

    With pyproximal 0.13 an iteration takes 1.15 times as long (200 x 200 and 400 x 400), since its projection multiplies by a
    diagonal matrix: so this one stands for it.
    """

    def reach(known: cg.Problem, limit: float) -> Row:
        judge, problem, watch = Judge(known, target), twin(known), Watch()
        F, ball = problem.objective, problem.domain
        x = y = np.zeros(ball.shape)
        t, k = 1.0, 0
        while True:
            new = ball.project(y - F.grad(y) / F.smoothness)
            t, last = (1 + sqrt(1 + 4 * t * t)) / 2, t
            x, y, k = new, new + (last - 1) / t * (new - x), k + 1
            with watch.paused():
                if judge(k, x) or watch.cpu > limit:
                    judge.look(k, x)
                    spent = {"cpu": watch.cpu, "seconds": watch.seconds, "steps": k}
                    return {**spent, "fo": k, "lo": 0, "ifo": k * F.n_terms, "ub": 0, "po": k, **judge.verdict()}

    return reach


def with_factors(target: float = TARGET) -> Run:
    """L-BFGS over (U, V) with X = R U V'/s, what people write themselves: from a random start, of the rank that ncgs finds.

    It is given that rank, which it could not know, and the judge ends it, which it could not do either: it proves nothing.
    """
    ranks: dict[int, int] = {}

    def reach(known: cg.Problem, limit: float) -> Row:
        problem, judge, rng = twin(known), Judge(known, target), np.random.default_rng(0)
        if id(known) not in ranks:
            ranks[id(known)] = cg.minimize(problem.objective, problem.domain, tol=target, progress=False).x.rank
        F, ball = twin(known).objective, known.domain
        watch, k = Watch(), 0
        x = cg.LowRank(*(rng.standard_normal((size, ranks[id(known)])) for size in ball.shape))
        x = (ball.radius / ball.norm(x)) * x
        form, at = ball.factored(x, -1.0 * x), []

        def value(w: np.ndarray) -> float:
            point = form.point(w)
            at[:] = [F.grad(point)]
            return F.value(point)

        def grad(w: np.ndarray) -> np.ndarray:
            return form.pull_back(w, at[0])

        start = Iterate(form.start, value(form.start), grad(form.start))
        spent = {"cpu": watch.cpu, "seconds": watch.seconds, "steps": 0}
        for k, now in enumerate(lbfgs(value, grad, start), 1):
            with watch.paused():
                spent = {"cpu": watch.cpu, "seconds": watch.seconds, "steps": k}
                near = form.squared_mapping(now.w, now.grad, judge.gamma) <= 10 * target
                if (near and judge(k, form.point(now.w))) or watch.cpu > limit:
                    break
        return {**spent, "fo": k, "lo": 0, "ifo": k * F.n_terms, "ub": 0, "po": 0, **judge.verdict()}

    return reach
