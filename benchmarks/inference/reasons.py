"""Why a bound may be missed, where that can be counted: sentences that stand under the case that misses it."""

from __future__ import annotations

import math
from collections.abc import Callable
from dataclasses import dataclass

from ..cases import Case
from ..libraries import HEADS
from .models import BLOCK, Model

# Times the products of float32 that fit into a second in registers, by `benchmarks.peaks`: one instruction makes four
# products where one made one (VNNI), or three make 32 where two of them would make 16 (AVX2).
OF_FLOAT32 = {"vnni": 4.0, "avx2": 2.0}


@dataclass(frozen=True)
class Reason:
    """Why one kind of bound may be missed by one kind of model.

    Attributes:
        model: whose cases it is about.
        bound: a part of the bound's text.
        text: the sentence, of a case and of the times that a target's products of bytes are as fast as float32's.
    """

    model: Model
    bound: str
    text: Callable[[Case, float], str]


def block_products(case: Case) -> tuple[int, int]:
    """Multiply-adds of a transformer block: those with weights, and those of attention."""
    batch, length, width = case.shape
    linear = batch * length * width * (3 * width + width + 4 * width + 4 * width)
    return linear, 2 * batch * HEADS * length * length * (width // HEADS)


def at_most(fast: float, slow: float, times: float) -> float:
    """How many times as fast the whole is if a part is so many times as fast: Amdahl's law (AFIPS, 1967)."""
    return (fast + slow) / (fast / times + slow)


def _attention(case: Case, times: float) -> str:
    linear, attention = block_products(case)
    most = math.floor(100 * at_most(linear, attention, times)) / 100
    return (
        f"attention's {attention / 1e6:.1f} of {(linear + attention) / 1e6:.1f} million multiply-adds stay in float32, "
        f"as in the others' models: with the rest {times:g} times as fast the block is at most {most:.2f} times as "
        "fast, before softmax, norms and GELU, which stay too"
    )


TABLE = (Reason(BLOCK, "x our float32 where arithmetic bounds", _attention),)


def reasons(target: str, bound: str, case: Case) -> list[str]:
    """What is counted about a bound, by its text, that a case misses on a target."""
    times = OF_FLOAT32.get(target)
    rows = [row for row in TABLE if row.model is case.program and row.bound in bound] if times else []
    return [row.text(case, times) for row in rows if times]
