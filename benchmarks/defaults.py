"""Defaults on more than 100 data sets: ours, untuned, beside plain methods that are tuned for every set.

The error of a set is relative: of missing or low-rank entries to the spread of the truth, of clean test targets to their spread,
or the share of wrong test labels. The ratio is ours over the best plain method, for every seed. Some sets were kept aside while
the code was built: they run with --all or --aside only.
"""

from __future__ import annotations

import warnings
from collections.abc import Iterator
from pathlib import Path
from statistics import median
from time import process_time
from typing import Any

import numpy as np

from benchmarks import plain_peers
from benchmarks.defaults_data import SETS, SHARED, DataSet
from benchmarks.defaults_tables import ASIDE
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier
from condgrad.learn.images import Image, restore

SEEDS = 3
OURS = "condgrad"
WORST, BETTER = 1.05, 0.8
"""Claimed: the median ratio over the seeds of every set is at most WORST, and the median over the dirty sets at most BETTER."""
FLOOR = 0.002
"""Added to both errors: below it, a difference does not matter, and 0 has no ratio."""

LARGEST = 100.0
"""Largest ratio of the plot."""

LEGEND = f"""
ratio: (ours + {FLOOR}) / (best plain method + {FLOOR}), median over the seeds and the worst seed. Seconds are of ours, CPU time.
"""


def completion(data: Any) -> Iterator[tuple[str, Any]]:
    yield OURS, lambda: RobustCompletion().fit(data.X).fill("nothing")
    yield from _named(plain_peers.completions, data.X)


def components(data: Any) -> Iterator[tuple[str, Any]]:
    yield OURS, lambda: RobustPCA().fit(data.X).low_rank_
    yield from _named(plain_peers.decompositions, data.X)


def image(data: Any) -> Iterator[tuple[str, Any]]:
    yield OURS, lambda: restore(Image(data.X[:, :, None], 255.0, "L"), RobustCompletion()).image.pixels[:, :, 0]

    def peers(X: np.ndarray) -> dict[str, np.ndarray]:
        clean = plain_peers.despeckled(X)
        found = plain_peers.completions(clean)
        return {f"despeckle + {name}": np.where(np.isnan(clean), L, clean) for name, L in found.items()}

    yield from _named(peers, data.X)


def regression(data: Any) -> Iterator[tuple[str, Any]]:
    yield OURS, lambda: RobustLinearRegressor().fit(data.X, data.y).predict(data.X_test)
    yield from _named(lambda X: _predictions(plain_peers.regressions(X, data.y), data.X_test), data.X)


def classification(data: Any) -> Iterator[tuple[str, Any]]:
    yield OURS, lambda: SigmoidClassifier().fit(data.X, data.y).predict(data.X_test)
    yield from _named(lambda X: _predictions(plain_peers.classifications(X, data.y), data.X_test), data.X)


KINDS = {
    "completion": completion,
    "components": components,
    "image": image,
    "regression": regression,
    "classification": classification,
}


def _predictions(models: dict[str, Any], X: Any) -> dict[str, np.ndarray]:
    return {name: model.predict(X) for name, model in models.items()}


def _named(methods: Any, X: Any) -> Iterator[tuple[str, Any]]:
    for name, found in methods(X).items():
        yield name, lambda found=found: found


def error(kind: str, data: Any, found: np.ndarray) -> float:
    """The relative error, or the share of wrong labels."""
    if kind == "classification":
        return float(np.mean(found != data.y_test))
    truth, got = (data.y_test, found) if kind == "regression" else (data.truth[data.test], found[data.test])
    return float(np.linalg.norm(got - truth) / np.linalg.norm(truth - truth.mean()))


def compare(data_set: DataSet, seed: int) -> Iterator[Row]:
    data = data_set.make(seed)
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a fit that did not converge shows in its error
        for method, fit in KINDS[data_set.kind](data):
            begun = process_time()
            found = fit()
            seconds = process_time() - begun
            yield {
                "set": data_set.name,
                "kind": data_set.kind,
                "dirty": data_set.dirty,
                "held out": data_set.held_out,
                "seed": seed,
                "method": method,
                "error": error(data_set.kind, data, found),
                "seconds": seconds,
            }


def ratios(rows: list[Row], name: str) -> tuple[list[float], str]:
    """Ratio of ours to the best plain method for every seed, and the plain method that is best most often."""
    found, winners = [], []
    for seed in sorted({row["seed"] for row in rows if row["set"] == name}):
        errors = {row["method"]: row["error"] for row in rows if row["set"] == name and row["seed"] == seed}
        ours = errors.pop(OURS)
        winners.append(min(errors, key=lambda method: errors[method]))
        found.append((ours + FLOOR) / (errors[winners[-1]] + FLOOR))
    return found, max(winners, key=winners.count)


