"""Functions, modules and optimisers against PyTorch's: values, gradients, steps, names; where torch is installed."""

from __future__ import annotations

import itertools
from random import Random
from typing import Any

import numpy as np
import pytest

import minitorch as mt
from minitorch import nn, optim
from minitorch.nn import functional as F

torch = pytest.importorskip("torch")
TF = torch.nn.functional
Generator = np.random.Generator


def ours(value, grad=False):
    """Arrays, in tuples or alone, as tensors of minitorch; anything else as it is."""
    if isinstance(value, np.ndarray):
        return mt.tensor(value, requires_grad=grad and value.dtype.kind == "f")
    return value


def theirs(value, grad=False):
    if isinstance(value, np.ndarray):
        return torch.tensor(value, requires_grad=grad and value.dtype.kind == "f")
    return value


def check(mine, yours, *args, rtol=1e-6, atol=1e-9, **kwargs):
    """Equal values, shapes and types; and equal gradients of all float arguments, for a random cotangent."""
    a = [ours(arg, True) for arg in args], {key: ours(arg, True) for key, arg in kwargs.items()}
    b = [theirs(arg, True) for arg in args], {key: theirs(arg, True) for key, arg in kwargs.items()}
    x, y = mine(*a[0], **a[1]), yours(*b[0], **b[1])
    assert x.shape == tuple(y.shape)
    assert str(x.dtype).removeprefix("minitorch.") == str(y.dtype).removeprefix("torch.")
    np.testing.assert_allclose(x.detach().numpy(), y.detach().numpy(), rtol=rtol, atol=atol)
    if not y.requires_grad:
        return
    g = np.random.default_rng(1).normal(size=x.shape).astype(x.detach().numpy().dtype)
    x.backward(mt.tensor(g))
    y.backward(torch.tensor(g))
    for left, right in zip((*a[0], *a[1].values()), (*b[0], *b[1].values()), strict=True):
        if isinstance(right, torch.Tensor) and right.grad is not None:
            assert left.grad is not None
            np.testing.assert_allclose(left.grad.numpy(), right.grad.numpy(), rtol=rtol, atol=atol)


# Activations ----------------------------------------------------------------------------------------------

ACTIVATIONS = [
    ("relu", {}),
    ("relu6", {}),
    ("hardtanh", {"min_val": -0.5, "max_val": 2.0}),
    ("leaky_relu", {"negative_slope": 0.2}),
    ("elu", {"alpha": 0.7}),
    ("selu", {}),
    ("gelu", {}),
    ("gelu", {"approximate": "tanh"}),
    ("silu", {}),
    ("mish", {}),
    ("sigmoid", {}),
    ("tanh", {}),
    ("softplus", {}),
    ("softplus", {"beta": 3.0, "threshold": 5.0}),
    ("softsign", {}),
    ("logsigmoid", {}),
    ("celu", {"alpha": 0.7}),
    ("threshold", {"threshold": 0.5, "value": -1.5}),
    ("hardshrink", {"lambd": 1.0}),
    ("softshrink", {"lambd": 1.0}),
    ("tanhshrink", {}),
    ("rrelu", {"lower": 0.25, "upper": 0.5}),
    ("softmax", {"dim": -1}),
    ("softmax", {"dim": 0}),
    ("softmin", {"dim": 1}),
    ("log_softmax", {"dim": 1}),
]
POINTS = np.array([0.0, -0.0, 1e-8, 0.5, -0.5, 2, -2, 3, 6, -1, 1, 19.5, 21, -21, 100, -100, 800, -800])


@pytest.mark.parametrize("name, options", ACTIVATIONS)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_activations(name, options, dtype):
    x = POINTS.reshape(3, 6).astype(dtype)
    check(getattr(F, name), getattr(TF, name), x, **options, rtol=1e-5 if dtype == "float32" else 1e-9, atol=1e-7)


@pytest.mark.parametrize("name, options", ACTIVATIONS)
def test_activations_of_nan_and_infinity(name, options):
    x = np.array([[np.nan, 1.0], [-np.inf, -np.inf], [np.inf, 0.0]])
    mine, yours = getattr(F, name)(mt.tensor(x), **options), getattr(TF, name)(torch.tensor(x), **options)
    np.testing.assert_allclose(mine.numpy(), yours.numpy())


@pytest.mark.parametrize("name, options", ACTIVATIONS)
def test_activations_of_half_types(name, options):
    x = np.linspace(-15, 15, 64).reshape(8, 8)
    for ours_type, theirs_type, rtol in [(mt.float16, torch.float16, 2e-3), (mt.bfloat16, torch.bfloat16, 1e-2)]:
        mine = getattr(F, name)(mt.tensor(x, dtype=ours_type), **options)
        yours = getattr(TF, name)(torch.tensor(x, dtype=theirs_type), **options)
        assert mine.dtype is ours_type
        np.testing.assert_allclose(mine.double().numpy(), yours.double().numpy(), rtol=rtol, atol=1e-4)


# Normalization --------------------------------------------------------------------------------------------


def numbers(*shape, seed=0, dtype="float64"):
    return np.random.default_rng(seed).normal(size=shape).astype(dtype)


def test_layer_norm():
    x = numbers(3, 4, 5)
    check(F.layer_norm, TF.layer_norm, x, (5,))
    check(F.layer_norm, TF.layer_norm, x, (4, 5), numbers(4, 5, seed=1), numbers(4, 5, seed=2), 1e-2)


def test_rms_norm():
    x = numbers(3, 4, 5)
    check(F.rms_norm, TF.rms_norm, x, (5,))
    check(F.rms_norm, TF.rms_norm, x, (4, 5), numbers(4, 5, seed=1), 1e-2)
    check(F.rms_norm, TF.rms_norm, x.astype("float32"), (5,), rtol=1e-5, atol=1e-6)


def test_group_norm():
    check(F.group_norm, TF.group_norm, numbers(3, 4, 5, 2), 2, numbers(4, seed=1), numbers(4, seed=2))


def test_batch_norm():
    for shape in [(6, 3), (4, 3, 5), (2, 3, 4, 5)]:
        x, weight, bias = numbers(*shape), numbers(3, seed=1), numbers(3, seed=2)
        mean, var = numbers(3, seed=3), np.abs(numbers(3, seed=4))
        for training in (True, False):
            kept: Any = [mt.tensor(mean), mt.tensor(var)], [torch.tensor(mean), torch.tensor(var)]
            check(
                lambda x, w, b, kept=kept, t=training: F.batch_norm(x, kept[0][0], kept[0][1], w, b, t, 0.3),
                lambda x, w, b, kept=kept, t=training: TF.batch_norm(x, *kept[1], w, b, t, 0.3),
                *(x, weight, bias),
            )
            for a, b in zip(*kept, strict=True):
                np.testing.assert_allclose(a.numpy(), b.numpy())


def test_normalize_and_cosine_similarity():
    x, y = numbers(4, 5), numbers(4, 5, seed=1)
    for p in (1.0, 2.0, 3.0):
        check(F.normalize, TF.normalize, x, p=p, dim=0)
    check(F.cosine_similarity, TF.cosine_similarity, x, y)
    check(F.cosine_similarity, TF.cosine_similarity, x, y, dim=0)


