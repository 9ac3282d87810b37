"""Operators: compositions of primitives as one node, under the names by which other systems know them.

`ir.OPERATORS` is the table. Only lifting writes them (`lifting`), on the way to ONNX and XLA. Each has
a rule of shapes and a definition in NumPy, so that a lifted graph can be interpreted, and compared with the graph that
it was lifted from. None has a gradient: a graph is differentiated before it is lifted.
"""

from .activations import clip, elu, hardsigmoid, hardswish, leaky_relu, mish, softplus, softsign
from .attention import attention
from .choices import argmin, ceil, isnan, mean, minimum, reduce_min, take_along, topk
from .functions import (
    batch_norm,
    gelu,
    group_norm,
    layer_norm,
    log_softmax,
    relu,
    rms_norm,
    sigmoid,
    signbit,
    silu,
    softmax,
)
from .layers import avg_pool, conv, gemm, matmul, max_pool
from .quantized import dequantize, quantize
from .recurrent import gru, lstm, rnn_relu, rnn_tanh
from .sizes import size

__all__ = [
    "argmin",
    "attention",
    "avg_pool",
    "batch_norm",
    "ceil",
    "clip",
    "conv",
    "dequantize",
    "elu",
    "gelu",
    "gemm",
    "group_norm",
    "gru",
    "hardsigmoid",
    "hardswish",
    "isnan",
    "layer_norm",
    "leaky_relu",
    "log_softmax",
    "lstm",
    "matmul",
    "max_pool",
    "mean",
    "minimum",
    "mish",
    "quantize",
    "reduce_min",
    "relu",
    "rms_norm",
    "rnn_relu",
    "rnn_tanh",
    "sigmoid",
    "signbit",
    "silu",
    "size",
    "softmax",
    "softplus",
    "softsign",
    "take_along",
    "topk",
]
