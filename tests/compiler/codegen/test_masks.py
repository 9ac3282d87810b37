"""Loads and stores under masks touch the lanes that the mask names, and no other memory.

Masks are made as kernels make them: of a part that is known when code is made (the rest of a row) and of one that is
known when it runs (a condition on indices), turned round where memory is read backwards, and shared by several loads.
"""

from __future__ import annotations

import ctypes
from typing import Any

import numpy as np
import pytest
from llvmlite import ir

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import nn
from minitorch.compiler.codegen import machine
from minitorch.compiler.codegen.builder import Builder
from minitorch.compiler.codegen.host import host
from minitorch.compiler.codegen.vector_memory import POINTER, broadcast, first_lanes, integer, load, shuffled, store

LANES = host().vector_bytes // 4  # of a kernel of float32, whatever else it reads
TYPES = {
    "int8": ir.IntType(8), "int16": ir.IntType(16), "int32": ir.IntType(32), "int64": ir.IntType(64),
    "float32": ir.FloatType(), "float64": ir.DoubleType(),
}  # fmt: skip
BEFORE = 7  # what memory holds where nothing should be written


def copy_twice(element: Any, known: int, backwards: bool) -> bytes:
    """Code that copies two vectors under one mask: of the first `known` lanes, those below a number it is given."""
    module = ir.Module()
    kind = ir.FunctionType(ir.VoidType(), [POINTER, POINTER, ir.IntType(64)])
    function = ir.Function(module, kind, "copy")
    builder = Builder(function.append_basic_block("entry"), host())
    source, target, limit = function.args
    numbers = ir.Constant(ir.VectorType(ir.IntType(64), LANES), list(range(LANES)))
    below = builder.icmp_signed("<", numbers, broadcast(builder, limit, LANES))
    mask = builder.and_(first_lanes(LANES, known), below)
    if backwards:
        mask = shuffled(builder, mask, first_lanes(LANES, 0), list(range(LANES))[::-1])
    vector = ir.VectorType(element, LANES)

    def at(pointer: Any, place: int) -> Any:
        return builder.gep(pointer, [integer(place)], source_etype=element)

    read = [load(builder, at(source, place), vector, mask) for place in (0, LANES)]
    for number, value in enumerate(read):
        store(builder, at(target, number * LANES), value, mask)
        store(builder, at(target, (2 + number) * LANES), value)  # zero where the mask leaves it out
    builder.ret_void()
    return machine.compile_ir(str(module), host())


@pytest.mark.parametrize("backwards", [False, True])
@pytest.mark.parametrize("dtype", TYPES)
def test_a_mask_leaves_out_what_it_says(dtype: str, backwards: bool) -> None:
    prototype = ctypes.CFUNCTYPE(None, ctypes.c_void_p, ctypes.c_void_p, ctypes.c_int64)
    for known in range(LANES + 1):
        copy = machine.load(copy_twice(TYPES[dtype], known, backwards), "copy").function("copy", prototype)
        for limit in {0, 1, known, LANES}:
            source = np.arange(1, 2 * LANES + 1).astype(dtype)
            target = np.full(4 * LANES, BEFORE, dtype)
            copy(source.ctypes.data, target.ctypes.data, limit)
            within = np.arange(LANES) < min(known, limit)
            within = np.tile(within[::-1] if backwards else within, 2)
            expected = np.concatenate([np.where(within, source, BEFORE), np.where(within, source, 0)])
            np.testing.assert_array_equal(target, expected.astype(dtype), f"{known} known, below {limit}")


@pytest.mark.parametrize("length", range(1, LANES + 2))
def test_indices_are_read_where_they_are(length: int) -> None:
    """Read backwards and in two parts; the conditions on the last columns are known when the code is made."""

    def program(x: mt.Tensor, places: mt.Tensor) -> mt.Tensor:
        return mt.gather(x, 1, places).roll(1).t().flip(1)

    x = mt.randn(length, 4, requires_grad=True)
    places = mt.randint(0, 4, (length, 1))
    assert mt.equal(mt.jit(program)(x, places), program(x, places))


