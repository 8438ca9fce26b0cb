"""Refusals in one clear sentence: what was given, what was expected, what to do. The bottom layer: numpy only."""

from __future__ import annotations

import difflib
import math
import numbers
import operator
from collections.abc import Iterable
from typing import Any

import numpy as np

FAR = 2.0**70
"""Norm of a point, relative to the size of a set, above which its distance to the set has no effect on the nearest point."""


class BadOracle(ValueError):
    """An oracle returned an impossible answer. The run ends and returns the iterate before this answer."""


class NonFinite(BadOracle):
    """An array or a number is NaN or infinite, but finite numbers are needed."""


FAULTS = (BadOracle, ArithmeticError, np.linalg.LinAlgError)
"""Exceptions of an oracle call at a point where the oracle has no valid answer."""


class BadData(ValueError):
    """A data file can't be used, or a strict reader refuses one of its lines."""


class NotGiven(ValueError):
    """A constant of a user's object, such as its diameter, is needed, but the user did not give it."""


def choice(name: Any, known: Iterable[str], what: str, where: str = "") -> str:
    """Return ``name`` if it is one of ``known``, else raise ValueError. ``what`` and ``where`` describe the name in the
    message."""
    names = list(known)
    if name in names:
        return name
    close = difflib.get_close_matches(str(name), names, n=1)
    hint = f": did you mean {close[0]!r}?" if close else "."
    raise ValueError(f"Unknown {what} {name!r}{where}{hint} Known {plural(what)}: {', '.join(names)}.")


def plural(what: str) -> str:
    """The plural of a noun: loss -> losses, entry -> entries, choice of biases -> choices of biases."""
    noun, space, rest = what.partition(" of ") if " of " in what else what.partition(" to ")
    if noun.endswith("y") and noun[-2:-1] not in "aeiou":
        noun = noun[:-1] + "ie"
    return noun + ("es" if noun.endswith(("s", "x")) else "s") + space + rest


def counted(number: int, what: str) -> str:
    """A number and its noun as text: 1 entry, 2 entries, 3,000 entries."""
    return f"{number:,} {what if number == 1 else plural(what)}"


def real(value: Any, what: str) -> float:
    """``value`` as a float. Raises ValueError if it is not a finite real number."""
    try:
        number = math.nan if isinstance(value, bool) or not isinstance(value, numbers.Real) else float(value)
    except OverflowError:  # a whole number of hundreds of digits
        raise ValueError(f"{what} must be a finite real number, but got one that is too large.") from None
    if not math.isfinite(number):
        raise ValueError(f"{what} must be a finite real number, but got {value!r}.")
    return number


def positive(value: Any, what: str) -> float:
    """``value`` as a float. Raises ValueError if it is not finite and above zero."""
    if (number := real(value, what)) <= 0:
        raise ValueError(f"{what} must be positive, but got {value!r}: give a number above 0.")
    return number


def not_negative(value: Any, what: str) -> float:
    """``value`` as a float. Raises ValueError if it is not finite and at least zero."""
    if (number := real(value, what)) < 0:
        raise ValueError(f"{what} must not be negative, but got {value!r}: give 0 or more.")
    return number


def probability(value: Any, what: str) -> float:
    """``value`` as a float. Raises ValueError if it is not in [0, 1]."""
    if not 0 <= (number := real(value, what)) <= 1:
        raise ValueError(f"{what} must be a probability, but got {value!r}: give a number between 0 and 1.")
    return number


def whole(value: Any, what: str, least: int = 1) -> int:
    """``value`` as an int. Raises ValueError if it is not a whole number of at least ``least``."""
    try:
        number = operator.index(value)
    except TypeError:
        number = None
    if number is None or isinstance(value, bool) or number < least:
        raise ValueError(f"{what} must be a whole number of at least {least}, but got {value!r}.")
    return number


def yes_or_no(value: Any, what: str) -> bool:
    """Return ``value`` if it is True or False, else raise ValueError."""
    if not isinstance(value, bool):
        raise ValueError(f"{what} must be True or False, but got {value!r}.")
    return value


