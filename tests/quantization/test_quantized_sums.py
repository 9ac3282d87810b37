"""Sums and means between quantised layers: where they are found, what they compute, and the bytes between layers."""

from __future__ import annotations

from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import primitives as P
from minitorch import quantization as q
from minitorch.errors import QuantizationError
from minitorch_quantization.finding import find_operations
from minitorch_quantization.modules.operations import QuantizedOperation

nn, F = mt.nn, mt.nn.functional


class Block(nn.Module):
    """A residual block of a ResNet; the shortcut is a convolution, too, where the channels change."""

    def __init__(self, one: int, two: int) -> None:
        super().__init__()
        self.a, self.norm_a = nn.Conv2d(one, two, 3, padding=1), nn.BatchNorm2d(two)
        self.b, self.norm_b = nn.Conv2d(two, two, 3, padding=1), nn.BatchNorm2d(two)
        self.short: Any = nn.Identity() if one == two else nn.Conv2d(one, two, 1)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        y = self.norm_a(self.a(x)).relu()
        return (self.norm_b(self.b(y)) + self.short(x)).relu()


class ResNet(nn.Module):
    """A stem, three blocks, a mean over places, and a linear layer."""

    def __init__(self) -> None:
        super().__init__()
        self.stem = nn.Conv2d(3, 8, 3, padding=1)
        self.blocks = nn.Sequential(Block(8, 8), Block(8, 16), Block(16, 16))
        self.head = nn.Linear(16, 10)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.head(self.blocks(self.stem(x).relu()).mean((2, 3)))


class Transformer(nn.Module):
    """Whose residual stream a layer normalization reads in float32."""

    def __init__(self) -> None:
        super().__init__()
        self.norm, self.a, self.b = nn.LayerNorm(8), nn.Linear(8, 16), nn.Linear(16, 8)
        self.last, self.head = nn.LayerNorm(8), nn.Linear(8, 4)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        x = x + self.b(F.gelu(self.a(self.norm(x))))
        return self.head(self.last(x).softmax(-1))


class Branching(ResNet):
    """With a branch on data, which no graph has."""

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return super().forward(x if x.sum().item() > 0 else -x)


def made(kind: type[nn.Module], **options: Any) -> tuple[nn.Module, Any, mt.Tensor]:
    """A float model, the quantised one, and an input."""
    mt.manual_seed(3)
    model, x = kind().eval(), mt.randn(2, 3, 12, 12)
    return model, q.convert(q.calibrate(q.prepare(model, example=x, **options), [x])), x


def operations(model: nn.Module) -> list[str]:
    return [name for name, each in model.named_modules() if isinstance(each, QuantizedOperation)]


SUMS = [f"blocks.{at}.quantised.add_0" for at in range(3)]


def test_residual_sums_and_means_are_found_where_their_readers_quantise() -> None:
    assert operations(made(ResNet)[1]) == [*SUMS, "quantised.reduce_sum_0"]
    left = made(ResNet, leave_in_float=["blocks.2.quantised.add_0"])[1]
    assert operations(left) == SUMS[:2]  # nor the mean behind it, whose operand is then no layer's
    assert operations(made(ResNet, leave_in_float=["blocks.1"])[1]) == [SUMS[0], SUMS[2], "quantised.reduce_sum_0"]
    assert operations(made(Branching)[1]) == []
    model = Transformer().eval()
    layers = [model.a, model.b, model.head]
    assert find_operations(model, (mt.randn(2, 5, 8),), layers).operations == {}


def test_a_sum_adds_what_integers_stand_for() -> None:
    """In the block alone, beside the formula."""
    _, quantized, x = made(ResNet)
    block, given = quantized.blocks[1], quantized.stem(x).relu()
    site = block.quantised.add_0
    one = block.norm_b(block.b(block.norm_a(block.a(given)).relu()))
    pairs = zip((one, block.short(given)), site.qparams(), strict=True)
    rounded = [q.dequantize(q.quantize(value, params), params) for value, params in pairs]
    assert (block(given) == (rounded[0] + rounded[1]).relu()).all().item()
    assert not (block(given) == (one + block.short(given)).relu()).all().item()


def test_readers_of_one_value_share_its_scale() -> None:
    """So a compiled graph has it once, and knows that both round alike."""
    _, quantized, _ = made(ResNet)
    block = quantized.blocks[0]
    assert block.quantised.add_0.scale_1 is block.a.scale
    assert block.quantised.add_0.zero_point_1 is block.a.zero_point


def test_a_residual_network_moves_a_quarter_of_the_bytes_between_layers() -> None:
    """And a sum is in the kernel of a convolution before it."""
    model, quantized, x = made(ResNet)

    def moved(module: nn.Module) -> tuple[int, Any]:
        frozen = mt.freeze(module, x)
        kernels = frozen.ledger(x).kernels
        return sum(kernel.bytes_written for kernel in kernels) - frozen(x).nbytes, kernels

    floats, _ = moved(q.fuse(model, x))
    integers, kernels = moved(quantized)
    assert integers <= 0.3 * floats
    quantising, *rest = kernels
    assert quantising.kind == "K1"  # of the input
    assert sum(kernel.name.count("contract") for kernel in rest) == len(rest) == 8  # convolutions


def test_compiled_without_constants_only_bytes_lie_between_kernels() -> None:
    """Scales and zero points are inputs: zeros are padded by a selection, and the sums over weights are computed."""
    _, quantized, x = made(ResNet)
    kernels = mt.jit(quantized).ledger(x).kernels
    assert sum("contract" in each.name for each in kernels) == 8
    images = [node for each in kernels[:-1] for node in each.writes if node.spec.size > 1000]
    assert len(images) > 8 and all(node.dtype.itemsize == 1 for node in images)


