"""The page of a report: one self-contained HTML file, with a content security policy that forbids loading anything else."""

from __future__ import annotations

import base64
import hashlib
import json
import re
import struct
import zlib
from collections.abc import Mapping, Sequence
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np

from condgrad.report.bands import Band, bands
from condgrad.report.blocks import Block, Node, Opening, Picture, Plot, Table, Text
from condgrad.report.plain import format_value
from condgrad.report.style import looks, to_rgb

HEAD_BYTES = 2**16
"""Number of bytes at the beginning of a page that contain the list of figures."""
LISTED_FIGURE = re.compile(r"([\w-][\w.-]*\.(?:png|svg|pdf)):([0-9a-f]{64})")
"""Figure in that list: a file name without folders, and the SHA-256 hash of the file."""


def page(
    title: str, blocks: Sequence[Block], facts: Mapping[str, Any], data: str, figures: Mapping[str, str] | None
) -> str:
    """HTML of the page. ``data`` is the raw data as JSON, ``figures`` maps figure files to SHA-256 hashes (None: not drawn)."""
    figures_hint = "" if figures is None else "; the figures beside this page do not"
    style, script = _package_file("page.css"), _package_file("page.js")
    policy = f"default-src 'none'; img-src data:; style-src {_policy_hash(style)}; script-src {_policy_hash(script)}"
    plots = [_plot_data(block) for block in blocks if isinstance(block, Plot)]
    headings = [block.heading for block in blocks if isinstance(block, Text)]
    links = "".join(f'<a href="#{i}">{escape(heading)}</a>' for i, heading in enumerate(headings))
    anchors = iter(range(len(headings)))
    body = "\n".join(
        _text(block, next(anchors)) if isinstance(block, Text) else _block(block, figures is not None)
        for block in blocks
    )
    return f"""<!doctype html>
<html lang="en">
<head>
<meta charset="utf-8">
<meta http-equiv="Content-Security-Policy" content="{policy}">
<meta name="viewport" content="width=device-width, initial-scale=1">
<meta name="color-scheme" content="light dark">
<meta name="figures" content="{escape(" ".join(f"{name}:{digest}" for name, digest in (figures or {}).items()))}">
<title>{escape(title)}</title>
<style>{style}</style>
</head>
<body>
<header><h1>{escape(title)}</h1><button type="button" id="download" data-name="data.json">Download raw data</button></header>
{f"<nav>{links}</nav>" if len(headings) > 2 else ""}
<main>
{body}
<section><h2>Facts</h2><div class="wide"><table class="facts">{_facts(facts)}</table></div></section>
</main>
<noscript><p>The interactive plots need JavaScript{figures_hint}.</p></noscript>
<script type="application/json" id="plots">{_json_in_html(json.dumps(plots, allow_nan=False, separators=(",", ":")))}</script>
<script type="application/json" id="data">{_json_in_html(data)}</script>
<script>{script}</script>
</body>
</html>
"""


def figures_listed(head: str) -> dict[str, str]:
    """Figure files that the beginning of a page lists, with their SHA-256 hashes."""
    listed = re.search(r'<meta name="figures" content="([^"]*)">', head)
    found = map(LISTED_FIGURE.fullmatch, listed[1].split()) if listed else ()
    return {match[1]: match[2] for match in found if match}


def _block(block: Opening | Table | Plot | Picture, figures: bool) -> str:
    if isinstance(block, Opening):
        return _opening(block)
    if isinstance(block, Table):
        return _table(block)
    files = ", ".join(f'<a href="{block.name}.{kind}">{kind.upper()}</a>' for kind in ("png", "svg", "pdf"))
    about = " ".join(
        filter(None, [escape(block.note), f'<span class="files">For print: {files}</span>' if figures else ""])
    )
    inside = _EMPTY_PLOT if isinstance(block, Plot) else _pictures(block)
    kind = "plot" if isinstance(block, Plot) else "picture"
    return f'<figure class="{kind}"><h3>{escape(block.title)}</h3>{inside}<figcaption>{about}</figcaption></figure>'


_EMPTY_PLOT = (
    '<div class="units" role="group" aria-label="x-axis"></div>'
    '<div class="canvas"><svg tabindex="0" role="img"></svg><output class="tip" hidden></output></div>'
    '<div class="legend"></div>'
)
"""Elements that the script fills."""


def _opening(opening: Opening) -> str:
    formula = "".join(map(_math, opening.formula))
    finding = f'<p class="finding">{escape(opening.finding)}</p>' if opening.finding else ""
    return (
        f'<section class="opening"><p class="work"><a href="{escape(opening.address)}">{escape(opening.work)}</a></p>'
        f'<p class="problem">{escape(opening.problem)}: <math displaystyle="true">{formula}</math></p>{finding}</section>'
    )


