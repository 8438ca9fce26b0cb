"""Are certificates true? 500 random problems, and the mapping at each returned point in extended precision.

F = scale (|A x - y|^2 / (2 n) or x'Qx / 2 + b'x, + offset sum(x)) over every set of the registry, by every method and inner
solver that fits, and matrix completion on points of low rank. Offsets go from 0 to 1e13, scales from 1e-9 to 1e9, radii from 0.01
to 100, tolerances from 1e-2 to 1e-10 of the first squared mapping. No upper bound may be below the true squared mapping, no
``converged`` above the tolerance; and so that this is not achieved by refusing, most moderate problems must converge.
"""

from __future__ import annotations

import warnings
from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np

import condgrad as cg
from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.true_mapping import dense, known_sets, long, true_mapping
from condgrad.inner import INNERS, suits

PROBLEMS, QUICK = 500, 60
STEPS, CALLS = 150, 1000
MODERATE = 1e6
"""Offsets up to this and scales within this factor of 1 are moderate."""
ROOM = 1000.0
"""A tolerance is within float64's reach where it is this many times what one rounding of the gap can make."""
SHARE = 0.9
"""Of the moderate problems within reach, those that methods of linear convergence must solve."""
FAST = ("ncgs", "ncgs-ii", "projected-gradient", "accelerated-gradient", "cgs")


@dataclass(frozen=True)
class Model:
    """F(x) = scale (|A x - y|^2 / (2 n) + offset sum(x)), or scale (x'Qx / 2 + b'x + offset sum(x)) where A is square."""

    A: np.ndarray
    y: np.ndarray
    scale: float
    offset: float
    shape: tuple[int, ...]
    indefinite: bool

    def value(self, x: np.ndarray) -> float:
        flat = x.ravel()
        if self.indefinite:
            return float(self.scale * (flat @ (self.A @ flat) / 2 + self.y @ flat + self.offset * flat.sum()))
        return float(self.scale * (np.mean((self.A @ flat - self.y) ** 2) / 2 + self.offset * flat.sum()))

    def grad(self, x: np.ndarray) -> np.ndarray:
        flat = x.ravel()
        slope = self.A @ flat + self.y if self.indefinite else self.A.T @ (self.A @ flat - self.y) / len(self.y)
        return (self.scale * (slope + self.offset)).reshape(x.shape)

    def terms(self, x: np.ndarray, batch: np.ndarray) -> np.ndarray:
        slopes = (self.A[batch] @ x.ravel() - self.y[batch])[:, None] * self.A[batch]
        return (self.scale * (slopes + self.offset)).reshape(len(batch), *self.shape)

    def true_grad(self, x: Any) -> np.ndarray:
        """The gradient in longdouble, of the same data."""
        A, y, flat = long(self.A), long(self.y), dense(x).ravel()
        slope = A @ flat + y if self.indefinite else A.T @ (A @ flat - y) / len(y)
        return (long(self.scale) * (slope + long(self.offset))).reshape(self.shape)

    @property
    def smoothness(self) -> float:
        curvature = np.linalg.norm(self.A, 2)
        return float(self.scale * (curvature if self.indefinite else curvature**2 / len(self.y))) * (1 + 1e-9)

    def objective(self, known: bool) -> Any:
        L = self.smoothness if known else None
        if self.indefinite:
            return cg.Function(self.value, self.grad, self.shape, smoothness=L)
        most = float(self.scale * (self.A**2).sum(axis=1).max()) * (1 + 1e-9)
        return cg.FunctionSum(self.value, self.terms, len(self.y), self.shape, smoothness=L, term_smoothness=most)


