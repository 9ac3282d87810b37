"""Loops and branches in XLA: each is JAX's own, around the bodies' operations."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import jax

from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.graph.values import bodies
from minitorch.ir import Node

from . import indices

Compute = Callable[[Sequence[Node], dict[Node, Any]], None]  # adds the values of nodes to those that are known


def control(node: Node, operands: Sequence[Any], compute: Compute) -> Any:
    """Return all results of a loop or branch.

    Raises:
        TranslationError: if a body reads an index that has to be checked, which XLA does not do (``MT802``).
    """
    for body in bodies(node).values():
        if readers := indices.readers(body):
            raise TranslationError(
                "MT802",
                f"an index that is read in the body of {node.primitive.name} has no check in XLA",
                where=str(readers[0].source),
                why="XLA clamps an index out of range, and the check for it is outside of loops",
                fix="read it outside, or compile with another backend",
            )

    def run(body: Graph, values: Sequence[Any]) -> tuple[Any, ...]:
        known: dict[Node, Any] = dict(zip(body.inputs, values, strict=True))
        compute(body.nodes, known)
        return tuple(known[output] for output in body.outputs)

    params, name = node.params, node.primitive.name
    if name == "cond":
        then, otherwise = (lambda *given, body=params[side]: run(body, given) for side in ("then", "otherwise"))
        return jax.lax.cond(operands[0], then, otherwise, *operands[1:])
    carried = params["carried"]
    if name == "while_loop":
        rest = operands[carried:]
        return jax.lax.while_loop(
            lambda carry: run(params["condition"], [*carry, *rest])[0],
            lambda carry: run(params["body"], [*carry, *rest]),
            tuple(operands[:carried]),
        )
    rest = operands[carried + params["sliced"] :]

    def step(carry: Any, rows: Any) -> tuple[Any, Any]:
        found = run(params["body"], [*carry, *rows, *rest])
        return found[:carried], found[carried:]

    first, rows = tuple(operands[:carried]), tuple(operands[carried : carried + params["sliced"]])
    last, stacked = jax.lax.scan(step, first, rows, length=params["length"], reverse=params["reverse"])
    return [*last, *stacked]
