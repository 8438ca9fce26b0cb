"""Oracle calls that are not counted: what docs/running.md states, compared with a tally inside of the user's functions."""

from __future__ import annotations

from collections import Counter
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import condgrad as cg

TABLE = (Path(__file__).parent.parent / "docs" / "running.md").read_text(encoding="utf-8")
Q, SIMPLEX, START = np.diag([1.0, 2.0, 3.0]), cg.Simplex(3), np.array([0.5, 0.2, 0.3])
ORACLES = ("fo", "lo", "po", "values")


class Tally(Counter):
    """Counts the calls of functions by name."""

    def of(self, name: str, function: Any) -> Any:
        def counted(*args: Any) -> Any:
            self[name] += 1
            return function(*args)

        return counted


def uncounted(
    L: float | None = 3.0,
    start: bool = True,
    contains: bool = True,
    project: bool = False,
    diameter: float | None = 1.5,
    x0: Any = None,
    **options: Any,
) -> dict[str, int]:
    """Calls made, without those that the result counts."""
    made = Tally()
    F = cg.Function(
        made.of("values", lambda x: float(x @ Q @ x) / 2), made.of("fo", lambda x: Q @ x), (3,), smoothness=L
    )
    domain = cg.user_set(
        made.of("lo", SIMPLEX.lmo),
        3,
        diameter,
        project=made.of("po", SIMPLEX.project) if project else None,
        start=START if start else None,
        contains=SIMPLEX.contains if contains else None,
    )
    result = cg.minimize(F, domain, x0, **options)
    return {name: made[name] - result.counts[name] for name in ORACLES}


FRANK_WOLFE = {"method": "frank-wolfe", "stop": cg.Steps(3)}
NCGS = {"method": "ncgs", "stop": cg.Steps(3)}
CONVERGED = {"method": "frank-wolfe", "tol": 1e-2}

RETURNED = ("check of a claim of convergence, and of the returned point | 1 FO and 1 LO each", {"fo": 1, "lo": 1})
LONGER = ("1 FO and 1 LO more if the step is longer than 1/(2L)", {"fo": 1, "lo": 1})
PROBED = ("before a bound is certified | 1 FO and at most 24 LO", {"fo": 1, "lo": (2, 24)})
NO_L = ("the same check if no L is given | 2 FO more, and 1 LO if the point is its own witness", {"fo": 2, "lo": 1})
CLAIMED = (
    "check of L at convergence, if L is given | 2 FO, and 1 LO if the point is its own witness",
    {"fo": 2, "lo": 1},
)
TRACE = (
    "F for a row of the trace, if the method has not computed it | 1 value",
    {"values": 4},
)
NO_START = ("the start of a `user_set` without `start=` | 1 LO", {"lo": 1})
GIVEN = (
    "check whether `x0` is in a `user_set` without `contains=` and `project=` | at most 10 LO",
    {"lo": (2, 10)},
)
SEPARATED = (
    "`contains=` and `project=` | at most 20 LO for the point, and at most 20 LO for its witness",
    {"lo": (2, 20)},
)
PROJECTED = ("and the returned point | 1 PO each, and up to 10 PO for the witness of a certificate", {"po": (5, 14)})
WIDTH = ("2 LO in all if there is no `diameter=`", {"lo": 2})
CHECKED = ("for each of 5 directions: 1 LO, 1 FO and 14 values", {"fo": 5, "lo": 5, "values": 70})
SAVED = ("a checkpoint of a problem with your own functions | 1 FO, 1 LO", {"fo": 1, "lo": 1})
LOWEST = (
    'at the point that `output="lowest"` returns | 1 FO, and either 1 PO, or at most 1000 LO',
    {"fo": 1, "lo": (1, 1000)},
)
GAPS = ("the gap for a `Gap` rule if the method does not compute it: at growing intervals", {"fo": 3, "lo": 3})
AFTER_A_SIGNAL = ("(10 LO after a deadline or a signal)", {"fo": 1, "lo": (2, 10)})


