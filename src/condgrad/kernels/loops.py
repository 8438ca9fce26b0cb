"""The compiled kernels: loops that numba compiles. They write into arrays that the caller allocates.

A kernel computes the part from ``begin`` to ``end`` of its loop over rows, stripes, chunks or entries. Different parts write to
different places, so that several threads can share a loop. numba's own parallel loops are not used: they take four times as long
to compile, and their threads do not survive a fork.

Arrays may be float32 or float64. Arithmetic and sums are in float64, so the only rounding to float32 is that of a result.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any, cast

import numba
import numpy as np
from numba.core import event, types
from numba.extending import intrinsic

from condgrad.kernels.compile_progress import CompileProgress
from condgrad.kernels.disk_cache import KernelCache

float64 = numba.float64


class Kernel:
    """A loop that numba compiles at the first call with new argument types; the machine code is cached on disk.

    Arrays that the loop only reads are always passed read-only: numba compiles separate versions for read-only and for
    writeable arrays.
    """

    def __init__(self, function: Callable[..., None], read: tuple[str, ...]):
        self.dispatcher = _njit(function)
        self.dispatcher._cache = KernelCache(function)
        self.read = [function.__code__.co_varnames.index(name) for name in read]

    def __call__(self, *args: Any) -> None:
        given = list(args)
        for i in self.read:
            if given[i].flags.writeable:
                given[i] = given[i].view()
                given[i].setflags(write=False)
        self.dispatcher(*given)


def _compiled(*read: str) -> Callable[[Callable[..., None]], Kernel]:
    """Decorator that makes a loop a :class:`Kernel`; ``read`` names the arrays that the loop only reads."""
    return lambda function: Kernel(function, read)


_njit = cast(Any, numba.njit)(
    nogil=True,
    no_cfunc_wrapper=True,  # kernels are called from Python only, and the wrapper takes time to compile
    error_model="numpy",
    fastmath={"reassoc", "contract", "nsz", "arcp"},  # without "nnan" and "ninf": NaN and Inf keep their meaning
)


event.register("numba:compile", CompileProgress(__name__))


@_compiled("indptr", "indices", "U", "V")
def sample(begin, end, indptr, indices, U, V, out):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        for p in range(indptr[i], indptr[i + 1]):
            j = indices[p]
            total = 0.0
            for q in range(U.shape[1]):
                total += float64(U[i, q]) * V[j, q]
            out[p] = total


@_compiled("rows", "cols", "U", "V")
def sample_at(begin, end, rows, cols, U, V, out):  # type: ignore[no-untyped-def]
    for p in range(begin, end):
        total = 0.0
        for q in range(U.shape[1]):
            total += float64(U[rows[p], q]) * V[cols[p], q]
        out[p] = total


@_compiled("indptr", "indices", "values", "W")
def times(begin, end, indptr, indices, values, W, out):  # type: ignore[no-untyped-def]
    if W.shape[1] == 1:  # one column: the sum stays in a register
        for i in range(begin, end):
            total = 0.0
            for p in range(indptr[i], indptr[i + 1]):
                total += float64(values[p]) * W[indices[p], 0]
            out[i, 0] = total
        return
    for i in range(begin, end):
        for q in range(W.shape[1]):
            out[i, q] = 0
        for p in range(indptr[i], indptr[i + 1]):
            j, v = indices[p], float64(values[p])
            for q in range(W.shape[1]):
                out[i, q] += v * W[j, q]


@_compiled("cuts", "indices", "values", "Q")
def transposed_times(begin, end, cuts, indices, values, Q, width, out):  # type: ignore[no-untyped-def]
    for s in range(begin, end):
        for j in range(s * width, min((s + 1) * width, out.shape[0])):
            for q in range(Q.shape[1]):
                out[j, q] = 0
        if Q.shape[1] == 1:
            for i in range(Q.shape[0]):
                weight = float64(Q[i, 0])
                for p in range(cuts[s, i], cuts[s + 1, i]):
                    out[indices[p], 0] += values[p] * weight
            continue
        for i in range(Q.shape[0]):
            for p in range(cuts[s, i], cuts[s + 1, i]):
                j, v = indices[p], float64(values[p])
                for q in range(Q.shape[1]):
                    out[j, q] += v * Q[i, q]


@_compiled("indptr", "residuals")
def inlier_weights(begin, end, indptr, residuals, smoothness, weights, weight_sums, weighted_sums):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        total, weighted = 0.0, 0.0
        for p in range(indptr[i], indptr[i + 1]):
            t = float64(residuals[p])
            w = 1.0 if abs(t) < 1e-150 else min(max(weights[p] / t / smoothness, 0.0), 1.0)
            weights[p] = w
            total += w
            weighted += w * t
        weight_sums[i], weighted_sums[i] = total, weighted


@_compiled("indptr", "indices", "weights", "residuals", "cols")
def row_weighted_sums(begin, end, indptr, indices, weights, residuals, cols, weighted_sums):  # type: ignore[no-untyped-def]
    for i in range(begin, end):
        total = 0.0
        for p in range(indptr[i], indptr[i + 1]):
            total += weights[p] * (float64(residuals[p]) - cols[indices[p]])
        weighted_sums[i] = total


@_compiled("cuts", "indices", "weights", "residuals", "rows")
def column_weighted_sums(begin, end, cuts, indices, weights, residuals, rows, width, weight_sums, weighted_sums):  # type: ignore[no-untyped-def]
    for s in range(begin, end):
        for j in range(s * width, min((s + 1) * width, len(weight_sums))):
            weight_sums[j] = weighted_sums[j] = 0
        for i in range(cuts.shape[1]):
            row = rows[i]
            for p in range(cuts[s, i], cuts[s + 1, i]):
                j, w = indices[p], float64(weights[p])
                weight_sums[j] += w
                weighted_sums[j] += w * (residuals[p] - row)


@_compiled("part")
def add(begin, end, total, c, part):  # type: ignore[no-untyped-def]
    for p in range(begin, end):
        total[p] += c * part[p]


@_compiled("x", "y")
def dot(begin, end, x, y, chunk, sums):  # type: ignore[no-untyped-def]
    for s in range(begin, end):
        total = 0.0
        for p in range(s * chunk, min((s + 1) * chunk, len(x))):
            total += float64(x[p]) * y[p]
        sums[s] = total


@_compiled("x", "y")
def distance2(begin, end, a, x, b, y, chunk, sums):  # type: ignore[no-untyped-def]
    for s in range(begin, end):
        total = 0.0
        for p in range(s * chunk, min((s + 1) * chunk, len(x))):
            difference = a * x[p] - b * y[p]
            total += difference * difference
        sums[s] = total


@numba.njit(inline="always")
def _sigmoid(t):  # type: ignore[no-untyped-def]
    if t >= 0:
        return 1 / (1 + math.exp(-t))
    e = math.exp(t)
    return e / (1 + e)


@_compiled("z", "y", "weights")
def loss(begin, end, kind, c, z, y, weights, chunk, deriv, sums):  # type: ignore[no-untyped-def]
    """``kind`` is the index of the loss in kernels.LOSSES; c is sigma (or Huber's delta)."""
    for s in range(begin, end):
        total = 0.0
        for p in range(s * chunk, min((s + 1) * chunk, len(z))):
            prediction, observation = float64(z[p]), float64(y[p])
            t = prediction - observation
            if kind == 0:
                value, slope = t * t / 2, t
            elif kind == 1:
                # exp(-750) rounds to 0, so the cut changes no value and avoids an overflow
                e = math.exp(-min(t * t / c, 750.0))
                value, slope = 1 - e, 0.0 if e == 0 else 2 / c * t * e
                if t * t < 1e-3 * c:  # 1 - e would cancel
                    value = -math.expm1(-t * t / c)
            elif kind == 2:
                slope = min(max(t, -c), c)
                value = slope * (t - slope / 2)
            elif kind == 3:
                u = t / math.sqrt(c)
                value = math.log1p(u * u) if abs(u) < 1e100 else 2 * math.log(abs(u))
                slope = 2 / math.sqrt(c) * (u / (1 + u * u) if abs(u) < 1e100 else 1 / u)
            elif kind == 4:
                u = t / math.sqrt(c)
                if abs(u) >= 1e75:
                    value, slope = 1.0, 2 / math.sqrt(c) / u / u / u
                else:
                    value, slope = u * u / (1 + u * u), 2 / math.sqrt(c) * u / ((1 + u * u) * (1 + u * u))
            elif kind == 5:
                a = -observation * prediction
                value = max(a, 0.0) + math.log1p(math.exp(-abs(a)))
                slope = -observation * _sigmoid(a)
            else:
                a = -observation * prediction
                value = _sigmoid(a)
                slope = -observation * value * _sigmoid(-a)
            if len(weights) > 0:
                value, slope = weights[p] * value, weights[p] * slope
            total += value
            if len(deriv) > 0:
                deriv[p] = slope
        sums[s] = total


@cast(Any, intrinsic)
def _power_of_two(typing_context, exponent):  # type: ignore[no-untyped-def]
    """2**k for a whole number k from -1022 to 1023, by the bits of the float."""

    def generate(context, builder, signature, args):  # type: ignore[no-untyped-def]
        bits = builder.shl(builder.add(args[0], args[0].type(1023)), args[0].type(52))
        return builder.bitcast(bits, context.get_value_type(types.float64))

    return types.float64(types.int64), generate


@numba.njit(inline="always")
def _exp_of_negative(u):  # type: ignore[no-untyped-def]
    """exp(-u) for u from 0 to 708, to 2 units in the last place. Without branches, so that loops with it are vectorised."""
    k = math.floor(0.5 - u * 1.4426950408889634)
    r = -u - k * 0.693145751953125 - k * 1.4286068203094172e-06
    s = r * r
    # the rational approximation of Cephes' exp
    p = r * ((1.26177193074810590878e-4 * s + 3.02994407707441961300e-2) * s + 9.99999999999999999910e-1)
    q = ((3.00198505138664455042e-6 * s + 2.52448340349684104192e-3) * s + 2.27265548208155028766e-1) * s + 2.0
    return (1 + 2 * p / (q - p)) * _power_of_two(types.int64(k))


@_compiled("z", "y")
def welsch(begin, end, c, z, y, chunk, deriv, sums):  # type: ignore[no-untyped-def]
    """The loss "welsch" without weights, as ``loss`` computes it, by a vectorised loop: a quarter of the time."""
    inverse = 1 / c
    for s in range(begin, end):
        first, last = s * chunk, min((s + 1) * chunk, len(z))
        predictions, observations, slopes = z[first:last], y[first:last], deriv[first:last]
        total = 0.0
        for p in range(len(predictions)):
            t = float64(predictions[p]) - float64(observations[p])
            u = t * t * inverse
            e = _exp_of_negative(min(u, 708.0))
            series = u * (1 - u * 0.5 * (1 - u * (1 / 3) * (1 - u * 0.25 * (1 - u * 0.2))))  # where 1 - e would cancel
            total += series if u < 1e-3 else 1 - e
            slopes[p] = 0.0 if u > 708.0 else 2 * inverse * t * e
        sums[s] = total


@_compiled("nodes", "into", "tails", "costs")
def shortest_paths(begin, end, nodes, into, tails, costs, distances, last):  # type: ignore[no-untyped-def]
    for _ in range(begin, end):  # a loop of length 1: a node needs the nodes before it, so threads can't share the work
        for k in range(len(nodes)):
            node, best = nodes[k], math.inf
            for edge in range(into[node, 0], into[node, 1]):
                length = distances[tails[edge]] + costs[edge]
                if length < best:
                    best = length
                    last[node] = edge
            distances[node] = best


@_compiled("order", "edges")
def spanning_tree(begin, end, order, edges, roots, chosen):  # type: ignore[no-untyped-def]
    for _ in range(begin, end):  # a loop of length 1, as above
        count = 0
        for edge in order:
            u, v = edges[edge, 0], edges[edge, 1]
            while roots[u] != u:
                roots[u] = roots[roots[u]]
                u = roots[u]
            while roots[v] != v:
                roots[v] = roots[roots[v]]
                v = roots[v]
            if u != v:
                roots[u] = v
                chosen[count] = edge
                count += 1
                if count == len(chosen):
                    break


@_compiled("indptr", "indices", "targets", "weights", "V", "penalties", "centres", "noise")
def ridge_regressions(begin, end, indptr, indices, targets, weights, V, penalties, centres, noise, solutions, draws):  # type: ignore[no-untyped-def]
    d = V.shape[1]
    A, b, c = np.empty((d, d)), np.empty(d), np.empty(d)
    for i in range(begin, end):
        for q in range(d):
            b[q] = penalties[q] * centres[i, q]
            for r in range(q):
                A[q, r] = 0.0
            A[q, q] = penalties[q]
        for p in range(indptr[i], indptr[i + 1]):
            j, w = indices[p], float64(weights[p])
            t = w * targets[p]
            for q in range(d):
                b[q] += t * V[j, q]
                s = w * V[j, q]
                for r in range(q + 1):
                    A[q, r] += s * V[j, r]
        for q in range(d):  # the Cholesky factor of A, in place
            s = A[q, q]
            for r in range(q):
                s -= A[q, r] * A[q, r]
            A[q, q] = math.sqrt(max(s, 1e-300))
            for t in range(q + 1, d):
                s = A[t, q]
                for r in range(q):
                    s -= A[t, r] * A[q, r]
                A[t, q] = s / A[q, q]
        for q in range(d):
            s = b[q]
            for r in range(q):
                s -= A[q, r] * b[r]
            b[q] = s / A[q, q]
            c[q] = b[q] + noise[i, q]
        for q in range(d - 1, -1, -1):
            s, u = b[q], c[q]
            for r in range(q + 1, d):
                s -= A[r, q] * b[r]
                u -= A[r, q] * c[r]
            b[q], c[q] = s / A[q, q], u / A[q, q]
            solutions[i, q], draws[i, q] = b[q], c[q]
