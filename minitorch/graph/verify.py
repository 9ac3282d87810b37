"""The verifier: a table of the rules of a legal graph, checked when a graph is made, and so after every pass.

A rule is a function that returns a fault, or None. The error names the node, the rule, and the user's line that made
the node.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any, NoReturn

from ..dtypes import DType, stored
from ..errors import GraphError
from ..ir import INPUT, Node, is_input_name, primitive_named
from ..primitives import Literal
from ..sizes import is_int, is_symbolic
from .values import is_static, value_key

if TYPE_CHECKING:
    from .graph import Graph

MAX_DIMS = 64  # as in NumPy
MAX_BYTES = 2**63


def _are_ints(value: object) -> bool:
    return type(value) is tuple and (set(map(type, value)) <= {int} or all(map(is_int, value)))


def _are_lists_of_ints(value: object) -> bool:
    return type(value) is tuple and all(map(_are_ints, value))


def _are_names(value: object) -> bool:
    return type(value) is tuple and set(map(type, value)) <= {str}


def _are_lists_of_names(value: object) -> bool:
    return type(value) is tuple and all(map(_are_names, value))


def _is_mesh(value: object) -> bool:
    """Return whether a value is a name and a length for each axis of a grid of devices."""
    return type(value) is tuple and all(
        type(axis) is tuple and list(map(type, axis)) == [str, int] and axis[1] > 0 for axis in value
    )


def _is_number(value: object) -> bool:
    return type(value) in (bool, int, float) or is_symbolic(value)


def _is_graph(value: object) -> bool:
    return hasattr(value, "inputs") and hasattr(value, "outputs")


# The type of each parameter of the primitives, by name.
PARAMETERS: dict[str, Callable[[object], bool]] = {
    "axes": _are_lists_of_names,
    "body": _is_graph,
    "carried": is_int,
    "condition": _is_graph,
    "descending": lambda value: type(value) is bool,
    "devices": _are_names,
    "dilation": is_int,
    "dim": is_int,
    "dims": _are_ints,
    "dtype": lambda value: type(value) is DType,
    "error": lambda value: type(value) is str,
    "high": _is_number,
    "kept": is_int,
    "left": _are_lists_of_ints,
    "length": is_int,
    "lengths": _are_ints,
    "low": _is_number,
    "mesh": _is_mesh,
    "offset": is_int,
    "otherwise": _is_graph,
    "padding": _are_lists_of_ints,
    "result": is_int,
    "right": _are_lists_of_ints,
    "routine": lambda value: type(value) is str,
    "shape": _are_ints,
    "size": is_int,
    "sliced": is_int,
    "start": _are_ints,
    "step": lambda value: is_int(value) or _are_ints(value),
    "stop": _are_ints,
    "then": _is_graph,
    "value": lambda value: _is_number(value) or type(value) is Literal,
    "what": lambda value: type(value) is str,
}


@dataclass(frozen=True)
class Rule:
    """One rule of the verifier.

    Attributes:
        name: for the error.
        check: ``(node, seen) -> the fault, or None``; `seen` holds the inputs of the graph and all nodes before.
        why: the reason for the rule.
    """

    name: str
    check: Callable[[Node, set[Node]], str | None]
    why: str


def _is_input(node: Node, seen: set[Node]) -> str | None:
    if node.primitive is not INPUT:
        return f"it is listed among the inputs, but is a {node.primitive.name}"
    if node.inputs or set(node.params) != {"name"}:
        return "it has inputs or parameters of its own"
    name = node.params["name"]
    return None if is_input_name(name) else f"{name!r} is not a name"


def _known_primitive(node: Node, seen: set[Node]) -> str | None:
    if node.primitive is INPUT:
        return f"the input {node.params.get('name')!r} is listed among the nodes"
    name = node.primitive.name
    if primitive_named(name) is not node.primitive:
        return f"{name} is not in the table of primitives"
    return None


def _once(node: Node, seen: set[Node]) -> str | None:
    return "it is listed twice" if node in seen else None


def _order(node: Node, seen: set[Node]) -> str | None:
    for operand in node.inputs:
        if operand not in seen:
            if operand.primitive is INPUT:
                return f"its operand {operand.params.get('name')!r} ({operand.spec}) is not an input of the graph"
            return f"its operand {operand!r} is not before it"
    return None


def _static_params(node: Node, seen: set[Node]) -> str | None:
    return wrong_parameter(node.params)


def wrong_parameter(params: Mapping[str, Any]) -> str | None:
    """Return the fault in the types of a node's parameters, or None; checked before the shape is inferred."""
    for name, value in params.items():
        if not PARAMETERS.get(name, is_static)(value):
            return f"{name}={value!r} is not a value of this parameter"
    return None


