"""Calls of functions under autocast, for this library and for PyTorch: the types of their results are recorded."""

from __future__ import annotations

import warnings
from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Any, Any, Any], Any]

# Each takes the library, its functions of neural networks, and two tensors [4, 4].
CALLS: dict[str, Call] = {
    "matmul": lambda lib, F, a, b: lib.matmul(a, b),
    "@": lambda lib, F, a, b: a @ b,
    "matrix @ vector": lambda lib, F, a, b: a @ b[0],
    "mm": lambda lib, F, a, b: lib.mm(a, b),
    "bmm": lambda lib, F, a, b: lib.bmm(a[None], b[None]),
    "mv": lambda lib, F, a, b: lib.mv(a, b[0]),
    "dot": lambda lib, F, a, b: lib.dot(a[0], b[0]),
    "vdot": lambda lib, F, a, b: lib.vdot(a[0], b[0]),
    "outer": lambda lib, F, a, b: lib.outer(a[0], b[0]),
    "inner": lambda lib, F, a, b: lib.inner(a, b),
    "tensordot": lambda lib, F, a, b: lib.tensordot(a, b, 1),
    "kron": lambda lib, F, a, b: lib.kron(a, b),
    "trace": lambda lib, F, a, b: lib.trace(a),
    "addmm": lambda lib, F, a, b: lib.addmm(a, a, b),
    "addmv": lambda lib, F, a, b: lib.addmv(a[0], a, b[0]),
    "addr": lambda lib, F, a, b: lib.addr(a, a[0], b[0]),
    "baddbmm": lambda lib, F, a, b: lib.baddbmm(a[None], a[None], b[None]),
    "addbmm": lambda lib, F, a, b: lib.addbmm(a, a[None], b[None]),
    "einsum ij,jk->ik": lambda lib, F, a, b: lib.einsum("ij,jk->ik", a, b),
    "einsum ij,ij->ij": lambda lib, F, a, b: lib.einsum("ij,ij->ij", a, b),
    "einsum i,j->ij": lambda lib, F, a, b: lib.einsum("i,j->ij", a[0], b[0]),
    "einsum ij->i": lambda lib, F, a, b: lib.einsum("ij->i", a),
    "linear": lambda lib, F, a, b: F.linear(a, b),
    "linear with bias": lambda lib, F, a, b: F.linear(a, b, b[0]),
    "conv1d": lambda lib, F, a, b: F.conv1d(a[None], b[:, :, None]),
    "conv2d": lambda lib, F, a, b: F.conv2d(a[None, None], b[None, None, :2, :2], b[0, :1]),
    "conv_transpose1d": lambda lib, F, a, b: F.conv_transpose1d(a[None], b[:, :, None], b[0]),
    "conv_transpose2d": lambda lib, F, a, b: F.conv_transpose2d(a[None, None], b[None, None, :2, :2], b[0, :1]),
    "conv3d": lambda lib, F, a, b: F.conv3d(a[None, None, None], b[None, None, None, :2, :2]),
    "scaled_dot_product_attention": lambda lib, F, a, b: F.scaled_dot_product_attention(a[None], b[None], b[None]),
    "mse_loss": lambda lib, F, a, b: F.mse_loss(a, b),
    "l1_loss": lambda lib, F, a, b: F.l1_loss(a, b),
    "huber_loss": lambda lib, F, a, b: F.huber_loss(a, b),
    "smooth_l1_loss": lambda lib, F, a, b: F.smooth_l1_loss(a, b),
    "kl_div": lambda lib, F, a, b: F.kl_div(a, b),
    "binary_cross_entropy": lambda lib, F, a, b: F.binary_cross_entropy(lib.sigmoid(a), lib.sigmoid(b)),
    "binary_cross_entropy_with_logits": lambda lib, F, a, b: F.binary_cross_entropy_with_logits(a, b),
    "cross_entropy": lambda lib, F, a, b: F.cross_entropy(a, lib.arange(4)),
    "cross_entropy of probabilities": lambda lib, F, a, b: F.cross_entropy(a, b),
    "nll_loss": lambda lib, F, a, b: F.nll_loss(a, lib.arange(4)),
    "cosine_similarity": lambda lib, F, a, b: F.cosine_similarity(a, b),
    "normalize": lambda lib, F, a, b: F.normalize(a),
    "layer_norm": lambda lib, F, a, b: F.layer_norm(a, (4,)),
    "batch_norm": lambda lib, F, a, b: F.batch_norm(a, None, None, training=True),
    "softmax": lambda lib, F, a, b: F.softmax(a, 0),
    "log_softmax": lambda lib, F, a, b: F.log_softmax(a, 0),
    "gelu": lambda lib, F, a, b: F.gelu(a),
    "softplus": lambda lib, F, a, b: F.softplus(a),
    "relu": lambda lib, F, a, b: F.relu(a),
    "avg_pool2d": lambda lib, F, a, b: F.avg_pool2d(a[None], 2),
    "max_pool2d": lambda lib, F, a, b: F.max_pool2d(a[None], 2),
    "embedding": lambda lib, F, a, b: F.embedding(lib.arange(4), a),
    "prod": lambda lib, F, a, b: a.prod(),
    "prod of a dimension": lambda lib, F, a, b: lib.prod(a, 0),
    "sum": lambda lib, F, a, b: a.sum(),
    "mean": lambda lib, F, a, b: a.mean(),
    "var": lambda lib, F, a, b: a.var(),
    "cumsum": lambda lib, F, a, b: a.cumsum(0),
    "exp": lambda lib, F, a, b: a.exp(),
    "pow": lambda lib, F, a, b: a**2,
    "add": lambda lib, F, a, b: a + b,
    "mul": lambda lib, F, a, b: a * b,
    "where": lambda lib, F, a, b: lib.where(a > 0, a, b),
    "addcmul": lambda lib, F, a, b: lib.addcmul(a, a, b),
    "cat": lambda lib, F, a, b: lib.cat([a, b]),
    "stack": lambda lib, F, a, b: lib.stack([a, b]),
    "hstack": lambda lib, F, a, b: lib.hstack([a, b]),
}

