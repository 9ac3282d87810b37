"""Rows on vectors: every step of the engine's schedules gives a procedure, and a wrong use of a step is refused."""

from __future__ import annotations

from random import Random
from typing import Any

import pytest
from hypothesis import HealthCheck, given, settings

import minitorch as mt
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.ledger import ledger_of
from minitorch.compiler.loop_ir.expressions import Load
from minitorch.compiler.loop_ir.index import Variable, variable
from minitorch.compiler.loop_ir.loops import Buffer, Loop, Nest, Reduce, Write
from minitorch.compiler.loop_ir.tree import Local, Procedure, Store, procedure, statements
from minitorch.compiler.scheduling.rewrites import (
    Rewrite,
    partition,
    sink,
    split,
    split_reduction,
    stage,
    vectorise,
)
from minitorch.compiler.scheduling.schedules import choice as schedules
from minitorch.compiler.scheduling.schedules.rows import row_schedule
from minitorch.compiler.target import TARGETS
from minitorch.dtypes import float32
from minitorch.errors import ScheduleError, ScheduleWarning
from minitorch.graph import Graph
from minitorch.passes import lowered
from tests.support import graphs as random_graphs
from tests.support.graphs import assert_close

ROWS, COLUMNS = 7, 100


def sum_of_rows() -> Procedure:
    """A sum over the columns of each row."""
    i, j = variable("i", ROWS), variable("j", COLUMNS)
    value = Load(float32, 0, i * COLUMNS + j)
    rows, columns = (Variable("i", ROWS),), (Variable("j", COLUMNS),)
    loops = (
        Loop(columns, (Reduce(0, "reduce_sum", value),)),
        Loop((), (Write(1, i, Load(float32, 0, i * COLUMNS)),)),
    )
    buffers = (Buffer((ROWS, COLUMNS), float32, False), Buffer((ROWS,), float32, True))
    return procedure(Nest(rows, loops), buffers)


@settings(deadline=None, suppress_health_check=list(HealthCheck))
@given(random_graphs.row_programs())
def test_every_step_gives_a_procedure(graph: Graph) -> None:
    """A rewrite that is called checks what it has made; the engine itself only applies it."""
    for kernel in ledger_of(lowered(graph), host()).kernels:
        for nest, buffers, _ in kernel.loops.parts if kernel.loops is not None else ():
            found = procedure(nest, buffers)
            for step in row_schedule(nest, host()) or ():
                found = step(found)


REFUSED: dict[str, tuple[Any, ...]] = {
    "a partial result of what is no reduction": (split_reduction("total0", "i", "parts"),),
    "a loop moved into another one whose iterations it shares an element with": (sink("j"),),
    "parts of loops that were not split": (partition("i", "j", "s"),),
    "lanes of a vector that have loops": (vectorise("i"),),
}


@pytest.mark.parametrize("steps", REFUSED.values(), ids=list(REFUSED))
def test_a_wrong_use_is_refused(steps: tuple[Any, ...]) -> None:
    found = sum_of_rows()
    with pytest.raises(ScheduleError, match="MT603"):
        for step in steps:
            found = step(found)


def test_a_split_reduction_has_a_partial_result_per_lane() -> None:
    found = sum_of_rows()
    for step in (split("j", 16, "v", "l", cut="l"), split_reduction("total0", "l", "lanes"), vectorise("l")):
        found = step(found)
    (rows,) = found.body
    assert [type(each).__name__ for each in rows.body] == [  # type: ignore[union-attr]
        "Allocate", "Store", "Allocate", "For", "For", "For", "For", "Store"
    ]  # fmt: skip


@pytest.mark.parametrize("illegal", [split("l", 4, "a", "b"), vectorise("i")], ids=["a law", "a rule of procedures"])
def test_what_is_not_legal_is_run_in_another_way(illegal: Rewrite, monkeypatch: pytest.MonkeyPatch) -> None:
    rows = sum_of_rows()
    nest = Nest((Variable("i", ROWS),), (Loop((), (Reduce(0, "reduce_sum", Load(float32, 0, variable("i", ROWS))),)),))
    monkeypatch.setattr(schedules, "SCHEDULES", (lambda *_: (illegal,), lambda *_: ()))
    found = schedules.schedule_of.__wrapped__(nest, rows.buffers, host(), frozenset())
    assert found.schedule == () and found.refused


