"""CPU time and peak memory of this version over those of another one, such as the version before a rewrite.

`git worktree add --detach OTHER COMMIT`, then `python -m benchmarks.before_after OTHER`. Both versions run in the same
interpreter, by turns, each round in a process of its own. The time of a run is its least over the rounds, or over two runs in a
process for runs below two seconds. The parts are those of three benchmarks, with our own methods only:

- `benchmarks.problem5`: the sliding methods at 200 x 200, until the squared mapping is certified to be at most 1e-3;
- `benchmarks.scale --quick`: 4,000 x 4,000 with 1.6 million entries, two threads, with peak memory;
- `benchmarks.completion --quick`: `RobustCompletion("welsch")` on 1,000 x 1,000 with 500,000 entries, 10 % of them outliers, and
  on MovieLens 100K where it is there. The loss is given, because the default has changed.
"""

from __future__ import annotations

import argparse
import json
import math
import os
import subprocess
import sys
from pathlib import Path

from benchmarks.completion_data import MOVIELENS
from benchmarks.harness import Claim, Row, arguments, finish, table

MAX_RATIO = 1.05
CHILDREN = {
    "problem5": """
from benchmarks.problem5 import CONTENDERS, Case, problem, timed
names = ("ncgs", "ncgs-ii", "ncgs-vr")
known = {contender.name: contender for contender in CONTENDERS}
for generator in ("orthonormal", "gaussian"):
    for name in names:
        known[name].run(problem(Case(200, generator, 9)), 2.0)  # compiles and loads
        for seed in (0, 1):
            row = timed(known[name].run, problem(Case(200, generator, seed)), 30.0)
            put(f"{name}, {generator}, seed {seed}", row["cpu"] if row["reached"] else None)
""",
    "scale": """
import numba, condgrad as cg
from benchmarks.scale_measurements import memory
from benchmarks.scale_problem import TARGET, problem
numba.set_num_threads(2)
cg.minimize(*problem(300, 30_000), stop=cg.Steps(5), progress=False)
base = memory("VmRSS")
parts = problem(4_000, 1_600_000)
open("/proc/self/clear_refs", "w").write("5")
result = cg.minimize(*parts, stop=cg.Mapping(TARGET) | cg.Steps(60), progress=False)
put("4,000 x 4,000, 1.6 million entries", result.cpu if result.success else None)
put("the same, peak MB", memory("VmHWM") - base)
""",
    "completion": """
from time import process_time
import os
from pathlib import Path
from benchmarks.completion_data import SETS, contaminated, movielens, split, synthetic
from condgrad.learn import RobustCompletion
def fit(name, train):
    begun = process_time()
    RobustCompletion("welsch").fit((train.rows, train.cols, train.values))
    put(name, process_time() - begun)
fit("warm-up", synthetic(200, 3, 8_000)[0])
fit("1,000 x 1,000, 500,000 entries", synthetic(1_000, 10, 500_000)[0])
ratings = Path(os.environ["MOVIELENS"])
if ratings.exists():
    train, _ = split(movielens(ratings))
    for kind in list(SETS)[:2]:
        fit(f"MovieLens 100K, {kind}", contaminated(train, kind))
""",
}
PUT = "import json\ndef put(name, cpu):\n    print('ROW', json.dumps([name, cpu]), flush=True)\n"


def measure(tree: Path, part: str) -> dict[str, float | None]:
    """The rows of one part, in a process that imports everything from this tree."""
    environment = os.environ | {"PYTHONPATH": f"{tree / 'src'}:{tree}", "OPENBLAS_NUM_THREADS": "1"}
    environment["MOVIELENS"] = str(MOVIELENS)
    command = [sys.executable, "-c", PUT + CHILDREN[part]]
    found = subprocess.run(command, cwd=tree, env=environment, stdout=subprocess.PIPE, text=True, check=True).stdout
    return dict(json.loads(line[4:]) for line in found.splitlines() if line.startswith("ROW "))


def more(parser: argparse.ArgumentParser) -> None:
    """The arguments of this benchmark alone."""
    parser.add_argument("other", type=Path, help="checkout of the other version")
    parser.add_argument("--parts", nargs="*", choices=CHILDREN, default=list(CHILDREN))
    parser.add_argument("--rounds", type=int, default=2)


def main() -> None:
    args = arguments(__doc__, more)
    rounds = 1 if args.quick else args.rounds
    trees = {"before": args.other.resolve(), "now": Path(__file__).resolve().parent.parent}
    best: dict[tuple[str, str], dict[str, float | None]] = {}
    for _ in range(rounds):
        for part in args.parts:
            for version, tree in trees.items():
                for name, cpu in measure(tree, part).items():
                    known = best.setdefault((part, name), {}).get(version)
                    best[part, name][version] = min(filter(None, (known, cpu)), default=None)
                    print(f"  {part}: {name}, {version}: {cpu}", file=sys.stderr, flush=True)
    rows: list[Row] = []
    for (part, name), cpu in best.items():
        before, now = cpu.get("before"), cpu.get("now")
        ratio = now / before if before and now else math.nan
        rows.append({"part": part, "name": name, "before": before, "now": now, "ratio": ratio})
    columns = ("part", "name", "before", "now", "ratio")
    table(
        f"Least of {rounds} rounds: CPU seconds",
        columns,
        [[math.nan if row[column] is None else row[column] for column in columns] for row in rows],
    )
    ratios = {f"{row['part']}, {row['name']}": row["ratio"] for row in rows if "warm-up" not in row["name"]}
    worse = [f"{name}: {ratio:.2f}" for name, ratio in ratios.items() if ratio > MAX_RATIO]
    claim = Claim(
        "no run is worse than before by more than 5 %", f"<= {MAX_RATIO}", "; ".join(worse) or "none", not worse
    )
    finish("before_after", args, rows, [claim])


if __name__ == "__main__":
    main()
