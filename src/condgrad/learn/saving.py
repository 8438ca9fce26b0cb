"""Estimators on disk, without pickle: their parameters and what they learned, as plain data and arrays."""

from __future__ import annotations

from pathlib import Path
from typing import Any, Self

import numpy as np

from condgrad import archive

VERSION = 1


class Saved:
    """Abstract: ``save`` and ``load`` for an estimator whose fitted attributes are numbers, names, arrays or None."""

    def save(self, path: str | Path) -> None:
        """Write parameters and fitted attributes; the file can't run code when it is read."""
        fitted = {name: value for name, value in vars(self).items() if name.endswith("_") and not name.startswith("_")}
        if not fitted:
            raise ValueError(f"This {type(self).__name__} is not fitted: there is nothing to save, call fit first.")
        plain: dict[str, Any] = {}
        arrays: dict[str, np.ndarray] = {}
        for part, values in (("parameters", self.get_params(deep=False)), ("fitted", fitted)):  # type: ignore[attr-defined]
            for name, value in values.items():
                _put(f"{part}.{name}", value, plain, arrays)
        archive.write(path, type(self).__name__, VERSION, plain, arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """What ``save`` wrote, fitted as it was."""
        plain, arrays = archive.read(path, cls.__name__, VERSION)
        found: dict[str, dict[str, Any]] = {"parameters": {}, "fitted": {}}
        for key, value in {**plain, **arrays}.items():
            part, name = key.split(".")
            found[part][name] = np.array(value["names"], value["dtype"]) if isinstance(value, dict) else value
        estimator = cls(**found["parameters"])
        vars(estimator).update(found["fitted"])
        return estimator


def _put(key: str, value: Any, plain: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Arrays of numbers stay arrays; single numbers and names, and arrays of names, are plain data."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        plain[key] = value
        return
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        arrays[key] = array
    elif array.ndim == 1 and all(isinstance(item, str) for item in array.tolist()):
        plain[key] = {"names": array.tolist(), "dtype": array.dtype.kind}
    else:
        raise ValueError(f"{key} is {value!r}, which can't be saved: numbers, names and arrays of them can.")
