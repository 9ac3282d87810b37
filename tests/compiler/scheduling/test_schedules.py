"""Schedules: every rewrite keeps the numbers or is refused with its law, and every step of a kernel runs."""

from __future__ import annotations

import inspect
import itertools
import re
from collections.abc import Callable
from pathlib import Path
from random import Random
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F
from minitorch import primitives as P
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.kernels.own import own_schedule
from minitorch.compiler.kernels.steps import Measured
from minitorch.compiler.loop_ir.expressions import ALWAYS, Apply, Choose, Load, Number
from minitorch.compiler.loop_ir.index import Index, Variable, variable
from minitorch.compiler.loop_ir.loops import Buffer
from minitorch.compiler.loop_ir.source import compiled
from minitorch.compiler.loop_ir.tree import (
    Accumulate,
    Allocate,
    For,
    If,
    Local,
    Place,
    Procedure,
    Read,
    Store,
    loops,
    procedure,
    statements,
)
from minitorch.compiler.scheduling import rewrites as R
from minitorch.compiler.scheduling.analysis import dependences
from minitorch.compiler.scheduling.rewrite import NEW
from minitorch.dtypes import int64
from minitorch.errors import ScheduleError
from minitorch_profiler.machines import Machine
from tests.compiler.scheduling.procedures import arguments, random_procedure, random_rewrite, run
from tests.support.graphs import assert_close

Array = np.ndarray[Any, Any]


def kernel_of(function: Callable[..., Any], *tensors: mt.Tensor) -> Kernel:
    (kernel,) = mt.jit(function).ledger(*tensors).kernels
    return kernel


def definition(function: Callable[..., Any], *tensors: mt.Tensor) -> Procedure:
    kernel = kernel_of(function, *tensors)
    assert kernel.loops is not None
    return procedure(kernel.loops.nests[0], kernel.loops.buffers)


def product() -> Procedure:
    return definition(lambda a, b: a @ b, mt.ones(6, 5), mt.ones(5, 9))


def sums() -> Procedure:
    """A product of integers."""
    numbers = mt.ones(6, 5, dtype=mt.int32), mt.ones(5, 9, dtype=mt.int32)
    return definition(lambda a, b: P.dot(a, b, dtype=mt.int32), *numbers)


# --- laws -------------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("seed", range(150))
def test_a_rewrite_keeps_the_numbers_or_is_refused(seed: int) -> None:
    """Of random procedures: integers, so sums are exact; parallel loops and lanes run in both directions."""
    random = Random(seed)
    made = random_procedure(random)
    given = arguments(made, seed)
    expected = run(made, given)
    for _ in range(8):
        rewrite = random_rewrite(random, made)
        try:
            made = rewrite(made)
        except ScheduleError as error:
            assert "why:" in str(error)
            continue
        for order in ("iter", "reversed"):
            for found, wanted in zip(run(made, given, order), expected, strict=True):
                assert np.array_equal(found, wanted), rewrite


def guards(random: Random, variables: list[Variable]) -> list[dependences.Bound]:
    """Conditions on sums of loop variables, each of which holds somewhere."""
    found = []
    for _ in range(random.choice((0, 0, 1, 2))):
        index = Index(())
        for each in variables:
            index = index + variable(each.name, each.extent) * random.choice((0, 1, 1, 2, 4))
        low, high = index.bounds
        start = random.randint(low, high)
        found.append((start, index, random.randint(start + 1, high + 1)))
    return found


