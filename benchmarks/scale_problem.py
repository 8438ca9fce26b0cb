"""The problem of benchmarks/scale.py: entries of a gaussian matrix of low rank, some of them outliers."""

from __future__ import annotations

import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np

import condgrad as cg
from condgrad import kernels

RANK, OUTLIERS, NOISE, TARGET = 20, 0.05, 3.0, 1e-3
SHARE = 0.9
"""The radius, as a share of the truth's nuclear norm."""


def draw(m: int, n: int, rank: int, entries: int, seed: int) -> tuple[np.ndarray, np.ndarray, np.ndarray, float]:
    """Rows, columns and values of a gaussian matrix of this rank, some corrupted; and the matrix's nuclear norm."""
    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)) / np.sqrt(rank), rng.standard_normal((n, rank))
    flat = np.sort(rng.integers(m * n, size=entries + entries // 10))
    flat = flat[np.append(True, np.diff(flat) > 0)]
    flat = flat[np.sort(rng.permutation(len(flat))[:entries])]
    rows, cols = (flat // n).astype(np.int32), (flat % n).astype(np.int32)
    values = kernels.sample_at(rows, cols, U, V)
    bad = rng.random(len(values)) < OUTLIERS
    values[bad] += rng.uniform(-NOISE, NOISE, int(bad.sum()))
    core = np.linalg.qr(U)[1] @ np.linalg.qr(V)[1].T
    return rows, cols, values, float(np.linalg.norm(core, "nuc"))


def problem(size: int, entries: int, dtype: str = "float64") -> tuple[cg.Completion, cg.NuclearBall]:
    """The problem with values of this type. Another process draws it, so that this one's memory is the solver's alone."""
    with tempfile.TemporaryDirectory() as folder:
        code = (
            "import sys, numpy as np; from benchmarks.scale_problem import draw, RANK; "
            "d = draw(int(sys.argv[1]), int(sys.argv[1]), RANK, int(sys.argv[2]), 0); "
            "[np.save(f'{sys.argv[3]}/{i}.npy', a) for i, a in enumerate(d)]"
        )
        subprocess.run([sys.executable, "-c", code, str(size), str(entries), folder], check=True)
        rows, cols, values, nuclear = (np.load(Path(folder) / f"{i}.npy") for i in range(4))
    objective = cg.Completion(rows, cols, values.astype(dtype, copy=False), (size, size), cg.Welsch(1.0))
    return objective, cg.NuclearBall((size, size), SHARE * float(nuclear))
