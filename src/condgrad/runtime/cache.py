"""The cache of a run: results of computations at points that may be needed again.

Objectives and sets store no results between calls, so that threads and runs can share objectives and sets. Results at a point (F,
the gradient, its values on the observed entries, its distances to other points) are in the :class:`Cache` that is active in the
current context. A run has its own cache, so that its last bits do not depend on computations before the run or in another thread.
Outside of runs, each thread has a cache.

The keys of a cache are objects, such as points. A cache finds an entry by the identity of its key, and has only a weak reference
to the key. So an entry disappears with its key, and the cache keeps no point alive.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from types import NoneType
from typing import Any
from weakref import WeakKeyDictionary, ref

MAX_EARLIER = 2
"""Maximum number of evaluations before the last one that stay in the cache. Each stays only while something else refers to its
gradient."""
MIN_PRUNED = 256
"""When this many numbers are stored, the numbers of deleted objects are removed for the first time. They are removed again each
time that the amount of stored numbers has doubled."""


class Numbers:
    """Numbers that belong to two objects, such as a distance. For a number of one object, such as a norm, give the object
    twice."""

    def __init__(self) -> None:
        self._known: dict[tuple[int, int], tuple[ref[Any], ref[Any], float]] = {}
        self._prune_at = MIN_PRUNED

    def get(self, a: Any, b: Any) -> float | None:
        """Return the number of a and b; None if it is not known."""
        found = self._known.get((id(a), id(b)))
        # Python may give the id of a deleted object to a new one
        return found[2] if found is not None and found[0]() is a and found[1]() is b else None

    def put(self, a: Any, b: Any, number: float) -> None:
        """Store the number of a and b."""
        if len(self._known) >= self._prune_at:
            self._known = {(id(a), id(b)): (ref(a), ref(b), number) for a, b, number in self}
            self._prune_at = max(2 * len(self._known), MIN_PRUNED)
        self._known[id(a), id(b)] = ref(a), ref(b), number

    def __iter__(self) -> Iterator[tuple[Any, Any, float]]:
        found = ((a(), b(), number) for a, b, number in self._known.values())
        return ((a, b, number) for a, b, number in found if a is not None and b is not None)


class Recent(WeakKeyDictionary[Any, Any]):
    """Arrays by the objects that they belong to, ordered by their last use."""

    def use(self, key: Any) -> Any:
        """Return the array of an object and mark the array as used last; None if there is no array."""
        found = self.pop(key, None)
        if found is not None:
            self[key] = found
        return found

    def make_room(self, limit: int) -> None:
        """Drop the arrays that were used least recently, until there are fewer than ``limit``."""
        while len(self) >= limit:
            del self[next(iter(self))]


class Evaluations:
    """The last evaluations of one objective: for each, the point, F there, and the gradient if it was computed.

    The cache keeps the gradient of the last evaluation alive. Earlier gradients may be as large as the data, so the cache does
    not keep them alive. It still finds an earlier gradient to which something else refers.
    """

    def __init__(self) -> None:
        self._known: list[tuple[ref[Any], float, Callable[[], Any]]] = []
        self._last_gradient: WeakKeyDictionary[Any, Any] = WeakKeyDictionary()

    def find(self, x: Any, slopes: bool) -> tuple[float, Any] | None:
        """Return the value and, with ``slopes``, the gradient at x; None if they are not known."""
        for position, (point, value, gradient) in enumerate(self._known):
            if point() is x and ((found := gradient()) is not None or not (slopes or position)):
                if position:
                    self.release()
                    self.put(x, value, found)
                return value, found
        return None

    def release(self) -> None:
        """Stop keeping the last gradient alive. Called before the next gradient is computed, to save memory."""
        self._last_gradient.clear()
        self._known = [item for item in self._known if item[0]() is not None and item[2]() is not None][:MAX_EARLIER]

    def put(self, x: Any, value: float, gradient: Any) -> None:
        """Store an evaluation as the last one. ``gradient`` is None if no gradient was computed."""
        self._known.insert(0, (ref(x), value, NoneType if gradient is None else ref(gradient)))
        self._last_gradient[x] = gradient

    def __iter__(self) -> Iterator[tuple[Any, float, Any]]:
        return ((x, value, gradient()) for point, value, gradient in self._known if (x := point()) is not None)


class Cache:
    """Cached numbers, values and evaluations; see the description of this module."""

    def __init__(self) -> None:
        self.numbers = Numbers()
        self._values: WeakKeyDictionary[Any, Recent] = WeakKeyDictionary()
        self._evaluations: WeakKeyDictionary[Any, Evaluations] = WeakKeyDictionary()

    def values(self, pattern: Any) -> Recent:
        """Values of low-rank matrices on the entries of a pattern; the keys are the ``Factors`` of the matrices."""
        return self._values.setdefault(pattern, Recent())

    def drop_values(self) -> None:
        """Drop the values of all points on patterns. Called before many other points are evaluated, to save memory."""
        self._values.clear()

    def evaluations(self, objective: Any) -> Evaluations:
        """The last evaluations of an objective."""
        return self._evaluations.setdefault(objective, Evaluations())

    def content(self, holds: Callable[[Any], bool]) -> Iterator[list[tuple[Any, ...]]]:
        """Yield what a checkpoint saves, as three lists for :meth:`fill`: evaluations, values and numbers.

        Parameters
        ----------
        holds : callable
            ``holds(object)`` says whether the checkpoint contains an object. Entries whose key is not in the checkpoint are left
            out.
        """
        evaluations = [
            (objective, x, value, gradient)
            for objective, known in self._evaluations.items()
            for position, (x, value, gradient) in enumerate(known)
            if holds(objective) and holds(x) and (position == 0 or holds(gradient))
        ]
        yield evaluations[::-1]
        values = ((pattern, key, array) for pattern, known in self._values.items() for key, array in known.items())
        yield [entry for entry in values if holds(entry[0]) and holds(entry[1])]
        yield [entry for entry in self.numbers if holds(entry[0]) and holds(entry[1])]

    def fill(self, evaluations: list[Any], values: list[Any], numbers: list[Any]) -> None:
        """Add the entries that :meth:`content` yielded."""
        for objective, x, value, gradient in evaluations:
            self.evaluations(objective).put(x, value, gradient)
        for pattern, key, array in values:
            self.values(pattern)[key] = array
        for a, b, number in numbers:
            self.numbers.put(a, b, number)


class _OfThread(threading.local):
    def __init__(self) -> None:
        self.cache = Cache()


_ACTIVE: ContextVar[Cache | None] = ContextVar("cache", default=None)
_of_thread = _OfThread()


def active() -> Cache:
    """Return the cache of the run that computes in this context; outside of runs, the cache of the thread."""
    return _ACTIVE.get() or _of_thread.cache


def in_run() -> bool:
    """Return whether a run computes in this context. No other thread uses the points of a run."""
    return _ACTIVE.get() is not None


@contextmanager
def outside_of_runs() -> Iterator[None]:
    """Make the cache of the thread the active cache inside the block, as if there were no run.

    A user's callback is called in such a block: its evaluations then change neither the cache of the run nor the way in which
    points are stored.
    """
    token = _ACTIVE.set(None)
    try:
        yield
    finally:
        _ACTIVE.reset(token)


@contextmanager
def caching(cache: Cache | None) -> Iterator[None]:
    """Make ``cache`` the active cache inside the block. With None, the active cache does not change."""
    token = _ACTIVE.set(cache or _ACTIVE.get())
    try:
        yield
    finally:
        _ACTIVE.reset(token)
