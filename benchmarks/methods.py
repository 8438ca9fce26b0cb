"""Every method on ten families of problems: oracle calls and CPU time to a certified mapping, with defaults and tuned.

families     Each method that fits, with its defaults and tuned: L and the constants of the terms times each factor of one grid,
             the same for all, the best on a seed of its own. Median over the seeds. `auto` beside the best default.
sums         Term gradients of NCGS-SPIDER and NCGS-VR to one mapping against the number of terms.
convergence  A strongly convex quadratic over the simplex: Frank-Wolfe gap by step, and atoms, beside copt's pairwise Frank-Wolfe.

--family NAME runs one family only. --page FILE and --pictures DIR write the tables of the last run, and two pictures, for the
documentation; after a run of some families, only their tables and claims are renewed on the page.
"""

from __future__ import annotations

import argparse
import json
import warnings
from collections.abc import Iterator
from functools import partial
from math import inf, isfinite
from pathlib import Path
from tempfile import TemporaryDirectory
from time import process_time
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.method_families import FAMILIES, Family, regression
from condgrad.comparison import Comparison
from condgrad.driver.resolve import check_problem, with_smoothness
from condgrad.driver.smoothness_estimate import estimate_smoothness
from condgrad.paper.exponents import Estimate, estimate, slope
from condgrad.protocols import COUNTERS
from condgrad.report.plain import format_number
from condgrad.solvers import METHODS

SEEDS = 5
GRID = (1.0, 0.25, 1 / 16)
"""Factors of L: the one parameter that all methods have."""
TUNING_SEED = 100
NEAR = 100.0
"""A method is tuned if the squared mapping of one of its runs came within this factor of the target."""
AUTO_LIMIT = 1.5
"""Largest CPU time of ``auto`` in units of that of the best default."""
SIZES = (1_000, 3_000, 10_000, 30_000, 100_000)
SUM_TARGET, SUM_BUDGET = 1e-7, 3.0
COUNTED = tuple(COUNTERS)
LINEAR: dict[str, tuple[str, dict[str, Any]]] = {
    "away-step": ("away-step", {}),
    "pairwise": ("pairwise", {}),
    "blended-pairwise": ("blended-pairwise", {}),
    "pairwise, adaptive": ("pairwise", {"rule": "adaptive"}),  # the rule of copt
    "blended-pairwise, adaptive": ("blended-pairwise", {"rule": "adaptive"}),
    "open loop": ("frank-wolfe", {"rule": "open-loop"}),
}
CERTAIN = -0.002
"""Slope of log10 of the gap by step below which convergence counts as linear, over the second half of the decrease."""

try:
    import copt
except ImportError:
    copt = None


# ---------------------------------------------------------------------------------------------------------- families


def scaled(family: Family, factor: float, seed: int) -> cg.Problem:
    """The problem of a seed, with L and the constants of the terms multiplied by a factor."""
    problem = check_problem(family.make(seed))
    F = problem.objective
    of_terms = {}
    for name in ("term_smoothness", "mean_square_smoothness"):
        if getattr(F, name, None) is not None:
            of_terms[name] = factor * getattr(F, name)
    return cg.Problem(with_smoothness(F, factor * true_smoothness(problem), **of_terms), problem.domain)


def true_smoothness(problem: cg.Problem) -> float:
    return problem.objective.smoothness or float(estimate_smoothness(problem.objective, problem.domain))


def compared(family: Family, factor: float, methods: Any, seeds: Any) -> Comparison:
    make = family.make if factor == 1 else partial(scaled, family, factor)
    L = None if factor == 1 else true_smoothness(check_problem(family.make(0)))
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # L is too small on purpose
        return cg.compare(
            make,
            methods,
            seeds,
            targets=family.target,
            budget=family.budget,
            x0=family.x0() if family.x0 else None,
            smoothness=L,
            all_seeds=False,
            progress=False,
            on_interrupt="raise",
        )


