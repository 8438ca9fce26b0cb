r"""The factored phase: after a sliding step, F is decreased over the factors of the point, within its rank.

A set may offer itself as the image of factors (``factored``): a map from vectors w to points x(w) of the set, onto all points
of a rank. F(x(w)) is minimised without constraints by L-BFGS, whose iteration costs one value and one gradient of F, and
neither a projection nor a linear minimisation. Sliding steps and this phase alternate: a sliding step finds the subspace and
changes the rank in both directions, the phase converges within that rank, and the next sliding step certifies the point or
finds what is missing.

What is guaranteed. A point is replaced only if F does not rise. The proof of option I bounds the squared length |d|^2/beta^2 of
each step by 4/beta times the decrease of F in it and adds these up, so further decrease between two steps leaves it as it is:
among N steps one has a squared length of at most 4 (F(theta_0) - F*)/(beta N). The length is the norm of the gradient mapping
up to the error sqrt(gap/beta), which is known for the steps that bound their gap. With the phase, these are some of the steps
only (see solvers/ncgs.py); what a run returns as converged is one of them, and is verified as always.

The phase ends early if it no longer pays: once its gradient, as an estimate of the gradient mapping, is well below the
tolerance, or if F falls slowly while the gradient is still large, because then the rank is wrong and a sliding step does more.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from condgrad.checks import FAULTS
from condgrad.inner import Corrective
from condgrad.linalg.lanczos import SPARE
from condgrad.linalg.lbfgs import Iterate, lbfgs
from condgrad.points import LowRank
from condgrad.protocols import BudgetEnd, FactoredForm, Inner, Point, Problem, Solver
from condgrad.runtime.cache import active
from condgrad.runtime.interruption import attach
from condgrad.runtime.process_memory import return_free_memory
from condgrad.runtime.signals import heartbeat
from condgrad.solvers.evaluation import Evaluation
from condgrad.solvers.smoothness import VALUE_NOISE

if TYPE_CHECKING:
    from condgrad.solvers.ncgs import NCGSState


@dataclass(frozen=True)
class PolishSettings:
    """Constants of the factored phase.

    Parameters
    ----------
    iterations : int, default 400
        Maximum number of iterations of L-BFGS in one phase, if the sliding step before it has not changed the rank.
    while_rank_changes : int, default 50
        Maximum number of iterations in one phase if the sliding step before it has changed the rank. The next sliding step then
        removes singular values that the phase would reduce to 0 slowly. It grows with the number of steps.
    pairs : int, default 5
        Number of pairs that L-BFGS keeps. On 44 problems of 60 to 1,000 rows it takes as many gradients as with 10.
    accuracy : float, default 0.3
        The phase ends once its estimate of the squared mapping is this share of the tolerance. The certificate adds an error of
        a quarter of the tolerance's square root to the norm of the mapping.
    window : int, default 5
        Number of iterations over which the decrease of F is compared with that of the whole phase.
    slow : float, default 0.01
        The phase ends if the decrease over a window is below this share of the decrease over the whole phase.
    fallen : float, default 1e-3
        A slow decrease does not end the phase if the estimate of the squared mapping has fallen to this share of its first value:
        then the rank is right, and L-BFGS converges.
    close : float, default 10.0
        A step with 1/(2L), which certifies the point, follows the phase at once if the sliding step before it found singular
        vectors that the set does not keep, or if its squared length was at most this multiple of the tolerance. Else another
        sliding step first looks for missing singular vectors.
    max_numbers : int, default 2**23
        Maximum memory of the pairs of L-BFGS, as a number of float32 (32 MiB). For larger factors the pairs are float32, and if
        this is not enough, fewer are kept, at least three. Where three take more than ``LARGEST`` times this memory (128 MiB),
        the phase is left out.
    """

    iterations: int = 400
    while_rank_changes: int = 50
    pairs: int = 5
    accuracy: float = 0.3
    window: int = 5
    slow: float = 0.01
    fallen: float = 1e-3
    close: float = 10.0
    max_numbers: int = 2**23


ENDS = (BudgetEnd, KeyboardInterrupt, MemoryError, *FAULTS)
"""Exceptions that end a run inside a phase. The state that the phase has reached is attached to them, as ``unfinished``."""
MIN_PAIRS = 3
"""Minimum number of pairs: with fewer, L-BFGS is hardly faster than steepest descent."""
LARGEST = 4
"""The phase is left out where the minimum number of pairs has more floats than this multiple of ``max_numbers``."""


@dataclass(frozen=True)
class Polished:
    """A solver whose points are improved over their factors after each step.

    Parameters
    ----------
    solver : Solver
        NCGS, adaptive; its states have ``memory`` and ``due``.
    inner : Inner
        Its inner solver, which makes the memory for the new point.
    eps : float
        Tolerance of the run on the squared gradient mapping.
    arrays : bool, default False
        Whether points that are arrays are improved too, by full singular value decompositions.
    settings : PolishSettings
        Constants of the phase.
    """

    solver: Solver
    inner: Inner
    eps: float
    arrays: bool = False
    settings: PolishSettings = PolishSettings()

    def init(self, problem: Problem, x0: Point) -> Any:
        """Return the solver's initial state."""
        return self.solver.init(problem, x0)

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the state after one step of the solver and one factored phase."""
        new = self.solver.step(problem, state)
        if new.certificate.upper <= self.eps or not (self.arrays or isinstance(new.x, LowRank)):
            return new
        try:
            return self.improved(problem, new, state)
        except ENDS as end:
            if not hasattr(end, "unfinished"):  # before the first iteration: the step of the solver is kept
                attach(end, unfinished=new)
            raise

    def improved(self, problem: Problem, state: NCGSState, earlier: NCGSState) -> NCGSState:
        """Return the state with the point that the phase leads to, or unchanged if F would not fall.

        ``earlier`` is the state before the sliding step.
        """
        F, x, before = problem.objective, state.x, state.fun
        assert before is not None and state.certificate is not None  # an adaptive step has computed both
        evaluated = [Evaluation(x, grad=F.grad(x) if state.grad is None else state.grad)]
        form = problem.domain.factored(x, evaluated[0].grad)
        stable = getattr(earlier.x, "rank", None) == form.rank
        growth = 8 if stable else 1 + state.k // 8  # a rank that changes for ever must not keep the phases short
        size, most = 2 * form.start.size, self.settings.max_numbers
        if size == 0 or MIN_PAIRS * size > LARGEST * most:
            return replace(state, grad=evaluated[0].grad)
        pairs = min(self.settings.pairs, max(most // size, MIN_PAIRS))
        start = Iterate(form.start, before, form.pull_back(form.start, evaluated[0].grad))
        gamma = state.certificate.gamma
        first = estimate = form.squared_mapping(start.w, start.grad, gamma)
        iterates, last = self.descend(F, form, evaluated, start, first, gamma, pairs, growth), None
        del start  # its vectors are as large as the factors
        active().drop_values()
        if pairs * size > most // 4:  # the blocks that a step has freed leave gaps, into which the pairs may not fit
            return_free_memory()
        try:
            for iterate in iterates:
                last, estimate = iterate
            if last is not None:
                new = compressed(form.point(last.w))
                grad = F.grad(new)  # before the value, as in ``descend``
                fun = F.value(new)
        except ENDS as end:
            if last is not None:
                reached = form.point(last.w)
                unfinished = replace(state, x=reached, theta_ag=reached, fun=last.fun, grad=None, factored=True)
                attach(end, unfinished=unfinished)
            raise
        enough = estimate <= 1.5 * self.settings.accuracy * self.eps
        unlimited = isinstance(x, LowRank) and state.memory.shape[1] >= x.rank + SPARE
        near = unlimited or state.certificate.norm**2 <= self.settings.close * self.eps
        due = state.due or (enough and near)
        if last is None:
            return replace(state, grad=evaluated[0].grad if evaluated and evaluated[0].x is x else None, due=due)
        if fun > before + VALUE_NOISE * abs(before):
            return replace(state, grad=None)
        found = self.inner.init(problem.domain, new)
        memory = np.c_[found, state.memory[:, found.shape[1] :]]  # with what the step has found beyond the rank
        return replace(state, x=new, theta_ag=new, fun=fun, grad=grad, memory=memory, due=due, factored=True)

    def descend(
        self,
        F: Any,
        form: FactoredForm,
        evaluated: list[Evaluation],
        start: Iterate,
        first: float,
        gamma: float,
        pairs: int,
        growth: int,
    ) -> Iterator[tuple[Iterate, float]]:
        """Yield the iterates of the phase with their estimates of the squared gradient mapping with step size ``gamma``.

        ``evaluated`` has the phase's only reference to a gradient: the one at the point evaluated last, first at the start.
        ``first`` is the estimate at the start; the phase may have ``growth`` times ``while_rank_changes`` iterations.
        """

        def value(w: np.ndarray) -> float:
            heartbeat()
            x = form.point(w)
            evaluated.clear()  # frees the gradient of a refused point, which is as large as the data
            # before the value, which an objective may then know: L-BFGS accepts nearly all points
            evaluated.append(Evaluation(x, grad=F.grad(x)))
            return F.value(x)

        def grad(w: np.ndarray) -> np.ndarray:
            return form.pull_back(w, evaluated.pop().grad)  # called at most once after each value

        asked = self.settings
        target, falls = asked.accuracy * self.eps, [start.fun]
        most = min(asked.iterations, asked.while_rank_changes * growth)
        if first <= target:
            return
        single = getattr(F, "dtype", None) == np.float32 or 2 * asked.pairs * start.w.size > asked.max_numbers // 2
        iterates = lbfgs(value, grad, start, pairs, np.float32 if single else float)
        del start
        for now in iterates:
            falls.append(now.fun)
            estimate = form.squared_mapping(now.w, now.grad, gamma)
            if estimate <= target:
                estimate = form.squared_mapping(now.w, now.grad, gamma, rotate=True)
            yield now, estimate
            if estimate <= target or len(falls) > most:
                return
            wrong_rank = len(falls) > 2 * asked.window and estimate > asked.fallen * first
            if wrong_rank and falls[-1 - asked.window] - falls[-1] < asked.slow * (falls[0] - falls[-1]):
                return


def compressed(x: Point) -> Point:
    """Return a LowRank with orthogonal factors, and an array as it is."""
    return x.compressed() if isinstance(x, LowRank) else x


def polishes(problem: Problem, wanted: bool | str, adaptive: bool, inner: Inner) -> bool:
    """Return whether the factored phase is used.

    Parameters
    ----------
    problem : Problem
        Its set must have ``factored``.
    wanted : bool or "auto"
        "auto": if points are structured and the inner solver can do without proofs.
    adaptive : bool
        Whether the method is NCGS with adaptive steps; the theorem's steps are left as they are.
    inner : Inner
        The inner solver.

    Raises
    ------
    TypeError
        If ``wanted`` is True and the phase is not possible.
    """
    owner = type(problem.domain).__name__
    offers = getattr(problem.domain, "factored", None) is not None
    if isinstance(inner, Corrective) and adaptive:
        return False  # the face phase (solvers/face.py)
    if wanted is False or (wanted == "auto" and not getattr(problem.objective, "low_rank", False)):
        return False
    lacking = ""
    if not offers:
        lacking = f"{owner} offers none (NuclearBall and Spectrahedron do): leave polish out"
    elif not adaptive:
        lacking = "it is part of method 'ncgs' with the practical schedule and adaptive steps only: leave polish out"
    elif getattr(inner, "estimate", None) is None:
        lacking = f"inner solver {type(inner).__name__} has no steps without proofs: use inner='spectral'"
    if lacking and wanted is True:
        raise TypeError(f"polish=True asks for a factored phase, but {lacking}.")
    return not lacking
