"""Algorithm 3, stochastic non-convex conditional gradient sliding, for problem (2), with Theorem 2's parameters."""

import numpy as np


def run(draw, sample_grads, prox, theta0, L, N, seed, m=lambda k: k):
    """Algorithm 3 for N steps: option II with G_k = (1/m_k) sum_i G(theta_md_k, xi_{k,i}), the mean of equation (3).

    Step k draws its m(k) samples from default_rng((seed, k)). prox(l, u, lam, k) is called first for theta_k, then for
    theta_ag_k. The paper's output is md[R], with R drawn by stopping_probabilities(N).
    """
    theta = [np.array(theta0, dtype=float)]
    ag = [np.array(theta0, dtype=float)]
    md = [None]
    for k in range(1, N + 1):
        rng = np.random.default_rng((seed, k))
        alpha_k = 2 / (k + 1)
        beta_k = 1 / (2 * L)
        lam_k = k * beta_k / 2
        md_k = (1 - alpha_k) * ag[k - 1] + alpha_k * theta[k - 1]
        G_k = np.mean(sample_grads(md_k, draw(m(k), rng)), axis=0)
        theta_k = prox(G_k, theta[k - 1], lam_k, k)
        ag_k = prox(G_k, md_k, beta_k, k)
        md.append(md_k)
        theta.append(theta_k)
        ag.append(ag_k)
    return {"theta": theta, "md": md, "ag": ag}


def stopping_probabilities(N):
    """Theorem 2: p_k = Gamma_k^-1 / sum_k Gamma_k^-1 with Gamma_k = 2/(k(k+1)); entry k - 1 is p_k."""
    Gamma = np.array([2 / (k * (k + 1)) for k in range(1, N + 1)])
    return (1 / Gamma) / np.sum(1 / Gamma)
