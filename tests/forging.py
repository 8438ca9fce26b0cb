"""Model files that were changed by hand, with checksums that hold."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

from condgrad.learn.storage import VERSION
from condgrad.storage import archive
from condgrad.storage.snapshot import Serialised, restore, snapshot


def content(path: Path, kind: str) -> Any:
    """The parameters and the fitted attributes that a file holds."""
    data, arrays = archive.read(path, kind, VERSION)
    return restore(Serialised(**data, arrays=arrays))


def rewrite(path: Path, kind: str, found: Any) -> None:
    made = snapshot(found)
    archive.write(path, kind, VERSION, {"tree": made.tree, "nodes": made.nodes}, made.arrays)


def forge(path: Path, forged: Path, kind: str, change: Callable[[Any], Any]) -> None:
    """The file at ``path``, with its content changed."""
    found = content(path, kind)
    change(found)
    rewrite(forged, kind, found)