def as_shape(shape: Any, what: str) -> tuple[int, ...]:
    """The shape as a tuple; an int stands for vectors of that length."""
    sizes = shape if isinstance(shape, tuple | list) else (shape,)
    if not sizes:
        raise ValueError(f"The shape of {what} is (), but points have at least one axis: give 1 for a single number.")
    return tuple(whole(size, f"Each size in the shape of {what}") for size in sizes)


def entry_count(value: Any, shape: tuple[int, ...], owner: str) -> int:
    """``value`` as the parameter k of a set, an int. Raises ValueError if k is not between 1 and the number of entries of a
    point."""
    k, most = whole(value, f"The k of {owner}"), math.prod(shape)
    if k > most:
        raise ValueError(f"The k of {owner} is {k}, but its points have {counted(most, 'entry')}: give at most {most}.")
    return k


def same_shape(given: tuple[int, ...], expected: tuple[int, ...], what: str) -> None:
    """Raise ValueError if the shape is not the expected one."""
    if given != expected:
        raise ValueError(f"{what} has shape {given}, but {expected} was expected: reshape it or build for that shape.")


def point(x: Any, shape: tuple[int, ...] | None, owner: str) -> np.ndarray:
    """``x`` as a read-only float64 array (not a copy). Raises ValueError if it is complex or does not have the ``shape``."""
    if shape is not None:
        same_shape(np.shape(x), shape, f"The point given to {owner}")
    return read_only(_as_float(x, owner))


def finite_point(x: Any, shape: tuple[int, ...], owner: str, size: float = math.inf) -> np.ndarray:
    """``x`` as :func:`point` returns it, checked and moved as by :func:`finite`."""
    return finite(point(x, shape, owner), owner, size)


def finite(x: Any, owner: str, size: float = math.inf, far: float = FAR) -> Any:
    """``x``, a point that is to be projected onto a set. Raises NonFinite if it is an array that holds NaN or Inf.

    ``size`` is the largest norm of a point of the set. A point whose norm is above ``far`` times the size is multiplied by a
    power of 2, so that searches for the nearest point keep their digits and no sum overflows. The nearest point changes by less
    than rounding of ``x`` may change it.
    """
    limit = far * size
    if isinstance(x, np.ndarray) and _square(x, f"The point given to {owner}") > limit * limit:
        top = float(np.abs(x).max())
        if top > limit:
            x = read_only(np.ldexp(x, math.frexp(limit)[1] - math.frexp(top)[1]))
    return x


