"""How the arguments and results of a frozen function are nested, as JSON, and back.

{"tuple": [...]}, {"list": [...]}, {"dict": [[key, ...], ...]}   containers
{"argument": 0}, {"output": 0}                                   tensors
{"value": 2.0}                                                   plain values
"""

from __future__ import annotations

import inspect
from collections.abc import Mapping, Sequence
from typing import Any

from minitorch.errors import ArgumentError
from minitorch.graph import Graph
from minitorch.modes.objects.outcome import Argument, Output
from minitorch.tree import Structure, flatten

PLAIN = (bool, int, float, str, type(None))
KEYS = (bool, int, str, type(None))
DEEPEST = 64  # containers in one another
KINDS = {kind.name: kind for kind in inspect._ParameterKind}


class LayoutError(ValueError):
    """JSON that says nothing about a frozen function."""


def encode(structure: Structure, leaves: Sequence[Any]) -> Any:
    """Nested arguments or results as JSON.

    Raises:
        ArgumentError: for what JSON does not have (``MT108``).

    Example:
        >>> leaves, structure = flatten(((Argument(0), 2.0), {"flip": True}))
        >>> encode(structure, leaves)["tuple"][0]
        {'tuple': [{'argument': 0}, {'value': 2.0}]}
        >>> decode(encode(structure, leaves))[1]
        {'flip': True}
    """
    return _encode(structure, iter(leaves))


def _encode(structure: Structure, leaves: Any) -> Any:
    if structure.kind is None:
        leaf = next(leaves)
        if isinstance(leaf, Argument):
            return {"argument": leaf.position}
        if isinstance(leaf, Output):
            return {"output": leaf.position}
        if type(leaf) not in PLAIN:
            raise _not_saved(f"a {type(leaf).__name__} among its arguments or results")
        return {"value": leaf}
    inner = [_encode(child, leaves) for child in structure.children]
    if structure.kind is dict and all(type(key) in KEYS for key in structure.keys):
        return {"dict": [[key, each] for key, each in zip(structure.keys, inner, strict=True)]}
    if structure.kind not in (tuple, list):
        raise _not_saved(f"a {structure.kind.__name__} among its arguments or results")
    return {structure.kind.__name__: inner}


def _not_saved(what: str) -> ArgumentError:
    return ArgumentError(
        "MT108",
        f"a frozen function with {what} cannot be saved",
        why="it is saved as a graph, arrays and JSON, which has no such thing",
        fix="use tensors, numbers, strings, tuples, lists and dicts",
    )


def decode(found: Any, depth: int = 0) -> Any:
    """The inverse of `encode`.

    Raises:
        LayoutError: if it is nothing that `encode` gives.
    """
    if not isinstance(found, dict) or len(found) != 1 or depth > DEEPEST:
        raise LayoutError(f"{found!r:.60} is neither a container nor a tensor nor a value")
    ((kind, value),) = found.items()
    if kind == "value" and type(value) in PLAIN:
        return value
    if kind in ("argument", "output") and type(value) is int and value >= 0:
        return Argument(value) if kind == "argument" else Output(value)
    if kind in ("tuple", "list") and isinstance(value, list):
        inner = [decode(each, depth + 1) for each in value]
        return tuple(inner) if kind == "tuple" else inner
    if kind == "dict" and isinstance(value, list):
        pairs = [each for each in value if isinstance(each, list) and len(each) == 2 and type(each[0]) in KEYS]
        if len(pairs) == len(value):
            return {key: decode(each, depth + 1) for key, each in pairs}
    raise LayoutError(f"{found!r:.60} is neither a container nor a tensor nor a value")


def head(name: str, parameters: inspect.Signature | None) -> dict[str, Any]:
    """The name and the parameters of a function as JSON."""
    if parameters is None:
        return {"name": name, "parameters": None}
    rows = []
    for each in parameters.parameters.values():
        row: dict[str, Any] = {"name": each.name, "kind": each.kind.name}
        if type(each.default) in PLAIN:
            row["default"] = each.default
        rows.append(row)
    return {"name": name, "parameters": rows}


def head_of(about: Mapping[str, Any]) -> tuple[str, inspect.Signature | None]:
    """The inverse of `head`.

    Raises:
        LayoutError: if it is nothing that `head` gives.
    """
    name, rows = about.get("name"), about.get("parameters")
    if not isinstance(name, str) or not (rows is None or isinstance(rows, list)):
        raise LayoutError("it does not say the name and the parameters of the function")
    if rows is None:
        return name, None
    found = []
    for row in rows:
        is_row = isinstance(row, dict) and all(isinstance(row.get(each), str) for each in ("name", "kind"))
        if not is_row or row["kind"] not in KINDS:
            raise LayoutError(f"{row!r:.60} is no parameter")
        default = row.get("default", inspect.Parameter.empty)
        try:
            found.append(inspect.Parameter(row["name"], KINDS[row["kind"]], default=default))
        except ValueError as error:
            raise LayoutError(f"{row!r:.60} is no parameter: {error}") from None
    try:
        return name, inspect.Signature(found)
    except ValueError as error:
        raise LayoutError(f"the parameters are not those of a function: {error}") from None


def body_of(graph: Graph, layout: Mapping[str, Any]) -> tuple[Any, Any, tuple[int, ...]]:
    """The arguments and results of a signature, and the arguments that have to be contiguous.

    Raises:
        LayoutError: if they are not those of the graph.
    """
    arguments, results = decode(layout.get("arguments")), decode(layout.get("results"))
    is_call = isinstance(arguments, tuple) and len(arguments) == 2
    if not is_call or not isinstance(arguments[0], tuple) or not isinstance(arguments[1], dict):
        raise LayoutError("the arguments are not those of a call")
    given = [leaf.position for leaf in flatten(arguments)[0] if isinstance(leaf, Argument)]
    if sorted(set(given)) != list(range(len(graph.inputs))) or layout.get("inputs") != len(graph.inputs):
        raise LayoutError(f"the arguments have {len(set(given))} tensors, and the graph {len(graph.inputs)} inputs")
    leaves = flatten(results)[0]
    outputs = [leaf.position for leaf in leaves if isinstance(leaf, Output)]
    back = [leaf.position for leaf in leaves if isinstance(leaf, Argument)]
    if sorted(set(outputs)) != list(range(len(graph.outputs))) or any(each >= len(graph.inputs) for each in back):
        raise LayoutError(f"the results have {len(set(outputs))} tensors, and the graph {len(graph.outputs)} outputs")
    contiguous = layout.get("contiguous")
    if not isinstance(contiguous, list) or not all(type(each) is int and 0 <= each < len(given) for each in contiguous):
        raise LayoutError(f"{contiguous!r:.60} are no positions of arguments")
    return arguments, results, tuple(contiguous)