@pytest.mark.parametrize("seed", range(400))
def test_dependences_that_are_not_found_are_not_there(seed: int) -> None:
    """What the analysis calls independent never meets, as trying all iterations shows."""
    random = Random(seed)
    variables = [Variable(name, random.choice((2, 3, 4))) for name in "ijk"]

    def index() -> Index:
        found, whole = Index((), random.choice((0, 0, 1))), Index()
        for each in variables:
            found = found + variable(each.name, each.extent) * random.choice((0, 1, 1, 2, 3, 4, 8, 12))
            whole = whole + variable(each.name, each.extent) * random.choice((0, 1, 2, 4, 16))
        divisor, step = random.choice((2, 3, 4)), random.choice((1, 2, 4))
        if random.random() < 0.5:
            return found
        return (whole // divisor) * step * random.choice((1, divisor, 8)) + whole % divisor * step

    apart, inner = variables[:1], frozenset(variables[1:2])  # the third is the same for both
    first, second = index(), index() if random.random() < 0.5 else None
    second = second or first
    common = ((0, first, random.randint(1, first.bounds[1] + 1)),) if random.random() < 0.3 else ()
    a, b = (
        dependences.Access(0, each, True, None, inner, (*common, *guards(random, variables)), 0)
        for each in (first, second + random.choice((0, 0, 1, 5, 30)))
    )
    if dependences.may_meet(a, b, frozenset(apart)):
        return

    def places(access: dependences.Access) -> list[tuple[tuple[int, ...], int]]:
        found = []
        for values in itertools.product(*(range(each.extent) for each in variables)):
            at = {each: Index((), value) for each, value in zip(variables, values, strict=True)}
            if all(low <= bound.substitute(at).constant < high for low, bound, high in access.bounds):
                found.append((values, access.index.substitute(at).constant))
        return found

    for (i, place), (j, other) in itertools.product(places(a), places(b)):
        assert not (i[2] == j[2] and i[0] != j[0] and place == other)


ROW, COLUMN, BUFFERS = Variable("i", 4), Variable("j", 4), (Buffer((64,), int64, False), Buffer((64,), int64, True))


def by_hand(index: Index, read: Index) -> Procedure:
    """Two loops around ``out[index] = out[read] + x[0]``."""
    value = Apply(int64, "add", (Load(int64, 1, read), Load(int64, 0, Index())))
    return Procedure(BUFFERS, (For(ROW, (For(COLUMN, (Store(1, index, value),)),)),))


def by_way(read: Index) -> Procedure:
    """Two loops around ``a = out[read]; out[4 * i + j] = a``."""
    local = Local("a", 1, int64)
    body = (
        Allocate(local),
        Store(local, Index(), Load(int64, 1, read)),
        Store(1, i * 4 + j, Read(int64, local)),
    )
    return Procedure(BUFFERS, (For(ROW, (For(COLUMN, body),)),))


def in_copies(last: int, is_stored: bool = True) -> Procedure:
    """Two copies of 538 elements, in blocks of 64; the last vector of the last block has as many elements as `last`.

    With `is_stored`, the guard of that vector is one of its stores, else of the value that they store.
    """
    over = Variable("b", 9), Variable("v", 8), Variable("l", 8)
    block, vector, lane = (variable(each.name, each.extent) for each in over)
    zero, few = Number(int64, 0, "i64 0"), ALWAYS.and_(0, lane, last)
    body = tuple(Store(1, block * 64 + vector * 8 + lane + start, zero) for start in (0, 538))
    value = zero if is_stored else Choose(int64, few, Number(int64, 1, "i64 1"), zero)
    rest: tuple[Any, ...] = tuple(Store(1, block * 64 + lane + (24 + start), value) for start in (0, 538))
    whole = If(ALWAYS.and_(0, block * 8 + vector, 67), (For(over[2], body),))
    tail = If(ALWAYS.and_(8, block, 9), (For(over[2], (If(few, rest),) if is_stored else rest),))
    return Procedure((BUFFERS[0], Buffer((1088,), int64, True)), (For(over[0], (For(over[1], (whole,)), tail)),))


def test_guards_are_constraints_of_the_iterations() -> None:
    """The last element of the first copy and the first one of the second are written in different blocks."""
    made = in_copies(2)
    shared = R.parallelise("b")(made)
    given = [np.ones(64, np.int64), np.ones(1088, np.int64)]
    for order in ("iter", "reversed"):
        assert all(map(np.array_equal, run(shared, given, order), run(made, given)))


i, j = variable("i", 4), variable("j", 4)
LAST, NEAR = Local("a", 1, int64), Local("a", 1, int64, Place.REGISTERS)
KEPT = Store(1, j, Read(int64, LAST))

# A rewrite, what it is tried on, and words of the law that refuses it.
REFUSED: dict[str, tuple[R.Rewrite, Callable[[], Procedure], str]] = {
    "split by nothing": (R.split("i0", 0, "a", "b"), product, "at least one iteration"),
    "split into a name that is taken": (R.split("i0", 2, "i1", "b"), product, "nothing else has"),
    "split into a name of an argument": (R.split("i0", 2, "x0", "b"), product, "nothing else has"),
    "split of no loop": (R.split("q", 2, "a", "b"), product, "the loops are i0, i1, j0"),
    "fuse around a statement": (R.fuse("i", "i1", "j0"), product, "nothing stands between"),
    "fuse around another loop": (
        R.fuse("i", "o", "i1"),
        lambda: R.split("i0", 2, "o", "r")(product()),
        "nothing between them",
    ),
    "a sum that starts anew, and is read meanwhile": (
        R.in_registers("a", "j", "tile", anew=True),
        lambda: Procedure(
            BUFFERS,
            (Allocate(LAST), For(COLUMN, (Accumulate(LAST, Index(), "reduce_sum", Load(int64, 0, j)), KEPT))),
        ),
        "nothing else is done to the array",
    ),
    "outline of a loop that reads registers": (
        R.outline(1),
        lambda: Procedure(BUFFERS, (Allocate(NEAR), For(COLUMN, (Store(1, j, Read(int64, NEAR)),)))),
        "registers of its own",
    ),
    "reorder around a statement": (R.reorder("i1", "j0"), product, "nothing stands between"),
    "prepack of no array": (R.prepack("right"), product, "the arrays are"),
    "prepack of what changes": (R.prepack("right"), lambda: R.pack(1, "right", "", "i1", "j0")(product()), "constants"),
    "reorder of a recurrence": (R.reorder("j", "i"), lambda: by_hand(i * 4 + j, i * 4 + j + 3), "each other's results"),
    "reorder of stores to one element": (R.reorder("j", "i"), lambda: by_hand(i + j, i * 4 + j + 20), "each other's"),
    "vectorise a recurrence": (R.vectorise("j"), lambda: by_hand(j + 1, j), "each other's results"),
    "vectorise loops": (R.vectorise("i1"), product, "one statement at a time"),
    "vectorise five lanes": (R.vectorise("j0"), product, "lanes"),
    "parallelise a sum": (R.parallelise("j0"), product, "each other's results"),
    "parallelise a tail of one element more": (R.parallelise("b"), lambda: in_copies(3), "each other's results"),
    "parallelise a tail of guarded values": (
        R.parallelise("b"),
        lambda: in_copies(2, is_stored=False),
        "each other's results",
    ),
    "parallelise an inner loop": (R.parallelise("i1"), product, "outermost"),
    "unroll too much": (R.unroll("i0"), lambda: definition(lambda x: x * 2, mt.ones(10_000)), "copies"),
    "distribute what lives for one iteration": (R.distribute("i0", "i1"), product, "outlive"),
    "lift to more than a stack": (
        R.lift("total0", "i0", "i1"),
        lambda: definition(lambda a, b: a @ b, mt.ones(1200, 3), mt.ones(3, 1200)),
        "of the stack",
    ),
    "jam of a value and its use in an earlier iteration": (
        R.jam("j"),
        lambda: Procedure(
            BUFFERS,
            (For(COLUMN, (Store(1, j, Load(int64, 0, j)),)), For(COLUMN, (Store(1, j + 8, Load(int64, 1, j + 1)),))),
        ),
        "wait for one of the second",
    ),
    "in_registers of another element each time": (
        R.in_registers("row0", "j0", "tile"),
        lambda: definition(lambda x: x.softmax(1), mt.ones(3, 8)),
        "same from iteration to iteration",
    ),
    "pack nothing": (R.pack(2, "copy", "j0"), product, "a step of a schedule changes something"),
    "pack of a sum that is not there": (
        R.pack(1, "copy", "i0", "j0", "i1", of="total9"),
        product,
        "a step of a schedule changes something",
    ),
    "pack without a loop": (R.pack(1, "copy", "i0", "j0"), product, "all values of the loops"),
    "place in registers that no constant names": (
        R.place("registers", "row0"),
        lambda: definition(lambda x: x.softmax(1), mt.ones(3, 8)),
        "known by constant numbers",
    ),
    "a guard of some iterations": (
        R.unswitch("lane"),
        lambda: R.split("i1", 4, "o", "lane")(product()),
        "holds in all of its iterations, or in none",
    ),
    "online of a maximum that is multiplied": (
        R.online("j0", "total0"),
        lambda: definition(lambda x: (x * x.amax(1, keepdim=True)).exp().sum(1), mt.ones(3, 8)),
        r"exp\(x - a\)",
    ),
    "online of a sum": (
        R.online("j0", "total1"),
        lambda: definition(lambda x: x.logsumexp(1), mt.ones(3, 8)),
        "m is a maximum",
    ),
    "online around no maximum": (R.online("i1", "total0"), product, "m is a maximum"),
    "stage what is stored to meanwhile": (
        R.stage(1, "tile", "i", "j", "j"),
        lambda: by_hand(i * 4 + j, i * 4 + j + 3),
        "nothing stores to what is copied|nothing else reads or stores",
    ),
    "stage nothing": (R.stage(1, "tile", "i", "j", "j"), lambda: by_hand(i + j * 4, i + j * 4), "the loops are i, j"),
    "specialise what has no guard": (R.specialise("i0"), product, "the loops are i0, i1, j0"),
    "hoist around a statement": (R.hoist("i1", "j0"), product, "nothing stands between"),
    "hoist a load that a store changes": (R.hoist("j"), lambda: by_way(i * 4), "nothing in the loops stores"),
    "hoist what is not the same": (R.hoist("j"), lambda: by_way(j), "a step of a schedule changes something"),
    "reuse something else": (
        R.reuse("total1", "total0"),
        lambda: definition(lambda x: x.softmax(1), mt.ones(3, 8)),
        "differ in names alone",
    ),
    "factor out what changes": (R.factor_out("total0", "j0"), product, "c is the same in all iterations"),
    "factor out of a maximum": (
        R.factor_out("total0", "j0"),
        lambda: definition(lambda x: x.amax(1), mt.ones(3, 8)),
        "beginning with 0",
    ),
    "prefetch the same in every iteration": (R.prefetch(1, "i0", 3, "line"), product, "the loops are i0, i1, j0"),
    "stream what is read": (
        R.stream(1),
        lambda: by_hand(i * 4 + j, i * 4 + j + 20),
        "stores each element once, and does not read it",
    ),
    "align a loop with gaps": (
        R.align("i", 1, 4, "v", "l"),
        lambda: by_hand(i * 4 + j, i * 4 + j + 20),
        "stores to neighbours",
    ),
    "gather what waits for a total": (
        R.gather("j0", "total0", "total1"),
        lambda: definition(lambda x: x.logsumexp(1), mt.ones(3, 8)),
        "to wait for one of the second",
    ),
    "gather one loop": (R.gather("j0", "total0"), product, "a step of a schedule changes something"),
    "overlay what is needed later": (
        R.overlay("total1", "total0"),
        lambda: definition(lambda x: x.softmax(1), mt.ones(3, 8)),
        "nothing reads what is stored over",
    ),
    "skip in no loop": (R.skip("j0", "q"), product, "the loops are i0, i1, j0"),
    "pack numbers that need not fit": (R.pack(0, "left", "", "i0", "j0", dtype="int8"), sums, "holds every value"),
    "pack floats as integers": (R.pack(0, "left", "", "i0", "j0", dtype="int8"), product, "holds every value"),
    "pad a loop around others": (R.pad_sum("i1", 4), sums, "a sum of integers and nothing else"),
    "pad a sum of floats": (R.pad_sum("j0", 4), product, "a sum of integers and nothing else"),
    "pad a whole number": (R.pad_sum("j0", 5), sums, "iterations to be added"),
    "group terms of floats": (R.group("j0"), product, "a sum of integers into one element"),
    "group stores": (R.group("i1"), product, "a sum of integers into one element"),
    "regroup what is not nested": (R.regroup("q", 2, ("i0", "i1"), ("i1", "i0")), product, "perfectly nested"),
    "regroup parts of vectors": (
        R.regroup("q", 4, ("i0", "i1"), ("i1", "i0")),
        lambda: definition(lambda x: x.T.contiguous(), mt.ones(3, 5)),
        "some whole vectors",
    ),
    "regroup other loops": (R.regroup("q", 2, ("i0",), ("i1",)), product, "elements of the same loops"),
    "no such array": (R.lift("total7", "i1"), product, "the arrays are total0"),
}


@pytest.mark.parametrize("name", REFUSED)
def test_a_wrong_step_is_refused_with_its_law(name: str) -> None:
    rewrite, make, law = REFUSED[name]
    with pytest.raises(ScheduleError, match=f"(?s:MT603.*{law})"):
        rewrite(make())


@pytest.mark.parametrize(
    "rewrite",
    [
        R.split("i0", 4, "o", "r", "a b"),
        R.split_reduction("total0", "j0", "s = 1"),
        R.partition("i0", "i1", "):"),
        R.fuse("f()", "i0", "i1"),
    ],
)
def test_a_name_is_no_program(rewrite: R.Rewrite) -> None:
    """The printed text is run, and a schedule may be somebody else's."""
    with pytest.raises(ScheduleError, match="a new name is one that Python takes"):
        rewrite(product())


def test_every_rewrite_is_tried() -> None:
    """Each stands in the table above, or among those that random procedures try; or in `test_row_schedules`."""
    tried = {rewrite.name for rewrite, _, _ in REFUSED.values()}
    random = Random(0)
    tried |= {random_rewrite(random, product()).name for _ in range(500)}
    made = {name: value for name in dir(R) if getattr(value := getattr(R, name), "makes_rewrites", False)}
    rewrites = {name for name, value in made.items() if not value.__module__.endswith("vectors")}
    assert rewrites == tried


MAKERS = {name: value for name in dir(R) if getattr(value := getattr(R, name), "makes_rewrites", False)}


def naming(make: Callable[..., R.Rewrite], wrong: str) -> R.Rewrite:
    """A rewrite with a name that nothing has for one of its parameters, and names of loops for the others."""
    values: list[Any] = []
    named: dict[str, Any] = {}
    for name, parameter in inspect.signature(make).parameters.items():
        text = str(parameter.annotation)
        value: Any = 2 if text == "int" else "zz" if name == wrong else "i0"
        value = (value,) if "tuple" in text else value
        if parameter.kind is parameter.KEYWORD_ONLY or parameter.default is not parameter.empty:
            named |= {name: value} if name == wrong else {}
        else:
            values.append(value)
    return make(*values, **named)


NAMING = [
    (name, parameter.name)
    for name, make in sorted(MAKERS.items())
    for parameter in inspect.signature(make).parameters.values()
    if "str" in str(parameter.annotation) and parameter.name not in NEW
]


@pytest.mark.parametrize(("name", "parameter"), NAMING)
def test_a_name_that_nothing_has_is_refused(name: str, parameter: str) -> None:
    kernel = kernel_of(lambda a, b: a @ b, mt.ones(6, 5), mt.ones(5, 9))
    with pytest.raises(ScheduleError, match=r"(?s:MT603.*there is no .*\bzz\b)"):
        own_schedule(kernel, (naming(MAKERS[name], parameter),))


def test_a_name_of_the_engines_schedule_is_not_one_of_mine() -> None:
    kernel = kernel_of(lambda a, b: a @ b, mt.ones(96, 64), mt.ones(64, 128))
    assert "'l'" in repr(kernel.schedule) and own_schedule(kernel, tuple(kernel.schedule))
    with pytest.raises(ScheduleError, match=r"(?s:MT603.*there is no l\b)"):
        own_schedule(kernel, (R.vectorise("l"),))


def test_each_parameter_of_a_new_name_is_one() -> None:
    assert {*NEW} <= {name for make in MAKERS.values() for name in inspect.signature(make).parameters}


def test_elements_beyond_a_guard_are_not_read() -> None:
    """`overcompute` drops guards of rows and columns, and keeps those that say which terms a sum has."""
    steps = [R.split("i0", 4, "o", "r"), R.split("j0", 4, "ko", "k"), R.reorder("o", "r", "i1")]
    made = product()
    for step in [*steps, R.lift("total0", "r", "i1"), R.distribute("r", "i1"), R.overcompute("total0")]:
        made = step(made)
    guarded = [each for each in statements(made.body) if isinstance(each, If)]
    sums = [each for guard in guarded for each in statements(guard.body) if isinstance(each, Accumulate)]
    stores = [each for guard in guarded for each in statements(guard.body) if isinstance(each, Store)]
    assert sums and all(isinstance(each.array, int) for each in stores)
    of_sums = [bound for guard in guarded if sums[0] in guard.body for bound in guard.inside.bounds]
    assert of_sums and all(high == 5 for _, _, high in of_sums)


# --- printing ---------------------------------------------------------------------------------------------------------


def test_an_array_of_one_element_is_a_name() -> None:
    text = kernel_of(lambda a, b: a @ b, mt.ones(6, 5), mt.ones(5, 9)).source
    assert "total0 = np.float32(0)" in text
    assert "total0 = total0 + (x0[5 * i0 + j0] * x1[9 * j0 + i1])" in text


def test_an_expression_of_any_depth_is_printed() -> None:
    def deep(x: mt.Tensor) -> mt.Tensor:
        for _ in range(300):
            x = x.sin() + 1
        return F.pad(x, (1, 1))

    x = mt.randn(5)
    assert_close(mt.jit(deep, backend="loops")(x).numpy(), deep(x).numpy(), "deep")


# --- steps ------------------------------------------------------------------------------------------------------------

KERNELS: dict[str, tuple[Callable[..., Any], list[tuple[int, ...]]]] = {
    "matmul": (lambda a, b: a @ b, [(13, 37), (37, 50)]),
    "matmul and epilogue": (lambda a, b: F.gelu(a @ b), [(8, 16), (16, 64)]),
    "matmul, turned": (lambda a, b: a @ b.mT, [(13, 37), (50, 37)]),
    "matmul of gathered rows": (lambda a, b: a[mt.arange(13) * 7 % 20] @ b, [(20, 37), (37, 50)]),
    "strided convolution": (lambda w, x: F.conv2d(x, w, stride=2, padding=1), [(5, 3, 3, 3), (3, 3, 17, 17)]),
    "softmax": (lambda x: x.softmax(1), [(3, 70)]),
    "transpose": (lambda x: x.T.contiguous(), [(33, 20)]),
    "transpose and sum": (lambda x, y: x.T + y, [(160, 72), (72, 160)]),
    "softmax of short rows": (lambda x: x.softmax(1), [(133, 10)]),
    "attention": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [(1, 2, 9, 8)] * 3),
    "causal attention in blocks": (
        lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True),
        [(5, 2), (68, 2), (68, 2)],
    ),
    "attention in blocks": (lambda q, k, v: F.scaled_dot_product_attention(q, k, v), [(5, 2), (68, 2), (68, 2)]),
    "gelu": (F.gelu, [(100,)]),
}


