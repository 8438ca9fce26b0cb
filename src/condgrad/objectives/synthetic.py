"""The data of the paper's experiments: a low-rank matrix, few entries observed, some of them corrupted."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from condgrad import checks


@dataclass(frozen=True, eq=False)
class PaperData:
    """Observed ``values`` at (``rows``, ``cols``), where ``corrupted`` marks those that carry noise; ``truth`` is Y."""

    rows: np.ndarray
    cols: np.ndarray
    values: np.ndarray
    truth: np.ndarray
    nuclear_norm: float
    corrupted: np.ndarray


def paper_data(
    m: int,
    n: int,
    rank: int,
    *,
    seed: int,
    generator: str = "orthonormal",
    observe: float = 0.1,
    corrupt: float = 0.05,
    noise: float = 3.0,
) -> PaperData:
    """Y = U V' of the given rank, each entry observed with probability ``observe``; an observed entry has noise added,
    uniform in [-noise, noise], with probability ``corrupt``.

    The paper does not say how Y is made. 'orthonormal': U and V have orthonormal columns, so the nuclear norm of Y is
    the rank, which is the paper's radius. 'gaussian': normal U and V, divided by sqrt(rank), so entries of size 1.
    """
    checks.choice(generator, ("orthonormal", "gaussian"), "generator")
    m, n, rank = checks.whole(m, "m"), checks.whole(n, "n"), checks.whole(rank, "The rank")
    if rank > min(m, n):
        raise ValueError(f"The rank of a {m} x {n} matrix is at most {min(m, n)}, but got {rank}.")
    observe, corrupt = checks.probability(observe, "observe"), checks.probability(corrupt, "corrupt")
    noise = checks.not_negative(noise, "noise")

    rng = np.random.default_rng(seed)
    U, V = rng.standard_normal((m, rank)), rng.standard_normal((n, rank))
    if generator == "orthonormal":
        U, V = np.linalg.qr(U)[0], np.linalg.qr(V)[0]
    else:
        U = U / np.sqrt(rank)
    truth = U @ V.T
    core = np.linalg.qr(U)[1] @ np.linalg.qr(V)[1].T  # has the singular values of Y, and is small
    rows, cols = np.nonzero(rng.random((m, n)) < observe)
    corrupted = rng.random(len(rows)) < corrupt
    values = truth[rows, cols] + np.where(corrupted, rng.uniform(-noise, noise, len(rows)), 0.0)
    return PaperData(rows, cols, values, truth, float(np.linalg.norm(core, "nuc")), corrupted)
