"""Outcomes of runs in files, so that none is made twice."""

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
from condgrad.paper.runs import COLUMNS, ENDED, MADE, Outcome, Run, failed
from condgrad.storage import atomic
from condgrad.storage.atomic import write_text
from condgrad.storage.files import read_json

FORMAT = 3
"""Of the files of outcomes; a file of another format is not used."""
MAKE_RUNS = ("runs.py", "worker.py", "pool.py")
"""The files of this folder that have a say in what comes of a run; the others choose runs and speak of them."""
NEEDED = {"trace": ("trace",), "output": ("mapping", "gap"), "recovery": ("error", "point")}
"""What an outcome has for what was to be kept, besides how the run ended and where it was made."""


@cache
def code() -> dict[str, str]:
    """What an outcome depends on besides its run: condgrad's source, and the libraries that do the arithmetic."""
    versions = {name: version(name) for name in ("numpy", "scipy", "numba")}
    source = digest(Path(condgrad.__file__).parent)
    return {"condgrad": condgrad.__version__, "source": source, "Python": platform.python_version(), **versions}


def digest(package: Path) -> str:
    """Of the files that runs depend on: neither the report, nor the command line, nor what is said of runs."""
    found = hashlib.sha256()
    for path in sorted(package.rglob("*.py")):
        inside = path.relative_to(package)
        spoken = inside.parts[0] == "paper" and inside.name not in MAKE_RUNS
        if not spoken and inside.parts[0] not in ("report", "cli"):
            found.update(f"{inside.as_posix()}\0".encode() + hashlib.sha256(path.read_bytes()).digest())
    return found.hexdigest()[:24]


class Cache:
    """Outcomes in a folder, each in a file that is named after the hash of its run and of the code that made it."""

    def __init__(self, folder: Path, code: Mapping[str, str]):
        self.folder, self.code = folder, code

    def key(self, run: Run) -> str:
        whole = {"format": FORMAT, "code": dict(self.code), "run": run}
        return hashlib.sha256(json.dumps(whole, sort_keys=True, allow_nan=False).encode()).hexdigest()[:24]

    def path(self, run: Run) -> Path:
        return self.folder / f"{self.key(run)}.json"

    def get(self, run: Run) -> Outcome | None:
        """Return None if the run is not in the cache; an unreadable file is reported and treated as missing."""
        path = self.path(run)
        try:
            kept = read_json(path)
            if kept["run"] != json.loads(json.dumps(run)):
                raise ValueError("it is of another run")
            check(run, kept["outcome"])
            return dict(kept["outcome"])
        except FileNotFoundError:
            return None
        except (ValueError, KeyError, TypeError, AttributeError) as error:
            print(f"condgrad: {path} is damaged ({error}): its run is made again.", file=sys.stderr)
            return None

    def put(self, run: Run, outcome: Outcome) -> None:
        """A run that failed is not kept: another time it may not."""
        if not failed(outcome):
            self.folder.mkdir(parents=True, exist_ok=True)
            write_text(self.path(run), json.dumps({"run": run, "outcome": outcome}, allow_nan=False))

    def drop(self, run: Run) -> None:
        self.path(run).unlink(missing_ok=True)

    def sweep(self) -> None:
        """Remove what writers that were killed have left."""
        atomic.sweep(self.folder)


def check(run: Run, outcome: Outcome) -> None:
    what = run["keep"]["what"]
    wanted = [(outcome, (*ENDED, "made", *NEEDED[what])), (outcome.get("made", {}), MADE)]
    wanted += [(outcome.get("trace", {}), COLUMNS)] if what == "trace" else []
    missing = [name for held, names in wanted for name in names if name not in held]
    if missing:
        raise ValueError(f"it has no {', '.join(missing)}")
