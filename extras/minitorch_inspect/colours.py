"""The colour table of all pictures and plots: one colour for each kind of operation, value and kernel.

The colours are those of Okabe and Ito (*Color Universal Design*, 2008), which people with any of the common kinds of
colour blindness can tell apart; black text is readable on all fills. Colour is never the only sign: values also have
shapes, and operations and kernels their names.
"""

from __future__ import annotations

import math
from dataclasses import dataclass

ORANGE, SKY, GREEN, YELLOW = "#E69F00", "#56B4E9", "#009E73", "#F0E442"
BLUE, VERMILION, PURPLE, BLACK = "#0072B2", "#D55E00", "#CC79A7", "#000000"
WHITE, GREY = "#FFFFFF", "#D9D9D9"
# Contrast 4.3 with white, and 4.4 with #111111, the dark page of JupyterLab; any other grey has less with one of them.
INK = "#7A7A7A"  # of lines, and of letters that are on no fill


@dataclass(frozen=True, slots=True)
class Family:
    """Primitives of one colour.

    Attributes:
        name: as legends write it.
        kinds: the `Primitive.kind`s that belong to it.
        colour: the fill of its operations.
        doc: the common property of its operations.
    """

    name: str
    kinds: tuple[str, ...]
    colour: str
    doc: str


@dataclass(frozen=True, slots=True)
class Role:
    """The role of a value that no operation computes, or of a result.

    Attributes:
        name: as legends write it.
        shape: of its outline, as Graphviz names it; no two roles share one, and operations are rectangles.
        colour: its fill.
        doc: what it is.
    """

    name: str
    shape: str
    colour: str
    doc: str


POINTWISE = Family("pointwise", ("unary", "binary", "ternary"), SKY, "elementwise functions")
REDUCTION = Family(
    "reduction", ("reduction", "argreduction", "scan"), ORANGE, "many elements become fewer, or a prefix"
)
CONTRACTION = Family(
    "contraction", ("contraction", "decomposition"), VERMILION, "sums of products, and factors of matrices"
)
MOVEMENT = Family("movement", ("movement",), YELLOW, "elements go elsewhere, none is computed")
INDEXING = Family("indexing", ("indexing", "sort"), GREEN, "places are looked up in data")
SOURCE = Family("source", ("source", "random"), PURPLE, "made from nothing: ranges, random bits")
OTHER = Family("other", (), GREY, "a step that is not a primitive, or several primitives")

FAMILIES = (POINTWISE, REDUCTION, CONTRACTION, MOVEMENT, INDEXING, SOURCE, OTHER)

INPUT = Role("input", "ellipse", WHITE, "given at every call")
PARAMETER = Role(
    "parameter", "cylinder", WHITE, "state that outlives the call: weights, optimiser state, captured tensors"
)
CONSTANT = Role("constant", "note", WHITE, "part of the program")
OUTPUT = Role("output", "octagon", WHITE, "what the program returns")
UPDATE = Role("update", "parallelogram", WHITE, "a new value that is written back into a parameter")

ROLES = (INPUT, PARAMETER, CONSTANT, OUTPUT, UPDATE)


@dataclass(frozen=True, slots=True)
class Error:
    """A class of errors.

    Attributes:
        name: as legends write it.
        least: the signal-to-noise ratio from which on it holds, in decibels.
        colour: the fill.
        doc: the noise beside the signal.
    """

    name: str
    least: float
    colour: str
    doc: str


# From the least error to the largest.
ERRORS = (
    Error("40 dB and more", 40.0, GREEN, "the noise is at most 1 % of the signal"),
    Error("30 to 40 dB", 30.0, SKY, "at most 3 %"),
    Error("20 to 30 dB", 20.0, YELLOW, "at most 10 %"),
    Error("below 20 dB", -math.inf, VERMILION, "more than that"),
)

# The classes of kernels, by `Kernel.kind`: name and colour.
KERNELS: dict[str, tuple[str, str]] = {
    "K1": ("pointwise", POINTWISE.colour),
    "K2": ("reduction", REDUCTION.colour),
    "K3": ("row-resident", GREEN),
    "K4": ("contraction", CONTRACTION.colour),
    "K5": ("side by side", PURPLE),
    "call": ("library call", GREY),
}

_BY_KIND = {kind: family for family in FAMILIES for kind in family.kinds}


def family_of(kind: str) -> Family:
    """The family of a kind of primitive.

    Example:
        >>> family_of("unary").name, family_of("argreduction").colour, family_of("unheard of").name
        ('pointwise', '#E69F00', 'other')
    """
    return _BY_KIND.get(kind, OTHER)
