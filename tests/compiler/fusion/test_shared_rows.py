"""Roots over the same rows share a kernel, and the ledger's reasons why others do not are true."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np
import pytest
from hypothesis import given, settings

import minitorch as mt
import minitorch.nn.functional as F
from minitorch.compiler.codegen.host import host
from minitorch.compiler.fusion import PHASES, SIBLINGS, SIDE_BY_SIDE, fuse, rows
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.kernels.ledger import Edge, Ledger, ledger_of
from minitorch.compiler.loop_ir.expressions import ALWAYS, Expression, Load
from minitorch.compiler.loop_ir.index import Index, Variable
from minitorch.compiler.loop_ir.loops import Nest, Write
from minitorch.graph import Graph
from minitorch.ir import Node
from minitorch.passes import lowered
from minitorch.passes.dead_code import remove_dead_code
from tests.support.graphs import graphs, row_programs

Program = Callable[..., Any]


def ledger(function: Program, *args: mt.Tensor) -> Ledger:
    return mt.jit(function, backend="llvm").ledger(*args)


def passes(found: Ledger) -> list[list[int]]:
    """For each kernel the bytes of what is given to it, once for each loop of a nest that reads it."""
    return [
        [
            kernel.buffers[start + number].spec.nbytes
            for nest, buffers, start in (kernel.loops.parts if kernel.loops else ())
            for loop in nest.loops
            for number in sorted({number for each in loop.statements for number in loads(each.value)})
            if not buffers[number].written
        ]
        for kernel in found.kernels
    ]


def loads(value: Expression) -> set[int]:
    return {each.buffer for each in value.all_parts if isinstance(each, Load)}


# One kernel -----------------------------------------------------------------------------------------------------

REDUCED: dict[str, Program] = {
    "max": lambda x, dim: x.amax(dim),
    "min": lambda x, dim: x.amin(dim),
    "sum": lambda x, dim: x.sum(dim),
    "mean": lambda x, dim: x.mean(dim),
    "squares": lambda x, dim: (x * x).sum(dim),
    "norm": lambda x, dim: (x * x).sum(dim).sqrt(),
    "absolute": lambda x, dim: x.abs().amax(dim),
    "shifted": lambda x, dim: (x * 2 + 1).mean(dim),
    "positive": lambda x, dim: (x > 0.5).to(mt.float32).sum(dim),
    "exponentials": lambda x, dim: x.exp().sum(dim),
}
COMBINED: dict[str, Program] = {
    "-": lambda a, b: a - b,
    "+": lambda a, b: a + b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / (b.abs() + 1),
    "max": mt.maximum,
}
FORMS = (((12, 40), 1), ((40, 12), 0), ((300, 300), (0, 1)), ((5, 6, 70), 2), ((6, 5, 40), (0, 2)), ((3, 50000), 1))


@pytest.mark.parametrize("seed", range(30))
def test_reductions_of_one_array_that_are_combined_read_it_once(seed: int) -> None:
    chosen = random.Random(seed)
    names = chosen.sample(sorted(REDUCED), chosen.choice((2, 3)))
    signs = [chosen.choice(sorted(COMBINED)) for _ in names[1:]]
    shape, dim = chosen.choice(FORMS)
    mt.manual_seed(seed)
    x = mt.rand(*shape)

    def program(x: mt.Tensor) -> mt.Tensor:
        found = REDUCED[names[0]](x, dim)
        for name, sign in zip(names[1:], signs, strict=True):
            found = COMBINED[sign](found, REDUCED[name](x, dim))
        return found

    found = ledger(program, x)
    assert len(found.kernels) == 1 and set(passes(found)[0]) == {x.nbytes}, f"{names} {signs}\n{found}"
    np.testing.assert_allclose(mt.jit(program)(x).numpy(), program(x).numpy(), rtol=2e-5, atol=1e-5)


def softmaxes(x: mt.Tensor, y: mt.Tensor) -> mt.Tensor:
    return x.softmax(1) - y.softmax(1)


def centred(x: mt.Tensor) -> tuple[mt.Tensor, ...]:
    return x - x.amax(1, keepdim=True), x - x.mean(1, keepdim=True)


def gradient(function: Program) -> Program:
    return lambda x, y: mt.vjp(function, x)[1](y)


X, Y = mt.rand(48, 40), mt.rand(48, 40)
ONE_KERNEL: dict[str, tuple[Program, tuple[mt.Tensor, ...]]] = {
    "range": (lambda x: x.amax(1) - x.amin(1), (X,)),
    "cosine similarity": (F.cosine_similarity, (X, Y)),
    "its formula": (lambda x, y: (x * y).sum(1) / ((x * x).sum(1).sqrt() * (y * y).sum(1).sqrt()), (X, Y)),
    "mish's gradient": (gradient(F.mish), (X, Y)),
    "two softmaxes": (softmaxes, (X, Y)),
    "two results of its size": (centred, (X,)),
    "two results of one array": (lambda x: (x.mean(1), x.amax(1) * 2), (X,)),
    "over columns": (lambda x: x.mean(0) * x.amax(0), (X,)),
}


@pytest.mark.parametrize("name", ONE_KERNEL)
def test_one_kernel_reads_each_array_once(name: str) -> None:
    function, args = ONE_KERNEL[name]
    found = ledger(function, *args)
    assert [sum(x.spec.nbytes for x in kernel.reads) for kernel in found.kernels] == [sum(x.nbytes for x in args)]
    pairs = zip(mt.tree.flatten(mt.jit(function)(*args))[0], mt.tree.flatten(function(*args))[0], strict=True)
    for one, other in pairs:
        np.testing.assert_allclose(one.numpy(), other.numpy(), rtol=1e-5, atol=1e-6)


def test_a_root_joins_the_kernel_that_it_reads_most_of() -> None:
    """The product does not go through memory on the way to its division; the sum of each row does."""
    found = ledger(lambda e, v: (e @ v) / e.sum(1, keepdim=True), mt.rand(512, 256), mt.rand(256, 64))
    assert [kernel.kind for kernel in found.kernels] == ["K2", "K4"]
    assert [edge.producer.primitive.name for edge in found.edges if not edge.fused] == ["reduce_sum"]


# Reasons --------------------------------------------------------------------------------------------------------


WIDE, LONG = mt.rand(48, 90), mt.rand(2, 90000)
REASONS: dict[str, tuple[Program, tuple[mt.Tensor, ...], set[str]]] = {
    rows.OTHER_ROWS: (lambda x: x.sum(1).sum(0), (X,), set()),
    rows.OTHER_SHAPE: (lambda x: (x * 2, (x * 2).flip(0) + 1), (X,), set()),
    rows.OTHER_COLUMNS: (lambda x, y: x.sum(1) + y.sum(1), (X, WIDE), set()),
    rows.FEW: (lambda x: x * x.sum(1, keepdim=True), (LONG,), set()),
    rows.NO_ROWS: (lambda x: (x.exp(), x.exp().sum()), (X,), set()),
    rows.OPERAND: (lambda x, y: x.sum(1, keepdim=True) @ y[:1], (X, Y), set()),
    rows.NO_EPILOGUE: (lambda x, y: (x @ y.T).sum(1), (X, Y), set()),
    rows.CIRCLE: (lambda x: x.sum(1) + x.sum(1).argsort(), (X,), set()),
    fuse.SWITCHED_OFF: (lambda x: x.amax(1) - x.amin(1), (X,), {SIBLINGS}),
}


@pytest.mark.parametrize("reason", REASONS)
def test_a_program_for_each_reason(reason: str) -> None:
    function, args, without = REASONS[reason]
    graph = mt.jit(function).ledger(*args).graph
    found = ledger_of(graph, host(), {PHASES, *without})
    assert reason in {edge.reason for edge in found.edges}, str(found)


def test_an_operand_that_no_loop_reads_has_a_reason() -> None:
    """The gradient's product without one of its elements has no factor left, for a single element."""
    x = mt.tensor([[4.0]]).requires_grad_()
    assert all(edge.reason for edge in ledger(mt.prod, x).edges)


