"""Checkpoints: a run that was killed goes on as if it had not been, bit for bit."""

from __future__ import annotations

import errno
import os
import warnings as python_warnings
from dataclasses import asdict, dataclass
from pathlib import Path
from time import monotonic
from typing import Any

import numpy as np

from condgrad.checks import positive, whole
from condgrad.driver.counting import Counts
from condgrad.driver.fingerprint import Fingerprint, differences
from condgrad.driver.snapshot import Frozen, freeze, thaw
from condgrad.driver.trace import COLUMNS, Trace
from condgrad.driver.validate import check_run, check_spent
from condgrad.protocols import Record
from condgrad.runtime.clock import Watch
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive
from condgrad.storage.atomic import check_folder, resolve_link

KIND, VERSION = "checkpoint", 2
SHARE = 0.05
"""The share of the time that saving may take, where it goes by the clock."""
SHOWN = 3
"""Maximum number of differences between the problem and the checkpoint that a message lists."""
MOVES = (
    "state",
    "record",
    "current",
    "current_k",
    "best",
    "best_k",
    "lowest",
    "known",
    "idle",
    "unconfirmed",
    "next_check",
    "noticed",
    "next_measure",
    "next_gap",
)
"""Attributes of a run that change and are not counted, timed or traced. Whether a claim was verified is not saved: it is
verified again."""


HELD = {"k", "problem", "counts", "spent", "rows", "tree", "nodes"}
"""The plain data in the file."""


class CheckpointWarning(UserWarning):
    """A checkpoint could not be written, or the last one could not be read and the one before it was used."""


@dataclass(frozen=True)
class Checkpoint:
    """Where and how often a run is saved.

    Parameters
    ----------
    path : path-like
        The checkpoint file.
    seconds : float, default 30.0
        Time between two saves. It is longer if saving would take more than a twentieth of the run time.
    steps : int, default None
        Save after every ``steps`` steps. None: by time.
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


@dataclass(frozen=True)
class _Moment:
    """All of a run after one step, as plain data and (references to) arrays."""

    k: int
    rows: int
    """Of the trace, those before this step's."""
    frozen: Frozen
    counts: dict[str, int]
    spent: dict[str, float]


