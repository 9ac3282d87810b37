"""Stochastic arithmetic (Vignes, 1993): how far rounding alone can move the results of a graph.

Compiled code sums in another order than eager mode, and has other polynomials for exp and the like, so its last digits
differ. The effect on results depends on the program: after a cancellation nothing may be left of the first digits. So
the graph is run again with *noise* where the two may differ, and results may differ by a multiple of its effect.
Arithmetic, movements and comparisons have the same bits in every mode; 16-bit floats are rounded from a noisy float32
number, so most of them do not move at all.

A *decision* (a comparison, floor, argmax, a conversion to integers) turns a tiny difference into a jump. In the samples
it has eager mode's outcome, so a jump is no noise. Only if results are still too far apart, the decisions that noise
can turn are turned, and named. A pole and the edge of a function's domain are decisions, too: noise makes NaN or
infinity of a number there.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from minitorch.ir import Node

from .difference import ulps
from .sampling import Decision, Sampler, times

Array = np.ndarray[Any, Any]

# Samples at most, and of those that turn decisions; most differences are accounted for by the first. Raising them makes
# false alarms rarer: noise moves one element in one direction in every fourth, if its last place is all that it has.
SAMPLES, TURNED_SAMPLES = 24, 48


@dataclass(frozen=True)
class Judgement:
    """The verdict on some results.

    Attributes:
        beyond: results that rounding cannot account for, by position.
        decisions: the decisions that account for larger differences.
    """

    beyond: tuple[int, ...] = ()
    decisions: tuple[Decision, ...] = ()


class Excess:
    """The differing elements of a result that samples of the noise have not accounted for."""

    def __init__(self, expected: Array, found: Array) -> None:
        self._wrong = ulps(expected, found) > 0
        self._expected = expected[self._wrong].astype(np.float64)
        self._apart = _apart(self._expected, found[self._wrong].astype(np.float64))
        self._allowed = np.zeros_like(self._apart)

    def __bool__(self) -> bool:
        """Whether there are any."""
        return bool((self._apart > self._allowed).any())

    def add(self, sample: Array, times: int) -> None:
        """Take a sample of the result into account, with the permitted multiple of its distance."""
        moved = sample[self._wrong].astype(np.float64)
        self._allowed = np.maximum(self._allowed, times * _apart(self._expected, moved))


def _apart(a: Array, b: Array) -> Array:
    """The absolute difference; infinite where one value is not finite and the other differs."""
    same = (a == b) | (np.isnan(a) & np.isnan(b))
    with np.errstate(all="ignore"):
        distance = np.abs(a - b)
    return np.where(same, 0.0, np.where(np.isfinite(distance), distance, np.inf))


def judge(
    nodes: Sequence[Node],
    known: Mapping[Node, Array],
    wanted: Sequence[Node],
    found: Sequence[Array],
    keeps_bits: bool = True,
) -> Judgement:
    """Whether results are those of eager mode on the known values, up to rounding.

    Args:
        nodes: from the known values to the wanted ones, in program order.
        keeps_bits: whether arithmetic is rounded as in eager mode.
    """
    sampler = Sampler(nodes, known, keeps_bits)
    excess = {place: Excess(sampler.right[node], found[place]) for place, node in enumerate(wanted)}

    def remaining(decides: bool) -> list[int]:
        places = [place for place, each in excess.items() if each]
        for number in range(TURNED_SAMPLES if decides else SAMPLES):
            if not places:
                break
            sample = sampler.sample(number, [wanted[place] for place in places], decides)
            for place in places:
                excess[place].add(sample[wanted[place]], times(number))
            places = [place for place in places if excess[place]]
        return places

    jumped = remaining(decides=False)
    beyond = remaining(decides=True) if sampler.turned else jumped
    turned = [wanted[place] for place in jumped if place not in beyond]
    return Judgement(tuple(beyond), tuple(sampler.decisions(turned)))
