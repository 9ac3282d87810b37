"""Laws of the functions of neural networks, on NumPy and finite differences."""

from __future__ import annotations

import math
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch.autograd import gradcheck
from minitorch.errors import DTypeError, ShapeError
from minitorch.nn import functional as F


def test_earlier_flags_say_by_position_what_reduction_says():
    x, y = mt.tensor([1.0, 2.0]), mt.tensor([1.0, 5.0])
    for args, reduction in (
        ((False,), "sum"),
        ((None, False), "none"),
        ((None, None, "sum"), "sum"),
        ((True,), "mean"),
    ):
        assert mt.equal(F.mse_loss(x, y, *args), F.mse_loss(x, y, reduction=reduction))
    wanted = F.max_pool2d(mt.ones(1, 5, 5), 2, ceil_mode=True).shape
    assert F.max_pool2d(mt.ones(1, 5, 5), 2, 2, 0, 1, True).shape == wanted


def randn(*shape, seed=0, grad=False):
    return mt.tensor(np.random.default_rng(seed).normal(size=shape), requires_grad=grad)


def close(x, expected, **tolerance):
    np.testing.assert_allclose(x.detach().numpy(), expected, **tolerance)


# What the numbers are -------------------------------------------------------------------------------------

SMOOTH = ["elu", "selu", "gelu", "silu", "mish", "sigmoid", "tanh", "softplus", "softsign", "log_sigmoid"]
CORNERED = ["relu", "relu6", "hardtanh", "leaky_relu"]


@pytest.mark.parametrize("name", SMOOTH + CORNERED)
def test_gradients_are_the_slopes(name):
    gradcheck(getattr(F, name), randn(3, 4, grad=True))


@pytest.mark.parametrize("name", ["gelu", "silu", "mish", "sigmoid", "tanh", "softplus", "softsign", "log_sigmoid"])
def test_second_derivative_exists_at_zero(name):
    function = getattr(F, name)

    def second(x):
        x = mt.tensor(x, dtype=mt.float64, requires_grad=True)
        (first,) = mt.autograd.grad(function(x), x, create_graph=True)
        return mt.autograd.grad(first, x)[0].item()

    assert second(0.0) == pytest.approx((second(1e-4) + second(-1e-4)) / 2, abs=1e-3)


@pytest.mark.parametrize("name", SMOOTH + CORNERED)
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64])
def test_far_out_neither_value_nor_gradient_is_nan(name, dtype):
    x = mt.tensor([-1e4, -90.0, 0.0, 90.0, 1e4], dtype=dtype, requires_grad=True)
    y = getattr(F, name)(x)
    y.sum().backward()
    assert y.dtype is dtype and not y.isnan().any() and x.grad.isfinite().all()


# At minus infinity and infinity, in PyTorch; its gelu(inf) is NaN in vectors and infinity in single numbers.
INF, NAN = math.inf, math.nan
LIMITS = {
    **dict.fromkeys(("relu", "softplus"), (0.0, INF)),
    **dict.fromkeys(("hardswish", "gelu", "silu", "mish"), (NAN, INF)),
    **dict.fromkeys(("hardsigmoid", "sigmoid"), (0.0, 1.0)),
    **dict.fromkeys(("hardtanh", "tanh"), (-1.0, 1.0)),
    "relu6": (0.0, 6.0),
    "leaky_relu": (-INF, INF),
    "elu": (-1.0, INF),
    "selu": (-1.7580993408473768, INF),
    "logsigmoid": (-INF, 0.0),
    "softsign": (NAN, NAN),
}


@pytest.mark.parametrize("mode", [lambda function: function, mt.jit], ids=["eager", "compiled"])
@pytest.mark.parametrize("dtype", [mt.float16, mt.bfloat16, mt.float32, mt.float64], ids=str)
@pytest.mark.parametrize("name", LIMITS)
def test_activations_of_infinities_and_nan_are_pytorchs(name, dtype, mode):
    x = mt.tensor([-INF, INF, NAN] * 11, dtype=dtype)
    found = mode(getattr(F, name))(x).double().tolist()
    np.testing.assert_allclose(found, [*LIMITS[name], NAN] * 11, rtol=float(mt.finfo(dtype).eps))


