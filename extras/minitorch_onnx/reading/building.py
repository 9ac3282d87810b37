"""From `GraphProto` to `Program`: every name, shape and attribute is checked, and nothing is computed.

Nodes come in an order in which they can run; each name is given once, also in bodies, which see the names around them
(ONNX calls this static single assignment). What has no translation is collected, and named all at once.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from itertools import zip_longest
from pathlib import Path
from typing import Any

import numpy as np

from minitorch.dtypes import DType
from minitorch.errors import TranslationError

from ..common import TYPES, newest_opset, package
from . import functions, versions
from .decoding import attributes
from .decoding.external import Files
from .decoding.limits import MOST_BODIES, MOST_DIMS, MOST_NODES, refuse, require
from .decoding.tensors import array_of
from .program import Declared, Program, Row, Step, places_of, reads
from .rows import ROWS
from .running import Call, Value
from .running import run as run_program

Array = np.ndarray[Any, Any]
Scopes = tuple[set[str], ...]  # the names of a graph, of the one around that, ...

DOMAINS = ("", "ai.onnx")  # two names of one set of operators
LEARNING = "ai.onnx.ml"  # of which scikit-learn's exporter needs a few
KINDS = ("tensor_type", "sequence_type", "optional_type")
TYPED = ("dtype", "output_dtype", "softmax_precision", "to")  # attributes that are numbers of element types


class Builder:
    """Translates the graphs of a model.

    Args:
        model: a `ModelProto`.
        folder: where its external data lies; None if it has no folder.

    Raises:
        OnnxError: for a model that breaks a rule of the format (``MT801``).
    """

    def __init__(self, model: Any, folder: Path | None) -> None:
        self.files = Files(folder)
        self.defs: Any = package().defs
        self.missing: Counter[str] = Counter()
        self.nodes = 0
        self.opset = self._opset(model.opset_import)
        self.functions: dict[tuple[str, str, str], Any] = {}
        for function in model.functions:
            key = (function.domain, function.name, function.overload)
            require(key not in self.functions, "the function {!r} is there twice", function.name)
            self.functions[key] = function

    def program(self, graph: Any) -> Program:
        """The program of a model's graph.

        Raises:
            OnnxError: for a graph that breaks a rule of the format (``MT801``).
            TranslationError: listing all operators and types that have no translation (``MT802``).
        """
        found = self._graph(graph, self.opset, (), {}, 0)
        if self.missing:
            rows = ", ".join(f"{name} ({count} times)" if count > 1 else name for name, count in self.missing.items())
            raise TranslationError(
                "MT802",
                f"the model has {rows}",
                why="there is no translation of these into functions of this library",
                fix=f"export it with operators of the domain ai.onnx, opset {versions.OLDEST_READ} to {newest_opset()}",
            )
        return found

    def _opset(self, imports: Any) -> int:
        """The version of the operators of ai.onnx."""
        found = sorted({each.version for each in imports if each.domain in DOMAINS})
        text = "it names the versions {} of the operators of ai.onnx"
        require(len(found) <= 1, text, " and ".join(map(str, found)))
        if found and not 1 <= found[0] <= newest_opset():
            refuse(
                f"its operators are of version {found[0]}, and the package onnx knows those up to {newest_opset()}",
                fix="pip install --upgrade onnx",
            )
        return found[0] if found else 0

    def _graph(self, graph: Any, opset: int, outer: Scopes, given: Mapping[str, Any], depth: int) -> Program:
        """A graph or a body; `outer` are the names around it, `given` the attributes of the function around it."""
        require(depth <= MOST_BODIES, "bodies and functions are nested more than {} deep", MOST_BODIES)
        arrays: dict[str, Any] = {}
        scopes: Scopes = (set(), *outer)
        if graph.sparse_initializer:
            self.missing["sparse initializers"] += len(graph.sparse_initializer)
        for tensor in graph.initializer:
            _define(tensor.name, scopes)
            arrays[tensor.name] = self._array(tensor)
        # An initializer may be listed among the inputs, whose default it is.
        inputs = [each for each in graph.input if each.name not in arrays]
        for each in inputs:
            _define(each.name, scopes)
        declared = tuple([self._declared(each) for each in inputs])
        steps = self._steps(graph.node, opset, scopes, given, depth)
        outputs = tuple([each.name for each in graph.output])
        name = graph.name or "the graph"
        for each in outputs:
            require(_is_in(each, scopes), "the result {!r} of {} is made by no node", each, name)
        constants = {each: array for each, array in arrays.items() if array is not None}
        return Program(name, declared, outputs, constants, (), _freed(steps, outputs, scopes[0]))

    def _steps(self, nodes: Any, opset: int, scopes: Scopes, given: Mapping[str, Any], depth: int) -> list[Step]:
        self.nodes += len(nodes)
        text = "it has more than {} nodes, those of functions counted at each call"
        require(self.nodes <= MOST_NODES, text, MOST_NODES)
        steps = []
        for place, node in enumerate(nodes):
            for name in node.input:
                if name and not _is_in(name, scopes):
                    later = any(name in each.output for each in nodes[place:])
                    refuse(
                        f"the node {node.name or place!r} ({node.op_type}) reads {name!r}, which "
                        + ("is made later: there is a cycle, or the nodes are not sorted" if later else "nobody makes")
                    )
            found = self._step(node, opset, scopes, given, depth)
            for name in (*node.output, *(step.outputs[0] for step in found[:-1])):
                if name:
                    _define(name, scopes)
            steps += found
        return steps

    def _step(self, node: Any, opset: int, around: Scopes, given: Mapping[str, Any], depth: int) -> list[Step]:
        """A node, behind constants that once were attributes; nothing if it has no translation."""
        name = node.name or next(filter(None, node.output), "") or node.op_type
        place = f"the node {name!r} ({node.op_type})"
        outputs = list(filter(None, node.output))
        require(len(set(outputs)) == len(outputs), "{} gives two results one name", place)
        found = [_referred(place, each, given) for each in node.attribute]
        proto = [each for each in found if each is not None]
        function = self.functions.get((node.domain, node.op_type, node.overload)) or functions.function_of(node)
        schema = None if function else self._schema(node, opset)
        row = _row(node)
        if schema is not None and row is None:  # an operator that ONNX defines as a function of others
            function = _function_of(schema, opset)
        if function is not None:
            bound = {each.name: each for each in (*function.attribute_proto, *proto)}
            return [self._called(node, name, function, bound, depth)]
        if schema is None or row is None:
            return []
        bodies: dict[str, Program] = {}

        def value(where: str, attribute: Any) -> Any:
            if attribute.type == attributes.GRAPH:
                bodies[attribute.name] = self._graph(attribute.g, opset, around, given, depth + 1)
                return None
            if attribute.name in TYPED and attribute.type == attributes.INT:
                return self._dtype(attribute.i, last.attributes[attribute.name].required)
            read = attributes.value_of(where, attribute)
            return self._array(read) if attribute.type == attributes.TENSOR else read

        last = versions.newest(schema)
        options = attributes.checked(place, proto, schema, last, value)
        if node.domain != functions.MICROSOFT:
            attributes.check_counts(place, node, schema)
        inputs, steps = list(node.input), []
        for each, (at, array) in versions.moved(schema, options).items():
            text = f"{each} of {next(filter(None, node.output), name)}"  # whose name is there once
            inputs += [""] * (at + 1 - len(inputs))
            inputs[at] = text
            steps.append(Step(text, "Constant", 1, ROWS["Constant"], (), (text,), {"value": array}))
        version = schema.since_version
        return [*steps, Step(name, node.op_type, version, row, tuple(inputs), tuple(node.output), options, bodies)]

    def _schema(self, node: Any, opset: int) -> Any:
        """The schema of a node's operator; None, and a line for the user, if that has no translation."""
        row = _row(node)
        if node.domain == LEARNING and row is not None:
            return self.defs.get_schema(node.op_type, LEARNING)
        if node.domain == functions.MICROSOFT and row is not None:  # it has the attributes of what it quantises
            return self.defs.get_schema(node.op_type.removeprefix("DynamicQuantize"), newest_opset(), "")
        if node.domain in DOMAINS:
            try:
                schema = self.defs.get_schema(node.op_type, opset, "")
                since = self.defs.get_schema(node.op_type, max(opset, versions.OLDEST_READ), "").since_version
            except self.defs.SchemaError:
                schema = None
            is_current = schema is not None and schema.since_version == since  # many have not changed until opset 7
            if is_current and (row is not None or (schema.has_function and not schema.deprecated)):
                return schema
        domain = "" if node.domain in DOMAINS else f"{node.domain}."
        self.missing[f"{domain}{node.op_type} of opset {opset}"] += 1
        return None

    def _called(self, node: Any, name: str, function: Any, bound: Mapping[str, Any], depth: int) -> Step:
        """A call of a function: a program of its own for each, with its attributes, its own names, and no others."""
        place = f"the node {name!r} ({node.op_type})"
        require(depth < MOST_BODIES, "bodies and functions are nested more than {} deep", MOST_BODIES)
        fits = len(node.input) <= len(function.input) and len(node.output) <= len(function.output)
        require(fits, "{} has more inputs or outputs than the function", place)
        absent = {each for each, name in zip_longest(function.input, node.input) if not name}
        scopes: Scopes = (set(),)
        for each in function.input:
            _define(each, scopes)
        opset = self._opset(function.opset_import)
        steps = self._steps(functions.present(function, absent), opset, scopes, bound, depth + 1)
        outputs = tuple(function.output)
        for each in outputs:
            made = each in scopes[0] and each not in absent
            require(made, "the result {!r} of the function {!r} is made by no node", each, function.name)
        names = [each for each in function.input if each not in absent]
        inputs = tuple([Declared(each, None, None) for each in names])
        program = Program(function.name, inputs, outputs, {}, (), _freed(steps, outputs, scopes[0]))
        known, untrained = (
            tuple([at for at, each in enumerate(names) if each in found]) for found in places_of(program, names)
        )
        row = Row(partial(_run, program), known, untrained, control=True)
        return Step(name, node.op_type, 0, row, tuple(filter(None, node.input)), tuple(node.output))

    def _array(self, tensor: Any) -> Array | None:
        """The array of a tensor; None, and a line for the user, if there is no such element type."""
        if self._dtype(tensor.data_type) is None:
            return None
        found = array_of(tensor, self.files)
        found.flags.writeable = False
        return found

    def _dtype(self, number: int, required: bool = True) -> DType | None:
        """The element type of a number; None, and a line for the user, if there is none. 0 may stand for none."""
        if number not in TYPES and (number or required):
            names = {value: name.lower() for name, value in package().TensorProto.DataType.items()}
            self.missing[f"elements of type {names.get(number, number)}"] += 1
        return TYPES.get(number)

    def _declared(self, info: Any) -> Declared:
        """An input, with the type and the shape that the file declares."""
        kind, nesting = info.type, []
        while (field := kind.WhichOneof("value")) in KINDS[1:]:
            nesting.append(field.removesuffix("_type"))
            kind = getattr(kind, field).elem_type
        if field not in (KINDS[0], None):
            self.missing[f"values of {field}"] += 1
        tensor = kind.tensor_type
        dtype = self._dtype(tensor.elem_type, False)
        if not tensor.HasField("shape"):
            return Declared(info.name, dtype, None, tuple(nesting))
        dims = tensor.shape.dim
        text = "the input {!r} has {} dimensions, more than {}"
        require(len(dims) <= MOST_DIMS, text, info.name, len(dims), MOST_DIMS)
        return Declared(info.name, dtype, tuple(map(_length, dims)), tuple(nesting))


