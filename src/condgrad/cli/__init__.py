"""The command line of condgrad: argument parsing, exit codes and output."""

from __future__ import annotations

import argparse
import sys
import warnings
from typing import NoReturn

from condgrad import __version__
from condgrad.cli import compare, complete, listings, solve, warm_up
from condgrad.cli.exit_codes import BAD_INPUT, INTERRUPTED
from condgrad.cli.terminal import say
from condgrad.runtime.interruption import describe_interruption, raise_on_sigterm
from condgrad.runtime.workers import error_message

__all__ = ["BAD_INPUT", "main", "parser"]


def main(argv: list[str] | None = None) -> int:
    """Run a command and print errors as one sentence on stderr.

    Parameters
    ----------
    argv : list of str, optional
        Arguments without the program name. By default those of the process.

    Returns
    -------
    int
        Exit code: 0 success (for a run: converged or out of budget), 2 bad input, 3 the run failed, 130 Ctrl-C or SIGTERM.
    """
    words = sys.argv[1:] if argv is None else argv
    try:
        arguments = parser().parse_args(words)
        arguments.argv = words
        with warnings.catch_warnings():
            warnings.showwarning = lambda message, *where: say(f"condgrad: {message}", stream=sys.stderr)
            with raise_on_sigterm():
                return arguments.run(arguments)
    except (ValueError, TypeError, ImportError) as error:
        say(f"condgrad: {error}", stream=sys.stderr)
    except (MemoryError, RecursionError, OverflowError) as error:
        say(
            f"condgrad: the input is too large or too deeply nested ({type(error).__name__}: {error}).",
            stream=sys.stderr,
        )
    except BrokenPipeError:  # the reader of the output has ended, as `head` does
        sys.stderr.close()
        return 0
    except OSError as error:
        where = f": {error.filename}" if error.filename is not None else ""
        say(f"condgrad: {error.strerror or error}{where}.", stream=sys.stderr)
    except KeyboardInterrupt as interruption:
        print(f"condgrad: {str(interruption) or describe_interruption(interruption)}", file=sys.stderr)
        return INTERRUPTED
    except Exception as error:  # of a user's own objective or set
        say(f"condgrad: {error_message(error)}", stream=sys.stderr)
    return BAD_INPUT


class Parser(argparse.ArgumentParser):
    """Argument parser that reports a mistake in one sentence, without the usage, as a ValueError."""

    def error(self, message: str) -> NoReturn:
        raise ValueError(f"{message[:1].upper()}{message[1:].rstrip('.')}: see `{self.prog} --help`.")


def parser() -> argparse.ArgumentParser:
    """Parser of all commands."""
    top = Parser(prog="condgrad", description="Projection-free, non-convex optimisation.")
    top.add_argument("--version", action="version", version=f"condgrad {__version__}")
    commands = top.add_subparsers(required=True, metavar="COMMAND")
    for group in (complete, solve, compare, listings, warm_up):
        group.add(commands)
    return top