# Linear, convolution, pooling -----------------------------------------------------------------------------


def test_linear():
    for shape in [(5,), (3, 5), (2, 3, 5)]:
        check(F.linear, TF.linear, numbers(*shape), numbers(4, 5, seed=1), numbers(4, seed=2))
    check(F.linear, TF.linear, numbers(3, 5), numbers(4, 5, seed=1))


CONVOLUTIONS = [
    {},
    {"stride": 2},
    {"stride": (2, 3), "padding": (1, 2)},
    {"padding": 3},
    {"padding": "same"},
    {"padding": "same", "dilation": (2, 3)},
    {"padding": "valid"},
    {"dilation": 2, "stride": 2, "padding": 2},
    {"stride": 3, "padding": 1, "dilation": (1, 2)},
    {"groups": 2, "stride": 2},
    {"groups": 4, "padding": 1},
]


@pytest.mark.parametrize("options", CONVOLUTIONS, ids=str)
@pytest.mark.parametrize("size", [(3, 2), (1, 1), (2, 3)])
@pytest.mark.filterwarnings("ignore:Using padding='same'")
def test_conv2d(options, size):
    weight = numbers(8, 4 // options.get("groups", 1), *size, seed=1)
    check(F.conv2d, TF.conv2d, numbers(2, 4, 9, 11), weight, numbers(8, seed=2), **options)
    check(F.conv2d, TF.conv2d, numbers(4, 9, 11), weight, **options)


def test_conv_with_stride_of_its_size():
    check(F.conv2d, TF.conv2d, numbers(2, 3, 9, 8), numbers(4, 3, 2, 3, seed=1), stride=(2, 3), padding=1)


def test_conv1d_and_conv3d():
    check(F.conv1d, TF.conv1d, numbers(2, 4, 9), numbers(6, 2, 3, seed=1), stride=2, padding=1, groups=2)
    check(F.conv3d, TF.conv3d, numbers(2, 2, 5, 6, 4), numbers(3, 2, 2, 3, 1, seed=1), stride=(1, 2, 1), padding=1)


@pytest.mark.parametrize("size", [3, 4])
@pytest.mark.parametrize(
    "options",
    [
        {},
        {"stride": 2, "padding": 1},
        {"stride": 3, "padding": 2, "output_padding": 2},
        {"dilation": 2, "stride": 2, "padding": 1, "output_padding": 1},
        {"groups": 2, "stride": 2},
        {"stride": 2, "padding": 3},
    ],
    ids=str,
)
def test_transposed_convolutions(options, size):
    for dims in (1, 2):
        x = numbers(2, 4, *(5, 6)[:dims])
        weight = numbers(4, 6 // options.get("groups", 1), *(size,) * dims, seed=1)
        convolve = getattr(F, f"conv_transpose{dims}d"), getattr(TF, f"conv_transpose{dims}d")
        check(*convolve, x, weight, numbers(6, seed=2), **options)
        check(*convolve, x[0], weight, **options)


def test_second_derivative_of_conv2d():
    x, w = numbers(2, 4, 6, 5), numbers(4, 2, 3, 2, seed=1)
    found = []
    for lib, conv in ((mt, F.conv2d), (torch, TF.conv2d)):
        a, b = lib.tensor(x, requires_grad=True), lib.tensor(w, requires_grad=True)
        y = conv(a, b, stride=2, padding=1, groups=2)
        first = lib.autograd.grad((y**3).sum(), [a, b], create_graph=True)
        (sum((each**2).sum() for each in first)).backward()
        found.append([a.grad.numpy(), b.grad.numpy()])
    for mine, yours in zip(*found, strict=True):
        np.testing.assert_allclose(mine, yours, rtol=1e-9)


POOLS = [
    {"kernel_size": 2},
    {"kernel_size": (2, 3), "stride": (1, 2)},
    {"kernel_size": 3, "stride": 2, "padding": 1},
    {"kernel_size": (3, 2), "padding": (1, 0)},
]


@pytest.mark.parametrize("options", POOLS, ids=str)
def test_pooling(options):
    for x in (numbers(2, 3, 7, 8), np.round(numbers(3, 7, 8)), np.ones((1, 1, 6, 6))):  # the last two have ties
        check(F.max_pool2d, TF.max_pool2d, x, **options)
        check(F.avg_pool2d, TF.avg_pool2d, x, **options)
        check(F.avg_pool2d, TF.avg_pool2d, x, count_include_pad=False, **options)


def test_other_pooling():
    check(F.max_pool2d, TF.max_pool2d, numbers(2, 3, 7, 8), 2, 1, 1, 2)
    check(F.max_pool1d, TF.max_pool1d, numbers(2, 3, 7), 3, 2, 1)
    check(F.avg_pool1d, TF.avg_pool1d, numbers(2, 3, 7), 3, 2, 1)
    check(F.adaptive_avg_pool2d, TF.adaptive_avg_pool2d, numbers(2, 3, 6, 8), (2, 4))
    check(F.adaptive_avg_pool2d, TF.adaptive_avg_pool2d, numbers(2, 3, 6, 8), 1)


def test_pad():
    check(F.pad, TF.pad, numbers(2, 3, 4), (1, 2, 0, 3), value=2.0)
    check(F.pad, TF.pad, numbers(2, 3, 4), (-1, 2))

    for mode in ("reflect", "replicate", "circular"):
        for amounts in ((1, 2, 3, 0), (0, 0, 2, 1), (3, 2, -1, 2)):
            check(F.pad, TF.pad, numbers(2, 3, 4, 6), amounts, mode=mode)
        check(F.pad, TF.pad, numbers(3, 4), (2, 3), mode=mode)


INTERPOLATIONS = [("nearest", 2), ("nearest-exact", 2), ("area", 2), ("linear", 1), ("bilinear", 2), ("bicubic", 2),
                  ("trilinear", 3), ("nearest", 3)]  # fmt: skip


@pytest.mark.parametrize(("mode", "dims"), INTERPOLATIONS)
@pytest.mark.filterwarnings("ignore:The default behavior", "ignore:The default scale_factor")
def test_interpolate(mode, dims):
    sizes: list[dict[str, Any]] = [{"size": 4}, {"size": 11}, {"size": 1}]
    sizes += [{"scale_factor": factor} for factor in (2, 3, 1.7, 0.5)]
    sizes += [{"scale_factor": 1.7, "recompute_scale_factor": True}]
    for options, align, smooth in itertools.product(sizes, (None, False, True), (False, True)):
        if (align is None or "linear" in mode or mode == "bicubic") and not (
            smooth and (align or mode not in ("bilinear", "bicubic"))
        ):
            options = {**options, "align_corners": align, "antialias": smooth}
            x = numbers(2, 3, 5, 7, 4)[:, :, :, *[0] * (3 - dims)]
            check(F.interpolate, TF.interpolate, x, mode=mode, **options)


def test_local_response_norm_and_pixel_shuffle():
    x = numbers(2, 8, 4, 6)
    check(F.local_response_norm, TF.local_response_norm, x, 3)
    check(F.local_response_norm, TF.local_response_norm, x, 4, alpha=0.1, beta=0.5, k=2.0)
    check(F.pixel_shuffle, TF.pixel_shuffle, x, 2)
    check(F.pixel_unshuffle, TF.pixel_unshuffle, x[0], 2)


def test_adaptive_max_pool():
    for dims, asked in ((1, 3), (1, 5), (1, 11), (2, 3), (2, (4, None)), (2, (2, 7))):
        name, x = f"adaptive_max_pool{dims}d", numbers(2, 3, 6, 10)[:, :, *[0] * (2 - dims)]
        x[0, 0] = np.round(x[0, 0])  # with equal elements
        check(getattr(F, name), getattr(TF, name), x, asked)
        for mine, yours in zip(getattr(F, name)(mt.tensor(x), asked, True),
                               getattr(TF, name)(torch.tensor(x), asked, True), strict=True):  # fmt: skip
            np.testing.assert_array_equal(mine.numpy(), yours.numpy())


def test_fold_and_unfold():
    for size, apart, around, step in ((2, 1, 0, 1), ((2, 3), 1, 1, 2), (3, 2, (2, 1), (1, 3)), (1, 1, 0, 3)):
        x = numbers(2, 3, 7, 9)
        check(F.unfold, TF.unfold, x, size, apart, around, step)
        check(F.unfold, TF.unfold, x[0], size, apart, around, step)
        columns = TF.unfold(torch.tensor(x), size, apart, around, step).numpy()
        check(F.fold, TF.fold, columns, (7, 9), size, apart, around, step)
        check(F.fold, TF.fold, columns[0], (7, 9), size, apart, around, step)


@pytest.mark.parametrize("padding", ["zeros", "border", "reflection"])
@pytest.mark.parametrize("align", [False, True])
def test_grid_sample(padding, align):
    for shape, places, modes in (((2, 3, 4, 5), (3, 6, 2), ("bilinear", "nearest", "bicubic")),
                                 ((2, 3, 4, 1, 5), (3, 2, 6, 3), ("bilinear", "nearest"))):  # fmt: skip
        for mode, far in itertools.product(modes, (0.7, 2.5)):
            grid = numbers(2, *places, seed=1) * far
            if mode == "nearest":  # PyTorch has a gradient of zeros for the grid
                mine, yours = mt.tensor(grid), torch.tensor(grid)
                check(
                    lambda x, mine=mine: F.grid_sample(x, mine, "nearest", padding, align),
                    lambda x, yours=yours: TF.grid_sample(x, yours, "nearest", padding, align),
                    numbers(*shape),
                )
            else:
                check(F.grid_sample, TF.grid_sample, numbers(*shape), grid, mode, padding, align)
    check(F.affine_grid, TF.affine_grid, numbers(2, 2, 3), (2, 3, 4, 5), align)
    check(F.affine_grid, TF.affine_grid, numbers(2, 3, 4), (2, 3, 4, 2, 5), align)


# Lookup, attention ----------------------------------------------------------------------------------------


def test_embedding_and_one_hot():
    index = np.array([[1, 0], [2, 2]])
    check(F.embedding, TF.embedding, index, numbers(3, 4))
    check(F.embedding, TF.embedding, index, numbers(3, 4), padding_idx=-1)
    check(F.one_hot, TF.one_hot, index)
    check(F.one_hot, TF.one_hot, index, num_classes=5)


@pytest.mark.parametrize("mode", ["mean", "sum", "max"])
@pytest.mark.parametrize("padding", [None, 2])
def test_embedding_bag(mode, padding):
    index, table = np.array([1, 0, 2, 2, 3, 1]), numbers(4, 5)
    options: dict[str, Any] = {"mode": mode, "padding_idx": padding}
    for offsets, last in ((np.array([0, 2, 2, 5]), False), (np.array([0, 2, 4, 6]), True)):
        check(F.embedding_bag, TF.embedding_bag, index, table, offsets, include_last_offset=last, **options)
    check(F.embedding_bag, TF.embedding_bag, index.reshape(2, 3), table, **options)
    if mode == "sum":
        weights = numbers(6, seed=1)
        check(F.embedding_bag, TF.embedding_bag, index, table, np.array([0, 4]), per_sample_weights=weights, **options)


def test_attention():
    q, k, v = numbers(2, 3, 4, 5), numbers(2, 3, 6, 5, seed=1), numbers(2, 3, 6, 7, seed=2)
    mask = np.random.default_rng(0).random((4, 6)) < 0.6
    mask[1] = False  # a query that may look nowhere
    attend = F.scaled_dot_product_attention, TF.scaled_dot_product_attention
    check(*attend, q, k, v)
    check(*attend, q, k, v, scale=0.3)
    check(*attend, q, k, v, is_causal=True)
    check(*attend, q, k, v, attn_mask=mask)
    check(*attend, q, k, v, attn_mask=numbers(2, 1, 4, 6, seed=3))


# Losses ---------------------------------------------------------------------------------------------------

REDUCTIONS = ("mean", "sum", "none")


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_numbers(reduction):
    x, y = numbers(3, 4), numbers(3, 4, seed=1)
    for name, options in [
        ("mse_loss", {}),
        ("l1_loss", {}),
        ("smooth_l1_loss", {"beta": 0.5}),
        ("smooth_l1_loss", {"beta": 0.0}),
        ("huber_loss", {"delta": 0.5}),
    ]:
        check(getattr(F, name), getattr(TF, name), x, y, reduction=reduction, **options)


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_losses_of_margins_and_likelihoods(reduction):
    x, y, z = numbers(3, 4), numbers(3, 4, seed=1), numbers(3, 4, seed=2)
    signs, some = np.sign(z).astype(int), np.array([1.0, -1.0, 1.0])
    labels, several = np.array([0, 3, 2]), np.array([[3, 0, -1, 1], [2, 1, 3, 0], [-1, 1, 2, 3]])
    counts = np.array([[0.0, 1, 2, 5], [7, 0.5, 3, 1], [2, 2, 0, 1]])
    rows: list[tuple[str, tuple[Any, ...], dict[str, Any]]] = [
        ("soft_margin_loss", (x * 30, signs), {}),
        ("hinge_embedding_loss", (x, signs), {"margin": 0.7}),
        ("multilabel_soft_margin_loss", (x, (z > 0) * 1.0), {}),
        ("multilabel_margin_loss", (x, several), {}),
        ("multilabel_margin_loss", (x[0], several[0]), {}),
        ("multi_margin_loss", (x, labels), {}),
        ("multi_margin_loss", (x[0], np.array(1)), {"p": 2, "margin": 0.5}),
        ("poisson_nll_loss", (x, counts), {"full": True}),
        ("poisson_nll_loss", (np.exp(x), counts), {"log_input": False}),
        ("gaussian_nll_loss", (x, y, np.exp(z)), {"full": True}),
        ("gaussian_nll_loss", (x, y, np.exp(z)[:, 0]), {"eps": 0.7}),
        ("gaussian_nll_loss", (x, y, np.exp(z)[:, :1]), {}),
        ("gaussian_nll_loss", (x, y, 0.5), {}),
        ("margin_ranking_loss", (x, y, signs), {"margin": 0.3}),
        ("cosine_embedding_loss", (x, y, some), {"margin": -0.2}),
        ("cosine_embedding_loss", (x[0], y[0], np.array(1.0)), {}),
        ("triplet_margin_loss", (x, y, z), {}),
        ("triplet_margin_loss", (x, y, z), {"p": 1, "swap": True, "margin": 2.0}),
        ("triplet_margin_with_distance_loss", (x, y, z), {"swap": True}),
    ]
    for name, args, options in rows:
        check(getattr(F, name), getattr(TF, name), *args, reduction=reduction, **options)
    check(F.pairwise_distance, TF.pairwise_distance, x, y, p=3, keepdim=True)
    weight = np.exp(y[0])
    for name, target in (("multi_margin_loss", labels), ("multilabel_soft_margin_loss", (z > 0) * 1.0)):
        check(
            lambda x, t, name=name: getattr(F, name)(x, t, weight=mt.tensor(weight), reduction=reduction),
            lambda x, t, name=name: getattr(TF, name)(x, t, weight=torch.tensor(weight), reduction=reduction),
            *(x, target),
        )


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.filterwarnings("ignore:reduction")
def test_losses_of_probabilities(reduction):
    random = np.random.default_rng(0)
    p, target, weight = random.random((3, 4)), random.random((3, 4)), random.random((3, 4))
    p[0, :2], target[0, :2] = (0, 1), (1, 0)  # the limits of the logarithm
    ours_weight, theirs_weight = mt.tensor(weight), torch.tensor(weight)
    check(
        lambda p, t: F.binary_cross_entropy(p, t, ours_weight, reduction=reduction),
        lambda p, t: TF.binary_cross_entropy(p, t, theirs_weight, reduction=reduction),
        *(p, target),
    )
    logits = numbers(3, 4) * 30
    logits[1] = 0
    bce = F.binary_cross_entropy_with_logits, TF.binary_cross_entropy_with_logits
    check(*bce, logits, target, reduction=reduction)
    check(
        lambda x, t: F.binary_cross_entropy_with_logits(x, t, ours_weight, reduction, ours_weight[0]),
        lambda x, t: TF.binary_cross_entropy_with_logits(
            x, t, theirs_weight, reduction=reduction, pos_weight=theirs_weight[0]
        ),
        *(logits, target),
    )
    for kl in (reduction, "batchmean"):
        check(F.kl_div, TF.kl_div, numbers(3, 4), random.random((3, 4)), reduction=kl)
        check(
            lambda x, kl=kl: F.kl_div(x, mt.tensor(target), kl),
            lambda x, kl=kl: TF.kl_div(x, torch.tensor(target), reduction=kl),
            numbers(3, 4),
        )
        check(F.kl_div, TF.kl_div, numbers(3, 4), numbers(3, 4, seed=1), reduction=kl, log_target=True)


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("smoothing", [0.0, 0.2])
@pytest.mark.parametrize("weighted", [False, True])
def test_cross_entropy(reduction, smoothing, weighted):
    random = np.random.default_rng(0)
    weight = mt.tensor(random.random(5)) if weighted else None
    options = {"reduction": reduction, "label_smoothing": smoothing}

    def mine(x, y, **more):
        return F.cross_entropy(x, y, weight, **options, **more)

    def yours(x, y, **more):
        return TF.cross_entropy(x, y, None if weight is None else torch.tensor(weight.numpy()), **options, **more)

    for shape in [(6, 5), (2, 5, 3), (2, 5, 3, 2)]:
        x = numbers(*shape) * 10
        target = random.integers(0, 5, (shape[0], *shape[2:]))
        check(mine, yours, x, target)
        check(mine, yours, x, target, ignore_index=2)
        target.flat[1] = -100
        check(mine, yours, x, target)
        check(mine, yours, x, random.random(shape))
    check(mine, yours, numbers(5), np.array(3))
    check(mine, yours, numbers(5), random.random(5))


@pytest.mark.parametrize("reduction", REDUCTIONS)
def test_nll_loss(reduction):
    weight = np.random.default_rng(0).random(5)
    check(F.nll_loss, TF.nll_loss, numbers(3, 5), np.array([0, 4, 2]), reduction=reduction)
    mine = lambda x, y: F.nll_loss(x, y, mt.tensor(weight), 4, reduction)  # noqa: E731
    yours = lambda x, y: TF.nll_loss(x, y, torch.tensor(weight), ignore_index=4, reduction=reduction)  # noqa: E731
    check(mine, yours, numbers(3, 5, 2), np.array([[0, 4], [2, 1], [4, 4]]))


@pytest.mark.parametrize("reduction", REDUCTIONS)
@pytest.mark.parametrize("zero", [False, True])
@pytest.mark.parametrize("form", ["padded", "joined", "lists"])
def test_ctc_loss(reduction, zero, form):
    random = np.random.default_rng(0)
    for time, batch, length in ((1, 1, 0), (1, 3, 2), (6, 1, 3), (6, 3, 3), (7, 4, 0)):
        x, targets = numbers(time, batch, 4), random.integers(1, 4, (batch, length))
        targets[0, 1:2] = targets[0, :1]
        ends, counts = random.integers(0, time + 1, batch), random.integers(0, length + 1, batch)
        if form == "joined":
            targets = np.concatenate([row[:count] for row, count in zip(targets, counts, strict=True)])
        results = []
        for lib, losses in ((mt, F), (torch, TF)):
            given = lib.tensor(x, requires_grad=True)
            lengths = [tuple(each.tolist()) if form == "lists" else lib.tensor(each) for each in (ends, counts)]
            loss = losses.ctc_loss(
                given.log_softmax(-1), lib.tensor(targets), *lengths, reduction=reduction, zero_infinity=zero
            )
            if zero:
                loss.square().sum().backward()
            results.append((loss.detach().numpy(), given.grad.numpy() if zero else None))
        np.testing.assert_allclose(results[0][0], results[1][0], rtol=1e-9)
        if zero:
            np.testing.assert_allclose(results[0][1], results[1][1], rtol=1e-7, atol=1e-12)


# Modules --------------------------------------------------------------------------------------------------

MODULES = [
    ("Linear", (3, 4), {}, (2, 3)),
    ("Linear", (3, 4), {"bias": False}, (2, 3)),
    ("Conv1d", (4, 6, 3), {"stride": 2, "groups": 2}, (2, 4, 9)),
    ("Conv2d", (4, 6, 3), {"padding": 1, "dilation": 2}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, (3, 1)), {"padding": "same", "groups": 2, "bias": False}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, 3), {"padding": 1, "padding_mode": "reflect"}, (2, 4, 9, 8)),
    ("Conv2d", (4, 6, (3, 4)), {"padding": "same", "padding_mode": "circular"}, (2, 4, 9, 8)),
    ("ConvTranspose1d", (4, 6, 3), {"bias": False, "dilation": 2}, (2, 4, 5)),
    ("ConvTranspose2d", (4, 6, 3), {"stride": 2, "padding": 1, "output_padding": 1, "groups": 2}, (2, 4, 5, 6)),
    ("AdaptiveMaxPool1d", (2,), {}, (2, 3, 4)),
    ("AdaptiveMaxPool2d", (2,), {}, (2, 3, 4, 4)),
    ("Unfold", (2,), {"padding": 1}, (2, 3, 4, 4)),
    ("Fold", (4, 2), {"stride": 2}, (2, 12, 4)),
    ("BatchNorm1d", (3,), {}, (5, 3)),
    ("BatchNorm1d", (3,), {"momentum": None}, (5, 3, 4)),
    ("BatchNorm2d", (3,), {"affine": False}, (5, 3, 2, 2)),
    ("BatchNorm2d", (3,), {"track_running_stats": False}, (5, 3, 2, 2)),
    ("LayerNorm", (3,), {}, (5, 3)),
    ("LayerNorm", ((2, 3),), {"bias": False}, (5, 2, 3)),
    ("RMSNorm", (3,), {}, (5, 3)),
    ("GroupNorm", (2, 4), {}, (5, 4, 3)),
    ("InstanceNorm1d", (3,), {}, (5, 3, 4)),
    ("InstanceNorm2d", (3,), {"affine": True, "track_running_stats": True}, (5, 3, 2, 4)),
    ("PReLU", (3,), {"init": 0.5}, (5, 3, 2)),
    ("GLU", (1,), {}, (2, 4)),
    ("PixelShuffle", (2,), {}, (1, 8, 2, 3)),
    ("MaxPool2d", (2,), {}, (2, 3, 4, 4)),
    ("AvgPool2d", (2,), {"stride": 1}, (2, 3, 4, 4)),
    ("AdaptiveAvgPool2d", (1,), {}, (2, 3, 4, 4)),
    ("Flatten", (), {}, (2, 3, 4)),
    ("Unflatten", (1, (3, 2)), {}, (2, 6)),
    ("Identity", (), {}, (2, 3)),
    *[
        (name, (), {}, (2, 3))
        for name in ["ReLU", "ReLU6", "ELU", "SELU", "GELU", "SiLU", "Mish", "Sigmoid", "Tanh", "Softplus"]
    ],
    *[(name, (), {}, (2, 3)) for name in ["Softsign", "LogSigmoid", "Hardtanh", "LeakyReLU"]],
    *[(name, (), {}, (2, 3)) for name in ["CELU", "Hardshrink", "Softshrink", "Tanhshrink"]],
    ("Threshold", (0.5, 2.0), {}, (2, 3)),
    ("Softmax2d", (), {}, (2, 3, 4, 5)),
    *[(name, (), {"dim": 1}, (2, 3)) for name in ["Softmax", "Softmin", "LogSoftmax"]],
]


