"""Profiling: the peak rates of a machine (`machine`), and the time, bytes and FLOPs of a program (`profile`).

Times are measured; bytes and FLOPs are counted from shapes and loops (`minitorch.graph.cost`,
`minitorch.compiler.scheduling.count`), so the sum over the kernels of one call is ``f.cost``. A recorder is an observer
like any other: a program that nobody profiles pays nothing, and a profiled one runs the same kernels, one by one.
"""

from .machines import Machine, machine
from .profile import Profile, profile
from .rows import Row

__all__ = ["Machine", "Profile", "Row", "machine", "profile"]
