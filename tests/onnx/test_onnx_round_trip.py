"""Models that are exported and read again have the same numbers and kernels: operators, benchmarks, models, Q/DQ."""

from __future__ import annotations

import copy
from collections.abc import Callable
from functools import partial
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from benchmarks.cases import CASES as BENCHMARKS
from benchmarks.cases import Case
from benchmarks.inference.models import ROWS_OF_TABLE, state
from benchmarks.libraries import Minitorch
from minitorch import quantization as q
from minitorch_onnx.reading.loading import module_of, parsed
from tests.onnx.exported import arrays, assert_same
from tests.onnx.test_onnx_export import DRAWS, MODELS, Positions
from tests.support import pages
from tests.support.cases import CASES, LAPACK

# The last of several updates of one element wins: ONNX does not say so, and computes who is the last.
MORE_KERNELS = {"put", "index_copy", "index_fill", "scatter"}
# Constants of a size known beforehand are arrays in the model that is read, and computed once; ReduceMin and ArgMin
# read what is negated for both here.
FEWER_KERNELS = {
    "F.multilabel_margin_loss",
    "arange", "eye", "full", "full_like", "index_add", "linspace", "logspace", "min", "ones", "ones_like",
    "scatter_add", "zeros", "zeros_like",
}  # fmt: skip


def close(found: list[Any], wanted: list[Any], tolerance: float) -> None:
    """The same types, shapes and numbers."""
    for one, other in zip(found, wanted, strict=True):
        assert one.dtype == other.dtype and one.shape == other.shape
        np.testing.assert_allclose(one, other, rtol=tolerance, atol=tolerance)


def kernels(f: Callable[..., Any], *tensors: mt.Tensor) -> tuple[int, list[Any]]:
    """How many kernels a compiled function has, and its results; no code is made."""
    with mt.no_grad():
        compiled = mt.jit(f, backend="loops")
        return len(compiled.ledger(*tensors).kernels), arrays(compiled(*tensors))


def again(f: Any, *tensors: mt.Tensor) -> Any:
    """A function's model, checked, run in ONNX Runtime, and read."""
    exported = assert_same(f, *tensors, rtol=1e-3, atol=1e-4)
    return module_of(parsed(exported.SerializeToString())).eval()


def assert_comes_back(f: Any, *tensors: mt.Tensor, tolerance: float = 1e-5) -> None:
    """The module that is read has the numbers and as many kernels."""
    module = again(f, *tensors)
    close(arrays(module(*tensors)), arrays(f(*tensors)), tolerance)
    (count, wanted), (other, found) = kernels(f, *tensors), kernels(module, *tensors)
    close(found, wanted, tolerance)
    assert other == count


def test_every_operator_comes_back(sweep: bool) -> None:
    """One call of each function, unless all are asked for."""
    for case in CASES if sweep else {case.name: case for case in CASES}.values():
        if case.name in DRAWS | LAPACK:
            continue
        tensors = case.tensors()
        module = module_of(mt.export.onnx(case.function, *tensors))
        (count, wanted), (other, found) = kernels(case.function, *tensors), kernels(module, *tensors)
        close(found, wanted, 1e-5)
        if case.name in FEWER_KERNELS:
            assert other <= count, case.name
        elif case.name not in MORE_KERNELS:
            assert other == count, case.name


@pytest.mark.parametrize("case", [case for case in BENCHMARKS if not case.stateful], ids=lambda case: case.name)
def test_every_program_of_the_benchmarks_comes_back(case: Case) -> None:
    tensors = [mt.tensor(each) for each in case.make_inputs(case.tiny)]
    assert_comes_back(partial(case.program, Minitorch()), *tensors)


@pytest.mark.parametrize("name", MODELS)
def test_models_of_the_course_come_back(name: str) -> None:
    make, example = MODELS[name]
    assert_comes_back(make().eval(), example())


def test_a_dynamic_model_comes_back() -> None:
    model, words = Positions().eval(), mt.tensor([[1, 2, 3], [4, 5, 6]])
    module = module_of(mt.export.onnx(model, words, dynamic_axes={"words": {0: "batch", 1: "time"}}))
    for each in (words, words[:1], mt.cat([words] * 4, 1)):
        close(kernels(module, each)[1], kernels(model, each)[1], 1e-6)
        assert kernels(module, each)[0] == kernels(model, each)[0]


def of_table() -> list[Any]:
    """The models of the inference benchmark, small."""
    return [pytest.param(model, inputs, tiny, id=name) for name, model, inputs, _, tiny in ROWS_OF_TABLE]


@pytest.mark.sweep
@pytest.mark.parametrize("form", ["float32", "int8", "int8 weights", "int4 weights"])
@pytest.mark.parametrize(("model", "inputs", "tiny"), of_table())
def test_frozen_and_quantised_models_come_back_with_their_integer_kernels(
    model: Any, inputs: Any, tiny: tuple[int, ...], form: str
) -> None:
    *parameters, x = inputs(np.random.default_rng(1), *tiny)
    module, given = model.module(mt.nn, mt.nn.functional, parameters).eval(), mt.tensor(x)
    names = list(module.state_dict())
    values = {name: mt.tensor(value) for name, value in state(names, parameters).items()}
    module.load_state_dict(values, strict=False)
    if form == "int8":
        module = q.convert(q.calibrate(q.prepare(copy.deepcopy(module), example=given), [given]))
    elif form != "float32":
        module = q.quantize_weights_(module, bits=int(form[3]), group_size=4 if form == "int4 weights" else None)
    read = again(module, given)
    close(arrays(read(given)), arrays(module(given)), 1e-5)
    for way in (mt.jit, mt.freeze):
        with mt.no_grad():
            one, other = (way(f, given) if way is mt.freeze else way(f) for f in (module, read))
            close(arrays(other(given)), arrays(one(given)), 2e-6)
            assert len(other.ledger(given).kernels) == len(one.ledger(given).kernels)
            assert (
                abs(other.cost(given).bytes - one.cost(given).bytes) <= 32
            )  # constants of a few elements are counted or read


def test_quantised_layers_are_the_operators_that_runtimes_join() -> None:
    given = mt.randn(2, 3, 8, 8)
    model: mt.nn.Module = mt.nn.Sequential(mt.nn.Conv2d(3, 4, 3), mt.nn.ReLU()).eval()
    model = q.convert(q.calibrate(q.prepare(model, example=given), [given]))
    found = [node.op_type for node in mt.export.onnx(model, given).graph.node]
    assert found == ["QuantizeLinear", "DequantizeLinear", "DequantizeLinear", "Conv", "Relu"]


@pytest.mark.parametrize(("by", "found"), [("bits", False), ("mt.arange(0, 8, 4)", True), ("mt.arange(30, 40)", False)])
def test_integers_that_cannot_be_negative_are_shifted_as_unsigned_ones(by: str, found: bool) -> None:
    def down(x: mt.Tensor, bits: mt.Tensor) -> mt.Tensor:
        return x.to(mt.int32).unsqueeze(-1) >> eval(by, {"mt": mt, "bits": bits}).to(mt.int32)

    model = assert_same(down, mt.tensor([1, 77, 255], dtype=mt.uint8), mt.tensor([0, 3], dtype=mt.int32))
    assert ("BitShift" in [node.op_type for node in model.graph.node]) == found


def test_the_page_about_onnx() -> None:
    assert pages.run("onnx.md") > 15
