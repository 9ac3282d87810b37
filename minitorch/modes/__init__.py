"""The modes: `Session`, `jit`, `freeze` and `lazy` record a program into a graph; guards, shadow mode, debugging."""

from .ways_in.definition import Graph, Operation, placeholder
from .ways_in.frozen import Frozen, freeze
from .ways_in.frozen_graph import load_frozen
from .ways_in.jit import Jitted, jit
from .ways_in.lazy import lazy
from .ways_in.session import Session

__all__ = ["Frozen", "Graph", "Jitted", "Operation", "Session", "freeze", "jit", "lazy", "load_frozen", "placeholder"]
