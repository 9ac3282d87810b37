"""The text form of a graph: one line per node, in program order. `minitorch.graph.parse` reads it.

The listing is exact: two graphs with the same listing (sources apart) compute the same bits. Grammar::

    listing    = "graph" [name] program {body program}
    program    = "(" [name ":" spec {"," name ":" spec}] ")" ":" {node} "return" [operand {"," operand}]
    body       = "@" number                                               a graph among the parameters of nodes
    node       = "%" number "=" primitive "(" [item {"," item}] ")" [":" spec]
    item       = operand | name "=" value                                  operands first, then parameters
               | array                                                     of `constant`, see below
    operand    = "%" number | name of an input | number [":" spec]
    value      = number | string | type | "[" [value {"," value}] "]" | body
    spec       = type "[" [number {"," number}] "]"                        e.g. f32[32,10]
    number     = an integer, a decimal fraction, inf, -inf, nan, true, false

A splat constant is written as a number where it is used. In an elementwise operation it takes shape and type from the
other operands; elsewhere, and where these do not give them, its own are added: ``0.5:f32[32,10]``. Any other constant
is a node: ``constant([[1, 2], [3, 4]]) : i64[2,2]`` if it is small and prints exactly, otherwise
``constant(base64="...")``, which is its memory in C order, little-endian. A comment such as ``# train.py:12`` is the
line of the program that made the node. Line breaks mean nothing to the parser, but for comments.
"""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from functools import cache
from typing import TYPE_CHECKING, Any

from ..dtypes import DType
from ..ir import Node, Primitive, is_input_name
from ..primitives import constant
from ..sizes import is_symbolic
from .array_text import array_text
from .values import bodies, is_splat, number_text

if TYPE_CHECKING:
    from .graph import Graph

TYPE_COLUMN = 56  # the column of types, at most, to keep a listing narrow
HEADER_WIDTH = 100  # a longer list of inputs is written one to a line


def listing(graph: Graph) -> str:
    """Return the text of a graph, and of the graphs among its nodes' parameters after it."""
    numbers: dict[Graph, int] = {}
    texts = [_program(graph, _header(graph, "graph"), numbers)]
    pending = list(numbers)
    for body in pending:  # the list grows during the loop
        texts.append(_program(body, _header(body, f"@{numbers[body]}"), numbers))
        pending += list(numbers)[len(pending) :]
    return "\n".join(texts)


def _program(graph: Graph, header: str, numbers: dict[Graph, int]) -> str:
    """Return the text of one graph; its bodies get numbers if they have none yet."""
    names = node_names(graph)
    for node in graph.nodes:
        for body in bodies(node).values():
            numbers.setdefault(body, len(numbers))
    nodes = [node for node in graph.nodes if node in names]
    calls = [f"{names[node]} = {_call(node, names, numbers)}" for node in nodes]
    typed = [f"{call} : {node.spec}" for call, node in zip(_aligned(calls), nodes, strict=True)]
    sources = [f"# {node.source}" if node.source else "" for node in nodes]
    padded = _aligned(typed) if any(sources) else typed
    lines = [f"  {row}  {source}".rstrip() for row, source in zip(padded, sources, strict=True)]
    outputs = ", ".join(operand_text(node, None, names) for node in graph.outputs)
    return "\n".join([header, *lines, f"  return {outputs}".rstrip()])


def node_names(graph: Graph) -> dict[Node, str]:
    """Return the name of each input and node in the listing; splat constants have none."""
    names = {node: str(node.params.get("name")) for node in graph.inputs}
    for node in graph.nodes:
        if not is_splat(node):
            names[node] = f"%{len(names) - len(graph.inputs)}"
    return names


def _header(graph: Graph, word: str) -> str:
    name = f" {graph.name}" if word == "graph" and is_input_name(graph.name) else ""
    inputs = [f"{node.params['name']}: {node.spec}" for node in graph.inputs]
    short = f"{word}{name}({', '.join(inputs)}):"
    if len(short) <= HEADER_WIDTH:
        return short
    return "\n".join([f"{word}{name}(", *(f"    {each}," for each in inputs), "):"])


def _aligned(rows: list[str]) -> Iterator[str]:
    """Pad rows to the length of the longest, disregarding very long ones."""
    width = max((len(row) for row in rows if len(row) <= TYPE_COLUMN), default=0)
    return (row.ljust(width) for row in rows)


def _call(node: Node, names: dict[Node, str], numbers: dict[Graph, int]) -> str:
    if node.primitive is constant:
        value = node.params["value"]
        return f"constant({value if is_symbolic(value) else array_text(value.array)})"
    conditions = len(node.inputs) - len(data_operands(node))  # written with their type; they may be data, too
    users = [None] * conditions + [node] * len(data_operands(node))
    operands = [operand_text(operand, user, names) for operand, user in zip(node.inputs, users, strict=True)]
    written = {name: f"@{numbers[body]}" for name, body in bodies(node).items()}
    params = [f"{name}={written.get(name) or value_text(node.params[name])}" for name in ordered_params(node)]
    return f"{node.primitive.name}({', '.join(operands + params)})"


def ordered_params(node: Node) -> Iterable[str]:
    """Return the names of a node's parameters, in the order of the primitive's declaration."""
    return node.params if len(node.params) < 2 else declared_params(node.primitive)


@cache
def declared_params(primitive: Primitive) -> tuple[str, ...]:
    """Return the names of a primitive's parameters, in the order of its declaration."""
    parameters = inspect.signature(primitive.infer).parameters.values()
    return tuple(each.name for each in parameters if each.kind is each.KEYWORD_ONLY)


def operand_text(operand: Node, user: Node | None, names: dict[Node, str]) -> str:
    """Return an operand as the listing writes it; `user` is the operation that determines its type, if any."""
    if operand in names:
        return names[operand]
    text = number_text(operand.params["value"], operand.spec.dtype)
    if user is not None and user.primitive.broadcasts:
        given = next((each for each in data_operands(user) if not is_splat(each)), None)
        if given and given.spec == operand.spec:
            return text
    return f"{text}:{operand.spec}"


def data_operands(node: Node) -> tuple[Node, ...]:
    """Return the operands of an elementwise operation that share one type: all but the condition of `where`."""
    return node.inputs[1:] if node.primitive.kind == "ternary" else node.inputs


def value_text(value: Any) -> str:
    """Return a parameter as the listing writes it."""
    if type(value) is tuple:
        return f"[{','.join(map(value_text, value))}]"
    if type(value) is bool:
        return "true" if value else "false"
    if type(value) is str:
        return '"' + value.translate(_ESCAPES) + '"'
    return value.short if type(value) is DType else repr(value)


_ESCAPES = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n", "\r": "\\r"})
