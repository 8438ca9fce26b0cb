"""How the curves of Figure 1 agree or disagree with what the paper says of them, in words that follow from the numbers."""

from __future__ import annotations

from dataclasses import dataclass
from math import inf
from typing import Any

Row = dict[str, Any]


@dataclass(frozen=True)
class Claim:
    """The paper's: the rivals take at least ``ratio`` times as long. ``said`` is how the paper says it."""

    ours: str
    rivals: str
    ratio: float
    said: str


def verdict(rows: list[Row], claim: Claim, target: float) -> list[str]:
    """One sentence for each way of running the paper's method, against the best of its rivals."""
    rival = best([row for row in rows if row["whose"] == "compared with"])
    whose = list(dict.fromkeys(row["whose"] for row in rows if row["whose"] != "compared with"))
    return [compare(who, best([row for row in rows if row["whose"] == who]), rival, claim, target) for who in whose]


def best(rows: list[Row]) -> Row:
    """First at the target; where none gets there, nearest to it."""
    return min(rows, key=lambda row: (inf if row["cpu"] is None else row["cpu"], row["mapping at the end"]))


def compare(who: str, own: Row, rival: Row, claim: Claim, target: float) -> str:
    found = f"{claim.ours}, {who} ({own['method']}), {ended(own, target)}; "
    found += f"{claim.rivals} ({rival['method']}) {ended(rival, target)}"
    if own["cpu"] is None:
        if rival["cpu"] is not None:
            return f"{found}. This disagrees with the paper: the order is reversed."
        lower = "the lower" if own["mapping at the end"] < rival["mapping at the end"] else "not the lower"
        found += ". By the target the claim can't be judged; at the end of the budget"
        return f"{found} {claim.ours}'s mapping is {lower} one."
    if rival["cpu"] is None:
        ratio, at_least = rival["cpu spent"] / own["cpu"], "more than "
    else:
        ratio, at_least = rival["cpu"] / own["cpu"], ""
    return f"{found}: {at_least}{ratio:.2g} times as long. {judged(ratio, bool(at_least), claim)}"


def judged(ratio: float, open_above: bool, claim: Claim) -> str:
    if ratio >= claim.ratio:
        return f"This agrees with the paper ({claim.ratio:g} times or more)."
    if open_above and ratio < 1:
        return "The claim can't be judged: the rival was given less time than that."
    if open_above:
        return f"This agrees with the paper in direction; whether by its factor of {claim.ratio:g}, the budget does not tell."
    if ratio > 1:
        return f"This agrees with the paper in direction, but by less than a factor of {claim.ratio:g}."
    return "This disagrees with the paper: the order is reversed."


def ended(row: Row, target: float) -> str:
    if row["cpu"] is not None:
        return f"reached {target:g} in {row['cpu']:.3g} s of CPU time"
    return f"did not reach {target:g} in {row['cpu spent']:.3g} s (it came to {row['mapping at the end']:.2g})"
