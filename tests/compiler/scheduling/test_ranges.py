"""Range analysis, and products that are added up in 16 bits by its leave: they are those of integers, bit for bit."""

from __future__ import annotations

import operator
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import dtypes
from minitorch import primitives as P
from minitorch.compiler.codegen.host import executable_targets, host
from minitorch.compiler.loop_ir.expressions import Apply, Expression, Load, Number
from minitorch.compiler.loop_ir.index import NOWHERE
from minitorch.compiler.scheduling import rewrites as R
from minitorch.compiler.scheduling.analysis import ranges
from minitorch.compiler.scheduling.schedules.choice import applied
from minitorch.compiler.target import Target
from minitorch.dtypes import DType
from minitorch.passes import intervals

Array = np.ndarray[Any, Any]

# --- ranges -----------------------------------------------------------------------------------------------------------

INPUTS: dict[DType, list[float]] = {
    dtypes.float32: [np.nan, np.inf, -np.inf, 0.0, -0.0, 0.5, -1.5, 130.7, -3e38, 3e38],
    dtypes.uint8: [0, 1, 127, 255],
    dtypes.int8: [-128, -1, 0, 127],
}
OPERATIONS: dict[str, Callable[..., Any]] = {
    "maximum": np.maximum,
    "add": operator.add,
    "sub": operator.sub,
    "mul": operator.mul,
}


def random_expression(random: np.random.Generator) -> Expression:
    """Sums, products, selections and casts of two elements of each type, and of numbers."""
    made: list[Expression] = [
        Load(dtype, 2 * place + copy, NOWHERE) for place, dtype in enumerate(INPUTS) for copy in (0, 1)
    ]
    made += [Number(dtype, value, str(value)) for dtype in INPUTS for value in random.choice(INPUTS[dtype], 2)]
    for _ in range(int(random.integers(1, 9))):
        a = made[random.integers(len(made))]
        alike = [each for each in made if each.dtype is a.dtype]
        b, c = (alike[number] for number in random.integers(len(alike), size=2))
        kind = random.integers(3)
        if kind == 0:
            made.append(Apply(a.dtype, str(random.choice([*OPERATIONS])), (a, b)))
        elif kind == 1:
            compared = Apply(dtypes.bool_, str(random.choice(["less", "less_equal"])), (a, b))
            chosen = [(a, b), (b, a), (a, c), (c, b)][random.integers(4)]
            made.append(Apply(a.dtype, "where", (compared, *chosen)))
        else:
            to = [dtypes.float32, dtypes.uint8, dtypes.int8, dtypes.int32][random.integers(4)]
            rounds = a.dtype is dtypes.float32 and random.random() < 0.5
            if a.dtype is not to:
                made.append(Apply(to, "nearest" if rounds else "cast", (a,)))
    return made[-1]


def value_of(each: Expression, inputs: list[Any]) -> Any:
    """What an expression is, computed by NumPy; None where a cast has no value, as of NaN to an integer."""
    if isinstance(each, Number):
        return each.dtype.numpy.type(each.value)
    if isinstance(each, Load):
        return inputs[each.buffer]
    assert isinstance(each, Apply)
    parts = [value_of(part, inputs) for part in each.parts()]
    if any(part is None for part in parts):
        return None
    if each.primitive == "where":
        return parts[1] if parts[0] else parts[2]
    if each.primitive in ("less", "less_equal"):
        return parts[0] < parts[1] if each.primitive == "less" else parts[0] <= parts[1]
    if each.primitive in ("cast", "nearest"):
        parts = [np.rint(parts[0])] if each.primitive == "nearest" else parts
        limits = np.iinfo(each.dtype.numpy) if each.dtype.category == "int" else None
        if limits and not limits.min <= np.trunc(np.float64(parts[0])) <= limits.max:
            return None
        return each.dtype.numpy.type(parts[0])
    return OPERATIONS[each.primitive](*parts)


