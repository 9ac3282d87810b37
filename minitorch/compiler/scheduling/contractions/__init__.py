"""Contractions: which nests are products of matrices or attention, and into which tiles these are cut.

The modules that know are loaded for the first nest that may be one.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

from ...loop_ir.loops import Nest

if TYPE_CHECKING:
    from .attention import Attention
    from .gemm import Contraction


def product_of(nest: Nest, constants: frozenset[int] = frozenset()) -> Contraction | None:
    """Return the matrix product that a nest computes; None if it is none, or tiling does not pay."""
    if nest.total is None:
        return None
    from .gemm import recognise

    return recognise(nest, constants)


def attention_of(nest: Nest) -> Attention | None:
    """Return the parts of a nest with contractions that are not stored; None if it has none, or another form."""
    if not nest.has_sums:
        return None
    from .attention import recognise

    found = recognise(nest)
    return None if isinstance(found, str) else found
