"""Layers, norms and losses of neural networks."""

from __future__ import annotations

import math
from typing import Any

from ..arguments import Call, a_dim
from ..program import Ref
from ..scope import Scope, UnfitError
from ..values import Shape
from .table import RECIPES, Recipe, dtype_of, like, maybe, recipe, shape_of


def images(scope: Scope, dims: int, channels: int, least: int = 1) -> Ref:
    """[batch, channels, ...], sometimes without a batch, of floats."""
    lengths = [scope.pick(7, 14, 16, 28, 31) if scope.large else scope.below(9) for _ in range(dims)]
    batch = () if scope.chance(0.1) else (scope.pick(0, 1, 2) if scope.strange else scope.pick(1, 2, 3),)
    return scope.tensor((*batch, channels, *(least + length for length in lengths)), scope.any_dtype("float"))


def convolution(dims: int) -> Recipe:
    """A convolution over so many dimensions."""

    def make(scope: Scope) -> Call:
        groups = scope.pick(1, 1, 1, 2, 3)
        into, out = groups * scope.pick(1, 2, 3), groups * scope.pick(1, 2, 4)
        kernel = tuple(scope.pick(1, 2, 3, 3, 4) for _ in range(dims))
        dilation = scope.pick(1, 1, 1, 2)
        padding = scope.pick(0, 0, 1, 2, "same", "valid")
        stride = 1 if padding == "same" else scope.pick(1, 1, 2, 3)
        x = images(scope, dims, into, least=max((k - 1) * dilation + 1 for k in kernel))
        weight = like(scope, x, (out, into // groups, *kernel))
        bias = like(scope, x, (out,)) if scope.chance(0.5) else None
        return (x, weight, bias, stride, padding, dilation, groups), {}

    return make


RECIPES |= {f"conv{dims}d": convolution(dims) for dims in (1, 2, 3)}


def transposed(dims: int) -> Recipe:
    """A transposed convolution over so many dimensions."""

    def make(scope: Scope) -> Call:
        groups, stride = scope.pick(1, 1, 2), scope.pick(1, 2, 2, 3)
        into, out = groups * scope.pick(1, 2, 3), scope.pick(1, 2, 4)
        x = images(scope, dims, into, least=3)
        weight = like(scope, x, (into, out, *(scope.pick(2, 3, 4) for _ in range(dims))))
        bias = like(scope, x, (out * groups,)) if scope.chance(0.5) else None
        return (x, weight, bias, stride, scope.pick(0, 0, 1), scope.below(stride), groups), {}

    return make


RECIPES |= {f"conv_transpose{dims}d": transposed(dims) for dims in (1, 2)}


def pooling(dims: int, average: bool) -> Recipe:
    """A pooling over so many dimensions."""

    def make(scope: Scope) -> Call:
        kernel = scope.pick(1, 2, 2, 3, 3)
        x = images(scope, dims, scope.pick(1, 2, 3), least=kernel)
        named = maybe(scope, stride=(1, 2, 3), padding=range(kernel // 2 + 1))
        named |= maybe(scope, count_include_pad=(True, False)) if average else {}
        return (x, kernel), named

    return make


def adaptive(dims: int) -> Recipe:
    """A pooling to a length that is given."""

    def make(scope: Scope) -> Call:
        return (images(scope, dims, scope.pick(1, 2)), scope.pick(1, 2, 3)), {}

    return make


for _dims in (1, 2):
    RECIPES |= {f"max_pool{_dims}d": pooling(_dims, False), f"avg_pool{_dims}d": pooling(_dims, True)}
    RECIPES |= dict.fromkeys((f"adaptive_avg_pool{_dims}d", f"adaptive_max_pool{_dims}d"), adaptive(_dims))


@recipe("linear")
def _linear(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    out = scope.length()
    bias = like(scope, x, (out,)) if scope.chance(0.6) else None
    return (x, like(scope, x, (out, shape_of(scope, x)[-1])), bias), {}


def scaled(scope: Scope, x: Ref, shape: Shape) -> dict[str, Any]:
    """A weight and a bias, or only one, or none."""
    return {name: like(scope, x, shape) for name in ("weight", "bias") if scope.chance(0.4)}


@recipe("batch_norm")
def _batch_norm(scope: Scope) -> Call:
    x = scope.with_dims(2, 4, "float")
    shape = shape_of(scope, x)[1:2]
    training = scope.chance(0.6)
    dtype = dtype_of(scope, x)
    running = [
        scope.input(shape, dtype, kind) if not training or scope.chance(0.6) else None for kind in ("normal", "unit")
    ]
    if None in running:
        running = [None, None]
    return (x, *running), {**scaled(scope, x, shape), "training": training}


@recipe("layer_norm")
def _layer_norm(scope: Scope) -> Call:
    x = scope.with_dims(1, 4, "float")
    shape = shape_of(scope, x)[-scope.pick(1, 1, 2) :]
    return (x, shape), scaled(scope, x, shape)


@recipe("rms_norm")
def _rms_norm(scope: Scope) -> Call:
    args, named = _layer_norm(scope)
    named.pop("bias", None)
    return args, named


@recipe("group_norm")
def _group_norm(scope: Scope) -> Call:
    x = scope.with_dims(2, 4, "float")
    channels = shape_of(scope, x)[1]
    groups = [n for n in range(1, channels + 1) if channels % n == 0] or [1, 2]
    return (x, scope.pick(*groups)), scaled(scope, x, (channels,))


@recipe("instance_norm")
def _instance_norm(scope: Scope) -> Call:
    x = scope.with_dims(3, 4, "float")
    return (x,), scaled(scope, x, shape_of(scope, x)[1:2])


@recipe("local_response_norm")
def _local_response_norm(scope: Scope) -> Call:
    return (scope.with_dims(3, 4, "float"), scope.pick(1, 2, 3, 5)), maybe(scope, alpha=(0.1, 1.0), beta=(0.5, 1.0))


@recipe("interpolate")
def _interpolate(scope: Scope) -> Call:
    dims = scope.pick(1, 2)
    x = images(scope, dims, scope.pick(1, 2))
    mode = scope.pick("nearest", "nearest-exact", "area", *(("linear",) if dims == 1 else ("bilinear", "bicubic")))
    named: dict[str, Any] = {"mode": mode}
    named |= {"size": scope.pick(1, 3, 8)} if scope.chance(0.5) else {"scale_factor": scope.pick(2, 3, 0.5, 1.5)}
    return (x,), named | (maybe(scope, align_corners=(True, False)) if "linear" in mode or mode == "bicubic" else {})


@recipe("pixel_shuffle", "pixel_unshuffle")
def _shuffle(scope: Scope) -> Call:
    by = scope.pick(1, 2, 3)
    shape = (
        *scope.any_shape(scope.below(2)),
        by * by * scope.pick(1, 2),
        by * scope.pick(1, 2, 5),
        by * scope.pick(1, 3),
    )
    return (scope.tensor(shape, scope.any_dtype("float")), by), {}


@recipe("glu")
def _glu(scope: Scope) -> Call:
    return (scope.tensor((*scope.any_shape(scope.below(3)), 2 * scope.length()), scope.any_dtype("float")),), {}


@recipe("prelu")
def _prelu(scope: Scope) -> Call:
    x = scope.with_dims(2, 4, "float")
    return (x, like(scope, x, (scope.pick(1, shape_of(scope, x)[1]),))), {}


@recipe("embedding")
def _embedding(scope: Scope) -> Call:
    table = scope.with_dims(2, 2, "float")
    return (scope.indices(scope.any_shape(scope.below(3)), shape_of(scope, table)[0]), table), {}


@recipe("embedding_bag")
def _embedding_bag(scope: Scope) -> Call:
    table = scope.with_dims(2, 2, "float")
    index = scope.indices((scope.pick(1, 2, 3), scope.pick(1, 2, 4)), shape_of(scope, table)[0])
    return (index, table), maybe(scope, mode=("mean", "sum", "max"))


@recipe("bilinear")
def _bilinear(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    shape, features, out = shape_of(scope, x), scope.length(), scope.pick(1, 2, 3)
    return (x, like(scope, x, (*shape[:-1], features)), like(scope, x, (out, shape[-1], features))), {}


@recipe("fold")
def _fold(scope: Scope) -> Call:
    height, width, size = scope.pick(2, 3, 5), scope.pick(2, 4), scope.pick(1, 2)
    places = (height - size + 1) * (width - size + 1)
    return (
        scope.tensor((scope.pick(1, 2), 2 * size * size, places), scope.any_dtype("float")),
        (height, width),
        size,
    ), {}


@recipe("affine_grid")
def _affine_grid(scope: Scope) -> Call:
    n = scope.pick(1, 2)
    theta = scope.tensor((n, 2, 3), scope.pick("float32", "float64"))
    return (theta, (n, 1, scope.pick(2, 3), scope.pick(2, 4))), maybe(scope, align_corners=(True, False))


@recipe("grid_sample")
def _grid_sample(scope: Scope) -> Call:
    n, dtype = scope.pick(1, 2), scope.pick("float32", "float64")
    x = scope.tensor((n, scope.pick(1, 3), scope.pick(1, 2, 5), scope.pick(1, 4)), dtype)
    grid = scope.tensor((n, scope.pick(1, 3), scope.pick(1, 2), 2), dtype)
    padding = ("zeros", "border", "reflection")
    return (x, grid), {"align_corners": scope.chance(0.5)} | maybe(scope, padding_mode=padding)


@recipe("one_hot")
def _one_hot(scope: Scope) -> Call:
    count = scope.pick(1, 3, 10)
    return (scope.input(scope.any_shape(scope.below(3)), "int64", f"below {count}"), count), {}


def reduced(scope: Scope) -> dict[str, Any]:
    """How a loss is put together."""
    return maybe(scope, reduction=("none", "mean", "sum"))


@recipe("mse_loss", "l1_loss", "huber_loss", "smooth_l1_loss", "kl_div")
def _loss(scope: Scope) -> Call:
    x = scope.tensor(category="float")
    return (x, like(scope, x, shape_of(scope, x))), reduced(scope)


@recipe("ctc_loss")
def _ctc_loss(scope: Scope) -> Call:
    time, batch, length = scope.pick(3, 5), scope.pick(1, 2), scope.pick(1, 2)
    x = scope.tensor((time, batch, 4), scope.pick("float32", "float64"))
    return (x, scope.indices((batch, length), 4), [time] * batch, [length] * batch), reduced(scope)


@recipe("soft_margin_loss", "multilabel_soft_margin_loss", "hinge_embedding_loss", "poisson_nll_loss")
def _signed_loss(scope: Scope) -> Call:
    x = scope.with_dims(1, 4, "float")
    return (x, scope.input(shape_of(scope, x), dtype_of(scope, x), "unit")), reduced(scope)


@recipe("margin_ranking_loss", "triplet_margin_loss", "triplet_margin_with_distance_loss")
def _loss_of_three(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    others = [like(scope, x, shape_of(scope, x)) for _ in range(2)]
    return (x, *others), reduced(scope)


@recipe("gaussian_nll_loss")
def _gaussian_nll(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    shape, dtype = shape_of(scope, x), dtype_of(scope, x)
    return (x, like(scope, x, shape), scope.input(shape, dtype, "unit")), reduced(scope)


@recipe("cosine_embedding_loss")
def _cosine_embedding(scope: Scope) -> Call:
    x = scope.with_dims(2, 2, "float")
    shape = shape_of(scope, x)
    return (x, like(scope, x, shape), scope.indices(shape[:1], 2)), reduced(scope)


@recipe("pairwise_distance")
def _pairwise(scope: Scope) -> Call:
    x = scope.with_dims(1, 3, "float")
    return (x, like(scope, x, shape_of(scope, x))), maybe(scope, p=(1.0, 2.0, 3.0), keepdim=(True, False))


@recipe("multi_margin_loss")
def _multi_margin(scope: Scope) -> Call:
    x = scope.with_dims(2, 2, "float")
    shape = shape_of(scope, x)
    return (x, scope.indices(shape[:1], shape[1])), reduced(scope)


@recipe("multilabel_margin_loss")
def _multilabel_margin(scope: Scope) -> Call:
    x = scope.with_dims(2, 2, "float")
    shape = shape_of(scope, x)
    return (x, scope.indices(shape, shape[1])), reduced(scope)


@recipe("binary_cross_entropy", "binary_cross_entropy_with_logits")
def _binary(scope: Scope) -> Call:
    shape, dtype = scope.shape, scope.any_dtype("float")
    return (scope.input(shape, dtype, "unit"), scope.input(shape, dtype, "unit")), reduced(scope)


def classes(scope: Scope) -> tuple[Ref, Ref, int]:
    """Scores [n, classes] or [n, classes, d] and labels."""
    x = scope.with_dims(1, 3, "float")
    shape = shape_of(scope, x)
    place = 1 if len(shape) > 1 else 0
    return x, scope.indices((*shape[:place], *shape[place + 1 :]), shape[place]), shape[place]


@recipe("cross_entropy")
def _cross_entropy(scope: Scope) -> Call:
    x, labels, count = classes(scope)
    named = reduced(scope) | maybe(scope, label_smoothing=(0.1, 0.5), ignore_index=(0, 1))
    if scope.chance(0.2):
        named["weight"] = scope.input((count,), dtype_of(scope, x), "unit")
    if scope.chance(0.2):
        return (x, scope.input(shape_of(scope, x), dtype_of(scope, x), "unit")), reduced(scope)
    return (x, labels), named


@recipe("nll_loss")
def _nll_loss(scope: Scope) -> Call:
    x, labels, _ = classes(scope)
    return (x, labels), reduced(scope)


@recipe("scaled_dot_product_attention")
def _attention(scope: Scope) -> Call:
    batch = scope.any_shape(scope.pick(0, 1, 2))
    n, m, k, v = (scope.length() for _ in range(4))
    dtype = scope.any_dtype("float")
    causal = scope.chance(0.4)
    if math.prod(batch) * n * m > 300_000:
        raise UnfitError
    query, key = scope.tensor((*batch, n, k), dtype), scope.tensor((*batch, m, k), dtype)
    named: dict[str, Any] = {"is_causal": True} if causal else {}
    if not causal and scope.chance(0.3):
        named["attn_mask"] = scope.tensor((n, m), scope.pick("bool", dtype))
    return (query, key, scope.tensor((*batch, m, v), dtype)), named


@recipe("cosine_similarity")
def _cosine(scope: Scope) -> Call:
    x = scope.with_dims(1, 4, "float")
    return (x, like(scope, x, scope.broadcastable(shape_of(scope, x)))), {"dim": a_dim(scope, x)}
