"""What is noticed of a run from outside, whatever its method: points that are not finite or leave the set end it, and so does a
user's linear oracle that is worse than its own earlier answers; a smoothness that the run contradicts and a linear oracle
that was not exact are said in its warnings.

Why the last two only warn: what a run returns is certified by oracles. The certificate takes an oracle's error in, and is for the
step size 1/(2L) with an L that the run has not contradicted: that of the objective, or the larger one that was seen. What is
lost is the method's own guarantee that it gets there.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from math import ceil, isfinite, sqrt
from typing import Any, NamedTuple

import numpy as np

from condgrad.certificate import Certificate
from condgrad.checks import BadOracle, NonFinite, NotGiven, not_finite
from condgrad.driver.resolve import COARSE, INSIDE, counts_as_inside, proven_outside
from condgrad.driver.vertices import Compared, Vertices, by_user, compared
from condgrad.points import inner, norm2
from condgrad.points.rounding import sum_rounding
from condgrad.protocols import Objective, Point, Problem, Record, fits
from condgrad.runtime.signals import Inexact, InexactOracleWarning
from condgrad.solvers.smoothness import VALUE_NOISE, Curvature
from condgrad.solvers.states import Descent
from condgrad.storage.stored import stored

ROUNDING = 1e-14
"""What the digits of a point may be wrong by, relative to it."""
SLACKS = tuple(10.0**-n for n in range(15, 1, -1))
"""Tolerances with which the set is asked for the witness of a certificate, up to the first that counts as inside. The first of
all is rounding."""
FEW = 20
"""Linear oracle calls in which to find out that a point is outside of a set that has nothing but a linear oracle."""


class SmoothnessWarning(UserWarning):
    """The smoothness that was given is too small, or the gradient is not the function's."""


def later(k: int) -> int:
    """The next step on which to measure; the distance grows, so that measuring costs no more than the run."""
    return max(k + 1, ceil(1.1 * k))


@stored
class Noticed(NamedTuple):
    """What has been noticed so far."""

    curvature: Curvature = Curvature()
    rise: str = ""
    """The first step on which F was above what L allows."""
    inexact: int = 0
    """Answers of the linear oracle that were not exact, and the worst of them."""
    error: float = 0.0
    sentence: str = ""
    next_look: int = 1
    next_rise: int = 0
    along: float = 0.0
    """The least L that the values on the first step above allow."""
    vertices: tuple[Point, ...] = ()
    """The last answers of a user's linear oracle."""


