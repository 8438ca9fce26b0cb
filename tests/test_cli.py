"""The command line as a user types it: tables, specs, one clear sentence for what is wrong, never a traceback."""

from __future__ import annotations

import csv
import json
import signal
from pathlib import Path

import numpy as np
import pytest

from condgrad import DOMAINS, LOSSES, METHODS
from condgrad.cli import BAD_INPUT, main
from condgrad.cli.exit_codes import INTERRUPTED

SPEC = """
[problem]
objective = "quadratic"
matrix = "Q.npy"

[set]
name = "simplex"

[method]
name = "ncgs"

[stop]
mapping = 1e-8
steps = 2000
"""


@pytest.fixture
def spec(tmp_path: Path) -> Path:
    Q = np.random.default_rng(0).normal(size=(12, 12))
    np.save(tmp_path / "Q.npy", (Q + Q.T) / 2)
    path = tmp_path / "run.toml"
    path.write_text(SPEC, encoding="utf-8")
    return path


NUCLEAR = 'name = "nuclear-ball"\nradius = 2.0'


def paper(folder: Path, method: str, stop: str = "steps = 3", domain: str = NUCLEAR, shape: str = "[12, 10]") -> Path:
    """A spec of the paper's problem, with these lines in its sections."""
    path = folder / "p.toml"
    problem = f'objective = "paper"\nshape = {shape}\nrank = 2'
    path.write_text(f"[problem]\n{problem}\n[set]\n{domain}\n[method]\n{method}\n[stop]\n{stop}\n", encoding="utf-8")
    return path


@pytest.mark.parametrize(("command", "registry"), [("methods", METHODS), ("sets", DOMAINS), ("losses", LOSSES)])
def test_listings_show_the_registry(command: str, registry: dict, capsys: pytest.CaptureFixture[str]) -> None:
    assert main([command]) == 0
    table = capsys.readouterr().out
    assert all(name in table for name in registry)
    assert main([command, "--json"]) == 0
    assert [row["name"] for row in json.loads(capsys.readouterr().out)] == list(registry)


def test_solve_writes_result_trace_point_and_report(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(spec)]) == 0
    assert "converged" in capsys.readouterr().out
    out = spec.with_name("run-run")
    result = json.loads((out / "result.json").read_text())
    assert result["status"] == "converged" and result["mapping_upper"] <= 1e-8
    x = np.load(out / "x.npy")
    assert np.isclose(x.sum(), 1) and (x >= 0).all()
    rows = list(csv.DictReader((out / "trace.csv").read_text().splitlines()))
    assert int(rows[-1]["fo"]) == result["counts"]["fo"]
    assert "ncgs" in (out / "report.html").read_text(encoding="utf-8")


def test_figures_for_print_are_drawn_when_asked_only(spec: Path, capsys: pytest.CaptureFixture[str]) -> None:
    out = spec.with_name("run-run")
    figures = [out / f"convergence.{kind}" for kind in ("png", "svg", "pdf")]
    page = out / "report.html"
    assert main(["solve", str(spec), "--quiet"]) == 0
    assert not any(figure.exists() for figure in figures) and "For print" not in page.read_text(encoding="utf-8")
    assert main(["solve", str(spec), "--quiet", "--figures"]) == 0
    assert figures[0].read_bytes().startswith(b"\x89PNG") and all(figure.exists() for figure in figures)
    assert 'href="convergence.pdf"' in page.read_text(encoding="utf-8")
    assert main(["report", str(out), "--out", str(out)]) == 0, "figures of other data would lie beside the page"
    assert not any(figure.exists() for figure in figures)
    assert main(["report", str(out), "--out", str(out), "--figures"]) == 0
    assert all(figure.exists() for figure in figures)


