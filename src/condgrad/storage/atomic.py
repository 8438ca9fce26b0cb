"""The only way in which condgrad writes a file: whole, or not at all.

A file is written under a random name in the folder where it belongs, created exclusively so that nothing of the user's can be
touched, flushed to the disk and renamed. While it is written, its writer holds a lock on it. A leftover of a process that was
killed has such a name and no lock: the next process that writes to the same place removes it.
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

from condgrad.runtime.interruption import held_back

try:
    import fcntl
except ImportError:  # no POSIX: leftovers can't be told from files that are being written, and stay
    fcntl = None  # type: ignore[assignment]

NAME_LENGTH = 50
"""Characters of the final name that a temporary name repeats: the whole one may already be as long as a name can be."""
TEMPORARY = re.compile(r"\.(.{1,50})\.[0-9a-f]{16}\.partial", re.DOTALL)
"""A temporary name; the group is the beginning of the final name."""


@contextmanager
def replacing(path: str | os.PathLike[str], keep: bool = False) -> Iterator[IO[bytes]]:
    """Open a file for writing that takes its place only when the block ends without an exception.

    Parameters
    ----------
    path : str or os.PathLike
        The place. A link is followed: it stays, and what it leads to is replaced. A pipe or a device is written to directly,
        and so is an open file of this process by its number, such as /dev/stdout or /dev/fd/3.
    keep : bool, default False
        Keep the replaced file as :func:`previous` of ``path``.

    Yields
    ------
    file : binary file object

    Raises
    ------
    OSError
        By the name that was given. The old file stands as it was.

    Notes
    -----
    An existing file's mode, and its owner where the system allows that, are kept. A new file gets the mode that the umask
    leaves.
    """
    given = Path(path)
    if (number := _descriptor(given)) is not None:
        with open(
            number, "wb", closefd=False
        ) as stream:  # where its other writers have come to, and not from the beginning
            yield stream
        return
    place = _place(path)
    if place is None:
        with open(given, "wb") as stream:
            yield stream
        return
    temporary = ""
    try:
        file, temporary = _create(place)
        with file:
            yield file
            file.flush()
            _keep_mode(temporary, place)
            os.fsync(file.fileno())
            if fcntl is not None:  # still locked; where there are no locks, open files can't be renamed either
                with held_back():
                    _move(temporary, place, keep)
        if fcntl is None:
            with held_back():
                _move(temporary, place, keep)
        _sync_folder(place.parent)
    except BaseException as error:
        if temporary:
            Path(temporary).unlink(missing_ok=True)
        ours = not temporary or (isinstance(error, OSError) and error.filename in (None, temporary, str(place)))
        if isinstance(error, OSError) and error.errno and ours:
            raise OSError(error.errno, error.strerror, str(given)) from error
        raise


def write_text(path: str | os.PathLike[str], text: str) -> None:
    """Write a text file in UTF-8, whole or not at all.

    Parameters
    ----------
    path : str or os.PathLike
    text : str
    """
    with replacing(path) as file:
        file.write(text.encode())


@contextmanager
def filling(folder: Path) -> Iterator[Path]:
    """Make files in a temporary folder that are moved into ``folder`` together when the block ends without an exception.

    Parameters
    ----------
    folder : Path
        Made where it does not exist. If the block fails, it is as it was before: a folder made here is removed again.

    Yields
    ------
    temporary : Path
        An empty folder for the new files (no folders). Files of the same name are replaced, all others stay. A link of that name
        is followed, as by :func:`replacing`. Ctrl-C and SIGTERM wait while the files are moved.
    """
    made = [place for place in (folder, *folder.parents) if not place.exists()]
    folder.mkdir(parents=True, exist_ok=True)
    try:
        _sweep_once(folder, "files")
        temporary = folder / _temporary_name("files")
        temporary.mkdir()
        lock = _locked(temporary)
        try:
            yield temporary
            with held_back():
                files = {file: folder / file.name for file in sorted(temporary.iterdir())}
                for file, place in files.items():
                    if place.is_dir():
                        raise IsADirectoryError(errno.EISDIR, os.strerror(errno.EISDIR), str(place))
                    if place.is_file():
                        shutil.copymode(place, file)
                    _sync(file)
                for file, place in files.items():
                    if place.is_symlink():  # first, since what it leads to may refuse it
                        _copy(file, place)
                        file.unlink()
                for file, place in files.items():
                    if file.exists():
                        os.replace(file, place)
                _sync_folder(folder)
        finally:
            shutil.rmtree(temporary, ignore_errors=True)
            if lock is not None:
                os.close(lock)
    except BaseException:
        for place in made:
            with suppress(OSError):  # somebody else has put something there
                place.rmdir()
        raise


def try_folder(folder: Path) -> None:
    """Refuse a folder in which :func:`replacing` could not make its temporary file.

    Parameters
    ----------
    folder : Path

    Raises
    ------
    OSError
        Why no file can be made there.
    """
    file, name = _create(folder / "trial")
    file.close()
    os.unlink(name)


def sweep(folder: Path, name: str | None = None) -> None:
    """Remove temporary files and folders of processes that were killed.

    Parameters
    ----------
    folder : Path
    name : str, optional
        Only those of the file with this name. By default all in the folder.

    Notes
    -----
    Removed is what has a temporary name, belongs to this user, is no link, and is locked by nobody: a writer that lives, in this
    process or in another one, holds its lock.
    """
    if fcntl is None:
        return
    with suppress(OSError):
        found = [entry.name for entry in os.scandir(folder) if entry.name.endswith(".partial")]
        for entry in found:
            match = TEMPORARY.fullmatch(entry)
            if match and (name is None or name[:NAME_LENGTH] == match[1]):
                _remove_leftover(folder / entry)


@cache
def _sweep_once(folder: Path, name: str) -> None:
    """Once in a process: listing a large folder takes time, and a checkpoint is written again and again."""
    sweep(folder, name)


def previous(path: str | os.PathLike[str]) -> Path:
    """Where :func:`replacing` keeps the file that it replaces: PATH.previous, beside the file that a link leads to.

    Parameters
    ----------
    path : str or os.PathLike

    Returns
    -------
    previous : Path
    """
    return Path(f"{target(Path(path))}.previous")


def target(path: Path) -> Path:
    """The path itself, or where it leads if it is a link, whether there is a file or not.

    Parameters
    ----------
    path : Path

    Returns
    -------
    target : Path
    """
    end = Path(os.path.realpath(path)) if path.is_symlink() else path
    if end.is_symlink():
        raise OSError(errno.ELOOP, os.strerror(errno.ELOOP), str(path))
    return end


def _place(path: str | os.PathLike[str]) -> Path | None:
    """Where the file goes; None for what is written to directly: a pipe, a device, or a file that no longer has a name."""
    given = Path(path)
    if (
        given.exists() and not given.is_file() and not given.is_dir()
    ):  # asked of a link as it is: /dev/stdout can be a pipe
        return None
    place = target(given)
    return None if given.exists() and not place.exists() else place


DESCRIPTOR = re.compile(r"/(?:dev|proc/(?:self|thread-self|\d+|\d+/task/\d+))/fd/(\d+)")
MAX_LINKS = 40


def _descriptor(path: Path) -> int | None:
    """The number of the open file of this process that a path, or a link that it leads to, stands for."""
    name = os.path.abspath(path)
    for _ in range(MAX_LINKS):
        if name in (stream := {"/dev/stdin": 0, "/dev/stdout": 1, "/dev/stderr": 2}):
            return stream[name]
        folder = os.path.join(os.path.realpath(os.path.dirname(name)), os.path.basename(name))
        for place in (name, folder):
            if match := DESCRIPTOR.fullmatch(place):
                return int(match[1]) if _own(place) else None
        try:
            name = os.path.normpath(os.path.join(os.path.dirname(folder), os.readlink(folder)))
        except OSError:
            return None
    return None


def _own(descriptor: str) -> bool:
    return descriptor.startswith(("/dev/fd/", "/proc/self/", "/proc/thread-self/", f"/proc/{os.getpid()}/"))


def _temporary_name(name: str) -> str:
    return f".{name[:NAME_LENGTH]}.{secrets.token_hex(8)}.partial"


def _create(place: Path) -> tuple[IO[bytes], str]:
    """A new, locked file beside the place, and its path. It can be read by nobody who can't read the file in that place."""
    _sweep_once(place.parent, place.name)
    try:
        mode = stat.S_IMODE(os.stat(place).st_mode)
    except OSError:
        mode = 0o666
    while True:
        name = str(place.parent / _temporary_name(place.name))
        try:
            number = os.open(name, os.O_WRONLY | os.O_CREAT | os.O_EXCL | getattr(os, "O_CLOEXEC", 0), mode & 0o666)
        except FileExistsError:
            continue
        if fcntl is not None:
            with suppress(OSError):  # a file system without locks
                fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.path.exists(name):  # else it was swept away before it was locked
            return open(number, "wb"), name
        os.close(number)


