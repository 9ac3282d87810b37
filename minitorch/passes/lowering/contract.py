"""`contract`: a tensor contraction over named dimensions, which the lowering passes write in place of `dot`.

It is the einsum of two operands. The index space has one dimension for each label, `lengths` long; the result keeps the
first `kept` of them, and the product of the operands is summed over the others. A dimension of an operand is one label,
or several that a reshape has joined.

No user's program has this primitive. It has no gradient, and is in a separate table, `ir.LOWERED`.
"""

from __future__ import annotations

import math
from typing import Any

import numpy as np

from ...dtypes import DType
from ...errors import ShapeError
from ...ir import LOWERED, Node, Primitive, Shape, Spec
from ...primitives.contraction import check_factors, dot

Array = np.ndarray[Any, Any]
Labels = tuple[tuple[int, ...], ...]  # for each dimension of an array, the labels of the space that it joins


def _infer(a: Spec, b: Spec, *, lengths: Shape, kept: int, left: Labels, right: Labels, dtype: DType) -> Spec:
    check_factors("contract", a, b, dtype)
    for spec, labels in ((a, left), (b, right)):
        own = _flat(labels)
        if not set(own) <= set(range(len(lengths))) or len(set(own)) < len(own):
            _refuse(f"the labels {labels} are not labels of {lengths}, each at most once")
        if tuple(math.prod(lengths[label] for label in dim) for dim in labels) != spec.shape:
            _refuse(f"{spec} has other lengths than its labels {labels} of {lengths}")
    one, other = set(_flat(left)), set(_flat(right))
    if not 0 <= kept <= len(lengths) or one | other != set(range(len(lengths))):
        _refuse(f"of {len(lengths)} labels, {kept} are kept and {sorted(one | other)} are used")
    if not set(range(kept, len(lengths))) <= one & other:
        _refuse(f"a label from {kept} on is summed, and has to be one of both operands")
    return Spec(lengths[:kept], dtype)


def _refuse(what: str) -> None:
    raise ShapeError("MT201", f"contract: {what}")


def _flat(labels: Labels) -> list[int]:
    return [label for dim in labels for label in dim]


def _evaluate(a: Array, b: Array, *, lengths: Shape, kept: int, left: Labels, right: Labels, dtype: DType) -> Array:
    """Compute a product of matrices, whose dimensions are joined as in `dot`: batch, rows, columns, sum."""
    one, other = _flat(left), _flat(right)
    summed = [label for label in one if label >= kept]
    batch = [label for label in one if label in other and label < kept]
    rows = [label for label in one if label not in other]
    columns = [label for label in other if label not in one]

    def matrices(array: Array, own: list[int], *groups: list[int]) -> Array:
        order = [own.index(label) for group in groups for label in group]
        apart = array.reshape([lengths[label] for label in own]).transpose(order)
        return apart.reshape([math.prod(lengths[label] for label in group) for group in groups])

    product = dot.evaluate(
        matrices(a, one, batch, rows, summed), matrices(b, other, batch, summed, columns), dtype=dtype
    )
    made = [*batch, *rows, *columns]
    apart = product.reshape([lengths[label] for label in made])
    return np.asarray(apart.transpose([made.index(label) for label in range(kept)]))


contract = LOWERED["contract"] = Primitive(
    "contract",
    "contraction",
    _infer,
    _evaluate,
    reorders=True,
    doc="the sum of left * right over a space of `lengths`, but for the first `kept` dimensions",
)


def space_of(node: Node) -> Shape:
    """Return the lengths of all dimensions that a contraction runs over, those of its result first."""
    if node.primitive is contract:
        lengths: Shape = node.params["lengths"]
        return lengths
    return (*node.shape, node.inputs[0].shape[-1])


def labels_of(node: Node) -> tuple[Labels, Labels]:
    """Return, for both operands of a contraction, the dimensions of the space that each dimension joins."""
    if node.primitive is contract:
        return node.params["left"], node.params["right"]
    last = node.spec.ndim
    batch = [(dim,) for dim in range(last - 2)]
    return (*batch, (last - 2,), (last,)), (*batch, (last,), (last - 1,))
