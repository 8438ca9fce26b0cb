"""Other processes and threads: runs after a fork, in workers of a pool, and side by side give the bits of a run alone."""

from __future__ import annotations

import os
import subprocess
import sys

import numba
import pytest

FORKING = pytest.mark.skipif(not hasattr(os, "fork"), reason="this system does not fork")

PROBLEM = """
import os, signal, sys, threading, warnings
import numpy as np, condgrad as cg
from condgrad import kernels
kernels.MIN_PARALLEL_WORK = 0  # every loop uses all threads that it may
rng = np.random.default_rng(0)
F = cg.Completion.from_dense(rng.normal(size=(40, 30)), rng.random((40, 30)) < 0.5, cg.Welsch(2.0))

def solve(seed=0):
    result = cg.minimize(F, cg.NuclearBall((40, 30), 30.0), stop=cg.Steps(3), progress=False)
    U, V = result.x.factors()
    return result.status, result.steps, result.fun, U.tobytes() + V.tobytes()
"""


def printed(script: str, **environment: str) -> tuple[list[str], str]:
    """What the script printed after the problem above, in words, and its stderr."""
    code = PROBLEM + script
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env={**os.environ, **environment}, timeout=300
    )
    assert done.returncode == 0, (done.returncode, done.stderr)
    return done.stdout.split(), done.stderr


# ----------------------------------------------------------------------------------------------------------------- forks

AFTER_FORK = """
def in_child(work):
    said, says = os.pipe()
    if (child := os.fork()) == 0:
        os.write(says, work().encode())
        os._exit(0)
    os.close(says)
    with os.fdopen(said) as answer:
        text = answer.read()
    assert os.waitpid(child, 0)[1] == 0
    return text

alone = solve()

def compared():
    with warnings.catch_warnings(record=True, action="always") as noted:
        same = solve() == alone, solve() == alone
    return f"{same} {[warning.category.__name__ for warning in noted]} {kernels.threads()}"

"""


@FORKING
@pytest.mark.parametrize("generation", ["child", "grandchild"])
def test_a_forked_process_has_the_bits_of_its_parent(generation: str) -> None:
    """A guard of numba's parallel loops used to send SIGTERM to it, and the run came back empty: `interrupted`, 0 steps, NaN."""
    ask = "compared" if generation == "child" else "lambda: in_child(compared)"
    said, error = printed(f"{AFTER_FORK}print(in_child({ask}))\nprint(solve() == alone, kernels.threads())")
    threads = str(numba.config.NUMBA_NUM_THREADS)
    assert said == ["(True,", "True)", "[]", threads, "True", threads], error
    assert "Terminating" not in error


@FORKING
def test_a_process_that_was_forked_before_any_loop_keeps_its_threads() -> None:
    script = AFTER_FORK.replace("alone = solve()", "alone = None")
    said, _ = printed(f"{script}print(in_child(lambda: f'{{solve()[0]}} {{kernels.threads()}}'), solve()[0])")
    assert said == ["out_of_budget", str(numba.config.NUMBA_NUM_THREADS), "out_of_budget"]


# --------------------------------------------------------------------------------------------------------------- threads

SIDE_BY_SIDE = """
ball = cg.NuclearBall((40, 30), 30.0)
x0 = cg.minimize(F, ball, stop=cg.Steps(2), progress=False).x
x0 = 0.75 * x0 + 0.25 * ball.lmo(F.grad(x0))

def bits(method, start):
    result = cg.minimize(F, ball, start, method=method, stop=cg.Steps(3), progress=False)
    return [result.counts, str(result.trace["fun"]), *(part.tobytes() for part in result.x.factors())]

asked = [("ncgs", None), ("frank-wolfe", x0), ("ncgs", x0), ("frank-wolfe", x0)]
alone = [bits(*one) for one in asked]
sys.setswitchinterval(1e-6)
agreed = []
def compare(number):
    agreed.append(bits(*asked[number]) == alone[number])

for _ in range(20):
    for pair in ((0, 1), (2, 3)):
        threads = [threading.Thread(target=compare, args=(number,)) for number in pair]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
print(agreed.count(True), len(agreed))
"""


def test_threads_that_share_an_objective_and_a_start_have_the_bits_of_one_alone() -> None:
    """One thread used to get the other's value or gradient, and values that were kept for one were dropped for the other."""
    said, error = printed(SIDE_BY_SIDE, NUMBA_NUM_THREADS="2")
    assert said == ["80", "80"], error


def test_threads_that_evaluate_the_same_point_get_its_values() -> None:
    """A combination of many points is written as one while others read it."""
    script = """
sys.setswitchinterval(1e-6)
wrong, errors = [], []
threading.excepthook = lambda args: errors.append(args.exc_value)
for trial in range(30):
    parts = [cg.LowRank(rng.normal(size=(40, 2)), rng.normal(size=(30, 2))) for _ in range(6)]
    x = sum(parts[1:], parts[0])
    true = F.value(np.asarray(x))
    begin = threading.Barrier(4)
    def look():
        begin.wait()
        for _ in range(5):
            found = F.value(x), F.grad(x), x.inner(x), x.factors()
            wrong.append(abs(found[0] - true) > 1e-9 * true or abs(found[1].inner(x) - np.vdot(found[1].to_dense(), x)) > 1e-6)
    threads = [threading.Thread(target=look) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
print(wrong.count(True), len(wrong), errors)
"""
    said, error = printed(script)
    assert said == ["0", "600", "[]"], error
