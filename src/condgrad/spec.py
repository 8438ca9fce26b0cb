"""A run from a TOML file: problem, set, method, stop.

[problem]
objective = "quadratic"        # or linear-model, completion, paper, robust-regression, or your own: "module:name"
matrix = "Q.npy"               # files are found beside the spec

[set]
name = "simplex"               # see `condgrad sets`, or your own: "module:name"; the shape is the objective's
                               # sets made from others have these as tables: [set.domain], [[set.sets]], [set.blocks.NAME]

[method]
name = "ncgs"                  # or "auto"; see `condgrad methods`, which lists each one's options
inner = { name = "condg", max_calls = 100 }  # or its name alone; schedule likewise

[stop]                         # whichever comes first
mapping = 1e-6
steps = 1000
"""

from __future__ import annotations

import inspect
import tomllib
from collections.abc import Callable
from dataclasses import dataclass, replace
from functools import partial, reduce
from operator import or_
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.checks import as_shape, choice, finite_array, whole
from condgrad.data.arrays import load_array
from condgrad.domains import DOMAINS
from condgrad.driver import Calls, CpuSeconds, Gap, Mapping, Memory, Result, Seconds, Stagnation, Steps, minimize
from condgrad.driver.asked import Callback
from condgrad.driver.stopping import Rule
from condgrad.inner import INNERS
from condgrad.objectives import LOSSES, OBJECTIVES, Completion, LinearModel, PaperData, Quadratic, Welsch, paper_data
from condgrad.own_parts import checked, find, guarded, is_reference, lacks, said
from condgrad.protocols import COUNTERS
from condgrad.registration import load_plugins
from condgrad.solvers import METHODS, practical, theory
from condgrad.storage.files import read_bytes

STOPS: dict[str, Callable[[Any], Rule]] = {
    "mapping": Mapping,
    "gap": Gap,
    "steps": Steps,
    "seconds": Seconds,
    "cpu": CpuSeconds,
    "memory": Memory,
    "stagnation": Stagnation,
    **{oracle: partial(Calls, oracle=oracle) for oracle in COUNTERS},
}

MAX_SPEC_BYTES = 2**18
MAX_LINE = 4096
"""Maximum number of characters in a line: the time of tomllib for a dotted key, a.b.c, is quadratic in its parts."""

MAX_ENTRIES = 10**8
"""Maximum number of entries of generated data: an array with this many takes 0.8 GB."""

RUN = ("schedule", "inner", "warm_start", "polish", "smoothness", "output", "seed", "every", "measure", "validate")
"""Keys of [method] that every method accepts, besides the method's own options."""

SCHEDULES: dict[str, Callable[..., Any]] = {"practical": practical, "theory": theory}


@dataclass(frozen=True)
class Spec:
    """A complete spec, with the objective, the set and the stopping rule built."""

    objective: Any
    domain: Any
    method: str
    stop: Rule
    keywords: dict[str, Any]
    own: tuple[str, ...] = ()
    """References to the user's own parts, whose code may raise anything."""

    def within(self, **limits: float | None) -> Spec:
        """Return the spec with further limits, by their keys in [stop]; limits that are None are ignored."""
        more = [STOPS[name](limit) for name, limit in limits.items() if limit is not None]
        return replace(self, stop=reduce(or_, more, self.stop))

    def solve(self, progress: bool | None, callback: Callback | None = None, **more: Any) -> Result:
        """Run the spec. ``more`` are further keywords of :func:`minimize`: checkpoint, resume, check_gradient, on_interrupt."""
        try:
            return minimize(
                self.objective,
                self.domain,
                method=self.method,
                stop=self.stop,
                progress=progress,
                callback=callback,
                **more,
                **self.keywords,
            )
        except Exception as error:
            if not self.own or isinstance(error, ValueError | TypeError | ArithmeticError | OSError | MemoryError):
                raise  # its message is meant for the user
            raise ValueError(f"{' or '.join(self.own)} failed in the run: {said(error)}") from error


