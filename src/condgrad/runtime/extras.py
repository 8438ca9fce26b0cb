"""Optional dependencies, and the error for a missing one, which names the extra of condgrad that installs it."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

EXTRAS = {
    "distributed": ("distributed", "dask"),
    "highspy": ("highspy", "lp"),
    "matplotlib": ("matplotlib", "plot"),
    "networkx": ("networkx", "graph"),
    "ot": ("pot", "transport"),
    "pandas": ("pandas", "table"),
    "PIL": ("pillow", "learn"),
    "pyarrow": ("pyarrow", "table"),
    "sklearn": ("scikit-learn", "learn"),
}
"""Imported module -> (distribution that contains it, extra of condgrad that installs it)."""


class MissingExtra(ImportError):
    """An optional dependency is not installed; the message has the pip command."""


@contextmanager
def needed_for(purpose: str) -> Iterator[None]:
    """Context for importing an optional dependency. If the dependency is not installed, the error names the pip command.

    Parameters
    ----------
    purpose : str
        What the import is for, as the subject of a sentence in the plural: "Parquet files".

    Raises
    ------
    MissingExtra
        If a module in `EXTRAS` is not installed. Any other ImportError, such as the error of a broken installation, is passed on.
    """
    try:
        yield
    except ModuleNotFoundError as error:
        module = (error.name or "").partition(".")[0]  # pyarrow.parquet belongs to pyarrow
        if module not in EXTRAS:
            raise
        distribution, extra = EXTRAS[module]
        command = f"pip install 'condgrad[{extra}]'"
        message = f"{purpose} need {distribution}, which is not installed: {command}."
        raise MissingExtra(message, name=error.name) from None
