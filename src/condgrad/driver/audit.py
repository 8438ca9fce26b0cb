"""Audit of a run: checks of its points, of a given smoothness constant L, and of the answers of the linear oracle.

The audit ends a run if a point is not finite or lies outside of the set, or if a user's linear oracle gives an answer that is
clearly worse than one of its earlier answers. The audit only warns if L is too small, or if a linear oracle was not exact. After
such a warning, the certificate of the returned point is valid: it includes the error of the oracle, and uses the larger L that
the run has measured. Only the method's guarantee of convergence is lost.
"""

from __future__ import annotations

import warnings as python_warnings
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field, replace
from itertools import pairwise
from math import ceil, isfinite, nan, sqrt
from typing import Any

import numpy as np

from condgrad.certificate import Certificate
from condgrad.checks import BadOracle, NonFinite, NotGiven, not_finite
from condgrad.driver.metrics import value
from condgrad.driver.reached import Reached
from condgrad.driver.resolve import COARSE, INSIDE, counts_as_inside, proven_outside
from condgrad.driver.vertices import Compared, by_user, compared
from condgrad.points import inner, norm2
from condgrad.points.rounding import stated_rounding, sum_rounding, terms_rounding
from condgrad.protocols import Objective, Point, Problem, Record, fits
from condgrad.runtime.signals import Inexact, InexactOracleWarning
from condgrad.solvers.evaluation import same_point
from condgrad.solvers.smoothness import VALUE_NOISE
from condgrad.solvers.states import Descent, gradient_at

ROUNDING = 1e-14
"""Rounding error of a point, relative to its norm."""
SCATTER_POINTS = 8
"""Number of points at which F is evaluated to estimate the rounding errors of its values."""
SCATTER_STEP = 1e-10
"""Distance from each of these points to the next, relative to the norm of the first."""
SCATTER_FACTOR = 4.0
"""The rounding errors of F are assumed to be at most this factor times the largest second difference of these values."""
SLACKS = tuple(10.0**-n for n in range(15, 1, -1))
"""Tolerances for ``contains``. They are tried in this order until the set contains the witness of a certificate (its prox point).
The first tolerance has the size of rounding errors."""
MAX_OUTSIDE_CALLS = 20
"""Maximum number of linear oracle calls to prove that a point is outside of a set that has no ``contains``."""


class SmoothnessWarning(UserWarning):
    """The smoothness constant that was given is too small, or the gradient is not the gradient of the function."""


def next_check_after(k: int) -> int:
    """Number of the next step to check after step k. The intervals grow, so that the checks take less time than the run."""
    return max(k + 1, ceil(1.1 * k))


def audited(problem: Problem, start: Point | None = None) -> Problem:
    """Wrap the set of the problem in :class:`Compared` if the set is a user's own; otherwise return the problem unchanged.

    The wrapper compares each answer of the linear oracle with earlier answers and with ``start``.
    """
    if not by_user(problem.domain):
        return problem
    domain = compared(problem.domain)
    domain.points = () if start is None else (start,)
    return Problem(problem.objective, domain)


