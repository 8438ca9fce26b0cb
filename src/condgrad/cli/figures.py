"""The option --figures: a report's plots for print."""

from __future__ import annotations

from typing import Any


def add_figures(command: Any) -> None:
    command.add_argument(
        "--figures", action="store_true", help="draw the report's plots for print too: PNG, SVG and PDF (takes seconds)"
    )


def check_figures(arguments: Any) -> None:
    """Refuses figures that can't be drawn, with the pip command, before the work."""
    if arguments.figures and getattr(arguments, "no_report", False):
        raise ValueError("--figures draws the report's plots, but --no-report asks for none: leave one of them out.")
    if arguments.figures:
        from condgrad.report.figures import check_plotting

        check_plotting()
