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
from minitorch.graph.values import is_splat
from minitorch.ir import Node
from minitorch.primitives import expand
from minitorch.sizes import is_symbolic

from ..common import BUFFERS, NUMBERS, PARAMETERS, package
from . import attention, elementwise, movement, operators, recurrent, sums
from .building import Building, Row
from .files import SMALL
from .repeated import broadcast_to, not_repeated

Array = np.ndarray[Any, Any]

TABLES = (elementwise, movement, sums, operators, attention, recurrent)
ROWS: dict[str, Row] = {name: row for table in TABLES for name, row in table.ROWS.items()}


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
    for node in graph.nodes:
        if not is_splat(node):
            _write(b, node, names)
    b.node = None
    for node, name in zip(graph.outputs, outputs, strict=True):
        b.op("Identity", _operand(b, node, names), result=name)
    _tidy(b, outputs)
    used = {name for node in b.nodes for name in node.input}
    arrays = {name: array for name, array in {**held, **b.arrays}.items() if name in used}
    proto = onnx.helper.make_graph(
        b.nodes,
        graph.name,
        [_value(b, names[node], node) for node in given],
        [_value(b, name, node) for name, node in zip(outputs, graph.outputs, strict=True)],
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


def _write(b: Building, node: Node, names: dict[Node, str]) -> None:
    """Append the operators of a node."""
    b.node = node
    operands = _operands(b, node, names)
    row = ROWS.get(node.primitive.name)
    if row is None:
        b.refuse("this primitive", "it has no row in `minitorch_onnx.writing`")
    names[node] = row(b, node, operands)


def _operand(b: Building, node: Node, names: Mapping[Node, str]) -> str:
    """The name of a value; a splat becomes one where it is needed."""
    if node in names:
        return names[node]
    before, b.node = b.node, node
    found = ROWS["constant"](b, node, [])
    b.node = before
    return found


def _operands(b: Building, node: Node, names: Mapping[Node, str]) -> list[str]:
    """The operands of a node. ONNX's elementwise operators repeat theirs, so numbers and expansions are left small."""
    if not node.primitive.broadcasts:
        return [_operand(b, each, names) for each in not_repeated(b, node)]
    small = [each.inputs[0] if each.primitive is expand else each for each in node.inputs]
    numbers = [is_splat(each) for each in small]
    shapes = [() if is_number else each.shape for each, is_number in zip(small, numbers, strict=True)]
    if not broadcast_to(shapes, node.shape):  # all of them are
        small[0], numbers[0] = node.inputs[0], False
    return [
        b.number(each.params["value"], each.dtype) if is_number else _operand(b, each, names)
        for each, is_number in zip(small, numbers, strict=True)
    ]


def _tidy(b: Building, outputs: Sequence[str]) -> None:
    """Take away operators that only rename a value, and those that no result needs.

    A result takes the place of the value that it renames.
    """
    made = {name for node in b.nodes for name in node.output}
    becomes: dict[str, str] = {}
    kept = []
    for node in b.nodes:
        for place, name in enumerate(node.input):
            while name in becomes:
                name = becomes[name]
            node.input[place] = name
        old, new = (node.input[0], node.output[0]) if node.op_type == "Identity" else ("", "")
        if new and new not in outputs:
            becomes[new] = old
        elif new and old in made and old not in outputs:
            becomes[old] = new
        else:
            kept.append(node)
    for node in kept:
        for values in (node.input, node.output):
            for place, name in enumerate(values):
                while name in becomes:
                    name = becomes[name]
                values[place] = name
        if node.name not in node.output:
            node.name = next(name for name in node.output if name)
    wanted = set(outputs)
    b.nodes = []
    for node in reversed(kept):
        if wanted.intersection(node.output):
            if node.op_type in recurrent.ORDERS:  # whose results are optional, each of them
                _leave_out(node, wanted)
            wanted.update(node.input)
            b.nodes.append(node)
    b.nodes.reverse()


def _leave_out(node: Any, wanted: Collection[str]) -> None:
    """Give no names to results that nobody reads."""
    kept = [name if name in wanted else "" for name in node.output]
    while not kept[-1]:
        kept.pop()
    del node.output[:]
    node.output.extend(kept)
    node.name = next(filter(None, kept))


def _value(b: Building, name: str, node: Node) -> Any:
    """The name, type and shape of an argument or result; a length that is computed from symbols is not named."""
    shape = [(str(each) if str(each) in b.places else None) if is_symbolic(each) else each for each in node.shape]
    return b.onnx.helper.make_tensor_value_info(name, NUMBERS[node.dtype], shape)
