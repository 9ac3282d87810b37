"""A small code generator: its source is run, its loads and operations are counted, and so are the loops of its text."""

from __future__ import annotations

import ast
import math
from functools import partial
from random import Random
from typing import Any

import numpy as np

from .... import primitives as P
from ....dtypes import float64
from ....graph import Graph, apply, input_node, literal
from ....ir import Node, Spec
from ...asks import fusion as asks
from ...asks.plain import described
from ..samples import evaluate, unforeseen
from ..smaller import explained, indented
from ..task import Task, by_case
from .kernel_source import MOST_TEXT, Array, Machine, NotRunError

Cases = list[tuple[str, Any]]
GENERATE = {"the right numbers": 10, "one loop": 7, "each value once": 8}
LENGTH = 5
UNARY, BINARY = (P.neg, P.exp), (P.add, P.sub, P.mul, P.maximum)


def _text(*lines: str) -> str:
    return "\n".join([f"graph(x: f64[{LENGTH}], y: f64[{LENGTH}]):", *lines[:-1], f"return {lines[-1]}"])


def _random(random: Random, size: int) -> str:
    spec = Spec((LENGTH,), float64)
    inputs = [input_node(name, spec) for name in "xy"]
    pool: list[Node] = list(inputs)
    for _ in range(size):
        a, b = random.choice(pool[-3:]), random.choice(pool)
        if random.random() < 0.3:
            # exp of what is not positive, so that no number grows beyond all bounds
            pool.append(apply(P.exp, apply(P.neg, apply(P.maximum, a, literal(0.0, spec)))))
        else:
            b = literal(random.choice((2.0, 0.5, -1.0)), spec) if random.random() < 0.3 else b
            pool.append(apply(random.choice(BINARY), a, b))
    return str(Graph(inputs, pool[-1:]))


def _graphs(seed: int) -> Cases:
    random = Random(seed)
    return [
        ("the right numbers", _text("%0 = add(x, y)", "%0")),
        ("the right numbers", _text("%0 = neg(x)", "%1 = exp(%0)", "%2 = mul(%1, 0.5)", "%2")),
        ("the right numbers", _text("%0 = sub(x, y)", "%1 = sub(y, %0)", "%2 = maximum(%1, 0.0)", "%2")),
        ("the right numbers", _random(random, 6)),
        ("one loop", _text("%0 = neg(x)", "%1 = add(%0, y)", "%1")),
        ("one loop", _random(random, 5)),
        ("each value once", _text("%0 = add(x, y)", "%1 = mul(%0, %0)", "%1")),
        ("each value once", _text("%0 = exp(x)", "%1 = neg(%0)", "%2 = mul(%1, %0)", "%3 = add(%2, %0)", "%3")),
        ("each value once", _text("%0 = mul(x, x)", "%1 = add(%0, x)", "%1")),
    ]


def _wrong(part: str, text: str, source: Any) -> str | None:
    graph = Graph.parse(text)
    if type(source) is not str:
        return f"a text was expected, the source of a function `kernel`, and it is {described(source)}"
    what = f"\nof\n{indented(str(graph))}\nit wrote\n{indented(source[:MOST_TEXT])}"
    numbers = [unforeseen().uniform(-2, 2, LENGTH).tolist() for _ in graph.inputs]
    arrays = [Array(list(each)) for each in (*numbers, [math.nan] * LENGTH)]
    machine = Machine()
    try:
        machine.run(source, arrays)
    except NotRunError as error:
        return f"{error}{what}"
    out, right = np.array(arrays[-1].numbers), evaluate(graph, [np.array(each) for each in numbers])[0]
    near = np.isclose(out, right, rtol=1e-12, atol=1e-12)
    if not near.all():
        at = int(np.argmin(near))
        swapped = "; mind the order of the operands" if graph.count()["sub"] else ""
        return f"element {at} is {out[at]:.6g} and should be {right[at]:.6g}{swapped}{what}"
    loops = sum(isinstance(node, (ast.For, ast.While, ast.comprehension)) for node in ast.walk(ast.parse(source)))
    if part == "one loop" and loops != 1:
        why = "a loop for each operation puts every value into memory; that is what fusion is to avoid"
        return f"there are {loops} loops: {why}{what}"
    if part != "each value once":
        return None
    for node, array in zip(graph.inputs, arrays, strict=False):
        if most := max([many for many in array.loads.values() if many > 1], default=0):
            return f"{node.params['name']} is read {most} times for each element: keep it in a variable{what}"
    computed = sum(node.primitive.kind == "binary" or node.primitive is P.exp for node in graph.nodes)
    if machine.operations > computed * LENGTH:
        done = f"{machine.operations} operations on {LENGTH} elements for a graph of {computed}"
        return f"{done}: a value that is used twice is computed twice{what}"
    return None


def _judge(cases: Cases, answers: Any) -> Any:
    def wrong(case: tuple[str, str], attempted: Any) -> str | None:
        part, text = case
        return explained(text, attempted, partial(_wrong, part))

    return by_case(GENERATE, [(part, (part, text)) for part, text in cases], answers, wrong)


generate = Task(asks.generate, GENERATE, _graphs, _judge, shrinks=_wrong)
