"""Report of a fit of RobustCompletion: a page on the data, the choice of the radius, the model and its outliers."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any, Protocol

import numpy as np

from condgrad.checks import counted
from condgrad.data import Cleanup
from condgrad.learn.completion.choice import ADAPTIVE_EVIDENCE, NARROWER_EVIDENCE
from condgrad.learn.completion.estimator import RobustCompletion
from condgrad.learn.completion.path import CERTIFICATE
from condgrad.learn.completion.tensor_view import shares_of
from condgrad.report import Block, Curve, Plot, Table, Text, environment, write
from condgrad.report.run_report import MAPPING_NOTE, UNITS

MAX_LISTED_OUTLIERS = 25
"""Maximum number of outliers listed on the page."""
MANY_OUTLIERS = 0.05
"""If the share of outliers is larger than this, the report says that some of them may be the tail of correct values."""
MAX_STORED_OUTLIERS = 1000
"""Maximum number of outliers in the raw data of the report."""


class Given(Protocol):
    """Interface of the entries that were fitted, as far as the report describes them. `Observations` has this interface."""

    @property
    def shape(self) -> tuple[int, int]:
        """Shape of the matrix."""

    @property
    def cleanup(self) -> Cleanup:
        """Report of the reader on faults of the file."""

    def __len__(self) -> int: ...


def summary(model: RobustCompletion, given: Given) -> dict[str, Any]:
    """Summary of the fit as plain data, for JSON and for the report."""
    m, n = given.shape
    certificate = model.result_ and model.result_.certificate
    return {
        "entries": len(given),
        "rows": m,
        "columns": n,
        "observed": len(given) / (m * n),
        "loss": model.loss_,
        "averaged over the posterior": model.averaging_ is not None,
        "tensor view": None if model.period is None else model.view_ is not None,
        "rank": len(model.singular_values_),
        "radius": float(model.radius_),
        "sigma": float(model.sigma_),
        "held-out entries": model.n_validation_ or None,
        "held-out median absolute error": model.validation_median_error_,
        "held-out RMSE": model.validation_rmse_,
        "held-out MAE": model.validation_mae_,
        "outliers": model.n_outliers_,
        "squared mapping": certificate.upper if certificate and model.certify is not None else None,
        "status": _status(model),
    }


def _status(model: RobustCompletion) -> str:
    """Status of the certifying run, in words."""
    if model.certify is None or model.result_ is None:
        return "fitted, not certified"
    return str(model.result_.status).replace("_", " ")


def report_fit(
    model: RobustCompletion,
    given: Given,
    folder: Path,
    title: str,
    facts: Mapping[str, Any],
    found: Mapping[str, Any],
    figures: bool = False,
) -> Path:
    """Write the report into the folder, with figures for print if ``figures``. Returns the path of the page.

    ``found`` is the result of :func:`summary`. ``facts`` are shown at the end of the page.
    """
    parameters = {name: value for name, value in model.get_params().items() if name != "client" and value is not None}
    known = {name: value for name, value in found.items() if value is not None}
    blocks: list[Block] = [
        Text("The fit", [fit_sentences(found), *view_sentences(model), *validation_sentences(model), *caveats(found)]),
        Table("Results", list(known), [list(known.values())]),
        Text("How the model was chosen", []),
        *path_plot(model),
        *convergence(model),
        *spectrum(model),
        *candidate_table(model),
        Text("Outliers", [outlier_sentence(found), *trust_sentences(model, found)]),
        *outlier_table(model),
        Text("What was read", [str(given.cleanup).splitlines()[0] + "."]),
        *cleanup_table(given.cleanup),
    ]
    raw = {
        "found": found,
        "path": [point._asdict() for point in model.path_],
        "losses": model.losses_,
        "candidates": [candidate._asdict() for candidate in model.candidates_],
        "singular values": model.singular_values_,
        "outliers": outliers(model, MAX_STORED_OUTLIERS),
        "cleanup": given.cleanup.summary(),
        "parameters": {name: str(value) for name, value in parameters.items()},
    }
    parameter_text = ", ".join(f"{name}={value!r}" for name, value in parameters.items())
    return write(folder, title, blocks, {**facts, "parameters": parameter_text, **environment()}, raw, figures)


def fit_sentences(found: Mapping[str, Any]) -> str:
    """Sentences on the model and its errors. Sigma is called the typical error (on held-out entries, if there are any)."""
    held_out = found["held-out entries"]
    typical = "The typical error is" if held_out is None else "The typical error on held-out entries is"
    return (
        f"{counted(found['entries'], 'entry')} of a matrix of {counted(found['rows'], 'row')} and "
        f"{counted(found['columns'], 'column')} ({found['observed']:.2%} of it) {_are(found['entries'])} explained by a mean, a "
        f"bias of each row and column, and a matrix of rank {found['rank']} whose singular values add up to at most "
        f"{found['radius']:.4g}. {typical} {found['sigma']:.3g}; {found['outliers']:,} ({share(found):.1%}) "
        f"{_are(found['outliers'])} treated as outliers."
    )


def view_sentences(model: RobustCompletion) -> list[str]:
    """A sentence on the tensor view, if a period was given."""
    if model.period is None:
        return []
    if (view := model.view_) is None:
        return [
            f"The tensor view with a period of {model.period} columns does not predict the held-out entries better: the plain "
            "fit was kept."
        ]
    smooth = f"with a temporal smoothness of {view.smoothness:g}" if view.smoothness else "without temporal smoothness"
    return [
        f"The table was completed as a tensor with a period of {view.period} columns, {shares_of(view)} of the singular "
        f"values of each unfolding unshrunk, {smooth}: held-out entries are predicted better than by the plain fit."
    ]


def validation_sentences(model: RobustCompletion) -> list[str]:
    """Sentences on the held-out errors of the chosen fit, before it was refitted to all entries."""
    if model.best_index_ is None:
        return []
    chosen = model.path_[model.best_index_]
    return [
        f"To choose the radius, {counted(model.n_validation_, 'entry')} {_are(model.n_validation_)} held out. The chosen fit "
        f"(radius {chosen.radius:.4g}, rank {chosen.rank}) does not use these entries. It predicts half of them within "
        f"{chosen.median_error:.4g} (median absolute error). With all outliers included, the RMSE is {chosen.rmse:.4g} "
        f"and the MAE {chosen.mae:.4g}. The model was then refitted to all entries. The refitted model has rank "
        f"{len(model.singular_values_)}, and a slightly different radius. It is the model that is saved."
    ]


def _have(number: int) -> str:
    return "has" if number == 1 else "have"


def _are(number: int) -> str:
    return "is" if number == 1 else "are"


def share(found: Mapping[str, Any]) -> float:
    """Share of the entries that are outliers."""
    return found["outliers"] / found["entries"]


def caveats(found: Mapping[str, Any]) -> list[str]:
    """Warnings about results that may be unreliable."""
    sentences = []
    if found["rank"] == 0:
        sentences.append("No low-rank part was found that reduces the held-out error: the model has biases only.")
    if share(found) > 0.3:
        sentences.append("This share of outliers is unusual: sigma may be too small, or the data are not of low rank.")
    if found["entries"] < 3 * (found["rows"] + found["columns"]):
        sentences.append(
            "There are fewer than three entries for each row and column: most parameters depend on very few entries."
        )
    return sentences


def path_plot(model: RobustCompletion) -> list[Block]:
    """Plot of the held-out RMSE along the path, with a curve for each loss and for shrunk and unshrunk singular values."""
    if not model.path_:
        return []
    curves: dict[str, dict[str, list[float]]] = {}
    for number, point in enumerate(model.path_, start=1):
        kind = "averaged" if point.averaged else "singular values not shrunk" if point.free else "within the ball"
        label = f"{point.loss}, {kind}"
        columns = curves.setdefault(label, {"radius": [], "round": [], "y": []})
        for name, value in (("radius", point.radius), ("round", number), ("y", point.rmse)):
            columns[name].append(value)
    note = "Each point is a fit that does not use the held-out entries. The RMSE includes held-out entries that are outliers."
    if model.best_index_ is not None:
        chosen = model.path_[model.best_index_]
        curves["chosen"] = {"radius": [chosen.radius], "round": [model.best_index_ + 1], "y": [chosen.rmse]}
        note += (
            f" The chosen fit has radius {chosen.radius:.4g}, rank {chosen.rank}, RMSE {chosen.rmse:.4g} and MAE "
            f"{chosen.mae:.4g}. Fits are compared by a root mean square error with inlier weights, so that outliers do not "
            "affect the choice. The chosen fit may therefore not have the smallest RMSE."
        )
        pilot = model.path_[0].loss
        if pilot != chosen.loss:
            note += f" {pilot.capitalize()}'s loss, which gives every entry some weight, is used first."
    return [
        Plot(
            "path",
            "RMSE on held-out entries along the path of radii",
            "RMSE on held-out entries",
            {"radius": "radius: the sum of the singular values", "round": "round"},
            [Curve(label, [columns]) for label, columns in curves.items()],
            note=note,
            as_given=True,
            scales=("linear", "linear"),
        )
    ]


def convergence(model: RobustCompletion) -> list[Block]:
    """Plots of the loss of the last fit, and of the gradient mapping of the certifying run, if there was such a run."""
    rounds = np.arange(1, len(model.losses_) + 1)
    loss = Plot(
        "loss",
        "Loss of the last fit, on all entries",
        "loss",
        {"round": "round (steps, then a refit of the biases)"},
        [Curve("loss", [{"round": rounds, "y": model.losses_}])],
        note=f"The fit ends when a round reduces the loss by less than the share {model.tol:g}.",
        as_given=True,
        scales=("linear", "linear"),
    )
    if model.certify is None or model.result_ is None:
        return [loss]
    whole = model.result_.trace
    rows = whole["phase"] == CERTIFICATE
    trace = {name: whole[name][rows] for name in (*UNITS, "mapping")}
    units = {unit: label for unit, label in UNITS.items() if (trace[unit] > 0).any()}
    curve = Curve("squared gradient mapping", [{**{unit: trace[unit] for unit in units}, "y": trace["mapping"]}])
    proof = model.result_.certificate
    note = MAPPING_NOTE
    if proof is not None:
        note = (
            f"At the end the squared mapping is between {proof.lower:.3g} and {proof.upper:.3g}, verified by another gradient "
            "and another linear oracle call."
        )
    certified = Plot(
        "convergence", "The certifying run", "squared gradient mapping, best so far", units, [curve], note=note
    )
    return [loss, certified] if np.isfinite(trace["mapping"]).any() else [loss]


def spectrum(model: RobustCompletion) -> list[Block]:
    """Plot of the singular values."""
    values = model.singular_values_
    if not len(values):
        return []
    numbers = np.arange(1, len(values) + 1)
    return [
        Plot(
            "singular-values",
            "Singular values of the low-rank part",
            "singular value",
            {"number": "index of the singular value"},
            [Curve("singular value", [{"number": numbers, "y": values}])],
            note=f"The first {_leading_values(values)} of {len(values)} have nine tenths of the sum of all squares.",
            as_given=True,
            scales=("linear", "log"),
        )
    ]


def _leading_values(values: np.ndarray) -> int:
    """Number of leading singular values with nine tenths of the sum of squares."""
    squares = np.cumsum(values**2)
    return 1 + int(np.searchsorted(squares, 0.9 * squares[-1]))


def outlier_sentence(found: Mapping[str, Any]) -> str:
    """Sentences on the number of outliers and their scores."""
    if not found["outliers"]:
        return "Every entry has an inlier weight of at least 0.5."
    return (
        f"{found['outliers']:,} of {counted(found['entries'], 'entry')} {_have(found['outliers'])} an inlier weight below 0.5. "
        "The outliers with the largest errors are listed. The score is 1 minus the inlier weight: an entry of score 1 is ignored."
    )


CONCENTRATED = 3.0
"""Outliers are called concentrated in rows if the 5 % of the rows with the most outliers have more than CONCENTRATED times the
share of all outliers that they would have if outliers were scattered at random."""


def worst_share(places: np.ndarray, size: int) -> tuple[float, float]:
    """Share of all outliers that lie in the 5 % of the rows (or columns) with the most outliers.

    Also returns this share for the same number of outliers scattered at random.
    """
    worst = max(size // 20, 1)
    scattered = np.random.default_rng(0).integers(size, size=len(places))
    shares = [np.sort(np.bincount(at, minlength=size))[-worst:].sum() / len(at) for at in (places, scattered)]
    return float(shares[0]), float(shares[1])


def trust_sentences(model: RobustCompletion, found: Mapping[str, Any]) -> list[str]:
    """Sentences that help to judge whether the outliers are errors: their share, and whether they are in few rows or columns."""
    if not found["outliers"]:
        return []
    parts, concentrated = [], []
    sides = zip(("rows", "columns"), model._outlier_places, (found["rows"], found["columns"]), strict=True)
    for name, places, size in sides:
        share_of_worst, expected = worst_share(places, size)
        parts.append(
            f"the {max(size // 20, 1):,} of {size:,} {name} with the most outliers have {share_of_worst:.0%} of all outliers"
        )
        if share_of_worst > CONCENTRATED * expected:
            concentrated.append(name)
    text = f"Places of the outliers: {' and '.join(parts)}."
    if concentrated:
        where = " and ".join(concentrated)
        text += (
            f" The outliers are concentrated in few {where}. Either these {where} are faulty as a whole, or the model does not "
            "describe them. Compare with another loss before you treat their outliers as errors."
        )
    elif share(found) > MANY_OUTLIERS:
        text += " The outliers are scattered, but many: some may be the tail of correct values."
    else:
        text += " The outliers are few and scattered, as single wrong entries are."
    return [text]


def candidate_table(model: RobustCompletion) -> list[Block]:
    """Table of the losses and averages that were compared on held-out entries."""
    if len(model.candidates_) < 2:
        return []
    rows = [
        [
            candidate.loss
            + (", width from the residuals" if candidate.adaptive else "")
            + (", from a pursuit" if candidate.pursued else "")
            + (", tensor view" if candidate.tensor else ""),
            ("yes, with the pattern" if candidate.implicit else "yes") if candidate.averaged else "no",
            candidate.rmse,
            candidate.mae,
            candidate.median_error,
            f"{candidate.evidence:+.1f}",
        ]
        for candidate in model.candidates_
    ]
    note = (
        "Each candidate was fitted without the held-out entries. The evidence tells how clearly it predicts these entries better "
        "than the best candidate before it: the sum of the t statistics of the differences of absolute errors and of squared "
        f"errors. To replace a convex loss, the Welsch loss needs an evidence of more than {NARROWER_EVIDENCE:g}, unless it has "
        f"a smaller rank. The average with the Welsch loss needs more than {ADAPTIVE_EVIDENCE:g}, and all other candidates need "
        "more than 0. A fit from a pursuit is compared by its median error, the number of its inliers, or its rank."
    )
    header = ["loss", "averaged", "RMSE", "MAE", "median error", "evidence"]
    return [Table("Losses and averages that were compared", header, rows, note)]


def outliers(model: RobustCompletion, limit: int) -> list[list[Any]]:
    """Row, column, observed value, prediction and score of each of the ``limit`` outliers with the largest errors."""
    worst = model.outliers_[:limit]
    return [list(line) for line in worst.tolist()]


def outlier_table(model: RobustCompletion) -> list[Block]:
    """Table of the outliers with the largest errors."""
    rows = [[str(row), str(col), *numbers] for row, col, *numbers in outliers(model, MAX_LISTED_OUTLIERS)]
    remaining = model.n_outliers_ - len(rows)
    all_listed = "all" if model.n_outliers_ == len(model.outliers_) else f"the first {len(model.outliers_):,}"
    note = (
        f"There are {remaining:,} more outliers. The raw data have the first {MAX_STORED_OUTLIERS:,} outliers, and the attribute "
        f"outliers_ of the model has {all_listed}."
        if remaining
        else ""
    )
    header = ["row", "column", "observed", "predicted", "score"]
    return [Table("The strongest outliers", header, rows, note)] if rows else []


def cleanup_table(cleanup: Cleanup) -> list[Block]:
    """Table of the faults of the input file."""
    rows = [
        [fault.kind, fault.count, fault.done, "; ".join(f"{line}: {what}" for line, what in fault.examples)]
        for fault in cleanup.faults
    ]
    return [Table("Clean-up", ["fault", "lines", "what was done", "the first, by line"], rows)] if rows else []
