"""Sharded objectives on a cluster of processes: the bits of one process, whatever the workers, and after some were killed."""

from __future__ import annotations

import asyncio
import gc
import os
import signal
import sys
import time
from pathlib import Path
from threading import Thread, Timer
from typing import Any

import numpy as np
import pytest
from scipy.sparse import csr_array

import condgrad as cg
from condgrad.points import distance2, inner, norm2

pytest.importorskip("distributed")

from distributed import Client, LocalCluster

from condgrad.distributed import EntryFolder, Loader, RowFolder, Sharded, ShardedCompletion, ShardedSum, ShardError
from condgrad.distributed.cluster import Cluster
from condgrad.distributed.folders import batches
from condgrad.distributed.held import dealt
from condgrad.protocols import BudgetEnd, Reason
from condgrad.runtime.signals import receiving

SHAPE = (40, 30)
LOSSES = {entry.name: entry.factory() for entry in cg.objectives.LOSSES.values()}
RUN = {"method": "frank-wolfe", "max_steps": 3, "tol": 1e-12}


@pytest.fixture(scope="module")
def cluster() -> Any:
    with LocalCluster(n_workers=1, threads_per_worker=1, processes=True, dashboard_address=":0") as started:
        yield started


@pytest.fixture(scope="module")
def client(cluster: Any) -> Any:
    with Client(cluster) as connected:
        yield connected


def workers(cluster: Any, client: Any, number: int) -> None:
    """Change the number of workers, and wait for it."""
    cluster.scale(number)
    client.sync(cluster._correct_state)
    client.wait_for_workers(number, timeout=120)


