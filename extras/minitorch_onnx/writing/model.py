"""A graph as an ONNX model: its nodes by the rows of the tables, its constants as initializers, its inputs and outputs.

    Graph, names of parameters, sizes ──Building──► nodes, constants ──► GraphProto ──► ModelProto

No path of the machine is in a model: the `doc_string` of a node is file name and line.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch.errors import TranslationError
from minitorch.graph import Graph
from minitorch.ir import Node

from ..common import BUFFERS, PARAMETERS, package
from .building import Building
from .files import SMALL
from .nodes import all_nodes, results_of, tidy, value_info

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Interface:
    """The names that a model is used by.

    Attributes:
        parameters: arrays that are initializers, by the names of the graph's inputs that stand for them.
        trained: the names of those that are trained.
        outputs: the names of the results.
        places: for each symbol of a size, the argument that has it, and the dimension.
        paths: names of parameters in their module, which may be any text, by those in the graph, in the module's order.
    """

    parameters: Mapping[str, Array]
    trained: Collection[str]
    outputs: Sequence[str]
    places: Mapping[str, tuple[str, int]]
    paths: Mapping[str, str] = field(default_factory=dict)


def model_of(graph: Graph, interface: Interface, opset: int, ir_version: int | None = None) -> Any:
    """The `ModelProto` of a graph.

    Args:
        graph: of primitives and operators; each has a row.
        interface: names of parameters, results and dynamic dimensions.
        opset: the version of the operators.
        ir_version: that of the format; by default the oldest that has these operators.

    Raises:
        TranslationError: for what these operators cannot say (``MT802``, ``MT803``).
    """
    onnx = package()
    b = Building(opset, interface.places)
    names: dict[Node, str] = {}
    given = [node for node in graph.inputs if node.params["name"] not in interface.parameters]
    places = {name: place for place, name in enumerate(interface.paths)}
    kept = [node for node in graph.inputs if node.params["name"] in interface.parameters]
    kept.sort(key=lambda node: places.get(node.params["name"], len(places)))
    for node in (*given, *kept):
        names[node] = b.name(interface.paths.get(node.params["name"], node.params["name"]))
    held = b.held = {names[node]: interface.parameters[node.params["name"]] for node in kept}
    outputs = [b.name(each) for each in interface.outputs]
    for found, name in zip(results_of(b, graph, names), outputs, strict=True):
        b.op("Identity", found, result=name)
    tidy(b, outputs)
    used = {name for node in all_nodes(b.nodes) for name in node.input}
    arrays = {name: array for name, array in {**held, **b.arrays}.items() if name in used}
    proto = onnx.helper.make_graph(
        b.nodes,
        graph.name,
        [value_info(b, names[node], node) for node in given],
        [value_info(b, name, node) for name, node in zip(outputs, graph.outputs, strict=True)],
        [onnx.numpy_helper.from_array(array, name) for name, array in arrays.items()],
    )
    opsets = [onnx.helper.make_opsetid("", opset)]
    oldest, newest = onnx.helper.find_min_ir_version_for(opsets), onnx.IR_VERSION
    version = oldest if ir_version is None else ir_version
    if not oldest <= version <= newest:
        raise ValueError(f"ir_version is from {oldest} to {newest} for operators of opset {opset}, not {ir_version}")
    from minitorch import __version__

    model = onnx.helper.make_model(
        proto, opset_imports=opsets, ir_version=version, producer_name="minitorch", producer_version=__version__
    )
    parts = {name: b.origins.get(name, name) for name in arrays if name in held or name in b.origins}
    learned = {names[node] for node in kept if node.params["name"] in interface.trained}
    trained = [name for name, origin in parts.items() if origin in learned]
    lists = {PARAMETERS: trained, BUFFERS: [name for name in parts if name not in trained]}
    onnx.helper.set_model_props(model, {key: "\n".join(names) for key, names in lists.items()})
    _check(onnx, model)
    return model


def _check(onnx: Any, model: Any) -> None:
    """Have ONNX's checker and its strict inference of shapes look at a model; large arrays count as inputs.

    Raises:
        TranslationError: if they find fault with it (``MT802``).
    """
    given, small = [*model.graph.input], []
    for array in model.graph.initializer:
        if len(array.raw_data) > SMALL:
            given.append(onnx.helper.make_tensor_value_info(array.name, array.data_type, array.dims))
        else:
            small.append(array)
    graph = onnx.helper.make_graph(model.graph.node, model.graph.name, given, model.graph.output, small)
    light = onnx.helper.make_model(graph, opset_imports=model.opset_import, ir_version=model.ir_version)
    try:
        onnx.checker.check_model(light, full_check=True)
    except (onnx.checker.ValidationError, onnx.shape_inference.InferenceError) as error:
        raise TranslationError(
            "MT802",
            f"{model.graph.name} would be a model that breaks a rule of ONNX: {str(error).strip()}",
            why="the translation of an operation does not fit this version of the operators, or these dynamic sizes",
            fix="try another opset_version, or fewer dynamic_axes; and report it, since it is a fault of the exporter",
        ) from error