def family_rows(family: Family, seeds: int, tune: bool) -> Iterator[Row]:
    """A row for each method with its defaults, and one for each that is faster with another L."""
    defaults = compared(family, 1.0, ["auto", *METHODS], seeds)
    for label in defaults.labels:
        yield row(family, defaults, label, 1.0)
    for label, why in defaults.skipped.items():
        yield {"part": "families", "family": family.name, "method": label, "skipped": why}
    if not tune:
        return
    near = {run.label for run in defaults.runs if run.best <= NEAR * family.target}
    methods = [label for label in defaults.labels if label != "auto" and label in near]
    tried = {factor: compared(family, factor, methods, [TUNING_SEED]) for factor in GRID}
    best = {
        label: min(tried, key=lambda factor: tried[factor].median(label) if label in tried[factor].labels else inf)
        for label in methods
    }
    for factor in GRID[1:]:
        better = [label for label in methods if best[label] == factor]
        if better:
            found = compared(family, factor, better, seeds)
            for label in better:
                yield row(family, found, label, factor)


def row(family: Family, found: Comparison, label: str, factor: float) -> Row:
    runs = found.of(label)
    return {
        "part": "families",
        "family": family.name,
        "target": family.target,
        "budget": family.budget,
        "held_out": family.held_out,
        "method": label,
        "factor": factor,
        "runs": len(runs),
        "reached": sum(run.best <= family.target for run in runs),
        "cpu": found.median(label),
        "cpu_by_seed": [run.cost(family.target) for run in runs],
        **{oracle: found.median(label, unit=oracle) for oracle in COUNTED},
        "choice": runs[0].choice["reason"] if runs and runs[0].choice else None,
        "chosen": runs[0].choice["method"] if runs and runs[0].choice else None,
    }


def show_families(rows: list[Row]) -> None:
    for name in dict.fromkeys(each["family"] for each in rows):
        mine = [each for each in rows if each["family"] == name and "skipped" not in each]
        tuned = {each["method"]: each for each in mine if each["factor"] != 1}
        default = sorted((each for each in mine if each["factor"] == 1), key=lambda each: each["cpu"])
        used = [oracle for oracle in COUNTED if any(isfinite(each[oracle]) and each[oracle] > 0 for each in default)]
        shown = []
        for each in default:
            if isfinite(each["cpu"]) or isfinite(tuned.get(each["method"], each)["cpu"]):
                other = tuned.get(each["method"], each)
                counts = [int(each[oracle]) if isfinite(each[oracle]) else "-" for oracle in used]
                cells = [f"{each['reached']} of {each['runs']}", milliseconds(each["cpu"]), *counts]
                shown.append([each["method"], *cells, milliseconds(other["cpu"]), f"{other['factor']:g}"])
        missed = [each["method"] for each in default if each["method"] not in {line[0] for line in shown}]
        skipped = [each["method"] for each in rows if each["family"] == name and "skipped" in each]
        title = f"{name}: squared mapping {default[0]['target']:g}, {default[0]['budget']:g} CPU s a run"
        columns = ["method", "reached", "CPU ms", *map(str.upper, used), "tuned ms", "L times"]
        legend = f"Not reached: {', '.join(missed) or 'none'}."
        legend += f"\nDo not fit: {', '.join(skipped)}." if skipped else ""
        best = winner(rows, name)
        legend += f"\nFastest: {best['method']} with its defaults; {winner(rows, name, tuned=True)['method']} if all are tuned."
        table(title, columns, shown, legend)


def milliseconds(seconds: float) -> str:
    return format_number(1e3 * seconds) if isfinite(seconds) else "-"


def winner(rows: list[Row], family: str, tuned: bool = False) -> Row:
    """The fastest method but auto: with its defaults, or with the better of its defaults and its tuned L."""
    mine = [each for each in rows if each["family"] == family and "skipped" not in each and each["method"] != "auto"]
    return min((each for each in mine if tuned or each["factor"] == 1), key=lambda each: each["cpu"])


def auto_claims(rows: list[Row]) -> Iterator[Claim]:
    for name in dict.fromkeys(each["family"] for each in rows):
        auto = next(each for each in rows if each["family"] == name and each["method"] == "auto")
        best = winner(rows, name)
        ratio = auto["cpu"] / best["cpu"] if isfinite(best["cpu"]) else inf
        held_out = " (not used to make its rules)" if auto["held_out"] else ""
        measured = f"{ratio:.2f} times, {auto['chosen']} against {best['method']}"
        yield Claim(f"auto, {name}{held_out}", f"<= {AUTO_LIMIT} times the best default", measured, ratio <= AUTO_LIMIT)


