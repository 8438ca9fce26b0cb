"""A user's own objective or set in a spec, by the reference ``module:name``. Importing a module runs its code."""

from __future__ import annotations

import importlib
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

from condgrad.protocols import Domain, Expectation, Objective, has, members, missing

ROLES: dict[str, tuple[type, ...]] = {"objective": (Objective, Expectation), "set": (Domain,)}
"""The contracts by role. A part must fit at least one of the contracts of its role."""


def is_reference(name: Any) -> bool:
    """Whether ``name`` has the form ``module:name`` with two Python names; the name of the module may have dots."""
    parts = name.split(":") if isinstance(name, str) else []
    return len(parts) == 2 and all(part.isidentifier() for part in (*parts[0].split("."), parts[1]))


def find(reference: str, folder: Path) -> Any:
    """The object that a reference ``module:name`` names. The folder of the spec is searched for the module first."""
    module, name = reference.split(":")
    here = str(folder.resolve())
    forget_namesake(module, folder)
    sys.path.insert(0, here)
    importlib.invalidate_caches()
    try:
        imported = importlib.import_module(module)
    except ModuleNotFoundError as error:
        if error.name and (module == error.name or module.startswith(f"{error.name}.")):
            raise ValueError(
                f"There is no module {error.name!r} for {reference!r}: put {module.replace('.', '/')}.py beside the spec, or "
                "install it."
            ) from None
        raise ValueError(f"The module {module!r} of {reference!r} needs {error.name!r}: install it.") from None
    except (Exception, SystemExit) as error:
        raise ValueError(f"The module {module!r} of {reference!r} can't be imported: {said(error)}") from error
    finally:
        sys.path.remove(here)
    if not hasattr(imported, name):
        public = ", ".join(sorted(word for word in vars(imported) if not word.startswith("_"))[:10]) or "nothing"
        raise ValueError(f"The module {module!r} has no {name!r} ({reference!r}): it has {public}.")
    return getattr(imported, name)


def forget_namesake(module: str, folder: Path) -> None:
    """Remove a module from ``sys.modules`` if another spec has loaded it from another folder.

    This is done only if the folder of this spec has a module of the same name, which must be imported instead.
    """
    top = module.partition(".")[0]
    ours = [folder.resolve() / f"{top}.py", folder.resolve() / top / "__init__.py"]
    loaded = getattr(sys.modules.get(top), "__file__", None)
    if loaded and any(path.exists() for path in ours) and Path(loaded).resolve() not in ours:
        for name in [name for name in sys.modules if name == top or name.startswith(f"{top}.")]:
            del sys.modules[name]


def guarded(make: Callable[..., Any], reference: str, **arguments: Any) -> Any:
    """Return ``make(**arguments)``. An exception of the user's code becomes a ValueError with one sentence."""
    try:
        return make(**arguments)
    except (Exception, SystemExit) as error:
        raise ValueError(f"{reference!r} can't be built: {said(error)}") from error


def checked(thing: Any, reference: str, role: str) -> Any:
    """Return ``thing``. Raises ValueError if it lacks a member that its role requires."""
    if lacking := lacks(thing, role):
        raise ValueError(
            f"{reference!r} is of type {type(thing).__name__}, which is no {role}: it has no {', no '.join(lacking)}."
        )
    return thing


def lacks(thing: Any, role: str) -> list[str]:
    """The members that ``thing`` lacks for its role. An exception of a user's property becomes a ValueError with one sentence."""
    for name in ("shape", "smoothness", *(name for contract in ROLES[role] for name in members(contract))):
        try:
            has(thing, name)
        except Exception as error:
            raise ValueError(f"The {name!r} of {type(thing).__name__} can't be read: {said(error)}") from error
    return missing(thing, *ROLES[role])


def said(error: BaseException) -> str:
    text = " ".join(str(error).split()).rstrip(".")
    return f"{type(error).__name__}: {text}." if text else f"{type(error).__name__}."
