"""Autocast as a pass: the contractions of a float32 graph in a 16-bit type.

A graph has primitives, and no functions such as `linear` or `softmax`, whose list `minitorch.autocast` has. So the pass
goes by what is computed:

    contraction (`dot`)              its operands are cast, its result is in the lower type
    contraction of integers          in float32: of two dequantised operands, or of a weight in 8 or 4 bits
    bias after it (`expand`, `add`)  in the lower type, as it is within `linear` and convolutions
    movement, selection              in the type of the operand: they round nothing
    sum of two lower values          in the lower type, as promotion has it
    multiple of a lower value        in the lower type, if only contractions read it (a scale of queries)
    attention                        its operands and its result are rounded, all between is in float32
    all others                       in float32, to which operands are cast back

Results keep their types, so a graph can be exchanged for its autocast form. The numbers are those of
`minitorch.autocast` where both apply: a value that a listed function rounds, and that is only moved, selected from or
multiplied later, is rounded here where the next contraction reads it. They differ in the last places of the lower type:

- where eager mode rounds what no contraction reads: an elementwise function of a lower value on its way to a
  residual, a result or a loss stays in float32 here;
- behind a quantised layer whose input is in the lower type, of whose result eager mode makes that type again;
- in gradients, of which eager mode sums those of biases in the lower type;
- for ``x @ w + b`` written out, of which eager mode adds b in float32, and for the bias of a single vector, which looks
  like a residual.

But for ``x @ w + b``, this form is the more exact one.

Contractions of integers stay as they are because the layers of `minitorch.quantization` switch autocast off inside:
their integers are the lower precision already, and passes make products of 8-bit integers of them, or decode a weight
as it is read. In a graph these are contractions whose operands both are bytes up to scales, or of which one is, with
scales of its own along an axis. A picture in bytes, times one number, is data, and is cast.
"""

from __future__ import annotations

import math
from collections.abc import Mapping

import numpy as np

from minitorch import primitives as P
from minitorch.dtypes import DType, as_dtype, bfloat16, float16, float32
from minitorch.errors import DTypeError
from minitorch.graph.build import apply, with_inputs
from minitorch.graph.graph import Graph
from minitorch.graph.values import is_splat
from minitorch.ir import INPUT, POINTWISE, Node, Primitive
from minitorch.passes.eight_bits import BYTES
from minitorch.passes.pipeline import Pass

from .attention import attentions

MOVEMENTS = frozenset((P.reshape, P.permute, P.expand, P.slice_, P.pad, P.flip, P.unfold, P.diagonal, P.barrier))
SELECTIONS = frozenset((P.where, P.maximum, P.reduce_max, P.neg, P.absolute))


def _moves(primitive: Primitive) -> bool:
    return primitive in MOVEMENTS or primitive.is_identity


def autocast(dtype: DType = bfloat16) -> Pass:
    """The pass that computes contractions in bfloat16 or float16. Put it before the others.

    Args:
        dtype: the lower type.

    Raises:
        DTypeError: for another type (``MT202``).

    Example:
        >>> import minitorch as mt
        >>> graph = mt.Graph.parse('''
        ... graph(x: f32[2,3], w: f32[3,4], b: f32[4]):
        ...   %0 = dot(x, w, dtype=f32)
        ...   %1 = expand(b, shape=[2,4])
        ...   %2 = add(%0, %1)
        ...   %3 = exp(%2)
        ...   return %3
        ... ''')
        >>> print(mt.passes.autocast(mt.bfloat16)(graph))
        graph(x: f32[2,3], w: f32[3,4], b: f32[4]):
          %0 = cast(x, dtype=bf16)      : bf16[2,3]
          %1 = cast(w, dtype=bf16)      : bf16[3,4]
          %2 = dot(%0, %1, dtype=bf16)  : bf16[2,4]
          %3 = cast(b, dtype=bf16)      : bf16[4]
          %4 = expand(%3, shape=[2,4])  : bf16[2,4]
          %5 = add(%2, %4)              : bf16[2,4]
          %6 = cast(%5, dtype=f32)      : f32[2,4]
          %7 = exp(%6)                  : f32[2,4]
          return %7
    """
    lower = as_dtype(dtype)
    if lower not in (bfloat16, float16):
        raise DTypeError("MT202", f"autocast: the lower type is bfloat16 or float16, not {lower.name}")
    return Pass(
        f"autocast to {lower.name}",
        lambda graph: _Caster(lower).graph(graph),
        f"Compute contractions in {lower.name}, and the rest in float32.",
    )


