"""`mt.export.onnx`: a function or a model is traced, and written as an ONNX model.

    function ──trace, once for each try of the sizes──► Graphs ──passes, lifting──► Graphs with operators
                                                            └──lined up──► Sizes ──► rows ──► ModelProto

Tracing is that of `jit`, without gradients. A tensor that the function uses from outside is a parameter of the model,
by its name in the module. What the function writes in place cannot be exported: an ONNX model has no state.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from ...errors import TranslationError
from ...export.onnx_format.common import DEFAULT_OPSET, FIRST_OPSET, newest_opset
from ...export.onnx_format.writing.model import Interface, model_of, write
from ...export.onnx_format.writing.sizes import Sizes, traced_sizes
from ...functional.data import tensor
from ...graph import Graph
from ...graph.rewrite import Rules
from ...interpreters import Captured, set_grad_enabled
from ...ir import Node, is_input_name
from ...nn import Module
from ...passes import COMMON_SUBEXPRESSIONS, DEAD_CODE, LAWS, MOVEMENT, run_pipeline
from ...passes.algebra import RECIPROCALS
from ...passes.lifting import LIFTING
from ...passes.pipeline import table_pass
from ...tensor import Tensor
from ...tree import Structure
from ..checking.rehearsal import Argument, Output
from ..guards import surroundings
from ..guards.signature import Signatures, plain
from ..tracing.recorded import record
from ..tracing.recording import CallStaging
from .jit import Jitted

Array = np.ndarray[Any, Any]
Axes = Mapping[str, Mapping[int, str] | Sequence[int]] | Sequence[Mapping[int, str] | None]

LARGE = 1 << 30  # bytes of parameters from which on they have a file of their own; a protobuf message ends at 2**31
# A quotient stays one: a dynamic size is a power of two at times.
_LAWS = Rules(*(rule for rule in LAWS if rule not in tuple(RECIPROCALS)))
_ALGEBRA = table_pass("algebra", _LAWS, "laws of arithmetic that do not depend on a number")
# Constants are not folded: a model keeps its weights as they are, quantised ones as integers.
PASSES = (DEAD_CODE, COMMON_SUBEXPRESSIONS, MOVEMENT, _ALGEBRA, MOVEMENT, COMMON_SUBEXPRESSIONS, DEAD_CODE, LIFTING)
TRIES = (1, 3)  # what is added to a dynamic size for the further traces


@dataclass(frozen=True)
class _Traced:
    """One trace: the graph, and the arrays of the tensors from outside by the names of its inputs."""

    graph: Graph
    parameters: dict[str, Array]
    outputs: list[str]


def onnx(
    f: Callable[..., Any],
    *example: Any,
    path: str | os.PathLike[str] | None = None,
    dynamic_axes: Axes | None = None,
    opset_version: int = DEFAULT_OPSET,
    ir_version: int | None = None,
    external_data: bool | int = LARGE,
    **kwargs: Any,
) -> Any:
    """Write a function or a module as an ONNX model.

    Softmax, convolutions, layer normalization and the like come out as the operators of these names. All other
    operations are composed of ONNX operators that compute the same. Parameters keep their names. The model is that of
    evaluation: call ``model.eval()`` first.

    Args:
        f: a function of tensors, a module, or what `jit` or `freeze` has made of one.
        example: arguments; their shapes and types are those of the model's inputs.
        path: where to write the file.
        dynamic_axes: dimensions of any length, as in `torch.onnx.export`: by the name of an argument, names for
            dimensions, ``{"x": {0: "batch"}}``. Dimensions of one name have one length.
        opset_version: the version of the operators, 13 or newer. By default 20, the oldest with Gelu.
        ir_version: the version of the format; by default the oldest that has these operators.
        external_data: whether arrays are written to a second file, ``path + ".data"``; or the bytes from which on.
        kwargs: further arguments, by name.

    Returns:
        The `onnx.ModelProto`.

    Raises:
        ModuleNotFoundError: without the package `onnx`.
        TranslationError: for an operation that ONNX does not have (``MT802``), or one that depends on a dynamic size
            in another way than in proportion to it (``MT803``).

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.ReLU()).eval()
        >>> found = mt.export.onnx(model, mt.ones(2, 4), dynamic_axes={"input": {0: "batch"}})
        >>> [node.op_type for node in found.graph.node]
        ['Gemm', 'Relu']
        >>> [each.name for each in found.graph.initializer]
        ['0.weight', '0.bias']
    """
    newest = newest_opset()
    if not FIRST_OPSET <= opset_version <= newest:
        raise ValueError(f"opset_version is from {FIRST_OPSET} to {newest}, not {opset_version}")
    traced, sizes = _with_sizes(f, example, kwargs, dynamic_axes)
    interface = Interface(traced.parameters, traced.outputs, sizes)
    model = model_of(traced.graph, interface, opset_version, ir_version)
    if path is not None:
        write(model, path, external_data)
    return model


def _with_sizes(
    f: Callable[..., Any], example: tuple[Any, ...], kwargs: dict[str, Any], axes: Axes | None
) -> tuple[_Traced, Sizes]:
    """The trace of the example, and what is dynamic in it."""
    signatures = Signatures(f, (), ())
    found, structure, _, _ = signatures.of(example, kwargs)
    leaves, names = plain(found), signatures.leaf_names(structure)
    if not axes:
        return _trace(f, leaves, structure, names), Sizes()
    dynamic = _dynamic(axes, names, leaves)
    symbols = list(dict.fromkeys(dynamic.values()))
    first = []
    for symbol in symbols:
        lengths = {leaves[at].shape[axis] for (at, axis), name in dynamic.items() if name == symbol}
        if len(lengths) > 1:
            raise ValueError(f"dynamic_axes: the dimensions {symbol!r} have the lengths {sorted(lengths)}")
        first.append(max(lengths.pop(), 2))  # with a length of 1, an operand would be repeated
    values = [tuple(first)]
    for count in range(1, len(symbols) + 1):
        for chosen in itertools.combinations(range(len(symbols)), count):
            values += [tuple(n + more * (at in chosen) for at, n in enumerate(first)) for more in TRIES]
    traces = []
    for each in values:
        sized = dict(zip(symbols, each, strict=True))
        traces.append(_trace(f, _resized(leaves, dynamic, sized), structure, names))
    places: dict[str, tuple[str, int]] = {}
    for (at, axis), symbol in dynamic.items():
        places.setdefault(symbol, (names[at], axis))
    return traces[0], traced_sizes([each.graph for each in traces], symbols, places, values)


def _dynamic(axes: Axes, names: Sequence[str], leaves: Sequence[Any]) -> dict[tuple[int, int], str]:
    """The names of dynamic dimensions, by argument and dimension."""
    tensors = [at for at, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    found: dict[tuple[int, int], str] = {}
    if not isinstance(axes, Mapping):
        axes = {names[at]: given for at, given in zip(tensors, axes, strict=False) if given}
    for name, given in axes.items():
        at = next((at for at in tensors if names[at] == name), None)
        if at is None:
            known = ", ".join(names[at] for at in tensors)
            raise ValueError(f"dynamic_axes: there is no argument {name!r}; the tensors are {known}")
        named = given if isinstance(given, Mapping) else {axis: f"{name}_{axis}" for axis in given}
        rank = leaves[at].ndim
        for axis, symbol in named.items():
            if not -rank <= axis < rank:
                raise ValueError(f"dynamic_axes: {name} has {rank} dimensions, and none of number {axis}")
            found[at, axis % rank] = symbol
    return found


def _resized(leaves: Sequence[Any], dynamic: Mapping[tuple[int, int], str], sizes: Mapping[str, int]) -> list[Any]:
    """The arguments with other sizes; a trace does not depend on their elements."""
    found = list(leaves)
    for at, leaf in enumerate(leaves):
        if isinstance(leaf, Tensor):
            shape = [
                sizes[dynamic[at, axis]] if (at, axis) in dynamic else length for axis, length in enumerate(leaf.shape)
            ]
            found[at] = tensor(np.zeros(shape, leaf.dtype.numpy))
    return found


def _trace(f: Callable[..., Any], leaves: list[Any], structure: Structure, names: list[str]) -> _Traced:
    """The graph of one call, after the passes."""
    function = f.function if isinstance(f, Jitted) else f
    name = surroundings.name(function)
    around = surroundings.Surroundings(function, list(zip(names, leaves, strict=True)))
    staging = CallStaging(name, around.names)
    before = set_grad_enabled(False)
    try:
        recorded = record(function, leaves, structure, names, staging)
    finally:
        set_grad_enabled(before)
    graph, captured = recorded.graph, list(staging.captured.values())
    if recorded.effects:
        raise _stateful(name, recorded.effects.nodes, captured)
    if not all(isinstance(leaf, (Output, Argument)) for leaf in recorded.leaves):
        found = next(leaf for leaf in recorded.leaves if not isinstance(leaf, (Output, Argument)))
        raise TranslationError(
            "MT802",
            f"{name} returns {type(found).__name__}, which its graph does not compute",
            why="the results of an ONNX model are computed tensors",
            fix="return tensors alone; for a parameter, x.clone()",
        )
    outputs = [(graph.outputs if isinstance(leaf, Output) else graph.inputs)[leaf.position] for leaf in recorded.leaves]
    paths = _paths(function)
    taken = {str(node.params["name"]) for node in graph.inputs}
    renamed, parameters = {}, {}
    for item in captured:
        new = old = str(item.input.params["name"])
        path = paths.get(id(item.tensor), old)
        if path not in taken and is_input_name(path):
            new = renamed[old] = path
            taken.add(path)
        parameters[new] = item.tensor.detach().numpy()
    whole = Graph(graph.inputs, outputs, graph.nodes, graph.name).rename(renamed, name)
    return _Traced(run_pipeline(whole, PASSES).graph, parameters, _result_names(recorded.results, len(outputs)))


def _paths(function: Callable[..., Any]) -> dict[int, str]:
    """The names of a module's parameters and buffers, by id."""
    module = function if isinstance(function, Module) else getattr(function, "__self__", None)
    if not isinstance(module, Module):
        return {}
    named = (*module.named_parameters(), *module.named_buffers())
    return {id(tensor): name for name, tensor in named}


def _result_names(structure: Structure, count: int) -> list[str]:
    """The names of the results: keys of a dictionary, or "output" with a number."""
    keys = [str(key) for key in structure.keys]
    if structure.kind is dict and len(keys) == count and len(set(keys)) == count and all(map(is_input_name, keys)):
        return keys
    return ["output"] if count == 1 else [f"output_{place}" for place in range(count)]


def _stateful(name: str, nodes: Sequence[Node], captured: Sequence[Captured]) -> TranslationError:
    """The error for a function that writes to tensors from outside, or to its arguments."""
    written = [str(item.input.params["name"]) for item in captured if item.node is not item.input]
    source = next((node.source for node in nodes if node.source), None)
    return TranslationError(
        "MT802",
        f"{name} writes in place to {', '.join(written) or 'an argument'}, which an ONNX model cannot",
        where=str(source) if source else None,
        why="a model maps inputs to outputs and keeps no state; random numbers and training write to theirs",
        fix="call eval() on the model, and return new values instead of writing them",
    )
