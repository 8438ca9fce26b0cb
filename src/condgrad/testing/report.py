"""Reports of contract checks: the outcome of each check, and how a check failed."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.report.text_table import table


class ContractError(AssertionError):
    """Raised by a check with ``strict=True`` if the object under test violates its contract. Its text is the report."""


class _Outcome(Exception):
    outcome = ""


class Failed(_Outcome):
    outcome = "FAILED"


class Noted(_Outcome):
    """The contract allows what was found, but the author should know of it."""

    outcome = "note"


class Skipped(_Outcome):
    outcome = "not checked"


def require(holds: Any, sentence: str, *values: Any) -> None:
    """Raise Failed unless ``holds``.

    ``str.format`` inserts the values into the sentence only if it is raised, because writing an array as text takes longer than
    most checks.
    """
    if not holds:
        shown = [short(value) if isinstance(value, np.ndarray) else value for value in values]
        raise Failed(sentence.format(*shown) if values else sentence)


def short(x: np.ndarray) -> str:
    """Text of an array, shortened to a few entries."""
    text = np.array2string(x, precision=3, threshold=6, edgeitems=2, separator=", ")
    return " ".join(text.split())


@dataclass(frozen=True)
class Finding:
    """One line of a report.

    Attributes
    ----------
    check : str
        What was checked.
    outcome : {"ok", "FAILED", "note", "not checked"}
        A note says something about the object that the contract allows.
    detail : str
        How the check failed, or why it was not made.
    """

    check: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """Report on all checks of one object. ``print(report)`` shows it as a table.

    Attributes
    ----------
    subject : str
        Kind and name of the object, such as "Set Simplex".
    findings : tuple of Finding
        One for each check.
    """

    subject: str
    findings: tuple[Finding, ...]

    @property
    def passed(self) -> bool:
        """Whether no check failed."""
        return not self.failures

    @property
    def failures(self) -> tuple[Finding, ...]:
        """The checks that failed."""
        return tuple(finding for finding in self.findings if finding.outcome == "FAILED")

    @property
    def notes(self) -> tuple[Finding, ...]:
        """Findings that are no failures, but that the author should know of."""
        return tuple(finding for finding in self.findings if finding.outcome == "note")

    def __str__(self) -> str:
        done = sum(finding.outcome in ("ok", "FAILED") for finding in self.findings)
        summary = f"{self.subject}: {done - len(self.failures)} of {done} checks passed."
        rows = [[finding.check, finding.outcome, finding.detail] for finding in self.findings]
        return f"{summary}\n{table(['check', 'outcome', 'detail'], rows)}"


Check = tuple[str, Callable[[], str | None]]
"""Title of a check, and the function that makes the check. It returns a detail or None, or raises an outcome."""


def report(subject: str, checks: Iterable[Check], strict: bool) -> CheckReport:
    """Make all checks, also after one has failed, and return their report."""
    findings = []
    for title, check in checks:
        try:
            findings.append(Finding(title, "ok", check() or ""))
        except _Outcome as outcome:
            findings.append(Finding(title, outcome.outcome, str(outcome)))
        except Exception as error:  # the object under test may raise anything
            said = " ".join(str(error).split())
            findings.append(Finding(title, "FAILED", f"raised {type(error).__name__}: {said}"))
    made = CheckReport(subject, tuple(findings))
    if strict and not made.passed:
        raise ContractError(str(made))
    return made
