"""Drivers of exercise 17: calls with arrays, a text place by place, and a program written down as a graph.

The operations on matrices below are what the student has for `cheaper`. The answer is the text of the graph; the judge
runs it and counts its bytes.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import chain
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.graph import Graph, apply, input_node, literal
from minitorch.ir import Node, Shape, Spec

from .driver import Driver, call_purely, within
from .needs import Needs
from .plain import described, plain

NEEDS = Needs(engine=("graph",))

# --- what the notebook works with, too --------------------------------------------------------------------------


class Matrix:
    """A matrix of a program, of which the shape is known, and no number."""

    def __init__(self, node: Node) -> None:
        self.node = node

    @property
    def shape(self) -> Shape:
        """Rows and columns."""
        return self.node.shape

    @property
    def T(self) -> Matrix:  # noqa: N802  as NumPy calls it
        """The transposed matrix."""
        return Matrix(apply(P.permute, self.node, dims=(1, 0)))

    def __matmul__(self, other: object) -> Matrix:
        if not isinstance(other, Matrix):
            raise TypeError(f"the right operand of @ is a matrix of the program, and it is a {type(other).__name__}")
        if self.shape[1] != other.shape[0]:
            raise ValueError(f"{list(self.shape)} @ {list(other.shape)}: the inner lengths differ")
        return Matrix(apply(P.dot, self.node, other.node, dtype=float32))

    def __mul__(self, number: object) -> Matrix:
        if not isinstance(number, (int, float)):
            raise TypeError(f"a matrix is multiplied by a number here, and it is a {type(number).__name__}")
        return Matrix(apply(P.mul, self.node, literal(float(number), Spec(self.shape, float32))))

    __rmul__ = __mul__


def columns(matrix: Matrix, begin: int, end: int) -> Matrix:
    """The columns from `begin` up to `end`, which is not among them."""
    rows, width = matrix.shape
    if not 0 <= begin < end <= width:
        raise ValueError(f"columns {begin} to {end} of a matrix that has {width}")
    return Matrix(apply(P.slice_, matrix.node, start=(0, begin), stop=(rows, end), step=(1, 1)))


def joined(matrices: Sequence[Matrix]) -> Matrix:
    """Matrices with equally many rows, side by side."""
    return Matrix(apply(P.concatenate, *[each.node for each in matrices], dim=1))


def program_of(function: Any, rows: int, width: int, heads: int, size: int) -> Graph:
    """The graph that a function of an input and three lists of weights writes down.

    Raises:
        TypeError: if it returns no matrix of the program.
    """
    x = input_node("x", Spec((rows, width), float32))
    weights = [
        [input_node(f"{name}{head}", Spec((width, size), float32)) for head in range(heads)]
        for name in ("query", "key", "value")
    ]
    found = function(Matrix(x), *[[Matrix(each) for each in nodes] for nodes in weights])
    if not isinstance(found, Matrix):
        raise TypeError(f"a matrix of the program has to be returned, and it is {described(plain(found))}")
    return Graph((x, *chain(*weights)), (found.node,))


# --- the tasks --------------------------------------------------------------------------------------------------


def _places(function: Any, queries: Any, keys: Any, values: Any, old_keys: Any, old_values: Any) -> Any:
    """A text, place by place; each call gets the cache that the one before returned."""
    mixed = []
    for place in range(len(queries)):
        answer = function(queries[place], keys[place], values[place], old_keys, old_values, place)
        if type(answer) is not tuple or len(answer) != 3:
            return answer
        one, old_keys, old_values = answer
        mixed.append(one)
    return mixed, old_keys, old_values


def _each(function: Any, texts: list[Any], context: int) -> list[Any]:
    """The arguments for each text; a number of NumPy's is a number."""
    found = [function(text, context) for text in texts]
    return [
        tuple(each.item() if isinstance(each, np.generic) else each for each in answer)
        if type(answer) is tuple
        else answer
        for answer in found
    ]


def _text(function: Any, *sizes: int) -> str:
    return str(program_of(function, *sizes))


mask = Driver("transformer.mask", call_purely, NEEDS)
cached_step = Driver("transformer.cached_step", within(_places), NEEDS)
call_arguments = Driver("transformer.call_arguments", within(_each), NEEDS)
cheaper = Driver("transformer.cheaper", within(_text), NEEDS)
