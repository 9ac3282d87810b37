"""Loops and branches over tensors, which a recording keeps: `scan`, `fori_loop`, `while_loop` and `cond`."""

from .control_flow import cond, fori_loop, scan, while_loop

__all__ = ["cond", "fori_loop", "scan", "while_loop"]