# --------------------------------------------------------------------------------------------------------------- sums


def sum_rows(terms: int, seeds: int) -> Iterator[Row]:
    """Term gradients of the two sliding methods for finite sums, on the family whose terms do not depend on their number."""
    make = partial(regression, terms=terms, dimension=10)
    found = cg.compare(
        make,
        "ncgs-spider,ncgs-vr,ncgs",
        seeds,
        targets=SUM_TARGET,
        budget=SUM_BUDGET,
        progress=False,
        on_interrupt="raise",
    )
    for label in found.labels:
        for run in found.of(label):
            spent = {"ifo": run.cost(SUM_TARGET, "ifo"), "cpu": run.cost(SUM_TARGET)}
            yield {"part": "sums", "method": label, "terms": terms, "seed": run.seed, **spent}


def sum_growth(rows: list[Row]) -> tuple[list[int], list[str], dict[tuple[str, int], list[float]], dict[str, Estimate]]:
    """The sizes, the methods, the costs of all seeds, and the exponents of growth."""
    sizes = sorted({each["terms"] for each in rows})
    methods = list(dict.fromkeys(each["method"] for each in rows))
    costs = {
        (method, n): [each["ifo"] for each in rows if (each["method"], each["terms"]) == (method, n)]
        for method in methods
        for n in sizes
    }
    growth = {}
    for method in methods:
        by_seed = zip(*(costs[method, n] for n in sizes), strict=True)
        growth[method] = estimate(slope(sizes, each) for each in by_seed if all(map(isfinite, each)))
    return sizes, methods, costs, growth


def show_sums(rows: list[Row]) -> list[Claim]:
    sizes, methods, costs, growth = sum_growth(rows)
    lines = [
        [method, *(format_number(float(np.median(costs[method, n]))) for n in sizes), str(growth[method])]
        for method in methods
    ]
    title = f"Term gradients to a squared mapping of {SUM_TARGET:g}, by the number of terms; exponent of growth"
    table(title, ["method", *(f"{n:,}" for n in sizes), "exponent"], lines)
    claims = []
    for n in (n for n in sizes if n >= 10_000):
        ratio = float(np.median(costs["ncgs-spider", n])) / float(np.median(costs["ncgs-vr", n]))
        claims.append(
            Claim(f"NCGS-SPIDER, {n:,} terms", "fewer term gradients than NCGS-VR", f"{ratio:.2f} times", ratio < 1)
        )
    return claims


# -------------------------------------------------------------------------------------------------------- convergence