@pytest.mark.sweep(2)
@pytest.mark.parametrize("name", KERNELS)
def test_every_step_computes_the_eager_result(name: str) -> None:
    """Its machine code does, and so does its Python, in the order of the machine code."""
    function, shapes = KERNELS[name]
    tensors = [mt.randn(*shape) for shape in shapes]
    expected = function(*tensors).numpy()
    kernel = kernel_of(function, *tensors)
    assert kernel.schedule or name == "attention"
    for step in kernel.steps:
        assert_close(step(*tensors).numpy(), expected, step)
        out, given = np.zeros(expected.size, np.float32), iter(tensors)
        assert kernel.loops is not None
        buffers = [out if each.written else next(given).numpy().reshape(-1) for each in kernel.loops.buffers]
        compiled(step.source)(*buffers)
        assert_close(out.reshape(expected.shape), expected, step)


@pytest.mark.parametrize("rows", [3, 30])
def test_every_step_of_a_gather_computes_the_eager_result(rows: int) -> None:
    """Rows are asked for some iterations ahead, as far as there are so many."""
    places, table = mt.randint(0, 50, (rows,)), mt.randn(50, 40)
    expected = table[places].amax(1).numpy()
    kernel = kernel_of(lambda places, table: table[places].amax(1), places, table)
    assert ("prefetch" in str(kernel.schedule)) == ("# prefetch" in kernel.steps[-1].source) == (rows > 3)
    for step in kernel.steps:
        assert np.array_equal(step(places, table).numpy(), expected), step
        out = np.zeros(rows, np.float32)
        compiled(step.source)(places.numpy(), table.numpy().reshape(-1), out)
        assert np.array_equal(out, expected), step