NORMS = [("weight_norm", {}), ("weight_norm", {"dim": None}), ("spectral_norm", {"n_power_iterations": 2})]


@pytest.mark.filterwarnings("ignore")
@pytest.mark.parametrize(("name", "options"), NORMS)
@pytest.mark.parametrize("place", ["utils", "utils.parametrizations"])
@pytest.mark.parametrize("kind", ["Conv2d", "ConvTranspose2d"])
def test_normalised_weights(place, name, options, kind):
    made = []
    for where in (nn, torch.nn):
        function = getattr(where.utils.parametrizations if "." in place else where.utils, name)
        made.append(function(getattr(where, kind)(3, 4, 2), **options))
    mine, yours = made
    assert [name for name, _ in mine.named_parameters()] == [name for name, _ in yours.named_parameters()]
    assert list(mine.state_dict()) == list(yours.state_dict())
    assert repr(mine) == repr(yours)
    same_state(mine, yours)
    for _ in range(2):
        check(mine, yours, numbers(2, 3, 4, 4, dtype="float32"), rtol=1e-4, atol=1e-5)
    for (n, a), b in zip(mine.state_dict().items(), yours.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-4, atol=1e-6, err_msg=n)


def test_packed_sequences():
    theirs_rnn, lengths = torch.nn.utils.rnn, [2, 5, 1, 4]
    x = numbers(4, 5, 3)
    for sort in (False, True):
        order = sorted(lengths, reverse=True) if sort else lengths
        a = nn.utils.rnn.pack_padded_sequence(mt.tensor(x), order, True, sort)
        b = theirs_rnn.pack_padded_sequence(torch.tensor(x), torch.tensor(order), True, sort)
        for mine, yours in zip(a, b, strict=True):
            assert (mine is None) == (yours is None)
            if mine is not None:
                np.testing.assert_array_equal(mine.numpy(), yours.numpy())
        for kind, options in itertools.product(("RNN", "LSTM", "GRU"), ({}, {"bidirectional": True, "num_layers": 2})):
            layers = getattr(nn, kind)(3, 4, **options).double(), getattr(torch.nn, kind)(3, 4, **options).double()
            same_state(*layers)
            results = layers[0](a), layers[1](b)
            padded = [where.pad_packed_sequence(each[0], True, -1.0, 6) for where, each in
                      zip((nn.utils.rnn, theirs_rnn), results, strict=True)]  # fmt: skip
            states = [each[1] if kind == "LSTM" else [each[1]] for each in results]
            pairs = [*zip(*padded, strict=True), *zip(*states, strict=True)]
            for mine, yours in pairs:
                np.testing.assert_allclose(mine.detach().numpy(), yours.detach().numpy(), rtol=1e-6)


