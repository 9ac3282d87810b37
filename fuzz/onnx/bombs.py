"""Nodes that ask for a lot: gigantic results of a few numbers, loops without an end, growth by doubling."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import numpy as np
from onnx import TensorProto, helper, numpy_helper

LENGTHS = [0, 1, 3, 1000, 2**12, 2**16, 2**20, 2**31, 2**34, 2**62, 2**63 - 1]

Bomb = Callable[[random.Random, str], list[Any]]


def _constant(name: str, value: Any) -> Any:
    return helper.make_node("Constant", [], [name], value=numpy_helper.from_array(np.asarray(value)))


def _filled(chance: random.Random, name: str) -> list[Any]:
    lengths = [chance.choice(LENGTHS) for _ in range(chance.randrange(1, 4))]
    shape = _constant(f"{name}s", np.array(lengths, np.int64))
    return [shape, helper.make_node("ConstantOfShape", [f"{name}s"], [name])]


def _expanded(chance: random.Random, name: str) -> list[Any]:
    """A large view of one number, handed on to an operator that turns over every element, or loops over them."""
    length = chance.choice(LENGTHS)
    made = [_constant(f"{name}1", np.float32(1)), _constant(f"{name}s", np.array([length, 1, 1], np.int64))]
    made.append(helper.make_node("Expand", [f"{name}1", f"{name}s"], [f"{name}e"]))
    kind = chance.choice(["Neg", "Sum", "NonZero", "Unique", "SplitToSequence", "LSTM", "Flatten", "ArgMax", "Shape"])
    if kind != "LSTM":
        return [*made, helper.make_node(kind, [f"{name}e"], [name])]
    weight = _constant(f"{name}w", np.ones((1, 4, 1), np.float32))
    lstm = helper.make_node("LSTM", [f"{name}e", f"{name}w", f"{name}w"], [name], hidden_size=1)
    return [*made, weight, lstm]


def _tiled(chance: random.Random, name: str) -> list[Any]:
    made = [_constant(f"{name}x", np.ones((2, 2), np.float32))]
    made.append(_constant(f"{name}r", np.array([chance.choice(LENGTHS), chance.choice(LENGTHS)], np.int64)))
    return [*made, helper.make_node("Tile", [f"{name}x", f"{name}r"], [name])]


def _range(chance: random.Random, name: str) -> list[Any]:
    kind = chance.choice([np.int64, np.float32, np.int32])
    with np.errstate(all="ignore"):
        bounds = [kind(0), np.array(chance.choice(LENGTHS)).astype(kind), kind(chance.choice([1, -1, 0, 3]))]
    names = [f"{name}{at}" for at in range(3)]
    made = [_constant(each, bound) for each, bound in zip(names, bounds, strict=True)]
    return [*made, helper.make_node("Range", names, [name])]


def _padded(chance: random.Random, name: str) -> list[Any]:
    pads = [chance.choice([*LENGTHS, -1, -3, -(2**62)]) for _ in range(2)]
    mode = chance.choice(["constant", "reflect", "edge", "wrap"])
    made = [_constant(f"{name}x", np.ones(3, np.float32)), _constant(f"{name}p", np.array(pads, np.int64))]
    return [*made, helper.make_node("Pad", [f"{name}x", f"{name}p"], [name], mode=mode)]


def _one_hot(chance: random.Random, name: str) -> list[Any]:
    depth = np.int64(chance.choice([*LENGTHS, -1]))
    made = [_constant(f"{name}i", np.arange(4)), _constant(f"{name}d", depth), _constant(f"{name}v", np.arange(2))]
    return [*made, helper.make_node("OneHot", [f"{name}i", f"{name}d", f"{name}v"], [name])]


def _doubled(chance: random.Random, name: str) -> list[Any]:
    """Each node twice as large as the one before, by concatenation or by repetition."""
    made = [_constant(f"{name}0", np.ones(4, np.float32))]
    for turn in range(turns := chance.choice([10, 20, 40, 60])):
        made.append(helper.make_node("Concat", [f"{name}{turn}"] * 2, [f"{name}{turn + 1}"], axis=0))
    return [*made, helper.make_node("Identity", [f"{name}{turns}"], [name])]


def _outer(chance: random.Random, name: str) -> list[Any]:
    """Products of everything with everything: the square of what there is, and its square."""
    made = [_constant(f"{name}0", np.ones((1, 300), np.float32))]
    for turn in range(chance.choice([1, 2, 4])):
        made.append(helper.make_node("Transpose", [f"{name}{turn}"], [f"{name}t{turn}"]))
        kind = chance.choice(["MatMul", "Mul", "Add"])
        made.append(helper.make_node(kind, [f"{name}t{turn}", f"{name}{turn}"], [f"{name}m{turn}"]))
        flat = _constant(f"{name}f{turn}", np.array([1, -1], np.int64))
        made += [flat, helper.make_node("Reshape", [f"{name}m{turn}", f"{name}f{turn}"], [f"{name}{turn + 1}"])]
    return [*made, helper.make_node("Identity", [made[-1].output[0]], [name])]


def _looped(chance: random.Random, name: str) -> list[Any]:
    """A loop that turns often, does nothing or doubles what it carries, and collects it."""
    info = helper.make_tensor_value_info
    ends = [info(f"{name}c", TensorProto.BOOL, []), info(f"{name}x", TensorProto.FLOAT, None)]
    kind = chance.choice(["Identity", "Concat", "Add"])
    given = [f"{name}x"] * (1 if kind == "Identity" else 2)
    body = [helper.make_node(kind, given, [f"{name}y"], **({"axis": 0} if kind == "Concat" else {}))]
    out = [ends[0], info(f"{name}y", TensorProto.FLOAT, None), info(f"{name}y", TensorProto.FLOAT, None)]
    graph = helper.make_graph(body, "b", [info(f"{name}i", TensorProto.INT64, []), *ends], out)
    made = [
        _constant(f"{name}n", np.int64(chance.choice([*LENGTHS, -1]))),
        _constant(f"{name}s", np.ones(2, np.float32)),
    ]
    return [*made, helper.make_node("Loop", [f"{name}n", "", f"{name}s"], [name, f"{name}all"], body=graph)]


def _convolved(chance: random.Random, name: str) -> list[Any]:
    """A convolution or a pool with strange numbers."""
    strange = [0, 1, 2, -1, 3, 2**20, 2**31, 2**62]
    x, kind = (
        _constant(f"{name}x", np.ones((1, 1, 4, 4), np.float32)),
        chance.choice(["Conv", "ConvTranspose", "MaxPool"]),
    )
    options: dict[str, Any] = {
        key: [chance.choice(strange) for _ in range(2)] for key in ("strides", "dilations") if chance.random() < 0.5
    }
    if chance.random() < 0.5:
        options["pads"] = [chance.choice(strange) for _ in range(4)]
    if kind == "MaxPool":
        options["kernel_shape"] = [chance.choice([1, 2, *strange]) for _ in range(2)]
        return [x, helper.make_node(kind, [f"{name}x"], [name], **options)]
    if kind == "ConvTranspose" and chance.random() < 0.5:
        options["output_shape"] = [chance.choice(strange) for _ in range(2)]
    made = [x, _constant(f"{name}w", np.ones((1, 1, 2, 2), np.float32))]
    return [*made, helper.make_node(kind, [f"{name}x", f"{name}w"], [name], **options)]


BOMBS: list[Bomb] = [
    _filled, _expanded, _tiled, _range, _padded, _one_hot, _doubled, _outer, _looped, _convolved,
]  # fmt: skip
