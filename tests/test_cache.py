"""The cache of a run: what it finds, what it frees, and that objectives, sets and other runs have no part in it."""

from __future__ import annotations

import gc
import threading
import weakref
from collections.abc import Iterator
from contextvars import copy_context
from functools import cached_property
from typing import Any

import numpy as np
import pytest
from tests.made_points import low_rank, pattern_of
from tests.test_determinism import bits

import condgrad as cg
from condgrad.domains import DOMAINS
from condgrad.objectives import OBJECTIVES
from condgrad.points.low_rank import Factors
from condgrad.protocols import Objective, fits
from condgrad.runtime.cache import (
    MAX_EARLIER,
    MIN_PRUNED,
    Cache,
    Evaluations,
    Numbers,
    Recent,
    active,
    caching,
    in_run,
    outside_of_runs,
)


class Thing:
    """Something with an identity."""


def freed(thing: Any, *others: Any) -> bool:
    return all(reference() is None for reference in (thing, *others))


# ------------------------------------------------------------------------------------------------------------- the parts


def test_a_number_belongs_to_two_objects_in_their_order() -> None:
    numbers, a, b = Numbers(), Thing(), Thing()
    numbers.put(a, b, 1.0)
    numbers.put(b, a, 2.0)
    numbers.put(a, a, 3.0)
    assert [numbers.get(a, b), numbers.get(b, a), numbers.get(a, a), numbers.get(b, b)] == [1.0, 2.0, 3.0, None]
    assert list(numbers) == [(a, b, 1.0), (b, a, 2.0), (a, a, 3.0)]


def test_a_number_is_not_that_of_an_object_that_was_at_the_same_address() -> None:
    numbers, a = Numbers(), np.ones(3)
    for k in range(300):
        b = np.full(3, float(k))  # at the address of the one before it
        assert numbers.get(a, b) is None
        numbers.put(a, b, float(k))
        del b
    assert not list(numbers)


def test_numbers_of_objects_that_are_gone_take_no_memory() -> None:
    numbers, kept = Numbers(), [Thing() for _ in range(5)]
    for thing in kept:
        numbers.put(thing, thing, 1.0)
    made = [Thing() for _ in range(10 * MIN_PRUNED)]
    for thing in made:
        numbers.put(kept[0], thing, 2.0)
    assert len(list(numbers)) == len(made) + 5, "a number of two objects that are alive is gone"
    del made, thing
    for _ in range(40):
        batch = [Thing() for _ in range(MIN_PRUNED)]
        for thing in batch:
            numbers.put(thing, thing, 3.0)
    del batch, thing
    assert len(numbers._known) <= 2 * (10 * MIN_PRUNED + 5) and {id(a) for a, *_ in numbers} == {*map(id, kept)}


def test_the_array_that_was_used_least_recently_is_dropped() -> None:
    recent, things = Recent(), [Thing() for _ in range(4)]
    for thing in things[:3]:
        recent[thing] = np.ones(2)
    assert recent.use(things[0]) is not None and recent.use(things[3]) is None and things[1] in recent
    recent.make_room(3)  # asking whether it is there is no use
    assert [thing in recent for thing in things] == [True, False, True, False] and len(recent) == 2
    del things[2], thing
    gc.collect()
    assert len(recent) == 1 and list(recent) == things[:1]


def test_the_last_gradient_is_kept_and_earlier_ones_as_long_as_something_holds_them() -> None:
    evaluations, points = Evaluations(), [Thing() for _ in range(MAX_EARLIER + 3)]
    held = Thing()
    evaluations.put(points[0], 0.0, held)
    for k, x in enumerate(points[1:], 1):
        evaluations.release()
        evaluations.put(x, float(k), Thing())
    assert evaluations.find(points[-1], slopes=True) is not None
    assert [evaluations.find(x, slopes=False) for x in points[1:-1]] == [None] * (len(points) - 2)
    assert evaluations.find(points[0], slopes=True) == (0.0, held)
    assert evaluations.find(points[-1], slopes=True) is None, "found the other gradient, so the last one was released"


def test_a_value_without_its_gradient_is_known_until_the_next_evaluation() -> None:
    evaluations, x, y = Evaluations(), Thing(), Thing()
    evaluations.put(x, 1.0, None)
    assert evaluations.find(x, slopes=False) == (1.0, None) and evaluations.find(x, slopes=True) is None
    evaluations.release()
    evaluations.put(y, 2.0, None)
    assert evaluations.find(x, slopes=False) is None and evaluations.find(y, slopes=False) == (2.0, None)