# Those that have other options, or show them otherwise.
SHOWN_OTHERWISE = ("MaxPool2d", "Unflatten", "AvgPool2d", "AdaptiveMaxPool1d", "AdaptiveMaxPool2d", "Hardshrink",
                   "Softshrink")  # fmt: skip


def same_state(mine, yours):
    mine.load_state_dict({name: tensor.detach().numpy().copy() for name, tensor in yours.state_dict().items()})


@pytest.mark.parametrize("name, args, options, shape", MODULES, ids=str)
def test_modules(name, args, options, shape):
    mine, yours = getattr(nn, name)(*args, **options), getattr(torch.nn, name)(*args, **options)
    assert list(mine.state_dict()) == list(yours.state_dict())
    assert [n for n, _ in mine.named_parameters()] == [n for n, _ in yours.named_parameters()]
    assert [str(t.dtype).split(".")[1] for t in mine.state_dict().values()] == [
        str(t.dtype).split(".")[1] for t in yours.state_dict().values()
    ]
    if name not in SHOWN_OTHERWISE:
        assert repr(mine) == repr(yours)
    same_state(mine, yours)
    x = np.random.default_rng(0).normal(size=shape).astype("float32")
    for _ in range(2):
        check(mine, yours, x, rtol=1e-4, atol=1e-6)
    for (n, a), b in zip(mine.named_parameters(), yours.parameters(), strict=True):
        np.testing.assert_allclose(a.grad.numpy(), b.grad.numpy(), rtol=1e-4, atol=1e-5, err_msg=n)
    for (n, a), b in zip(mine.state_dict().items(), yours.state_dict().values(), strict=True):
        np.testing.assert_allclose(a.numpy(), b.numpy(), rtol=1e-5, err_msg=n)
    check(mine.eval(), yours.eval(), x, rtol=1e-4, atol=1e-6)


