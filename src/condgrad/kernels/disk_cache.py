"""Cache of compiled kernels on disk, shared by all environments and clones of one user.

numba's own cache depends on the path of the source file, so every new environment compiles again, and its index is not safe
if two processes compile different signatures of one function at the same time. Here each file holds one signature of one
kernel, and the name of the file is a hash of everything that the machine code depends on.
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
    """Return the folder of the compiled kernels: in NUMBA_CACHE_DIR if it is set, else in the user's cache directory."""
    configured: str = getattr(config, "CACHE_DIR", "")
    return Path(configured or AppDirs("condgrad", appauthor=False).user_cache_dir) / "condgrad-kernels"


class KernelCache(_Cache):
    """Cache of one kernel, with the interface that numba's dispatcher expects.

    If the file is missing, damaged or unreadable, the kernel is compiled. If the folder can't be written, the code is not
    stored, and the process prints one message about it.
    """

    unwritable = False
    """True if the code of any kernel could not be stored."""

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
        """Return the file for a tuple of argument types; `codegen` identifies the processor."""
        varying = repr((signature, codegen.magic_tuple())).encode()
        return folder() / f"{self.name}-{hashlib.sha256(self.fixed + varying).hexdigest()[:32]}.bin"

    def load_overload(self, sig: Any, target_context: Any) -> Any:
        target_context.refresh()
        try:
            stored = self.path(sig, target_context.codegen()).read_bytes()
        except OSError:
            return None
        digest, code = stored[:32], stored[32:]
        if hashlib.sha256(code).digest() != digest:  # truncated, for example because the disk was full
            return None
        try:
            return CompileResult._rebuild(target_context, *pickle.loads(code))
        except Exception:  # intact, but can't be loaded here: compile again and replace the file
            return None

    def save_overload(self, sig: Any, data: Any) -> None:
        path = self.path(sig, data.codegen)
        code = dumps(data._reduce())
        try:
            path.parent.mkdir(parents=True, exist_ok=True)
            temporary = path.with_name(f"{path.name}.{uuid4().hex}")  # another process may be writing the same kernel
            try:
                temporary.write_bytes(hashlib.sha256(code).digest() + code)
                temporary.replace(path)
            finally:
                temporary.unlink(missing_ok=True)
        except OSError as error:
            if not KernelCache.unwritable:
                KernelCache.unwritable = True
                print(
                    f"condgrad: compiled kernels can't be stored in {path.parent} ({error.strerror or error}), so every process "
                    "compiles them again: set NUMBA_CACHE_DIR to a folder that can be written.",
                    file=sys.stderr,
                    flush=True,
                )

    def enable(self) -> None:
        """Do nothing: the cache is enabled as soon as a dispatcher has it."""

    def disable(self) -> None:
        raise NotImplementedError("The kernels' cache can't be switched off: set NUMBA_CACHE_DIR to an empty folder.")

    def flush(self) -> None:
        raise NotImplementedError(f"Delete {folder()} to compile the kernels again.")