def test_steps_are_a_table_of_what_each_rewrite_bought() -> None:
    kernel = kernel_of(lambda a, b: a @ b, mt.ones(8, 16), mt.ones(16, 64))
    measured = kernel.steps.measure(seconds=0)
    assert "of peak" not in str(measured) and measured.peak is None
    assert len(measured.rows) == len(kernel.steps) == len(kernel.schedule) + 1
    assert [step.rewrite for step in kernel.steps][1:] == list(kernel.schedule)
    assert str(measured).count("\n") == len(kernel.steps)
    assert measured._repr_html_().count("<tr>") == len(kernel.steps) + 1
    widths = [len(each) for each in re.findall("█+", measured._repr_html_())]
    assert (
        len(widths) == len(kernel.steps)
        and max(widths) == widths[measured.rates().index(max(measured.rates()))]
        and min(widths) > 0
    )
    assert all(rate > 0 for rate in measured.rates())
    one_number = kernel_of(lambda x, n: x * n, mt.ones(4), mt.tensor(2.0)).steps
    assert len(one_number.measure(seconds=0).rows) == len(one_number)
    machine = Machine("one", 32, 1, (1, 1, 1), bandwidth=1e9, flops={"float32": 2e9})
    beside = Measured(measured.rows, machine)
    assert beside.peak == (2e9 if beside.unit == "FLOP/s" else 1e9)
    assert str(beside).count("%") == len(kernel.steps)


