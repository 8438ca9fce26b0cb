"""Verification of certificates. Before a run relies on a certificate of its method, the driver computes the certificate again."""

from __future__ import annotations

from dataclasses import dataclass, replace
from itertools import chain
from math import inf, isfinite, nan, sqrt

from condgrad.certificate import Certificate
from condgrad.driver.asked import Asked
from condgrad.driver.audit import Audit, next_check_after
from condgrad.driver.finer_witness import finer_witness
from condgrad.driver.observation import Observer
from condgrad.driver.reached import Reached
from condgrad.driver.vertices import Compared, probe
from condgrad.points import norm2
from condgrad.points.rounding import UNIT_ROUNDOFF
from condgrad.protocols import Reason
from condgrad.solvers.evaluation import same_point

MAX_STEP_RATIO = 10.0
"""Maximum ratio of a certificate's step size to 1/(2L) if the user gave no L. A lower bound from two gradients then takes the
place of L."""
MIN_RELATIVE_TOLERANCE = 1e-15
"""Minimum ratio of a tolerance to the first measurement. A smaller tolerance can't be met in float64."""
WITNESS_ROUNDING = 30 * UNIT_ROUNDOFF
"""Relative error that rounding may cause in a witness."""
GAP_ROUNDING = 3
"""If a gap is at most this factor times its rounding error, it can't be distinguished from 0; see ``Certificate.exhausted``."""


