"""Numbers that a traced function has as tensors: options (`alpha`, `eps`, ...), and what decides shapes."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

import numpy as np
import pytest

import minitorch as mt
import minitorch.nn.functional as F

VECTOR = mt.tensor([1.0, 2.0, float("nan")])
MATRIX = mt.arange(6.0).reshape(2, 3) / 4
SQUARE = mt.arange(4.0).reshape(2, 2)
INDEX, CLASSES = mt.tensor([0, 1]), mt.tensor([0, 2])

# Each takes a number as an option, as a Python number and as a tensor of no dimensions.
OPTIONS: dict[str, Callable[[Any], Any]] = {
    "add": lambda a: mt.add(VECTOR, VECTOR, alpha=a),
    "add_": lambda a: VECTOR.clone().add_(VECTOR, alpha=a),
    "sub": lambda a: VECTOR.sub(MATRIX, alpha=a),
    "sub_": lambda a: MATRIX.clone().sub_(VECTOR, alpha=a),
    "add integers": lambda a: INDEX.add(INDEX, alpha=a) if not isinstance(a, float) else INDEX + INDEX * int(a),
    "addcmul": lambda a: mt.addcmul(VECTOR, MATRIX, MATRIX, value=a),
    "addcmul_": lambda a: MATRIX.clone().addcmul_(VECTOR, MATRIX, value=a),
    "addcdiv": lambda a: MATRIX.addcdiv(MATRIX, MATRIX + 1, value=a),
    "addcdiv_": lambda a: MATRIX.clone().addcdiv_(MATRIX, MATRIX + 1, value=a),
    "lerp": lambda a: MATRIX.lerp(MATRIX * 3, a),
    "lerp_": lambda a: MATRIX.clone().lerp_(MATRIX * 3, a),
    "clamp": lambda a: MATRIX.clamp(a * 0.5, a),
    "clamp_": lambda a: MATRIX.clone().clamp_(max=a),
    "fill_": lambda a: MATRIX.clone().fill_(a),
    "mul_": lambda a: MATRIX.clone().mul_(a),
    "div_": lambda a: MATRIX.clone().div_(a + 1),
    "pow": lambda a: MATRIX.pow(a),
    "full": lambda a: mt.full((2,), a),
    "full_like": lambda a: mt.full_like(MATRIX, a),
    "addmm": lambda a: mt.addmm(MATRIX, SQUARE, MATRIX, beta=a, alpha=a),
    "addmm of NaN": lambda a: mt.addmm(VECTOR, SQUARE, MATRIX, beta=a),
    "addmv": lambda a: mt.addmv(mt.ones(2), MATRIX, mt.ones(3), beta=a, alpha=a),
    "addr": lambda a: mt.addr(MATRIX, mt.ones(2), mt.ones(3), beta=a, alpha=a),
    "baddbmm": lambda a: mt.baddbmm(MATRIX[None], SQUARE[None], MATRIX[None], beta=a, alpha=a),
    "masked_fill": lambda a: MATRIX.masked_fill(MATRIX > 0.5, a),
    "masked_fill_": lambda a: MATRIX.clone().masked_fill_(MATRIX > 0.5, a),
    "index_add": lambda a: MATRIX.index_add(0, INDEX, MATRIX, alpha=a),
    "index_fill": lambda a: MATRIX.index_fill(0, INDEX[:1], a),
    "where": lambda a: mt.where(MATRIX > 0.5, a, 2.0),
    "nan_to_num": lambda a: VECTOR.nan_to_num(a),
    "pad": lambda a: F.pad(MATRIX, (1, 2), value=a),
    "isclose": lambda a: mt.isclose(MATRIX, MATRIX + 0.5, atol=a),
    "allowed": lambda a: mt.isclose(MATRIX, MATRIX * 1.5, rtol=a, atol=0.0),
    "remainder": lambda a: MATRIX.remainder(a + 1),
    "leaky_relu": lambda a: F.leaky_relu(-MATRIX, a),
    "elu": lambda a: F.elu(-MATRIX, a),
    "softplus": lambda a: F.softplus(MATRIX, a + 0.5),
    "hardtanh": lambda a: F.hardtanh(MATRIX, -a, a),
    "layer_norm": lambda a: F.layer_norm(MATRIX, (3,), eps=a),
    "rms_norm": lambda a: F.rms_norm(MATRIX, (3,), eps=a + 0.1),
    "batch_norm": lambda a: F.batch_norm(MATRIX, mt.zeros(3), mt.ones(3), eps=a + 0.1),
    "normalize": lambda a: F.normalize(MATRIX, eps=a + 0.1),
    "huber_loss": lambda a: F.huber_loss(MATRIX, MATRIX * 4, delta=a + 0.1),
    "smooth_l1_loss": lambda a: F.smooth_l1_loss(MATRIX, MATRIX * 4, beta=a),
    "label_smoothing": lambda a: F.cross_entropy(MATRIX, CLASSES, label_smoothing=a),
    "attention": lambda a: F.scaled_dot_product_attention(MATRIX[None], MATRIX[None], MATRIX[None], scale=a),
    "dropout": lambda a: F.dropout(mt.ones(64), a * 0.5),
    "uniform_": lambda a: mt.zeros(3).uniform_(a, a + 1),
    "normal_": lambda a: mt.zeros(3).normal_(a, a + 1),
    "bernoulli": lambda a: mt.bernoulli(mt.zeros(32), p=a),
}


@pytest.mark.parametrize("backend", ["interpret", "llvm"])
@pytest.mark.parametrize("name", OPTIONS)
def test_an_option_can_be_a_traced_number(name: str, backend: str) -> None:
    """One trace serves for all numbers, 0 and 1 too, for which some formulas are others."""
    function = OPTIONS[name]
    traced = mt.jit(function, backend=backend)
    for value in (0.5, 1.0, 0.0):
        number = mt.tensor(int(value + 0.5)) if "integers" in name else mt.tensor(value)
        mt.manual_seed(0)
        expected = function(number)
        mt.manual_seed(0)
        found = traced(number)
        assert found.dtype is expected.dtype
        np.testing.assert_allclose(found.numpy(), expected.numpy(), rtol=1e-5, atol=1e-6)
        if "integers" not in name:
            mt.manual_seed(0)
            np.testing.assert_allclose(expected.numpy(), function(value).numpy(), rtol=1e-5, atol=1e-6)
    assert traced.explain().traced == 1


MASK = mt.tensor([True, False, True])
COUNTS = mt.tensor([2, 0, 1])

SHAPES: dict[str, Callable[[Any], Any]] = {
    "mask": lambda x: x[MASK],
    "mask in rows": lambda x: mt.stack([x, x])[:, MASK],
    "two masks": lambda x: mt.stack([x] * 3)[MASK][:, MASK],
    "computed mask": lambda x: x[(COUNTS > 0) & MASK],
    "literal mask": lambda x: x[mt.tensor([True, True, False])] * x[MASK].sum(),
    "triangle": lambda x: mt.stack([x] * 3)[mt.ones(3, 3).tril() > 0],
    "view of a mask": lambda x: mt.stack([x, x])[MASK[1:]],
    "masked_select": lambda x: x.masked_select(MASK),
    "nonzero": lambda x: x[mt.nonzero(MASK)[:, 0]],
    "repeat_interleave": lambda x: x.repeat_interleave(COUNTS, 0),
    "arange": lambda x: x.sum() * mt.arange(COUNTS.sum()),
    "unique": lambda x: x.sum() * mt.unique(COUNTS),
}


@pytest.mark.parametrize("name", SHAPES)
def test_a_shape_can_be_decided_by_tensors_outside(name: str) -> None:
    function, traced = SHAPES[name], mt.jit(SHAPES[name])
    try:
        for number in range(4):
            x = mt.tensor([1.0, 2.0, 3.0]) * (number + 1)
            x.requires_grad_()
            found, expected = traced(x), function(x)
            assert found.tolist() == expected.tolist()
            assert mt.grad(lambda x: traced(x).sum())(x).tolist() == mt.grad(lambda x: function(x).sum())(x).tolist()
        count = traced.explain().traced
        with warnings.catch_warnings():
            warnings.simplefilter("ignore")
            for turn in range(2):
                MASK.copy_(mt.tensor([turn == 0, True, False]))
                COUNTS.copy_(mt.tensor([1, 1, 3 + turn]))
                assert traced(x).tolist() == function(x).tolist()
        assert traced.explain().traced > count or name == "triangle"
    finally:
        MASK.copy_(mt.tensor([True, False, True]))
        COUNTS.copy_(mt.tensor([2, 0, 1]))


def test_a_shape_cannot_be_decided_by_an_argument() -> None:
    for function in (
        lambda x: x[x > 0],
        lambda x: x[(x > 0) & MASK],
        lambda x: x[mt.rand(3) > 0.5],
        lambda x: x[MASK.logical_or(x > 0)],
    ):
        with pytest.raises(mt.errors.TracedValueError, match="MT103"):
            mt.jit(function)(mt.ones(3))