def test_the_table_of_steps_fits_on_a_page() -> None:
    q = mt.ones(2, 64, 16)
    kernel = kernel_of(lambda q: F.scaled_dot_product_attention(q, q, q, is_causal=True), q)
    table = str(Measured(tuple((step, 1e-3) for step in kernel.steps)))
    assert any(len(repr(rewrite)) > 100 for rewrite in kernel.schedule)
    assert max(map(len, table.splitlines())) < 120
    assert all(word in table for rewrite in kernel.schedule for word in repr(rewrite).split())


def test_the_inner_loop_of_a_step_is_that_of_the_microkernel() -> None:
    a, b = mt.ones(96, 64), mt.ones(64, 128)
    ledger = mt.jit(lambda a, b: a @ b).ledger(a, b)
    (wide,) = ledger.for_target("avx2").kernels
    definition, last = wide.steps[0].inner_loop, wide.steps[-1].inner_loop
    assert definition.count("vfmadd") == 1 and last.count("vfmadd") == 12 and "rsp" not in last
    assert all(loop.splitlines()[-1].startswith("j") for loop in (definition, last))
    (arm,) = ledger.for_target("neon").kernels
    assert arm.steps[-1].inner_loop.count("fmla") > 1 and ".4s" in arm.steps[-1].inner_loop
    (straight,) = mt.jit(lambda x: x + 1).ledger(mt.ones(1)).kernels
    assert all("nest0" not in step.inner_loop for step in straight.steps)


