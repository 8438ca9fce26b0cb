r"""Bounds on the rounding errors of the gradient mapping and of the gap. A certificate (certificate.py) adds them to its bounds.

Let w be the computed gradient, p the witness of the certificate, d the computed direction w + (p - x)/gamma, and v the linear
oracle's answer for d. A *unit* of a number is the number times the rounding error of one operation.

- *Errors of the mapping.* The computed d is exactly the direction of the witness p if the gradient d - (p - x)/gamma takes the
  place of the gradient of F. The two gradients differ by the rounding errors of w, p - x and d. The mapping is 1-Lipschitz in the
  gradient, because a projection is non-expansive. Therefore the norms of these errors are added to the norm of the mapping,
  without a square root. If p is a computed projection of x - gamma w, it is the exact projection of a point that differs from
  x - gamma w by a few units. This changes the mapping by a few units of |w| + |x|/gamma, which the added norms cover too. If p is
  computed by an SVD, the errors of the SVD are of the same size.
  The gradient oracle is assumed to be *stable*: up to a few units, w is the gradient at a point that differs from x by a few
  units. The error of w is then a few units of |w| + L |x|, where L = 1/(2 gamma). This assumption fails if w is a sum of terms
  that nearly cancel. If the objective states a bound on the sum of the norms of the terms (``grad_scale``), a few units of this
  bound are added.
- *Errors of the gap* <d, p - v>. First, it is a rounded sum of n products. Second, v is a minimiser only up to a few units of
  |d| |v|. Third, p lies in the set only up to a few units of |p|, which changes the gap by a few units of |d| |p|. These errors
  are added to the gap, under the square root of Lemma 1 (see certificate.py).
"""

from __future__ import annotations

from functools import cache
from math import log2, prod, sqrt
from typing import Any

import numpy as np

from condgrad.points.base import Structured, distance2, inner, norm2
from condgrad.points.blocks import Blocks
from condgrad.points.low_rank import LowRank
from condgrad.runtime.cache import active

UNIT_ROUNDOFF = float(np.finfo(float).eps) / 2
"""Maximum relative rounding error of one operation in float64."""
TERM_ROUNDING_UNITS = 40
"""Bound on the relative rounding error of a sum of terms, in units of UNIT_ROUNDOFF. ``sum_rounding`` gives this bound for 2^16
terms."""


def sum_rounding(x: Any) -> float:
    """Return a bound on the relative rounding error of a sum that has one product for each entry of x.

    numpy and BLAS sum blocks of 16 terms in sequence, then the blocks pairwise. 4 more units cover the rounding errors of the
    factors and of the products.
    """
    n = prod(x.shape)
    return (min(n, 20 + log2(max(n, 1))) + 4) * UNIT_ROUNDOFF


def pairwise_inner(x: Any, y: Any) -> float:
    """Return <x, y>. Products of arrays are summed pairwise, so that ``sum_rounding`` bounds the rounding error."""
    if isinstance(x, Blocks) and isinstance(y, Blocks):
        return sum(pairwise_inner(a, b) for a, b in zip(x.blocks, y.blocks, strict=True))
    both = isinstance(x, np.ndarray) and isinstance(y, np.ndarray)
    return float(np.sum(x * y)) if both else inner(x, y)


def difference(x: Any, y: Any) -> Any:
    """Return x - y. A low-rank difference is compressed.

    An uncompressed low-rank difference has large terms that nearly cancel. An inner product with such a difference would have the
    rounding errors of every term.
    """
    return _compressed(x - y)


def _compressed(d: Any) -> Any:
    if isinstance(d, Blocks):
        return d.map(_compressed)
    return d.compressed() if isinstance(d, LowRank) and d.terms else d


def gap_rounding(direction: Any, point: Any, vertex: Any, size: float = 0.0) -> float:
    """Return a bound on the rounding error of the gap <direction, point - vertex>.

    Parameters
    ----------
    direction, point, vertex : arrays or structured points
    size : float, default 0.0
        A bound on the sum of the norms of the terms of the direction. It is used only if the direction is structured. The terms
        are then not summed to one array, so that each term contributes its own rounding error.
    """
    distance = sqrt(distance2(point, vertex))
    sizes = distance + sqrt(norm2(point)) + sqrt(norm2(vertex))
    error = sum_rounding(direction) * sqrt(norm2(direction)) * sizes
    return error + (8 * UNIT_ROUNDOFF * size * distance if isinstance(direction, Structured) else 0.0)


