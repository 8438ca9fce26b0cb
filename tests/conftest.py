"""Fixtures that several files use."""

from __future__ import annotations

import os

import pytest

from condgrad.runtime import clock
from condgrad.runtime.progress import SWITCH

# Progress is written after some seconds: what a command writes must not depend on how fast the machine is.
os.environ[SWITCH] = "0"


@pytest.fixture
def progress(monkeypatch: pytest.MonkeyPatch) -> None:
    """Progress as users have it, for tests of progress, which bring a clock of their own."""
    monkeypatch.delenv(SWITCH)


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that passes only when a test says so: timings never decide a test."""
    time = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: time[0])
    monkeypatch.setattr(clock, "process_time", lambda: 2 * time[0])
    return time
