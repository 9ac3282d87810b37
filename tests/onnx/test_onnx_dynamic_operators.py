"""Each operator with dynamic dimensions, in several opsets: a valid model with the right numbers."""

from __future__ import annotations

import itertools
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn
from minitorch.errors import TranslationError
from minitorch.ir import OPERATORS
from minitorch.nn import functional as F
from minitorch_onnx.writing import nodes as writing
from tests.onnx.exported import arrays, checked, session

OPSETS = (20, 13, 17, 18, 21, 23, 24)
OTHER = {0: (2, 5), 1: (7, 4), 2: (11, 9), 3: (9, 13)}  # other lengths of each dimension
ROWS, TRIPLES, IMAGES = (3, 6), (3, 6, 8), (3, 4, 10, 10)

Case = tuple[Callable[[], Callable[..., Any]], tuple[int, ...], tuple[int, ...]]


def plain(f: Callable[..., Any], *args: Any, shape: tuple[int, ...] = ROWS, most: int = 9, **options: Any) -> Case:
    """A function of one tensor, whose first dimensions may be dynamic."""
    return lambda: lambda x: f(x, *args, **options), shape, tuple(range(len(shape)))[:most]


def layer(make: Callable[[], nn.Module], shape: tuple[int, ...], *axes: int) -> Case:
    """A module, and the dimensions of its input that may be dynamic."""
    return lambda: make().eval(), shape, axes


def attention(x: mt.Tensor, is_causal: bool = False) -> mt.Tensor:
    return F.scaled_dot_product_attention(x, x, x, is_causal=is_causal)


def quantized() -> nn.Module:
    prepared = mt.quantization.prepare(nn.Sequential(nn.Linear(6, 4)).eval())
    prepared(mt.linspace(-2, 2, 18).reshape(3, 6))
    return mt.quantization.convert(prepared)


CASES: dict[str, Case] = {
    "attention": plain(attention, shape=(2, 3, 5, 8), most=3),
    "causal attention": plain(attention, is_causal=True, shape=(2, 3, 5, 8), most=3),
    "avg_pool": layer(lambda: nn.AvgPool2d(2), IMAGES, 0, 2, 3),
    "avg_pool padded": layer(lambda: nn.AvgPool2d(3, 2, 1), IMAGES, 0, 2, 3),
    "adaptive pool": layer(lambda: nn.AdaptiveAvgPool2d(1), IMAGES, 0, 2, 3),
    "max_pool": layer(lambda: nn.MaxPool2d(3, 2, 1), IMAGES, 0, 2, 3),
    "max_pool 1d": layer(lambda: nn.MaxPool1d(2), TRIPLES, 0, 2),
    "batch_norm": layer(lambda: nn.BatchNorm2d(4), IMAGES, 0, 2, 3),
    "batch_norm of rows": layer(lambda: nn.BatchNorm1d(6), ROWS, 0),
    "group_norm": layer(lambda: nn.GroupNorm(2, 4), IMAGES, 0, 2, 3),
    "group_norm of rows": layer(lambda: nn.GroupNorm(3, 6), TRIPLES, 0, 2),
    "instance norm": layer(lambda: nn.GroupNorm(4, 4), IMAGES, 0, 2, 3),
    "layer_norm": layer(lambda: nn.LayerNorm(8), TRIPLES, 0, 1),
    "layer_norm of a dynamic dimension": plain(lambda x: F.layer_norm(x, x.shape[1:]), shape=TRIPLES),
    "rms_norm": layer(lambda: nn.RMSNorm(8), TRIPLES, 0, 1),
    "rms_norm of a dynamic dimension": plain(lambda x: F.rms_norm(x, x.shape[1:]), shape=TRIPLES),
    "conv": layer(lambda: nn.Conv2d(4, 6, 3, stride=2, padding=1), IMAGES, 0, 2, 3),
    "conv in groups": layer(lambda: nn.Conv2d(4, 4, 3, groups=4, dilation=2), IMAGES, 0, 2, 3),
    "conv 1d": layer(lambda: nn.Conv1d(6, 4, 3), TRIPLES, 0, 2),
    "gemm": layer(lambda: nn.Linear(6, 4), ROWS, 0),
    "linear": layer(lambda: nn.Linear(8, 4), TRIPLES, 0, 1),
    "matmul": plain(lambda x: x @ x.transpose(-1, -2), shape=TRIPLES),
    "gru": layer(lambda: nn.GRU(6, 4), (5, 3, 6), 1),
    "lstm": layer(lambda: nn.LSTM(6, 4), (5, 3, 6), 0, 1),
    "rnn_tanh": layer(lambda: nn.RNN(6, 4), (5, 3, 6), 1),
    "rnn_relu": layer(lambda: nn.RNN(6, 4, nonlinearity="relu"), (5, 3, 6), 1),
    "quantize": layer(quantized, ROWS, 0),
    "embedding": layer(lambda: Words(), ROWS, 0, 1),
    "mean": plain(lambda x: x.mean((1, 2)), shape=TRIPLES),
    "mean of all": plain(lambda x: x.mean(), shape=TRIPLES),
    "std": plain(lambda x: x.std(1), shape=TRIPLES),
    "softmax": plain(mt.softmax, -1),
    "log_softmax": plain(mt.log_softmax, 0),
    "argmin": plain(mt.argmin, 1),
    "argmax": plain(mt.argmax, 0),
    "topk": plain(lambda x: mt.topk(x, 2)[0]),
    "sort": plain(lambda x: mt.sort(x, 1)[0]),
    "take_along": plain(lambda x: mt.gather(x, 1, mt.argmax(x, 1, keepdim=True))),
    "minimum": plain(lambda x: mt.minimum(x, x.exp())),
    "reduce_min": plain(mt.amin, 1),
    "clip": plain(mt.clamp, -0.5, 0.5),
    "isnan": plain(mt.isnan),
    "signbit": plain(mt.signbit),
    "ceil": plain(mt.ceil),
    "gelu": plain(F.gelu),
    "gelu tanh": plain(F.gelu, approximate="tanh"),
    **{name: plain(getattr(F, name)) for name in ("elu", "hardsigmoid", "hardswish", "leaky_relu", "mish", "relu",
                                                  "sigmoid", "silu", "softplus", "softsign")},
    "cumsum": plain(mt.cumsum, 1),
    "concatenate": plain(lambda x: mt.cat([x, x * 2], 1)),
    "flatten": plain(lambda x: x.flatten(1), shape=TRIPLES),
    "split heads": plain(lambda x: x.reshape(x.shape[0], x.shape[1], 2, 4).transpose(1, 2).reshape(-1, x.shape[1], 4),
                         shape=(3, 6, 8), most=2),
    "slice": plain(lambda x: x[1:, :-1]),
    "stride": plain(lambda x: x[:, ::2]),
    "pad": plain(F.pad, (1, 2)),
    "triangle": plain(mt.tril),
    "positions": plain(lambda x: x + mt.arange(x.shape[0])[:, None]),
    "expand": plain(lambda x: x[:, None].expand(-1, 3, -1) + 0),
    "flip": plain(mt.flip, (1,)),
    "roll": plain(mt.roll, 1, 0),
    "unfold": plain(lambda x: x.unfold(1, 3, 2).sum(-1)),
    "one_hot": plain(lambda x: F.one_hot(mt.argmax(x, 1), 16)),
    "where": plain(lambda x: mt.where(x > 0, x, x.mean(0))),
}  # fmt: skip


