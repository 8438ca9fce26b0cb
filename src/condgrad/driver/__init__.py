"""The driver: runs a method on a problem, with stopping rules, oracle counts, a trace, checks of the answers and checkpoints.

Every method runs in the same loop (`run.Loop`).
"""

from condgrad.driver.audit import SmoothnessWarning
from condgrad.driver.checkpoint import Checkpoint, CheckpointWarning
from condgrad.driver.chooser import Auto, Choice
from condgrad.driver.constrained import ConstrainedResult, minimize_constrained
from condgrad.driver.gradient_check import GradientCheck, check_gradient
from condgrad.driver.metrics import mapping, value, wolfe_gap
from condgrad.driver.minimize import minimize
from condgrad.driver.result import Result
from condgrad.driver.run import iterate, run
from condgrad.driver.session import Session
from condgrad.driver.smoothness_estimate import SmoothnessEstimate, estimate_smoothness
from condgrad.driver.stopping import Calls, CpuSeconds, Gap, Mapping, Memory, Seconds, Stagnation, Steps
from condgrad.driver.trace import Trace

__all__ = [
    "Auto",
    "Calls",
    "Checkpoint",
    "CheckpointWarning",
    "Choice",
    "ConstrainedResult",
    "CpuSeconds",
    "Gap",
    "GradientCheck",
    "Mapping",
    "Memory",
    "Result",
    "Seconds",
    "Session",
    "SmoothnessEstimate",
    "SmoothnessWarning",
    "Stagnation",
    "Steps",
    "Trace",
    "check_gradient",
    "estimate_smoothness",
    "iterate",
    "mapping",
    "minimize",
    "minimize_constrained",
    "run",
    "value",
    "wolfe_gap",
]
