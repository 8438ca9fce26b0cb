"""The README's table of Figure 1, its pictures and docs/figure1.json, from a run of the reproduction.

condgrad reproduce fig1a fig1b --jobs 2 --out reproduction
python -m benchmarks.figure1 reproduction
"""

from __future__ import annotations

import json
import shutil
import sys
from pathlib import Path
from typing import Any

from condgrad.paper.figure1_methods import FIGURE_1A, FIGURE_1B, GENERATORS
from condgrad.paper.reproduce import verdict_table, without_curves
from condgrad.paper.verdicts import OURS, RIVAL, TUNED, best, time_text

ROOT = Path(__file__).parents[1]
DATA, README = ROOT / "docs" / "figure1.json", ROOT / "README.md"
BEGIN, END = "<!-- figure 1: python -m benchmarks.figure1 -->", "<!-- end of figure 1 -->"
PICTURES = ("fig1a-orthonormal.png", "fig1b-orthonormal.png")


def main(folder: Path) -> None:
    """Renew what the README and the docs show from the folder that ``condgrad reproduce`` wrote."""
    raw = json.loads((folder / "data.json").read_text(encoding="utf-8"))
    missing = [name for name in ("fig1a", "fig1b") if name not in raw]
    missing += [name for name in PICTURES if not (folder / name).exists()]
    if missing:
        raise SystemExit(f"{folder} lacks {', '.join(missing)}: run condgrad reproduce fig1a fig1b --out {folder}")
    kept = {name: without_curves(raw[name]) for name in ("facts", "fig1a", "fig1b")}
    DATA.write_text(json.dumps(kept, indent=1) + "\n", encoding="utf-8")
    for name in PICTURES:
        shutil.copyfile(folder / name, DATA.parent / name)
    text = README.read_text(encoding="utf-8")
    before, rest = text.split(BEGIN)
    after = rest.split(END)[1]
    README.write_text(f"{before}{BEGIN}\n{block(kept)}\n{END}{after}", encoding="utf-8")
    for label, (preset, chosen) in stale_presets(kept).items():
        print(
            f"Line '{label}' in paper/figure1_methods.py: the preset is '{preset}', the run chose '{chosen}'. Change it."
        )


def block(found: dict[str, Any]) -> str:
    """The part of the README between the two markers."""
    table = verdict_table([found["fig1a"], found["fig1b"]])
    generators = [g for g in GENERATORS if g in found["fig1a"]]
    header = ["claim of the paper", "reading", *(f"{g} data" for g in generators)]
    lines = [row_of(header), row_of(["---"] * len(header))]
    for claim, reading, *cells in table.rows:
        seen = [f"**{cells[i]}**, {cells[i + 1]}" for i in range(0, len(cells), 2)]
        lines.append(row_of([claim, reading, *seen]))
    facts, seeds = found["facts"], len(found["fig1a"]["seeds"])
    times = [
        "CPU time to a squared mapping of 1e-3",
        "condgrad's defaults",
        "the paper's method, tuned",
        "the best rival",
    ]
    lines += ["", table.note, "", row_of(times), row_of(["---"] * len(times))]
    lines += [main_times(found[name], name, g) for name in ("fig1a", "fig1b") for g in generators]
    over = f"medians over {seeds} seeds" if seeds > 1 else "one seed"
    made = f"`{facts['command']}`, {over}, {facts['runs made']}, load average up to {facts['largest load average']}"
    return "\n".join([*lines, "", f"From {made}; all rows are in [docs/figure1.json](docs/figure1.json)."])


def row_of(cells: list[str]) -> str:
    return f"| {' | '.join(cells)} |"


def main_times(facts: dict[str, Any], name: str, generator: str) -> str:
    """condgrad's defaults, the paper's method tuned, and the best rival."""
    rows = facts[generator]["rows"]
    ours = next(row for row in rows if row["whose"] == OURS)
    others = [best([row for row in rows if row["whose"] == whose]) for whose in (TUNED, RIVAL)]
    where = f"{name[3:]}, {facts['size']} x {facts['size']}, {generator} data"
    return row_of([where, *(f"{time_text(row)} ({row['method']})" for row in (ours, *others))])


def stale_presets(found: dict[str, Any]) -> dict[str, tuple[str, str]]:
    """Presets of ``--quick`` that a run with tuning did not choose on the first kind of data; empty for a run without tuning."""
    stale = {}
    for name, lines in (("fig1a", FIGURE_1A), ("fig1b", FIGURE_1B)):
        if found[name]["tuning seed"] is not None:
            chosen = {row["method"]: row["setting"] for row in found[name][GENERATORS[0]]["rows"]}
            differ = [line for line in lines if line.preset != chosen[line.label]]
            stale |= {line.label: (line.preset, chosen[line.label]) for line in differ}
    return stale


if __name__ == "__main__":
    if len(sys.argv) != 2:
        raise SystemExit("Usage: python -m benchmarks.figure1 FOLDER, the --out of condgrad reproduce fig1a fig1b.")
    main(Path(sys.argv[1]))
