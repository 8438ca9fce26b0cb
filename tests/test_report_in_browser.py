"""The report in a real, headless Chromium: plots drawn, switches that work, no error, nothing fetched."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import shutil
import subprocess
from dataclasses import replace
from html import unescape
from pathlib import Path
from typing import Any

import numpy as np
import pytest
from tests.commands import HUNG
from tests.tiny import TINY

from condgrad.paper.figure1_methods import FIGURE_1A
from condgrad.paper.reproduce import reproduce
from condgrad.report import Curve, Picture, Plot, Table, Text, figures, write

BROWSER = next(filter(None, map(shutil.which, ("chromium", "chromium-browser", "google-chrome", "chrome"))), None)
pytestmark = pytest.mark.skipif(
    BROWSER is None, reason="no Chromium on this machine, so reports are not opened: apt-get install chromium"
)

UNITS = {"cpu": "CPU seconds", "fo": "full gradients (FO)", "lo": "linear minimisations (LO)"}
NASTY = """<img src=x onerror="window.ran = 1"></script><script>window.ran = 1</script>"""
RAW = {"name": NASTY, "values": [1.5, float("nan")]}

WATCH = """
window.seen = {errors: [], blocked: []};
window.addEventListener("error", (event) => seen.errors.push(String(event.message)));
window.addEventListener("unhandledrejection", (event) => seen.errors.push(String(event.reason)));
document.addEventListener("securitypolicyviolation", (event) => seen.blocked.push(event.blockedURI + event.violatedDirective));
for (const level of ["error", "warn"]) console[level] = (...words) => seen.errors.push(words.join(" "));
"""
"""Runs before the page's own script."""

USE = """
(async () => {
  const figure = document.querySelector("figure.plot"), svg = figure.querySelector(".canvas svg");
  const look = () => ({
    title: svg.querySelector(".axis-title.x")?.textContent,
    lines: [...svg.querySelectorAll(".line")].map((path) => path.getAttribute("d")),
    shown: [...svg.querySelectorAll(".curve")].map((group) => Number(group.dataset.curve)),
    bands: svg.querySelectorAll(".band").length,
    ends: svg.querySelectorAll(".end").length,
    ticks: [...svg.querySelectorAll("text")].map((text) => text.textContent),
    markup: svg.innerHTML,
    absent: [...figure.querySelectorAll(".legend .absent")].map((button) => Number(button.dataset.curve)),
    pressed: [...figure.querySelectorAll(".units button")].map((button) => button.getAttribute("aria-pressed")),
  });
  const tip = () => (figure.querySelector(".tip").hidden ? null : figure.querySelector(".tip").innerText);
  const entries = [...figure.querySelectorAll(".legend button")];
  await new Promise((done) => setTimeout(done, 200));
  seen.first = look();
  seen.groups = [...figure.querySelectorAll(".legend h4")].map((heading) => heading.textContent);
  seen.overflow = document.documentElement.scrollWidth > document.documentElement.clientWidth;
  seen.tops = ["figure.plot", "figure.table"].map((name) => document.querySelector(name).getBoundingClientRect().top);
  seen.cut = [...document.querySelectorAll("h1, h3, p, figcaption")]
    .filter((text) => text.getBoundingClientRect().right > document.documentElement.clientWidth).map((text) => text.textContent);
  seen.figures = document.querySelectorAll("figure.plot .canvas svg .line").length;
  seen.images = [...document.images].map((image) => image.naturalWidth);

  const box = svg.getBoundingClientRect(), dot = svg.querySelector(".marker").getBoundingClientRect();
  const move = (x, y) => svg.dispatchEvent(new PointerEvent("pointermove", {clientX: x, clientY: y, bubbles: true}));
  move(dot.left + dot.width / 2, dot.top + dot.height / 2);
  seen.hover = tip();
  move(box.left - 500, box.top - 500);
  seen.away = tip();
  const press = (key) => svg.dispatchEvent(new KeyboardEvent("keydown", {key, bubbles: true}));
  seen.keys = ["ArrowRight", "ArrowRight", "ArrowDown", "Escape"].map((key) => (press(key), tip()));

  figure.querySelector(".units button[data-unit=lo]").click();
  seen.switched = look();
  entries[0].click();
  seen.hidden = look();
  seen.entry = entries[0].getAttribute("aria-pressed");
  entries[0].click();
  seen.back = look();
  entries.forEach((entry) => entry.click());
  seen.nothing = svg.textContent;

  const made = URL.createObjectURL;
  let blob = null;
  URL.createObjectURL = (given) => { blob = given; return made.call(URL, given); };
  document.getElementById("download").click();
  seen.download = JSON.parse(await blob.text());
  seen.ran = window.ran ?? 0;
  seen.fetched = performance.getEntriesByType("resource").map((entry) => entry.name);
  const out = document.createElement("pre");
  out.id = "seen";
  out.textContent = JSON.stringify(seen);
  document.body.append(out);
})();
"""
"""Uses the page as a reader would, and writes down what is seen."""


