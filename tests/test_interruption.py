"""Signals and budgets: nothing is lost, and the status says what happened."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import threading
from math import isnan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import HUNG
from tests.driving import CONVEX, NEVER, SIMPLEX, X0, function, interrupt, on_call, passing

import condgrad as cg
from condgrad.domains.spectral import _spectra
from condgrad.driver import stopping
from condgrad.driver.ending import choose_returned
from condgrad.linalg import lanczos
from condgrad.runtime import clock, process_memory
from condgrad.runtime.interruption import Terminated, defer_signals, raise_on_sigterm
from condgrad.runtime.progress import SWITCH
from condgrad.runtime.signals import heartbeat, receiving

result_of = sys.modules["condgrad.driver.ending"]


def terminate() -> None:
    os.kill(os.getpid(), signal.SIGTERM)


# -------------------------------------------------------------------------------------------------------------- signals


@pytest.mark.parametrize("where", ["grad", "value", "lmo"])
def test_sigterm_ends_a_run_as_ctrl_c_does(where: str) -> None:
    again = {"grad": CONVEX.grad, "value": CONVEX.value, "lmo": SIMPLEX.lmo}
    asked = on_call(6, terminate, again[where])
    objective = function(**{where: asked}) if where != "lmo" else function()
    domain = cg.user_set(asked if where == "lmo" else SIMPLEX.lmo, 3, 2.0, contains=SIMPLEX.contains)
    result = cg.minimize(objective, domain, X0, method="frank-wolfe", stop=NEVER, on_interrupt="return")
    assert (result.status, result.success) == ("interrupted", False)
    assert result.message.startswith("Terminated by SIGTERM. Returned: the iterate with the smallest certified mapping")
    assert result.certificate.verify(cg.Problem(objective, domain)).upper == result.certificate.upper
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


def test_a_program_with_its_own_plans_for_sigterm_keeps_them() -> None:
    seen: list[int] = []
    before = signal.signal(signal.SIGTERM, lambda signum, frame: seen.append(signum))
    try:
        mine = signal.getsignal(signal.SIGTERM)
        result = cg.minimize(function(grad=on_call(3, terminate, CONVEX.grad)), SIMPLEX, X0)
        assert result.status == "converged" and seen == [signal.SIGTERM]
        assert signal.getsignal(signal.SIGTERM) is mine
    finally:
        signal.signal(signal.SIGTERM, before)


def test_a_run_in_another_thread_leaves_signals_alone() -> None:
    found: list[Any] = []

    def solve() -> None:
        callback = lambda record, x: found.append(signal.getsignal(signal.SIGTERM))  # noqa: E731
        found.append(cg.minimize(CONVEX, SIMPLEX, X0, callback=callback).status)

    thread = threading.Thread(target=solve)
    thread.start()
    thread.join()
    assert found[-1] == "converged" and set(found[:-1]) == {signal.SIG_DFL}


def test_a_run_inside_a_run_that_returns_keeps_its_signal() -> None:
    ends = []

    def inside(record: Any, x: np.ndarray) -> None:
        if record.k == 2:
            objective = function(grad=on_call(3, terminate, CONVEX.grad))
            ends.append(cg.minimize(objective, SIMPLEX, X0, stop=NEVER, on_interrupt="return").status)

    result = cg.minimize(CONVEX, SIMPLEX, X0, callback=inside)
    assert (ends, result.status) == (["interrupted"], "converged")
    assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL


@pytest.mark.parametrize("act", [interrupt, terminate])
def test_a_second_signal_while_the_result_is_checked_does_not_lose_it(act: Any) -> None:
    """The second comes in the gradient of the check: what stood is returned, without a certificate, and it is said."""
    calls = [0]

    def grad(x: np.ndarray) -> np.ndarray:
        calls[0] += 1
        if calls[0] in (6, 7):
            act()
        return CONVEX.grad(x)

    result = cg.minimize(function(grad=grad), SIMPLEX, X0, method="frank-wolfe", stop=NEVER, on_interrupt="return")
    assert calls[0] == 7 and (result.status, result.certificate) == ("interrupted", None)
    assert "was not checked" in result.message and isnan(result.fun)
    assert SIMPLEX.contains(result.x) and result.steps == 5 and len(result.trace) >= 6
    json.dumps(result.summary(), allow_nan=False)


def test_a_signal_during_the_check_of_a_converged_run_is_said() -> None:
    plain = cg.minimize(CONVEX, SIMPLEX, X0, stop=cg.Steps(5), adaptive=False)
    last = plain.counts["fo"] + 1
    asked: dict[str, Any] = {"stop": cg.Steps(5), "adaptive": False, "on_interrupt": "return"}
    result = cg.minimize(function(grad=on_call(last, interrupt, CONVEX.grad)), SIMPLEX, X0, **asked)
    assert (result.status, result.steps, result.certificate) == ("interrupted", 5, None)


def test_signals_wait_for_what_is_short() -> None:
    done = []
    with pytest.raises(Terminated), raise_on_sigterm():
        with defer_signals():
            terminate()
            done.append(1)
        done.append(2)
    assert done == [1]
    with raise_on_sigterm(), defer_signals() as waiting:
        terminate()
        assert waiting == [signal.SIGTERM]
        waiting.clear()


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_the_command_line_writes_what_a_signal_left(number: signal.Signals, tmp_path: Path) -> None:
    """A spec that never ends; the signal comes when the report of progress shows that it is on its way."""
    Q = np.random.default_rng(0).normal(size=(30, 30))
    np.save(tmp_path / "Q.npy", (Q + Q.T) / 2)
    (tmp_path / "run.toml").write_text(
        '[problem]\nobjective = "quadratic"\nmatrix = "Q.npy"\n[set]\nname = "simplex"\n[method]\nname = "frank-wolfe"\n'
        "every = 100000\n[stop]\nmapping = 1e-300\n"
    )
    script = (
        "import signal, sys; signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "import condgrad.driver.progress as p; from condgrad.cli import main\n"
        "old = p.Progress.__init__\n"
        "p.Progress.__init__ = lambda self, *a: old(self, *a, quiet_for=0.05)\n"
        "from condgrad.spec import Spec; go = Spec.solve\n"
        "Spec.solve = lambda self, progress, **more: go(self, progress=True, **more)\n"
        "sys.exit(main(['solve', sys.argv[1], '--json']))\n"
    )
    command = [sys.executable, "-c", script, str(tmp_path / "run.toml")]
    environment = {name: value for name, value in os.environ.items() if name != SWITCH}
    process = subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE, text=True, env=environment)
    try:
        assert "step" in process.stderr.readline()
        process.send_signal(number)
        out, error = process.communicate(timeout=HUNG)
    finally:
        process.kill()
        process.wait()
    assert process.returncode == 130, error
    written = json.loads((tmp_path / "run-run" / "result.json").read_text())
    assert written["status"] == "interrupted" == json.loads(out)["status"]
    name = "Terminated by SIGTERM." if number == signal.SIGTERM else "Interrupted from the keyboard."
    assert written["message"].startswith(name) and written["mapping_upper"] > 0
    assert np.load(tmp_path / "run-run" / "x.npy").sum() == pytest.approx(1.0) and "Traceback" not in error


# --------------------------------------------------------------------------------------------------------------- memory


@pytest.fixture
def fake_memory(monkeypatch: pytest.MonkeyPatch) -> list[float]:
    size = [100.0]
    monkeypatch.setattr(stopping, "resident", lambda: size[0])
    return size


def test_out_of_memory_ends_inside_a_step(fake_memory: list[float]) -> None:
    slow = cg.user_set(passing(fake_memory, 0.5, SIMPLEX.lmo), 3)
    endless: dict[str, Any] = {"inner": cg.CondG(), "schedule": cg.practical(eps=1e-300, c=1e-300)}
    result = cg.minimize(CONVEX, slow, X0, stop=NEVER | cg.Memory(150.0), **endless)
    assert result.status == "out_of_budget" and "The budget of 150 MB of memory is used up." in result.message
    assert result.counts["lo"] <= 102


def test_the_memory_of_this_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(process_memory, "CACHE_SECONDS", 0.0)
    before = process_memory.resident()
    assert 10 < before < 100_000
    block = np.ones(12_500_000)
    assert 90 < process_memory.resident() - before < 110 and block[0] == 1.0
    assert cg.minimize(CONVEX, SIMPLEX, X0, stop=NEVER | cg.Memory(1.0)).status == "out_of_budget"


def test_memory_that_the_system_refuses_loses_nothing() -> None:
    def refuse() -> None:
        raise MemoryError("Unable to allocate 8 TiB")

    result = cg.minimize(function(grad=on_call(5, refuse, CONVEX.grad)), SIMPLEX, X0, method="frank-wolfe", stop=NEVER)
    assert result.status == "failed" and result.certificate is not None
    assert result.message.startswith(
        "In step 5: Memory ran out (Unable to allocate 8 TiB). The result is the iterate before this step."
    )


# --------------------------------------------------------------------------------- deadlines between two oracle calls


def ticking(monkeypatch: pytest.MonkeyPatch, time: list[float], module: str, name: str, seconds: float) -> None:
    """Each call of the function takes so long."""
    target = sys.modules[module]
    monkeypatch.setattr(target, name, passing(time, seconds, getattr(target, name)))


def wide(seed: int = 0, n: int = 150) -> tuple[cg.Function, Any]:
    """A smooth function of matrices whose prox points have a high rank."""
    D = np.random.default_rng(seed).standard_normal((n, n))
    f = cg.Function(lambda X: float(np.sum((X - D) ** 2)) / 2, lambda X: X - D, D.shape, 1.0, 0.0, 0.0)
    return f, cg.NuclearBall(D.shape, 40.0)


@pytest.mark.parametrize("where", ["one long linear oracle call", "passes of a spectral prox"])
def test_a_deadline_holds_between_two_oracle_calls(
    where: str, fake_clock: list[float], monkeypatch: pytest.MonkeyPatch
) -> None:
    objective, domain = wide()
    if "oracle" in where:
        for size in ("MAX_GRAM_SIZE", "MAX_DENSE_GRAM_SIZE"):
            monkeypatch.setattr(_spectra, size, 0)  # the oracle has a search to be interrupted in
        ticking(monkeypatch, fake_clock, "condgrad.linalg.lanczos", "_orthogonal_part", 0.05)
        options: dict[str, Any] = {"method": "frank-wolfe"}
    else:
        monkeypatch.setitem(lanczos.RITZ, "singular", passing(fake_clock, 0.3, lanczos.RITZ["singular"]))
        options = {"inner": cg.Spectral(), "warm_start": 0, "schedule": cg.practical(1e-300, 1e-12)}
    told: list[float] = []
    monkeypatch.setattr(
        result_of, "choose_returned", lambda run, reason: told.append(fake_clock[0]) or choose_returned(run, reason)
    )
    result = cg.minimize(objective, domain, stop=NEVER | cg.Seconds(0.5), **options)
    assert result.status == "out_of_budget" and "0.5 seconds" in result.message
    assert told[0] <= 0.9  # one pass beyond; then the check, which asks each oracle once more


def test_a_long_measurement_ends_in_time_too(fake_clock: list[float], monkeypatch: pytest.MonkeyPatch) -> None:
    """A stochastic method on a set without a projection is measured by the corrective solver, on the uncounted problem."""
    rng = np.random.default_rng(1)
    objective = cg.LinearModel(rng.standard_normal((40, 60)), 5 * rng.standard_normal(40), cg.Squared())
    ticking(monkeypatch, fake_clock, "condgrad.linalg.simplex_qp", "optimise_weights", 1.0)
    result = cg.minimize(objective, cg.LpBall(60, 1.5, 1.0), method="svfw", stop=NEVER | cg.Seconds(10.0), seed=1)
    assert result.status == "out_of_budget" and fake_clock[0] <= 15.0


def test_a_watch_that_stands_still_may_be_stopped_again(fake_clock: list[float]) -> None:
    watch = clock.Watch()
    fake_clock[0] = 1.0
    with watch.paused():
        fake_clock[0] = 2.0
        with watch.paused():
            fake_clock[0] = 4.0
        fake_clock[0] = 5.0
        assert watch.seconds == 1.0
    assert watch.seconds == 1.0 and watch.wall == 5.0


def test_a_deadline_does_not_reach_into_a_run_inside(fake_clock: list[float]) -> None:
    """The inner run is a callback's own business; the outer one ends when it is back."""
    ends = []

    def inside(record: Any, x: np.ndarray) -> None:
        slow = function(grad=passing(fake_clock, 5.0, CONVEX.grad))
        ends.append(cg.minimize(slow, SIMPLEX, X0, inner="condg", stop=cg.Steps(3)).message)

    result = cg.minimize(CONVEX, SIMPLEX, X0, callback=inside, stop=NEVER | cg.Seconds(1.0))
    assert ends[0].startswith("The budget of 3 steps") and result.message.startswith("The budget of 1 seconds")


