"""Fixtures that several files use."""

from __future__ import annotations

import pytest

from condgrad.driver import clock


@pytest.fixture
def fake_clock(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    """Time that passes only when a test says so: timings never decide a test."""
    time = [0.0]
    monkeypatch.setattr(clock, "perf_counter", lambda: time[0])
    monkeypatch.setattr(clock, "process_time", lambda: 2 * time[0])
    return time
