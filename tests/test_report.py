"""Reports: medians over seeds, a page that holds everything and trusts no text, figures that are the same each time."""

from __future__ import annotations

import base64
import hashlib
import io
import os
import re
import sys
import tomllib
from math import ceil, inf, log10, nan
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.pages import Elements, strictly, undrawn

from condgrad.report import Curve, NoFigures, Opening, Picture, Plot, Table, Text, environment, write
from condgrad.report.bands import Band, band, bands, best_so_far
from condgrad.report.page import _png
from condgrad.report.plain import format_value, plain
from condgrad.report.style import COLOURS, UNKNOWN_COLOUR, looks, to_rgb

ROOT = Path(__file__).parents[1]
UNITS = {"cpu": "CPU seconds", "lo": "linear oracle calls"}
NASTY = """</script><script>alert("it's")</script><!-- & $a$ \u2028"""


def run(rng: np.random.Generator, n: int = 30) -> dict[str, np.ndarray]:
    cpu = np.cumsum(rng.uniform(0.01, 1.0, n))
    return {"cpu": cpu, "lo": np.arange(1, n + 1), "y": 10 / cpu * rng.lognormal(size=n)}


def a_plot(label: str = "a method", seeds: int = 3, **keywords: Any) -> Plot:
    rng = np.random.default_rng(0)
    curves = [Curve(label, [run(rng, n) for n in range(20, 20 + 10 * seeds, 10)], "ours", "ended early")]
    curves.append(Curve("another", [run(rng)], "theirs"))
    return Plot("fig", "A figure", "squared mapping", UNITS, curves, target=0.5, **keywords)


def written(folder: Path, *blocks: Any, title: str = "A title", facts: Any = None, raw: Any = None) -> str:
    with undrawn():
        return write(folder, title, blocks, facts or {}, raw).read_text(encoding="utf-8")


# --------------------------------------------------------------------------------------------------------------- bands


