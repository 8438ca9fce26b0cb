"""Benchmarks: ``python -m benchmarks.NAME [--check] [--quick] [--out DIR]``. Each prints a table and checks its claims."""

import os

# One thread for linear algebra: these matrices are small, and a count of seconds should not depend on what else runs.
for _variable in ("OMP_NUM_THREADS", "OPENBLAS_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(_variable, "1")