def impatient(record: Any, x: Any) -> None:
    if record.k == 3:
        raise KeyboardInterrupt


CASES: dict[str, tuple[dict[str, Any], list[Any]]] = {
    "a budget": (FRANK_WOLFE, [RETURNED, PROBED, TRACE]),
    "a longer step": ({**NCGS, "polish": False}, [RETURNED, LONGER, PROBED]),
    "output last": ({**FRANK_WOLFE, "output": "last"}, [TRACE]),
    "output lowest": ({**FRANK_WOLFE, "output": "lowest"}, [RETURNED, PROBED, LOWEST, TRACE]),
    "a signal": (
        {**FRANK_WOLFE, "stop": cg.Steps(9), "callback": impatient, "on_interrupt": "return"},
        [RETURNED, AFTER_A_SIGNAL, TRACE],
    ),
    "no start": ({**FRANK_WOLFE, "start": False}, [RETURNED, PROBED, TRACE, NO_START]),
    "x0": ({**FRANK_WOLFE, "contains": False, "x0": START}, [RETURNED, PROBED, TRACE, GIVEN]),
    "project": ({**FRANK_WOLFE, "contains": False, "project": True}, [RETURNED, PROBED, TRACE, PROJECTED]),
    "project without a diameter": (
        {**FRANK_WOLFE, "contains": False, "project": True, "diameter": None},
        [RETURNED, PROBED, TRACE, PROJECTED, WIDTH],
    ),
    "no L": ({**FRANK_WOLFE, "L": None}, [RETURNED, PROBED, TRACE, NO_L]),
    "check_gradient": ({**FRANK_WOLFE, "check_gradient": True}, [RETURNED, PROBED, TRACE, CHECKED]),
    "a gap that the method does not compute": (
        {**NCGS, "polish": False, "stop": cg.Gap(1e-9) | cg.Steps(3)},
        [RETURNED, PROBED, GAPS],
    ),
    "converged": (CONVERGED, [RETURNED, PROBED, CLAIMED, ("", {"values": 12})]),
    "converged, no contains": (
        {**CONVERGED, "contains": False},
        [RETURNED, PROBED, CLAIMED, SEPARATED, ("", {"values": 12})],
    ),
}


@pytest.mark.parametrize("case", CASES)
def test_the_calls_that_are_not_counted_are_those_of_the_table(case: str) -> None:
    options, rows = CASES[case]
    found = uncounted(**options)
    for row, _ in rows:
        assert row in TABLE, f"docs/running.md no longer says: {row}"
    for name in ORACLES:
        stated = [calls.get(name, 0) for _, calls in rows]
        least = sum(one if isinstance(one, int) else one[0] for one in stated)
        most = sum(one if isinstance(one, int) else one[1] for one in stated)
        assert least <= found[name] <= most, (name, found)


def test_a_checkpoint_asks_once_for_a_fingerprint(tmp_path: Path) -> None:
    assert SAVED[0] in TABLE
    plain, saved = uncounted(**FRANK_WOLFE), uncounted(**FRANK_WOLFE, checkpoint=tmp_path / "run.ckpt")
    assert {name: saved[name] - plain[name] for name in ORACLES} == {"fo": 1, "lo": 1, "po": 0, "values": 0}


def test_values_that_a_given_L_is_compared_with() -> None:
    """Of 31 records with every=10, four have a value; the other values are asked for in pairs, ever less often."""
    assert "at growing intervals, if F is not known at the two points | at most 2 values" in TABLE
    compared = uncounted(method="frank-wolfe", stop=cg.Steps(30), every=10)["values"] - 4
    without = uncounted(L=None, method="frank-wolfe", stop=cg.Steps(30), every=10)["values"] - 4
    assert without == 0 < compared <= 2 * 30