def quadratic_on_simplex(seed: int, size: int) -> cg.Problem:
    """(x - c)'Q(x - c)/2 with Q = A'A/m + I/10: strongly convex, with correlated columns, so that wrong vertices look good at
    first. The point c has a twentieth of its entries above 0, and a small slope keeps the solution near it."""
    rng = np.random.default_rng(seed)
    A = rng.standard_normal((size // 5, size))
    Q, target = A.T @ A / len(A) + 0.1 * np.eye(size), np.zeros(size)
    support = rng.permutation(size)[: size // 20]
    target[support] = rng.dirichlet(np.ones(len(support)))
    outward = np.where(target > 0, 0.0, rng.uniform(0.0, 0.05, size))
    return cg.Problem(cg.Quadratic(Q, outward - Q @ target), cg.Simplex(size))


def convergence_rows(seed: int, size: int, steps: int) -> Iterator[Row]:
    problem = quadratic_on_simplex(seed, size)
    x0 = np.eye(size)[0]
    for label, (name, options) in LINEAR.items():
        stop = cg.Gap(1e-9) | cg.Steps(steps)
        result = cg.minimize(problem.objective, problem.domain, x0, method=name, stop=stop, progress=False, **options)
        gaps = result.trace["gap"][np.isfinite(result.trace["gap"])]
        yield decrease(label, seed, gaps, int(np.count_nonzero(result.x)), result.cpu)
    if copt is not None:
        yield with_copt(problem, seed, x0, steps)


def with_copt(problem: cg.Problem, seed: int, x0: np.ndarray, steps: int) -> Row:
    """copt's pairwise Frank-Wolfe with its line search, and a pairwise oracle of the simplex as its documentation describes."""
    F, gaps = problem.objective, []

    def oracle(u: np.ndarray, x: np.ndarray, active: Any) -> tuple[np.ndarray, int, int, float]:
        best = int(np.argmax(u))
        # copt keeps an atom of weight 0 after a drop step; its own oracle of the l1 ball then stands still at it
        worst, weight = min(((atom, w) for atom, w in active.items() if w > 0), key=lambda item: u[item[0]])
        direction = np.zeros_like(x)
        direction[best] += 1
        direction[worst] -= 1
        gaps.append(float(u[best] - u @ x))
        return direction, best, worst, weight

    begun = process_time()
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            found = copt.minimize_frank_wolfe(
                lambda x: (F.value(x), F.grad(x)), x0, oracle, 0, "pairwise", jac=True, lipschitz=F.smoothness,
                max_iter=steps, tol=1e-9,
            )  # fmt: skip
        atoms = int(np.count_nonzero(found.x > 1e-15))
    except ValueError:  # its active set refuses a step that is longer than a weight by rounding
        atoms = -1
    end = next((k + 1 for k, gap in enumerate(gaps) if gap <= 1e-9), len(gaps))
    return decrease("copt pairwise", seed, np.array(gaps[:end]), atoms, process_time() - begun)


def decrease(name: str, seed: int, gaps: np.ndarray, atoms: int, cpu: float) -> Row:
    """The slope of log10 of the smallest gap so far by step, over the second half of the decrease."""
    logs = np.log10(np.maximum(np.minimum.accumulate(gaps), 1e-16))
    half = int(np.argmax(logs <= (logs[0] + logs[-1]) / 2))
    k = np.arange(half, len(logs))
    fitted = float(np.polyfit(k, logs[half:], 1)[0]) if len(k) > 2 else -inf
    reached = np.flatnonzero(gaps <= 1e-6)
    found = {
        "steps": len(gaps),
        "gap": float(10 ** logs[-1]),
        "steps to 1e-6": int(reached[0]) if len(reached) else None,
    }
    return {"part": "convergence", "method": name, "seed": seed, "slope": fitted, "atoms": atoms, "cpu": cpu, **found}


def convergence_lines(rows: list[Row]) -> tuple[list[list[Any]], dict[str, dict[str, float]]]:
    """The lines of the table, and the medians over the seeds by method."""
    lines, medians = [], {}
    for name in dict.fromkeys(each["method"] for each in rows):
        mine = [each for each in rows if each["method"] == name]
        medians[name] = {
            key: float(np.median([each[key] for each in mine])) for key in ("slope", "atoms", "cpu", "gap", "steps")
        }
        to = [each["steps to 1e-6"] for each in mine]
        shown = medians[name]
        steps = "-" if None in to else int(np.median(to))
        atoms = int(shown["atoms"]) if shown["atoms"] >= 0 else "-"
        lines.append([name, f"{shown['slope']:.4f}", steps, f"{shown['gap']:.1e}", atoms, milliseconds(shown["cpu"])])
    return lines, medians


def show_convergence(rows: list[Row]) -> list[Claim]:
    lines, medians = convergence_lines(rows)
    columns = ["method", "slope", "steps to 1e-6", "last gap", "atoms", "CPU ms"]
    table("Strongly convex quadratic over the simplex: log10 of the Frank-Wolfe gap by step", columns, lines)
    claims = []
    for name in ("away-step", "blended-pairwise"):
        found, linear = medians[name]["slope"], medians[name]["slope"] <= CERTAIN and medians[name]["gap"] <= 1e-8
        claims.append(Claim(f"{name} converges linearly", f"slope <= {CERTAIN}, gap <= 1e-8", f"{found:.4f}", linear))
    factor = medians["open loop"]["atoms"] / medians["blended-pairwise"]["atoms"]
    claims.append(Claim("atoms of open-loop over those of blended-pairwise", "> 1", f"{factor:.2f} times", factor > 1))
    return claims


# --------------------------------------------------------------------------------------------------------------- page


def page(content: dict[str, Any]) -> Iterator[str]:
    """The tables of docs/methods-compared.md."""
    yield from family_page(content)
    yield from sums_on_page([each for each in content["rows"] if each["part"] == "sums"])
    yield from convergence_on_page([each for each in content["rows"] if each["part"] == "convergence"])
    yield "\n## Claims\n\n| | claim | required | measured |\n|---|---|---|---|"
    yield from map(claim_line, content["claims"])


def family_page(content: dict[str, Any]) -> Iterator[str]:
    """The sections of the families."""
    rows = [each for each in content["rows"] if each["part"] == "families"]
    for name in dict.fromkeys(each["family"] for each in rows):
        mine = [each for each in rows if each["family"] == name and "skipped" not in each]
        tuned = {each["method"]: each for each in mine if each["factor"] != 1}
        default = sorted((each for each in mine if each["factor"] == 1), key=lambda each: each["cpu"])
        used = [oracle for oracle in COUNTED if any(isfinite(each[oracle]) and each[oracle] > 0 for each in default)]
        reached = [
            each for each in default if isfinite(each["cpu"]) or isfinite(tuned.get(each["method"], each)["cpu"])
        ]
        held_out = " (held out: not used to make the rules of `auto`)" if default[0]["held_out"] else ""
        yield f"\n### {name[:1].upper()}{name[1:]}{held_out}\n"
        yield f"To a squared mapping of {default[0]['target']:g}, with {default[0]['budget']:g} CPU seconds a run.\n"
        yield f"| method | CPU ms | {' | '.join(map(str.upper, used))} | tuned: CPU ms | L times |"
        yield "|---" * (len(used) + 4) + "|"
        for each in reached:
            other = tuned.get(each["method"], each)
            counts = [f"{int(each[oracle]):,}" if isfinite(each[oracle]) else "–" for oracle in used]  # noqa: RUF001
            cells = [f"`{each['method']}`", milliseconds(each["cpu"]), *counts, milliseconds(other["cpu"])]
            yield f"| {' | '.join(cells)} | {other['factor']:g} |"
        missed = [f"`{each['method']}`" for each in default if each not in reached]
        auto = next(each for each in default if each["method"] == "auto")
        best, if_tuned = winner(rows, name)["method"], winner(rows, name, tuned=True)["method"]
        yield f"\nFastest: `{best}` with its defaults, `{if_tuned}` if all are tuned. `auto` chose `{auto['chosen']}`."
        if missed:
            yield f"Not reached on most seeds: {', '.join(missed)}."


def sums_on_page(rows: list[Row]) -> Iterator[str]:
    sizes, methods, costs, growth = sum_growth(rows)
    yield f"\n### Term gradients to a squared mapping of {SUM_TARGET:g}, by the number of terms\n"
    yield f"| method | {' | '.join(f'{n:,}' for n in sizes)} | exponent |"
    yield "|---" * (len(sizes) + 2) + "|"
    for method in methods:
        medians = [f"{int(np.median(costs[method, n])):,}" for n in sizes]
        yield f"| `{method}` | {' | '.join(medians)} | {growth[method]} |"


def convergence_on_page(rows: list[Row]) -> Iterator[str]:
    yield "\n### A strongly convex quadratic over the simplex\n"
    yield "| method | slope of log10 of the Frank-Wolfe gap by step | steps to 1e-6 | last gap | atoms | CPU ms |"
    yield "|---|---|---|---|---|---|"
    for line in convergence_lines(rows)[0]:
        yield f"| {' | '.join(map(str, line))} |"


BEGIN, END = "<!-- tables: python -m benchmarks.methods -->", "<!-- end of the tables -->"


def write_page(path: Path, results: Path) -> None:
    content = json.loads((results / "methods.json").read_text(encoding="utf-8"))
    text = path.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    tables, after = rest.split(END)
    complete = any(each["part"] == "sums" for each in content["rows"])
    tables = (
        "\n".join(page(content)) + "\n\n"
        if complete
        else renewed(tables.lstrip("\n"), "\n".join(family_page(content)), content)
    )
    path.write_text(f"{before}{BEGIN}\n{tables}{END}{after}", encoding="utf-8")


def renewed(tables: str, new: str, content: dict[str, Any]) -> str:
    """The tables of the page with the sections of some families, and the claims about them, replaced or added."""
    for section in new.split("\n### ")[1:]:
        head = section.split("\n")[0].split(" (held out")[0]
        old = [each for each in tables.split("\n### ")[1:] if each.split("\n")[0].split(" (held out")[0] == head]
        if old:
            tables = tables.replace(f"\n### {old[0]}", f"\n### {section.rstrip()}\n", 1)
        else:
            tables = tables.replace("\n### Term gradients", f"\n### {section.rstrip()}\n\n### Term gradients", 1)
    lines = tables.split("\n")
    for claim in content["claims"]:
        line, at = claim_line(claim), [i for i, each in enumerate(lines) if f"| {claim['claim']} |" in each]
        last = max(i for i, each in enumerate(lines) if "| auto, " in each)
        if at:
            lines[at[0]] = line
        else:
            lines.insert(last + 1, line)
    return "\n".join(lines)


def claim_line(claim: dict[str, Any]) -> str:
    holds = "holds" if claim["holds"] else "**fails**"
    return f"| {holds} | {claim['claim']} | {claim['required']} | {claim['measured']} |"


def draw(folder: Path) -> None:
    """The pictures of docs/comparing.md."""
    some = "auto,ncgs,ncgs-spider,ncgs-vr,svfw,frank-wolfe,pairwise,projected-gradient"
    found = cg.compare(regression, some, 3, targets=[1e-4, 1e-6, 1e-8], budget=0.2)
    with TemporaryDirectory() as temporary:
        found.report(temporary, figures=True)
        for name in ("convergence", "profile-cpu"):
            (folder / f"comparing-{name.split('-')[0]}.png").write_bytes((Path(temporary) / f"{name}.png").read_bytes())


def further(parser: argparse.ArgumentParser) -> None:
    parser.add_argument(
        "--page", type=Path, metavar="FILE", help="write the tables of the last run into this page only"
    )
    parser.add_argument(
        "--family", action="append", metavar="NAME", help="run only the families whose names contain this"
    )
    parser.add_argument("--pictures", type=Path, metavar="DIR", help="write the pictures of docs/comparing.md only")


def main() -> None:
    args = arguments(__doc__, further)
    if args.page:
        write_page(args.page, args.out)
        return
    if args.pictures:
        draw(args.pictures)
        return
    seeds = 1 if args.quick else SEEDS
    families = [family for family in FAMILIES if not args.quick or not family.name.startswith("sigmoid")]
    if args.family:
        families = [family for family in families if any(name in family.name for name in args.family)]
    sizes = SIZES[:3] if args.quick else SIZES
    size, steps = (100, 3000) if args.quick else (200, 5000)
    jobs = [
        *(
            Job(family.budget * (1 if args.quick else 8), partial(family_rows, family, seeds, not args.quick))
            for family in families
        ),
        *(Job(1.0, partial(sum_rows, n, seeds)) for n in sizes),
        *(Job(1.0, partial(convergence_rows, seed, size, steps)) for seed in range(min(seeds, 2))),
    ]
    rows = work_off("methods", jobs[: len(families)] if args.family else jobs)
    parts = {part: [each for each in rows if each["part"] == part] for part in ("families", "sums", "convergence")}
    show_families(parts["families"])
    claims = list(auto_claims(parts["families"]))
    if not args.family:
        claims += [*show_sums(parts["sums"]), *show_convergence(parts["convergence"])]
    if args.quick:  # one seed decides no race
        claims = [claim for claim in claims if not claim.claim.startswith("auto")]
    finish("methods", args, rows, claims, copt=getattr(copt, "__version__", None))


if __name__ == "__main__":
    main()
