"""Classes of a user's own in a checkpoint: with ``@condgrad.stored`` a run resumes bit for bit, without it is refused."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
import pytest

import condgrad as cg
from condgrad.driver.checkpoint import VERSION
from condgrad.points.base import Structured
from condgrad.points.low_rank import Factors
from condgrad.protocols import Point
from condgrad.runtime.cache import Cache
from condgrad.storage import archive
from condgrad.storage.archive import BadArchive
from condgrad.storage.snapshot import Serialised, annotations_of, refusing, restore, snapshot
from condgrad.storage.stored import CLASSES, NAMES

N = 5


def _validate_diagonal(x: Diagonal) -> None:
    if x.entries.shape != x.shape[:1] or not np.isfinite(x.entries).all():
        raise ValueError("its entries do not fit its shape")


@cg.stored(fields=("entries", "shape"), validate=_validate_diagonal)
class Diagonal(Structured):
    """A diagonal matrix, stored by its diagonal."""

    def __init__(self, entries: np.ndarray):
        self.entries, self.shape = entries, (len(entries), len(entries))

    def scaled(self, factor: float) -> Diagonal:
        return Diagonal(factor * self.entries)

    def plus(self, other: Structured) -> Any:
        return Diagonal(self.entries + other.entries) if isinstance(other, Diagonal) else NotImplemented

    def inner(self, other: Any) -> float:
        return float(self.entries @ (other.entries if isinstance(other, Diagonal) else np.diag(other)))

    def low_rank_part(self) -> Any:
        raise NotImplementedError

    def to_dense(self) -> np.ndarray:
        return np.diag(self.entries)


class Distance:
    """F(X) = |X - target|^2 / 2."""

    shape, smoothness = (N, N), 1.0
    target = Diagonal(np.linspace(0.0, 0.4, N))

    def value(self, x: Diagonal) -> float:
        return (x - self.target).inner(x - self.target) / 2

    def grad(self, x: Diagonal) -> Diagonal:
        return x - self.target


class Densities:
    """Diagonal matrices with non-negative entries and trace 1."""

    shape, diameter, max_norm = (N, N), 2**0.5, 1.0

    def lmo(self, direction: Diagonal) -> Diagonal:
        return Diagonal(np.eye(N)[np.argmin(direction.entries)])

    def start(self) -> Diagonal:
        return Diagonal(np.eye(N)[0])

    def contains(self, x: Diagonal, tolerance: float = 1e-9) -> bool:
        return bool((x.entries >= -tolerance).all() and abs(x.entries.sum() - 1) <= tolerance)


@cg.stored
class Momentum(NamedTuple):
    direction: Point
    weight: float


@cg.stored
@dataclass(frozen=True)
class HeavyBallState:
    """Of no class of condgrad's: it has what the driver looks at."""

    k: int
    x: Point
    L: float
    momentum: Momentum
    certificate: Any = None
    descent: Any = None


class HeavyBall:
    """Frank-Wolfe along a running average of the gradients."""

    state = HeavyBallState

    def init(self, problem: cg.Problem, x0: Point) -> Any:
        return self.state(k=0, x=x0, L=1.0, momentum=Momentum(problem.objective.grad(x0), 0.0))

    def step(self, problem: cg.Problem, state: Any) -> Any:
        before = state.momentum
        average = 0.7 * before.direction + 0.3 * problem.objective.grad(state.x)
        x = state.x + 2 / (state.k + 3) * (problem.domain.lmo(average) - state.x)
        return replace(state, k=state.k + 1, x=x, momentum=Momentum(average, before.weight + 0.1))


def solve(steps: int, method: Any = None, **saving: Any) -> cg.Result:
    asked = {"method": method or HeavyBall(), "output": "last", "tol": 1e-12, "max_steps": steps}
    return cg.minimize(Distance(), Densities(), **asked, **saving)


def test_an_own_method_with_an_own_state_and_point_resumes_bit_for_bit(tmp_path: Path) -> None:
    whole, path = solve(12, checkpoint=tmp_path / "whole"), tmp_path / "c"
    solve(5, checkpoint=path)
    rest = solve(12, checkpoint=path, resume=True)
    assert type(rest.x) is Diagonal and rest.steps == 12 and rest.counts == whole.counts
    assert rest.x.entries.tobytes() == whole.x.entries.tobytes()
    assert rest.trace["fun"].tobytes() == whole.trace["fun"].tobytes()
    assert b"pickle" not in path.read_bytes()


