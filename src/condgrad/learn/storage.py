"""The methods `save` and `load` of estimators. They store the parameters and fitted attributes in an archive, without pickle."""

from __future__ import annotations

from numbers import Integral
from pathlib import Path
from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from condgrad.storage import archive
from condgrad.storage.snapshot import Serialised, refusing, restore, snapshot
from condgrad.storage.stored import check_array

VERSION = 5
"""Version of the file format of all estimators."""


def _is_fitted(name: str) -> bool:
    """Whether an attribute is a fitted attribute that is stored. All fitted attributes except ``result_`` are stored."""
    return name.endswith("_") and not name.startswith("_") and name != "result_"


class Storable:
    """Abstract base class of estimators that can be saved to a file and loaded from it."""

    def save(self, path: str | Path) -> None:
        """Write the parameters and the fitted attributes to a file. Unlike pickle, the file can't run code when it is read.

        A ``client``, and a ``random_state`` that is not an integer, are written as None.

        Parameters
        ----------
        path : path-like
            The file, which is replaced if it exists.
        """
        check_is_fitted(self)
        given = self.get_params(deep=False)  # type: ignore[attr-defined]
        if not isinstance(given.get("random_state"), Integral | None):
            given["random_state"] = None
        if "client" in given:  # a connection
            given["client"] = None
        parameters = {
            name: np.asarray(value) if hasattr(value, "__array__") and not isinstance(value, np.generic) else value
            for name, value in given.items()
        }
        found = snapshot({"parameters": parameters, "fitted": self._fitted()})
        archive.write(path, type(self).__name__, VERSION, {"tree": found.tree, "nodes": found.nodes}, found.arrays)

    @classmethod
    def load(cls, path: str | Path) -> Self:
        """Read a fitted estimator from a file that ``save`` wrote.

        Parameters
        ----------
        path : path-like
            The file.

        Raises
        ------
        BadArchive
            If the file is damaged, or is not the file of such an estimator.
        """
        data, arrays = archive.read(path, cls.__name__, VERSION)
        with refusing(path):
            found = restore(Serialised(**data, arrays=arrays))
            estimator = cls(**found["parameters"])
            if set(found["parameters"]) != set(estimator.get_params(deep=False)):  # type: ignore[attr-defined]
                raise ValueError("it lacks parameters")
            estimator._set_fitted(found["fitted"])
            names = getattr(estimator, "feature_names_in_", None)
            if names is not None and np.shape(names) != (estimator.n_features_in_,):  # type: ignore[attr-defined]
                raise ValueError("one name for each feature was expected")
        return estimator

    def _fitted(self) -> dict[str, Any]:
        """The fitted attributes, without ``result_``."""
        return {name: value for name, value in vars(self).items() if _is_fitted(name)}

    def _set_fitted(self, fitted: dict[str, Any]) -> None:
        """Validate and set the fitted attributes."""
        if not all(map(_is_fitted, fitted)):
            raise ValueError("it has attributes that are not results of a fit")
        vars(self).update(fitted, result_=None)
        for name, shape in self._shapes().items():
            check_array(fitted[name], shape, name, "iuf")

    def _shapes(self) -> dict[str, tuple[int, ...]]:
        """The shapes that fitted attributes must have. They are computed from the attributes themselves."""
        raise NotImplementedError