@pytest.mark.parametrize("sizes", [{}, {"kdim": 6, "vdim": 10}], ids=str)
@pytest.mark.parametrize("batch_first", [False, True])
@pytest.mark.filterwarnings("ignore:Support for mismatched")
def test_multihead_attention(batch_first, sizes):
    mine, yours = (library.MultiheadAttention(8, 2, batch_first=batch_first, **sizes) for library in (nn, torch.nn))
    assert list(mine.state_dict()) == list(yours.state_dict())
    same_state(mine, yours)
    arrays = [numbers(3, length, size, dtype="float32") for length, size in
              ((4, 8), (5, sizes.get("kdim", 8)), (5, sizes.get("vdim", 8)))]  # fmt: skip
    if not batch_first:
        arrays = [np.ascontiguousarray(array.swapaxes(0, 1)) for array in arrays]
    hidden, later = np.zeros((3, 5), bool), np.triu(np.ones((4, 5), bool), 2)
    hidden[[0, 1, 2], [2, 4, 1]] = True
    both = {"attn_mask": numbers(6, 4, 5, dtype="float32"), "key_padding_mask": hidden}
    for masks in ({}, {"key_padding_mask": hidden}, {"attn_mask": later}, both):
        for place, more in ((0, {"need_weights": False}), (0, {}), (1, {}), (1, {"average_attn_weights": False})):
            check(
                lambda *x, place=place, more=more, **m: mine(*x, **m, **more)[place],
                lambda *x, place=place, more=more, **m: yours(*x, **m, **more)[place],
                *arrays,
                **masks,
                rtol=1e-4,
                atol=1e-5,
            )