def directly(runs: list[dict[str, Any]], unit: str, x: float) -> list[float]:
    """Quartiles at cost x, row by row: the best of each run so far; of two neighbours the larger, for 25 % the smaller."""
    best = []
    for columns in runs:
        rows = list(zip(columns[unit], columns["y"], strict=True))
        so_far = [y for cost, y in rows if cost <= x]
        best.append(log10(min(so_far) if so_far else rows[0][1]))
    best.sort()

    last = len(best) - 1
    return [10 ** best[rank] for rank in (last // 4, ceil(last / 2), ceil(3 * last / 4))]


@pytest.mark.parametrize("seeds", [1, 2, 3, 4, 7])
@pytest.mark.parametrize("unit", UNITS)
def test_quartiles_are_those_of_a_direct_computation(seeds: int, unit: str) -> None:
    rng = np.random.default_rng(seeds)
    runs = [run(rng, int(n)) for n in rng.integers(5, 40, seeds)]
    drawn = band(Curve("c", runs), unit, tuple(UNITS), 1e-9)
    assert drawn is not None and drawn.runs == seeds
    for i in range(0, len(drawn.x), 7):
        expected = directly(runs, unit, float(drawn.x[i]))
        assert np.allclose([drawn.low[i], drawn.middle[i], drawn.high[i]], expected, rtol=1e-12)


@settings(max_examples=30, deadline=None)
@given(st.integers(1, 9), st.integers(0, 10**6))
def test_a_line_goes_from_where_half_have_begun_to_where_half_go_on_and_never_rises(seeds: int, seed: int) -> None:
    rng = np.random.default_rng(seed)
    runs = [run(rng, int(n)) for n in rng.integers(1, 30, seeds)]
    drawn = band(Curve("c", runs), "cpu", tuple(UNITS), 1e-9)
    assert drawn is not None
    going = [sum(r["cpu"][-1] >= x for r in runs) for x in (drawn.x[-1], drawn.x[-1] * (1 + 1e-9))]
    assert going[0] >= ceil(seeds / 2) and 2 * going[1] <= seeds
    calls = band(Curve("c", runs), "lo", tuple(UNITS), 1e-9)
    assert calls is not None and (calls.x == np.round(calls.x)).all() and (np.diff(calls.x) > 0).all()
    begun = sum(r["cpu"][0] <= drawn.x[0] for r in runs)
    assert 2 * begun >= seeds
    assert (np.diff(drawn.middle) <= 1e-12 * drawn.middle[0]).all()
    assert (drawn.low <= drawn.middle).all() and (drawn.middle <= drawn.high).all()


def test_what_is_not_measured_or_not_paid_for_is_left_out() -> None:
    columns = {"cpu": [1e-5, 1.0, 2.0, 3.0, 4.0], "lo": [0, 1, 2, 3, 4], "y": [9.0, nan, 5.0, inf, 7.0]}
    x, y = best_so_far(columns, "cpu", tuple(UNITS))
    assert x.tolist() == [1.0, 2.0, 3.0, 4.0] and y.tolist() == [9.0, 5.0, 5.0, 5.0]
    assert len(best_so_far({**columns, "y": [nan] * 5}, "cpu", tuple(UNITS))[0]) == 0
    assert len(best_so_far(columns, "fo", tuple(UNITS))[0]) == 0


def test_a_zero_is_drawn_at_the_smallest_positive_value() -> None:
    curves = [Curve("a", [{"cpu": [1.0, 2.0], "y": [1.0, 0.0]}]), Curve("b", [{"cpu": [1.0], "y": [0.25]}])]
    first, second = bands(Plot("p", "", "", {"cpu": "s"}, curves), "cpu")
    assert isinstance(first, Band) and isinstance(second, Band)
    assert first.middle[-1] == pytest.approx(0.25) and second.x.tolist() == [1.0]
    nothing = Plot("p", "", "", {"cpu": "s"}, [Curve("a", [{"cpu": [1.0], "y": [0.0]}]), Curve("b", [])])
    assert [drawn is None for drawn in bands(nothing, "cpu")] == [False, True]


def test_curves_of_one_figure_look_different() -> None:
    for groups in (1, 3):
        drawn = looks([Curve(str(i), [], str(i % groups)) for i in range(2 * len(COLOURS))])
        assert len({(look.colour, look.dashes, look.marker) for look in drawn}) == len(drawn)


# ---------------------------------------------------------------------------------------------------------------- page


def test_the_page_holds_everything_and_points_nowhere(tmp_path: Path) -> None:
    picture = Picture("matrix", "Matrices", {"truth": np.eye(4)})
    page = written(tmp_path, Text("Why", ["Because."]), a_plot(), picture, Table("T", ["a"], [[1]]), raw={"x": [1]})
    assert "://" not in page
    elements = Elements(page)
    assert all((image["src"] or "").startswith("data:image/png;base64,") for image in elements.named("img"))
    assert not elements.named("link") and all("src" not in script for script in elements.named("script"))
    links = {link["href"] for link in elements.named("a")}
    assert links == {f"{name}.{kind}" for name in ("fig", "matrix") for kind in ("png", "svg", "pdf")}


def test_only_the_pages_own_script_and_style_may_run(tmp_path: Path) -> None:
    page = written(tmp_path, a_plot())
    (policy,) = [meta["content"] for meta in Elements(page).named("meta") if "http-equiv" in meta]
    for element in ("script", "style"):
        text = re.findall(rf"<{element}>(.*?)</{element}>", page, re.DOTALL)
        assert len(text) == 1
        digest = base64.b64encode(hashlib.sha256(text[0].encode()).digest()).decode()
        assert f"{element}-src 'sha256-{digest}'" in str(policy)
    assert str(policy).startswith("default-src 'none'; img-src data:;") and "unsafe" not in str(policy)


def test_text_is_text_wherever_it_stands(tmp_path: Path) -> None:
    rng = np.random.default_rng(0)
    curve = Curve(NASTY, [run(rng)], NASTY, NASTY)
    plot = Plot("p", NASTY, NASTY, {"cpu": NASTY}, [curve], note=NASTY)
    opening = Opening(NASTY, NASTY, "https://example.org", NASTY, [("mi", NASTY)])
    blocks = [opening, Text(NASTY, [NASTY]), plot, Table(NASTY, [NASTY], [[NASTY]], NASTY)]
    blocks.append(Picture("q", NASTY, {NASTY: np.eye(2)}, NASTY))
    raw = {NASTY: [NASTY]}
    page = written(tmp_path, *blocks, title=NASTY, facts={NASTY: NASTY}, raw=raw)
    elements = Elements(page)
    assert len(elements.named("script")) == 3
    assert strictly(elements.text("data")) == raw
    (drawn,) = strictly(elements.text("plots"))
    assert drawn["title"] == drawn["curves"][0]["label"] == drawn["units"][0]["label"] == NASTY
    for where in ("h1", "title", "h3", "p", "td", "figcaption", "span", "a", "mi"):
        assert NASTY in elements.text(where)
    assert elements.named("img")[0]["alt"] == NASTY


def test_data_are_strict_json_on_the_page_and_beside_it(tmp_path: Path) -> None:
    raw = {"a": nan, "b": [inf, -inf, np.float64(1.5)], "c": np.array([[1, 2], [3, 4]]), 4: (True, None, Path("d"))}
    expected = {"a": None, "b": [None, None, 1.5], "c": [[1, 2], [3, 4]], "4": [True, None, "d"]}
    page = written(tmp_path, a_plot(), raw=raw)
    assert strictly((tmp_path / "data.json").read_text(encoding="utf-8")) == expected
    assert strictly(Elements(page).text("data")) == expected
    with pytest.raises(TypeError, match="hold a object, but only numbers"):
        plain({"a": object()})


def test_the_page_has_the_numbers_of_the_bands(tmp_path: Path) -> None:
    plot = a_plot()
    (drawn,) = strictly(Elements(written(tmp_path, plot)).text("plots"))
    for unit in UNITS:
        for curve, expected in zip(drawn["curves"], bands(plot, unit), strict=True):
            assert expected is not None
            assert np.allclose(curve["bands"][unit]["middle"], expected.middle, rtol=1e-4)
            assert ("low" in curve["bands"][unit]) == (expected.runs > 1)


@pytest.mark.parametrize(
    ("value", "said"),
    [
        (None, "–"),  # noqa: RUF001
        (nan, "–"),  # noqa: RUF001
        (0.123456, "0.123"),
        (np.float64(2e-9), "2.00e-9"),
        (0.00099999, "0.001"),
        (12345.6, "12300"),
        (99999.0, "1.00e5"),
        (0.0, "0"),
        (12345, "12,345"),
        (True, "yes"),
        ([1, 2.5], "1, 2.5"),
        ("as it is", "as it is"),
    ],
)
def test_cells_show_what_they_hold(value: Any, said: str) -> None:
    assert format_value(value) == said


def test_matrices_are_painted_on_one_scale() -> None:
    image = np.array([[0.0, 2.0], [-2.0, nan]])
    pixels = to_rgb(image, 2.0)
    assert pixels[0, 0].tolist() == [255, 255, 255] and pixels[1, 1].tolist() == [int(UNKNOWN_COLOUR[1:3], 16)] * 3
    assert pixels[0, 1, 0] > pixels[0, 1, 2] and pixels[1, 0, 0] < pixels[1, 0, 2]  # orange above zero, blue below
    matplotlib_image = pytest.importorskip("matplotlib.image")
    read = matplotlib_image.imread(io.BytesIO(base64.b64decode(_png(pixels))))
    assert (np.round(read * 255) == pixels).all()


def test_one_outlier_does_not_bleach_a_picture() -> None:
    image = np.ones((50, 50))
    image[0, 0] = 1e6
    assert Picture("p", "", {"a": image, "b": np.array([[nan, 0.5]])}).scale == 1.0
    assert Picture("p", "", {"a": image, "b": np.array([[nan, 0.5]])}, scaled_by="b").scale == 0.5


# ------------------------------------------------------------------------------------------------------------- figures


def test_the_same_data_give_the_same_files(tmp_path: Path) -> None:
    blocks = (a_plot(), Picture("matrix", "Matrices", {"a": np.eye(5), "b": np.ones((5, 3))}))
    for name in ("once", "again"):
        write(tmp_path / name, "A title", blocks, {}, {"x": 1.0})
    files = sorted(path.name for path in (tmp_path / "once").iterdir())
    assert len(files) == 8
    for name in files:
        assert (tmp_path / "once" / name).read_bytes() == (tmp_path / "again" / name).read_bytes(), name


def test_figures_are_fit_for_print(tmp_path: Path) -> None:
    write(tmp_path, "A title", [a_plot("_a $ label$")], {}, None)
    png = (tmp_path / "fig.png").read_bytes()
    at = png.index(b"pHYs")
    assert int.from_bytes(png[at + 4 : at + 8], "big") >= 200 / 0.0254
    svg = (tmp_path / "fig.svg").read_text(encoding="utf-8")
    assert "_a $ label$</text>" in svg and "CPU seconds</text>" in svg
    assert b"/FontFile2" in (tmp_path / "fig.pdf").read_bytes()


def test_without_matplotlib_the_page_is_complete(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "matplotlib", None)
    with pytest.warns(NoFigures, match="pip install 'condgrad\\[plot\\]'"):
        path = write(tmp_path, "T", [a_plot(), Picture("q", "Q", {"a": np.eye(2)})], {}, None)
    page = path.read_text(encoding="utf-8")
    assert not Elements(page).named("a") and sorted(p.name for p in tmp_path.iterdir()) == ["data.json", "report.html"]


# --------------------------------------------------------------------------------------------------------- bad input


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: Table("T", ["a", "b"], [[1]]), "A row of the table 'T' has 1 cells, but its header has 2"),
        (lambda: Curve("c", [{"cpu": [1.0]}]), "has no 'y', only cpu"),
        (lambda: Curve("c", [{"cpu": [1.0], "y": [1.0, 2.0]}]), r"differ in length \(cpu 1, y 2\)"),
        (lambda: Plot("a/b", "", "", UNITS, []), "The name of a plot is 'a/b', but it names files"),
        (lambda: Plot("p", "", "", {}, []), "has no units"),
        (lambda: Plot("p", "", "", UNITS, [], target=0.0), "The target of the plot 'p' must be positive"),
        (lambda: Picture("p", "", {}), "has no matrix"),
        (lambda: Picture("p", "", {"a": np.ones(3)}), r"'a' in the picture 'p' has shape \(3,\)"),
        (lambda: Picture("p", "", {"a": np.eye(3)}, scaled_by="b"), "Unknown matrix to scale the colours by 'b'"),
        (lambda: Opening("", "W", "javascript:alert(1)", "", []), "The address of 'W' is .* must begin with https"),
        (lambda: Opening("", "W", "https://w", "", [("script", "x")]), r"A formula has \('script', 'x'\)"),
        (lambda: Opening("", "W", "https://w", "", [("mrow", ("img", "x"))]), r"A formula has \('img', 'x'\)"),
        (lambda: Picture("../p", "", {"a": np.eye(3)}), "The name of a picture"),
    ],
)
def test_bad_blocks_are_refused_in_a_sentence(make: Any, said: str) -> None:
    with pytest.raises(ValueError, match=said):
        make()


