"""Who takes part: one row each, in the order of the table's columns."""

from __future__ import annotations

from functools import partial

from ..contenders import Contender
from .libraries import Jitted, OnnxRuntime, Ours, TorchFloat, TorchInt8

UNFROZEN, FROZEN, BFLOAT16, INT8 = "jit", "frozen", "bfloat16", "int8"
INT8_WEIGHTS, INT4_WEIGHTS = "int8 weights", "int4 weights"

TABLE = (
    Contender(UNFROZEN, "minitorch", partial(Ours, frozen=False), "#e8a87c", "o", backend="llvm"),
    Contender(FROZEN, "minitorch", Ours, "#d62839", "o", backend="llvm"),
    Contender(BFLOAT16, "minitorch", partial(Ours, "bfloat16"), "#d62839", "s", backend="llvm"),
    Contender(INT8, "minitorch", partial(Ours, "int8"), "#d62839", "D", backend="llvm"),
    Contender(INT8_WEIGHTS, "minitorch", partial(Ours, "int8 weights"), "#d62839", "^", backend="llvm"),
    Contender(INT4_WEIGHTS, "minitorch", partial(Ours, "int4 weights"), "#d62839", "v", backend="llvm"),
    Contender("JAX", "jax", Jitted, "#222222", "|", rival=True),
    Contender("PyTorch", "torch", TorchFloat, "#8d6cab", "^", rival=True),
    Contender("PyTorch compiled", "torch", partial(TorchFloat, compiled=True), "#5b3a8c", "v", rival=True),
    Contender("PyTorch int8", "torch", TorchInt8, "#8d6cab", "D", rival=True),
    Contender("onnxruntime", "onnxruntime", OnnxRuntime, "#5a9e6f", "^", rival=True),
    Contender("onnxruntime int8", "onnxruntime", partial(OnnxRuntime, "int8"), "#5a9e6f", "D", rival=True),
    Contender("onnxruntime int4", "onnxruntime", partial(OnnxRuntime, "int4 weights"), "#5a9e6f", "v"),
)

CONTENDERS = {contender.name: contender for contender in TABLE}
