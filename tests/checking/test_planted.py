"""Miscompilations of every kind, planted one by one: shadow mode finds each, and blames the part that is wrong."""

from __future__ import annotations

import dataclasses
import math
import tempfile
import time
from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.backends import llvm
from minitorch.compiler.codegen import instructions
from minitorch.compiler.codegen.host import host
from minitorch.compiler.codegen.mathematics import exponential
from minitorch.compiler.codegen.mathematics.values import splat
from minitorch.compiler.codegen.procedures import expressions, memory, stores
from minitorch.compiler.kernels import placement
from minitorch.compiler.kernels.arena import plan
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.loop_ir.expressions import ALWAYS, Choose, Load, Number
from minitorch.compiler.loop_ir.tree import Local, Store
from minitorch.compiler.runtime import program_steps
from minitorch.errors import MismatchError
from minitorch_checking import shadow

Patch = pytest.MonkeyPatch
Array = np.ndarray[Any, Any]


@pytest.fixture(autouse=True)
def reproducers_are_removed(monkeypatch: Patch, tmp_path: Path) -> None:
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))


@dataclass(frozen=True)
class Plant:
    """A mistake, a program that it makes wrong, and what is to blame.

    Attributes:
        plant: makes the compiler wrong.
        program, arguments: what is compiled then.
        stages: where the mistake is, each of which may be said.
        primitives: which of the nodes may be named; empty for any, or none.
        how: what the report says of a fault that is no wrong number.
    """

    plant: Callable[[Patch], None]
    program: Callable[..., Any]
    arguments: Callable[[], tuple[mt.Tensor, ...]]
    stages: tuple[str, ...] = ("code generation", "schedule or code generation")
    primitives: tuple[str, ...] = ()
    how: str = ""


def primitive(name: str, emit: Callable[..., Any]) -> Callable[[Patch], None]:
    """Another emission of a primitive; it is given the right one as well."""
    right = instructions.PRIMITIVES[name]
    return lambda patch: patch.setitem(
        instructions.PRIMITIVES, name, lambda builder, dtype, *operands: emit(right, builder, dtype, *operands)
    )


def swapped(right: Any, builder: Any, dtype: Any, a: Any, b: Any) -> Any:
    return right(builder, dtype, b, a)


def instead(name: str) -> Callable[..., Any]:
    return lambda right, builder, dtype, *operands: instructions.PRIMITIVES[name](builder, dtype, *operands)


def by_reciprocal(right: Any, builder: Any, dtype: Any, a: Any, b: Any) -> Any:
    return builder.fmul(a, right(builder, dtype, splat(b.type, 1.0), b))


def no_rounding(patch: Patch) -> None:
    for module in (expressions, instructions):
        patch.setattr(module, "rounded", lambda builder, x, dtype: x)


def contraction(patch: Patch) -> None:
    """A product and a sum are one instruction, wherever LLVM sees them together."""
    for name, method in (("mul", "fmul"), ("add", "fadd")):
        right = instructions.PRIMITIVES[name]

        def emit(builder: Any, dtype: Any, a: Any, b: Any, right: Any = right, method: str = method) -> Any:
            if not dtype.is_floating_point:
                return right(builder, dtype, a, b)
            return getattr(builder, method)(a, b, flags=("contract",))

        patch.setitem(instructions.PRIMITIVES, name, emit)


def next_element(patch: Patch) -> None:
    read = memory.Memory.reading
    patch.setattr(memory.Memory, "reading", lambda self, at: read(self, replace(at, index=at.index + 1)))


def without_conditions(patch: Patch) -> None:
    """What lies outside of what is padded is read as if it were there."""
    prepared = expressions.Expressions._prepared

    def always(self: Any, expression: Any) -> Any:
        while isinstance(expression, Choose):
            expression = expression.here
        if isinstance(expression, Load):
            expression = dataclasses.replace(expression, inside=ALWAYS)
        return prepared(self, expression)

    patch.setattr(expressions.Expressions, "_prepared", always)


