"""RobustCompletion on a cluster: the fit in memory, whatever the workers; what can't be done there is refused."""

from __future__ import annotations

import gc
import json
import os
import resource
import shutil
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from sklearn.base import clone

import condgrad as cg
from condgrad.cli import main
from condgrad.learn import RobustCompletion
from condgrad.learn.completion.biases import Biases, refit_biases
from condgrad.learn.completion.model import Model
from condgrad.learn.completion.observed import InMemory
from condgrad.learn.completion.rescue import rescue

pytest.importorskip("distributed")

import dask
from distributed import Client, LocalCluster

from condgrad.distributed import EntryFolder, Loader, ShardedCompletion, ShardError
from condgrad.distributed import cluster as distributed_cluster
from condgrad.distributed.cluster import Cluster
from condgrad.learn.completion import sharded
from condgrad.learn.completion.sharded import OnWorkers

SHAPE = (40, 30)


@pytest.fixture(scope="module")
def client() -> Any:
    with (
        LocalCluster(n_workers=2, threads_per_worker=1, processes=True, dashboard_address=":0") as started,
        Client(started) as connected,
    ):
        yield connected


def entries(dtype: Any = np.float64) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Entries of a matrix of rank 2 with biases, some of them wrong; row 4 has none, and row 7 is ten times as large."""
    rng = np.random.default_rng(0)
    Y = rng.standard_normal((SHAPE[0], 2)) @ rng.standard_normal((2, SHAPE[1])) + 0.1 * rng.standard_normal(SHAPE)
    Y[7] *= 10
    Y += 1.5 + np.arange(SHAPE[1]) / 20
    Y[rng.random(SHAPE) < 0.04] = 30.0
    seen = rng.random(SHAPE) < 0.6
    seen[4] = False
    rows, cols = np.nonzero(seen)
    return rows, cols, Y[rows, cols].astype(dtype)


def some(number: int) -> tuple[np.ndarray, ...]:
    """Shard ``number`` of two, of 20 rows each."""
    rows, cols, values = entries()
    here = rows // 20 == number
    return rows[here], cols[here], values[here]


def matrix(model: RobustCompletion) -> np.ndarray:
    biases = model.mean_ + model.row_biases_[:, None] + model.col_biases_
    return model.row_factors_ @ model.components_ + biases


def close(a: Any, b: Any, digits: float = 1e-10) -> bool:
    a, b = np.asarray(a, float), np.asarray(b, float)
    return bool(np.linalg.norm(a - b) <= digits * np.linalg.norm(b))


# ------------------------------------------------------------------------------------------- each operation, in memory


@pytest.mark.parametrize("dtype", [np.float64, np.float32])
def test_operations_on_workers_are_those_in_memory(client: Any, dtype: Any, monkeypatch: Any) -> None:
    data, loss, rng = entries(dtype), cg.Welsch(1.0), np.random.default_rng(1)
    plain = cg.Completion(*data, SHAPE)
    there = ShardedCompletion(data, SHAPE, client=client, shards=3)
    x = cg.LowRank(rng.standard_normal((SHAPE[0], 2)), rng.standard_normal((SHAPE[1], 2)))
    biases = Biases(1.5, rng.standard_normal(SHAPE[0]), rng.standard_normal(SHAPE[1]))
    model, none = Model(x, biases, loss, 1.0), Biases(0.0, np.zeros(SHAPE[0]), np.zeros(SHAPE[1]))
    chosen, digits = np.array([3, 4, 7, 29]), 1e-10 if dtype is np.float64 else 1e-5
    found = []
    for operations, objective in ((InMemory(), plain), (OnWorkers(), there)):
        kept = operations.values(objective)
        train, held_out = operations.split(objective, 0.1, np.random.default_rng(5))
        current = operations.minus(train, biases, loss)
        assert close(operations.values(operations.minus(objective, biases, loss)), kept - biases.at(*data[:2]), digits)
        refitted = refit_biases(none, operations.reweighted(current, x, loss), "both", iterations=2)
        again = refit_biases(none, operations.reweighted(train, x, loss), "columns")
        rescued = rescue(
            objective, Model(cg.LowRank(0.1 * x.factors()[0], x.factors()[1]), none, loss, 0.1), "both", operations
        )
        found.append(
            [
                kept, held_out.rows, held_out.cols, held_out.values, current.value(x), np.asarray(current.grad(x)),
                operations.reweighted(current, x, loss).value, refitted.mean, refitted.rows, refitted.cols, again.cols,
                *(operations.counts(train, axis) for axis in (0, 1)),
                *(np.sort(part) for axis in (0, 1) for part in operations.select(train, axis, chosen)),
                operations.count_below(train, model, 0.3), *operations.outliers(objective, model),
                rescued.x.to_dense(), rescued.biases.rows, rescued.biases.cols,
            ]
        )  # fmt: skip
        assert train.pattern.size == objective.pattern.size - len(held_out.values)
    for one, other in zip(*found, strict=True):
        assert close(one, other, digits), (one, other)
    monkeypatch.setattr(sharded, "MAX_IN_DRIVER", 50)
    few = OnWorkers()
    assert len(few.values(there)) <= 50
    listed, whole = few.outliers(there, model), InMemory().outliers(plain, model)
    assert listed.number == whole.number > len(listed.values) > 0
    assert close(listed.residuals, whole.residuals[: len(listed.values)], digits)


def test_the_range_is_that_of_common_inliers(client: Any) -> None:
    rng = np.random.default_rng(2)
    rows, cols = np.nonzero(rng.random(SHAPE) < 0.5)
    values = rng.integers(1, 6, len(rows)).astype(float)
    values[:3] = 9.0
    zeros = Biases(3.0, np.zeros(SHAPE[0]), np.zeros(SHAPE[1]))
    there = ShardedCompletion((rows, cols, values), SHAPE, client=client, shards=4)
    plain = cg.Completion(rows, cols, values, SHAPE)
    for width in (9.0, 1e4):
        model = Model(cg.LowRank.zeros(SHAPE), zeros, cg.Welsch(width), 1.0)
        assert OnWorkers().inlier_range(there, model) == InMemory().inlier_range(plain, model)


# ----------------------------------------------------------------------------------------------------------- whole fits


@pytest.fixture
def threads() -> Any:
    """Workers in this process, for a fit of thousands of small steps."""
    with Client(processes=False, n_workers=2, threads_per_worker=1, dashboard_address=":0") as connected:
        yield connected


def test_a_fit_on_workers_is_the_fit_in_memory(threads: Any, tmp_path: Path) -> None:
    """Along the whole path, with unshrunk singular values and rescued rows."""
    holes = np.full(SHAPE, np.nan)
    holes[entries()[0], entries()[1]] = entries()[2]
    asked = {"loss": "huber", "max_steps": 6}
    plain = RobustCompletion(**asked).fit(holes)
    there = ShardedCompletion(entries(), SHAPE, client=threads, shards=2)
    model = clone(RobustCompletion(**asked, client=threads)).fit(there)
    assert model.client is threads
    assert close(matrix(model), matrix(plain), 1e-6)
    for name in ("radius_", "sigma_", "multiplier_", "validation_rmse_", "validation_median_error_"):
        assert getattr(model, name) == pytest.approx(getattr(plain, name), rel=1e-5), name
    assert [point.rank for point in model.path_] == [point.rank for point in plain.path_]
    assert model.outliers_.value.tolist() == plain.outliers_.value.tolist()
    assert (model.n_outliers_, model.n_validation_) == (len(plain.outliers_), plain.n_validation_)
    model.save(tmp_path / "model.npz")
    again = RobustCompletion.load(tmp_path / "model.npz")
    assert again.client is None
    assert np.array_equal(again.predict([[1, 2], [99, 2]]), model.predict([[1, 2], [99, 2]]))
    assert np.array_equal(again.fill("nothing"), model.fill("nothing"))
    columns, values = again.recommend([1], 3, exclude_seen=False)
    best = again.predict([[1, columns[0, 0]]])[0]
    assert values[0, 0] == pytest.approx(best, rel=1e-12) and again.fill("nothing")[1].max() == pytest.approx(
        best, rel=1e-12
    )
    for call in (lambda: again.fill(), lambda: again.recommend([1]), lambda: again.partial_fit(entries())):
        with pytest.raises(ValueError, match="The fitted entries are on a cluster, and not in the model: "):
            call()
    with pytest.raises(ValueError, match="The fitted entries are on a cluster"):
        again.fold_in(np.ones((1, SHAPE[1])))


SHORT: dict[str, Any] = {"loss": "huber", "radius": 2.0, "max_steps": 2}


def bits(model: RobustCompletion) -> bytes:
    parts = model.row_factors_, model.components_, model.row_biases_, model.col_biases_
    return b"".join(part.tobytes() for part in parts)


def test_a_killed_worker_and_fewer_workers_change_no_bit_of_a_fit(client: Any, monkeypatch: Any) -> None:
    source = Loader(some, 2, SHAPE)
    undisturbed = RobustCompletion(**SHORT, client=client).fit(source)
    finish, killed = OnWorkers.outliers, []

    def disturbed(self: Any, *given: Any) -> Any:
        killed.extend(client.run(os.getpid).values())
        os.kill(killed[-1], signal.SIGKILL)
        return finish(self, *given)

    split = OnWorkers.split

    def disturbed_split(self: Any, *given: Any) -> Any:
        found = split(self, *given)
        killed.extend(client.run(os.getpid).values())
        os.kill(killed[0], signal.SIGKILL)  # now also the entries that are not held out are lost
        return found

    monkeypatch.setattr(OnWorkers, "outliers", disturbed)
    monkeypatch.setattr(OnWorkers, "split", disturbed_split)
    again = RobustCompletion(**SHORT, client=client).fit(source)
    assert len(killed) >= 3
    assert bits(again) == bits(undisturbed)
    assert again.outliers_.tolist() == undisturbed.outliers_.tolist()


def test_names_in_files_name_predictions(client: Any, tmp_path: Path) -> None:
    pandas = pytest.importorskip("pandas")
    rows, cols, values = entries()
    table = pandas.DataFrame({"user": [f"u{i:02}" for i in rows], "item": cols, "rating": values})
    (tmp_path / "data").mkdir()
    for k in range(2):
        table[k::2].to_csv(tmp_path / "data" / f"{k}.csv", index=False)
    folder = EntryFolder(str(tmp_path / "data"), str(tmp_path), ("user", "item", "rating"), names=True)
    model = RobustCompletion(**SHORT, client=client).fit(ShardedCompletion(folder, client=client, shards=2))
    plain = RobustCompletion(**SHORT).fit((table.user, table.item, table.rating))
    assert model.row_ids_.tolist() == plain.row_ids_.tolist()
    assert close(matrix(model), matrix(plain), 1e-6)
    assert model.predict_names(["u03"], [5]) == pytest.approx(plain.predict_names(["u03"], [5]), rel=1e-6)
    arrays = RobustCompletion(**SHORT, client=client)
    read = arrays._read((table.user, table.item, table.rating), None, reset=True)
    there = sharded.objective_of(read, client)
    assert (there.shape, there.pattern.size, read.row_ids.tolist()) == ((39, 30), len(rows), plain.row_ids_.tolist())


def test_what_needs_the_entries_in_memory_is_refused(client: Any) -> None:
    rows, cols, values = entries()
    asked: dict[str, Any] = {"average": True, "implicit": True, "warm_start": True, "period": 5}
    for name, value in asked.items():
        with pytest.raises(ValueError, match=f"^{name}={value} needs the entries in memory, but a client was given"):
            RobustCompletion(**{name: value}, client=client).fit((rows, cols, values))
    with pytest.raises(ValueError, match="partial_fit needs the entries in memory"):
        RobustCompletion(client=client).partial_fit((rows, cols, values))
    weighted = ShardedCompletion((rows, cols, values, np.arange(len(rows)) % 2 + 1.0), SHAPE, client=client)
    with pytest.raises(ValueError, match="The entries have weights, but RobustCompletion has none"):
        RobustCompletion(client=client).fit(weighted)
    with pytest.raises(ValueError, match=r"largest value of the entries is 1e\+20, but a size from 1e-12 to 1e\+12"):
        RobustCompletion(client=client).fit(
            ShardedCompletion((rows, cols, np.full(len(rows), 1e20, np.float32)), SHAPE, client=client)
        )
    with pytest.raises(TypeError, match=r"a synchronous distributed\.Client was expected"):
        RobustCompletion(client="tcp://127.0.0.1:8786").fit((rows, cols, values))
    with pytest.raises(ValueError, match=r"The shape is \(3, 4\), but the source has \(40, 30\)"):
        ShardedCompletion(Loader(some, 2, SHAPE), (3, 4), client=client)


# --------------------------------------------------------------------------------------------------------------- faults


def held(client: Any) -> int:
    return len(client.run_on_scheduler(lambda dask_scheduler: list(dask_scheduler.tasks)))


def test_ctrl_c_frees_the_memory_of_the_workers(client: Any, monkeypatch: Any) -> None:
    gc.collect()  # what earlier tests have left in reference cycles
    before, results, calls = held(client), Cluster.results, []

    def interrupted(self: Any, *given: Any) -> Any:
        calls.append(given)
        if len(calls) == 40:
            assert held(client) > before
            raise KeyboardInterrupt
        return results(self, *given)

    monkeypatch.setattr(Cluster, "results", interrupted)
    with pytest.raises(KeyboardInterrupt) as caught:
        RobustCompletion(**SHORT, client=client).fit(Loader(some, 2, SHAPE))
    deadline = time.monotonic() + 10
    while held(client) > before and time.monotonic() < deadline:
        time.sleep(0.05)
    assert held(client) <= before  # although the traceback is kept
    assert caught.tb


def test_a_hung_worker_is_given_up_and_its_shards_are_named(client: Any, monkeypatch: Any) -> None:
    """Of two workers one hangs: while it computes, and while an array is sent to it, which Dask gives up after 30 s."""
    F = ShardedCompletion(Loader(some, 2, SHAPE), client=client)
    point = [cg.LowRank([[number]] * SHAPE[0], [[1.0]] * SHAPE[1]) for number in (1.0, 2.0, 3.0)]
    expected = F.value(point[0])
    hung = client.who_has(F.pattern.shards())[F.pattern.shards()[1].key][0]
    pid = client.run(os.getpid, workers=[hung])[hung]
    F.pattern.cluster.timeout = 2.0
    os.kill(pid, signal.SIGSTOP)
    try:
        for x, inline in ((point[1], 2**16), (point[2], 0)):
            monkeypatch.setattr(distributed_cluster, "MAX_INLINE", inline)
            begun = time.monotonic()
            with pytest.raises(
                ShardError, match=r"^Shard 1 gave no answer within 2 s: restart the workers that hang or"
            ):
                F.value(x)
            assert time.monotonic() < begun + 10
    finally:
        os.kill(pid, signal.SIGCONT)
    F.pattern.cluster.timeout = None
    assert F.value(point[0]) == expected


def test_a_full_disk_of_a_worker_is_one_sentence_that_names_the_file(client: Any, tmp_path: Path) -> None:
    pytest.importorskip("pyarrow")
    data = folder_of_entries(tmp_path / "data")
    (tmp_path / "scratch").mkdir()

    def limit(size: int) -> None:
        """Writes beyond this size fail, as they do on a full disk."""
        resource.setrlimit(resource.RLIMIT_FSIZE, (size, resource.RLIM_INFINITY))

    client.run(limit, 1000)
    try:
        with pytest.raises(
            ShardError, match=r"^The entries of .*a\.csv could not be written .*: check the room on the"
        ):
            ShardedCompletion(EntryFolder(data, str(tmp_path / "scratch")), SHAPE, client=client)
    finally:
        client.run(limit, resource.RLIM_INFINITY)
    assert not list((tmp_path / "scratch").iterdir())


def certificate(folder: Path) -> dict[str, str]:
    """Make a certificate that signs itself; return the paths of the files by the options of Dask's commands."""
    folder.mkdir()
    key, made = str(folder / "key.pem"), str(folder / "certificate.pem")
    command = ["openssl", "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-keyout", key, "-out", made, "-days", "1"]
    subprocess.run([*command, "-subj", "/CN=condgrad"], check=True, capture_output=True)
    return {"tls-ca-file": made, "tls-cert": made, "tls-key": key}