def a_report(folder: Path) -> Path:
    rng = np.random.default_rng(0)

    def run(speed: float) -> dict[str, Any]:
        cpu = np.cumsum(rng.uniform(0.01, 0.2, 60))
        k = np.arange(60)
        return {"cpu": cpu, "fo": k, "lo": 3 * k, "y": 30 * np.exp(-speed * cpu) * rng.lognormal(0, 0.2, 60)}

    curves = [
        Curve(f"method {i} {NASTY}", [run(0.3 + i) for _ in range(3)], "ours" if i < 2 else "theirs") for i in range(4)
    ]
    one = {"cpu": [3.0], "fo": [1], "lo": [40], "y": [20.0]}
    curves.append(Curve("one point", [one], "theirs", "ended at its budget"))
    curves.append(Curve("no linear oracle", [run(2.0) | {"lo": [0] * 60}], "theirs"))
    plot = Plot("fig", f"A figure {NASTY}", "squared mapping", UNITS, curves, 1e-3, NASTY)
    blocks = [Text(NASTY, [NASTY]), plot, Table("T", ["a", NASTY], [[1, NASTY]])]
    blocks += [Picture("matrix", "M", {"truth": np.eye(6), NASTY: np.ones((6, 6))})]
    blocks += [Plot("other", "Another", "squared mapping", {"cpu": "CPU seconds"}, curves[:2])]
    with pytest.MonkeyPatch.context() as patch:  # what is drawn for print is not opened here
        for draw in ("draw_plot", "draw_picture"):
            patch.setattr(figures, draw, lambda block, folder: None)
        return write(folder, NASTY, blocks, {NASTY: NASTY}, RAW)


def chromium(folder: Path, page: Path, *options: str) -> str:
    quiet = (
        "--headless",
        "--no-sandbox",
        "--disable-gpu",
        "--no-first-run",
        "--disable-dev-shm-usage",
        "--hide-scrollbars",
    )
    profile = f"--user-data-dir={folder / 'profile'}"
    command = [str(BROWSER), *quiet, profile, *options, page.resolve().as_uri()]
    return subprocess.run(command, capture_output=True, check=True, timeout=HUNG).stdout.decode()


def opened(folder: Path, page: Path, *options: str) -> dict[str, Any]:
    """What is seen in a copy of the page that lets the two scripts above run as well."""
    text = page.read_text(encoding="utf-8")
    hashes = " ".join(
        f"'sha256-{base64.b64encode(hashlib.sha256(s.encode()).digest()).decode()}'" for s in (WATCH, USE)
    )
    text = text.replace("script-src ", f"script-src {hashes} ", 1)
    text = text.replace("<title>", f"<script>{WATCH}</script><title>", 1).replace(
        "</body>", f"<script>{USE}</script></body>"
    )
    copy = page.with_name("watched.html")
    copy.write_text(text, encoding="utf-8")
    dom = chromium(folder, copy, "--dump-dom", "--virtual-time-budget=5000", *options)
    found = re.search(r'<pre id="seen">(.*?)</pre>', dom, re.DOTALL)
    assert found, f"the page's script did not come to its end: {dom[-2000:]}"
    return json.loads(unescape(found[1]))


@pytest.fixture(scope="module")
def seen(tmp_path_factory: pytest.TempPathFactory) -> dict[str, Any]:
    folder = tmp_path_factory.mktemp("browser")
    return opened(folder, a_report(folder / "report"), "--window-size=1200,900")


def finite(path: str) -> bool:
    numbers = re.findall(r"[^MLZHV,]+", path)
    return len(numbers) > 20 and all(np.isfinite(float(number)) for number in numbers)


