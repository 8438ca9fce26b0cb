"""Files are written whole or not at all, and nothing else in their folder is touched."""

from __future__ import annotations

import os
import signal
import stat
import subprocess
import sys
import threading
from pathlib import Path

import numpy as np
import pytest

import condgrad as cg
from condgrad.cli import main
from condgrad.report import figures
from condgrad.storage import atomic
from condgrad.storage.atomic import check_folder, previous, remove_leftovers, replacing, replacing_files, write_text


def names(folder: Path) -> set[str]:
    return {path.name for path in folder.iterdir()}


def mode(path: Path) -> int:
    return stat.S_IMODE(path.stat().st_mode)


def test_what_is_written_is_new_random_and_in_the_same_folder(tmp_path: Path) -> None:
    seen = set()
    for _ in range(3):
        with replacing(tmp_path / "x.csv") as file:
            file.write(b"1")
            (name,) = names(tmp_path) - {"x.csv"}
            seen.add(name)
            assert atomic.TEMPORARY_NAME.fullmatch(name) and name != "x.csv.partial"
    assert len(seen) == 3 and names(tmp_path) == {"x.csv"}


def test_a_name_that_is_taken_is_not_used(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whatever stands there, a file or a link to one, is somebody's own."""
    (tmp_path / "mine").write_text("mine")
    tokens = iter(["a" * 16, "b" * 16, "c" * 16])
    monkeypatch.setattr(atomic.secrets, "token_hex", lambda size: next(tokens))
    monkeypatch.setattr(atomic, "_remove_leftovers_once", lambda *a: None)
    (tmp_path / f".x.{'a' * 16}.partial").symlink_to("mine")
    (tmp_path / f".x.{'b' * 16}.partial").write_text("mine too")
    write_text(tmp_path / "x", "new")
    assert (tmp_path / "mine").read_text() == "mine" and (tmp_path / "x").read_text() == "new"
    assert (tmp_path / f".x.{'b' * 16}.partial").read_text() == "mine too"


def test_the_mode_is_that_of_the_old_file_or_of_the_umask(tmp_path: Path) -> None:
    (tmp_path / "private").write_text("old")
    (tmp_path / "private").chmod(0o600)
    (tmp_path / "shared").write_text("old")
    (tmp_path / "shared").chmod(0o664)
    before = os.umask(0o027)
    try:
        with replacing(tmp_path / "private") as file:
            (temporary,) = names(tmp_path) - {"private", "shared"}
            assert mode(tmp_path / temporary) == 0o600, "others could read it while it is written"
            file.write(b"new")
        write_text(tmp_path / "shared", "new")
        write_text(tmp_path / "new", "new")
    finally:
        os.umask(before)
    assert [mode(tmp_path / name) for name in ("private", "shared", "new")] == [0o600, 0o664, 0o640]


def test_a_name_may_be_as_long_as_names_can_be(tmp_path: Path) -> None:
    for name in ("x" * 255, "é" * 127):
        write_text(tmp_path / name, name)
        assert (tmp_path / name).read_text() == name
    assert len(names(tmp_path)) == 2


def test_a_leftover_of_a_killed_process_is_removed_by_the_next_writer(tmp_path: Path) -> None:
    code = (
        "import os, signal, sys; from pathlib import Path; from condgrad.storage.atomic import replacing, replacing_files\n"
        "with replacing_files(Path(sys.argv[1])) as made, replacing(Path(sys.argv[1]) / 'x') as file:\n"
        "    (made / 'report.html').write_text('half'); file.write(b'half'); file.flush()\n"
        "    os.kill(os.getpid(), signal.SIGKILL)"
    )
    done = subprocess.run([sys.executable, "-c", code, str(tmp_path)], check=False)
    assert done.returncode == -signal.SIGKILL and len(names(tmp_path)) == 2
    write_text(tmp_path / "y", "another file's leftovers are not asked for")
    assert len(names(tmp_path)) == 3
    write_text(tmp_path / "x", "new")
    with replacing_files(tmp_path):
        pass
    assert names(tmp_path) == {"x", "y"}


def test_only_leftovers_are_swept(tmp_path: Path) -> None:
    """Not what is being written, here or in another process, nor links, nor names that only look alike."""
    hidden = ".x.0123456789abcdef.partial"
    alike = ["x.partial", ".x.partial", ".x.0123456789ABCDEF.partial", "x.0123456789abcdef.partial", hidden + "s"]
    for name in alike:
        (tmp_path / name).write_text("mine")
    (tmp_path / "target").write_text("mine")
    (tmp_path / ".x.0000000000000000.partial").symlink_to("target")
    (tmp_path / hidden).write_text("left")
    code = (
        "import sys; from condgrad.storage.atomic import replacing\n"
        "with replacing(sys.argv[1]) as file:\n    print('begun', flush=True); sys.stdin.readline(); file.write(b'whole')"
    )
    command = [sys.executable, "-c", code, str(tmp_path / "x")]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True) as other:
        assert other.stdout is not None and other.stdin is not None and other.stdout.readline() == "begun\n"
        with replacing(tmp_path / "z") as file:
            remove_leftovers(tmp_path)
            file.write(b"whole")
        other.stdin.write("\n")
        other.stdin.flush()
        assert other.wait() == 0
    assert names(tmp_path) == {*alike, "target", ".x.0000000000000000.partial", "x", "z"}
    assert (tmp_path / "x").read_bytes() == (tmp_path / "z").read_bytes() == b"whole"


