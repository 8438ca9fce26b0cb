"""Checkpoints: files from which a killed run can be continued. The result is the same, bit for bit, as without interruption."""

from __future__ import annotations

import errno
import os
import warnings as python_warnings
from dataclasses import asdict, dataclass
from itertools import groupby
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from condgrad.certificate import Certificate
from condgrad.checks import not_negative, positive, real, whole
from condgrad.driver.asked import Asked
from condgrad.driver.chooser import Choice
from condgrad.driver.counting import Counts
from condgrad.driver.fingerprint import Fingerprint, differences
from condgrad.driver.reached import Reached
from condgrad.driver.resolve import unwrapped
from condgrad.driver.trace import NUMERIC_COLUMNS, Trace
from condgrad.points import LowRank
from condgrad.points.base import Structured
from condgrad.points.low_rank import Factors
from condgrad.protocols import Record
from condgrad.runtime.cache import Cache
from condgrad.runtime.clock import Watch
from condgrad.solvers.states import Descent
from condgrad.solvers.warm_start import WarmStart, WarmStartState
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive
from condgrad.storage.atomic import check_folder, resolve_link
from condgrad.storage.snapshot import AnyPoint, Serialised, annotations_of, check_type, refusing, restore, snapshot
from condgrad.storage.stored import check_array

KIND, VERSION = "checkpoint", 5
MAX_SAVING_SHARE = 0.05
"""Maximum share of the run time that saving may take, if the interval between saves is a time and not a number of steps."""
MAX_DIFFERENCES = 3
"""Maximum number of differences between this run and the saved run that a message lists."""
MAX_COUNT = 2**62
"""Maximum count in a file: counts are stored as int64 in the columns of the trace."""
SAVED: dict[str, Any] = {
    name: kind for name, kind in annotations_of(Reached).items() if name not in ("watch", "counts", "trace")
} | {"record": Record}
"""Names and types of the fields of :class:`Reached` that are saved as they are. The other three fields (watch, counts, trace) are
saved as numbers and columns. The verification of a certificate is not saved: a resumed run verifies its certificate again."""
STATE = {"k": int, "x": AnyPoint, "L": float, "certificate": Certificate | None, "descent": Descent | None}
"""Types of the fields that the driver reads from a state. The state of every method has these fields."""
DATA = {"k", "problem", "counts", "spent", "rows", "phases", "tree", "nodes"}
"""Keys of the dict that a checkpoint file has in addition to arrays."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written; or the last checkpoint could not be read, and the previous one was used."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved.

    Parameters
    ----------
    path : path-like
        The checkpoint file.
    seconds : float, default 30.0
        Seconds between two saves. The interval becomes longer if saving takes more than a twentieth of the run time.
    steps : int, default None
        Number of steps between two saves. By default ``seconds`` decides.
    """

    path: str | os.PathLike[str]
    seconds: float = 30.0
    steps: int | None = None

    def __post_init__(self) -> None:
        if not isinstance(self.path, str | os.PathLike) or not str(self.path):
            raise TypeError(f"The path of a checkpoint is {self.path!r}, the name of a file was expected.")
        positive(self.seconds, "The seconds between checkpoints")
        if self.steps is not None:
            whole(self.steps, "The number of steps between checkpoints")


