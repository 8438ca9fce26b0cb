"""The engines that fuzz. One target in a process of its own: python -m benchmarks.fuzzing TARGET ENGINE AMOUNT

ENGINE is 'hypothesis' (AMOUNT cases of edited files), 'guided' (AMOUNT seconds of libFuzzer by atheris, which sees which
branches of the readers a case reaches) or 'lengths' (runs of tokens, up to AMOUNT bytes each).
"""

from __future__ import annotations

import json
import os
import resource
import signal
import sys
import tempfile
import warnings
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from benchmarks.fuzz_targets import SEED, Target, target

CASE_SECONDS = 5
MEMORY_MIB = 4096
READERS = (
    "condgrad.storage.archive",
    "condgrad.storage.files",
    "condgrad.storage.snapshot",
    "condgrad.storage.stored",
    "condgrad.data",
    "condgrad.driver.checkpoint",
    "condgrad.driver.fingerprint",
    "condgrad.spec",
    "condgrad.learn.storage",
    "condgrad.learn.completion.storage",
    "condgrad.report.run_report",
)
TOKENS = (
    b'\n \n\r \r\n \t , ; | : " "" # % \0 - + . 0 1 -1 1.5 1e999 -0 007 nan inf NA 9223372036854775808 '
    b'1000000000000000000 \xff \xe9 \xc3\xa9 \xef\xbb\xbf \xff\xfe [ ] { } [] {} null true "node" "array" "object" '
    b"symmetric skew-symmetric array pattern general real <i8 <f8 |O 'shape': (3,) = [set] [stop] name shape"
).split(b" ")


class Hang(BaseException):
    """A case that took too long; no reader may catch it."""


def attempt(target: Target, case: bytes) -> bool:
    """Was it taken, or refused as documented? Anything else is a defect and is raised."""

    def ring(*_: Any) -> None:
        raise Hang(f"a case took more than {CASE_SECONDS} s: {case[:60]!r}, {len(case)} bytes")

    previous = signal.signal(signal.SIGPROF, ring)  # CPU time: a busy machine is no hang
    signal.setitimer(signal.ITIMER_PROF, CASE_SECONDS)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter("error")
            target.read(case)
        return True
    except target.refusals:
        return False
    finally:
        signal.setitimer(signal.ITIMER_PROF, 0)
        signal.signal(signal.SIGPROF, previous)


def edited(seed: bytes, edits: list[tuple[str, int, bytes, int]]) -> bytes:
    """The file after some edits, each at a place that is counted around its end."""
    for what, place, token, length in edits:
        at = place % (len(seed) + 1)
        before, after = seed[:at], seed[at:]
        if what == "insert":
            seed = before + token + after
        elif what == "replace":
            seed = before + token + after[len(token) :]
        elif what == "delete":
            seed = before + after[length:]
        elif what == "repeat":
            seed = before + after[:length] * 2 + after[length:]
        else:
            seed = before
    return seed


def cases(target: Target) -> Any:
    """Valid files with one to six edits."""
    from hypothesis import strategies as st

    edit = st.tuples(
        st.sampled_from(["insert", "insert", "replace", "replace", "delete", "repeat", "cut"]),
        st.integers(0, 2**16),
        st.one_of(st.sampled_from(TOKENS), st.binary(max_size=5)),
        st.integers(1, 40),
    )
    return st.builds(edited, st.sampled_from(target.seeds), st.lists(edit, min_size=1, max_size=6))


def by_hypothesis(name: str, amount: int, folder: Path) -> dict[str, Any]:
    from hypothesis import HealthCheck, Phase, given, seed, settings

    reads = target(name, folder)
    resource.setrlimit(resource.RLIMIT_AS, (MEMORY_MIB * 2**20, MEMORY_MIB * 2**20))
    outcomes: list[bool] = []

    @seed(SEED)
    @settings(
        max_examples=amount,
        deadline=None,
        database=None,
        phases=[Phase.generate, Phase.shrink],
        suppress_health_check=list(HealthCheck),
    )
    @given(case=cases(reads))
    def check(case: bytes) -> None:
        outcomes.append(attempt(reads, case))

    check()
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cases": len(outcomes), "taken": sum(outcomes), "peak_mib": peak}


