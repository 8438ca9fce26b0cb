"""Checks of the contract of a set."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import cached_property
from typing import Any

import numpy as np

from condgrad.checks import NotGiven, as_shape, not_negative, whole
from condgrad.points.base import Structured
from condgrad.protocols import Domain, has, missing
from condgrad.testing.report import Check, CheckReport, Noted, Skipped, report, require

SCALES = (1e-300, 1e-200, 1e-8, 1e8, 1e200, 1e300)
"""Factors by which directions are multiplied. They must not change which points are minimisers."""
POINTS = 20
"""Number of random points of the set with which each answer is compared."""

FEW = 3
"""Number of unit vectors among the directions."""

MAX_PAIRED = 500
"""Maximum number of vertices for which all distances are computed."""

ASCENTS = 300
"""Maximum number of steps of the search for two points as far apart as possible. On an ellipsoid it is the power method."""

MEMBER_TOLERANCE = 1e-9
"""Tolerance that is passed to ``contains``, relative to the size of the set."""


def check_domain(
    domain: Any,
    *,
    sample: Callable[[Any, np.random.Generator], Any] | None = None,
    least: Callable[[Any, np.ndarray], float] | None = None,
    vertices: Callable[[Any], np.ndarray] | None = None,
    exact_diameter: bool = False,
    tolerance: float = 1e-9,
    trials: int = 40,
    seed: int = 0,
    strict: bool = False,
) -> CheckReport:
    """Check a set against the contract of sets.

    Parameters
    ----------
    domain : Domain
        The set, with at least ``lmo`` and ``shape``. Its other members are checked too.
    sample : callable, default None
        ``sample(domain, rng)`` returns a random point of the set, without a call of its oracle. None: points are convex
        combinations of the oracle's answers, so that an oracle that overlooks a part of the set is not noticed.
    least : callable, default None
        ``least(domain, g)`` returns the minimum of <g, x> over the set. None: not compared.
    vertices : callable, default None
        ``vertices(domain)`` returns an array of all vertices of a polytope. None: not compared.
    exact_diameter : bool, default False
        Whether ``diameter`` is the largest distance of two points, and not only an upper bound of it. If True, two points at
        this distance are searched for by linear minimisations.
    tolerance : float, default 1e-9
        Tolerated relative error of the oracle.
    trials : int, default 40
        Number of random directions.
    seed : int, default 0
        Seed of all random numbers.
    strict : bool, default False
        Raise ContractError if a check fails.

    Returns
    -------
    CheckReport
        The result of each check. ``print(report)`` shows it as a table.

    Examples
    --------
    >>> import numpy as np
    >>> from condgrad.testing import check_domain
    >>> class Wrong:
    ...     shape = (3,)
    ...     def lmo(self, direction):
    ...         return np.eye(3)[np.argmax(direction)]
    >>> check_domain(Wrong()).failures[0].check
    'lmo is no worse than its answers to other directions'
    """
    tolerance = not_negative(tolerance, "The tolerance of check_domain")
    trials = whole(trials, "The number of trials of check_domain", least=2)
    checked = _Set(domain, sample, least, vertices, exact_diameter, tolerance, trials, seed)
    return report(f"Set {type(domain).__name__}", checked.checks(), strict)


class _Set:
    def __init__(
        self,
        domain: Any,
        sample: Any,
        least: Any,
        vertices: Any,
        exact_diameter: bool,
        tolerance: float,
        trials: int,
        seed: int,
    ):
        self.domain, self.given_sample, self.least, self.vertices = domain, sample, least, vertices
        self.exact_diameter, self.tolerance, self.trials, self.seed = exact_diameter, tolerance, trials, seed
        self.unusable = False
        """Whether lmo returns something that is not a point. Then nothing else is checked."""

    def checks(self) -> Iterator[Check]:
        yield "members", self.members
        if missing(self.domain, Domain):
            return
        yield "lmo answers with an array of float64 or a structured point", self.answers_are_numbers
        if self.unusable:
            return
        yield "lmo answers with a finite point of the shape", self.answers_are_points
        if self.unusable:
            return
        yield "lmo answers with points of the set", self.answers_are_inside
        yield "lmo is no worse than its answers to other directions", self.no_worse_than_remembered
        yield "lmo is minimal over random points of the set", self.minimal
        yield "lmo reaches the known minimum", self.known_minimum
        yield "lmo answers with vertices", self.answers_are_vertices
        yield "lmo repeats its answers", self.repeats
        yield "lmo, contains and project do not write into their arguments", self.arguments
        yield "answers of lmo and project are values", self.buffers
        yield "answers are not kept by the set", self.kept
        yield "zero direction", self.zero
        yield "entries that are -0.0", self.negative_zero
        yield "tied directions", self.tied
        yield "tiny and huge directions", self.homogeneous
        yield "directions and points in float32", self.single_precision
        yield "directions with NaN", self.nan
        yield "directions of another shape", self.wrong_shapes
        yield "atom is the answer of lmo", self.atom
        yield "start", self.start
        yield "contains", self.contains
        yield "diameter", self.diameter
        yield "diameter is attained", self.diameter_is_attained
        yield "max_norm", self.max_norm
        yield "project", self.project

    # ------------------------------------------------------------------------------------------------------- helpers

    @cached_property
    def shape(self) -> tuple[int, ...]:
        return as_shape(self.domain.shape, type(self.domain).__name__)

    def rng(self, *numbers: int) -> np.random.Generator:
        return np.random.default_rng((self.seed, *numbers))

    def lmo(self, direction: np.ndarray) -> np.ndarray:
        """The oracle's answer to a copy of the direction, as an array. Whether it changes its argument is checked elsewhere."""
        return np.asarray(self.domain.lmo(direction.copy()), dtype=float)

    def directions(self) -> Iterator[np.ndarray]:
        """Yield random directions, by turns with entries from {-2, ..., 2} (many zeros and ties) and with normal entries."""
        for i in range(self.trials):
            rng = self.rng(1, i)
            g = rng.standard_normal(self.shape) if i % 2 else rng.integers(-2, 3, self.shape).astype(float)
            g.setflags(write=False)
            yield g

    @cached_property
    def answers(self) -> list[tuple[np.ndarray, np.ndarray]]:
        """Pairs of a direction and the oracle's answer, computed once."""
        return [(g, self.lmo(g).copy()) for g in self.directions()]

    @cached_property
    def size(self) -> float:
        """The set's ``max_norm``, or if it has none the largest norm of the oracle's answers."""
        seen = max(float(np.linalg.norm(v)) for _, v in self.answers)
        try:
            stated = float(self.domain.max_norm) if has(self.domain, "max_norm") else seen
        except NotGiven:
            return seen
        return stated if 0 <= stated < np.inf else seen

    @cached_property
    def width(self) -> float:
        first = self.answers[0][1]
        seen = max(float(np.linalg.norm(v - first)) for _, v in self.answers)
        try:
            stated = float(self.domain.diameter) if has(self.domain, "diameter") else seen
        except NotGiven:
            return seen
        return stated if 0 <= stated < np.inf else seen

    def sample(self, rng: np.random.Generator) -> np.ndarray:
        if self.given_sample is not None:
            x = np.asarray(self.given_sample(self.domain, rng), dtype=float)
            fine = x.shape == self.shape and np.isfinite(x).all()
            require(fine, "sample returned {}, a finite point of shape {} was expected", x, self.shape)
            return x
        chosen = rng.integers(len(self.answers), size=3)
        return sum(w * self.answers[i][1] for w, i in zip(rng.dirichlet(np.ones(3)), chosen, strict=True))

    def member(self, x: np.ndarray, tolerance: float = MEMBER_TOLERANCE) -> bool:
        """Whether the set contains x. Raises Skipped if it has no ``contains``."""
        if not has(self.domain, "contains"):
            raise Skipped("the set has no contains")
        try:
            found = self.domain.contains(x.copy(), tolerance)
        except NotGiven:
            raise Skipped("the set was given neither contains nor project") from None
        require(
            isinstance(found, bool | np.bool_), f"contains answers with a {type(found).__name__}, not True or False"
        )
        return bool(found)

    # -------------------------------------------------------------------------------------------------------- checks

    def members(self) -> None:
        lacking = missing(self.domain, Domain)
        require(not lacking, f"it has no {' and no '.join(lacking)}")

    def answers_are_numbers(self) -> None:
        """lmo returns an array of real numbers or a structured point, not a list or a tuple."""
        self.unusable = True
        narrow = ""
        for g in list(self.directions())[:4]:
            found = self.domain.lmo(g.copy())
            advice = "return np.array(x, dtype=float), or use user_set(lmo, shape), which converts it"
            plain = isinstance(found, np.ndarray) and not isinstance(found, np.ma.MaskedArray)
            is_point = plain or isinstance(found, Structured)
            require(is_point, f"answered with a {type(found).__name__}, an array was expected: {advice}")
            kind = np.asarray(found).dtype
            usable = kind.kind in "iuf"
            require(usable, f"answered with numbers of type {kind}, float64 was expected: {advice}")
            narrow = str(kind) if kind != np.float64 else narrow
        self.unusable = False
        if narrow:
            digits = np.finfo(narrow).precision if narrow.startswith("float") else 0
            raise Noted(
                f"answers are of type {narrow}"
                + (f", which has {digits} digits: certificates can be no more precise" if digits else "")
                + "; return float64"
            )

    def answers_are_points(self) -> None:
        self.unusable = True
        for _, v in self.answers:
            require(v.shape == self.shape, f"answered with shape {v.shape}, {self.shape} was expected")
        self.unusable = False
        for g, v in self.answers:
            require(np.isfinite(v).all(), "answered with NaN or Inf to the direction {}", g)

    def answers_are_inside(self) -> None:
        for g, v in self.answers:
            require(self.member(v), "contains does not accept the answer {} to {}", v, g)

    def no_worse_than_remembered(self) -> None:
        points = np.stack([v.ravel() for _, v in self.answers])
        for g, v in self.answers:
            values = points @ g.ravel()
            excess = float(np.vdot(g, v) - values.min())
            slack = self.tolerance * float(np.linalg.norm(g)) * self.size
            better = points[int(values.argmin())].reshape(self.shape)
            require(
                excess <= slack, "to {} it answered {}, its own answer {} is better by {:.3g}", g, v, better, excess
            )

    def minimal(self) -> str:
        for i, (g, v) in enumerate(self.answers):
            rng, slack = self.rng(2, i), self.tolerance * float(np.linalg.norm(g)) * self.size
            for _ in range(POINTS):
                x = self.sample(rng)
                excess = float(np.vdot(g, v) - np.vdot(g, x))
                require(excess <= slack, "to {} it answered {}, the point {} is better by {:.3g}", g, v, x, excess)
        return (
            "" if self.given_sample else "points are combinations of its own answers; give sample= for independent ones"
        )

    def known_minimum(self) -> None:
        if self.least is None and self.vertices is None:
            raise Skipped("give least= or vertices=")
        for g, v in self.answers:
            if self.least is not None:
                known = float(self.least(self.domain, g))
            else:
                known = min(float(np.vdot(g, corner)) for corner in self.vertices(self.domain))
            off = abs(float(np.vdot(g, v)) - known)
            length = float(np.linalg.norm(g))
            rounding = (
                16 * np.finfo(float).eps * self.size * length
            )  # of a computed minimum, where large products nearly cancel
            slack = self.tolerance * (abs(known) + 1e-3 * self.size * max(1.0, length)) + rounding
            require(off <= slack, "to {} its value is {:.6g}, the minimum is {:.6g}", g, float(np.vdot(g, v)), known)

    def answers_are_vertices(self) -> None:
        if self.vertices is None:
            raise Skipped("give vertices= of a polytope")
        corners = self.vertices(self.domain)
        for g in (np.zeros(self.shape), *(g for g, _ in self.answers)):
            v = self.lmo(g)
            require(any(np.array_equal(v, corner) for corner in corners), "{} is no vertex", v)

    def repeats(self) -> None:
        for g, v in self.answers[:10]:
            for again in (self.lmo(g), self.lmo(g)):
                require(np.array_equal(again, v), "two answers to {}: {} and {}", g, v, again)
        buffer = np.empty(self.shape)
        for g, v in self.answers[:4]:  # programs may reuse one array with other numbers in it
            buffer[...] = g
            again = np.array(self.domain.lmo(buffer), dtype=float)
            require(
                np.array_equal(again, v), "to {} in an array that was used before it answered {}, not {}", g, again, v
            )

    def arguments(self) -> None:
        """Neither writeable nor read-only arguments are changed. Runs pass read-only ones."""
        points = {"lmo": [g for g, _ in self.answers[:3]]}
        beyond = [v - self.size * g for g, v in self.answers[:3]]
        points |= {name: beyond for name in ("contains", "project") if has(self.domain, name)}
        for name, given in points.items():
            more = (MEMBER_TOLERANCE,) if name == "contains" else ()
            ask = getattr(self.domain, name)
            for x in given:
                for writeable in (True, False):
                    argument = x.copy()
                    argument.setflags(write=writeable)
                    try:
                        answer = ask(argument, *more)
                    except NotGiven:
                        continue
                    except ValueError as error:
                        require(writeable or "read-only" not in str(error), f"{name} writes into its argument: {error}")
                        raise
                    require(
                        np.array_equal(argument, x), f"{name} writes into its argument: " + "{} became {}", x, argument
                    )
                    same = isinstance(answer, np.ndarray) and name == "lmo" and np.shares_memory(answer, argument)
                    require(not same, "the answer of lmo shares its memory with the direction")

    def kept(self) -> None:
        """If a caller changes an answer of lmo or start in place, the next answer stays the same."""
        g = self.answers[0][0]
        asked: dict[str, Callable[[], Any]] = {"lmo": lambda: self.domain.lmo(g.copy())}
        if has(self.domain, "start"):
            asked["start"] = self.domain.start
        for name, ask in asked.items():
            given = ask()
            if not isinstance(given, np.ndarray) or not given.flags.writeable:
                continue
            before = given.copy()
            given[...] = before + 1
            changed = not np.array_equal(np.asarray(ask()), before)
            given[...] = before
            if changed:
                raise Noted(f"who writes into an answer of {name} changes the set: return a copy, or a read-only array")

    def buffers(self) -> None:
        (g, _), (h, _) = ((g.copy(), v) for g, v in self.answers[:2])
        for name in ("lmo", "project") if has(self.domain, "project") else ("lmo",):
            ask = getattr(self.domain, name)
            given = ask(g)
            before = np.array(given)
            for other in (h, -h, -g):
                ask(other)
            require(
                np.array_equal(np.asarray(given), before),
                f"an answer of {name} changes when {name} is called again: return a new array each time",
            )

    def zero(self) -> None:
        v = self.lmo(np.zeros(self.shape))
        require(v.shape == self.shape and np.isfinite(v).all(), "answered {}, a point of the set was expected", v)
        require(not has(self.domain, "contains") or self.member(v), "answered {}, which contains does not accept", v)

    def negative_zero(self) -> None:
        """An entry -0.0 in a direction is treated as 0."""
        for g in (-np.zeros(self.shape), *(np.where(g == 0, -0.0, g) for g, _ in self.answers[:6:2])):
            v = self.lmo(g)
            require(v.shape == self.shape and np.isfinite(v).all(), "answered {} to {}", v, g)
            value, known = float(np.vdot(g, v)), float(np.vdot(g, self.lmo(g + 0.0)))
            off, slack = abs(value - known), max(self.tolerance, 1e-9) * float(np.linalg.norm(g)) * self.size
            require(off <= slack, "to {} its value is {:.6g}, with 0.0 for -0.0 it is {:.6g}", g, value, known)

    def tied(self) -> None:
        """Directions with ties: all entries equal, pairs of equal entries, and unit vectors, with both signs."""
        few = np.eye(FEW, int(np.prod(self.shape))).reshape(-1, *self.shape)
        for g in (
            np.ones(self.shape),
            -np.ones(self.shape),
            np.arange(np.prod(self.shape)).reshape(self.shape) // 2 * 1.0,
            *few[: np.prod(self.shape)],
            *-few[: np.prod(self.shape)],
        ):
            v = self.lmo(g)
            require(v.shape == self.shape and np.isfinite(v).all(), "answered {} to {}", v, g)
            inside = not has(self.domain, "contains") or self.member(v)
            require(inside, "answered {} to {}, which contains does not accept", v, g)
            values = [float(np.vdot(g, other)) for _, other in self.answers]
            excess, slack = float(np.vdot(g, v)) - min(values), self.tolerance * float(np.linalg.norm(g)) * self.size
            require(excess <= slack, "to {} it answered {}, another answer is better by {:.3g}", g, v, excess)

    def homogeneous(self) -> None:
        for g, v in self.answers[1:8:2]:
            g = np.round(g, 1)  # no entry underflows when it is multiplied by 1e-300
            v = self.lmo(g)
            for scale in SCALES:
                other = self.lmo(scale * g)
                fine = other.shape == self.shape and np.isfinite(other).all()
                require(fine, "answered {} to {:g} times {}", other, scale, g)
                inside = not has(self.domain, "contains") or self.member(other)
                require(inside, "answered {} to {:g} times {}, which contains does not accept", other, scale, g)
                off = abs(float(np.vdot(g, other - v)))
                slack = max(self.tolerance, 1e-9) * float(np.linalg.norm(g)) * self.size
                require(off <= slack, "{:g} times {} is answered by {}, {} by {}", scale, g, other, g, v)

    def single_precision(self) -> None:
        for g, _ in self.answers[:8]:
            given = g.astype(np.float32)
            v, other = self.lmo(given), self.lmo(given.astype(float))
            require(v.shape == self.shape and np.isfinite(v).all(), "answered {} to {} in float32", v, given)
            excess = float(np.vdot(given, v) - np.vdot(given, other))
            slack = max(self.tolerance, 1e-6) * float(np.linalg.norm(given)) * self.size
            require(excess <= slack, "{} in float32 is answered by {}, in float64 by {}", given, v, other)
            if has(self.domain, "project"):
                p, same = (np.asarray(self.domain.project(x), dtype=float) for x in (given, given.astype(float)))
                off, slack = float(np.linalg.norm(p - same)), 1e-6 * (float(np.linalg.norm(given)) + self.size)
                require(off <= slack, "{} in float32 is projected to {}, in float64 to {}", given, p, same)

    def atom(self) -> str:
        if not has(self.domain, "atom"):
            raise Skipped("the set has no atom")
        ties = (np.zeros(self.shape), np.ones(self.shape), -np.ones(self.shape))
        for g in (*ties, *(g for g, _ in self.answers)):
            found, v = self.domain.atom(g), self.lmo(g)
            same = np.array_equal(np.asarray(found, dtype=float), v)
            require(same, "to {} it is {}, lmo answers {}", g, np.asarray(found), v)
        return f"of type {type(found).__name__}"

    def nan(self) -> str:
        g = np.ones(self.shape)
        g.flat[0] = np.nan
        try:
            v = self.lmo(g)
        except (ValueError, ArithmeticError):  # LinAlgError is a ValueError
            return "refused"
        require(v.shape == self.shape, f"answered with shape {v.shape}")
        return "answered"

    def wrong_shapes(self) -> None:
        first, *rest = self.shape
        for shape in ((first + 1, *rest), (*self.shape, 2), (first + 7,)):
            if shape == self.shape:
                continue
            try:
                self.domain.lmo(np.ones(shape))
            except (ValueError, TypeError, IndexError):
                continue
            raise Noted(f"a direction of shape {shape} was answered; user_set(lmo, shape) would refuse it")

    def start(self) -> None:
        if not has(self.domain, "start"):
            raise Skipped("the set has no start")
        x = np.asarray(self.domain.start(), dtype=float)
        require(x.shape == self.shape and np.isfinite(x).all(), "start() is {}", x)
        require(not has(self.domain, "contains") or self.member(x), "contains does not accept start(), {}", x)

    def contains(self) -> None:
        for i, (g, v) in enumerate(self.answers):
            x = self.sample(self.rng(3, i))
            require(self.member(x), "the point {} of the set is not accepted", x)
            if g.any():
                scale = self.width or self.size
                outside = v - 1e-4 * (scale or 1.0) * g / np.linalg.norm(g)
                require(not self.member(outside), "{} is accepted, which lies beyond the minimum in {}", outside, g)
                relative = not scale or self.member(outside, tolerance=10.0)
                require(relative, "its tolerance is not relative to the size of the set")
        for i, g in enumerate((np.ones(self.shape), -np.ones(self.shape), *(g for g, _ in self.answers if g.any()))):
            x, length = self.sample(self.rng(8, i)), float(np.linalg.norm(g))
            away = float(np.vdot(g, x - self.lmo(g))) / length + 1e-4 * (self.width or self.size or 1.0)
            outside = x - away / length * g
            require(not self.member(outside), "{} is accepted, which lies beyond the minimum in {}", outside, g)
        bad = np.array(self.answers[0][1])
        for value in (np.nan, np.inf):
            bad.flat[0] = value
            try:
                accepted = self.member(bad)
            except (ValueError, ArithmeticError):
                continue
            require(not accepted, f"a point with {value} in it is accepted")

    def diameter(self) -> str:
        if not has(self.domain, "diameter"):
            raise Skipped("the set has no diameter")
        try:
            stated = float(self.domain.diameter)
        except NotGiven:
            raise Skipped("the set was given no diameter") from None
        require(0 <= stated < np.inf, f"it is {stated:g}, a finite number of at least 0 was expected")
        pairs = [(self.lmo(g), self.lmo(-g)) for g, _ in self.answers]
        pairs += [(self.sample(self.rng(4, i)), self.sample(self.rng(5, i))) for i in range(self.trials)]
        seen = max(float(np.linalg.norm(x - y)) for x, y in pairs)
        require(
            seen <= stated * (1 + 1e-9) + 1e-15 * self.size, f"it is {stated:.6g}, but two points are {seen:.6g} apart"
        )
        return f"the largest distance seen is {seen:.6g} of {stated:.6g}"

    def diameter_is_attained(self) -> None:
        """Search for two points at the stated distance, by linear minimisation along the difference of the last two points."""
        if not self.exact_diameter:
            raise Skipped("give exact_diameter=True if it is more than an upper bound")
        require(has(self.domain, "diameter"), "exact_diameter=True was given, but the set has no diameter")
        stated, seen = float(self.domain.diameter), 0.0
        if self.vertices is not None:
            vertices = np.asarray(self.vertices(self.domain), dtype=float)
            vertices = vertices.reshape(len(vertices), -1)
            if len(vertices) <= MAX_PAIRED:
                seen = max(float(np.linalg.norm(vertices - one, axis=1).max()) for one in vertices)
        corners = np.eye(int(np.prod(self.shape))).reshape(-1, *self.shape)
        for g in (np.ones(self.shape), *corners, *(g for g, _ in self.answers)):
            apart, last = g, -1.0
            for _ in range(ASCENTS):
                apart = self.lmo(-apart) - self.lmo(apart)
                length = float(np.linalg.norm(apart))
                if length <= last * (1 + 1e-15):
                    break
                last = length
                seen = max(seen, length)
            if seen >= stated * (1 - 1e-9) - 8 * np.finfo(float).eps * self.size:
                return
        require(False, f"it is {stated:.6g}, but no two points farther apart than {seen:.6g} were found")

    def max_norm(self) -> str:
        if not has(self.domain, "max_norm"):
            raise Skipped("the set has no max_norm")
        try:
            stated = float(self.domain.max_norm)
        except NotGiven:
            raise Skipped("the set was given no diameter") from None
        require(0 <= stated < np.inf, f"it is {stated:g}, a finite number of at least 0 was expected")
        points = [v for _, v in self.answers] + [self.sample(self.rng(6, i)) for i in range(self.trials)]
        seen = max(float(np.linalg.norm(x)) for x in points)
        require(seen <= stated * (1 + 1e-9), f"it is {stated:.6g}, but a point has the norm {seen:.6g}")
        return f"the largest norm seen is {seen:.6g} of {stated:.6g}"

    def project(self) -> None:
        if not has(self.domain, "project"):
            raise Skipped("the set has no project")
        for i, (g, _) in enumerate(self.answers):
            known = self.sample(self.rng(7, i))
            kept = np.asarray(self.domain.project(known), dtype=float)
            off, slack = float(np.linalg.norm(kept - known)), 1e-12 * (float(np.linalg.norm(known)) + self.size)
            slack = max(slack, 1e-3 * self.tolerance * self.size)
            require(off <= slack, "it moves the point {} of the set by {:.3g}", known, off)
            for scale in (0.1, 1.0, 10.0, 1e5):
                x = known + scale * (self.width or self.size or 1.0) * g
                x.setflags(write=False)
                p = np.asarray(self.domain.project(x), dtype=float)
                size = float(np.linalg.norm(x)) + self.size
                require(p.shape == self.shape and np.isfinite(p).all(), "project({}) is {}", x, p)
                inside = not has(self.domain, "contains") or self.member(p)
                require(inside, "project({}) is {}, outside of the set", x, p)
                again = float(np.linalg.norm(np.asarray(self.domain.project(p)) - p))
                require(again <= 1e-12 * size, "projecting twice moves {} by {:.3g}", p, again)
                # p is nearest exactly if no point of the set makes an acute angle with x - p
                angle = float(np.vdot(x - p, self.lmo(p - x) - p))
                slack = max(1e-9, 1e-2 * self.tolerance) * size * (self.width or self.size)
                require(angle <= slack, "project({}) is {}, which is not the nearest point", x, p)
                slack = max(slack, self.tolerance * float(np.linalg.norm(x - p)) * self.size)
                better = "to {} lmo answered {}, the projection {} is better by {:.3g}"
                require(angle >= -slack, better, p - x, self.lmo(p - x), p, -angle)
