"""The pictures and the table of docs/set-gallery.md: every set of the registry, drawn from the answers of its linear oracle.

python -m benchmarks.set_gallery [--out docs] [--directions 1200]

A set is drawn as the convex hull of the oracle's answers to random directions, seen in the three coordinates in which it is
widest (two, if it is flat). Where the example has more dimensions this is its shadow there: directions in these coordinates
reach its outline. A set that is added to the registry is drawn without a change here; a line in DRAWN chooses a better instance
of it, a line in SEEN_IN the coordinates, a line in USES says what it is for.
"""

from __future__ import annotations

import argparse
import io
import warnings
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any

import numpy as np

from condgrad.domains import DOMAINS, FAMILIES, DomainEntry
from condgrad.runtime.signals import InexactOracleWarning

Make = Callable[[Callable[..., Any]], Any]

DRAWN: dict[str, Make] = {
    "simplex": lambda make: make(3),
    "unit-simplex": lambda make: make(3),
    "hypersimplex": lambda make: make(4, 2),
    "capped-simplex": lambda make: make(np.array([0.6, 0.5, 0.7])),
    "simplex-product": lambda make: make((3, 2)),
    "monotone-box": lambda make: make(3),
    "l1-ball": lambda make: make(3),
    "l2-ball": lambda make: make(3),
    "linf-ball": lambda make: make(3),
    "lp-ball": lambda make: make(3, 4.0),
    "weighted-l1-ball": lambda make: make(np.array([1.0, 2.0, 1.5])),
    "l1-ball-in-box": lambda make: make(np.full(3, -0.6), np.full(3, 0.6)),
    "k-sparse-polytope": lambda make: make(3, 2),
    "k-support-ball": lambda make: make(3, 2),
    "owl-ball": lambda make: make(np.array([1.0, 0.7, 0.4])),
    "ellipsoid": lambda make: make(np.array([1.0, 4.0, 2.0])),
    "group-ball": lambda make: make(3, 1.0, [0, 0, 1]),
    "group-linf-ball": lambda make: make(3, 1.0, [0, 0, 1]),
    "latent-group-ball": lambda make: make(3, [[0, 1], [1, 2]]),
    "box": lambda make: make(np.zeros(3), np.array([1.0, 0.7, 0.5])),
    "nuclear-ball": lambda make: make((2, 2)),
    "spectral-ball": lambda make: make((2, 2)),
    "spectrahedron": lambda make: make((2, 2), equal=False),
    "symmetric-nuclear-ball": lambda make: make((2, 2)),
    "elliptope": lambda make: make((3, 3)),
    "ky-fan-ball": lambda make: make((3, 3), 2),
    "fantope": lambda make: make(3, 1),
    "schatten-ball": lambda make: make((2, 2), 1.5),
    "unfolding-ball": lambda make: make((2, 2, 1), 0),
    "product": lambda make: make([DOMAINS["simplex"].factory(3), DOMAINS["box"].factory([0.0], [1.2])]),
    "cached": lambda make: make(DOMAINS["l1-ball"].factory(3)),
    "convex-hull": lambda make: make(np.random.default_rng(4).standard_normal((14, 3))),
}
"""Instances that are drawn in place of a registry example: name -> (factory -> set)."""

SYMMETRIC = np.array([[1.0, 0.0, 0.0, -1.0], [0.0, 1.0, 1.0, 0.0], [1.0, 0.0, 0.0, 1.0]]) / 2**0.5
"""Coordinates of the symmetric part of a 2 x 2 matrix; the last one, upwards in a picture, is the trace."""
DIAGONAL = np.eye(9)[[0, 4, 8]]
SEEN_IN: dict[str, np.ndarray] = {
    "nuclear-ball": SYMMETRIC,
    "spectral-ball": SYMMETRIC,
    "schatten-ball": SYMMETRIC,
    "unfolding-ball": SYMMETRIC,
    "symmetric-nuclear-ball": SYMMETRIC,
    "spectrahedron": SYMMETRIC,
    "ky-fan-ball": DIAGONAL,
}
"""Orthonormal coordinates in which a set is seen, one in each row: name -> array. The shadow of a ball of a norm of singular
values on the symmetric or the diagonal matrices is the part of the ball that they are in."""

