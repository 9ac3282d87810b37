# Written by `make stubs` from the package itself; do not edit.
"""`TensorMethods`, the base class of `Tensor` whose methods rooms further down install."""

import builtins
from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from .autograd.gradients import HookHandle
from .drawable import Drawable
from .dtypes import DType
from .functional.creation.generator import Generator
from .functional.devices import device
from .functional.operands import Number, Operand
from .functional.reducing.extremes import MinMax
from .functional.reducing.ordering import Histogram, Ordered
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
        """Return the notebook's display: shape, type and values; a table if it is small, the text otherwise."""
    @property
    def T(self) -> Tensor:
        """Return the dimensions in reverse order; of a matrix, its transpose."""
    @property
    def data(self) -> Tensor:
        """The value without its history, as `detach`; set to a tensor, the value is exchanged unseen by the tape."""
    @data.setter
    def data(self, value: Tensor) -> None: ...
    @property
    def device(self) -> device:
        """Return the device of the tensor: the CPU."""
    @property
    def grad(self) -> Tensor | None:
        """The gradient that `backward` accumulated here, or None."""
    @grad.setter
    def grad(self, gradient: Tensor | None) -> None: ...
    @property
    def mT(self) -> Tensor:
        """Exchange the last two dimensions; a number is its own transpose."""
    @property
    def retains_grad(self) -> builtins.bool:
        """Return whether `backward` keeps this recorded result's gradient as its ``grad``."""
    def abs(self) -> Tensor:
        """Return the absolute value, for each element. The type stays."""
    def abs_(self) -> Tensor:
        """Return the absolute value, for each element. The type stays."""
    def absolute(self) -> Tensor:
        """Return the absolute value, for each element. The type stays."""
    def acos(self) -> Tensor:
        """Return the angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def acosh(self) -> Tensor:
        """Return the number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""
    def add(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the sum of two tensors or numbers, the second times `alpha`; of two bools, their or."""
    def add_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the sum of two tensors or numbers, the second times `alpha`; of two bools, their or."""
    def addbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the sum of the products of two batches."""
    def addcdiv(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return ``input + value * tensor1 / tensor2``."""
    def addcdiv_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return ``input + value * tensor1 / tensor2``."""
    def addcmul(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return ``input + value * tensor1 * tensor2``, with `value` in the type of the result."""
    def addcmul_(self, tensor1: Tensor, tensor2: Tensor, *, value: Number = 1) -> Tensor:
        """Return ``input + value * tensor1 * tensor2``, with `value` in the type of the result."""
    def addmm(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the product of two matrices."""
    def addmm_(self, mat1: Tensor, mat2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the product of two matrices."""
    def addmv(self, mat: Tensor, vec: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times a matrix times a vector."""
    def addr(self, vec1: Tensor, vec2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the outer product of two vectors."""
    def all(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return whether all elements are other than 0; 0 or 1 for a tensor of uint8, as in PyTorch."""
    def allclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> builtins.bool:
        """Return whether `isclose` holds everywhere, as a Python bool."""
    def amax(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the largest element, NaN if there is one; equal ones share the gradient."""
    def amin(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the smallest element, NaN if there is one; equal ones share the gradient."""
    def aminmax(self, *, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> MinMax:
        """Return the smallest and the largest element."""
    def any(self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return whether any element is other than 0; 0 or 1 for a tensor of uint8, as in PyTorch."""
    def arccos(self) -> Tensor:
        """Return the angle whose cosine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def arccosh(self) -> Tensor:
        """Return the number whose hyperbolic cosine is x, NaN below 1, for each element. Integers are converted to float32 first."""
    def arcsin(self) -> Tensor:
        """Return the angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def arcsinh(self) -> Tensor:
        """Return the number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""
    def arctan(self) -> Tensor:
        """Return the angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def arctan2(self, other: Operand) -> Tensor:
        """Return the angle in radians of the point with ordinate `input` and abscissa `other`."""
    def arctanh(self) -> Tensor:
        """Return the number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def argmax(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the position of the largest element, of equal ones the first; without `dim`, in the flattened tensor."""
    def argmin(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Tensor:
        """Return the position of the smallest element, of equal ones the first; without `dim`, in the flattened tensor."""
    def argsort(
        self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False
    ) -> Tensor:
        """Return the positions that put the elements along a dimension in order."""
    def argwhere(self) -> Tensor:
        """Return the positions of the elements that are not zero, a row for each."""
    def asin(self) -> Tensor:
        """Return the angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def asin_(self) -> Tensor:
        """Return the angle whose sine is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def asinh(self) -> Tensor:
        """Return the number whose hyperbolic sine is x, for each element. Integers are converted to float32 first."""
    def atan(self) -> Tensor:
        """Return the angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def atan2(self, other: Operand) -> Tensor:
        """Return the angle in radians of the point with ordinate `input` and abscissa `other`."""
    def atan_(self) -> Tensor:
        """Return the angle whose tangent is x, for each element. Integers are converted to float32 first."""
    def atanh(self) -> Tensor:
        """Return the number whose hyperbolic tangent is x, NaN beyond 1, for each element. Integers are converted to float32 first."""
    def backward(
        self,
        gradient: Tensor | Sequence[Tensor | None] | None = None,
        retain_graph: builtins.bool | None = None,
        create_graph: builtins.bool = False,
    ) -> None:
        """Add the derivative of a tensor by every leaf that requires a gradient to that leaf's ``grad``."""
    def baddbmm(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the products of two batches."""
    def baddbmm_(self, batch1: Tensor, batch2: Tensor, *, beta: Number = 1, alpha: Number = 1) -> Tensor:
        """Return ``beta * input`` plus ``alpha`` times the products of two batches."""
    def bernoulli(self, p: builtins.float | None = None, *, generator: Generator | None = None) -> Tensor:
        """Return 1 with the probability in each element (or with probability `p`), else 0."""
    def bernoulli_(self, p: builtins.float = 0.5, *, generator: Generator | None = None) -> Tensor:
        """Write 1 with the probability `p`, else 0, into each element."""
    def bfloat16(self) -> Tensor:
        """Convert the tensor to bfloat16; return itself if it has that type."""
    def bincount(self, weights: Tensor | None = None, minlength: builtins.int = 0) -> Tensor:
        """Return how often each number from 0 on occurs, or the sum of the weights at these places."""
    def bitwise_and(self, other: Operand) -> Tensor:
        """Return the bits that both operands have, element by element."""
    def bitwise_and_(self, other: Operand) -> Tensor:
        """Return the bits that both operands have, element by element."""
    def bitwise_left_shift(self, other: Operand) -> Tensor:
        """Return the first times 2 to the power of the second, element by element."""
    def bitwise_not(self) -> Tensor:
        """Invert all bits; of bools, return not."""
    def bitwise_not_(self) -> Tensor:
        """Invert all bits; of bools, return not."""
    def bitwise_or(self, other: Operand) -> Tensor:
        """Return the bits that one of the operands has, element by element."""
    def bitwise_or_(self, other: Operand) -> Tensor:
        """Return the bits that one of the operands has, element by element."""
    def bitwise_right_shift(self, other: Operand) -> Tensor:
        """Return the first divided by 2 to the power of the second, rounded down, element by element."""
    def bitwise_xor(self, other: Operand) -> Tensor:
        """Return the bits that only one of them has, element by element."""
    def bitwise_xor_(self, other: Operand) -> Tensor:
        """Return the bits that only one of them has, element by element."""
    def bmm(self, mat2: Tensor) -> Tensor:
        """Return the products of two batches of matrices: `matmul` for these ranks alone."""
    def bool(self) -> Tensor:
        """Convert the tensor to bool; return itself if it has that type."""
    def broadcast_to(self, size: Sequence[builtins.int]) -> Tensor:
        """Expand to a shape, as `expand`."""
    def byte(self) -> Tensor:
        """Convert the tensor to uint8; return itself if it has that type."""
    def ceil(self) -> Tensor:
        """Return the smallest whole number not below x, for each element. Integers stay as they are."""
    def ceil_(self) -> Tensor:
        """Return the smallest whole number not below x, for each element. Integers stay as they are."""
    def char(self) -> Tensor:
        """Convert the tensor to int8; return itself if it has that type."""
    def cholesky(self, upper: builtins.bool = False) -> Tensor:
        """Return `linalg.cholesky`: the triangular L with ``input = L @ L.mT``."""
    def chunk(self, chunks: builtins.int, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Return at most so many parts of one length (the last may be shorter)."""
    def clamp(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Limit the numbers to the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clamp_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Limit the numbers to the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clamp_max(self, max: Operand) -> Tensor:
        """Return ``clamp(input, max=max)``."""
    def clamp_max_(self, max: Operand) -> Tensor:
        """Return ``clamp(input, max=max)``."""
    def clamp_min(self, min: Operand) -> Tensor:
        """Return ``clamp(input, min=min)``."""
    def clamp_min_(self, min: Operand) -> Tensor:
        """Return ``clamp(input, min=min)``."""
    def clip(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Limit the numbers to the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clip_(self, min: Operand | None = None, max: Operand | None = None) -> Tensor:
        """Limit the numbers to the range from `min` to `max`; the gradient passes where they were inside, or on its edge."""
    def clone(self) -> Tensor:
        """Return a copy with its own memory, contiguous like all results; gradients flow through it."""
    def contiguous(self) -> Tensor:
        """Return the tensor itself if its elements lie in memory in order; otherwise a copy in which they do."""
    def copy_(self, src: Any) -> Tensor:
        """Write the elements of another tensor (or a number) into this one, converted to its type."""
    def copysign(self, other: Operand) -> Tensor:
        """Return the magnitude of the first operand with the sign of the second, that of -0.0 included."""
    def cos(self) -> Tensor:
        """Return the cosine of x radians, for each element. Integers are converted to float32 first."""
    def cos_(self) -> Tensor:
        """Return the cosine of x radians, for each element. Integers are converted to float32 first."""
    def cosh(self) -> Tensor:
        """Return the hyperbolic cosine, for each element. Integers are converted to float32 first."""
    def count_nonzero(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Return the number of elements other than 0."""
    def cpu(self) -> Tensor:
        """Return the tensor itself: all tensors are on the CPU."""
    def cross(self, other: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Return the cross product of two vectors of three elements, in each place of the other dimensions."""
    def cuda(self, device: Any = None) -> Tensor:
        """Raise an error: there is no such device."""
    def cummax(self, dim: builtins.int) -> Ordered:
        """Return the largest element up to and including each one, and its position, the last of equal ones."""
    def cummin(self, dim: builtins.int) -> Ordered:
        """Return the smallest element up to and including each one, and its position, the last of equal ones."""
    def cumprod(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return the product of the elements up to and including each one; of integers and bools in int64."""
    def cumprod_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return the product of the elements up to and including each one; of integers and bools in int64."""
    def cumsum(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return the sum of the elements up to and including each one; of integers and bools in int64."""
    def cumsum_(self, dim: builtins.int, *, dtype: Any = None) -> Tensor:
        """Return the sum of the elements up to and including each one; of integers and bools in int64."""
    def deg2rad(self) -> Tensor:
        """Return degrees as radians, for each element. Integers are converted to float32 first."""
    def det(self) -> Tensor:
        """Return the determinant of a square matrix."""
    def detach(self) -> Tensor:
        """Return a tensor that shares the value and has no history; writes to one are seen in the other."""
    def detach_(self) -> Tensor:
        """Take the tensor itself off the tape, so that it is a leaf without a gradient, and return it."""
    def diag(self, diagonal: builtins.int = 0) -> Tensor:
        """Return a copy of the diagonal of a matrix, or the matrix with a vector on its diagonal. `diagonal` is a view."""
    def diag_embed(self, offset: builtins.int = 0, dim1: builtins.int = -2, dim2: builtins.int = -1) -> Tensor:
        """Return matrices with the elements of the last dimension on a diagonal, and zeros elsewhere."""
    def diagonal(self, offset: builtins.int = 0, dim1: builtins.int = 0, dim2: builtins.int = 1) -> Tensor:
        """Return the diagonal of two dimensions, as the last dimension; `offset` counts diagonals to the right."""
    def diff(
        self, n: builtins.int = 1, dim: builtins.int = -1, prepend: Tensor | None = None, append: Tensor | None = None
    ) -> Tensor:
        """Return each element less the one before it, `n` times over; of bools, whether they differ."""
    def digamma(self) -> Tensor:
        """Return the derivative of lgamma, for each element. Integers are converted to float32 first."""
    def div(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def div_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def dot(self, tensor: Tensor) -> Tensor:
        """Return the product of two vectors, a number: `matmul` for these ranks alone."""
    def double(self) -> Tensor:
        """Convert the tensor to float64; return itself if it has that type."""
    def eq(self, other: Operand) -> Tensor:
        """Return whether the operands are equal; NaN equals nothing, element by element."""
    def eq_(self, other: Operand) -> Tensor:
        """Return whether the operands are equal; NaN equals nothing, element by element."""
    def equal(self, other: Tensor) -> builtins.bool:
        """Return whether two tensors have the same shape and equal elements, as a Python bool."""
    def erf(self) -> Tensor:
        """Return the error function, for each element. Integers are converted to float32 first."""
    def erf_(self) -> Tensor:
        """Return the error function, for each element. Integers are converted to float32 first."""
    def erfc(self) -> Tensor:
        """Return 1 - erf(x), exact also for large x, for each element. Integers are converted to float32 first."""
    def exp(self) -> Tensor:
        """Return e to the power x, for each element. Integers are converted to float32 first."""
    def exp2(self) -> Tensor:
        """Return 2 to the power x, for each element. Integers are converted to float32 first."""
    def exp2_(self) -> Tensor:
        """Return 2 to the power x, for each element. Integers are converted to float32 first."""
    def exp_(self) -> Tensor:
        """Return e to the power x, for each element. Integers are converted to float32 first."""
    def expand(self, *lengths: Any, size: Any = None) -> Tensor:
        """Repeat dimensions of length 1 without a copy, and add new ones in front; -1 keeps a length."""
    def expand_as(self, other: Tensor) -> Tensor:
        """Expand to the shape of another tensor."""
    def expm1(self) -> Tensor:
        """Return exp(x) - 1, exact near 0, for each element. Integers are converted to float32 first."""
    def expm1_(self) -> Tensor:
        """Return exp(x) - 1, exact near 0, for each element. Integers are converted to float32 first."""
    def exponential_(self, lambd: builtins.float = 1.0, *, generator: Generator | None = None) -> Tensor:
        """Write random numbers of an exponential distribution with the rate `lambd` into the tensor, of a float type."""
    def fill_(self, value: Any) -> Tensor:
        """Write one number (or the value of a 0-dimensional tensor) into every element."""
    def fix(self) -> Tensor:
        """Return x without its fraction, for each element. Integers stay as they are."""
    def flatten(self, start_dim: builtins.int = 0, end_dim: builtins.int = -1) -> Tensor:
        """Join the dimensions from one to another into one."""
    def flip(self, *each: Any, dims: Any = None) -> Tensor:
        """Reverse some dimensions, given one by one or as `dims`."""
    def fliplr(self) -> Tensor:
        """Return the columns in reverse order."""
    def flipud(self) -> Tensor:
        """Return the rows in reverse order."""
    def float(self) -> Tensor:
        """Convert the tensor to float32; return itself if it has that type."""
    def floor(self) -> Tensor:
        """Return the largest whole number not above x, for each element. Integers stay as they are."""
    def floor_(self) -> Tensor:
        """Return the largest whole number not above x, for each element. Integers stay as they are."""
    def floor_divide(self, other: Operand) -> Tensor:
        """Return the quotient rounded down, as Python's ``//``."""
    def floor_divide_(self, other: Operand) -> Tensor:
        """Return the quotient rounded down, as Python's ``//``."""
    def fmax(self, other: Operand) -> Tensor:
        """Return the larger of two operands, the other one if one is NaN; of equal ones the first has the gradient."""
    def fmin(self, other: Operand) -> Tensor:
        """Return the smaller of two operands, the other one if one is NaN; of equal ones the first has the gradient."""
    def fmod(self, other: Operand) -> Tensor:
        """Return the remainder of truncating division, with the sign of the dividend, as in C."""
    def fmod_(self, other: Operand) -> Tensor:
        """Return the remainder of truncating division, with the sign of the dividend, as in C."""
    def frac(self) -> Tensor:
        """Return the fraction of x, with its sign, for each element. The type stays."""
    def frac_(self) -> Tensor:
        """Return the fraction of x, with its sign, for each element. The type stays."""
    def gather(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Return the element of a dimension at each position in the index: ``x[index[i, j], j]`` for dim 0."""
    def ge(self, other: Operand) -> Tensor:
        """Return whether the first is not smaller, element by element."""
    def ge_(self, other: Operand) -> Tensor:
        """Return whether the first is not smaller, element by element."""
    def ger(self, vec2: Tensor) -> Tensor:
        """Return every element of one vector times every element of another."""
    def greater(self, other: Operand) -> Tensor:
        """Return whether the first is larger, element by element."""
    def greater_equal(self, other: Operand) -> Tensor:
        """Return whether the first is not smaller, element by element."""
    def gt(self, other: Operand) -> Tensor:
        """Return whether the first is larger, element by element."""
    def gt_(self, other: Operand) -> Tensor:
        """Return whether the first is larger, element by element."""
    def half(self) -> Tensor:
        """Convert the tensor to float16; return itself if it has that type."""
    def histc(self, bins: builtins.int = 100, min: builtins.float = 0, max: builtins.float = 0) -> Tensor:
        """Return how many elements are in each of equal intervals from `min` to `max`, by default those of the tensor."""
    def histogram(
        self,
        bins: Any,
        *,
        range: Sequence[builtins.float] | None = None,
        weight: Tensor | None = None,
        density: builtins.bool = False,
    ) -> Histogram:
        """Return how many elements are in each interval, and the ends of the intervals."""
    def hypot(self, other: Operand) -> Tensor:
        """Return ``sqrt(input**2 + other**2)``, without overflow on the way; infinite if either is, else NaN if one is."""
    def index_add(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """Return a copy with the slices of `source`, times `alpha`, added at some positions of a dimension."""
    def index_add_(self, dim: builtins.int, index: Tensor, source: Tensor, *, alpha: Number = 1) -> Tensor:
        """Return a copy with the slices of `source`, times `alpha`, added at some positions of a dimension."""
    def index_copy(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the slices of `source` written at some positions of a dimension."""
    def index_copy_(self, dim: builtins.int, index: Tensor, source: Tensor) -> Tensor:
        """Return a copy with the slices of `source` written at some positions of a dimension."""
    def index_fill(self, dim: builtins.int, index: Tensor, value: Number | Tensor) -> Tensor:
        """Return a copy with one number in all slices at some positions of a dimension; negative ones from the end."""
    def index_fill_(self, dim: builtins.int, index: Tensor, value: Number | Tensor) -> Tensor:
        """Return a copy with one number in all slices at some positions of a dimension; negative ones from the end."""
    def index_put_(self, indices: tuple[Tensor, ...], values: Any, accumulate: builtins.bool = False) -> Tensor:
        """Write ``x[indices] = values``, and return the tensor."""
    def index_select(self, dim: builtins.int, index: Tensor) -> Tensor:
        """Return the slices at some positions of a dimension, in that order."""
    def inner(self, other: Tensor) -> Tensor:
        """Return the products summed over the last dimension of both; with a number, the product."""
    def int(self) -> Tensor:
        """Convert the tensor to int32; return itself if it has that type."""
    def inverse(self) -> Tensor:
        """Return the inverse of a square matrix."""
    def is_contiguous(self) -> builtins.bool:
        """Return whether the elements lie in memory in order, the last dimension next to each other."""
    def isclose(
        self,
        other: Operand,
        rtol: builtins.float = 1e-05,
        atol: builtins.float = 1e-08,
        equal_nan: builtins.bool = False,
    ) -> Tensor:
        """Return whether elements are equal within a tolerance: ``|input - other| <= atol + rtol * |other|``."""
    def isfinite(self) -> Tensor:
        """Return whether each element is neither NaN nor an infinity."""
    def isinf(self) -> Tensor:
        """Return whether each element is an infinity, of either sign."""
    def isnan(self) -> Tensor:
        """Return whether each element is NaN, the only number that differs from itself."""
    def item(self) -> Number:
        """Return the one element of a tensor as a Python number."""
    def kron(self, other: Tensor) -> Tensor:
        """Return the Kronecker product: every element of the first replaced by itself times the whole second."""
    def le(self, other: Operand) -> Tensor:
        """Return whether the first is not larger, element by element."""
    def le_(self, other: Operand) -> Tensor:
        """Return whether the first is not larger, element by element."""
    def lerp(self, end: Tensor, weight: Operand) -> Tensor:
        """Interpolate between two points: ``input + weight * (end - input)``, exactly `end` for weight 1."""
    def lerp_(self, end: Tensor, weight: Operand) -> Tensor:
        """Interpolate between two points: ``input + weight * (end - input)``, exactly `end` for weight 1."""
    def less(self, other: Operand) -> Tensor:
        """Return whether the first is smaller, element by element."""
    def less_equal(self, other: Operand) -> Tensor:
        """Return whether the first is not larger, element by element."""
    def lgamma(self) -> Tensor:
        """Return log(|gamma(x)|), for each element. Integers are converted to float32 first."""
    def log(self) -> Tensor:
        """Return the natural logarithm, for each element. Integers are converted to float32 first."""
    def log10(self) -> Tensor:
        """Return the logarithm to base 10, for each element. Integers are converted to float32 first."""
    def log10_(self) -> Tensor:
        """Return the logarithm to base 10, for each element. Integers are converted to float32 first."""
    def log1p(self) -> Tensor:
        """Return log(1 + x), exact near 0, for each element. Integers are converted to float32 first."""
    def log1p_(self) -> Tensor:
        """Return log(1 + x), exact near 0, for each element. Integers are converted to float32 first."""
    def log2(self) -> Tensor:
        """Return the logarithm to base 2, for each element. Integers are converted to float32 first."""
    def log2_(self) -> Tensor:
        """Return the logarithm to base 2, for each element. Integers are converted to float32 first."""
    def log_(self) -> Tensor:
        """Return the natural logarithm, for each element. Integers are converted to float32 first."""
    def log_softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """Return the logarithm of `softmax`, exact also where the softmax is too small for a float."""
    def logaddexp(self, other: Operand) -> Tensor:
        """Return ``log(exp(input) + exp(other))``, without overflow on the way."""
    def logdet(self) -> Tensor:
        """Return the logarithm of the determinant, NaN if that is negative."""
    def logical_and(self, other: Operand) -> Tensor:
        """Return whether both are other than 0, element by element."""
    def logical_and_(self, other: Operand) -> Tensor:
        """Return whether both are other than 0, element by element."""
    def logical_not(self) -> Tensor:
        """Return whether each element is 0."""
    def logical_not_(self) -> Tensor:
        """Return whether each element is 0."""
    def logical_or(self, other: Operand) -> Tensor:
        """Return whether one is other than 0, element by element."""
    def logical_or_(self, other: Operand) -> Tensor:
        """Return whether one is other than 0, element by element."""
    def logical_xor(self, other: Operand) -> Tensor:
        """Return whether only one is other than 0, element by element."""
    def logical_xor_(self, other: Operand) -> Tensor:
        """Return whether only one is other than 0, element by element."""
    def logit(self, eps: builtins.float | None = None) -> Tensor:
        """Return the inverse of `sigmoid`, log(x / (1 - x)); with `eps`, of x kept inside [eps, 1 - eps]."""
    def logsumexp(
        self, dim: builtins.int | Sequence[builtins.int] | None = None, keepdim: builtins.bool = False
    ) -> Tensor:
        """Return ``log(sum(exp(input)))``, without overflow on the way."""
    def long(self) -> Tensor:
        """Convert the tensor to int64; return itself if it has that type."""
    def lt(self, other: Operand) -> Tensor:
        """Return whether the first is smaller, element by element."""
    def lt_(self, other: Operand) -> Tensor:
        """Return whether the first is smaller, element by element."""
    def masked_fill(self, mask: Tensor, value: Number | Tensor) -> Tensor:
        """Return one number where a mask holds, the tensor elsewhere; mask and tensor broadcast."""
    def masked_fill_(self, mask: Tensor, value: Number | Tensor) -> Tensor:
        """Return one number where a mask holds, the tensor elsewhere; mask and tensor broadcast."""
    def masked_select(self, mask: Tensor) -> Tensor:
        """Return the elements where a mask holds, in a row; mask and tensor broadcast."""
    def matmul(self, other: Tensor) -> Tensor:
        """Return the matrix product ``input @ other``, with NumPy's and PyTorch's rules for other ranks than two."""
    def matrix_power(self, n: builtins.int) -> Tensor:
        """Return a square matrix times itself, n times."""
    def max(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Tensor | None = None) -> Any:
        """Return the largest element, NaN if there is one. Three forms, as in PyTorch:"""
    def maximum(self, other: Operand) -> Tensor:
        """Return the larger of two operands, NaN if either is; equal ones share the gradient."""
    def mean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Return the mean of the elements; NaN of none."""
    def median(self, dim: builtins.int | None = None, keepdim: builtins.bool = False) -> Any:
        """Return the element in the middle, the lower one of two; with a dimension, also its position. NaN if there is"""
    def min(self, dim: Any = None, keepdim: builtins.bool = False, *, other: Tensor | None = None) -> Any:
        """Return the smallest element, NaN if there is one, in the three forms of `max`."""
    def minimum(self, other: Operand) -> Tensor:
        """Return the smaller of two operands, NaN if either is; equal ones share the gradient."""
    def mm(self, mat2: Tensor) -> Tensor:
        """Return the product of two matrices: `matmul` for these ranks alone."""
    def moveaxis(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move one or several dimensions to other places; the others keep their order."""
    def movedim(
        self, source: builtins.int | Sequence[builtins.int], destination: builtins.int | Sequence[builtins.int]
    ) -> Tensor:
        """Move one or several dimensions to other places; the others keep their order."""
    def msort(self) -> Tensor:
        """Return the elements in order along the first dimension."""
    def mul(self, other: Operand) -> Tensor:
        """Return the product of two tensors or numbers; of two bools, their and."""
    def mul_(self, other: Operand) -> Tensor:
        """Return the product of two tensors or numbers; of two bools, their and."""
    def multinomial(
        self, num_samples: builtins.int, replacement: builtins.bool = False, *, generator: Generator | None = None
    ) -> Tensor:
        """Return positions along the last dimension, each drawn with the weight that stands there."""
    def multiply(self, other: Operand) -> Tensor:
        """Return the product of two tensors or numbers; of two bools, their and."""
    def multiply_(self, other: Operand) -> Tensor:
        """Return the product of two tensors or numbers; of two bools, their and."""
    def mv(self, vec: Tensor) -> Tensor:
        """Return a matrix times a vector: `matmul` for these ranks alone."""
    def nan_to_num(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """Replace NaN and infinities by numbers; infinities by default by the largest and smallest of the type."""
    def nan_to_num_(
        self, nan: builtins.float = 0.0, posinf: builtins.float | None = None, neginf: builtins.float | None = None
    ) -> Tensor:
        """Replace NaN and infinities by numbers; infinities by default by the largest and smallest of the type."""
    def nanmean(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Return the mean of the elements that are not NaN."""
    def nanquantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Return the number that a share `q` of the elements lies below; NaN does not count."""
    def nansum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Return the sum of the elements that are not NaN."""
    def narrow(self, dim: builtins.int, start: builtins.int, length: builtins.int) -> Tensor:
        """Return some elements in a row along a dimension."""
    def ne(self, other: Operand) -> Tensor:
        """Return whether they differ, element by element."""
    def ne_(self, other: Operand) -> Tensor:
        """Return whether they differ, element by element."""
    def neg(self) -> Tensor:
        """Return minus x, for each element. The type stays."""
    def neg_(self) -> Tensor:
        """Return minus x, for each element. The type stays."""
    def negative(self) -> Tensor:
        """Return minus x, for each element. The type stays."""
    def negative_(self) -> Tensor:
        """Return minus x, for each element. The type stays."""
    def nelement(self) -> builtins.int:
        """Return the number of elements: another name of `numel`."""
    def new_empty(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor to be written (it holds zeros), in this tensor's type."""
    def new_full(
        self, size: Any, fill_value: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Return a tensor of one number, in this tensor's type."""
    def new_ones(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor of ones, in this tensor's type."""
    def new_tensor(
        self, data: Any, *, dtype: Any = None, device: Any = None, requires_grad: builtins.bool = False
    ) -> Tensor:
        """Return a tensor of data, in this tensor's type."""
    def new_zeros(
        self,
        *lengths: Any,
        size: Any = None,
        dtype: Any = None,
        device: Any = None,
        requires_grad: builtins.bool = False,
    ) -> Tensor:
        """Return a tensor of zeros, in this tensor's type."""
    def nonzero(self, *, as_tuple: builtins.bool = False) -> Any:
        """Return the positions of the elements that are not zero: a row for each, or one tensor for each dimension."""
    def norm(
        self,
        p: builtins.float | str = "fro",
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Return the p-norm of the elements as one vector: ``sum(|x|**p) ** (1/p)``."""
    def normal_(
        self, mean: builtins.float = 0.0, std: builtins.float = 1.0, *, generator: Generator | None = None
    ) -> Tensor:
        """Write normal random numbers into the tensor, of a float type."""
    def not_equal(self, other: Operand) -> Tensor:
        """Return whether they differ, element by element."""
    def numpy(self) -> np.ndarray[Any, Any]:
        """Return an array that shares the tensor's memory: writes to one are seen in the other."""
    def outer(self, vec2: Tensor) -> Tensor:
        """Return every element of one vector times every element of another."""
    def permute(self, *order: Any, dims: Any = None) -> Tensor:
        """Put the dimensions in another order."""
    def pin_memory(self, device: Any = None) -> Tensor:
        """Return the tensor itself: there is no device to which pinned memory could be copied faster."""
    def pinverse(self, rcond: builtins.float = 1e-15) -> Tensor:
        """Return `linalg.pinv`: the Moore-Penrose inverse."""
    def positive(self) -> Tensor:
        """Return the tensor itself: Python's ``+x``. Not for bools."""
    def pow(self, exponent: Operand) -> Tensor:
        """Return the first operand to the power of the second, as Python's ``**``."""
    def pow_(self, exponent: Operand) -> Tensor:
        """Return the first operand to the power of the second, as Python's ``**``."""
    def prod(self, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, dtype: Any = None) -> Tensor:
        """Return the product of the elements; of integers and bools in int64."""
    def put(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """Write, or add, elements at positions in the row of all elements; negative ones count from the end."""
    def put_(self, index: Tensor, source: Tensor, accumulate: builtins.bool = False) -> Tensor:
        """Write, or add, elements at positions in the row of all elements; negative ones count from the end."""
    def qr(self, some: builtins.bool = True) -> Any:
        """Return `linalg.qr`, reduced if `some`, else complete."""
    def quantile(
        self, q: Any, dim: builtins.int | None = None, keepdim: builtins.bool = False, *, interpolation: str = "linear"
    ) -> Tensor:
        """Return the number that a share `q` of the elements lies below; NaN if one is NaN."""
    def rad2deg(self) -> Tensor:
        """Return radians as degrees, for each element. Integers are converted to float32 first."""
    def ravel(self) -> Tensor:
        """Join all dimensions into one: a view of a contiguous tensor, and a copy of any other."""
    def reciprocal(self) -> Tensor:
        """Return 1 / x, for each element. Integers are converted to float32 first."""
    def reciprocal_(self) -> Tensor:
        """Return 1 / x, for each element. Integers are converted to float32 first."""
    def register_hook(self, hook: Any) -> HookHandle:
        """Call a function with a tensor's gradient in `backward`; its result, if any, replaces the gradient."""
    def relu(self) -> Tensor:
        """Return the larger of x and 0; NaN stays NaN, and the gradient at 0 is 0."""
    def relu_(self) -> Tensor:
        """Return the larger of x and 0; NaN stays NaN, and the gradient at 0 is 0."""
    def remainder(self, other: Operand) -> Tensor:
        """Return the remainder of `floor_divide`, with the divisor's sign, as Python's ``%``; of integers modulo zero, 0."""
    def remainder_(self, other: Operand) -> Tensor:
        """Return the remainder of `floor_divide`, with the divisor's sign, as Python's ``%``; of integers modulo zero, 0."""
    def repeat(self, *each: Any, repeats: Any = None) -> Tensor:
        """Repeat the whole tensor along each dimension; more numbers than dimensions add dimensions in"""
    def repeat_interleave(
        self,
        repeats: builtins.int | Tensor,
        dim: builtins.int | None = None,
        *,
        output_size: builtins.int | None = None,
    ) -> Tensor:
        """Repeat each slice along a dimension several times in a row; without a dimension, each element."""
    def reshape(self, *lengths: Any, shape: Any = None) -> Tensor:
        """Return the elements in the same order under another shape; one length may be -1. A view where memory allows."""
    def reshape_as(self, other: Tensor) -> Tensor:
        """Return a `reshape` with the shape of another tensor."""
    def retain_grad(self) -> None:
        """Keep the gradient of a recorded result as its ``grad``, as leaves do."""
    def roll(
        self, shifts: builtins.int | Sequence[builtins.int], dims: builtins.int | Sequence[builtins.int] | None = None
    ) -> Tensor:
        """Move elements along dimensions; those that leave at the end come in at the beginning."""
    def round(self, *, decimals: builtins.int = 0) -> Tensor:
        """Round to the nearest whole number, halves to the even one; or to the nearest multiple of 10**-decimals."""
    def round_(self, *, decimals: builtins.int = 0) -> Tensor:
        """Round to the nearest whole number, halves to the even one; or to the nearest multiple of 10**-decimals."""
    def rsqrt(self) -> Tensor:
        """Return 1 / sqrt(x), for each element. Integers are converted to float32 first."""
    def rsqrt_(self) -> Tensor:
        """Return 1 / sqrt(x), for each element. Integers are converted to float32 first."""
    def scatter(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Number | Tensor | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Return a copy with `src` written where the index says: ``y[index[i, j], j] = src[i, j]`` for dim 0."""
    def scatter_(
        self,
        dim: builtins.int,
        index: Tensor,
        src: Number | Tensor | None = None,
        *,
        value: Number | None = None,
        reduce: str | None = None,
    ) -> Tensor:
        """Return a copy with `src` written where the index says: ``y[index[i, j], j] = src[i, j]`` for dim 0."""
    def scatter_add(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """Return a copy with the elements of `src` added where the index says; those at the same position add up."""
    def scatter_add_(self, dim: builtins.int, index: Tensor, src: Tensor) -> Tensor:
        """Return a copy with the elements of `src` added where the index says; those at the same position add up."""
    def scatter_reduce(
        self, dim: builtins.int, index: Tensor, src: Tensor, reduce: str, *, include_self: builtins.bool = True
    ) -> Tensor:
        """Return a copy in which all elements of `src` with one position are reduced to one, with the present value."""
    def select(self, dim: builtins.int, index: builtins.int) -> Tensor:
        """Return the slice at one position of a dimension, without that dimension."""
    def sgn(self) -> Tensor:
        """Return 1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def short(self) -> Tensor:
        """Convert the tensor to int16; return itself if it has that type."""
    def sigmoid(self) -> Tensor:
        """Return 1 / (1 + exp(-x)), for each element. Integers are converted to float32 first."""
    def sigmoid_(self) -> Tensor:
        """Return 1 / (1 + exp(-x)), for each element. Integers are converted to float32 first."""
    def sign(self) -> Tensor:
        """Return 1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def sign_(self) -> Tensor:
        """Return 1, 0 or -1; 0 for NaN, for each element. The type stays."""
    def signbit(self) -> Tensor:
        """Return whether the sign bit is set, also of -0.0, for each element. The type stays."""
    def sin(self) -> Tensor:
        """Return the sine of x radians, for each element. Integers are converted to float32 first."""
    def sin_(self) -> Tensor:
        """Return the sine of x radians, for each element. Integers are converted to float32 first."""
    def sinh(self) -> Tensor:
        """Return the hyperbolic sine, for each element. Integers are converted to float32 first."""
    def sinh_(self) -> Tensor:
        """Return the hyperbolic sine, for each element. Integers are converted to float32 first."""
    def slogdet(self) -> Any:
        """Return `linalg.slogdet`: the sign of the determinant, and the logarithm of its absolute value."""
    def softmax(self, dim: builtins.int | None = None, dtype: DType | None = None) -> Tensor:
        """Return ``e**x``, divided by its sum over a dimension: positive numbers that add up to 1."""
    def sort(self, dim: builtins.int = -1, descending: builtins.bool = False, stable: builtins.bool = False) -> Ordered:
        """Return the elements along a dimension in order, and their former positions."""
    def split(
        self, split_size_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return parts of one length (the last may be shorter), or of the lengths in a list, along a dimension."""
    def sqrt(self) -> Tensor:
        """Return the square root, NaN below 0, for each element. Integers are converted to float32 first."""
    def sqrt_(self) -> Tensor:
        """Return the square root, NaN below 0, for each element. Integers are converted to float32 first."""
    def square(self) -> Tensor:
        """Return x * x, for each element. The type stays."""
    def square_(self) -> Tensor:
        """Return x * x, for each element. The type stays."""
    def squeeze(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Remove the dimensions of length 1, or those of them that are named."""
    def squeeze_(self, dim: builtins.int | Sequence[builtins.int] | None = None) -> Tensor:
        """Remove the dimensions of length 1, or those of them that are named."""
    def std(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        unbiased: builtins.bool = True,
        keepdim: builtins.bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """Return the standard deviation, the square root of `var` (same arguments); where it is 0, so is its gradient."""
    def sub(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the difference of two tensors or numbers, the second times `alpha`."""
    def sub_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the difference of two tensors or numbers, the second times `alpha`."""
    def subtract(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the difference of two tensors or numbers, the second times `alpha`."""
    def subtract_(self, other: Operand, *, alpha: Number = 1) -> Tensor:
        """Return the difference of two tensors or numbers, the second times `alpha`."""
    def sum(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        keepdim: builtins.bool = False,
        *,
        dtype: Any = None,
    ) -> Tensor:
        """Return the sum of the elements; of integers and bools in int64."""
    def svd(self, some: builtins.bool = True, compute_uv: builtins.bool = True) -> tuple[Tensor, Tensor, Tensor]:
        """Return U, S and V with ``input = U @ diag(S) @ V.mT``; `linalg.svd` returns V transposed."""
    def swapaxes(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Exchange two dimensions: `transpose` under NumPy's name."""
    def swapaxes_(self, axis0: builtins.int, axis1: builtins.int) -> Tensor:
        """Exchange two dimensions: `transpose` under NumPy's name."""
    def swapdims(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions."""
    def swapdims_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions."""
    def t(self) -> Tensor:
        """Return the transpose of a matrix; a tensor of fewer dimensions stays as it is."""
    def t_(self) -> Tensor:
        """Return the transpose of a matrix; a tensor of fewer dimensions stays as it is."""
    def take(self, index: Tensor) -> Tensor:
        """Return the elements at positions in the row of all elements, shaped as the index; negative ones from the end."""
    def take_along_dim(self, indices: Tensor, dim: builtins.int | None = None) -> Tensor:
        """Gather as `gather`, but the other dimensions broadcast; without a dimension, from all elements in a row."""
    def tan(self) -> Tensor:
        """Return the tangent of x radians, for each element. Integers are converted to float32 first."""
    def tan_(self) -> Tensor:
        """Return the tangent of x radians, for each element. Integers are converted to float32 first."""
    def tanh(self) -> Tensor:
        """Return the hyperbolic tangent, for each element. Integers are converted to float32 first."""
    def tanh_(self) -> Tensor:
        """Return the hyperbolic tangent, for each element. Integers are converted to float32 first."""
    def tensor_split(
        self, indices_or_sections: builtins.int | Sequence[builtins.int], dim: builtins.int = 0
    ) -> tuple[Tensor, ...]:
        """Return so many parts of lengths that differ by at most 1; or the parts between the positions in a list."""
    def tile(self, *each: Any, dims: Any = None) -> Tensor:
        """Repeat as `repeat`, but missing numbers at the front are 1."""
    def to(
        self,
        *target: Any,
        dtype: Any = None,
        device: Any = None,
        non_blocking: builtins.bool = False,
        copy: builtins.bool = False,
    ) -> Tensor:
        """Convert the tensor to another type; return itself if it has that type, unless a copy is asked for."""
    def tolist(self) -> Any:
        """Return the elements as nested lists of Python numbers; a number, if there are no dimensions."""
    def topk(
        self, k: builtins.int, dim: builtins.int = -1, largest: builtins.bool = True, sorted: builtins.bool = True
    ) -> Ordered:
        """Return the `k` largest (or smallest) elements along a dimension, in order, and their positions."""
    def trace(self) -> Tensor:
        """Return the sum of a matrix's diagonal; of integers, in int64."""
    def transpose(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions."""
    def transpose_(self, dim0: builtins.int, dim1: builtins.int) -> Tensor:
        """Exchange two dimensions."""
    def tril(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the matrix with zeros above a diagonal; `diagonal` counts diagonals to the right."""
    def tril_(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the matrix with zeros above a diagonal; `diagonal` counts diagonals to the right."""
    def triu(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the matrix with zeros below a diagonal; `diagonal` counts diagonals to the right."""
    def triu_(self, diagonal: builtins.int = 0) -> Tensor:
        """Return the matrix with zeros below a diagonal; `diagonal` counts diagonals to the right."""
    def true_divide(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def true_divide_(self, other: Operand, *, rounding_mode: str | None = None) -> Tensor:
        """Return the quotient of two tensors or numbers; a float, unless it is rounded."""
    def trunc(self) -> Tensor:
        """Return x without its fraction, for each element. Integers stay as they are."""
    def trunc_(self) -> Tensor:
        """Return x without its fraction, for each element. Integers stay as they are."""
    def type(self, dtype: Any = None) -> Any:
        """Convert the tensor to another type, or without an argument return the name of its type."""
    def type_as(self, other: Tensor) -> Tensor:
        """Convert the tensor to another one's type."""
    def unbind(self, dim: builtins.int = 0) -> tuple[Tensor, ...]:
        """Return all slices along a dimension, without that dimension."""
    def unflatten(self, dim: builtins.int, sizes: Sequence[builtins.int]) -> Tensor:
        """Take one dimension apart into several; one of `sizes` may be -1."""
    def unfold(self, dimension: builtins.int, size: builtins.int, step: builtins.int) -> Tensor:
        """Return windows of some size, a step apart, along a dimension; the place inside the window is the last"""
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
        """Return the different elements (or slices along a dimension), in order; their number depends on data."""
    def unsqueeze(self, dim: builtins.int) -> Tensor:
        """Insert a new dimension of length 1."""
    def unsqueeze_(self, dim: builtins.int) -> Tensor:
        """Insert a new dimension of length 1."""
    def var(
        self,
        dim: builtins.int | Sequence[builtins.int] | None = None,
        unbiased: builtins.bool = True,
        keepdim: builtins.bool = False,
        *,
        correction: Number | None = None,
    ) -> Tensor:
        """Return the variance: the squares of the deviations from the mean, summed and divided by ``count - correction``."""
    def vdot(self, other: Tensor) -> Tensor:
        """Return `dot`, from which it differs for complex numbers alone."""
    def view(self, *shape: Any) -> Tensor:
        """Return a view as `reshape`, never a copy; with an element type, the same bits read as that type."""
    def view_as(self, other: Tensor) -> Tensor:
        """Return a `view` with the shape of another tensor."""
    def where(self, condition: Tensor, other: Operand) -> Tensor:
        """Return the tensor's elements where the condition holds, the other operand's elsewhere. See `minitorch.where`."""
    def xlogy(self, other: Operand) -> Tensor:
        """Return ``input * log(other)``, and 0 where `input` is 0, whatever the logarithm; NaN where `other` is NaN."""
    def zero_(self) -> Tensor:
        """Write zero into every element."""

def install(methods: Mapping[str, Callable[..., Any] | property], into: type = ...) -> None:
    """Give a class methods, operators or properties, by name."""
