"""Layers of converted models are, to the bit, what their integers say: the definition in NumPy, in compiled code.

The models are those that a tree of modules has trouble with: tied weights, a layer used twice, functions between
layers, sums, groups, odd inputs.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import quantization as q

nn, F = mt.nn, mt.nn.functional
Array = np.ndarray[Any, Any]


class Model(nn.Module):
    """Layers, and a function of them and of an input."""

    def __init__(self, function: Callable[[Any, mt.Tensor], mt.Tensor], **layers: nn.Module) -> None:
        super().__init__()
        self.function = (function,)
        for name, layer in layers.items():
            setattr(self, name, layer)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.function[0](self, x)


def tied() -> nn.Module:
    one, two = nn.Linear(6, 6), nn.Linear(6, 6)
    two.weight = one.weight
    return nn.Sequential(one, nn.ReLU(), two)


def twice() -> nn.Module:
    layer = nn.Linear(6, 6)
    return nn.Sequential(layer, nn.ReLU(), layer, nn.Tanh(), layer)


def residual() -> nn.Module:
    layers = {"a": nn.Conv2d(4, 4, 3, padding=1), "b": nn.Conv2d(4, 4, 3, padding=1), "norm": nn.BatchNorm2d(4)}
    return Model(lambda my, x: F.relu(my.norm(my.b(F.relu(my.a(x)))) + x), **layers)


def transformer() -> nn.Module:
    def block(my: Any, x: mt.Tensor) -> mt.Tensor:
        h = my.first(x)
        x = x + my.o(F.scaled_dot_product_attention(my.q(h), my.k(h), my.v(h)))
        result: mt.Tensor = x + my.down(F.gelu(my.up(my.second(x))))
        return result

    layers = {name: nn.Linear(8, 8) for name in "qkvo"}
    widths = {"up": nn.Linear(8, 16), "down": nn.Linear(16, 8)}
    return Model(block, first=nn.LayerNorm(8), second=nn.LayerNorm(8), **layers, **widths)


DEPTHWISE = [nn.Conv2d(6, 6, 3, groups=6, padding=1), nn.BatchNorm2d(6), nn.ReLU(), nn.Conv2d(6, 4, 1)]
GROUPS = [nn.Conv1d(6, 9, 3, groups=3, dilation=2, stride=2), nn.ReLU(), nn.Conv1d(9, 3, 2, groups=3)]

# A model, and its input.
CASES: dict[str, tuple[Callable[[], nn.Module], Callable[[], mt.Tensor]]] = {
    "tied": (tied, lambda: mt.randn(5, 6)),
    "used twice": (twice, lambda: mt.randn(5, 6)),
    "residual": (residual, lambda: mt.randn(2, 4, 7, 7)),
    "depthwise": (lambda: nn.Sequential(*DEPTHWISE), lambda: mt.randn(2, 6, 7, 7)),
    "groups": (lambda: nn.Sequential(*GROUPS), lambda: mt.randn(2, 6, 15)),
    "embedding": (
        lambda: Model(lambda my, x: my.out(my.table(x)), table=nn.Embedding(10, 6), out=nn.Linear(6, 3)),
        lambda: mt.tensor([[1, 2, 3], [4, 5, 9]]),
    ),
    "transformer": (transformer, lambda: mt.randn(2, 5, 8)),
    "not contiguous": (lambda: nn.Sequential(nn.Linear(6, 4)), lambda: mt.randn(6, 5).T),
    "float64": (lambda: nn.Sequential(nn.Linear(6, 4, dtype=mt.float64)), lambda: mt.randn(5, 6).double()),
    "relu first, dropout": (lambda: nn.Sequential(nn.ReLU(), nn.Linear(6, 4), nn.Dropout(0.5)), lambda: mt.randn(5, 6)),
    "a vector": (lambda: nn.Sequential(nn.Linear(6, 4)), lambda: mt.randn(6)),
    "constant": (lambda: nn.Sequential(nn.Linear(6, 4)), lambda: mt.full((5, 6), 3.0)),
    "far from 0": (lambda: nn.Sequential(nn.Conv2d(2, 3, 3, padding=2)), lambda: mt.rand(1, 2, 5, 5) - 5),
}


def defined(layer: Any, x: Array) -> Array:
    """A quantised layer by its integers: their product in float64, which is exact, and one rounding to float32."""
    zero, (low, high) = int(layer.zero_point.item()), layer.range
    units = np.rint(x.astype(np.float32) * (np.float32(1) / layer.scale.numpy()))
    integers = np.clip(units.astype(np.float64) + zero, low, high)
    given = mt.tensor(integers - zero), layer.weight.double()
    total = layer.applied(*given, None).numpy().astype(np.float32)
    columns = (-1,) if layer.kind == "Linear" else (-1, *[1] * (total.ndim - 2))
    result = total * (layer.scale.numpy() * layer.weight_scale.numpy()).reshape(columns)
    return result if layer.bias is None else result + layer.bias.numpy().reshape(columns)


@pytest.mark.sweep(2)
@pytest.mark.parametrize("label", CASES)
def test_every_layer_of_a_converted_model_is_its_definition(label: str) -> None:
    make, given = CASES[label]
    mt.manual_seed(3)
    model, x = make().train(), given()
    converted = q.convert(q.calibrate(q.prepare(model, example=x), [x, x]))
    seen: list[tuple[Any, mt.Tensor]] = []
    layers = [each for each in converted.modules() if isinstance(each, q.Quantized)]
    handles = [each.register_forward_hook(lambda layer, of, _: seen.append((layer, of[0].detach()))) for each in layers]
    expected = converted(x).detach()
    for handle in handles:
        handle.remove()
    assert model.training and not converted.training and len(seen) >= len(layers) > 0
    for layer, received in seen:
        wanted = defined(layer, received.numpy()).astype(received.numpy().dtype)
        for compiled in (mt.jit(layer), mt.freeze(layer, received)):
            np.testing.assert_array_equal(compiled(received).numpy(), wanted)
        np.testing.assert_allclose(layer(received).numpy(), wanted, rtol=1e-5, atol=1e-5 * np.abs(wanted).max())
    for run in (mt.jit(converted), mt.freeze(converted, x)):
        assert (run(x) - expected).abs().max().item() <= 0.02 * expected.abs().max().item()
    if x.ndim > 1:
        assert mt.jit(converted)(x[:0]).shape == converted(x[:0]).shape == (0, *expected.shape[1:])
