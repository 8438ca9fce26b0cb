"""Contract checks of sets, objectives, losses, methods and inner solvers, the library's and your own. Each returns a report."""

from condgrad.testing.inner_solvers import check_inner
from condgrad.testing.losses import check_loss
from condgrad.testing.methods import check_method
from condgrad.testing.objectives import check_objective
from condgrad.testing.report import CheckReport, ContractError, Finding
from condgrad.testing.sets import check_domain

__all__ = [
    "CheckReport",
    "ContractError",
    "Finding",
    "check_domain",
    "check_inner",
    "check_loss",
    "check_method",
    "check_objective",
]