def test_a_schedule_of_ones_own_is_printed_for_other_machines() -> None:
    f, x = mt.jit(lambda x: x * 2), mt.ones(64)
    own = [R.split("i0", 4, "i", "lane"), R.vectorise("lane")]
    ledger = f.with_schedule(f.ledger(x).kernels[0], own).ledger(x)
    for name in ("sse2", "avx2", "neon"):
        (kernel,) = ledger.for_target(name).kernels
        assert list(kernel.schedule) == own and kernel.target.name == name


def test_a_step_counts_and_is_profiled() -> None:
    a, b = mt.ones(8, 16), mt.ones(16, 64)
    step = kernel_of(lambda a, b: a @ b, a, b).steps[-1]
    assert step.flops == 2 * 8 * 16 * 64 and step.bytes == 4 * (8 * 16 + 16 * 64 + 8 * 64)
    assert "define" in step.llvm and step.assembly
    with mt.profile() as profile:
        step(a, b)
    assert profile.calls == 1 and profile.flops == step.flops


@pytest.mark.parametrize("wrong", [(), (mt.ones(3),), (mt.ones(8, 16), mt.ones(8, 16))])
def test_a_step_refuses_other_arrays(wrong: tuple[mt.Tensor, ...]) -> None:
    step = kernel_of(lambda a, b: a @ b, mt.ones(8, 16), mt.ones(16, 64)).steps[0]
    with pytest.raises((TypeError, ValueError), match="reads"):
        step(*wrong)