def mapping_rounding(
    grad: Any, x: Any, prox: Any, gamma: float, precision: float = 2 * UNIT_ROUNDOFF, terms: float = 0.0
) -> float:
    """Return a bound on the rounding error of the norm of the gradient mapping at x.

    Parameters
    ----------
    grad, x, prox : arrays or structured points
        A structured gradient may have an attribute ``rounding``, a bound on the norm of its rounding errors. In float32 this
        bound is much smaller than a bound computed from ``precision``, because the values are computed in float64 and rounded
        once.
    gamma : float
        The step size of the mapping or the step size of the prox point, whichever is smaller.
    precision : float, default 2 * UNIT_ROUNDOFF
        Machine epsilon of the type in which the gradient was computed. The default is that of float64.
    terms : float, default 0.0
        A bound on the sum of the norms of the terms of the gradient; 0 if the objective states no bound.
    """
    x_size, grad_size = sqrt(norm2(x)) / gamma, sqrt(norm2(grad))
    ratio = precision / (2 * UNIT_ROUNDOFF)
    return (
        sum_rounding(x) * (grad_size + x_size + sqrt(norm2(prox)) / gamma + ratio * (grad_size + x_size / 2))
        + TERM_ROUNDING_UNITS * ratio * UNIT_ROUNDOFF * terms
        + stated_rounding(grad)
    )


def stated_rounding(grad: Any) -> float:
    """Return the bound on the norm of the rounding errors that a structured gradient states; 0 if it states no bound."""
    if isinstance(grad, np.ndarray):  # avoids the slow isinstance check for the abstract class Structured
        return 0.0
    return float(getattr(grad, "rounding", 0.0)) if isinstance(grad, Structured) else 0.0


def grad_scale(objective: Any, x: Any) -> float:
    """Return a bound on the sum of the norms of the terms of the gradient at x; 0 if the objective states no bound."""
    stated = getattr(objective, "grad_scale", None)
    return 0.0 if stated is None else float(stated(x))


def terms_rounding(objective: Any, x: Any, grad: Any) -> float:
    """Return a bound on the rounding error of the gradient at x as a sum of terms; 0 if the objective has no ``grad_scale``."""
    return TERM_ROUNDING_UNITS * precision(objective, grad) / 2 * grad_scale(objective, x)


def precision(objective: Any, grad: Any) -> float:
    """Return the machine epsilon of the type in which the objective computed this gradient."""
    known = getattr(objective, "precision", None)
    return max(_machine_epsilon(getattr(grad, "dtype", None)), known or 0.0)


@cache
def _machine_epsilon(dtype: Any) -> float:
    floating = dtype is not None and np.issubdtype(dtype, np.floating)
    return float(np.finfo(dtype).eps) if floating else 2 * UNIT_ROUNDOFF


PRECISION_BY_DTYPE = {"float32": 2.0**-23, "float16": 2.0**-10, "bfloat16": 2.0**-7}
"""Machine epsilon of a floating-point type, by its name in numpy, JAX and torch. All other types count as float64."""
FLOAT64_PRECISION = 2 * UNIT_ROUNDOFF


def precision_of(answer: Any) -> float:
    """Return the largest machine epsilon of the types in an answer: an array, a tensor, or a list or dict of answers."""
    if isinstance(answer, np.ndarray) and answer.dtype == np.float64:  # the usual case; names of types are slow
        return FLOAT64_PRECISION
    if isinstance(answer, dict):
        return precision_of(list(answer.values()))
    if isinstance(answer, list | tuple) or str(getattr(answer, "dtype", "")) == "object":
        return max(
            map(precision_of, answer if isinstance(answer, list | tuple) else np.ravel(answer).tolist()),
            default=FLOAT64_PRECISION,
        )
    return PRECISION_BY_DTYPE.get(str(getattr(answer, "dtype", "")).rpartition(".")[2], FLOAT64_PRECISION)


class TracksPrecision:
    """Mixin for wrappers of a user's function. It records the lowest precision of the function's answers, for certificates.

    The record is kept in the cache of the run or thread (``runtime.cache.active()``). Runs and threads that share the function
    therefore have separate records.
    """

    @property
    def precision(self) -> float:
        """Largest machine epsilon of the types that the function has returned in this run (outside of runs: in this thread)."""
        return active().numbers.get(self, self) or FLOAT64_PRECISION

    def _record_precision(self, answer: Any) -> Any:
        found = precision_of(answer)
        if found > self.precision:
            active().numbers.put(self, self, found)
        return answer
