"""The command line: parses, calls, prints."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import NoReturn

from condgrad import __version__
from condgrad.cli import complete, listings, solve, warm_up
from condgrad.cli.exit_codes import BAD_INPUT, INTERRUPTED
from condgrad.cli.terminal import say
from condgrad.runtime.interruption import said as said_of
from condgrad.runtime.interruption import terminable

__all__ = ["BAD_INPUT", "main", "parser"]


def main(argv: list[str] | None = None) -> int:
    """Exit codes: 0 the run ended as asked (converged or out of budget), 2 bad input, 3 the run failed, 130 Ctrl-C or SIGTERM."""
    said = sys.argv[1:] if argv is None else argv
    try:
        arguments = parser().parse_args(said)
        arguments.said = said
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: say(f"condgrad: {message}", stream=sys.stderr)
            with terminable():
                return arguments.run(arguments)
    except (ValueError, TypeError, ImportError) as error:
        say(f"condgrad: {error}", stream=sys.stderr)
    except (MemoryError, RecursionError, ArithmeticError) as error:
        say(f"condgrad: too large or too deep to compute with ({type(error).__name__}: {error}).", stream=sys.stderr)
    except BrokenPipeError:  # the reader of our output has gone, as `head` does
        sys.stderr.close()
        return 0
    except OSError as error:
        where = f": {error.filename}" if error.filename is not None else ""
        say(f"condgrad: {error.strerror or error}{where}.", stream=sys.stderr)
    except KeyboardInterrupt as interruption:
        print(f"condgrad: {str(interruption) or said_of(interruption)}", file=sys.stderr)
        return INTERRUPTED
    return BAD_INPUT


class Parser(argparse.ArgumentParser):
    """Says what is wrong in one sentence, as of all other input, and leaves the options to --help."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message[:1].upper()}{message[1:].rstrip('.')}: see `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    top = Parser(prog="condgrad", description="Projection-free, non-convex optimisation.")
    top.add_argument("--version", action="version", version=f"condgrad {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for group in (complete, solve, listings, warm_up):
        group.add(commands)
    return top