def test_a_class_that_is_not_stored_is_refused_by_the_decorator_s_name(tmp_path: Path) -> None:
    @dataclass(frozen=True)
    class Bare:
        k: int
        x: Point
        L: float
        momentum: Momentum
        certificate: Any = None
        descent: Any = None

    class Method(HeavyBall):
        state = Bare

    with pytest.raises(TypeError, match=r"Bare .* @condgrad\.stored") as refused:
        solve(3, Method(), checkpoint=tmp_path / "c")
    assert "\n" not in str(refused.value) and not (tmp_path / "c").exists()


def test_a_subclass_must_say_it_for_itself() -> None:
    """Its new fields would be lost."""

    @dataclass(frozen=True)
    class Longer(HeavyBallState):
        more: int = 0

    with pytest.raises(TypeError, match=r"Longer.* @condgrad\.stored"):
        snapshot(Longer(0, Distance.target, 1.0, Momentum(Distance.target, 0.0)))


# ------------------------------------------------------------------------------------------------------- the decorator


def test_what_the_decorator_can_not_store_is_said_where_the_class_is_defined() -> None:
    with pytest.raises(TypeError, match=r"neither a dataclass nor a NamedTuple.*fields="):

        @cg.stored
        class Plain:
            pass

    with pytest.raises(TypeError, match="@stored above @dataclass"):

        @dataclass(frozen=True)
        @cg.stored
        class Upside(HeavyBallState):
            more: int = 0

    class Twin(NamedTuple):
        a: int

    cg.stored(name="mine")(Twin)
    with pytest.raises(TypeError, match=r"stored under the name 'mine' already.*name="):
        cg.stored(name="mine")(Momentum)


def test_every_annotation_of_condgrad_s_own_classes_can_be_compared() -> None:
    own = [entry for entry in NAMES.values() if entry.cls.__module__.startswith("condgrad.")]
    assert len(own) > 25 and all(entry.name == f"condgrad.{entry.cls.__name__}" for entry in own)
    for entry in own:
        if entry.cls is not Factors and hasattr(entry.cls, "__annotations__"):
            assert set(entry.fields) <= set(annotations_of(entry.cls)) or issubclass(entry.cls, Structured)


def test_an_attribute_that_would_be_lost_is_refused() -> None:
    @cg.stored(fields=("a",))
    class Forgetful:
        def __init__(self) -> None:
            self.a, self.b, self._cache = 1, 2, 3

    with pytest.raises(TypeError, match=r"Forgetful has the attribute b, .* fields"):
        snapshot(Forgetful())


def again(thing: Any, **asked: Any) -> Any:
    """Written and read, by way of JSON and arrays of their own."""
    found = snapshot(thing)
    arrays = {name: array.copy() for name, array in found.arrays.items()}
    return restore(Serialised(*json.loads(json.dumps([found.tree, found.nodes])), arrays), **asked)


@cg.stored
@dataclass(frozen=True)
class Cached:
    a: float

    @cached_property
    def twice(self) -> float:
        return 2 * self.a


def test_what_was_cached_is_stored_and_nothing_else_is_computed() -> None:
    one, two = Cached(1.0), Cached(2.0)
    vars(one)["twice"] = 5.0
    found = again([one, two, one])
    assert vars(found[0]) == {"a": 1.0, "twice": 5.0} and vars(found[1]) == {"a": 2.0} and found[0] is found[2]


def test_of_a_cache_what_belongs_to_the_stored_objects_is_stored() -> None:
    kept, lost, shared = Cached(1.0), Cached(2.0), Cached(3.0)
    cache = Cache()
    for key in (kept, lost, shared):
        cache.numbers.put(key, kept, key.a)
    found = snapshot([kept], {"shared": shared}, cache.content)
    (again,), (evaluations, values, numbers) = restore(found, {"shared": shared})
    assert evaluations == values == [] and numbers == [(again, again, 1.0), (shared, again, 3.0)]