@pytest.mark.parametrize("others", [(), (row_schedule,)], ids=["as defined", "another schedule"])
def test_a_refused_schedule_is_loud(others: tuple[Any, ...], monkeypatch: pytest.MonkeyPatch) -> None:
    """A warning at the user's line, which in tests is an error; a line of the ledger, of `explain` and of a kernel."""
    monkeypatch.setattr(schedules, "SCHEDULES", (lambda *_: (vectorise("i0"),), *others))
    schedules.schedule_of.cache_clear()
    function, x = mt.jit(lambda x: x.sum(1)), mt.ones(ROWS, 7)
    with pytest.warns(ScheduleWarning, match=r"refuses a schedule of its own: MT603: vectorise\('i0'\)") as caught:
        assert function(x).tolist() == [7.0] * ROWS
    schedules.schedule_of.cache_clear()
    assert {each.filename for each in caught} == {__file__}
    (kernel,) = function.ledger(x).kernels
    (reason,), schedule = kernel.refused, repr(kernel.schedule)
    ledger, explained = str(function.ledger(x)), " ".join(str(function.explain()).split())
    assert reason.startswith("MT603: vectorise('i0')") and f"# since a schedule is refused: {reason}" in schedule
    assert f"{kernel.name}: a schedule is refused: {reason}" in ledger and f"is refused: {reason}" in explained


def test_sums_of_one_term_in_turned_tiles_are_right() -> None:
    """A gradient of weights from one row of data is turned, and added to what is written in place."""
    w, x, g = mt.randn(10, 5), mt.randn(1, 5), mt.randn(1, 10)

    def step(w: mt.Tensor) -> mt.Tensor:
        return w.sub_((x.t() @ g).t() * 0.1)

    expected = w - (x.t() @ g).t() * 0.1
    assert_close(mt.jit(step)(w).numpy(), expected.numpy(), "step")


def test_a_tile_is_copied_just_before_it_is_used() -> None:
    """All copies at once would wait for memory, and the arithmetic after them would not ask for any."""
    buffers = tuple(Buffer((4, 16), float32, written) for written in (False, False, True, True))
    i, j = variable("i", 4), variable("j", 16)
    loops = tuple(Loop((Variable("j", 16),), (Write(2 + n, i * 16 + j, Load(float32, n, i * 16 + j)),)) for n in (0, 1))
    found = procedure(Nest((Variable("i", 4),), loops), buffers)
    for argument in (0, 1):
        found = stage(argument, f"tile{argument}", "i", "j", "j")(found)
    assert [array.name if isinstance(array, Local) else array for array in stores_in_order(found)] == [
        "tile0", 2, "tile1", 3
    ]  # fmt: skip


def stores_in_order(found: Procedure) -> list[int | Local]:
    """The arrays that a procedure stores to, in the order of the text."""
    return [each.array for each in statements(found.body) if isinstance(each, Store)]


@pytest.mark.parametrize("seed", range(12))
def test_rows_of_any_length_have_a_schedule_on_every_target(seed: int) -> None:
    """Several copies of a result are written, of which none ends where a block of rows or a vector does."""
    random = Random(seed)
    n, m, depth = (random.choice((7, 10, 17, 33, 70, 100, 130, random.randint(5, 150))) for _ in range(3))
    x, w, bias = mt.randn(n, depth), mt.randn(depth, m), mt.randn(random.randint(2, 5), n, m)
    gradient = mt.grad(lambda x, w, bias: (x @ w + bias.sum(0)).relu().sum(), argnums=(0, 1, 2))
    compiled = mt.jit(gradient)
    for name in TARGETS:
        for kernel in compiled.ledger(x, w, bias).for_target(name).kernels:
            assert kernel.loops is None or kernel.schedule  # and none is the last resort, see conftest.py
    for found, expected in zip(compiled(x, w, bias), gradient(x, w, bias), strict=True):
        assert_close(found.numpy(), expected.numpy(), "gradient")


@pytest.mark.parametrize("seed", range(12))
def test_sums_over_outer_and_inner_dimensions_have_a_schedule_on_every_target(seed: int) -> None:
    """As those of a normalization over a batch: long enough for parts, and with lanes that lie far apart."""
    random = Random(seed)
    batch, channels = random.choice((64, 96, 128, 200)), random.choice((4, 16, 32, 100))
    shape = (batch, channels, *random.choice(((8, 8), (4, 4), (64,), (5, 7), (8,))))
    x, dims = mt.randn(*shape), (0, *range(2, len(shape)))
    compiled = mt.jit(lambda x: (x.sum(dims), (x * x).sum(dims)))
    for name in TARGETS:
        for kernel in compiled.ledger(x).for_target(name).kernels:
            assert kernel.loops is None or kernel.schedule  # and none is the last resort, see conftest.py
    for found, expected in zip(compiled(x), (x.sum(dims), (x * x).sum(dims)), strict=True):
        assert_close(found.numpy(), expected.numpy(), "sum")
