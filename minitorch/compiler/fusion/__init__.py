"""Fusion: the values that are stored (roots), the roots that share a kernel, and the reasons against it.

Here are the classes of fusion, each of which can be switched off (``f.ablate``).
"""

from __future__ import annotations

from collections.abc import Set

RECOMPUTING = "recomputing"
ROWS = "shared rows"
SIBLINGS = "sibling sums"
EPILOGUES = "epilogues"
SPLITTING = "splitting"
SIDE_BY_SIDE = "side by side"
PHASES = "phases"
TRANSIENT = "transient products"

FUSIONS: dict[str, str] = {
    RECOMPUTING: "cheap values are recomputed where they are read, and not stored",
    ROWS: "operations over the same rows share a kernel",
    SIBLINGS: "reductions of the same rows and columns read them in one pass",
    EPILOGUES: "the epilogue of a matrix product is computed on each complete tile",
    SPLITTING: "long reductions are split into parts that run in parallel",
    SIDE_BY_SIDE: "independent kernels become one",
    TRANSIENT: "matrix products that are reduced at once are never stored (attention)",
    PHASES: "small kernels become later phases of the kernel before",
}

ALL_ON: Set[str] = frozenset()  # nothing is switched off