@dataclass(eq=False)
class Audit:
    """Audit of one run. The oracle calls of the audit are not counted, and the clock of the run is paused during the audit."""

    problem: Problem
    """The problem that :func:`audited` returned."""
    given: bool
    """Whether L was given, by the user or by the objective. An L that backtracking found is not checked, because backtracking has
    already compared it with values of F."""
    reached: Reached
    """Progress of the run. The findings of the audit are in ``reached.findings``."""
    reports: list[Inexact] = field(default_factory=list)
    """Reports of inexact answers of the linear oracle since the last step."""
    error: float = 0.0
    """Largest error of the linear oracle's answers in the last step."""

    def resume(self) -> None:
        """In a resumed run, compare the next answers of a user's linear oracle with the answers in the checkpoint."""
        if isinstance(self.problem.domain, Compared):
            self.problem.domain.remembered = self.reached.findings.vertices

    @property
    def refuted(self) -> bool:
        """Whether a user's linear oracle has been proven not to minimise."""
        return isinstance(self.problem.domain, Compared) and self.problem.domain.refuted

    def note(self, **new: Any) -> None:
        """Replace the given fields of the findings."""
        self.reached.findings = self.reached.findings._replace(**new)

    def smoothness(self, L: float) -> float:
        """The larger of L and the lower bound on the smoothness constant that the gradients and values of the run imply."""
        findings = self.reached.findings
        seen = max(findings.curvature.largest, findings.along)
        return seen if seen / (1 + 1e-6) > L else L

    def check_point(self, state: Any) -> None:
        """Check that the point after a step is finite. At growing intervals, also check that it is in the set."""
        self.error = self.collect()
        if isinstance(state.x, np.ndarray) and not np.isfinite(state.x).all():
            raise NonFinite(f"The point after the step holds NaN or Inf ({not_finite(state.x)}).")
        if state.k < self.reached.findings.next_look:
            return
        self.note(next_look=next_check_after(state.k))
        if self.outside(state.x):
            raise BadOracle(f"The point after the step lies outside of the set: {self.suspects()}.")

    def collect(self) -> float:
        """Add the reports of inexact answers, and the last answers of a user's linear oracle, to the findings.

        Returns the largest error that was reported.
        """
        if isinstance(self.problem.domain, Compared):
            self.note(vertices=self.problem.domain.remembered)
        if not self.reports:
            return 0.0
        findings, error = self.reached.findings, max(self.reports).error
        unexpected = [report for report in self.reports if report.sentence]
        self.reports.clear()
        if unexpected:
            worst, sentence = max(unexpected)
            worse = {"error": worst, "sentence": sentence} if worst > findings.error else {}
            self.note(inexact=findings.inexact + len(unexpected), **worse)
        return error

    def outside(self, x: Point, calls: int = 0) -> bool:
        """Whether x is outside of the set. If the set has no ``contains``, this is True only if ``calls`` linear oracle calls
        prove it."""
        try:
            return not self.problem.domain.contains(x, counts_as_inside(self.problem.domain))
        except NotGiven:
            return calls > 0 and proven_outside(self.problem.domain, x, calls)

    def suspects(self) -> str:
        """Advice for a message about a point outside of the set."""
        oracles = "lmo or project" if hasattr(self.problem.domain, "project") else "lmo"
        return f"compare the answers of {type(self.problem.domain).__name__}'s {oracles} with its contains"

    def outside_sentence(self, certificate: Certificate, converged: bool) -> str:
        """Sentence for the message if a point of the certificate is outside of the set; "" if all points are inside.

        If the set has no ``contains``, the points are checked only after convergence, because the check takes linear oracle
        calls.
        """
        calls = MAX_OUTSIDE_CALLS if converged else 0
        which = "point that is returned" if self.outside(certificate.x, calls) else ""
        if not which and certificate.prox is not certificate.x and self.outside(certificate.prox, calls):
            which = "certificate's witness"
        return f"But the {which} lies outside of the set: {self.suspects()}." if which else ""

    def with_slack(self, certificate: Certificate) -> Certificate:
        """Add to a certificate the error that arises if its witness is slightly outside of the set.

        Lemma 1 (see certificate.py) assumes that the witness is in the set. Let delta be the distance of the witness p from the
        set. Let s be the step size for which p was computed, which is ``stretch * gamma`` of the certificate. Then the gap of the
        certificate changes by up to delta |grad F(x) + (p - x) / s|, and the norm of the mapping by up to delta / s.
        """
        slack = self.slack(certificate.prox)
        if slack == 0.0:
            return certificate
        reach = max(sqrt(norm2(certificate.prox)), _max_norm(self.problem.domain))
        worth = slack * certificate.noise / sum_rounding(certificate.prox)
        off = slack * reach / (certificate.stretch * certificate.gamma)
        return replace(certificate, gap=certificate.gap + worth, rounding=certificate.rounding + off)

    def slack(self, x: Point) -> float:
        """The smallest tolerance, a power of 10, with which the set contains x; 0 if it is as small as rounding errors.

        If the set has no ``contains``, the tolerance is not known. The result is then 0, or the rounding error of the oracle's
        answers if they have a coarse type such as float16.
        """
        largest = counts_as_inside(self.problem.domain)
        try:
            for slack in SLACKS:
                if self.problem.domain.contains(x, slack):
                    return slack if slack > SLACKS[0] else 0.0
                if slack >= largest:
                    break
        except NotGiven:
            return largest / (2 * COARSE) if largest > INSIDE else 0.0  # rounding error of answers in a coarse type
        return largest  # x is outside: ``outside_sentence`` reports this

    def check_step(
        self, before: Any, after: Any, last: Record | None, now: Record, value: Callable[[Point], float]
    ) -> None:
        """Check a given L with the gradients and values of a step from x to y.

        L is too small if two gradients differ by more than L times the distance of their points. The gradient that the step used
        is compared with the gradient at x and with the gradient at y, if the two states have them. If the gradient at x is
        missing, the gradient used by the previous step takes its place.

        If F(y) > F(x) + <grad F(x), d> + L/2 |d|^2 with d = y - x, then L is too small, or the gradient is not that of F.
        """
        if not self.given or before is None or last is None or after.descent is None:
            return
        gradients = gradient_at(before) or before.descent, after.descent, gradient_at(after)
        for one, other in pairwise(known for known in gradients if known):
            if one.x is not other.x:
                self.note(curvature=self.reached.findings.curvature.after(one, other, self.problem.objective))
        if self.reached.findings.rise or not fits(self.problem.objective, Objective):
            return
        x, grad, _ = after.descent
        recorded = x is before.x and isfinite(last.fun) and isfinite(now.fun)
        if not recorded and after.k < self.reached.findings.next_rise:
            return
        self.note(next_rise=next_check_after(after.k))
        self.compare(x, grad, after, value(x), value(after.x))

    def compare(self, x: Point, grad: Point, after: Any, old: float, new: float) -> None:
        """Add a finding if F rose from ``old`` at x to ``new`` at ``after.x`` by more than L and the gradient at x allow."""
        d = after.x - x
        linear, square = inner(grad, d), after.L / 2 * norm2(d)
        bound = old + linear + (1 + 1e-6) * square
        wrong = stated_rounding(grad) + terms_rounding(self.problem.objective, x, grad)
        noise = VALUE_NOISE * (abs(old) + abs(new) + abs(linear)) + wrong * sqrt(norm2(d)) + self.first_rounding()
        above = new - bound - noise
        if above <= max(0.0, self.rounding(x, grad, after.L)):
            return
        if above > self.scatter(x, d) + self.scatter(after.x, -1.0 * d):
            along = 2 * (new - old - linear - noise) / norm2(d)
            rise = (
                f"In step {after.k} F reached {new:.9g}, but its gradient and the smoothness L = {after.L:.3g} allow at most "
                f"{bound:.9g}: L is too small, or the gradient does not match the function (see check_gradient)."
            )
            self.note(rise=rise, along=along)

    def first_rounding(self) -> float:
        """Rounding error of F at the start. Later values of F may be much smaller, but their rounding errors may still have this
        size."""
        first = self.reached.trace[0].fun if self.reached.trace else nan
        return float(np.finfo(float).eps) * abs(first) if isfinite(first) else 0.0

    def rounding(self, x: Point, grad: Point, L: float) -> float:
        """Upper bound on the change of F if x changes by its rounding error.

        Near F = 0 this change is larger than the rounding error of F itself.
        """
        slip = ROUNDING * sqrt(norm2(x))
        return slip * (sqrt(norm2(grad)) + L * slip)

    def scatter(self, x: Point, d: Point) -> float:
        """Estimate of the rounding errors of F near x, from second differences of its values along d.

        If F is a difference of terms that are much larger than F, such as the loss log(1 + exp(z)) - log 2 near z = 0, these
        errors are much larger than the machine epsilon times |F|.
        """
        h = min(SCATTER_STEP * sqrt(norm2(x) / norm2(d)), 1 / SCATTER_POINTS)
        values = [value(self.problem, x + i * h * d) for i in range(SCATTER_POINTS)]
        return SCATTER_FACTOR * float(np.abs(np.diff(values, 2)).max())

    def check_smoothness(self, certificate: Certificate) -> None:
        """Check L at convergence, because the run may have converged before it had two gradients to compare.

        The first gradient is taken at the certificate's point x, the second at its prox point. If the prox point equals x, the
        second gradient is taken at the linear oracle's answer.
        """
        if not self.given or not self.problem.objective.smoothness or not fits(self.problem.objective, Objective):
            return
        x, y, grad = certificate.x, certificate.prox, self.problem.objective.grad
        here = Descent(x, grad(x))
        if same_point(x, y):
            y = self.problem.domain.lmo(here.grad)
        there = Descent(y, grad(y))
        self.note(curvature=self.reached.findings.curvature.after(here, there, self.problem.objective))

    def warnings(self, state: Any) -> Iterator[tuple[type[Warning], str]]:
        """Yield the category and the text of each warning of the run."""
        self.collect()
        found = self.reached.findings
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
            times = f" This happened {found.inexact} times in this run." if found.inexact > 1 else ""
            yield InexactOracleWarning, f"{found.sentence}{times} Certificates include the error."

    def warn(self, state: Any) -> tuple[str, ...]:
        """Issue the findings as Python warnings, and return their sentences."""
        found = list(self.warnings(state))
        for category, sentence in found:
            python_warnings.warn(sentence, category, stacklevel=7)  # shows the line that called minimize
        return tuple(sentence for _, sentence in found)


def _max_norm(domain: Any) -> float:
    try:
        return float(domain.max_norm)
    except (NotGiven, AttributeError):
        return 0.0