def outside(seeds: range) -> list[str]:
    """Random expressions that have a value outside of their range."""
    wrong = []
    for seed in seeds:
        random = np.random.default_rng(seed)
        each = random_expression(random)
        found = ranges.value_range(each)
        for _ in range(6):
            inputs = [dtype.numpy.type(random.choice(INPUTS[dtype])) for dtype in INPUTS for _ in (0, 1)]
            with np.errstate(all="ignore"):
                value = value_of(each, inputs)
            if value is None:
                continue
            if not (found.nan if value != value else found.low <= value <= found.high):
                wrong.append(f"{each}: {value} in {found}")
    return wrong


def test_no_value_is_outside_of_its_range() -> None:
    assert not outside(range(1500))


def forgets_nan(value: Apply, operation: Any, known: Any, describe: Any) -> intervals.Range:
    a, b = (known[part] for part in value.arguments)
    return intervals.Range(max(a.low, b.low), max(a.high, b.high))


def takes_the_other_side(value: Apply, operation: Any, known: Any, describe: Any) -> intervals.Range:
    _, here, elsewhere = value.arguments
    return known[here] if known[here].high < known[elsewhere].high else known[elsewhere]


def does_not_wrap(value: Apply, operation: Any, known: Any, describe: Any) -> intervals.Range:
    low, high = (known[value.arguments[0]].low, known[value.arguments[0]].high)
    return intervals.Range(max(low, -128), min(high, 127))


