# Written by `make stubs` from the package itself; do not edit.
"""minitorch: a small tensor engine that runs one program in several ways, made to show how frameworks do it."""

import builtins
from collections.abc import Sequence
from typing import Any

import minitorch_amp as amp
import minitorch_checkpoints as export
import minitorch_inspect as inspect
import minitorch_profiler as profiler
import minitorch_quantization as quantization
from minitorch.functional import linalg as linalg
from minitorch_amp.autocast_mode import autocast as autocast
from minitorch_amp.autocast_mode import get_autocast_dtype as get_autocast_dtype
from minitorch_amp.autocast_mode import is_autocast_enabled as is_autocast_enabled
from minitorch_checking import debug as debug
from minitorch_checkpoints.checkpoints.loading import load as load
from minitorch_checkpoints.checkpoints.writing import save as save
from minitorch_inference.frozen import Frozen as Frozen
from minitorch_inference.frozen import freeze as freeze
from minitorch_inference.frozen_graph import load_frozen as load_frozen
from minitorch_profiler.machines import machine as machine
from minitorch_profiler.profile import profile as profile
from minitorch_torch import accelerator as accelerator
from minitorch_torch import cuda as cuda
from minitorch_torch import distributed as distributed
from minitorch_torch import distributions as distributions
from minitorch_torch import utils as utils
from minitorch_torch.functions import Size as Size
from minitorch_torch.functions import compile as compile
from minitorch_torch.functions import inference_mode as inference_mode
from minitorch_torch.functions import set_printoptions as set_printoptions
from minitorch_torch.standing_in import as_torch as as_torch
from minitorch_torch.tensor_types import BoolTensor as BoolTensor
from minitorch_torch.tensor_types import ByteTensor as ByteTensor
from minitorch_torch.tensor_types import CharTensor as CharTensor
from minitorch_torch.tensor_types import DoubleTensor as DoubleTensor
from minitorch_torch.tensor_types import FloatTensor as FloatTensor
from minitorch_torch.tensor_types import HalfTensor as HalfTensor
from minitorch_torch.tensor_types import IntTensor as IntTensor
from minitorch_torch.tensor_types import LongTensor as LongTensor
from minitorch_torch.tensor_types import ShortTensor as ShortTensor
from minitorch_xla import sharding as sharding

