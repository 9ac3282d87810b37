"""An If whose condition is constant takes one branch, in every mode; one whose condition is not says so."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest
from onnx import helper, numpy_helper

import minitorch as mt
from minitorch.errors import TracedValueError

TWO, ROW = np.array(2), np.array([2.0], np.float32)
node = helper.make_node

# What makes `cond`, and the initializers: all say yes for an x of 2 by 3 and a k of 2.
CONDITIONS: dict[str, tuple[list[Any], dict[str, Any]]] = {
    "initializer": ([], {"cond": np.array(True)}),
    "initializer of shape [1]": ([], {"cond": np.array([True])}),
    "node": ([node("Constant", [], ["cond"], value=numpy_helper.from_array(np.array(True)))], {}),
    "cast number": ([node("Cast", ["p"], ["cond"], to=9)], {"p": ROW}),
    "compared numbers": ([node("Greater", ["p", "q"], ["cond"])], {"p": ROW, "q": ROW - 1}),
    "reduced numbers": (
        [node("ReduceSum", ["p"], ["r"], keepdims=0), node("Greater", ["r", "q"], ["cond"])],
        {"p": np.ones((3, 4), np.float32), "q": ROW[0]},
    ),
    "shape": (
        [node("Shape", ["x"], ["s"]), node("Gather", ["s", "i"], ["n"]), node("Equal", ["n", "two"], ["cond"])],
        {"i": np.array(0), "two": TWO},
    ),
    "argument": ([node("Equal", ["k", "two"], ["cond"])], {"two": TWO}),
}


def loaded(name: str) -> Any:
    """A model whose branches give results of different shapes."""
    nodes, held = CONDITIONS[name]
    info = helper.make_empty_tensor_value_info
    then = helper.make_graph([node("ReduceSum", ["x"], ["t"], keepdims=0)], "then", [], [info("t")])
    other = helper.make_graph([node("Neg", ["x"], ["e"])], "other", [], [info("e")])
    choose = node("If", ["cond"], ["y"], name="choose", then_branch=then, else_branch=other)
    given = [helper.make_tensor_value_info("x", 1, ["n", 3])]
    given += [helper.make_tensor_value_info("k", 7, [])] if name == "argument" else []
    initializers = [numpy_helper.from_array(np.asarray(array), name) for name, array in held.items()]
    graph = helper.make_graph([*nodes, choose], "g", given, [info("y")], initializers)
    return mt.export.load_onnx(
        helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)], ir_version=8)
    ).eval()


@pytest.mark.parametrize("name", CONDITIONS)
def test_a_constant_condition_takes_one_branch_in_every_mode(name: str) -> None:
    model, x = loaded(name), mt.ones(2, 3)
    rest = [2] if name == "argument" else []
    k = [mt.tensor(2)] if rest else []
    assert model(x, *k).item() == 6
    assert mt.jit(model)(x, *rest).item() == 6
    assert mt.jit(model, backend="interpret")(x, *rest).item() == 6
    assert mt.freeze(model, x, *rest)(x, *rest).item() == 6
    assert mt.freeze(lambda x: model(x, *k), x)(x).item() == 6
    with mt.lazy():
        late = model(x, *k)
    assert late.item() == 6
    with mt.Graph() as graph:
        given = mt.placeholder((2, 3))
        result = model(given, *rest)
    assert mt.Session(graph).run(result, {given: x}).item() == 6


def test_numbers_take_their_branch_in_one_jitted_function() -> None:
    model, x = loaded("argument"), mt.ones(2, 3)
    function = mt.jit(model)
    assert function(x, 2).shape == () and function(x, 3).shape == (2, 3) and function(x, 2).shape == ()


@pytest.mark.parametrize("way", ["jit", "freeze"])
def test_the_error_names_the_if_and_the_line(way: str) -> None:
    model, x, k = loaded("argument"), mt.ones(2, 3), mt.tensor(2)
    with pytest.raises(TracedValueError, match=r"node 'choose' \(If\)") as error:
        mt.jit(model)(x, k) if way == "jit" else mt.freeze(model, x, k)(x, k)
    assert "test_onnx_control.py" in str(error.value) and "`k`" in str(error.value)
    assert "Python number" in str(error.value)
