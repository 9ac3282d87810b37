"""The modes: `Session`, `jit` and `lazy` record a program into a graph; guards decide when it may be used again."""

from .ways_in.definition import Graph, Operation, placeholder
from .ways_in.jit import Jitted, jit
from .ways_in.lazy import lazy
from .ways_in.session import Session

__all__ = ["Graph", "Jitted", "Operation", "Session", "jit", "lazy", "placeholder"]
