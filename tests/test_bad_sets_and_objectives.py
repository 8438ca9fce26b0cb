"""Every refusal says in one sentence what was given, what was expected and what to do."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
import scipy.sparse as sp

from condgrad import checks, minimize
from condgrad.domains import (
    DOMAINS,
    Box,
    CappedSimplex,
    Ellipsoid,
    Fantope,
    GroupBall,
    Hypersimplex,
    KSparsePolytope,
    KSupportBall,
    KyFanBall,
    L1Ball,
    L1BallInBox,
    L2Ball,
    LatentGroupBall,
    LinfBall,
    LpBall,
    MatroidBasePolytope,
    MonotoneBox,
    NuclearBall,
    OWLBall,
    Simplex,
    SimplexProduct,
    Spectrahedron,
    SpectralBall,
    SubmodularBasePolytope,
    WeightedL1Ball,
    user_set,
)
from condgrad.objectives import (
    OBJECTIVES,
    Cauchy,
    Completion,
    Function,
    FunctionExpectation,
    FunctionSum,
    GemanMcClure,
    Huber,
    LinearModel,
    Logistic,
    Quadratic,
    Sigmoid,
    Squared,
    Welsch,
    paper_data,
)

nan, inf = np.nan, np.inf
rng = np.random.default_rng(0)


def half_circle(**more):
    return user_set(lambda g: -g / np.linalg.norm(g), 2, **more)


def complete(rows, cols, values, shape=(2, 3), loss=None):
    return Completion(rows, cols, values, shape, loss or Welsch())


def shifted_sum(term_grads, value=lambda x: 0.0, n=3, **more):
    return FunctionSum(value, term_grads, n, **more)


NAMES = ("ncgs", "svfw")
REFUSED = {
    # the checks themselves
    "a misspelt name": (
        lambda: checks.choice("ncsg", NAMES, "method"),
        "Unknown method 'ncsg': did you mean 'ncgs'? Known methods: ncgs, svfw.",
    ),
    "a strange name": (
        lambda: checks.choice(3, ("squared",), "loss"),
        "Unknown loss 3. Known losses: squared.",
    ),
    "a number that is none": (
        lambda: checks.positive("1", "The step"),
        "The step must be a finite real number, but got '1'.",
    ),
    "a truth value": (lambda: checks.positive(True, "The step"), "must be a finite real number, but got True"),
    "a NaN": (lambda: checks.positive(nan, "The step"), "must be a finite real number, but got nan"),
    "zero": (lambda: checks.positive(0, "The step"), "The step must be positive, but got 0: give a number above 0."),
    "a negative": (lambda: checks.not_negative(-1, "It"), "It must not be negative, but got -1: give 0 or more."),
    "a fraction": (lambda: checks.whole(2.5, "N"), "N must be a whole number of at least 1, but got 2.5."),
    "too few": (lambda: checks.whole(1, "N", least=2), "N must be a whole number of at least 2, but got 1."),
    "a whole truth": (lambda: checks.whole(True, "N"), "N must be a whole number of at least 1, but got True."),
    "words": (
        lambda: checks.finite_array(["1", "2"], "y"),
        "y must be an array of real numbers, but got a list without them: convert it first.",
    ),
    "complex numbers": (lambda: checks.finite_array(np.array([1j]), "y"), "but got dtype complex128: convert it first"),
    "ragged lists": (lambda: checks.finite_array([[1.0], [1.0, 2.0]], "y"), "y must be an array of real numbers"),
    "a hole": (
        lambda: checks.finite_array([[1.0, 2.0], [nan, inf]], "y"),
        "y holds NaN or Inf (2 of 4 entries, the first at index (1, 0)): remove or replace them.",
    ),
    # sets
    "radius": (lambda: L1Ball(3, -1.0), "The radius of L1Ball must be positive, but got -1.0"),
    "infinite radius": (lambda: Simplex(3, inf), "The radius of Simplex must be a finite real number, but got inf"),
    "size": (lambda: Simplex(0), "Each size in the shape of Simplex must be a whole number of at least 1, but got 0."),
    "shape": (lambda: L2Ball((3, 2.0)), "Each size in the shape of L2Ball must be a whole number"),
    "too few groups": (
        lambda: GroupBall(3, groups=[0, 1]),
        "The list of groups of GroupBall (a label for each index) has shape (2,), but (3,) was expected",
    ),
    "groups of floats": (
        lambda: GroupBall(2, groups=[0.5, 1.5]),
        "The groups of GroupBall must be labels, whole numbers or names, but got float64.",
    ),
    "p = 1": (lambda: LpBall(3, 1), "LpBall got p = 1, which has a class of its own: use L1Ball."),
    "p = 2": (lambda: LpBall(3, 2.0), "use L2Ball."),
    "p = inf": (lambda: LpBall(3, inf), "use LinfBall."),
    "p < 1": (lambda: LpBall(3, 0.5), "The p of LpBall must be above 1, but got 0.5: below 1 the set is not convex."),
    "p is NaN": (lambda: LpBall(3, nan), "The p of LpBall must be a finite real number, but got nan."),
    "weights that are not positive": (
        lambda: WeightedL1Ball([1.0, 0.0]),
        "The weights of WeightedL1Ball must be positive, but one is 0: give larger ones.",
    ),
    "more entries than there are": (
        lambda: KSparsePolytope(3, 4),
        "The k of KSparsePolytope is 4, but its points have 3 entries: give at most 3.",
    ),
    "no entries": (
        lambda: Hypersimplex(3, 0),
        "The k of Hypersimplex must be a whole number of at least 1, but got 0.",
    ),
    "half an entry": (lambda: KSupportBall(3, 1.5), "The k of KSupportBall must be a whole number of at least 1"),
    "rising weights": (
        lambda: OWLBall([1.0, 2.0]),
        "The weights of OWLBall must be a list of falling numbers, the first one positive and none negative: "
        "sort them in falling order.",
    ),
    "an indefinite ellipsoid": (
        lambda: Ellipsoid([[1.0, 0.0], [0.0, -1.0]]),
        "The matrix of Ellipsoid must be positive definite, but its smallest eigenvalue is -1: the set would not be bounded; "
        "add a multiple of the identity.",
    ),
    "a diagonal with a zero": (lambda: Ellipsoid([1.0, 0.0]), "but its smallest eigenvalue is 0: the set would not be"),
    "an oblong ellipsoid": (
        lambda: Ellipsoid(np.ones((2, 3))),
        "The matrix of Ellipsoid has shape (2, 3): give a square matrix, or its diagonal as a vector.",
    ),
    "an ellipsoid that is not symmetric": (
        lambda: Ellipsoid([[2.0, 1.0], [0.0, 2.0]]),
        "The matrix of Ellipsoid is not symmetric: give (A + A') / 2, which has the same x'A x.",
    ),
    "an index without a group": (
        lambda: LatentGroupBall(3, [[0, 1]]),
        "Index 2 is in no group of LatentGroupBall: add it to one, or a group of its own.",
    ),
    "a group outside": (
        lambda: LatentGroupBall(3, [[0, 1, 2], [3]]),
        "Group 1 of LatentGroupBall has the index 3, but indices go from 0 to 2: correct it.",
    ),
    "an empty group": (
        lambda: LatentGroupBall(2, [[0, 1], []]),
        "Group 1 of LatentGroupBall must be a list of at least one index, but got [].",
    ),
    "groups without weights": (
        lambda: LatentGroupBall(2, [[0], [1]], weights=[1.0]),
        "The list of weights of LatentGroupBall (one for each group) has shape (1,), but (2,) was expected",
    ),
    "a box outside of its l1 ball": (
        lambda: L1BallInBox([1.0, 1.0], [2.0, 2.0], 1.5),
        "L1BallInBox is an empty set: all points of the box have an l1 norm of at least 2, above the radius 1.5; give a larger "
        "radius.",
    ),
    "an l1 ball in no box": (
        lambda: L1BallInBox([1.0, 1.0], [2.0, 0.0], 1.5),
        "L1BallInBox is an empty set: lower 1.0 is not below upper 0.0 at index (1,); correct them.",
    ),
    "an l1 ball in a box of numbers": (
        lambda: L1BallInBox(0.0, 1.0),
        "L1BallInBox got two numbers as bounds: give one as an array of the shape of the points.",
    ),
    "caps that are too low": (
        lambda: CappedSimplex([0.25, 0.5]),
        "CappedSimplex is an empty set: its caps sum to 0.75, less than the sum 1; raise them.",
    ),
    "a cap of nothing": (lambda: CappedSimplex([1.0, 0.0]), "The caps of CappedSimplex must be positive, but one is 0"),
    "a product of one simplex": (
        lambda: SimplexProduct(3),
        "SimplexProduct got the shape (3,), at least two axes were expected: use Simplex for vectors.",
    ),
    "an axis too far": (
        lambda: SimplexProduct((2, 3), axis=2),
        "The axis of SimplexProduct is 2, but its points have 2 axes: correct it.",
    ),
    "monotone matrices": (
        lambda: MonotoneBox((2, 2)),
        "MonotoneBox got the shape (2, 2), but only vectors have an order: give a length.",
    ),
    "monotone vectors in no box": (
        lambda: MonotoneBox(2, 1.0, 0.0),
        "MonotoneBox is an empty set: lower 1 is above upper 0; correct them.",
    ),
    "empty box": (
        lambda: Box([0.0, 3.0], [1.0, 2.0]),
        "Box is an empty set: lower 3.0 is above upper 2.0 at index (1,); correct them.",
    ),
    "unbounded box": (
        lambda: Box([0.0], [inf]),
        "The upper bound of Box holds NaN or Inf (1 of 1 entries, the first at index (0,)): "
        "a box needs finite bounds to be compact.",
    ),
    "box of two shapes": (
        lambda: Box([0.0, 0.0], [1.0]),
        "The upper bound of Box has shape (1,), but (2,) was expected",
    ),
    "vectors in the nuclear ball": (
        lambda: NuclearBall(3),
        "NuclearBall is a set of matrices, but got shape (3,): give (rows, columns).",
    ),
    "vectors in the spectral ball": (
        lambda: SpectralBall(3),
        "SpectralBall is a set of matrices, but got shape (3,): give (rows, columns).",
    ),
    "vectors in the Ky Fan ball": (lambda: KyFanBall((2, 2, 2), 1), "KyFanBall is a set of matrices, but got shape"),
    "k above the rank": (
        lambda: KyFanBall((5, 3), 4),
        "The k of KyFanBall is at most 3 for matrices of shape (5, 3), but got 4.",
    ),
    "k = 0": (lambda: KyFanBall((5, 3), 0), "The k of KyFanBall must be a whole number of at least 1, but got 0."),
    "Ky Fan radius": (lambda: KyFanBall((5, 3), 1, -2.0), "The radius of KyFanBall must be positive, but got -2.0"),
    "spectrahedron not square": (
        lambda: Spectrahedron((2, 3)),
        "Spectrahedron is a set of symmetric matrices, but got shape (2, 3): give (n, n), or n alone.",
    ),
    "vectors in the spectrahedron": (lambda: Spectrahedron((3,)), "is a set of symmetric matrices, but got shape (3,)"),
    "size of the spectrahedron": (
        lambda: Spectrahedron(2.5),
        "Each size in the shape of Spectrahedron must be a whole",
    ),
    "trace": (lambda: Spectrahedron(3, 0.0), "The radius of Spectrahedron must be positive, but got 0.0"),
    "equal": (lambda: Spectrahedron(3, equal=1), "The equal of Spectrahedron must be True or False, but got 1."),
    "fantope not square": (
        lambda: Fantope((3, 3, 3), 1),
        "Fantope is a set of symmetric matrices, but got shape (3, 3, 3): give (n, n), or n alone.",
    ),
    "rank of the fantope": (
        lambda: Fantope(3, 4),
        "The rank of Fantope is at most 3 for matrices of shape (3, 3), but got 4.",
    ),
    "half a rank": (lambda: Fantope(3, 1.5), "The rank of Fantope must be a whole number of at least 1, but got 1.5."),
    "linf radius": (lambda: LinfBall(3, 0), "The radius of LinfBall must be positive"),
    "user's diameter": (lambda: half_circle(diameter=-1), "The diameter of user_set must not be negative, but got -1"),
    "user's start": (lambda: half_circle(start=[1.0]), "The start of user_set has shape (1,), but (2,) was expected"),
    "no diameter": (
        lambda: half_circle().diameter,
        "The diameter of the set is needed, and user_set was given none: pass diameter=.",
    ),
    "no max_norm": (lambda: half_circle().max_norm, "The diameter of the set is needed"),
    "no contains": (
        lambda: half_circle().contains(np.zeros(2)),
        "A linear oracle cannot tell if a point is in its set: pass contains= or project=.",
    ),
    "lmo of another shape": (
        lambda: user_set(lambda g: np.zeros(3), 2).lmo(np.ones(2)),
        "The answer of lmo has shape (3,), but (2,) was expected: reshape it or build for that shape.",
    ),
    "lmo of nothing": (
        lambda: user_set(lambda g: None, 2).lmo(np.ones(2)),
        "The answer of lmo must be an array of real",
    ),
    "project of another shape": (
        lambda: half_circle(project=lambda x: 0.0).project(np.ones(2)),
        "The answer of project has shape (), but (2,) was expected",
    ),
    # losses and objectives
    "sigma": (lambda: Welsch(0.0), "The sigma of Welsch must be positive, but got 0.0"),
    "sigma of Cauchy": (lambda: Cauchy(-1.0), "The sigma of Cauchy must be positive, but got -1.0"),
    "sigma of GemanMcClure": (lambda: GemanMcClure(0), "The sigma of GemanMcClure must be positive, but got 0"),
    "delta": (lambda: Huber(nan), "The delta of Huber must be a finite real number, but got nan"),
    "labels 0 and 1": (
        lambda: LinearModel(np.eye(2), [0, 1], Logistic()),
        "Logistic needs labels -1 and 1, but got 0, 1: for labels 0 and 1 pass 2 * y - 1.",
    ),
    "labels in completion": (
        lambda: complete([0], [0], [0.5], loss=Sigmoid()),
        "Sigmoid needs labels -1 and 1, but got 0.5",
    ),
    "a loss by its name": (
        lambda: LinearModel(np.eye(2), [1.0, 1.0], "squared"),
        "The loss must be an object such as Squared(), but got 'squared': build one of "
        "squared, huber, welsch, cauchy, geman-mcclure, logistic, sigmoid, smoothed-absolute, smoothed-hinge, mcp, scad.",
    ),
    "a loss that is not built": (lambda: complete([0], [0], [1.0], loss=Squared), "such as Squared(), but got <class"),
    "a dense vector to complete": (
        lambda: Completion.from_dense([1.0, nan]),
        "Completion is about matrices, but got shape",
    ),
    "Q not symmetric": (
        lambda: Quadratic([[1.0, 2.0], [0.0, 1.0]]),
        "The Q of Quadratic is not symmetric: pass (Q + Q.T) / 2, which gives the same function.",
    ),
    "sparse Q not symmetric": (lambda: Quadratic(sp.csr_array([[1.0, 2.0], [0.0, 1.0]])), "is not symmetric"),
    "Q not square": (lambda: Quadratic(np.ones((2, 3))), "The Q of Quadratic has shape (2, 3), but must be square."),
    "Q a vector": (
        lambda: Quadratic([1.0, 2.0]),
        "The Q of Quadratic must be a matrix, but has shape (2,): reshape it to (rows, columns).",
    ),
    "b too long": (
        lambda: Quadratic(np.eye(2), np.ones(3)),
        "The b of Quadratic has shape (3,), but (2,) was expected",
    ),
    "c": (lambda: Quadratic(np.eye(2), c=inf), "The c of Quadratic must be a finite real number, but got inf."),
    "hole in A": (
        lambda: LinearModel([[1.0, nan]], [1.0], Squared()),
        "The A of LinearModel holds NaN or Inf (1 of 2 entries, the first at index (0, 1))",
    ),
    "hole in sparse A": (
        lambda: LinearModel(sp.csr_array([[0.0, inf]]), [1.0], Squared()),
        "The A of LinearModel (the list of its stored entries) holds NaN or Inf (1 of 1 entries",
    ),
    "complex sparse A": (lambda: LinearModel(sp.csr_array([[1j]]), [1.0], Squared()), "but got dtype complex128"),
    "sparse vector A": (
        lambda: LinearModel(sp.coo_array([1.0]), [1.0], Squared()),
        "must be a matrix, but has shape (1,)",
    ),
    "no samples": (lambda: LinearModel(np.ones((0, 2)), [], Squared()), "The A of LinearModel has no rows"),
    "y of no tasks": (
        lambda: LinearModel(np.eye(2), np.ones((2, 0)), Squared()),
        "The y of LinearModel (one number for each row of A) has shape (2, 0), but (2,) was expected",
    ),
    "tasks of other rows": (
        lambda: LinearModel(np.eye(2), np.ones((3, 2)), Squared()),
        "The y of LinearModel, of which there is a row for each row of A, has shape (3,), but (2,) was expected",
    ),
    "hole in y": (lambda: LinearModel(np.eye(2), [1.0, nan], Squared()), "The y of LinearModel holds NaN or Inf"),
    "y too short": (
        lambda: LinearModel(np.eye(2), [1.0], Squared()),
        "The y of LinearModel (one number for each row of A) has shape (1,), but (2,) was expected",
    ),
    "completion of vectors": (
        lambda: complete([0], [0], [1.0], (3,)),
        "Completion is about matrices, but got shape (3,): give (rows, columns).",
    ),
    "observed twice": (
        lambda: complete([1, 0, 1], [2, 0, 2], [1.0, 2.0, 3.0]),
        "Entry (1, 2) is observed 2 times: keep one observation of it, or their mean.",
    ),
    "nothing observed": (
        lambda: Completion.from_dense(np.full((2, 2), nan)),
        "Completion needs a list of at least one observed value, but got shape (0,).",
    ),
    "row out of range": (
        lambda: complete([0, 2], [0, 0], [1.0, 2.0]),
        "The rows of Completion go from 0 to 2, but the matrix has 2 rows: count from 0 to 1, or give a larger shape.",
    ),
    "negative column": (
        lambda: complete([0], [-1], [1.0]),
        "The cols of Completion go from -1 to -1, but the matrix has 3",
    ),
    "indices as floats": (
        lambda: complete([0.0], [0], [1.0]),
        "The rows of Completion must be whole numbers, but got dtype float64: pass integers.",
    ),
    "too few columns": (
        lambda: complete([0, 1], [0], [1.0, 2.0]),
        "The list of cols of Completion (one for each value) has shape (1,), but (2,) was expected",
    ),
    "infinite observation": (
        lambda: Completion.from_dense([[1.0, inf]]),
        "The list of values of Completion holds NaN or Inf",
    ),
    "mask": (
        lambda: Completion.from_dense(np.ones((2, 2)), np.ones((2, 3))),
        "The mask given to Completion has shape (2, 3), but (2, 2) was expected",
    ),
    "generator": (
        lambda: paper_data(5, 5, 2, seed=0, generator="gausian"),
        "Unknown generator 'gausian': did you mean 'gaussian'?",
    ),
    "rank": (lambda: paper_data(5, 4, 6, seed=0), "The rank of a 5 x 4 matrix is at most 4, but got 6."),
    "probability": (
        lambda: paper_data(5, 4, 2, seed=0, observe=10),
        "observe must be a probability, but got 10: give a number between 0 and 1.",
    ),
    "noise": (lambda: paper_data(5, 4, 2, seed=0, noise=-1), "noise must not be negative, but got -1"),
    # functions of the user
    "user's smoothness": (
        lambda: Function(sum, sum, smoothness=0.0),
        "The smoothness of Function must be positive, but got 0.0",
    ),
    "user's lower smoothness": (
        lambda: Function(sum, sum, lower_smoothness=-1.0),
        "The lower_smoothness of Function must not be negative",
    ),
    "user's lower bound": (
        lambda: Function(sum, sum, lower_bound=-inf),
        "The lower_bound of Function must be a finite",
    ),
    "user's n_terms": (
        lambda: shifted_sum(sum, n=0),
        "The n_terms of FunctionSum must be a whole number of at least 1",
    ),
    "value is an array": (
        lambda: Function(lambda x: x, lambda x: x).value(np.ones(2)),
        "The answer of value has shape (2,), but () was expected",
    ),
    "grad of another shape": (
        lambda: Function(sum, lambda x: x[:1]).grad(np.ones(2)),
        "The answer of grad has shape (1,), but (2,) was expected",
    ),
    "term_grads not stacked": (
        lambda: shifted_sum(lambda x, i: x).grad(np.ones(2)),
        "The answer of term_grads has shape (2,), but (3, 2) was expected",
    ),
    "draw too few": (
        lambda: FunctionExpectation(lambda size, rng: np.ones(1), lambda x, b: b).draw(4, rng),
        "The first axis of the answer of draw has shape (1,), but (4,) was expected",
    ),
}


@pytest.mark.parametrize(("action", "sentence"), REFUSED.values(), ids=REFUSED.keys())
def test_refused_in_one_sentence(action, sentence):
    with pytest.raises(ValueError) as refusal:
        action()
    message = str(refusal.value)
    assert sentence in message
    assert message.endswith(".") and "\n" not in message


class Own:
    """An objective and a set in one: |x|^2 / 2 over the simplex, with some members replaced."""

    shape = (2,)

    def __init__(self, **replaced):
        members = {"value": lambda x: float(x @ x) / 2, "grad": lambda x: x, "lmo": lambda g: np.eye(2)[np.argmin(g)]}
        vars(self).update(members | replaced)


a_function = "but a function was expected: define "
an_array = "but an array was expected: return numpy.array(..., dtype=float)."
WRONG_MEMBERS = {
    "value": (3, f"Own has value = 3, {a_function}value(...)."),
    "grad": ("x", f"Own has grad = 'x', {a_function}grad(...)."),
    "value_and_grad": (1, f"{a_function}value_and_grad(...)."),
    "lmo": (np.ones(2), f"{a_function}lmo(...)."),
    "project": (1, f"{a_function}project(...)."),
    "contains": (True, f"Own has contains = True, {a_function}contains(...)."),
    "start": (0, f"Own has start = 0, {a_function}start(...)."),
    "smoothness": ("x", "The smoothness of Own must be a finite real number, but got 'x'."),
    "lower_bound": (nan, "The lower_bound of Own must be a finite real number, but got nan."),
    "diameter": (-1.0, "The diameter of Own must not be negative, but got -1.0: give 0 or more."),
    "max_norm": ([1], "The max_norm of Own must be a finite real number, but got [1]."),
    "n_terms": (0, "The n_terms of Own must be a whole number of at least 1, but got 0."),
    "lmo ": (
        lambda g: [1.0, 0.0],
        f"or, without a start, lmo(ones), is of type list, {an_array}",
    ),
    "start ": (lambda: (1.0, 0.0), f"is of type tuple, {an_array}"),
    "start  ": (lambda: np.ones(3), "The start of Own has shape (3,), but (2,) was expected"),
    "project ": (lambda x: [0.5, 0.5], f"The projection of Own is of type list, {an_array}"),
    "project  ": (lambda x: np.ones(3) / 3, "The projection of Own has shape (3,), but (2,) was expected"),
    "precision": ("x", "The precision of Own must be a finite real number, but got 'x'."),
    "remembered": (3, f"Own has remembered = 3, {a_function}remembered(...)."),
}


@pytest.mark.parametrize(("name", "sentence"), [(name, said) for name, (_, said) in WRONG_MEMBERS.items()])
def test_members_that_are_there_but_wrong_are_refused_in_one_sentence(name, sentence):
    part = Own(**{name.strip(): WRONG_MEMBERS[name][0]})
    with pytest.raises((TypeError, ValueError)) as refusal:
        minimize(part, part, max_steps=3)
    assert sentence in str(refusal.value) and "\n" not in str(refusal.value)


@pytest.mark.parametrize(
    ("answer", "error", "said"),
    [
        ([1.0, 0.0], TypeError, "is of type list, but an array"),
        (np.array([None, None]), TypeError, "is an array of object, but an array"),
        (np.ones(3), ValueError, r"has shape \(3,\), but \(2,\) was expected"),
    ],
)
def test_a_wrong_answer_of_an_oracle_later_is_refused(answer, error, said):
    part = Own(start=lambda: np.array([1.0, 0.0]), lmo=lambda g: answer, contains=lambda x, tolerance: True)
    with pytest.raises(error, match=f"The linear oracle's answer of Own {said}"):
        minimize(part, part, method="frank-wolfe", max_steps=3)


NOT_FINITE = {
    "lmo": lambda: user_set(lambda g: g * nan, 2).lmo(np.ones(2)),
    "project": lambda: half_circle(project=lambda x: x * inf).project(np.ones(2)),
    "value": lambda: Function(lambda x: nan, lambda x: x).value(np.ones(2)),
    "grad": lambda: Function(sum, lambda x: x / np.array([1.0, inf]) + [0.0, nan]).grad(np.ones(2)),
    "term_grads": lambda: shifted_sum(lambda x, i: np.full((len(i), 2), inf)).grad(np.ones(2)),
}


@pytest.mark.parametrize(("function", "action"), NOT_FINITE.items(), ids=NOT_FINITE.keys())
def test_a_function_that_is_not_finite_is_named(function, action):
    with pytest.raises(checks.NonFinite) as refusal:
        action()
    message = str(refusal.value)
    assert message.startswith(f"The answer of {function} holds NaN or Inf (")
    assert message.endswith(f": check what {function} computes at this point.")


def asked(registry, *methods):
    """Each example with each of the methods that it has."""
    return [(name, m) for name, entry in registry.items() for m in methods if hasattr(entry.example(), m)]


@pytest.mark.parametrize(("name", "method"), asked(DOMAINS, "lmo", "project", "contains"))
def test_sets_refuse_points_of_another_shape(name, method):
    domain = DOMAINS[name].example()
    wrong = (7, *domain.shape)
    with pytest.raises(ValueError, match=r"The point given to .* has shape .* was expected: reshape it") as refusal:
        getattr(domain, method)(np.ones(wrong))
    assert f"has shape {wrong}, but {domain.shape} was expected" in str(refusal.value)


@pytest.mark.parametrize(("name", "method"), asked(OBJECTIVES, "value", "grad", "term_rows", "grad_terms"))
def test_objectives_refuse_points_of_another_shape(name, method):
    f = OBJECTIVES[name].example()
    more = (f.draw(2, rng),) if "term" in method else ()
    wrong = (7, *f.shape)
    with pytest.raises(ValueError, match=r"The point given to .* has shape .* was expected: reshape it") as refusal:
        getattr(f, method)(np.ones(wrong), *more)
    assert f"has shape {wrong}, but {f.shape} was expected" in str(refusal.value)


def test_checks_hand_back_what_they_accept():
    assert checks.choice("ncgs", NAMES, "method") == "ncgs"
    assert checks.positive(np.float32(2), "It") == 2.0 and isinstance(checks.positive(2, "It"), float)
    assert checks.whole(np.int64(3), "N") == 3 and checks.whole(0, "N", least=0) == 0
    assert checks.as_shape(3, "It") == (3,) and checks.as_shape([2, 3], "It") == (2, 3)
    given = np.array([1, 2])
    array = checks.finite_array(given, "It")
    assert array.dtype == np.float64 and not array.flags.writeable and not np.shares_memory(array, given)


def test_a_function_that_is_not_submodular_is_noticed_at_the_first_vertex_that_shows_it() -> None:
    sizes = [0.0, 1.0, 1.5, 2.9, 3.0]  # the third element adds more than the second one
    bases = SubmodularBasePolytope(4, lambda chosen: sizes[len(chosen)])
    with pytest.raises(
        checks.BadOracle, match=r"is not submodular: element 2 adds 1\.4 to some elements, but 1 to none"
    ):
        bases.lmo(np.arange(4.0))


@pytest.mark.parametrize(
    "make",
    [
        lambda: user_set(3, 3),
        lambda: user_set(np.sign, 3, project=True),
        lambda: MatroidBasePolytope(3, 3),
        lambda: SubmodularBasePolytope(3, None),
    ],
)
def test_what_is_no_function_is_refused_before_a_run(make: Any) -> None:
    with pytest.raises(TypeError, match="must be a function, but got"):
        make()


def test_an_answer_that_is_not_one_number_is_refused() -> None:
    with pytest.raises(ValueError, match=r"answer of rank must be a number, but got an array of shape \(2,\)"):
        MatroidBasePolytope(3, lambda chosen: np.ones(2))


@pytest.mark.parametrize("bounds", [(0.0, 1.0), ([], [])])
def test_a_box_without_entries_is_refused(bounds: Any) -> None:
    with pytest.raises(ValueError, match="shape of Box"):
        Box(*bounds)