def test_beats_are_heard_by_all_who_listen_and_by_nobody_else() -> None:
    order: list[str] = []
    heartbeat()
    with receiving(lambda: order.append("outer")):
        with receiving(lambda: order.append("inner")):
            heartbeat()
        heartbeat()
    heartbeat()
    assert order == ["outer", "inner", "outer"]


# -------------------------------------------------------------------------------------------------- with a checkpoint


def test_sigterm_leaves_a_checkpoint_from_which_the_run_goes_on(tmp_path: Path) -> None:
    """And what had been noticed before is still said after."""
    wrong = cg.Function(lambda x: -CONVEX.value(x), lambda x: CONVEX.grad(x) / 3, (3,), smoothness=3.0)
    saved = cg.Checkpoint(tmp_path / "run.ckpt", seconds=1e6)
    given: dict[str, Any] = {
        "stop": NEVER | cg.Steps(9),
        "adaptive": False,
        "checkpoint": saved,
        "on_interrupt": "return",
    }
    with pytest.warns(cg.SmoothnessWarning):
        ended = cg.minimize(wrong, SIMPLEX, X0, callback=lambda record, x: record.k == 4 and terminate(), **given)
    assert ended.status == "interrupted" and (tmp_path / "run.ckpt").exists()
    with pytest.warns(cg.SmoothnessWarning):
        resumed = cg.minimize(wrong, SIMPLEX, X0, resume=True, **given)
    with pytest.warns(cg.SmoothnessWarning):
        whole = cg.minimize(wrong, SIMPLEX, X0, **given | {"checkpoint": None})
    assert resumed.x.tobytes() == whole.x.tobytes() and resumed.warnings == whole.warnings != ()
    assert "In step 1 F reached" in resumed.warnings[0] and resumed.spec == whole.spec


EARLY = """
import os, signal, sys, builtins
import numpy as np, condgrad as cg
signal.signal(signal.SIGINT, signal.default_int_handler)  # a parent in the background may have it ignored
rng = np.random.default_rng(0)
F = cg.Completion.from_dense(rng.normal(size=(60, 60)), rng.random((60, 60)) < 0.5, cg.Welsch(2.0))
usual, hits = builtins.__import__, []
def importing(name, *more):
    if name == "numba" and not hits:
        hits.append(name)
        os.kill(os.getpid(), signal.SIGINT)
    return usual(name, *more)
builtins.__import__ = importing
first = cg.minimize(F, cg.NuclearBall((60, 60), 50.0), tol=1e-16, max_steps=50, progress=False, on_interrupt="return")
again = cg.minimize(F, cg.NuclearBall((60, 60), 50.0), tol=1e-16, max_steps=2, progress=False)
print(len(hits), first.status, again.status)
"""


def test_a_signal_while_the_kernels_are_loaded_waits_for_them() -> None:
    done = subprocess.run([sys.executable, "-c", EARLY], capture_output=True, text=True, check=True)
    assert done.stdout.split() == ["1", "interrupted", "out_of_budget"]
