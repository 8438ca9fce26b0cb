"""A set that remembers the answers of its linear oracle."""

from __future__ import annotations

import hashlib
from collections import OrderedDict
from contextvars import copy_context
from dataclasses import dataclass
from threading import Lock
from typing import Any, NamedTuple, final

import numpy as np

from condgrad import checks
from condgrad.domains.balls import LpBall
from condgrad.domains.combinators._combination import (
    Combination,
    check_set,
    contained,
    only_if,
    start_of,
)
from condgrad.domains.combinators._examples import a_point_of, known_minimum
from condgrad.domains.entry import DomainEntry, Examples
from condgrad.domains.simplices import Simplex
from condgrad.points import inner
from condgrad.protocols import Point, has
from condgrad.runtime.signals import Inexact, heartbeat, receiving, report_inexact


class Saved(NamedTuple):
    """What a :class:`Cached` set has saved since it was made."""

    asked: int = 0
    """Answers that were asked for, by ``lmo`` and ``lmo_lazy``."""
    repeats: int = 0
    """Answers to a direction that was asked before: exactly those of the oracle."""
    lazy: int = 0
    """Answers of ``lmo_lazy`` by a remembered vertex that was good enough."""

    @property
    def calls(self) -> int:
        """Calls of the set's own oracle."""
        return self.asked - self.repeats - self.lazy


class _Answer(NamedTuple):
    """A vertex, and what its oracle reported of its errors."""

    vertex: Point
    reports: tuple[Inexact, ...]


class _Memory:
    """The last answers by a checksum of their directions, and what they saved. It is shared by threads."""

    def __init__(self) -> None:
        self.answers: OrderedDict[bytes, _Answer] = OrderedDict()
        self.lock, self.saved = Lock(), Saved()

    def count(self, **more: int) -> None:
        with self.lock:
            self.saved = self.saved._replace(**{name: getattr(self.saved, name) + n for name, n in more.items()})

    def find(self, key: bytes) -> _Answer | None:
        with self.lock:
            if key in self.answers:
                self.answers.move_to_end(key)
            return self.answers.get(key)

    def add(self, key: bytes, answer: _Answer, size: int) -> None:
        with self.lock:
            self.answers[key] = answer
            while len(self.answers) > size:
                self.answers.popitem(last=False)