@dataclass(frozen=True)
class Observed:
    """Matrix completion with squared loss, for points of low rank."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    shape: tuple[int, int]
    scale: float
    offset: float = 0.0
    smoothness: float = 1.0

    def objective(self, known: bool) -> Any:
        return cg.Completion(self.rows, self.cols, self.values, self.shape, cg.Squared())

    def true_grad(self, x: Any) -> np.ndarray:
        found = np.zeros(self.shape, dtype=np.longdouble)
        found[self.rows, self.cols] = dense(x)[self.rows, self.cols] - long(self.values)
        return found


@dataclass(frozen=True)
class Task:
    """One random problem."""

    number: int
    model: Any
    domain: Any
    set_name: str
    method: str
    inner: str
    known: bool
    """L is given."""
    digits: float
    """The tolerance is 10^-digits of the first squared mapping."""


def tasks(count: int) -> Iterator[Task]:
    """All sets in turn, with methods and inner solvers that fit drawn at random; every ninth is a completion."""
    names = known_sets()
    for number in range(count):
        rng = np.random.default_rng((2017, number))
        scale, digits = 10.0 ** rng.uniform(-9, 9), rng.uniform(2, 10)
        if number % 9 == 8:
            domain, model = completion(rng, scale)
            name, known = "nuclear-ball", True
        else:
            name = names[number % len(names)]
            domain = a_set(name, 10.0 ** rng.uniform(-2, 2))
            offset = 0.0 if rng.random() < 0.3 else 10.0 ** rng.uniform(0, 13)
            known = bool(rng.random() < 0.8)
            model = a_model(rng, domain.shape, scale, offset, bool(rng.random() < 0.4))
        method, inner = a_method(rng, model, domain, known)
        yield Task(number, model, domain, name, method, inner, known, digits)


def a_set(name: str, radius: float) -> Any:
    """The registry's example, of another radius where it has one."""
    example = cg.DOMAINS[name].example()
    if "radius" not in cg.DOMAINS[name].parameters:
        return example
    more = {key: getattr(example, key) for key in ("p", "k") if hasattr(example, key)}
    return type(example)(shape=example.shape, radius=radius, **more)


def a_model(rng: np.random.Generator, shape: tuple[int, ...], scale: float, offset: float, indefinite: bool) -> Model:
    n = int(np.prod(shape))
    if indefinite:
        Q = rng.standard_normal((n, n))
        return Model((Q + Q.T) / 2, rng.standard_normal(n), scale, offset, shape, True)
    return Model(rng.standard_normal((2 * n, n)), rng.standard_normal(2 * n), scale, offset, shape, False)


def completion(rng: np.random.Generator, scale: float) -> tuple[Any, Observed]:
    m, n = (9, 8) if rng.random() < 0.75 else (70, 66)  # beyond 64 rows and columns, Lanczos methods work
    rows, cols = np.nonzero(rng.random((m, n)) < 0.3)
    values = scale * rng.standard_normal(len(rows))
    return cg.NuclearBall((m, n), scale * 10.0 ** rng.uniform(0, 2)), Observed(rows, cols, values, (m, n), scale)


def a_method(rng: np.random.Generator, model: Any, domain: Any, known: bool) -> tuple[str, str]:
    sum_of_terms = not getattr(model, "indefinite", False)
    fitting = [
        m.name
        for m in cg.METHODS.values()
        if (m.deterministic or (sum_of_terms and known)) and (not m.projects or hasattr(domain, "project"))
    ]
    drawn = str(
        rng.choice([*fitting, "ncgs", "frank-wolfe"] if rng.random() < 0.5 else [f for f in fitting if f in FAST])
    )
    inners = ["auto"]
    large = isinstance(model, Observed) and min(model.shape) > 64  # where the other inner solvers take minutes
    for name, entry in INNERS.items() if not large else ():
        try:
            suits(entry.build(), domain)
            inners.append(name)
        except TypeError:
            continue
    return drawn, str(rng.choice(inners)) if cg.METHODS[drawn].slides else "auto"


def solve(task: Task) -> Row:
    """Run it, and compare what it says with the truth."""
    model, domain = task.model, task.domain
    objective = model.objective(task.known)
    low_rank = getattr(objective, "low_rank", False)
    start = domain.low_rank_start() if low_rank else domain.start()
    first = true_mapping(domain, start, model.true_grad(start), 1 / (2 * model.smoothness)).square
    tol = 10.0**-task.digits * first or 1e-6 * model.scale**2
    stop = cg.Mapping(tol) | cg.Steps(STEPS) | cg.Calls(CALLS, "lo")
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        result = cg.minimize(
            objective, domain, start, method=task.method, inner=task.inner, stop=stop, seed=task.number, progress=False
        )
    row: Row = {
        "number": task.number, "set": task.set_name, "method": task.method, "inner": task.inner, "scale": model.scale,
        "offset": model.offset, "tol": tol, "first": first, "status": result.status, "known L": task.known,
        "steps": result.steps, "message": result.message,
    }  # fmt: skip
    grad = model.true_grad(result.x)
    size = float(np.sqrt((grad * grad).sum())) * float(getattr(domain, "max_norm", 4.0))
    row["within reach"] = tol >= ROOM * 2 * model.smoothness * 2.0**-52 * size
    if result.certificate is not None:
        truth = true_mapping(domain, result.x, grad, result.certificate.gamma)
        row |= {"upper": result.certificate.upper, "lower": result.certificate.lower, "true": truth.square}
        row |= {"error": truth.error, "at least": truth.least, "at most": (truth.norm + truth.error) ** 2}
    return row


