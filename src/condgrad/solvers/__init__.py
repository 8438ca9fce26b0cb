"""The optimisation methods, one file each, and their registry."""

from condgrad.solvers.accelerated_gradient import AcceleratedGradient
from condgrad.solvers.away_step import AwayStep
from condgrad.solvers.blended_pairwise import BlendedPairwise
from condgrad.solvers.boosted_frank_wolfe import BoostedFrankWolfe
from condgrad.solvers.cgs import CGS
from condgrad.solvers.dca_frank_wolfe import DCAFrankWolfe
from condgrad.solvers.frank_wolfe import FrankWolfe
from condgrad.solvers.fully_corrective import FullyCorrective
from condgrad.solvers.lazy_frank_wolfe import LazyFrankWolfe
from condgrad.solvers.momentum_ncgs import MomentumNCGS
from condgrad.solvers.ncgs import NCGS
from condgrad.solvers.ncgs_ii import NCGSII
from condgrad.solvers.ncgs_vr import NCGSVR
from condgrad.solvers.pairwise import Pairwise
from condgrad.solvers.parameter_free_frank_wolfe import ParameterFreeFrankWolfe
from condgrad.solvers.polish import Polished, PolishSettings
from condgrad.solvers.projected_gradient import ProjectedGradient
from condgrad.solvers.registry import METHODS, Cost, Method, Option, build
from condgrad.solvers.schedules import Schedule, Setup, practical, theory
from condgrad.solvers.smoothness import Backtracking
from condgrad.solvers.step_rules import (
    RULES,
    Adaptive,
    Bounded,
    Direction,
    GoldenSection,
    InverseSqrt,
    LineSearch,
    Monotone,
    OpenLoop,
    Secant,
    Short,
    StepRule,
)
from condgrad.solvers.stochastic_frank_wolfe import StochasticFrankWolfe
from condgrad.solvers.stochastic_ncgs import StochasticNCGS
from condgrad.solvers.warm_start import WarmStart

__all__ = [
    "CGS",
    "METHODS",
    "NCGS",
    "NCGSII",
    "NCGSVR",
    "RULES",
    "AcceleratedGradient",
    "Adaptive",
    "AwayStep",
    "Backtracking",
    "BlendedPairwise",
    "BoostedFrankWolfe",
    "Bounded",
    "Cost",
    "DCAFrankWolfe",
    "Direction",
    "FrankWolfe",
    "FullyCorrective",
    "GoldenSection",
    "InverseSqrt",
    "LazyFrankWolfe",
    "LineSearch",
    "Method",
    "MomentumNCGS",
    "Monotone",
    "OpenLoop",
    "Option",
    "Pairwise",
    "ParameterFreeFrankWolfe",
    "PolishSettings",
    "Polished",
    "ProjectedGradient",
    "Schedule",
    "Secant",
    "Setup",
    "Short",
    "StepRule",
    "StochasticFrankWolfe",
    "StochasticNCGS",
    "WarmStart",
    "build",
    "practical",
    "theory",
]
