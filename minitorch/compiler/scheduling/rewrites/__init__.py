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
    from ..prepacking import prepack
    from ..rewrite import Rewrite, refused, step
    from .arrays import in_registers, lift, overcompute, place
    from .gathering import gather
    from .grouping import group, pad_sum, regroup
    from .loops import distribute, fuse, jam, outline, parallelise, reorder, split, unroll, unswitch, vectorise
    from .memory import align, prefetch, stream
    from .one_pass import online
    from .packing import overlay, pack, transpose
    from .redundancy import factor_out, hoist, reuse
    from .skipping import skip
    from .staging import specialise, stage
    from .vectors import partition, sink, split_reduction

_HOMES = {
    "arrays": "in_registers lift overcompute place",
    "gathering": "gather",
    "grouping": "group pad_sum regroup",
    "loops": "distribute fuse jam outline parallelise reorder split unroll unswitch vectorise",
    "memory": "align prefetch stream",
    "one_pass": "online",
    "packing": "overlay pack transpose",
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

__all__ = [
    "Rewrite",
    "align",
    "distribute",
    "factor_out",
    "fuse",
    "gather",
    "group",
    "hoist",
    "in_registers",
    "jam",
    "lift",
    "online",
    "outline",
    "overcompute",
    "overlay",
    "pack",
    "pad_sum",
    "parallelise",
    "partition",
    "place",
    "prefetch",
    "prepack",
    "refused",
    "regroup",
    "reorder",
    "reuse",
    "sink",
    "skip",
    "specialise",
    "split",
    "split_reduction",
    "stage",
    "step",
    "stream",
    "transpose",
    "unroll",
    "unswitch",
    "vectorise",
]
