"""The pictures and figures of docs/gallery.md: an image, metro flow, ratings. Run by `make gallery`.

    python -m benchmarks.gallery [--out docs] [--only image|metro|ratings]
"""

from __future__ import annotations

import argparse
from pathlib import Path

import numpy as np

from condgrad.learn import RobustCompletion
from condgrad.learn.images import Image, restore, write

DATA = Path(__file__).resolve().parents[2] / "shared" / "data"


# ------------------------------------------------------------------------------------------------------------- an image


def facade(size: int = 256) -> np.ndarray:
    """A house front in colour, size x size x 3 in 0..255: courses of brick, rows of windows, a door, the sun above the roof."""
    y, x = np.mgrid[0:size, 0:size] * (256 / size)
    picture = np.empty((size, size, 3))
    sky = np.clip(1 - y / 120, 0, 1)[..., None]
    picture[:] = sky * (120, 170, 225) + (1 - sky) * (225, 232, 240)
    wall = y > 56
    course = np.floor((y - 56) / 8)
    joints = ((y - 56) % 8 < 1.2) | ((x + 8 * (course % 2)) % 16 < 1.2)
    tint = 12 * np.sin(course * 2.1) + 10 * np.sin(x / 19)
    brick = np.where(joints[..., None], (205, 190, 175), np.stack([168 + tint, 84 + tint / 2, 66 + tint / 2], axis=-1))
    picture[wall] = brick[wall]
    roof = (y > 44) & (y <= 56)
    picture[roof] = np.stack([70 + 14 * (x % 12 < 6), 62 + 8 * (x % 12 < 6), 66 + 0 * x], axis=-1)[roof]
    for top in (74, 122, 170):
        for left in range(20, 240, 48):
            if top == 170 and left == 116:
                continue
            _window(picture, x, y, left, top)
    door = (x >= 114) & (x < 146) & (y >= 172)
    picture[door] = (52, 88, 72)
    picture[door & ((x % 16 < 2) | (np.abs(y - 212) < 2))] = (36, 62, 52)
    picture[(x - 210) ** 2 + (y - 24) ** 2 < 14**2] = (250, 214, 96)
    return np.clip(picture, 0, 255).round()


def _window(picture: np.ndarray, x: np.ndarray, y: np.ndarray, left: int, top: int) -> None:
    frame = (x >= left) & (x < left + 26) & (y >= top) & (y < top + 34)
    pane = (x >= left + 3) & (x < left + 23) & (y >= top + 3) & (y < top + 31)
    bar = (np.abs(x - left - 13) < 1.2) | (np.abs(y - top - 15) < 1.2)
    glass = np.stack([70 + 1.2 * (y - top), 104 + 1.1 * (y - top), 140 + (y - top)], axis=-1)
    picture[frame] = (238, 232, 220)
    picture[pane & ~bar] = glass[pane & ~bar]


def damaged(picture: np.ndarray, lost: float = 0.5, noise: float = 0.05, seed: int = 0) -> np.ndarray:
    """The picture with some pixels lost (NaN), and some of the others black or white in each channel."""
    rng = np.random.default_rng(seed)
    salt = rng.random(picture.shape) < noise
    found = np.where(salt, rng.choice([0.0, 255.0], size=picture.shape), picture)
    found[rng.random(picture.shape[:2]) < lost] = np.nan
    return found


def restored(picture: np.ndarray, loss: str = "welsch") -> np.ndarray:
    return restore(Image(picture, 255.0, "RGB"), RobustCompletion(loss)).image.pixels


def psnr(found: np.ndarray, truth: np.ndarray) -> float:
    """In decibels, for pixels up to 255."""
    return float(10 * np.log10(255**2 / np.mean((found - truth) ** 2)))
