"""The file of arrays and plain data: what goes in comes out, whole or not at all."""

from __future__ import annotations

import errno
import hashlib
import os
import zipfile
from pathlib import Path

import numpy as np
import pytest

from condgrad.storage import archive, files
from condgrad.storage.archive import BadArchive
from condgrad.storage.atomic import replacing

DATA = {"nothing": None, "numbers": [1, -0.0, 0.1, 1e-320, float("nan"), float("inf"), -float("inf")], "text": "µ\n"}
ARRAYS = {
    "plain": np.arange(6.0).reshape(2, 3),
    "by_columns": np.asfortranarray(np.random.default_rng(0).standard_normal((3, 4))),
    "a_view": np.random.default_rng(1).standard_normal((4, 6))[:, ::2],
    "empty": np.zeros((0, 5)),
    "scalar": np.array(2.5),
    "odd": np.array([np.nan, -0.0, np.inf, 5e-324]),
    "whole": np.arange(5, dtype=np.int32),
    "flags": np.array([True, False]),
}


@pytest.fixture
def path(tmp_path: Path) -> Path:
    path = tmp_path / "some.cg"
    archive.write(path, "test", 1, DATA, ARRAYS)
    return path


def same(data: object, arrays: dict[str, np.ndarray]) -> bool:
    return repr(data) == repr(DATA) and all(
        arrays[name].dtype == ARRAYS[name].dtype
        and arrays[name].shape == ARRAYS[name].shape
        and arrays[name].tobytes() == ARRAYS[name].tobytes()
        for name in ARRAYS
    )


def test_all_comes_back_bit_for_bit(path: Path) -> None:
    data, arrays = archive.read(path, "test", 1)
    assert same(data, arrays)
    assert arrays["by_columns"].flags.f_contiguous
    assert np.load(path, allow_pickle=False)["plain"].tolist() == ARRAYS["plain"].tolist()
    assert os.listdir(path.parent) == [path.name]


def test_the_file_before_is_kept(path: Path) -> None:
    archive.write(path, "test", 1, "newer", {}, keep=True)
    assert archive.read(path, "test", 1) == ("newer", {})
    assert same(*archive.read(archive.previous(path), "test", 1))


@pytest.mark.parametrize(
    ("kind", "version", "said"),
    [("model", 1, "kind 'test'"), ("test", 0, "newer condgrad"), ("test", 2, "older condgrad")],
)
def test_another_kind_or_version_is_refused(path: Path, kind: str, version: int, said: str) -> None:
    with pytest.raises(BadArchive, match=said):
        archive.read(path, kind, version)


def test_no_truncated_file_is_read(path: Path) -> None:
    whole = path.read_bytes()
    for length in range(0, len(whole), 7):
        path.write_bytes(whole[:length])
        with pytest.raises(BadArchive):
            archive.read(path, "test", 1)


def test_no_flipped_bit_changes_what_is_read(path: Path) -> None:
    whole, rng = path.read_bytes(), np.random.default_rng(0)
    refused = 0
    for at in range(0, len(whole), 3):
        damaged = bytearray(whole)
        damaged[at] ^= 1 << int(rng.integers(8))
        path.write_bytes(damaged)
        try:
            assert same(*archive.read(path, "test", 1))  # a bit that says nothing, such as a date
        except BadArchive:
            refused += 1
    assert refused > len(whole) / 6


def test_a_foreign_file_is_refused(tmp_path: Path) -> None:
    path = tmp_path / "x.npz"
    for write in (
        lambda: path.write_text("hello"),
        lambda: np.savez(path, x=np.ones(3)),
        lambda: np.savez_compressed(path, x=np.zeros(10**6)),
    ):
        write()
        with pytest.raises(BadArchive):
            archive.read(path, "test", 1)


def test_sizes_are_checked_before_memory_is_taken(path: Path) -> None:
    """An array that says it is large, with a checksum that holds, is refused before numpy makes room for it."""
    with zipfile.ZipFile(path) as members:
        inside = {name: members.read(name) for name in members.namelist()}
    large = inside["plain.npy"].replace(b"(2, 3)", b"(2, 3000000000000)").replace(b" " * 12, b"", 1)
    with zipfile.ZipFile(path, "w") as members:
        for name, content in (inside | {"plain.npy": large}).items():
            members.writestr(name, content)
    with pytest.raises(BadArchive, match="declares more than it holds"):
        archive.read(path, "test", 1)


def test_deep_nesting_is_refused(path: Path) -> None:
    nested: list[object] = []
    for _ in range(500):
        nested = [nested]
    archive.write(path, "test", 1, nested, {})
    with pytest.raises(BadArchive, match="nested"):
        archive.read(path, "test", 1)


