r"""The face phase: after a sliding step, F is decreased over the convex hull of the atoms that the step has used.

The inner solver ``corrective`` writes a point as a convex combination of atoms, x(w) = sum_i w_i a_i. F(x(w)) is minimised over
the weights by BFGS (linalg/simplex_bfgs.py), whose iteration costs one value and one gradient of F, an inner product with each
atom, and no linear minimisation. Sliding steps and this phase alternate: a sliding step finds atoms, the phase converges over
their hull, where sliding steps alone converge at the linear rate of the condition number, and the next sliding step certifies the
point over the whole set or finds what is missing.

What is guaranteed is what solvers/polish.py says: a point is replaced only if F does not rise, so that option I's theorem
holds, and every sliding step still bounds its gap. The phase is on by default with the practical schedule and never part of a
theorem's.

If the last sliding step has found no new atoms, the phase ends once its gap over the hull, or its estimate of the squared
mapping there, is well below the tolerance of the run. If the step has found atoms, more are missing, and the phase is shorter:

- On sets whose oracle returns several vertices in a call (a method ``atoms``), few calls find all atoms. The phase reduces the
  gap over the hull to a share of what it was.
- On other sets, such as the Birkhoff polytope, a call finds one atom, and most of the time is spent on finding atoms. The prox
  point of the sliding step is exact over the hull, so that its gap shows how much the missing atoms matter. There is a phase if
  the gap of F over the hull is several times as large, and it ends when it is as small as that. F is then ill-conditioned along
  the hull, so that sliding steps converge slowly there.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.sparse import csr_array

from condgrad.inner import Corrective
from condgrad.inner.condg import like
from condgrad.linalg.lbfgs import Iterate
from condgrad.linalg.simplex_bfgs import centred, gap_of, simplex_bfgs
from condgrad.points import ActiveSet, SparseArray, norm2
from condgrad.protocols import Point, Problem, Solver
from condgrad.runtime.interruption import attach
from condgrad.runtime.signals import heartbeat
from condgrad.solvers.evaluation import Evaluation, grad_at, value_at
from condgrad.solvers.polish import ENDS
from condgrad.solvers.schedules import practical

if TYPE_CHECKING:
    from condgrad.solvers.ncgs import NCGS, NCGSState
    from condgrad.solvers.schedules import Setup


@dataclass(frozen=True)
class FaceSettings:
    """Constants of the face phase.

    Parameters
    ----------
    iterations : int, default 200
        Maximum number of iterations in one phase.
    share : float, default 0.1
        The phase ends once its gap over the hull is this share of the first one, if the sliding step before it has found atoms
        and the oracle returns several vertices in a call.
    excess : float, default 3.0
        If the oracle returns one vertex in a call and the sliding step before the phase has found atoms, there is a phase only if
        the gap over the hull is more than this multiple of the gap of the prox point.
    accuracy : float, default 0.1
        The phase ends once the gap over the hull is this share of the run's tolerance for the gap, or its estimate of the squared
        mapping is this share of the run's tolerance for that.
    max_atoms : int, default 500
        Maximum number of atoms. With more there is no phase: an iteration factors a matrix with a row for each atom.
    """

    iterations: int = 200
    share: float = 0.1
    excess: float = 3.0
    accuracy: float = 0.1
    max_atoms: int = 500


@dataclass(frozen=True)
class OnFaces:
    """A solver whose points are improved over the hull of their atoms after each step.

    Parameters
    ----------
    solver : Solver
        NCGS, adaptive, with the inner solver ``corrective``; perhaps with backtracking.
    eps : float, default 0.0
        Tolerance of the run on the squared gradient mapping; 0: it has none.
    gap : float, default 0.0
        Tolerance of the run on the Frank-Wolfe gap; 0: it has none.
    settings : FaceSettings
        Constants of the phase.
    """

    solver: Solver
    eps: float = 0.0
    gap: float = 0.0
    settings: FaceSettings = FaceSettings()

    def init(self, problem: Problem, x0: Point) -> Any:
        """Return the solver's initial state."""
        return self.solver.init(problem, x0)

    def step(self, problem: Problem, state: Any) -> Any:
        """Return the state after one step of the solver and one face phase."""
        new = self.solver.step(problem, state)
        hull = new.memory
        if new.certificate.upper <= self.eps or not 1 < np.count_nonzero(hull.weights) <= self.settings.max_atoms:
            return new
        missing = 0.0 if settled(state.memory, hull) else new.certificate.gap
        grads, new = [new.grad], replace(new, grad=None)
        try:
            return self.improved(problem, new, grads, missing)
        except ENDS as end:
            if not hasattr(end, "unfinished"):  # before the first iteration: the step of the solver is kept
                attach(end, unfinished=replace(new, grad=grads.pop()) if grads else new)
            raise

    def improved(self, problem: Problem, state: NCGSState, grads: list[Any], missing: float) -> NCGSState:
        """Return the state with the point that the phase leads to.

        ``grads`` holds the gradient at the start, or None, and is emptied so that the gradient can be freed. ``missing`` is the
        gap of the prox point, or 0 if the sliding step before the phase has found no atoms.
        """
        F, x, before, asked = problem.objective, state.x, state.fun, self.settings
        assert before is not None  # an adaptive step has computed it
        if grads[0] is None:
            grads[0] = grad_at(F, x).grad
        grad: Any = grads.pop()
        weights, slopes = state.memory.weights, state.memory.products(grad)
        used = np.flatnonzero(weights)
        start = Iterate(weights[used], before, slopes[used])
        first = gap_of(start)
        least, limit = 0.0, 0.0
        if missing and getattr(problem.domain, "atoms", None) is not None:
            limit = asked.share * first
        elif missing:
            least, limit = asked.excess * missing, missing
        limit = max(limit, asked.accuracy * self.gap)
        if first <= max(least, limit):
            return replace(state, grad=grad)
        hull = state.memory.with_weights(weights)
        face = Face(hull, x)
        last, reached = start, Evaluation(x, before, grad)
        try:
            for last, reached in self.descend(F, face, hull.gram, start, state, limit):  # noqa: B007 - the last one is used
                grad = None  # as large as the point, and F has fallen, so that it is hardly ever needed again
        except ENDS as end:
            attach(
                end, unfinished=moved(state, hull, last.w, reached) if last is not start else replace(state, grad=grad)
            )
            raise
        if last is start or last.fun > before:
            return replace(state, grad=grad)
        return moved(state, hull, last.w, reached)

    def descend(
        self, F: Any, face: Face, gram: np.ndarray, start: Iterate, state: NCGSState, limit: float
    ) -> Iterator[tuple[Iterate, Evaluation]]:
        """Yield the iterates of the phase with the points that belong to them, and the values and gradients there.

        The phase ends once its gap over the hull is at most ``limit``.
        """
        asked, known = self.settings, Evaluation(state.x)

        def value(w: np.ndarray) -> float:
            nonlocal known
            heartbeat()
            known = Evaluation(state.x)  # frees the gradient of a point that was refused
            known = value_at(F, face.point(w))
            return known.fun

        def grad(w: np.ndarray) -> np.ndarray:
            nonlocal known
            if known.grad is None:
                known = Evaluation(known.x, known.fun, F.grad(known.x))
            return face.products(known.grad)

        curvature = state.local
        for count, (now, fall) in enumerate(simplex_bfgs(value, grad, start, curvature * centred(gram, start.w)), 1):
            yield now, known
            # with the mapping m, the minimum of <g, d> + curvature |d|^2/2 is at a d with <g, d> = -|m|^2/curvature
            if gap_of(now) <= limit or curvature * fall <= asked.accuracy * self.eps or count >= asked.iterations:
                return