USES = {
    "simplex": "probabilities, mixture weights, portfolios",
    "unit-simplex": "budgets that need not be spent",
    "hypersimplex": "choosing k of n items, relaxed",
    "capped-simplex": "portfolios with a limit per asset",
    "simplex-product": "a distribution in each row: soft clustering, Markov chains",
    "monotone-box": "isotonic regression, calibration curves",
    "l1-ball": "sparse regression (lasso)",
    "l2-ball": "ridge regression, bounded energy",
    "linf-ball": "bounded controls, adversarial examples",
    "lp-ball": "between sparse and dense",
    "weighted-l1-ball": "lasso with a price per feature (adaptive lasso)",
    "l1-ball-in-box": "sparse and bounded coefficients, sparse attacks",
    "k-sparse-polytope": "at most about k entries, each bounded",
    "k-support-ball": "sparse regression with correlated features",
    "owl-ball": "sorted l1 (SLOPE, OSCAR): equal coefficients for correlated features",
    "ellipsoid": "Mahalanobis distance, trust regions, robust optimisation",
    "group-ball": "features that enter in groups (group lasso)",
    "group-linf-ball": "groups with equal large entries, multi-task learning",
    "latent-group-ball": "overlapping groups: genes and pathways",
    "box": "bounds on every variable",
    "birkhoff": "matchings, rankings, graph matching",
    "partial-assignment": "matching some rows with some columns",
    "transport-polytope": "optimal transport between two marginals",
    "permutahedron": "rankings, schedules",
    "path-polytope": "shortest paths, routing",
    "flow-polytope": "flows with capacities and costs",
    "spanning-tree-polytope": "networks that join all nodes",
    "bipartite-matching-polytope": "markets with two sides",
    "matching-polytope": "pairs in a graph",
    "matroid-base-polytope": "independent choices: trees, partitions, linear independence",
    "submodular-base-polytope": "diversity, coverage, graph cuts",
    "convex-hull": "mixtures of given points (archetypes, data coresets)",
    "total-variation-ball": "piecewise constant signals",
    "graph-total-variation-ball": "piecewise constant images and signals on graphs",
    "polytope": "any linear constraints",
    "nuclear-ball": "matrix completion, multi-task learning",
    "spectral-ball": "bounded gain of a linear map, orthogonal matrices relaxed",
    "ky-fan-ball": "between the spectral and the nuclear norm",
    "spectrahedron": "covariance and kernel matrices, quantum states",
    "fantope": "principal subspaces, sparse PCA",
    "symmetric-nuclear-ball": "symmetric matrices of low rank, link prediction",
    "hermitian-nuclear-ball": "quantum states and observables, phase retrieval",
    "schatten-ball": "matrices between low rank and bounded energy",
    "unfolding-ball": "tensors of low rank in one mode",
    "elliptope": "correlation matrices, MAXCUT relaxed",
    "product": "several variables, each with its own set",
    "scaled": "another unit",
    "shifted": "another centre",
    "linear-image": "a set in transformed coordinates, zonotopes",
    "minkowski-sum": "a sum of two structures: sparse plus low rank",
    "hull-of-union": "one structure or another",
    "half-space-cut": "one more linear constraint: a budget",
    "box-cut": "bounds on every variable of a set",
    "cached": "an expensive oracle, asked again",
    "user": "a set of your own",
}
"""What each set is used for, in one line."""

PALETTE = ("#0072B2", "#009E73", "#D55E00", "#CC79A7", "#E69F00")
MOST_VERTICES = 64
"""With more points a set is taken for a curved one, which has edges where its surface turns by 26 degrees or more."""
TITLES = {
    "simplices": "Simplices",
    "balls": "Norm balls",
    "polytopes": "Polytopes",
    "spectral": "Sets of matrices",
    "combinators": "Sets made of sets",
}


def families() -> dict[str, list[DomainEntry]]:
    """The entries of each family, by the name of its package; a set of the user is among the combinators."""
    found = {family.__name__.rpartition(".")[2]: list(family.ENTRIES) for family in FAMILIES}
    listed = {entry.name for entries in found.values() for entry in entries}
    found["combinators"] += [entry for name, entry in DOMAINS.items() if name not in listed]
    return found


