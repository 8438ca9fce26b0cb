"""A fitted RobustCompletion on the disk, as plain data and arrays."""

from __future__ import annotations

from typing import Any, Self

import numpy as np
from sklearn.utils.validation import check_is_fitted

from condgrad.checks import positive, whole
from condgrad.learn.completion.entries import named as with_names
from condgrad.learn.completion.path import Radius
from condgrad.learn.completion.table_labels import named_by, pack, unpack
from condgrad.learn.storage import check_shapes, named, refusing
from condgrad.objectives import LOSSES, Completion
from condgrad.objectives.losses import Loss
from condgrad.storage import archive

KIND, VERSION = "RobustCompletion", 3
NUMBERS = ("mean_", "radius_", "sigma_", "multiplier_", "n_features_in_")
ARRAYS = ("row_biases_", "col_biases_", "row_factors_", "components_", "singular_values_")
LABELS = ("index_", "columns_")
FIELDS = ("row", "column", "value", "predicted", "score")


class Stored:
    """Abstract: ``save``, ``load`` and pickling of RobustCompletion."""

    def save(self, path: Any) -> None:
        """Write the model and its entries to a file that can't run code when it is read. All but ``result_`` is kept."""
        check_is_fitted(self)
        write(path, self)

    @classmethod
    def load(cls, path: Any) -> Self:
        """What ``save`` wrote."""
        return read(path, cls)


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
        "path": [[_plain(part) for part in tried] for tried in model.path_],
        "best_index": model.best_index_,
        "n_validation": model.n_validation_,
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
        if model.index_ is not None:  # labels need not be unique
            arrays[f"outliers.{name}"] = model._outlier_places[FIELDS.index(name)]
        elif ids is not None:
            arrays[f"outliers.{name}"] = np.searchsorted(ids, model.outliers_[name])
    arrays |= {"rows": model._seen.pattern.rows, "cols": model._seen.pattern.cols, "values": model._seen.values}
    data["labels"] = {name: pack(name, getattr(model, name), arrays) for name in LABELS}
    for name in ("row_ids_", "col_ids_"):
        ids = getattr(model, name)
        if ids is not None and ids.dtype.kind == "U":
            data["names"][name] = ids.tolist()
        elif ids is not None:
            arrays[name] = ids
    archive.write(path, KIND, VERSION, data, arrays)


def read(path: Any, kind: Any) -> Any:
    data, arrays = archive.read(path, KIND, VERSION)
    with refusing(path):
        return _model(data, arrays, kind)


def _model(data: Any, arrays: dict[str, np.ndarray], kind: Any) -> Any:
    """The fitted model, if all that is needed is there and fits together."""
    parameters = data["parameters"]
    if not all(value is None or isinstance(value, bool | int | float | str) for value in parameters.values()):
        raise TypeError("parameters that are not plain")
    if data["given_loss"] is not None:
        parameters["loss"] = _loss(data["given_loss"])
    model = kind(**parameters)
    if set(parameters) != set(model.get_params(deep=False)):
        raise ValueError("it lacks parameters")
    m, n = len(arrays["row_biases_"]), len(arrays["col_biases_"])
    _check(data, arrays, m, n)
    for name in NUMBERS:
        setattr(model, name, data["numbers"][name])
    for name in ARRAYS:
        setattr(model, name, arrays[name])
    for name, size in (("row_ids_", m), ("col_ids_", n)):
        setattr(model, name, _ids(data["names"].get(name), arrays.get(name), size))
    for name, size in zip(LABELS, (m, n), strict=True):
        setattr(model, name, unpack(name, data["labels"][name], arrays, size))
    if (model.row_ids_ is None) != (model.col_ids_ is None) or (model.index_ is None) != (model.columns_ is None):
        raise ValueError("names of one side only")
    model.range_ = tuple(data["range"])
    model.path_ = [_radius(*tried) for tried in data["path"]]
    model.best_index_ = None if data["best_index"] is None else whole(data["best_index"], "best_index", least=0)
    model.n_validation_ = whole(data["n_validation"], "n_validation", least=0)
    if model.best_index_ is not None:
        model.path_[model.best_index_]  # refuses an index outside of the path
    rows, cols, *numbers = (arrays[f"outliers.{name}"] for name in FIELDS)
    model._outlier_places = rows, cols
    names = named_by(model.row_ids_, model.index_), named_by(model.col_ids_, model.columns_)
    model.outliers_ = records(with_names(rows, names[0]), with_names(cols, names[1]), *numbers)
    model.losses_ = data["losses"]
    model._rank, model._loss, model.result_ = data["rank"], _loss(data["loss"]), None
    if data["features"] is not None:
        model.feature_names_in_ = named(data["features"], "O")
        check_shapes({"features": np.arange(len(data["features"]))}, {"features": (model.n_features_in_,)})
    model._seen = Completion(arrays["rows"], arrays["cols"], arrays["values"], (m, n), model._loss)
    return model


