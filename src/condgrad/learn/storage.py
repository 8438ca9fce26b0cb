"""Estimators on disk, without pickle: their parameters and what they learned, as plain data and arrays."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Self

import numpy as np

from condgrad.storage import archive
from condgrad.storage.archive import BadArchive

VERSION = 1
ROOM = 2**26
"""Letters that an array of names may always have room for: it has as much for each as for the longest."""


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
        with refusing(path):
            return cls._from(plain, arrays)

    @classmethod
    def _from(cls, plain: dict[str, Any], arrays: dict[str, np.ndarray]) -> Self:
        found: dict[str, dict[str, Any]] = {"parameters": {}, "fitted": {}}
        for key, value in {**plain, **arrays}.items():
            part, name = key.split(".")
            found[part][name] = _got(value)
        estimator = cls(**found["parameters"])
        if set(found["parameters"]) != set(estimator.get_params(deep=False)):  # type: ignore[attr-defined]
            raise ValueError("it lacks parameters")
        if not all(name.endswith("_") and not name.startswith("_") for name in found["fitted"]):
            raise ValueError("it has attributes that no fit finds")
        vars(estimator).update(found["fitted"])
        check_shapes(vars(estimator), estimator._shapes())
        names = getattr(estimator, "feature_names_in_", None)
        if names is not None and np.shape(names) != (estimator.n_features_in_,):  # type: ignore[attr-defined]
            raise ValueError("not as many names as features")
        return estimator

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """Of the fitted numbers that predictions are made of, as far as one follows from the other."""
        raise NotImplementedError


@contextmanager
def refusing(path: Any) -> Iterator[None]:
    """A file whose checksums hold may still be made up: what does not fit together is its fault."""
    try:
        yield
    except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
        raise BadArchive(f"{path} can't be used: what it holds does not fit together to a fitted model.") from error


def check_shapes(held: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]) -> None:
    """All there, finite numbers, and of these shapes."""
    for name, shape in shapes.items():
        array = np.asarray(held[name])
        if array.dtype.kind not in "iuf" or array.shape != shape or not np.isfinite(array).all():
            raise ValueError(f"{name} is no array of finite numbers of shape {shape}")


def named(names: Any, dtype: str = "U") -> np.ndarray:
    """An array of names, which takes not much more memory than they did in the file."""
    if not isinstance(names, list) or not all(isinstance(name, str) for name in names) or dtype not in ("U", "O"):
        raise TypeError("a list of names was expected")
    lengths = [len(name) for name in names]
    if dtype == "U" and max(lengths, default=0) * len(names) > ROOM + 64 * sum(lengths):
        raise ValueError("one name is far longer than the others")
    return np.array(names, dtype)


def _got(value: Any) -> Any:
    """What ``_put`` was given."""
    if isinstance(value, dict) and "weights" in value:
        return {class_: float(weight) for class_, weight in value["weights"]}
    if isinstance(value, dict):
        return named(value["names"], value["dtype"])
    if isinstance(value, list):
        raise TypeError("a list in place of an array")
    return value


def _put(key: str, value: Any, plain: dict[str, Any], arrays: dict[str, np.ndarray]) -> None:
    """Arrays of numbers stay arrays; single numbers and names, and arrays of names, are plain data."""
    if isinstance(value, np.generic):
        value = value.item()
    if value is None or isinstance(value, bool | int | float | str):
        plain[key] = value
        return
    if isinstance(value, dict) and all(isinstance(class_, bool | int | float | str) for class_ in map(_plain, value)):
        plain[key] = {"weights": [[_plain(class_), float(weight)] for class_, weight in value.items()]}
        return
    array = np.asarray(value)
    if array.dtype.kind in "biuf":
        arrays[key] = array
    elif array.ndim == 1 and all(isinstance(item, str) for item in array.tolist()):
        plain[key] = {"names": array.tolist(), "dtype": array.dtype.kind}
    else:
        raise ValueError(f"{key} is {value!r}, which can't be saved: numbers, names and arrays of them can.")


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
