"""What RobustCompletion's choice of the radius costs: a whole fit of MovieLens 100K, against one fit that is told everything.

That fit begins with biases alone, has the scale that was found, and runs to the same tolerance on all entries: at the radius that
was chosen, and at the largest one of the path. CPU seconds of one thread, medians over repeats; the test set is not looked at.
"""

from __future__ import annotations

import sys
from dataclasses import replace
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks.completion_data import MOVIELENS, SETS, contaminated, movielens, split
from benchmarks.harness import Claim, Row, arguments, finish, table
from condgrad import kernels
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.path import Fit
from condgrad.learn.completion.robust_scale import loss_for
from condgrad.objectives import Completion

MOST = 2.0
"""A path is to cost little more than its largest fit; the bound was set after a first look."""


def told(entries: Completion, model: RobustCompletion, radius: float) -> None:
    """One fit, from biases alone, at this radius and the model's scale."""
    fit = Fit(entries, model.loss, None, "both", np.random.default_rng(0))
    begin = replace(
        fit.biases_only(entries), loss=loss_for(model.loss, model.sigma_), sigma=model.sigma_, radius=radius
    )
    fit.finish(begin, 400, model.tol)


def cpu(work: Any, repeats: int) -> float:
    work()
    times = []
    for _ in range(repeats):
        begun = process_time()
        work()
        times.append(process_time() - begun)
    return median(times)


def main() -> None:
    args = arguments(__doc__)
    if not MOVIELENS.exists():
        sys.exit(f"MovieLens 100K is needed: there is no file u.data in {MOVIELENS.parent}.")
    train, _ = split(movielens())
    rows: list[Row] = []
    with kernels.limit_threads(1):
        for kind in SETS[:1] if args.quick else SETS:
            given = contaminated(train, kind)
            listed, repeats = (given.rows, given.cols, given.values), 1 if args.quick else 5
            model, entries = RobustCompletion().fit(listed), Completion(*listed, given.shape)
            largest = max(tried.radius for tried in model.path_)
            rows.append(
                {
                    "set": kind,
                    "whole": cpu(lambda given=listed: RobustCompletion().fit(given), repeats),
                    "chosen": cpu(lambda e=entries, m=model: told(e, m, m.radius_), repeats),
                    "largest": cpu(lambda e=entries, m=model, r=largest: told(e, m, r), repeats),
                }
            )
    lines = [
        (r["set"], r["whole"], r["chosen"], r["largest"], r["whole"] / r["chosen"], r["whole"] / r["largest"])
        for r in rows
    ]
    title = "A whole fit, with its path, against one fit that is told everything: CPU s"
    table(title, ("", "whole", "at the chosen", "at the largest", "ratio", "ratio"), lines)
    worst = max(row["whole"] / row["largest"] for row in rows)
    claim = "a fit with its path, over the largest fit of the path alone, worst set"
    finish("path_cost", args, rows, [Claim(claim, f"<= {MOST:g}", f"{worst:.2f}", worst <= MOST)])


if __name__ == "__main__":
    main()