def test_an_address_is_there_wherever_it_is_used() -> None:
    """What all lanes read from one address, under a mask, is read in an outer loop and used in inner ones."""
    layers = nn.Conv2d(2, 2, 1, padding=1), nn.GroupNorm(2, 2), nn.Tanh(), nn.MaxPool2d(3, 2, 1)
    model = nn.Sequential(*layers, nn.AdaptiveAvgPool2d(1), nn.Flatten(), nn.Linear(2, 5))
    x, y = mt.randn(4, 2, 1, 11), mt.tensor([2, 2, 3, 4])

    def gradients(x: mt.Tensor) -> list[mt.Tensor]:
        model.zero_grad()
        F.cross_entropy(model(x), y).backward()
        return [each.grad for each in model.parameters() if each.grad is not None]

    for found, expected in zip(mt.jit(gradients)(x), gradients(x), strict=True):
        assert mt.allclose(found, expected, atol=1e-5)


def test_lanes_beside_what_some_lanes_read_alike_are_zero() -> None:
    """The gradient of one column of three: the quotients of zeros beside it reach nobody."""
    mean, var, rows = mt.randn(4), mt.rand(4) + 1, mt.randn(4, 4, 3)

    def gradient(mean: mt.Tensor, var: mt.Tensor, rows: mt.Tensor) -> list[mt.Tensor]:
        def loss(rows: mt.Tensor, var: mt.Tensor) -> mt.Tensor:
            normal = F.batch_norm(rows.unbind(2)[0], mean, var, weight=var)
            return (normal * (mt.arange(16).reshape(4, 4) % 5 - 2)).sum()

        return list(mt.vjp(loss, rows, var)[1](mt.tensor(1.0)))

    for found, expected in zip(mt.jit(gradient)(mean, var, rows), gradient(mean, var, rows), strict=True):
        assert mt.allclose(found, expected, atol=1e-5)


@pytest.mark.parametrize("dtype", ["float32", "float64"])
@pytest.mark.parametrize("length", [1, 2, 3, LANES // 2, LANES - 1, LANES + 2])
def test_quotients_beside_the_last_element_count_for_nothing(length: int, dtype: str) -> None:
    """Lanes that a mask leaves out are 0 / 0, and the sum over all lanes is that of the others."""
    a, b = mt.randn(length, dtype=getattr(mt, dtype)), mt.rand(length, dtype=getattr(mt, dtype)) + 1
    assert mt.allclose(mt.jit(lambda a, b: (a / b).sum())(a, b), (a / b).sum(), atol=1e-5)


@pytest.mark.parametrize("dtype", ["bool", "float16", "bfloat16"])
@pytest.mark.parametrize("lanes", [LANES // 4, LANES, 3 * LANES])
def test_a_total_is_converted_where_it_is_known(dtype: str, lanes: int) -> None:
    """What memory and registers hold in two forms: a loop over what uses a total starts behind its conversion."""
    x, out = mt.ones(1).to(getattr(mt, dtype)), mt.zeros(2, lanes, dtype=getattr(mt, dtype))

    def spread(x: mt.Tensor, out: mt.Tensor) -> mt.Tensor:
        total = x.all() if x.dtype is mt.bool else x.amax()
        return out.copy_(total == (total == total))

    assert mt.equal(mt.jit(spread)(x, out), mt.ones_like(out))


def test_positions_as_indices_are_looked_up_where_they_are_used() -> None:
    """An index out of range that is no element of an array is noted under the mask of its lane, and nowhere else."""
    x, a, b = (mt.ones(*shape, dtype=mt.int16) for shape in ((1, 1, 1), (8, 1, 3), (8, 3, 2)))

    def gathered(x: mt.Tensor, a: mt.Tensor, b: mt.Tensor, index: mt.Tensor) -> mt.Tensor:
        return mt.gather(x.baddbmm(a, b, alpha=0.5), 1, index)

    with pytest.raises(IndexError):
        mt.jit(gathered)(x, a, b, mt.tensor([[[6, 5]]]))
    right = mt.tensor([[[0, 0]]])
    assert mt.equal(mt.jit(gathered)(x, a, b, right), gathered(x, a, b, right))