def entries(x: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """``x`` as a float64 array (not a copy), which is not read-only. For oracles that do not write into ``x``.

    Unlike :func:`point`: numpy's argmin copies read-only arrays.
    """
    same_shape(np.shape(x), shape, f"The point given to {owner}")
    return _as_float(x, owner)


def direction(x: Any, shape: tuple[int, ...], owner: str) -> np.ndarray:
    """``x`` as :func:`point` returns it. Raises NonFinite if ``x`` holds NaN or Inf.

    The check takes one pass over ``x`` and no temporary array.
    """
    return direction_and_square(x, shape, owner)[0]


def direction_and_square(x: Any, shape: tuple[int, ...], owner: str) -> tuple[np.ndarray, float]:
    """The array that :func:`direction` returns, and the sum of the squares of its entries, which is Inf if it overflows."""
    array = point(x, shape, owner)
    return array, _square(array, f"The direction given to {owner}")


def read_only(x: Any) -> Any:
    """A read-only view of an array, so that a user's function can't change a point; anything else is returned as it is."""
    if not isinstance(x, np.ndarray):
        return x
    view = x.view()
    view.setflags(write=False)
    return view


def finite_array(
    values: Any, what: str, advice: str = "remove or replace them", keep_float32: bool = False
) -> np.ndarray:
    """A read-only float64 copy. Raises NonFinite if there are NaN or Inf.

    The message says how many there are and where the first one is.

    With ``keep_float32`` an array of float32 is copied as float32.
    """
    array = real_array(values, what, keep_float32)
    if not np.isfinite(array).all():
        raise NonFinite(f"{what} holds NaN or Inf ({not_finite(array)}): {advice}.")
    array.setflags(write=False)
    return array


def real_array(values: Any, what: str, keep_float32: bool = False) -> np.ndarray:
    """A float64 copy. Raises ValueError if the values are not real numbers.

    With ``keep_float32`` an array of float32 is copied as float32.
    """
    try:
        given = np.asarray(values)
    except ValueError:  # ragged nesting
        given = np.empty(0, dtype=object)
    if given.dtype.kind not in "biuf":
        raise ValueError(f"{what} must be an array of real numbers, but got {_kind(values, given)}: convert it first.")
    return np.array(given, dtype=np.float32 if keep_float32 and given.dtype == np.float32 else float)


def finite_direction(direction: np.ndarray, owner: str) -> np.ndarray:
    """``direction``; raises NonFinite if it holds NaN or Inf, because a linear function with them has no minimiser."""
    if not np.isfinite(direction).all():
        raise NonFinite(
            f"The direction given to {owner} holds NaN or Inf ({not_finite(direction)}): check what computes it."
        )
    return direction


def not_finite(array: np.ndarray) -> str:
    """Text that says how many entries are not finite and where the first one is."""
    bad = np.argwhere(~np.isfinite(array))
    first = tuple(int(i) for i in bad[0])
    return f"{len(bad)} of {array.size} entries, the first at index {first}"


def answer(value: Any, shape: tuple[int, ...], function: str) -> np.ndarray:
    """The return value of a user's function as a finite array. Raises ValueError if it has another shape than ``shape``.

    The array is a copy, because the function may reuse its own array.
    """
    array = finite_array(value, f"The answer of {function}", f"check what {function} computes at this point")
    same_shape(array.shape, shape, f"The answer of {function}")
    return array


def number_answer(value: Any, function: str) -> float:
    """The return value of a user's function as a float. Raises ValueError if it is not one finite real number."""
    array = np.asarray(value)
    if array.size != 1:
        raise ValueError(f"The answer of {function} must be a number, but got an array of shape {array.shape}.")
    return real(array.item(), f"The answer of {function}")


def function(value: Any, what: str) -> Any:
    """Return ``value`` if it can be called, else raise TypeError."""
    if not callable(value):
        raise TypeError(f"{what} must be a function, but got {value!r:.60}.")
    return value


def pair(given: Any) -> tuple[Any, Any]:
    """The value and the gradient that a user's value_and_grad returned; raises ValueError if it is not a pair."""
    if not isinstance(given, tuple | list) or len(given) != 2:
        what = f"{len(given)} things" if isinstance(given, tuple | list) else f"of type {type(given).__name__}"
        raise ValueError(f"The answer of value_and_grad is {what}, a pair (value, gradient) was expected.")
    return given[0], given[1]


def settle(frozen: Any, **fields: Any) -> None:
    """Set fields of a frozen dataclass. To be used in ``__post_init__`` only."""
    for name, value in fields.items():
        object.__setattr__(frozen, name, value)


def _square(array: np.ndarray, what: str) -> float:
    """The sum of the squares, in one pass and without a temporary array. Raises NonFinite if an entry is NaN or Inf."""
    flat = array.reshape(-1)
    with np.errstate(over="ignore"):  # the square of a large number is Inf too
        square = float(np.dot(flat, flat))
    if not math.isfinite(square) and not np.isfinite(flat).all():
        raise NonFinite(f"{what} holds NaN or Inf ({not_finite(array)}): check the gradient it comes from.")
    return square


def _as_float(x: Any, owner: str) -> np.ndarray:
    array = np.asarray(x)
    if array.dtype.kind == "c":
        raise ValueError(f"The point given to {owner} is complex, but real numbers were expected: give its real part.")
    return array.astype(float, copy=False)


def _kind(values: Any, given: np.ndarray) -> str:
    return f"dtype {given.dtype}" if isinstance(values, np.ndarray) else f"a {type(values).__name__} without them"