def entries(seed: int = 0) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Observed entries in no order; the rows 3 to 5 have none."""
    rng = np.random.default_rng(seed)
    seen = rng.random(SHAPE) < 0.5
    seen[3:6] = False
    rows, cols = np.nonzero(seen)
    order = rng.permutation(len(rows))
    truth = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((SHAPE[1], 2)).T
    return rows[order], cols[order], truth[rows, cols][order]


def point(seed: int) -> cg.LowRank:
    rng = np.random.default_rng(seed)
    return cg.LowRank(rng.standard_normal((SHAPE[0], 2)), rng.standard_normal((SHAPE[1], 2)))


def run(objective: Any, **asked: Any) -> Any:
    return cg.minimize(objective, cg.NuclearBall(SHAPE, 40.0), **(RUN | asked))


def close(a: Any, b: Any) -> bool:
    return bool(np.linalg.norm(np.subtract(a, b)) <= 1e-10 * np.linalg.norm(b))


def load(number: int) -> tuple[np.ndarray, ...]:
    """Shard ``number`` of four, of ten rows each."""
    rows, cols, values = entries()
    here = rows // 10 == number
    return rows[here], cols[here], values[here]


@pytest.fixture(scope="module")
def undisturbed(client: Any) -> Any:
    """A run that nothing disturbs, on one worker."""
    return run(ShardedCompletion(Loader(load, 4), SHAPE, cg.Welsch(2.0), client=client))


# ----------------------------------------------------------------------------------------------- against one process


@pytest.mark.parametrize("name", LOSSES)
def test_values_and_gradients_are_those_of_the_plain_objective(client: Any, name: str) -> None:
    loss = LOSSES[name]
    rows, cols, values = entries()
    values = np.sign(values) if loss.labels == "+-1" else values
    weights = np.random.default_rng(1).random(len(rows)) + 0.5
    plain = cg.Completion(rows, cols, values, SHAPE, loss, weights)
    sharded = ShardedCompletion((rows, cols, values, weights), SHAPE, loss, client=client, shards=3)
    x = point(3)
    assert close(sharded.value(x), plain.value(x))
    assert close(np.asarray(sharded.grad(x)), np.asarray(plain.grad(x)))
    assert (sharded.smoothness, sharded.lower_smoothness) == (plain.smoothness, plain.lower_smoothness)
    assert sharded.lower_bound == pytest.approx(plain.lower_bound)


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_directions_have_the_products_of_the_plain_ones(client: Any, dtype: Any) -> None:
    rows, cols, values = entries()
    data = rows, cols, values.astype(dtype)
    plain = cg.Completion(*data, SHAPE, cg.Welsch(2.0))
    sharded = ShardedCompletion(data, SHAPE, cg.Welsch(2.0), client=client, shards=3)
    x, y, rng = point(3), point(4), np.random.default_rng(5)
    W, Q = rng.standard_normal((SHAPE[1], 3)), rng.standard_normal((SHAPE[0], 3))
    found, expected = [], []
    for F, results in ((sharded, found), (plain, expected)):
        g, h = F.grad(x), F.grad(y)
        z = x - 0.1 * g
        results += [g @ W, g.T @ Q, g @ W[:, 0], g.T @ Q[:, 0], z @ W, z.T @ Q, (g - h) @ W, np.asarray(z + h)]
        results += [
            inner(g, x),
            inner(g, y),
            inner(g, h),
            norm2(g),
            norm2(z),
            norm2(g - h),
            distance2(g, h),
            inner(z, h),
        ]
        results += [norm2(g - g + x), inner(z, np.asarray(y)), F.grad(x).rounding]
    digits = 1e-10 if dtype is np.float64 else 1e-5  # the plain one rounds differences of float32 slopes again
    for one, other in zip(found, expected, strict=True):
        assert np.linalg.norm(np.subtract(one, other)) <= digits * np.linalg.norm(other)


def test_entries_of_no_use_are_named_with_their_shard(client: Any) -> None:
    rows, cols, values = entries()
    with pytest.raises(
        ShardError, match=r"^Shard 1 has entries that can't be used \(ValueError: Entry .* observed 2 times"
    ):
        late = np.argmax(rows)
        twice = (np.append(array, array[late]) for array in (rows, cols, values))
        ShardedCompletion(tuple(twice), SHAPE, client=client, shards=2)
    with pytest.raises(ShardError, match=r"^Shard [01] has entries .* Logistic needs labels"):
        ShardedCompletion((rows, cols, values), SHAPE, cg.Logistic(), client=client, shards=2)
    with pytest.raises(ValueError, match="Rows go from 0 to 39, but the matrix has 20"):
        ShardedCompletion((rows, cols, values), (20, 30), client=client)
    with pytest.raises(TypeError, match="needs points of low rank"):
        ShardedCompletion((rows, cols, values), SHAPE, client=client, shards=2).value(np.zeros(SHAPE))
    with pytest.raises(TypeError, match=r"a synchronous distributed\.Client was expected"):
        ShardedCompletion((rows, cols, values), SHAPE, client=None)


def first_and_last(number: int) -> Any:
    """Three shards of one float32 entry each, but the second has none."""
    return ([number], [0], np.ones(1, np.float32)) if number != 1 else ([], [], [])


def test_shards_without_entries_and_without_weights_add_nothing(client: Any) -> None:
    heavy = np.array([0] * 20 + [1, 30]), np.r_[:20, 0, 1], np.random.default_rng(1).standard_normal(22)
    for data, asked in ((heavy, None), (heavy, 50), ((*heavy, np.r_[np.ones(20), 0, 0]), 3)):
        plain = cg.Completion(*data[:3], SHAPE, weights=data[3] if len(data) == 4 else None)
        sharded, x = ShardedCompletion(data, SHAPE, client=client, shards=asked), point(3)
        assert close(sharded.value(x), plain.value(x))
        assert close(np.asarray(sharded.grad(x)), np.asarray(plain.grad(x)))
        assert close(sharded.grad(x).T @ np.ones(SHAPE[0]), plain.grad(x).T @ np.ones(SHAPE[0]))
        assert sharded.smoothness == plain.smoothness
    assert ShardedCompletion(Loader(first_and_last, 3), SHAPE, client=client).pattern.dtype == np.float32
    with pytest.raises(ValueError, match="no entries, or entries of weight 0 only"):
        ShardedCompletion((*heavy, np.zeros(22)), SHAPE, client=client)
    with pytest.raises(ShardError, match=r"^Shard 1 .*Entry \(30, 1\) is observed 2 times"):
        ShardedCompletion(tuple(np.append(array, array[-1]) for array in heavy), SHAPE, client=client, shards=2)


# ----------------------------------------------------------------------------------------------------------- sources


def failing(number: int) -> Any:
    if number == 2:
        raise OSError("no such\n file")
    return load(number)


def leaving(number: int) -> Any:
    sys.exit(3)


def overlapping(number: int) -> Any:
    return load(0)


def test_an_exception_of_the_loader_is_one_sentence_that_names_the_shard(client: Any) -> None:
    with pytest.raises(ShardError) as caught:
        ShardedCompletion(Loader(failing, 4), SHAPE, client=client)
    assert str(caught.value) == ("Shard 2 could not be loaded (OSError: no such file): correct the loader or its data.")
    with pytest.raises(ShardError, match="Shard 1 begins with row 0, but shard 0 goes up to row 9"):
        ShardedCompletion(Loader(overlapping, 2), SHAPE, client=client)
    with pytest.raises(ShardError, match=r"Shard 0 could not be loaded \(SystemExit: 3\)"):
        ShardedCompletion(Loader(leaving, 1), SHAPE, client=client)
    with pytest.raises(ValueError, match="The shape is missing"):
        ShardedCompletion(Loader(load, 4), client=client)


def test_parquet_files_in_any_order_give_the_bits_of_arrays(client: Any, tmp_path: Path) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "data").mkdir()
    (tmp_path / "scratch").mkdir()
    rows, cols, values = entries()
    weights = np.random.default_rng(1).random(len(rows)) + 0.5
    for k in range(3):
        columns = {"i": rows[k::3], "j": cols[k::3], "y": values[k::3], "w": weights[k::3]}
        parquet.write_table(pa.table(columns), tmp_path / "data" / f"{k}.parquet")
    folder = EntryFolder(str(tmp_path / "data"), str(tmp_path / "scratch"), ("i", "j", "y", "w"))
    stored = ShardedCompletion(folder, SHAPE, cg.Huber(), client=client, shards=3)
    arrays = ShardedCompletion((rows, cols, values, weights), SHAPE, cg.Huber(), client=client, shards=3)
    assert stored.pattern.summaries == arrays.pattern.summaries  # with the checksums of all entries
    assert stored.value(point(3)) == arrays.value(point(3))
    assert len(list((tmp_path / "scratch").glob("*/*.npz"))) == 9
    del stored
    assert not list((tmp_path / "scratch").iterdir())
    (tmp_path / "data" / "bad.parquet").write_bytes(b"no parquet")
    with pytest.raises(ShardError, match=r"bad\.parquet could not be read"):
        ShardedCompletion(folder, SHAPE, client=client)


def test_names_in_csv_files_and_in_a_dask_dataframe_give_the_bits_of_numbers(client: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    frames = pytest.importorskip("dask.dataframe")
    rows, cols, values = entries()
    users, items = np.unique(rows), np.unique(cols)
    plain = ShardedCompletion(
        (np.searchsorted(users, rows), np.searchsorted(items, cols), values),
        (len(users), len(items)),
        client=client,
        shards=3,
    )
    table = pandas.DataFrame({"user": [f"u{i:03}" for i in rows], "item": cols + 7, "rating": values})
    (tmp_path / "csv").mkdir()
    for k in range(2):
        table[k::2].to_csv(tmp_path / "csv" / f"{k}.csv", index=False)
    columns = ("user", "item", "rating")
    folders = [EntryFolder(str(tmp_path / "csv"), str(tmp_path), columns, names=True)]
    folders.append(EntryFolder.from_dask(frames.from_pandas(table, npartitions=3), str(tmp_path), columns, names=True))
    for folder in folders:
        named = ShardedCompletion(folder, client=client, shards=3)
        assert named.pattern.summaries == plain.pattern.summaries
        assert named.row_names.tolist() == [f"u{i:03}" for i in users]
        assert named.col_names.tolist() == (items + 7).tolist()
    with pytest.raises(ValueError, match=r"The shape is \(3, 4\), but the files name .*: leave the shape out"):
        ShardedCompletion(folders[0], (3, 4), client=client)
    with pytest.raises(ValueError, match="The shape is missing"):
        ShardedCompletion(EntryFolder(str(tmp_path / "csv"), str(tmp_path), columns), client=client)
    with pytest.raises(ShardError, match=r"[01]\.csv could not be read .*whole numbers were expected: give names=True"):
        ShardedCompletion(EntryFolder(str(tmp_path / "csv"), str(tmp_path), columns), SHAPE, client=client)
    with pytest.raises(ValueError, match=r"There are no files \*\.parquet or \*\.csv"):
        ShardedCompletion(EntryFolder(str(tmp_path), str(tmp_path)), SHAPE, client=client)


def folder(path: Path, **files: str) -> str:
    """Write CSV files with entries to a new folder."""
    path.mkdir()
    for name, lines in files.items():
        (path / f"{name}.csv").write_text("row,col,value\n" + lines)
    return str(path)


def test_names_in_files_stay_what_they_are(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    (tmp_path / "scratch").mkdir()

    def names(number: int, **files: str) -> Any:
        stored = EntryFolder(folder(tmp_path / str(number), **files), str(tmp_path / "scratch"), names=True)
        F = ShardedCompletion(stored, client=client, shards=1)
        return F.row_names.tolist(), F.col_names.tolist()

    assert names(0, a="007,2,1\n", b="7,10,2\nNA,10,3\n", c="") == (["007", "7", "NA"], [2, 10])
    assert names(1, a=f"{2**64},1,1\n{2**64 + 1},1,2\n") == ([str(2**64), str(2**64 + 1)], [1])
    with pytest.raises(ShardError, match=r"a\.csv could not be read \(ValueError: a line has an empty cell"):
        names(2, a="x,1,1\n,2,2\n")
    with pytest.raises(ValueError, match="have no entries"):
        names(3, a="")
    with pytest.raises(ValueError, match="3 or 4 names were expected"):
        EntryFolder("data", "scratch", "row")  # type: ignore[arg-type]


def test_types_of_files_are_those_of_their_entries(client: Any, tmp_path: Path, monkeypatch: Any) -> None:
    pa = pytest.importorskip("pyarrow")
    from pyarrow import parquet

    (tmp_path / "scratch").mkdir()
    (tmp_path / "data").mkdir()

    def write(name: str, **columns: Any) -> None:
        given = {"row": [0, 1], "col": [0, 1], "value": np.ones(2, np.float32)} | columns
        parquet.write_table(pa.table(given), tmp_path / "data" / f"{name}.parquet")

    def built(scratch: str = "scratch", **asked: Any) -> Any:
        stored = EntryFolder(str(tmp_path / "data"), str(tmp_path / scratch), **asked)
        return ShardedCompletion(stored, None if asked else (2, 2), client=client, shards=1)

    write("0")
    write("1", row=np.zeros(0, int), col=np.zeros(0, int), value=np.zeros(0, np.float32))
    assert built().pattern.dtype == np.float32
    with pytest.raises(ValueError, match=r"No folder could be made in .*: name an existing scratch folder"):
        built("missing")
    failures = (
        ({"value": ["a", "b"]}, r"1\.parquet could not be read .*could not convert string to float: 'a'"),
        ({"col": ["a", "b"]}, r"1\.parquet could not be read .*the column col holds .*whole numbers were expected"),
        ({}, r"Shard 0 .*Entry \(0, 0\) is observed 2 times"),
    )
    for columns, message in failures:
        write("1", **columns)
        with pytest.raises(ShardError, match=message) as caught:
            built()
        assert caught.tb
        assert not list((tmp_path / "scratch").iterdir())  # although the traceback is kept
    write("1", row=[0.5, 2.0])
    with pytest.raises(ValueError, match=r"names of different types \(float64, int64\)"):
        built(names=True)
    csv = folder(tmp_path / "csv", a="0,0,1\n" * 1999 + "0,0,1.5\n")  # the first block is of whole numbers
    monkeypatch.setattr("condgrad.distributed.folders.CSV_BLOCK_BYTES", 2**12)
    assert sum(len(values) for (values,) in batches(f"{csv}/a.csv", ("value",), ("number",))) == 2000


def test_names_are_sent_again_when_workers_were_killed(client: Any, tmp_path: Path, monkeypatch: Any) -> None:
    pytest.importorskip("pyarrow")
    results, calls = Cluster.results, []

    def disturbed(self: Any, start: Any, *others: Any) -> Any:
        calls.append(start)
        if len(calls) == 2:  # the first reads the names, this one uses them
            for pid in client.run(os.getpid).values():
                os.kill(pid, signal.SIGKILL)
        return results(self, start, *others)

    monkeypatch.setattr(Cluster, "results", disturbed)
    stored = EntryFolder(folder(tmp_path / "data", a="x,1,1\ny,2,2\n"), str(tmp_path), names=True)
    assert ShardedCompletion(stored, client=client, shards=1).row_names.tolist() == ["x", "y"]


def test_a_loader_that_returns_other_data_the_second_time_is_named(client: Any, tmp_path: Path) -> None:
    def changing(number: int) -> Any:
        seen = tmp_path / str(number)
        rows, cols, values = load(number)
        values = values + (number == 1 and seen.exists())
        seen.touch()
        return rows, cols, values

    F = ShardedCompletion(Loader(changing, 2), SHAPE, client=client)
    F.pattern.held._futures = [None, None]  # as after the death of all workers, but quicker
    with pytest.raises(ShardError, match=r"^Shard 1 had other data when it was loaded again"):
        F.value(point(3))

    def gone(number: int) -> Any:
        seen = tmp_path / f"once-{number}"
        if number == 3 and seen.exists():
            raise FileNotFoundError("no such file")
        seen.touch()
        return load(number)

    F = ShardedCompletion(Loader(gone, 4), SHAPE, client=client)
    F.pattern.held._futures = [None] * 4
    with pytest.raises(ShardError, match=r"^Shard 3 could not be loaded \(FileNotFoundError: no such file\): correct"):
        F.value(point(3))


# ---------------------------------------------------------------------------------------------------- linear models


FEATURES = 6


def samples(n: int = 90) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    rng = np.random.default_rng(2)
    A = rng.standard_normal((n, FEATURES)) * (rng.random((n, FEATURES)) < 0.6)
    return A, A @ np.array([1.0, -2.0, 0.0, 0.0, 1.0, 0.0]) + 0.1 * rng.standard_normal(n), rng.random(n) + 0.5


def some_rows(number: int) -> tuple[np.ndarray, ...]:
    return tuple(array[30 * number : 30 * (number + 1)] for array in samples()[:2])


@pytest.mark.parametrize("kind", ["dense", "sparse", "float32", "weighted"])
def test_a_sharded_sum_is_the_plain_linear_model(client: Any, kind: str, monkeypatch: Any) -> None:
    A, y, weights = samples()
    given: Any = {"sparse": csr_array(A), "float32": A.astype(np.float32)}.get(kind, A)
    loss, omega = cg.Welsch(2.0), weights if kind == "weighted" else None
    plain = cg.LinearModel(given, y, loss, weights=omega)
    sharded = ShardedSum((given, y) if omega is None else (given, y, omega), loss, client=client, shards=4)
    rng = np.random.default_rng(3)
    x, batch = rng.standard_normal(FEATURES), rng.integers(len(y), size=25)
    slopes = plain.term_rows(x, batch)
    for name in ("smoothness", "lower_smoothness", "term_smoothness", "mean_square_smoothness", "lower_bound"):
        assert close(getattr(sharded, name), getattr(plain, name)) or getattr(plain, name) == 0
    assert (sharded.n_terms, sharded.shape) == (plain.n_terms, plain.shape)
    assert close(sharded.value(x), plain.value(x))
    assert close(sharded.grad(x), plain.grad(x))
    assert close(sharded.term_rows(x, batch), slopes)
    assert close(sharded.assemble(slopes, batch), plain.assemble(slopes, batch))
    assert close(sharded.grad_terms(x, batch), plain.grad_terms(x, batch))
    assert close(sharded.grad_scale(x), plain.grad_scale(x))
    if kind == "weighted":  # the norm of many features is found from products
        monkeypatch.setattr("condgrad.distributed.sum.SMALL", 2)
        again = ShardedSum((given, y, omega), loss, client=client, shards=4)
        assert again.smoothness == pytest.approx(plain.smoothness, rel=1e-5)
        assert again.smoothness >= plain.smoothness


def test_rows_of_a_batch_that_are_not_there_are_refused(client: Any) -> None:
    A, y, _ = samples()
    F, x = ShardedSum((A, y), cg.Huber(), client=client, shards=3), np.ones(FEATURES)
    for batch in ([-1, 2], [0, 90]):
        with pytest.raises(ValueError, match=f"A batch goes from {batch[0]} to {batch[1]}, but ShardedSum has 90 rows"):
            F.grad_terms(x, np.array(batch))
    for wrong in (np.zeros(0, int), np.arange(90) < 3):
        with pytest.raises(ValueError, match="give a list of row numbers"):
            F.grad_terms(x, wrong)
    assert F.term_rows(x, np.zeros(0, int)).shape == (0,)
    assert ShardedSum((np.zeros((9, 501)), y[:9]), cg.Huber(), client=client, shards=1).smoothness == 0.0
    with pytest.raises(ValueError, match="has no columns"):
        ShardedSum((np.zeros((9, 0)), y[:9]), cg.Huber(), client=client, shards=1)


@pytest.mark.parametrize("method", ["ncgs", "ncgs-vr", "sagafw", "spider-fw", "frank-wolfe"])
def test_methods_take_the_same_steps_on_a_sharded_sum(client: Any, method: str) -> None:
    A, y, _ = samples()
    asked = {"method": method, "max_steps": 6, "tol": 1e-12, "output": "last"}
    found = [
        cg.minimize(F, cg.L1Ball(FEATURES, 3.0), **asked)
        for F in (ShardedSum((A, y), cg.Welsch(2.0), client=client, shards=3), cg.LinearModel(A, y, cg.Welsch(2.0)))
    ]
    assert close(found[0].x, found[1].x)
    assert {k: v for k, v in found[0].counts.items() if k in ("ifo", "lo")} == {
        k: v for k, v in found[1].counts.items() if k in ("ifo", "lo")
    }


def test_rows_come_from_a_loader_and_from_files(client: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    A, y, _ = samples()
    arrays = ShardedSum((A, y), cg.Huber(), client=client, shards=3)
    assert ShardedSum(Loader(some_rows, 3), cg.Huber(), client=client).summaries == arrays.summaries
    table = pandas.DataFrame(A, columns=[f"a{j}" for j in range(FEATURES)]).assign(y=y)
    for k in range(3):
        table[30 * k : 30 * (k + 1)].to_parquet(tmp_path / f"{k}.parquet")
    assert ShardedSum(RowFolder(str(tmp_path), "y"), cg.Huber(), client=client).summaries == arrays.summaries
    single, plain = A[:5].astype(np.float32), cg.LinearModel(A[:5].astype(np.float32), y[:5], cg.Huber())
    assert close(ShardedSum((single, y[:5]), cg.Huber(), client=client, shards=7).grad(A[6]), plain.grad(A[6]))
    with pytest.raises(ShardError, match=r"Shard \d could not be loaded .*there is no column z among"):
        ShardedSum(RowFolder(str(tmp_path), "z"), cg.Huber(), client=client)
    with pytest.raises(ValueError, match="give a list of names of columns"):
        ShardedSum(RowFolder(str(tmp_path), "y", "a0"), cg.Huber(), client=client)  # type: ignore[arg-type]
    (tmp_path / "0.parquet").write_bytes(b"no parquet")
    with pytest.raises(ShardError, match=r"0\.parquet could not be read"):
        ShardedSum(RowFolder(str(tmp_path), "y"), cg.Huber(), client=client)
    with pytest.raises(ShardError, match=r"Shard \d has rows that can't be used .*Logistic needs labels"):
        ShardedSum((A, y), cg.Logistic(), client=client)
    with pytest.raises(ValueError, match=r"Rows are \(A, y\): .* but got shapes \(90, 6\), \(3,\)"):
        ShardedSum((A, y[:3]), cg.Huber(), client=client)


# ----------------------------------------------------------------------------------------------- an objective of one's own


def centre(number: int) -> np.ndarray:
    return np.full(3, float(number))


def half_square(data: np.ndarray, x: np.ndarray) -> tuple[float, np.ndarray]:
    return float((x - data) @ (x - data)) / 2, x - data


def failing_for_2(data: np.ndarray, x: np.ndarray) -> Any:
    return half_square(data, x) if data[0] < 2 else half_square(data, x)[0]


def test_an_objective_of_ones_own_is_the_sum_over_the_shards(client: Any) -> None:
    F = Sharded(centre, 4, half_square, 3, client=client)
    x = np.array([0.5, 1.0, 2.0])
    expected = [half_square(centre(i), x) for i in range(4)]
    assert F.value(x) == pytest.approx(sum(value for value, _ in expected))
    assert close(F.grad(x), sum(grad for _, grad in expected))
    result = cg.minimize(F, cg.Box(np.zeros(3), np.full(3, 5.0)))
    assert result.status == "converged"
    assert np.abs(result.x - 1.5).max() < 1e-3
    wrong = Sharded(centre, 4, failing_for_2, 3, client=client)
    with pytest.raises(
        ShardError, match=r"value_and_grad failed on shard [23] .*a pair \(value, gradient\) was expected"
    ):
        wrong.value(x)


# -------------------------------------------------------------------------------------------- workers come and go


def held(client: Any) -> int:
    """Number of objects on all workers, once what is in reference cycles is freed and the number no longer changes."""
    gc.collect()
    found: list[int] = []
    while len(found) < 4 or len(set(found[-4:])) > 1:
        found.append(len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks))))
        time.sleep(0.05)
    return found[-1]


def test_workers_free_what_the_driver_drops(client: Any) -> None:
    F = ShardedCompletion(entries(), SHAPE, client=client, shards=3)
    before, x = held(client), point(3)
    g = F.grad(x)
    _ = g @ np.ones((SHAPE[1], 1))
    assert held(client) >= before + 3
    del g, x
    F.grad(point(4))
    assert held(client) <= before + 3


def test_a_shard_that_gives_no_answer_in_time_is_named(client: Any) -> None:
    patient = Cluster(client, timeout=0.2)
    event = "hang"

    def hang(name: str) -> None:
        from distributed import Event

        Event(name).wait()

    from distributed import Event

    try:
        with pytest.raises(ShardError, match=r"^Shard 0 gave no answer within 0\.2 s"):
            patient.results(lambda: [patient.submit(hang, event)])
    finally:
        Event(event, client=client).set()


class SlowForTwo(cg.Huber):
    """A loss that needs longer than the time limit for the shard of :func:`some_rows` with number 2."""

    def deriv(self, z: Any, y: Any) -> Any:
        if y[0] == samples()[1][60]:
            time.sleep(0.6)
        return super().deriv(z, y)


def test_late_shards_are_named_in_sums_and_batches(client: Any) -> None:
    F, x = ShardedSum(Loader(some_rows, 3), cg.Huber(), client=client), np.ones(FEATURES)
    F.loss, F._shards.cluster.timeout = SlowForTwo(), 0.3
    for compute in (lambda: F.grad(x), lambda: F.grad_terms(x, np.array([60, 61]))):
        with pytest.raises(ShardError, match=r"^Shards? ([01], )*2 gave no answer within 0\.3 s"):
            compute()
        time.sleep(0.6)


def test_a_closed_client_and_a_cluster_without_workers_are_named() -> None:
    with (
        Client(processes=False, n_workers=0, dashboard_address=":0") as empty,
        pytest.raises(ShardError, match=r"the cluster has had no worker for 0\.2 s\. Start workers"),
    ):
        ShardedSum(samples()[:2], cg.Huber(), client=empty, timeout=0.2)
    with pytest.raises(ShardError, match=r"the client is closed\. Keep it open"):
        ShardedSum(samples()[:2], cg.Huber(), client=empty)


def test_a_cluster_that_loses_its_workers_while_it_computes_is_named(monkeypatch: Any) -> None:
    """A computation whose tasks may run on any worker waited for ever."""
    monkeypatch.setattr("condgrad.distributed.cluster.MAX_WAIT", 0.2)
    with Client(processes=False, n_workers=1, dashboard_address=":0") as leaving:

        def started() -> list[Any]:
            leaving.sync(leaving.cluster.scheduler.retire_workers, names=[0])
            return [leaving.submit(abs, -1)]

        with pytest.raises(ShardError, match=r"the cluster has had no worker for 0\.2 s\. Start workers"):
            Cluster(leaving).results(started)


def test_shards_stay_with_their_owners_unless_these_are_gone_or_have_too_many() -> None:
    assert dealt([""] * 5, ["a", "b"]) == ["a", "a", "a", "b", "b"]
    assert dealt(["a", "a", "a", "b", "b"], ["b", "c"]) == ["b", "c", "c", "b", "b"]
    assert dealt(["a", "a", "a", "a"], ["a", "b"]) == ["a", "a", "b", "b"]
    assert dealt(["b", "a"], ["a", "b", "c"]) == ["b", "a"]


def slow_place(shard: Any, slow: str) -> str:
    """Return the address of the worker; takes time on one of them."""
    from distributed import get_worker

    time.sleep(0.1 * (get_worker().address == slow))
    return str(get_worker().address)


def test_shards_do_not_move_to_idle_workers(cluster: Any, client: Any) -> None:
    """Dask moves data to workers that have nothing to do, and that traffic would grow with the entries."""
    workers(cluster, client, 2)
    F = ShardedCompletion(entries(), SHAPE, client=client, shards=16)
    F.value(point(3))
    places = client.who_has(F.pattern.shards())
    owners = [places[shard.key][0] for shard in F.pattern.shards()]
    assert F.pattern.each(slow_place, last=(owners[0],)) == owners


def test_a_budget_of_seconds_ends_a_computation_on_workers(client: Any) -> None:
    """It ended no computation that ran; then its end was reported as an error of a shard."""
    calls: list[int] = []

    def alive() -> None:
        calls.append(0)
        if len(calls) > 1:
            raise BudgetEnd(Reason("out_of_budget", "The budget is used up."))

    cluster = Cluster(client)
    with receiving(alive), pytest.raises(BudgetEnd):
        cluster.results(lambda: [cluster.submit(time.sleep, 0.5)])


def test_waiting_needs_no_more_memory_the_longer_it_takes(client: Any) -> None:
    """Each look for finished tasks left a task of asyncio for each of them."""
    pending: list[int] = []

    async def count() -> int:
        return len(asyncio.all_tasks())

    cluster = Cluster(client)
    with receiving(lambda: pending.append(client.sync(count))):
        cluster.results(lambda: [cluster.submit(time.sleep, 1.5) for _ in range(20)])
    assert len(pending) > 5
    assert pending[-1] < pending[1] + 20


def test_two_runs_at_once_and_a_client_that_is_closed_meanwhile() -> None:
    client = Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0")
    objectives = [ShardedCompletion(entries(k), SHAPE, cg.Welsch(2.0), client=client, shards=3) for k in (0, 1)]
    alone = [np.asarray(run(F, max_steps=1).x).tobytes() for F in objectives]
    found: dict[int, bytes] = {}

    def again(k: int) -> None:
        found[k] = np.asarray(run(objectives[k], max_steps=1).x).tobytes()

    threads = [Thread(target=again, args=(k,)) for k in (0, 1)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert [found[0], found[1]] == alone
    closing = Timer(0.3, client.close)
    closing.start()
    with pytest.raises(
        ShardError, match=r"^No shard could be computed: the client (is closed|was closed while it was used)"
    ):
        run(objectives[0], max_steps=1000)
    closing.join()


def test_more_workers_give_the_same_bits(cluster: Any, client: Any, undisturbed: Any) -> None:
    for number in (2, 3):
        workers(cluster, client, number)
        again = run(ShardedCompletion(Loader(load, 4), SHAPE, cg.Welsch(2.0), client=client))
        assert np.asarray(again.x).tobytes() == np.asarray(undisturbed.x).tobytes()
        assert (again.fun, again.counts) == (undisturbed.fun, undisturbed.counts)
        assert again.certificate.upper == undisturbed.certificate.upper


def test_a_killed_worker_changes_no_bit(client: Any, undisturbed: Any) -> None:
    killed: list[int] = []
    F = ShardedCompletion(Loader(load, 4), SHAPE, cg.Welsch(2.0), client=client)

    def kill(record: Any, x: Any) -> None:
        """Kill a worker that holds a shard, in the middle of the run."""
        if record.k == 1 and not killed:
            places = client.who_has(F.pattern.shards())
            address = next(iter(places.values()))[0]
            pid = client.run(os.getpid, workers=[address])[address]
            killed.append(pid)
            os.kill(pid, signal.SIGKILL)

    again = run(F, callback=kill)
    assert killed
    assert np.asarray(again.x).tobytes() == np.asarray(undisturbed.x).tobytes()
    assert (again.fun, again.counts) == (undisturbed.fun, undisturbed.counts)


def test_a_killed_worker_changes_no_bit_of_a_sharded_sum(client: Any) -> None:
    F = ShardedSum(Loader(some_rows, 3), cg.Welsch(2.0), client=client)
    asked = {"method": "ncgs-vr", "max_steps": 8, "tol": 1e-12}
    before = cg.minimize(F, cg.L1Ball(FEATURES, 3.0), **asked)
    killed: list[int] = []

    def kill(record: Any, x: Any) -> None:
        if record.k == 2 and not killed:
            killed.extend(client.run(os.getpid).values())
            os.kill(killed[0], signal.SIGKILL)

    again = cg.minimize(F, cg.L1Ball(FEATURES, 3.0), callback=kill, **asked)
    assert killed
    assert again.x.tobytes() == before.x.tobytes()
    assert (again.fun, again.counts) == (before.fun, before.counts)


def test_a_worker_may_die_before_its_results_are_fetched(client: Any, monkeypatch: Any) -> None:
    """Its tasks run nowhere else, and Dask waited for it for ever."""
    F, x = ShardedCompletion(entries(), SHAPE, client=client, shards=3), point(3)
    expected, gather, pids = F.value(point(4)), client.gather, client.run(os.getpid)
    F.value(x)
    owner, killed = F.pattern.held.owners[0], []

    def disturbed(futures: Any, **asked: Any) -> Any:
        if not killed:
            killed.append(owner)
            os.kill(pids[owner], signal.SIGKILL)
        return gather(futures, **asked)

    monkeypatch.setattr(client, "gather", disturbed)
    F.pattern.cluster.timeout = 60.0
    assert F.value(point(4)) == expected
    assert killed


def test_arrays_are_sent_again_when_all_workers_were_killed(client: Any) -> None:
    F, x = ShardedCompletion(entries(), SHAPE, client=client, shards=3), point(3)
    g = F.grad(x)
    before = g @ np.ones((SHAPE[1], 1))
    for pid in client.run(os.getpid).values():
        os.kill(pid, signal.SIGKILL)
    assert np.array_equal(g @ np.ones((SHAPE[1], 1)), before)


def test_a_run_is_resumed_on_a_cluster_of_another_size(
    cluster: Any, client: Any, undisturbed: Any, tmp_path: Path
) -> None:
    def objective() -> Any:
        return ShardedCompletion(Loader(load, 4), SHAPE, cg.Welsch(2.0), client=client)

    saving = {"checkpoint": cg.Checkpoint(tmp_path / "c", steps=1)}
    run(objective(), max_steps=1, **saving)
    workers(cluster, client, 1)
    again = run(objective(), resume=True, **saving)
    assert np.asarray(again.x).tobytes() == np.asarray(undisturbed.x).tobytes()
    assert (again.fun, again.counts) == (undisturbed.fun, undisturbed.counts)
    with pytest.raises(ValueError, match="is of another run"):
        run(ShardedCompletion(Loader(load, 3), SHAPE, cg.Welsch(2.0), client=client), resume=True, **saving)