def trusting(files: dict[str, str]) -> dict[str, str]:
    """Dask's configuration of a client with these files."""
    names = {"tls-ca-file": "ca-file", "tls-cert": "client.cert", "tls-key": "client.key"}
    return {f"distributed.comm.tls.{names[option]}": path for option, path in files.items()}


@contextmanager
def running(folder: Path, *options: str) -> Iterator[str]:
    """Start `dask scheduler` and a `dask worker` as processes of their own; yield the address."""
    file, children = folder / "scheduler.json", []

    def start(command: str, *more: str) -> None:
        given = [
            sys.executable,
            "-m",
            f"distributed.cli.dask_{command}",
            "--scheduler-file",
            str(file),
            *more,
            *options,
        ]
        environment = os.environ | {"NUMBA_NUM_THREADS": "1"}
        children.append(subprocess.Popen([*given, "--no-dashboard"], stderr=subprocess.DEVNULL, env=environment))

    start("scheduler", "--host", "127.0.0.1", "--port", "0")
    try:
        start("worker", "--nthreads", "1", "--no-nanny", "--local-directory", str(folder))
        deadline, address = time.monotonic() + 60, ""
        while not address and time.monotonic() < deadline:
            time.sleep(0.1)
            with suppress(OSError, json.JSONDecodeError):
                address = json.loads(file.read_text())["address"]
        yield address
    finally:
        for child in children:
            child.kill()
            child.wait()


