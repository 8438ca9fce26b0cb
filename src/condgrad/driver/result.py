"""The class `Result`, which a run returns, and the class `Lowest` of its attribute ``lowest``."""

from __future__ import annotations

import json
from dataclasses import dataclass
from math import isfinite
from pathlib import Path
from typing import Any, NamedTuple

from condgrad.certificate import Certificate
from condgrad.driver.chooser import Choice
from condgrad.driver.trace import Trace
from condgrad.protocols import Point
from condgrad.storage.atomic import write_text
from condgrad.storage.stored import stored


@stored
class Lowest(NamedTuple):
    """The iterate with the lowest F, among the iterates at which F was computed.

    Attributes
    ----------
    x : Point
        The iterate: an array of the problem's shape, or a structured matrix.
    fun : float
        F(x).
    step : int
        The number of steps after which the method reported this iterate; 0 is the start.
    """

    x: Point
    fun: float
    step: int


@dataclass(frozen=True)
class Result:
    """The result of a run: the point, its certificate, and the cost.

    Attributes
    ----------
    x : Point
        The point returned: an array of the problem's shape, or a structured matrix.
    fun : float
        F(x); NaN if F is an expectation, whose value is not known.
    status : str
        ``"converged"``: the tolerance is met. ``"out_of_budget"``: a limit on steps, oracle calls, time or memory is reached.
        ``"stalled"``: the method makes no more progress. ``"stopped"``: the callback ended the run. ``"interrupted"``: Ctrl-C or
        SIGTERM ended the run. ``"finished"``: the random number of steps of ``output="random"`` is reached. ``"unverified"``: the
        verification at the end did not confirm the certificate. ``"failed"``: there was a fault such as a NaN.
    message : str
        The reason for the status.
    certificate : Certificate or None
        Bounds on the squared norm of the gradient mapping at x. At the end of the run they are verified by another gradient and
        another call of the linear oracle. None if x has no certificate.
    counts : dict of str to int
        Number of calls of each oracle: ``"fo"``, ``"ifo"``, ``"sfo"``, ``"lo"``, ``"ub"``, ``"po"`` and ``"values"``.
    trace : Trace
        One record for each step whose number is a multiple of the argument ``every`` of :func:`minimize`, and one for the last
        step.
    steps : int
        Number of steps.
    seconds, cpu : float
        Wall-clock time and CPU time of the run in seconds. What the driver does between two steps, such as measuring iterates,
        calling the callback and saving, is not included.
    method : str
        Name of the method.
    smoothness : float
        The L that the last step used.
    seed : int
        Seed of all random numbers.
    spec : str
        Hash of the objective, the set, the method, its options, the seed and the start. Arrays are hashed by their content, and
        users' functions by their names.
    made_with : dict of str to Any
        Versions of the packages and numbers of threads.
    warnings : tuple of str, default ()
        Warnings of the run.
    inner : str or None, default None
        Name of the inner solver, which solves the prox subproblems; ``"exact"`` stands for projections. None if the method has no
        inner solver.
    lowest : Lowest or None, default None
        The iterate with the lowest F among the iterates at which F was computed. It may have no certificate. None if F has no
        values.
    choice : Choice or None, default None
        The method that ``method="auto"`` chose, with the reason. None if the user gave the method.

    Examples
    --------
    >>> import numpy as np
    >>> import condgrad as cg
    >>> result = cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3), tol=1e-8)
    >>> result.status, result.x.round(3)
    ('converged', array([0.333, 0.333, 0.333]))
    """

    x: Point
    fun: float
    status: str
    message: str
    certificate: Certificate | None
    counts: dict[str, int]
    trace: Trace
    steps: int
    seconds: float
    cpu: float
    method: str
    smoothness: float
    seed: int
    spec: str
    made_with: dict[str, Any]
    warnings: tuple[str, ...] = ()
    inner: str | None = None
    lowest: Lowest | None = None
    choice: Choice | None = None

    @property
    def success(self) -> bool:
        """Whether the status is ``"converged"``."""
        return self.status == "converged"

    def summary(self) -> dict[str, Any]:
        """Convert the result to plain data, without x and the trace.

        Returns
        -------
        dict of str to Any
            Content that JSON can represent. Numbers that are not known are None.
        """
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
            "choice": self.choice.summary() if self.choice else None,
            "seed": self.seed,
            "spec": self.spec,
            "made_with": self.made_with,
            "warnings": list(self.warnings),
        }

    def to_json(self, path: str | Path) -> None:
        """Write :meth:`summary` to a file.

        Parameters
        ----------
        path : str or Path
            The file, which is replaced if it exists.
        """
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
        """Text that says whether prox subproblems were solved by projection."""
        if not self.counts["po"]:
            return ", without projecting"
        return f": {self.counts['po']} projections; inner='corrective' uses linear minimisations only"
