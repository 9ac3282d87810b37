"""Random procedures of the tiled loop IR, legal-looking rewrites for them, and the strictest way to run them.

All numbers are integers, so a sum is the same in whatever order it is taken, and results can be compared exactly. An
access outside of an array is an error, and so is a result that depends on an element that nobody has stored to.
"""

from __future__ import annotations

import re
from collections.abc import Sequence
from random import Random
from typing import Any

import numpy as np

from minitorch.compiler.loop_ir.expressions import ALWAYS, Apply, Expression, Inside, Load, Number
from minitorch.compiler.loop_ir.index import NOWHERE, Index, Variable, variable
from minitorch.compiler.loop_ir.loops import Buffer, LoopKernel, Nest
from minitorch.compiler.loop_ir.source import compiled, printed
from minitorch.compiler.loop_ir.tree import (
    Accumulate,
    Allocate,
    Block,
    For,
    If,
    Local,
    Procedure,
    Read,
    Store,
    loops,
    statements,
)
from minitorch.compiler.scheduling import rewrites as R
from minitorch.dtypes import int64

Array = np.ndarray[Any, Any]
SIZE = 64  # elements of each argument


class Poison:
    """An element that nobody has stored to: whatever is computed from it is one, too."""

    def _same(self, *_: Any) -> Poison:
        return self

    __add__ = __radd__ = __sub__ = __rsub__ = __mul__ = __rmul__ = _same


def _maximum(a: Any, b: Any) -> Any:
    return next((each for each in (a, b) if isinstance(each, Poison)), None) or max(a, b)


class Strict(list[Any]):
    """An array that takes no index outside of it."""

    def __getitem__(self, place: Any) -> Any:
        assert 0 <= place < len(self), f"read at {place} of {len(self)}"
        return super().__getitem__(place)

    def __setitem__(self, place: Any, value: Any) -> None:
        assert 0 <= place < len(self), f"stored at {place} of {len(self)}"
        super().__setitem__(place, value)


def run(procedure: Procedure, arrays: Sequence[Array], order: str = "reversed") -> list[Array]:
    """The arrays after a procedure, run as its text.

    Args:
        order: of the iterations of parallel loops and of the lanes of vectors, which must not matter.
    """
    kernel = LoopKernel("kernel", procedure.buffers, (Nest((), ()),))
    text = printed(kernel, [procedure])
    text = re.sub(r"np\.empty\((\d+), [\w.]+\)", r"Strict([Poison()] * \1)", text)
    text = text.replace("np.maximum", "maximum")
    text = re.sub(r"in (range\(\d+\)):  # (in parallel|vector)", rf"in {order}(\1):", text)
    function = compiled(text, Strict=Strict, Poison=Poison, maximum=_maximum)
    given = [Strict(array) for array in arrays]
    function(*given)
    return [np.array(list(each), array.dtype) for each, array in zip(given, arrays, strict=True)]


def arguments(procedure: Procedure, seed: int) -> list[Array]:
    """Numbers for the arguments of a procedure."""
    random = np.random.default_rng(seed)
    return [random.integers(-9, 10, int(np.prod(buffer.shape))) for buffer in procedure.buffers]


def random_procedure(random: Random) -> Procedure:
    """Loops, at random places, around statements on two arguments and a few local arrays."""
    buffers = (Buffer((SIZE,), int64, False, constant=random.random() < 0.5), Buffer((SIZE,), int64, True))
    return Procedure(buffers, _block(random, [], [], 3))


def _block(random: Random, scope: list[Variable], arrays: list[Local], depth: int) -> Block:
    found: list[Any] = []
    arrays = list(arrays)
    for _ in range(random.choice((1, 1, 2, 3))):
        kind = random.random()
        if kind < 0.25 and depth:
            local = Local(f"a{random.randrange(10**6)}", random.choice((1, 1, 4, 12)), int64)
            arrays.append(local)
            found.append(Allocate(local))
            found += _fill(random, local)
        if kind < 0.7 and depth:
            names = [f"{letter}{len(scope)}" for letter in "ij"]
            variables = [Variable(random.choice(names), random.choice((2, 3, 4)))]
            body = _block(random, [*scope, *variables], arrays, depth - 1)
            found.append(For(variables[0], body))
        elif kind < 0.8 and scope and depth:
            index = _index(random, scope, 8)
            low, high = index.bounds
            inside = ALWAYS.and_(low, index, max(low + 1, random.randint(low, high)))
            body = _block(random, scope, arrays, depth - 1)
            found += [If(inside, body)] if inside != ALWAYS else body
        else:
            found.append(_statement(random, scope, arrays))
    return tuple(found)