def test_two_earlier_evaluations_are_known_at_most() -> None:
    evaluations, points, gradients = Evaluations(), [Thing() for _ in range(5)], [Thing() for _ in range(5)]
    for k, (x, gradient) in enumerate(zip(points, gradients, strict=True)):
        evaluations.release()
        evaluations.put(x, float(k), gradient)
    assert [value for _, value, _ in evaluations] == [4.0, 3.0, 2.0]


# ------------------------------------------------------------------------------------------------------ what it keeps alive


def completion() -> cg.Completion:
    rng = np.random.default_rng(0)
    return cg.Completion.from_dense(rng.normal(size=(30, 20)), rng.random((30, 20)) < 0.5, cg.Welsch(2.0))


BALL = cg.NuclearBall((30, 20), 20.0)


def test_nothing_is_kept_alive_outside_of_a_run() -> None:
    """Neither the point, nor what was computed of it, nor the objective: the cache of a thread is never emptied."""
    F, x = completion(), low_rank(30, 20, 2, np.random.default_rng(0))
    gradient: Any = F.grad(x)
    assert gradient.inner(x) == pytest.approx(float(np.vdot(np.asarray(gradient), np.asarray(x))))
    gone = [weakref.ref(thing) for thing in (x, F, F.pattern, gradient, gradient.values, x.at(F.pattern))]
    gc.disable()
    try:
        del x, gradient
        assert gone[0]() is None and gone[3]() is None and gone[4]() is None and gone[5]() is None
        del F
        assert freed(*gone)
    finally:
        gc.enable()


def test_a_run_leaves_nothing_in_the_cache_of_the_thread_and_takes_nothing_from_it() -> None:
    F = completion()
    before = active()
    result = cg.minimize(F, BALL, stop=cg.Steps(3), progress=False)
    assert active() is before and before.evaluations(F).find(result.x, slopes=False) is None
    x0 = (0.5 * result.x + 0.25 * BALL.lmo(F.grad(result.x))).compressed()
    cold = bits(cg.minimize(F, BALL, x0, stop=cg.Steps(4), progress=False))
    for point in (result.x, x0, 0.5 * x0):
        F.value(point), F.grad(point), point.inner(point)
    assert bits(cg.minimize(F, BALL, x0, stop=cg.Steps(4), progress=False)) == cold


def test_a_run_inside_of_a_run_has_its_own_cache() -> None:
    F, seen = completion(), []

    def inside(record: Any, x: Any) -> None:
        seen.append(active())
        if record.k == 2:
            cg.minimize(F, BALL, x, stop=cg.Steps(2), progress=False)

    with_it = bits(cg.minimize(F, BALL, stop=cg.Steps(4), progress=False, callback=inside))
    assert with_it == bits(cg.minimize(F, BALL, stop=cg.Steps(4), progress=False))
    assert len(set(map(id, seen))) == 1 and seen[0] is active(), "a callback has the cache of the thread"


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
@pytest.mark.parametrize("method", ["frank-wolfe", "ncgs"])
def test_a_callback_that_evaluates_changes_neither_its_point_nor_the_run(method: str, dtype: Any) -> None:
    """A run merges the terms of its points in place and drops values from its cache: a callback does neither."""
    F = completion()
    F = (
        F.replaced()
        if dtype == np.float64
        else cg.Completion(F.pattern.rows, F.pattern.cols, F.values.astype(dtype), F.shape)
    )
    others = [low_rank(*F.shape, 1, np.random.default_rng(k)) for k in range(3)]
    kept: list[tuple[Any, Any]] = []

    def evaluate(record: Any, x: Any) -> None:
        assert not in_run()
        terms = x.terms
        F.value(x), F.grad(x), x.inner(x), [F.value(0.5 * x + 0.1 * other) for other in others]
        assert x.terms is terms
        kept.append((x, terms))

    options = {
        "method": method,
        "stop": cg.Steps(8),
        "every": 4,
        "progress": False,
    }  # the driver evaluates every fourth point
    if method == "ncgs":
        options |= {"polish": False, "warm_start": 10}  # a factored phase leaves points of one term
    alone = bits(cg.minimize(F, BALL, **options))
    assert bits(cg.minimize(F, BALL, callback=evaluate, **options)) == alone
    assert method != "ncgs" or sum(len(terms) > 1 for _, terms in kept) > 5, "only points of several terms are merged"
    assert all(x.terms is terms for x, terms in kept), "later steps do not change a point that a callback has kept"