# --- schedules of one's own -------------------------------------------------------------------------------------------


@pytest.mark.parametrize("backend", ["llvm", "loops"])
def test_a_schedule_of_the_users(backend: str) -> None:
    a, b = mt.randn(12, 16), mt.randn(16, 32)
    f = mt.jit(lambda a, b: (a @ b).relu(), backend=backend)
    (kernel,) = f.ledger(a, b).kernels
    mine = [R.split("i1", 8, "o", "lane"), R.lift("total0", "lane"), R.distribute("lane"), R.reorder("j0", "lane")]
    mine += [R.vectorise("lane"), R.parallelise("i0", "o")]
    g = f.with_schedule(kernel, mine)
    assert_close(g(a, b).numpy(), (a @ b).relu().numpy(), mine)
    (own,) = g.ledger(a, b).kernels
    assert list(own.schedule) == mine and own.units == 12 * 4
    assert list(f.ledger(a, b).kernels[0].schedule) == list(kernel.schedule) != mine
    assert_close(own.steps[-1](a, b).numpy(), g(a, b).numpy(), mine)


def test_a_wrong_schedule_says_which_step_and_where() -> None:
    a, b = mt.randn(12, 16), mt.randn(16, 32)
    f = mt.jit(lambda a, b: a @ b)
    (kernel,) = f.ledger(a, b).kernels
    with pytest.raises(ScheduleError, match=r"step 2 of 2, parallelise\('k'\), for k0_dot: test_schedules.py:\d+"):
        f.with_schedule(kernel, [R.split("j0", 4, "k", "r"), R.parallelise("k")])
    with pytest.raises(ScheduleError, match="there is no q"):
        f.with_schedule(kernel, [R.unroll("q")])