from . import autograd as autograd
from . import backends as backends
from . import data as data
from . import dtypes as dtypes
from . import errors as errors
from . import func as func
from . import functional as functional
from . import nn as nn
from . import optim as optim
from . import passes as passes
from . import primitives as primitives
from .autograd.grad_mode import enable_grad as enable_grad
from .autograd.grad_mode import no_grad as no_grad
from .autograd.grad_mode import set_grad_enabled as set_grad_enabled
from .backends import get_num_threads as get_num_threads
from .backends import set_num_threads as set_num_threads
from .control.control_flow import cond as cond
from .control.control_flow import fori_loop as fori_loop
from .control.control_flow import scan as scan
from .control.control_flow import while_loop as while_loop
from .dtypes import DType as DType
from .dtypes import bfloat16 as bfloat16
from .dtypes import bool_ as bool
from .dtypes import float16 as float16
from .dtypes import float16 as half
from .dtypes import float32 as float
from .dtypes import float32 as float32
from .dtypes import float64 as double
from .dtypes import float64 as float64
from .dtypes import int8 as int8
from .dtypes import int16 as int16
from .dtypes import int16 as short
from .dtypes import int32 as int
from .dtypes import int32 as int32
from .dtypes import int64 as int64
from .dtypes import int64 as long
from .dtypes import promote_types as promote_types
from .dtypes import uint8 as uint8
from .dtypes import uint32 as uint32
from .func.jacobians import hessian as hessian
from .func.jacobians import jacobian as jacobian
from .func.mapping import vmap as vmap
from .func.transforms import grad as grad
from .func.transforms import value_and_grad as value_and_grad
from .func.transforms import vjp as vjp
from .functional.checkpoint import checkpoint as checkpoint
from .functional.conversion import from_dlpack as from_dlpack
from .functional.creation.data import as_tensor as as_tensor
from .functional.creation.data import from_numpy as from_numpy
from .functional.creation.generator import Generator as Generator
from .functional.creation.generator import initial_seed as initial_seed
from .functional.creation.generator import manual_seed as manual_seed
from .functional.creation.generator import seed as seed
from .functional.creation.random import bernoulli as bernoulli
from .functional.creation.random import multinomial as multinomial
from .functional.devices import device as device
from .functional.movement.arranging import cat as cat
from .functional.movement.arranging import cat as concat
from .functional.movement.arranging import cat as concatenate
from .functional.movement.arranging import diag as diag
from .functional.movement.arranging import diag_embed as diag_embed
from .functional.movement.arranging import flip as flip
from .functional.movement.arranging import hstack as hstack
from .functional.movement.arranging import meshgrid as meshgrid
from .functional.movement.arranging import pad as pad
from .functional.movement.arranging import repeat_interleave as repeat_interleave
from .functional.movement.arranging import roll as roll
from .functional.movement.arranging import stack as stack
from .functional.movement.arranging import tile as tile
from .functional.movement.arranging import vstack as row_stack
from .functional.movement.arranging import vstack as vstack
from .functional.movement.gathering import argwhere as argwhere
from .functional.movement.gathering import gather as gather
from .functional.movement.gathering import index_add as index_add
from .functional.movement.gathering import index_copy as index_copy
from .functional.movement.gathering import index_fill as index_fill
from .functional.movement.gathering import index_select as index_select
from .functional.movement.gathering import masked_fill as masked_fill
from .functional.movement.gathering import masked_select as masked_select
from .functional.movement.gathering import nonzero as nonzero
from .functional.movement.gathering import put as put
from .functional.movement.gathering import scatter as scatter
from .functional.movement.gathering import scatter_add as scatter_add
from .functional.movement.gathering import scatter_reduce as scatter_reduce
from .functional.movement.gathering import take as take
from .functional.movement.gathering import take_along_dim as take_along_dim
from .functional.movement.parts import chunk as chunk
from .functional.movement.parts import diagonal as diagonal
from .functional.movement.parts import narrow as narrow
from .functional.movement.parts import select as select
from .functional.movement.parts import split as split
from .functional.movement.parts import tensor_split as tensor_split
from .functional.movement.parts import unbind as unbind
from .functional.movement.selection import clamp as clamp
from .functional.movement.selection import clamp as clip
from .functional.movement.selection import clamp_max as clamp_max
from .functional.movement.selection import clamp_min as clamp_min
from .functional.movement.selection import fmax as fmax
from .functional.movement.selection import fmin as fmin
from .functional.movement.selection import maximum as maximum
from .functional.movement.selection import minimum as minimum
from .functional.movement.selection import relu as relu
from .functional.movement.selection import where as where
from .functional.movement.shaping import broadcast_shapes as broadcast_shapes
from .functional.movement.shaping import broadcast_tensors as broadcast_tensors
from .functional.movement.shaping import broadcast_to as broadcast_to
from .functional.movement.shaping import flatten as flatten
from .functional.movement.shaping import movedim as moveaxis
from .functional.movement.shaping import movedim as movedim
from .functional.movement.shaping import permute as permute
from .functional.movement.shaping import ravel as ravel
from .functional.movement.shaping import reshape as reshape
from .functional.movement.shaping import squeeze as squeeze
from .functional.movement.shaping import swapaxes as swapaxes
from .functional.movement.shaping import t as t
from .functional.movement.shaping import transpose as swapdims
from .functional.movement.shaping import transpose as transpose
from .functional.movement.shaping import unflatten as unflatten
from .functional.movement.shaping import unsqueeze as unsqueeze
from .functional.operands import Number, Operand
from .functional.operands import result_type as result_type
from .functional.pointwise.arithmetic import add as add
from .functional.pointwise.arithmetic import div as div
from .functional.pointwise.arithmetic import div as divide
from .functional.pointwise.arithmetic import div as true_divide
from .functional.pointwise.arithmetic import floor_divide as floor_divide
from .functional.pointwise.arithmetic import fmod as fmod
from .functional.pointwise.arithmetic import mul as mul
from .functional.pointwise.arithmetic import mul as multiply
from .functional.pointwise.arithmetic import pow as pow
from .functional.pointwise.arithmetic import remainder as remainder
from .functional.pointwise.arithmetic import sub as sub
from .functional.pointwise.arithmetic import sub as subtract
from .functional.pointwise.casting import can_cast as can_cast
from .functional.pointwise.casting import clone as clone
from .functional.pointwise.casting import finfo as finfo
from .functional.pointwise.casting import get_default_dtype as get_default_dtype
from .functional.pointwise.casting import iinfo as iinfo
from .functional.pointwise.casting import is_floating_point as is_floating_point
from .functional.pointwise.casting import is_tensor as is_tensor
from .functional.pointwise.casting import numel as numel
from .functional.pointwise.comparison import allclose as allclose
from .functional.pointwise.comparison import bitwise_not as bitwise_not
from .functional.pointwise.comparison import equal as equal
from .functional.pointwise.comparison import isclose as isclose
from .functional.pointwise.comparison import isfinite as isfinite
from .functional.pointwise.comparison import isinf as isinf
from .functional.pointwise.comparison import isnan as isnan
from .functional.pointwise.comparison import logical_not as logical_not
from .functional.pointwise.compound import addcdiv as addcdiv
from .functional.pointwise.compound import addcmul as addcmul
from .functional.pointwise.compound import atan2 as arctan2
from .functional.pointwise.compound import atan2 as atan2
from .functional.pointwise.compound import copysign as copysign
from .functional.pointwise.compound import hypot as hypot
from .functional.pointwise.compound import lerp as lerp
from .functional.pointwise.compound import logaddexp as logaddexp
from .functional.pointwise.compound import xlogy as xlogy
from .functional.pointwise.elementwise import logit as logit
from .functional.pointwise.elementwise import nan_to_num as nan_to_num
from .functional.pointwise.elementwise import positive as positive
from .functional.pointwise.elementwise import round as round
from .functional.reducing.contraction import einsum as einsum
from .functional.reducing.extremes import amax as amax
from .functional.reducing.extremes import amin as amin
from .functional.reducing.extremes import aminmax as aminmax
from .functional.reducing.extremes import argmax as argmax
from .functional.reducing.extremes import argmin as argmin
from .functional.reducing.extremes import max as max
from .functional.reducing.extremes import min as min
from .functional.reducing.linalg import addbmm as addbmm
from .functional.reducing.linalg import addmm as addmm
from .functional.reducing.linalg import addmv as addmv
from .functional.reducing.linalg import addr as addr
from .functional.reducing.linalg import baddbmm as baddbmm
from .functional.reducing.linalg import bmm as bmm
from .functional.reducing.linalg import cdist as cdist
from .functional.reducing.linalg import cholesky as cholesky
from .functional.reducing.linalg import cross as cross
from .functional.reducing.linalg import det as det
from .functional.reducing.linalg import dot as dot
from .functional.reducing.linalg import inner as inner
from .functional.reducing.linalg import inverse as inverse
from .functional.reducing.linalg import kron as kron
from .functional.reducing.linalg import logdet as logdet
from .functional.reducing.linalg import matmul as matmul
from .functional.reducing.linalg import matrix_power as matrix_power
from .functional.reducing.linalg import mm as mm
from .functional.reducing.linalg import mv as mv
from .functional.reducing.linalg import outer as ger
from .functional.reducing.linalg import outer as outer
from .functional.reducing.linalg import pinverse as pinverse
from .functional.reducing.linalg import qr as qr
from .functional.reducing.linalg import slogdet as slogdet
from .functional.reducing.linalg import svd as svd
from .functional.reducing.linalg import tensordot as tensordot
from .functional.reducing.linalg import trace as trace
from .functional.reducing.linalg import vdot as vdot
from .functional.reducing.ordering import Ordered
from .functional.reducing.ordering import argsort as argsort
from .functional.reducing.ordering import bincount as bincount
from .functional.reducing.ordering import bucketize as bucketize
from .functional.reducing.ordering import histc as histc
from .functional.reducing.ordering import histogram as histogram
from .functional.reducing.ordering import isin as isin
from .functional.reducing.ordering import median as median
from .functional.reducing.ordering import msort as msort
from .functional.reducing.ordering import searchsorted as searchsorted
from .functional.reducing.ordering import sort as sort
from .functional.reducing.ordering import topk as topk
from .functional.reducing.ordering import unique as unique
from .functional.reducing.reductions import all as all
from .functional.reducing.reductions import any as any
from .functional.reducing.reductions import count_nonzero as count_nonzero
from .functional.reducing.reductions import cumprod as cumprod
from .functional.reducing.reductions import cumsum as cumsum
from .functional.reducing.reductions import diff as diff
from .functional.reducing.reductions import log_softmax as log_softmax
from .functional.reducing.reductions import logsumexp as logsumexp
from .functional.reducing.reductions import nansum as nansum
from .functional.reducing.reductions import norm as norm
from .functional.reducing.reductions import prod as prod
from .functional.reducing.reductions import softmax as softmax
from .functional.reducing.reductions import sum as sum
from .functional.reducing.statistics import mean as mean
from .functional.reducing.statistics import nanmean as nanmean
from .functional.reducing.statistics import std as std
from .functional.reducing.statistics import std_mean as std_mean
from .functional.reducing.statistics import var as var
from .functional.reducing.statistics import var_mean as var_mean
from .interpreters.state import is_grad_enabled as is_grad_enabled
from .modes.ways_in.definition import Graph as Graph
from .modes.ways_in.definition import Operation as Operation
from .modes.ways_in.definition import placeholder as placeholder
from .modes.ways_in.jit import Jitted as Jitted
from .modes.ways_in.jit import jit as jit
from .modes.ways_in.lazy import lazy as lazy
from .modes.ways_in.session import Session as Session
from .scripting import script as script
from .tensor import Tensor as Tensor