def test_a_callback_that_raises_leaves_the_run_active_outside_of_it() -> None:
    with caching(cache := Cache()):
        with pytest.raises(ZeroDivisionError), outside_of_runs():
            assert not in_run()
            _ = 1 / 0
        assert active() is cache and in_run()


def test_each_thread_has_a_cache_even_in_the_context_of_another() -> None:
    found: list[Cache] = []
    threads = [threading.Thread(target=copy_context().run, args=(lambda: found.append(active()),)) for _ in range(2)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert len({id(cache) for cache in (*found, active())}) == 3


def test_points_know_nothing_of_each_other_in_another_cache() -> None:
    rng = np.random.default_rng(0)
    pattern, x = pattern_of(20, 15, rng), low_rank(20, 15, 2, rng)
    with caching(Cache()):
        x.cached_at(pattern), x.inner(x)
        factors = x.terms[0][1]
        assert factors.has_cached(pattern) and active().numbers.get(factors, factors) is not None
    assert not factors.has_cached(pattern) and active().numbers.get(factors, factors) is None
    with pytest.raises(ZeroDivisionError), caching(Cache()):
        _ = 1 / 0
    assert Factors.__slots__ == ("U", "V", "__weakref__", "base"), "a product of factors has no other state"


# --------------------------------------------------------------------------------------------- nothing changes in a run


WHERE_HIGHS_BEGINS = ("_starts", "_after_tie")
"""Attributes of a linear programme that belong to the model of HiGHS, which is warm-started from call to call."""


def parts(thing: Any, path: str, met: dict[int, Any]) -> Iterator[tuple[str, Any]]:
    """All that an object is made of, by where it is: identities of objects, contents of arrays and numbers.

    Cached properties are left out: they are computed once from what does not change.
    """
    if isinstance(thing, np.ndarray):
        yield path, (id(thing), thing.dtype.str, thing.tobytes())
    elif isinstance(thing, bool | int | float | str | bytes | type(None)):
        yield path, thing
    elif id(thing) in met:
        yield path, id(thing)
    else:
        met[id(thing)] = thing
        yield path, id(thing)
        if isinstance(thing, dict):
            items = list(thing.items())
        elif isinstance(thing, list | tuple):
            items = list(enumerate(thing))
        else:
            slots = [
                name for base in type(thing).__mro__ for name in vars(base).get("__slots__", ()) if name[:2] != "__"
            ]
            items = [(name, getattr(thing, name)) for name in slots if hasattr(thing, name)]
            items += getattr(thing, "__dict__", {}).items()
            items = [
                (n, part)
                for n, part in items
                if not isinstance(getattr(type(thing), str(n), None), cached_property) and n not in WHERE_HIGHS_BEGINS
            ]
        for name, part in items:
            yield from parts(part, f"{path}.{name}", met)


def unchanged(thing: Any, before: dict[str, Any]) -> None:
    now = dict(parts(thing, type(thing).__name__, {}))
    changed = [path for path in before.keys() | now.keys() if before.get(path, path) != now.get(path, path)]
    assert not changed, f"changed in a run: {sorted(changed)}"


def set_for(objective: Any) -> Any:
    if isinstance(objective, cg.Completion):
        return cg.NuclearBall(objective.shape, 2.0)
    return (
        cg.Birkhoff(objective.shape[0]) if isinstance(objective, cg.GraphMatching) else cg.L2Ball(objective.shape, 2.0)
    )


@pytest.mark.filterwarnings("ignore::condgrad.SmoothnessWarning")
@pytest.mark.parametrize("name", OBJECTIVES)
def test_no_attribute_of_an_objective_changes_in_a_run(name: str) -> None:
    objective = OBJECTIVES[name].example()
    before = dict(parts(objective, type(objective).__name__, {}))
    methods = ("ncgs", "frank-wolfe") if fits(objective, Objective) else ("stochastic-ncgs",)
    for method in (*methods, *(("ncgs-vr",) if hasattr(objective, "n_terms") else ())):
        assert cg.minimize(objective, set_for(objective), method=method, stop=cg.Steps(3), progress=False).steps > 0
    unchanged(objective, before)


@pytest.mark.parametrize("name", [name for name in DOMAINS if name != "cached"])
def test_no_attribute_of_a_set_changes_in_a_run(name: str) -> None:
    domain = next(iter(DOMAINS[name].examples().values()))
    before = dict(parts(domain, type(domain).__name__, {}))
    size = int(np.prod(domain.shape))
    centre = np.random.default_rng(0).normal(size=domain.shape) / size
    F = cg.Function(lambda x: float(np.sum((np.asarray(x) - centre) ** 2)) / 2, lambda x: np.asarray(x) - centre)
    assert cg.minimize(F, domain, method="frank-wolfe", stop=cg.Steps(2), smoothness=1.0, progress=False).steps >= 0
    unchanged(domain, before)


def test_what_a_checkpoint_saves_comes_back_in_its_order() -> None:
    """The gradient of the last evaluation is kept by the cache; those before it only as long as something else holds them."""
    cache, again, objective = Cache(), Cache(), Thing()
    points, gradients = [Thing(), Thing()], [Thing(), Thing()]
    for k in range(2):
        cache.evaluations(objective).put(points[k], float(k), gradients[k])
    again.fill(*cache.content(lambda thing: True))
    assert list(again.evaluations(objective)) == list(cache.evaluations(objective))
    assert next(iter(again.evaluations(objective)))[0] is points[1]


# ------------------------------------------------------------------------------------------ what a run or a thread shares


def test_the_precision_of_a_user_function_belongs_to_a_run_and_to_a_thread() -> None:
    """A function that answers in float32 in one run, or in one thread, has its float64 rounding in all others."""
    dtype: Any = np.float64
    centre = np.array([0.2, 0.3, 0.5])
    F = cg.Function(lambda x: float(np.sum((x - centre) ** 2)), lambda x: (2 * (x - centre)).astype(dtype), 3)
    box = cg.user_set(lambda g: (-np.sign(g)).astype(dtype), 3, diameter=4.0, project=lambda x: x.clip(-1, 1))
    before = [dict(vars(part)) for part in (F, F.grad)]
    alone = cg.minimize(F, box, tol=1e-6, progress=False)
    dtype = np.float32
    coarse = cg.minimize(F, box, tol=1e-6, progress=False)
    assert coarse.certificate.rounding > 1e3 * alone.certificate.rounding
    assert F.precision == np.finfo(float).eps  # outside of runs this thread has asked for no gradient
    F.grad(centre), box.lmo(centre)
    assert F.precision == box.precision == 2.0**-23
    dtype, found = np.float64, []
    thread = threading.Thread(target=lambda: found.extend([F.precision, box.precision]))
    thread.start()
    thread.join()
    assert found == [np.finfo(float).eps] * 2
    again = cg.minimize(F, box, tol=1e-6, progress=False)
    assert bits(again) == bits(alone) and again.certificate.rounding == alone.certificate.rounding
    assert [dict(vars(part)) for part in (F, F.grad)] == before and "_precision" not in vars(box)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_threads_that_evaluate_one_point_change_nothing_in_it(dtype: Any) -> None:
    """A point of several terms: only a run merges them, and that run's points are its own."""
    rng = np.random.default_rng(0)
    rows, cols = np.divmod(rng.choice(600, 200, replace=False), 20)
    F = cg.Completion(rows, cols, rng.normal(size=200).astype(dtype), (30, 20))
    x = low_rank(30, 20, 3, rng) + 0.5 * low_rank(30, 20, 2, rng) - low_rank(30, 20, 1, rng)
    terms, other = x.terms, low_rank(30, 20, 1, rng)

    def found() -> tuple[Any, ...]:
        grad = F.grad(x)
        return F.value(x), grad.inner(x), grad.inner(other), x.inner(x), grad.values.tobytes()

    alone, answers, ready = found(), [], threading.Barrier(4)
    threads = [threading.Thread(target=lambda: (ready.wait(), answers.append(found()))) for _ in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert answers == [alone] * 4 and x.terms is terms and len(terms) == 3
    dense = cg.LowRank(*x.factors())
    assert alone[:4] == pytest.approx(
        (F.value(dense), F.grad(dense).inner(dense), F.grad(dense).inner(other), dense.inner(dense)), rel=1e-5
    )
