"""Mutations of messages: lying shapes, types, names, paths and numbers, in a file that protobuf has no fault with.

Each row of `CHANGES` changes one thing in a model, or nothing where it has no such thing; `arrays` has those of arrays.
"""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import onnx
from onnx import AttributeProto, helper

from . import arrays, bombs
from .parts import FLOATS, INTS, copy, edit, graphs, names, nodes, one, values

TEXTS = [
    b"", b"NOTSET", b"SAME_UPPER", b"SAME_LOWER", b"VALID", b"reflect", b"edge", b"wrap", b"constant", b"mul", b"min",
    b"none", b"reverse", b"bidirectional", b"forward", b"Tanh", b"Relu", b"LEFT", b"CRD", b"ij,jk->ik", b"ii->i",
    b"...i,i...", b"i" * 60, b"->", b"\xff\xfe", b"x" * 5000, "𝔘\0".encode(),
]  # fmt: skip
OPERATORS = sorted({each.name for each in onnx.defs.get_all_schemas() if each.domain == ""})

Change = Callable[[Any, random.Random], None]


def mutated(model: Any, chance: random.Random) -> None:
    """Change a `ModelProto` in some places."""
    for _ in range(chance.choice([1, 1, 1, 2, 4])):
        chance.choice(CHANGES)(model, chance)


# Nodes --------------------------------------------------------------------------------------------------------


def _attribute(model: Any, chance: random.Random) -> None:
    """Another value of an attribute."""
    each = one(chance, [each for node in nodes(model) for each in node.attribute])
    if each is None:
        return
    if each.type == AttributeProto.INT:
        each.i = chance.choice(INTS)
    elif each.type == AttributeProto.INTS:
        edit(chance, each.ints, chance.choice(INTS))
    elif each.type == AttributeProto.FLOAT:
        each.f = chance.choice(FLOATS)
    elif each.type == AttributeProto.FLOATS:
        edit(chance, each.floats, chance.choice(FLOATS))
    elif each.type == AttributeProto.STRING:
        each.s = chance.choice(TEXTS)
    elif each.type == AttributeProto.STRINGS:
        edit(chance, each.strings, chance.choice(TEXTS))
    elif each.type == AttributeProto.GRAPH:
        other = model.graph if chance.random() < 0.3 else chance.choice(list(graphs(model)))
        each.g.CopyFrom(copy(other))  # it may contain the attribute


def _kind(model: Any, chance: random.Random) -> None:
    """An attribute of another type or name, twice, or not at all."""
    node = one(chance, [node for node in nodes(model) if node.attribute])
    if node is None:
        return
    place = chance.randrange(len(node.attribute))
    each, kind = node.attribute[place], chance.randrange(5)
    if kind == 0:
        each.type = chance.randrange(15)
    elif kind == 1:
        each.name = chance.choice(["axis", "axes", "to", "body", "value", "nothing", ""])
    elif kind == 2:
        node.attribute.append(copy(each))
    elif kind == 3:
        del node.attribute[place]
    else:
        each.ref_attr_name = chance.choice(["by", "axis", each.name])


def _given(model: Any, chance: random.Random) -> None:
    """An attribute that the operator has, and the node had not, of some value of the type."""
    if not (node := one(chance, nodes(model))) or not onnx.defs.has(node.op_type):
        return
    known = onnx.defs.get_schema(node.op_type).attributes
    if name := one(chance, sorted(known)):
        makers = {1: lambda: chance.choice(FLOATS), 2: lambda: chance.choice(INTS), 3: lambda: chance.choice(TEXTS),
                  6: lambda: [chance.choice(FLOATS)] * chance.randrange(1, 4),
                  7: lambda: [chance.choice(INTS) for _ in range(chance.randrange(1, 5))],
                  8: lambda: [chance.choice(TEXTS)] * chance.randrange(1, 4)}  # fmt: skip
        make = makers.get(int(known[name].type.value))
        for place in range(len(node.attribute))[::-1]:
            if node.attribute[place].name == name:
                del node.attribute[place]
        if make is not None:
            node.attribute.append(helper.make_attribute(name, make(), attr_type=int(known[name].type.value)))


def _operator(model: Any, chance: random.Random) -> None:
    """Another operator, in another domain, or a function of the model."""
    if node := one(chance, nodes(model)):
        kind = chance.randrange(5)
        if kind < 3:
            node.op_type = chance.choice(OPERATORS)
            if kind == 2:
                del node.attribute[:]
        elif kind == 3:
            node.op_type = chance.choice([each.op_type for each in nodes(model)])
        else:
            node.domain = chance.choice(["ai.onnx", "ai.onnx.ml", "local", "nobody", "ai.onnx.training"])


def _wires(model: Any, chance: random.Random) -> None:
    """Names of other values, of none, or of too many."""
    if node := one(chance, nodes(model)):
        edit(chance, node.input if chance.random() < 0.7 else node.output, chance.choice(names(model)))


def _order(model: Any, chance: random.Random) -> None:
    """A node that is missing, is there twice, or comes too early."""
    graph = chance.choice(list(graphs(model)))
    if not graph.node:
        return
    found, kind, place = list(graph.node), chance.randrange(3), chance.randrange(len(graph.node))
    if kind == 0:
        del found[place]
    elif kind == 1:
        found.insert(chance.randrange(len(found)), found[place])
    else:
        found.insert(chance.randrange(len(found)), found.pop(place))
    copies = [copy(each) for each in found]
    del graph.node[:]
    graph.node.extend(copies)


