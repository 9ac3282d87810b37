"""Nodes of ONNX that the student writes: checked by ONNX, and run by its reference runtime on numbers drawn here."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial
from random import Random
from typing import Any

import numpy as np

from ...harness import export as harness
from ...harness.plain import Array, Unknown, described
from ..compare import off
from ..reasons import Wrong, expect, hint, recognised
from ..samples import unforeseen
from ..task import Cases, Task

OPSET = 13
MOST_NODES, MOST_NUMBERS = 40, 8
# The operators that may be used. None makes a large value, or loops, so running them needs no bound.
OPERATORS = (
    "Abs", "Add", "And", "Cast", "Clip", "Constant", "Div", "Equal", "Exp", "Greater", "HardSigmoid", "Identity",
    "Less", "Log", "Max", "Min", "Mul", "Neg", "Not", "Or", "ReduceMax", "ReduceMin", "ReduceSum", "Relu", "Sigmoid",
    "Softmax", "Sqrt", "Sub", "Where",
)  # fmt: skip

LATER = {"HardSwish": 14, "Mish": 18, "Gelu": 20, "Swish": 24}


def check_rows(rows: Any) -> None:
    """See that an answer is a list of nodes."""
    expect(rows, list | tuple, "a list of nodes")
    if not 1 <= len(rows) <= MOST_NODES:
        raise Wrong(f"there are {len(rows)} nodes; from 1 to {MOST_NODES} are taken")
    for row in rows:
        if type(row) not in (list, tuple) or len(row) != 4:
            raise Wrong(f"a node is (operator, inputs, outputs, attributes), and this one is {described(row)}")
        operator, inputs, outputs, attributes = row
        if type(operator) is not str or type(attributes) is not dict:
            raise Wrong(f"a node is (a text, a list, a list, a dict), and this one is {described(row)}")
        for names in (inputs, outputs):
            if type(names) not in (list, tuple) or not all(type(name) is str for name in names):
                raise Wrong(f"the inputs and outputs of {operator} are lists of names, and one is {described(names)}")
        if operator in LATER:
            raise Wrong(f"operators of version {OPSET} have no {operator}: it came with version {LATER[operator]}")
        if operator not in OPERATORS:
            raise Wrong(f"{operator} is none of the operators for this task: {', '.join(OPERATORS)}")
        for name, value in attributes.items():
            several = value if type(value) in (list, tuple) else [value]
            numbers = {type(each) for each in several} <= {int, float}
            if type(name) is not str or len(several) > MOST_NUMBERS or not numbers:
                told = value.what if isinstance(value, Unknown) else described(value)
                raise Wrong(f"the attribute {name!r} of {operator} is a number, or a list of a few, and not {told}")


def ran(rows: Any, feeds: Mapping[str, Array], result: str) -> Array:
    """The result of nodes."""
    import onnx
    from onnx.reference import ReferenceEvaluator

    check_rows(rows)
    helper = onnx.helper
    nodes = [
        helper.make_node(operator, list(inputs), list(outputs), **attributes)
        for operator, inputs, outputs, attributes in rows
    ]
    kinds = {name: helper.np_dtype_to_tensor_dtype(array.dtype) for name, array in feeds.items()}
    given = [helper.make_tensor_value_info(name, kind, ["rows", "columns"]) for name, kind in kinds.items()]
    made = helper.make_tensor_value_info(result, onnx.TensorProto.FLOAT, ["rows", "columns"])
    graph = helper.make_graph(nodes, "yours", given, [made])
    model = helper.make_model(graph, opset_imports=[helper.make_opsetid("", OPSET)], ir_version=8)
    try:
        onnx.checker.check_model(model, full_check=True)
        with np.errstate(all="ignore"):
            (found,) = ReferenceEvaluator(model).run(None, dict(feeds))
    except Exception as error:  # whatever is wrong with the student's nodes
        raise Wrong(f"ONNX refuses the model: {' '.join(str(error).split())[:300] or type(error).__name__}") from None
    array = np.asarray(found)
    shape = next(iter(feeds.values())).shape
    if array.shape != shape or array.dtype != np.float32:
        raise Wrong(f"the result is {array.dtype} of shape {list(array.shape)}, and should be float32 of {list(shape)}")
    return array


def near(found: Array, right: Array) -> Array:
    """Which elements are as they should be."""
    return np.asarray(np.abs(found - right) <= 1e-5 * np.maximum(1, np.abs(right)))


# --- hard_swish -------------------------------------------------------------------------------------------------

HARD_SWISH = {"a model": 5, "right numbers": 10}


def _hard_cases(random: Random) -> Cases:
    names = (f"in_{random.randrange(100)}", f"out_{random.randrange(100)}")
    return [("a model", names), ("right numbers", ("x", "y")), ("right numbers", names)]


def _wrong_hard(part: str, case: Any, answer: Any) -> str | None:
    x, y = case
    draw = unforeseen()
    numbers = draw.uniform(-6, 6, (draw.integers(2, 5), draw.integers(5, 9))).astype(np.float32)
    found = ran(answer, {x: numbers}, y)
    if part == "a model":
        return None
    known = (
        ("that is the factor: multiply it by x", np.clip(numbers + 3, 0, 6) / 6),
        ("the alpha of HardSigmoid is 0.2 if nothing is said", numbers * np.clip(0.2 * numbers + 0.5, 0, 1)),
        ("it is six times too large", numbers * np.clip(numbers + 3, 0, 6)),
        ("above 3 the factor stays 1", numbers * np.maximum(numbers + 3, 0) / 6),
    )
    said = off(found, numbers * np.clip(numbers + 3, 0, 6) / 6, near, x=numbers)
    return said and said + recognised(known, partial(np.allclose, found, atol=1e-4))


hard_swish = Task(harness.hard_swish, HARD_SWISH, _hard_cases, _wrong_hard)

# --- masked_softmax ---------------------------------------------------------------------------------------------

MASKED = {"right numbers": 9, "large scores": 6, "rows without a place": 10}


def _masked_cases(random: Random) -> Cases:
    number = random.randrange(100)
    return [(part, (f"scores_{number}", f"mask_{number}", f"shares_{number}")) for part in MASKED for _ in range(2)]


def _softmax(scores: Array, mask: Array) -> Array:
    kept = np.where(mask, scores.astype(np.float64), -np.inf)
    largest = kept.max(1, keepdims=True)
    raised = np.exp(kept - np.where(np.isfinite(largest), largest, 0))
    total = raised.sum(1, keepdims=True)
    return np.asarray(raised / np.where(total > 0, total, 1))


def _wrong_masked(part: str, case: Any, answer: Any) -> str | None:
    scores, mask, shares = case
    draw = unforeseen()
    shape = (int(draw.integers(3, 6)), int(draw.integers(4, 7)))
    numbers = draw.uniform(-3, 3, shape).astype(np.float32)
    places = draw.random(shape) < 0.6
    places[:, 0], places[:, 1] = True, False
    if part == "large scores":  # those of the places that count are the smaller ones
        numbers = np.where(places, numbers - 60_000, numbers + 200).astype(np.float32)
    if part == "rows without a place":
        places[draw.integers(len(places))] = False
    found = ran(answer, {scores: numbers, mask: places}, shares)
    right = _softmax(numbers, places)
    if not (said := off(found, right, near, score=numbers, mask=places)):
        return None
    if part == "large scores":
        return f"{said}; -10000 is not below every score, so a masked place needs a far lower one, and not a sum"
    unmasked = _softmax(numbers, np.ones_like(places))
    known = (
        ("the mask was not used", unmasked),
        ("the mask was used the other way round: True means that a place counts", _softmax(numbers, ~places)),
        ("the shares of the places that count add up to 1: mask before the softmax", unmasked * places),
        ("a softmax is taken along each row, the last axis", _softmax(numbers.T, places.T).T),
    )
    empty = ~places.any(1)
    others = empty.any() and near(found[~empty], right[~empty]).all()
    why = recognised(known, partial(np.allclose, found, atol=1e-4))
    return said + (why or hint(others, "in a row in which no place counts all shares are 0"))


masked_softmax = Task(harness.masked_softmax, MASKED, _masked_cases, _wrong_masked)
