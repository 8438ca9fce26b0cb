"""How the curves of Figure 1 agree or disagree with what the paper says of them, in words that follow from the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

Row = dict[str, Any]

OURS, PAPER, TUNED, RIVAL = "as a user gets it", "the paper to the letter", "the paper's condg, tuned", "compared with"
NOT_THE_PAPERS = (
    "This is condgrad's implementation (spectral solver, adaptive steps, warm start), not the paper's procedure: it says "
    "nothing of the paper's claim."
)


@dataclass(frozen=True)
class Claim:
    """The paper's: the rivals take at least ``ratio`` times as long. ``said`` is how the paper says it."""

    ours: str
    rivals: str
    ratio: float
    said: str
    beware: str = ""
    """What a reader of the verdict should know besides."""


def verdict(rows: list[Row], claim: Claim, target: float) -> list[str]:
    """One sentence for each way of running the paper's method, the paper's own first, against the best of its rivals."""
    rival = best([row for row in rows if row["whose"] == RIVAL])
    sides = {who: [row for row in rows if row["whose"] == who] for who in (PAPER, TUNED, OURS)}
    said = [compare(who, best(own), rival, claim, target) for who, own in sides.items() if own]
    return [*said, claim.beware] if claim.beware else said


def best(rows: list[Row]) -> Row:
    """First at the target; where none gets there, nearest to it, and rather one that did not fail."""
    return min(
        rows, key=lambda row: (inf if row["cpu"] is None else row["cpu"], row["failed"], row["mapping at the end"])
    )


def compare(who: str, own: Row, rival: Row, claim: Claim, target: float) -> str:
    found = f"{claim.ours}, {who} ({own['method']}), {ended(own, target)}; "
    found += f"{claim.rivals} ({rival['method']}) {ended(rival, target)}"
    times, judgement = judged(own, rival, claim)
    return f"{found}{times}. {NOT_THE_PAPERS if who == OURS else judgement}"


def judged(own: Row, rival: Row, claim: Claim) -> tuple[str, str]:
    """How many times as long the rival takes, where that can be said; and what follows for the claim."""
    for row, name in ((own, claim.ours), (rival, claim.rivals)):
        if row["cpu"] is None and row["failed"]:
            return "", f"The claim can't be judged: {name} failed."
    if own["cpu"] is None:
        return "", without_target(own, rival, claim)
    if rival["cpu"] is not None:
        ratio = rival["cpu"] / own["cpu"]
        return f": {ratio:.2g} times as long", by_ratio(ratio, claim)
    ratio = rival["cpu spent"] / own["cpu"]
    if ratio < 1:
        return "", "The claim can't be judged: the rival was given less time than that."
    if rival["reached"]:
        return "", "This agrees with the paper in direction, in the median; by what factor can't be said."
    more = f": more than {ratio:.2g} times as long"
    if ratio >= claim.ratio:
        return more, by_ratio(ratio, claim)
    factor = f"whether by its factor of {claim.ratio:g}, the budget does not tell"
    return more, f"This agrees with the paper in direction; {factor}."


def by_ratio(ratio: float, claim: Claim) -> str:
    if ratio >= claim.ratio:
        return f"This agrees with the paper ({claim.ratio:g} times or more)."
    if ratio > 1:
        return f"This agrees with the paper in direction, but by less than a factor of {claim.ratio:g}."
    return "This disagrees with the paper: the order is reversed."


def without_target(own: Row, rival: Row, claim: Claim) -> str:
    if rival["cpu"] is not None:
        return "This disagrees with the paper: the order is reversed."
    if not (own["steps"] and rival["steps"]):
        return "The claim can't be judged."
    lower = "the lower" if own["mapping at the end"] < rival["mapping at the end"] else "not the lower"
    return f"By the target the claim can't be judged; at the end of the budget {claim.ours}'s mapping is {lower} one."


def ended(row: Row, target: float) -> str:
    if row["cpu"] is not None:
        some = f" ({row['failed']} of {row['runs']} runs failed)" if row["failed"] else ""
        return f"reached {target:g} in {row['cpu']:.3g} s of CPU time{some}"
    spent, came = f"{row['cpu spent']:.3g} s", f"it came to {row['mapping at the end']:.2g}"
    if row["failed"]:
        return f"failed in {row['failed']} of {row['runs']} runs, after {spent} ({came})"
    if not row["steps"]:
        return f"did not finish its first step in {spent}"
    some = f" in the median; {row['reached']} of {row['runs']} seeds did" if row["reached"] else ""
    return f"did not reach {target:g} in {spent} ({came}){some}"


def note(row: Row) -> str:
    """Of a curve, where it did not come to the target: why it ends."""
    if row["failed"]:
        return f"{row['failed']} of {row['runs']} runs failed: {row['why']}"
    if row["cpu"] is not None:
        return ""
    if not row["steps"]:
        return f"did not finish its first step in {row['cpu spent']:.3g} s"
    some = f"; {row['reached']} of {row['runs']} seeds reached the target" if row["reached"] else ""
    return f"ended at its budget, after {row['cpu spent']:.3g} s, at {row['mapping at the end']:.2g}{some}"
