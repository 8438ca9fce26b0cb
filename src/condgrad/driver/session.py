"""The class `Session`: joins the traces, the oracle counts and the times of several runs, such as the runs of one fit."""

from __future__ import annotations

from dataclasses import replace
from math import nan
from typing import Any

from condgrad.driver.asked import Asked
from condgrad.driver.counting import Counts, count
from condgrad.driver.reached import Reached
from condgrad.driver.result import Result
from condgrad.driver.run import Loop
from condgrad.driver.stopping import Steps
from condgrad.driver.trace import Trace
from condgrad.protocols import Problem, Record, Solver

TIMES = ("seconds", "cpu", "wall")


class Session:
    """The joined trace, oracle calls and times of several runs that follow each other.

    Each run has a name, which stands in the column ``phase`` of its rows. The step number ``k``, the times and the counts
    continue from run to run. The times do not include the time between runs.
    """

    def __init__(self) -> None:
        self.trace, self.counts, self.steps = Trace(), Counts(), 0
        self.times = dict.fromkeys(TIMES, 0.0)

    def counted(self, problem: Problem) -> Problem:
        """Wrap a problem, so that oracle calls outside of runs are counted in this session."""
        return count(problem, self.counts, lambda price: None)

    def advance(self, problem: Problem, solver: Solver, state: Any, steps: int, phase: str) -> Any:
        """Take steps of a method from a given state, and return the last state.

        The iterates are neither audited nor certified, because only the last run of a session returns its point to the user.

        Parameters
        ----------
        problem : Problem
        solver : Solver
        state : State
            A state of the solver.
        steps : int
            Number of steps.
        phase : str
            Name of the phase.

        Returns
        -------
        State
        """
        reached = Reached(state=state)
        reached.record = Record(
            k=state.k, **reached.spent(), fun=nan, gap=nan, mapping=nan, mapping_lower=nan, smoothness=state.L
        )
        stop = Steps(state.k + steps)
        asked = Asked(problem, problem, solver, state.x, stop, phase, output="last", checked=False)
        loop = Loop(asked, reached)
        loop.run()
        if loop.interruption is not None:
            raise loop.interruption
        times = {name: getattr(reached.watch, name) for name in TIMES}
        self._append(reached.trace[1:], reached.counts, reached.state.k - state.k, times, phase)
        return reached.state

    def add(self, result: Result, phase: str) -> None:
        """Add a run that has ended.

        Parameters
        ----------
        result : Result
        phase : str
            Name of the phase.
        """
        wall = result.trace[-1].wall if len(result.trace) else 0.0
        times = {"seconds": result.seconds, "cpu": result.cpu, "wall": wall}
        self._append(result.trace, Counts(**result.counts), result.steps, times, phase)

    def whole(self, result: Result) -> Result:
        """Replace the trace, the counts, the number of steps and the times of a run's result by those of all runs together."""
        return replace(
            result,
            trace=self.trace[:],
            counts=dict(vars(self.counts)),
            steps=self.steps,
            seconds=self.times["seconds"],
            cpu=self.times["cpu"],
        )

    def _append(self, rows: Trace, counts: Counts, steps: int, times: dict[str, float], phase: str) -> None:
        before = {"k": self.steps, **self.times, **vars(self.counts)}
        for row in rows:
            name = phase if row.phase == "main" else f"{phase}, {row.phase}"
            so_far = {column: number + getattr(row, column) for column, number in before.items()}
            self.trace.append(replace(row, **so_far, phase=name))
        self.counts.add(vars(counts))
        self.steps += steps
        self.times = {name: self.times[name] + times[name] for name in TIMES}