def boundary(domain: Any, number: int, seed: int = 0) -> np.ndarray:
    """Distinct answers of the oracle to random directions, one in each row. Some directions are sparse, some are integers."""
    rng = np.random.default_rng(seed)
    directions = rng.standard_normal((number, *domain.shape))
    directions[::5] = np.round(directions[::5])
    return np.unique(np.round(answers(domain, directions), 9), axis=0)


def answers(domain: Any, directions: Iterable[np.ndarray]) -> np.ndarray:
    """The oracle's answers as vectors, one in each row."""
    with warnings.catch_warnings():  # a picture has no use for the last digits
        warnings.simplefilter("ignore", InexactOracleWarning)
        return np.array([np.asarray(domain.lmo(g), dtype=float).ravel() for g in directions])


def shadow(domain: Any, axes: np.ndarray, number: int) -> np.ndarray:
    """The outline in given coordinates: the answers to directions in these."""
    seen = np.random.default_rng(1).standard_normal((number, len(axes)))
    seen[::5] = np.round(seen[::5])
    return np.unique(np.round(answers(domain, (seen @ axes).reshape(number, *domain.shape)) @ axes.T, 9), axis=0)


def coordinates(domain: Any, number: int) -> np.ndarray:
    """The boundary in at most three coordinates: as it is, or in the principal ones if there are more or the set is flat."""
    points = boundary(domain, number)
    middle = points.mean(axis=0)
    _, values, axes = np.linalg.svd(points - middle, full_matrices=False)
    rank = int(np.sum(values > 1e-5 * max(values[0], 1e-300)))
    if rank == points.shape[1] <= 3:
        return points
    axes = axes[: min(rank, 3)]
    return shadow(domain, axes, number) - axes @ middle if rank > 3 else (points - middle) @ axes.T


def instance(entry: DomainEntry, number: int) -> tuple[Any, np.ndarray]:
    """The set that is drawn, and its boundary in at most three coordinates."""
    if entry.name in DRAWN:
        domain = DRAWN[entry.name](entry.factory)
        if entry.name in SEEN_IN:
            return domain, shadow(domain, SEEN_IN[entry.name], number)
        return domain, coordinates(domain, number)

    def fitness(domain: Any) -> tuple[int, int]:
        """More dimensions up to three, and a smaller shape."""
        return coordinates(domain, 50).shape[1], -int(np.prod(domain.shape))

    domain = max(entry.examples().values(), key=fitness)
    return domain, coordinates(domain, number)


def draw(panel: Any, points: np.ndarray, colour: str) -> None:
    """The hull of the points: an interval, a polygon or a shaded solid, with edges where faces meet at an angle."""
    from matplotlib.colors import to_rgb
    from mpl_toolkits.mplot3d.art3d import Line3DCollection, Poly3DCollection
    from scipy.spatial import ConvexHull

    dimensions = points.shape[1]
    if dimensions < 3:
        flat = np.column_stack([points, np.zeros((len(points), 3 - dimensions))])
        order = ConvexHull(points).vertices if dimensions == 2 and len(points) > 2 else np.arange(len(points))
        panel.add_collection3d(Poly3DCollection([flat[order]], facecolor=colour, edgecolor="black", alpha=0.75))
        panel.view_init(90, -90)
        frame(panel, flat)
        return
    hull = ConvexHull(points)
    normals = hull.equations[:, :3]
    view = np.array([np.cos(0.45) * np.cos(0.6), np.cos(0.45) * np.sin(0.6), np.sin(0.45)])
    light = np.array([0.2, 0.5, 0.85]) / np.linalg.norm([0.2, 0.5, 0.85])
    shade = 0.45 + 0.55 * np.clip(normals @ light, -0.4, 1.0)
    faces = np.clip(shade[:, None] * np.array(to_rgb(colour)) + 0.12, 0, 1)
    seen = normals @ view > 1e-9
    faces, front = (
        faces[seen],
        points[hull.simplices[seen]],
    )  # those at the back would show where the order of faces is wrong
    panel.add_collection3d(Poly3DCollection(front, facecolors=faces, edgecolors=faces, linewidths=0.6))
    edges = [
        points[np.intersect1d(hull.simplices[i], hull.simplices[j])]
        for i, neighbours in enumerate(hull.neighbors)
        for j in neighbours
        if i < j
        and (seen[i] or seen[j])
        and normals[i] @ normals[j] < (0.9 if len(points) > MOST_VERTICES else 1 - 1e-9)
    ]
    if edges:
        panel.add_collection3d(Line3DCollection(edges, colors="black", linewidths=0.7))
    panel.view_init(np.degrees(0.45), np.degrees(0.6))
    frame(panel, points)


