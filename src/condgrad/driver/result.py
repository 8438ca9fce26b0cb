"""What a run gives back."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from condgrad.certificate import Certificate
from condgrad.driver.trace import Trace
from condgrad.protocols import Point
from condgrad.storage.atomic import write_text
from condgrad.storage.stored import stored


@stored
class Lowest(NamedTuple):
    """The iterate with the lowest value of F among those whose value is known.

    Attributes
    ----------
    x : Point
        The iterate: an array of the problem's shape, or a structured matrix.
    fun : float
        F(x).
    step : int
        The step after which the method reported it; 0 is the start.
    """

    x: Point
    fun: float
    step: int


@dataclass(frozen=True)
class Result:
    """The answer, how good it is, and what it cost. Every field is always there."""

    x: Point
    fun: float
    """F(x); NaN where F is an expectation, whose value is not known."""
    status: str
    """converged, out_of_budget, stalled, stopped (by the callback), interrupted (Ctrl-C, SIGTERM), finished (the paper's random
    index reached), unverified (a certificate that its check did not confirm) or failed (a NaN on the way)."""
    message: str
    certificate: Certificate | None
    """For x, verified at the end by a gradient and a linear oracle call of its own; None where x has none."""
    counts: dict[str, int]
    trace: Trace
    steps: int
    seconds: float
    cpu: float
    method: str
    smoothness: float
    """The L that was used in the end."""
    seed: int
    spec: str
    """A hash of what was asked: objective, set, method, options, seed and start, by content. Of a user's function, its name."""
    made_with: dict[str, Any]
    """Versions and numbers of threads."""
    warnings: tuple[str, ...] = ()
    inner: str | None = None
    """The inner solver that solved the prox subproblems (exact: by projection); None where the method has none."""
    lowest: Lowest | None = None
    """The iterate with the lowest F, certified or not, of those whose value is known: of every ``every``-th step, and x. None
    where F has no values."""

    @property
    def success(self) -> bool:
        return self.status == "converged"

    def summary(self) -> dict[str, Any]:
        """All but the arrays, as plain data; None for what is not known."""
        mapping = (self.certificate.lower, self.certificate.upper) if self.certificate else (None, None)
        return {
            "method": self.method,
            "status": self.status,
            "success": self.success,
            "message": self.message,
            "fun": self.fun if isfinite(self.fun) else None,
            "mapping_lower": mapping[0],
            "mapping_upper": mapping[1],
            "gamma": self.certificate.gamma if self.certificate else None,
            "certified_on": self.certificate.on if self.certificate else None,
            "smoothness": self.smoothness if isfinite(self.smoothness) else None,
            "steps": self.steps,
            "seconds": self.seconds,
            "cpu": self.cpu,
            "counts": self.counts,
            "inner": self.inner,
            "lowest": {"fun": self.lowest.fun, "step": self.lowest.step} if self.lowest else None,
            "seed": self.seed,
            "spec": self.spec,
            "made_with": self.made_with,
            "warnings": list(self.warnings),
        }

    def to_json(self, path: str | Path) -> None:
        write_text(path, json.dumps(self.summary(), indent=2) + "\n")

    def __repr__(self) -> str:
        lines = [f"{self.method}: {self.status}. {self.message}", f"  F(x)      {self.fun:.8g}"]
        if self.certificate:
            lower, upper, gamma = self.certificate.lower, self.certificate.upper, self.certificate.gamma
            lines.append(
                f"  |g|^2     between {lower:.3g} and {upper:.3g} (gamma = {gamma:.3g}, on {self.certificate.on})"
            )
        calls = "  ".join(f"{name.upper()} {n}" for name, n in self.counts.items() if n)
        lines.append(f"  cost      {self.steps} steps  {calls}  {self.seconds:.3g} s")
        if self.inner:
            lines.append(f"  inner     {self.inner}{self._projected()}")
        lines += [f"  warning   {warning}" for warning in self.warnings]
        return "\n".join(lines)

    def _projected(self) -> str:
        """Whether the prox subproblems were solved by projection, which the names of the methods do not tell."""
        if not self.counts["po"]:
            return ", without projecting"
        return f": {self.counts['po']} projections; inner='corrective' uses linear minimisations only"