def test_relu_has_gradient_zero_at_zero_and_lets_nan_pass():
    x = mt.tensor([-1.0, 0.0, 2.0, math.nan], requires_grad=True)
    y = F.relu(x)
    y.sum().backward()
    close(y, [0, 0, 2, math.nan])
    assert x.grad.tolist() == [0, 0, 1, 1]


def test_softmax_is_positive_and_adds_up_to_one_and_ignores_a_shift():
    x = randn(4, 5) * 50
    for dim in (0, 1, -1):
        y = F.softmax(x, dim)
        assert (y >= 0).all()
        close(y.sum(dim), 1)
        close(F.softmax(x + 1e5, dim), y.numpy(), rtol=1e-7, atol=1e-12)
        close(F.log_softmax(x, dim).exp(), y.numpy(), rtol=1e-10, atol=1e-300)


def test_softmax_gradient():
    for function in (F.softmax, F.log_softmax, F.softmin):
        gradcheck(lambda x, f=function: f(x, 1), randn(3, 4, grad=True))
    with pytest.raises(DTypeError, match="MT202"):
        F.softmax(mt.tensor([1, 2]), 0)


def test_normalized_rows_have_mean_zero_and_variance_one():
    x = randn(6, 4, 5) * 7 + 3
    y = F.layer_norm(x, (4, 5), eps=0)
    close(y.mean((1, 2)), 0, atol=1e-12)
    close(y.var((1, 2), correction=0), 1)
    close((F.rms_norm(x, (5,), eps=0) ** 2).mean(-1), 1)
    close((F.normalize(x, dim=2) ** 2).sum(2), 1)
    with pytest.raises(ShapeError, match="MT201"):
        F.layer_norm(x, (3,))


def test_large_half_numbers_are_normalized_without_overflow():
    x = mt.tensor([[1000.0, 2000.0, 3000.0]], dtype=mt.float16)
    close(F.layer_norm(x, (3,)), [[-1.225, 0, 1.225]], atol=2e-3)
    close(F.rms_norm(x, (3,)), [[0.463, 0.926, 1.389]], atol=2e-3)


def test_normalization_gradients():
    x, weight, bias = randn(3, 4, grad=True), randn(4, seed=1, grad=True), randn(4, seed=2, grad=True)
    gradcheck(lambda x, w, b: F.layer_norm(x, (4,), w, b), (x, weight, bias))
    gradcheck(lambda x, w: F.rms_norm(x, (4,), w), (x, weight))
    gradcheck(lambda x, w, b: F.batch_norm(x, None, None, w, b, training=True), (x, weight, bias))
    gradcheck(F.normalize, x)
    gradcheck(F.cosine_similarity, (x, randn(3, 4, seed=5, grad=True)))


def test_a_zero_vector_has_a_direction_without_nan():
    x = mt.zeros(2, 3, requires_grad=True)
    (F.normalize(x) + F.cosine_similarity(x, mt.ones(2, 3)).unsqueeze(1)).sum().backward()
    assert x.grad.isfinite().all()


def test_batch_norm_needs_more_than_one_value():
    with pytest.raises(ValueError, match="not more than one value per channel"):
        F.batch_norm(mt.ones(1, 3), None, None, training=True)


def test_dropout_keeps_the_mean_and_the_seed():
    x = mt.ones(200, 100, requires_grad=True)
    mt.manual_seed(5)
    y = F.dropout(x, 0.3)
    y.sum().backward()
    assert sorted(set(y.detach().flatten().tolist())) == pytest.approx([0, 1 / 0.7])
    assert y.mean().item() == pytest.approx(1, abs=0.02)
    close(x.grad, y.detach().numpy())
    mt.manual_seed(5)
    close(F.dropout(x, 0.3), y.detach().numpy())
    assert F.dropout(x, 0.3, training=False) is x
    assert F.dropout(x, 1.0).sum().item() == 0
    with pytest.raises(ValueError, match="probability"):
        F.dropout(x, 1.5)


# Windows --------------------------------------------------------------------------------------------------