LONG = (
    b"1",
    b"0",
    b"1.",
    b".",
    b"-",
    b"+",
    b"e",
    b"1e",
    b"a",
    b"a.",
    b" ",
    b"\t",
    b"\n",
    b"\r",
    b"\r\n",
    b'"',
    b'""',
    b"'",
    b"\\",
    b"\\n",
)
LONG += (
    b",",
    b";",
    b"1,",
    b",\n",
    b"1,1,1\n",
    b"|",
    b":",
    b"1:1 ",
    b"#",
    b"#\n",
    b"%",
    b"%\n",
    b"[",
    b"]",
    b"[[",
    b"{",
    b'{"a":',
    b"=",
    b"a=1\n",
)
LONG += (b"\0", b"\xff", b"\xc3\xa9", b"\xef\xbb\xbf", b"_", b"inf", b"nan ")
"""What is repeated many times: digits, quotes, delimiters, blanks, line ends, comments, brackets, bytes that are not text."""


def by_lengths(name: str, longest: int, folder: Path) -> dict[str, Any]:
    """Each seed with a long run of one token, and then a letter, at its beginning, in its middle, in its last line or at its end.

    A reader whose time grows with the square of a length takes minutes for one of these, in place of milliseconds.
    """
    reads = target(name, folder)
    outcomes = []
    for seed in reads.seeds[:2]:
        last = seed.rstrip().rfind(b"\n") + 1
        for place in sorted({0, len(seed) // 2, last, len(seed.rstrip())}):
            for token in LONG:
                run = token * (longest // len(token))
                for end in (b"", b"x"):
                    outcomes.append(attempt(reads, seed[:place] + run + end + seed[place:]))
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss / 1024
    return {"cases": len(outcomes), "taken": sum(outcomes), "peak_mib": peak}


def _others() -> list[str]:
    """The modules that read no files: the fuzzer need not see into them, and numba can't compile what it has seen."""
    spec = find_spec("condgrad")
    assert spec is not None and spec.submodule_search_locations
    package = Path(spec.submodule_search_locations[0])
    files = [file.relative_to(package.parent).with_suffix("") for file in package.rglob("*.py")]
    names = [".".join(file.parts).removesuffix(".__init__") for file in files]
    return [name for name in names if not name.startswith(READERS)]


def by_guidance(name: str, seconds: int, folder: Path) -> None:
    """libFuzzer's loop, which ends the process: its last lines on stderr count the cases."""
    import atheris

    with atheris.instrument_imports(include=["condgrad", "tomllib"], exclude=_others()):
        reads = target(name, folder)
    corpus = folder / "corpus"
    corpus.mkdir()
    for k, case in enumerate(reads.seeds):
        (corpus / str(k)).write_bytes(case)
    escaped = ("".join(f"\\x{byte:02x}" for byte in token) for token in TOKENS if token)
    (folder / "tokens").write_text("".join(f'"{token}"\n' for token in escaped))
    options = {
        "max_total_time": seconds,
        "timeout": CASE_SECONDS,
        "rss_limit_mb": MEMORY_MIB,
        "max_len": 4096,
        "seed": SEED + 1,
        "dict": folder / "tokens",
        "artifact_prefix": f"{folder}/found-",
        "print_final_stats": 1,
    }
    flags = [f"-{option}={value}" for option, value in options.items()]

    def check(case: bytes) -> None:
        try:
            attempt(reads, case)
        except BaseException:
            print(f"CASE {case!r}", file=sys.stderr, flush=True)
            raise

    atheris.Setup([sys.argv[0], *flags, str(corpus)], check)
    atheris.Fuzz()


def main() -> None:
    name, engine, amount = sys.argv[1:]
    os.environ.setdefault("OPENBLAS_NUM_THREADS", "1")
    memory = "/dev/shm"  # a file for each case: not on a disk, where there is another place
    with tempfile.TemporaryDirectory(dir=memory if os.path.isdir(memory) else None) as folder:
        if engine == "guided":
            by_guidance(name, int(amount), Path(folder))
        elif engine == "lengths":
            print(json.dumps(by_lengths(name, int(amount), Path(folder))))
        else:
            print(json.dumps(by_hypothesis(name, int(amount), Path(folder))))


if __name__ == "__main__":
    main()