def places(index: Index, ranges: dict[Variable, Any]) -> Any:
    """The values of an index over some loops."""
    return eval(str(index), {}, {each.name: values for each, values in ranges.items()})


def accesses(nest: Nest, number: int, written: bool) -> Iterator[tuple[Any, Any]]:
    """The rows of a nest, and the elements of a buffer that each writes or reads; a guarded read has none."""
    for loop, statement in nest.statements:
        if written:
            indices = [statement.index] if isinstance(statement, Write) and statement.buffer == number else []
        else:
            loads = [each for each in statement.value.all_parts if isinstance(each, Load) and each.buffer == number]
            indices = [each.index if each.inside == ALWAYS else None for each in loads]
        for index in indices:
            if index is None or index.is_data:
                yield None, None
                continue
            axes = (*nest.rows, *loop.columns)
            grid = np.indices([each.extent for each in axes]) if axes else np.zeros((0,))
            ranges = dict(zip(axes, grid, strict=True))
            shape = grid.shape[1:]
            row = np.zeros(shape, int)
            for each in nest.rows:
                row = row * each.extent + ranges[each]
            yield row.ravel(), np.broadcast_to(places(index, ranges), shape).ravel()


def readers(ledger: Ledger, edge: Edge) -> list[Kernel]:
    return [
        each
        for each in ledger.kernels
        if edge.producer in each.reads and any(edge.consumer in nodes for nodes in each.phases)
    ]


