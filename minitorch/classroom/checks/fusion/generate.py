"""A small code generator: the student's source is run, and its text is looked at."""

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
from ...asks.fusion import numbers_for
from ..samples import evaluate
from ..smaller import explained, indented
from ..task import Task, by_case

Cases = list[tuple[str, Any]]
GENERATE = {"the right numbers": 10, "one loop": 7, "each value once": 8}
LENGTH = 5
MOST_TEXT = 20_000  # characters of a source
BUILT_IN = (abs, enumerate, float, int, iter, len, list, map, max, min, next, pow, range, reversed, sum, tuple, zip)
MATH = frozenset(dir(math))  # as it is before a student's code runs
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


def _wrong(part: str, text: str, answer: Any) -> str | None:
    graph = Graph.parse(text)
    source, out = answer
    if type(source) is not str:
        raise ValueError("the source is a text")
    what = f"\nof\n{indented(str(graph))}\nit wrote\n{indented(str(source)[:MOST_TEXT])}"
    if out is None:
        return f"the source defines no function `kernel`{what}"
    if foreign := _foreign(source):
        own = "its parameters, `math`, and functions such as `len` and `max`"
        return f"the source uses {foreign}; a kernel has {own}{what}"
    arrays = [np.array(numbers) for numbers in numbers_for(graph, source)]
    right = evaluate(graph, arrays)[0]
    if not np.allclose(out, right, rtol=1e-12, atol=1e-12, equal_nan=True):
        at = int(np.argmin(np.isclose(out, right, rtol=1e-12, atol=1e-12)))
        swapped = "; mind the order of the operands" if graph.count()["sub"] else ""
        return f"element {at} is {out[at]:.6g} and should be {right[at]:.6g}{swapped}{what}"
    return _misshapen(part, graph, source, what)


def _foreign(source: str) -> str | None:
    """A name in a source that is none of a kernel's own: with it, something else could compute the numbers."""
    try:
        nodes = list(ast.walk(ast.parse(source[:MOST_TEXT])))
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return None  # which is another fault
    own = {"math", *(each.__name__ for each in BUILT_IN)}
    for node in nodes:
        match node:
            case ast.Name(name, ast.Store()) | ast.FunctionDef(name) | ast.arg(name):
                own.add(name)
            case ast.ImportFrom("math", names):
                own.update(each.asname or each.name for each in names)
    for node in nodes:
        match node:
            case ast.Name(name, ast.Load()) if name not in own:
                return name
            case ast.Attribute(ast.Name("math"), name) if name not in MATH:
                return f"math.{name}"
            case ast.Attribute(_, name) if name.startswith("_"):
                return name
            case ast.Import(names) if [each.name for each in names] != ["math"]:
                return f"import {names[0].name}"
            case ast.ImportFrom(module) if module != "math":
                return f"from {module} import"
    return None


def _misshapen(part: str, graph: Graph, source: str, what: str) -> str | None:
    """The fault in the form of a source that computes the right numbers."""
    if len(source) > MOST_TEXT:
        return f"the source has {len(source)} characters, for a graph of {len(graph.nodes)} nodes"
    try:
        tree = ast.parse(source)
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        return f"the source cannot be read{what}"
    nodes = list(ast.walk(tree))
    loops = sum(isinstance(node, (ast.For, ast.While, ast.comprehension)) for node in nodes)
    if part == "one loop" and loops != 1:
        why = "a loop for each operation puts every value into memory; that is what fusion is to avoid"
        return f"there are {loops} loops: {why}{what}"
    if part != "each value once":
        return None
    names = [str(node.params["name"]) for node in graph.inputs]
    loads = [n.value.id for n in nodes if isinstance(n, ast.Subscript) and isinstance(n.value, ast.Name)]
    for name in names:
        if loads.count(name) > 1:
            return f"{name} is read {loads.count(name)} times for each element: keep it in a variable{what}"
    written = sum(isinstance(node, (ast.BinOp, ast.Call)) for node in nodes) - _bookkeeping(nodes)
    computed = sum(node.primitive.kind == "binary" or node.primitive is P.exp for node in graph.nodes)
    if written > computed:
        return f"{written} operations for a graph of {computed}: a value that is used twice is computed twice{what}"
    return None


def _bookkeeping(nodes: list[ast.AST]) -> int:
    """Calls and sums that belong to the loop: those that have nothing in them but the index, lengths and numbers."""
    slices = [node.slice for node in nodes if isinstance(node, ast.Subscript)]
    own = {node.id for each in slices for node in ast.walk(each) if isinstance(node, ast.Name)}
    calls = (node.func for node in nodes if isinstance(node, ast.Call))
    loops = sum(
        isinstance(function, ast.Name) and function.id in ("range", "len", "enumerate", "zip") for function in calls
    )
    sums = [node for node in nodes if isinstance(node, ast.BinOp)]
    names = [[each.id for each in ast.walk(node) if isinstance(each, ast.Name)] for node in sums]
    return loops + sum(bool(own & set(each)) and set(each) <= own for each in names)


def _judge(cases: Cases, answers: Any) -> Any:
    def wrong(case: tuple[str, str], attempted: Any) -> str | None:
        part, text = case
        return explained(text, attempted, partial(_wrong, part))

    return by_case(GENERATE, [(part, (part, text)) for part, text in cases], answers, wrong)


generate = Task(asks.generate, GENERATE, _graphs, _judge, shrinks=_wrong)