def _check(data: Any, arrays: dict[str, np.ndarray], m: int, n: int) -> None:
    """Numbers where they belong, and as many as the others ask for, before memory is taken for more."""
    r, wrong = len(arrays["singular_values_"]), len(arrays["outliers.row"])
    shapes: dict[str, tuple[int, ...]] = dict(zip(ARRAYS, ((m,), (n,), (m, r), (r, n), (r,)), strict=True))
    shapes |= dict.fromkeys((f"outliers.{name}" for name in FIELDS), (wrong,))
    check_shapes(arrays, shapes)
    check_shapes(data["numbers"], dict.fromkeys(NUMBERS, ()))
    whole(data["numbers"]["n_features_in_"], "n_features_in_")
    if data["rank"] is not None:
        whole(data["rank"], "rank", least=0)
    for name, shape in {"range": (2,), "losses": (len(data["losses"]),)}.items():
        if (found := np.array(data[name], dtype=float)).shape != shape or (np.isnan(found).any() and name == "range"):
            raise ValueError(f"{name} has shape {found.shape}")
    if data["shape"] != [m, n] or data["range"][0] > data["range"][1]:
        raise ValueError("another shape, or no range")
    for place, size in (("row", m), ("column", n)):
        at = arrays[f"outliers.{place}"]
        if at.dtype.kind not in "iu" or ((at < 0) | (at >= size)).any():
            raise ValueError("an outlier outside of the matrix")


def _radius(radius: float, error: float, rank: int, loss: str, free: bool, *errors: float) -> Radius:
    if not isinstance(loss, str):
        raise TypeError("a path without losses")
    return Radius(float(radius), float(error), whole(rank, "rank", least=0), loss, bool(free), *map(float, errors))


def _ids(names: Any, numbers: np.ndarray | None, size: int) -> np.ndarray | None:
    """The names or numbers of rows or columns: one for each, rising, as they are looked up by halving."""
    ids = numbers if names is None else named(names)
    if ids is not None and (ids.shape != (size,) or not (ids[:-1] < ids[1:]).all()):
        raise ValueError("names that are not sorted, or not one for each")
    return ids


def _loss_data(loss: Loss) -> list[Any]:
    """The loss's name and parameter; only those of the registry can be told in plain data."""
    for entry in LOSSES.values():
        if type(loss) is entry.factory:
            return [entry.name, getattr(loss, "sigma", getattr(loss, "delta", None))]
    raise ValueError(f"The loss {loss!r} is no loss of condgrad's own: a model with it can't be saved.")


def _loss(data: list[Any]) -> Loss:
    name, parameter = data
    return LOSSES[name].factory() if parameter is None else LOSSES[name].factory(positive(parameter, "A loss's width"))


def _plain(value: Any) -> Any:
    return value.item() if isinstance(value, np.generic) else value
