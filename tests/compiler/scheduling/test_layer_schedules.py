"""Layers of all sizes, in float32 and int8, for every target: schedules are legal, lanes full, and neighbours read."""

from __future__ import annotations

import math
from dataclasses import dataclass
from itertools import product
from random import Random
from typing import Any

import pytest

import minitorch as mt
from minitorch import nn
from minitorch.compiler.codegen.host import host
from minitorch.compiler.kernels.kernel import Kernel
from minitorch.compiler.loop_ir.expressions import Load
from minitorch.compiler.loop_ir.index import Index, Variable
from minitorch.compiler.loop_ir.tree import Accumulate, Block, For, If, Kind, Read, Store, loaded
from minitorch.compiler.target import MOST_STEP, TARGETS, Target
from minitorch.nn import functional as F
from tests.compiler.scheduling.contractions.test_int8_products import VNNI
from tests.quantization.passes.test_channels_last import converted

ALL: dict[str, Target] = TARGETS | {f"{name}, VNNI": each for name, each in VNNI.items()} | {"native": host()}
SIDES = (7, 14, 28, 56, 112, 224)
CHANNELS = (3, 8, 17, 30, 64, 100)
KINDS = ("alone", "before another", "after another", "depthwise", "depthwise before another")
TYPES = ("float32", "int8")
MOST_GATHERED = 9  # times that an element may be read by itself: once for each place in a filter, as it is packed