def load(path: Path) -> Spec:
    """Read a spec from a TOML file; raises ValueError with one sentence if it is not valid."""
    try:
        text = read_bytes(path, MAX_SPEC_BYTES).decode()
        if (longest := max(map(len, text.split("\n")))) > MAX_LINE:
            raise ValueError(
                f"{path} has a line of {longest} characters, at most {MAX_LINE} are allowed: break a long array into lines, or "
                "name a file that holds it."
            )
        raw = tomllib.loads(text)
    except RecursionError:
        raise ValueError(f"{path} is nested too deeply: a spec has sections, keys and values.") from None
    except tomllib.TOMLDecodeError as error:
        raise ValueError(f"{path} is not TOML: {error}.") from None
    except UnicodeDecodeError:
        raise ValueError(f"{path} is not text in UTF-8: save the spec as UTF-8.") from None
    return build(raw, path.parent)


def build(raw: dict[str, Any], folder: Path) -> Spec:
    """Build a spec from the sections of a TOML file. Names of files are relative to ``folder``."""
    load_plugins()
    for section in raw:
        choice(section, ("problem", "set", "method", "stop"), "section of the spec")
    problem, domain = dict(section_of(raw, "problem")), dict(section_of(raw, "set"))
    method, stop = dict(section_of(raw, "method")), section_of(raw, "stop")
    problem_name, set_name = problem.get("objective"), domain.get("name")
    objective = make_objective(problem, folder)
    name = take(method, "name", "method")
    own = {} if name == "auto" else METHODS[choice(name, [*METHODS, "auto"], "method")].options
    known = [*RUN, *own]
    for key in method:
        choice(key, known, "key", " in [method]")
    # a name, or a table that has one and parameters: inner = { name = "condg", max_calls = 100 }
    for key, makers in {
        "schedule": SCHEDULES,
        "inner": {name: entry.factory for name, entry in INNERS.items()},
    }.items():
        if isinstance(method.get(key), dict):
            method[key] = make_named(dict(method[key]), key, makers)
    tol = {"tol": stop["mapping"]} if "mapping" in stop else {}
    steps = {"max_steps": stop["steps"]} if "steps" in stop else {}
    return Spec(
        objective,
        make_domain(domain, getattr(objective, "shape", None), folder),
        name,
        make_stop(stop),
        {**tol, **steps, **method},
        own=tuple(str(name) for name in (problem_name, set_name) if is_reference(name)),
    )


def section_of(raw: dict[str, Any], name: str) -> dict[str, Any]:
    section = raw.get(name)
    if not isinstance(section, dict) or not section:
        raise ValueError(
            f"The spec has no [{name}] with anything in it: it needs [problem], [set], [method] and [stop]."
        )
    return section


def take(section: dict[str, Any], key: str, name: str) -> Any:
    if key not in section:
        raise ValueError(f"[{name}] has no '{key}': add it.")
    return section.pop(key)


def make_objective(section: dict[str, Any], folder: Path) -> Any:
    name = take(section, "objective", "problem")
    if is_reference(name):
        return own(name, section, folder, "objective")
    families = {entry.name: entry for entry in OBJECTIVES.values() if entry.in_specs and entry.name not in PROBLEMS}
    choice(name, [*PROBLEMS, *families], "objective of a spec")
    where = f"[problem] with objective = '{name}'"
    if name in PROBLEMS:
        return call(PROBLEMS[name], section, where, folder=folder)
    return call(families[name].factory, with_arrays(section, families[name].arrays, folder), where)


def quadratic(folder: Path, matrix: str, linear: str | None = None, constant: float = 0.0) -> Quadratic:
    return Quadratic(array(folder, matrix), None if linear is None else array(folder, linear), constant)


def linear_model(folder: Path, features: str, labels: str, loss: str = "welsch", **parameters: Any) -> LinearModel:
    return LinearModel(array(folder, features), array(folder, labels), make_loss(loss, parameters))


def completion(folder: Path, data: str, loss: str = "welsch", **parameters: Any) -> Completion:
    """``data`` is a matrix with NaN for what was not observed."""
    return Completion.from_dense(array(folder, data), loss=make_loss(loss, parameters))