class _Caster:
    """The new nodes of one graph, by the old ones.

    Attributes:
        full: those in the type of the old ones; at first of what is not computed in the lower type.
        low: those in the lower type, of what is computed in it, or was cast to it.
        native: the nodes that are computed in the lower type.
        products: those among them that are contractions, or moved ones: a bias may follow.
        operands: the nodes that nothing but contractions reads, moved or not.
        rounding: the nodes of attention that round operands, and which; they compute in float32.
        attended: the last contractions of attention, whose results are rounded.
        rounded: operands of attention in float32, after they were rounded.
    """

    def __init__(self, dtype: DType) -> None:
        self.dtype = dtype
        self.full: dict[Node, Node] = {}
        self.low: dict[Node, Node] = {}
        self.native: set[Node] = set()
        self.products: set[Node] = set()
        self.operands: set[Node] = set()
        self.rounding: dict[Node, set[Node]] = {}
        self.attended: set[Node] = set()
        self.rounded: dict[Node, Node] = {}

    def graph(self, graph: Graph) -> Graph:
        """The graph in mixed precision."""
        self.full.update((node, node) for node in graph.inputs)
        self.operands = _only_multiplied(graph)
        self._find_attention(graph)
        for node in graph.nodes:
            if node in self.rounding:
                self._attend(node)
            elif node.primitive is P.cast and node.dtype is self.dtype and node.inputs[0] in self.native:
                self.full[node] = self.low[node.inputs[0]]
            elif node.dtype is float32 and self._is_low(node):
                self.native.add(node)
                self.low[node] = self._in_lower(node, {each: self._low(each) for each in node.inputs})
            else:
                self.full[node] = with_inputs(node, tuple(map(self._full, node.inputs)))
        return Graph(graph.inputs, [self._full(node) for node in graph.outputs], name=graph.name, verify=False)

    def _find_attention(self, graph: Graph) -> None:
        for each in attentions(graph):
            if any(operand.dtype is not float32 for node in (each.scores, each.product) for operand in node.inputs):
                continue
            self.attended.add(each.product)
            self.rounding[each.product] = {each.value}
            self.rounding[each.scores] = set()
            for operand in each.scores.inputs:
                reader, top = each.scores, operand
                while _moves(top.primitive) and top in self.operands:
                    reader, top = top, top.inputs[0]
                if top.primitive is P.mul and top in self.operands and any(map(is_splat, top.inputs)):
                    reader, top = top, next(value for value in top.inputs if not is_splat(value))
                else:
                    reader, top = each.scores, operand
                self.rounding.setdefault(reader, set()).add(top)
            if each.masked is not None and each.mask is not None:
                self.rounding[each.masked] = {each.mask}

    def _attend(self, node: Node) -> None:
        """Compute a node of attention in float32, of operands that are rounded to the lower type."""
        rounded = self.rounding[node]
        self.full[node] = with_inputs(
            node, tuple([self._rounded(each) if each in rounded else self._full(each) for each in node.inputs])
        )
        if node in self.attended:
            self.native.add(node)
            self.low[node] = apply(P.cast, self.full.pop(node), source=node.source, dtype=self.dtype)

    def _rounded(self, node: Node) -> Node:
        """A float32 node with the numbers of the lower type."""
        low = self._low(node)
        if node in self.native or self._full(node).inputs[:1] == (low,):
            return self._full(node)
        if node not in self.rounded:
            self.rounded[node] = apply(P.cast, low, source=node.source, dtype=float32)
        return self.rounded[node]

    def _is_low(self, node: Node) -> bool:
        """Whether a float32 node is computed in the lower type."""
        primitive, inputs = node.primitive, node.inputs
        if primitive is P.dot:
            is_product = all(each.dtype is float32 for each in inputs) and not _is_of_integers(node)
            self.products.update([node] if is_product else [])
            return is_product
        floats = [each for each in inputs if each.dtype is float32]
        if not any(each in self.native for each in floats):
            return False
        if _moves(primitive):
            if primitive is P.pad and not self._is_exact(node.params["value"]):
                return False
            self.products.update([node] if inputs[0] in self.products else [])
            return True
        if primitive in SELECTIONS:
            return all(
                each in self.native or (is_splat(each) and self._is_exact(each.params["value"])) for each in floats
            )
        if primitive is P.mul:
            return node in self.operands and any(is_splat(each) for each in inputs)
        if primitive is P.add:
            a, b = inputs
            pairs = ((a, b), (b, a))
            return {a, b} <= self.native or any(x in self.products and _is_bias(y) for x, y in pairs)
        return False

    def _is_exact(self, value: object) -> bool:
        """Whether a number is one of the lower type."""
        if not isinstance(value, (int, float)):
            return False
        with np.errstate(all="ignore"):
            return value != value or float(np.asarray(float(value)).astype(self.dtype.numpy)) == value

    def _full(self, node: Node) -> Node:
        """A node in its own type."""
        if node not in self.full:
            self.full[node] = apply(P.cast, self.low[node], source=node.source, dtype=float32)
        return self.full[node]

    def _low(self, node: Node) -> Node:
        """A float32 node in the lower type: cast before it is moved, where there is less of it; any other as it is."""
        if node.dtype is not float32:
            return self._full(node)
        chain = [node]
        while (top := chain[-1]) not in self.low and _moves(top.primitive) and top.primitive is not P.barrier:
            if top.primitive is P.pad and not self._is_exact(top.params["value"]):
                break
            chain.append(top.inputs[0])
        top = chain.pop()
        if top not in self.low:
            full = self._full(top)
            is_exact = full.primitive is P.cast and full.inputs[0].dtype is self.dtype
            self.low[top] = full.inputs[0] if is_exact else apply(P.cast, full, source=top.source, dtype=self.dtype)
        for each in reversed(chain):
            self.low[each] = self._in_lower(each, self.low)
        return self.low[node]

    def _in_lower(self, node: Node, operands: Mapping[Node, Node]) -> Node:
        """The same operation in the lower type."""
        params = {**node.params, "dtype": self.dtype} if node.primitive is P.dot else node.params
        return apply(node.primitive, *[operands[each] for each in node.inputs], source=node.source, **params)