class Saving:
    """Saves a run to its checkpoint file at intervals, and restores it.

    If the file can't be written, the run continues, and a warning states the reason.
    """

    def __init__(self, checkpoint: Checkpoint, problem: Fingerprint, resume: bool):
        self.path, self.checkpoint, self.problem, self.resume = Path(checkpoint.path), checkpoint, problem, resume
        self.data: dict[str, Any] | None = None
        """The last snapshot without its arrays, which are in ``arrays``."""
        self.arrays: dict[str, np.ndarray] = {}
        self.saved: int | None = None
        """The step of the last checkpoint that was written or read; None before the first one."""
        self.failure = ""
        """Why the last attempt to save failed; "" if it did not fail."""
        self.keep = True
        """Whether the next save keeps the present file as the previous checkpoint."""
        self.due = monotonic() + checkpoint.seconds
        """Time of the next save."""
        self._try_the_folder()
        if not resume and (self.path.exists() or archive.previous(self.path).exists()):
            raise ValueError(
                f"There is a checkpoint at {self.path} already: continue it with resume=True, or move it "
                "away to start from scratch."
            )

    def _try_the_folder(self) -> None:
        try:
            if self.path.is_dir():
                raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR))
            check_folder(resolve_link(self.path).absolute().parent)
        except OSError as error:
            reason = (
                f"No checkpoint can be written here ({error.strerror}): name a file in a folder that can be written to"
            )
            raise OSError(error.errno, reason, str(self.path)) from None

    # ------------------------------------------------------------------------------------------------- writing

    def after(self, objective: Any, reached: Reached, cache: Cache) -> None:
        """Take a snapshot of the run after a step, and write it to the file if a save is due.

        The method is called before the step's row is added to the trace.
        """
        moving = {name: getattr(reached, name) for name in SAVED}
        remembered = objective.remembered() if hasattr(objective, "remembered") else None
        try:
            found = snapshot([moving, remembered], _shared(objective), cache.content)
        except TypeError as error:
            if reached.state.k <= 0:
                raise
            first, self.failure = not self.failure, str(error).rstrip(".")
            if first:  # the state now has an object that can't be stored: continue without checkpoints
                python_warnings.warn(
                    f"No checkpoint after step {reached.state.k}: {error}", CheckpointWarning, stacklevel=2
                )
            return
        first = self.data is None and self.saved is None
        self.arrays = found.arrays
        self.data = {
            "k": reached.state.k,
            "problem": self.problem,
            "counts": asdict(reached.counts),
            "spent": {name: getattr(reached.watch, name) for name in ("seconds", "cpu", "wall")},
            "rows": len(reached.trace),
            "tree": found.tree,
            "nodes": found.nodes,
        }
        steps = self.checkpoint.steps
        if (reached.state.k % steps == 0 and not first) if steps else monotonic() >= self.due:
            self.save(reached.trace)

    def save(self, trace: Trace) -> None:
        """Write the last snapshot to the file, unless the file has it already."""
        if self.data is None or self.data["k"] == self.saved:
            return
        k, rows, begun = self.data["k"], trace[: self.data["rows"]], monotonic()
        try:
            columns = {f"trace.{name}": rows[name] for name in NUMERIC_COLUMNS} if rows else {}
            phases = [[name, len(list(group))] for name, group in groupby(row.phase for row in rows)]
            data = {**self.data, "phases": phases}
            archive.write(self.path, KIND, VERSION, data, columns | self.arrays, keep=self.keep)
            self.saved, self.failure, self.keep = k, "", True
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "not enough memory"
            first, self.failure = not self.failure, reason
            if first:
                python_warnings.warn(
                    f"The checkpoint {self.path} could not be written after step {k}: {reason}. The run goes on and tries again.",
                    CheckpointWarning,
                    stacklevel=2,
                )
        now = monotonic()
        self.due = now + max(self.checkpoint.seconds, (now - begun) / MAX_SAVING_SHARE)

    def warnings(self) -> tuple[str, ...]:
        """The warnings of the result: if the last attempt to save failed, a sentence says why."""
        if not self.failure:
            return ()
        last = "there is no checkpoint" if self.saved is None else f"the last checkpoint is from step {self.saved}"
        return (f"The checkpoint {self.path} could not be written: {self.failure}; {last}.",)

    # ------------------------------------------------------------------------------------------------- reading

    def restore(self, asked: Asked, reached: Reached, cache: Cache) -> bool:
        """Restore the state and the cache of the run from the checkpoint. Returns whether there is a checkpoint."""
        found = self._find() if self.resume else None
        if found is None:
            return False
        data, arrays = found
        with refusing(self.path):
            saved, changed = data["k"], differences(data["problem"], self.problem)
            if not changed:
                self._set(asked, reached, cache, data, arrays)
        if changed:
            more = f", and {len(changed) - MAX_DIFFERENCES} more" if len(changed) > MAX_DIFFERENCES else ""
            raise ValueError(
                f"The checkpoint {self.path} is of another run: {'; '.join(changed[:MAX_DIFFERENCES])}{more}. Use the same "
                "problem and settings, or name another file."
            )
        self.saved = saved
        return True

    def _set(self, asked: Asked, reached: Reached, cache: Cache, data: Any, arrays: dict[str, np.ndarray]) -> None:
        objective, shape = asked.problem.objective, tuple(asked.x0.shape)
        serialised = Serialised(data["tree"], data["nodes"], arrays)
        (moving, remembered), content = restore(serialised, _shared(objective), shape)
        validate_run(moving, data["k"], asked.solver, shape)
        validate_content(*content)
        if any(whole(value, name, least=0) > MAX_COUNT for name, value in data["counts"].items()):
            raise ValueError("a count is too large")
        for name, value in data["spent"].items():
            not_negative(value, name)
        rows = whole(data["rows"], "rows", least=0)
        columns = [arrays[f"trace.{name}"] for name in NUMERIC_COLUMNS] if rows else []
        if any(column.shape != (rows,) or column.dtype.kind not in "iuf" for column in columns):
            raise ValueError(f"a trace of {rows} rows was expected")
        if sum(whole(count, "rows", least=0) for _, count in data["phases"]) != rows:
            raise ValueError("one phase for each row of the trace was expected")
        phases = [name for name, count in data["phases"] for _ in range(count)]
        check_type(phases, list[str], "phases")
        numbers = (column.tolist() for column in columns)
        reached.trace = Trace([Record(*row) for row in zip(*numbers, phases, strict=True)])
        reached.watch = Watch(**data["spent"])
        for name in SAVED:
            setattr(reached, name, moving[name])
        vars(reached.counts).update(vars(Counts(**data["counts"])))
        if remembered is not None:
            objective.remember(remembered)
        cache.fill(*content)

    def _find(self) -> tuple[Any, dict[str, np.ndarray]] | None:
        """Read the last checkpoint, or the previous checkpoint if the last one is damaged. None if there is no checkpoint."""
        older = archive.previous(self.path)
        try:
            return _read(self.path)
        except FileNotFoundError:  # never written, or the process was killed between the two renames of a save
            return _read(older) if older.exists() else None
        except BadArchive as error:
            try:
                found = _read(older)
            except FileNotFoundError:
                raise error from None
            except BadArchive as worse:
                raise BadArchive(f"{error} {worse}") from None
            self.keep = False  # do not replace the good older file by the damaged one
            python_warnings.warn(
                f"{error} The previous checkpoint is used instead: {older}, of step {found[0]['k']}.",
                CheckpointWarning,
                stacklevel=2,
            )
            return found


