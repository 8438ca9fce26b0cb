"""The end of a run: measures the last iterate, checks the point that is returned, and writes the message of the result."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import asdict
from math import inf, nan
from typing import TYPE_CHECKING, Any

from condgrad.certificate import Certificate
from condgrad.checks import FAULTS
from condgrad.driver.environment import threads, versions
from condgrad.driver.metrics import function_name, mapping
from condgrad.driver.result import Result
from condgrad.driver.stopping import Seconds
from condgrad.driver.verification import out_of_precision
from condgrad.inner import inner_name
from condgrad.protocols import BudgetEnd, Point, Reason
from condgrad.runtime.interruption import describe_interruption

if TYPE_CHECKING:
    from condgrad.driver.run import Loop

FINAL = ("converged", "failed", "interrupted")
"""If a run ends with one of these statuses, the last iterate is not measured: its measures are known already (converged), they
can't be computed (failed), or there is no time to compute them (interrupted)."""
GRACE_SHARE = 0.1
"""Maximum time that the last measurement may take after the deadline, as a share of the time limit."""


def finish(run: Loop, reason: Reason) -> Result:
    """Make the result of a run that has ended: measure the last iterate, and check the point to return.

    If memory runs out during the check, the point is returned unchecked.
    """
    reason = measure_last(run, reason)
    run.reached.close_trace()
    try:
        found = choose_returned(run, reason)
    except MemoryError:
        found = unchecked(run, Reason("failed", reason.message), "memory ran out")
    return result(run, *found)


def interrupted(run: Loop, interruption: KeyboardInterrupt) -> Result:
    """Make the result of an interrupted run, without a check of the returned point."""
    run.reached.close_trace()
    reason = Reason("interrupted", describe_interruption(interruption))
    return result(run, *unchecked(run, reason, "the run was interrupted"))


def result(run: Loop, x: Point, fun: float, certificate: Certificate | None, reason: Reason) -> Result:
    asked, reached = run.asked, run.reached
    return Result(
        x=x,
        fun=fun,
        status=reason.status,
        message=reason.message,
        certificate=certificate,
        counts=asdict(reached.counts),
        trace=reached.trace,
        steps=0 if reached.state is None else max(reached.state.k, 0),
        seconds=reached.watch.seconds,
        cpu=reached.watch.cpu,
        method=asked.name,
        smoothness=nan if reached.state is None else reached.state.L,
        seed=asked.seed,
        spec=asked.spec,
        made_with={**versions(), "threads": threads()},
        warnings=(*run.audit.warn(reached.state), *(run.saving.warnings() if run.saving else ())),
        inner=inner_of(asked.solver),
        lowest=reached.lowest,
    )


def measure_last(run: Loop, reason: Reason) -> Reason:
    """Measure the last iterate, unless it was measured. Returns "converged" if it meets the stopping rule, else ``reason``."""
    asked, reached, state = run.asked, run.reached, run.reached.state
    if state is None or state.k <= 0 or reached.current is not None or not asked.keep_best or reason.status in FINAL:
        return reason
    if not asked.measure and state.certificate is not None and state.certificate.gap < inf:
        return reason
    reached.next_measure = 0
    try:
        with grace(run):
            reached.record = run.observer.observe(state, last=True)
    except (*FAULTS, MemoryError, BudgetEnd):
        return reason
    reached.trace.amend(reached.record)
    ending = asked.stop(reached.record, reached.trace)
    return ending if ending is not None and ending.status == "converged" else reason


@contextmanager
def grace(run: Loop) -> Iterator[None]:
    """Context that allows a measurement after the deadline of the run, for up to a tenth of its time limit."""
    deadlines = [budget.limit for budget in run.asked.budgets if isinstance(budget, Seconds)]
    run.deadline = run.reached.watch.wall + GRACE_SHARE * min(deadlines, default=inf)
    try:
        yield
    finally:
        run.deadline = inf


def hurried(run: Loop, reason: Reason) -> bool:
    """Whether the run was interrupted, or a deadline has passed."""
    wall = run.reached.watch.wall
    late = any(isinstance(budget, Seconds) and wall > budget.limit for budget in run.asked.budgets)
    return late or reason.status == "interrupted"


