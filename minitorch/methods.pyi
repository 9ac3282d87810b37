# Written by `make stubs` from the package itself; do not edit.
"""`TensorMethods`, the base class of `Tensor` whose methods rooms further down install."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .autograd.gradients import HookHandle
from .drawable import Drawable
from .dtypes import DType
from .functional.extremes import MinMax
from .functional.generator import Generator
from .functional.operands import Number, Operand
from .functional.ordering import Ordered
from .tensor import Tensor

class TensorMethods(Drawable):
    """The methods and operators of `Tensor`; its data is in `Tensor` itself."""

    __slots__ = ()
    def __abs__(self) -> Tensor: ...
    def __add__(self, other: Operand) -> Tensor: ...
    def __and__(self, other: Operand) -> Tensor: ...
    def __array__(self, dtype: Any = None, copy: builtins.bool | None = None) -> np.ndarray[Any, Any]: ...
    def __bool__(self) -> builtins.bool: ...
    def __complex__(self) -> complex: ...
    def __contains__(self, element: Any) -> builtins.bool: ...
    def __dlpack__(self, **request: Any) -> Any: ...
    def __dlpack_device__(self) -> tuple[builtins.int, builtins.int]: ...
    def __eq__(self, other: Operand) -> Tensor:  # type: ignore[override]
        ...
    def __float__(self) -> builtins.float: ...
    def __floordiv__(self, other: Operand) -> Tensor: ...
    def __format__(self, spec: str) -> str: ...
    def __ge__(self, other: Operand) -> Tensor: ...
    def __getitem__(self, index: Any) -> Tensor: ...
    def __gt__(self, other: Operand) -> Tensor: ...
    def __iadd__(self, other: Operand, *, alpha: Number = 1) -> Tensor: ...
    def __iand__(self, other: Operand) -> Tensor: ...
    def __ifloordiv__(self, other: Operand) -> Tensor: ...
    def __imod__(self, other: Operand) -> Tensor: ...
    def __imul__(self, other: Operand) -> Tensor: ...
    def __index__(self) -> builtins.int: ...
    def __int__(self) -> builtins.int: ...
    def __invert__(self) -> Tensor: ...
    def __ior__(self, other: Operand) -> Tensor: ...
    def __ipow__(self, other: Operand) -> Tensor: ...
    def __isub__(self, other: Operand, *, alpha: Number = 1) -> Tensor: ...
    def __iter__(self) -> Iterator[Tensor]: ...
    def __itruediv__(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor: ...
    def __ixor__(self, other: Operand) -> Tensor: ...
    def __le__(self, other: Operand) -> Tensor: ...
    def __lshift__(self, other: Operand) -> Tensor: ...
    def __lt__(self, other: Operand) -> Tensor: ...
    def __matmul__(self, b: Operand) -> Tensor: ...
    def __mod__(self, other: Operand) -> Tensor: ...
    def __mul__(self, other: Operand) -> Tensor: ...
    def __ne__(self, other: Operand) -> Tensor:  # type: ignore[override]
        ...
    def __neg__(self) -> Tensor: ...
    def __or__(self, other: Operand) -> Tensor: ...
    def __pos__(self) -> Tensor: ...
    def __pow__(self, other: Operand) -> Tensor: ...
    def __radd__(self, other: Operand) -> Tensor: ...
    def __rand__(self, other: Operand) -> Tensor: ...
    def __reduce__(self) -> tuple[Any, ...]: ...
    def __repr__(self) -> str: ...
    def __rfloordiv__(self, other: Operand) -> Tensor: ...
    def __rlshift__(self, other: Operand) -> Tensor: ...
    def __rmatmul__(self, b: Operand) -> Tensor: ...
    def __rmod__(self, other: Operand) -> Tensor: ...
    def __rmul__(self, other: Operand) -> Tensor: ...
    def __ror__(self, other: Operand) -> Tensor: ...
    def __rpow__(self, other: Operand) -> Tensor: ...
    def __rrshift__(self, other: Operand) -> Tensor: ...
    def __rshift__(self, other: Operand) -> Tensor: ...
    def __rsub__(self, other: Operand) -> Tensor: ...
    def __rtruediv__(self, other: Operand) -> Tensor: ...
    def __rxor__(self, other: Operand) -> Tensor: ...
    def __setitem__(self, index: Any, value: Any) -> None: ...
    def __str__(self) -> str: ...
    def __sub__(self, other: Operand) -> Tensor: ...
    def __truediv__(self, other: Operand) -> Tensor: ...
    def __xor__(self, other: Operand) -> Tensor: ...
    def _repr_html_(self) -> str:
        """The notebook's display: shape, type and values; a table if it is small, the text otherwise."""
    @property
    def T(self) -> Tensor:
        """The dimensions in reverse order; of a matrix, its transpose."""
    @property
    def data(self) -> Tensor:
        """The value without its history, as `detach`; set to a tensor, the value is exchanged unseen by the tape."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    @property
    def device(self) -> str:
        """Where the tensor is: ``"cpu"``."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated here, or None."""
    @grad.setter
    def grad(self, gradient: Tensor | None) -> None: ...
    @property
    def mT(self) -> Tensor:
        """The last two dimensions exchanged; a number is its own transpose."""
    @property
    def retains_grad(self) -> builtins.bool:
        """Return whether `backward` keeps this recorded result's gradient as its ``grad``."""
    def abs(self) -> Tensor:
        """The absolute value, for each element. The type stays."""
    def abs_(self) -> Tensor:
        """The absolute value, for each element. The type stays."""
    def absolute(self) -> Tensor:
        """The absolute value, for each element. The type stays."""
    def acos(self) -> Tensor:
        """The angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def acosh(self) -> Tensor:
        """The number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""
    def add(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The sum of two tensors or numbers, the second times `alpha`; of two bools, their or."""
    def add_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The sum of two tensors or numbers, the second times `alpha`; of two bools, their or."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the sum of the products of two batches."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 / tensor2``."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``, with `value` in the type of the result."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """``input + value * tensor1 * tensor2``, with `value` in the type of the result."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the product of two matrices."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the product of two matrices."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times a matrix times a vector."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the outer product of two vectors."""
    def all(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether all elements are other than 0; 0 or 1 for a tensor of uint8, as in PyTorch."""
    def allclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Whether `isclose` holds everywhere, as a Python bool."""
    def amax(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The largest element, NaN if there is one; equal ones share the gradient."""
    def amin(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The smallest element, NaN if there is one; equal ones share the gradient."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> MinMax:
        """The smallest and the largest element."""
    def any(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Whether any element is other than 0; 0 or 1 for a tensor of uint8, as in PyTorch."""
    def arccos(self) -> Tensor:
        """The angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def arccosh(self) -> Tensor:
        """The number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""
    def arcsin(self) -> Tensor:
        """The angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def arcsinh(self) -> Tensor:
        """The number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""
    def arctan(self) -> Tensor:
        """The angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def arctan2(self, other: Operand) -> Tensor:
        """The angle in radians of the point with ordinate `input` and abscissa `other`."""
    def arctanh(self) -> Tensor:
        """The number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The position of the largest element, of equal ones the first; without `dim`, in the flattened tensor."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """The position of the smallest element, of equal ones the first; without `dim`, in the flattened tensor."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        """The positions that put the elements along a dimension in order."""
    def argwhere(self) -> Tensor:
        """The positions of the elements that are not zero, a row for each."""
    def asin(self) -> Tensor:
        """The angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def asin_(self) -> Tensor:
        """The angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def asinh(self) -> Tensor:
        """The number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""
    def atan(self) -> Tensor:
        """The angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def atan2(self, other: Operand) -> Tensor:
        """The angle in radians of the point with ordinate `input` and abscissa `other`."""
    def atan_(self) -> Tensor:
        """The angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def atanh(self) -> Tensor:
        """The number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def backward(
        self,
        gradient: Tensor | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
    ) -> None:
        """Add the derivative of a tensor by every leaf that requires a gradient to that leaf's ``grad``."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the products of two batches."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """``beta * input`` plus ``alpha`` times the products of two batches."""
    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """1 with the probability that each element says (or with probability `p` in each element), else 0."""
    def bernoulli_(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Write 1 with the probability `p`, else 0, into each element."""
    def bfloat16(self) -> Tensor:
        """The tensor in bfloat16; itself if it has that type."""
    def bitwise_and(self, other: Operand) -> Tensor:
        """The bits that both operands have, element by element."""
    def bitwise_and_(self, other: Operand) -> Tensor:
        """The bits that both operands have, element by element."""
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """The first times 2 to the power of the second, element by element."""
    def bitwise_not(self) -> Tensor:
        """All bits turned; of bools, not."""
    def bitwise_not_(self) -> Tensor:
        """All bits turned; of bools, not."""
    def bitwise_or(self, other: Operand) -> Tensor:
        """The bits that one of the operands has, element by element."""
    def bitwise_or_(self, other: Operand) -> Tensor:
        """The bits that one of the operands has, element by element."""
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """The first divided by 2 to the power of the second, rounded down, element by element."""
    def bitwise_xor(self, other: Operand) -> Tensor:
        """The bits that only one of them has, element by element."""
    def bitwise_xor_(self, other: Operand) -> Tensor:
        """The bits that only one of them has, element by element."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """The products of two batches of matrices: `matmul` for these ranks alone."""
    def bool(self) -> Tensor:
        """The tensor in bool; itself if it has that type."""
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """`expand` to a shape."""
    def byte(self) -> Tensor:
        """The tensor in uint8; itself if it has that type."""
    def ceil(self) -> Tensor:
        """The smallest whole number not below x, for each element. Integers stay as they are."""
    def ceil_(self) -> Tensor:
        """The smallest whole number not below x, for each element. Integers stay as they are."""
    def char(self) -> Tensor:
        """The tensor in int8; itself if it has that type."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """At most so many parts of one length (the last may be shorter)."""
    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """The numbers moved into the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """The numbers moved into the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clamp_max(self, max: Operand) -> Tensor:
        """``clamp(input, max=max)``."""
    def clamp_max_(self, max: Operand) -> Tensor:
        """``clamp(input, max=max)``."""
    def clamp_min(self, min: Operand) -> Tensor:
        """``clamp(input, min=min)``."""
    def clamp_min_(self, min: Operand) -> Tensor:
        """``clamp(input, min=min)``."""
    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """The numbers moved into the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """The numbers moved into the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clone(self) -> Tensor:
        """A copy with its own memory, contiguous like all that is computed; gradients flow through it."""
    def contiguous(self) -> Tensor:
        """The tensor itself if its elements lie in memory in order; otherwise a copy in which they do."""
    def copy_(self, src: Any) -> Tensor:
        """Write the elements of another tensor (or a number) into this one, converted to its type."""
    def copysign(self, other: Operand) -> Tensor:
        """The magnitude of the first operand with the sign of the second, that of -0.0 included."""
    def cos(self) -> Tensor:
        """The cosine of x radians, for each element. Integers are converted to float32 first."""
    def cos_(self) -> Tensor:
        """The cosine of x radians, for each element. Integers are converted to float32 first."""
    def cosh(self) -> Tensor:
        """The hyperbolic cosine, for each element. Integers are converted to float32 first."""
    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """How many elements are not 0."""
    def cpu(self) -> Tensor:
        """The tensor itself: all tensors are on the CPU."""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """The vector at right angles to two vectors of three elements, in each place of the other dimensions."""
    def cuda(self, device: Any = None) -> Tensor:
        """Refused, for there is no such device."""
    def cumprod(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """The product of the elements up to and including each one; of integers and bools in int64."""
    def cumprod_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """The product of the elements up to and including each one; of integers and bools in int64."""
    def cumsum(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """The sum of the elements up to and including each one; of integers and bools in int64."""
    def cumsum_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """The sum of the elements up to and including each one; of integers and bools in int64."""
    def deg2rad(self) -> Tensor:
        """Degrees as radians, for each element. Integers are converted to float32 first."""
    def detach(self) -> Tensor:
        """Return a tensor that shares the value and has no history; writes to one are seen in the other."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """A copy of the diagonal of a matrix, or the matrix with a vector on its diagonal. `diagonal` is a view."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Matrices with the elements of the last dimension on a diagonal, and zeros elsewhere."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """The diagonal of two dimensions, as the last dimension; `offset` counts diagonals to the right."""
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def dot(self, tensor: Tensor) -> Tensor:
        """The product of two vectors, a number: `matmul` for these ranks alone."""
    def double(self) -> Tensor:
        """The tensor in float64; itself if it has that type."""
    def eq(self, other: Operand) -> Tensor:
        """Whether the operands are equal; NaN equals nothing, element by element."""
    def eq_(self, other: Operand) -> Tensor:
        """Whether the operands are equal; NaN equals nothing, element by element."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Whether two tensors have the same shape and equal elements, as a Python bool."""
    def erf(self) -> Tensor:
        """The error function, for each element. Integers are converted to float32 first."""
    def erf_(self) -> Tensor:
        """The error function, for each element. Integers are converted to float32 first."""
    def erfc(self) -> Tensor:
        """1 - erf(x), exact also for large x, for each element. Integers are converted to float32 first."""
    def exp(self) -> Tensor:
        """E to the power x, for each element. Integers are converted to float32 first."""
    def exp2(self) -> Tensor:
        """2 to the power x, for each element. Integers are converted to float32 first."""
    def exp2_(self) -> Tensor:
        """2 to the power x, for each element. Integers are converted to float32 first."""
    def exp_(self) -> Tensor:
        """E to the power x, for each element. Integers are converted to float32 first."""
    def expand(self, *lengths: Any, size: Any = None) -> Tensor:
        """Dimensions of length 1 repeated without a copy, and new ones added in front; -1 keeps a length."""
    def expand_as(self, other: Tensor) -> Tensor:
        """`expand` to the shape of another tensor."""
    def expm1(self) -> Tensor:
        """Exp(x) - 1, exact near 0, for each element. Integers are converted to float32 first."""
    def expm1_(self) -> Tensor:
        """Exp(x) - 1, exact near 0, for each element. Integers are converted to float32 first."""
    def fill_(self, value: Any) -> Tensor:
        """Write one number (or the value of a 0-dimensional tensor) into every element."""
    def fix(self) -> Tensor:
        """X without its fraction, for each element. Integers stay as they are."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """The dimensions from one to another joined into one."""
    def flip(self, *each: Any, dims: Any = None) -> Tensor:
        """Some dimensions, given one by one or as `dims`, read backwards."""
    def fliplr(self) -> Tensor:
        """The columns in reverse order."""
    def flipud(self) -> Tensor:
        """The rows in reverse order."""
    def float(self) -> Tensor:
        """The tensor in float32; itself if it has that type."""
    def floor(self) -> Tensor:
        """The largest whole number not above x, for each element. Integers stay as they are."""
    def floor_(self) -> Tensor:
        """The largest whole number not above x, for each element. Integers stay as they are."""
    def floor_divide(self, other: Operand) -> Tensor:
        """The quotient rounded down, as Python's ``//``."""
    def floor_divide_(self, other: Operand) -> Tensor:
        """The quotient rounded down, as Python's ``//``."""
    def fmax(self, other: Operand) -> Tensor:
        """The larger of two operands, the other one if one is NaN; of equal ones the first has the gradient."""
    def fmin(self, other: Operand) -> Tensor:
        """The smaller of two operands, the other one if one is NaN; of equal ones the first has the gradient."""
    def fmod(self, other: Operand) -> Tensor:
        """The remainder of truncating division, with the sign of the dividend, as in C."""
    def fmod_(self, other: Operand) -> Tensor:
        """The remainder of truncating division, with the sign of the dividend, as in C."""
    def frac(self) -> Tensor:
        """The fraction of x, with its sign, for each element. The type stays."""
    def frac_(self) -> Tensor:
        """The fraction of x, with its sign, for each element. The type stays."""
    def gather(self, dim: builtins.int, index: Tensor) -> Tensor:
        """For each element of the index, the element at that position of a dimension: ``x[index[i, j], j]`` for dim 0."""
    def ge(self, other: Operand) -> Tensor:
        """Whether the first is not smaller, element by element."""
    def ge_(self, other: Operand) -> Tensor:
        """Whether the first is not smaller, element by element."""
    def ger(self, vec2: Tensor) -> Tensor:
        """Every element of one vector times every element of another."""
    def greater(self, other: Operand) -> Tensor:
        """Whether the first is larger, element by element."""
    def greater_equal(self, other: Operand) -> Tensor:
        """Whether the first is not smaller, element by element."""
    def gt(self, other: Operand) -> Tensor:
        """Whether the first is larger, element by element."""
    def gt_(self, other: Operand) -> Tensor:
        """Whether the first is larger, element by element."""
    def half(self) -> Tensor:
        """The tensor in float16; itself if it has that type."""
    def hypot(self, other: Operand) -> Tensor:
        """The length ``sqrt(input**2 + other**2)``, without overflow on the way; infinite if either is, else NaN if one is."""
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """A copy with the slices of `source`, times `alpha`, added at some positions of a dimension."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """A copy with the slices of `source`, times `alpha`, added at some positions of a dimension."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy with the slices of `source` written at some positions of a dimension."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """A copy with the slices of `source` written at some positions of a dimension."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Number | Tensor) -> Tensor:
        """A copy with one number written to all slices at some positions of a dimension; negative ones from the end."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Number | Tensor) -> Tensor:
        """A copy with one number written to all slices at some positions of a dimension; negative ones from the end."""
    def index_put_(self, indices: tuple[Tensor, ...], values: Any) -> Tensor:
        """``x[indices] = values``, returning the tensor. (PyTorch's ``accumulate=True`` is `index_add` here.)"""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """The slices at some positions of a dimension, in that order."""
    def inner(self, other: Tensor) -> Tensor:
        """The products summed over the last dimension of both; with a number, the product."""
    def int(self) -> Tensor:
        """The tensor in int32; itself if it has that type."""
    def is_contiguous(self) -> builtins.bool:
        """Whether the elements lie in memory in order, the last dimension next to each other."""
    def isclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Whether elements are equal but for a tolerance: ``|input - other| <= atol + rtol * |other|``."""
    def isfinite(self) -> Tensor:
        """Whether each element is neither NaN nor an infinity."""
    def isinf(self) -> Tensor:
        """Whether each element is an infinity, of either sign."""
    def isnan(self) -> Tensor:
        """Whether each element is NaN, the only number that differs from itself."""
    def item(self) -> Number:
        """The one element of a tensor as a Python number."""
    def kron(self, other: Tensor) -> Tensor:
        """The Kronecker product: every element of the first replaced by itself times the whole second."""
    def le(self, other: Operand) -> Tensor:
        """Whether the first is not larger, element by element."""
    def le_(self, other: Operand) -> Tensor:
        """Whether the first is not larger, element by element."""
    def lerp(self, end: Tensor, weight: Operand) -> Tensor:
        """The point between two: ``input + weight * (end - input)``, exactly `end` for weight 1."""
    def lerp_(self, end: Tensor, weight: Operand) -> Tensor:
        """The point between two: ``input + weight * (end - input)``, exactly `end` for weight 1."""
    def less(self, other: Operand) -> Tensor:
        """Whether the first is smaller, element by element."""
    def less_equal(self, other: Operand) -> Tensor:
        """Whether the first is not larger, element by element."""
    def log(self) -> Tensor:
        """The natural logarithm, for each element. Integers are converted to float32 first."""
    def log10(self) -> Tensor:
        """The logarithm to base 10, for each element. Integers are converted to float32 first."""
    def log10_(self) -> Tensor:
        """The logarithm to base 10, for each element. Integers are converted to float32 first."""
    def log1p(self) -> Tensor:
        """Log(1 + x), exact near 0, for each element. Integers are converted to float32 first."""
    def log1p_(self) -> Tensor:
        """Log(1 + x), exact near 0, for each element. Integers are converted to float32 first."""
    def log2(self) -> Tensor:
        """The logarithm to base 2, for each element. Integers are converted to float32 first."""
    def log2_(self) -> Tensor:
        """The logarithm to base 2, for each element. Integers are converted to float32 first."""
    def log_(self) -> Tensor:
        """The natural logarithm, for each element. Integers are converted to float32 first."""
    def log_softmax(self, dim: builtins.int, dtype: DType | None = None) -> Tensor:
        """The logarithm of `softmax`, exact also where that is too small for a float."""
    def logaddexp(self, other: Operand) -> Tensor:
        """``log(exp(input) + exp(other))``, without overflow on the way."""
    def logical_and(self, other: Operand) -> Tensor:
        """Whether both are other than 0, element by element."""
    def logical_and_(self, other: Operand) -> Tensor:
        """Whether both are other than 0, element by element."""
    def logical_not(self) -> Tensor:
        """Whether each element is 0."""
    def logical_not_(self) -> Tensor:
        """Whether each element is 0."""
    def logical_or(self, other: Operand) -> Tensor:
        """Whether one is other than 0, element by element."""
    def logical_or_(self, other: Operand) -> Tensor:
        """Whether one is other than 0, element by element."""
    def logical_xor(self, other: Operand) -> Tensor:
        """Whether only one is other than 0, element by element."""
    def logical_xor_(self, other: Operand) -> Tensor:
        """Whether only one is other than 0, element by element."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """The inverse of `sigmoid`, log(x / (1 - x)); with `eps`, of x kept inside [eps, 1 - eps]."""
    def logsumexp(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False
    ) -> Tensor:
        """``log(sum(exp(input)))``, without overflow on the way."""
    def long(self) -> Tensor:
        """The tensor in int64; itself if it has that type."""
    def lt(self, other: Operand) -> Tensor:
        """Whether the first is smaller, element by element."""
    def lt_(self, other: Operand) -> Tensor:
        """Whether the first is smaller, element by element."""
    def masked_fill(self, mask: Tensor, value: Number | Tensor) -> Tensor:
        """One number where a mask holds, the tensor elsewhere; mask and tensor broadcast."""
    def masked_fill_(self, mask: Tensor, value: Number | Tensor) -> Tensor:
        """One number where a mask holds, the tensor elsewhere; mask and tensor broadcast."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """The elements where a mask holds, in a row; mask and tensor broadcast."""
    def matmul(self, other: Tensor) -> Tensor:
        """The matrix product ``input @ other``, with NumPy's and PyTorch's rules for other ranks than two."""
    def max(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Tensor | None = None) -> Any:
        """The largest element, NaN if there is one. Three forms, as in PyTorch:"""
    def maximum(self, other: Operand) -> Tensor:
        """The larger of two operands, NaN if either is; equal ones share the gradient."""
    def mean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """The mean of the elements; NaN of none."""
    def median(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Any:
        """The element in the middle, the lower one of two; with a dimension, also where it was. NaN if there is"""
    def min(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Tensor | None = None) -> Any:
        """The smallest element, NaN if there is one, in the three forms of `max`."""
    def minimum(self, other: Operand) -> Tensor:
        """The smaller of two operands, NaN if either is; equal ones share the gradient."""
    def mm(self, mat2: Tensor) -> Tensor:
        """The product of two matrices: `matmul` for these ranks alone."""
    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """One or several dimensions moved to other places; the others keep their order."""
    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """One or several dimensions moved to other places; the others keep their order."""
    def msort(self) -> Tensor:
        """The elements in order along the first dimension."""
    def mul(self, other: Operand) -> Tensor:
        """The product of two tensors or numbers; of two bools, their and."""
    def mul_(self, other: Operand) -> Tensor:
        """The product of two tensors or numbers; of two bools, their and."""
    def multiply(self, other: Operand) -> Tensor:
        """The product of two tensors or numbers; of two bools, their and."""
    def multiply_(self, other: Operand) -> Tensor:
        """The product of two tensors or numbers; of two bools, their and."""
    def mv(self, vec: Tensor) -> Tensor:
        """A matrix times a vector: `matmul` for these ranks alone."""
    def nan_to_num(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """NaN and infinities replaced by numbers; infinities by default by the largest and smallest of the type."""
    def nan_to_num_(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """NaN and infinities replaced by numbers; infinities by default by the largest and smallest of the type."""
    def nanmean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """The mean of the elements that are not NaN."""
    def nansum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """The sum of the elements that are not NaN."""
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Some elements in a row along a dimension."""
    def ne(self, other: Operand) -> Tensor:
        """Whether they differ, element by element."""
    def ne_(self, other: Operand) -> Tensor:
        """Whether they differ, element by element."""
    def neg(self) -> Tensor:
        """Minus x, for each element. The type stays."""
    def neg_(self) -> Tensor:
        """Minus x, for each element. The type stays."""
    def negative(self) -> Tensor:
        """Minus x, for each element. The type stays."""
    def negative_(self) -> Tensor:
        """Minus x, for each element. The type stays."""
    def nelement(self) -> builtins.int:
        """The number of elements: another name of `numel`."""
    def new_empty(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor to be written, in this tensor's type."""
    def new_full(
        self, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """A tensor of one number, in this tensor's type."""
    def new_ones(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of ones, in this tensor's type."""
    def new_tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """A tensor of data, in this tensor's type."""
    def new_zeros(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """A tensor of zeros, in this tensor's type."""
    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """The positions of the elements that are not zero: a row for each, or one tensor for each dimension."""
    def norm(
        self,
        p: builtins.float | str = "fro",
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """The p-norm of the elements as one vector: ``sum(|x|**p) ** (1/p)``."""
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write normal random numbers into the tensor, of a float type."""
    def not_equal(self, other: Operand) -> Tensor:
        """Whether they differ, element by element."""
    def numpy(self) -> np.ndarray[Any, Any]:
        """An array that shares the tensor's memory: writes to one are seen in the other."""
    def outer(self, vec2: Tensor) -> Tensor:
        """Every element of one vector times every element of another."""
    def permute(self, *order: Any, dims: Any = None) -> Tensor:
        """The dimensions in another order."""
    def positive(self) -> Tensor:
        """The tensor itself: Python's ``+x``. Not for bools."""
    def pow(self, exponent: Operand) -> Tensor:
        """The first operand to the power of the second, as Python's ``**``."""
    def pow_(self, exponent: Operand) -> Tensor:
        """The first operand to the power of the second, as Python's ``**``."""
    def prod(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: Any = None) -> Tensor:
        """The product of the elements; of integers and bools in int64."""
    def rad2deg(self) -> Tensor:
        """Radians as degrees, for each element. Integers are converted to float32 first."""
    def ravel(self) -> Tensor:
        """All dimensions joined into one: a view of a contiguous tensor, and a copy of any other."""
    def reciprocal(self) -> Tensor:
        """1 / x, for each element. Integers are converted to float32 first."""
    def reciprocal_(self) -> Tensor:
        """1 / x, for each element. Integers are converted to float32 first."""
    def register_hook(self, hook: Any) -> HookHandle:
        """Call a function with a tensor's gradient in `backward`; its result, if any, replaces the gradient."""
    def relu(self) -> Tensor:
        """The larger of x and 0; NaN stays NaN, and the gradient at 0 is 0."""
    def relu_(self) -> Tensor:
        """The larger of x and 0; NaN stays NaN, and the gradient at 0 is 0."""
    def remainder(self, other: Operand) -> Tensor:
        """What `floor_divide` leaves, with the sign of the divisor, as Python's ``%``; of integers modulo zero, 0."""
    def remainder_(self, other: Operand) -> Tensor:
        """What `floor_divide` leaves, with the sign of the divisor, as Python's ``%``; of integers modulo zero, 0."""
    def repeat(self, *each: Any, repeats: Any = None) -> Tensor:
        """The whole tensor several times along each dimension; more numbers than dimensions add dimensions in"""
    def repeat_interleave(
        self,
        repeats: builtins.int | Tensor,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Each slice along a dimension several times in a row; without a dimension, each element."""
    def reshape(self, *lengths: Any, shape: Any = None) -> Tensor:
        """The elements in the same order under another shape; one length may be -1. A view where memory allows."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """`reshape` with the shape of another tensor."""
    def retain_grad(self) -> None:
        """Keep the gradient of a recorded result as its ``grad``, as leaves do."""
    def roll(
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> Tensor:
        """Elements moved along dimensions; what leaves at the end comes in at the beginning."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest whole number, of two equally near ones the even one; or the nearest multiple of 10**-decimals."""
    def round_(self, *, decimals: builtins.int = 0) -> Tensor:
        """The nearest whole number, of two equally near ones the even one; or the nearest multiple of 10**-decimals."""
    def rsqrt(self) -> Tensor:
        """1 / sqrt(x), for each element. Integers are converted to float32 first."""
    def rsqrt_(self) -> Tensor:
        """1 / sqrt(x), for each element. Integers are converted to float32 first."""
    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Number | Tensor | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """A copy with the elements of `src` written where the index says: ``y[index[i, j], j] = src[i, j]`` for dim 0."""
    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Number | Tensor | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """A copy with the elements of `src` written where the index says: ``y[index[i, j], j] = src[i, j]`` for dim 0."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy with the elements of `src` added where the index says; what goes to the same position adds up."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """A copy with the elements of `src` added where the index says; what goes to the same position adds up."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """The slice at one position of a dimension, which is taken away."""
    def sgn(self) -> Tensor:
        """1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def short(self) -> Tensor:
        """The tensor in int16; itself if it has that type."""
    def sigmoid(self) -> Tensor:
        """1 / (1 + exp(-x)), for each element. Integers are converted to float32 first."""
    def sigmoid_(self) -> Tensor:
        """1 / (1 + exp(-x)), for each element. Integers are converted to float32 first."""
    def sign(self) -> Tensor:
        """1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def sign_(self) -> Tensor:
        """1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def signbit(self) -> Tensor:
        """Whether the sign bit is set, also of -0.0, for each element. The type stays."""
    def sin(self) -> Tensor:
        """The sine of x radians, for each element. Integers are converted to float32 first."""
    def sin_(self) -> Tensor:
        """The sine of x radians, for each element. Integers are converted to float32 first."""
    def sinh(self) -> Tensor:
        """The hyperbolic sine, for each element. Integers are converted to float32 first."""
    def sinh_(self) -> Tensor:
        """The hyperbolic sine, for each element. Integers are converted to float32 first."""
    def softmax(self, dim: builtins.int, dtype: DType | None = None) -> Tensor:
        """``e**x``, divided by its sum over a dimension: positive numbers that add up to 1."""
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False) -> Ordered:
        """The elements along a dimension in order, and the positions where they were."""
    def split(
        self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Parts of one length (the last may be shorter), or of the lengths in a list, along a dimension."""
    def sqrt(self) -> Tensor:
        """The square root, NaN below 0, for each element. Integers are converted to float32 first."""
    def sqrt_(self) -> Tensor:
        """The square root, NaN below 0, for each element. Integers are converted to float32 first."""
    def square(self) -> Tensor:
        """X * x, for each element. The type stays."""
    def square_(self) -> Tensor:
        """X * x, for each element. The type stays."""
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Without the dimensions of length 1, or without those of them that are named."""
    def std(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        unbiased: builtins.bool = True,
        keepdim: builtins.bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """The standard deviation, the square root of `var` (with the same arguments); where it is 0, so is its gradient."""
    def sub(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The difference of two tensors or numbers, the second times `alpha`."""
    def sub_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The difference of two tensors or numbers, the second times `alpha`."""
    def subtract(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The difference of two tensors or numbers, the second times `alpha`."""
    def subtract_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """The difference of two tensors or numbers, the second times `alpha`."""
    def sum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """The sum of the elements; of integers and bools in int64."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """`transpose` under NumPy's name."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""
    def t(self) -> Tensor:
        """The transpose of a matrix; a tensor of fewer dimensions stays as it is."""
    def take(self, index: Tensor) -> Tensor:
        """The elements at positions in the row of all elements, in the shape of the index; negative ones from the end."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """As `gather`, but the other dimensions broadcast; without a dimension, from all elements in a row."""
    def tan(self) -> Tensor:
        """The tangent of x radians, for each element. Integers are converted to float32 first."""
    def tan_(self) -> Tensor:
        """The tangent of x radians, for each element. Integers are converted to float32 first."""
    def tanh(self) -> Tensor:
        """The hyperbolic tangent, for each element. Integers are converted to float32 first."""
    def tanh_(self) -> Tensor:
        """The hyperbolic tangent, for each element. Integers are converted to float32 first."""
    def tensor_split(
        self, indices_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """So many parts of lengths that differ by at most 1; or the parts between the positions in a list."""
    def tile(self, *each: Any, dims: Any = None) -> Tensor:
        """As `repeat`, but missing numbers at the front are 1."""
    def to(
        self,
        *target: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
    ) -> Tensor:
        """The tensor in another type; itself if it has that type, unless a copy is asked for."""
    def tolist(self) -> Any:
        """The elements as nested lists of Python numbers; a number, if there are no dimensions."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> Ordered:
        """The `k` largest (or smallest) elements along a dimension, in order, and where they were."""
    def trace(self) -> Tensor:
        """The sum of a matrix's diagonal; of integers, in int64."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Two dimensions exchanged."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """The matrix with zeros above a diagonal; `diagonal` counts diagonals to the right."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """The matrix with zeros above a diagonal; `diagonal` counts diagonals to the right."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """The matrix with zeros below a diagonal; `diagonal` counts diagonals to the right."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """The matrix with zeros below a diagonal; `diagonal` counts diagonals to the right."""
    def true_divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """The quotient of two tensors or numbers; a float, unless it is rounded."""
    def trunc(self) -> Tensor:
        """X without its fraction, for each element. Integers stay as they are."""
    def trunc_(self) -> Tensor:
        """X without its fraction, for each element. Integers stay as they are."""
    def type(self, dtype: Any = None) -> Any:
        """The tensor in another type, or without an argument the name of its type."""
    def type_as(self, other: Tensor) -> Tensor:
        """The tensor in another one's type."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """All slices along a dimension, which is taken away."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """One dimension taken apart into several; one of `sizes` may be -1."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Windows of some size, a step apart, along a dimension; the place inside the window is the last"""
    def uniform_(
        self, from_: builtins.float = 0.0, to: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write uniform random numbers from `from_` up to `to` into the tensor, of a float type."""
    def unique(
        self,
        sorted: builtins.bool = True,
        return_inverse: builtins.bool = False,
        return_counts: builtins.bool = False,
        dim: builtins.int | None = None,
    ) -> Any:
        """The different elements (or slices along a dimension), in order; how many there are depends on data."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """With a new dimension of length 1."""
    def var(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        unbiased: builtins.bool = True,
        keepdim: builtins.bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """The variance: the squares of the deviations from the mean, summed and divided by ``count - correction``."""
    def vdot(self, other: Tensor) -> Tensor:
        """`dot`, from which it differs for complex numbers alone."""
    def view(self, *shape: Any) -> Tensor:
        """As `reshape`, but never a copy; with an element type, the same bits read as that type."""
    def view_as(self, other: Tensor) -> Tensor:
        """`view` with the shape of another tensor."""
    def where(self, condition: Tensor, other: Operand) -> Tensor:
        """The tensor's elements where the condition holds, the other operand's elsewhere. See `minitorch.where`."""
    def xlogy(self, other: Operand) -> Tensor:
        """``input * log(other)``, and 0 where `input` is 0, whatever the logarithm; NaN where `other` is NaN."""
    def zero_(self) -> Tensor:
        """Write zero into every element."""

def install(methods: Mapping[str, Callable[..., Any] | property], into: type = ...) -> None:
    """Give a class methods, operators or properties, by name."""