@dataclass(eq=False)
class Verifier:
    """Verifies the certificates of a run. A run ends as converged only if the verified certificate meets the stopping rule."""

    asked: Asked
    reached: Reached
    audit: Audit
    observer: Observer
    verified: Certificate | None = None
    """The verified certificate that proves convergence; None until then."""

    def verify(self, claim: Certificate) -> Certificate:
        """Compute a certificate of the method (``claim``) again, by the problem's own oracles, which no solver has wrapped.

        The step size is reduced to 1/(2L) if it is larger, because a long step makes the mapping of any point small. L is the
        problem's own constant, or a larger lower bound that the run has measured.
        """
        L = self.asked.problem.objective.smoothness
        L = self.audit.smoothness(L) if L else self.least_smoothness(claim)
        if L and claim.gamma > (1 + 1e-9) / (2 * L):
            claim = replace(claim, gamma=1 / (2 * L), step=claim.step or claim.gamma)
        verified = self.audit.with_slack(claim.verify(self.asked.measured))
        eps = self.asked.eps or 0.0
        if verified.upper <= eps:
            return verified
        if claim.step is None:
            return self.refined(verified) if verified.floor <= eps and verified.norm**2 <= eps else verified
        # a long step magnifies rounding errors; the prox point is a valid witness for every step size, so gamma is tried too
        short = self.audit.with_slack(replace(claim, step=None).verify(self.asked.measured))
        return min(verified, short, key=self.asked.rank)

    def refined(self, verified: Certificate) -> Certificate:
        """The certificate with a witness that has fewer rounding errors, if there is one and the certificate is better."""
        measured, x = self.asked.measured, verified.x
        prox = finer_witness(self.asked.problem.domain, measured.objective.grad(x), x, verified.prox, verified.gamma)
        if prox is None:
            return verified
        finer = self.audit.with_slack(replace(verified, prox=prox).verify(measured))
        return min(verified, finer, key=self.asked.rank)

    def least_smoothness(self, claim: Certificate) -> float:
        """Lower bound on L from the gradients at the two points of a certificate, divided by MAX_STEP_RATIO.

        If the two points are equal, the linear oracle's answer replaces the second point. The bound is used if L is not given,
        because a solver may have estimated an L that is far too small. The bound is divided by MAX_STEP_RATIO, because solvers
        estimate L from values, which may show less curvature than gradients.
        """
        measured = self.asked.measured
        x, y, grad = claim.x, claim.prox, measured.objective.grad
        here = grad(x)
        if same_point(x, y):  # as in a certificate of Frank-Wolfe
            y = measured.domain.lmo(here)
        apart = sqrt(norm2(x - y))
        found = sqrt(norm2(here - grad(y))) / apart if apart else 0.0
        return found / MAX_STEP_RATIO if isfinite(found) else 0.0

    def probed(self, certificate: Certificate, brief: bool = False) -> Certificate:
        """Test a user's linear oracle with more directions. If its answers reveal an error, add the error to the gap."""
        domain = self.asked.problem.domain
        if not isinstance(domain, Compared):
            return certificate
        x, prox, taken = certificate.x, certificate.prox, certificate.step or certificate.gamma
        direction = self.asked.measured.objective.grad(x) + (1 / taken) * (prox - x)
        error = probe(domain, direction, (x,) if prox is x else (x, prox), brief)
        return replace(certificate, gap=certificate.gap + error) if error else certificate

    def confirmed(self, ending: Reason | None, k: int) -> Reason | None:
        """Check the ending "converged". All other endings are returned unchecked.

        If the check confirms convergence, the ending is returned. If not, the run may have another reason to end: float64 may be
        too coarse for the tolerance, or another part of the stopping rule may be met. This reason is returned, or None if there
        is none.
        """
        reached = self.reached
        if ending is None or ending.status != "converged" or reached.current is None or not self.asked.keep_best:
            return ending
        if k >= reached.next_check:
            self.audit.check_smoothness(reached.current)
            verified = self.verify(reached.current)
            if self.satisfied(verified):
                verified = self.probed(verified)
            if self.satisfied(verified):
                self.verified = verified
                return ending
            reached.best, reached.best_k = verified, reached.current_k
            again = reached.unconfirmed is not None
            reached.unconfirmed, reached.next_check = ending, next_check_after(k)
            if beyond := self.beyond_precision(verified) or (self.beyond_witness(verified) if again else None):
                return beyond
        return self.asked.stop(replace(reached.record, mapping=nan, gap=nan), reached.trace) if reached.record else None

    def exhausted(self, k: int) -> Reason | None:
        """The ending at a point that is stationary up to rounding errors; None if more steps may lead to a smaller mapping.

        The ending is ``converged`` if the verified certificate meets the stopping rule. (The bound on the rounding errors may be
        smaller in the verified certificate than in the certificate of the method.) The ending is ``unverified`` if the tolerance
        requires more precision than float64 has.
        """
        reached, claim = self.reached, self.reached.current
        if claim is None or not self.asked.keep_best or k < reached.next_check:
            return None
        if not self.near_rounding(claim) and not self.gap_near_rounding(claim):
            return None
        verified = self.verify(claim)
        if self.satisfied(verified):
            verified = self.probed(verified)
        if ending := self.met(verified):
            self.verified = verified
        elif ending := self.beyond_precision(verified):
            reached.best, reached.best_k = verified, reached.current_k
        reached.next_check = k if ending else next_check_after(k)
        return ending

    def near_rounding(self, claim: Certificate) -> bool:
        """Whether the mapping of a certificate is above the tolerance, but by at most its rounding error."""
        if self.asked.by_gap or (eps := self.sensible("mapping", self.asked.eps)) is None:
            return False
        rough = claim.stretch / claim.gamma * claim.rounding * sqrt(norm2(claim.prox))
        close = claim.stretch * claim.norm <= sqrt(eps) + claim.stretch * claim.rounding
        return claim.upper > eps and rough > eps and close

    def gap_near_rounding(self, claim: Certificate) -> bool:
        """Whether the Frank-Wolfe gap is above the tolerance, but at most ``GAP_ROUNDING`` times its rounding error."""
        record = self.reached.record
        if record is None or not isfinite(record.gap):
            return False
        if (eps := self.sensible("gap", self.asked.gap_eps)) is None or record.gap <= eps:
            return False
        noise = claim.noise if claim.prox is claim.x else self.reached.gap_noise
        return noise > eps and record.gap <= GAP_ROUNDING * noise

    def sensible(self, measure: str, eps: float | None) -> float | None:
        """The tolerance of a measure; None if it is too small for float64, relative to the first measurement.

        Users give such a small tolerance if only a budget should end the run.
        """
        if eps is None:
            return None
        rows = chain(self.reached.trace, (self.reached.record,))  # the present record joins the trace later
        values = (getattr(row, measure) for row in rows if row is not None)
        first = next((value for value in values if isfinite(value)), nan)
        return None if eps < MIN_RELATIVE_TOLERANCE * first else eps

    def beyond_precision(self, certificate: Certificate, mostly: bool = False) -> Reason | None:
        """The reason to end if float64 is too coarse to decide whether a verified point meets the stopping rule; otherwise None.

        Parameters
        ----------
        certificate : Certificate
            A verified certificate.
        mostly : bool, default False
            Whether it is enough that rounding errors make up a quarter of the bound on the squared mapping, that is, half of the
            bound on the norm of the mapping. True for the message of a run that ends for another reason.
        """
        record, found = self.reached.record, {}
        eps, floor = self.sensible("mapping", self.asked.eps), certificate.floor
        if eps is not None and (certificate.exhausted(eps) or (mostly and eps < floor >= certificate.upper / 4)):
            found["mapping"] = out_of_precision("squared mapping", floor, eps)
        gap_eps = self.sensible("gap", self.asked.gap_eps)
        if gap_eps is not None:
            gap, noise = self.observer.gap_at(certificate)
            if gap_eps < noise and gap <= (4 if mostly else GAP_ROUNDING) * noise:
                found["gap"] = out_of_precision("Frank-Wolfe gap", noise, gap_eps)
        if not found or record is None:
            return None
        mapping = 0.0 if eps is not None and "mapping" not in found else inf
        gap = 0.0 if gap_eps is not None and "gap" not in found else inf
        hope = self.asked.stop(replace(record, mapping=mapping, gap=gap), self.reached.trace)
        if hope is not None and hope.status == "converged":  # the other measure (mapping or gap) may meet its tolerance
            return None
        return next(iter(found.values()))

    def beyond_witness(self, certificate: Certificate) -> Reason | None:
        """The reason to end if a point does not pass the check only because of rounding errors of the witness p; otherwise None.

        The direction of the gap is grad F(x) + (p - x)/step. Rounding errors of x and p change this direction by up to
        WITNESS_ROUNDING (|x| + |p|) / step. They change the gap by up to this number times the size of the set, which is
        estimated by |p|. Every other witness in float64 has rounding errors of this size too.
        """
        eps = self.sensible("mapping", self.asked.eps)
        if eps is None or self.asked.by_gap or certificate.norm**2 > eps:
            return None
        direction = (
            WITNESS_ROUNDING
            * (sqrt(norm2(certificate.x)) + sqrt(norm2(certificate.prox)))
            / (certificate.step or certificate.gamma)
        )
        if certificate.gap > GAP_ROUNDING * certificate.noise + direction * sqrt(norm2(certificate.prox)):
            return None
        rounded = replace(certificate, noise=max(certificate.gap, certificate.noise))
        return out_of_precision("squared mapping", rounded.floor, eps) if rounded.floor > eps else None

    def satisfied(self, certificate: Certificate) -> bool:
        """Whether the stopping rule returns ``converged`` for the verified measures, but not for infinite measures."""
        return self.met(certificate) is not None

    def met(self, certificate: Certificate) -> Reason | None:
        """The ending ``converged`` that the stopping rule returns for the verified measures; None if ``satisfied`` is False."""
        record, stop, trace = self.reached.record, self.asked.stop, self.reached.trace
        if record is None:
            return None
        again = stop(replace(record, mapping=certificate.upper, gap=self.watched_gap(certificate)), trace)
        blind = stop(replace(record, mapping=inf, gap=inf), trace)
        claims = again is not None and again.status == "converged" and (blind is None or blind.status != "converged")
        return again if claims else None

    def restated(self, reason: Reason, certificate: Certificate) -> Reason:
        """The reason with the verified measures in its message, so that the message agrees with the verified certificate."""
        record = self.reached.record
        if record is None:
            return reason
        numbers = replace(record, mapping=certificate.upper, gap=self.watched_gap(certificate))
        checked = self.asked.stop(numbers, self.reached.trace)
        return checked if checked is not None and checked.status == "converged" else reason

    def watched_gap(self, certificate: Certificate) -> float:
        """The Frank-Wolfe gap at the certificate's point; NaN if the stopping rule does not use the gap."""
        return self.observer.gap_at(certificate).value if "gap" in self.asked.watches else nan


def out_of_precision(what: str, rounding: float, eps: float) -> Reason:
    """The reason to end if float64 is too coarse to decide whether a measure is at most eps."""
    return Reason(
        "unverified",
        f"Precision is exhausted: the rounding error of the {what} can be {rounding:.3g} here, and the tolerance "
        f"is {eps:.3g}. If F has a large linear term that is constant on the set (such as c sum(x) on a simplex), subtract "
        "it; else scale F or the set, or give a larger tol.",
    )