__version__: str
e: builtins.float
inf: builtins.float
nan: builtins.float
pi: builtins.float

def arange(
    start: Any = None,
    end: Any = None,
    step: Any = 1,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Return numbers from `start` up to, but not including, `end`; ``arange(end)`` starts from 0."""

def empty(
    *lengths: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
) -> Tensor:
    """Return a tensor to be written (it holds zeros), float32 unless `dtype` says otherwise."""

def empty_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Return a tensor to be written (it holds zeros), with the shape and type of another one."""

def eye(
    n: builtins.int,
    m: builtins.int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Return a matrix with ones on the diagonal and zeros elsewhere, n by n or n by m."""

def full(
    size: builtins.int | Sequence[builtins.int],
    fill_value: Any,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Return a tensor with one number (or the value of a 0-dimensional tensor) in every element."""

def full_like(
    input: Tensor, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
) -> Tensor:
    """Return a tensor with one number in every element, with the shape and type of another one."""

def linspace(
    start: Number,
    end: Number,
    steps: builtins.int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Return a number of evenly spaced values from `start` to `end`, both included."""

def logspace(
    start: Number,
    end: Number,
    steps: builtins.int,
    base: builtins.float = 10.0,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
) -> Tensor:
    """Return `base` to the power of evenly spaced numbers from `start` to `end`, both included, computed in float64."""

def ones(
    *lengths: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
) -> Tensor:
    """Return a tensor of ones, float32 unless `dtype` says otherwise."""

def ones_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Return a tensor of ones, with the shape and type of another one."""

def zeros(
    *lengths: Any, size: Any = None, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
) -> Tensor:
    """Return a tensor of zeros, float32 unless `dtype` says otherwise."""

def zeros_like(input: Tensor, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Return a tensor of zeros, with the shape and type of another one."""

def tensor(data: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False) -> Tensor:
    """Return a new tensor that holds a copy of data, without history."""

default_generator: Generator

def normal(
    mean: Any = 0.0,
    std: Any = 1.0,
    size: Sequence[builtins.int] | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers with given mean and standard deviation, numbers or tensors; `dtype` is for numbers."""

def rand(
    *lengths: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return uniform random numbers in [0, 1)."""

def rand_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return uniform random numbers in [0, 1), with the shape and type of another tensor."""

def randint(
    low: builtins.int = 0,
    high: Any = None,
    size: Any = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers from `low` (0 if left out) up to, but not including, `high`."""

def randint_like(
    input: Tensor,
    low: builtins.int = 0,
    high: builtins.int | None = None,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return random integers in the shape and type of another tensor."""

def randn(
    *lengths: Any,
    size: Any = None,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers with mean 0 and variance 1."""

def randn_like(
    input: Tensor,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return normal random numbers, with the shape and type of another tensor."""

def randperm(
    n: builtins.int,
    *,
    dtype: Any = None,
    device: Any = None,
    requires_grad: builtins.bool = False,
    generator: Generator | None = None,
) -> Tensor:
    """Return the integers from 0 to n-1 in a random order: the order that sorts random numbers."""

def fliplr(input: Tensor) -> Tensor:
    """Return the columns in reverse order."""

def flipud(input: Tensor) -> Tensor:
    """Return the rows in reverse order."""

def tril(input: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """Return the matrix with zeros above a diagonal; `diagonal` counts diagonals to the right."""

def triu(input: Tensor, diagonal: builtins.int = 0) -> Tensor:
    """Return the matrix with zeros below a diagonal; `diagonal` counts diagonals to the right."""

def atleast_1d(*tensors: Any) -> Any:
    """Add dimensions of length 1 up to 1; return a tuple for several tensors."""

def atleast_2d(*tensors: Any) -> Any:
    """Add dimensions of length 1 up to 2; return a tuple for several tensors."""

def atleast_3d(*tensors: Any) -> Any:
    """Add dimensions of length 1 up to 3; return a tuple for several tensors."""

def bitwise_and(input: Operand, other: Operand) -> Tensor:
    """Return the bits that both operands have, element by element."""

def bitwise_left_shift(input: Operand, other: Operand) -> Tensor:
    """Return the first times 2 to the power of the second, element by element."""

def bitwise_or(input: Operand, other: Operand) -> Tensor:
    """Return the bits that one of the operands has, element by element."""

def bitwise_right_shift(input: Operand, other: Operand) -> Tensor:
    """Return the first divided by 2 to the power of the second, rounded down, element by element."""

def bitwise_xor(input: Operand, other: Operand) -> Tensor:
    """Return the bits that only one of them has, element by element."""

def eq(input: Operand, other: Operand) -> Tensor:
    """Return whether the operands are equal; NaN equals nothing, element by element."""

def ge(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is not smaller, element by element."""

def greater(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is larger, element by element."""

def greater_equal(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is not smaller, element by element."""

def gt(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is larger, element by element."""

def le(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is not larger, element by element."""

def less(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is smaller, element by element."""

def less_equal(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is not larger, element by element."""

def logical_and(input: Operand, other: Operand) -> Tensor:
    """Return whether both are other than 0, element by element."""

def logical_or(input: Operand, other: Operand) -> Tensor:
    """Return whether one is other than 0, element by element."""

def logical_xor(input: Operand, other: Operand) -> Tensor:
    """Return whether only one is other than 0, element by element."""

def lt(input: Operand, other: Operand) -> Tensor:
    """Return whether the first is smaller, element by element."""

def ne(input: Operand, other: Operand) -> Tensor:
    """Return whether they differ, element by element."""

def not_equal(input: Operand, other: Operand) -> Tensor:
    """Return whether they differ, element by element."""

def abs(input: Tensor) -> Tensor:
    """Return the absolute value, for each element. The type stays."""

def absolute(input: Tensor) -> Tensor:
    """Return the absolute value, for each element. The type stays."""

def acos(input: Tensor) -> Tensor:
    """Return the angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def acosh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""

def arccos(input: Tensor) -> Tensor:
    """Return the angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def arccosh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""

def arcsin(input: Tensor) -> Tensor:
    """Return the angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def arcsinh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""

def arctan(input: Tensor) -> Tensor:
    """Return the angle whose tangent is x, for each element. Integers are converted to float32 first."""

def arctanh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def asin(input: Tensor) -> Tensor:
    """Return the angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def asinh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""

def atan(input: Tensor) -> Tensor:
    """Return the angle whose tangent is x, for each element. Integers are converted to float32 first."""

def atanh(input: Tensor) -> Tensor:
    """Return the number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""

def ceil(input: Tensor) -> Tensor:
    """Return the smallest whole number not below x, for each element. Integers stay as they are."""

def cos(input: Tensor) -> Tensor:
    """Return the cosine of x radians, for each element. Integers are converted to float32 first."""

def cosh(input: Tensor) -> Tensor:
    """Return the hyperbolic cosine, for each element. Integers are converted to float32 first."""

def deg2rad(input: Tensor) -> Tensor:
    """Return degrees as radians, for each element. Integers are converted to float32 first."""

def digamma(input: Tensor) -> Tensor:
    """Return the derivative of lgamma, for each element. Integers are converted to float32 first."""

def erf(input: Tensor) -> Tensor:
    """Return the error function, for each element. Integers are converted to float32 first."""

def erfc(input: Tensor) -> Tensor:
    """Return 1 - erf(x), exact also for large x, for each element. Integers are converted to float32 first."""

def exp(input: Tensor) -> Tensor:
    """Return e to the power x, for each element. Integers are converted to float32 first."""

def exp2(input: Tensor) -> Tensor:
    """Return 2 to the power x, for each element. Integers are converted to float32 first."""

def expm1(input: Tensor) -> Tensor:
    """Return exp(x) - 1, exact near 0, for each element. Integers are converted to float32 first."""

def fix(input: Tensor) -> Tensor:
    """Return x without its fraction, for each element. Integers stay as they are."""

def floor(input: Tensor) -> Tensor:
    """Return the largest whole number not above x, for each element. Integers stay as they are."""

def frac(input: Tensor) -> Tensor:
    """Return the fraction of x, with its sign, for each element. The type stays."""

def lgamma(input: Tensor) -> Tensor:
    """Return log(|gamma(x)|), for each element. Integers are converted to float32 first."""

def log(input: Tensor) -> Tensor:
    """Return the natural logarithm, for each element. Integers are converted to float32 first."""

def log10(input: Tensor) -> Tensor:
    """Return the logarithm to base 10, for each element. Integers are converted to float32 first."""

def log1p(input: Tensor) -> Tensor:
    """Return log(1 + x), exact near 0, for each element. Integers are converted to float32 first."""

def log2(input: Tensor) -> Tensor:
    """Return the logarithm to base 2, for each element. Integers are converted to float32 first."""

def neg(input: Tensor) -> Tensor:
    """Return minus x, for each element. The type stays."""

def negative(input: Tensor) -> Tensor:
    """Return minus x, for each element. The type stays."""

def rad2deg(input: Tensor) -> Tensor:
    """Return radians as degrees, for each element. Integers are converted to float32 first."""

def reciprocal(input: Tensor) -> Tensor:
    """Return 1 / x, for each element. Integers are converted to float32 first."""

def rsqrt(input: Tensor) -> Tensor:
    """Return 1 / sqrt(x), for each element. Integers are converted to float32 first."""

def sgn(input: Tensor) -> Tensor:
    """Return 1, 0 or -1; 0 for NaN, for each element. The type stays."""

def sigmoid(input: Tensor) -> Tensor:
    """Return 1 / (1 + exp(-x)), for each element. Integers are converted to float32 first."""

def sign(input: Tensor) -> Tensor:
    """Return 1, 0 or -1; 0 for NaN, for each element. The type stays."""

def signbit(input: Tensor) -> Tensor:
    """Return whether the sign bit is set, also of -0.0, for each element. The type stays."""

def sin(input: Tensor) -> Tensor:
    """Return the sine of x radians, for each element. Integers are converted to float32 first."""

def sinh(input: Tensor) -> Tensor:
    """Return the hyperbolic sine, for each element. Integers are converted to float32 first."""

def sqrt(input: Tensor) -> Tensor:
    """Return the square root, NaN below 0, for each element. Integers are converted to float32 first."""

def square(input: Tensor) -> Tensor:
    """Return x * x, for each element. The type stays."""

def tan(input: Tensor) -> Tensor:
    """Return the tangent of x radians, for each element. Integers are converted to float32 first."""

def tanh(input: Tensor) -> Tensor:
    """Return the hyperbolic tangent, for each element. Integers are converted to float32 first."""

def trunc(input: Tensor) -> Tensor:
    """Return x without its fraction, for each element. Integers stay as they are."""

def cummax(input: Tensor, dim: builtins.int) -> Ordered:
    """Return the largest element up to and including each one, and its position, the last of equal ones."""

def cummin(input: Tensor, dim: builtins.int) -> Ordered:
    """Return the smallest element up to and including each one, and its position, the last of equal ones."""

def nanquantile(
    input: Tensor,
    q: Any,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the number that a share `q` of the elements lies below; NaN does not count."""

def quantile(
    input: Tensor,
    q: Any,
    dim: builtins.int | None = None,
    keepdim: builtins.bool = False,
    *,
    interpolation: str = "linear",
) -> Tensor:
    """Return the number that a share `q` of the elements lies below; NaN if one is NaN."""

__all__ = [
    "BoolTensor",
    "ByteTensor",
    "CharTensor",
    "DType",
    "DoubleTensor",
    "FloatTensor",
    "Frozen",
    "Generator",
    "Graph",
    "HalfTensor",
    "IntTensor",
    "Jitted",
    "LongTensor",
    "Operation",
    "Session",
    "ShortTensor",
    "Size",
    "Tensor",
    "abs",
    "absolute",
    "accelerator",
    "acos",
    "acosh",
    "add",
    "addbmm",
    "addcdiv",
    "addcmul",
    "addmm",
    "addmv",
    "addr",
    "all",
    "allclose",
    "amax",
    "amin",
    "aminmax",
    "amp",
    "any",
    "arange",
    "arccos",
    "arccosh",
    "arcsin",
    "arcsinh",
    "arctan",
    "arctan2",
    "arctanh",
    "argmax",
    "argmin",
    "argsort",
    "argwhere",
    "as_tensor",
    "as_torch",
    "asin",
    "asinh",
    "atan",
    "atan2",
    "atanh",
    "atleast_1d",
    "atleast_2d",
    "atleast_3d",
    "autocast",
    "autograd",
    "backends",
    "baddbmm",
    "bernoulli",
    "bfloat16",
    "bincount",
    "bitwise_and",
    "bitwise_left_shift",
    "bitwise_not",
    "bitwise_or",
    "bitwise_right_shift",
    "bitwise_xor",
    "bmm",
    "bool",
    "broadcast_shapes",
    "broadcast_tensors",
    "broadcast_to",
    "bucketize",
    "can_cast",
    "cat",
    "cdist",
    "ceil",
    "checkpoint",
    "cholesky",
    "chunk",
    "clamp",
    "clamp_max",
    "clamp_min",
    "clip",
    "clone",
    "compile",
    "concat",
    "concatenate",
    "cond",
    "copysign",
    "cos",
    "cosh",
    "count_nonzero",
    "cross",
    "cuda",
    "cummax",
    "cummin",
    "cumprod",
    "cumsum",
    "data",
    "debug",
    "default_generator",
    "deg2rad",
    "det",
    "device",
    "diag",
    "diag_embed",
    "diagonal",
    "diff",
    "digamma",
    "distributed",
    "distributions",
    "div",
    "divide",
    "dot",
    "double",
    "dtypes",
    "e",
    "einsum",
    "empty",
    "empty_like",
    "enable_grad",
    "eq",
    "equal",
    "erf",
    "erfc",
    "errors",
    "exp",
    "exp2",
    "expm1",
    "export",
    "eye",
    "finfo",
    "fix",
    "flatten",
    "flip",
    "fliplr",
    "flipud",
    "float",
    "float16",
    "float32",
    "float64",
    "floor",
    "floor_divide",
    "fmax",
    "fmin",
    "fmod",
    "fori_loop",
    "frac",
    "freeze",
    "from_dlpack",
    "from_numpy",
    "full",
    "full_like",
    "func",
    "functional",
    "gather",
    "ge",
    "ger",
    "get_autocast_dtype",
    "get_default_dtype",
    "get_num_threads",
    "grad",
    "greater",
    "greater_equal",
    "gt",
    "half",
    "hessian",
    "histc",
    "histogram",
    "hstack",
    "hypot",
    "iinfo",
    "index_add",
    "index_copy",
    "index_fill",
    "index_select",
    "inf",
    "inference_mode",
    "initial_seed",
    "inner",
    "inspect",
    "int",
    "int8",
    "int16",
    "int32",
    "int64",
    "inverse",
    "is_autocast_enabled",
    "is_floating_point",
    "is_grad_enabled",
    "is_tensor",
    "isclose",
    "isfinite",
    "isin",
    "isinf",
    "isnan",
    "jacobian",
    "jit",
    "kron",
    "lazy",
    "le",
    "lerp",
    "less",
    "less_equal",
    "lgamma",
    "linalg",
    "linspace",
    "load",
    "load_frozen",
    "log",
    "log1p",
    "log2",
    "log10",
    "log_softmax",
    "logaddexp",
    "logdet",
    "logical_and",
    "logical_not",
    "logical_or",
    "logical_xor",
    "logit",
    "logspace",
    "logsumexp",
    "long",
    "lt",
    "machine",
    "manual_seed",
    "masked_fill",
    "masked_select",
    "matmul",
    "matrix_power",
    "max",
    "maximum",
    "mean",
    "median",
    "meshgrid",
    "min",
    "minimum",
    "mm",
    "moveaxis",
    "movedim",
    "msort",
    "mul",
    "multinomial",
    "multiply",
    "mv",
    "nan",
    "nan_to_num",
    "nanmean",
    "nanquantile",
    "nansum",
    "narrow",
    "ne",
    "neg",
    "negative",
    "nn",
    "no_grad",
    "nonzero",
    "norm",
    "normal",
    "not_equal",
    "numel",
    "ones",
    "ones_like",
    "optim",
    "outer",
    "pad",
    "passes",
    "permute",
    "pi",
    "pinverse",
    "placeholder",
    "positive",
    "pow",
    "primitives",
    "prod",
    "profile",
    "profiler",
    "promote_types",
    "put",
    "qr",
    "quantile",
    "quantization",
    "rad2deg",
    "rand",
    "rand_like",
    "randint",
    "randint_like",
    "randn",
    "randn_like",
    "randperm",
    "ravel",
    "reciprocal",
    "relu",
    "remainder",
    "repeat_interleave",
    "reshape",
    "result_type",
    "roll",
    "round",
    "row_stack",
    "rsqrt",
    "save",
    "scan",
    "scatter",
    "scatter_add",
    "scatter_reduce",
    "script",
    "searchsorted",
    "seed",
    "select",
    "set_grad_enabled",
    "set_num_threads",
    "set_printoptions",
    "sgn",
    "sharding",
    "short",
    "sigmoid",
    "sign",
    "signbit",
    "sin",
    "sinh",
    "slogdet",
    "softmax",
    "sort",
    "split",
    "sqrt",
    "square",
    "squeeze",
    "stack",
    "std",
    "std_mean",
    "sub",
    "subtract",
    "sum",
    "svd",
    "swapaxes",
    "swapdims",
    "t",
    "take",
    "take_along_dim",
    "tan",
    "tanh",
    "tensor",
    "tensor_split",
    "tensordot",
    "tile",
    "topk",
    "trace",
    "transpose",
    "tril",
    "triu",
    "true_divide",
    "trunc",
    "uint8",
    "uint32",
    "unbind",
    "unflatten",
    "unique",
    "unsqueeze",
    "utils",
    "value_and_grad",
    "var",
    "var_mean",
    "vdot",
    "vjp",
    "vmap",
    "vstack",
    "where",
    "while_loop",
    "xlogy",
    "zeros",
    "zeros_like",
]