def _locked(folder: Path) -> int | None:
    """A descriptor that holds the lock on a folder."""
    if fcntl is None:
        return None
    number = os.open(folder, os.O_RDONLY)
    with suppress(OSError):
        fcntl.flock(number, fcntl.LOCK_EX | fcntl.LOCK_NB)
    return number


def _remove_leftover(path: Path) -> None:
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


def _keep_mode(temporary: str, place: Path) -> None:
    """The mode of the file that is replaced, and its owner where that may be given."""
    try:
        old, new = os.stat(place), os.stat(temporary)
    except OSError:
        return
    if (old.st_uid, old.st_gid) != (new.st_uid, new.st_gid) and hasattr(os, "chown"):
        with suppress(OSError):
            os.chown(temporary, old.st_uid, old.st_gid)
    os.chmod(temporary, stat.S_IMODE(old.st_mode))


def _move(temporary: str, place: Path, keep: bool) -> None:
    if keep and place.exists():
        os.replace(place, previous(place))
    os.replace(temporary, place)


def _copy(file: Path, place: Path) -> None:
    """To where a link leads, which may be another file system."""
    with open(file, "rb") as source, replacing(place) as copy:
        shutil.copyfileobj(source, copy)


def _sync(file: Path) -> None:
    with open(file, "rb") as opened:
        os.fsync(opened.fileno())


def _sync_folder(folder: Path) -> None:
    """Have the rename itself on the disk, where the system lets a folder be opened."""
    if os.name == "posix":
        opened = os.open(folder, os.O_RDONLY)
        try:
            os.fsync(opened)
        finally:
            os.close(opened)