@final
@dataclass(frozen=True, eq=False)
class Cached(Combination):
    """S, with the last answers of its linear oracle remembered

    ``lmo`` answers a direction that it has seen before, bit for bit, from memory. The answer is that of S, so a run has the same
    bits with and without the cache, alone, beside other threads or after ``resume``: only its cost differs. The cache is no
    part of the value of the set: it is neither pickled nor copied nor compared. Looking up takes one pass over the
    direction, so it pays where an oracle takes more, such as an assignment, a flow, a linear programme or a decomposition.
    Structured directions are passed on.

    ``lmo_lazy`` answers with any remembered vertex that is good enough. Such an answer depends on what was asked before, so no
    method of this library calls it by itself; it is for own lazy methods, which give up resuming bit for bit.

    All other members are those of S.

    Parameters
    ----------
    domain : Domain
        The set S.
    size : int, default 64
        Number of answers that are remembered, the last ones.

    Examples
    --------
    >>> import numpy as np, condgrad as cg
    >>> S = cg.Cached(cg.Simplex(3))
    >>> for direction in ([1.0, 0.0, 2.0], [1.0, 0.0, 2.0], [0.5, 0.1, 2.0]):
    ...     vertex = S.lmo(np.array(direction))
    >>> S.saved, S.saved.calls
    (Saved(asked=3, repeats=1, lazy=0), 2)
    >>> vertex, remembered = S.lmo_lazy(np.array([3.0, 1.0, 1.0]), np.array([1.0, 0.0, 0.0]), accuracy=1.5)
    >>> vertex, remembered                          # better than x by 2, so the oracle need not be asked
    (array([0., 1., 0.]), True)

    References
    ----------
    G. Braun, S. Pokutta, D. Zink. Lazifying conditional gradient algorithms. Journal of Machine Learning Research 20, 2019.
    """

    domain: Any
    size: int = 64

    def __post_init__(self) -> None:
        check_set(self.domain, "Cached")
        checks.settle(self, size=checks.whole(self.size, "The size of Cached"), _memory=_Memory())

    def __getstate__(self) -> dict[str, Any]:
        return {"domain": self.domain, "size": self.size}

    def __setstate__(self, state: dict[str, Any]) -> None:
        checks.settle(self, **state, _memory=_Memory())

    def __getattr__(self, name: str) -> Any:
        if name.startswith("_") or name == "domain":
            raise AttributeError(name)
        return getattr(self.domain, name)

    @property
    def shape(self) -> tuple[int, ...]:  # type: ignore[override]
        return checks.as_shape(self.domain.shape, "Cached")

    @property
    def parts(self) -> tuple[Any, ...]:
        return (self.domain,)

    @property
    def saved(self) -> Saved:
        """How many answers were asked for, and how many of them came from memory."""
        memory: _Memory = vars(self)["_memory"]
        return memory.saved

    def lmo(self, direction: Point) -> Point:
        """The answer of S: from memory, if the direction was asked before."""
        return self._remembered(direction, "lmo")

    @only_if(lambda cached: has(cached.domain, "atom"))
    def atom(self, direction: Point) -> Point:
        """The structured answer of S: from memory, if the direction was asked before."""
        return self._remembered(direction, "atom")

    def _remembered(self, direction: Point, oracle: str) -> Point:
        memory: _Memory = vars(self)["_memory"]
        direction, ask = self._point(direction), getattr(self.domain, oracle)
        if not isinstance(direction, np.ndarray):
            memory.count(asked=1)
            return ask(direction)
        given = np.ascontiguousarray(direction)
        key = hashlib.blake2b(given.data, digest_size=20, person=oracle.encode()).digest()
        known = memory.find(key)
        memory.count(asked=1, repeats=int(known is not None))
        if known is None:
            outside = copy_context()
            with receiving(lambda: outside.run(heartbeat), alone=True) as reports:
                vertex = checks.read_only(ask(direction))
            known = _Answer(vertex, tuple(reports))
            memory.add(key, known, self.size)
        for error, sentence in known.reports:
            report_inexact(error, sentence)
        return known.vertex

    def lmo_lazy(self, direction: Point, x: Point, accuracy: float) -> tuple[Point, bool]:
        """A vertex that is better than x by at least ``accuracy``, or else the oracle's answer.

        Parameters
        ----------
        direction : Point
        x : Point
            A point of the set.
        accuracy : float
            A remembered vertex v with <direction, x - v> of at least this much is good enough; of several, the best is taken.

        Returns
        -------
        vertex : Point
        remembered : bool
            Whether it comes from memory. If not, it is the oracle's: <direction, x - vertex> is then the Frank-Wolfe gap at x.
        """
        memory: _Memory = vars(self)["_memory"]
        direction = self._point(direction)
        with memory.lock:
            known = [answer.vertex for answer in memory.answers.values()]
        if known:
            best = min(known, key=lambda vertex: inner(direction, vertex))
            if inner(direction, x - best) >= accuracy:
                memory.count(asked=1, lazy=1)
                return best, True
        return self.lmo(direction), False

    def start(self) -> Point:
        """The start of S."""
        return start_of(self.domain)

    def contains(self, x: Point, tolerance: float = 1e-9) -> bool:
        """Whether S contains x."""
        return contained(self.domain, self._point(x), tolerance)


def _cached() -> Examples:
    return {"": Cached(Simplex(4, 2.0)), "of few": Cached(LpBall(3, 3.0), 2)}


def _in_cached(domain: Cached, rng: np.random.Generator) -> np.ndarray:
    return a_point_of(domain.domain, rng)


def _cached_minimum(domain: Cached, g: np.ndarray) -> float:
    return known_minimum(domain.domain, g)


ENTRY = DomainEntry(
    "cached", Cached, "S", "the answer of S, remembered for directions that are asked again",
    _cached, _in_cached, _cached_minimum, sets=("domain",),
)  # fmt: skip
