"""A fitted RobustCompletion on the disk, as plain data and arrays."""

from __future__ import annotations

from typing import Any

import numpy as np

from condgrad import archive
from condgrad.learn.entries import named
from condgrad.learn.path import Radius
from condgrad.objectives import LOSSES, Completion
from condgrad.objectives.losses import Loss

KIND, VERSION = "RobustCompletion", 1
NUMBERS = ("mean_", "radius_", "sigma_", "multiplier_", "n_features_in_")
ARRAYS = ("row_biases_", "col_biases_", "row_factors_", "components_", "singular_values_")
FIELDS = ("row", "column", "value", "predicted", "score")


def records(*parts: np.ndarray) -> np.recarray:
    """One record for each entry, from its fields; rows and columns are names or positions."""
    kinds = [np.int64 if part.dtype.kind == "i" else part.dtype for part in parts]
    return np.rec.fromarrays(parts, dtype=np.dtype(list(zip(FIELDS, kinds, strict=True))))


def write(path: Any, model: Any) -> None:
    parameters = model.get_params(deep=False)
    if not isinstance(model.loss, str):
        parameters["loss"] = None
    if not isinstance(model.random_state, int | None):
        parameters["random_state"] = None
    data = {
        "parameters": {name: _plain(value) for name, value in parameters.items()},
        "numbers": {name: _plain(getattr(model, name)) for name in NUMBERS},
        "range": [float(end) for end in model.range_],
        "path": [[float(part) for part in radius] for radius in model.path_],
        "losses": [float(loss) for loss in model.losses_],
        "rank": model._rank,
        "loss": _loss_data(model._loss),
        "given_loss": None if isinstance(model.loss, str) else _loss_data(model.loss),
        "shape": list(model._seen.pattern.shape),
        "names": {},
        "features": list(model.feature_names_in_) if hasattr(model, "feature_names_in_") else None,
    }
    arrays = {name: getattr(model, name) for name in ARRAYS}
    arrays |= {f"outliers.{name}": np.ascontiguousarray(model.outliers_[name]) for name in FIELDS}
    for name, ids in (("row", model.row_ids_), ("column", model.col_ids_)):  # positions, as strings are no arrays there
        if ids is not None:
            arrays[f"outliers.{name}"] = np.searchsorted(ids, model.outliers_[name])
    arrays |= {"rows": model._seen.pattern.rows, "cols": model._seen.pattern.cols, "values": model._seen.values}
    for name in ("row_ids_", "col_ids_"):
        ids = getattr(model, name)
        if ids is not None and ids.dtype.kind == "U":
            data["names"][name] = ids.tolist()
        elif ids is not None:
            arrays[name] = ids
    archive.write(path, KIND, VERSION, data, arrays)


def read(path: Any, kind: Any) -> Any:
    data, arrays = archive.read(path, KIND, VERSION)
    parameters = data["parameters"]
    if data["given_loss"] is not None:
        parameters["loss"] = _loss(data["given_loss"])
    model = kind(**parameters)
    for name in NUMBERS:
        setattr(model, name, data["numbers"][name])
    for name in ARRAYS:
        setattr(model, name, arrays[name])
    for name in ("row_ids_", "col_ids_"):
        names = data["names"].get(name)
        setattr(model, name, arrays.get(name) if names is None else np.array(names, dtype=np.str_))
    model.range_ = tuple(data["range"])
    model.path_ = [Radius(radius, error, int(rank)) for radius, error, rank in data["path"]]
    rows, cols, *numbers = (arrays[f"outliers.{name}"] for name in FIELDS)
    model.outliers_ = records(named(rows, model.row_ids_), named(cols, model.col_ids_), *numbers)
    model.losses_ = data["losses"]
    model._rank, model._loss, model.result_ = data["rank"], _loss(data["loss"]), None
    if data["features"] is not None:
        model.feature_names_in_ = np.array(data["features"], dtype=object)
    model._seen = Completion(arrays["rows"], arrays["cols"], arrays["values"], tuple(data["shape"]), model._loss)
    return model


def _loss_data(loss: Loss) -> list[Any]:
    """The loss's name and parameter; only those of the registry can be told in plain data."""
    for entry in LOSSES.values():
        if type(loss) is entry.factory:
            return [entry.name, getattr(loss, "sigma", getattr(loss, "delta", None))]
    raise ValueError(f"The loss {loss!r} is no loss of condgrad's own: a model with it can't be saved.")


def _loss(data: list[Any]) -> Loss:
    name, parameter = data
    return LOSSES[name].factory() if parameter is None else LOSSES[name].factory(parameter)


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
