"""Schedules: the theorems', and the one that users get."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from condgrad.checks import not_negative, positive, whole
from condgrad.inner import absolute, relative
from condgrad.protocols import Inner, InnerStop


@dataclass(frozen=True)
class theory:  # noqa: N801 - a value that reads like a word: schedule=theory(100)
    r"""Exactly the theorem of the method, for a run of N = ``steps`` steps.

    Prox accuracy: gap <= 1/N (NCGS, stochastic NCGS, NCGS-VR), which has the scale of F, or the ``eta`` that the
    method's own theorem names (CGS).
    """

    steps: int

    def __post_init__(self) -> None:
        whole(self.steps, "The number of steps of theory")

    def accuracy(self, gamma: float, share: float, eta: Callable[[], float] | None = None) -> InnerStop:
        return absolute(1 / self.steps if eta is None else eta())


@dataclass(frozen=True)
class practical:  # noqa: N801
    r"""Prox accuracy in proportion to progress: gap <= max(gamma eps/4, c share |u_t - u|^2/gamma).

    ``share`` is what the method's proof can spare: with c = 1/2, option I keeps monotone descent (any c < 3/4 does) and every
    proof goes through with its constant at most doubled and no additive 1/N. The floor makes a final certificate of
    eps reachable: |g~|^2 <= eps/4 and gap <= gamma eps/4 give |g|^2 <= eps.
    """

    eps: float = 1e-6
    c: float = 0.5

    def __post_init__(self) -> None:
        positive(self.eps, "The eps of practical")
        not_negative(self.c, "The c of practical")

    def accuracy(self, gamma: float, share: float, eta: Callable[[], float] | None = None) -> InnerStop:
        return relative(self.c * share, gamma * self.eps / 4)


Schedule = theory | practical


@dataclass(frozen=True)
class Setup:
    """What every method of the registry is built from."""

    schedule: Schedule
    inner: Inner
    steps: int
    """How long the run may get; the batches of SVFW-S and SAGAFW-S follow from it."""
    seed: int = 0
    warm_start: int = 0
    """Frank-Wolfe steps before a sliding method begins."""
    certify: bool = True
    """Whether the certificates of the method's own steps are used; they are not where every iterate is measured from outside."""
