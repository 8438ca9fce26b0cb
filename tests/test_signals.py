"""A program that is told to stop stops: what Ctrl-C and SIGTERM do to scripts, loops, estimators and sessions."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.driving import CONVEX, NEVER, SIMPLEX, X0, assert_refused, function, interrupt, on_call

import condgrad as cg
from condgrad.learn import RobustCompletion, RobustLinearRegressor, RobustPCA, SigmoidClassifier
from condgrad.paper.runs import perform
from condgrad.runtime.interruption import default_action
from condgrad.storage import archive

SCRIPT = """
import os, signal, sys
import numpy as np, condgrad as cg
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
Q = cg.Quadratic(np.diag([1.0, 2.0, 3.0]))

def send(number, k=4):
    return lambda record, x: record.k == k and os.kill(os.getpid(), number)

def solve(callback=None, **more):
    asked = {"method": "frank-wolfe", "stop": cg.Steps(20), "callback": callback, **more}
    return cg.minimize(Q, cg.Simplex(3), np.array([0.5, 0.2, 0.3]), **asked)
"""


def outcome(script: str, *options: str) -> tuple[int, str, str]:
    """The exit code of a process with this script, negative where a signal ended it; and what it said."""
    command = [sys.executable, *options, "-c", SCRIPT + script]
    done = subprocess.run(command, capture_output=True, text=True, timeout=300, stdin=subprocess.DEVNULL)
    return done.returncode, done.stdout, done.stderr


LOOP = """
for seed in range(3):
    print("run", seed, flush=True)
    solve(send(signal.{name}), checkpoint=sys.argv[1] if len(sys.argv) > 1 else None)
print("went on")
"""


# -------------------------------------------------------------------------------------------------------------- scripts


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_one_signal_ends_a_script_of_many_runs(number: signal.Signals) -> None:
    code, out, error = outcome(LOOP.format(name=number.name))
    assert (code, out) == (-number, "run 0\n"), error
    assert ("KeyboardInterrupt" in error) == (number == signal.SIGINT)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_a_run_that_a_signal_ended_is_resumed_bit_for_bit(number: signal.Signals, tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    code, _, error = outcome(f"solve(send(signal.{number.name}), checkpoint={str(path)!r})")
    assert code == -number and path.exists(), error
    script = f"print(solve(checkpoint={str(path)!r}, resume=True).x.tobytes() == solve().x.tobytes())"
    assert outcome(script)[1] == "True\n"


def test_ctrl_c_raises_with_the_result() -> None:
    with pytest.raises(KeyboardInterrupt) as caught:
        cg.minimize(function(grad=on_call(6, interrupt, CONVEX.grad)), SIMPLEX, X0, method="frank-wolfe", stop=NEVER)
    result = caught.value.result
    assert (result.status, result.steps) == ("interrupted", 5)
    assert result.message.startswith("Interrupted from the keyboard. Returned: ") and result.certificate.upper > 0


def test_a_subclass_of_a_programs_own_stays_what_it_is() -> None:
    class Stop(KeyboardInterrupt):
        pass

    def stop() -> None:
        raise Stop("enough")

    with pytest.raises(Stop, match="enough") as caught:
        cg.minimize(function(grad=on_call(6, stop, CONVEX.grad)), SIMPLEX, X0, on_interrupt="raise", stop=NEVER)
    assert caught.value.result.status == "interrupted"


def test_a_run_inside_a_run_ends_both() -> None:
    def inside(record: Any, x: np.ndarray) -> None:
        if record.k == 2:
            cg.minimize(function(grad=on_call(3, interrupt, CONVEX.grad)), SIMPLEX, X0, stop=NEVER)

    with pytest.raises(KeyboardInterrupt) as caught:
        cg.minimize(CONVEX, SIMPLEX, X0, callback=inside, stop=NEVER, method="frank-wolfe")
    assert caught.value.result.steps == 2  # the outer one's


def test_sigterm_inside_a_run_inside_a_run_ends_the_process() -> None:
    script = "solve(lambda record, x: solve(send(signal.SIGTERM)) and None)\nprint('went on')"
    assert outcome(script)[:2] == (-signal.SIGTERM, "")


def test_a_second_signal_during_the_check_does_not_lose_the_result() -> None:
    calls = [0]

    def grad(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        if calls[0] in (6, 7):
            interrupt()
        return CONVEX.grad(x)

    with pytest.raises(KeyboardInterrupt) as caught:
        cg.minimize(function(grad=grad), SIMPLEX, X0, method="frank-wolfe", stop=NEVER)
    assert calls[0] == 7 and caught.value.result.steps == 5 and caught.value.result.certificate is None


def test_sigterm_during_the_check_after_ctrl_c_ends_the_process() -> None:
    script = """
