"""Schedules of the prox accuracy: those of the theorems, and the practical one, which is the default."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass

from condgrad.checks import not_negative, positive, whole
from condgrad.inner import absolute, relative
from condgrad.protocols import Inner, InnerStop


@dataclass(frozen=True)
class theory:  # noqa: N801 - a value that reads like a word: schedule=theory(100)
    r"""The schedule of the method's theorem, for a run of N = ``steps`` steps.

    Prox accuracy: gap <= 1/N (NCGS, stochastic NCGS, NCGS-VR), which has the scale of F, or the ``eta`` of the method's own
    theorem (CGS).

    Parameters
    ----------
    steps : int
        Number of steps N of the run.
    """

    steps: int

    def __post_init__(self) -> None:
        whole(self.steps, "The number of steps of theory")

    def accuracy(self, gamma: float, share: float, eta: Callable[[], float] | None = None) -> InnerStop:
        """Return the stopping rule of a prox; ``eta`` is the accuracy of the method's own theorem, if it has one."""
        return absolute(1 / self.steps if eta is None else eta())


@dataclass(frozen=True)
class practical:  # noqa: N801
    r"""Prox accuracy in proportion to progress: gap <= max(gamma eps/4, c share |u_t - u|^2/gamma).

    ``share`` is the relative inner error that the method's proof allows: with c = 1/2, option I keeps monotone descent (any
    c < 3/4 does), and every proof holds with its constant at most doubled and no additive 1/N. The floor allows a final
    certificate of eps: |g~|^2 <= eps/4 and gap <= gamma eps/4 give |g|^2 <= eps.

    Parameters
    ----------
    eps : float, default 1e-6
        Tolerance of the run on the squared norm of the gradient mapping.
    c : float, default 0.5
        Factor of the squared distance moved.
    """

    eps: float = 1e-6
    c: float = 0.5

    def __post_init__(self) -> None:
        positive(self.eps, "The eps of practical")
        not_negative(self.c, "The c of practical")

    def accuracy(self, gamma: float, share: float, eta: Callable[[], float] | None = None) -> InnerStop:
        """Return the stopping rule of a prox with step size ``gamma``; ``eta`` is not used."""
        return relative(self.c * share, gamma * self.eps / 4)


Schedule = theory | practical


@dataclass(frozen=True)
class Setup:
    """The settings from which every method of the registry is built."""

    schedule: Schedule
    inner: Inner
    steps: int
    """Maximum number of steps; it determines the batch sizes of SVFW-S and SAGAFW-S."""
    seed: int = 0
    warm_start: int = 0
    """Number of Frank-Wolfe steps before a sliding method starts."""
    polish: bool | str = False
    """Whether F is decreased over the factors or the face of each iterate (solvers/polish.py, face.py); "auto": where it pays."""
    mapping: float = 0.0
    """Tolerance of the run on the squared gradient mapping; 0: it has none."""
    gap: float = 0.0
    """Tolerance of the run on the Frank-Wolfe gap; 0: it has none."""
    certify: bool = True
    """Whether the certificates of the method's own steps are used. They are not if the driver measures every iterate."""
