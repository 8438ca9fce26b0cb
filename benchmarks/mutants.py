"""Wrong changes to the core, one at a time, and whether the tests notice: a hand-written list, and a seeded draw of others.

A mutant is applied in a temporary copy of the tree. The tests most likely to notice it run first, then the larger suites. A
run that does not end counts as noticed once it takes several times what the same tests take without the change.
"""

from __future__ import annotations

import argparse
import ast
import os
import re
import shlex
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, field
from hashlib import sha256
from pathlib import Path
from queue import SimpleQueue
from time import monotonic
from typing import Any

from benchmarks.harness import Claim, Job, Row, arguments, finish, table, work_off
from benchmarks.mutants_list import EQUIVALENT, FIRST, HAND_WRITTEN, LATER

ROOT = Path(__file__).parents[1]
PACKAGE = Path("src/condgrad")
SEED, DRAWN = 0, 40
QUICK = 6
"""Of each kind, with --quick."""
PATIENCE, LEAST = 4.0, 60.0
"""Tests are ended after PATIENCE times the time that they take without a change, but not before LEAST seconds."""


@dataclass(frozen=True)
class Mutant:
    file: str
    old: str
    new: str
    wrong: str
    at: int | None = None
    """Where ``old`` stands, in bytes; None where it stands only once."""

    def applied(self, source: bytes) -> bytes:
        old, new = self.old.encode(), self.new.encode()
        if self.at is None and source.count(old) != 1:
            raise ValueError(
                f"{self.file} holds {self.old!r} {source.count(old)} times, once was expected: renew the list."
            )
        at = source.index(old) if self.at is None else self.at
        return source[:at] + new + source[at + len(old) :]


def hand_written() -> list[Mutant]:
    return [Mutant(file, old, new, wrong) for file, changes in HAND_WRITTEN.items() for old, new, wrong in changes]


# -------------------------------------------------------------------------------------------------------- drawn mutants

SWAPS: dict[type, tuple[str, str]] = {
    ast.Add: ("+", "-"),
    ast.Sub: ("-", "+"),
    ast.Mult: ("*", "/"),
    ast.Div: ("/", "*"),
    ast.Lt: ("<", "<="),
    ast.LtE: ("<=", "<"),
    ast.Gt: (">", ">="),
    ast.GtE: (">=", ">"),
}
WORDS = {"max": "min", "min": "max", "k": "(k + 1)"}


def candidates(file: str, source: bytes) -> Iterator[Mutant]:
    """Every small change that the grammar offers; none in annotations, decorators and messages, which compute nothing."""
    starts = [0, *(i + 1 for i, byte in enumerate(source) if byte == ord("\n"))]

    def span(node: Any) -> tuple[int, int]:
        return starts[node.lineno - 1] + node.col_offset, starts[node.end_lineno - 1] + node.end_col_offset

    def change(at: int, end: int, new: str, wrong: str) -> Iterator[Mutant]:
        yield Mutant(file, source[at:end].decode(), new, wrong, at)

    def operator(left: Any, right: Any, kind: ast.AST) -> Iterator[Mutant]:
        if type(kind) in SWAPS:
            old, new = SWAPS[type(kind)]
            at = source.index(old.encode(), span(left)[1], span(right)[0])
            yield from change(at, at + len(old), new, f"{old} became {new}")

    def visit(node: ast.AST, arithmetic: bool = False) -> Iterator[Mutant]:
        match node:
            case ast.JoinedStr() | ast.Raise() | ast.Assert():
                return
            case ast.arg() | ast.AnnAssign(value=None):
                return
            case ast.BinOp(left=left, right=right, op=op):
                yield from operator(left, right, op)
                if isinstance(op, ast.Sub):
                    a, b = (source[slice(*span(side))].decode() for side in (left, right))
                    between = source[span(left)[1] : span(right)[0]].decode()
                    yield from change(
                        span(left)[0], span(right)[1], f"({b}){between}({a})", "the sides of - changed places"
                    )
            case ast.Compare(left=left, ops=ops, comparators=rights):
                for a, op, b in zip([left, *rights], ops, rights, strict=False):
                    yield from operator(a, b, op)
            case ast.Name(id=name, ctx=ast.Load()) if name in WORDS:
                yield from change(*span(node), WORDS[name], f"{name} became {WORDS[name]}")
            case ast.Attribute(attr="k", ctx=ast.Load()):
                text = source[slice(*span(node))].decode()
                yield from change(*span(node), f"({text} + 1)", f"{text} became {text} + 1")
            case ast.Constant(value=bool() as value):
                yield from change(*span(node), str(not value), f"{value} became {not value}")
            case ast.Constant(value=float() as value):
                yield from change(
                    *span(node), repr(2 * value + (value == 0)), f"{value} became {2 * value + (value == 0)}"
                )
            case ast.Constant(value=int() as value) if arithmetic:
                yield from change(*span(node), str(value + 1), f"{value} became {value + 1}")
        for name, child in ast.iter_fields(node):
            if name in ("annotation", "returns", "decorator_list"):
                continue
            for part in child if isinstance(child, list) else [child]:
                if isinstance(part, ast.AST):
                    yield from visit(part, isinstance(node, ast.BinOp | ast.Compare))

    yield from visit(ast.parse(source))