def test_a_report_that_is_cut_short_leaves_the_old_one(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    page = write(tmp_path, "Old", [], {}, None)
    before = page.read_text(), (tmp_path / "data.json").read_text()

    def cut(descriptor: int) -> None:
        raise OSError("no space left")

    monkeypatch.setattr(os, "fsync", cut)
    with pytest.raises(OSError, match="no space"):
        write(tmp_path, "New", [], {}, {"x": 1})
    assert (page.read_text(), (tmp_path / "data.json").read_text()) == before
    assert {path.name for path in tmp_path.iterdir()} == {"report.html", "data.json"}


def test_two_figures_of_one_name_are_refused(tmp_path: Path) -> None:
    with pytest.raises(ValueError, match="Two plots or pictures are named 'fig'"):
        write(tmp_path / "r", "T", [a_plot(), a_plot()], {}, None)
    assert not (tmp_path / "r").exists()


def test_what_the_page_is_made_of_is_installed_with_it() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    declared = set(project["tool"]["setuptools"]["package-data"]["condgrad.report"])
    there = {path.name for path in (ROOT / "src/condgrad/report").iterdir() if path.is_file() and path.suffix != ".py"}
    assert declared == there


def test_the_environment_names_versions_and_machine() -> None:
    facts = environment()
    assert facts["numpy"] == np.__version__ and "cores" in facts["machine"]


def test_a_report_deletes_figures_of_an_earlier_report_and_nothing_else(tmp_path: Path) -> None:
    """Whatever had the name of a plot was deleted."""
    for name in ("fig.png", "fig.pdf"):
        (tmp_path / name).write_bytes(b"the user's")
    write(tmp_path, "A title", [a_plot()], {}, None, figures=False)
    assert (tmp_path / "fig.png").read_bytes() == (tmp_path / "fig.pdf").read_bytes() == b"the user's"

    folder = tmp_path / "other"
    write(folder, "A title", [a_plot()], {}, None)
    (folder / "fig.svg").write_bytes(b"changed by the user")
    (folder / "own.png").write_bytes((folder / "fig.png").read_bytes())
    write(folder, "A title", [a_plot()], {}, None, figures=False)
    assert sorted(file.name for file in folder.iterdir()) == ["data.json", "fig.svg", "own.png", "report.html"]


def test_an_earlier_page_can_not_name_files_elsewhere(tmp_path: Path) -> None:
    victim = tmp_path / "victim.png"
    victim.write_bytes(b"x")
    digest, folder = hashlib.sha256(b"x").hexdigest(), tmp_path / "report"
    folder.mkdir()
    listed = f'<meta name="figures" content="../victim.png:{digest} {victim}:{digest}">'
    (folder / "report.html").write_text(listed)
    write(folder, "A title", [a_plot()], {}, None, figures=False)
    assert victim.exists()


def test_a_table_for_the_terminal_is_ascii() -> None:
    """A terminal may not be able to show the dash of the reports."""
    from condgrad.report.text_table import table

    text = table(("name", "bound", "exact"), [("a", None, True), ("b", float("nan"), False), ("c", 0.123456, None)])
    assert text.isascii() and "0.123" in text and " no" in text and text.splitlines()[2].split() == ["a", "-", "yes"]


def test_the_title_of_a_figure_and_its_buttons_have_a_row_each():
    """In one row four buttons covered the end of a title."""
    css = (Path(sys.modules[Plot.__module__].__file__).parent / "page.css").read_text()
    assert "grid-row: 1" not in css and ".plot > h3, .plot > figcaption { grid-column: 1 / -1 }" in css
