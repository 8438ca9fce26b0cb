"""Restoration of images with missing and wrong pixels, by smooth interpolation or matrix completion.

Matrix completion suits images with patterns that repeat along rows and columns, because such images have a low rank. The colour
channels are put side by side in one matrix, so that they share row factors. Photographs do not have a low rank; interpolation
between neighbouring pixels suits them better. Both methods are tried, and the method with the smaller error on held-out pixels is
used.
"""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import same_shape
from condgrad.learn.base import seed_of
from condgrad.learn.completion.estimator import RobustCompletion
from condgrad.learn.inpainting import interpolate, wrong_pixels
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing
from condgrad.storage.files import Limits, open_file, size_of

MAX_PIXELS = 100_000_000
"""Maximum number of pixels of an image, checked before memory is allocated."""

HELD_OUT_SHARE = 0.05
"""Share of the known pixels that are held out, to compare the two methods."""
MIN_HELD_OUT = 300
"""If HELD_OUT_SHARE gives fewer held-out pixels than this number, this number is held out."""
MAX_HELD_OUT_SHARE = 0.15
"""Maximum share of the known pixels that are held out."""
UNEXPLAINED_SHARE = 0.05
"""Share of the held-out pixels that the comparison ignores: the pixels that both methods predict worst, which may be outliers."""
SAMPLE_BYTES = {"I": 4, "F": 4, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
"""Bytes per channel of a pixel, by pillow's mode; 1 in all other modes."""
SUFFIXES_16_BIT = (".png", ".tif", ".tiff")
"""File suffixes of formats with 16 bits per channel. Only TIFF (the last two) has floats."""


class BadImage(ValueError):
    """A file that is not an image, or an image that can't be used."""


@dataclass(frozen=True, eq=False)
class Image:
    """An image.

    Attributes
    ----------
    pixels : ndarray of shape (height, width, channels)
        One channel for grey; NaN where a pixel is missing.
    top : float
        Value of white; infinite for floats.
    kind : str
        Kind of pixels, as a mode of pillow: "L", "I;16", "F" or "RGB".
    """

    pixels: np.ndarray
    top: float
    kind: str

    @property
    def lost(self) -> np.ndarray:
        """Mask of the missing pixels, of shape (height, width)."""
        return np.isnan(self.pixels).any(axis=2)

    def without(self, mask: np.ndarray) -> Image:
        """Copy of the image in which the pixels of the mask, of shape (height, width), are missing too."""
        same_shape(mask.shape, self.pixels.shape[:2], "The mask")
        return Image(np.where(mask[:, :, None], np.nan, self.pixels), self.top, self.kind)


@dataclass(frozen=True, eq=False)
class Restored:
    """A restored image.

    Attributes
    ----------
    image : Image
        The image without missing pixels.
    filled : ndarray of bool of shape (height, width)
        Mask of the pixels that were missing.
    corrected : ndarray of bool of shape (height, width)
        Mask of the pixels that were replaced because they are outliers.
    fit : RobustCompletion
        The fitted estimator.
    method : str
        Name of the method that filled the pixels, "low rank" or "smooth".
    errors : dict of str to float
        Mean absolute error of each method, by name, on held-out pixels that are not outliers.
    """

    image: Image
    filled: np.ndarray
    corrected: np.ndarray
    fit: RobustCompletion
    method: str
    errors: dict[str, float]


def restore(image: Image, fit: RobustCompletion, correct: bool = True) -> Restored:
    """Fill missing pixels and replace outliers; keep all other pixels.

    Parameters
    ----------
    image : Image
        The image; at least one pixel must not be missing.
    fit : RobustCompletion
        The estimator, which is fitted to the image.
    correct : bool, default True
        Whether outliers are replaced.

    Returns
    -------
    Restored

    Raises
    ------
    BadImage
        If all pixels are missing.
    """
    height, width, channels = image.pixels.shape
    if image.lost.all():
        raise BadImage("Every pixel is missing, but at least one must be known: is the mask inverted?")
    side_by_side = image.pixels.transpose(0, 2, 1).reshape(height, channels * width)
    known = ~np.isnan(side_by_side)
    share = max(HELD_OUT_SHARE, min(MIN_HELD_OUT / np.count_nonzero(known), MAX_HELD_OUT_SHARE))
    held_out = known & (np.random.default_rng((seed_of(fit.random_state), 5)).random(known.shape) < share)
    if np.array_equal(held_out, known):
        held_out[:] = False
    channel_columns = np.split(np.arange(channels * width), channels)

    def smooth(used: np.ndarray) -> np.ndarray:
        return np.hstack([interpolate(side_by_side[:, part], used[:, part]) for part in channel_columns])

    wrong = np.hstack([wrong_pixels(side_by_side[:, part], known[:, part]) for part in channel_columns])
    model = fit.fit(np.where(held_out, np.nan, side_by_side))
    found = {"low rank": model.fill(keep="nothing"), "smooth": smooth(known & ~wrong & ~held_out)}
    distances = np.array([np.abs(pixels - side_by_side)[held_out & ~wrong] for pixels in found.values()])
    nearest = distances.min(axis=0)
    compared = nearest <= np.quantile(nearest, 1 - UNEXPLAINED_SHARE) if nearest.size else slice(0)
    errors = {
        name: float(sizes[compared].mean()) if nearest.size else 0.0
        for name, sizes in zip(found, distances, strict=True)
    }
    method = min(errors, key=lambda method: errors[method])
    if method == "smooth":
        filled, outliers = smooth(known & ~wrong), wrong
    else:
        filled, distance = found[method], np.abs(found[method] - side_by_side)
        outliers = known & ~held_out & (model.fill(keep="inliers") != side_by_side)
        outliers |= held_out & (distance > distance.max(where=known & ~held_out & ~outliers, initial=0.0))
    filled = np.where(known & ~(outliers & correct), side_by_side, filled)
    if image.kind != "F":
        filled = np.clip(filled, 0.0, image.top)
    corrected = known & (filled != side_by_side)

    def pixels(matrix: np.ndarray) -> np.ndarray:
        return matrix.reshape(height, channels, width).transpose(0, 2, 1)

    restored, changed = Image(pixels(filled), image.top, image.kind), np.asarray(pixels(corrected).any(axis=2))
    return Restored(restored, image.lost, changed, model, method, errors)


def read(path: str | os.PathLike[str]) -> Image:
    """Read a grey or colour image. Pixels that are transparent, or NaN in images of floats, are missing.

    Parameters
    ----------
    path : str or path-like
        A file in a format that pillow reads without another program.

    Returns
    -------
    Image

    Raises
    ------
    BadImage
        If the file is not an image, is damaged or too large, or has infinite pixels.
    """
    opened = _open(Path(path))
    transparent, kind = None, _kind(opened, Path(path))
    if "A" in opened.getbands() or "transparency" in opened.info:
        transparent = np.asarray(with_alpha := opened.convert("RGBA"))[:, :, 3] == 0
        opened = with_alpha if kind == "RGB" else opened  # pillow warns if it converts a palette directly
        if kind == "I;16":  # pillow has the transparent grey value in info, but no alpha channel
            transparent = np.asarray(opened) == opened.info["transparency"]
    pixels = np.asarray(opened if kind in ("F", "I;16") else opened.convert(kind), dtype=float)
    image = Image(pixels.reshape(*pixels.shape[:2], -1), {"F": np.inf, "I;16": 65535.0}.get(kind, 255.0), kind)
    if np.isinf(image.pixels).any():
        raise BadImage(f"{path} has infinite pixels, but finite ones were expected: use NaN for missing pixels.")
    return image if transparent is None else image.without(transparent)


def read_mask(path: str | os.PathLike[str]) -> np.ndarray:
    """Read a mask from an image file.

    Returns
    -------
    ndarray of bool of shape (height, width)
        True where the image is neither black nor transparent.
    """
    return np.asarray((read(path).pixels > 0).any(axis=2))


def check_name(image: Image, path: str | os.PathLike[str]) -> None:
    """Raise BadImage if the file format given by the suffix of the path can't hold the pixels of the image."""
    suffix = Path(path).suffix.lower()
    if suffix not in {"F": SUFFIXES_16_BIT[1:], "I;16": SUFFIXES_16_BIT}.get(image.kind, _suffixes()):
        known = {"F": "a .tiff", "I;16": "a .png or .tiff"}.get(image.kind, "a .png, .tiff or .jpg")
        raise BadImage(f"Pixels of the kind {image.kind} can't be written to {path}: give the name of {known}.")


def write(image: Image, path: str | os.PathLike[str]) -> None:
    """Write the image atomically, in the format given by the suffix of the path. The kind of pixels is kept."""
    with needed_for("Pictures"):
        import PIL.Image

    check_name(image, path)
    dtype = {"F": np.float32, "I;16": np.uint16}.get(image.kind, np.uint8)
    pixels = image.pixels if image.kind == "F" else image.pixels.round()
    squeezed = pixels[:, :, 0] if pixels.shape[2] == 1 else pixels
    encoded = io.BytesIO()
    kind = PIL.Image.registered_extensions()[Path(path).suffix.lower()]
    PIL.Image.fromarray(np.ascontiguousarray(squeezed.astype(dtype))).save(encoded, kind)
    with replacing(Path(path)) as file:
        file.write(encoded.getbuffer())


def _suffixes() -> set[str]:
    """File suffixes of the formats that pillow writes."""
    with needed_for("Pictures"):
        import PIL.Image

    return {suffix for suffix, kind in PIL.Image.registered_extensions().items() if kind in PIL.Image.SAVE}


def _kind(opened: Any, path: Path) -> str:
    """Kind of pixels in which an image is read. Grey, 16-bit and float images keep their kind, and all others become RGB."""
    mode = opened.mode
    if mode in ("F", "I;16", "RGB", "L"):
        return mode
    if mode.startswith("I"):
        raise BadImage(f"{path} has pixels of the kind {mode}: save it with 8 or 16 bits, or as floats.")
    return "L" if mode in ("1", "LA", "La") else "RGB"


def _open(path: Path) -> Any:
    """Open and decode an image with pillow, within limits on its size."""
    with needed_for("Pictures"):
        import PIL.Image
    with open_file(path) as file:
        try:
            opened = PIL.Image.open(file, formats=_formats())
            unpacked = opened.width * opened.height * len(opened.getbands()) * SAMPLE_BYTES.get(opened.mode, 1)
            if opened.width * opened.height > MAX_PIXELS:
                raise BadImage(
                    f"{path} has {opened.width} x {opened.height} pixels: at most {MAX_PIXELS:,} can be taken."
                )
            if unpacked > (allowed := Limits().allowed(size_of(file))):
                raise BadImage(
                    f"{path} unpacks to {unpacked:,} bytes of pixels, at most {allowed:,} are allowed for a file of its size: "
                    "check where it comes from, or save it as TIFF without compression."
                )
            opened.load()
        except BadImage:
            raise
        except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError, MemoryError):
            raise BadImage(
                f"{path} is not an image, or damaged: give a PNG, TIFF, JPEG or another format that pillow reads."
            ) from None
    return opened


def _formats() -> list[str]:
    """Formats that pillow reads itself. EPS is not among them, because pillow would start another program to read it."""
    import PIL.Image

    PIL.Image.init()
    return [kind for kind in PIL.Image.ID if kind != "EPS"]
