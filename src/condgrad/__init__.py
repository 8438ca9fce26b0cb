"""condgrad: minimise smooth, possibly non-convex functions over convex sets, without projecting.

Names and subpackages are imported on first use (PEP 562): `import condgrad` and `condgrad --version` load no numerical library
but numpy.
"""

from __future__ import annotations

import importlib
import logging
import pkgutil
from importlib.machinery import PathFinder
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from condgrad._api import *  # noqa: F403
    from condgrad._api import __all__ as __all__

__version__ = "0.1.0"

logging.getLogger(__name__).addHandler(logging.NullHandler())  # silent until a program sets logging up

if not TYPE_CHECKING:  # for a type checker, a module that has __getattr__ has every name

    def __getattr__(name: str) -> Any:
        # Modules first: `from condgrad import checks` in a module that _api imports must not import _api.
        public = not name.startswith("_")
        if public and PathFinder.find_spec(f"{__name__}.{name}", __path__):  # noqa: F405
            return importlib.import_module(f"{__name__}.{name}")
        if public or name == "__all__":
            api = importlib.import_module(f"{__name__}._api")
            if name in ("__all__", *api.__all__):
                return globals().setdefault(name, getattr(api, name))
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")

    def __dir__() -> list[str]:
        modules = {module.name for module in pkgutil.iter_modules(__path__)}  # noqa: F405
        return sorted({*globals(), *__getattr__("__all__"), *modules})
