"""Frank-Wolfe for a smooth, possibly non-convex F (Lacoste-Julien 2016), with nine step rules."""

import numpy as np
from scipy.optimize import minimize_scalar


def run(F, grad, lmo, x0, N, rule, L=None, D=None):
    """x_{k+1} = x_k + t_k d_k with s_k = lmo(grad F(x_k)), d_k = s_k - x_k, gap_k = <grad F(x_k), x_k - s_k>.

    short     t = min(1, gap / (L |d|^2))
    lacoste   t = min(1, gap / (L D^2))  (Lacoste-Julien 2016, C = L D^2)
    open      t = 2 / (k + 2), k from 0
    adaptive  t = min(1, gap / (M |d|^2)), M by backtracking (Pedregosa, Negiar, Askari and Jaggi 2020)
    sqrt      t = 1 / sqrt(k + 1)
    monotone  t = 2 / (k + 2) / 2^j with the least j for which F does not increase
    line      t = argmin over [0, 1] of F(x + t d), by Brent's method
    golden    the same, by golden-section search
    secant    <grad F(x + t d), d> = 0, by the secant method in an interval

    Returns x_0 .. x_N. Where d = 0 the iterate stays, and so does M.
    """
    x = [np.array(x0, dtype=float)]
    M = L
    for k in range(N):
        x_k = x[k]
        g_k = grad(x_k)
        s_k = lmo(g_k)
        d_k = s_k - x_k
        gap = np.sum(g_k * (x_k - s_k))
        d2 = np.sum(d_k**2)
        if d2 == 0:
            x.append(x_k)
            continue
        if rule == "short":
            t = min(1.0, gap / (L * d2))
        elif rule == "lacoste":
            t = min(1.0, gap / (L * D**2))
        elif rule == "open":
            t = 2 / (k + 2)
        elif rule == "adaptive":
            F_k = F(x_k)
            M = 0.9 * M
            t = min(1.0, gap / (M * d2))
            F_t = F(x_k + t * d_k)
            while F_t > F_k - t * gap + t**2 * M / 2 * d2 + 1e-12 * (abs(F_k) + abs(F_t)):
                M = 2 * M
                t = min(1.0, gap / (M * d2))
                F_t = F(x_k + t * d_k)
        elif rule == "sqrt":
            t = 1 / np.sqrt(k + 1)
        elif rule == "monotone":
            t = 2 / (k + 2)
            while rises(F, x_k, d_k, t):
                t = t / 2
        elif rule == "line":
            t = best_on_segment(F, x_k, d_k)
        elif rule == "golden":
            t = golden_section(F, x_k, d_k)
        elif rule == "secant":
            t = secant(F, grad, x_k, d_k)
        else:
            raise ValueError(f"rule is {rule!r}; unknown")
        x.append(x_k + t * d_k)
    return x


def best_on_segment(F, x, d):
    """The line search: the best by value of the bounded minimiser's t, 1 and 0; a tie goes to the first."""
    found = minimize_scalar(lambda t: F(x + t * d), bounds=(0, 1), method="bounded", options={"xatol": 1e-8}).x
    return min([found, 1.0, 0.0], key=lambda t: F(x + t * d))


def rises(F, x, d, t):
    return F(x + t * d) > F(x) + 1e-12 * (abs(F(x)) + abs(F(x + t * d)))


def golden_section(F, x, d, width=1e-7):
    """The interval [l, h] with two points inside, each at 0.618 of its length from one end."""
    phi = (np.sqrt(5) - 1) / 2
    l, h = 0.0, 1.0
    a, b = h - phi * (h - l), l + phi * (h - l)
    while h - l > width:
        if F(x + a * d) <= F(x + b * d):
            h, b = b, a
            a = h - phi * (h - l)
        else:
            l, a = a, b
            b = l + phi * (h - l)
    return min([a, b, 1.0, 0.0], key=lambda t: F(x + t * d))


def secant(F, grad, x, d, tolerance=1e-6, trials=40):
    """l descends and is not above F(x), h ascends or is above F(x); the secant through the last two t, or the middle."""

    def slope(t):
        return np.sum(grad(x + t * d) * d)

    l, h, last, t = 0.0, 1.0, 0.0, 1.0
    for _ in range(trials):
        low, s = not rises(F, x, d, t), slope(t)
        if low and abs(s) <= tolerance * abs(slope(0.0)):
            return t
        if low and s < 0 and t == 1.0:
            return t
        if low and s < 0:
            l = t
        else:
            h = t
        new = t - s * (t - last) / (s - slope(last)) if s != slope(last) else np.inf
        last, t = t, new if l < new < h else (l + h) / 2
    return l
