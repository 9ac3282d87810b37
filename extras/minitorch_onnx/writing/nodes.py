"""Nodes of a graph as nodes of ONNX, by the rows of the tables; loops and branches, whose bodies are graphs of ONNX.

    scan ──► Scan, or Loop for a counter alone      while_loop ──► Loop      cond ──► If

A body reads what is outside of it by name, and computes the rest anew.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.graph import Graph
from minitorch.graph.values import is_splat, params_key, shared
from minitorch.ir import Node, Spec
from minitorch.primitives import expand
from minitorch.sizes import is_symbolic

from ..common import NUMBERS
from . import attention, elementwise, movement, operators, recurrent, sums
from .attention import broadcast_to, not_repeated
from .building import Building, Row

Kind = Node | Spec

END = np.iinfo(np.int64).min  # where a slice ends that runs backwards through a whole dimension


def results_of(b: Building, graph: Graph, names: dict[Node, str]) -> list[str]:
    """Append the operators of a graph, and return the names of its results.

    Args:
        names: those of its inputs; those of its nodes are entered.
    """
    before = b.node
    for node in graph.nodes:
        if not is_splat(node):
            _write(b, node, names)
    b.node = before
    return [_operand(b, node, names) for node in graph.outputs]


def _inlined(b: Building, graph: Graph, operands: Sequence[str]) -> list[str]:
    return results_of(b, graph, dict(zip(graph.inputs, operands, strict=True)))


def _write(b: Building, node: Node, names: dict[Node, str]) -> None:
    """Append the operators of a node."""
    b.node = node
    operands = _operands(b, node, names)
    row = ROWS.get(node.primitive.name)
    if row is None:
        b.refuse("this primitive", "it has no row in `minitorch_onnx.writing`")
    names[node] = row(b, node, operands)


def _operand(b: Building, node: Node, names: Mapping[Node, str]) -> str:
    """The name of a value; a splat becomes one where it is needed."""
    if node in names:
        return names[node]
    before, b.node = b.node, node
    found = ROWS["constant"](b, node, [])
    b.node = before
    return found


def _operands(b: Building, node: Node, names: Mapping[Node, str]) -> list[str]:
    """The operands of a node. ONNX's elementwise operators repeat theirs, so numbers and expansions are left small."""
    if not node.primitive.broadcasts:
        return [_operand(b, each, names) for each in not_repeated(b, node)]
    small = [each.inputs[0] if each.primitive is expand else each for each in node.inputs]
    numbers = [is_splat(each) for each in small]
    shapes = [() if is_number else each.shape for each, is_number in zip(small, numbers, strict=True)]
    if not broadcast_to(shapes, node.shape):  # all of them are
        small[0], numbers[0] = node.inputs[0], False
    return [
        b.number(each.params["value"], each.dtype) if is_number else _operand(b, each, names)
        for each, is_number in zip(small, numbers, strict=True)
    ]


def tidy(b: Building, outputs: Sequence[str]) -> None:
    """Take away operators that only rename a value, and those that no result needs.

    A result takes the place of the value that it renames.
    """
    made = {name for node in b.nodes for name in node.output}
    becomes: dict[str, str] = {}
    kept = []
    for node in b.nodes:
        for inner in all_nodes([node]):
            _rename(inner.input, becomes)
        old, new = (node.input[0], node.output[0]) if node.op_type == "Identity" else ("", "")
        if new and new not in outputs:
            becomes[new] = old
        elif new and old in made and old not in outputs:
            becomes[old] = new
        else:
            kept.append(node)
    for node in kept:
        _rename(node.output, becomes)
        for inner in all_nodes([node]):
            _rename(inner.input, becomes)
        if node.name not in node.output:
            node.name = next(name for name in node.output if name)
    wanted = set(outputs)
    b.nodes = []
    for node in reversed(kept):
        if wanted.intersection(node.output):
            if node.op_type in recurrent.ORDERS:  # whose results are optional, each of them
                _leave_out(node, wanted)
            wanted.update(*[inner.input for inner in all_nodes([node])])
            b.nodes.append(node)
    b.nodes.reverse()


def _rename(values: Any, becomes: Mapping[str, str]) -> None:
    """Put the names that values have now in place of those that they had."""
    for place, name in enumerate(values):
        while name in becomes:
            name = becomes[name]
        values[place] = name


def all_nodes(nodes: Iterable[Any]) -> Iterator[Any]:
    """Yield ONNX nodes, each before those of its bodies."""
    for node in nodes:
        yield node
        for attribute in node.attribute:
            yield from all_nodes(attribute.g.node)


def _leave_out(node: Any, wanted: Collection[str]) -> None:
    """Give no names to results that nobody reads."""
    kept = [name if name in wanted else "" for name in node.output]
    while not kept[-1]:
        kept.pop()
    del node.output[:]
    node.output.extend(kept)
    node.name = next(filter(None, kept))


def value_info(b: Building, name: str, kind: Kind) -> Any:
    """The name, type and shape of an argument or result; a length that is computed from symbols is not named."""
    shape = [(str(each) if str(each) in b.places else None) if is_symbolic(each) else each for each in kind.shape]
    return b.onnx.helper.make_tensor_value_info(name, NUMBERS[kind.dtype], shape)