def _fill(random: Random, local: Local) -> Block:
    zero = Number(int64, 0, "i64 0")
    if local.size == 1:
        return (Store(local, NOWHERE, zero),)
    counter = Variable(f"f{random.randrange(10**6)}", local.size)
    return (For(counter, (Store(local, variable(counter.name, counter.extent), zero),)),)


def _statement(random: Random, scope: list[Variable], arrays: list[Local]) -> Store | Accumulate:
    choices: list[int | Local] = [1, *arrays]
    array = random.choice(choices)
    index = _index(random, scope, array.size if isinstance(array, Local) else SIZE)
    value = _value(random, scope, arrays, 2)
    if random.random() < 0.5:
        return Accumulate(array, index, random.choice(("reduce_sum", "reduce_sum", "reduce_max")), value)
    return Store(array, index, value)


def _value(random: Random, scope: list[Variable], arrays: list[Local], depth: int) -> Expression:
    kind = random.random()
    if depth and kind < 0.5:
        parts = tuple(_value(random, scope, arrays, depth - 1) for _ in range(2))
        return Apply(int64, random.choice(("mul", "mul", "add", "sub")), parts)
    if arrays and kind < 0.7:
        local = random.choice(arrays)
        return Read(int64, local, _index(random, scope, local.size))
    index = _index(random, scope, SIZE)
    inside: Inside = ALWAYS
    if scope and random.random() < 0.2:
        inside = ALWAYS.and_(index.bounds[0] + 1, index, index.bounds[1] + 1)
    return Load(int64, random.choice((0, 0, 0, 1)), index, inside)


def _index(random: Random, scope: list[Variable], size: int) -> Index:
    """Like the places of digits, more often than not."""
    found, step = NOWHERE, 1
    for each in random.sample(scope, len(scope)):
        if random.random() < 0.85:
            found = found + variable(each.name, each.extent) * (
                step if random.random() < 0.8 else random.choice((1, 2))
            )
            step *= each.extent
    if random.random() < 0.2:
        found = found + random.choice((1, 2))
    return found if found.bounds[0] >= 0 and found.bounds[1] < size else Index((), random.randrange(min(size, 3)))


def random_rewrite(random: Random, procedure: Procedure) -> R.Rewrite:
    """A step that looks as if it could be meant."""
    names = list(dict.fromkeys(each.variable.name for each in loops(procedure.body))) or ["i0"]
    some = random.sample(names, min(len(names), random.choice((1, 2, 2, 3))))
    locals_ = [each.local.name for each in statements(procedure.body) if isinstance(each, Allocate)] or ["a0"]
    fresh = f"n{random.randrange(10**6)}"
    loop, array = random.choice(names), random.choice(locals_)
    makers = [
        lambda: R.split(loop, random.choice((1, 2, 3, 4)), f"{fresh}o", f"{fresh}i"),
        lambda: R.split(loop, 2, random.choice(names), fresh),
        lambda: R.fuse(fresh, *some),
        lambda: R.fuse(fresh, *names[:2]),
        lambda: R.reorder(*some),
        lambda: R.reorder(*some),
        lambda: R.distribute(*some),
        lambda: R.distribute(*some),
        lambda: R.jam(*some),
        lambda: R.lift(array, *some, beside=random.random() < 0.5),
        lambda: R.unroll(loop),
        lambda: R.unswitch(loop),
        lambda: R.vectorise(loop),
        lambda: R.parallelise(*some),
        lambda: R.overcompute(array),
        lambda: R.overcompute(*locals_),
        lambda: R.overcompute(array, tiles=tuple(some)),
        lambda: R.hoist(*some),
        lambda: R.reuse(array, random.choice(locals_)),
        lambda: R.outline(random.choice((1, array))),
        lambda: R.in_registers(array, loop, fresh, anew=random.random() < 0.5),
        lambda: R.pack(0, fresh, random.choice(["", *names]), *some),
        lambda: R.stage(random.choice((0, 1)), fresh, random.choice(["", *names]), loop, *some),
        lambda: R.specialise(loop),
        lambda: R.pack(array, fresh, random.choice(["", *names]), *some),
        lambda: R.prepack(array),
        lambda: R.align(loop, 1, random.choice((2, 4)), f"{fresh}o", f"{fresh}i"),
        lambda: R.pad_sum(loop, random.choice((2, 4, 5))),
        lambda: R.group(loop),
        lambda: R.group(loop, pairs="int16"),
        lambda: R.regroup(fresh, random.choice((1, 2, 4)), tuple(some), tuple(reversed(some))),
    ]
    return random.choice(makers)()