def test_plots_are_drawn(seen: dict[str, Any]) -> None:
    first = seen["first"]
    assert first["shown"] == [0, 1, 2, 3, 4, 5] and len(first["lines"]) == 5 and first["bands"] == 4
    assert all(map(finite, first["lines"])) and "NaN" not in first["markup"] and "Infinity" not in first["markup"]
    assert first["ends"] == 1 and first["title"] == "CPU seconds" and "target 0.001" in first["ticks"]
    assert seen["figures"] == 7 and seen["groups"] == ["ours", "theirs"]
    assert seen["images"] == [6, 6, 128]


def test_nothing_fails_nothing_is_blocked_and_nothing_is_fetched(seen: dict[str, Any]) -> None:
    assert seen["errors"] == [] and seen["blocked"] == [] and seen["fetched"] == []


def test_text_stays_text(seen: dict[str, Any]) -> None:
    assert seen["ran"] == 0 and NASTY in seen["hover"]


def test_the_axis_switches(seen: dict[str, Any]) -> None:
    first, switched = seen["first"], seen["switched"]
    assert switched["title"] == "linear minimisations (LO)" and all(map(finite, switched["lines"]))
    assert not set(first["lines"]) & set(switched["lines"])
    assert first["absent"] == [] and switched["absent"] == [5] and switched["shown"] == [0, 1, 2, 3, 4]
    assert first["pressed"] == ["true", "false", "false"] and switched["pressed"] == ["false", "false", "true"]


def test_the_legend_puts_a_curve_away_and_back(seen: dict[str, Any]) -> None:
    assert seen["hidden"]["shown"] == [1, 2, 3, 4] and seen["entry"] == "false"
    assert seen["back"]["lines"] == seen["switched"]["lines"]
    assert "Nothing to show" in seen["nothing"]


def test_values_are_shown_under_the_pointer_and_by_the_keyboard(seen: dict[str, Any]) -> None:
    assert re.search(r"method \d.*CPU seconds: [\d.e-]+.*squared mapping: [\d.e-]+.*3 seeds", seen["hover"], re.DOTALL)
    assert seen["away"] is None
    first, right, down, escaped = seen["keys"]
    assert first != right and "method 0" in right and "method 1" in down and escaped is None


def test_the_button_gives_the_raw_data(seen: dict[str, Any]) -> None:
    assert seen["download"] == {"name": NASTY, "values": [1.5, None]}


def test_a_telephone_shows_it_without_scrolling_sideways(tmp_path: Path) -> None:
    narrow = opened(tmp_path, a_report(tmp_path / "report"), "--window-size=400,900")
    assert (
        not narrow["overflow"]
        and narrow["cut"] == []
        and narrow["errors"] == []
        and all(map(finite, narrow["first"]["lines"]))
    )


def test_it_has_a_light_and_a_dark_face(tmp_path: Path) -> None:
    page = a_report(tmp_path / "report")
    image = pytest.importorskip("matplotlib.image")
    faces = {}
    for name, setting in (("light", 1), ("dark", 0)):
        shot = tmp_path / f"{name}.png"
        scheme = f"--blink-settings=preferredColorScheme={setting}"
        chromium(tmp_path, page, scheme, f"--screenshot={shot}", "--window-size=900,700")
        faces[name] = image.imread(shot)[..., :3]
    assert np.median(faces["light"]) > 0.9 and np.median(faces["dark"]) < 0.2


def test_the_reproduction_opens(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for draw in ("draw_plot", "draw_picture"):
        monkeypatch.setattr(figures, draw, lambda block, folder: None)
    untuned = replace(TINY, seeds=1, tuning=False, generators=TINY.generators[:1])
    page, _ = reproduce(tmp_path / "out", untuned, ["fig1a", "recovery"])
    seen = opened(tmp_path, page, "--window-size=1200,900")
    assert seen["errors"] == [] and seen["blocked"] == [] and seen["fetched"] == []
    assert len(seen["first"]["lines"]) == sum(line.drawn for line in FIGURE_1A) and all(
        map(finite, seen["first"]["lines"])
    )
    assert seen["switched"]["title"] == "linear minimisations (LO)" and 0 not in seen["hidden"]["shown"]
    figure, table = seen["tops"]
    assert figure < 300 and table < 800, "the first screen has the figure and the verdicts"
    narrow = opened(tmp_path, page, "--window-size=400,900")
    assert not narrow["overflow"] and narrow["cut"] == []
    assert seen["images"] == [24, 24, 24, 24, 128] and set(seen["download"]) == {"facts", "fig1a", "recovery"}