def _define(name: str, scopes: Scopes) -> None:
    """Give a name to a value of the innermost graph."""
    require(name, "an input or an initializer has no name")
    require(not _is_in(name, scopes), "the name {!r} is given twice", name)
    scopes[0].add(name)


def _function_of(schema: Any, opset: int) -> Any:
    """The function that ONNX defines an operator by, with the defaults of its attributes."""
    function = package().FunctionProto()
    versions = [each for each in schema.function_opset_versions if each <= opset]
    function.ParseFromString(schema.get_function_with_opset_version(max(versions, default=schema.since_version)))
    defaults = [each.default_value for each in schema.attributes.values()]
    function.attribute_proto.extend(
        [package().AttributeProto.FromString(each.SerializeToString()) for each in defaults if each.name]
    )
    return function


def _row(node: Any) -> Row | None:
    """The row of a node's operator, or of the one that has replaced it."""
    if node.domain in DOMAINS:
        return ROWS.get(versions.SUCCESSORS.get(node.op_type, node.op_type))
    return ROWS.get(f"{node.domain}.{node.op_type}")


def _length(dim: Any) -> int | str | None:
    """A length, or its name; None for any, which exporters write as -1 or as a name such as ``?``, too."""
    if dim.HasField("dim_value"):
        return int(dim.dim_value) if dim.dim_value >= 0 else None
    name = str(dim.dim_param)
    return name if any(map(str.isalpha, name)) and name != "None" else None


def _is_in(name: str, scopes: Scopes) -> bool:
    return any(name in scope for scope in scopes)


def _referred(place: str, attribute: Any, given: Mapping[str, Any]) -> Any:
    """An attribute; in a function it may stand for one that the caller gives, or does not."""
    if not attribute.ref_attr_name:
        return attribute
    found = given.get(attribute.ref_attr_name)
    if found is None:
        return None
    text = "the attribute {!r} of {} is of another type than what the caller gives"
    require(attribute.type in (0, found.type), text, attribute.name, place)
    renamed = type(attribute)()
    renamed.CopyFrom(found)
    renamed.name = attribute.name
    return renamed


def _freed(steps: Sequence[Step], outputs: Sequence[str], own: set[str]) -> tuple[Step, ...]:
    """The steps, with the names that nobody reads afterwards."""
    later, found = set(outputs), []
    for step in reversed(steps):
        names = own.intersection((*step.outputs, *reads([step]))) - later
        found.append(replace(step, frees=tuple(sorted(names))))
        later |= names
    return tuple(found[::-1])


def _run(program: Program, *values: Value | None, call: Call) -> list[Value]:
    """What a call of a function gives."""
    return run_program(program, [value for value in values if value is not None], {}, call.run)
