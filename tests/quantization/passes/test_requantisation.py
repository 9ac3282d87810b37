"""Quantisations of what was dequantised with the same parameters: they are dropped, and no others are."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.errors import MismatchError
from minitorch.passes import FREEZING, run_pipeline
from minitorch_inference.frozen import Frozen
from minitorch_quantization.passes import requantised

F = mt.nn.functional
Q = q.QParams
MOVES: dict[str, Callable[[mt.Tensor], mt.Tensor]] = {
    "none": lambda x: x,
    "clone": lambda x: x.clone(),
    "permute": lambda x: x.permute(0, 2, 3, 1),
    "flatten": lambda x: x.flatten(1),
    "windows": lambda x: x.unfold(2, 3, 2).flip(1),
    "slice": lambda x: x[:, 1:, ::2],
    "padding": lambda x: F.pad(x, (1, 1, 0, 2)),
}
POSITIVE_ALONE = {"max-pool": lambda x: F.max_pool2d(x, 2)}
KINDS = {mt.uint8: (0, 255), mt.int8: (-128, 127)}


def rounded(graph: Any) -> int:
    """How many casts from floats to bytes there are."""
    live = graph.subgraph(graph.outputs).nodes
    return sum(node.primitive is P.cast and node.dtype in KINDS and node.inputs[0].dtype is mt.float32 for node in live)


def both(move: Callable[[mt.Tensor], mt.Tensor], one: Q, other: Q) -> Callable[..., mt.Tensor]:
    return lambda x: q.quantize(move(q.dequantize(x, one)), other)


def given(dtype: Any, scale: float = 0.03, zero: int = 100) -> Q:
    return Q(mt.tensor(scale), mt.tensor(zero, dtype=dtype), dtype, *KINDS[dtype])


def bytes_of(dtype: Any) -> mt.Tensor:
    low, high = KINDS[dtype]
    return mt.tensor(np.random.default_rng(0).integers(low, high + 1, (2, 3, 8, 8)).astype(dtype.numpy))


@pytest.mark.parametrize("dtype", KINDS)
@pytest.mark.parametrize("label", [*MOVES, *POSITIVE_ALONE])
def test_equal_parameters_cancel(label, dtype):
    """Frozen, the parameters are constants; compiled, they are inputs, each of them one value."""
    move, own, x = {**MOVES, **POSITIVE_ALONE}[label], given(dtype), bytes_of(dtype)
    function = both(move, own, own)
    for compiled in (mt.freeze(function, x), mt.jit(function)):
        is_jitted = not isinstance(compiled, Frozen)
        assert rounded(compiled.stages(x).graph) == (label in POSITIVE_ALONE and is_jitted), type(compiled).__name__
        assert (compiled(x) == function(x)).all().item()


def test_a_scale_that_is_an_input_is_known_to_be_positive_by_a_maximum():
    """So a pool comes behind rounding. With any other scale it may not: of a negative one, it takes the smallest."""
    own, x = given(mt.uint8), bytes_of(mt.uint8)

    def function(x):
        return both(POSITIVE_ALONE["max-pool"], *[replace(own, scale=mt.maximum(own.scale, 2.0**-126))] * 2)(x)

    compiled = mt.jit(function)
    assert rounded(compiled.stages(x).graph) == 0
    assert (compiled(x) == function(x)).all().item()
    negative = both(POSITIVE_ALONE["max-pool"], *[replace(own, scale=mt.tensor(-0.03))] * 2)
    assert (mt.jit(negative)(x) == negative(x)).all().item()


OTHERS = {
    "another scale": (given(mt.uint8), given(mt.uint8, scale=float(np.nextafter(np.float32(0.03), np.float32(1))))),
    "another zero point": (given(mt.uint8), given(mt.uint8, zero=101)),
    "fewer integers": (given(mt.uint8), Q(mt.tensor(0.03), mt.tensor(100, dtype=mt.uint8), mt.uint8, 0, 127)),
    "a scale without an inverse": (given(mt.uint8, scale=1e-39), given(mt.uint8, scale=1e-39)),
}


@pytest.mark.parametrize("label", OTHERS)
def test_other_parameters_stay(label):
    one, other = OTHERS[label]
    x, function = bytes_of(mt.uint8), both(MOVES["none"], one, other)
    after = requantised.drop_requantisation(run_pipeline(mt.freeze(function, x).graph(x), FREEZING[:4]).graph)
    assert rounded(after) == 1
    with np.errstate(all="ignore"):
        assert (mt.jit(function)(x) == function(x)).all().item()


def test_equal_numbers_that_are_two_values_stay():
    """An input may have another number in the next call."""
    one, other = given(mt.uint8), given(mt.uint8)
    function = mt.jit(both(MOVES["none"], one, other))
    x = bytes_of(mt.uint8)
    assert rounded(function.stages(x).graph) == 1
    other.scale.copy_(mt.tensor(0.06))
    assert (function(x) == both(MOVES["none"], one, other)(x)).all().item()


def test_the_law_holds_for_every_byte():
    """Of 2,000 scales over 60 orders of magnitude, with random zero points."""
    random = np.random.default_rng(1)
    every = mt.arange(256).to(mt.uint8)
    for exponent in random.uniform(-99, 99, 2000):
        own = given(mt.uint8, float(np.float32(2.0**exponent)), int(random.integers(256)))
        assert (q.quantize(q.dequantize(every, own), own) == every).all().item()


@pytest.mark.parametrize("forgotten", ["_is_zero", "_is_inverse"])
def test_half_of_the_parameters_is_not_enough(forgotten, monkeypatch):
    """With a rule that looks at the scale alone, or at the zero point alone, shadow mode finds another result."""
    one = given(mt.uint8)
    scale, zero = (
        (one.scale, mt.tensor(130, dtype=mt.uint8)) if forgotten == "_is_zero" else (mt.tensor(0.06), one.zero_point)
    )
    function, x = both(MOVES["permute"], one, Q(scale, zero, mt.uint8, 0, 255)), bytes_of(mt.uint8)
    assert mt.jit(function, check=True)(x).shape == (2, 8, 8, 3)
    monkeypatch.setattr(requantised, forgotten, lambda *_: True)
    with pytest.raises(MismatchError, match="integer products"):
        mt.jit(function, check=True)(x)


@pytest.mark.parametrize("narrow", [mt.uint8, mt.int8])
def test_a_zero_point_that_wraps_is_another_one(narrow):
    """300 is 44 in a byte, and 200 is -56 in a signed one."""

    def function(x, scale, zero):
        wide = q.dequantize(x, Q(scale, zero, mt.uint8, 0, 255))
        return q.quantize(wide, Q(scale, zero.to(narrow), mt.uint8, 0, 255))

    for zero in (300, 200, 7):
        arguments = bytes_of(mt.uint8), mt.tensor(0.1), mt.tensor(zero, dtype=mt.int32)
        expected = function(*arguments)
        for compiled in (mt.jit(function), mt.freeze(function, *arguments)):
            assert (compiled(*arguments) == expected).all().item(), zero