def paper_problem(
    folder: Path,
    shape: list[int],
    rank: int,
    generator: str = "orthonormal",
    sigma: float | None = None,
    seed: int = 0,
    loss: str = "welsch",
    observe: float = 0.1,
    corrupt: float = 0.05,
    noise: float = 3.0,
) -> Completion:
    """Problem (5) of the paper with data generated from the seed. The loss and the shares of entries can be changed."""
    data = paper_matrix(shape, rank, generator, seed, observe, corrupt, noise)
    phi = make_loss(loss, {} if sigma is None else {"sigma": sigma})
    return Completion(data.rows, data.cols, data.values, data.truth.shape, phi)


def paper_matrix(
    shape: list[int],
    rank: int,
    generator: str = "orthonormal",
    seed: int = 0,
    observe: float = 0.1,
    corrupt: float = 0.05,
    noise: float = 3.0,
) -> PaperData:
    if not isinstance(shape, list) or len(shape) != 2:
        raise ValueError(f"The shape in [problem] is {shape!r}, but must be [rows, columns].")
    m, n = (whole(size, "Each size in the shape of [problem]") for size in shape)
    check_size(m * n, f"shape = [{m}, {n}]")
    return paper_data(m, n, rank, seed=seed, generator=generator, observe=observe, corrupt=corrupt, noise=noise)


def check_size(entries: int, given: str) -> None:
    """Refuse to generate data with too many entries, before memory is allocated."""
    if entries > MAX_ENTRIES:
        raise ValueError(
            f"{given} in [problem] makes {entries:.3g} numbers, but at most {MAX_ENTRIES:.3g} are made: give smaller sizes."
        )


def to_twelve(value: float) -> float:
    """Round to 12 significant digits, so that a computed radius does not depend on the BLAS library that computed it."""
    return float(f"{value:.12g}")


def robust_regression(folder: Path, terms: int, dimension: int = 10, seed: int = 0, spread: float = 0.2) -> LinearModel:
    """The family of the exponents: (1/n) sum_i 1 - exp(-(a_i'x - y_i)^2), each |a_i| = 1, so each term has L = 2.

    The seed determines the population, from which ``terms`` samples are drawn. A fifth of the observations have an error of up
    to 3. The scales of the columns decrease from 1 to ``spread``.
    """
    terms, dimension = whole(terms, "terms in [problem]"), whole(dimension, "dimension in [problem]")
    check_size(terms * dimension, f"terms = {terms} and dimension = {dimension}")
    d, population, rng = dimension, np.random.default_rng(seed), np.random.default_rng((seed, terms))
    truth = population.standard_normal(d)
    A = rng.standard_normal((terms, d)) * np.linspace(1, spread, d)
    A /= np.linalg.norm(A, axis=1, keepdims=True)
    y = 1.5 * A @ truth / np.linalg.norm(truth) + 0.1 * rng.standard_normal(terms)
    y += np.where(rng.random(terms) < 0.2, rng.uniform(-3, 3, terms), 0.0)
    return LinearModel(A, y, Welsch())


PROBLEMS: dict[str, Callable[..., Any]] = {
    "quadratic": quadratic,
    "linear-model": linear_model,
    "completion": completion,
    "paper": paper_problem,
    "robust-regression": robust_regression,
}


def make_loss(name: str, parameters: dict[str, Any]) -> Any:
    return call(LOSSES[choice(name, LOSSES, "loss")].factory, parameters, f"loss '{name}'")


def make_named(table: dict[str, Any], what: str, makers: dict[str, Callable[..., Any]]) -> Any:
    """Build an inner solver or a schedule from a table in [method] with its name and parameters."""
    name = take(table, "name", f"{what} of [method]")
    return call(makers[choice(name, makers, what)], table, f"{what} '{name}'")


