"""The class `Observer`: after each step it makes a row of the trace, with F, the Frank-Wolfe gap and the gradient mapping."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, isfinite, nan
from typing import Any, NamedTuple

from condgrad.certificate import Certificate, linear_gap, witness
from condgrad.checks import NonFinite
from condgrad.driver.asked import Asked
from condgrad.driver.audit import Audit, next_check_after
from condgrad.driver.metrics import function_name, mapping, value
from condgrad.driver.reached import Reached
from condgrad.points.rounding import grad_scale, mapping_rounding, precision
from condgrad.protocols import Point, Record
from condgrad.solvers.evaluation import same_point


def phase_of(state: Any) -> str:
    """The name of the phase of the run to which the state belongs, such as "warm-start" or "main"."""
    return str(getattr(state, "phase", "main"))


class Gap(NamedTuple):
    """An upper bound on a Frank-Wolfe gap, and the rounding error that it includes."""

    value: float
    noise: float


@dataclass(frozen=True, eq=False)
class Observer:
    """Measures the iterates of a run. The oracle calls for this are not counted, and the clock of the run is paused."""

    asked: Asked
    reached: Reached
    audit: Audit

    def observe(self, state: Any, last: bool = False) -> Record:
        """Measure a state, and store the best certificate and the lowest F so far. ``last`` tells whether the run has ended."""
        asked, reached = self.asked, self.reached
        self.learn(state)
        fun = self.value(state.x) if state.k % asked.every == 0 else nan
        reached.keep_lowest(state.x, fun, state.k)
        if getattr(state, "fun", None) is not None:  # F is known from the solver, also if this step is not recorded
            reached.keep_lowest(state.x, float(state.fun), state.k)
        reached.current = certificate = self.certify(state, last)
        gap = upper = lower = nan
        if certificate is not None:
            gap, upper, lower = self.gap(certificate, state.k), certificate.upper, certificate.lower
            start = reached.state
            before = start is not None and certificate.x is start.x  # a step may certify the point it started from
            reached.current_k = start.k if before else state.k
            if reached.best is None or asked.rank(certificate) < asked.rank(reached.best):
                reached.best, reached.best_k = certificate, reached.current_k
        return Record(
            k=state.k,
            **reached.spent(),
            fun=fun,
            gap=gap,
            mapping=upper,
            mapping_lower=lower,
            smoothness=state.L,
            phase=phase_of(state),
        )

    def learn(self, state: Any) -> None:
        """Store the values of F that the solver has computed, if the state has any."""
        if getattr(state, "fun", None) is not None:
            self.reached.known.append((state.x, float(state.fun)))
        if getattr(state, "descent_fun", None) is not None:
            self.reached.known.append((state.descent.x, float(state.descent_fun)))

    def value(self, x: Point) -> float:
        """F(x), or NaN if F is an expectation. Raises NonFinite if F(x) is not finite."""
        if not self.asked.has_value:
            return nan
        fun = self.look_up(x)
        if not isfinite(fun):
            raise NonFinite(f"The value of {type(self.asked.problem.objective).__name__} is {fun}.")
        return fun

    def look_up(self, x: Point) -> float:
        """F(x), computed only if it is not among the known values."""
        known = self.reached.known
        for point, fun in known:
            if point is x:  # the usual case, which needs no comparison of entries
                return fun
        found = next((fun for point, fun in known if same_point(point, x)), None)
        fun = value(self.asked.problem, x) if found is None else found
        known.append(
            (x, fun)
        )  # also if an equal point is in the list, because the list may drop that point earlier than x
        return fun

    def certify(self, state: Any, last: bool = False) -> Certificate | None:
        """The certificate that the step computed, or a measured certificate if a measurement is due; otherwise None.

        If the certificate of a step has an infinite gap, the method has not computed the gap, because this is expensive, and will
        compute it in a later step. The driver does not measure such a step either, unless it is the ``last`` step of the run.
        """
        asked, own = self.asked, state.certificate
        if not asked.checked:
            return None
        if own is not None and not asked.measure and not (asked.by_gap and own.prox is not own.x):
            if own.gap < inf:
                return self.with_errors(own, state.descent)
            if not last:
                return None
        if phase_of(state) == "warm-start":
            if not asked.measure or not isfinite(state.L):
                return None
        elif state.k < self.reached.next_measure or (state.k == 0 and not asked.measure):
            return None
        else:
            self.reached.next_measure = next_check_after(state.k)
        gamma = 1 / (2 * (state.L if isinstance(asked.measure, bool) else asked.measure))
        if asked.by_gap:
            return witness(asked.measured, state.x, state.x, gamma, function_name(asked.measured))
        return mapping(asked.measured, state.x, gamma, asked.eps, exact=bool(asked.measure))

    def with_errors(self, own: Certificate, descent: Any) -> Certificate:
        """Add the error of the linear oracle and the rounding error of the mapping to the certificate ``own`` of a step."""
        rounding, objective = own.rounding, self.asked.problem.objective
        if descent is not None and descent.x is own.x:
            known = precision(objective, descent.grad)
            terms, gamma = grad_scale(objective, own.x), min(own.gamma, own.step or own.gamma)
            rounding = mapping_rounding(descent.grad, own.x, own.prox, gamma, known, terms)
        return replace(own, gap=own.gap + self.audit.error, rounding=rounding)

    def gap(self, certificate: Certificate, k: int) -> float:
        """The Frank-Wolfe gap at the certificate's point; NaN if it is neither part of the certificate nor measured.

        The gap is measured only if the stopping rule uses it, and then at growing intervals.
        """
        if "gap" not in self.asked.watches or certificate.prox is certificate.x or k < self.reached.next_gap:
            return certificate.wolfe_gap
        self.reached.next_gap = next_check_after(k)
        gap, self.reached.gap_noise = self.gap_at(certificate)
        return gap

    def gap_at(self, certificate: Certificate) -> Gap:
        """The Frank-Wolfe gap at the certificate's point: the certificate's gap if it is a Frank-Wolfe gap, else computed."""
        if certificate.prox is certificate.x:
            return Gap(certificate.gap, certificate.noise)
        measured = self.asked.measured
        return Gap(*linear_gap(measured.domain, measured.objective.grad(certificate.x), certificate.x))
