"""Compiled kernels on disk, shared by all environments and clones of one user.

numba finds its own cache by the path of the source file, so that every new environment compiles again, and its index is not safe
when two processes compile different signatures of one function at the same time. Here one file holds one signature of one
kernel, and its name is a hash of all that the machine code depends on.
"""

from __future__ import annotations

import hashlib
import pickle
import sys
from pathlib import Path
from typing import Any
from uuid import uuid4

import llvmlite
import numba
import numpy
from numba.core import config
from numba.core.caching import _Cache
from numba.core.compiler import CompileResult
from numba.core.serialize import dumps
from numba.misc.appdirs import AppDirs

SETTINGS = ("USING_SVML", "OPT", "LOOP_VECTORIZE", "SLP_VECTORIZE", "BOUNDSCHECK", "DEBUGINFO_DEFAULT")
"""Attributes of `numba.config` that change the machine code."""


def folder() -> Path:
    """Where the compiled kernels are kept: NUMBA_CACHE_DIR if it is set, else the user's cache directory."""
    said: str = getattr(config, "CACHE_DIR", "")
    return Path(said or AppDirs("condgrad", appauthor=False).user_cache_dir) / "condgrad-kernels"


class KernelCache(_Cache):
    """The cache of one kernel, as numba's dispatcher uses it.

    A file that is missing, damaged or unreadable means that the kernel is compiled; a folder that can't be written means that
    the code is not kept, which is said once.
    """

    unwritable = False
    """Whether compiled code could not be kept, of any kernel."""

    def __init__(self, function: Any):
        source = Path(function.__code__.co_filename).read_bytes()
        settings = [repr(getattr(config, name, None)) for name in SETTINGS]
        versions = [numba.__version__, llvmlite.__version__, numpy.__version__, str(sys.implementation.cache_tag)]
        self.name = function.__name__
        names = (function.__module__, self.name)  # the stored code refers to its module
        self.fixed = b"\0".join([source, *(part.encode() for part in (*names, *versions, *settings))])

    @property
    def cache_path(self) -> str:
        return str(folder())

    def path(self, signature: Any, codegen: Any) -> Path:
        """The file for a tuple of argument types; `codegen` knows the processor."""
        varying = repr((signature, codegen.magic_tuple())).encode()
        return folder() / f"{self.name}-{hashlib.sha256(self.fixed + varying).hexdigest()[:32]}.bin"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        try:
            stored = self.path(sig, target_context.codegen()).read_bytes()
        except OSError:
            return None
        digest, code = stored[:32], stored[32:]
        if hashlib.sha256(code).digest() != digest:  # a disk that was full, a crash of the machine
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # whole, but of no use here: compiled again, and replaced
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self.path(sig, data.codegen)
        code = dumps(data._reduce())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.name}.{uuid4().hex}")  # other processes may compile the same
            try:
                temporary.write_bytes(hashlib.sha256(code).digest() + code)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            if not KernelCache.unwritable:
                KernelCache.unwritable = True
                print(
                    f"condgrad: compiled kernels can't be kept in {path.parent} ({error.strerror or error}), so every process "
                    "compiles them again: set NUMBA_CACHE_DIR to a folder that can be written.",
                    file=sys.stderr,
                    flush=True,
                )

    def enable(self) -> None:
        """Nothing to do: it is enabled by standing in a dispatcher."""

    def disable(self) -> None:
        raise NotImplementedError("The kernels' cache can't be switched off: set NUMBA_CACHE_DIR to an empty folder.")

    def flush(self) -> None:
        raise NotImplementedError(f"Delete {folder()} to compile the kernels again.")
