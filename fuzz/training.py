"""Whole training steps: a small model, a loss and an optimiser, called several times."""

from __future__ import annotations

from typing import Any

import numpy as np

from .program import Program, Ref, Statement
from .scope import Scope
from .values import Input, Shape


def fill(model: Any, mt: Any) -> Any:
    """Give every parameter the same values in every library."""
    with mt.no_grad():
        for place, parameter in enumerate(model.parameters()):
            numbers = np.random.default_rng(place).normal(size=tuple(parameter.shape)) * 0.4
            parameter.copy_(mt.tensor(numbers, dtype=parameter.dtype))
    return model


ACTIVATIONS = (
    "ReLU()", "GELU()", "Tanh()", "Sigmoid()", "SiLU()", "ELU()", "Mish()", "LeakyReLU(0.1)", "Softplus()",
    "Hardswish()", "Hardsigmoid()", "Hardtanh()", "ReLU6()", "SELU()", "LogSigmoid()", "Softsign()", "Identity()",
    "Softmax(dim=1)", "LogSoftmax(dim=1)", "Softmin(dim=1)",
)  # fmt: skip
OPTIMIZERS = (
    "SGD(model.parameters(), lr=0.1)",
    "SGD(model.parameters(), lr=0.05, momentum=0.9)",
    "SGD(model.parameters(), lr=0.05, momentum=0.9, nesterov=True, weight_decay=0.01)",
    "Adam(model.parameters(), lr=0.01)",
    "Adam(model.parameters(), lr=0.01, weight_decay=0.1, amsgrad=True)",
    "AdamW(model.parameters(), lr=0.01)",
    "Adagrad(model.parameters(), lr=0.1)",
    "RMSprop(model.parameters(), lr=0.01, momentum=0.9)",
    "Adadelta(model.parameters(), weight_decay=0.01)",
    "Adamax(model.parameters(), lr=0.01)",
    "NAdam(model.parameters(), lr=0.01)",
)
CLASSIFYING = ("F.cross_entropy(model({}), {})", "mt.nn.CrossEntropyLoss(label_smoothing=0.1)(model({}), {})",
               "mt.nn.NLLLoss()(F.log_softmax(model({}), dim=1), {})")  # fmt: skip
REGRESSING = ("F.mse_loss(model({}), {})", "mt.nn.L1Loss()(model({}), {})", "mt.nn.SmoothL1Loss()(model({}), {})",
              "mt.nn.HuberLoss()(model({}), {})", "mt.nn.MSELoss()(model({}), {})",
              "mt.nn.BCEWithLogitsLoss()(model({}), {})", "mt.nn.BCELoss()(model({}).sigmoid(), {})",
              "mt.nn.KLDivLoss(reduction='batchmean')(F.log_softmax(model({}), dim=1), {})")  # fmt: skip


def generate(scope: Scope) -> Program:
    """A program that trains."""
    dtype = scope.pick("float32", "float32", "float64")
    batch = scope.pick(1, 2, 3, 5, 8, 17, 64 if scope.large else 4)
    layers, shape, out = scope.pick(dense, dense, images, sequences, attention)(scope)
    classify = scope.chance(0.5)
    x = Input("x", (batch, *shape), dtype, "normal", scope.below(1 << 16))
    y = Input("y", (batch,), "int64", f"below {out}", 1) if classify else Input("y", (batch, out), dtype, "unit", 1)
    if layers[0].startswith("mt.nn.Embedding"):
        x = Input("x", (batch, *shape), "int64", "below 11", scope.below(1 << 16))
    loss = scope.pick(*(CLASSIFYING if classify else REGRESSING))
    setup = [f"model = fill(mt.nn.Sequential({', '.join(layers)}).to(mt.{dtype}), mt)"]
    setup += [f"optimizer = mt.optim.{scope.pick(*OPTIMIZERS)}"]
    body = [
        Statement((), "optimizer.zero_grad"),
        Statement(("loss",), loss, (Ref("x"), Ref("y"))),
        Statement((), ".backward", (Ref("loss"),)),
        Statement((), "optimizer.step"),
    ]
    state = ("*model.state_dict().values()",)
    return Program((x, y), tuple(body), ("loss",), tuple(setup), state, calls=scope.pick(2, 3))


