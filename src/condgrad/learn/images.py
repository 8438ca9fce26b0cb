"""Pictures with lost and wrong pixels, as matrices: the channels of colour stand side by side, so that they share their rows."""

from __future__ import annotations

import io
import os
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import same_shape
from condgrad.learn.completion.estimator import RobustCompletion
from condgrad.runtime.extras import needed_for
from condgrad.storage.atomic import replacing
from condgrad.storage.files import Limits, open_file, size_of

PIXELS = 100_000_000
"""More than this is refused before memory is taken."""


SAMPLE_BYTES = {"I": 4, "F": 4, "I;16": 2, "I;16B": 2, "I;16L": 2, "I;16N": 2}
"""Bytes of one number of a pixel, by pillow's modes; 1 in all others."""
DEEP = (".png", ".tif", ".tiff")
"""Names of formats for 16 bits; floats need the last two."""


class BadImage(ValueError):
    """A file that is no picture, or one that can't be used."""


@dataclass(frozen=True, eq=False)
class Image:
    """Height x width x channels (one for grey); NaN where a pixel is lost. ``top`` is white."""

    pixels: np.ndarray
    top: float
    kind: str
    """L, I;16, F or RGB, as pillow calls them."""

    @property
    def lost(self) -> np.ndarray:
        """Height x width."""
        return np.isnan(self.pixels).any(axis=2)

    def without(self, mask: np.ndarray) -> Image:
        """With the pixels of the mask lost too."""
        same_shape(mask.shape, self.pixels.shape[:2], "The mask")
        return Image(np.where(mask[:, :, None], np.nan, self.pixels), self.top, self.kind)


@dataclass(frozen=True, eq=False)
class Restored:
    """The picture without holes; which pixels were filled, and which were corrected, as the fit did not believe them."""

    image: Image
    filled: np.ndarray
    corrected: np.ndarray
    fit: RobustCompletion


def restore(image: Image, fit: RobustCompletion, correct: bool = True) -> Restored:
    """Fill what is lost; replace what the fit does not believe, unless ``correct`` is False; leave all else as it is."""
    height, width, channels = image.pixels.shape
    if image.lost.all():
        raise BadImage("Every pixel is lost, but some were expected to be there: is the mask the other way round?")
    side_by_side = image.pixels.transpose(0, 2, 1).reshape(height, channels * width)
    model = fit.fit(side_by_side)
    found = model.fill(keep="inliers" if correct else "observed")
    if image.kind != "F":
        found = np.clip(found, 0.0, image.top)
    corrected = ~np.isnan(side_by_side) & (found != side_by_side)

    def pixels(matrix: np.ndarray) -> np.ndarray:
        return matrix.reshape(height, channels, width).transpose(0, 2, 1)

    return Restored(
        Image(pixels(found), image.top, image.kind), image.lost, np.asarray(pixels(corrected).any(axis=2)), model
    )


def read(path: str | os.PathLike[str]) -> Image:
    """A picture of grey or colour; a pixel that is transparent, or NaN where pixels are floats, is lost."""
    opened = _open(Path(path))
    clear, kind = None, _kind(opened, Path(path))
    if "A" in opened.getbands() or "transparency" in opened.info:
        clear = np.asarray(with_alpha := opened.convert("RGBA"))[:, :, 3] == 0
        opened = with_alpha if kind == "RGB" else opened  # a palette's colours have an alpha each
        if kind == "I;16":  # pillow tells which grey is transparent, but does not make it so
            clear = np.asarray(opened) == opened.info["transparency"]
    pixels = np.asarray(opened if kind in ("F", "I;16") else opened.convert(kind), dtype=float)
    image = Image(pixels.reshape(*pixels.shape[:2], -1), {"F": np.inf, "I;16": 65535.0}.get(kind, 255.0), kind)
    if np.isinf(image.pixels).any():
        raise BadImage(f"{path} has pixels that are infinite: NaN stands for lost pixels.")
    return image if clear is None else image.without(clear)


def read_mask(path: str | os.PathLike[str]) -> np.ndarray:
    """Where a mask is not black; transparent is black."""
    return np.asarray((read(path).pixels > 0).any(axis=2))


def check_name(image: Image, path: str | os.PathLike[str]) -> None:
    """Refuses a name whose format can't hold such pixels, before there is anything to lose."""
    suffix = Path(path).suffix.lower()
    if suffix not in {"F": DEEP[1:], "I;16": DEEP}.get(image.kind, _suffixes()):
        known = {"F": "a .tiff", "I;16": "a .png or .tiff"}.get(image.kind, "a .png, .tiff or .jpg")
        raise BadImage(f"Pixels of the kind {image.kind} can't be written to {path}: give the name of {known}.")


def write(image: Image, path: str | os.PathLike[str]) -> None:
    """In the format that the name tells, with the depth that the picture had; all or nothing."""
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
    """Those of the formats that pillow writes."""
    with needed_for("Pictures"):
        import PIL.Image

    return {suffix for suffix, kind in PIL.Image.registered_extensions().items() if kind in PIL.Image.SAVE}


def _kind(opened: Any, path: Path) -> str:
    """As pixels are to be read: grey stays grey, deep stays deep, everything else is colour."""
    mode = opened.mode
    if mode in ("F", "I;16", "RGB", "L"):
        return mode
    if mode.startswith("I"):
        raise BadImage(f"{path} has pixels of the kind {mode}: save it with 8 or 16 bits, or as floats.")
    return "L" if mode in ("1", "LA", "La") else "RGB"


def _open(path: Path) -> Any:
    with needed_for("Pictures"):
        import PIL.Image
    with open_file(path) as file:
        try:
            opened = PIL.Image.open(file, formats=_formats())
            taken = opened.width * opened.height * len(opened.getbands()) * SAMPLE_BYTES.get(opened.mode, 1)
            if opened.width * opened.height > PIXELS:
                raise BadImage(f"{path} has {opened.width} x {opened.height} pixels: at most {PIXELS:,} can be taken.")
            if taken > (allowed := Limits().allowed(size_of(file))):
                raise BadImage(
                    f"{path} unpacks to {taken:,} bytes of pixels, at most {allowed:,} are allowed for a file of its size: "
                    "check where it comes from, or save it as TIFF without compression."
                )
            opened.load()
        except BadImage:
            raise
        except (OSError, SyntaxError, ValueError, EOFError, PIL.Image.DecompressionBombError, MemoryError):
            raise BadImage(
                f"{path} is no picture, or damaged: give a PNG, TIFF, JPEG or what else pillow reads."
            ) from None
    return opened


def _formats() -> list[str]:
    """Those that pillow reads by itself: for EPS it starts another program."""
    import PIL.Image

    PIL.Image.init()
    return [kind for kind in PIL.Image.ID if kind != "EPS"]