def test_what_a_cache_adds_is_held_when_its_next_part_is_asked_for() -> None:
    """A gradient that only the cache holds is stored with the products that are known of it."""

    class Objective:
        pass

    objective, x, gradient, cache = Objective(), Cached(1.0), Cached(2.0), Cache()
    cache.evaluations(objective).put(x, 5.0, gradient)
    cache.numbers.put(gradient, x, 6.0)
    found = snapshot([x], {"objective": objective}, cache.content)
    (again,), content = restore(found, {"objective": objective})
    assert content == [[(objective, again, 5.0, gradient)], [], [(content[0][0][3], again, 6.0)]]
    del cache, gradient
    cache = Cache()
    cache.fill(*content)
    assert cache.evaluations(objective).find(again, slopes=True) == (5.0, content[0][0][3])


def test_objects_that_a_property_makes_are_not_mistaken_for_each_other() -> None:
    @cg.stored(fields=("parts",))
    class Fresh:
        def __init__(self, a: float):
            self._a = a

        @property
        def parts(self) -> Any:
            return Cached(self._a)

    things = [Fresh(float(a)) for a in range(50)]
    found = snapshot(things)
    assert [node[2]["a"] for node in found.nodes if "a" in node[2]] == [thing.parts.a for thing in things]


@pytest.mark.parametrize("array", [np.array([1, "a"], object), np.array([["a"]]), np.zeros(0, "M8[s]")], ids=repr)
def test_arrays_of_anything_else_are_refused_when_they_are_written(array: np.ndarray) -> None:
    with pytest.raises(TypeError, match=r"An array of dtype .* can't be written to a file: numbers and strings can"):
        snapshot([array])


def test_a_cycle_is_refused_when_it_is_written() -> None:
    one = Cached(1.0)
    vars(one)["twice"] = (one,)
    with pytest.raises(TypeError, match="Cached contains itself"):
        snapshot(one)


def test_arrays_keep_their_layout_and_stay_read_only() -> None:
    array = np.arange(24.0).reshape(2, 3, 4).transpose(2, 0, 1)
    array.flags.writeable = False
    found, other = again([array, np.arange(3)])
    assert np.array_equal(found, array) and found.strides == array.strides
    assert not found.flags.writeable and other.flags.writeable


def test_strings_and_keys_of_other_types_come_back() -> None:
    thing = {"a": np.array(["x", "yz"]), 3: np.array(["p"], object), np.int64(4): {0.5: None}, True: np.float32(0.1)}
    found = again(thing)
    assert repr(found) == repr(thing)


# -------------------------------------------------------------------------------------------------------------- forged


def held(data: Any, name: str) -> Any:
    """The fields of the last object of this class."""
    return [node[2] for node in data["nodes"] if node[0] == "object" and node[1].endswith(f".{name}")][-1]


def number_of(data: Any, name: str) -> int:
    return max(i for i, node in enumerate(data["nodes"]) if node[0] == "object" and node[1].endswith(f".{name}"))


FORGED: dict[str, tuple[Any, str]] = {
    "a number as text": (lambda data: held(data, "HeavyBallState").update(L="1"), "L is '1', a float was expected"),
    "L = NaN": (lambda data: held(data, "HeavyBallState").update(L=float("nan")), "L must be a finite real number"),
    "a bool as a number": (lambda data: held(data, "HeavyBallState").update(L=True), "L is True, a float was expected"),
    "no momentum": (lambda data: held(data, "HeavyBallState").update(momentum=None), "a Momentum was expected"),
    "a point that is none": (lambda data: held(data, "Momentum").update(direction=1.0), "a point was expected"),
    "a state as a point": (
        lambda data: held(data, "HeavyBallState").update(x=["node", number_of(data, "Momentum")]),
        "HeavyBallState.x is of type Momentum, a point was expected",
    ),
    "another shape": (lambda data: held(data, "Diagonal").update(shape=["tuple", 2, 2]), "do not fit its shape"),
    "a huge shape": (
        lambda data: held(data, "Diagonal").update(shape=["tuple", 10**12, 10**12]),
        "do not fit its shape",
    ),
    "an unknown class": (
        lambda data: data["nodes"][number_of(data, "HeavyBallState")].__setitem__(1, "os.system"),
        "class 'os.system' is not stored here: import the module that defines it",
    ),
    "a field too many": (lambda data: held(data, "Momentum").update(more=1), "Momentum"),
    "a field too few": (lambda data: held(data, "Momentum").pop("weight"), "Momentum"),
    "an object in itself": (
        lambda data: held(data, "HeavyBallState").update(momentum=["node", number_of(data, "HeavyBallState")]),
        "refers to object",
    ),
    "an object before": (lambda data: held(data, "Momentum").update(direction=["node", -1]), "refers to object -1"),
    "a long text": (lambda data: held(data, "HeavyBallState").update(L="long " * 10**6), "a float was expected"),
    "no node": (lambda data: data["nodes"].insert(0, ["thing"]), "['thing'] is no object"),
    "a number of objects": (lambda data: data.update(nodes=7), "not iterable"),
}