@pytest.mark.skipif(shutil.which("openssl") is None, reason="openssl makes the certificates")
def test_complete_uses_a_scheduler_that_runs_already_with_its_certificates(tmp_path: Path, capsys: Any) -> None:
    pytest.importorskip("pyarrow")
    files = certificate(tmp_path / "ours")
    data = folder_of_entries(tmp_path / "data")
    asked = ["--loss", "huber", "--radius", "2", "--quiet", "--json", "--no-report"]
    with running(tmp_path, *(f"--{option}={path}" for option, path in files.items()), "--protocol", "tls") as address:
        assert address.startswith("tls://")
        command = ["complete", data, "--scheduler", address, "--out", str(tmp_path / "model.npz"), *asked]
        with dask.config.set(trusting(files)):
            assert main(command) == 0
        found = json.loads(capsys.readouterr().out)
        with dask.config.set(trusting(certificate(tmp_path / "other")) | {"distributed.comm.timeouts.connect": "2s"}):
            assert main(command) == 2
    assert f"No scheduler could be reached at {address}" in capsys.readouterr().err
    assert found["entries"] == len(entries()[0])
    plain = RobustCompletion(**(SHORT | {"max_steps": 500})).fit(entries())
    assert found["outliers"] == plain.n_outliers_
    assert found["held-out RMSE"] == pytest.approx(plain.validation_rmse_, rel=1e-5)


