"""The end of a run: what it returns, checked, and what it says of it."""

from __future__ import annotations

from dataclasses import asdict
from math import nan
from typing import TYPE_CHECKING, Any

from condgrad.certificate import Certificate
from condgrad.checks import FAULTS
from condgrad.driver.environment import threads, versions
from condgrad.driver.result import Result
from condgrad.inner import inner_name
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
        inner=inner_of(run.solver),
        lowest=run.lowest,
    )


def inner_of(solver: Any) -> str | None:
    """The name of the solver's inner solver, also where backtracking or a warm start is wrapped around it."""
    while hasattr(solver, "solver"):
        solver = solver.solver
    return inner_name(solver.inner) if hasattr(solver, "inner") else None


def answer(run: _Run, reason: Reason) -> tuple[Point, float, Certificate | None, Reason]:
    """What met the tolerance, or the best certified iterate, verified; else the last one, or the one with the lowest F."""
    if run.lookout.refuted:
        return uncertified(run, reason)
    claimed = run.current if reason.status == "converged" else run.best
    if claimed is not None and run.keep_best:
        try:
            known = run.verified if reason.status == "converged" else None
            verified = known or run.probed(run.verify(claimed), run.hurried(reason))
            fun = run.value(verified.x)
            run.keep_lowest(verified.x, fun, run.current_k if reason.status == "converged" else run.best_k)
            return verified.x, fun, *confirmed(run, reason, verified)
        except FAULTS as error:
            if run.lookout.refuted:
                return uncertified(run, Reason("failed", f"{reason.message} {error}"))
            reason = Reason("failed", f"{reason.message} The best certified iterate could not be verified: {error}")
    try:
        offer(run, reason)
    except (*FAULTS, MemoryError):  # what is known already is what there is
        pass
    x, fun, certificate = run.last(), nan, None
    lowest = run.lowest if run.output == "lowest" else None
    which = "iterate with the lowest F" if lowest else "last iterate"
    try:
        fun = lowest.fun if lowest else run.value(x)
        if reason.status == "converged" or lowest:
            certificate = run.certify_at_the_end(x, reason)
            certificate, reason = confirmed(run, reason, certificate)
    except FAULTS as error:
        if run.lookout.refuted:
            return uncertified(run, Reason("failed", f"{reason.message} {error}"))
        reason = Reason("failed", f"{reason.message} The {which} could not be evaluated: {error}")
    return x, fun, certificate, reason


def offer(run: _Run, reason: Reason) -> None:
    """The last iterate, and the one that met the tolerance, may have the lowest F; between two records it is not known."""
    if run.state is not None and run.has_value:
        run.keep_lowest(run.state.x, run.value(run.state.x), run.state.k)
        if reason.status == "converged" and run.current is not None:
            run.keep_lowest(run.current.x, run.value(run.current.x), run.current_k)


def uncertified(run: _Run, reason: Reason) -> tuple[Point, float, None, Reason]:
    """The iterate without a certificate, where the linear oracle was shown to be wrong: every certificate rests on it."""
    x = run.best.x if run.best and run.keep_best else run.last()
    message = f"{reason.message} It has no certificate, which would rest on that oracle."
    try:
        return x, run.value(x), None, Reason("failed", message)
    except FAULTS as error:
        return x, nan, None, Reason("failed", f"{message} It could not be evaluated: {error}")


def confirmed(run: _Run, reason: Reason, certificate: Certificate) -> tuple[Certificate | None, Reason]:
    """What is known of a point outside of the set is no certificate."""
    if unfit := run.lookout.unfit(certificate, reason.status == "converged"):
        return None, Reason("failed", f"{reason.message} {unfit}")
    return certificate, checked(run, reason, certificate)


def checked(run: _Run, reason: Reason, certificate: Certificate) -> Reason:
    """The reason as it stands after the check of what is returned, and what that is."""
    pending = run.unconfirmed if reason.status == "out_of_budget" else None
    if pending and run.satisfied(certificate):  # the budget ended between two checks
        reason, pending = pending, None
    if pending or (reason.status == "converged" and not run.satisfied(certificate)):
        return not_confirmed(run, reason, certificate)
    if reason.status == "out_of_budget" and (beyond := run.beyond_precision(certificate, mostly=True)):
        reason = Reason(beyond.status, f"{reason.message} {beyond.message}")
    if reason.status == "converged":
        reason = run.restated(reason, certificate)
    if run.output == "lowest" and run.lowest is not None:
        returned = f"Returned: the iterate with the lowest F that is known, from step {run.lowest.step}."
        return Reason(reason.status, f"{reason.message} {returned}")
    if not run.keep_best:
        return Reason(reason.status, f"{reason.message} Returned: the last iterate.")
    if reason.status == "converged":
        returned = f"Returned: the iterate that was certified, from step {run.current_k}."
        if run.record is None or run.record.k <= 1:
            returned += " The start was already within the tolerance: lower tol if F or the set are on another scale."
    else:
        which = "gap" if run.by_gap else "mapping"
        returned = f"Returned: the iterate with the smallest certified {which}, from step {run.best_k}."
        returned += lower_elsewhere(run, certificate)
    return Reason(reason.status, f"{reason.message} {returned}")


def not_confirmed(run: _Run, reason: Reason, certificate: Certificate) -> Reason:
    """What the check found, without the bound that was claimed: one bound for one point."""
    ended = f"{reason.message} " if reason.status == "out_of_budget" else ""
    beyond = run.beyond_precision(certificate, mostly=True)
    if run.eps is not None and certificate.upper <= 4 * certificate.floor:  # at least half of the norm is rounding
        beyond = out_of_precision("squared mapping", certificate.floor, run.eps)
    if beyond:
        return Reason("unverified", f"{ended}{beyond.message}")
    why = "output='best' returns the iterate that was certified"
    L = run.problem.objective.smoothness
    if L and (seen := run.lookout.smoothness(L)) > L:
        why = (
            f"the smoothness L = {L:.3g} is too small, as the run has seen {seen:.3g}, for which the check was made. Leave "
            f"smoothness out to have it estimated, or give at least {seen:.3g}"
        )
    elif run.keep_best:
        why = "the gradient or the linear oracle is not accurate enough for this tolerance"
    found = [] if run.by_gap else [f"a squared mapping of {certificate.upper:.3g}{tolerated(run.eps)}"]
    if "gap" in run.watches:
        found.append(f"a Frank-Wolfe gap of {run.gap_at(certificate).value:.3g}{tolerated(run.gap_eps)}")
    return Reason(
        "unverified",
        f"{ended}The method's own bound met the stopping rule. But the check of what is returned found {' and '.join(found)}: "
        f"{why}.",
    )


def tolerated(eps: float | None) -> str:
    return "" if eps is None else f" (tolerance {eps:.3g})"


def out_of_precision(what: str, rounding: float, eps: float) -> Reason:
    """Float64 can't tell whether a measure is at most eps."""
    return Reason(
        "unverified",
        f"Precision is exhausted: the rounding error of the {what} can be {rounding:.3g} here, and the tolerance "
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
    lowest = run.lowest
    if lowest is None or lowest.fun >= run.value(certificate.x):
        return ""
    # option II certifies a point inside a step, and that step leads to the lowest one: the number alone would name both
    where = f"at step {lowest.step}" if lowest.step != run.best_k else "at the end of that step"
    return f" F was lower {where}, {lowest.fun:.6g}: see result.lowest, or ask for output='lowest'."
