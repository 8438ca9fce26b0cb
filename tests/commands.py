"""Commands as a user types them."""

from __future__ import annotations

from typing import Any

import pytest

from condgrad.cli import BAD_INPUT, main

HUNG = 600.0
"""Seconds after which a process that a test started is given up as hung: far more than the slowest machine needs."""


def refused(capsys: pytest.CaptureFixture[str], *arguments: Any) -> str:
    """The one sentence that a command ends with."""
    capsys.readouterr()
    assert main([str(argument) for argument in arguments]) == BAD_INPUT
    told = capsys.readouterr()
    assert told.out == "" and told.err.startswith("condgrad: ") and told.err.count("\n") == 1
    assert "Traceback" not in told.err
    return told.err
