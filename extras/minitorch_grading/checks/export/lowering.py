"""A small ONNX model in our primitives: the graph that comes back is run by the judge, and compared with formulas."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from random import Random
from typing import Any

import numpy as np

from minitorch.graph import evaluate
from minitorch.primitives import constant

from ...harness import export as harness
from ...harness.plain import Array
from ..compare import off
from ..machines.graphs import graph_in
from ..reasons import indented, recognised
from ..samples import unforeseen
from ..task import Cases, Task

LOWER = {"Gemm": 5, "LeakyRelu": 4, "Softmax": 6, "GlobalAveragePool": 5}
MOST = 200  # nodes of a graph


def _exponents(x: Array, axis: int, by: Array | float) -> Array:
    raised = np.exp(x - by)
    return np.asarray(raised / raised.sum(axis, keepdims=True))


def _softmax(x: Array, axis: int = -1) -> Array:
    return _exponents(x, axis, x.max(axis, keepdims=True))


@dataclass(frozen=True)
class Operator:
    """An operator of ONNX.

    Attributes:
        value: its formula, of arrays and attributes.
        mistakes: formulas of what people write, by the sentence that says what is wrong.
    """

    value: Callable[..., Array]
    mistakes: dict[str, Callable[..., Array]]


OPERATORS = {
    "Gemm": Operator(
        lambda x, w, b, transB=0: x @ (w.T if transB else w) + b,
        {
            "the bias is missing": lambda x, w, b, transB=0: x @ (w.T if transB else w),
            "transB asks for the transposed matrix; without it the matrix is used as it is": lambda x, w, b, transB=0: (
                x @ (w if transB else w.T) + b if w.shape[0] == w.shape[1] else np.zeros(0)
            ),
        },
    ),
    "LeakyRelu": Operator(
        lambda x, alpha=0.01: np.where(x < 0, alpha * x, x),
        {
            "the attribute alpha is the slope below zero; only without it is that 0.01": lambda x, alpha=0.01: np.where(
                x < 0, 0.01 * x, x
            ),
            "below zero it is alpha times x": lambda x, alpha=0.01: np.maximum(x, 0),
        },
    ),
    "Softmax": Operator(
        _softmax,
        {
            "the attribute axis says along which dimension": lambda x, axis=-1: _softmax(x),
            "exp overflows: subtract the largest number first": lambda x, axis=-1: _exponents(
                x.astype(np.float32), axis, 0
            ),
        },
    ),
    "GlobalAveragePool": Operator(
        lambda x: x.mean((2, 3), keepdims=True),
        {
            "the mean is taken over height and width": lambda x: x.mean((1, 2, 3), keepdims=True),
            "it is a mean, and that is the sum": lambda x: x.sum((2, 3), keepdims=True),
            "the dimensions of height and width stay, with length 1": lambda x: x.mean((2, 3)),
        },
    ),
}


def _lower_cases(random: Random) -> Cases:
    rows, inner, outer = random.sample(range(2, 7), 3)

    def gemm(attributes: dict[str, Any], *shape: int) -> tuple[str, Any]:
        row = ("Gemm", ["x", "w", "b"], ["y"], attributes)
        return "Gemm", ([row], {"x": [rows, inner], "w": list(shape), "b": [outer]})

    def one(operator: str, attributes: dict[str, Any], *shape: int) -> tuple[str, Any]:
        return operator, ([(operator, ["x"], ["y"], attributes)], {"x": list(shape)})

    square = ("Gemm", ["x", "w", "b"], ["y"], {"transB": 1})
    return [
        gemm({"transB": 1}, outer, inner),
        gemm({}, inner, outer),
        ("Gemm", ([square], {"x": [rows, inner], "w": [inner, inner], "b": [inner]})),
        one("LeakyRelu", {}, rows, inner),
        one("LeakyRelu", {"alpha": random.randint(1, 9) / 8}, rows, inner, outer),
        one("Softmax", {}, rows, inner, outer),
        one("Softmax", {"axis": 1}, rows, inner, outer),
        one("Softmax", {"axis": 0}, rows, inner),
        one("GlobalAveragePool", {}, rows, inner, outer, outer + 1),
        one("GlobalAveragePool", {}, 1, rows, inner, inner),
    ]


def _wrong_lowering(operator: str, case: Any, answer: Any) -> str | None:
    rows, shapes = case
    attributes = dict(rows[0][3])
    graph = graph_in(answer, shapes.values(), (*harness.PRIMITIVES.values(), constant), MOST)
    draw = unforeseen()
    wide = 200.0 if operator == "Softmax" else 2.0
    given = [draw.uniform(-wide, wide, node.shape).astype(np.float32) for node in graph.inputs]
    (found,) = evaluate(graph, given)
    exact = [array.astype(np.float64) for array in given]
    known = OPERATORS[operator]
    if (said := off(found, known.value(*exact, **attributes), _near)) is None:
        return None
    with np.errstate(all="ignore"):
        why = recognised(known.mistakes.items(), lambda wrong: off(found, wrong(*exact, **attributes), _near) is None)
    return f"{said}{why}\n{indented(str(graph))}"


def _about_model(case: Any) -> str:
    ((operator, _, _, attributes),), shapes = case
    return f"{operator}{attributes or ''} of {', '.join(str(list(shape)) for shape in shapes.values())}"


def _near(found: Array, right: Array) -> Array:
    return np.isclose(found, right, 1e-4, 1e-4, equal_nan=True)


lower = Task(harness.lower, LOWER, _lower_cases, _wrong_lowering, about=_about_model)