def test_solve_json_is_for_machines(spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", str(spec), "--json", "--out", str(tmp_path / "elsewhere")]) == 0
    assert json.loads(capsys.readouterr().out)["success"] is True
    assert (tmp_path / "elsewhere" / "x.npy").exists()


def test_an_out_that_can_not_be_written_is_said_before_the_run(
    spec: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("condgrad.spec.Spec.solve", lambda *_, **__: pytest.fail("the run has begun"))
    (tmp_path / "afile").write_text("")
    assert main(["solve", str(spec), "--quiet", "--out", str(tmp_path / "afile")]) == BAD_INPUT
    assert "afile" in capsys.readouterr().err


def test_a_large_point_of_low_rank_is_written_as_its_factors(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("condgrad.cli.solve.MAX_DENSE_ENTRIES", 50)
    assert main(["solve", str(paper(tmp_path, 'name = "ncgs"')), "--quiet"]) == 0
    factors = np.load(tmp_path / "p-run" / "x.npz")
    assert (factors["U"] @ factors["V"].T).shape == (12, 10) and not (tmp_path / "p-run" / "x.npy").exists()


@pytest.mark.parametrize("deep", ["radius = 1" + "0" * 400, "radius = " + "[" * 3000 + "]" * 3000])
def test_what_is_too_large_or_too_deep_is_said_in_a_sentence(
    deep: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    path = paper(tmp_path, 'name = "ncgs"', domain=f'name = "nuclear-ball"\n{deep}')
    assert main(["solve", str(path), "--quiet"]) == BAD_INPUT
    told = capsys.readouterr().err
    assert told.startswith("condgrad: ") and told.count("\n") == 1 and len(told) < 400


def test_a_run_that_ends_before_its_first_step_is_reported_too(spec: Path, tmp_path: Path) -> None:
    assert main(["solve", str(spec), "--quiet", "--seconds", "1e-9"]) == 0
    out = tmp_path / "run-run"
    assert json.loads((out / "result.json").read_text())["status"] == "out_of_budget"
    assert "out of budget" in (out / "report.html").read_text(encoding="utf-8")


@pytest.mark.parametrize("method", ["stochastic-ncgs", "ncgs-vr", "frank-wolfe", "svfw"])
def test_solve_runs_other_methods_on_the_papers_problem(method: str, tmp_path: Path) -> None:
    path = paper(tmp_path, f'name = "{method}"\nseed = 3', "steps = 5")
    assert main(["solve", str(path), "--quiet"]) == 0
    assert json.loads((tmp_path / "p-run" / "result.json").read_text())["steps"] == 5


@pytest.mark.parametrize(("warm_start", "gradients"), [(0, 4), (3, 7)])
def test_solve_takes_the_options_of_a_low_rank_run(warm_start: int, gradients: int, tmp_path: Path) -> None:
    """The point is of low rank on the way, and an array in the file."""
    method = f'name = "ncgs"\ninner = "spectral"\nwarm_start = {warm_start}\nadaptive = false'
    path = paper(tmp_path, method, "steps = 4")
    assert main(["solve", str(path), "--quiet"]) == 0
    assert json.loads((tmp_path / "p-run" / "result.json").read_text())["counts"]["fo"] == gradients
    x = np.load(tmp_path / "p-run" / "x.npy")
    assert x.shape == (12, 10) and x.dtype == float


@pytest.mark.parametrize(
    ("name", "key"),
    [
        ("spectral-ball", "radius = 0.5"),
        ("ky-fan-ball", "k = 2"),
        ("spectrahedron", "equal = false"),
        ("fantope", "rank = 2"),
    ],
)
def test_solve_knows_the_sets_of_matrices_and_their_keys(name: str, key: str, tmp_path: Path) -> None:
    path = paper(tmp_path, 'name = "ncgs"', "mapping = 1e-10\nsteps = 3000", f'name = "{name}"\n{key}', "[9, 9]")
    assert main(["solve", str(path), "--quiet"]) == 0
    assert json.loads((tmp_path / "p-run" / "result.json").read_text())["status"] == "converged"


def test_solve_reads_linear_models_and_boxes(tmp_path: Path) -> None:
    rng = np.random.default_rng(1)
    np.save(tmp_path / "A.npy", rng.normal(size=(30, 4)))
    np.savetxt(tmp_path / "y.csv", rng.normal(size=30), delimiter=",")
    (tmp_path / "m.toml").write_text(
        """
        [problem]
        objective = "linear-model"
        features = "A.npy"
        labels = "y.csv"
        loss = "welsch"
        sigma = 2.0
        [set]
        name = "box"
        lower = -0.5
        upper = 0.5
        [method]
        name = "ncgs"
        smoothness = "estimate"
        [stop]
        mapping = 1e-8
        lo = 1000
        """,
        encoding="utf-8",
    )
    assert main(["solve", str(tmp_path / "m.toml")]) == 0
    assert json.loads((tmp_path / "m-run" / "result.json").read_text())["status"] == "converged"


WRONG = {
    "unknown method": ('name = "ncgs"', 'name = "ncsg"', "did you mean 'ncgs'"),
    "unknown set": ('name = "simplex"', 'name = "simplx"', "did you mean 'simplex'"),
    "unknown objective": ('"quadratic"', '"quadratics"', "did you mean 'quadratic'"),
    "unknown stop": ("mapping = 1e-8", "maping = 1e-8", "did you mean 'mapping'"),
    "unknown section": ("[stop]", "[stopp]", "did you mean 'stop'"),
    "unknown key": ('matrix = "Q.npy"', 'matrix = "Q.npy"\nmatrixx = 1', "matrixx"),
    "unknown option": ('name = "ncgs"', 'name = "ncgs"\nrule = "short"', "Unknown key 'rule' in [method]"),
    "missing key": ('matrix = "Q.npy"', "", "needs matrix"),
    "missing file": ("Q.npy", "R.npy", "No such file"),
    "wrong kind of file": ("Q.npy", "Q.txt", "Can't read 'Q.txt'"),
    "negative radius": ('name = "simplex"', 'name = "simplex"\nradius = -1.0', "must be positive"),
    "negative tolerance": ("1e-8", "-1.0", "must be positive"),
    "a sum is needed": ('name = "ncgs"', 'name = "ncgs-vr"', "needs a finite sum"),
    "not TOML": ("[problem]", "[problem", "is not TOML"),
    "smoothness that is a word": (
        'name = "ncgs"',
        'name = "ncgs"\nsmoothness = "a"',
        "must be a number above 0 or 'est",
    ),
    "measure that is a word": (
        'name = "ncgs"',
        'name = "ncgs"\nmeasure = "yes"',
        "measure must be True or False, but got",
    ),
    "null in a file's name": ('"Q.npy"', '"Q\\u0000.npy"', "Can't read 'Q\\x00.npy': the name of a file has no null"),
    "rows that are no number": (
        '"quadratic"\nmatrix = "Q.npy"',
        '"paper"\nshape = [1e3, 2]\nrank = 1',
        "a whole number",
    ),
    "paper's data too large": (
        '"quadratic"\nmatrix = "Q.npy"',
        '"paper"\nshape = [10_000_000, 10_000_000]\nrank = 10',
        "shape = [10000000, 10000000] in [problem] makes 1e+14 numbers, but at most 1e+08 are made",
    ),
    "sum too large": (
        '"quadratic"\nmatrix = "Q.npy"',
        '"robust-regression"\nterms = 1_000_000_000',
        "terms = 1000000000 and dimension = 10 in [problem] makes 1e+10 numbers",
    ),
    "empty stop": ("mapping = 1e-8\nsteps = 2000", "", "no [stop] with anything in it"),
}


@pytest.mark.parametrize(("old", "new", "said"), WRONG.values(), ids=WRONG)
def test_what_is_wrong_in_a_spec_is_said_in_a_sentence(
    old: str, new: str, said: str, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC.replace(old, new), encoding="utf-8")
    assert main(["solve", str(spec)]) == BAD_INPUT
    error = capsys.readouterr().err
    assert said in error and error.startswith("condgrad: ") and error.count("\n") == 1


def test_data_that_is_too_large_is_refused_before_memory_is_taken(
    spec: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr("condgrad.spec.paper_data", lambda *_, **__: pytest.fail("data is made"))
    large = '"paper"\nshape = [10_000_000, 10_000_000]\nrank = 10'
    spec.write_text(SPEC.replace('"quadratic"\nmatrix = "Q.npy"', large), encoding="utf-8")
    assert main(["solve", str(spec)]) == BAD_INPUT and "1e+14 numbers" in capsys.readouterr().err


def test_a_signal_ends_solve_while_it_makes_its_files(spec: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Signals wait only while the files are moved; until then the folder is as it was."""

    def interrupted(*_: object) -> None:
        signal.raise_signal(signal.SIGINT)
        pytest.fail("the signal is held back")

    monkeypatch.setattr("condgrad.driver.trace.Trace.to_csv", interrupted)
    assert main(["solve", str(spec), "--quiet"]) == INTERRUPTED
    assert not spec.with_name("run-run").exists()


def test_the_files_of_solve_and_report_follow_links(spec: Path, tmp_path: Path) -> None:
    elsewhere, out = tmp_path / "elsewhere", spec.with_name("run-run")
    elsewhere.mkdir()
    out.mkdir()
    for name in ("report.html", "result.json"):
        (out / name).symlink_to(elsewhere / name)
    (elsewhere / "report.html").write_text("old", encoding="utf-8")
    assert main(["solve", str(spec), "--quiet"]) == 0
    for name in ("report.html", "result.json"):
        assert (out / name).is_symlink() and not (elsewhere / name).is_symlink()
    assert "<html" in (elsewhere / "report.html").read_text(encoding="utf-8")
    assert json.loads((elsewhere / "result.json").read_text(encoding="utf-8"))["status"] == "converged"
    assert not [file.name for file in (*out.iterdir(), *elsewhere.iterdir()) if file.name.endswith(".partial")]


def test_a_missing_spec_is_said(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["solve", "nowhere.toml"]) == BAD_INPUT
    assert capsys.readouterr().err == "condgrad: No such file or directory: nowhere.toml.\n"


def test_the_example_spec_converges(tmp_path: Path) -> None:
    example = Path(__file__).parents[1] / "examples" / "paper.toml"
    assert main(["solve", str(example), "--out", str(tmp_path), "--quiet"]) == 0
    assert json.loads((tmp_path / "result.json").read_text())["status"] == "converged"


@pytest.mark.parametrize(
    ("line", "said"),
    [
        ('schedule = { name = "practical", c = 0.25 }', None),
        ('schedule = { name = "theory", steps = 50 }', None),
        ('inner = { name = "condg", max_calls = 20 }', None),
        ('inner = { name = "condg", calls = 20 }', "Unknown key 'calls'"),
        ('inner = { name = "condgg" }', "did you mean 'condg'"),
        ("inner = { max_calls = 20 }", "has no 'name'"),
        ("schedule = { name = 'theory' }", "needs steps"),
    ],
)
def test_a_schedule_and_an_inner_solver_may_have_parameters(
    line: str, said: str | None, spec: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    spec.write_text(SPEC.replace('name = "ncgs"', f'name = "ncgs"\n{line}'), encoding="utf-8")
    code = main(["solve", str(spec), "--quiet"])
    if said is None:
        assert code == 0
    else:
        assert code == BAD_INPUT
        error = capsys.readouterr().err
        assert said in error and error.count("\n") == 1
