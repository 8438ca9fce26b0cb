"""The class `ActiveSet`: a point that is stored as a convex combination of atoms, with their weights."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from condgrad.linalg.simplex_qp import Factor, gram_of, nearest_weights, renumbered
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
        raise ValueError("the factor has atoms that the active set does not have")
    if active.origin is not None and tuple(active.origin.shape) != active.atoms.shape:
        raise ValueError("the origin and the atoms have different shapes")


@stored(validate=_validate)
@dataclass(frozen=True, eq=False)
class ActiveSet:
    """A convex combination of atoms, with the atoms, their weights and their Gram matrix.

    The corrective inner solver and methods with away steps keep an active set from step to step. Build an active set with
    :meth:`at`. An active set is immutable: a method that changes atoms or weights returns a new active set, which shares the
    arrays of the atoms. Sparse atoms stay sparse, so that the inner product of a sparse atom with a point takes time proportional
    to the number of its stored entries.

    Attributes
    ----------
    origin : Point or None
        A point of the feasible set. It is subtracted from every atom, because the Gram matrix of atoms far from 0 would lose
        digits. None if an atom is a structured point; then nothing is subtracted.
    atoms : Stack
        The sequence of the atoms minus the origin; :meth:`atom` adds the origin again.
    gram : ndarray of shape (n_atoms, n_atoms)
        Inner products of ``atoms``.
    weights : ndarray of shape (n_atoms,)
        Weights of the convex combination: not negative, with the sum 1.
    factor : Factor, default None
        Cholesky factor of the Gram matrix of the atoms with positive weight. The next call of :meth:`nearest` reuses it.
    x : Point, default None
        The convex combination. If it is None, :meth:`point` computes it.

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
        """Make an active set with x as its only atom.

        Parameters
        ----------
        x : Point
            An array or a structured point.
        origin : bool, default True
            If True and x is an array, x becomes the origin, which is subtracted from every atom. The origin is dropped when a
            structured atom is added. If False, an array x with few nonzero entries is stored as a SparseArray.

        Returns
        -------
        ActiveSet
        """
        if origin and isinstance(x, np.ndarray):
            return cls(x, Stack.of(x - x), np.zeros((1, 1)), np.ones(1), x=x)
        return cls(None, Stack.of(sparse_form(x)), np.full((1, 1), norm2(x)), np.ones(1), x=x)

    def atom(self, i: int) -> Any:
        """Atom i as a point of the feasible set: ``atoms[i]`` plus the origin."""
        return self.atoms[i] if self.origin is None else self.origin + self.atoms[i]

    def find(self, x: Any) -> int | None:
        """Index of the atom that equals x; None if no atom equals x."""
        atom = self.from_origin(x)
        if (digest := key(atom)) is not None:
            return self._numbers().get(digest)
        square = norm2(atom)
        alike = np.flatnonzero(np.abs(np.diag(self.gram) - square) <= 1e-9 * square)
        return next((int(i) for i in alike if norm2(self.atoms[i] - atom) == 0.0), None)

    def _numbers(self) -> dict[bytes | None, int]:
        """Dictionary from the hash of an atom (``stack.key``) to the index of the atom. It is computed once."""
        numbers = vars(self).get("_by_key")
        if numbers is None:
            numbers = {key(atom): i for i, atom in reversed(list(enumerate(self.atoms)))}
            vars(self)["_by_key"] = numbers
        return numbers

    def from_origin(self, x: Any) -> Any:
        """x minus the origin, or x if there is no origin."""
        return x if self.origin is None else x - self.origin

    def point(self) -> Any:
        """The convex combination of the atoms: an array, or a structured point if the atoms are structured."""
        if self.x is not None:
            return self.x
        combined = self.atoms.combined(self.weights)
        return combined if self.origin is None else self.origin + combined

    def structured_point(self) -> Any:
        """The convex combination, as in :meth:`point`. If all atoms are sparse, it is computed from them even if ``x`` is an
        array. It is then a SparseArray, unless the atoms together have many entries."""
        return replace(self, x=None).point() if self.atoms.all_sparse else self.point()

    def with_atom(self, atom: Any) -> ActiveSet:
        """Append an atom with weight 0."""
        return self.with_atoms([atom])

    def with_atoms(self, atoms: Sequence[Any]) -> ActiveSet:
        """Append atoms in the given order, each with weight 0."""
        if self.origin is not None and not all(isinstance(atom, np.ndarray) for atom in atoms):
            return self._without_origin().with_atoms(atoms)
        if self.origin is not None:
            atoms = [self.from_origin(atom) for atom in atoms]
        n, stack = len(self.atoms), self.atoms.with_points(atoms)
        gram = np.empty((len(stack), len(stack)))
        gram[:n, :n] = self.gram
        if len(atoms) == 1:
            gram[n, :n] = gram[:n, n] = self.atoms.products(atoms[0])
            gram[n, n] = norm2(atoms[0])
        else:
            gram[n:] = stack.kept(np.arange(n, len(stack))).products_with(stack)
            gram[:n, n:] = gram[n:, :n].T
        made = replace(self, atoms=stack, gram=gram, weights=np.append(self.weights, np.zeros(len(atoms))))
        if (numbers := vars(self).get("_by_key")) is not None:
            later = {key(atom): i for i, atom in reversed(list(enumerate(atoms, n)))}
            vars(made)["_by_key"] = later | numbers
        return made

    def _without_origin(self) -> ActiveSet:
        """The same convex combination without an origin, so that nothing is subtracted from the atoms."""
        first, *rest = (self.atom(i) for i in range(len(self.atoms)))
        made = ActiveSet.at(first, origin=False).with_atoms(rest)
        return replace(made, weights=self.weights, x=self.x)

    def with_weights(self, weights: Any) -> ActiveSet:
        """Replace the weights, and drop the atoms of weight 0.

        Parameters
        ----------
        weights : array-like of shape (n_atoms,)
            The new weights: not negative, with the sum 1.

        Returns
        -------
        ActiveSet
        """
        given = np.asarray(weights, dtype=float)
        if given.shape != (len(self.atoms),) or not (given >= 0).all() or abs(given.sum() - 1) > 1e-9:
            raise ValueError(
                f"The weights are {given}, but {len(self.atoms)} numbers of at least 0 with the sum 1 were expected, one for "
                "each atom."
            )
        return self._kept(given, None, np.flatnonzero(given))

    def products(self, direction: Any) -> np.ndarray:
        """Inner products of a direction with all elements of ``atoms``, that is, with the atoms minus the origin.

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
        """Find the point of the convex hull of the atoms that is nearest to z. Atoms of weight 0 are dropped."""
        return self.nearest_by_products(self.atoms.products(self.from_origin(z)))[0]

    def nearest_by_products(self, products: np.ndarray) -> tuple[ActiveSet, np.ndarray]:
        """Like :meth:`nearest`, but z is given by its inner products with the atoms.

        Parameters
        ----------
        products : ndarray of shape (n_atoms,)
            Inner products of ``atoms`` with z minus the origin.

        Returns
        -------
        ActiveSet
            The active set of the point nearest to z.
        ndarray of int
            Indices of the atoms that were kept.
        """
        weights, factor = nearest_weights(self.gram, products, self.weights, self.factor)
        used = np.flatnonzero(weights)
        return self._kept(weights, factor, used), used

    def _kept(self, weights: np.ndarray, factor: Factor | None, used: np.ndarray) -> ActiveSet:
        """The active set of the atoms ``used`` (increasing indices), renumbered from 0.

        ``weights`` has one weight for each atom of this active set.
        """
        if len(used) == len(self.atoms):
            made = ActiveSet(self.origin, self.atoms, self.gram, weights, factor)
            numbers = vars(self).get("_by_key")
        else:
            gram = gram_of(self.gram, used)
            factor = factor and renumbered(factor, used)
            made = ActiveSet(self.origin, self.atoms.kept(used), gram, weights[used], factor)
            numbers = vars(self).get("_by_key")
            if numbers is not None:
                new = dict(zip(used.tolist(), range(len(used)), strict=True))
                numbers = {digest: new[i] for digest, i in numbers.items() if i in new}
        if numbers is not None:
            vars(made)["_by_key"] = numbers
        return made