def false_upper(row: Row) -> bool:
    return row.get("at least", 0.0) > row.get("upper", np.inf)


def false_lower(row: Row) -> bool:
    return row.get("at most", np.inf) < row.get("lower", 0.0)


def false_converged(row: Row) -> bool:
    """Above the tolerance, but for the millionth that the stopping rule grants; or without a certificate."""
    return row["status"] == "converged" and not row.get("at least", np.inf) <= row["tol"] * (1 + 1e-5)


def sharp(row: Row) -> bool:
    """The measurement knows the true mapping to a hundredth of the upper bound, or of the tolerance."""
    return "error" in row and row["error"] ** 2 <= 1e-4 * max(row["upper"], row["tol"])


def moderate(row: Row) -> bool:
    mild = row["offset"] <= MODERATE and 1 / MODERATE <= row["scale"] <= MODERATE
    return mild and row["within reach"] and row["method"] in FAST and row["inner"] != "condg"


def claims_of(rows: list[Row]) -> list[Claim]:
    certified = [row for row in rows if "upper" in row]
    solved = [row for row in rows if moderate(row)]
    share = sum(row["status"] == "converged" for row in solved) / max(len(solved), 1)
    measured = sum(map(sharp, certified)) / max(len(certified), 1)

    def none(claim: str, bad: list[Row]) -> Claim:
        said = f"{len(bad)} of {len(rows)}" + (f": {[row['number'] for row in bad[:5]]}" if bad else "")
        return Claim(claim, "none", said, not bad)

    return [
        none("an upper bound below the true squared mapping", [row for row in rows if false_upper(row)]),
        none("a lower bound above the true squared mapping", [row for row in rows if false_lower(row)]),
        none("converged, and the true squared mapping above the tolerance", [row for row in rows if false_converged(row)]),
        none("a run that failed", [row for row in rows if row["status"] == "failed"]),
        Claim(
            "moderate problems within reach, by methods that project or slide, that converge",
            f">= {SHARE:.0%}", f"{share:.1%} of {len(solved)}", share >= SHARE,
        ),
        Claim(
            "measurements that know the true norm to a hundredth of the bound or tolerance",
            ">= 95%", f"{measured:.1%} of {len(certified)}", measured >= 0.95,
        ),
    ]  # fmt: skip


def offset_class(row: Row) -> str:
    if row["offset"] == 0:
        return "0"
    return "1 to 1e6" if row["offset"] <= 1e6 else "1e6 to 1e10" if row["offset"] <= 1e10 else "1e10 to 1e13"


def main() -> None:
    args = arguments(__doc__)
    count = QUICK if args.quick else PROBLEMS
    rows = work_off("certificates", [Job(1, lambda task=task: [solve(task)]) for task in tasks(count)])
    shown = []
    for offset in ("0", "1 to 1e6", "1e6 to 1e10", "1e10 to 1e13"):
        there = [row for row in rows if offset_class(row) == offset]
        endings = Counter(row["status"] for row in there)
        excess = [row["upper"] / row["true"] for row in there if row.get("true", 0.0) > 0 and sharp(row)]
        shown.append(
            (offset, len(there), *(endings[s] for s in ("converged", "out_of_budget", "unverified", "failed")),
             sum(map(false_upper, there)), sum(map(false_converged, there)), float(np.median(excess or [np.nan])))
        )  # fmt: skip
    table(
        f"{count} random problems: what a run says, and the truth in extended precision",
        ("offset", "problems", "converged", "out of budget", "unverified", "failed", "false upper", "false converged",
         "median upper / true"),
        shown,
        "By all sets and methods; an offset is that of F's linear term, in units of F's scale.",
    )  # fmt: skip
    finish("certificates", args, rows, claims_of(rows), problems=count)


if __name__ == "__main__":
    main()
