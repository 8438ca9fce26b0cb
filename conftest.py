"""Tests run in parallel processes: one BLAS thread each, or they fight for the cores. Set before numpy is imported."""

import os

for library in ("OPENBLAS_NUM_THREADS", "OMP_NUM_THREADS", "MKL_NUM_THREADS"):
    os.environ.setdefault(library, "1")
