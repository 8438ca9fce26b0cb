"""Stopping rules, such as ``Mapping(1e-6) | Seconds(60)``. Rules are combined with ``|`` (either) and ``&`` (both)."""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Sequence
from dataclasses import dataclass
from math import isfinite, log, nan
from typing import ClassVar, Protocol

from condgrad.checks import choice, positive, whole
from condgrad.driver.counting import Counts
from condgrad.protocols import COUNTERS, Reason, Record
from condgrad.runtime.clock import Watch
from condgrad.runtime.process_memory import resident


class Budget(Protocol):
    """Interface of rules that can end a run within a step.

    ``exceeded`` is called before each oracle call. ``price`` has, for each counter, the number that the call adds to it.
    """

    def exceeded(self, counts: Counts, price: dict[str, int], watch: Watch) -> bool: ...

    def reason(self) -> Reason: ...


class Rule(ABC):
    """Stopping rule: ``rule(record, trace)`` returns a reason to stop, or None to continue."""

    @abstractmethod
    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None: ...

    @abstractmethod
    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        """Estimated progress of the run, from 0 (start) to 1 (end)."""

    def budgets(self) -> tuple[Budget, ...]:
        """The parts of this rule that can end a run within a step, because they are also checked before each oracle call."""
        return ()

    def watches(self) -> set[str]:
        """Names of the measures that this rule uses: "mapping", "gap", both or none."""
        return set()

    def tolerance(self) -> float | None:
        """Tolerance on the squared norm of the gradient mapping; None if the rule has no such tolerance."""
        return None

    def gap_tolerance(self) -> float | None:
        """Tolerance on the Frank-Wolfe gap; None if the rule has no such tolerance."""
        return None

    def __or__(self, other: Rule) -> Rule:
        return Either(self, other)

    def __and__(self, other: Rule) -> Rule:
        return Both(self, other)


@dataclass(frozen=True)
class _Pair(Rule):
    """Abstract combination of two rules. It uses the measures of both rules, and the smaller of their tolerances."""

    one: Rule
    other: Rule

    def watches(self) -> set[str]:
        return self.one.watches() | self.other.watches()

    def tolerance(self) -> float | None:
        return min((t for rule in (self.one, self.other) if (t := rule.tolerance())), default=None)

    def gap_tolerance(self) -> float | None:
        return min((t for rule in (self.one, self.other) if (t := rule.gap_tolerance())), default=None)


@dataclass(frozen=True)
class Either(_Pair):
    """Stop when at least one of two rules is met. If both are met, "converged" takes precedence over other statuses."""

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        reasons = [reason for rule in (self.one, self.other) if (reason := rule(record, trace))]
        return max(reasons, key=_certainty, default=None)

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        return max(self.one.progress(record, trace), self.other.progress(record, trace))

    def budgets(self) -> tuple[Budget, ...]:
        return self.one.budgets() + self.other.budgets()


@dataclass(frozen=True)
class Both(_Pair):
    """Stop when both of two rules are met. If their statuses differ, "converged" takes precedence over other statuses."""

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        a, b = self.one(record, trace), self.other(record, trace)
        if not a or not b:
            return None
        return Reason(max(a, b, key=_certainty).status, f"{a.message} And: {b.message}")

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        return min(self.one.progress(record, trace), self.other.progress(record, trace))


def _certainty(reason: Reason) -> int:
    """Rank of a reason by its status. If two rules are met at once, the status with the higher rank is reported."""
    return {"converged": 2, "out_of_budget": 1}.get(reason.status, 0)


@dataclass(frozen=True)
class _Below(Rule):
    """Stop when a measure of the trace is at most eps."""

    eps: float
    measure: ClassVar[str]
    said: ClassVar[str]

    def __post_init__(self) -> None:
        positive(self.eps, f"tolerance for the {self.said}")

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        value = getattr(record, self.measure)
        if value <= self.eps:
            return Reason("converged", f"The {self.said} is at most {value:.3g}, the tolerance is {self.eps:.3g}.")
        return None

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        first = next((m for m in (getattr(row, self.measure) for row in trace) if isfinite(m) and m > 0), nan)
        now = getattr(record, self.measure)
        if not isfinite(first) or not isfinite(now) or first <= self.eps or now <= 0:
            return 0.0
        return min(max(log(first / now) / log(first / self.eps), 0.0), 1.0)

    def watches(self) -> set[str]:
        return {self.measure}


@dataclass(frozen=True)
class Mapping(_Below):
    """Stop when the squared norm of the gradient mapping is certified to be at most `eps`.

    Parameters
    ----------
    eps : float
        Tolerance, above 0.
    """

    measure = "mapping"
    said = "squared gradient mapping"

    def tolerance(self) -> float | None:
        return self.eps


@dataclass(frozen=True)
class Gap(_Below):
    """Stop when the Frank-Wolfe gap is at most `eps`.

    Parameters
    ----------
    eps : float
        Tolerance, above 0.
    """

    measure = "gap"
    said = "Frank-Wolfe gap"

    def gap_tolerance(self) -> float | None:
        return self.eps


@dataclass(frozen=True)
class _Budget(Rule):
    """Stop when ``limit`` units of a resource are used up."""

    limit: float

    @abstractmethod
    def used(self, record: Record) -> float: ...

    @abstractmethod
    def said(self) -> str: ...

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        return self.reason() if self.used(record) >= self.limit else None

    def reason(self) -> Reason:
        return Reason("out_of_budget", f"The budget of {self.said()} is used up.")

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        return min(self.used(record) / self.limit, 1.0) if self.limit else 1.0


