"""The class `Reached`: how far a run has come, that is, everything that changes from step to step. A checkpoint saves it."""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from math import isfinite, nan
from typing import Any, NamedTuple

from condgrad.certificate import Certificate
from condgrad.driver.counting import Counts
from condgrad.driver.result import Lowest
from condgrad.driver.trace import Trace
from condgrad.protocols import Point, Reason, Record
from condgrad.runtime.clock import Watch
from condgrad.solvers.smoothness import Curvature
from condgrad.storage.stored import stored


@stored
class Findings(NamedTuple):
    """Findings of the audit of a run."""

    curvature: Curvature = Curvature()
    """Largest lower bound on L from pairs of gradients."""
    rise: str = ""
    """Sentence about the first step in which F was above the bound that L implies; "" if there was none."""
    inexact: int = 0
    """Number of inexact answers of the linear oracle."""
    error: float = 0.0
    """Largest error among the inexact answers."""
    sentence: str = ""
    """Sentence about the answer with the largest error."""
    next_look: int = 1
    """First step at which membership in the set is checked again."""
    next_rise: int = 0
    """First step at which values of F are compared again with the bound that L implies."""
    along: float = 0.0
    """Lower bound on L from the values of F at the step of ``rise``."""
    vertices: tuple[Point, ...] = ()
    """Last answers of a user's linear oracle."""


@dataclass(eq=False)
class Reached:
    """The state of the method after its last step, the measurements of the iterates, and the time and oracle calls used."""

    state: Any = None
    record: Record | None = None
    """The record of the last step. It is also the last row of ``trace`` if the trace includes this step."""
    current: Certificate | None = None
    """The certificate of the last record, from which the record's measures are taken."""
    current_k: int = 0
    """Number of the step that reached the point of ``current``. A step may certify the point at which it started; this point was
    reached by the step before."""
    best: Certificate | None = None
    """The certificate with the smallest bound so far."""
    best_k: int = 0
    """Number of the step that reached the point of ``best``."""
    lowest: Lowest | None = None
    """The iterate with the lowest known F."""
    unconfirmed: Reason | None = None
    """The ending "converged" that the last check did not confirm; None if there was no such check."""
    known: list[tuple[Point, float]] = field(default_factory=list)
    """Known values of F: pairs (x, F(x)) that the solver or the driver has computed."""
    idle: int = 0
    """Number of steps in a row that did not change the iterate."""
    next_check: int = 0
    """First step at which an ending "converged" is checked again."""
    next_measure: int = 0
    """First step at which the driver measures the mapping again."""
    next_gap: int = 0
    """First step at which the driver measures the Frank-Wolfe gap again."""
    gap_noise: float = 0.0
    """The rounding error of the last measured Frank-Wolfe gap."""
    findings: Findings = field(default_factory=Findings)
    watch: Watch = field(default_factory=Watch)
    counts: Counts = field(default_factory=Counts)
    trace: Trace = field(default_factory=Trace)

    def spent(self) -> dict[str, Any]:
        """Time and oracle calls so far, by the names of the trace's columns."""
        return {
            "seconds": self.watch.seconds,
            "cpu": self.watch.cpu,
            "wall": self.watch.wall,
            **vars(self.counts),
        }

    def keep_lowest(self, x: Point, fun: float, k: int) -> None:
        """Keep the iterate if its F is the lowest so far. Points are immutable, so no copy is needed."""
        if isfinite(fun) and (self.lowest is None or fun < self.lowest.fun):
            self.lowest = Lowest(x, fun, k)

    def forget(self) -> None:
        """Drop the known values of F, except at the points of the state and of the certificates ``current`` and ``best``."""
        held = {id(self.state.x), *(id(certificate.x) for certificate in (self.current, self.best) if certificate)}
        self.known = [known for known in self.known if id(known[0]) in held]

    def close_trace(self) -> None:
        """If the run ended within a step, add a last row, so that the trace includes the oracle calls of this step."""
        if self.record is None:
            return
        spent = vars(self.counts)
        if not self.trace or any(getattr(self.trace[-1], name) != number for name, number in spent.items()):
            self.trace.append(replace(self.record, **self.spent(), gap=nan, mapping=nan, mapping_lower=nan))
