"""What was checked of a part, what failed, and how."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from typing import Any

import numpy as np

from condgrad.report.text_table import table


class ContractError(AssertionError):
    """A part that does not keep its contract, where a check was asked to be strict; its text is the report."""


class _Outcome(Exception):
    outcome = ""


class Failed(_Outcome):
    outcome = "FAILED"


class Noted(_Outcome):
    """Nothing that the contract forbids, but something to know."""

    outcome = "note"


class Skipped(_Outcome):
    outcome = "not checked"


def require(holds: Any, sentence: str, *values: Any) -> None:
    """Raise Failed unless ``holds``.

    Only then ``str.format`` inserts the values into the sentence: to write an array as text takes longer than most checks.
    """
    if not holds:
        shown = [short(value) if isinstance(value, np.ndarray) else value for value in values]
        raise Failed(sentence.format(*shown) if values else sentence)


def short(x: np.ndarray) -> str:
    """An array in a few characters."""
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
        A note is nothing that the contract forbids.
    detail : str
        How it failed, or why it was not checked.
    """

    check: str
    outcome: str
    detail: str


@dataclass(frozen=True)
class CheckReport:
    """What was checked of a part; printed, a table.

    Attributes
    ----------
    subject : str
        What was checked.
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
        """What is worth knowing and no failure."""
        return tuple(finding for finding in self.findings if finding.outcome == "note")

    def __str__(self) -> str:
        done = sum(finding.outcome in ("ok", "FAILED") for finding in self.findings)
        summary = f"{self.subject}: {done - len(self.failures)} of {done} checks passed."
        rows = [[finding.check, finding.outcome, finding.detail] for finding in self.findings]
        return f"{summary}\n{table(['check', 'outcome', 'detail'], rows)}"


Check = tuple[str, Callable[[], str | None]]
"""What is checked, and the function that does it: it returns a detail or None, or raises an outcome."""


def report(subject: str, checks: Iterable[Check], strict: bool) -> CheckReport:
    """Make the checks, none of which stops the others."""
    findings = []
    for title, check in checks:
        try:
            findings.append(Finding(title, "ok", check() or ""))
        except _Outcome as outcome:
            findings.append(Finding(title, outcome.outcome, str(outcome)))
        except Exception as error:  # the part may raise anything
            said = " ".join(str(error).split())
            findings.append(Finding(title, "FAILED", f"raised {type(error).__name__}: {said}"))
    made = CheckReport(subject, tuple(findings))
    if strict and not made.passed:
        raise ContractError(str(made))
    return made
