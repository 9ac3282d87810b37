"""Exported models beside the functions that they were made of: checked by ONNX, run by ONNX Runtime."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cache
from typing import Any

import numpy as np
import onnx
import onnxruntime

import minitorch as mt
from minitorch.ir import Node
from minitorch.tree import flatten
from minitorch_onnx.reading.loading import module_of, parsed

Array = np.ndarray[Any, Any]

onnxruntime.set_default_logger_severity(4)


def checked(model: Any, wraps: bool = False) -> Any:
    """A model that ONNX's checker and strict shape inference find nothing wrong with.

    Args:
        model: the `ModelProto`.
        wraps: whether a product of known integers overflows, which onnx's propagation of data takes for an error.
    """
    onnx.checker.check_model(model, full_check=True)
    onnx.shape_inference.infer_shapes(model, check_type=True, strict_mode=True, data_prop=not wraps)
    return model


@cache
def saturates() -> bool:
    """Whether ONNX Runtime adds two products of u8 and s8 in 16 bits, as it does on x86 without VNNI."""
    full = {"a": np.full((1, 2), 255, np.uint8), "b": np.full((2, 1), 127, np.int8)}
    kinds = [onnx.helper.np_dtype_to_tensor_dtype(each.dtype) for each in full.values()]
    given = [onnx.helper.make_tensor_value_info(name, kind, None) for name, kind in zip(full, kinds, strict=True)]
    found = [onnx.helper.make_tensor_value_info("y", onnx.TensorProto.INT32, None)]
    graph = onnx.helper.make_graph([onnx.helper.make_node("MatMulInteger", ["a", "b"], ["y"])], "g", given, found)
    model = onnx.helper.make_model(graph, opset_imports=[onnx.helper.make_opsetid("", 17)], ir_version=8)
    return bool(session(model).run(None, full)[0].item() != 2 * 255 * 127)


def session(model: Any, optimised: bool = True) -> onnxruntime.InferenceSession:
    """A session with one thread, on the CPU; quantised layers are computed as floats where integers would saturate."""
    options = onnxruntime.SessionOptions()
    options.intra_op_num_threads = options.inter_op_num_threads = 1
    is_quantised = any(node.op_type == "DequantizeLinear" for node in model.graph.node)
    if not optimised or (is_quantised and saturates()):
        options.graph_optimization_level = onnxruntime.GraphOptimizationLevel.ORT_DISABLE_ALL
    return onnxruntime.InferenceSession(model.SerializeToString(), options, providers=["CPUExecutionProvider"])


def run(model: Any, feeds: Mapping[str, Array], optimised: bool = True) -> list[Array]:
    """The results of a model in ONNX Runtime; 16-bit floats of Google's go in and out as their bits."""
    return [np.asarray(each) for each in session(model, optimised).run(None, dict(feeds))]


def arrays(results: Any) -> list[Array]:
    """The tensors of nested results, as arrays."""
    return [leaf.detach().numpy() for leaf in flatten(results)[0]]


def results(f: Callable[..., Any], *tensors: mt.Tensor, **options: Any) -> tuple[Any, list[Array], list[Array]]:
    """The exported model, its results in ONNX Runtime, and those of the function."""
    model = checked(mt.export.onnx(f, *tensors, **options))
    names = [each.name for each in model.graph.input]
    feeds = dict(zip(names, [x.detach().numpy() for x in tensors], strict=True))
    with mt.no_grad():
        return model, run(model, feeds), arrays(f(*tensors))


def assert_same(f: Any, *tensors: mt.Tensor, rtol: float = 2e-5, atol: float = 2e-6, **options: Any) -> Any:
    """The exported model gives the numbers of the function; returns the model."""
    model, theirs, ours = results(f, *tensors, **options)
    assert len(theirs) == len(ours)
    for one, other in zip(theirs, ours, strict=True):
        assert one.shape == other.shape and one.dtype == other.dtype
        np.testing.assert_allclose(one, other, rtol=rtol, atol=atol)
    return model


def assert_dynamic(f: Any, axes: Any, example: Sequence[mt.Tensor], *others: Sequence[mt.Tensor]) -> Any:
    """One model gives the numbers of the function for arguments of other sizes."""
    model = checked(mt.export.onnx(f, *example, dynamic_axes=axes))
    runner = session(model)
    for each in (example, *others):
        feeds = {value.name: x.numpy() for value, x in zip(model.graph.input, each, strict=True)}
        with mt.no_grad():
            expected = arrays(f(*each))
        for theirs, ours in zip(runner.run(None, feeds), expected, strict=True):
            assert theirs.shape == ours.shape and theirs.dtype == ours.dtype
            np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5)
    return model


def kinds(model: Any) -> list[str]:
    """The operators of a model, in order."""
    return [node.op_type for node in model.graph.node]


def of_namespace(namespace: Mapping[str, Any]) -> dict[str, str]:
    """The modules of a program by name, each exported with a value of the program that it takes.

    They are checked and run as by `assert_same`, and read again.

    Args:
        namespace: what the program has defined: its modules, and the tensors and arrays that may be their inputs; of a
            placeholder, ones in its shape.

    Raises:
        AssertionError: if no value is an input of a module, or a model has other numbers.
    """
    modules = {name: each for name, each in namespace.items() if isinstance(each, mt.nn.Module) and name[0] != "_"}
    given = {name: each for name, each in namespace.items() if isinstance(each, mt.Tensor | np.ndarray)}
    found = {}
    for name, module in modules.items():
        module.eval()
        for source, value in given.items():
            try:
                is_node = isinstance(value, mt.Tensor) and isinstance(value._value, Node)
                x = mt.ones(value.shape, dtype=value.dtype) if is_node else mt.as_tensor(value).detach()[:64]
                with mt.no_grad():
                    module(x)
            except Exception:  # it is no input of this module
                continue
            exported = assert_same(module, x, rtol=1e-3, atol=1e-4)
            read = module_of(parsed(exported.SerializeToString()))
            np.testing.assert_allclose(arrays(read(x))[0], arrays(module(x))[0], rtol=1e-4, atol=1e-5)
            found[name] = source
            break
        else:
            raise AssertionError(f"{name} takes none of {', '.join(given)}")
    return found
