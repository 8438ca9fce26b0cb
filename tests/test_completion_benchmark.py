"""The completion benchmark without its peers: its data are what they claim to be, and it runs in a tiny form."""

from __future__ import annotations

import json
from pathlib import Path

import numpy as np
import pytest
from benchmarks import completion, completion_data, completion_peers, completion_run
from benchmarks.completion_data import SETS, Entries, contaminated, held_out, split, synthetic
from benchmarks.completion_peers import OURS, PEERS


def ratings(n: int = 2_000) -> Entries:
    rng = np.random.default_rng(0)
    flat = rng.permutation(60 * 80)[:n]
    return Entries(flat // 80, flat % 80, rng.integers(1, 6, n).astype(float), (60, 80))


def places(entries: Entries) -> set[tuple[int, int]]:
    return set(zip(entries.rows.tolist(), entries.cols.tolist(), strict=True))


def test_no_rating_is_in_two_sets() -> None:
    train, test = split(ratings())
    rest, held = held_out(train)
    assert (len(train.values), len(test.values), len(held.values)) == (1_600, 400, 160)
    assert not places(train) & places(test) and not places(rest) & places(held)
    assert places(rest) | places(held) == places(train)


@pytest.mark.parametrize("kind", SETS)
def test_so_many_ratings_are_contaminated(kind: str) -> None:
    train, _ = split(ratings())
    before = train.values.copy()
    moved = contaminated(train, kind).values - train.values
    assert np.array_equal(train.values, before)
    assert np.array_equal(moved, contaminated(train, kind).values - train.values)
    if kind == "gross":
        assert np.count_nonzero(moved) == 80 and set(np.abs(moved)) == {0.0, 10.0} and 0 < np.mean(moved > 0) < 0.05
    else:
        bad = {"clean": 0, "5 % uniform": 80, "20 % uniform": 320}[
            kind
        ]  # a fifth of them is replaced by the same rating
        assert 0.65 * bad <= np.count_nonzero(moved) <= bad
        assert contaminated(train, kind).values.min() >= 1 and contaminated(train, kind).values.max() <= 5


def test_the_truth_is_judged_where_nobody_has_looked() -> None:
    seen, truth = synthetic(100, 3, 2_000)
    assert len(seen.values) == 2_000 and len(truth.values) == 500 and not places(seen) & places(truth)
    assert 0.5 < np.std(truth.values) < 1.5 < np.std(seen.values)


def test_every_peer_says_what_it_needs() -> None:
    for peer in PEERS.values():
        assert set(peer.grid) <= set(peer.ratings)
        assert all(peer.ratings[key] in choices for key, choices in peer.grid.items())


def test_a_fit_in_its_own_process(tmp_path: Path) -> None:
    seen, truth = synthetic(60, 2, 1_500)
    predicted, cost = completion_run.measure(OURS, seen, truth, 0, {"radius": 100.0})
    assert predicted.shape == truth.values.shape and np.isfinite(predicted).all()
    assert cost["cpu"] > 0 and cost["peak"] >= 0 and cost["radius"] == pytest.approx(100.0)


def test_what_fails_in_the_process_is_said() -> None:
    seen, truth = synthetic(60, 2, 1_500)
    with pytest.raises(RuntimeError, match="radius"):
        completion_run.measure(OURS, seen, truth, 0, {"radius": -1.0})


def test_claims_fail_when_they_should() -> None:
    rows = [{"name": OURS, "set": kind, "rmse": 0.92, "cpu": 1.0} for kind in SETS]
    rows += [{"name": completion.SOFT_IMPUTE, "set": kind, "rmse": 0.92, "cpu": 6.0} for kind in SETS]
    assert [claim.holds for claim in completion.ratings_claims(rows)] == [False, False, True, False, True]
    assert not any(claim.holds for claim in completion.ratings_claims([]))


@pytest.mark.slow
def test_the_tiny_form_runs(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(completion, "QUICK", completion.Size(1, (80, 3_000), 2, (60, 2_000), (200, 10_000)))
    monkeypatch.setattr(completion, "MOVIELENS", tmp_path / "nowhere" / "u.data")
    monkeypatch.setattr(completion, "missing", lambda name: "not in this test")
    monkeypatch.setattr("sys.argv", ["completion", "--quick", "--out", str(tmp_path)])
    completion.main()
    said, warned = capsys.readouterr()
    assert "Synthetic" in said and "The radius" in said and "The estimator on the engine" in said
    assert "MovieLens 100K is left out" in warned
    written = json.loads((tmp_path / "completion.json").read_text(encoding="utf-8"))
    assert {row["part"] for row in written["rows"]} == {"synthetic", "radius", "engine"}
    assert len(written["claims"]) == 4 and set(written["absent"]) == set(PEERS)


def test_the_peers_are_not_imported() -> None:
    import sys

    assert completion_data and completion_peers
    assert not {peer.library for peer in PEERS.values()} & set(sys.modules)


@pytest.mark.slow
def test_a_fit_that_takes_too_long_is_stopped() -> None:
    with pytest.raises(completion_run.Stopped, match=r"RobustCompletion\(\) was stopped after 1 s"):
        completion_run.measure(OURS, *synthetic(1_000, 10, 400_000), 0, {}, limit=1.0)