def profile(rows: list[Row], path: Path) -> None:
    """Draw the share of runs whose error is at most t times that of the best method, for ours and the best plain method."""
    import matplotlib

    matplotlib.use("Agg")
    from matplotlib import pyplot

    figure, axes = pyplot.subplots(figsize=(7, 4.5))
    names = list(dict.fromkeys(row["set"] for row in rows))
    for dirty, style in ((True, "-"), (False, "--")):
        some = [name for name in names if next(row["dirty"] for row in rows if row["set"] == name) == dirty]
        each = np.array([ratio for name in some for ratio in ratios(rows, name)[0]])
        if not len(each):
            continue
        share = np.append(np.arange(1, len(each) + 1) / len(each), 1.0)
        what = "dirty" if dirty else "clean"
        for who, above, color in ((OURS, each, "C0"), ("best plain", 1 / each, "C1")):
            errors = np.append(np.sort(np.maximum(above, 1)), LARGEST)
            axes.step(errors, share, style, color=color, where="post", label=f"{who}, {what} sets")
    axes.set(
        xscale="log",
        xlim=(0.97, LARGEST),
        ylim=(0, 1.02),
        xlabel="error / smallest error",
        ylabel="share of sets and seeds",
    )
    axes.legend(loc="lower right")
    axes.grid(alpha=0.3)
    figure.tight_layout()
    path.parent.mkdir(parents=True, exist_ok=True)
    figure.savefig(path, dpi=120)
    pyplot.close(figure)


def claims_of(lines: list[dict[str, Any]], which: str) -> list[Claim]:
    """That no set is much worse, and that the dirty ones are clearly better."""
    worse = [line for line in lines if line["median"] > WORST]
    dirty = [line["median"] for line in lines if line["dirty"]]
    losses = ", ".join(f"{line['set']} {line['median']:.2f}" for line in worse) or "none"
    never = Claim(f"{which}: sets with a ratio above {WORST}", "none", losses, not worse)
    if not dirty:
        return [never]
    middle = median(dirty)
    return [
        never,
        Claim(
            f"{which}: median ratio of dirty sets", f"<= {BETTER}", f"{middle:.3g} of {len(dirty)}", middle <= BETTER
        ),
    ]


def main() -> None:
    def more(parser: Any) -> None:
        parser.add_argument("--all", action="store_true", help="the sets that were kept aside, too")
        parser.add_argument("--aside", action="store_true", help="only the sets that were kept aside")
        parser.add_argument("--only", default="", metavar="TEXT", help="sets whose name or kind contains this text")

    args = arguments(__doc__, more)
    wanted = [one for one in SETS + ASIDE if args.all or one.held_out == args.aside]
    chosen = [one for one in wanted if args.only in f"{one.name} {one.kind}"]
    missing = [one for one in chosen if one.needs and not (SHARED / one.needs).exists()]
    if missing:
        print(f"Left out, because their files are missing: {', '.join(one.name for one in missing)}.")
    chosen = [one for one in chosen if one not in missing]
    seeds = range(1 if args.quick else SEEDS)
    rows = work_off("defaults", [Job(1, lambda a=(one, seed): compare(*a)) for one in chosen for seed in seeds])
    lines: list[dict[str, Any]] = []
    for one in chosen:
        each, best = ratios(rows, one.name)
        mine = [row for row in rows if row["set"] == one.name]
        ours = [row for row in mine if row["method"] == OURS]
        lines.append(
            {
                "set": one.name,
                "dirty": one.dirty,
                "held out": one.held_out,
                "ours": median(row["error"] for row in ours),
                "plain": median(row["error"] for row in mine if row["method"] == best),
                "best": best,
                "median": median(each),
                "worst": max(each),
                "seconds": median(row["seconds"] for row in ours),
            }
        )
    columns = ("set", "dirty", "held out", OURS, "plain", "best plain", "ratio", "worst seed", "seconds")
    shown = [
        tuple(("yes" if cell else "no") if isinstance(cell, bool) else cell for cell in line.values()) for line in lines
    ]
    table(f"Error with defaults, medians over {len(seeds)} seeds", columns, shown, LEGEND)
    claims = []
    for held_out, which in ((False, "built on"), (True, "kept aside")):
        some = [line for line in lines if line["held out"] == held_out]
        claims += claims_of(some, which) if some else []
    profile(rows, args.out / "defaults.png")
    finish("defaults", args, rows, claims, sets=lines)


if __name__ == "__main__":
    main()
