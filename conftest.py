"""Tests run in parallel processes: one BLAS thread each, or they fight for the cores. Set before numpy is imported."""

import os
from pathlib import Path

import pytest

for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")

DATA = Path(__file__).resolve().parent.parent / "shared" / "data"
ON_DATA = {"gallery.md": ("traffic/Hangzhou_tensor.mat", "ml-100k/u.data")}
"""Pages whose examples read data that are not ours to hand on."""


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        for name in ON_DATA.get(item.path.name, ()):
            if not (DATA / name).exists():
                item.add_marker(pytest.mark.skip(reason=f"{name} is not in ../shared/data"))
