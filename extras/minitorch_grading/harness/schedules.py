"""Drivers of exercise 08: a schedule is a list of rewrites, and crosses as their text."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from minitorch.compiler.loop_ir.expressions import Apply, Load, Number
from minitorch.compiler.loop_ir.index import Index, Variable, variable
from minitorch.compiler.loop_ir.loops import Buffer, LoopKernel, Nest
from minitorch.compiler.loop_ir.source import printed
from minitorch.compiler.loop_ir.tree import Accumulate, Allocate, For, Local, Procedure, Read, Store
from minitorch.compiler.scheduling.rewrite import Rewrite
from minitorch.dtypes import float32

from .driver import Driver, call_purely
from .limit import Limited
from .needs import Needs

NEEDS = Needs(
    engine=("compiler.loop_ir.source", "compiler.scheduling.rewrites", "interpreters", "primitives", "tensor")
)


# --- what the notebook works with, too --------------------------------------------------------------------------


def chain(length: int) -> Procedure:
    """``out[i] = x0[i] * x0[i] + x1[i]`` for every i: the definition, a plain loop over `i0`."""
    i = Variable("i0", length)
    place = variable("i0", length)
    x, y = Load(float32, 0, place), Load(float32, 1, place)
    value = Apply(float32, "add", (Apply(float32, "mul", (x, x)), y))
    buffers = (Buffer((length,), float32, False), Buffer((length,), float32, False), Buffer((length,), float32, True))
    return Procedure(buffers, (For(i, (Store(2, place, value),)),))


def product(rows: int, columns: int, inner: int) -> Procedure:
    """The product of two matrices: the definition, loops over `i0`, `i1` and `j0`, and a total `total0`."""
    i, j, k = Variable("i0", rows), Variable("i1", columns), Variable("j0", inner)
    row, column, step = variable("i0", rows), variable("i1", columns), variable("j0", inner)
    total = Local("total0", 1, float32)
    nowhere = Index()
    a, b = Load(float32, 0, row * inner + step), Load(float32, 1, step * columns + column)
    term = Apply(float32, "mul", (a, b))
    body = (
        Allocate(total),
        Store(total, nowhere, Number(float32, 0.0, "0")),
        For(k, (Accumulate(total, nowhere, "reduce_sum", term),)),
        Store(2, row * columns + column, Read(float32, total, nowhere)),
    )
    shapes = ((rows, inner), (inner, columns), (rows, columns))
    buffers = tuple(Buffer(shape, float32, number == 2) for number, shape in enumerate(shapes))
    return Procedure(buffers, (For(i, (For(j, body),)),))


def scheduled(definition: Procedure, schedule: Iterable[Rewrite]) -> Procedure:
    """The program after all rewrites.

    Raises:
        ScheduleError: if one is refused (``MT603``).
    """
    for rewrite in schedule:
        definition = rewrite(definition)
    return definition


def source(program: Procedure) -> str:
    """A program as Python.

    Example:
        >>> print(source(chain(4)))
        def kernel(x0, x1, out2):
            for i0 in range(4):
                t0 = x0[i0]
                out2[i0] = (t0 * t0) + x1[i0]
    """
    text = printed(LoopKernel("kernel", program.buffers, (Nest((), ()),)), [program])
    lines = text.splitlines()[3:]
    return "\n".join(line for line in lines if line and not line.startswith("    # "))


# --- the tasks --------------------------------------------------------------------------------------------------


def _texts(call: Limited, case: tuple[str, Any]) -> Any:
    """The sizes; the answer has the text of each rewrite."""
    found = call(*case[1])
    if not isinstance(found, (list, tuple)):
        return found
    return [each.text if isinstance(each, Rewrite) else None for each in found]


address, pack_rows = (Driver(f"schedules.{name}", call_purely, NEEDS) for name in ("address", "pack_rows"))
chain_schedule, vector_schedule, product_schedule = (
    Driver(f"schedules.{name}", _texts, NEEDS) for name in ("chain_schedule", "vector_schedule", "product_schedule")
)
