"""What is fuzzed, and from which valid files: a reader of bytes, the errors that it may refuse them with, and its seeds."""

from __future__ import annotations

import gzip
import hashlib
import io
import json
import sys
import zipfile
from collections.abc import Callable
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

SEED = 0


class Target(NamedTuple):
    """Reads the bytes of a case; ``refusals`` are the errors that are documented, all others are defects."""

    read: Callable[[bytes], Any]
    refusals: tuple[type[Exception], ...]
    seeds: list[bytes]


def target(name: str, folder: Path) -> Target:
    """Its files are written in the folder."""
    return TARGETS[name](folder)[name]


def _loaders(folder: Path) -> dict[str, Target]:
    from condgrad.checks import BadData
    from condgrad.data import load, load_labelled

    def file(name: str, reader: Callable[..., Any], **options: Any) -> Callable[[bytes], Any]:
        def read(case: bytes) -> Any:
            (folder / name).write_bytes(case)
            return reader(folder / name, **options)

        return read

    text = [
        b"1,1,5\n1,2,4.5\n2,1,3\n",
        b"user;item;rating\r\nann;x;5\r\nbob;y;-1e-3\r\n",
        b'# c\nrow\tcol\tvalue\n"a ""b"\t7\t1\n\n c \t8\t2\n',
        "é|ü|1\nö|ä|2\n".encode(),
        "1 1 1\n2 2 2\n".encode("utf-16"),
    ]
    wide = [b"time,a,b\n2020,1.5,\n2021,,2.5\n", b'day;"x ""1""";y\r\nmon;1;2\r\ntue;nan;-1e-3\r\n']
    market = [
        b"%%MatrixMarket matrix coordinate real general\n% c\n2 3 2\n1 1 1.5\n2 3 -2\n",
        b"%%MatrixMarket matrix array real symmetric\n2 2\n1\n2\n3\n",
        b"%%MatrixMarket matrix coordinate integer skew-symmetric\n2 2 1\n2 1 3\n",
    ]
    members = [npy(np.array([0, 1])), npy(np.array([1, 0])), npy(np.array([1.0, 2.0])), npy(np.array([2, 2]))]
    refused = (BadData,)
    return {
        "csv": Target(file("x.csv", load), refused, text),
        "csv, strict": Target(file("x.csv", load, strict=True), refused, text),
        "csv of positions": Target(file("x.csv", load, ids=False, base=1), refused, [text[0], text[-1]]),
        "csv, wide": Target(file("x.csv", load, wide=True), refused, wide),
        "pairs": Target(file("x.csv", load, values=False), refused, text),
        "gzip": Target(file("x.csv.gz", load), refused, [gzip.compress(seed, mtime=0) for seed in text]),
        "matrix-market": Target(file("x.mtx", load), refused, market),
        "libsvm": Target(file("x.svm", load_labelled), refused, [b"1 1:2 3:4.5\n-1 2:1 # c\n\n+1\n", b"0 7:1e3 1:2\n"]),
        "npz": Target(file("x.npz", load), refused, [zipped(members)]),
        "npz of any members": Target(
            lambda case: file("x.npz", load)(zipped(case.split(b"|||"))), refused, [b"|||".join(members)]
        ),
        "parquet": Target(file("x.parquet", load), refused, [_parquet()]),
    }


def npy(array: np.ndarray) -> bytes:
    out = io.BytesIO()
    np.save(out, array)
    return out.getvalue()


def zipped(
    members: list[bytes], names: tuple[str, ...] = ("row", "col", "data", "shape", "indices", "indptr", "format")
) -> bytes:
    out = io.BytesIO()
    with zipfile.ZipFile(out, "w") as archive:
        for name, content in zip(names, members, strict=False):
            archive.writestr(zipfile.ZipInfo(f"{name}.npy"), content)
    return out.getvalue()


def _parquet() -> bytes:
    import pyarrow as pa
    from pyarrow import parquet

    out = io.BytesIO()
    table = pa.table({"row": ["a", "b", "a"], "column": [1, 2, 3], "value": [1.0, None, 2.5]})
    parquet.write_table(table, out, compression="none")
    return out.getvalue()


SPEC = b"""[problem]
objective = "quadratic"
matrix = "Q.npy"
[set]
name = "simplex"
[method]
name = "ncgs"
inner = { name = "condg", max_calls = 9 }
[stop]
mapping = 1e-6
steps = 10
"""
PAPER = b"""[problem]
objective = "paper"
shape = [6, 5]
rank = 2
[set]
name = "nuclear-ball"
radius = 3.0
[method]
name = "ncgs-vr"
seed = 3
schedule = "theory"
[stop]
ifo = 100
"""


