"""``method="auto"``: chooses the method with the smallest predicted CPU time.

The formulas in :data:`MODELS` predict the CPU time of a run of each method. They use properties of the problem (:class:`Offer`)
and the CPU time of an oracle call, which is measured in a few calls. The constants in the formulas were fitted to the
measurements of `benchmarks.methods`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass, field
from math import inf, isfinite, log, log10, sqrt
from time import process_time
from typing import Any, NamedTuple

import numpy as np

from condgrad.checks import yes_or_no
from condgrad.driver.counting import Counts, count
from condgrad.driver.resolve import checked_answers
from condgrad.points import inner, norm2
from condgrad.protocols import (
    FiniteSum,
    Objective,
    Point,
    Problem,
    Projectable,
    SpectralSet,
    fits,
    vertex_oracle,
)
from condgrad.runtime.cache import Cache, caching
from condgrad.solvers import Method, ParameterFreeFrankWolfe
from condgrad.solvers.frank_wolfe import FrankWolfeState


@dataclass(frozen=True)
class Auto:
    """The setting ``method="auto"`` as an object, with a parameter of its own.

    Parameters
    ----------
    clock : bool, default True
        Whether the CPU time of the oracles is measured. If True, the choice can differ between machines. The choice can also
        differ between two runs if two methods are predicted to be about equally fast. A resumed run keeps its choice. If False,
        fixed CPU times (``NOMINAL``) are assumed. The choice for a problem is then always the same, and two runs agree bit for
        bit.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> result = cg.minimize(cg.Quadratic(np.diag([1.0, -2.0, 3.0])), cg.Simplex(3), method=cg.Auto(clock=False))
    >>> result.choice.method
    'frank-wolfe'
    """

    clock: bool = True

    def __post_init__(self) -> None:
        yes_or_no(self.clock, "clock")


@dataclass(frozen=True)
class Choice:
    """The method that ``method="auto"`` chose.

    Attributes
    ----------
    method : str
        Name of the method.
    reason : str
        Why the method was chosen, in one sentence.
    at_vertex : bool
        Whether the run starts at the vertex that minimises <grad F(start), x>, instead of at the start of the set.
    trial_steps : int
        If positive, the run starts at the point that this number of trial steps reached, instead of at the start of the set.
    predicted : dict of str to float
        Predicted CPU seconds of a run, by method; empty if the choice needed no prediction.
    seconds : dict of str to float
        Measured CPU seconds of one call, by oracle: ``grad``, ``batch``, ``lmo``, ``project``.
    cpu : float
        CPU seconds that the choice took. ``Result.cpu`` does not include them.
    counts : dict of str to int
        Oracle calls of the choice. ``Result.counts`` does not include them.
    """

    method: str
    reason: str
    at_vertex: bool = False
    trial_steps: int = 0
    predicted: Mapping[str, float] = field(default_factory=dict)
    seconds: Mapping[str, float] = field(default_factory=dict)
    cpu: float = 0.0
    counts: Mapping[str, int] = field(default_factory=dict)

    def summary(self) -> dict[str, Any]:
        """The choice as plain data.

        Returns
        -------
        dict of str to Any
        """
        return asdict(self)

    @classmethod
    def stored(cls, found: Mapping[str, Any]) -> Choice | None:
        """Read the choice from the fingerprint of a run; None if the fingerprint has no keys such as ``choice.method``.

        Parameters
        ----------
        found : mapping of str to Any
            The fingerprint.

        Returns
        -------
        Choice or None
        """
        if "choice.method" not in found:
            return None
        content: dict[str, Any] = {"predicted": {}, "seconds": {}, "counts": {}}
        for path, value in found.items():
            start, _, rest = path.partition(".")
            name, _, key = rest.partition(".")
            if start == "choice" and key and name in content:
                content[name][key] = value
        content |= {name: found[f"choice.{name}"] for name in ("method", "reason", "at_vertex", "trial_steps", "cpu")}
        return cls(**content)


@dataclass(frozen=True)
class Offer:
    """The properties of a problem and of its tolerance from which CPU times are predicted."""

    n_terms: int
    """Number of terms of a finite sum; 0 if F is not a finite sum."""
    projects: bool
    """Whether the set has a projection and the start is an array."""
    ratio: float
    """The squared norm of the gradient mapping at the start (if the set has no projection: an upper bound on it), divided by the
    tolerance; at least 1."""


Seconds = Mapping[str, float]
"""CPU seconds of one call, by oracle: ``grad``, ``batch`` (gradients of sqrt(n) terms), ``lmo``, ``project``."""
Model = Callable[[Offer, Seconds], float]
"""Function that predicts the CPU seconds of a run."""

NOMINAL: Seconds = {"grad": 1e-3, "batch": 1e-4, "lmo": 1e-4, "project": 1e-4}
"""Assumed CPU seconds of one call of each oracle, for ``Auto(clock=False)``."""
STEP_OVERHEAD = 1.5e-4
"""CPU seconds of a step without its oracle calls: about 30 numpy calls and the bookkeeping of the driver."""
CORRECTIVE_OVERHEAD = 4e-4
"""CPU seconds of an iteration of the inner solver ``corrective`` without its linear minimisation. Most of this time goes into a
small quadratic programme."""
CORRECTIVE_CALLS = 5.0
"""Assumed number of linear minimisations of ``corrective`` for one prox subproblem. On the Birkhoff and flow polytopes, 3 to 8
were measured."""
SOLVED_BY_VERTEX = 1e-3
"""The run starts at a vertex if the Frank-Wolfe gap at the vertex is at most this share of the gap at the start. The run also
starts at the vertex if the gap at the vertex proves that the gradient mapping at the vertex is within the tolerance."""
MIN_TERMS = 1000
"""Minimum number of terms for which ``ncgs-spider`` is considered. With fewer terms, a batch would cost as much as all terms."""


def _sliding(offer: Offer, seconds: Seconds) -> float:
    """Predict NCGS: it takes 5 steps for each decimal digit by which the squared mapping must decrease.

    A step takes 1.5 gradients on average: one, and another one if the step is repeated with a larger L.
    """
    if offer.projects:
        prox = 1.5 * seconds["project"] + STEP_OVERHEAD
    else:
        prox = CORRECTIVE_CALLS * (seconds["lmo"] + CORRECTIVE_OVERHEAD)
    return (2 + 5 * log10(offer.ratio)) * (1.5 * seconds["grad"] + prox)


def _frank_wolfe(offer: Offer, seconds: Seconds) -> float:
    """Predict open-loop Frank-Wolfe: its number of steps grows as a power of the factor by which the squared mapping must
    decrease.

    About 40 steps are predicted for a factor of 100, and 600 steps for a factor of 100,000.
    """
    return 6 * offer.ratio**0.4 * (seconds["grad"] + seconds["lmo"] + STEP_OVERHEAD)


def _recursive_sliding(offer: Offer, seconds: Seconds) -> float:
    """Predict NCGS-SPIDER: a step takes sqrt(n) gradients of terms at two points, and every sqrt(n) steps a full gradient is
    taken."""
    steps = 4 * offer.ratio**0.45
    prox = seconds["project"] if offer.projects else CORRECTIVE_CALLS * (seconds["lmo"] + CORRECTIVE_OVERHEAD)
    return seconds["grad"] * (1 + steps / sqrt(offer.n_terms)) + steps * (2 * seconds["batch"] + prox + STEP_OVERHEAD)


MODELS: dict[str, Model] = {"ncgs": _sliding, "frank-wolfe": _frank_wolfe, "ncgs-spider": _recursive_sliding}
"""The methods whose CPU time is predicted, with their formulas. Each of these methods was the fastest on some problem of
`benchmarks.methods`. A method that is added to this table takes part in the choice. If no method of this table fits the problem,
the first method of the registry that fits is chosen."""
TRIED = "parameter-free-frank-wolfe"
"""The method of the trial steps. Its CPU time can't be predicted from the tolerance: on some problems it reaches a vertex after
few steps, on others it converges very slowly. Therefore a few steps of the method are taken before the choice."""
TRIAL_SHARE = 0.1
"""CPU time of the trial steps as a share of the smallest predicted time."""
MIN_TRIAL, FIXED_TRIAL = 8, 32
"""Minimum number of trial steps, and the number of trial steps for ``Auto(clock=False)``. If the time of the trial is not enough
for the minimum, no trial step is taken."""
TRIAL_MARGIN, TRIAL_GAP = 0.5, 0.1
"""The method of the trial steps is chosen if the last gap of the trial is at most TRIAL_GAP times the first gap, and if the
predicted remaining time of the method is at most TRIAL_MARGIN times the smallest time that is predicted for another method. The
remaining time is predicted from the last quarter of the trial: the gap is assumed to continue to decrease at the same rate."""
FOR_SAMPLES = ("stochastic-ncgs",)
"""The methods that are preferred if only samples of F are available."""


def choose(
    problem: Problem, start: Point, eps: float, methods: Sequence[Method], clock: bool = True, free_start: bool = False
) -> tuple[Choice, Point]:
    """Choose a method.

    The first rule that applies decides:

    1. If F is an expectation, which has no full gradient: ``stochastic-ncgs``.
    2. If the set is spectral: ``ncgs``, the only method that has partial SVDs and the factored phase.
    3. If the vertex that minimises <grad F(start), x> is nearly stationary: ``frank-wolfe``, started at this vertex. The
       gradient and the vertex come from the calls that are timed, so that this test takes no further oracle calls.
    4. Otherwise: the method with the smallest predicted time. ``ncgs-spider`` is considered only for a finite sum of at least
       1,000 terms that states its constants.

    If rule 4 applies and the set has no projection, ``parameter-free-frank-wolfe`` is first tried for a tenth of the smallest
    predicted time. This method is chosen if the trial reaches the tolerance. It is also chosen if its Frank-Wolfe gap fell to a
    tenth of the first gap and its predicted remaining time is at most half of the smallest predicted time. If ``free_start`` is
    True and F is lower at the last point of the trial than at its first point, the chosen method starts at the last point.

    Parameters
    ----------
    problem : Problem
        The objective and the set, with all optional members.
    start : Point
        The start of the run.
    eps : float
        Tolerance on the squared gradient mapping.
    methods : sequence of Method
        The methods that fit, in the order of the registry.
    clock : bool, default True
        Whether the CPU time of the oracles is measured; see :class:`Auto`.
    free_start : bool, default False
        Whether the run may start at a vertex, or at the end of the trial steps, in place of ``start``.

    Returns
    -------
    tuple of Choice and Point
        The choice, and the point at which the run starts.
    """
    names = [method.name for method in methods]
    objective, domain = problem.objective, problem.domain
    if not fits(objective, Objective):
        name = next((name for name in FOR_SAMPLES if name in names), names[0])
        return Choice(name, f"Method '{name}' was chosen because F is known by samples only."), start
    if fits(domain, SpectralSet) and "ncgs" in names:
        why = "because the set is spectral, where it solves prox subproblems by partial SVDs"
        return Choice("ncgs", f"Method 'ncgs' was chosen {why}."), start
    if not any(name in MODELS for name in names):
        why = f"as the first that fits, because no time is predicted for any of {', '.join(names)}"
        return Choice(names[0], f"Method '{names[0]}' was chosen {why}."), start
    begun, counts = process_time(), Counts()
    measured = Measured(count(Problem(checked_answers(objective), domain), counts, lambda price: None), clock)
    found, point = measured.choice(start, eps, names, free_start)
    spent = {name: calls for name, calls in vars(counts).items() if calls}
    cpu = process_time() - begun if clock else 0.0
    return Choice(**{**vars(found), "cpu": cpu, "counts": spent}), point


def chosen_start(problem: Problem, start: Point, made: Choice) -> Point:
    """Compute the point at which a run with this choice starts. A resumed run computes the point again.

    Parameters
    ----------
    problem : Problem
    start : Point
        The start of the set, or the start that the user gave.
    made : Choice

    Returns
    -------
    Point
    """
    if made.trial_steps:
        problem = Problem(checked_answers(problem.objective), problem.domain)
        return run_trial(problem, start, lambda state: state.k < made.trial_steps).x
    return first_vertex(problem, start) if made.at_vertex else start


def run_trial(problem: Problem, start: Point, goes_on: Callable[[FrankWolfeState], bool]) -> FrankWolfeState:
    """Take trial steps from ``start`` while ``goes_on(state)`` is True. Returns the last state."""
    method = ParameterFreeFrankWolfe()
    with caching(Cache()):  # so that the steps of a resumed run have the same bits
        state = method.init(problem, start)
        while goes_on(state):
            state = method.step(problem, state)
    return state


def first_vertex(problem: Problem, start: Point) -> Point:
    """The vertex that minimises <grad F(start), x>."""
    return _as(start, vertex_oracle(problem.domain)(checked_answers(problem.objective).grad(start)))


def _as(start: Point, vertex: Point) -> Point:
    """The vertex, converted to an array if the start is an array."""
    return np.asarray(vertex) if isinstance(start, np.ndarray) else vertex


class Measured:
    """Calls the oracles a few times, measures the CPU time of the calls, and chooses a method."""

    def __init__(self, problem: Problem, clock: bool):
        self.problem, self.clock = problem, clock
        self.seconds: dict[str, float] = {}

    def timed(self, oracle: str, call: Callable[..., Any], *args: Any) -> Any:
        """Call an oracle, and record the shortest CPU time of its calls. The first call may be slow, because it compiles code."""
        begun = process_time()
        answer = call(*args)
        spent = process_time() - begun if self.clock else NOMINAL[oracle]
        self.seconds[oracle] = min(spent, self.seconds.get(oracle, spent))
        return answer

    def choice(self, start: Point, eps: float, names: Sequence[str], free_start: bool) -> tuple[Choice, Point]:
        """Call the oracles at the start and at the vertex that minimises <grad F(start), x>, and choose a method."""
        objective, domain = self.problem.objective, self.problem.domain
        lmo = vertex_oracle(domain)
        here = self.timed("grad", objective.grad, start)
        vertex = _as(start, self.timed("lmo", lmo, here))
        there = self.timed("grad", objective.grad, vertex)
        beyond = self.timed("lmo", lmo, there)
        gap, gap_there = inner(here, start - vertex), inner(there, vertex - beyond)
        L = objective.smoothness or _curvature(here, there, start, vertex)
        solved = gap_there <= SOLVED_BY_VERTEX * gap or 2 * L * gap_there <= eps
        if free_start and "frank-wolfe" in names and solved:
            why = f"the Frank-Wolfe gap at this vertex is {_share(gap_there, gap)} the gap at the start"
            reason = f"Method 'frank-wolfe' was chosen, started at a vertex, because {why}."
            return Choice("frank-wolfe", reason, True, 0, {}, dict(self.seconds)), vertex
        models = {name: model for name, model in MODELS.items() if name in names}
        batches = list(models) == ["ncgs-spider"]  # the formula then needs the time of a batch, also if F has few terms
        offer = self.offer(start, here, vertex, there, L, gap, eps, batches)
        if (offer.n_terms < MIN_TERMS or not objective.smoothness) and len(models) > 1:
            models.pop("ncgs-spider", None)
        predicted = {name: model(offer, self.seconds) for name, model in models.items()}
        best = min(predicted, key=lambda name: predicted[name])
        trial = None if offer.projects or TRIED not in names else self.trial(start, L, eps, predicted[best])
        if trial is None:
            return Choice(best, self.reason(best, predicted, offer), False, 0, predicted, dict(self.seconds)), start
        why, point, steps = trial.clause(), start, 0
        if free_start and trial.lower:
            point, steps = trial.state.x, trial.state.k
            why += "; the run starts at the last point of the trial"
        if trial.rest <= TRIAL_MARGIN * predicted[best]:
            times = f"predicted {_duration(trial.rest)}, {best} {_duration(predicted[best])}"
            reason = f"Method '{TRIED}' was chosen ({times}): {why}."
            best = TRIED
        else:
            reason = f"{self.reason(best, predicted, offer)[:-1]}; {why}."
        predicted[TRIED] = trial.rest
        return Choice(best, reason, False, steps, predicted, dict(self.seconds)), point

    def trial(self, start: Point, L: float, eps: float, limit: float) -> Trial | None:
        """Take trial steps for TRIAL_SHARE times ``limit`` CPU seconds. Returns None if this is not enough for MIN_TRIAL
        steps."""
        a_step = self.seconds["grad"] + self.seconds["lmo"] + STEP_OVERHEAD
        if self.clock and TRIAL_SHARE * limit < MIN_TRIAL * a_step:
            return None
        gaps: list[float] = []
        values: list[float] = []
        begun = process_time()

        def goes_on(state: FrankWolfeState) -> bool:
            if state.k:
                gaps.append(state.certificate.gap if state.certificate is not None else inf)
                values.extend(value for value in (state.descent_fun, state.fun) if value is not None)
            if gaps and 2 * max(L, state.L) * gaps[-1] <= eps:
                return False
            if not self.clock:
                return state.k < FIXED_TRIAL
            return state.k < MIN_TRIAL or process_time() - begun < TRIAL_SHARE * limit

        state = run_trial(self.problem, start, goes_on)
        if self.clock:
            a_step = (process_time() - begun) / state.k
        needed = eps / (2 * max(L, state.L))
        return Trial(state, gaps, a_step * _steps_left(gaps, needed), values[-1] < values[0])

    def offer(
        self, x: Point, grad: Point, vertex: Point, there: Point, L: float, gap: float, eps: float, batches: bool
    ) -> Offer:
        """Collect the properties of the problem, and measure the CPU time of a projection and of a batch.

        A projection is measured if the set has one. A batch is measured if F has many terms, or if F has terms and ``batches`` is
        True.
        """
        objective, domain = self.problem.objective, self.problem.domain
        gamma = 1 / (2 * L) if L > 0 else 1.0
        mapping = max(gap, 0.0) / gamma  # an upper bound
        projects = isinstance(x, np.ndarray) and fits(domain, Projectable)
        if projects:
            moved = self.timed("project", domain.project, x - gamma * grad)
            mapping = norm2(moved - x) / gamma**2
            self.timed("project", domain.project, vertex - gamma * there)
        terms = objective.n_terms if fits(objective, FiniteSum) else 0
        if terms >= MIN_TERMS or (terms and batches):
            batch = objective.draw(int(sqrt(terms)), np.random.default_rng(0))
            for point in (x, vertex):
                self.timed("batch", objective.grad_terms, point, batch)
        ratio = mapping / eps if isfinite(mapping) else 1.0
        return Offer(terms, projects, max(ratio, 1.0))

    def reason(self, best: str, predicted: Mapping[str, float], offer: Offer) -> str:
        """The sentence that tells the user why the method ``best`` was chosen by predicted times."""
        nouns = {"grad": "gradient", "batch": "batch", "lmo": "linear minimisation", "project": "projection"}
        costs = ", ".join(f"a {nouns[oracle]} takes {_duration(spent)}" for oracle, spent in self.seconds.items())
        if not self.clock:
            costs = "no clock was used"
        others = {name: spent for name, spent in predicted.items() if name != best}
        beside = f" (predicted {_duration(predicted[best])}"
        if others:
            next_best = min(others, key=lambda name: others[name])
            beside += f", {next_best} {_duration(others[next_best])}"
        terms = f"F has {offer.n_terms:,} terms" if offer.n_terms else "F is one function"
        set_is = "has a projection" if offer.projects else "has no projection"
        return (
            f"Method '{best}' was chosen{beside}): {terms}, the set {set_is}, {costs}, and the squared mapping must decrease "
            f"by a factor of {offer.ratio:.2g}."
        )


class Trial(NamedTuple):
    """Result of trial steps."""

    state: FrankWolfeState
    gaps: list[float]
    """Frank-Wolfe gap at the point before each step."""
    rest: float
    """Predicted CPU seconds until the method reaches the tolerance; 0 if the trial reached it."""
    lower: bool
    """Whether F is lower at the last point than at the first."""

    def clause(self) -> str:
        """Clause of a message that describes the trial."""
        fall = _share(self.gaps[-1], self.gaps[0])
        return f"{self.state.k} trial steps of {TRIED} brought the Frank-Wolfe gap to {fall} the first"


def _steps_left(gaps: Sequence[float], needed: float) -> float:
    """Predict after how many further steps the gap is at most ``needed``.

    The gap is assumed to decrease as fast as in the last quarter of ``gaps``. The result is infinite if the last gap is more than
    TRIAL_GAP times the first gap.
    """
    if gaps[-1] <= needed:
        return 0.0
    if gaps[-1] > TRIAL_GAP * gaps[0]:
        return inf
    quarter = max(len(gaps) // 4, 1)
    before = gaps[-1 - quarter] if len(gaps) > quarter else gaps[0]
    return quarter * log(gaps[-1] / needed) / log(before / gaps[-1]) if needed > 0 and before > gaps[-1] else inf


def _curvature(here: Point, there: Point, x: Point, y: Point) -> float:
    """A lower bound on L, from the gradients ``here`` at x and ``there`` at y."""
    apart = norm2(x - y)
    return sqrt(norm2(here - there) / apart) if apart > 0 else 0.0


def _share(part: float, whole: float) -> str:
    return f"{max(part, 0.0) / whole:.2g} times" if whole > 0 else "0 times"


def _duration(seconds: float) -> str:
    return f"{1e3 * seconds:.2g} ms" if seconds < 1 else f"{seconds:.2g} s"