@pytest.mark.parametrize(
    ("name", "rule"), [("maximum", forgets_nan), ("where", takes_the_other_side), ("cast", does_not_wrap)]
)
def test_a_wrong_rule_is_caught(name: str, rule: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(intervals._RULES, name, rule)
    assert outside(range(1000))


# --- products ---------------------------------------------------------------------------------------------------------


def clamped(x: mt.Tensor, low: float, high: float, dtype: DType = dtypes.uint8) -> mt.Tensor:
    """Whole numbers from low to high; NaN is the highest."""
    above = mt.maximum(x, mt.full((), low))
    return P.cast(mt.where(above < high, above, high), dtype=dtype)


def product(high: float) -> Any:
    return lambda x, w: P.dot(clamped(x, 0, high), w, dtype=dtypes.int32)


def extreme(shape: tuple[int, ...], low: int, high: int, dtype: Any, seed: int) -> Array:
    """Random integers, half of them at the ends."""
    random = np.random.default_rng(seed)
    drawn = random.integers(low, high, shape, endpoint=True)
    return np.where(random.random(shape) < 0.5, random.choice([low, high], shape), drawn).astype(dtype)


def with_weight(weight: Array, x: mt.Tensor) -> Any:
    """The product of bytes with a constant matrix, transposed."""
    held = mt.tensor(weight)
    return mt.freeze(lambda x: P.dot(x, held.T, dtype=dtypes.int32), x)


def pairs_in(function: Any, *given: mt.Tensor, target: str = "avx2") -> int:
    (kernel,) = function.ledger(*given).for_target(target).kernels
    return kernel.assembly.count("vpmaddubsw")


TARGETS_HERE: dict[str, str | Target] = {name: name for name in executable_targets()} | {"native": host()}
SHAPES = ((6, 8, 16), (5, 21, 9), (33, 130, 36), (70, 256, 48), (90, 300, 65))


@pytest.mark.parametrize("target", TARGETS_HERE)
def test_products_of_numbers_in_a_range_are_those_of_integers(target: str) -> None:
    for seed, (m, k, n) in enumerate(SHAPES):
        for high in (127, 128, 129):
            x = extreme((m, k), -20, high + 30, np.float32, seed)
            x[0, 0] = np.nan
            w = extreme((k, n), -128, 127, np.int8, seed)
            (kernel,) = (
                mt.jit(product(high)).ledger(mt.tensor(x), mt.tensor(w)).for_target(TARGETS_HERE[target]).kernels
            )
            whole = np.where(x < high, np.maximum(x, 0), high).astype(np.int64)
            found = kernel.steps[-1](x, w).numpy()
            assert np.array_equal(found, (whole @ w.astype(np.int64)).astype(np.int32)), (m, k, n)


@pytest.mark.parametrize("target", TARGETS_HERE)
@pytest.mark.parametrize("low", [-64, -65, -128])
def test_so_are_those_of_all_bytes_with_constants_in_a_range(target: str, low: int) -> None:
    for seed, (m, k, n) in enumerate(SHAPES):
        x, w = extreme((m, k), 0, 255, np.uint8, seed), extreme((n, k), low, 63, np.int8, seed)
        frozen = with_weight(w, mt.tensor(x))
        for kernel in frozen.ledger(mt.tensor(x)).for_target(TARGETS_HERE[target]).kernels:
            found = kernel.steps[-1](x).numpy()
            assert np.array_equal(found, (x.astype(np.int64) @ w.T.astype(np.int64)).astype(np.int32)), (m, k, n)


def test_pairs_are_added_in_16_bits_where_they_fit_and_nowhere_else() -> None:
    x, w = mt.zeros(64, 128), mt.zeros(128, 48, dtype=mt.int8)
    assert pairs_in(mt.jit(product(127)), x, w) > 0
    assert pairs_in(mt.jit(product(128)), x, w) > 0, "128 * -128 * 2 is -32768, the least number of 16 bits"
    assert pairs_in(mt.jit(product(129)), x, w) == 0
    assert pairs_in(mt.jit(product(127)), x, w, target="sse2") == 0
    given = mt.zeros(64, 128, dtype=mt.uint8)
    for low, pairs in ((-64, True), (-65, False)):
        frozen = with_weight(extreme((48, 128), low, 63, np.int8, 0), given)
        assert bool(pairs_in(frozen, given)) is pairs


@pytest.mark.parametrize("target", TARGETS_HERE)
@pytest.mark.parametrize("k", [64, 784, 1024, 788])
def test_a_vector_times_rows_takes_groups_whatever_is_left_of_k(target: str, k: int) -> None:
    """784 is no multiple of the bytes of a vector: what is left is read under a mask, of whole groups."""
    x, w = extreme((1, k), 0, 255, np.uint8, 0), extreme((20, k), -64, 63, np.int8, 0)
    frozen = with_weight(w, mt.tensor(x))
    (kernel,) = frozen.ledger(mt.tensor(x)).for_target(TARGETS_HERE[target]).kernels
    found = kernel.steps[-1](x).numpy()
    assert np.array_equal(found, (x.astype(np.int64) @ w.T.astype(np.int64)).astype(np.int32))
    assert any(each.name == "group" for each in kernel.schedule)
    if target == "avx2":
        assert kernel.assembly.count("vpmaddubsw") > 0


def test_a_result_tells_the_next_kernel_its_range() -> None:
    def two(x: mt.Tensor, w: mt.Tensor, v: mt.Tensor) -> mt.Tensor:
        hidden = clamped(product(127)(x, w).to(mt.float32) * 0.01, 0, 127)
        return P.dot(hidden, v, dtype=dtypes.int32)

    x, w, v = mt.zeros(64, 128), mt.zeros(128, 48, dtype=mt.int8), mt.zeros(48, 32, dtype=mt.int8)
    kernels = mt.jit(two).ledger(x, w, v).for_target("avx2").kernels
    assert [kernel.assembly.count("vpmaddubsw") > 0 for kernel in kernels] == [True, True]


def test_a_group_whose_pairs_may_not_fit_is_refused() -> None:
    """The law refuses it, whatever schedule asks for it."""
    x, w = mt.zeros(64, 128), mt.zeros(128, 48, dtype=mt.int8)
    (kernel,) = mt.jit(product(127)).ledger(x, w).for_target("avx2").kernels
    (wider,) = mt.jit(product(129)).ledger(x, w).for_target("avx2").kernels
    assert kernel.loops is not None and wider.loops is not None
    (schedule,) = kernel.schedule.nests
    nest, buffers, _ = next(wider.loops.parts)
    with pytest.raises(mt.errors.ScheduleError, match="a sum of two products may be from -33024 to 32766"):
        applied(nest, buffers, schedule)
    place = next(number for number, each in enumerate(schedule) if each.name == "group")
    with pytest.raises(mt.errors.ScheduleError, match="a factor may not fit into uint8"):
        R.group("g", pairs="uint8").apply(applied(nest, buffers, schedule[:place]))