def plain_conv2d(x, weight, stride, padding, dilation, groups):
    """A convolution as its definition says: a sum for every place."""
    x = np.pad(x, ((0, 0), (0, 0), (padding, padding), (padding, padding)))
    filters, depth, rows, columns = weight.shape
    size = [(x.shape[2 + i] - (weight.shape[2 + i] - 1) * dilation - 1) // stride + 1 for i in (0, 1)]
    y = np.zeros((x.shape[0], filters, *size))
    for f in range(filters):
        first = f // (filters // groups) * depth
        for i in range(size[0]):
            for j in range(size[1]):
                window = x[:, first : first + depth, i * stride :, j * stride :]
                window = window[:, :, : rows * dilation : dilation, : columns * dilation : dilation]
                y[:, f, i, j] = (window * weight[f]).sum((1, 2, 3))
    return y


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), (1, 2, 2, 4), (3, 1, 2, 1)])
def test_conv2d_is_its_definition(stride, padding, dilation, groups):
    x, weight = randn(2, 4, 8, 7, grad=True), randn(4, 4 // groups, 3, 2, seed=1, grad=True)
    y = F.conv2d(x, weight, None, stride, padding, dilation, groups)
    expected = plain_conv2d(x.detach().numpy(), weight.detach().numpy(), stride, padding, dilation, groups)
    close(y, expected, rtol=1e-10, atol=1e-12)


@pytest.mark.parametrize("stride, padding, dilation, groups", [(1, 0, 1, 1), (2, 1, 1, 2), (2, 2, 2, 1)])
def test_conv2d_gradients_of_both_orders(stride, padding, dilation, groups):
    x, weight = randn(1, 2, 5, 4, grad=True), randn(2, 2 // groups, 2, 2, seed=1, grad=True)
    gradcheck(lambda x, w: F.conv2d(x, w, None, stride, padding, dilation, groups), (x, weight))

    def energy(x, w):
        return (F.conv2d(x, w, None, stride, padding, dilation, groups) ** 2).sum()

    for argument in (0, 1):
        gradcheck(mt.grad(energy, argnums=argument), (x, weight))


def test_conv2d_errors_name_the_shapes():
    with pytest.raises(ShapeError, match=r"f32\[1,3,5,5\]"):
        F.conv2d(mt.ones(1, 3, 5, 5), mt.ones(4, 2, 3, 3))
    with pytest.raises(ShapeError, match="longer"):
        F.conv2d(mt.ones(1, 2, 2, 2), mt.ones(4, 2, 3, 3))
    with pytest.raises(ShapeError, match="unsqueeze"):
        F.conv2d(mt.ones(5, 5), mt.ones(4, 1, 3, 3))
    with pytest.raises(DTypeError, match="MT202"):
        F.conv2d(mt.ones(1, 2, 5, 5, dtype=mt.float64), mt.ones(4, 2, 3, 3))


def test_convolutions_of_integers_and_half_types():
    x, w = mt.arange(16).reshape(1, 1, 4, 4), mt.ones(1, 1, 2, 2, dtype=mt.int64)
    y = F.conv2d(x, w)
    assert y.dtype is mt.int64 and y.flatten().tolist() == [10, 14, 18, 26, 30, 34, 42, 46, 50]
    assert F.conv2d(x.half(), w.half()).tolist() == y.tolist()


def test_pooling_of_a_ramp():
    x = mt.arange(16.0).reshape(1, 1, 4, 4)
    assert F.max_pool2d(x, 2).flatten().tolist() == [5, 7, 13, 15]
    assert F.avg_pool2d(x, 2).flatten().tolist() == [2.5, 4.5, 10.5, 12.5]
    assert F.avg_pool2d(x, 2, 2, 1).flatten().tolist() == [0, 0.75, 0.75, 3, 7.5, 4.5, 3, 6.75, 3.75]
    assert F.adaptive_avg_pool2d(x, 1).item() == 7.5
    assert F.max_pool2d(mt.arange(16).reshape(1, 4, 4), 2).flatten().tolist() == [5, 7, 13, 15]


@pytest.mark.parametrize("shape", [(2, 3, 7, 5), (3, 4, 9), (1, 1, 1, 1), (1, 2, 6, 6)])
@pytest.mark.parametrize("size", [1, 3, (4, 2), (None, 3), (0, 2), 8])
def test_adaptive_pooling_has_the_windows_of_pytorch(shape, size):
    array = np.random.default_rng(0).normal(size=shape)
    array[..., 0, 0] = np.inf  # it stays in the windows that it is in
    found = F.adaptive_avg_pool2d(mt.tensor(array), size)
    rows, columns = (size, size) if isinstance(size, int) else size
    rows = shape[-2] if rows is None else rows

    def windows(length, places):
        return [slice(i * length // places, -(-(i + 1) * length // places)) for i in range(places)]

    expected = [
        [array[..., r, c].mean((-2, -1)) for c in windows(shape[-1], columns)] for r in windows(shape[-2], rows)
    ]
    assert found.shape == (*shape[:-2], rows, columns)
    if found.numel():
        np.testing.assert_allclose(found.numpy(), np.moveaxis(np.array(expected), (0, 1), (-2, -1)), rtol=1e-12)
    with pytest.raises(ValueError, match="output_size is 0 or more"):
        F.adaptive_avg_pool1d(mt.ones(1, 2, 3), -1)


def test_of_equal_maxima_the_first_gets_the_gradient():
    x = mt.ones(1, 1, 2, 4, requires_grad=True)
    F.max_pool2d(x, 2).sum().backward()
    assert x.grad.flatten().tolist() == [1, 0, 1, 0, 0, 0, 0, 0]


def test_pooling_gradients():
    x = randn(1, 2, 5, 6, grad=True)
    gradcheck(lambda x: F.max_pool2d(x, 3, 2, 1), x)
    gradcheck(lambda x: F.avg_pool2d(x, 2, 1, 1, count_include_pad=False), x)


# Lookup and attention -------------------------------------------------------------------------------------


def test_embedding_adds_up_the_gradients_of_a_row():
    weight = randn(4, 2, grad=True)
    F.embedding(mt.tensor([1, 1, 3]), weight, padding_idx=3).sum().backward()
    assert weight.grad.tolist() == [[0, 0], [2, 2], [0, 0], [0, 0]]
    for wrong in (-1, 4):
        with pytest.raises(IndexError):
            F.embedding(mt.tensor([wrong]), weight)
    with pytest.raises(DTypeError, match="long"):
        F.embedding(mt.tensor([1.0]), weight)


def test_attention_is_a_weighted_mean():
    q, k, v = randn(2, 4, 3, grad=True), randn(2, 5, 3, seed=1, grad=True), randn(2, 5, 6, seed=2, grad=True)
    scores = np.einsum("bqf,bkf->bqk", q.detach().numpy(), k.detach().numpy()) / math.sqrt(3)
    weights = np.exp(scores) / np.exp(scores).sum(-1, keepdims=True)
    close(F.scaled_dot_product_attention(q, k, v), weights @ v.detach().numpy())
    gradcheck(lambda q, k, v: F.scaled_dot_product_attention(q, k, v, is_causal=True), (q, k, v))


def test_a_causal_query_does_not_see_the_future():
    q, k, v = randn(1, 4, 3), randn(1, 4, 3, seed=1), randn(1, 4, 3, seed=2)
    before = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    v[0, 3] = 100.0
    after = F.scaled_dot_product_attention(q, k, v, is_causal=True)
    close(after[0, :3], before[0, :3].numpy())
    assert after[0, 3].max().item() > 1


def test_a_query_that_may_look_nowhere_gets_zeros_and_no_nan():
    x = randn(3, 2, grad=True)
    mask = mt.tensor([[True, False, True], [False, False, False], [True, True, True]])
    y = F.scaled_dot_product_attention(x, x, x, mask)
    y.sum().backward()
    assert y[1].tolist() == [0, 0] and x.grad.isfinite().all()


# Losses ---------------------------------------------------------------------------------------------------


def test_losses_are_gradchecked():
    x, y = randn(3, 4, grad=True), randn(3, 4, seed=1, grad=True)
    p, q = F.sigmoid(x).detach().requires_grad_(), F.sigmoid(y).detach().requires_grad_()
    for function in (F.mse_loss, F.l1_loss, F.huber_loss, F.smooth_l1_loss):
        gradcheck(function, (x, y))
    gradcheck(F.binary_cross_entropy, (p, q))
    gradcheck(F.binary_cross_entropy_with_logits, (x, q))
    gradcheck(F.kl_div, (x, q))
    gradcheck(lambda x: F.cross_entropy(x, mt.tensor([1, -100, 3]), randn(4).abs(), label_smoothing=0.1), x)
    gradcheck(lambda x, q: F.cross_entropy(x, q), (x, q))


def test_cross_entropy_is_minus_the_log_of_the_right_probability():
    x, target = randn(5, 4), mt.tensor([0, 3, 1, 1, 2])
    p = np.exp(x.numpy()) / np.exp(x.numpy()).sum(1, keepdims=True)
    expected = -np.log(p[np.arange(5), target.numpy()])
    close(F.cross_entropy(x, target, reduction="none"), expected)
    close(F.cross_entropy(x, target), expected.mean())
    close(F.cross_entropy(x, F.one_hot(target, 4).double()), expected.mean())
    close(F.cross_entropy(x, target.to(mt.uint8)), expected.mean())
    close(F.nll_loss(F.log_softmax(x, 1), target, reduction="sum"), expected.sum())


def test_the_gradient_of_cross_entropy_is_probability_minus_target():
    x, target = randn(5, 4, grad=True), mt.tensor([0, 3, 1, 1, 2])
    F.cross_entropy(x, target, reduction="sum").backward()
    close(x.grad, (F.softmax(x, 1) - F.one_hot(target, 4)).detach().numpy(), atol=1e-15)


def test_wrong_classes_and_shapes_are_errors():
    x = randn(2, 3)
    for wrong in (-1, 3):
        with pytest.raises(IndexError):
            F.cross_entropy(x, mt.tensor([0, wrong]))
    with pytest.raises(ShapeError, match=r"i64\[3\]"):
        F.cross_entropy(x, mt.tensor([0, 1, 2]))
    with pytest.raises(ValueError, match="reduction"):
        F.mse_loss(x, x, reduction="average")
    with pytest.raises(ShapeError, match="MT201"):
        F.binary_cross_entropy(x, mt.ones(2))
    with pytest.warns(UserWarning, match="broadcast"):
        F.mse_loss(mt.ones(3, 1), mt.ones(3))


def test_binary_cross_entropy_of_logits_is_exact_far_out():
    x = mt.tensor([-1e4, 0.0, 1e4], requires_grad=True)
    loss = F.binary_cross_entropy_with_logits(x, mt.tensor([1.0, 0.5, 0.0]), reduction="none")
    close(loss, [1e4, math.log(2), 1e4], rtol=1e-6)
    loss.sum().backward()
    close(x.grad, [-1, 0, 1], atol=1e-7)


# In a graph -----------------------------------------------------------------------------------------------


def test_one_hot_under_a_trace_wants_to_know_the_classes():
    assert F.one_hot(mt.tensor([1, 2])).tolist() == [[0, 1, 0], [0, 0, 1]]
    assert mt.jit(lambda x: F.one_hot(x, 4))(mt.tensor([1])).tolist() == [[0, 1, 0, 0]]
    with pytest.raises(TypeError, match=r"MT103(.|\n)*num_classes"):
        mt.jit(F.one_hot)(mt.tensor([1]))


def test_a_jitted_network_and_its_gradients_are_the_eager_ones():
    images, kernel = randn(2, 1, 6, 6), randn(3, 1, 3, 3, seed=1)
    weight, target = randn(5, 12, seed=2), mt.tensor([4, 1])

    def loss(kernel, weight):
        x = F.max_pool2d(F.gelu(F.conv2d(images, kernel)), 2).flatten(1)
        x = F.layer_norm(x, (12,))
        return F.cross_entropy(F.linear(x, weight), target)

    function = mt.value_and_grad(loss, argnums=(0, 1))
    value, gradients = function(kernel, weight)
    traced_value, traced_gradients = mt.jit(function)(kernel, weight)
    close(traced_value, value.numpy())
    for traced, eager in zip(traced_gradients, gradients, strict=True):
        close(traced, eager.numpy(), rtol=1e-10, atol=1e-14)


@pytest.mark.parametrize(
    ("filters", "groups", "words"),
    [(4, 1, "the input has 3 channels, the weight is for 1"), (3, 2, "3 filters cannot be shared out evenly")],
)
def test_a_convolution_says_which_channels_do_not_fit(filters, groups, words):
    with pytest.raises(mt.errors.ShapeError, match=words):
        F.conv2d(mt.ones(1, 3, 5, 5), mt.ones(filters, 1, 3, 3), groups=groups)


def test_kl_div_of_what_is_no_probability_is_nan():
    """As in PyTorch; a probability of 0 counts nothing."""
    found = F.kl_div(mt.full((4,), -1.0), mt.tensor([-1.0, 0.0, 1.0, float("nan")]), reduction="none")
    np.testing.assert_array_equal(found.numpy(), [np.nan, 0, 1, np.nan])


@pytest.mark.parametrize(
    "call",
    [
        lambda x, one: F.batch_norm(x, one, mt.ones(3)),
        lambda x, one: F.batch_norm(x, mt.zeros(3), one, training=True),
        lambda x, one: F.batch_norm(x, mt.zeros(3), mt.ones(3), weight=one),
        lambda x, one: F.group_norm(x, 3, bias=one),
        lambda x, one: F.layer_norm(x, (3,), one),
        lambda x, one: F.rms_norm(x, (3,), one),
    ],
)
def test_norms_broadcast_no_weights_or_statistics(call):
    for one in (mt.ones(1), mt.ones(3, 1)):
        with pytest.raises(ShapeError, match=r"is f32.*, and not of shape"):
            call(mt.ones(2, 3), one)


def test_what_has_no_variance_or_no_range_is_refused():
    with pytest.raises(ValueError, match="no variance"):
        F.group_norm(mt.ones(1, 2), 2)
    with pytest.raises(ValueError, match="num_groups"):
        F.group_norm(mt.ones(2, 2), 0)
    with pytest.raises(ValueError, match="above"):
        F.hardtanh(mt.ones(2), 2.0, 0.5)


def test_outputs_and_targets_of_no_length_have_the_loss_0_and_one_of_both_alone_has_none():
    """As in PyTorch; the gradient of a sequence that has no outputs is 0."""
    x = mt.randn(4, 3, 5).requires_grad_()
    call = lambda x: F.ctc_loss(x.log_softmax(2), mt.ones(3, 2).long(), [0, 4, 0], [0, 2, 1], reduction="none")  # noqa: E731
    for found in (call(x), mt.jit(call)(x)):
        assert [each.item() for each in found][::2] == [0, np.inf]
        (gradient,) = mt.autograd.grad(found[:2].sum(), x)
        assert (gradient[:, ::2] == 0).all() and (gradient[:, 1] != 0).any()


def test_a_loss_and_an_attention_without_elements():
    labels = mt.ones(0, 7, dtype=mt.int64)
    for loss in (F.nll_loss, mt.jit(F.nll_loss)):
        assert loss(mt.ones(0, 1, 7), labels).isnan()
    assert F.scaled_dot_product_attention(mt.ones(1, 0), mt.ones(2, 0), mt.ones(2, 1)).item() == 1


@pytest.mark.parametrize(
    "call",
    [
        lambda x, w: F.conv1d(x, w, stride=-1),
        lambda x, w: F.conv1d(x, w, dilation=0),
        lambda x, w: F.conv1d(x, w, padding=-1),
        lambda x, w: F.conv1d(x, w, groups=0),
        lambda x, w: F.conv1d(x, w, mt.ones(1)),
        lambda x, w: F.conv1d(x, w[..., :0]),
        lambda x, w: F.conv1d(x[..., :1], w),
        lambda x, w: F.max_pool1d(x, 7),
        lambda x, w: F.max_pool1d(x, 0),
        lambda x, w: F.max_pool1d(x, 2, -1),
        lambda x, w: F.max_pool1d(x, 2, 1, -1),
        lambda x, w: F.max_pool1d(x[..., :0], 2),
        lambda x, w: F.avg_pool1d(x, 0),
        lambda x, w: F.avg_pool1d(x, 6),
        lambda x, w: F.avg_pool1d(x, 2, 0),
    ],
)
def test_windows_that_cannot_slide_are_refused_in_every_mode(call):
    x, weight = mt.ones(1, 1, 5), mt.ones(3, 1, 2)
    mode: Any
    for mode in (lambda f: f, lambda f: mt.jit(f, backend="interpret")):
        with pytest.raises(ValueError, match=r"or more|MT201"):
            mode(call)(x, weight)
