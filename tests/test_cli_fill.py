"""condgrad fill: pictures with holes and wrong pixels."""

from __future__ import annotations

import json
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import refused

from condgrad.cli import main

# -------------------------------------------------------------------------------------------------------------- fill


@pytest.fixture
def picture(tmp_path: Path) -> tuple[Any, np.ndarray, np.ndarray]:
    """(pillow, a picture of low rank, which pixels are lost)"""
    pillow = pytest.importorskip("PIL.Image")
    y, x = np.mgrid[0:48, 0:64]
    pixels = (100 + 60 * np.sign(np.sin(y / 3)) * np.sign(np.cos(x / 4)) + 0.8 * y).round().astype(np.uint8)
    lost = np.random.default_rng(0).random(pixels.shape) < 0.4
    pillow.fromarray((255 * lost).astype(np.uint8)).save(tmp_path / "mask.png")
    return pillow, pixels, lost


def filled(pillow: Any, folder: Path, name: str, *more: str) -> np.ndarray:
    assert main(["fill", str(folder / name), "--out", str(folder / "out.png"), "--quiet", *more]) == 0
    return np.asarray(pillow.open(folder / "out.png")).astype(float)


def test_fill_restores_grey_and_leaves_good_pixels_alone(picture: Any, tmp_path: Path) -> None:
    pillow, pixels, lost = picture
    given = np.where(lost, 0, pixels)
    given[10, 10], lost[10, 10] = 255, False  # wrong, but not in the mask
    pillow.fromarray(given.astype(np.uint8)).save(tmp_path / "in.png")
    mask = lost.copy()
    pillow.fromarray((255 * mask).astype(np.uint8)).save(tmp_path / "mask.png")
    found = filled(pillow, tmp_path, "in.png", "--mask", str(tmp_path / "mask.png"))
    assert np.abs(found - pixels)[lost].mean() < 2
    assert (found == given)[~lost].mean() > 0.98 and abs(found[10, 10] - pixels[10, 10]) < 10
    pillow.fromarray((255 * ~mask).astype(np.uint8)).save(tmp_path / "inverse.png")
    kept = filled(pillow, tmp_path, "in.png", "--mask", str(tmp_path / "inverse.png"), "--invert", "--keep")
    assert kept[10, 10] == 255 and (kept[lost] == found[lost]).all()


def test_fill_takes_transparent_pixels_for_lost(
    picture: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    pillow, pixels, lost = picture
    colour = np.stack([pixels, 255 - pixels, pixels // 2], axis=-1)
    clear = np.dstack([np.where(lost[..., None], 0, colour), np.where(lost, 0, 255)]).astype(np.uint8)
    pillow.fromarray(clear).save(tmp_path / "in.png")
    capsys.readouterr()
    found = filled(pillow, tmp_path, "in.png", "--json")
    told = json.loads(capsys.readouterr().out)
    assert told["pixels filled"] == lost.sum() and told["channels"] == 3
    assert found.shape == colour.shape and np.abs(found - colour)[lost].mean() < 2


def test_fill_keeps_sixteen_bits_and_floats(picture: Any, tmp_path: Path) -> None:
    pillow, pixels, lost = picture
    deep = pixels.astype(np.uint16) * 200
    pillow.fromarray(np.where(lost, 0, deep).astype(np.uint16)).save(tmp_path / "deep.png")
    found = filled(pillow, tmp_path, "deep.png", "--mask", str(tmp_path / "mask.png"))
    assert found.max() > 255 and np.abs(found - deep)[lost].mean() < 400
    floats = np.where(lost, np.nan, pixels - 150.0).astype(np.float32)
    pillow.fromarray(floats).save(tmp_path / "f.tiff")
    assert main(["fill", str(tmp_path / "f.tiff"), "--out", str(tmp_path / "g.tiff"), "--quiet"]) == 0
    found = np.asarray(pillow.open(tmp_path / "g.tiff"))
    assert np.isfinite(found).all() and np.abs(found - (pixels - 150.0)).mean() < 2


def test_what_fill_refuses(picture: Any, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: Any) -> None:
    pillow, pixels, _ = picture
    out = tmp_path / "out.png"
    pillow.fromarray(pixels).save(tmp_path / "in.png")
    pillow.fromarray(np.zeros((10, 10), np.uint8)).save(tmp_path / "small.png")
    told = refused(capsys, "fill", tmp_path / "in.png", "--mask", tmp_path / "small.png", "--out", out)
    assert "The mask has shape (10, 10), but (48, 64) was expected" in told
    (tmp_path / "words.png").write_text("no picture")
    assert "is not an image" in refused(capsys, "fill", tmp_path / "words.png", "--out", out)
    assert "--invert needs --mask" in refused(capsys, "fill", tmp_path / "in.png", "--invert", "--out", out)
    pillow.fromarray(np.full((48, 64), 255, np.uint8)).save(tmp_path / "all.png")
    assert "Every pixel is missing" in refused(
        capsys, "fill", tmp_path / "in.png", "--mask", tmp_path / "all.png", "--out", out
    )
    mask = ["--mask", tmp_path / "mask.png"]
    assert "a .png, .tiff or .jpg" in refused(capsys, "fill", tmp_path / "in.png", *mask, "--out", tmp_path / "x.nope")
    monkeypatch.setitem(sys.modules, "PIL", None)
    assert "pip install 'condgrad[learn]'" in refused(capsys, "fill", tmp_path / "in.png", *mask, "--out", out)


# ---------------------------------------------------------------------------------------------------- python -m condgrad