@dataclass(frozen=True)
class Layer:
    """A convolution of square images with its ReLU, alone or beside one of 1×1."""

    batch: int
    side: int
    channels: int
    filters: int
    size: int
    stride: int
    kind: str

    @property
    def module(self) -> nn.Module:
        depthwise = "depthwise" in self.kind
        filters = self.channels if depthwise else self.filters
        groups = self.channels if depthwise else 1
        layers: list[nn.Module] = [
            nn.Conv2d(self.channels, filters, self.size, self.stride, self.size // 2, groups=groups), nn.ReLU()
        ]  # fmt: skip
        if self.kind == "after another":
            layers = [nn.Conv2d(self.channels, self.channels, 1), nn.ReLU(), *layers]
        return nn.Sequential(*layers, *([nn.Conv2d(filters, 8, 1)] if "before another" in self.kind else [])).eval()


LAYERS = [
    Layer(batch, side, channels, filters, size, stride, kind)
    for kind, side, channels, filters, size, stride, batch in product(
        KINDS, SIDES, CHANNELS, CHANNELS, (1, 3), (1, 2), (1, 2)
    )
]


def executed(block: Block, lanes: int = 1, times: int = 1) -> tuple[int, int]:
    """How often the statements of a block compute an element, and how often they run for that."""
    elements = runs = 0
    for each in block:
        found = 0, 0
        if isinstance(each, For):
            is_vector, extent = each.kind is Kind.VECTOR, each.variable.extent
            found = executed(each.body, lanes * (extent if is_vector else 1), times * (1 if is_vector else extent))
        elif isinstance(each, If):
            found = executed(each.body, lanes, times)
        elif isinstance(each, (Store, Accumulate)):
            found = lanes * times, times
        elements, runs = elements + found[0], runs + found[1]
    return elements, runs


def lanes(kernel: Kernel) -> float:
    """The elements that a statement of a kernel computes at a time, on the average."""
    blocks = [loaded(each.procedure)[2] for each in kernel.scheduled]
    elements, runs = map(sum, zip(*map(executed, blocks), strict=True))
    return elements / runs


def gathered(block: Block, lane: Variable | None = None, times: int = 1) -> int:
    """The elements that vectors read from places that lie far apart."""
    found = 0
    for each in block:
        if isinstance(each, For):
            inner = each.variable if each.kind is Kind.VECTOR else lane
            found += gathered(each.body, inner, times * each.variable.extent)
        elif isinstance(each, If):
            found += gathered(each.body, lane, times)
        elif isinstance(each, (Store, Accumulate)) and lane is not None:
            elements = (part for part in each.value.all_parts if isinstance(part, (Load, Read)))
            found += times * sum(is_far(part.index, lane) for part in elements)
    return found


def is_far(index: Index, lane: Variable) -> bool:
    """Whether neighbouring lanes read elements more than a few apart."""
    return index.is_affine and index.depends_on(lane) and abs(index.coefficient(lane)) > MOST_STEP


def check(module: nn.Module, x: mt.Tensor, dtype: str, target: Target, case: Any) -> None:
    """The law; a refused schedule is an error here, as every warning is."""
    model = converted(module, x[..., :7, :7] if x.ndim == 4 else x) if dtype == "int8" else module
    for kernel in mt.freeze(model, x, backend="loops").ledger(x).for_target(target).kernels:
        assert kernel.loops is not None and not kernel.refused, case
        assert lanes(kernel) >= max(2, target.lanes(4) / 4), (case, kernel.name, kernel.schedule)
        far = sum(gathered(loaded(each.procedure)[2]) for each in kernel.scheduled)
        there = sum(math.prod(each.shape) for each in kernel.compiled[0].buffers)
        assert far <= MOST_GATHERED * there, (case, kernel.name, far / there)


@pytest.mark.sweep
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("dtype", TYPES)
def test_convolutions_of_all_sizes(dtype: str, target: str, sweep: bool) -> None:
    """Images of every size for every target, with other channels, filters and strides for each."""
    chance = Random(f"{dtype} {target}")
    some = [chance.choice([each for each in LAYERS if each.side == side]) for side in SIDES]
    for layer in LAYERS if sweep else some:
        x = mt.zeros(layer.batch, layer.channels, layer.side, layer.side)
        check(layer.module, x, dtype, ALL[target], layer)


@pytest.mark.sweep
@pytest.mark.parametrize("target", ALL)
@pytest.mark.parametrize("dtype", TYPES)
def test_any_number_of_rows(dtype: str, target: str, sweep: bool) -> None:
    """1 to 50 rows, some of them for each target."""
    first = sorted(ALL).index(target)
    for rows in range(1, 51) if sweep else range(1 + first, 51, len(ALL)):
        for depth, width in ((64, 96), (100, 33)):
            module = nn.Sequential(nn.Linear(depth, width), nn.ReLU()).eval()
            check(module, mt.zeros(rows, depth), dtype, ALL[target], (rows, depth, width))


@pytest.mark.parametrize("target", ALL)
def test_products_of_gathered_rows(target: str) -> None:
    """Rows of a table, looked up and multiplied: few and many of them, widths that no tile divides."""
    for shape, width in product(((1, 1), (4, 2), (7, 1), (5, 3)), (20, 36)):
        module = nn.Sequential(nn.Embedding(20, 6), nn.Linear(6, width)).eval()
        indices = mt.zeros(*shape, dtype=mt.int64)
        kernels = mt.freeze(module, indices, backend="loops").ledger(indices).for_target(ALL[target]).kernels
        assert not any(each.refused for each in kernels), (shape, width)


@pytest.mark.parametrize("dtype", [mt.float16, mt.float32])
@pytest.mark.parametrize("filters", [(2, 4, 1, 4), (2, 4, 3, 1), (2, 5, 3, 3), (2, 1, 2, 2)])
def test_no_schedule_of_a_transposed_convolution_is_refused(filters: tuple[int, ...], dtype: mt.DType) -> None:
    """What a product stores lies at quotients and remainders of its rows and columns, some behind the last of them."""
    x, w = mt.ones(2, 2, 5, 10, dtype=dtype), mt.ones(*filters, dtype=dtype)
    for stride in (2, 3):
        ledger = mt.jit(lambda x, w, stride=stride: F.conv_transpose2d(x, w, None, stride), backend="loops").ledger(
            x, w
        )
        for target in ("sse2", "avx2", "avx512"):
            assert not any(kernel.refused for kernel in ledger.for_target(target).kernels)