@dataclass(frozen=True)
class Steps(_Budget):
    """Stop after `limit` outer steps.

    Parameters
    ----------
    limit : int
        Maximum number of steps, at least 0.
    """

    def __post_init__(self) -> None:
        whole(self.limit, "number of steps", least=0)

    def used(self, record: Record) -> float:
        return record.k

    def said(self) -> str:
        return f"{self.limit} steps"


@dataclass(frozen=True)
class Seconds(_Budget):
    """Stop after `limit` seconds of wall-clock time.

    Parameters
    ----------
    limit : float
        Maximum time in seconds, above 0.
    """

    def __post_init__(self) -> None:
        positive(self.limit, "number of seconds")

    def used(self, record: Record) -> float:
        return record.wall

    def said(self) -> str:
        return f"{self.limit:g} seconds"

    def exceeded(self, counts: Counts, price: dict[str, int], watch: Watch) -> bool:
        return watch.wall > self.limit

    def budgets(self) -> tuple[Budget, ...]:
        return (self,)


@dataclass(frozen=True)
class CpuSeconds(_Budget):
    """Stop after `limit` seconds of CPU time, summed over all threads. The clock is paused while the driver measures iterates and
    callbacks run.

    Parameters
    ----------
    limit : float
        Maximum CPU time in seconds, above 0.
    """

    def __post_init__(self) -> None:
        positive(self.limit, "number of CPU seconds")

    def used(self, record: Record) -> float:
        return record.cpu

    def said(self) -> str:
        return f"{self.limit:g} CPU seconds"

    def exceeded(self, counts: Counts, price: dict[str, int], watch: Watch) -> bool:
        return watch.cpu > self.limit

    def budgets(self) -> tuple[Budget, ...]:
        return (self,)


@dataclass(frozen=True)
class Memory(_Budget):
    """Stop when the whole process uses more than `limit` megabytes of resident memory.

    Parameters
    ----------
    limit : float
        Maximum memory in megabytes, above 0.
    """

    def __post_init__(self) -> None:
        positive(self.limit, "number of megabytes")

    def used(self, record: Record) -> float:
        return resident()

    def said(self) -> str:
        return f"{self.limit:g} MB of memory"

    def exceeded(self, counts: Counts, price: dict[str, int], watch: Watch) -> bool:
        return resident() > self.limit

    def budgets(self) -> tuple[Budget, ...]:
        return (self,)


@dataclass(frozen=True)
class Calls(_Budget):
    """Stop after `limit` calls of one oracle.

    Parameters
    ----------
    limit : int
        Maximum number of calls, at least 1.
    oracle : {"fo", "sfo", "ifo", "lo", "ub", "po", "values"}, default "lo"
        The oracle whose calls are counted. The spectral inner solver computes upper bounds ("ub") but no linear minimisations
        ("lo"), so that a limit on "lo" would not end a run with this inner solver: limit "ub" or the steps.
    """

    oracle: str = "lo"

    def __post_init__(self) -> None:
        choice(self.oracle, COUNTERS, "oracle")
        whole(self.limit, f"number of {self.oracle} calls")

    def used(self, record: Record) -> float:
        return getattr(record, self.oracle)

    def said(self) -> str:
        return f"{self.limit} {self.oracle.upper()} calls"

    def exceeded(self, counts: Counts, price: dict[str, int], watch: Watch) -> bool:
        return getattr(counts, self.oracle) + price.get(self.oracle, 0) > self.limit

    def budgets(self) -> tuple[Budget, ...]:
        return (self,)


@dataclass(frozen=True)
class Stagnation(Rule):
    """Stop when the method makes no more progress.

    The last ``2 * steps`` steps are divided into two halves. The run ends if the smallest certified squared mapping of the later
    half is not below ``1 - rtol`` times the smallest certified squared mapping of the earlier half. If no mapping is certified in
    these steps, values of F are compared instead.

    Parameters
    ----------
    steps : int, default 100
        Number of steps in each half.
    rtol : float, default 1e-3
        Minimum relative improvement from the earlier to the later half with which the run continues.
    """

    steps: int = 100
    rtol: float = 1e-3

    def __post_init__(self) -> None:
        whole(self.steps, "The number of steps")
        positive(self.rtol, "The rtol of Stagnation")

    def __call__(self, record: Record, trace: Sequence[Record]) -> Reason | None:
        rows = [record]
        while len(rows) <= len(trace):
            if (row := trace[-len(rows)]).k <= record.k - 2 * self.steps or row.phase != record.phase:
                break
            rows.append(row)
        certified = any(isfinite(r.mapping) for r in rows)
        seen = [(r.k, r.mapping if certified else r.fun) for r in rows]
        late = [m for k, m in seen if k > record.k - self.steps and isfinite(m)]
        early = [m for k, m in seen if k <= record.k - self.steps and isfinite(m)]
        if not late or not early or min(late) < min(early) - self.rtol * abs(min(early)):
            return None
        what = "squared gradient mapping" if certified else "value"
        return Reason("stalled", f"The {what} has not improved by a relative {self.rtol:g} in {self.steps} steps.")

    def progress(self, record: Record, trace: Sequence[Record]) -> float:
        return 0.0