def test_writers_to_one_place_do_not_disturb_each_other(tmp_path: Path) -> None:
    texts = [str(k) * 10_000 for k in range(8)]
    threads = [threading.Thread(target=write_text, args=(tmp_path / "x", text)) for text in texts]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert names(tmp_path) == {"x"} and (tmp_path / "x").read_text() in texts


def test_an_output_without_a_name_is_written_to(tmp_path: Path) -> None:
    """/dev/stdout may lead to a file that has been deleted."""
    code = "from condgrad.storage.atomic import write_text; write_text('/dev/stdout', 'out')"
    with open(tmp_path / "x", "w+") as file:
        (tmp_path / "x").unlink()
        assert subprocess.run([sys.executable, "-c", code], stdout=file, check=False).returncode == 0
        file.seek(0)
        assert file.read() == "out"
    assert not names(tmp_path)
    with open(tmp_path / "x", "w") as file:
        assert subprocess.run([sys.executable, "-c", code], stdout=file, check=False).returncode == 0
    assert (tmp_path / "x").read_text() == "out"


def test_a_folder_is_tried_without_a_trace(tmp_path: Path) -> None:
    (tmp_path / "trial").write_text("mine")
    check_folder(tmp_path)
    assert names(tmp_path) == {"trial"} and (tmp_path / "trial").read_text() == "mine"
    for folder in (tmp_path / "none", tmp_path / "trial"):
        with pytest.raises(OSError, match=r"No such file or directory|Not a directory"):
            check_folder(folder)


# --------------------------------------------------------------------------------------------------------- checkpoints


def quadratic() -> tuple[cg.Quadratic, cg.Simplex]:
    Q = np.random.default_rng(0).normal(size=(20, 20))
    return cg.Quadratic(Q + Q.T), cg.Simplex(20)


def test_a_checkpoint_leaves_a_file_beside_it_alone(tmp_path: Path) -> None:
    """PATH.partial was truncated and deleted before the first step, also where a link led to."""
    (tmp_path / "precious").write_text("mine")
    (tmp_path / "c.partial").symlink_to("precious")
    checkpoint = cg.Checkpoint(tmp_path / "c", steps=1)
    cg.minimize(*quadratic(), max_steps=5, tol=1e-12, checkpoint=checkpoint)
    assert (tmp_path / "c.partial").is_symlink() and (tmp_path / "precious").read_text() == "mine"
    assert names(tmp_path) == {"c", "c.previous", "c.partial", "precious"}


