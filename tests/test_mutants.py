"""The mutation check itself: its list fits the source, its draw is seeded, and what it calls caught was caught by a test."""

from __future__ import annotations

from pathlib import Path

import pytest
from benchmarks.mutants import DRAWN, PACKAGE, ROOT, Bench, Mutant, candidates, drawn, hand_written, lines_of
from benchmarks.mutants_list import EQUIVALENT, FIRST, HAND_WRITTEN


def source(file: str) -> bytes:
    return (ROOT / PACKAGE / file).read_bytes()


@pytest.mark.slow
@pytest.mark.parametrize("mutant", hand_written(), ids=lambda mutant: f"{mutant.file}: {mutant.wrong}")
def test_every_entry_of_the_list_still_fits_its_file(mutant: Mutant) -> None:
    changed = mutant.applied(source(mutant.file))  # refuses a text that does not occur exactly once
    assert changed != source(mutant.file)
    compile(changed, mutant.file, "exec")


def test_a_text_that_occurs_twice_is_refused() -> None:
    with pytest.raises(ValueError, match="2 times, once was expected"):
        Mutant("some.py", "a", "b", "a became b").applied(b"a = a")


def test_every_file_of_the_core_has_entries_and_tests() -> None:
    assert set(FIRST) == set(HAND_WRITTEN)
    assert all((ROOT / PACKAGE / file).is_file() for file in FIRST)


def test_the_draw_is_seeded_and_changes_one_line_of_code() -> None:
    chosen = drawn(DRAWN)
    assert chosen == drawn(DRAWN) != drawn(DRAWN, seed=1)
    assert len(set(chosen)) == DRAWN
    for mutant in chosen:
        before, after = lines_of(mutant, source(mutant.file))
        assert before != after
        compile(mutant.applied(source(mutant.file)), mutant.file, "exec")


def test_the_draw_knows_every_kind_of_slip() -> None:
    code = b"def f(a: int = 1, k=True):\n    '''0.5 - a'''\n    return max(a - 0.5 * k, 1) if a < 2 else k + 1\n"
    after = {lines_of(mutant, code)[1] for mutant in candidates("f.py", code)}
    assert after == {
        "def f(a: int = 1, k=False):",
        "return min(a - 0.5 * k, 1) if a < 2 else k + 1",
        "return max(a + 0.5 * k, 1) if a < 2 else k + 1",
        "return max((0.5 * k) - (a), 1) if a < 2 else k + 1",
        "return max(a - 1.0 * k, 1) if a < 2 else k + 1",
        "return max(a - 0.5 / k, 1) if a < 2 else k + 1",
        "return max(a - 0.5 * (k + 1), 1) if a < 2 else k + 1",
        "return max(a - 0.5 * k, 1) if a <= 2 else k + 1",
        "return max(a - 0.5 * k, 1) if a < 3 else k + 1",
        "return max(a - 0.5 * k, 1) if a < 2 else k - 1",
        "return max(a - 0.5 * k, 1) if a < 2 else (k + 1) + 1",
        "return max(a - 0.5 * k, 1) if a < 2 else k + 2",
    }


def test_what_is_excused_is_still_there_to_be_drawn() -> None:
    known = {(file, lines_of(mutant, source(file))[1]) for file in FIRST for mutant in candidates(file, source(file))}
    assert set(EQUIVALENT) <= known
    assert all(EQUIVALENT.values())


def test_a_wrong_change_is_caught_and_leaves_no_trace(tmp_path: Path) -> None:
    tests = tmp_path / "tree" / "tests"
    tests.mkdir(parents=True)
    path = tmp_path / "tree" / PACKAGE / "half.py"
    path.parent.mkdir(parents=True)
    path.write_text("def half(x):\n    return x / 2\n")
    (path.parent / "__init__.py").touch()
    (tests / "test_half.py").write_text("from condgrad.half import half\n\ndef test_half():\n    assert half(4) == 2\n")
    bench = Bench(tmp_path / "tree")
    wrong, harmless = (
        Mutant("half.py", "x / 2", "x * 2", "/ became *"),
        Mutant("half.py", "x / 2", "x * 0.5", "no change"),
    )
    assert bench.caught(wrong, ["tests/test_half.py"])[0] == "tests/test_half.py::test_half"
    assert bench.caught(harmless, ["tests/test_half.py"])[0] == ""
    assert path.read_text() == "def half(x):\n    return x / 2\n"

    path.write_text("def half(x):\n    return x\n")
    with pytest.raises(RuntimeError, match="Without any change"):
        Bench(tmp_path / "tree").caught(wrong, ["tests/test_half.py"])