@dataclass
class Lookout:
    """Kept by the driver beside a run, on the uncounted problem and while the watch stands still."""

    problem: Problem
    given: bool
    """L is given; else it is found by backtracking, which sees to it itself."""
    start: Point | None = None
    """A known point of the set."""
    noticed: Noticed = field(default_factory=Noticed)
    heard: list[Inexact] = field(default_factory=list)
    """What the linear oracle said aside since it was last asked for."""
    error: float = 0.0
    """What the linear oracle's answers in the last step may be off by."""

    def __post_init__(self) -> None:
        if by_user(self.problem.domain):
            domain = compared(self.problem.domain)
            domain.points = () if self.start is None else (self.start,)
            self.problem = Problem(self.problem.objective, domain)

    @property
    def vertices(self) -> Vertices:
        """What is remembered of a user's linear oracle."""
        return self.problem.domain.remembered if isinstance(self.problem.domain, Compared) else ()

    @vertices.setter
    def vertices(self, vertices: Vertices) -> None:
        if isinstance(self.problem.domain, Compared):
            self.problem.domain.remembered = vertices

    @property
    def refuted(self) -> bool:
        """Has a user's linear oracle been shown not to minimise?"""
        return isinstance(self.problem.domain, Compared) and self.problem.domain.refuted

    def note(self, **new: Any) -> None:
        self.noticed = self.noticed._replace(**new)

    def smoothness(self, L: float) -> float:
        """L, or the larger one that the gradients and values of the run prove to be needed."""
        seen = max(self.noticed.curvature.largest, self.noticed.along)
        return seen if seen / (1 + 1e-6) > L else L

    def at(self, state: Any) -> None:
        """The point after a step: finite, and at steps with growing distance a point of the set."""
        self.error = self.listen()
        if isinstance(state.x, np.ndarray) and not np.isfinite(state.x).all():
            raise NonFinite(f"The point after the step holds NaN or Inf ({not_finite(state.x)}).")
        if state.k < self.noticed.next_look:
            return
        self.note(next_look=later(state.k))
        if self.outside(state.x):
            raise BadOracle(f"The point after the step lies outside of the set: {self.suspects()}.")

    def listen(self) -> float:
        """Take note of what was heard; the largest error in it."""
        if not self.heard:
            return 0.0
        error, sentence = max(self.heard)
        worse = {"error": error, "sentence": sentence} if error > self.noticed.error else {}
        self.note(inexact=self.noticed.inexact + len(self.heard), **worse)
        self.heard.clear()
        return error

    def outside(self, x: Point, calls: int = 0) -> bool:
        """Is x outside of the set? Of a set that can't tell, as far as ``calls`` linear oracle calls find out."""
        try:
            return not self.problem.domain.contains(x, counts_as_inside(self.problem.domain))
        except NotGiven:
            return calls > 0 and proven_outside(self.problem.domain, x, calls)

    def suspects(self) -> str:
        oracles = "lmo or project" if hasattr(self.problem.domain, "project") else "lmo"
        return f"compare the answers of {type(self.problem.domain).__name__}'s {oracles} with its contains"

    def unfit(self, certificate: Certificate, converged: bool) -> str:
        """What is wrong with a certificate whose points must be in the set; a set that can't tell is asked where it matters."""
        calls = FEW if converged else 0
        which = "point that is returned" if self.outside(certificate.x, calls) else ""
        if not which and certificate.prox is not certificate.x and self.outside(certificate.prox, calls):
            which = "certificate's witness"
        return f"But the {which} lies outside of the set: {self.suspects()}." if which else ""

    def with_slack(self, certificate: Certificate) -> Certificate:
        """The certificate, where its witness lies in the set to fewer digits than rounding leaves: Lemma 1 needs a point of it.

        A witness that is off by delta errs by delta |direction| in the gap, and by delta / step in the norm.
        """
        slack = self.slack(certificate.prox)
        if slack == 0.0:
            return certificate
        reach = max(sqrt(norm2(certificate.prox)), _max_norm(self.problem.domain))
        worth = slack * certificate.noise / sum_rounding(certificate.prox)
        off = slack * reach / (certificate.stretch * certificate.gamma)
        return replace(certificate, gap=certificate.gap + worth, rounding=certificate.rounding + off)

    def slack(self, x: Point) -> float:
        """The smallest tolerance, by powers of 10, with which the set contains x; 0 where that is rounding, or not known."""
        largest = counts_as_inside(self.problem.domain)
        try:
            for slack in SLACKS:
                if self.problem.domain.contains(x, slack):
                    return slack if slack > SLACKS[0] else 0.0
                if slack >= largest:
                    break
        except NotGiven:
            return largest / (2 * COARSE) if largest > INSIDE else 0.0  # how far rounded answers may be off
        return largest  # ``unfit`` has the last word

    def between(
        self, before: Any, after: Any, last: Record | None, now: Record, value: Callable[[Point], float]
    ) -> None:
        """Two gradients that differ by more than L times their points' distance prove that a given L is too small; so does
        a value above F(x) + <grad, y - x> + L/2 |y - x|^2, or else it proves that the gradient is not F's."""
        if not self.given or before is None or last is None or after.descent is None:
            return
        if before.descent:
            self.note(curvature=self.noticed.curvature.after(before.descent, after.descent))
        if self.noticed.rise or not fits(self.problem.objective, Objective):
            return
        x, grad, _ = after.descent
        known = x is before.x and isfinite(last.fun) and isfinite(now.fun)
        if not known and after.k < self.noticed.next_rise:
            return
        self.note(next_rise=later(after.k))
        self.compare(x, grad, after, value(x), value(after.x))

    def compare(self, x: Point, grad: Point, after: Any, old: float, new: float) -> None:
        d = after.x - x
        linear, square = inner(grad, d), after.L / 2 * norm2(d)
        bound = old + linear + (1 + 1e-6) * square
        noise = VALUE_NOISE * (abs(old) + abs(new) + abs(linear))
        above = new - bound - noise
        if above > 0 and above > self.rounding(x, grad, after.L):
            along = 2 * (new - old - linear - noise) / norm2(d)
            rise = (
                f"In step {after.k} F came to {new:.9g}, where its gradient and the smoothness L = {after.L:.3g} allow at most "
                f"{bound:.9g}: L is too small, or the gradient does not match the function (see check_gradient)."
            )
            self.note(rise=rise, along=along)

    def rounding(self, x: Point, grad: Point, L: float) -> float:
        """How much F may change where x changes in its last digits: near F = 0 that is more than digits of F itself."""
        slip = ROUNDING * sqrt(norm2(x))
        return slip * (sqrt(norm2(grad)) + L * slip)

    def alone(self, certificate: Certificate) -> None:
        """A run that converges at once has no two gradients to compare: take those at the point and at its prox, or where the
        point is its own witness, at the linear oracle's answer."""
        if not self.given or not self.problem.objective.smoothness or not fits(self.problem.objective, Objective):
            return
        x, y, grad = certificate.x, certificate.prox, self.problem.objective.grad
        here = Descent(x, grad(x))
        if y is x:
            y = self.problem.domain.lmo(here.grad)
        self.note(curvature=self.noticed.curvature.after(here, Descent(y, grad(y))))

    def warnings(self, state: Any) -> Iterator[tuple[type[Warning], str]]:
        self.listen()
        found = self.noticed
        L, seen = (state.L, found.curvature.largest) if state is not None else (0.0, 0.0)
        if seen > L * (1 + 1e-6):
            yield (
                SmoothnessWarning,
                f"The smoothness L = {L:.3g} is too small: between two points of the run the gradient changed by "
                f"{seen:.3g} times their distance, so the method's guarantees do not hold. "
                f"Leave smoothness out to have it estimated, or give at least {seen:.3g}.",
            )
        elif found.rise:
            yield SmoothnessWarning, found.rise
        if found.inexact:
            times = f" So it was {found.inexact} times in this run." if found.inexact > 1 else ""
            yield InexactOracleWarning, f"{found.sentence}{times} Certificates take the error in."

    def warn(self, state: Any) -> tuple[str, ...]:
        """The sentences, each told as a Python warning too."""
        told = list(self.warnings(state))
        for category, sentence in told:
            python_warnings.warn(sentence, category, stacklevel=6)  # the line that called minimize
        return tuple(sentence for _, sentence in told)


def _max_norm(domain: Any) -> float:
    try:
        return float(domain.max_norm)
    except (NotGiven, AttributeError):
        return 0.0