@pytest.mark.parametrize("way", ["jit", "freeze", "lazy"])
def test_every_mode_computes_the_same(way: str) -> None:
    model, quantized, x = made(ResNet)
    expected = quantized(x)
    if way == "lazy":
        with mt.lazy():
            found = quantized(x).clone()
    else:
        found = (mt.jit(quantized) if way == "jit" else mt.freeze(quantized, x))(x)
    scale = model(x).abs().max().item()
    assert (found - expected).abs().max().item() <= 0.01 * scale
    assert (expected - model(x)).abs().max().item() <= 0.1 * scale


def test_training_rounds_the_operands_of_sums_and_masks_their_gradients() -> None:
    mt.manual_seed(4)
    x = mt.randn(2, 3, 8, 8)
    prepared: Any = q.prepare_qat(ResNet().eval(), example=x)
    for _ in range(2):
        prepared(x).square().sum().backward()
    site = prepared.blocks[1].quantised.add_0
    prepared.apply(q.disable_observer)
    a, b = (mt.full((1, 1, 2, 2), each, requires_grad=True) for each in (1e6, 0.0))
    sum(each.sum() for each in site(a, b)).backward()
    assert a.grad.abs().sum().item() == 0 and b.grad.abs().sum().item() == 4
    converted = q.convert(prepared)
    np.testing.assert_allclose(converted(x).detach().numpy(), prepared.eval()(x).detach().numpy(), atol=1e-4)


def test_state_goes_from_one_model_to_another() -> None:
    _, quantized, x = made(ResNet)
    other = q.convert(q.calibrate(q.prepare(ResNet().eval(), example=x), [x]))
    other.load_state_dict(quantized.state_dict())
    assert (other(x) == quantized(x)).all().item()


class Joined(nn.Module):
    """Two branches, joined along the channels, as in an Inception block."""

    def __init__(self) -> None:
        super().__init__()
        self.a, self.b, self.c = nn.Conv2d(3, 8, 3, padding=1), nn.Conv2d(3, 8, 1), nn.Conv2d(16, 4, 3, padding=1)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.c(mt.cat([self.a(x).relu(), self.b(x).relu()], 1))


def test_concatenated_branches_are_rounded_before_they_are_joined() -> None:
    _, quantized, x = made(Joined)
    frozen = mt.freeze(quantized, x)
    joined = [node for node in frozen.stages(x).graph.nodes if node.primitive is P.concatenate]
    assert [node.dtype for node in joined] == [mt.uint8]
    kernels = frozen.ledger(x).kernels
    images = sum(kernel.bytes_written for kernel in kernels if kernel.kind == "K1")  # the input of each layer
    joined_bytes = 2 * 16 * 12 * 12  # written as branches, and joined, since a filter reads each element nine times
    assert sum(kernel.bytes_written for kernel in kernels) - frozen(x).nbytes - images == 2 * joined_bytes
    np.testing.assert_allclose(frozen(x).numpy(), quantized(x).detach().numpy(), atol=1e-4)


class Noisy(nn.Module):
    """Two residual sums, and something else before them."""

    def __init__(self, before: Any) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.before = before

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        if self.before is not None and self.training:
            x = self.before(x)
        x = self.first(x).relu() + x
        return self.last(self.second(x) + x)


def test_what_only_training_does_shifts_no_operation() -> None:
    x = mt.rand(16, 8)
    dropping = q.prepare_qat(Noisy(lambda x: mt.nn.functional.dropout(x, 0.5)), example=x)
    assert dropping(x).shape == (16, 2)
    hooked = Noisy(None).eval()
    plain = q.convert(q.calibrate(q.prepare(hooked, example=x), [x]))(x)
    for prepared in [q.prepare(hooked, example=x)]:
        prepared.register_forward_pre_hook(lambda _, args: (args[0] + 0.0,))
        prepared.second.register_forward_hook(lambda *args: args[-1] + 0.0)  # type: ignore[attr-defined]
        assert np.array_equal(q.convert(q.calibrate(prepared, [x]))(x).numpy(), plain.numpy())
    noisy = q.prepare_qat(Noisy(lambda x: x + 0.1 * mt.randn(16, 8)), example=x)
    with pytest.raises(
        QuantizationError, match=r"the model \(Noisy\) carries out \d+ sums of floats in this call, and \d"
    ):
        noisy(x)
    assert noisy.eval()(x).shape == (16, 2)


class Helped(nn.Module):
    """A residual sum in a function that may be compiled."""

    def __init__(self) -> None:
        super().__init__()
        self.first, self.second, self.last = nn.Linear(8, 8), nn.Linear(8, 8), nn.Linear(8, 2)
        self.helper: Any = lambda a, b: a + b

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        x = self.first(x).relu()
        return self.last(self.helper(self.second(x), x))


def test_a_compiled_function_has_no_scales_of_the_module_that_calls_it() -> None:
    x, model = mt.rand(16, 8), Helped().eval()
    expected = q.convert(q.calibrate(q.prepare(model, example=x), [x]))(x)
    model.helper = helper = mt.jit(lambda a, b: a + b)
    quantized = q.convert(q.calibrate(q.prepare(model, example=x), [x]))
    assert np.array_equal(quantized(x).numpy(), expected.numpy())
    assert helper(mt.full((16, 8), 100.0), mt.full((16, 8), 200.0)).max().item() == 300
    assert np.array_equal(quantized(x).numpy(), expected.numpy())
