"""A point as a convex combination of atoms, which keep their identity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condgrad.linalg.simplex_qp import Factor, nearest_weights
from condgrad.points.base import inner, norm2
from condgrad.protocols import Point
from condgrad.storage.stored import check_array, stored


def _validate(active: ActiveSet) -> None:
    n = len(active.atoms)
    check_array(active.gram, (n, n), "gram")
    check_array(active.weights, (n,), "weights")
    if active.factor is not None and np.max(active.factor.index, initial=-1) >= n:
        raise ValueError("a factor of more atoms than there are")


@stored(validate=_validate)
@dataclass(frozen=True)
class ActiveSet:
    """A point as a convex combination of atoms, with their Gram matrix: what the corrective inner solver keeps between steps.

    Build one with :meth:`at`. An active set is a value: each method returns a new one, which shares the atoms.

    Attributes
    ----------
    origin : Point
        A point of the set, which is subtracted from every atom: the Gram matrix of atoms far from 0 would lose its digits.
    atoms : tuple of Points
        The atoms minus the origin; :meth:`atom` adds it.
    gram : ndarray of shape (n_atoms, n_atoms)
        Inner products of ``atoms``.
    weights : ndarray of shape (n_atoms,)
        Not negative, with the sum 1.
    factor : Factor, default None
        Cholesky factor of the Gram matrix of the atoms in use, with which the next :meth:`nearest` begins.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> corners = np.eye(3)
    >>> hull = cg.ActiveSet.at(corners[0]).with_atom(corners[1]).with_atom(corners[2])
    >>> hull.find(corners[1]), hull.find(np.ones(3))
    (1, None)
    >>> nearest = hull.nearest(np.array([0.7, 0.6, -1.0]))
    >>> nearest.point().round(3), len(nearest.atoms)
    (array([0.55, 0.45, 0.  ]), 2)
    """

    origin: Point
    atoms: tuple[Point, ...]
    gram: np.ndarray
    weights: np.ndarray
    factor: Factor | None = None

    @classmethod
    def at(cls, x: Any) -> ActiveSet:
        """The point x as its only atom.

        Parameters
        ----------
        x : Point
            An array or a structured point.

        Returns
        -------
        ActiveSet
        """
        return cls(x, (x - x,), np.zeros((1, 1)), np.ones(1))

    def atom(self, i: int) -> Any:
        """The atom with the number i, as a point of the set."""
        return self.origin + self.atoms[i]

    def find(self, x: Any) -> int | None:
        """Index of the atom that equals x after subtraction of the origin; None if there is none."""
        atom = x - self.origin
        for i, other in enumerate(self.atoms):
            if norm2(other - atom) == 0.0:
                return i
        return None

    def point(self) -> Any:
        """The point that the weights stand for."""
        total = self.origin
        for i in np.flatnonzero(self.weights):
            total = total + float(self.weights[i]) * self.atoms[i]
        return total

    def with_atom(self, atom: Any) -> ActiveSet:
        """The same with one more atom, the last one, of weight 0."""
        atom = atom - self.origin
        row = np.array([inner(a, atom) for a in self.atoms])
        gram = np.block([[self.gram, row[:, None]], [row[None, :], np.full((1, 1), norm2(atom))]])
        return ActiveSet(self.origin, (*self.atoms, atom), gram, np.append(self.weights, 0.0), self.factor)

    def with_weights(self, weights: Any) -> ActiveSet:
        """The same atoms with other weights; those of weight 0 are dropped.

        Parameters
        ----------
        weights : array-like of shape (n_atoms,)
            Not negative, with the sum 1.

        Returns
        -------
        ActiveSet
        """
        given = np.asarray(weights, dtype=float)
        if given.shape != (len(self.atoms),) or not (given >= 0).all() or abs(given.sum() - 1) > 1e-9:
            raise ValueError(
                f"The weights are {given}, one number of at least 0 for each of {len(self.atoms)} atoms was expected, "
                "with the sum 1."
            )
        return self._kept(given, None)

    def nearest(self, z: Any) -> ActiveSet:
        """The point of the hull of the atoms that is nearest to z; atoms that it does not need are dropped."""
        from_origin = z - self.origin
        pull = np.array([inner(a, from_origin) for a in self.atoms])
        weights, factor = nearest_weights(self.gram, pull, self.weights, self.factor)
        return self._kept(weights, factor)

    def _kept(self, weights: np.ndarray, factor: Factor | None) -> ActiveSet:
        """The atoms that have a weight, with new numbers."""
        used = np.flatnonzero(weights)
        atoms = tuple(self.atoms[i] for i in used)
        if factor is not None:
            factor = replace(factor, index=np.arange(len(used))) if np.array_equal(factor.index, used) else None
        return ActiveSet(self.origin, atoms, self.gram[np.ix_(used, used)], weights[used], factor)
