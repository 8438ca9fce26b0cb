"""Atomic writing of files: all files of condgrad are written completely or not at all.

A file is written under a random temporary name in its folder, flushed to the disk and renamed. The temporary file is created
exclusively, so that no file of the user can be overwritten. It is locked while it is written. A temporary file without a lock
belongs to a process that was killed: the next process that writes the same final file removes the temporary file.
"""

from __future__ import annotations

import errno
import os
import re
import secrets
import shutil
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import cache
from pathlib import Path
from typing import IO

from condgrad.runtime.interruption import defer_signals

try:
    import fcntl
except ImportError:  # not POSIX: files of killed processes look like active ones, and are not removed
    fcntl = None  # type: ignore[assignment]

MAX_REPEATED_LENGTH = 50
"""Maximum number of characters of the final name that a temporary name repeats, because file names are limited in length."""
TEMPORARY_NAME = re.compile(r"\.(.{1,50})\.[0-9a-f]{16}\.partial", re.DOTALL)
"""Pattern of a temporary name; the group is the beginning of the final name."""


@contextmanager
def replacing(path: str | os.PathLike[str], keep: bool = False) -> Iterator[IO[bytes]]:
    """Open a new file for writing. It replaces the old file only when the block ends without an exception.

    Parameters
    ----------
    path : str or os.PathLike
        The file. If it is a symbolic link, the target of the link is replaced. A pipe or a device is written to directly, and so
        is an open file descriptor of this process, such as /dev/stdout or /dev/fd/3.
    keep : bool, default False
        Keep the replaced file, under the name that :func:`previous` returns.

    Yields
    ------
    file : binary file object

    Raises
    ------
    OSError
        If the file cannot be written; ``filename`` is the given path. The old file is unchanged.

    Notes
    -----
    The new file has the mode of the old file and, if the system allows it, the owner of the old file. If there is no old file,
    the umask decides the mode.
    """
    given = Path(path)
    if (number := _descriptor(given)) is not None:
        with open(number, "wb", closefd=False) as stream:  # continues at the current position of the descriptor
            yield stream
        return
    destination = _destination(path)
    if destination is None:
        with open(given, "wb") as stream:
            yield stream
        return
    temporary = ""
    try:
        file, temporary = _create(destination)
        with file:
            yield file
            file.flush()
            _keep_mode(temporary, destination)
            os.fsync(file.fileno())
            if fcntl is not None:  # renamed while locked; systems without fcntl cannot rename open files
                with defer_signals():
                    _move(temporary, destination, keep)
        if fcntl is None:
            with defer_signals():
                _move(temporary, destination, keep)
        _sync_folder(destination.parent)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        own_error = not temporary or (
            isinstance(error, OSError) and error.filename in (None, temporary, str(destination))
        )
        if isinstance(error, OSError) and error.errno and own_error:
            raise OSError(error.errno, error.strerror, str(given)) from error
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, completely or not at all.

    Parameters
    ----------
    path : str or os.PathLike
    text : str
    """
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def replacing_files(folder: Path) -> Iterator[Path]:
    """Write several files. Together they replace files in a folder when the block ends without an exception.

    Parameters
    ----------
    folder : Path
        The folder, which is created if it does not exist. If the block fails, an existing folder is unchanged, and a folder that
        was created here is removed.

    Yields
    ------
    temporary : Path
        Empty folder, into which the block writes the new files, without subfolders. They replace the files of the same names in
        ``folder``; all other files stay. If such a name is a symbolic link, the target of the link is replaced. Ctrl-C and
        SIGTERM are deferred while the files are moved.
    """
    created = [path for path in (folder, *folder.parents) if not path.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _remove_leftovers_once(folder, "files")
        temporary = folder / _temporary_name("files")
        temporary.mkdir()
        lock = _lock_folder(temporary)
        try:
            yield temporary
            with defer_signals():
                files = {file: folder / file.name for file in sorted(temporary.iterdir())}
                for file, destination in files.items():
                    if destination.is_dir():
                        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(destination))
                    if destination.is_file():
                        shutil.copymode(destination, file)
                    _sync(file)
                for file, destination in files.items():
                    if destination.is_symlink():  # first, because writing to the target of a link may fail
                        _copy(file, destination)
                        file.unlink()
                for file, destination in files.items():
                    if file.exists():
                        os.replace(file, destination)
                _sync_folder(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if lock is not None:
                os.close(lock)
    except BaseException:
        for path in created:
            with suppress(OSError):  # another process has written a file there
                path.rmdir()
        raise


def check_folder(folder: Path) -> None:
    """Raise an error if :func:`replacing` could not create its temporary file in a folder.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    OSError
        If no file can be created in the folder; the message has the reason.
    """
    file, name = _create(folder / "trial")
    file.close()
    os.unlink(name)


def remove_leftovers(folder: Path, name: str | None = None) -> None:
    """Remove temporary files and folders of processes that were killed.

    Parameters
    ----------
    folder : Path
    name : str, optional
        Final name of the files to remove. By default all temporary files in the folder are removed.

    Notes
    -----
    Removes files and folders that have a temporary name, belong to this user, are no links and are not locked. A process that is
    still writing a file holds a lock.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        found = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".partial")]
        for entry in found:
            match = TEMPORARY_NAME.fullmatch(entry)
            if match and (name is None or name[:MAX_REPEATED_LENGTH] == match[1]):
                _remove_leftover(folder / entry)


