"""The commands methods, sets, objectives, losses and inner-solvers, which list what condgrad and plugins offer."""

from __future__ import annotations

import json
from typing import Any


def add(commands: Any) -> None:
    """Add the commands that list methods, sets, objectives, losses and inner solvers."""
    for name, show, about in (
        ("methods", methods, "list the methods with their assumptions, options and bounds"),
        ("sets", sets, "list the sets and their linear oracles"),
        ("objectives", objectives, "list the families of objectives"),
        ("losses", losses, "list the pointwise losses and their smoothness"),
        ("inner-solvers", inner_solvers, "list the inner solvers, for the prox subproblems of sliding methods"),
    ):
        command = commands.add_parser(name, help=about)
        command.add_argument("--json", action="store_true", help="print JSON")
        command.set_defaults(run=show)


def listing(arguments: Any, header: list[str], rows: list[dict[str, Any]]) -> int:
    """Print all columns as JSON, or those of the header as a table."""
    if arguments.json:
        print(json.dumps(rows, indent=2))
    else:
        from condgrad.report.text_table import table

        print(table(header, [[row[name] for name in header] for row in rows]))
    return 0


def methods(arguments: Any) -> int:
    from condgrad.registration import known

    rows = [
        {
            "name": m.name,
            "title": m.title,
            "assumes": m.assumes,
            "sees": m.sees,
            "oracles": m.oracles,
            "bound": m.bound,
            "options": ", ".join(m.options),
            "file": m.file,
            "reference": m.reference,
        }
        for m in known("method").values()
    ]
    return listing(arguments, ["name", "assumes", "bound", "options", "reference"], rows)


def sets(arguments: Any) -> int:
    from condgrad.registration import known

    rows = [
        {
            "name": d.name,
            "set": d.notation,
            "parameters": ", ".join(d.parameters),
            "linear oracle": d.oracle,
            "projects": d.projects,
            "polytope": d.polytope,
        }
        for d in known("set").values()
    ]
    return listing(arguments, ["name", "set", "parameters", "linear oracle", "projects", "polytope"], rows)


def losses(arguments: Any) -> int:
    from condgrad.registration import known

    rows = [
        {"name": e.name, "loss": e.formula, "L, l": e.smoothness, "convex": e.convex, "labels": e.labels}
        for e in known("loss").values()
    ]
    return listing(arguments, ["name", "loss", "L, l", "convex", "labels"], rows)


def objectives(arguments: Any) -> int:
    from condgrad.registration import known

    rows = [
        {"name": e.name, "F": e.formula, "kind": e.kind, "in specs": e.in_specs} for e in known("objective").values()
    ]
    return listing(arguments, ["name", "F", "kind", "in specs"], rows)


def inner_solvers(arguments: Any) -> int:
    from condgrad.registration import known

    needs = {"Domain": "any set", "Projectable": "a projection", "SpectralSet": "a spectral set"}
    rows = [
        {"name": e.name, "solves the prox by": e.about, "needs": needs.get(e.needs.__name__, e.needs.__name__)}
        for e in known("inner").values()
    ]
    return listing(arguments, ["name", "solves the prox by", "needs"], rows)
