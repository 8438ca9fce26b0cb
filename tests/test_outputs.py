"""Where commands write: descriptors, pipes, links, and outputs that are the same file."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest
from tests.commands import HUNG, refused

from condgrad.storage.atomic import replacing

RATINGS = "user,item,rating\n" + "".join(f"u{i},i{j},{1 + (i * j) % 5}\n" for i in range(6) for j in range(5))


@pytest.fixture
def ratings(tmp_path: Path) -> Path:
    (tmp_path / "r.csv").write_text(RATINGS)
    return tmp_path / "r.csv"


@pytest.mark.parametrize("name", ["/dev/stdout", "/dev/fd/1", "/proc/self/fd/1", "link"])
def test_an_open_file_is_written_to_and_not_replaced(name: str, tmp_path: Path) -> None:
    """The file that standard output was sent to was replaced: all others' lines in it were lost."""
    if name == "link":
        name = str(tmp_path / "link")
        (tmp_path / "between").symlink_to("/dev/stdout")
        (tmp_path / "link").symlink_to("between")
    code = "import sys; from condgrad.storage.atomic import replacing\nwith replacing(sys.argv[1]) as f: f.write(b'table\\n')"
    script = 'echo header; "$0" -c "$1" "$2"; echo trailer'
    with open(tmp_path / "g.txt", "wb") as file:
        subprocess.run(["sh", "-c", script, sys.executable, code, name], stdout=file, check=True, timeout=HUNG)
    assert (tmp_path / "g.txt").read_text() == "header\ntable\ntrailer\n"


def test_the_table_may_not_replace_the_model_by_a_link(
    ratings: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    real, link = tmp_path / "real.npz", tmp_path / "a.npz"
    link.symlink_to(real)
    assert "--out and --filled are both" in refused(capsys, "complete", ratings, "--out", real, "--filled", link)
    page = tmp_path / "report.html"
    said = refused(capsys, "complete", ratings, "--out", page, "--report", tmp_path)
    assert "--out and report.html of the report are both" in said
    said = refused(capsys, "complete", ratings, "--out", real, "--filled", tmp_path / "data.json", "--report", tmp_path)
    assert "--filled and data.json of the report are both" in said and not real.exists()


@pytest.mark.skipif(not hasattr(os, "mkfifo"), reason="no named pipes")
def test_a_pipe_that_nobody_reads_can_be_interrupted(tmp_path: Path) -> None:
    """Signals were held back while it waited for a reader."""
    os.mkfifo(tmp_path / "pipe")
    code = (
        "import os, signal, sys, threading, numpy as np; from pathlib import Path\n"
        "from condgrad.cli.tables import write_table\n"
        "signal.signal(signal.SIGINT, signal.default_int_handler)\n"
        "threading.Timer(0.5, lambda: os.kill(os.getpid(), signal.SIGINT)).start()\n"
        "one = np.ones(1)\n"
        "try:\n    write_table(Path(sys.argv[1]), one, one, one)\n"
        "except KeyboardInterrupt:\n    print('interrupted')\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code, str(tmp_path / "pipe")], capture_output=True, text=True, timeout=60
    )
    assert done.stdout == "interrupted\n", done.stderr


def test_closed_standard_output_is_said_in_a_sentence(ratings: Path, tmp_path: Path) -> None:
    from condgrad.cli import main

    model = tmp_path / "m.npz"
    assert main(["complete", str(ratings), "--out", str(model), "--no-report", "--quiet"]) == 0
    run = 'exec "$0" -m condgrad predict "$1" --top 1 >&-'
    done = subprocess.run(
        ["sh", "-c", run, sys.executable, str(model)], stderr=subprocess.PIPE, text=True, timeout=HUNG
    )
    assert done.returncode == 2 and done.stderr.count("\n") == 1
    assert "Standard output is closed" in done.stderr


FORK = """
import os, signal, time
import numpy as np, condgrad as cg
def fork(record, x):
    if record.k != 2:
        return
    ready, told = os.pipe()  # a signal that comes before Python has set the child up is lost, with or without a run
    child = os.fork()
    if not child:
        os.write(told, b"!")
        time.sleep(60)
        os._exit(0)
    os.read(ready, 1)
    os.kill(child, signal.SIGTERM)
    print(os.WTERMSIG(os.waitpid(child, 0)[1]), flush=True)
cg.minimize(cg.Quadratic(np.eye(3)), cg.Simplex(3), stop=cg.Steps(4), callback=fork)
assert signal.getsignal(signal.SIGTERM) is signal.SIG_DFL
"""


@pytest.mark.skipif(not hasattr(os, "fork"), reason="no fork")
def test_sigterm_ends_a_process_that_was_forked_inside_a_run() -> None:
    done = subprocess.run([sys.executable, "-c", FORK], capture_output=True, text=True, timeout=HUNG)
    assert done.stdout == f"{int(signal.SIGTERM)}\n" and done.stderr == ""


def test_a_replaced_file_is_still_whole_or_not_there(tmp_path: Path) -> None:
    path = tmp_path / "fd" / "1"
    path.parent.mkdir()
    with replacing(path) as file:
        file.write(b"x")
    assert path.read_bytes() == b"x", "a file of that name elsewhere is no descriptor"


def test_a_report_of_a_file_whose_name_is_not_utf8(ratings: Path, tmp_path: Path) -> None:
    """The fit was done, and then the page could not be encoded."""
    from condgrad.cli import main

    odd = os.fsdecode(os.fsencode(tmp_path) + b"/r\xff.csv")
    try:
        os.rename(ratings, odd)
    except OSError:
        pytest.skip("a file system of UTF-8 names only")
    assert main(["complete", odd, "--out", str(tmp_path / "m.npz"), "--quiet"]) == 0
    assert "r\\udcff.csv" in (tmp_path / "m-report" / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize(
    ("body", "said"),
    [
        ("raise SystemExit(3)", "can't be imported: SystemExit: 3."),
        ("class F:\n    @property\n    def shape(self): raise OSError('gone')\nf = F()", "'shape' of F can't be read"),
    ],
)
def test_what_the_users_module_raises_is_one_sentence(
    body: str, said: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (tmp_path / "mine_that_raises.py").write_text(body)
    spec = tmp_path / "s.toml"
    spec.write_text(
        '[problem]\nobjective = "mine_that_raises:f"\n[set]\nname = "simplex"\n[method]\nname = "ncgs"\n[stop]\nsteps = 1\n'
    )
    try:
        assert said in refused(capsys, "solve", spec)
    finally:
        sys.modules.pop("mine_that_raises", None)
    assert "is a folder, but a spec was expected" in refused(capsys, "solve", tmp_path)


def test_labels_that_are_one_as_text_are_not_merged_silently() -> None:
    from condgrad.learn.completion.table_labels import pack

    pandas = pytest.importorskip("pandas")
    with pytest.raises(ValueError, match="Two labels are both '1' as text"):
        pack(pandas.Index([1, "1", "a"], dtype=object))
    assert pack(pandas.Index(["a", "a"]))["labels"].tolist() == ["a", "a"]  # type: ignore[index]