class Saving:
    """Saves a run as it goes: a file that can't be written costs a warning, never the run."""

    def __init__(self, checkpoint: Checkpoint, problem: Fingerprint, resume: bool):
        self.path, self.checkpoint, self.problem, self.resume = Path(checkpoint.path), checkpoint, problem, resume
        self.moment: _Moment | None = None
        self.saved: int | None = None
        """The step of the last checkpoint that was written or read."""
        self.failure = ""
        self.keep = True
        self.due = monotonic() + checkpoint.seconds
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

    def after(self, run: Any) -> None:
        """Keep this step in mind, as it is before its row of the trace, and save it when that is due."""
        objective = run.problem.objective
        moving = {name: getattr(run, name) for name in MOVES}
        remembered = objective.remembered() if hasattr(objective, "remembered") else None
        self.moment = _Moment(
            run.state.k,
            len(run.trace),
            freeze([moving, remembered], _patterns(objective)),
            asdict(run.counts),
            {"seconds": run.watch.seconds, "cpu": run.watch.cpu, "wall": run.watch.wall},
        )
        steps = self.checkpoint.steps
        if (run.state.k % steps == 0 and run.state.k > 0) if steps else monotonic() >= self.due:
            self.save(run.trace)

    def save(self, trace: Trace) -> None:
        """Write the step that is in mind."""
        moment, begun = self.moment, monotonic()
        if moment is None or moment.k == self.saved:
            return
        try:
            self._write(moment, trace)
            self.saved, self.failure, self.keep = moment.k, "", True
        except (OSError, MemoryError) as error:
            reason = getattr(error, "strerror", None) or "not enough memory"
            first, self.failure = not self.failure, reason
            if first:
                python_warnings.warn(
                    f"The checkpoint {self.path} could not be written after step {moment.k}: {reason}. The run goes on and "
                    "tries again.",
                    CheckpointWarning,
                    stacklevel=2,
                )
        now = monotonic()
        self.due = now + max(self.checkpoint.seconds, (now - begun) / SHARE)

    def _write(self, moment: _Moment, trace: Trace) -> None:
        rows = trace[: moment.rows]
        arrays = {f"trace.{name}": rows[name] for name in COLUMNS} if moment.rows else {}
        arrays |= {str(number): array for number, array in enumerate(moment.frozen.arrays)}
        data = {
            "k": moment.k,
            "problem": self.problem,
            "counts": moment.counts,
            "spent": moment.spent,
            "rows": moment.rows,
            "tree": moment.frozen.tree,
            "nodes": moment.frozen.nodes,
        }
        archive.write(self.path, KIND, VERSION, data, arrays, keep=self.keep)

    def warnings(self) -> tuple[str, ...]:
        """What the result must say."""
        if not self.failure:
            return ()
        last = "there is no checkpoint" if self.saved is None else f"the last checkpoint is from step {self.saved}"
        return (f"The checkpoint {self.path} could not be written: {self.failure}; {last}.",)

    # ------------------------------------------------------------------------------------------------- reading

    def restore(self, run: Any) -> None:
        """Bring the run to where the checkpoint was written, if there is one."""
        found = self._find() if self.resume else None
        if found is None:
            return
        data, arrays = found
        try:
            saved, changed = data["k"], differences(data["problem"], self.problem)
            if not changed:
                self._put(data, arrays, run)
        except (LookupError, TypeError, ValueError, AttributeError, OverflowError) as error:
            raise BadArchive(f"{self.path} can't be used: what it holds does not fit together.") from error
        if changed:
            more = f", and {len(changed) - SHOWN} more" if len(changed) > SHOWN else ""
            raise ValueError(
                f"The checkpoint {self.path} is of another run: {'; '.join(changed[:SHOWN])}{more}. Ask for what it was asked, "
                "or name another file."
            )
        self.saved = saved

    def _put(self, data: Any, arrays: dict[str, np.ndarray], run: Any) -> None:
        objective = run.problem.objective
        numbered = [arrays[str(number)] for number in range(len(arrays) - len(COLUMNS) * bool(data["rows"]))]
        moving, remembered = thaw(Frozen(data["tree"], data["nodes"], numbered), _patterns(objective))
        check_run(moving, data["k"], run.solver, tuple(run.x0.shape))
        check_spent(data["counts"], data["spent"])
        columns = [arrays[f"trace.{name}"].tolist() for name in COLUMNS] if data["rows"] else []
        if any(arrays[f"trace.{name}"].ndim != 1 for name in COLUMNS if data["rows"]):
            raise ValueError("a trace of no rows")
        run.trace = Trace([Record(*row) for row in zip(*columns, strict=True)])
        run.watch = Watch(**data["spent"])
        if len(run.trace) != whole(data["rows"], "rows", least=0):
            raise ValueError("a trace of another length")
        for name in MOVES:
            setattr(run, name, moving[name])
        vars(run.counts).update(vars(Counts(**data["counts"])))
        if remembered is not None:
            objective.remember(remembered)

    def _find(self) -> tuple[Any, dict[str, np.ndarray]] | None:
        """The last checkpoint, or the one before it where the last is damaged."""
        older = archive.previous(self.path)
        try:
            return _read(self.path)
        except FileNotFoundError:  # never written, or killed between its two renames
            return _read(older) if older.exists() else None
        except BadArchive as error:
            try:
                found = _read(older)
            except FileNotFoundError:
                raise error from None
            except BadArchive as worse:
                raise BadArchive(f"{error} {worse}") from None
            self.keep = False  # or the damaged one would take the place of the good one
            python_warnings.warn(
                f"{error} The one before it, {older}, is used, of step {found[0]['k']}.",
                CheckpointWarning,
                stacklevel=2,
            )
            return found


def _read(path: Path) -> tuple[Any, dict[str, np.ndarray]]:
    data, arrays = archive.read(path, KIND, VERSION)
    if not isinstance(data, dict) or set(data) != HELD:
        raise BadArchive(f"{path} can't be used: it does not hold what a checkpoint does.")
    return data, arrays


def _patterns(objective: Any) -> dict[str, Any]:
    return {"pattern": objective.pattern} if hasattr(objective, "pattern") else {}
