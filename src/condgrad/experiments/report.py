"""A report: one self-contained HTML page with the picture, the table and the recipe."""

from __future__ import annotations

import base64
from html import escape
from pathlib import Path
from typing import Any

STYLE = """
body { font: 16px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 1100px; padding: 0 1rem; color: #222 }
img { width: 100%; height: auto } table { border-collapse: collapse } td, th { padding: .3rem .8rem; text-align: right }
td:first-child, th:first-child { text-align: left } tr { border-bottom: 1px solid #ddd } .verdict { font-weight: 600 }
"""


def write(path: Path, title: str, recipe: str, picture: Path, rows: list[dict[str, Any]], verdict: str) -> None:
    image = base64.b64encode(picture.read_bytes()).decode()
    head = "".join(f"<th>{escape(name)}</th>" for name in rows[0])
    body = "".join("<tr>" + "".join(f"<td>{escape(shown(v))}</td>" for v in row.values()) + "</tr>" for row in rows)
    page = (
        f"<!doctype html><html lang=en><meta charset=utf-8><title>{escape(title)}</title><style>{STYLE}</style>"
        f"<h1>{escape(title)}</h1><p class=verdict>{escape(verdict)}</p>"
        f'<img alt="squared gradient mapping against cost" src="data:image/png;base64,{image}">'
        f"<table><tr>{head}</tr>{body}</table><p>{escape(recipe)}</p></html>\n"
    )
    path.write_text(page, encoding="utf-8")


def shown(value: Any) -> str:
    return "not reached" if value is None else f"{value:.3g}" if isinstance(value, float) else str(value)