def run_over_the_same_rows(ledger: Ledger, edge: Edge) -> bool:
    """Whether each of several rows that read a value reads elements of the same row of the kernel that writes it."""
    (writer,) = [each for each in ledger.kernels if edge.producer in each.writes]
    return all(_agree(writer, reader, edge.producer) for reader in readers(ledger, edge))


def _agree(writer: Kernel, reader: Kernel, node: Node) -> bool:
    if not (writer.loops and reader.loops) or {len(writer.loops.nests), len(reader.loops.nests)} != {1}:
        return False
    one, other = writer.loops.nests[0], reader.loops.nests[0]
    heights = [int(np.prod([each.extent for each in nest.rows])) for nest in (one, other)]
    row_of = np.full(max(node.spec.size, 1), -1)
    for row, element in accesses(one, writer.buffers.index(node), True):
        row_of[element] = row
    for row, element in accesses(other, reader.buffers.index(node), False):
        if row is None or (row_of[element] != row).any():
            return False
    return heights[0] == heights[1] > 1


def follow_at_once(ledger: Ledger, edge: Edge) -> bool:
    """Whether no kernel needs the one that writes a value, and is needed by one that reads it."""
    (writer,) = [each for each in ledger.kernels if edge.producer in each.writes]
    after, between = set(writer.writes), set[Node]()
    for kernel in ledger.kernels:
        if kernel in readers(ledger, edge) and between & set(kernel.reads):
            return False
        if kernel is not writer and after & set(kernel.reads):
            after |= set(kernel.writes)
            between |= set(kernel.writes)
    return True


def false_reasons(graph: Graph) -> list[Edge]:
    found = ledger_of(lowered(remove_dead_code(graph)), host(), {PHASES, SIDE_BY_SIDE})
    assert all(edge.reason for edge in found.edges)
    untrue = {rows.OTHER_ROWS: run_over_the_same_rows, rows.CIRCLE: follow_at_once}
    return [each for each in found.edges if each.reason in untrue and untrue[each.reason](found, each)]


@settings(max_examples=150, deadline=None)
@given(graph=row_programs())
def test_rows_that_are_said_to_differ_do(graph: Graph) -> None:
    assert not false_reasons(graph), str(graph)


@settings(max_examples=60, deadline=None)
@given(graph=graphs())
def test_rows_of_any_program_that_are_said_to_differ_do(graph: Graph) -> None:
    assert not false_reasons(graph), str(graph)


def test_rows_of_public_functions_that_are_said_to_differ_do() -> None:
    for name, (function, args) in ONE_KERNEL.items():
        assert not false_reasons(mt.jit(function).ledger(*args).graph), name


def test_a_false_reason_is_found(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fuse, "obstacle", lambda *_: rows.OTHER_ROWS)
    (edge,) = false_reasons(mt.jit(ONE_KERNEL["range"][0]).ledger(X).graph)
    assert edge.producer.primitive.name == "reduce_max"