def without_masks(patch: Patch) -> None:
    """The rest of a row is written as a whole vector."""
    store = vars(memory)["store"]
    patch.setattr(memory, "store", lambda builder, place, value, mask=None: store(builder, place, value))


def stale_accumulators(patch: Patch) -> None:
    store = stores.Stores.store

    def stale(self: Any, each: Store) -> None:
        is_start = isinstance(each.value, Number) and isinstance(each.array, Local)
        store(self, dataclasses.replace(each, value=Number(each.value.dtype, 1, "stale")) if is_start else each)

    patch.setattr(stores.Stores, "store", stale)


def one_term_only(patch: Patch) -> None:
    """Products replace the sum instead of being added to it."""
    patch.setattr(
        stores, "multiply_add", lambda builder, dtype, a, b, c: instructions.PRIMITIVES["mul"](builder, dtype, a, b)
    )


def wrong_coefficient(patch: Patch) -> None:
    first, *others = exponential._EXPONENTIAL[32]
    patch.setitem(exponential._EXPONENTIAL, 32, (first * (1 + 1e-3), *others))


def slightly_wrong(right: Any, builder: Any, dtype: Any, x: Any) -> Any:
    """84 units in the last place of float32."""
    return builder.fmul(right(builder, dtype, x), splat(x.type, 1 + 1e-5))


def missing_unit(patch: Patch) -> None:
    units = vars(Kernel)["units"].func
    patch.setattr(Kernel, "units", property(lambda self: max(1, units(self) - 1)))


def in_another_order(patch: Patch) -> None:
    """The last kernel is run first; each by itself is right."""

    def reversed_(ledger: Any, *rest: Any) -> Any:
        return program_steps.NativeProgram(dataclasses.replace(ledger, kernels=ledger.kernels[::-1]), *rest)

    patch.setattr(llvm, "NativeProgram", reversed_)


def wild_addresses(patch: Patch) -> None:
    where = program_steps.CallMemory.where

    def wild(self: Any, node: Any) -> tuple[int, int]:
        place, offset = where(self, node)
        return place, offset + (1 << 45 if place == self.arena else 0)

    patch.setattr(program_steps.CallMemory, "where", wild)


def beyond_the_arena(patch: Patch) -> None:
    """The last value in the arena ends outside."""

    def short(*args: Any) -> Any:
        found = placement.place(*args)
        return dataclasses.replace(found, arena_bytes=found.arena_bytes - 256)

    patch.setattr(llvm, "place", short)


def on_one_place(patch: Patch) -> None:
    patch.setattr(
        placement, "plan", lambda buffers: dataclasses.replace(plan(buffers), offsets=tuple(0 for _ in buffers))
    )


def overwritten_too_early(patch: Patch) -> None:
    patch.setattr(placement, "_may_overwrite", lambda lives, new, old: True)


def no_write(patch: Patch) -> None:
    """The new value of what is written in place is the old one."""
    call = llvm.Compiled.__call__

    def forgetful(self: Any, arrays: Any, overwrite: bool = True) -> list[Array]:
        found = call(self, [np.array(array) for array in arrays], overwrite)
        found[-1] = np.array(arrays[0])
        return found

    patch.setattr(llvm.Compiled, "__call__", forgetful)


def endless(patch: Patch) -> None:
    call = llvm.Compiled.__call__

    def slow(self: Any, arrays: Any, overwrite: bool = True) -> list[Array]:
        time.sleep(0 if self.graph.name == "x" else 100)
        return call(self, arrays, overwrite)

    patch.setattr(llvm.Compiled, "__call__", slow)
    patch.setattr(shadow, "PATIENCE", 0.5)
    patch.setattr("minitorch_checking.bisect.MOST_SECONDS", 2.0)


def draws(patch: Patch) -> None:
    primitive("shift_left", instead("shift_right"))(patch)


