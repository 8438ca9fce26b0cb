"""Random instances of the sets in the registry: small, so that they can be compared by brute force, and often degenerate.

One function a set, by its name in the registry. Degenerate means: a single entry, bounds that meet, ties among weights, an edge
beside another one, a row of a matrix, a radius of 1e-6 or 1e6, parts of a combination that are combinations themselves.
"""

from __future__ import annotations

import numpy as np

import condgrad as cg
from condgrad.domains.combinators._examples import a_point_of


def radius(rng):
    return float(rng.choice([1.0, 2.5, 1e-6, 1e6, 0.1 + rng.random()]))


def shape(rng, most=5):
    """One, two or three axes, with at most about 2 ``most`` entries."""
    kind = rng.integers(4)
    if kind == 0:
        return (int(rng.integers(1, 3)), int(rng.integers(1, 1 + most // 2)))
    if kind == 1:
        return (1,) if rng.random() < 0.3 else (1, 2, int(rng.integers(1, 3)))
    return (int(rng.integers(1, most + 1)),)


def matrix(rng, most=4):
    return int(rng.integers(1, most + 1)), int(rng.integers(1, most + 1))


def tensor(rng, most):
    return tuple(map(int, rng.integers(1, most + 1, rng.integers(2, 4))))


def count(rng, sizes):
    return int(rng.integers(1, np.prod(sizes) + 1))


def bounds(rng, sizes):
    """Boxes of which some sides have no length; whole numbers, so that there are ties."""
    lower = rng.integers(-2, 2, sizes) * rng.choice([1.0, 0.3])
    return lower, lower + rng.choice([0.0, 0.5, 1.0, 2.0], sizes)


def weights(rng, sizes):
    return rng.choice([1.0, 1.0, 0.5, 3.0], sizes) if rng.random() < 0.5 else 0.05 + rng.random(sizes)


def falling(rng):
    return np.sort(np.append(weights(rng, int(rng.integers(0, 4))) * rng.integers(0, 2), 1.5))[::-1]


def labels(rng, n):
    return None if rng.random() < 0.3 else rng.integers(0, max(n - 1, 1), n)


def a_tree(rng, n):
    """The edges of a random spanning tree of n nodes, whose names are shuffled."""
    names = rng.permutation(n)
    return [(int(names[i]), int(names[rng.integers(i)])) for i in range(1, n)]


def connected(rng, more=4, parallel=True):
    n = int(rng.integers(2, 6))
    edges = a_tree(rng, n)
    for _ in range(rng.integers(0, more)):
        u, v = rng.choice(n, 2, replace=False)
        if parallel or {u, v} not in [set(edge) for edge in edges]:
            edges.append((int(u), int(v)))
    return edges


def paths(rng):
    """Edges from lower to higher nodes, some of them parallel, with a path from the first to the last one."""
    n = int(rng.integers(2, 6))
    edges = [(i, i + 1) for i in range(n - 1) if rng.random() < 0.8] + [(0, n - 1)]
    edges += [tuple(sorted(map(int, rng.choice(n, 2, replace=False)))) for _ in range(rng.integers(0, 5))]
    names = rng.permutation(n)
    edges = names[np.array(edges)[rng.permutation(len(edges))]]
    return cg.PathPolytope(edges, int(names[0]), int(names[-1]))


def flows(rng):
    """Supplies of a random flow that keeps to the capacities, so that the set is not empty; capacities may be 0."""
    n, m = int(rng.integers(2, 5)), int(rng.integers(1, 6))
    edges = np.array([rng.choice(n, 2, replace=False) for _ in range(m)])
    capacity = rng.choice([0.0, 1.0, 2.0, 0.3], m) if rng.random() < 0.5 else rng.random(m)
    flow = capacity * rng.choice([0.0, 0.5, 1.0], m)
    supply = np.zeros(n)
    np.add.at(supply, edges[:, 0], flow)
    np.add.at(supply, edges[:, 1], -flow)
    return cg.FlowPolytope(edges, np.append(supply, np.zeros(max(0, edges.max() + 1 - n))), capacity)


def plans(rng):
    """Marginals with zeros and ties; of whole numbers half of the time."""
    m, n = matrix(rng, 3)
    plan = rng.integers(0, 3, (m, n)) if rng.random() < 0.5 else rng.random((m, n))
    plan = radius(rng) * (plan + (plan.sum() == 0))
    return cg.TransportPolytope(plan.sum(axis=1), plan.sum(axis=0), rng.choice(["auto", "lp"]))


def bipartite(rng):
    m, n = matrix(rng, 4)
    kept = rng.random((m, n)) < 0.6
    perfect = m == n and rng.random() < 0.5
    if perfect:
        kept[np.arange(n), rng.permutation(n)] = True
    edges = np.argwhere(kept | (kept.sum() == 0))[:9] if not perfect else np.argwhere(kept)
    return cg.BipartiteMatchingPolytope(rng.permutation(edges), perfect)


def matroid(rng):
    """Vectors with parallel and zero ones, or a uniform matroid, of rank 0 to n."""
    n = int(rng.integers(1, 6))
    if rng.random() < 0.3:
        k = int(rng.integers(0, n + 1))
        return cg.MatroidBasePolytope(n, lambda chosen: min(len(chosen), k))
    vectors = rng.integers(-1, 2, (n, int(rng.integers(1, 4)))).astype(float)
    return cg.MatroidBasePolytope(n, lambda chosen: np.linalg.matrix_rank(vectors[chosen]) if len(chosen) else 0)


def submodular(rng):
    """A weighted cut plus a modular function, or a concave function of a sum."""
    n = int(rng.integers(1, 5))
    apart, extra = np.triu(rng.random((n, n)) * (rng.random((n, n)) < 0.7), 1), rng.standard_normal(n)

    def cut(chosen):
        inside = np.isin(np.arange(n), chosen)
        return float(apart[inside][:, ~inside].sum() + apart[~inside][:, inside].sum() + extra[inside].sum())

    sizes = rng.random(n)
    return cg.SubmodularBasePolytope(
        n, cut if rng.random() < 0.6 else lambda chosen: float(np.sqrt(sizes[chosen].sum()))
    )


def hull(rng):
    import scipy.sparse as sp

    points = rng.integers(-2, 3, (int(rng.integers(1, 7)), int(rng.integers(1, 4)))) * float(
        rng.choice([1.0, 1e-4, 1e5])
    )
    return cg.ConvexHull(sp.csr_array(points) if rng.random() < 0.4 else points)


def polytope(rng):
    """Rows through a random point of a box, some of them active there, some twice."""
    n = int(rng.integers(1, 4))
    lower, upper = bounds(rng, n)
    inside = lower + rng.choice([0.0, 0.5, 1.0], n) * (upper - lower)
    A, C = rng.integers(-2, 3, (int(rng.integers(0, 4)), n)), rng.integers(-2, 3, (int(rng.integers(0, n)), n))
    A, C = (np.concatenate([M, M[:1]]).astype(float) for M in (A[A.any(axis=1)], C[C.any(axis=1)]))
    facts = {"A": A, "b": A @ inside + rng.choice([0.0, 1.0], len(A))} if len(A) else {}
    facts |= {"C": C, "d": C @ inside} if len(C) else {}
    return cg.Polytope(**facts, lower=lower, upper=upper)


def latent_groups(rng):
    sizes = shape(rng, 5)
    n = int(np.prod(sizes))
    groups = [sorted(map(int, rng.choice(n, rng.integers(1, n + 1), replace=False))) for _ in range(rng.integers(1, 4))]
    groups.append([i for i in range(n) if not any(i in group for group in groups)] or [0])
    return cg.LatentGroupBall(sizes, groups, radius(rng), weights(rng, len(groups)))


def capped(rng):
    upper = weights(rng, shape(rng, 5))
    return cg.CappedSimplex(upper, float(upper.sum()) * rng.choice([1.0, 0.5, rng.random() * 0.99 + 0.01]))


def l1_in_box(rng):
    lower, upper = bounds(rng, (int(rng.integers(1, 5)),))
    least = float(np.abs(np.clip(0.0, lower, upper)).sum())
    return cg.L1BallInBox(lower, upper, least + float(rng.choice([0.0 if least else 0.5, 0.7, 20.0])))


def ellipsoid(rng):
    n = int(rng.integers(1, 5))
    if rng.random() < 0.4:
        return cg.Ellipsoid(10.0 ** rng.uniform(-3, 3, n), radius(rng))
    factor = rng.standard_normal((n, n))
    return cg.Ellipsoid(factor @ factor.T + 10.0 ** rng.integers(-3, 1) * np.eye(n), radius(rng))


def rank(rng, n):
    return int(rng.integers(1, n + 1))


# ---------------------------------------------------------------------------------------------------- sets made from sets


def part(rng, n, depth=0, polytope=False):
    """A set of vectors of length n: a simple one, or for a depth above 0 a combination of such."""
    if depth == 0 or rng.random() < 0.3:
        r = float(rng.choice([1.0, 0.3, 2.0]))
        lower, upper = bounds(rng, n)
        kinds = [cg.Simplex(n, r), cg.Box(lower, upper)]
        kinds += [] if polytope else [cg.L1Ball(n, r), cg.L2Ball(n, r), cg.UnitSimplex(n, r), cg.LpBall(n, 3.0, r)]
        return kinds[rng.integers(len(kinds))]
    one = part(rng, n, depth - 1)
    return [
        lambda: cg.Scaled(one, float(rng.choice([-2.0, 0.5, 1e-4]))),
        lambda: cg.Shifted(one, rng.integers(-3, 4, n).astype(float)),
        lambda: cg.MinkowskiSum(one, part(rng, n)),
        lambda: cg.HullOfUnion(one, part(rng, n)),
        lambda: cg.LinearImage(rng.integers(-1, 2, (n, n)).astype(float), one),
        lambda: cg.Cached(one, 3),
    ][rng.integers(6)]()


def parts(rng):
    """One to three sets of vectors of one length."""
    n = rank(rng, 4)
    return [part(rng, n, 2) for _ in range(rank(rng, 3))]


def box_cut(rng):
    n = int(rng.integers(1, 5))
    kinds = [
        cg.Simplex(n, 2.0),
        cg.L1Ball(n, 2.0),
        cg.L2Ball(n, 1.5),
        cg.LinfBall(n),
        cg.Box(-np.ones(n), np.full(n, 2.0)),
    ]
    inside = kinds[rng.integers(len(kinds))]
    x = a_point_of(inside, rng)
    room = rng.choice([0.0, 0.2, 1.0, 5.0], (2, n))
    return cg.BoxCut(inside, x - room[0], x + room[1])


def half_space_cut(rng):
    """Of a ball or a polytope; the plane goes through the middle, beyond the set, or touches it in a point or a face."""
    n = int(rng.integers(1, 5))
    inside = cg.L2Ball(n, 1.5) if rng.random() < 0.3 else part(rng, n, polytope=True)
    normal = rng.integers(-2, 3, n).astype(float) if rng.random() < 0.6 else rng.standard_normal(n)
    normal[0] += not normal.any()
    low, high = float(normal @ inside.lmo(normal)), float(normal @ inside.lmo(-normal))
    return cg.HalfSpaceCut(
        inside, normal, float(rng.choice([low, low + (high - low) * rng.random(), high, high + 1.0]))
    )


DRAW = {
    "simplex": lambda rng: cg.Simplex(shape(rng), radius(rng)),
    "unit-simplex": lambda rng: cg.UnitSimplex(shape(rng), radius(rng)),
    "hypersimplex": lambda rng: cg.Hypersimplex(s := shape(rng), count(rng, s), radius(rng)),
    "capped-simplex": capped,
    "simplex-product": lambda rng: cg.SimplexProduct(
        s := tensor(rng, 2), radius(rng), int(rng.integers(-len(s), len(s)))
    ),
    "monotone-box": lambda rng: cg.MonotoneBox(
        int(rng.integers(1, 6)), low := float(rng.integers(-2, 3)), low + float(rng.choice([0.0, 1.0, 1e-6, 1e6]))
    ),
    "l1-ball": lambda rng: cg.L1Ball(shape(rng), radius(rng)),
    "l2-ball": lambda rng: cg.L2Ball(shape(rng), radius(rng)),
    "linf-ball": lambda rng: cg.LinfBall(shape(rng), radius(rng)),
    "lp-ball": lambda rng: cg.LpBall(
        shape(rng), float(rng.choice([1.0001, 1.3, 7.0, 1e3, 1.01 + 0.9 * rng.random()])), radius(rng)
    ),
    "weighted-l1-ball": lambda rng: cg.WeightedL1Ball(weights(rng, shape(rng)), radius(rng)),
    "l1-ball-in-box": l1_in_box,
    "k-sparse-polytope": lambda rng: cg.KSparsePolytope(s := shape(rng, 4), count(rng, s), radius(rng)),
    "k-support-ball": lambda rng: cg.KSupportBall(s := shape(rng), count(rng, s), radius(rng)),
    "owl-ball": lambda rng: cg.OWLBall(falling(rng), radius(rng)),
    "ellipsoid": ellipsoid,
    "group-ball": lambda rng: cg.GroupBall(s := shape(rng), radius(rng), labels(rng, s[0])),
    "group-linf-ball": lambda rng: cg.GroupLinfBall(s := shape(rng), radius(rng), labels(rng, s[0])),
    "latent-group-ball": latent_groups,
    "box": lambda rng: cg.Box(*bounds(rng, shape(rng))),
    "birkhoff": lambda rng: cg.Birkhoff(int(rng.integers(1, 5))),
    "partial-assignment": lambda rng: cg.PartialAssignment(
        s := matrix(rng), int(rng.integers(1, min(s) + 1)) if rng.random() < 0.6 else None
    ),
    "transport-polytope": plans,
    "permutahedron": lambda rng: cg.Permutahedron(rng.integers(-2, 3, int(rng.integers(1, 6))) * radius(rng)),
    "path-polytope": paths,
    "flow-polytope": flows,
    "spanning-tree-polytope": lambda rng: cg.SpanningTreePolytope(connected(rng)),
    "bipartite-matching-polytope": bipartite,
    "matching-polytope": lambda rng: cg.MatchingPolytope(connected(rng, parallel=False)),
    "matroid-base-polytope": matroid,
    "submodular-base-polytope": submodular,
    "convex-hull": hull,
    "total-variation-ball": lambda rng: cg.TotalVariationBall(
        int(rng.integers(2, 6)), radius(rng), float(rng.choice([0.0, 3.0, -1e3]))
    ),
    "graph-total-variation-ball": lambda rng: cg.GraphTotalVariationBall(
        e := connected(rng), radius(rng), weights(rng, len(e)), float(rng.choice([0.0, 3.0]))
    ),
    "polytope": polytope,
    "nuclear-ball": lambda rng: cg.NuclearBall(matrix(rng), radius(rng)),
    "spectral-ball": lambda rng: cg.SpectralBall(matrix(rng), radius(rng)),
    "ky-fan-ball": lambda rng: cg.KyFanBall(s := matrix(rng), rank(rng, min(s)), radius(rng)),
    "spectrahedron": lambda rng: cg.Spectrahedron(rank(rng, 4), radius(rng), bool(rng.integers(2))),
    "fantope": lambda rng: cg.Fantope(n := rank(rng, 4), rank(rng, n)),
    "symmetric-nuclear-ball": lambda rng: cg.SymmetricNuclearBall(rank(rng, 4), radius(rng)),
    "hermitian-nuclear-ball": lambda rng: cg.HermitianNuclearBall(rank(rng, 3), radius(rng)),
    "schatten-ball": lambda rng: cg.SchattenBall(matrix(rng), float(rng.choice([1.001, 1.5, 3.0, 50.0])), radius(rng)),
    "unfolding-ball": lambda rng: cg.UnfoldingBall(s := tensor(rng, 3), int(rng.integers(len(s))), radius(rng)),
    "elliptope": lambda rng: cg.Elliptope(rank(rng, 5)),
    "product": lambda rng: cg.Product(*(part(rng, rank(rng, 3), 2) for _ in range(rng.integers(1, 4)))),
    "scaled": lambda rng: cg.Scaled(part(rng, rank(rng, 4), 2), float(rng.choice([-3.0, 1e-5, 1e5, 0.5]))),
    "shifted": lambda rng: cg.Shifted(part(rng, n := rank(rng, 4), 2), rng.integers(-3, 4, n) * radius(rng)),
    "linear-image": lambda rng: cg.LinearImage(
        rng.integers(-2, 3, (rank(rng, 4), n := rank(rng, 4))).astype(float), part(rng, n, 2)
    ),
    "minkowski-sum": lambda rng: cg.MinkowskiSum(*parts(rng)),
    "hull-of-union": lambda rng: cg.HullOfUnion(*parts(rng)),
    "half-space-cut": half_space_cut,
    "box-cut": box_cut,
    "cached": lambda rng: cg.Cached(part(rng, rank(rng, 4), 2), rank(rng, 5)),
}


def exact(domain):
    """Whether the diameter of a set is more than an upper bound: of a combination, if those of its parts are."""
    entry = next(entry for entry in cg.DOMAINS.values() if type(entry.example()) is type(domain))
    return "diameter" not in entry.bounds and all(map(exact, getattr(domain, "parts", ())))