def lines_of(mutant: Mutant, source: bytes) -> tuple[str, str]:
    """The line that the mutant changes, before and after."""
    at = source.index(mutant.old.encode()) if mutant.at is None else mutant.at
    begin = source.rfind(b"\n", 0, at) + 1
    before, after = (text[begin:].split(b"\n", 1)[0].decode().strip() for text in (source, mutant.applied(source)))
    return before, after


def drawn(number: int, root: Path = ROOT, seed: int = SEED) -> list[Mutant]:
    """A random sample of the candidates of all core files, by the hash of seed, file and changed line.

    So a change of the source redraws what stands on the changed lines, and leaves the rest of the sample as it was.
    """
    ranked = {}
    for file in FIRST:
        source = (root / PACKAGE / file).read_bytes()
        for mutant in candidates(file, source):
            key = sha256("\n".join((str(seed), file, *lines_of(mutant, source), mutant.wrong)).encode()).hexdigest()
            ranked[key] = mutant
    return [ranked[key] for key in sorted(ranked)[:number]]


# -------------------------------------------------------------------------------------------------------------- running


@dataclass
class Bench:
    """A copy of the tree, in which tests run with one file changed."""

    tree: Path
    seconds: dict[str, float] = field(default_factory=dict)
    """What each suite takes without a change."""

    @classmethod
    def at(cls, folder: Path) -> Bench:
        tree = folder / "tree"
        for part in ("src", "tests", "benchmarks", "docs"):
            shutil.copytree(ROOT / part, tree / part)
        for name in ("conftest.py", "pyproject.toml"):
            shutil.copy2(ROOT / name, tree)
        return cls(tree)

    def pytest(self, suite: str, limit: float, bytecode: bool) -> tuple[str, float]:
        """Which test failed first, '' for none; and the seconds."""
        command = [sys.executable, "-m", "pytest", "-x", "-q", "--no-header", "--tb=no", "--assert=plain"]
        paths = {"PYTHONPATH": str(self.tree / "src"), "PYTHONDONTWRITEBYTECODE": "" if bytecode else "1"}
        threads = {"OPENBLAS_NUM_THREADS": "1"}
        begun = monotonic()
        try:
            done = subprocess.run(
                [*command, "-p", "no:cacheprovider", "--hypothesis-seed=0", *shlex.split(suite)],
                cwd=self.tree,
                env={**os.environ, **paths, **threads},
                capture_output=True,
                text=True,
                timeout=limit,
                check=False,
            )
        except subprocess.TimeoutExpired:
            return f"not done after {limit:.0f} s", monotonic() - begun
        if done.returncode == 0:
            return "", monotonic() - begun
        failed = re.search(r"^(?:FAILED|ERROR) (\S+(?: [^-]\S*)*)", done.stdout, re.MULTILINE)
        if done.returncode not in (1, 2) or not failed:
            raise RuntimeError(
                f"pytest {suite} ended with {done.returncode}:\n{done.stdout[-2000:]}\n{done.stderr[-2000:]}"
            )
        return failed[1], monotonic() - begun

    def unchanged(self, suite: str) -> float:
        """The seconds of a suite without a change, measured once; it must pass."""
        if suite not in self.seconds:
            failed, seconds = self.pytest(suite, 1800, bytecode=True)
            if failed:
                raise RuntimeError(f"Without any change, pytest {suite} fails: {failed}.")
            self.seconds[suite] = seconds
        return self.seconds[suite]

    def caught(self, mutant: Mutant, suites: Iterable[str]) -> tuple[str, float]:
        """Which test noticed the mutant, '' for none; and the seconds."""
        path, spent = self.tree / PACKAGE / mutant.file, 0.0
        source, times = path.read_bytes(), (path.stat().st_atime, path.stat().st_mtime)
        for suite in suites:
            limit = max(LEAST, PATIENCE * self.unchanged(suite))
            try:
                path.write_bytes(mutant.applied(source))
                os.utime(path, (1, 1))  # bytecode is told by its file's second and size: these may agree
                by, seconds = self.pytest(suite, limit, bytecode=False)
            finally:
                path.write_bytes(source)
                os.utime(path, times)
            spent += seconds
            if by:
                return by, spent
        return "", spent