def frame(panel: Any, points: np.ndarray) -> None:
    """Equal scales, no axes."""
    middle = (points.max(axis=0) + points.min(axis=0)) / 2
    half = max(float(np.linalg.norm(points - middle, axis=1).max()), 1e-9)
    for limits, centre in zip((panel.set_xlim, panel.set_ylim, panel.set_zlim), middle, strict=True):
        limits(centre - half, centre + half)
    panel.set_box_aspect((1, 1, 1), zoom=1.5)
    panel.set_proj_type("ortho")
    panel.set_axis_off()


def picture(entries: list[DomainEntry], number: int, colour: str) -> bytes:
    """A PNG with a panel for each set, six in a row."""
    from matplotlib.figure import Figure
    from PIL import Image

    rows = -(-len(entries) // 6)
    figure = Figure(figsize=(9, 1.75 * rows), dpi=100)
    figure.subplots_adjust(left=0, right=1, bottom=0, top=1 - 0.17 / rows, wspace=0, hspace=0.16)
    for k, entry in enumerate(entries):
        panel = figure.add_subplot(rows, 6, k + 1, projection="3d")
        _, points = instance(entry, number)
        draw(panel, points, colour)
        panel.set_title(entry.name, fontsize=7, pad=-2)
    drawn = io.BytesIO()
    figure.savefig(drawn, format="png")
    compact = io.BytesIO()
    Image.open(drawn).convert("RGB").quantize(48).save(compact, format="PNG", optimize=True)
    return compact.getvalue()


def page() -> Iterator[str]:
    """The lines of docs/set-gallery.md."""
    yield "# Gallery of sets"
    yield ""
    yield (
        "Every set that `condgrad` knows by name, drawn by `make gallery` from the answers of its linear oracle to random "
        "directions. Sets of more than three dimensions are seen as their shadow in the three coordinates in which they are "
        "widest; sets of matrices by the symmetric 2 x 2 or the diagonal 3 x 3 matrices in them, except for fantope, "
        "Hermitian ball and elliptope. A set is used as in `cg.minimize(objective, cg.L1Ball(100, 2.0))`; `condgrad sets` "
        "prints the table, and "
        "[Extending](extending.md) says how to add one."
    )
    for family, entries in families().items():
        yield from ("", f"## {TITLES.get(family, family.capitalize())}", "")
        yield from (f"![{', '.join(entry.name for entry in entries)}](sets-{family}.png)", "")
        yield from ("| set | class | | used for |", "|---|---|---|---|")
        for entry in entries:
            notation = entry.notation.replace("|", "\\|")
            yield f"| {entry.name} | `{entry.factory.__name__}` | {notation} | {USES.get(entry.name, entry.oracle)} |"


def main() -> None:
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--out", type=Path, default=Path("docs"), metavar="DIR", help="where the pictures and the page go"
    )
    parser.add_argument("--directions", type=int, default=1200, help="calls of the oracle for each set")
    args = parser.parse_args()
    args.out.mkdir(parents=True, exist_ok=True)
    for colour, (family, entries) in zip(PALETTE * 2, families().items(), strict=False):
        content = picture(entries, args.directions, colour)
        (args.out / f"sets-{family}.png").write_bytes(content)
        print(f"sets-{family}.png: {len(entries)} sets, {len(content) / 1000:.0f} kB")
    (args.out / "set-gallery.md").write_text("\n".join(page()) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
