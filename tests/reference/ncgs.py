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


def option_1_adaptive(value, grad, prox, theta0, L, N, eps, first, least):
    """Option I with lambda_k = beta_k = 1/(2 L_k), where L_k <= L is raised until the descent inequality holds.

    prox(l, u, lam, floor) -> (point, its Wolfe gap), accurate to the floor or in proportion to the way. A step with L itself
    is due when the mapping with 1/(2 L_k) is so small that it pays to certify it: ``demand`` times below eps.
    """
    theta = [np.array(theta0, dtype=float)]
    used, demands, dues = [first * L], [1.0], [False]
    begin = first * L
    for _ in range(N):
        x, due, demand = theta[-1], dues[-1], demands[-1]
        g, before = grad(x), value(x)
        L_k = L if due else min(begin, L)
        while True:
            lam = 1 / (2 * L_k)
            y, gap = prox(g, x, lam, lam / demand * eps / 4)
            way = np.sum((y - x) ** 2)
            after, slope = value(y), np.sum(g * (y - x))
            rho = 2 * (after - before - slope) / way if way > 0 else 0.0
            noise = 2e-12 * (abs(before) + abs(after) + abs(slope)) / way if way > 0 else 0.0
            if noise > L_k and L_k < L and 2e-14 * np.linalg.norm(g) < L_k * np.sqrt(way):
                g_y = grad(y)  # the gradients show the curvature
                rho = np.sum((g_y - g) * (y - x)) / way
                noise = 1e-14 * (np.linalg.norm(g) + np.linalg.norm(g_y)) / np.sqrt(way)
            if L_k >= L or rho <= L_k + noise:
                break
            L_k = min(max(2 * L_k, rho), L)
        mapping = (np.sqrt(way) / lam + np.sqrt(max(gap, 0.0) / lam)) ** 2
        if not due:
            begin = max(min(max(rho, L_k / 2), L_k), least * L)
        theta.append(y)
        used.append(L_k)
        demands.append(max(demand, 2 * mapping / eps) if due else demand)
        dues.append(bool(L_k < L and mapping * demand <= eps))
    return {"theta": theta, "L": used, "demand": demands, "due": dues}
