"""Interpolates the missing pixels of one channel of an image, and finds its wrong pixels.

Photographs do not have a low rank, but they are smooth between edges. Missing pixels are therefore interpolated by the surface
that equals the known pixels and minimises the sum of squared Laplacians (biharmonic interpolation). The surface is computed by
conjugate gradients. They start from the interpolation of the image at half of the resolution, which fills large holes.
"""

from __future__ import annotations

import numpy as np
import scipy.sparse as sp
from scipy.ndimage import zoom
from scipy.sparse.linalg import LinearOperator, cg

WINDOW = 2
"""A pixel is compared with the known pixels at most this number of rows and columns away."""
SPECKLE_SCALES, CONFIRMED_SCALES = 4.0, 6.0
"""A known pixel may be wrong if its distance from the median of its window is more than SPECKLE_SCALES times the scale of the
window. It is wrong if, in addition, its distance from the interpolation of the other pixels is more than CONFIRMED_SCALES times
this scale."""
EXTREME_SCALES = 1.0
"""This number replaces SPECKLE_SCALES and CONFIRMED_SCALES for pixels with the smallest or largest value of the channel, because
wrong pixels often have these values (salt and pepper noise)."""
SIMILAR_DISTANCE, SIMILAR_SHARE, MIN_SIMILAR = 0.02, 0.15, 2
"""Two pixels are similar if their values differ by at most SIMILAR_DISTANCE times the range of the channel. A pixel is right if
enough known pixels of its window are similar to it: at least MIN_SIMILAR, and at least the share SIMILAR_SHARE of them. On a line
that is one pixel wide, 4 of 24 pixels are similar."""
MIN_SPIKE, MAX_EXTREME, SPIKE_FACTOR = 0.03, 0.6, 2.0
"""A channel has much salt and pepper noise if its smallest and its largest value are each the value of at least the share
MIN_SPIKE of the known pixels, of at most the share MAX_EXTREME together, and each of at least SPIKE_FACTOR times as many pixels
as any other value. Drawings have more pixels with these values."""
MAJORITY = 0.7
"""If there is much salt and pepper noise, a pixel with an extreme value is right if this share of its window has the value. Other
pixels are compared with the pixels of the window that have no extreme value."""
TOLERANCE, MAX_ITERATIONS = 1e-5, 500
"""Conjugate gradients end when the residual has decreased by the factor TOLERANCE, or after MAX_ITERATIONS iterations. In holes
of 20 pixels, the error of the surface is then less than one of 255 grey levels."""


