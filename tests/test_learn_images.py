"""Images: smooth interpolation, wrong pixels, and the choice between interpolation and low rank."""

from __future__ import annotations

import numpy as np
import pytest
from scipy.ndimage import gaussian_filter

from condgrad.learn import RobustCompletion
from condgrad.learn.images import Image, restore
from condgrad.learn.inpainting import interpolate, wrong_pixels


def scene(height: int = 48, width: int = 60) -> np.ndarray:
    """A smooth picture with a round edge, which has no low rank."""
    y, x = np.mgrid[0:height, 0:width]
    waves = gaussian_filter(np.random.default_rng(0).normal(size=(height, width)), 3.0)
    return 110 + 30 * waves / waves.std() + 40.0 * ((x - 30) ** 2 + (y - 25) ** 2 < 150)


def damaged(picture: np.ndarray, seed: int) -> tuple[np.ndarray, np.ndarray]:
    """Half of the pixels NaN, and 5 % of the others black or white; and a mask of the latter."""
    rng = np.random.default_rng(seed)
    lost, salt = rng.random(picture.shape) < 0.5, rng.random(picture.shape) < 0.05
    given = np.where(salt, rng.choice([0.0, 255.0], picture.shape), picture)
    return np.where(lost, np.nan, given), salt & ~lost


def test_interpolation_reproduces_planes_and_keeps_known_pixels() -> None:
    y, x = np.mgrid[0:30, 0:40]
    plane = 3.0 * y - 2.0 * x + 7
    known = np.random.default_rng(0).random(plane.shape) < 0.5
    known[0], known[-1], known[:, 0], known[:, -1] = True, True, True, True
    known[8:20, 10:30] = False  # a large hole
    found = interpolate(plane, known)
    assert np.abs(found - plane).max() < 1 and np.array_equal(found[known], plane[known])


@pytest.mark.parametrize("shape", [(1, 1), (1, 6), (5, 1), (2, 3), (3, 3)])
def test_tiny_pictures(shape: tuple[int, int]) -> None:
    known = np.zeros(shape, dtype=bool)
    known[0, 0] = True
    assert np.allclose(interpolate(np.full(shape, 7.0), known), 7.0)
    assert not wrong_pixels(np.full(shape, 7.0), known).any()
    pixels = np.where(known, 7.0, np.nan)[:, :, None]
    assert np.allclose(restore(Image(pixels, 255.0, "L"), RobustCompletion()).image.pixels, 7.0)


def test_wrong_pixels_are_found_and_thin_lines_are_kept() -> None:
    picture = scene()
    picture[10, :] = 255.0  # a line that is one pixel wide
    picture[:, 50] = 0.0
    assert (
        wrong_pixels(picture, np.ones(picture.shape, dtype=bool)).mean() < 0.005
    )  # at the ends of the lines, and where they cross
    given, salt = damaged(scene(), 0)
    found = wrong_pixels(given, ~np.isnan(given))
    assert found[salt].mean() > 0.9 and found[~salt].mean() < 0.01


@pytest.mark.parametrize("lost", [0.0, 0.5])
def test_much_salt_and_pepper_noise_is_found(lost: float) -> None:
    """With 30 % of wrong pixels, several pixels of every window have the same wrong value: half of them were kept."""
    rng = np.random.default_rng(0)
    y, x = np.mgrid[:80, :90]
    picture = 120 + 60 * np.sin(x / 9) * np.cos(y / 11) + 30 * (x > 2 * y) + rng.normal(size=x.shape)
    picture[:20, :20] = 255.0  # a bright sky, which is right
    salt, known = rng.random(picture.shape) < 0.3, rng.random(picture.shape) >= lost
    given = np.where(salt, rng.choice([0.0, 255.0], picture.shape), picture)
    found = wrong_pixels(given, known)
    assert found[salt & known & (given != picture)].mean() > 0.97 and found[~salt].mean() < 0.01


@pytest.mark.parametrize("seed", [0, 1, 2])
def test_a_scene_without_low_rank_is_interpolated(seed: int) -> None:
    """The low-rank part alone is 10 dB worse, and changes with the seed."""
    given, _ = damaged(scene(), seed)
    found = restore(Image(given[:, :, None], 255.0, "L"), RobustCompletion())
    error = found.image.pixels[:, :, 0] - scene()
    assert found.method == "smooth" and found.errors["smooth"] < 0.5 * found.errors["low rank"]
    assert 10 * np.log10(255**2 / np.mean(error**2)) > 30


def test_repeated_patterns_are_completed_by_low_rank_and_colours_are_kept_apart() -> None:
    rng = np.random.default_rng(0)
    tiles = 40 + 160.0 * np.outer(rng.random(48) < 0.5, rng.random(60) < 0.5)
    picture = np.stack([tiles, 255 - tiles, 0.5 * tiles], axis=2)
    given = np.where((rng.random(tiles.shape) < 0.4)[:, :, None], np.nan, picture)
    found = restore(Image(given, 255.0, "RGB"), RobustCompletion())
    assert found.method == "low rank" and np.abs(found.image.pixels - picture).mean() < 1
