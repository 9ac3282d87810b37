"""The ways in: `Session`, `jit` and `lazy`. Each records a program into the same kind of graph."""

from .definition import Graph, Operation, placeholder
from .jit import Jitted, jit
from .lazy import lazy
from .session import Session

__all__ = ["Graph", "Jitted", "Operation", "Session", "jit", "lazy", "placeholder"]