# The types of the operands, and the lower type.
TYPES = {
    "f32 f32": ("float32", "float32", "bfloat16"),
    "bf16 f32": ("bfloat16", "float32", "bfloat16"),
    "bf16 bf16": ("bfloat16", "bfloat16", "bfloat16"),
    "f64 f64": ("float64", "float64", "bfloat16"),
    "f32 f64": ("float32", "float64", "bfloat16"),
    "f32 f32 to f16": ("float32", "float32", "float16"),
    "f16 f32 to f16": ("float16", "float32", "float16"),
    "bf16 bf16 to f16": ("bfloat16", "bfloat16", "float16"),
}


def type_of(lib: Any, F: Any, call: Call, types: tuple[str, str, str]) -> str:
    """The type of a result under autocast; ``"refused"`` if there is none."""
    of_a, of_b, lower = (getattr(lib, name) for name in types)
    numbers = [[0.1 + (7 * i + 3 * j) % 11 / 16 for j in range(4)] for i in range(4)]
    a, b = lib.tensor(numbers, dtype=of_a), lib.tensor(numbers, dtype=of_b)
    with warnings.catch_warnings(), lib.autocast("cpu", lower):
        warnings.simplefilter("ignore")
        try:
            return str(call(lib, F, a, b).dtype).rpartition(".")[2]
        except (RuntimeError, TypeError, ValueError):
            return "refused"


def types_of(lib: Any, F: Any) -> dict[str, list[str]]:
    """The types of all results, by function, in the order of `TYPES`."""
    return {name: [type_of(lib, F, call, types) for types in TYPES.values()] for name, call in CALLS.items()}
