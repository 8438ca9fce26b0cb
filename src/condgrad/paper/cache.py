"""Cache of the outcomes of runs, one JSON file each, so that no run is repeated."""

from __future__ import annotations

import hashlib
import json
import platform
import sys
from collections.abc import Mapping
from functools import cache
from importlib.metadata import version
from pathlib import Path

import condgrad
from condgrad.paper.runs import COLUMNS, CONDITION_KEYS, ENDING_KEYS, Outcome, Run, failed
from condgrad.storage import atomic
from condgrad.storage.atomic import write_text
from condgrad.storage.files import read_json

FORMAT = 3
"""Version of the file format. It is part of the key, so files of another version are not used."""
RUN_FILES = ("runs.py", "worker.py", "pool.py")
"""Files of this package on which the outcome of a run depends. The others choose runs and report on them."""
REQUIRED_KEYS = {"trace": ("trace",), "output": ("mapping", "gap"), "recovery": ("error", "point")}
"""Required keys of an outcome by kind (``run["keep"]["what"]``), besides ``ENDING_KEYS`` and ``CONDITION_KEYS``."""


@cache
def code_versions() -> dict[str, str]:
    """Version and source hash of condgrad, and versions of the libraries on which numerical results depend."""
    versions = {name: version(name) for name in ("numpy", "scipy", "numba")}
    source = source_digest(Path(condgrad.__file__).parent)
    return {"condgrad": condgrad.__version__, "source": source, "Python": platform.python_version(), **versions}


def source_digest(package: Path) -> str:
    """Hash of the source files on which runs depend: all except the report, the command line and the evaluation of runs."""
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        relative = path.relative_to(package)
        reporting_only = relative.parts[0] == "paper" and relative.name not in RUN_FILES
        if not reporting_only and relative.parts[0] not in ("report", "cli"):
            found.update(f"{relative.as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:24]


class Cache:
    """Folder of outcomes. The name of a file is the hash of its run and of the code that performed the run."""

    def __init__(self, folder: Path, code_versions: Mapping[str, str]):
        self.folder, self.code = folder, code_versions

    def key(self, run: Run) -> str:
        content = {"format": FORMAT, "code": dict(self.code), "run": run}
        return hashlib.sha256(json.dumps(content, sort_keys=True, allow_nan=False).encode()).hexdigest()[:24]

    def path(self, run: Run) -> Path:
        return self.folder / f"{self.key(run)}.json"

    def get(self, run: Run) -> Outcome | None:
        """Outcome of the run, or None if it is not in the cache. A damaged file is reported on stderr and treated as missing."""
        path = self.path(run)
        try:
            stored = read_json(path)
            if stored["run"] != json.loads(json.dumps(run)):
                raise ValueError("it belongs to another run")
            check_outcome(run, stored["outcome"])
            return dict(stored["outcome"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"condgrad: {path} is damaged ({error}): the run is repeated.", file=sys.stderr)
            return None

    def put(self, run: Run, outcome: Outcome) -> None:
        """Store the outcome, unless the run failed: a repetition may succeed."""
        if not failed(outcome):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self.path(run), json.dumps({"run": run, "outcome": outcome}, allow_nan=False))

    def drop(self, run: Run) -> None:
        self.path(run).unlink(missing_ok=True)

    def remove_leftovers(self) -> None:
        """Remove temporary files of processes that were killed."""
        atomic.remove_leftovers(self.folder)


def check_outcome(run: Run, outcome: Outcome) -> None:
    """Raise ValueError if a key is missing that this kind of run must have."""
    what = run["keep"]["what"]
    wanted = [(outcome, (*ENDING_KEYS, "made", *REQUIRED_KEYS[what])), (outcome.get("made", {}), CONDITION_KEYS)]
    wanted += [(outcome.get("trace", {}), COLUMNS)] if what == "trace" else []
    missing = [name for mapping, names in wanted for name in names if name not in mapping]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
