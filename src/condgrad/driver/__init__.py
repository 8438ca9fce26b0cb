"""The loop and all around it: minimize, run, iterate, stopping rules, counts, trace, metrics."""

from condgrad.driver.answer import SmoothnessWarning
from condgrad.driver.metrics import mapping, value, wolfe_gap
from condgrad.driver.minimize import minimize
from condgrad.driver.result import Result
from condgrad.driver.run import iterate, run
from condgrad.driver.stopping import Calls, CpuSeconds, Gap, Mapping, Seconds, Stagnation, Steps
from condgrad.driver.trace import Trace

__all__ = [
    "Calls",
    "CpuSeconds",
    "Gap",
    "Mapping",
    "Result",
    "Seconds",
    "SmoothnessWarning",
    "Stagnation",
    "Steps",
    "Trace",
    "iterate",
    "mapping",
    "minimize",
    "run",
    "value",
    "wolfe_gap",
]