def folder_of_entries(path: Path) -> str:
    path.mkdir()
    table = np.column_stack(entries())
    np.savetxt(path / "a.csv", table, "%d,%d,%.17g", header="row,col,value", comments="")
    return str(path)


# --------------------------------------------------------------------------------------------------------- command line


def test_complete_on_workers_is_complete_on_one_machine(tmp_path: Path, capsys: Any) -> None:
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    rows, cols, values = entries()
    table = pandas.DataFrame({"user": [f"u{i:02}" for i in rows], "item": cols, "rating": values})
    (tmp_path / "ratings").mkdir()
    for k in range(2):
        table[k::2].to_parquet(tmp_path / "ratings" / f"{k}.parquet", index=False)
    table.to_csv(tmp_path / "all.csv", index=False)
    pattern, model = str(tmp_path / "ratings" / "*.parquet"), str(tmp_path / "model.npz")
    asked = ["--loss", "huber", "--radius", "2"]
    assert main(["complete", pattern, "--workers", "2", "--out", model, "--quiet", "--json", *asked]) == 0
    said = capsys.readouterr()
    found = json.loads(said.out)
    assert "entries in 8 shards on 2 workers" in said.err
    assert (tmp_path / "model-report" / "report.html").is_file()
    assert {path.name for path in tmp_path.iterdir()} == {"ratings", "all.csv", "model.npz", "model-report"}
    plain = str(tmp_path / "plain.npz")
    assert (
        main(["complete", str(tmp_path / "all.csv"), "--out", plain, "--quiet", "--json", "--no-report", *asked]) == 0
    )
    expected = json.loads(capsys.readouterr().out)
    for name in ("entries", "rows", "columns", "loss", "rank", "outliers", "held-out entries"):
        assert found[name] == expected[name], name
    assert found["held-out RMSE"] == pytest.approx(expected["held-out RMSE"], rel=1e-5)
    out = tmp_path / "pairs.parquet"
    pandas.DataFrame({"item": [5, 1], "user": ["u03", "u09"]}).to_parquet(out)
    assert main(["predict", model, str(out), "--out", str(tmp_path / "p.parquet")]) == 0
    written = parquet.read_table(tmp_path / "p.parquet").to_pydict()
    assert (written["row"], written["column"]) == (["u03", "u09"], [5, 1])
    stored = RobustCompletion.load(model)
    assert written["value"] == stored.predict_names(["u03", "u09"], [5, 1]).tolist()
    assert main(["predict", model, "--top", "2", "--out", str(tmp_path / "top.parquet")]) == 2
    assert "give --include-seen" in capsys.readouterr().err


