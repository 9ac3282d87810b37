"""Rewrites: the small steps that a schedule is made of, each with the law that makes it legal.

A rewrite takes a procedure and gives another one that computes the same numbers, but for the order in which a sum takes
its terms. The names are those of the field: split, reorder, unroll and vectorise as in Halide (Ragan-Kelley et al.,
2013), stage in a buffer as in TVM (`cache_read`) and Exo (`stage_mem`), distribute (loop fission) and jam (loop fusion)
as in Allen and Kennedy, "Optimizing Compilers for Modern Architectures" (2001).

A loop is named by its variable. Where one loop was distributed over several statements, its parts keep the name, and a
rewrite applies to all of them that it can be meant for.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ....packages import names_from

if TYPE_CHECKING:
    from ..prepacking import prepack as prepack
    from ..rewrite import Rewrite as Rewrite
    from ..rewrite import refused as refused
    from ..rewrite import step as step
    from .arrays import in_registers as in_registers
    from .arrays import lift as lift
    from .arrays import overcompute as overcompute
    from .arrays import place as place
    from .gathering import gather as gather
    from .grouping import group as group
    from .grouping import pad_sum as pad_sum
    from .grouping import regroup as regroup
    from .loops import distribute as distribute
    from .loops import fuse as fuse
    from .loops import jam as jam
    from .loops import outline as outline
    from .loops import parallelise as parallelise
    from .loops import reorder as reorder
    from .loops import split as split
    from .loops import unroll as unroll
    from .loops import unswitch as unswitch
    from .loops import vectorise as vectorise
    from .memory import align as align
    from .memory import prefetch as prefetch
    from .memory import stream as stream
    from .one_pass import online as online
    from .packing import overlay as overlay
    from .packing import pack as pack
    from .redundancy import factor_out as factor_out
    from .redundancy import hoist as hoist
    from .redundancy import reuse as reuse
    from .skipping import skip as skip
    from .staging import specialise as specialise
    from .staging import stage as stage
    from .vectors import partition as partition
    from .vectors import sink as sink
    from .vectors import split_reduction as split_reduction

_HOMES = {
    "arrays": "in_registers lift overcompute place",
    "gathering": "gather",
    "grouping": "group pad_sum regroup",
    "loops": "distribute fuse jam outline parallelise reorder split unroll unswitch vectorise",
    "memory": "align prefetch stream",
    "one_pass": "online",
    "packing": "overlay pack",
    "redundancy": "factor_out hoist reuse",
    "skipping": "skip",
    "staging": "specialise stage",
    "vectors": "partition sink split_reduction",
}  # of each file, the rewrites; it is loaded for the first of them

if not TYPE_CHECKING:
    _PLACES = {name: f"{__name__}.{home}" for home, names in _HOMES.items() for name in names.split()}
    _PLACES["prepack"] = f"{__name__[: -len('.rewrites')]}.prepacking"
    _PLACES |= dict.fromkeys(("Rewrite", "refused", "step"), f"{__name__[: -len('s')]}")
    __getattr__, __dir__ = names_from(__name__, _PLACES)
