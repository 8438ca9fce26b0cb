"""Losses by name, with their scale estimated; and how far a fit believes its entries."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import checks
from condgrad.objectives import LOSSES
from condgrad.objectives.losses import Loss, check_loss

TUNED = {"welsch": 2.985, "cauchy": 2.385, "geman-mcclure": 3.648, "huber": 1.345, "squared": 1.0}
"""So many standard deviations the loss is wide: then a twentieth is lost of what squares would tell where all noise is gaussian."""


def spread(t: np.ndarray) -> float:
    """The standard deviation, were these gaussian but for outliers: from their median absolute value."""
    return 1.4826 * float(np.median(np.abs(t)))


def parameter(name: str, deviation: float) -> float:
    """The sigma (or delta) of the loss that suits residuals of this standard deviation."""
    width = TUNED[name] * deviation
    return width if name == "huber" else width**2


def loss_of(loss: Any, sigma: float) -> Loss:
    """The loss, by its name and parameter or as it is."""
    if not isinstance(loss, str):
        check_loss(loss, np.ones(1))
        if loss.labels != "real":
            raise ValueError(
                f"{type(loss).__name__} is made for labels -1 and 1: give a loss of real values, such as 'welsch'."
            )
        return loss
    name = checks.choice(loss, TUNED, "loss")
    return LOSSES[name].factory() if name == "squared" else LOSSES[name].factory(sigma)


def belief(loss: Loss, t: np.ndarray) -> np.ndarray:
    """phi'(t)/t, relative to its value at 0: 1 for what is believed, 0 for what is not. Weighted so, squares pull as phi does."""
    small = np.abs(t) < 1e-9
    pull = loss.deriv(np.where(small, 1e-9, t), np.zeros_like(t))
    return np.clip(pull / np.where(small, 1e-9, t) / loss.smoothness, 0.0, 1.0)
