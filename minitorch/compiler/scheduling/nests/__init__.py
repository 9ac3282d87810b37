"""From groups of roots to loop nests: `build`, `split` long reductions, and `unroll` short ones."""

from __future__ import annotations

from ....ir import Primitive, Spec


def _in_no_graph() -> Spec:
    raise TypeError("partial results are made inside kernels")


# The primitive of a kernel's partial results, which are in memory for the time of a call, and in no graph.
PARTIAL = Primitive("partial", "partial", _in_no_graph, lambda: None, doc="partial results of a reduction")