@cache
def _remove_leftovers_once(folder: Path, name: str) -> None:
    """Call ``remove_leftovers`` once per process for each folder and name.

    Listing a large folder takes time, and checkpoints are written often.
    """
    remove_leftovers(folder, name)


def previous(path: str | os.PathLike[str]) -> Path:
    """Path under which :func:`replacing` keeps the replaced file: PATH.previous, beside the target if PATH is a link.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    previous : Path
    """
    return Path(f"{resolve_link(Path(path))}.previous")


def resolve_link(path: Path) -> Path:
    """Target of a symbolic link, or the path itself if the path is no link. The file need not exist.

    Parameters
    ----------
    path : Path

    Returns
    -------
    target : Path

    Raises
    ------
    OSError
        If links form a cycle.
    """
    end = Path(os.path.realpath(path)) if path.is_symlink() else path
    if end.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return end


def _destination(path: str | os.PathLike[str]) -> Path | None:
    """Path of the file to replace; None for a pipe, a device or a file without a name, which are written to directly."""
    given = Path(path)
    # checked before the link is resolved, because /dev/stdout can be a link to a pipe
    if given.exists() and not given.is_file() and not given.is_dir():
        return None
    destination = resolve_link(given)
    return None if given.exists() and not destination.exists() else destination


DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+|\d+/task/\d+))/fd/(\d+)")
"""Pattern of the path of an open file descriptor; the group is its number."""
MAX_LINKS = 40
"""Maximum number of symbolic links that are followed from one path, as in Linux."""


def _descriptor(path: Path) -> int | None:
    """Open file descriptor of this process to which a path leads, directly or through links; None if the path leads to no
    descriptor."""
    name = os.path.abspath(path)
    for _ in range(MAX_LINKS):
        if name in (stream := {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}):
            return stream[name]
        folder = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        for candidate in (name, folder):
            if match := DESCRIPTOR.fullmatch(candidate):
                return int(match[1]) if _is_own_descriptor(candidate) else None
        try:
            name = os.path.normpath(os.path.join(os.path.dirname(folder), os.readlink(folder)))
        except OSError:
            return None
    return None


def _is_own_descriptor(descriptor: str) -> bool:
    return descriptor.startswith(("/dev/fd/", "/proc/self/", "/proc/thread-self/", f"/proc/{os.getpid()}/"))


def _temporary_name(name: str) -> str:
    return f".{name[:MAX_REPEATED_LENGTH]}.{secrets.token_hex(8)}.partial"


def _create(destination: Path) -> tuple[IO[bytes], str]:
    """Create and lock a temporary file beside the destination, with no more read permissions than the old file."""
    _remove_leftovers_once(destination.parent, destination.name)
    try:
        mode = stat.S_IMODE(os.stat(destination).st_mode)
    except OSError:
        mode = 0o666
    while True:
        name = str(destination.parent / _temporary_name(destination.name))
        try:
            number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode & 0o666)
        except FileExistsError:
            continue
        if fcntl is not None:
            with suppress(OSError):  # the file system has no locks
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.exists(name):  # otherwise another process removed the file before it was locked
            return open(number, "wb"), name
        os.close(number)


def _lock_folder(folder: Path) -> int | None:
    """Lock a folder; returns the descriptor that holds the lock."""
    if fcntl is None:
        return None
    number = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return number


def _remove_leftover(path: Path) -> None:
    """Remove a temporary file or folder of this user that is not locked."""
    with suppress(OSError):
        number = os.open(path, os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK)
        try:
            found = os.fstat(number)
            fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
            if os.geteuid() not in (0, found.st_uid):
                return
            if stat.S_ISDIR(found.st_mode):
                shutil.rmtree(path)
            elif stat.S_ISREG(found.st_mode):
                path.unlink()
        finally:
            os.close(number)


def _keep_mode(temporary: str, destination: Path) -> None:
    """Give a temporary file the mode of the file that it replaces and, if the system allows it, the owner."""
    try:
        old, new = os.stat(destination), os.stat(temporary)
    except OSError:
        return
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _move(temporary: str, destination: Path, keep: bool) -> None:
    """Rename a temporary file to its destination. With ``keep``, the old file is kept as :func:`previous`."""
    if keep and destination.exists():
        os.replace(destination, previous(destination))
    os.replace(temporary, destination)


def _copy(file: Path, destination: Path) -> None:
    """Copy a file to the target of a link, which may be on another file system."""
    with open(file, "rb") as source, replacing(destination) as copy:
        shutil.copyfileobj(source, copy)


def _sync(file: Path) -> None:
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """Flush a rename to the disk, on systems that can open a folder."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