def test_a_checkpoint_that_is_a_link_is_followed(tmp_path: Path) -> None:
    """The link was renamed to PATH.previous, and the file stood in its place."""
    disk, here = tmp_path / "disk", tmp_path / "here"
    disk.mkdir()
    here.mkdir()
    (here / "c").symlink_to(disk / "real")
    checkpoint = cg.Checkpoint(here / "c", steps=1)
    asked = {"tol": 1e-12, "checkpoint": checkpoint}
    cg.minimize(*quadratic(), max_steps=5, **asked)
    assert (here / "c").is_symlink() and names(here) == {"c"}
    assert names(disk) == {"real", "real.previous"} and previous(here / "c") == disk / "real.previous"
    with pytest.raises(ValueError, match="There is a checkpoint"):
        cg.minimize(*quadratic(), max_steps=5, **asked)
    resumed = cg.minimize(*quadratic(), max_steps=9, resume=True, **asked)
    assert resumed.x.tobytes() == cg.minimize(*quadratic(), max_steps=9, tol=1e-12).x.tobytes()
    (disk / "real").write_bytes(b"damaged")
    with pytest.warns(cg.CheckpointWarning, match="The previous checkpoint is used instead"):
        cg.minimize(*quadratic(), max_steps=9, resume=True, **asked)


# ------------------------------------------------------------------------------------------------------------- reports


@pytest.mark.parametrize("error", [KeyboardInterrupt, OSError])
def test_a_folder_gets_all_files_or_none(error: type[BaseException], tmp_path: Path) -> None:
    with pytest.raises(error), replacing_files(tmp_path / "a" / "b") as made:
        (made / "x").write_text("half")
        raise error
    assert not names(tmp_path)
    (tmp_path / "a").mkdir()
    (tmp_path / "a" / "x").write_text("old")
    (tmp_path / "a" / "x").chmod(0o600)
    (tmp_path / "a" / "mine").write_text("mine")
    with pytest.raises(error), replacing_files(tmp_path / "a") as made:
        (made / "x").write_text("half")
        raise error
    assert names(tmp_path / "a") == {"x", "mine"} and (tmp_path / "a" / "x").read_text() == "old"
    with replacing_files(tmp_path / "a") as made:
        (made / "x").write_text("new")
        (made / "y").write_text("new")
        assert (tmp_path / "a" / "x").read_text() == "old"
    assert names(tmp_path / "a") == {"x", "y", "mine"} and (tmp_path / "a" / "x").read_text() == "new"
    assert mode(tmp_path / "a" / "x") == 0o600
    (tmp_path / "a" / "z").mkdir()
    with pytest.raises(IsADirectoryError, match="z"), replacing_files(tmp_path / "a") as made:
        (made / "x").write_text("newer")
        (made / "z").write_text("newer")
    assert (tmp_path / "a" / "x").read_text() == "new"


@pytest.mark.parametrize("there", [False, True])
def test_a_fit_that_is_interrupted_while_it_reports_leaves_no_half_report(
    there: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The raw data and some figures stood there without a page, or a new one's beside an old page."""
    lines = [f"{i},{j},{i + j}" for i in range(6) for j in range(5)]
    (tmp_path / "r.csv").write_text("\n".join(["user,item,rating", *lines]))
    words = ["complete", str(tmp_path / "r.csv"), "--out", str(tmp_path / "m.npz"), "--quiet"]
    folder = tmp_path / "m-report"
    if there:
        assert main(words) == 0
    before = {path.name: path.read_bytes() for path in folder.iterdir()} if there else {}

    def stop(*_: object) -> None:
        os.kill(os.getpid(), signal.SIGINT)

    monkeypatch.setattr(figures, "draw_plot", stop)
    assert main([*words, "--seed", "1", "--figures"]) == 130
    assert capsys.readouterr().err.endswith("condgrad: Interrupted from the keyboard.\n")
    assert ({path.name: path.read_bytes() for path in folder.iterdir()} if there else folder.exists()) == (
        before or False
    )
    assert names(tmp_path) == {"r.csv", "m.npz", *(["m-report"] if there else [])}
