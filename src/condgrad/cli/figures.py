"""The option --figures, which draws the plots of a report for print."""

from __future__ import annotations

from typing import Any


def add_figures(command: Any) -> None:
    command.add_argument(
        "--figures", action="store_true", help="also draw the plots of the report as PNG, SVG and PDF (takes seconds)"
    )


def check_figures(arguments: Any) -> None:
    """Raise an error, before the work starts, if figures are requested and cannot be drawn."""
    if arguments.figures and getattr(arguments, "no_report", False):
        raise ValueError("--figures draws the report's plots, but --no-report asks for none: leave one of them out.")
    if arguments.figures:
        from condgrad.report.figures import check_plotting

        check_plotting()