def test_options_of_workers_that_do_not_go_together_are_refused(tmp_path: Path, capsys: Any) -> None:
    for options, message in (
        (["--workers", "2", "--scheduler", "tcp://127.0.0.1:1"], "give one of them"),
        (["--workers", "0"], "--workers is 0: give a number of at least 1"),
        (["--timeout", "3"], "--timeout is about workers: give --workers or --scheduler too"),
        (["--workers", "2", "--wide"], "--wide is not possible if workers read the data"),
        (["--workers", "2", "--period", "24"], "--period is not possible if workers read the data"),
        (["--workers", "2"], r"There are no files *.parquet or *.csv in"),
    ):
        assert main(["complete", str(tmp_path / "none"), "--out", str(tmp_path / "m.npz"), *options]) == 2
        assert message in capsys.readouterr().err
    (tmp_path / "a.csv").write_text("a,b,c,d\n1,2,3,4\n")
    assert main(["complete", str(tmp_path), "--out", str(tmp_path / "m.npz"), "--workers", "1"]) == 2
    assert "It is not clear which of the columns a, b, c, d" in capsys.readouterr().err


def test_predictions_are_written_in_parts(tmp_path: Path, monkeypatch: Any) -> None:
    """Parts of a few rows give what one part gives; without a cluster."""
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    from condgrad.data import parquet_stream

    model = RobustCompletion(**SHORT).fit(entries())
    model.save(tmp_path / "m.npz")
    rows, cols, _ = entries()
    pandas.DataFrame({"user": rows, "item": cols}).to_parquet(tmp_path / "pairs.parquet")
    monkeypatch.setattr(parquet_stream, "CHUNK_ROWS", 7)
    predict = ["predict", str(tmp_path / "m.npz")]
    assert main([*predict, str(tmp_path / "pairs.parquet"), "--out", str(tmp_path / "p.parquet")]) == 0
    file = parquet.ParquetFile(tmp_path / "p.parquet")
    assert file.num_row_groups > 50
    assert np.array_equal(file.read()["value"].to_numpy(), model.predict(np.c_[rows, cols]))
    assert main([*predict, "--top", "3", "--out", str(tmp_path / "top.parquet")]) == 0
    best, values = model.recommend(model.row_ids_, 3)
    top = parquet.read_table(tmp_path / "top.parquet")
    assert top["column"].to_numpy().tolist() == best.compressed().tolist()
    assert np.array_equal(top["value"].to_numpy(), values[~np.ma.getmaskarray(best)])
    assert main([*predict, "--top", "2", "--include-seen", "--rows", "3", "--out", str(tmp_path / "top.parquet")]) == 0
    assert (
        parquet.read_table(tmp_path / "top.parquet")["value"].to_numpy()[0] == model.recommend([3], 1, False)[1][0, 0]
    )


