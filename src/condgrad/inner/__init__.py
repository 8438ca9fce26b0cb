"""Inner solvers: ways to solve the prox subproblem of a sliding method to a certified gap. Sliding methods accept any of them."""

from __future__ import annotations

import inspect
from collections.abc import Callable
from dataclasses import dataclass

from condgrad.checks import choice
from condgrad.inner.condg import CondG, with_gap
from condgrad.inner.corrective import Corrective
from condgrad.inner.exact import Exact
from condgrad.inner.spectral import Spectral
from condgrad.inner.stops import absolute, relative
from condgrad.inner.subspace import Subspace
from condgrad.protocols import Domain, Inner, Projectable, SpectralSet, fits, missing

PASSES, GROWTH, FULL_BELOW = 4, 1.12, 600
"""Parameters of the spectral solver with the practical schedule: ``max_calls``, ``growth`` and ``full_below`` of ``Spectral``.
The block is kept, so that the next prox subproblem continues with it."""


CORRECTIVE_CALLS = 5
"""Maximum number of linear oracle calls of the corrective solver in one prox subproblem with the practical schedule. The atoms
are kept, so that the next prox subproblem continues with them. With a smaller limit, a run takes more gradients. With a larger
limit, a run takes more oracle calls: far from a solution, an atom found for an old gradient is soon dropped again."""


def _few_calls(max_calls: int | None) -> Corrective:
    return Corrective() if max_calls is None else Corrective(min(max_calls, CORRECTIVE_CALLS))


def _in_practice(max_calls: int | None) -> Spectral:
    return Spectral() if max_calls is None else Spectral(min(max_calls, PASSES), GROWTH, FULL_BELOW)


@dataclass(frozen=True)
class InnerEntry:
    """An inner solver as ``minimize``, the command line, specs and the contract checks see it.

    Parameters
    ----------
    name : str
        Name of the solver in ``minimize(inner=)``, specs and listings.
    factory : callable
        Builds the solver. The parameters of the factory are the keys of ``inner = { name = ... }`` in a spec.
    about : str, default ""
        How the solver solves the prox subproblem.
    needs : type, default Domain
        The protocol that a set must satisfy for this solver.
    limited : callable, default None
        ``limited(max_calls)`` builds the solver with at most ``max_calls`` (int or None) linear oracle calls in one prox. None:
        the solver is ``factory(max_calls=max_calls)`` if the factory has a parameter ``max_calls``, else ``factory()``.
    """

    name: str
    factory: Callable[..., Inner]
    about: str = ""
    needs: type = Domain
    limited: Callable[[int | None], Inner] | None = None

    def build(self, max_calls: int | None = None) -> Inner:
        """Build the solver. ``max_calls`` is ignored if the solver has no such limit."""
        if self.limited is not None:
            return self.limited(max_calls)
        takes = "max_calls" in inspect.signature(self.factory).parameters
        return self.factory(max_calls=max_calls) if takes else self.factory()


_ENTRIES = (
    InnerEntry("condg", CondG, "conditional gradient with exact line search"),
    InnerEntry(
        "corrective",
        Corrective,
        "the nearest point in the hull of the atoms seen, which it keeps between steps",
        limited=_few_calls,
    ),
    InnerEntry("exact", Exact, "one projection", Projectable),
    InnerEntry("spectral", Spectral, "a partial SVD by subspace iteration", SpectralSet, _in_practice),
)
INNERS: dict[str, InnerEntry] = {entry.name: entry for entry in _ENTRIES}


def inner_solver(name: str, domain: Domain, max_calls: int | None = None) -> Inner:
    """Build an inner solver by name.

    Parameters
    ----------
    name : str
        A name from ``condgrad.INNERS``, or "auto": spectral on spectral sets, exact on other sets with a projection, else
        corrective.
    domain : Domain
        The set.
    max_calls : int, default None
        Maximum number of linear oracle calls in one prox; None: no limit.

    Returns
    -------
    Inner
    """
    if choice(name, [*INNERS, "auto"], "inner solver") == "auto":
        name = "spectral" if fits(domain, SpectralSet) else "exact" if fits(domain, Projectable) else "corrective"
    entry = INNERS[name]
    _require(entry.needs, name, domain)
    return entry.build(max_calls)


def suits(solver: Inner, domain: Domain) -> None:
    """Raise TypeError if the inner solver does not work on this set: if it needs a projection or a spectral set, for example."""
    entry = INNERS["spectral"] if isinstance(solver, Subspace) else _entry(solver)
    if entry is not None:
        _require(entry.needs, entry.name, domain)


def _require(needs: type, name: str, domain: Domain) -> None:
    if fits(domain, needs):
        return
    own = type(domain).__name__
    if needs is Projectable:
        raise TypeError(
            f"The {name} inner solver needs a set that projects, {own} does not: use 'corrective' or 'condg'."
        )
    if needs is SpectralSet:
        needed = "a spectral set such as NuclearBall"
        raise TypeError(f"The {name} inner solver needs {needed}, but {own} is not a spectral set: use 'auto'.")
    lacking = " and no ".join(missing(domain, needs))
    raise TypeError(f"The {name} inner solver needs a {needs.__name__}, {own} has no {lacking}: use 'auto'.")


def _entry(solver: Inner) -> InnerEntry | None:
    return next((entry for entry in INNERS.values() if type(solver) is entry.factory), None)


def inner_name(solver: Inner) -> str:
    """Return the registered name of an inner solver. If the solver is not registered, return the name of its class."""
    entry = _entry(solver)
    return entry.name if entry else type(solver).__name__


__all__ = [
    "INNERS",
    "CondG",
    "Corrective",
    "Exact",
    "InnerEntry",
    "Spectral",
    "Subspace",
    "absolute",
    "inner_name",
    "inner_solver",
    "relative",
    "suits",
    "with_gap",
]
