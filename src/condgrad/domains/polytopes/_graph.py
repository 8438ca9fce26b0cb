"""Graphs given by a list of edges."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import checks


def edge_list(edges: Any, owner: str) -> np.ndarray:
    """The edges as a read-only array of int, shape (m, 2).

    Parameters
    ----------
    edges : array_like of int, shape (m, 2)
        Pairs of nodes, which are numbered from 0. Loops are refused; two edges may connect the same nodes.
    owner : str
        Name of the set, for messages.

    Returns
    -------
    np.ndarray of int64
    """
    pairs = pair_list(edges, owner)
    if np.any(loops := pairs[:, 0] == pairs[:, 1]):
        i = int(np.argmax(loops))
        raise ValueError(f"The edges of {owner} have a loop at node {pairs[i, 0]} (edge {i}): remove it.")
    return pairs


def pair_list(edges: Any, owner: str) -> np.ndarray:
    """The same, of any pairs of whole numbers: the two ends may be numbered each for themselves."""
    given = checks.finite_array(edges, f"The edges of {owner}")
    if given.ndim != 2 or given.shape[1] != 2 or not len(given):
        raise ValueError(
            f"The edges of {owner} have shape {given.shape}, but one row (node, node) for each edge was expected."
        )
    if np.any((given != np.rint(given)) | (given < 0) | (given >= 2**31)):
        raise ValueError(f"The edges of {owner} must be whole numbers of at least 0: number the nodes from 0.")
    pairs = given.astype(np.int64)
    pairs.setflags(write=False)
    return pairs


def incidence(edges: np.ndarray, nodes: int) -> Any:
    """The sparse matrix that takes a flow on directed edges to what leaves each node, shape (nodes, m)."""
    import scipy.sparse as sp

    columns = np.arange(len(edges))
    signs = np.concatenate([np.ones(len(edges)), -np.ones(len(edges))])
    entries = (signs, (np.concatenate([edges[:, 0], edges[:, 1]]), np.concatenate([columns, columns])))
    return sp.csr_array(entries, shape=(nodes, len(edges)))
