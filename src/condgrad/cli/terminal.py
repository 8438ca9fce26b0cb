"""Printing of messages with control characters escaped, so that names in data files cannot control the terminal."""

from __future__ import annotations

import sys
from typing import Any


def printable(text: str) -> str:
    """Escape the control characters of a text except newlines, so that it cannot move the cursor or clear the screen.

    Parameters
    ----------
    text : str

    Returns
    -------
    text : str
    """
    if text.isprintable():
        return text
    return "".join(c if c.isprintable() or c == "\n" else repr(c)[1:-1] for c in text)


def say(*texts: Any, stream: Any = None) -> None:
    """Print a message with control characters escaped.

    Parameters
    ----------
    *texts : Any
        Texts to print, one per line.
    stream : text file object, optional
        By default standard output.
    """
    print(*(printable(str(text)) for text in texts), sep="\n", file=stream or sys.stdout)