def test_pairs_in_parquet_files_are_named_and_counted(tmp_path: Path, capsys: Any) -> None:
    """Positions of columns were refused, other columns taken for pairs, and a missing file reported as the output."""
    pandas = pytest.importorskip("pandas")
    parquet = pytest.importorskip("pyarrow.parquet")
    model = RobustCompletion(**SHORT).fit(entries())
    model.save(tmp_path / "m.npz")
    pairs, out = tmp_path / "pairs.parquet", tmp_path / "p.parquet"
    pandas.DataFrame({"time": [9, 9, 9], "a": [1, 2, 900], "b": [3, 4, 5]}).to_parquet(pairs)
    predict = ["predict", str(tmp_path / "m.npz"), str(pairs), "--out", str(out)]
    assert main(predict) == 2 and "the columns time, a, b: name the two that" in capsys.readouterr().err
    for columns in ("1,2", "a,b"):
        assert main([*predict, "--columns", columns]) == 0
        assert "1 of 3 pairs has a row that was not in the training data" in capsys.readouterr().err
        assert np.array_equal(parquet.read_table(out)["value"].to_numpy(), model.predict([[1, 3], [2, 4], [900, 5]]))
    assert main([*predict, "--columns", "1,7"]) == 2 and "name the two that" in capsys.readouterr().err
    pairs.unlink()
    assert main(predict) == 2
    said = capsys.readouterr().err
    assert str(pairs) in said and str(out) not in said
