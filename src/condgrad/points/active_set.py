"""A point as a convex combination of atoms, which keep their identity."""

from __future__ import annotations

from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condgrad.linalg.simplex_qp import Factor, nearest_weights, renumbered
from condgrad.points.base import norm2
from condgrad.points.sparse_array import sparse_form
from condgrad.points.stack import Stack, key
from condgrad.protocols import Point
from condgrad.storage.stored import check_array, stored


def _validate(active: ActiveSet) -> None:
    n = len(active.atoms)
    check_array(active.gram, (n, n), "gram")
    check_array(active.weights, (n,), "weights")
    if active.factor is not None and np.max(active.factor.index, initial=-1) >= n:
        raise ValueError("a factor of more atoms than there are")
    if active.origin is not None and tuple(active.origin.shape) != active.atoms.shape:
        raise ValueError("an origin of another shape than the atoms")


@stored(validate=_validate)
@dataclass(frozen=True, eq=False)
class ActiveSet:
    """A point as a convex combination of atoms, with their Gram matrix: what the corrective inner solver and methods
    with away steps keep between steps.

    Build one with :meth:`at`. An active set is a value: each method returns a new one, which shares the atoms. Sparse atoms stay
    sparse: the inner products of all of them with a point take time proportional to their entries.

    Attributes
    ----------
    origin : Point or None
        A point of the set, which is subtracted from every atom: the Gram matrix of atoms far from 0 would lose its digits. Only
        where all atoms are arrays; else None.
    atoms : Stack
        The atoms minus the origin, a sequence; :meth:`atom` adds it.
    gram : ndarray of shape (n_atoms, n_atoms)
        Inner products of ``atoms``.
    weights : ndarray of shape (n_atoms,)
        Not negative, with the sum 1.
    factor : Factor, default None
        Cholesky factor of the Gram matrix of the atoms in use, with which the next :meth:`nearest` begins.
    x : Point, default None
        The point that the weights stand for, where it is known; :meth:`point` computes it.

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

    origin: Point | None
    atoms: Stack
    gram: np.ndarray
    weights: np.ndarray
    factor: Factor | None = None
    x: Point | None = None

    @classmethod
    def at(cls, x: Any, origin: bool = True) -> ActiveSet:
        """The point x as its only atom.

        Parameters
        ----------
        x : Point
            An array or a structured point.
        origin : bool, default True
            Whether an array x is subtracted from every atom. It is not once an atom is a structured point. With False, an array
            of which few entries are not 0 becomes a sparse atom.

        Returns
        -------
        ActiveSet
        """
        if origin and isinstance(x, np.ndarray):
            return cls(x, Stack.of(x - x), np.zeros((1, 1)), np.ones(1), x=x)
        return cls(None, Stack.of(sparse_form(x)), np.full((1, 1), norm2(x)), np.ones(1), x=x)

    def atom(self, i: int) -> Any:
        """The atom with the number i, as a point of the set."""
        return self.atoms[i] if self.origin is None else self.origin + self.atoms[i]

    def find(self, x: Any) -> int | None:
        """Index of the atom that equals x after subtraction of the origin; None if there is none."""
        atom = self.from_origin(x)
        if (digest := key(atom)) is not None:
            return self._numbers().get(digest)
        square = norm2(atom)
        alike = np.flatnonzero(np.abs(np.diag(self.gram) - square) <= 1e-9 * square)
        return next((int(i) for i in alike if norm2(self.atoms[i] - atom) == 0.0), None)

    def _numbers(self) -> dict[bytes | None, int]:
        """The numbers of the atoms by their keys, kept once it is asked for."""
        numbers = vars(self).get("_by_key")
        if numbers is None:
            numbers = {key(atom): i for i, atom in reversed(list(enumerate(self.atoms)))}
            vars(self)["_by_key"] = numbers
        return numbers

    def from_origin(self, x: Any) -> Any:
        """x minus the origin, where there is one."""
        return x if self.origin is None else x - self.origin

    def point(self) -> Any:
        """The point that the weights stand for: an array, or a structured point where the atoms are."""
        if self.x is not None:
            return self.x
        combined = self.atoms.combined(self.weights)
        return combined if self.origin is None else self.origin + combined

    def structured_point(self) -> Any:
        """The same, sparse where the atoms are sparse and have few entries, also where the point is known as an array."""
        return replace(self, x=None).point() if self.atoms.all_sparse else self.point()

    def with_atom(self, atom: Any) -> ActiveSet:
        """The same with one more atom, the last one, of weight 0."""
        if self.origin is not None and not isinstance(atom, np.ndarray):
            return self._without_origin().with_atom(atom)
        atom = self.from_origin(atom)
        n = len(self.atoms)
        gram = np.empty((n + 1, n + 1))
        gram[:n, :n] = self.gram
        gram[:n, n] = gram[n, :n] = self.atoms.products(atom)
        gram[n, n] = norm2(atom)
        made = replace(self, atoms=self.atoms.with_point(atom), gram=gram, weights=np.append(self.weights, 0.0))
        if (numbers := vars(self).get("_by_key")) is not None:
            vars(made)["_by_key"] = {key(atom): n} | numbers
        return made

    def _without_origin(self) -> ActiveSet:
        """The same atoms with nothing subtracted."""
        first, *rest = (self.atom(i) for i in range(len(self.atoms)))
        made = ActiveSet.at(first, origin=False)
        for atom in rest:
            made = made.with_atom(atom)
        return replace(made, weights=self.weights, x=self.x)

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
        return self._kept(given, None, np.flatnonzero(given))

    def products(self, direction: Any) -> np.ndarray:
        """The inner products of all atoms, minus the origin, with a direction: one product.

        Parameters
        ----------
        direction : Point
            An array or a structured point.

        Returns
        -------
        ndarray of shape (n_atoms,)
        """
        return self.atoms.products(direction)

    def nearest(self, z: Any) -> ActiveSet:
        """The point of the hull of the atoms that is nearest to z; atoms that it does not need are dropped."""
        return self.nearest_by_products(self.atoms.products(self.from_origin(z)))[0]

    def nearest_by_products(self, products: np.ndarray) -> tuple[ActiveSet, np.ndarray]:
        """The same where the inner products of the atoms with z, both minus the origin, are known; and the numbers of the atoms
        that were kept."""
        weights, factor = nearest_weights(self.gram, products, self.weights, self.factor)
        used = np.flatnonzero(weights)
        return self._kept(weights, factor, used), used

    def _kept(self, weights: np.ndarray, factor: Factor | None, used: np.ndarray) -> ActiveSet:
        """The atoms ``used``, with new numbers."""
        if len(used) == len(self.atoms):
            made = ActiveSet(self.origin, self.atoms, self.gram, weights, factor)
            numbers = vars(self).get("_by_key")
        else:
            gram = self.gram[np.ix_(used, used)]
            factor = factor and renumbered(factor, used)
            made = ActiveSet(self.origin, self.atoms.kept(used), gram, weights[used], factor)
            numbers = vars(self).get("_by_key")
            if numbers is not None:
                new = dict(zip(used.tolist(), range(len(used)), strict=True))
                numbers = {digest: new[i] for digest, i in numbers.items() if i in new}
        if numbers is not None:
            vars(made)["_by_key"] = numbers
        return made
