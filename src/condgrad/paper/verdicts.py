"""What the paper says of Figure 1, how it can be read, and what is seen: yes, tie or no, and by how much."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from math import inf
from typing import Any

from condgrad.report.plain import number

Row = dict[str, Any]
"""One method of a figure: see ``Figure.row``."""

OURS, PAPER, TUNED, RIVAL = "condgrad's defaults", "the paper to the letter", "the paper's method, tuned", "its rivals"
TIE = 1.25
RULE = (
    "Yes: the paper's method is ahead, by the ratio of the medians (in parentheses: smallest and largest ratio over the seeds). "
    f"Tie: that ratio is within {TIE:g} and the order is not the same on all seeds. Where neither method reaches the target, the "
    "squared mappings at the end of the CPU budget are compared."
)
ONE_SEED = (
    f"One seed. Yes: the paper's method is ahead. Tie: the ratio is within {TIE:g}. Where neither method reaches the target, the "
    "squared mappings at the end of the CPU budget are compared."
)


@dataclass(frozen=True)
class Reading:
    """One way to read a claim of the paper: which form of its method, against which rival.

    Parameters
    ----------
    said : str
        The reading in words.
    own : tuple of str
        Labels of the forms of the paper's method. The one that did best on the tuning seed is compared, without tuning the first.
    rival : str
        Label of the rival.
    """

    said: str
    own: tuple[str, ...]
    rival: str


@dataclass(frozen=True)
class Claim:
    """What the paper says of a figure, and the readings of it."""

    said: str
    readings: tuple[Reading, ...]


def judge(own: Row, rival: Row) -> dict[str, Any]:
    """Compare two methods that ran on the same seeds with the same budget.

    Returns
    -------
    dict
        ``seen`` (yes, tie, no, or which method failed), ``by`` (in words), ``ratio`` (the rival's median over our own; above 1 is
        in favour of the paper's method), ``ratios`` (seed by seed, None where a seed gives none), ``measure`` (cpu or mapping).
    """
    for row in (own, rival):
        if row["failed"] == row["runs"]:
            return {"seen": f"{row['method']} failed", "by": row["why"], "ratio": None, "ratios": [], "measure": None}
    timed = own["cpu"] is not None or rival["cpu"] is not None
    pairs = zip(seeds_of(own), seeds_of(rival), strict=True)
    ratios = [ratio(a, b, timed) for a, b in pairs]
    known = [r for r in ratios if r is not None]
    middle = ratio(median_of(own), median_of(rival), timed)
    assert middle is not None  # one of the medians is at the target, or both are compared by their mappings
    value = middle[0]
    same_order = len({r > 1 for r, _ in known}) <= 1
    tie = max(value, 1 / value) <= TIE and not (same_order and len(known) > 1)
    seen = "tie" if tie else "yes" if value > 1 else "no"
    by = in_words(middle, known if own["runs"] > 1 else [], timed, own)
    return {
        "seen": seen,
        "by": by + failures(own) + failures(rival),
        "ratio": value,
        "ratios": [None if r is None else r[0] for r in ratios],
        "measure": "cpu" if timed else "mapping",
    }


Seed = tuple[float | None, float, float]
"""CPU seconds to the target (None: not reached), CPU seconds in all, the least squared mapping."""


def seeds_of(row: Row) -> list[Seed | None]:
    """Each seed of a method; None where its run failed."""
    columns = zip(row["times"], row["spent"], row["ends"], row["failures"], strict=True)
    return [None if failed else (time, spent, end) for time, spent, end, failed in columns]


def median_of(row: Row) -> Seed:
    return row["cpu"], row["cpu spent"], row["mapping at the end"]


def ratio(own: Seed | None, rival: Seed | None, timed: bool) -> tuple[float, bool] | None:
    """Rival over own, and whether that is only a bound, as one of the two had not reached the target at its budget."""
    if own is None or rival is None:
        return None
    if not timed:
        return rival[2] / own[2], False
    if own[0] is None and rival[0] is None:
        return None
    bound = own[0] is None or rival[0] is None
    return (rival[1] if rival[0] is None else rival[0]) / (own[1] if own[0] is None else own[0]), bound


def in_words(middle: tuple[float, bool], seeds: Sequence[tuple[float, bool]], timed: bool, own: Row) -> str:
    """By how much, with the range over the seeds."""
    better = middle[0] >= 1

    def one_way(found: tuple[float, bool]) -> float:
        return found[0] if better else 1 / found[0]

    words = ("times as fast", "times slower") if timed else ("times lower", "times higher")
    least = "more than " if middle[1] else ""
    said = f"{least}{number(one_way(middle))} {words[not better]}"
    if not timed:
        said = f"mapping {said} after {number(own['cpu spent'])} s"
    if not seeds:
        return said
    ends = sorted(seeds, key=one_way)
    low, high = (
        f"{'>' * (bound and (value > 1) == better)}{number(one_way((value, bound)))}"
        for value, bound in (ends[0], ends[-1])
    )
    return f"{said} ({low} to {high})"


def failures(row: Row) -> str:
    return f"; {row['failed']} of {row['runs']} runs of {row['method']} failed" if row["failed"] else ""


def best(rows: Sequence[Row]) -> Row:
    """First at the target; where none gets there, nearest to it, and rather one that did not fail."""
    return min(
        rows, key=lambda row: (inf if row["cpu"] is None else row["cpu"], row["failed"], row["mapping at the end"])
    )


def took(row: Row) -> str:
    """How long a method took, in a few words."""
    if row["cpu"] is not None:
        return f"{number(row['cpu'])} s"
    return f"more than {number(row['cpu spent'])} s"


def note(row: Row) -> str:
    """Why a curve ends above the target; empty where it does not."""
    if row["failed"]:
        return f"{row['failed']} of {row['runs']} runs failed: {row['why']}"
    if row["cpu"] is not None:
        return ""
    if not row["steps"]:
        return f"no step done in {number(row['cpu spent'])} s"
    some = f", {row['reached']} of {row['runs']} seeds at the target" if row["reached"] else ""
    return f"{number(row['mapping at the end'])} after {number(row['cpu spent'])} s{some}"