def settled(before: ActiveSet, after: ActiveSet) -> bool:
    """Whether all atoms of ``after`` that have a weight are atoms of ``before``."""
    if after.origin is not before.origin:
        return False
    last = after.atoms[len(after.atoms) - 1]  # new atoms come last
    square = norm2(last)
    return bool(np.any((before.atoms.products(last) == square) & (np.diag(before.gram) == square)))


class Face:
    """The points x(w) of the hull of atoms, and the gradient of F(x(w)) by w.

    The entries of sparse atoms are kept as one matrix, with a column for each index at which an atom has an entry, so that all
    points have the same indices.

    Parameters
    ----------
    hull : ActiveSet
        The atoms.
    x : Point
        A point of the type that x(w) has: an array or a structured point.
    """

    def __init__(self, hull: ActiveSet, x: Point):
        self.hull, self.x, atoms = hull, x, hull.atoms
        self.entries: Any = None
        if atoms.all_sparse:
            self.indices = np.unique(atoms.indices)
            places = (atoms.owners, np.searchsorted(self.indices, atoms.indices))
            self.entries = csr_array((atoms.values, places), (len(atoms), len(self.indices)))

    def point(self, w: np.ndarray) -> Point:
        """x(w)."""
        if self.entries is None:
            combined = self.hull.atoms.combined(w)
            return combined if self.hull.origin is None else self.hull.origin + combined
        return like(self.x, SparseArray(self.indices, self.entries.T @ w, self.x.shape))

    def products(self, grad: Point) -> np.ndarray:
        """The inner products of the atoms with a gradient, up to a constant."""
        if self.entries is None or not isinstance(grad, np.ndarray):
            return self.hull.products(grad)
        return self.entries @ grad.reshape(-1)[self.indices]


def moved(state: NCGSState, hull: ActiveSet, weights: np.ndarray, reached: Evaluation) -> NCGSState:
    """The state at the point that a phase has reached."""
    x, fun, grad = reached
    memory = replace(hull.with_weights(weights), x=x)
    return replace(state, x=x, theta_ag=x, fun=fun, grad=grad, memory=memory, on_face=True)


def on_faces(solver: NCGS, setup: Setup) -> bool:
    """Whether the face phase is used: with adaptive steps, the practical schedule and the inner solver ``corrective``."""
    practically = solver.adaptive and isinstance(setup.schedule, practical)
    return setup.polish is not False and practically and isinstance(setup.inner, Corrective)