@pytest.mark.parametrize("batch_first, norm_first, activation", [(False, False, "relu"), (True, True, "gelu")])
@pytest.mark.filterwarnings("ignore:enable_nested_tensor", "ignore:Support for mismatched")
def test_transformer(batch_first, norm_first, activation):
    options = {"dropout": 0.0, "activation": activation, "batch_first": batch_first, "norm_first": norm_first}
    mine, yours = (library.Transformer(8, 2, 2, 2, 16, **options) for library in (nn, torch.nn))
    assert list(mine.state_dict()) == list(yours.state_dict())
    same_state(mine, yours)
    src, tgt = numbers(5, 5, 8, dtype="float32"), numbers(5, 5, 8, seed=1, dtype="float32")
    hidden = np.zeros((5, 5), bool)
    hidden[1, -1] = True
    later = torch.nn.Transformer.generate_square_subsequent_mask(5).numpy()
    np.testing.assert_array_equal(nn.Transformer.generate_square_subsequent_mask(5).numpy(), later)
    check(mine, yours, src, tgt, rtol=1e-4, atol=1e-5)
    with mt.no_grad(), torch.no_grad():
        masks = {"tgt_mask": later, "tgt_key_padding_mask": hidden.astype("float32"), "tgt_is_causal": True}
        check(mine, yours, src, tgt, src_key_padding_mask=hidden, **masks, rtol=1e-4, atol=1e-5)


def test_embedding_module():
    mine, yours = nn.Embedding(5, 3, padding_idx=0), torch.nn.Embedding(5, 3, padding_idx=0)
    assert repr(mine) == repr(yours) and list(mine.state_dict()) == list(yours.state_dict())
    assert mine.weight[0].tolist() == [0, 0, 0]
    same_state(mine, yours)
    check(mine, yours, np.array([[1, 0], [4, 1]]))
    np.testing.assert_array_equal(mine.weight.grad.numpy(), yours.weight.grad.numpy())


def test_losses_as_modules():
    x, classes = numbers(6, 5), np.arange(6) % 5
    weight = np.random.default_rng(0).random(5)
    mine = nn.CrossEntropyLoss(mt.tensor(weight), label_smoothing=0.1)
    yours = torch.nn.CrossEntropyLoss(torch.tensor(weight), label_smoothing=0.1)
    assert list(mine.state_dict()) == list(yours.state_dict()) == ["weight"] and repr(mine) == repr(yours)
    check(mine, yours, x, classes)
    for name in ("MSELoss", "L1Loss", "SmoothL1Loss", "HuberLoss", "BCEWithLogitsLoss"):
        check(getattr(nn, name)(reduction="sum"), getattr(torch.nn, name)(reduction="sum"), x, np.abs(x))


def test_nested_names_and_text():
    def build(lib):
        return lib.nn.Sequential(
            lib.nn.Conv2d(1, 2, 3, padding=1),
            lib.nn.BatchNorm2d(2),
            lib.nn.ReLU(),
            lib.nn.Sequential(lib.nn.Flatten(), lib.nn.Linear(32, 4)),
            lib.nn.ModuleDict({"a": lib.nn.Linear(1, 1)}),
            lib.nn.ModuleList([lib.nn.Dropout(0.1)]),
        )

    mine, yours = build(mt), build(torch)
    yours_text = repr(yours).replace("(p=0.1, inplace=False)", "(p=0.1)")
    assert repr(mine) == yours_text
    assert list(mine.state_dict()) == list(yours.state_dict())
    assert [n for n, _ in mine.named_modules()] == [n for n, _ in yours.named_modules()]
    assert [n for n, _ in mine.named_buffers()] == [n for n, _ in yours.named_buffers()]


def test_initial_values_have_pytorchs_range():
    mt.manual_seed(0)
    torch.manual_seed(0)
    for mine, yours in [
        (nn.Linear(50, 200), torch.nn.Linear(50, 200)),
        (nn.Conv2d(8, 40, 3, groups=2), torch.nn.Conv2d(8, 40, 3, groups=2)),
        (nn.Embedding(100, 50), torch.nn.Embedding(100, 50)),
    ]:
        for a, b in zip(mine.parameters(), yours.parameters(), strict=True):
            assert a.std().item() == pytest.approx(b.std().item(), rel=0.15)
            assert a.abs().max().item() == pytest.approx(b.abs().max().item(), rel=0.5)
    inits: list[tuple[str, dict[str, Any]]] = [
        ("xavier_uniform_", {"gain": 2.0}),
        ("xavier_normal_", {}),
        ("kaiming_uniform_", {"nonlinearity": "relu"}),
        ("kaiming_normal_", {"mode": "fan_out", "a": 0.3}),
        ("normal_", {"mean": 1.0, "std": 2.0}),
        ("uniform_", {"a": 1.0, "b": 3.0}),
    ]
    for name, args in inits:
        a = getattr(nn.init, name)(mt.empty(80, 50), **args)
        b = getattr(torch.nn.init, name)(torch.empty(80, 50), **args)
        assert a.std().item() == pytest.approx(b.std().item(), rel=0.1)
        assert a.mean().item() == pytest.approx(b.mean().item(), abs=0.1)