@pytest.mark.parametrize("forged", FORGED)
def test_a_forged_object_is_refused_in_one_sentence(forged: str, tmp_path: Path) -> None:
    path, (forge, said) = tmp_path / "c", FORGED[forged]
    solve(5, checkpoint=path)
    data, arrays = archive.read(path, "checkpoint", VERSION)
    forge(data)
    archive.write(path, "checkpoint", VERSION, data, arrays)
    with pytest.raises(BadArchive) as refused:
        solve(9, checkpoint=path, resume=True)
    sentence = str(refused.value)
    assert sentence.startswith(f"{path} can't be used: what it holds does not fit together") and said in sentence
    assert "\n" not in sentence and len(sentence) < 500 + len(str(path))


def test_an_array_with_nan_is_refused_by_the_class_s_own_function(tmp_path: Path) -> None:
    path = tmp_path / "c"
    solve(5, checkpoint=path)
    data, arrays = archive.read(path, "checkpoint", VERSION)
    at = str(held(data, "Diagonal")["entries"][1])
    archive.write(path, "checkpoint", VERSION, data, arrays | {at: np.full(N, np.nan)})
    with pytest.raises(BadArchive, match="Diagonal: its entries do not fit its shape"):
        solve(9, checkpoint=path, resume=True)


def test_a_point_of_another_shape_is_refused(tmp_path: Path) -> None:
    """It is consistent in itself."""
    path = tmp_path / "c"
    solve(5, checkpoint=path)
    data, arrays = archive.read(path, "checkpoint", VERSION)
    at = str(held(data, "Diagonal")["entries"][1])
    held(data, "Diagonal").update(shape=["tuple", N + 1, N + 1])
    archive.write(path, "checkpoint", VERSION, data, arrays | {at: np.ones(N + 1)})
    with pytest.raises(BadArchive, match=r"has shape \(6, 6\), \(5, 5\) was expected"):
        solve(9, checkpoint=path, resume=True)


def test_a_name_far_longer_than_the_others_takes_no_memory() -> None:
    found = snapshot(np.array(["x", "y"]))
    found.nodes[0][2] = ["a" * 10**7] + ["b"] * 10**5
    with pytest.raises(BadArchive, match="far longer than the others"), refusing("file"):
        restore(found)


def test_an_older_checkpoint_is_refused_with_what_to_do(tmp_path: Path) -> None:
    path = tmp_path / "c"
    archive.write(path, "checkpoint", 2, {}, {})
    with pytest.raises(BadArchive, match=r"version 2, of an older condgrad; this one reads version 5: write it again"):
        solve(5, checkpoint=path, resume=True)


def test_slots_that_are_not_among_the_fields_are_refused() -> None:
    """They were lost without a word when an instance was written."""

    class Slotted:
        __slots__ = ("a", "b")

    with pytest.raises(TypeError, match=r"Slotted has the slots b, which are not among its fields and would be lost"):
        cg.stored(fields=("a",))(Slotted)
    assert cg.stored(fields=("a", "b"), name="slotted")(Slotted) is Slotted

    class Child(Slotted):
        __slots__ = "__hidden"

    with pytest.raises(TypeError, match="has the slots _Child__hidden, a, b"):
        cg.stored(fields=(), name="child")(Child)

    @dataclass(frozen=True, slots=True)
    class Row:
        a: int
        b: float

    assert cg.stored(name="slotted row")(Row) is Row
    for name in ("slotted", "slotted row"):
        del CLASSES[NAMES.pop(name).cls]
