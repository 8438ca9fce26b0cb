"""Algorithm 1, non-convex conditional gradient sliding (NCGS), with the parameters of Theorem 1.

prox(l, u, lam, k) -> point stands for condg(l, u, lam, eta_k). Index k of a list is the value after k steps.
"""

import numpy as np


def option_1(grad, prox, theta0, L, N, lam=None):
    """Algorithm 1, option I: theta_ag_k = theta_md_k - beta_k g~ with g~ = (theta_{k-1} - theta_k) / lambda_k.

    lambda_k = beta_k (Theorem 1), or lam(k, beta_k).
    """
    theta = [np.array(theta0, dtype=float)]
    ag = [np.array(theta0, dtype=float)]
    md = [None]
    for k in range(1, N + 1):
        alpha_k = 2 / (k + 1)
        beta_k = 1 / (2 * L)
        lam_k = beta_k if lam is None else lam(k, beta_k)
        md_k = (1 - alpha_k) * ag[k - 1] + alpha_k * theta[k - 1]
        theta_k = prox(grad(md_k), theta[k - 1], lam_k, k)
        ag_k = md_k - beta_k * (theta[k - 1] - theta_k) / lam_k
        md.append(md_k)
        theta.append(theta_k)
        ag.append(ag_k)
    return {"theta": theta, "md": md, "ag": ag}


def option_2(grad, prox, theta0, L, N):
    """Algorithm 1, option II: theta_ag_k = condg(grad F(theta_md_k), theta_md_k, beta_k, chi_k).

    lambda_k = k beta_k / 2 (Theorem 1). prox is called twice in step k, first for theta_k and then for theta_ag_k.
    """
    theta = [np.array(theta0, dtype=float)]
    ag = [np.array(theta0, dtype=float)]
    md = [None]
    for k in range(1, N + 1):
        alpha_k = 2 / (k + 1)
        beta_k = 1 / (2 * L)
        lam_k = k * beta_k / 2
        md_k = (1 - alpha_k) * ag[k - 1] + alpha_k * theta[k - 1]
        g_k = grad(md_k)
        theta_k = prox(g_k, theta[k - 1], lam_k, k)
        ag_k = prox(g_k, md_k, beta_k, k)
        md.append(md_k)
        theta.append(theta_k)
        ag.append(ag_k)
    return {"theta": theta, "md": md, "ag": ag}