def interpolate(channel: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Fill the pixels that are not known.

    Parameters
    ----------
    channel : ndarray of shape (height, width)
        The pixels. Pixels that are not known may have any value.
    known : ndarray of bool of shape (height, width)
        Mask of the known pixels. If no pixel is known, all pixels become 0.

    Returns
    -------
    ndarray of shape (height, width)
        The channel. Known pixels are unchanged.
    """
    if known.all() or not known.any():
        return np.where(known, channel, 0.0)
    found = np.where(known, channel, _from_half_resolution(channel, known))
    laplacian = _laplacian(*channel.shape)
    unknown = np.flatnonzero(~known.ravel())
    free, fixed = laplacian[:, unknown], laplacian @ np.where(known, channel, 0.0).ravel()
    diagonal = np.asarray(free.multiply(free).sum(axis=0)).ravel()
    preconditioner = LinearOperator(free.shape[1:] * 2, lambda x: x / diagonal, dtype=float)
    normal = LinearOperator(free.shape[1:] * 2, lambda x: free.T @ (free @ x), dtype=float)
    start = found.ravel()[unknown]
    found.ravel()[unknown] = cg(
        normal, -(free.T @ fixed), start, rtol=TOLERANCE, maxiter=MAX_ITERATIONS, M=preconditioner
    )[0]
    return found


def wrong_pixels(channel: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Mask of the known pixels that differ too much from the pixels around them.

    Pixels far from the median of their window are candidates. Some of them are correct pixels at edges and corners. Therefore all
    candidates are interpolated from the other pixels, and a candidate that is close to its interpolation counts as correct.
    """
    around = _windows(channel, known)
    least, most = channel[known].min(), channel[known].max()
    extreme = (channel == least) | (channel == most)
    count = np.count_nonzero(~np.isnan(around), axis=0)
    similar = np.count_nonzero(np.abs(around - channel) <= SIMILAR_DISTANCE * (most - least), axis=0)
    share = np.full(channel.shape, SIMILAR_SHARE)
    if _has_spikes(channel[known]):
        share[extreme] = MAJORITY
        inner = np.where((around == least) | (around == most), np.nan, around)
        around = np.where(np.isnan(inner).all(axis=0), around, inner)
    alone = similar < np.maximum(MIN_SIMILAR, share * count)
    median = np.nanmedian(around, axis=0)
    scale = 1.4826 * np.nanmedian(np.abs(around - median), axis=0)
    distance = np.where(known, np.abs(channel - median), 0.0)
    scale = np.maximum(scale, 1.4826 * float(np.median(distance[known])))
    candidates = known & alone & (distance > np.where(extreme, EXTREME_SCALES, SPECKLE_SCALES) * scale)
    if not (known & ~candidates).any():
        return np.zeros_like(known)
    error = np.abs(channel - interpolate(channel, known & ~candidates))
    return candidates & (error > np.where(extreme, EXTREME_SCALES, CONFIRMED_SCALES) * scale)


def _has_spikes(values: np.ndarray) -> bool:
    """Whether the smallest and the largest value are the most frequent ones by far, as with much salt and pepper noise."""
    counts = np.unique(values, return_counts=True)[1]
    least, *others, most = counts if len(counts) > 2 else (0, 0, 0)
    needed = max(MIN_SPIKE * len(values), SPIKE_FACTOR * max(others))
    return bool(min(least, most) >= needed and least + most <= MAX_EXTREME * len(values))


def _windows(channel: np.ndarray, known: np.ndarray) -> np.ndarray:
    """For each pixel, the pixels around it. They are along the first axis of the result. Pixels that are not known are NaN.

    The pixel itself is not included, unless no pixel around it is known.
    """
    height, width = channel.shape
    padded = np.pad(np.where(known, channel, np.nan), WINDOW, constant_values=np.nan)
    places = np.ndindex(2 * WINDOW + 1, 2 * WINDOW + 1)
    around = np.stack([padded[i : i + height, j : j + width] for i, j in places if (i, j) != (WINDOW, WINDOW)])
    alone = np.isnan(around).all(axis=0)
    around[:, alone] = np.where(known, channel, 0.0)[alone]
    return around


def _from_half_resolution(channel: np.ndarray, known: np.ndarray) -> np.ndarray:
    """Interpolate the means over blocks of 2 x 2 pixels, and enlarge the result to the full resolution."""
    height, width = channel.shape
    if height * width == 1 or known.mean() > 0.9:
        return np.full(channel.shape, channel[known].mean())
    even = [(0, height % 2), (0, width % 2)]
    values = np.pad(np.where(known, channel, 0.0), even)
    counts = np.pad(known.astype(float), even)
    blocks = (values.shape[0] // 2, 2, values.shape[1] // 2, 2)
    sums, counts = values.reshape(blocks).sum(axis=(1, 3)), counts.reshape(blocks).sum(axis=(1, 3))
    coarse = interpolate(sums / np.maximum(counts, 1), counts > 0)
    fine = zoom(coarse, 2, order=1, mode="nearest", grid_mode=True)
    return fine[:height, :width]


def _laplacian(height: int, width: int) -> sp.csr_array:
    """The Laplacian of a grid: for each pixel, the sum of its differences to its neighbours (up to 4)."""

    def along(count: int) -> sp.csr_array:
        before = sp.eye_array(count - 1, count)
        step = sp.eye_array(count - 1, count, k=1) - before
        return sp.csr_array(step.T @ step)

    return sp.csr_array(sp.kron(along(height), sp.eye_array(width)) + sp.kron(sp.eye_array(height), along(width)))
