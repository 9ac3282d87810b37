"""`golf`: a program to rewrite, so that it computes the same and moves fewer bytes.

A compiler keeps every bit, so it may not use what is only true of real numbers, such as that a variance can be computed
in one pass. Who writes the program may. As in the game, fewer is better: bytes first, then kernels. Both are counted
from the attempt's own graph, on the machine at hand. An attempt has to give the same numbers, up to rounding, on
inputs that it has not seen.
"""

from __future__ import annotations

import inspect
import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

from minitorch.graph.cost import in_units
from minitorch.modes.ways_in.jit import jit

from .blanking import different
from .holes import HOLES

# The share of the largest number by which an attempt's numbers may differ. Raising it forgives cancellation.
CLOSE = 1e-3


# The target whose kernels are counted: how a sum over everything is cut, for instance, is another on another one.
TARGET = "avx2"


@dataclass(frozen=True, order=True)
class Score:
    """What a program costs; the smaller one is better.

    Attributes:
        bytes: read and written by its kernels, to a tenth of a megabyte: a thousand numbers are no stroke.
        kernels: how many these are.
    """

    bytes: int
    kernels: int

    def __str__(self) -> str:
        return f"{in_units(self.bytes, 'B')}, {self.kernels} kernel{'s' * (self.kernels != 1)}"


class Golf:
    """A program to rewrite; `play` counts an attempt.

    Attributes:
        name: of the hole.
        given: the function to rewrite.
        arguments: that it is counted with.
        start: the score of the given function.
    """

    def __init__(self, name: str) -> None:
        if name not in HOLES:
            raise ValueError(f"there is no hole {name!r}; there is {', '.join(map(repr, HOLES))}")
        self.name, self._hole = name, HOLES[name]
        self.given = self._hole.given
        self.arguments = self._hole.arguments(0)
        self.start = counted(self.given, self.arguments)

    def best(self) -> Score:
        """The best score that is known, counted now."""
        return counted(self._hole.best, self.arguments)

    def __repr__(self) -> str:
        names = inspect.signature(self.given).parameters
        sizes = ", ".join(f"{name} {each.spec}" for name, each in zip(names, self.arguments, strict=True))
        source = re.sub(": Any| -> Any", "", inspect.getsource(self.given).strip())
        return f"{source}\n\ngiven, for {sizes}: {self.start}"

    def play(self, attempt: Callable[..., Any]) -> Score | None:
        """Count an attempt, and print its score; None if it computes something else.

        The best known score is printed once an attempt costs something else than the given program.

        Args:
            attempt: a function of the same arguments.

        Example:
            >>> hole = golf("variance")
            >>> _ = hole.play(lambda x: (x - x.mean()).square().mean())
            yours: 16.8 MB, 2 kernels. That is what the given program costs: rewrite it, and run the cell again.
        """
        for seed in range(self._hole.tries):
            reason = differs(attempt, self.given, self._hole.arguments(seed))
            if reason:
                print(f"no score: {reason}")
                return None
        score = counted(attempt, self.arguments)
        if score == self.start:
            print(f"yours: {score}. That is what the given program costs: rewrite it, and run the cell again.")
            return score
        best = self.best()
        said = "You found it." if score == best else "You have beaten it!" if score < best else ""
        print(f"given: {self.start}\nyours: {score}\nbest known: {best}. {said}".rstrip())
        return score


def counted(function: Callable[..., Any], arguments: tuple[Any, ...]) -> Score:
    """What a function costs when it is compiled, for one target everywhere: the same on all machines of a class.

    Example:
        >>> import minitorch as mt
        >>> print(counted(lambda x: (x * 2 + 1).exp(), (mt.ones(1000, 1000),)))
        8 MB, 1 kernel
    """
    ledger = jit(function).ledger(*arguments).for_target(TARGET)
    return Score(round(sum(each.bytes_read + each.bytes_written for each in ledger.kernels), -5), len(ledger.kernels))


def differs(attempt: Callable[..., Any], given: Callable[..., Any], arguments: tuple[Any, ...]) -> str:
    """How two functions differ on some arguments; empty if they do not, but by rounding.

    Example:
        >>> import minitorch as mt
        >>> differs(lambda x: x.sum(), lambda x: x.sum(0), (mt.ones(2, 3),))
        'the result has the shape [] and should have [3], for numbers from 1 to 1'
    """
    reason = different(jit(attempt)(*arguments), jit(given)(*arguments), CLOSE)
    inputs = ", ".join(f"{each.numpy().min():.3g} to {each.numpy().max():.3g}" for each in arguments)
    return reason and f"{reason}, for numbers from {inputs}"


def golf(name: str) -> Golf:
    '''A program to rewrite, so that it moves the fewest bytes; show it, then `play` attempts.

    Args:
        name: a key of `minitorch.course.holes.HOLES`.

    Raises:
        ValueError: if there is no such hole; the message lists those that there are.

    Example:
        >>> golf("softmax")
        def softmax_columns(x):
            """A softmax of the rows, and the sum of each column."""
            return x.softmax(1).sum(0)
        <BLANKLINE>
        given, for x f32[2048,1024]: 25.2 MB, 2 kernels
    '''
    return Golf(name)
