"""Ways to solve the prox subproblem to a certified gap; interchangeable in every sliding method."""

from __future__ import annotations

from condgrad.checks import choice
from condgrad.inner.condg import CondG, with_gap
from condgrad.inner.corrective import Corrective
from condgrad.inner.exact import Exact
from condgrad.inner.spectral import Spectral
from condgrad.inner.stops import absolute, relative
from condgrad.inner.subspace import Subspace
from condgrad.protocols import Domain, Inner, Projectable, SpectralSet, fits

PASSES, GROWTH = 4, 1.12
"""Of the spectral solver in one prox, in practice: its block is kept, so the next step goes on where this one ended."""
INNERS = {"condg": CondG, "corrective": Corrective, "exact": Exact, "spectral": Spectral}


def inner_solver(name: str, domain: Domain, max_calls: int | None = None) -> Inner:
    """Build an inner solver by name.

    Parameters
    ----------
    name : {"auto", "condg", "corrective", "exact", "spectral"}
        "auto": spectral on spectral sets, exact on other sets with a projection, else corrective.
    domain : Domain
        The set.
    max_calls : int, default None
        Maximum number of linear oracle calls in one prox; None: no limit.

    Returns
    -------
    Inner
    """
    projects, spectral = fits(domain, Projectable), fits(domain, SpectralSet)
    if choice(name, [*INNERS, "auto"], "inner solver") != "auto":
        suits(INNERS[name](), domain)
    if name == "spectral" or (name == "auto" and spectral):
        return Spectral() if max_calls is None else Spectral(min(max_calls, PASSES), GROWTH)
    if name == "exact" or (name == "auto" and projects):
        return Exact()
    return CondG(max_calls) if name == "condg" else Corrective(max_calls)


def suits(solver: Inner, domain: Domain) -> None:
    """Raise TypeError if the inner solver needs a projection or a spectral set and ``domain`` is none."""
    if isinstance(solver, Exact) and not fits(domain, Projectable):
        raise TypeError(
            f"The exact inner solver needs a set that projects, {type(domain).__name__} does not: use 'corrective' or 'condg'."
        )
    if isinstance(solver, Spectral | Subspace) and not fits(domain, SpectralSet):
        raise TypeError(
            f"The spectral inner solver needs a spectral set such as NuclearBall, {type(domain).__name__} is none: use 'auto'."
        )


def inner_name(solver: Inner) -> str:
    """Return the name of an inner solver; for one that is not condgrad's own, the name of its class."""
    return next((name for name, kind in INNERS.items() if type(solver) is kind), type(solver).__name__)


__all__ = [
    "INNERS",
    "CondG",
    "Corrective",
    "Exact",
    "Spectral",
    "Subspace",
    "absolute",
    "inner_name",
    "inner_solver",
    "relative",
    "suits",
    "with_gap",
]