class Words(nn.Module):
    """An embedding of what is computed from numbers."""

    def __init__(self) -> None:
        super().__init__()
        self.table = nn.Embedding(5, 3)

    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.table((x.abs() * 2).long().clamp(0, 4))


def given(shape: tuple[int, ...]) -> mt.Tensor:
    return mt.tensor(np.random.default_rng(len(shape)).normal(size=shape).astype(np.float32))


@pytest.mark.parametrize("name", CASES)
def test_what_is_written_is_valid_and_right(name: str, sweep: bool, monkeypatch: pytest.MonkeyPatch) -> None:
    make, shape, axes = CASES[name]
    mt.manual_seed(0)
    f = make()
    x = given(shape)
    argument = mt.export.onnx(f, x).graph.input[0].name
    chosen = [(axis,) for axis in axes] + ([axes] if len(axes) > 1 else [])
    turn = itertools.cycle(OPSETS[1:])
    for dynamic in chosen:
        for opset in OPSETS if sweep else (OPSETS[0], next(turn)):
            named = {argument: {axis: f"d{axis}" for axis in dynamic}}
            model = mt.export.onnx(f, x, dynamic_axes=named, opset_version=opset)
            runner = session(checked(model))
            for turns in (0, 1):
                other = given(tuple(OTHER[axis][turns] if axis in dynamic else n for axis, n in enumerate(shape)))
                with mt.no_grad():
                    expected = arrays(f(other))
                for theirs, ours in zip(runner.run(None, {argument: other.numpy()}), expected, strict=True):
                    assert theirs.shape == ours.shape, (dynamic, opset)
                    np.testing.assert_allclose(theirs, ours, rtol=1e-4, atol=1e-5, err_msg=f"{dynamic} {opset}")


def test_the_cases_have_all_operators(monkeypatch: pytest.MonkeyPatch) -> None:
    found, write = set(), writing._write

    def noted(b: Any, node: Any, names: Any) -> None:
        found.add(node.primitive.name)
        write(b, node, names)

    monkeypatch.setattr(writing, "_write", noted)
    for make, shape, _ in CASES.values():
        mt.export.onnx(make(), given(shape))
    assert not set(OPERATORS) - found - {"size"}  # which only symbolic sizes need


def test_a_model_that_breaks_a_rule_of_onnx_is_refused(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(
        writing.ROWS, "relu", lambda b, node, operands: b.op("Reshape", operands[0], b.constant([7, 0]))
    )
    with pytest.raises(TranslationError, match=r"MT802: .*breaks a rule of ONNX(?s:.*)Reshape"):
        mt.export.onnx(mt.relu, mt.ones(2, 3))
