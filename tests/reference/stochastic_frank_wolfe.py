"""SFW, SVFW, SAGAFW and their forms for expectations (Reddi, Sra, Poczos and Smola 2016).

Every step is x_k = x_{k-1} + t(k) (s - x_{k-1}) with s = lmo(v), k from 1; the methods differ in v, the estimate of
grad F(x_{k-1}). All of step k's randomness comes from default_rng((seed, k)). Each returns x_0 .. x_N.
"""

import numpy as np


def sfw(term_grad, n, lmo, x0, t, b, N, seed):
    """SFW: v = mean over I of grad f_i(x), |I| = b."""
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        x_k = x[k - 1]
        rng = np.random.default_rng((seed, k))
        I_k = rng.integers(n, size=b)
        v = sum(term_grad(x_k, i) for i in I_k) / b
        x.append(x_k + t(k) * (lmo(v) - x_k))
    return x


def svfw(term_grad, n, lmo, x0, t, m, b, N, seed):
    """SVFW: v = mean over I of (grad f_i(x) - grad f_i(snapshot)) + grad F(snapshot); a snapshot every m steps."""
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        x_k = x[k - 1]
        rng = np.random.default_rng((seed, k))
        if (k - 1) % m == 0:
            snapshot = x_k
            g = sum(term_grad(snapshot, i) for i in range(n)) / n
        I_k = rng.integers(n, size=b)
        v = sum(term_grad(x_k, i) - term_grad(snapshot, i) for i in I_k) / b + g
        x.append(x_k + t(k) * (lmo(v) - x_k))
    return x


def sagafw(term_grad, n, lmo, x0, t, b, N, seed):
    """SAGAFW: v = mean over I of (grad f_i(x) - table_i) + mean(table); then table_j = grad f_j(x) for j in J.

    I, with its repetitions, and J, as a set, are independent batches, drawn in that order. The table starts at x_0, and
    is brought up to date at the point before the move.
    """
    x = [np.array(x0, dtype=float)]
    table = [term_grad(x[0], i) for i in range(n)]
    for k in range(1, N + 1):
        x_k = x[k - 1]
        rng = np.random.default_rng((seed, k))
        I_k = rng.integers(n, size=b)
        J_k = np.unique(rng.integers(n, size=b))
        v = sum(term_grad(x_k, i) - table[i] for i in I_k) / b + sum(table) / n
        x.append(x_k + t(k) * (lmo(v) - x_k))
        for j in J_k:
            table[j] = term_grad(x_k, j)
    return x


def svfw_s(draw, sample_grads, lmo, x0, t, m, b, B, N, seed):
    """SVFW-S: SVFW for an expectation; the snapshot's gradient is the mean over B fresh samples.

    A snapshot step draws the B samples first and its b samples second, from the one generator.
    """
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        x_k = x[k - 1]
        rng = np.random.default_rng((seed, k))
        if (k - 1) % m == 0:
            snapshot = x_k
            big = draw(B, rng)
            g = np.mean(sample_grads(snapshot, big), axis=0)
        batch = draw(b, rng)
        v = np.mean(sample_grads(x_k, batch) - sample_grads(snapshot, batch), axis=0) + g
        x.append(x_k + t(k) * (lmo(v) - x_k))
    return x


def sagafw_s(draw, sample_grads, lmo, x0, t, n, b, N, seed):
    """SAGAFW-S: SAGAFW on n samples, drawn once from default_rng((seed, 0, 4))."""
    sample = draw(n, np.random.default_rng((seed, 0, 4)))
    return sagafw(lambda x, i: sample_grads(x, sample[[i]])[0], n, lmo, x0, t, b, N, seed)