def _only_multiplied(graph: Graph) -> set[Node]:
    """The nodes that nothing but contractions reads, also by way of movements."""
    found = set(graph.nodes) - set(graph.outputs)
    for node in reversed(graph.nodes):
        if node.primitive is not P.dot and not (_moves(node.primitive) and node in found):
            found.difference_update(node.inputs)
    return found


def _is_of_integers(node: Node) -> bool:
    """Whether a contraction is one of a quantised layer: of dequantised operands, or of a decoded weight."""
    scales = [_scales(operand) for operand in node.inputs]
    return None not in scales or max(each or 1 for each in scales) > 1


def _scales(node: Node) -> int | None:
    """How many numbers integers of at most 8 bits are multiplied with to make a float value; None of another value."""
    count = 1
    while node.primitive is not P.cast:
        if _moves(node.primitive) or node.primitive is P.sub:
            node = node.inputs[0]
        elif node.primitive is P.mul:
            is_right = node.inputs[0].primitive is P.expand or is_splat(node.inputs[0])
            node, other = node.inputs[is_right], node.inputs[not is_right]
            while other.primitive is P.expand:
                other = other.inputs[0]
            count = max(count, 1 if is_splat(other) else other.spec.size)
        else:
            return None
    return count if node.inputs[0].dtype.category == "int" and _is_of_bytes(node.inputs[0]) else None


def _is_of_bytes(node: Node) -> bool:
    """Whether integers are bytes, or parts of bytes."""
    pending, seen = [node], {node}
    while pending:
        each = pending.pop()
        if each.dtype in BYTES:
            return True
        if each.primitive.kind in POINTWISE or _moves(each.primitive):
            fresh = [operand for operand in each.inputs if operand not in seen]
            seen.update(fresh)
            pending += fresh
    return False


def _is_bias(node: Node) -> bool:
    """Whether a value is a parameter of fewer elements or dimensions, expanded."""
    source = node
    while source.primitive in (P.reshape, P.permute, P.expand):
        source = source.inputs[0]
    is_given = source.primitive in (INPUT, P.constant)
    return is_given and (len(source.shape) < len(node.shape) or math.prod(source.shape) < math.prod(node.shape))