def certify_last(run: Loop, x: Point, reason: Reason) -> Certificate:
    """Certify a point that has no certificate.

    The gradient mapping at the point is measured. If there is no time for this, the point is certified by its Frank-Wolfe gap,
    which takes one linear oracle call.
    """
    asked, verifier = run.asked, run.verifier
    gamma = 1 / (2 * run.reached.state.L)
    if reason.status != "interrupted":
        try:
            with grace(run):
                claim = mapping(asked.measured, x, gamma, asked.eps)
            if reason.status == "converged":
                run.audit.check_smoothness(claim)
            return verifier.probed(verifier.verify(claim), hurried(run, reason))
        except BudgetEnd:
            pass
    claim = Certificate(x, x, gamma, inf, on=function_name(asked.measured))
    return verifier.probed(verifier.verify(claim), brief=True)


def fallback_point(run: Loop) -> Point:
    """The point to return if there is no certificate: the iterate with the lowest F (``output="lowest"``) or the last iterate."""
    if run.asked.output == "lowest" and run.reached.lowest is not None:
        return run.reached.lowest.x
    return run.asked.x0 if run.reached.state is None else run.reached.state.x


def inner_of(solver: Any) -> str | None:
    """The name of a method's inner solver, also if the method is wrapped by backtracking or by a warm start."""
    while hasattr(solver, "solver"):
        solver = solver.solver
    return inner_name(solver.inner) if hasattr(solver, "inner") else None


def choose_returned(run: Loop, reason: Reason) -> tuple[Point, float, Certificate | None, Reason]:
    """Choose the point to return. Returns the point, its value F, its certificate, and the reason for the ending.

    With ``output="best"`` the point is the iterate that met the tolerance, or else the iterate with the best certificate. The
    certificate is verified. If there is no certificate, or with another ``output``, the point is the last iterate or the iterate
    with the lowest F.
    """
    if run.audit.refuted:
        return uncertified(run, reason)
    claimed = run.reached.current if reason.status == "converged" else run.reached.best
    if claimed is not None and run.asked.keep_best:
        try:
            known = run.verifier.verified if reason.status == "converged" else None
            verified = known or run.verifier.probed(run.verifier.verify(claimed), hurried(run, reason))
            fun = run.observer.value(verified.x)
            step = run.reached.current_k if reason.status == "converged" else run.reached.best_k
            run.reached.keep_lowest(verified.x, fun, step)
            return verified.x, fun, *check_certificate(run, reason, verified)
        except FAULTS as error:
            if run.audit.refuted:
                return uncertified(run, Reason("failed", f"{reason.message} {error}"))
            reason = Reason("failed", f"{reason.message} The best certified iterate could not be verified: {error}")
    try:
        update_lowest(run, reason)
    except (*FAULTS, MemoryError):  # then the iterate with the lowest F known so far is returned
        pass
    x, fun, certificate = fallback_point(run), nan, None
    lowest = run.reached.lowest if run.asked.output == "lowest" else None
    which = "iterate with the lowest F" if lowest else "last iterate"
    try:
        fun = lowest.fun if lowest else run.observer.value(x)
        if reason.status == "converged" or lowest:
            certificate = certify_last(run, x, reason)
            certificate, reason = check_certificate(run, reason, certificate)
    except FAULTS as error:
        if run.audit.refuted:
            return uncertified(run, Reason("failed", f"{reason.message} {error}"))
        reason = Reason("failed", f"{reason.message} The {which} could not be evaluated: {error}")
    return x, fun, certificate, reason


def update_lowest(run: Loop, reason: Reason) -> None:
    """Compare F at the last iterate, and at the iterate that met the tolerance, with the lowest F so far.

    The run may not have recorded F at these two iterates.
    """
    reached, value = run.reached, run.observer.value
    if reached.state is not None and run.asked.has_value:
        reached.keep_lowest(reached.state.x, value(reached.state.x), reached.state.k)
        if reason.status == "converged" and reached.current is not None:
            reached.keep_lowest(reached.current.x, value(reached.current.x), reached.current_k)


def uncertified(run: Loop, reason: Reason) -> tuple[Point, float, None, Reason]:
    """The point to return if the linear oracle was shown to be wrong. It has no certificate, which would rely on the oracle."""
    x = run.reached.best.x if run.reached.best and run.asked.keep_best else fallback_point(run)
    message = f"{reason.message} The returned point has no certificate, which would rely on that oracle."
    try:
        return x, run.observer.value(x), None, Reason("failed", message)
    except FAULTS as error:
        return x, nan, None, Reason("failed", f"{message} F could not be evaluated there: {error}")


def check_certificate(run: Loop, reason: Reason, certificate: Certificate) -> tuple[Certificate | None, Reason]:
    """Check a certificate and the reason for the ending.

    Returns the certificate (None if one of its points is outside of the set), and the reason after the check.
    """
    if unfit := run.audit.outside_sentence(certificate, reason.status == "converged"):
        return None, Reason("failed", f"{reason.message} {unfit}")
    return certificate, final_reason(run, reason, certificate)