def _math(node: Node | str) -> str:
    if isinstance(node, str):
        return escape(node)
    name, *inside = node
    return f"<{name}>{''.join(map(_math, inside))}</{name}>"


def _text(text: Text, anchor: int) -> str:
    paragraphs = "".join(f"<p>{escape(paragraph)}</p>" for paragraph in text.paragraphs)
    return f'<section><h2 id="{anchor}">{escape(text.heading)}</h2>{paragraphs}</section>'


def _table(table: Table) -> str:
    numeric = [all(row[i] is None or _is_number(row[i]) for row in table.rows) for i in range(len(table.header))]
    kinds = [' class="number"' if numbers else "" for numbers in numeric]
    head = "".join(f'<th scope="col"{kind}>{escape(name)}</th>' for kind, name in zip(kinds, table.header, strict=True))
    rows = "".join(
        "<tr>"
        + "".join(f"<td{kind}>{escape(format_value(v))}</td>" for kind, v in zip(kinds, row, strict=True))
        + "</tr>"
        for row in table.rows
    )
    note = f'<p class="note">{escape(table.note)}</p>' if table.note else ""
    return (
        f'<figure class="table"><figcaption>{escape(table.caption)}</figcaption><div class="wide"><table><thead><tr>{head}</tr>'
        f"</thead><tbody>{rows}</tbody></table></div>{note}</figure>"
    )


def _is_number(value: Any) -> bool:
    return isinstance(value, int | float | np.number) and not isinstance(value, bool)


def _facts(facts: Mapping[str, Any]) -> str:
    return "".join(
        f'<tr><th scope="row">{escape(str(name))}</th><td>{escape(format_value(value))}</td></tr>'
        for name, value in facts.items()
    )


def _pictures(picture: Picture) -> str:
    images = "".join(
        f'<div><img alt="{escape(label)}" src="data:image/png;base64,{_png(to_rgb(np.asarray(image), picture.scale))}">'
        f"<span>{escape(label)}</span></div>"
        for label, image in picture.images.items()
    )
    ramp = _png(to_rgb(np.linspace(-1, 1, 128)[None, :], 1.0))
    scale = f"{picture.scale:.3g}"
    return (
        f'<div class="images">{images}</div><div class="scale">-{scale}<img alt="colour scale" '
        f'src="data:image/png;base64,{ramp}">{scale}</div>'
    )


def _png(pixels: np.ndarray) -> str:
    """PNG in base64 of an RGB image, written with the standard library, so that the page does not need matplotlib."""
    height, width, _ = pixels.shape
    lines = b"".join(b"\0" + line.tobytes() for line in pixels)
    chunks = (
        (b"IHDR", struct.pack(">IIBBBBB", width, height, 8, 2, 0, 0, 0)),
        (b"IDAT", zlib.compress(lines, 9)),
        (b"IEND", b""),
    )
    packed = (struct.pack(">I", len(d)) + name + d + struct.pack(">I", zlib.crc32(name + d)) for name, d in chunks)
    return base64.b64encode(b"\x89PNG\r\n\x1a\n" + b"".join(packed)).decode()


def _plot_data(plot: Plot) -> dict[str, Any]:
    """Data of a plot for the script."""
    drawn = {unit: bands(plot, unit) for unit in plot.units}
    return {
        "title": plot.title,
        "y": plot.y,
        "target": plot.target,
        "scales": plot.scales,
        "units": [{"key": unit, "label": label} for unit, label in plot.units.items()],
        "curves": [
            {
                "label": curve.label,
                "group": curve.group,
                "note": curve.note,
                "colour": look.colour,
                "dashes": " ".join(map(str, look.dashes)),
                "marker": look.marker,
                "bands": {unit: _band_data(drawn[unit][i]) for unit in plot.units},
            }
            for i, (curve, look) in enumerate(zip(plot.curves, looks(plot.curves), strict=True))
        ],
    }


def _band_data(band: Band | None) -> dict[str, Any] | None:
    """Data of a band for the script, rounded to five digits, which is finer than a screen resolves."""
    if band is None:
        return None
    columns = {"x": band.x, "middle": band.middle}
    columns |= {"low": band.low, "high": band.high} if band.runs > 1 else {}
    return {**{name: [float(f"{v:.5g}") for v in values] for name, values in columns.items()}, "runs": band.runs}


def _package_file(name: str) -> str:
    """Content of a file of this package."""
    return (files("condgrad.report") / name).read_text(encoding="utf-8")


def _policy_hash(text: str) -> str:
    """Hash of a script or style as the content security policy expects it: the page runs no other."""
    return f"'sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}'"


def _json_in_html(text: str) -> str:
    """Escape JSON so that it cannot end the script element around it."""
    return text.replace("<", "\\u003c").replace(">", "\\u003e").replace("&", "\\u0026")
