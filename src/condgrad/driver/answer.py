"""The end of a run: what it returns, checked, and what it says of it."""

from __future__ import annotations

from dataclasses import asdict
from math import isfinite, nan
from typing import TYPE_CHECKING

from condgrad.certificate import Certificate
from condgrad.checks import FAULTS
from condgrad.driver.metrics import mapping
from condgrad.driver.result import Result
from condgrad.driver.surroundings import threads, versions
from condgrad.protocols import Point, Reason

if TYPE_CHECKING:
    from condgrad.driver.run import _Run


def result(run: _Run, x: Point, fun: float, certificate: Certificate | None, reason: Reason) -> Result:
    return Result(
        x=x,
        fun=fun,
        status=reason.status,
        message=reason.message,
        certificate=certificate,
        counts=asdict(run.counts),
        trace=run.trace,
        steps=0 if run.state is None else run.state.k,
        seconds=run.watch.seconds,
        cpu=run.watch.cpu,
        method=run.name,
        smoothness=nan if run.state is None else run.state.L,
        seed=run.seed,
        spec=run.spec,
        made_with={**versions(), "threads": threads()},
        warnings=(*run.lookout.warn(run.state), *(run.saving.warnings() if run.saving else ())),
    )


def answer(run: _Run, reason: Reason) -> tuple[Point, float, Certificate | None, Reason]:
    """What met the tolerance, or the best certified iterate, verified; else the last one."""
    claimed = run.current if reason.status == "converged" else run.best
    if claimed is not None and run.keep_best:
        try:
            known = run.verified if reason.status == "converged" else None
            verified = known or run.verify(claimed)
            return verified.x, run.value(verified.x), *confirmed(run, reason, verified)
        except FAULTS as error:
            reason = Reason("failed", f"{reason.message} The best certified iterate could not be verified: {error}")
    x, certificate = run.last(), None
    try:
        fun = run.value(x)
        if reason.status == "converged":
            certificate = run.verify(mapping(run.measured, x, 1 / (2 * run.state.L), run.eps))
            certificate, reason = confirmed(run, reason, certificate)
    except FAULTS as error:
        fun, reason = nan, Reason("failed", f"{reason.message} The last iterate could not be evaluated: {error}")
    return x, fun, certificate, reason


def confirmed(run: _Run, reason: Reason, certificate: Certificate) -> tuple[Certificate | None, Reason]:
    """What is known of a point outside of the set is no certificate."""
    if unfit := run.lookout.unfit(certificate, reason.status == "converged"):
        return None, Reason("failed", f"{reason.message} {unfit}")
    return certificate, checked(run, reason, certificate)


def checked(run: _Run, reason: Reason, certificate: Certificate) -> Reason:
    """The reason as it stands after the check of what is returned, and what that is."""
    eps = run.sensible_eps()
    beyond = out_of_precision(certificate, eps) if eps is not None and certificate.floor > eps else None
    pending = run.unconfirmed if reason.status == "out_of_budget" else None
    if pending and run.satisfied(certificate):  # the budget ended between two checks
        reason, pending = pending, None
    if pending or (reason.status == "converged" and not run.satisfied(certificate)):
        found = f"a squared mapping of {certificate.upper:.3g}"
        why = "output='best' returns the iterate that was certified"
        L = run.problem.objective.smoothness
        if L and (seen := run.lookout.smoothness(L)) > L:
            why = (
                f"the smoothness L = {L:.3g} is too small, as the run has seen {seen:.3g}, for which the check was made. Leave "
                f"smoothness out to have it estimated, or give at least {seen:.3g}"
            )
        elif run.keep_best:
            why = "the gradient or the linear oracle is not accurate enough for this tolerance"
        claim = f"{reason.message} {pending.message}" if pending else reason.message
        if run.eps is not None and certificate.upper <= 4 * certificate.floor:  # at least half of the norm is rounding
            return Reason("unverified", f"{claim} {out_of_precision(certificate, run.eps).message}")
        return Reason("unverified", f"{claim} But the check of what is returned found {found}: {why}.")
    if reason.status == "out_of_budget" and beyond:
        reason = Reason(beyond.status, f"{reason.message} {beyond.message}")
    if not run.keep_best:
        return Reason(reason.status, f"{reason.message} Returned: the last iterate.")
    if reason.status == "converged":
        k = run.record.k if run.record else 0
        returned = f"Returned: the iterate that was certified, from step {k}."
        if k <= 1:
            returned += " The start was already within the tolerance: lower tol if F or the set are on another scale."
    else:
        which = "gap" if run.by_gap else "mapping"
        returned = f"Returned: the iterate with the smallest certified {which}, from step {run.best_k}."
        returned += lower_elsewhere(run, certificate)
    return Reason(reason.status, f"{reason.message} {returned}")


def out_of_precision(certificate: Certificate, eps: float) -> Reason:
    """Float64 can't tell whether the squared mapping is at most eps."""
    return Reason(
        "unverified",
        f"Precision is exhausted: rounding alone can make a squared mapping of {certificate.floor:.3g} here, and the tolerance "
        f"is {eps:.3g}. If F has a large linear term that is constant on the set (such as c sum(x) on a simplex), subtract "
        "it; else scale F or the set, or give a larger tol.",
    )


def unchecked(run: _Run, reason: Reason, why: str) -> tuple[Point, float, Certificate | None, Reason]:
    """The result as it stands, where it could not be checked."""
    x = run.best.x if run.best and run.keep_best else run.last()
    message = f"{reason.message} What is returned was not checked, as {why}: it has no certificate."
    return x, nan, None, Reason(reason.status, message)


def lower_elsewhere(run: _Run, certificate: Certificate) -> str:
    """The smallest mapping need not go with the smallest F; where the run is not done, say so."""
    rows = [row for row in run.trace if isfinite(row.fun)]
    if not rows or not run.has_value:
        return ""
    lowest = min(rows, key=lambda row: row.fun)
    if lowest.fun >= run.value(certificate.x):
        return ""
    return f" F was lower at step {lowest.k}, {lowest.fun:.6g}; output='last' returns the last iterate."
