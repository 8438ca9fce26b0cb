"""Files from strangers: limits hold before memory is taken, nothing is waited for, and time grows with length and no faster."""

from __future__ import annotations

import gzip
import io
import json
import os
import resource
import struct
import subprocess
import sys
import zipfile
import zlib
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from benchmarks.fuzz_targets import npy
from scipy import sparse
from tests.commands import refused

from condgrad import spec
from condgrad.data import BadData, load, load_labelled
from condgrad.data.arrays import load_array
from condgrad.data.lines import NUMBER
from condgrad.report import run_report
from condgrad.storage import files

GIB = 2**30
SPEC = """[problem]
objective = "quadratic"
matrix = "{matrix}"
[set]
name = "simplex"
[method]
name = "ncgs"
[stop]
steps = 2
"""


def in_a_process(code: str, *words: Any, memory: int = 2 * GIB, cpu: int = 60) -> subprocess.CompletedProcess[str]:
    """Run with limits of address space and CPU time: far more than is needed, and far less than the defect took."""

    def limit() -> None:
        resource.setrlimit(resource.RLIMIT_AS, (memory, memory))
        resource.setrlimit(resource.RLIMIT_CPU, (cpu, cpu))

    command = [sys.executable, "-c", code, *map(str, words)]
    return subprocess.run(command, capture_output=True, text=True, preexec_fn=limit, check=False)


def peak(code: str, *words: Any) -> float:
    """MiB that the process took at most beyond what its imports did."""
    first, _, rest = code.partition("\n")
    script = (
        f"import resource, sys\n{first}\nbefore = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n{rest}\n"
        "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) / 1024)"
    )
    found = in_a_process(script, *words, memory=16 * GIB)
    assert found.returncode == 0, found.stderr
    return float(found.stdout.splitlines()[-1])


# ---------------------------------------------------------------------------------------------------- matrices of a spec


def solve(folder: Path, matrix: str, capsys: pytest.CaptureFixture[str]) -> str:
    (folder / "s.toml").write_text(SPEC.format(matrix=matrix))
    return refused(capsys, "solve", folder / "s.toml", "--quiet")


def compressed(**arrays: Any) -> bytes:
    """As scipy.sparse.save_npz writes a csr matrix of 3 x 3, with some arrays replaced."""
    eye = {"indices": [0, 1, 2], "indptr": [0, 1, 2, 3], "format": b"csr", "shape": [3, 3], "data": [1.0, 1.0, 1.0]}
    out = io.BytesIO()
    np.savez(out, **{name: np.asarray(value) for name, value in {**eye, **arrays}.items()})
    return out.getvalue()


