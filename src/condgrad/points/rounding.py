r"""What rounding can do to a gap and to a gradient mapping: certificates add both.

Let w be the gradient that was computed, p the witness, d the direction w + (p - x)/gamma that was computed, and v the linear
oracle's answer to it.

- *Errors of a vector.* p is a witness for the gradient whose direction is exactly d. That gradient differs from F's by the
  rounding of w, of p - x and of d, and the mapping is 1-Lipschitz in the gradient (a projection is non-expansive): so these
  errors are added to the mapping's norm, without a square root. A projection and a singular value decomposition are exact for
  an input that differs by a few units in the last place, so the same sum covers them. Of w it is assumed that its oracle is
  *stable*: that it answers with the gradient at a point that is off by a few units in its last place, in an answer that is.
  This makes |w| + L |x| units, and L = 1/(2 gamma). Where w is a sum of terms that nearly cancel, it is not: an objective
  that states the norm of the terms (``grad_scale``) has it added.
- *Errors of a number.* <d, p - v> is a sum of n products; v is a minimiser up to a few units of |d| |v|; p lies in the set up
  to a few units of |p|, which is worth |d| |p| units. These are added to the gap, and come under the square root of Lemma 1.
"""

from __future__ import annotations

from math import log2, prod, sqrt
from typing import Any

import numpy as np

from condgrad.points.base import Structured, inner, norm2
from condgrad.points.low_rank import LowRank

UNIT = float(np.finfo(float).eps) / 2
"""The relative rounding of one operation."""
OF_TERMS = 40
"""Units by which a sum of terms errs, relative to their norm: 20 + log2 of their number, as in ``units``, and 4."""


def units(x: Any) -> float:
    """The relative error of a sum of as many products as x has entries.

    numpy and BLAS sum in blocks: 16 terms in a row, then pairwise. 4 more for the rounding of the factors and products.
    """
    n = prod(x.shape)
    return (min(n, 20 + log2(max(n, 1))) + 4) * UNIT


def summed(x: Any, y: Any) -> float:
    """<x, y>; of arrays as a pairwise sum, whose rounding ``units`` bounds."""
    both = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return float(np.sum(x * y)) if both else inner(x, y)


def difference(x: Any, y: Any) -> Any:
    """x - y. The difference of two matrices of low rank is written with factors of its own size: their terms, which are large and
    nearly cancel, would each bring their rounding to every product."""
    d = x - y
    return d.compressed() if isinstance(d, LowRank) and d.terms else d


def gap_rounding(direction: Any, point: Any, vertex: Any, size: float = 0.0) -> float:
    """What rounding can do to the gap <direction, point - vertex>.

    Parameters
    ----------
    direction, point, vertex : arrays or structured points
    size : float, default 0.0
        Norm of the terms whose sum the direction is. It counts where they are structured, and so never summed.
    """
    apart = sqrt(norm2(point - vertex))
    reach = apart + sqrt(norm2(point)) + sqrt(norm2(vertex))
    error = units(direction) * sqrt(norm2(direction)) * reach
    return error + (8 * UNIT * size * apart if isinstance(direction, Structured) else 0.0)


def mapping_rounding(
    grad: Any, x: Any, prox: Any, gamma: float, precision: float = 2 * UNIT, terms: float = 0.0
) -> float:
    """What rounding can do to the norm of the gradient mapping at x.

    Parameters
    ----------
    grad, x, prox : arrays or structured points
    gamma : float
        The smaller of the step sizes of the mapping and of the prox point.
    precision : float, default that of float64
        The relative distance of two numbers of the type in which the gradient was computed.
    terms : float, default 0.0
        Norm of the terms whose sum the gradient is, where the objective states it.
    """
    at, long = sqrt(norm2(x)) / gamma, sqrt(norm2(grad))
    own = precision / (2 * UNIT)
    return units(x) * (long + at + sqrt(norm2(prox)) / gamma + own * (long + at / 2)) + OF_TERMS * own * UNIT * terms


def grad_scale(objective: Any, x: Any) -> float:
    """Norm of the terms whose sum the gradient at x is; 0 where the objective does not state it."""
    stated = getattr(objective, "grad_scale", None)
    return 0.0 if stated is None else float(stated(x))


def precision(objective: Any, grad: Any) -> float:
    """The relative distance of two numbers of the type in which the objective computed this gradient."""
    known = getattr(objective, "precision", None)
    dtype = getattr(grad, "dtype", None)
    own = float(np.finfo(dtype).eps) if dtype is not None and np.issubdtype(dtype, np.floating) else 2 * UNIT
    return max(own, known or 0.0)


PRECISIONS = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""The relative distance of two numbers of a type, by the type's name in numpy, JAX and torch; all others count as float64."""
DOUBLE = 2 * UNIT


def precision_of(answer: Any) -> float:
    """The relative distance of two numbers of the coarsest type in an answer: an array, a tensor, or (nested) lists."""
    if isinstance(answer, list | tuple) or str(getattr(answer, "dtype", "")) == "object":
        return max(
            map(precision_of, answer if isinstance(answer, list | tuple) else np.ravel(answer).tolist()), default=DOUBLE
        )
    return PRECISIONS.get(str(getattr(answer, "dtype", "")).rpartition(".")[2], DOUBLE)


class Precise:
    """Remembers the coarsest type of number that a user's function has answered with: a certificate needs its precision.

    Not a field: what is remembered is no part of what was given.
    """

    @property
    def precision(self) -> float:
        """The relative distance of two numbers of that type."""
        return vars(self).get("_precision", DOUBLE)

    def _seen(self, answer: Any) -> Any:
        found = precision_of(answer)
        if found > self.precision:
            object.__setattr__(self, "_precision", found)
        return answer
