"""Control flow as primitives whose parameters are graphs: `scan`, `while_loop` and `cond`, with JAX's meaning.

A node has one value, so each result of a loop is a node of its own, and the parameter `result` is its number. Nodes
that differ in nothing else are *siblings*: whatever runs a graph computes them together, by `Primitive.together`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import Any

import numpy as np

from ..dtypes import bool_
from ..errors import PARTS, AutogradError, GraphError
from ..ir import CONTROL_FLOW, Node, Primitive, Spec
from .evaluation import run_body
from .graph import Graph

Array = np.ndarray[Any, Any]
Run = Callable[[Graph, Sequence[Array]], list[Array]]  # runs a body on arrays


def _check(name: str, what: str, found: Iterable[Spec], needed: Iterable[Spec]) -> None:
    texts = [", ".join(map(str, specs)) for specs in (found, needed)]
    if texts[0] != texts[1]:
        raise GraphError("MT601", f"{name}: {what} ({texts[0]}), where ({texts[1]}) is needed")


def _specs(nodes: Iterable[Node]) -> list[Spec]:
    return [node.spec for node in nodes]


def _infer_scan(*specs: Spec, body: Graph, length: int, carried: int, sliced: int, reverse: bool, result: int) -> Spec:
    rows = specs[carried : carried + sliced]
    stacked = [Spec((length, *node.shape), node.dtype) for node in body.inputs[carried : carried + sliced]]
    _check("scan", "it is given slices of", rows, stacked)
    others = body.inputs[:carried] + body.inputs[carried + sliced :]
    _check("scan", "its body takes", _specs(others), specs[:carried] + specs[carried + sliced :])
    _check("scan", "its body returns", _specs(body.outputs[:carried]), specs[:carried])
    spec = body.outputs[result].spec
    return spec if result < carried else Spec((length, *spec.shape), spec.dtype)


def _run_scan(
    *arrays: Array, body: Graph, length: int, carried: int, sliced: int, reverse: bool, run: Run = run_body
) -> list[Array]:
    carries, rows, others = list(arrays[:carried]), arrays[carried : carried + sliced], arrays[carried + sliced :]
    stacks = [np.empty((length, *node.shape), node.dtype.numpy) for node in body.outputs[carried:]]
    for step in reversed(range(length)) if reverse else range(length):
        found = run(body, [*carries, *(np.asarray(row[step]) for row in rows), *others])
        carries = found[:carried]
        for stack, value in zip(stacks, found[carried:], strict=True):
            stack[step] = value
    return [*map(np.array, carries), *stacks]


def _infer_while(*specs: Spec, condition: Graph, body: Graph, carried: int, result: int) -> Spec:
    for graph in (condition, body):
        _check("while_loop", "a body takes", _specs(graph.inputs), specs)
    _check("while_loop", "its condition returns", _specs(condition.outputs), [Spec((), bool_)])
    _check("while_loop", "its body returns", _specs(body.outputs), specs[:carried])
    return specs[result]


def _run_while(*arrays: Array, condition: Graph, body: Graph, carried: int, run: Run = run_body) -> list[Array]:
    carries, others = list(arrays[:carried]), arrays[carried:]
    while run(condition, [*carries, *others])[0]:
        carries = run(body, [*carries, *others])
    return list(map(np.array, carries))


def _infer_cond(test: Spec, *specs: Spec, then: Graph, otherwise: Graph, result: int) -> Spec:
    _check("cond", "its condition is", [test], [Spec((), bool_)])
    for graph in (then, otherwise):
        _check("cond", "a branch takes", _specs(graph.inputs), specs)
    _check("cond", "one branch returns", _specs(otherwise.outputs), _specs(then.outputs))
    return then.outputs[result].spec


def _run_cond(test: Array, *arrays: Array, then: Graph, otherwise: Graph, run: Run = run_body) -> list[Array]:
    return list(map(np.array, run(then if test else otherwise, arrays)))


def _no_gradient(*tensors: Any, index: int, **params: Any) -> Any:
    raise AutogradError(
        "MT405",
        "a second derivative through a compiled loop or branch",
        why="a compiled function keeps the first derivative of a loop, and not what it was made from",
        fix="compute both derivatives inside of one jitted function, or call it without mt.jit",
    )


def _declare(name: str, infer: Any, together: Any, doc: str) -> Primitive:
    """Enter a primitive into the table of control flow."""

    def evaluate_one(*arrays: Array, result: int, **params: Any) -> Array:
        found: list[Array] = together(*arrays, **params)
        return found[result]

    PARTS.add(name)
    CONTROL_FLOW[name] = made = Primitive(
        name, "control", infer, evaluate_one, (_no_gradient,), variadic=True, together=together, doc=doc
    )
    return made


scan = _declare(
    "scan", _infer_scan, _run_scan, "a result of a body that is repeated over the slices of arrays, and carries values"
)
while_loop = _declare(
    "while_loop", _infer_while, _run_while, "a value that a body carries on for as long as a condition holds"
)
cond = _declare("cond", _infer_cond, _run_cond, "a result of one of two branches")