def make_domain(section: dict[str, Any], shape: tuple[int, ...] | None, folder: Path) -> Any:
    """Build the set of a section. A set made from other sets has a table for each of them, which may have its own shape."""
    known = [name for name, entry in DOMAINS.items() if entry.in_specs]
    name = take(section, "name", "set")
    if is_reference(name):
        return own(name, section, folder, "set", shape=shape)
    if shape is None:
        raise ValueError(
            f"The objective does not say the shape of its points, which set '{name}' needs: give it a shape."
        )
    entry = DOMAINS[choice(name, known, "set")]
    given = {"shape": shape} if "shape" in entry.parameters else {}
    for key in entry.sets:
        if key in section:
            section[key] = make_part(section[key], f"'{key}' of set '{name}'", shape, folder)
    section = with_arrays(section, entry.arrays, folder, shape)
    return call(entry.factory, section, f"set '{name}'", **given)


def make_part(given: Any, what: str, shape: tuple[int, ...], folder: Path) -> Any:
    """Build one set from a table, a list of sets from a list of tables, or a dict of sets from a table of tables."""
    if isinstance(given, list):
        return [make_part(one, what, shape, folder) for one in given]
    if not isinstance(given, dict) or not given:
        raise ValueError(f"The {what} is {given!r:.40}, a table with the name of a set was expected.")
    if all(isinstance(value, dict) for value in given.values()):
        return {key: make_part(value, what, shape, folder) for key, value in given.items()}
    own_shape = given.get("shape")
    size = shape if own_shape is None else as_shape(own_shape, f"the {what}")
    return make_domain({key: value for key, value in given.items() if key != "shape"}, size, folder)


def with_arrays(
    section: dict[str, Any], names: tuple[str, ...], folder: Path, shape: tuple[int, ...] | None = None
) -> dict[str, Any]:
    """Convert some keys to arrays: a string is the name of a file. If a shape is given, a single number fills an array of it."""
    made = dict(section)
    for key in names:
        if key in made:
            value = made[key]
            value = array(folder, value) if isinstance(value, str) else finite_array(value, key)
            made[key] = np.full(shape, value) if shape is not None and value.ndim == 0 else value
    return made


def own(reference: str, section: dict[str, Any], folder: Path, role: str, **offered: Any) -> Any:
    """The user's own objective or set: an instance, or the result of a class or function called with the section's other keys."""
    thing = find(reference, folder)
    if isinstance(thing, type) or (callable(thing) and lacks(thing, role)):
        known = inspect.signature(thing).parameters
        given = {key: value for key, value in offered.items() if key in known and key not in section}
        made = call(partial(guarded, thing, reference), section, f"{role} '{reference}'", parameters=known, **given)
        return checked(made, reference, role)
    if section:
        raise ValueError(
            f"The {role} '{reference}' is an instance, which takes no keys: leave out {', '.join(section)}."
        )
    return checked(thing, reference, role)


def make_stop(section: dict[str, Any]) -> Rule:
    rules = [STOPS[choice(name, STOPS, "stop")](value) for name, value in section.items()]
    return reduce(or_, rules)


def call(make: Callable[..., Any], section: dict[str, Any], where: str, parameters: Any = None, **given: Any) -> Any:
    """Return ``make(**given, **section)``; raises ValueError for unknown and missing keys."""
    parameters = inspect.signature(make).parameters if parameters is None else parameters
    free = any(p.kind is p.VAR_KEYWORD for p in parameters.values())
    known = [name for name in parameters if name not in given]
    for key in section:
        if not free:
            choice(key, known, "key", f" in {where}")
    missing = [n for n in known if parameters[n].default is inspect.Parameter.empty and n not in section]
    missing = [n for n in missing if parameters[n].kind is not inspect.Parameter.VAR_KEYWORD]
    if missing:
        raise ValueError(f"The {where} needs {', '.join(missing)}: add it to the spec.")
    return make(**given, **section)


def array(folder: Path, name: str) -> Any:
    """An array from a .npy, a sparse matrix from a scipy .npz, or a table from a .csv, beside the spec."""
    if not isinstance(name, str) or Path(name).suffix not in (".npy", ".npz", ".csv"):
        raise ValueError(f"Can't read {name!r}: name a .npy, a .npz (scipy sparse) or a .csv file beside the spec.")
    if "\0" in name:
        raise ValueError(f"Can't read {name!r}: the name of a file has no null character, remove it.")
    return load_array(folder / name)