def _shape(node: Node, seen: set[Node]) -> str | None:
    shape, dtype = node.spec.shape, node.spec.dtype
    if type(shape) is not tuple or not isinstance(dtype, DType):
        return f"{shape!r} and {dtype!r} are no shape and type"
    size = dtype.itemsize
    for length in shape:
        if not is_int(length) or length < 0:
            return f"{length!r} in {list(shape)} is not a length"
        size *= length
    if len(shape) > MAX_DIMS or size >= MAX_BYTES:
        return f"{len(shape)} dimensions and {size} bytes are more than any memory has"
    return None


def _spec(node: Node, seen: set[Node]) -> str | None:
    try:
        inferred = node.primitive.infer(*[operand.spec for operand in node.inputs], **node.params)
    except Exception as error:  # whatever the shape rule raises, the node is wrong
        return f"its operands and parameters do not fit: {error}"
    return None if inferred == node.spec else f"it is declared as {node.spec}, but gives {inferred}"


def _value_fits(node: Node, seen: set[Node]) -> str | None:
    value = node.params.get("value")
    if type(value) is Literal:
        fits = value.array.dtype == node.spec.dtype.numpy
        return None if fits else f"a literal of {value.array.dtype} is declared as {node.spec.dtype.name}"
    if value is not None and not is_symbolic(value):
        try:
            fits = value_key(stored(value, node.spec.dtype)) == value_key(value)
        except (ValueError, OverflowError) as error:
            return str(error)
        return None if fits else f"{value!r} is not as {node.spec.dtype.name} stores it"
    return None


_SHAPE = Rule("shape", _shape, "a shape is a tuple of whole numbers from 0 up")
_ONCE = Rule("once", _once, "a node is listed once")

INPUT_RULES = (
    Rule("input", _is_input, "inputs are named, by letters, digits, `_` and `.`, not by numbers"),
    _ONCE,
    _SHAPE,
)
NODE_RULES = (
    Rule("primitive", _known_primitive, "backends implement the primitives of the table and no others"),
    _ONCE,
    Rule("order", _order, "nodes are in program order: an operand is an input or an earlier node"),
    Rule("static parameters", _static_params, "parameters are numbers, names, types, or tuples of them"),
    _SHAPE,
    Rule("inferred spec", _spec, "shape and type follow from the operands, by the primitive's own rule"),
    Rule("value", _value_fits, "a number in a graph can be stored in the type that it is for"),
)


def verify(graph: Graph, trusted: Graph | None = None) -> None:
    """Check all rules.

    Args:
        graph: the graph to check.
        trusted: a graph known to be legal. Nodes are immutable, so of shared nodes only the order is checked.

    Raises:
        GraphError: naming node, rule and line (``MT601``).
    """
    seen: set[Node] = set()
    names: set[str] = set()
    for node in graph.inputs:
        _apply(graph, INPUT_RULES, node, seen)
        if node.params["name"] in names:
            _fail(graph, node, "there is another of this name", "unique names", "inputs are given by name")
        names.add(node.params["name"])
        seen.add(node)
    known = set(trusted.nodes) if trusted else ()
    for node in graph.nodes:
        if node not in known or node in seen or not seen.issuperset(node.inputs):
            _apply(graph, NODE_RULES, node, seen)
        seen.add(node)
    for index, node in enumerate(graph.outputs):
        if node not in seen:
            _fail(graph, node, f"output {index} is not in the graph", "outputs", "an output is an input or a node")


def _apply(graph: Graph, rules: tuple[Rule, ...], node: Node, seen: set[Node]) -> None:
    for rule in rules:
        wrong = rule.check(node, seen)
        if wrong is not None:
            _fail(graph, node, wrong, rule.name, rule.why)


def _spec_text(node: Node) -> str:
    """Return shape and type as text of a node that may have neither."""
    spec = node.spec
    return str(spec) if _shape(node, set()) is None else repr(spec)


def _fail(graph: Graph, node: Node, wrong: str, rule: str, why: str) -> NoReturn:
    from .text import node_names

    name = node_names(graph).get(node, "")
    raise GraphError(
        "MT601",
        f"in {graph.name}, node {name} {node.primitive.name} {_spec_text(node)}: {wrong}".replace("node  ", "node "),
        where=str(node.source) if node.source else None,
        why=f"rule '{rule}': {why}",
    )
