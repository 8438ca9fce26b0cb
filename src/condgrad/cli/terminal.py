"""Messages that can't do anything to a terminal, whatever names they hold."""

from __future__ import annotations

import sys
from typing import Any


def printable(text: str) -> str:
    """The text with its control characters escaped, but for newlines: a name can't move the cursor or clear the screen.

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
    """Print a message on standard output, or on another stream, with control characters escaped.

    Parameters
    ----------
    *texts : Any
        One a line.
    stream : text file object, optional
    """
    print(*(printable(str(text)) for text in texts), sep="\n", file=stream or sys.stdout)