def _read(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    data, arrays = archive.read(path, KIND, VERSION)
    if not isinstance(data, dict) or set(data) != DATA:
        raise BadArchive(f"{path} can't be used: its data does not have the keys of a checkpoint.")
    return data, arrays


def chosen_before(path: str | os.PathLike[str]) -> Choice | None:
    """The choice of ``method="auto"`` in the saved run. None if there is no checkpoint, or if the user named the method."""
    older = archive.previous(Path(path))
    for file in (Path(path), older):
        try:
            found = _read(file)[0]["problem"]
        except (FileNotFoundError, BadArchive):  # the run itself reports a damaged file, or uses the older one
            continue
        with refusing(file):
            return Choice.stored(found)
    return None


def _shared(objective: Any) -> dict[str, Any]:
    """Objects of the problem to which a snapshot refers. The file has only their names, because a resumed run has the objects."""
    shared = {"objective": unwrapped(objective)}
    return shared | {"pattern": objective.pattern} if hasattr(objective, "pattern") else shared


def validate_content(evaluations: list[Any], values: list[Any], numbers: list[Any]) -> None:
    """Raise TypeError or ValueError if the arguments are not the content of a cache.

    ``restore`` has already validated each object by itself.
    """
    check_type(evaluations, list[tuple[Any, LowRank, float, Structured | None]], "the cached evaluations")
    check_type(values, list[tuple[Any, Factors, np.ndarray]], "the cached values")
    check_type(numbers, list[tuple[Any, Factors, float]], "the cached numbers")
    for objective, x, _, gradient in evaluations:
        if x.shape != objective.shape or (gradient is not None and gradient.pattern is not objective.pattern):
            raise ValueError("a cached evaluation is of another problem")
    for pattern, _, array in values:
        check_array(array, (pattern.size,), "an array of cached values")
        if array.dtype != pattern.dtype:
            raise ValueError(f"cached values of {pattern.dtype} were expected")


def validate_run(moving: dict[str, Any], k: Any, solver: Any, shape: tuple[int, ...]) -> None:
    """Raise TypeError or ValueError if ``moving`` does not have the fields of :class:`Reached` after step ``k``.

    ``restore`` has already validated each object by itself.
    """
    first = -solver.steps if isinstance(solver, WarmStart) else 0
    for name, kind in SAVED.items():
        check_type(moving[name], kind, name, shape)
        if kind is int:
            whole(moving[name], name, least=first if name in ("current_k", "best_k") else 0)
    state = moving["state"]
    warm = isinstance(state, WarmStartState)
    while hasattr(solver, "solver") and not (warm and isinstance(solver, WarmStart)):  # a wrapper, such as Backtracking
        solver = solver.solver
    if warm and (not isinstance(solver, WarmStart) or state.steps != solver.steps):
        raise ValueError("the run has another warm start")
    check_type(state, annotations_of(solver.init).get("return", Any), "state")
    for name, kind in STATE.items():
        check_type(getattr(state, name), kind, f"state.{name}", shape)
    if not warm:
        positive(state.L, "L")
    estimator: Any = getattr(solver, "estimator", None)
    for name, part in (("memory", getattr(solver, "inner", estimator)), ("snapshot", estimator)):
        memory = getattr(state, name, ()) if hasattr(part, "init") else ()
        for value in memory if type(memory) is tuple else (memory,):
            check_type(value, annotations_of(part.init).get("return", Any), f"state.{name}", shape)
    for _, fun in moving["known"]:
        real(fun, "F")
    if any(abs(number) > MAX_COUNT for number in vars(moving["record"]).values() if isinstance(number, int)):
        raise ValueError("a count is too large")
    if whole(k, "k", least=first) != state.k or moving["record"].k != k:
        raise ValueError("the state, the record and the file are of different steps")