def dense(scope: Scope) -> tuple[list[str], Shape, int]:
    """Fully connected layers."""
    width = scope.pick(1, 3, 8, 33)
    shape, layers = (width,), []
    for _ in range(scope.pick(1, 2, 2, 3)):
        out = scope.pick(1, 2, 5, 16, 65 if scope.large else 7)
        layers.append(f"mt.nn.Linear({width}, {out}, bias={scope.chance(0.8)})")
        layers.append(f"mt.nn.{scope.pick(*ACTIVATIONS)}")
        layers += scope.pick([], [], [f"mt.nn.LayerNorm({out})"], [f"mt.nn.RMSNorm({out})"], ["mt.nn.Dropout(0.3)"])
        width = out
    classes = scope.pick(1, 3, 10)
    return [*layers, f"mt.nn.Linear({width}, {classes})"], shape, classes


def images(scope: Scope) -> tuple[list[str], Shape, int]:
    """Convolutions and poolings over images."""
    channels, size = scope.pick(1, 2, 3), scope.pick(5, 7, 9, 12)
    out = scope.pick(2, 4, 6)
    stride, padding = scope.pick(1, 1, 2), scope.pick(0, 1)
    layers = [f"mt.nn.Conv2d({channels}, {out}, {scope.pick(1, 3)}, stride={stride}, padding={padding})"]
    layers += scope.pick([], [f"mt.nn.BatchNorm2d({out})"], [f"mt.nn.GroupNorm(2, {out})"])
    layers.append(f"mt.nn.{scope.pick(*ACTIVATIONS)}")
    layers += scope.pick(
        [], ["mt.nn.MaxPool2d(2)"], ["mt.nn.MaxPool2d(3, stride=2, padding=1)"], ["mt.nn.AvgPool2d(2, 1)"]
    )
    pooled = scope.pick(1, 2)
    classes = scope.pick(2, 5)
    return (
        [
            *layers,
            f"mt.nn.AdaptiveAvgPool2d({pooled})",
            "mt.nn.Flatten()",
            f"mt.nn.Linear({out * pooled**2}, {classes})",
        ],
        (channels, size, size),
        classes,
    )


def sequences(scope: Scope) -> tuple[list[str], Shape, int]:
    """Convolutions and poolings over sequences."""
    channels, length, out = scope.pick(1, 3), scope.pick(6, 9, 20), scope.pick(2, 4)
    layers = [f"mt.nn.Conv1d({channels}, {out}, {scope.pick(1, 2, 3)})"]
    layers += scope.pick([], [f"mt.nn.BatchNorm1d({out})"])
    layers.append(f"mt.nn.{scope.pick(*ACTIVATIONS)}")
    layers += scope.pick([], ["mt.nn.MaxPool1d(2)"], ["mt.nn.AvgPool1d(3, 1)"])
    classes = scope.pick(2, 4)
    return (
        [*layers, "mt.nn.AdaptiveAvgPool1d(2)", "mt.nn.Flatten()", f"mt.nn.Linear({2 * out}, {classes})"],
        (channels, length),
        classes,
    )


def attention(scope: Scope) -> tuple[list[str], Shape, int]:
    """An embedding, normalized and averaged."""
    width, length, classes = scope.pick(2, 4, 8), scope.pick(1, 3, 7), scope.pick(2, 3)
    layers = [f"mt.nn.Embedding(11, {width})", f"mt.nn.LayerNorm({width})", "mt.nn.Flatten()"]
    return [*layers, f"mt.nn.Linear({width * length}, {classes})"], (length,), classes