def floats(*shape: int) -> Callable[[], tuple[mt.Tensor, ...]]:
    return lambda: (mt.randn(*shape), mt.randn(*shape))


def halves(*shape: int) -> Callable[[], tuple[mt.Tensor, ...]]:
    return lambda: (mt.randn(*shape).half(), mt.randn(*shape).half())


def brains(*shape: int) -> Callable[[], tuple[mt.Tensor, ...]]:
    return lambda: (mt.randn(*shape).bfloat16(), mt.randn(*shape).bfloat16())


def another_copy(patch: Patch) -> None:
    """A product that is computed in several loops has another last place in all but the first."""
    blocks: list[Any] = []

    def emit(right: Any, builder: Any, dtype: Any, a: Any, b: Any) -> Any:
        found = right(builder, dtype, a, b)
        if builder.block not in blocks:
            blocks.append(builder.block)
        return found if builder.block is blocks[0] else builder.fmul(found, splat(found.type, 1 + 2.0**-23))

    primitive("mul", emit)(patch)


def through_a_maximum(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor | None:
    a = mt.tensor(1.1, requires_grad=True)
    (x * a.exp()).amax(1).sum().backward()
    return a.grad


def counted(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
    return mt.where(x < y.round(), 1, 0).sum()


PLANTS = {
    "swapped operands": Plant(
        primitive("sub", swapped), lambda x, y: (x * 2 - y).exp(), floats(3, 7), primitives=("sub",)
    ),
    "another comparison": Plant(
        primitive("less", instead("less_equal")),
        counted,
        lambda: (mt.arange(9.0), mt.arange(9.0)),
        primitives=("less",),
    ),
    "division that truncates": Plant(
        primitive("floor_divide", lambda right, builder, dtype, a, b: builder.sdiv(a, b)),
        lambda x, y: x // y,
        lambda: (mt.arange(-8, 9), mt.full((17,), 3)),
        primitives=("floor_divide",),
    ),
    "division by a reciprocal": Plant(
        primitive("div", by_reciprocal),
        lambda x, y: x / y,
        floats(40, 7),
        primitives=("div",),
    ),
    "maximum that loses NaN": Plant(
        primitive("maximum", lambda right, builder, dtype, a, b: builder.select(builder.fcmp_ordered(">", a, b), a, b)),
        lambda x, y: mt.maximum(y * math.nan, x),
        floats(5, 7),
        primitives=("maximum",),
    ),
    "dropped rounding to float16": Plant(no_rounding, lambda x, y: (x * 30 + y * 7) * 3 - x, halves(16, 9)),
    "dropped rounding to bfloat16": Plant(no_rounding, lambda x, y: (x + y).sum(1) + (x * y).mean(1), brains(16, 64)),
    "dropped rounding in a softmax": Plant(no_rounding, lambda x, y: (x * 4).softmax(1) * y, halves(16, 33)),
    "contraction": Plant(contraction, lambda x, y: x * y + x, floats(9, 33), primitives=("add",)),
    "a copy with other bits": Plant(another_copy, through_a_maximum, floats(64, 50)),
    "wrong index by one": Plant(next_element, lambda x, y: x + y, floats(5, 7)),
    "missing condition of a padding": Plant(without_conditions, lambda x, y: F.pad(x + 1, (2, 2)) * 2, floats(5, 7)),
    "missing mask": Plant(without_masks, lambda x, y: x + y * 2, floats(3, 7), how="outside of its arrays"),
    "stale accumulator": Plant(
        stale_accumulators, lambda x, y: (x * y).sum(1), floats(5, 37), primitives=("reduce_sum",)
    ),
    "terms that are not added": Plant(one_term_only, lambda x, y: x @ y.T + 1, floats(33, 40), primitives=("dot",)),
    "wrong constant in exp": Plant(
        wrong_coefficient, lambda x, y: (x.exp() + y).sum(0), floats(5, 9), primitives=("exp",)
    ),
    "slightly wrong exp in a long sum": Plant(
        primitive("exp", slightly_wrong), lambda x, y: x.exp().sum(), floats(64, 128), primitives=("exp",)
    ),
    "slightly wrong exp in a mean": Plant(
        primitive("exp", slightly_wrong), lambda x, y: x.exp().mean(), floats(1000, 300), primitives=("exp",)
    ),
    "wrong constant in a mean of softmax": Plant(
        wrong_coefficient, lambda x, y: (x.softmax(1) * y).mean(), floats(9, 9)
    ),
    "uninitialised tail": Plant(
        missing_unit, lambda x, y: F.max_pool2d(x, 2), lambda: (mt.randn(2, 3, 12, 12), mt.ones(1))
    ),
    "wrong random numbers": Plant(draws, lambda x, y: F.dropout(x, 0.5), floats(20, 20), primitives=("random_bits",)),
    "kernels in another order": Plant(
        in_another_order, lambda x, y: (x.T @ (x @ x.T).exp()).sort().indices, floats(64, 64), ("running",)
    ),
    "wild addresses": Plant(
        wild_addresses, lambda x, y: x.T @ (x @ x.T).exp(), floats(64, 64), ("running",), how="SIGSEGV"
    ),
    "an arena that is too small": Plant(
        beyond_the_arena, lambda x, y: x.T @ (x @ x.T).exp(), floats(64, 64), ("running",), how="outside of its arrays"
    ),
    "values on one place": Plant(
        on_one_place, lambda x, y: (x @ y) @ (y @ x) + (x @ x) @ (y @ y), floats(8, 8), ("running",)
    ),
    "dropped in-place write": Plant(no_write, lambda x, y: x.mul_(y).sum(), floats(5, 5), ("running",)),
    "no end": Plant(endless, lambda x, y: x + y, floats(5, 5), ("running",), how="did not end within"),
}


if not host().fma:  # then nothing can be contracted
    del PLANTS["contraction"]


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", PLANTS)
def test_a_planted_mistake_is_found_and_the_right_part_blamed(name: str, monkeypatch: Patch) -> None:
    mt.manual_seed(0)
    planted = PLANTS[name]
    arguments = planted.arguments()
    right = mt.jit(planted.program, check=True)
    right(*arguments)
    assert all(report.ok and not report.decisions for report in right.checked())
    before = [argument.tolist() for argument in arguments]
    planted.plant(monkeypatch)
    wrong = mt.jit(planted.program, check=True)
    with pytest.raises(MismatchError, match="MT502") as caught:
        wrong(*arguments)
    (report,) = wrong.checked()
    culprit = report.culprit
    assert culprit is not None and not report.ok
    assert culprit.stage in planted.stages, str(report)
    if planted.primitives:
        assert culprit.node is not None and culprit.node.primitive.name in planted.primitives, str(report)
    assert planted.how in f"{report.fault} {culprit.how}", str(report)
    assert str(culprit) in str(caught.value)
    assert [argument.tolist() for argument in arguments] == before or np.isnan(before).any()


def test_convolutions_are_gone_through_node_by_node(monkeypatch: Patch) -> None:
    """The scheduler has nodes that no graph of a user's has."""
    x, w, b = mt.randn(2, 3, 8, 8), mt.randn(4, 3, 3, 3), mt.randn(4)
    right = mt.jit(lambda x, w, b: F.conv2d(x, w, b, padding=1).relu().exp(), check=True)
    right(x, w, b)
    assert right.checked()[0].ok
    one_term_only(monkeypatch)
    wrong = mt.jit(lambda x, w, b: F.conv2d(x, w, b, padding=1).relu().exp(), check=True)
    with pytest.raises(MismatchError, match="MT502"):
        wrong(x, w, b)
    culprit = wrong.checked()[0].culprit
    assert culprit is not None and culprit.node is not None and culprit.node.primitive.name in ("contract", "dot")