calls = [0]
def grad(x):
    calls[0] += 1
    if calls[0] in (6, 7):
        os.kill(os.getpid(), signal.SIGINT if calls[0] == 6 else signal.SIGTERM)
    return Q.grad(x)
F = cg.Function(Q.value, grad, (3,), smoothness=3.0)
try:
    cg.minimize(F, cg.Simplex(3), method="frank-wolfe", stop=cg.Mapping(1e-300))
except KeyboardInterrupt:
    print("went on")
"""
    assert outcome(script)[:2] == (-signal.SIGTERM, "")


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signals_while_a_checkpoint_is_written_wait_for_it(
    number: signal.Signals, monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """The second signal comes in the middle of the last write: the file is whole, and the run goes on from it."""
    write, sent = archive.write, []

    def interrupted_write(*arguments: Any, **more: Any) -> None:
        sent.append(number)
        os.kill(os.getpid(), number)
        write(*arguments, **more)
        sent.append("written")

    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    monkeypatch.setattr(archive, "write", interrupted_write)
    asked: dict[str, Any] = {"checkpoint": tmp_path / "run.ckpt", "on_interrupt": "return", "method": "frank-wolfe"}
    try:
        ended = cg.minimize(
            CONVEX, SIMPLEX, X0, stop=cg.Steps(9), callback=lambda record, x: record.k == 4 and interrupt(), **asked
        )
    finally:
        signal.signal(signal.SIGINT, before)
    monkeypatch.undo()
    assert sent == [number, "written"] and ended.status == "interrupted"
    rest = cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(9), resume=True, **asked)
    assert rest.x.tobytes() == cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(9), method="frank-wolfe").x.tobytes()


# ------------------------------------------------------------------------------------------------ handlers of a program


def test_a_handler_that_returns_lets_the_run_go_on() -> None:
    script = """
signal.signal(signal.SIGTERM, lambda number, frame: print("handled", flush=True))
print(solve(send(signal.SIGTERM)).status)
"""
    assert outcome(script)[:2] == (0, "handled\nout_of_budget\n")


def test_a_handler_that_raises_ends_the_run_with_its_exception_and_a_checkpoint(tmp_path: Path) -> None:
    path = tmp_path / "run.ckpt"
    script = f"""