def suites(file: str) -> tuple[str, ...]:
    """The tests that look at this file first, then all others."""
    return (*FIRST[file], *LATER)


def judge(bench: Bench, kind: str, mutant: Mutant) -> Row:
    before, after = lines_of(mutant, (ROOT / PACKAGE / mutant.file).read_bytes())
    why = EQUIVALENT.get((mutant.file, after), "")
    by, seconds = ("", 0.0) if why else bench.caught(mutant, suites(mutant.file))
    outcome = "equivalent" if why else "caught" if by else "SURVIVED"
    print(f"{outcome}: {mutant.file}: {mutant.wrong} ({by or why or after})", file=sys.stderr, flush=True)
    lines = {"before": before, "after": after}
    return {"kind": kind, **asdict(mutant), **lines, "outcome": outcome, "by": by or why, "seconds": seconds}


def options(parser: argparse.ArgumentParser) -> None:
    parser.add_argument("--only", default="", metavar="TEXT", help="only the files with this text in their path")
    parser.add_argument("--jobs", type=int, default=1, metavar="N", help="wrong changes judged at the same time")


def main() -> None:
    args = arguments(__doc__, options)
    chosen = {"hand-written": hand_written(), "drawn": drawn(DRAWN)}
    chosen = {kind: [mutant for mutant in mutants if args.only in mutant.file] for kind, mutants in chosen.items()}
    if args.quick:
        chosen = {kind: mutants[:: -(-len(mutants) // QUICK)] for kind, mutants in chosen.items() if mutants}
    with tempfile.TemporaryDirectory(prefix="mutants-") as folder, ThreadPoolExecutor(args.jobs) as pool:
        idle: SimpleQueue[Bench] = SimpleQueue()
        for i in range(args.jobs):
            idle.put(Bench.at(Path(folder) / str(i)))

        def judged(kind: str, mutant: Mutant) -> Row:
            bench = idle.get()
            try:
                return judge(bench, kind, mutant)
            finally:
                idle.put(bench)

        waiting = [pool.submit(judged, kind, mutant) for kind, mutants in chosen.items() for mutant in mutants]
        try:
            rows = work_off("mutants", [Job(1, lambda row=row: [row.result()]) for row in waiting])
        finally:
            pool.shutdown(wait=False, cancel_futures=True)

    lines, claims = [], []
    for row in rows:
        lines.append((row["kind"], row["file"], row["wrong"], row["outcome"], row["by"].removeprefix("tests/")[:80]))
    for kind, mutants in chosen.items():
        here = [row["outcome"] for row in rows if row["kind"] == kind]
        real = len(mutants) - here.count("equivalent")
        score = f"{here.count('caught')} of {real}"
        if real < len(mutants):
            score += f" ({len(mutants) - real} more change nothing that is promised, each with its reason)"
        claims.append(Claim(f"{kind} wrong changes that the tests notice", "all", score, here.count("caught") == real))
    table("Wrong changes to the core", ("kind", "file", "what is wrong", "", "noticed by, or why not"), lines)
    for row in rows:
        if row["outcome"] == "SURVIVED":
            print(f"\nSURVIVED in {row['file']}:\n  - {row['before']}\n  + {row['after']}")
    finish("mutants", args, rows, claims, seed=SEED, jobs=args.jobs)


if __name__ == "__main__":
    main()
