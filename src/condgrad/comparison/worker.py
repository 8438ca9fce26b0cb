"""Worker process of a comparison: reads a run per line of JSON on stdin and answers each with its trace or an error.

It is given the file of the problem: a spec, or a pickle that the parent process wrote into a temporary folder of its own.
"""

from __future__ import annotations

import json
import os
import pickle
import sys
from pathlib import Path
from typing import Any

from condgrad.runtime.workers import error_message


def main(path: str) -> None:
    """Perform the runs on stdin."""
    from condgrad.comparison.performed import perform
    from condgrad.comparison.source import Source

    file = Path(path)
    source: Source = pickle.loads(file.read_bytes()) if file.suffix == ".pickle" else Source.of(file)
    for line in sys.stdin:
        asked, seed, setting = pickle.loads(bytes.fromhex(json.loads(line)["task"]))
        try:
            answer: dict[str, Any] = {"run": perform(source, asked, seed, setting).plain()}
        except Exception as error:
            answer = {"error": error_message(error)}
        try:
            print(json.dumps(answer), flush=True)
        except BrokenPipeError:  # the parent process was killed
            os._exit(0)


if __name__ == "__main__":
    main(*sys.argv[1:])