def _bomb(model: Any, chance: random.Random) -> None:
    """Nodes that ask for more than there is, before a node of the model, which reads their result."""
    graph = chance.choice(list(graphs(model)))
    made = chance.choice(bombs.BOMBS)(chance, f"bomb{len(graph.node)}")
    copies = [copy(each) for each in graph.node]
    place = chance.randrange(len(copies) + 1)
    if place < len(copies) and copies[place].input and chance.random() < 0.5:
        copies[place].input[chance.randrange(len(copies[place].input))] = made[-1].output[0]
    del graph.node[:]
    graph.node.extend([*copies[:place], *made, *copies[place:]])


# Graphs and models --------------------------------------------------------------------------------------------


def _declared(model: Any, chance: random.Random) -> None:
    """Another type or shape of an input or a result."""
    if (each := one(chance, values(model))) is None:
        return
    kind = chance.randrange(6)
    dims = each.type.tensor_type.shape.dim if each.type.WhichOneof("value") == "tensor_type" else []
    if kind == 0:
        each.type.tensor_type.elem_type = chance.choice([*range(25), -1])
    elif kind == 1 and dims:
        chance.choice(dims).dim_value = chance.choice(INTS)
    elif kind == 2 and dims:
        chance.choice(dims).dim_param = chance.choice(["n", "m", "", "n" * 300])
    elif kind == 3:
        each.type.tensor_type.shape.dim.add().dim_value = chance.choice([0, 1, 2, 3])
    elif kind == 4 and dims:
        del each.type.tensor_type.shape.dim[chance.randrange(len(dims))]
    else:
        chance.choice([each.type.optional_type, each.type.map_type, each.type.sequence_type]).SetInParent()


def _ends(model: Any, chance: random.Random) -> None:
    """Inputs and results that are missing, are there twice, or have other names."""
    graph = chance.choice(list(graphs(model)))
    ends = graph.input if chance.random() < 0.5 else graph.output
    if ends:
        place, kind = chance.randrange(len(ends)), chance.randrange(3)
        if kind == 0:
            del ends[place]
        elif kind == 1:
            ends.append(copy(ends[place]))
        else:
            ends[place].name = chance.choice(names(model))


def _turned(model: Any, chance: random.Random) -> None:
    """An initializer that is an input, or a Constant."""
    graph = chance.choice(list(graphs(model)))
    if not graph.initializer:
        return
    tensor = copy(graph.initializer[place := chance.randrange(len(graph.initializer))])
    del graph.initializer[place]
    if chance.random() < 0.5:
        graph.input.append(helper.make_tensor_value_info(tensor.name, max(tensor.data_type, 0), list(tensor.dims)))
    else:
        nodes_ = [helper.make_node("Constant", [], [tensor.name], value=tensor)]
        nodes_ += [copy(each) for each in graph.node]
        del graph.node[:]
        graph.node.extend(nodes_)


def _version(model: Any, chance: random.Random) -> None:
    each = one(chance, [*model.opset_import, *(one for function in model.functions for one in function.opset_import)])
    kind = chance.randrange(4)
    if kind == 0:
        model.ir_version = chance.choice([0, 3, 14, 2**40])
    elif kind == 1:
        model.opset_import.add(domain=chance.choice(["", "ai.onnx", "local"]), version=chance.choice([1, 13, 20]))
    elif each is not None and kind == 2:
        each.version = chance.choice([*range(29), *INTS])
    elif each is not None:
        each.domain = chance.choice(["", "ai.onnx", "ai.onnx.ml", "nobody"])


def _functions(model: Any, chance: random.Random) -> None:
    """Functions that call themselves, or multiply: each calls the one before several times."""
    depth, times = chance.choice([(1, 1), (3, 4), (8, 8), (15, 2), (20, 1)])
    if not any(each.domain == "bomb" for each in model.opset_import):
        model.opset_import.add(domain="bomb", version=1)
    imports = [helper.make_opsetid("", 20), helper.make_opsetid("bomb", 1)]
    for level in range(depth):
        calls = f"f{level - 1}" if level else chance.choice(["f0", f"f{depth - 1}", "Neg", "Exp"])
        domain = "" if calls in ("Neg", "Exp") else "bomb"
        made = [helper.make_node(calls, [f"t{at}"], [f"t{at + 1}"], domain=domain) for at in range(times)]
        model.functions.append(helper.make_function("bomb", f"f{level}", ["t0"], [f"t{times}"], made, imports))
    name = one(chance, [name for node in model.graph.node for name in node.output]) or "x"
    model.graph.node.append(
        helper.make_node(f"f{depth - 1}", [name], [f"bombed{len(model.graph.node)}"], domain="bomb")
    )


CHANGES: list[Change] = [
    *arrays.CHANGES,
    _attribute, _attribute, _attribute, _kind, _given, _given, _operator, _operator, _wires, _wires, _order, _bomb,
    _bomb, _declared, _ends, _turned, _version, _functions,
]  # fmt: skip