def final_reason(run: Loop, reason: Reason, certificate: Certificate) -> Reason:
    """The reason for the ending, after the check of the returned point. Its message also states which iterate is returned."""
    pending = run.reached.unconfirmed if reason.status == "out_of_budget" else None
    # if the tolerance was met, but the budget ended before the next check
    if pending and run.verifier.satisfied(certificate):
        reason, pending = pending, None
    if pending or (reason.status == "converged" and not run.verifier.satisfied(certificate)):
        return not_confirmed(run, reason, certificate)
    if reason.status == "out_of_budget" and (beyond := run.verifier.beyond_precision(certificate, mostly=True)):
        reason = Reason(beyond.status, f"{reason.message} {beyond.message}")
    if reason.status == "converged":
        reason = run.verifier.restated(reason, certificate)
    if run.asked.output == "lowest" and run.reached.lowest is not None:
        returned = f"Returned: the iterate with the lowest F that is known, from step {run.reached.lowest.step}."
        return Reason(reason.status, f"{reason.message} {returned}")
    if not run.asked.keep_best:
        return Reason(reason.status, f"{reason.message} Returned: the last iterate.")
    if reason.status == "converged":
        returned = f"Returned: the iterate that was certified, from step {run.reached.current_k}."
        if run.reached.record is None or run.reached.record.k <= 1:
            returned += (
                " The start was already within the tolerance: give a smaller tol if this is not accurate enough."
            )
    else:
        which = "gap" if run.asked.by_gap else "mapping"
        returned = f"Returned: the iterate with the smallest certified {which}, from step {run.reached.best_k}."
        returned += lower_elsewhere(run, certificate)
    return Reason(reason.status, f"{reason.message} {returned}")


def not_confirmed(run: Loop, reason: Reason, certificate: Certificate) -> Reason:
    """The reason for the ending if the check did not confirm convergence. Its message states the verified bound."""
    ended = f"{reason.message} " if reason.status == "out_of_budget" else ""
    beyond = run.verifier.beyond_precision(certificate, mostly=True)
    if (
        run.asked.eps is not None and certificate.upper <= 4 * certificate.floor
    ):  # rounding errors make up at least half of the bound on the norm
        beyond = out_of_precision("squared mapping", certificate.floor, run.asked.eps)
    if beyond:
        return Reason("unverified", f"{ended}{beyond.message}")
    why = "output='best' returns the iterate that was certified"
    L = run.asked.problem.objective.smoothness
    if L and (seen := run.audit.smoothness(L)) > L:
        why = (
            f"the smoothness L = {L:.3g} is too small: the run has measured {seen:.3g}, which the check used. Leave "
            f"smoothness out to have it estimated, or give at least {seen:.3g}"
        )
    elif run.asked.keep_best:
        why = "the gradient or the linear oracle is not accurate enough for this tolerance"
    found = [] if run.asked.by_gap else [f"a squared mapping of {certificate.upper:.3g}{tolerated(run.asked.eps)}"]
    if "gap" in run.asked.watches:
        found.append(f"a Frank-Wolfe gap of {run.observer.gap_at(certificate).value:.3g}{tolerated(run.asked.gap_eps)}")
    return Reason(
        "unverified",
        f"{ended}The method's own bound met the stopping rule. But the check of the returned point found {' and '.join(found)}: "
        f"{why}.",
    )


def tolerated(eps: float | None) -> str:
    return "" if eps is None else f" (tolerance {eps:.3g})"


def unchecked(run: Loop, reason: Reason, why: str) -> tuple[Point, float, Certificate | None, Reason]:
    """The point to return, without a certificate, if there was no time or memory to check it."""
    x = run.reached.best.x if run.reached.best and run.asked.keep_best else fallback_point(run)
    message = f"{reason.message} The returned point was not checked, because {why}: it has no certificate."
    return x, nan, None, Reason(reason.status, message)


def lower_elsewhere(run: Loop, certificate: Certificate) -> str:
    """Sentence that names the step at which F was lower than at the returned point; "" if there is no such step."""
    lowest = run.reached.lowest
    if lowest is None or lowest.fun >= run.observer.value(certificate.x):
        return ""
    # ncgs-ii certifies a point within a step, so the returned point and the lowest one may have the same step number
    where = f"at step {lowest.step}" if lowest.step != run.reached.best_k else "at the end of that step"
    return f" F was lower {where}, {lowest.fun:.6g}: see result.lowest, or ask for output='lowest'."
