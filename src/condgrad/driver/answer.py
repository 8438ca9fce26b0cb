"""The end of a run: what it returns, checked, and what it says of it."""

from __future__ import annotations

import warnings as python_warnings
from dataclasses import asdict
from math import isfinite, nan
from typing import TYPE_CHECKING

from condgrad.certificate import Certificate
from condgrad.checks import BadOracle
from condgrad.driver.metrics import mapping
from condgrad.driver.result import Result
from condgrad.protocols import Point, Reason

if TYPE_CHECKING:
    from condgrad.driver.run import _Run


class SmoothnessWarning(UserWarning):
    """The smoothness that was given is too small."""


def result(run: _Run, reason: Reason) -> Result:
    x, fun, certificate, reason = answer(run, reason)
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
        warnings=too_small(run),
    )


def answer(run: _Run, reason: Reason) -> tuple[Point, float, Certificate | None, Reason]:
    """What met the tolerance, or the best certified iterate, verified; else the last one."""
    claimed = run.current if reason.status == "converged" else run.best
    if claimed is not None and run.keep_best:
        try:
            known = run.verified if reason.status == "converged" else None
            verified = known or claimed.verify(run.measured)
            return verified.x, run.value(verified.x), verified, checked(run, reason, verified)
        except BadOracle as error:
            reason = Reason("failed", f"{reason.message} The best certified iterate could not be verified: {error}")
    x, certificate = run.x0 if run.state is None else run.state.x, None
    try:
        fun = run.value(x)
        if reason.status == "converged":
            certificate = mapping(run.measured, x, 1 / (2 * run.state.L), run.eps).verify(run.measured)
            reason = checked(run, reason, certificate)
    except BadOracle as error:
        fun, reason = nan, Reason("failed", f"{reason.message} The last iterate could not be evaluated: {error}")
    return x, fun, certificate, reason


def checked(run: _Run, reason: Reason, certificate: Certificate) -> Reason:
    """The reason as it stands after the check of what is returned, and what that is."""
    pending = run.unconfirmed if reason.status == "out_of_budget" else None
    if pending and run.satisfied(certificate):  # the budget ended between two checks
        reason, pending = pending, None
    if pending or (reason.status == "converged" and not run.satisfied(certificate)):
        found = f"a squared mapping of {certificate.upper:.3g}"
        why = (
            "the gradient or the linear oracle is not accurate enough for this tolerance"
            if run.keep_best
            else "output='best' returns the iterate that was certified"
        )
        claim = f"{reason.message} {pending.message}" if pending else reason.message
        return Reason("unverified", f"{claim} But the check of what is returned found {found}: {why}.")
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


def lower_elsewhere(run: _Run, certificate: Certificate) -> str:
    """The smallest mapping need not go with the smallest F; where the run is not done, say so."""
    rows = [row for row in run.trace if isfinite(row.fun)]
    if not rows or not run.has_value:
        return ""
    lowest = min(rows, key=lambda row: row.fun)
    if lowest.fun >= run.value(certificate.x):
        return ""
    return f" F was lower at step {lowest.k}, {lowest.fun:.6g}; output='last' returns the last iterate."


def too_small(run: _Run) -> tuple[str, ...]:
    if run.state is None or run.curvature.largest <= run.state.L * (1 + 1e-6):
        return ()
    L, seen = run.state.L, run.curvature.largest
    sentence = (
        f"The smoothness L = {L:.3g} is too small: between two points of the run the gradient changed by "
        f"{seen:.3g} times their distance, so the method's guarantees do not hold. "
        f"Leave smoothness out to have it estimated, or give at least {seen:.3g}."
    )
    python_warnings.warn(sentence, SmoothnessWarning, stacklevel=6)  # the line that called minimize
    return (sentence,)
