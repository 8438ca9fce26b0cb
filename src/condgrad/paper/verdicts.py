"""Verdicts on the paper's claims about Figure 1: whether each holds (yes, tie or no), and by what factor."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from condgrad.report.plain import format_number

Row = dict[str, Any]
"""Summary of one method of a figure, see ``Figure.row``."""

OURS, PAPER, TUNED, RIVAL = "condgrad's defaults", "the paper to the letter", "the paper's method, tuned", "its rivals"
TIE_RATIO = 1.25
"""Maximum ratio of the medians that can be a tie."""
RULE = (
    "Yes: the paper's method is ahead, by the ratio of the medians (in parentheses: smallest and largest ratio over the seeds). "
    f"Tie: that ratio is within {TIE_RATIO:g} and the order is not the same on all seeds. Where neither method reaches the "
    "target, the squared mappings at the end of the CPU budget are compared."
)
ONE_SEED = (
    f"One seed. Yes: the paper's method is ahead. Tie: the ratio is within {TIE_RATIO:g}. Where neither method reaches the "
    "target, the squared mappings at the end of the CPU budget are compared."
)


@dataclass(frozen=True)
class Reading:
    """One interpretation of a claim: which variant of the paper's method is compared with which rival.

    Parameters
    ----------
    text : str
        Description of the interpretation.
    own : tuple of str
        Labels of the variants of the paper's method. The best on the tuning seed is compared; without tuning, the first.
    rival : str
        Label of the rival.
    """

    text: str
    own: tuple[str, ...]
    rival: str


@dataclass(frozen=True)
class Claim:
    """Claim of the paper about a figure, and its interpretations."""

    text: str
    readings: tuple[Reading, ...]


def compare(own: Row, rival: Row) -> dict[str, Any]:
    """Compare two methods that ran on the same seeds with the same budget.

    Returns
    -------
    dict
        ``seen`` (yes, tie, no, or which method failed), ``by`` (the factor in words), ``ratio`` (median of the rival over median
        of the paper's method; above 1 favours the latter), ``ratios`` (seed by seed, None for a seed without a ratio),
        ``measure`` (cpu or mapping).
    """
    for row in (own, rival):
        if row["failed"] == row["runs"]:
            return {"seen": f"{row['method']} failed", "by": row["why"], "ratio": None, "ratios": [], "measure": None}
    timed = own["cpu"] is not None or rival["cpu"] is not None
    pairs = zip(results_by_seed(own), results_by_seed(rival), strict=True)
    ratios = [ratio(a, b, timed) for a, b in pairs]
    known = [r for r in ratios if r is not None]
    median = ratio(median_result(own), median_result(rival), timed)
    assert median is not None  # one of the medians is at the target, or both are compared by their mappings
    value = median[0]
    same_order = len({r > 1 for r, _ in known}) <= 1
    tie = max(value, 1 / value) <= TIE_RATIO and not (same_order and len(known) > 1)
    verdict = "tie" if tie else "yes" if value > 1 else "no"
    by = ratio_text(median, known if own["runs"] > 1 else [], timed, own)
    return {
        "seen": verdict,
        "by": by + failure_text(own) + failure_text(rival),
        "ratio": value,
        "ratios": [None if r is None else r[0] for r in ratios],
        "measure": "cpu" if timed else "mapping",
    }


SeedResult = tuple[float | None, float, float]
"""CPU seconds to the target (None: not reached), total CPU seconds, smallest squared mapping."""


def results_by_seed(row: Row) -> list[SeedResult | None]:
    """Result of each seed of a method; None if the run failed."""
    columns = zip(row["times"], row["spent"], row["ends"], row["failures"], strict=True)
    return [None if failed else (time, spent, end) for time, spent, end, failed in columns]


def median_result(row: Row) -> SeedResult:
    return row["cpu"], row["cpu spent"], row["mapping at the end"]


def ratio(own: SeedResult | None, rival: SeedResult | None, timed: bool) -> tuple[float, bool] | None:
    """Ratio of rival to own, and whether it is only a bound because one of the two did not reach the target."""
    if own is None or rival is None:
        return None
    if not timed:
        return rival[2] / own[2], False
    if own[0] is None and rival[0] is None:
        return None
    bound = own[0] is None or rival[0] is None
    return (rival[1] if rival[0] is None else rival[0]) / (own[1] if own[0] is None else own[0]), bound


def ratio_text(median: tuple[float, bool], seeds: Sequence[tuple[float, bool]], timed: bool, own: Row) -> str:
    """Factor between the methods in words, with the range over the seeds."""
    better = median[0] >= 1

    def oriented(pair: tuple[float, bool]) -> float:
        """The ratio, or its inverse if the paper's method is worse in the median."""
        return pair[0] if better else 1 / pair[0]

    words = ("times as fast", "times slower") if timed else ("times lower", "times higher")
    prefix = "more than " if median[1] else ""
    text = f"{prefix}{format_number(oriented(median))} {words[not better]}"
    if not timed:
        text = f"mapping {text} after {format_number(own['cpu spent'])} s"
    if not seeds:
        return text
    ends = sorted(seeds, key=oriented)
    low, high = (
        f"{'>' * (bound and (value > 1) == better)}{format_number(oriented((value, bound)))}"
        for value, bound in (ends[0], ends[-1])
    )
    return f"{text} ({low} to {high})"


def failure_text(row: Row) -> str:
    return f"; {row['failed']} of {row['runs']} runs of {row['method']} failed" if row["failed"] else ""


def best(rows: Sequence[Row]) -> Row:
    """Row of the method that reached the target first; if none did, the one with fewest failures and smallest mapping."""
    return min(
        rows, key=lambda row: (inf if row["cpu"] is None else row["cpu"], row["failed"], row["mapping at the end"])
    )


def time_text(row: Row) -> str:
    """CPU time to the target in words."""
    if row["cpu"] is not None:
        return f"{format_number(row['cpu'])} s"
    return f"more than {format_number(row['cpu spent'])} s"


def end_note(row: Row) -> str:
    """Why a curve ends above the target; empty if it reaches the target."""
    if row["failed"]:
        return f"{row['failed']} of {row['runs']} runs failed: {row['why']}"
    if row["cpu"] is not None:
        return ""
    if not row["steps"]:
        return f"no step done in {format_number(row['cpu spent'])} s"
    some = f", {row['reached']} of {row['runs']} seeds at the target" if row["reached"] else ""
    return f"{format_number(row['mapping at the end'])} after {format_number(row['cpu spent'])} s{some}"
