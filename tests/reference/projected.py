"""The methods that project: projected gradient, and accelerated gradient (Ghadimi and Lan 2016)."""

import numpy as np


def projected_gradient(grad, project, x0, gamma, N):
    """x_k = psi(x_{k-1}, grad F(x_{k-1}), gamma) = project(x_{k-1} - gamma grad F(x_{k-1})); returns x_0 .. x_N."""
    x = [np.array(x0, dtype=float)]
    for k in range(1, N + 1):
        x.append(project(x[k - 1] - gamma * grad(x[k - 1])))
    return x


def accelerated_gradient(grad, project, x0, L, N):
    """Accelerated gradient (Ghadimi and Lan 2016): alpha_k = 2/(k+1), beta = 1/(2L), lambda_k = k beta/2.

    x_md = (1 - alpha_k) x_ag + alpha_k x
    x = project(x - lambda_k grad F(x_md))
    x_ag = project(x_md - beta grad F(x_md))
    """
    x = [np.array(x0, dtype=float)]
    ag = [np.array(x0, dtype=float)]
    md = [None]
    for k in range(1, N + 1):
        alpha_k = 2 / (k + 1)
        beta = 1 / (2 * L)
        lam_k = k * beta / 2
        md_k = (1 - alpha_k) * ag[k - 1] + alpha_k * x[k - 1]
        g_k = grad(md_k)
        x_k = project(x[k - 1] - lam_k * g_k)
        ag_k = project(md_k - beta * g_k)
        md.append(md_k)
        x.append(x_k)
        ag.append(ag_k)
    return {"x": x, "md": md, "ag": ag}