def test_an_update_in_place_is_not_overtaken_by_a_schedule() -> None:
    """With a schedule of the user's, nothing is written over what the kernel still reads."""
    x, before = mt.ones(64), mt.ones(64)

    def update(x: mt.Tensor) -> mt.Tensor:
        x.mul_(2)
        return x

    f = mt.jit(update)
    (kernel,) = f.ledger(x).kernels
    f.with_schedule(kernel, [R.split("i0", 8, "i", "lane"), R.vectorise("lane"), R.parallelise("i")])(x)
    assert np.array_equal(x.numpy(), 2 * before.numpy())


def test_the_engines_schedules_are_legal_step_by_step() -> None:
    for shapes in [((480, 512), (512, 512)), ((100, 37), (37, 70)), ((5, 300), (300, 33)), ((17, 1), (1, 16))]:
        kernel = kernel_of(lambda a, b: a @ b, *(mt.ones(*shape) for shape in shapes))
        for step in kernel.steps:
            assert all(list(loops(each.body)) for each in step.procedures)


def test_the_page_about_schedules() -> None:
    """All Python on docs/schedules.md runs, in the order of the page."""
    page = (Path(__file__).parents[3] / "docs" / "schedules.md").read_text(encoding="utf-8")
    space: dict[str, Any] = {}
    for block in re.findall(r"```python\n(.*?)```", page, re.DOTALL):
        exec(compile(block, "schedules.md", "exec"), space)
    assert len(space["mine"].steps) == 11