@pytest.mark.parametrize(
    ("arrays", "told"),
    [
        ({"indices": [0, 1, 10**9]}, "element 3: the column is 1000000000, but a number from 0 to 2 was expected"),
        ({"indices": [0, -7, 2]}, "element 2: the column is -7, but a number from 0 to 2 was expected"),
        ({"indptr": [0, 1, 2, 10**9]}, "indptr, indices and data do not fit together"),
        ({"indptr": [0, 5, 2, 3]}, "indptr, indices and data do not fit together"),
        ({"indptr": [0, 3]}, "indptr, indices and data do not fit together"),
        ({"shape": [3, -3]}, "the shape is 3 x -3"),
        ({"shape": [-3, 3]}, "indptr, indices and data do not fit together"),
        ({"shape": [3, 10**12]}, "at most 100000000 rows and columns are allowed"),
        ({"shape": [3, 3, 3]}, "the shape has 3 sizes"),
        ({"data": [1j, 1j, 1j]}, "no NPZ file of arrays of numbers"),
        ({"data": np.array([object()] * 3)}, "no NPZ file of arrays of numbers"),
        ({"format": b"dia"}, "the format 'dia', but coo, csr or csc was expected"),
    ],
)
def test_a_sparse_matrix_that_does_not_fit_together(
    arrays: dict[str, Any], told: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """scipy's load_npz checked none of it: solving crashed in native code, or computed with foreign memory."""
    (tmp_path / "Q.npz").write_bytes(compressed(**arrays))
    assert told in solve(tmp_path, "Q.npz", capsys)


@pytest.mark.parametrize("kind", ["coo", "csr", "csc"])
def test_a_sparse_matrix_is_read_as_scipy_reads_it(kind: str, tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    matrix = sparse.random_array((30, 20), density=0.1, rng=rng, format=kind)
    sparse.save_npz(tmp_path / "A.npz", matrix)
    assert (load_array(tmp_path / "A.npz").toarray() == sparse.load_npz(tmp_path / "A.npz").toarray()).all()


def test_entries_at_one_place_add_up_as_in_scipy(tmp_path: Path) -> None:
    (tmp_path / "Q.npz").write_bytes(compressed(indices=[2, 0, 0], indptr=[0, 1, 3, 3]))
    found = load_array(tmp_path / "Q.npz")
    assert found.toarray().tolist() == [[0, 0, 1], [2, 0, 0], [0, 0, 0]] and found.has_canonical_format


def bomb(path: Path, kind: str) -> Path:
    """A small file that unpacks to 1.2 GB."""
    with zipfile.ZipFile(path, "w", zipfile.ZIP_DEFLATED) as members:
        for name, dtype in (("row", "<i8"), ("col", "<i8"), ("data", "<f8")):
            with members.open(f"{name}.npy", "w", force_zip64=True) as member:
                header = {"descr": dtype, "fortran_order": False, "shape": (50_000_000,)}
                np.lib.format.write_array_header_1_0(member, header)
                for _ in range(50):
                    member.write(bytes(8_000_000))
        for name, value in (("shape", np.array([3, 3])), ("format", np.array(kind.encode()))):
            members.writestr(f"{name}.npy", npy(value))
    return path


def test_a_zip_bomb_as_a_matrix_is_refused_before_it_unpacks(tmp_path: Path) -> None:
    path = bomb(tmp_path / "Q.npz", "coo")
    assert path.stat().st_size < 4e6
    code = (
        "from condgrad.data.arrays import load_array; from condgrad.data import BadData; from pathlib import Path\n"
        "try:\n    load_array(Path(sys.argv[1]))\nexcept BadData as error:\n    assert 'not allowed' in str(error)"
    )
    assert peak(code, path) < 100


def test_a_shape_takes_no_memory_that_the_file_does_not_pay_for(tmp_path: Path) -> None:
    sparse.save_npz(tmp_path / "Q.npz", sparse.coo_array(([1.0], ([5], [7])), shape=(90_000_000, 90_000_000)))
    with pytest.raises(
        BadData, match=r"the shape of 1 entries is 90000000 x 90000000, which takes more than the \d+ bytes"
    ):
        load_array(tmp_path / "Q.npz")


@pytest.mark.parametrize("shape", [(10**12,), (-1, -8), (3, 10**9), (4, 2)])
def test_a_dense_array_that_declares_more_than_it_holds(
    shape: tuple[int, ...], tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    file = io.BytesIO()
    np.lib.format.write_array_header_1_0(file, {"descr": "<f8", "fortran_order": False, "shape": shape})
    (tmp_path / "Q.npy").write_bytes(file.getvalue() + b"\0" * 7 * 8)
    assert "Q.npy: this is no .npy file with an array of real numbers, or it is damaged" in solve(
        tmp_path, "Q.npy", capsys
    )


@pytest.mark.parametrize(
    "array", [np.array([object()]), np.array(["a"]), np.array([1j])], ids=["object", "text", "complex"]
)
def test_an_array_of_something_else(array: np.ndarray, tmp_path: Path) -> None:
    np.save(tmp_path / "Q.npy", array, allow_pickle=True)
    with pytest.raises(BadData, match=r"no \.npy file with an array of real numbers"):
        load_array(tmp_path / "Q.npy")


@pytest.mark.parametrize("order", ["C", "F"])
@pytest.mark.parametrize("shape", [(3, 4), (5,), (), (0, 3), (2, 3, 4)])
def test_a_dense_array_comes_back_as_it_was(order: Any, shape: tuple[int, ...], tmp_path: Path) -> None:
    array = np.asarray(np.random.default_rng(0).normal(size=shape), order=order)
    np.save(tmp_path / "A.npy", array)
    found = load_array(tmp_path / "A.npy")
    assert found.shape == shape and (found == array).all() and found.flags.f_contiguous == array.flags.f_contiguous


def test_a_table_of_numbers(tmp_path: Path) -> None:
    path = tmp_path / "A.csv"
    path.write_text("# two rows\r\n1,2.5,nan\r\n-3,4e3,0\r\n")
    assert np.array_equal(load_array(path), [[1, 2.5, np.nan], [-3, 4000, 0]], equal_nan=True)
    for text, told in (
        ("1,2\n3,x\n", "this is no .csv file of numbers"),
        ("1,2\n3\n", "this is no .csv file of numbers"),
        ("", "there are no numbers in it"),
        ("1," * 9_000_000, "the line has more than 16777216 bytes"),
    ):
        path.write_text(text)
        with pytest.raises(BadData, match=told):
            load_array(path)


def test_a_zip_of_a_million_members_is_refused_before_they_are_listed(tmp_path: Path) -> None:
    """zipfile takes ten times the bytes of the list for its objects."""
    entry = struct.pack("<4s4B4HL2L5H2L", b"PK\1\2", 20, 3, 20, 0, 0, 0, 0, 33, 0, 0, 0, 7, 0, 0, 0, 0, 0, 0)
    listed = b"".join(entry + b"%07d" % k for k in range(400_000))
    end = struct.pack("<4s4H2LH", b"PK\5\6", 0, 0, 0xFFFF, 0xFFFF, len(listed), 0, 0)
    (tmp_path / "x.npz").write_bytes(listed + end)
    for read in (load, load_array):
        with pytest.raises(BadData, match="unpack to more than"):
            read(tmp_path / "x.npz", **({"format": "npz"} if read is load else {}))


def test_a_member_may_be_packed_as_numpy_packs_it_only(tmp_path: Path) -> None:
    """LZMA takes as much memory as the member says, before it unpacks anything."""
    with zipfile.ZipFile(tmp_path / "x.npz", "w", zipfile.ZIP_LZMA) as members:
        members.writestr("row.npy", npy(np.arange(3)))
    with pytest.raises(BadData, match="no NPZ file of arrays of numbers"):
        load(tmp_path / "x.npz")


# ------------------------------------------------------------------------------------------------------- specs and runs


def test_a_spec_has_limits(tmp_path: Path) -> None:
    path = tmp_path / "s.toml"
    for text, told in (
        ("a." * 100_000 + "a = 1", "a line of 200005 characters, at most 4096 are allowed"),
        ("a = " + "[\n" * 3000, "is nested too deeply"),
        ("# \n" * 100_000, "more than the 262,144 bytes that such a file may have"),
    ):
        path.write_text(text)
        with pytest.raises(ValueError, match=told):
            spec.load(path)


@pytest.mark.parametrize("content", [b"[" * 100_000, b'{"a":' * 100_000, b'{"a": ' + b"1" * 5000 + b"}", b"\xff"])
def test_a_result_that_can_not_be_parsed(content: bytes, tmp_path: Path) -> None:
    (tmp_path / "result.json").write_bytes(content)
    with pytest.raises(ValueError, match="is not the result of a run"):
        run_report.read_summary(tmp_path / "result.json")


# ------------------------------------------------------------------------------------------------- what is no file


def readers() -> dict[str, Any]:
    from condgrad.learn import images
    from condgrad.storage import archive

    return {
        "csv": load,
        "npz": lambda path: load(path, format="npz"),
        "parquet": lambda path: load(path, format="parquet"),
        "mtx": lambda path: load(path, format="matrix-market"),
        "libsvm": load_labelled,
        "array": lambda path: load_array(Path(f"{path}")),
        "spec": spec.load,
        "trace": run_report.read_trace,
        "result": run_report.read_summary,
        "kept": run_report.read_reproduced,
        "archive": lambda path: archive.read(path, "test", 1),
        "image": images.read,
    }


@pytest.mark.parametrize("name", readers())
def test_no_reader_waits_for_a_pipe_or_a_device(name: str, tmp_path: Path) -> None:
    """A pipe that nobody writes to was waited for forever by half of them, and /dev/zero has no end."""
    read = readers()[name]
    pipe, zero = tmp_path / "x.npy", tmp_path / "y.npy"
    os.mkfifo(pipe)
    zero.symlink_to("/dev/zero")
    writer = os.open(pipe, os.O_RDWR)  # so that a reader that opens it waits for data: the alarm ends it
    try:
        for path in (pipe, zero):
            with pytest.raises(ValueError, match=r"pipe or a device|is not the result|is not a run"):
                read(path)
        with pytest.raises(FileNotFoundError):
            read(tmp_path / "nothing.npy")
    finally:
        os.close(writer)


def test_a_pipe_that_takes_the_place_of_a_file_is_not_waited_for(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    os.mkfifo(tmp_path / "x")
    (tmp_path / "file").write_text("")
    ordinary = os.stat(tmp_path / "file")
    monkeypatch.setattr(os, "stat", lambda path: ordinary)
    with pytest.raises(files.NotAFile):
        files.open_file(tmp_path / "x")


# ------------------------------------------------------------------------------------------------------------ pictures


def png(width: int, height: int) -> bytes:
    """Black pixels, whose data are a few kilobytes."""

    def chunk(kind: bytes, content: bytes) -> bytes:
        return struct.pack(">L", len(content)) + kind + content + struct.pack(">L", zlib.crc32(kind + content))

    header = struct.pack(">2L5B", width, height, 8, 2, 0, 0, 0)
    packer = zlib.compressobj(9)
    data = b"".join(packer.compress(bytes(3 * width + 1)) for _ in range(height)) + packer.flush()
    return b"\x89PNG\r\n\x1a\n" + chunk(b"IHDR", header) + chunk(b"IDAT", data) + chunk(b"IEND", b"")


def test_a_picture_that_unpacks_to_far_more_than_its_file_is_refused(tmp_path: Path) -> None:
    pytest.importorskip("PIL.Image")
    from condgrad.learn import images

    (tmp_path / "x.png").write_bytes(png(200, 100))
    assert images.read(tmp_path / "x.png").pixels.shape == (100, 200, 3)
    (tmp_path / "x.png").write_bytes(png(9000, 9000))
    with pytest.raises(
        images.BadImage, match=r"unpacks to 243,000,000 bytes of pixels, at most 67,108,864 are allowed"
    ):
        images.read(tmp_path / "x.png")


def test_a_picture_starts_no_other_program(tmp_path: Path) -> None:
    """For EPS pillow runs Ghostscript."""
    pillow = pytest.importorskip("PIL.Image")
    from condgrad.learn import images

    pillow.fromarray(np.zeros((8, 9, 3), np.uint8)).save(tmp_path / "x.eps")
    with pytest.raises(images.BadImage, match="is not an image, or damaged"):
        images.read(tmp_path / "x.eps")


# -------------------------------------------------------------------------------------------------------------- memory


def test_a_gzip_bomb_is_refused_before_it_is_parsed(tmp_path: Path) -> None:
    """Its lines were parsed up to the limit, which took 30 bytes of memory for each of theirs."""
    path = tmp_path / "bomb.csv.gz"
    with gzip.open(path, "wb", 9) as file:
        for _ in range(300):
            file.write(b"1,1,1\n" * 174_763)
    assert path.stat().st_size < 1e6
    code = (
        "from condgrad.data import BadData, load\n"
        "try:\n    load(sys.argv[1])\nexcept BadData as error:\n    assert 'not allowed' in str(error)"
    )
    assert peak(code, path) < 60


def test_a_gzip_file_that_pays_at_its_beginning_only(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The limit holds at each place of the file, not for all of it: a bomb can't be paid for by what comes after it."""
    monkeypatch.setattr(files, "MIN_ALLOWED_BYTES", 2**21)
    noise = np.random.default_rng(0).integers(0, 10, 4 * 10**6, dtype=np.uint8) + ord("0")
    path = tmp_path / "x.csv.gz"
    path.write_bytes(gzip.compress(b"1,1,1\n" * 10**6) + gzip.compress(b"#" + noise.tobytes()[: 2**19]))
    with pytest.raises(BadData, match="that much is not allowed"):
        load(path)
    path.write_bytes(gzip.compress(b"1,1,1\n" * 100_000) + gzip.compress(b"# end"))
    assert len(load(path)) == 1


def test_rows_without_entries_take_no_memory(tmp_path: Path) -> None:
    np.savez(tmp_path / "x.npz", row=[5, 6, 6], col=[7, 7, 90_000_000], data=[1.0, 2.0, 3.0], shape=[10**8, 10**8])
    code = (
        "from condgrad.cli import main; import condgrad.learn.completion.report\n"
        "assert main(['complete', sys.argv[1], '--out', sys.argv[2], '--quiet', '--no-report']) == 0"
    )
    assert peak(code, tmp_path / "x.npz", tmp_path / "m.npz") < 500
    (tmp_path / "p.csv").write_text("row,column\n6,90000000\n5,3\n")
    words = ["predict", str(tmp_path / "m.npz"), str(tmp_path / "p.csv"), "--out", str(tmp_path / "o.csv")]
    from condgrad.cli import main

    assert main(words) == 0
    assert [line.split(",")[:2] for line in (tmp_path / "o.csv").read_text().splitlines()[1:]] == [
        ["6", "90000000"],
        ["5", "3"],
    ]


def test_an_entry_that_is_bad_in_row_and_column_is_one_fault(tmp_path: Path) -> None:
    """It counted twice: "only -18 of 20 elements can be used"."""
    bad, good = np.full(19, 99), np.zeros(1, int)
    np.savez(tmp_path / "x.npz", row=[*bad, *good], col=[*bad, *good], data=np.ones(20), shape=[3, 3])
    with pytest.raises(
        BadData, match=r"only 1 of 20 elements can be used.*19 x bad index, first on element 1: the row is 99"
    ):
        load(tmp_path / "x.npz")
    np.savez(tmp_path / "x.npz", row=[0, 1, 9, 2, 9, 0], col=[0, 9, 9, 2, 1, 1], data=np.ones(6), shape=[3, 3])
    (fault,) = load(tmp_path / "x.npz").cleanup.faults
    assert fault.count == 3
    assert fault.examples == ((2, "the column is 9"), (3, "the row is 9"), (5, "the row is 9"))


# ---------------------------------------------------------------------------------------------------------------- time


@pytest.mark.parametrize(
    ("text", "number"),
    [
        *((text, True) for text in ("1", "-1", "+1.5", "1.", ".5", "1e5", "1.e-5", ".5E+7", "007", "1" * 400)),
        *((text, False) for text in ("", ".", "+", "1e", "e5", "1.2.3", "1-2", "1e5.", "--1", "1_0", "1 ", "1x")),
    ],
)
def test_numbers(text: str, number: bool) -> None:
    assert bool(NUMBER.fullmatch(text)) == number


@pytest.mark.parametrize(
    "name",
    ["csv", "csv, wide", "libsvm", "spec", "trace"]
    + [
        pytest.param(name, marks=pytest.mark.slow)
        for name in ("pairs", "csv of positions", "matrix-market", "gzip", "result")
    ],
)
def test_time_grows_with_length_and_no_faster(name: str, tmp_path: Path) -> None:
    """20,000 digits and a letter took 28 s. Long runs of every token in every reader of text take a few seconds of CPU."""
    code = (
        "import json, sys; from pathlib import Path; from benchmarks.fuzzing import by_lengths\n"
        "print(json.dumps(by_lengths(sys.argv[1], 30_000, Path(sys.argv[2]))))"
    )
    found = in_a_process(code, name, tmp_path, cpu=90, memory=8 * GIB)
    assert found.returncode == 0, found.stderr[-2000:]
    assert json.loads(found.stdout)["cases"] > 100


@pytest.mark.parametrize("kind", ["named", "years", "twins", "ragged"])
def test_the_time_of_a_wide_table_grows_with_its_columns_and_no_faster(kind: str, tmp_path: Path) -> None:
    """50,000 columns take a second of CPU. With the square of their number they would take minutes."""
    n = 50_000
    names = {"years": [str(k) for k in range(n)], "twins": [f"s{k // 2}" for k in range(n)]}.get(kind)
    cells = ["" if k % 7 == 0 else f"{k}.5" for k in range(n)]
    lines = [["time", *(names or (f"s{k}" for k in range(n)))], *([f"day{k}", *cells] for k in range(5))]
    lines += [["day5", *cells[: n // 2]]] if kind == "ragged" else []
    (tmp_path / "x.csv").write_text("\n".join(",".join(line) for line in lines), encoding="utf-8")
    code = (
        "import sys; from condgrad.checks import BadData; from condgrad.data import load\n"
        "for wide in (True, None):\n"
        "    try: print(load(sys.argv[1], wide=wide).shape)\n"
        "    except BadData as error: print('refused:', error)"
    )
    found = in_a_process(code, tmp_path / "x.csv", cpu=60, memory=8 * GIB)
    assert found.returncode == 0, found.stderr[-2000:]
    if kind in ("named", "years"):
        assert found.stdout.splitlines()[0] == f"(5, {n})"