def test_clip_grad():
    for norm_type in (2.0, 1.0, float("inf")):
        x, y = mt.tensor(numbers(3, 4), requires_grad=True), torch.tensor(numbers(3, 4), requires_grad=True)
        for t in (x, y):
            (t * t).sum().backward()
        a = nn.utils.clip_grad_norm_([x], 1.5, norm_type)
        b = torch.nn.utils.clip_grad_norm_([y], 1.5, norm_type)
        assert a.item() == pytest.approx(b.item())
        np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())
    nn.utils.clip_grad_value_([x], 0.1)
    torch.nn.utils.clip_grad_value_([y], 0.1)
    np.testing.assert_allclose(x.grad.numpy(), y.grad.numpy())


# Optimisers -----------------------------------------------------------------------------------------------

OPTIMISERS = [
    ("SGD", {"lr": 0.1}),
    ("SGD", {"lr": 0.1, "weight_decay": 0.3, "maximize": True}),
    ("SGD", {"lr": 0.1, "momentum": 0.9}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "dampening": 0.4, "weight_decay": 0.1}),
    ("SGD", {"lr": 0.1, "momentum": 0.9, "nesterov": True}),
    ("Adam", {"lr": 0.1}),
    ("Adam", {"lr": 0.1, "betas": (0.5, 0.9), "eps": 0.1, "weight_decay": 0.2, "amsgrad": True}),
    ("Adam", {"lr": 0.1, "maximize": True}),
    ("AdamW", {"lr": 0.1}),
    ("AdamW", {"lr": 0.1, "weight_decay": 0.5, "amsgrad": True}),
    ("Adagrad", {"lr": 0.1, "lr_decay": 0.1, "weight_decay": 0.3, "initial_accumulator_value": 0.2}),
    ("RMSprop", {"lr": 0.1, "foreach": True}),
    ("RMSprop", {"lr": 0.1, "momentum": 0.9, "weight_decay": 0.1, "maximize": True}),
    ("RMSprop", {"lr": 0.1, "alpha": 0.5, "eps": 0.1, "centered": True}),
    ("Adadelta", {"weight_decay": 0.1, "rho": 0.5}),
    ("Adamax", {"lr": 0.1, "betas": (0.5, 0.9), "weight_decay": 0.1, "capturable": False}),
    ("NAdam", {"lr": 0.1, "momentum_decay": 0.1, "weight_decay": 0.1}),
    ("NAdam", {"lr": 0.1, "weight_decay": 0.1, "decoupled_weight_decay": True}),
]


@pytest.mark.parametrize("name, options", OPTIMISERS, ids=str)
@pytest.mark.parametrize("dtype", ["float64", "float32"])
def test_optimisers(name, options, dtype):
    rtol = 1e-9 if dtype == "float64" else 1e-4
    start = [numbers(3, 4, dtype=dtype), numbers(5, seed=1, dtype=dtype)]
    runs = []
    for lib, optimisers in ((mt, optim), (torch, torch.optim)):
        ps = [lib.tensor(each, requires_grad=True) for each in start]
        optimizer = getattr(optimisers, name)([{"params": ps[:1], "lr": 0.02}, {"params": ps[1:]}], **options)
        scheduler = optimisers.lr_scheduler.StepLR(optimizer, 2, 0.5)
        seen = []
        for step in range(6):
            optimizer.zero_grad()
            loss = (ps[0].sin() * ps[0]).sum() + (ps[1] ** 3).sum() * (step - 2)
            loss.backward()
            optimizer.step()
            scheduler.step()
            seen += [each.detach().numpy().copy() for each in ps]
        runs.append((seen, optimizer.state_dict()))
    for a, b in zip(runs[0][0], runs[1][0], strict=True):
        np.testing.assert_allclose(a, b, rtol=rtol, atol=1e-6 if dtype == "float32" else 1e-12)
    mine, yours = runs[0][1], runs[1][1]
    assert mine["state"].keys() == yours["state"].keys()
    for number, state in yours["state"].items():
        names = {key for key, value in state.items() if value is not None}
        assert names <= mine["state"][number].keys()
        for key in names:
            np.testing.assert_allclose(mine["state"][number][key].numpy(), state[key].numpy(), rtol=rtol, atol=1e-7)
    for a, b in zip(mine["param_groups"], yours["param_groups"], strict=True):
        for key in a.keys() & b.keys():
            np.testing.assert_allclose(a[key], b[key], err_msg=key)


def rosenbrock(x):
    return (100 * (x[1:] - x[:-1] ** 2) ** 2 + (1 - x[:-1]) ** 2).sum()


@pytest.mark.parametrize("search", [None, "strong_wolfe"])
@pytest.mark.parametrize("options", [{}, {"history_size": 3, "max_iter": 7}, {"lr": 0.3, "max_eval": 4}], ids=str)
@pytest.mark.parametrize("loss", [rosenbrock, lambda x: (x**4).sum() + (x * x.flip(0)).sum().sin()])
def test_lbfgs(search, options, loss):
    seen: list[Any] = []
    for lib, optimisers in ((mt, optim), (torch, torch.optim)):
        ps = [lib.tensor(numbers(4) * 0.5, requires_grad=True), lib.tensor(numbers(1, 2, seed=1), requires_grad=True)]
        lr = {"lr": 1e-3} if search is None and loss is rosenbrock else {}
        optimizer, found = optimisers.LBFGS(ps, line_search_fn=search, **{**options, **lr}), []

        def closure(optimizer=optimizer, ps=ps):
            optimizer.zero_grad()
            value = loss(ps[0]) + (ps[1] ** 2).sum()
            value.backward()
            return value

        for _ in range(4):
            found += [optimizer.step(closure).item(), *ps[0].tolist(), *ps[1][0].tolist()]
        state = optimizer.state[ps[0]]
        seen.append((found, state["func_evals"], state["n_iter"]))
    assert seen[0][0] == pytest.approx(seen[1][0], rel=1e-5, abs=1e-8)
    assert seen[0][1:] == seen[1][1:]


@pytest.mark.parametrize("rule", [None, "get_ema_multi_avg_fn", "get_ema_avg_fn"])
@pytest.mark.parametrize("buffers", [False, True])
def test_averaged_models(rule, buffers):
    seen: list[Any] = []
    weights = [numbers(4, 3, seed=seed, dtype="float32") for seed in range(4)]
    for lib, layers, utils in ((mt, nn, optim.swa_utils), (torch, torch.nn, torch.optim.swa_utils)):
        model = layers.Sequential(layers.Linear(3, 4), layers.BatchNorm1d(4))
        options = {} if rule is None else {"multi_avg_fn" if "multi" in rule else "avg_fn": getattr(utils, rule)(0.9)}
        average = utils.AveragedModel(model, use_buffers=buffers, **options)
        for weight in weights:
            with lib.no_grad():
                model[0].weight.copy_(lib.tensor(weight))
                model[0].bias.zero_()
            model(lib.tensor(weight))
            average.update_parameters(model)
        found = [{name: each.numpy().copy() for name, each in average.state_dict().items()}]
        utils.update_bn([lib.tensor(weight) for weight in weights], average)
        seen.append([*found, {name: each.numpy() for name, each in average.state_dict().items()}])
    for mine, yours in zip(*seen, strict=True):
        assert list(mine) == [name for name in yours if name != "n_averaged"] or set(mine) == set(yours)
        for name, value in mine.items():
            np.testing.assert_allclose(value, yours[name], rtol=1e-5, atol=1e-6, err_msg=name)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