def _runs(folder: Path) -> dict[str, Target]:
    """What `condgrad solve` and `condgrad report` read."""
    from condgrad import spec
    from condgrad.driver.trace import COLUMNS
    from condgrad.objectives._matrices import as_matrix
    from condgrad.report.run_report import read as read_run

    np.save(folder / "Q.npy", np.eye(3))
    trace = ",".join(COLUMNS).encode() + b"\n" + b"\n".join(b",".join([b"%d" % k] * len(COLUMNS)) for k in range(3))
    (folder / "run").mkdir(exist_ok=True)

    def read_spec(case: bytes) -> Any:
        (folder / "x.toml").write_bytes(case)
        return spec.load(folder / "x.toml")

    def read_trace(case: bytes) -> Any:
        (folder / "t.csv").write_bytes(case)
        return read_run(folder / "t.csv")

    def read_result(case: bytes) -> Any:
        (folder / "run" / "trace.csv").write_bytes(trace)
        (folder / "run" / "result.json").write_bytes(case)
        return read_run(folder / "run")

    def matrix(name: str) -> Callable[[bytes], Any]:
        def read(case: bytes) -> Any:
            (folder / name).write_bytes(case)
            return as_matrix(spec.array(folder, name), "The matrix")  # computes with the indices

        return read

    eye = [npy(np.array(part)) for part in ([1.0, 2.0], [2, 2], [0, 1], [0, 1, 2], b"csr")]
    parts = ("data", "shape", "indices", "indptr", "format")
    packed = matrix("A.npz")
    refused = (ValueError,)
    return {
        "spec, .npy": Target(matrix("A.npy"), refused, [npy(np.eye(3)), npy(np.asfortranarray(np.ones((2, 3))))]),
        "spec, .npz": Target(packed, refused, [zipped(eye, parts)]),
        "spec, .npz of any members": Target(
            lambda case: packed(zipped(case.split(b"|||"), parts)), refused, [b"|||".join(eye)]
        ),
        "spec, .csv": Target(matrix("A.csv"), refused, [b"1,2\n3,4e-5\n", b"# c\n-1.5,2,0\n7,8,9\n"]),
        "spec": Target(read_spec, (ValueError, TypeError, OSError), [SPEC, PAPER]),
        "trace": Target(read_trace, (ValueError,), [trace]),
        "result": Target(read_result, (ValueError,), [b'{"method": "ncgs", "status": "converged", "fun": 1.0}']),
    }


def _archives(folder: Path) -> dict[str, Target]:
    """The archive as bytes; and a checkpoint whose checksums hold, whatever its plain data are."""
    import condgrad as cg
    from condgrad.driver import checkpoint as module
    from condgrad.driver.reached import Reached
    from condgrad.runtime.cache import Cache
    from condgrad.storage import archive

    path = folder / "c.npz"
    path.unlink(missing_ok=True)
    seen: list[Any] = []

    class Recorded(module.Saving):
        def restore(self, asked: Any, reached: Any, cache: Any) -> bool:
            seen[:] = [asked, self.problem]
            return super().restore(asked, reached, cache)

    original, module_run = module.Saving, sys.modules["condgrad.driver.run"]
    module_run.Saving = Recorded  # type: ignore[attr-defined]
    problem = cg.Completion(np.array([0, 1, 2]), np.array([0, 1, 0]), np.array([1.0, 2.0, 3.0]), (3, 2))
    cg.minimize(problem, cg.NuclearBall((3, 2), 2.0), checkpoint=module.Checkpoint(path, steps=1), max_steps=3)
    module_run.Saving = original  # type: ignore[attr-defined]
    archive.previous(path).unlink(missing_ok=True)
    asked, fingerprint = seen
    whole = path.read_bytes()
    data, _ = archive.read(path, module.KIND, module.VERSION)
    with zipfile.ZipFile(path) as members:
        sums = json.loads(members.read(archive.HEADER))["arrays"]
        arrays = {f"{name}.npy": members.read(f"{name}.npy") for name in sums}

    def read_archive(case: bytes) -> Any:
        path.write_bytes(case)
        return archive.read(path, module.KIND, module.VERSION)

    def read_checkpoint(case: bytes) -> Any:
        beginning = json.dumps({"kind": module.KIND, "version": module.VERSION, "arrays": sums})
        header = beginning[:-1].encode() + b', "data": ' + case + b"}"
        with zipfile.ZipFile(path, "w") as members:
            for name, content in arrays.items():
                members.writestr(name, content)
            members.writestr(archive.HEADER, header)
            members.writestr(archive.SUM, hashlib.sha256(header).hexdigest())
        saving = original(module.Checkpoint(path), fingerprint, resume=True)
        saving.restore(asked, Reached(), Cache())

    return {
        "archive": Target(read_archive, (archive.BadArchive,), [whole]),
        "checkpoint": Target(read_checkpoint, (ValueError,), [json.dumps(data).encode()]),
    }


def _models(folder: Path) -> dict[str, Target]:
    """Fitted models whose checksums hold, whatever their plain data are."""
    from condgrad.learn import RobustCompletion, SigmoidClassifier
    from condgrad.learn.storage import VERSION
    from condgrad.storage import archive

    rng, path = np.random.default_rng(SEED), folder / "m.npz"
    X = rng.normal(size=(12, 5))
    names = np.where(X[:, 0] > 0, "up", "down")

    def reader(model: Any) -> Target:
        kind = type(model)
        model.save(path)
        data, arrays = archive.read(path, kind.__name__, VERSION)

        def read(case: bytes) -> Any:
            try:
                forged = json.loads(case)
            except (ValueError, RecursionError):
                return None
            archive.write(path, kind.__name__, VERSION, forged, arrays)
            return kind.load(path)

        return Target(read, (archive.BadArchive,), [json.dumps(data).encode()])

    return {
        "completion model": reader(RobustCompletion(radius=3.0, sigma=1.0).fit(X)),
        "linear model": reader(SigmoidClassifier(radius=1.0).fit(X, names)),
    }


TARGETS: dict[str, Callable[[Path], dict[str, Target]]] = {
    "csv": _loaders,
    "csv, strict": _loaders,
    "csv of positions": _loaders,
    "csv, wide": _loaders,
    "pairs": _loaders,
    "gzip": _loaders,
    "matrix-market": _loaders,
    "libsvm": _loaders,
    "npz": _loaders,
    "npz of any members": _loaders,
    "parquet": _loaders,
    "spec, .npy": _runs,
    "spec, .npz": _runs,
    "spec, .npz of any members": _runs,
    "spec, .csv": _runs,
    "spec": _runs,
    "trace": _runs,
    "result": _runs,
    "archive": _archives,
    "checkpoint": _archives,
    "completion model": _models,
    "linear model": _models,
}
