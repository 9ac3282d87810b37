"""Drivers of exercise 15: listings are texts, programs rows, calls dictionaries; all is plain data."""

from __future__ import annotations

from .driver import Driver, call_purely
from .needs import Needs

NEEDS = Needs(engine=("graph",))

language, partners, kernels, retraces = (
    Driver(f"compilers.{name}", call_purely, NEEDS) for name in ("language", "partners", "kernels", "retraces")
)

# --- what the notebook works with, too --------------------------------------------------------------------------

SAME = {
    "add": "add",
    "sub": "subtract",
    "mul": "multiply",
    "div": "divide",
    "neg": "negate",
    "exp": "exponential",
    "tanh": "tanh",
}  # our names of operations, and StableHLO's