# Loops and branches -----------------------------------------------------------------------------------------


def _of_siblings(write: Callable[[Building, Node, list[str]], Sequence[str]]) -> Row:
    """The row of a loop or branch, whose results are nodes of ours, and one of ONNX."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        key = node.primitive, *node.inputs, params_key(shared(node.params))
        if key not in b.results:
            b.results[key] = write(b, node, operands)
        place: int = node.params["result"]
        return b.results[key][place]

    return row


def _body(
    b: Building, name: str, given: Sequence[Any], compute: Callable[[Building], Sequence[str]], kinds: Iterable[Kind]
) -> Any:
    """A body as a graph of ONNX.

    Args:
        b: the graph around it.
        name: of the graph.
        given: its inputs.
        compute: appends its nodes to what is built, and returns the names of the results.
        kinds: those of the results.
    """
    inner = b.inner()
    outputs = [inner.op("Identity", each, result=inner.name("result")) for each in compute(inner)]
    tidy(inner, outputs)
    results = [value_info(b, each, kind) for each, kind in zip(outputs, kinds, strict=True)]
    return b.onnx.helper.make_graph(inner.nodes, b.name(name), given, results)


def _inputs(b: Building, kinds: Sequence[Kind]) -> tuple[list[str], list[Any]]:
    """New names for the inputs of a body, and what ONNX says of them."""
    names = [b.name("given") for _ in kinds]
    return names, [value_info(b, name, kind) for name, kind in zip(names, kinds, strict=True)]


def _scan(b: Building, node: Node, operands: list[str]) -> Sequence[str]:
    body, carried, sliced, reverse = (node.params[name] for name in ("body", "carried", "sliced", "reverse"))
    states, rows, others = operands[:carried], operands[carried : carried + sliced], operands[carried + sliced :]
    first = None if reverse else _first_count(b, rows)
    if rows and first is None:
        names, given = _inputs(b, body.inputs[: carried + sliced])
        proto = _body(b, "step", given, lambda inner: _inlined(inner, body, [*names, *others]), body.outputs)
        counts = {"input": sliced, "output": len(body.outputs) - carried}
        more = {f"scan_{name}_directions": [1] * count for name, count in counts.items() if reverse and count}
        results = [b.name("scan") for _ in body.outputs]
        return b.ops("Scan", [*states, *rows], results, body=proto, num_scan_inputs=sliced, **more)

    def turn(inner: Building, counter: str, going: str, names: list[str]) -> list[str]:
        count = inner.op("Add", counter, b.constant(first)) if first else counter
        return [going, *_inlined(inner, body, [*names, *[count] * sliced, *others])]

    found = _looped(b, b.scalar_size(node.params["length"]), b.constant(np.array(True)), states, body, turn)
    turned = [b.constant([each]) for each in (-1, END, 0, -1)]
    flip = reverse and not rows
    return [*found[:carried], *(b.op("Slice", each, *turned) if flip else each for each in found[carried:])]


def _first_count(b: Building, rows: list[str]) -> int | None:
    """Where a loop over numbers that follow one another begins to count; None for any other loop."""
    array = b.arrays.get(rows[0]) if len(rows) == 1 else None
    is_count = array is not None and array.dtype == np.int64 and array.ndim == 1 and (np.diff(array) == 1).all()
    return int(array[0]) if array is not None and is_count and array.size else None


def _looped(
    b: Building, trips: str, going: str, states: list[str], body: Graph, turn: Callable[..., list[str]]
) -> Sequence[str]:
    """A `Loop`, whose body has a counter and whether it goes on, too."""
    is_going = Spec((), dtypes.bool_)
    (counter, goes_on, *names), given = _inputs(b, [Spec((), dtypes.int64), is_going, *body.inputs[: len(states)]])
    proto = _body(b, "turn", given, lambda inner: turn(inner, counter, goes_on, names), [is_going, *body.outputs])
    return b.ops("Loop", [trips, going, *states], [b.name("loop") for _ in body.outputs], body=proto)


def _while_loop(b: Building, node: Node, operands: list[str]) -> Sequence[str]:
    condition, body, carried = (node.params[name] for name in ("condition", "body", "carried"))
    others = operands[carried:]

    def turn(inner: Building, counter: str, going: str, names: list[str]) -> list[str]:
        found = _inlined(inner, body, [*names, *others])
        return [*_inlined(inner, condition, [*found, *others]), *found]

    return _looped(b, "", _inlined(b, condition, operands)[0], operands[:carried], body, turn)


def _cond(b: Building, node: Node, operands: list[str]) -> Sequence[str]:
    test, *others = operands

    def branch(name: str, body: Graph) -> Any:
        return _body(b, name, [], lambda inner: _inlined(inner, body, others), body.outputs)

    then, otherwise = node.params["then"], node.params["otherwise"]
    results = [b.name("if") for _ in then.outputs]
    return b.ops("If", [test], results, then_branch=branch("then", then), else_branch=branch("else", otherwise))


TABLES = (elementwise, movement, sums, operators, attention, recurrent)
ROWS: dict[str, Row] = {
    **{name: row for table in TABLES for name, row in table.ROWS.items()},
    "cond": _of_siblings(_cond),
    "scan": _of_siblings(_scan),
    "while_loop": _of_siblings(_while_loop),
}