def test_swalr(strategy):
    seen = []
    for lib, optimisers in ((mt, optim), (torch, torch.optim)):
        optimizer = optimisers.SGD([lib.zeros(1, requires_grad=True)], lr=1.0)
        scheduler = optimisers.swa_utils.SWALR(optimizer, 0.1, anneal_epochs=4, anneal_strategy=strategy)
        rates = []
        for epoch in range(8):
            optimizer.step()
            if epoch == 2:
                optimizer.param_groups[0]["lr"] *= 0.7
            scheduler.step()
            rates.append(optimizer.param_groups[0]["lr"])
        seen.append(rates)
    assert seen[0] == pytest.approx(seen[1])


SCHEDULERS = {
    "StepLR": lambda random: {"step_size": random.randint(1, 4), "gamma": random.choice([0.5, 0.1, 2.0])},
    "CosineAnnealingLR": lambda random: {"T_max": random.randint(1, 6), "eta_min": random.choice([0, 0.01])},
    "LambdaLR": lambda random: {"lr_lambda": lambda epoch: 1 / (1 + epoch)},
    "MultiStepLR": lambda random: {"milestones": random.choices(range(9), k=3), "gamma": random.choice([0.5, 2.0])},
    "ExponentialLR": lambda random: {"gamma": random.choice([0.5, 1.5])},
    "ConstantLR": lambda random: {"factor": random.choice([0.5, 0.1]), "total_iters": random.randint(1, 6)},
    "LinearLR": lambda random: {
        "start_factor": 0.5,
        "end_factor": random.random(),
        "total_iters": random.randint(1, 6),
    },
    "PolynomialLR": lambda random: {"total_iters": random.randint(1, 6), "power": random.choice([1.0, 2.0])},
    "MultiplicativeLR": lambda random: {"lr_lambda": lambda epoch: 1 / (1 + epoch)},
    "CosineAnnealingWarmRestarts": lambda random: {"T_0": random.randint(1, 4), "T_mult": random.randint(1, 3)},
}


def assert_same_rates(make, measured):
    """Rates and momenta of two groups after each step of a scheduler are those of PyTorch."""
    found: list[Any] = []
    for lib, optimisers in ((mt, optim), (torch, torch.optim)):
        groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": rate} for rate in (0.5, 0.1)]
        optimizer = optimisers.SGD(groups, lr=1.0, momentum=0.9)
        scheduler = make(optimisers.lr_scheduler, optimizer)
        seen: list[Any] = []
        for args in measured:
            seen += [(group["lr"], group["momentum"]) for group in optimizer.param_groups]
            optimizer.step()
            scheduler.step(*args)
            seen.append(scheduler.get_last_lr())
        found.append(np.concatenate([np.ravel(each) for each in seen]))
    np.testing.assert_allclose(found[0], found[1], rtol=1e-9)


@pytest.mark.parametrize("strategy", ["cos", "linear"])
@pytest.mark.parametrize("three_phase", [False, True])
def test_one_cycle(strategy, three_phase):
    def make(made, optimizer):
        return made.OneCycleLR(
            optimizer, [0.3, 0.7], epochs=4, steps_per_epoch=3, anneal_strategy=strategy, three_phase=three_phase
        )

    assert_same_rates(make, [()] * 12)


@pytest.mark.parametrize("seed", range(10))
def test_plateaus(seed):
    random = Random(seed)
    options: dict[str, Any] = {"mode": random.choice(["min", "max"]), "threshold_mode": random.choice(["rel", "abs"])}
    options |= {"patience": random.randint(0, 2), "cooldown": random.randint(0, 2), "min_lr": [0.01, 0.002]}
    measured = [(round(random.random(), 1),) for _ in range(20)]
    assert_same_rates(lambda made, o: made.ReduceLROnPlateau(o, **options), measured)


@pytest.mark.parametrize("seed", range(10))
def test_schedulers_in_sequence(seed):
    random = Random(seed)
    names = random.choices(list(SCHEDULERS), k=3)
    options = [SCHEDULERS[name](random) for name in names]

    def make(made, optimizer):
        parts = [getattr(made, name)(optimizer, **each) for name, each in zip(names, options, strict=True)]
        return made.SequentialLR(optimizer, parts[:2], [4]) if seed % 2 else made.ChainedScheduler(parts)

    assert_same_rates(make, [()] * 12)


def test_a_fraction_of_an_epoch():
    make = lambda made, optimizer: made.CosineAnnealingWarmRestarts(optimizer, 2, 2, 0.01)  # noqa: E731
    assert_same_rates(make, [(step / 3,) for step in range(30)])


@pytest.mark.parametrize("seed", range(30))
def test_schedulers(seed):
    """Several groups and schedulers, rates that are set by hand, and a break with everything loaded again."""
    random = Random(seed)
    chosen = [(name, SCHEDULERS[name](random)) for name in random.choices(list(SCHEDULERS), k=random.randint(1, 3))]
    first = [random.choice([0.5, 1.0, 0.1]) for _ in range(random.randint(1, 3))]
    by_hand = {random.randrange(15): random.choice([0.3, 0.7]) for _ in range(2)}
    until = random.choice([3, 7, 99])
    rates: list[Any] = []
    for lib, optimisers in ((mt, optim), (torch, torch.optim)):
        groups = [{"params": [lib.zeros(1, requires_grad=True)], "lr": rate} for rate in first]
        optimizer = optimisers.SGD(groups, lr=1.0)
        last: dict[str, int] = {}
        seen: list[Any] = []
        rates.append(seen)
        made = optimisers.lr_scheduler
        schedulers = [getattr(made, name)(optimizer, **options) for name, options in chosen]
        for epoch in range(15):
            optimizer.step()
            if epoch in by_hand:
                optimizer.param_groups[-1]["lr"] = by_hand[epoch]
            for scheduler in schedulers:
                scheduler.step()
                seen += [group["lr"] for group in optimizer.param_groups] + scheduler.get_last_lr()
            if epoch == until:
                last = {"last_epoch": schedulers[0].last_epoch}
                state = optimizer.state_dict()
                optimizer = optimisers.SGD([{"params": [lib.zeros(1, requires_grad=True)]} for _ in first], lr=1.0)
                optimizer.load_state_dict(state)
                schedulers = [getattr(made, name)(optimizer, **options, **last) for name, options in chosen]
    assert rates[0] == pytest.approx(rates[1])


def test_data_loader_makes_the_same_batches():
    pairs = [(float(number), {"n": number, "array": np.full(2, number)}) for number in range(5)]
    mine = list(mt.data.DataLoader(pairs, batch_size=2))
    yours = list(torch.utils.data.DataLoader(pairs, batch_size=2))
    assert len(mine) == len(yours)
    for (a, b), (c, d) in zip(mine, yours, strict=True):
        np.testing.assert_array_equal(a.numpy(), c.numpy())
        for key in d:
            np.testing.assert_array_equal(b[key].numpy(), d[key].numpy())
