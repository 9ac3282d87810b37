"""The classes of fusion, by name, each of which can be switched off: to see what it is worth (``f.ablate``)."""

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
    RECOMPUTING: "cheap values are computed where they are read, instead of being stored",
    ROWS: "what runs over the same rows shares a kernel",
    SIBLINGS: "reductions of the same rows and columns read them in one pass",
    EPILOGUES: "what follows a matrix product is done where its tiles are finished",
    SPLITTING: "long reductions are cut into parts that run at the same time",
    SIDE_BY_SIDE: "kernels that do not need each other are one",
    TRANSIENT: "products that only rows of another product need are never stored (attention)",
    PHASES: "small kernels are done at the end of the one before",
}

ALL_ON: Set[str] = frozenset()  # nothing is switched off