def with_header(path: Path, header: bytes) -> None:
    with zipfile.ZipFile(path, "w") as members:
        members.writestr(archive.HEADER, header)
        members.writestr(archive.SUM, hashlib.sha256(header).hexdigest())


@pytest.mark.parametrize("unit", [b'\\"', b'"', b'["', b"\\", b'"\\'])
def test_a_header_is_looked_through_once(unit: bytes, path: Path) -> None:
    """A string that never ends was looked for from each of its quotes: hours for this megabyte."""
    with_header(path, b'"' + unit * 2**19)
    with pytest.raises(BadArchive, match="can't be used"):
        archive.read(path, "test", 1)


@pytest.mark.parametrize("text", ["[" * 300, '"\\"" [' * 300, '["]]]]", "\\\\", ' * 300])
def test_brackets_are_counted_outside_of_strings(text: str, path: Path) -> None:
    with_header(path, text.encode())
    with pytest.raises(BadArchive, match="nested"):
        archive.read(path, "test", 1)
    archive.write(path, "test", 1, text, {})
    assert archive.read(path, "test", 1) == (text, {})


def test_a_header_has_a_largest_size(path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(files, "MAX_JSON_BYTES", 2**20)
    with pytest.raises(OSError, match="more than 1 MiB"):
        archive.write(path, "test", 1, "x" * 2**20, {})
    assert same(*archive.read(path, "test", 1)) and os.listdir(path.parent) == [path.name]
    with_header(path, b" " * (2**20 + 1))
    with pytest.raises(BadArchive, match="more than 1 MiB"):
        archive.read(path, "test", 1)


def test_what_is_no_file_is_refused(tmp_path: Path) -> None:
    """A pipe nobody writes to was waited for forever."""
    os.mkfifo(tmp_path / "pipe")
    for path in (tmp_path / "pipe", tmp_path, Path(os.devnull)):
        with pytest.raises(BadArchive, match=r"it is a (folder|pipe or a device), a file was expected"):
            archive.read(path, "test", 1)
    with pytest.raises(FileNotFoundError):
        archive.read(tmp_path / "nothing", "test", 1)


def test_objects_are_not_written(path: Path) -> None:
    for array in (np.array([object()]), np.array(["a"])):
        with pytest.raises(TypeError, match="arrays of numbers"):
            archive.write(path, "test", 1, None, {"x": array})
    assert same(*archive.read(path, "test", 1))
    assert os.listdir(path.parent) == [path.name]


# ------------------------------------------------------------------------------------------------------------- places


def test_a_file_of_the_users_beside_it_stays(path: Path, tmp_path: Path) -> None:
    """PATH.partial was truncated and deleted where the last file is kept, also through a link."""
    (tmp_path / "elsewhere").write_text("mine")
    mine = Path(f"{path}.partial")
    for keep in (False, True):
        mine.symlink_to(tmp_path / "elsewhere")
        archive.write(path, "test", 1, DATA, ARRAYS, keep=keep)
        with pytest.raises(RuntimeError), replacing(path, keep):
            raise RuntimeError
        assert mine.is_symlink() and mine.read_text() == "mine"
        mine.unlink()
    assert same(*archive.read(path, "test", 1))
    assert (
        {path, archive.previous(path)}
        <= set(path.parent.iterdir())
        <= {path, archive.previous(path), tmp_path / "elsewhere"}
    )


def test_a_link_that_leads_nowhere_is_followed_and_one_to_itself_refused(tmp_path: Path) -> None:
    (tmp_path / "link").symlink_to("there")
    archive.write(tmp_path / "link", "test", 1, DATA, ARRAYS)
    assert (tmp_path / "link").is_symlink() and same(*archive.read(tmp_path / "there", "test", 1))
    (tmp_path / "loop").symlink_to("loop")
    with pytest.raises(OSError, match=r"Too many levels of symbolic links: '.*loop'$"):
        archive.write(tmp_path / "loop", "test", 1, DATA, ARRAYS)
    assert {file.name for file in tmp_path.iterdir()} == {"link", "there", "loop"}


def test_what_can_not_be_written_is_named_as_it_was_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    with pytest.raises(FileNotFoundError, match=r"none/file'$"):
        archive.write(tmp_path / "none" / "file", "test", 1, DATA, ARRAYS)

    def replace(old: str, new: str) -> None:
        raise PermissionError(errno.EACCES, "Permission denied", str(old), None, str(new))

    monkeypatch.setattr("os.replace", replace)
    with pytest.raises(PermissionError, match=r"denied: '[^']*file'$"):
        archive.write(tmp_path / "file", "test", 1, DATA, ARRAYS)
    with pytest.raises(FileNotFoundError, match="'other'"), replacing(tmp_path / "file"):
        raise FileNotFoundError(errno.ENOENT, "No such file", "other")
    assert not list(tmp_path.iterdir())