signal.signal(signal.SIGTERM, lambda number, frame: sys.exit(7))
solve(send(signal.SIGTERM), checkpoint={str(path)!r})
"""
    assert outcome(script)[:2] == (7, "") and path.exists()


def test_a_handler_that_was_set_stays() -> None:
    script = (
        "solve(send(signal.SIGTERM), on_interrupt='return'); print(signal.getsignal(signal.SIGTERM) is signal.SIG_DFL)"
    )
    assert outcome(script)[:2] == (0, "True\n")


# ------------------------------------------------------------------------------------------------------------- sessions


def test_an_interactive_session_gets_the_result() -> None:
    """With -i the interpreter goes on to a prompt, whose input ends at once."""
    code, out, error = outcome("print(solve(send(signal.SIGINT)).status, solve(send(signal.SIGTERM)).status)", "-i")
    assert (code, out) == (0, "interrupted interrupted\n"), error


def test_what_counts_as_a_session(monkeypatch: pytest.MonkeyPatch) -> None:
    class Shell:
        running: Any = None

        def get_ipython(self) -> Any:
            return self.running

    monkeypatch.delattr(sys, "ps1", raising=False)
    monkeypatch.setitem(sys.modules, "IPython", Shell())  # type: ignore[arg-type]
    assert default_action() == "raise"
    monkeypatch.setattr(Shell, "running", "a shell")
    assert default_action() == "return"
    monkeypatch.setattr(Shell, "running", None)
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    assert default_action() == "return"


def test_another_answer_is_refused() -> None:
    assert_refused(lambda: cg.minimize(CONVEX, SIMPLEX, on_interrupt="stop"), ValueError, "on_interrupt")


# ----------------------------------------------------------------------------------------------------------- estimators


def linear(rng: np.random.Generator) -> tuple[np.ndarray, np.ndarray]:
    X = rng.normal(size=(60, 4))
    return X, X[:, 0] - 2 * X[:, 1] + 0.1 * rng.normal(size=60) + 3.0


def matrix(rng: np.random.Generator) -> np.ndarray:
    return rng.normal(size=(30, 2)) @ rng.normal(size=(2, 20)) + 0.1 * rng.normal(size=(30, 20))


def interrupting(monkeypatch: pytest.MonkeyPatch, where: Any, name: str, call: int) -> list[int]:
    """The ``call``-th call of a function is interrupted; how many were made."""
    calls, asked = [0], getattr(where, name)

    def counted(*arguments: Any, **more: Any) -> Any:
        calls[0] += 1
        if calls[0] == call:
            raise KeyboardInterrupt
        return asked(*arguments, **more)

    monkeypatch.setattr(where, name, counted)
    return calls


@pytest.mark.parametrize("kind", [RobustLinearRegressor, SigmoidClassifier])
def test_an_interrupted_linear_fit_ends_and_carries_the_last_one(kind: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    """A fit is many runs: Ctrl-C used to end one of them, and the fit went on with the next."""
    X, y = linear(np.random.default_rng(0))
    y = y > 3 if kind is SigmoidClassifier else y
    model = kind().fit(X[:, :2], y)
    before = model.coef_.copy()
    calls = interrupting(monkeypatch, cg.LinearModel, "grad", 40)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X, y)
    assert caught.value.result.status == "interrupted" and calls[0] <= 43  # the check of what was reached, no more
    assert np.array_equal(model.coef_, before)
    partial = caught.value.partial_fit
    assert type(partial) is kind and partial.status_ == "interrupted" and not hasattr(partial, "sigma_")
    assert partial.score(X, y) > 0.5 and partial.get_params() == model.get_params()


@pytest.mark.parametrize(
    ("kind", "call"),
    [(RobustCompletion, 1), (RobustCompletion, 8), (RobustCompletion, 40), (RobustPCA, 1), (RobustPCA, 4)],
)
def test_an_interrupted_completion_carries_what_it_had(kind: Any, call: int, monkeypatch: pytest.MonkeyPatch) -> None:
    rng = np.random.default_rng(0)
    X = matrix(rng)
    model = kind()
    interrupting(monkeypatch, cg.Completion, "grad", call)
    with pytest.raises(KeyboardInterrupt) as caught:
        model.fit(X)
    partial = caught.value.partial_fit
    assert not hasattr(model, "singular_values_")
    if call == 1:
        assert partial is None
    else:
        assert type(partial) is kind and len(partial.singular_values_) >= 1
        found = partial.fill() if kind is RobustCompletion else partial.low_rank_
        assert np.linalg.norm(found - X) < np.linalg.norm(X - X.mean())


def test_a_second_ctrl_c_does_not_wait_for_the_partial_fit(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(RobustCompletion, "_partial_estimator", lambda *arguments: interrupt())
    interrupting(monkeypatch, cg.Completion, "grad", 8)
    with pytest.raises(KeyboardInterrupt) as caught:
        RobustCompletion().fit(matrix(np.random.default_rng(0)))
    assert caught.value.partial_fit is None


def test_sigterm_ends_a_script_that_fits() -> None:
    script = """
from condgrad.learn import RobustLinearRegressor
rng, calls, grad = np.random.default_rng(0), [0], cg.LinearModel.grad
def counted(self, x):
    calls[0] += 1
    if calls[0] == 30:
        os.kill(os.getpid(), signal.SIGTERM)
    return grad(self, x)
cg.LinearModel.grad = counted
try:
    RobustLinearRegressor().fit(rng.normal(size=(50, 3)), rng.normal(size=50))
finally:
    print("went on")
"""
    assert outcome(script)[:2] == (-signal.SIGTERM, "")


# ---------------------------------------------------------------------------------------------------------- experiments


def test_an_experiment_keeps_no_half_run(monkeypatch: pytest.MonkeyPatch) -> None:
    """In a session too, where a run alone would return what it has reached."""
    monkeypatch.setattr(sys, "ps1", ">>> ", raising=False)
    interrupting(monkeypatch, cg.Completion, "grad", 3)
    problem = {"objective": "paper", "shape": [30, 20], "rank": 2}
    asked = {"problem": problem, "set": {"name": "nuclear-ball", "radius": 2.0}, "method": {"name": "frank-wolfe"}}
    for keep in ("trace", "output", "recovery"):
        with pytest.raises(KeyboardInterrupt):
            perform({**asked, "stop": {"steps": 5}, "keep": {"what": keep}})
        interrupting(monkeypatch, cg.Completion, "grad", 3)


def test_one_sigterm_ends_a_reproduction(tmp_path: Path) -> None:
    script = f"""
from condgrad.cli import main
from condgrad.paper import pool
def run_in_workers(runs, folder, jobs):
    os.kill(os.getpid(), signal.SIGTERM)
    yield
pool.run_in_workers = run_in_workers
sys.exit(main(["reproduce", "recovery", "--quick", "--out", {str(tmp_path)!r}]))
"""
    code, out, error = outcome(script)
    assert (code, out) == (130, ""), error
    assert error.startswith("condgrad: interrupted: 0 of ") and error.count("\n") == 1
