"""minitorch: a small tensor engine that runs one program in several ways, made to show how frameworks do it.

The same program runs eagerly, in a `Session`, deferred inside `lazy()`, or compiled by `jit`. Names, arguments and
types are PyTorch's wherever PyTorch has an equivalent. ``docs/architecture.md`` is the map of this package.
"""

from __future__ import annotations

import math

from . import autograd, backends, dtypes, errors, functional, primitives
from .autograd import enable_grad, no_grad, set_grad_enabled
from .backends import get_num_threads, set_num_threads
from .dtypes import (
    DType,
    bfloat16,
    float16,
    float32,
    float64,
    int8,
    int16,
    int32,
    int64,
    uint8,
    uint32,
)
from .dtypes import bool_ as bool
from .functional import FUNCTIONS
from .functional.devices import device
from .interpreters import is_grad_enabled
from .packages import names_from as _names_from
from .packages import register as _register
from .tensor import Tensor

__version__ = "0.1.0"

# PyTorch's short names for the types.
half, float, double = float16, float32, float64
short, int, long = int16, int32, int64

inf, nan, pi, e = math.inf, math.nan, math.pi, math.e

globals().update(FUNCTIONS)

_NN_MODULES = (  # the files of `torch.nn.modules`, from which programs import its classes
    "activation batchnorm container conv dropout linear loss module normalization padding pooling rnn sparse "
    "transformer upsampling"
)
_BESIDE = {  # modules of packages beside the engine, by their names in this one; a longer name before its beginning
    "accelerator": "minitorch_torch.accelerator",
    "amp": "minitorch_amp",
    "backends.cudnn": "minitorch_torch.cudnn",
    "backends.mps": "minitorch_torch.accelerator",
    "classroom": "minitorch_grading",
    "course": "minitorch_course",
    "cuda": "minitorch_torch.cuda",
    "debug": "minitorch_checking.debug",
    "distributed": "minitorch_torch.distributed",
    "distributions": "minitorch_torch.distributions",
    "export.onnx_backend": "minitorch_onnx.backend",
    "export": "minitorch_checkpoints",
    "inspect": "minitorch_inspect",
    "linalg": f"{__name__}.functional.linalg",
    "mps": "minitorch_torch.accelerator",
    **{f"nn.modules.{name}": f"{__name__}.nn" for name in _NN_MODULES.split()},
    "nn.modules": f"{__name__}.nn",
    "nn.parallel": "minitorch_torch.parallel",
    "passes.affine": "minitorch_inference.affine",
    "passes.lifting": "minitorch_operators.lifting",
    "primitives.operators": "minitorch_operators",
    "profiler": "minitorch_profiler",
    "quantization": "minitorch_quantization",
    "run": "minitorch_torch.run",
    "sharding": "minitorch_xla.sharding",
    "utils.checkpoint": f"{__name__}.functional.checkpoint",
    "utils.data": f"{__name__}.data",
    "utils": "minitorch_torch.utils",
    "xpu": "minitorch_torch.accelerator",
}
_register(_BESIDE)

_KINDS = "Bool Byte Char Double Float Half Int Long Short"

# Names loaded on first use, each with its module.
_LATER = {
    "Frozen": "minitorch_inference.frozen",
    "Graph": f"{__name__}.modes.ways_in.definition",
    "Jitted": f"{__name__}.modes.ways_in.jit",
    "Operation": f"{__name__}.modes.ways_in.definition",
    "Session": f"{__name__}.modes.ways_in.session",
    "as_torch": "minitorch_torch",
    "autocast": "minitorch_amp",
    "data": f"{__name__}.data",
    "func": f"{__name__}.func",
    **dict.fromkeys(("grad", "hessian", "jacobian", "value_and_grad", "vjp", "vmap"), f"{__name__}.func"),
    **dict.fromkeys(("cond", "fori_loop", "scan", "while_loop"), f"{__name__}.control"),
    "freeze": "minitorch_inference.frozen",
    "get_autocast_dtype": "minitorch_amp",
    "is_autocast_enabled": "minitorch_amp",
    "jit": f"{__name__}.modes.ways_in.jit",
    "lazy": f"{__name__}.modes.ways_in.lazy",
    "load": "minitorch_checkpoints.checkpoints",
    "load_frozen": "minitorch_inference.frozen_graph",
    **dict.fromkeys(("Size", "compile", "inference_mode", "set_printoptions"), "minitorch_torch.functions"),
    **dict.fromkeys(("channels_last", "channels_last_3d", "strided"), "minitorch_torch.functions"),
    **dict.fromkeys(("contiguous_format", "preserve_format"), "minitorch_torch.functions"),
    **{f"{kind}Tensor": "minitorch_torch.tensor_types" for kind in _KINDS.split()},
    "machine": "minitorch_profiler",
    "nn": f"{__name__}.nn",
    "optim": f"{__name__}.optim",
    "passes": f"{__name__}.passes",
    "placeholder": f"{__name__}.modes.ways_in.definition",
    "profile": "minitorch_profiler",
    "save": "minitorch_checkpoints.checkpoints",
    "script": f"{__name__}.scripting",
}
__getattr__, __dir__ = _names_from(__name__, {**_LATER, **{name: f"{__name__}.{name}" for name in _BESIDE}})

__all__ = [
    "BoolTensor", "ByteTensor", "CharTensor", "DType", "DoubleTensor", "FloatTensor", "Frozen", "Graph", "HalfTensor",
    "IntTensor", "Jitted", "LongTensor", "Operation", "Session", "ShortTensor", "Size", "Tensor", "accelerator", "amp",
    "as_torch", "autocast", "autograd", "backends", "bfloat16", "bool", "compile", "cond", "cuda", "data", "debug",
    "device", "distributed", "distributions", "double", "dtypes", "e", "enable_grad", "errors", "export", "float",
    "float16", "float32", "float64", "fori_loop", "freeze", "func", "functional", "get_autocast_dtype",
    "get_num_threads", "grad", "half", "hessian", "inf", "inference_mode", "inspect", "int", "int16", "int32", "int64",
    "int8", "is_autocast_enabled", "is_grad_enabled", "jacobian", "jit", "lazy", "linalg", "load", "load_frozen",
    "long", "machine", "nan", "nn", "no_grad", "optim", "passes", "pi", "placeholder", "primitives", "profile",
    "profiler", "quantization", "save", "scan", "script", "set_grad_enabled", "set_num_threads", "set_printoptions",
    "sharding", "short", "uint32", "uint8", "utils", "value_and_grad", "vjp", "vmap", "while_loop", *FUNCTIONS,
]  # fmt: skip
