"""Methods with a trailing underscore: each is a public function whose result is written into its first argument."""

from __future__ import annotations

from collections.abc import Callable
from functools import update_wrapper
from typing import Any

from ..dtypes import PYTHON_NUMBERS
from ..errors import ShapeError
from ..primitives import constant
from ..tensor import Tensor
from .inplace import assign, checked_arithmetic
from .operands import fitting, operand

# `name_` for each of these: the function's result, written back.
FROM_FUNCTIONS = (
    "abs", "add", "addcdiv", "addcmul", "addmm", "asin", "atan", "baddbmm", "bitwise_and", "bitwise_not",
    "bitwise_or", "bitwise_xor", "ceil", "clamp", "clamp_max", "clamp_min", "clip", "cos", "cumprod", "cumsum",
    "div", "divide", "eq", "erf", "exp", "exp2", "expm1", "fill_diagonal", "floor", "floor_divide", "fmod",
    "frac", "ge", "gt", "index_add", "index_copy", "index_fill", "le", "lerp", "log", "log10", "log1p", "log2",
    "logical_and", "logical_not", "logical_or", "logical_xor", "lt", "masked_fill", "masked_scatter", "mul",
    "multiply", "nan_to_num", "ne", "neg", "negative", "pow", "reciprocal", "relu", "remainder", "round", "rsqrt",
    "scatter", "scatter_add", "sigmoid", "sign", "sin", "sinh", "sqrt", "square", "sub", "subtract", "tan",
    "tanh", "tril", "triu", "true_divide", "trunc",
)  # fmt: skip

OPERATORS_FROM = {
    "__iadd__": "add_",
    "__isub__": "sub_",
    "__imul__": "mul_",
    "__itruediv__": "div_",
    "__ifloordiv__": "floor_divide_",
    "__imod__": "remainder_",
    "__ipow__": "pow_",
    "__iand__": "bitwise_and_",
    "__ior__": "bitwise_or_",
    "__ixor__": "bitwise_xor_",
}


def in_place(name: str, function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return the in-place method of a function: its result, written into its first argument."""

    def method(tensor: Tensor, *args: Any, **kwargs: Any) -> Tensor:
        return checked_arithmetic(tensor, function(tensor, *args, **kwargs), f"{name}_")

    update_wrapper(method, function, (), ())  # `inspect.signature` shows the function's arguments
    method.__name__ = method.__qualname__ = f"{name}_"
    method.__doc__ = f"Write `{name}` into the tensor itself, and return it. See `minitorch.{name}`."
    return method


def copy_(self: Tensor, src: Any) -> Tensor:
    """Write the elements of another tensor (or a number) into this one, converted to its type.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2).copy_(mt.tensor([1, 2]))
        tensor([1., 2.])
    """
    return assign(self, src if isinstance(src, Tensor) else operand(src, self.dtype), "copy_")


def fill_(self: Tensor, value: Any) -> Tensor:
    """Write one number (or the value of a 0-dimensional tensor) into every element.

    Raises:
        ShapeError: ``MT201`` for a tensor with dimensions.
        DTypeError: ``MT202`` if it does not fit the tensor's type.

    Example:
        >>> import minitorch as mt
        >>> mt.zeros(2).fill_(7)
        tensor([7., 7.])
    """
    if isinstance(value, PYTHON_NUMBERS):
        value = fitting("fill_", value, self.dtype)
    elif (given := operand(value)).ndim:
        raise ShapeError("MT201", f"fill_: the value is {given.spec}, not one number", fix="write copy_(value)")
    return copy_(self, value)


def zero_(self: Tensor) -> Tensor:
    """Write zero into every element.

    Example:
        >>> import minitorch as mt
        >>> mt.ones(2).zero_()
        tensor([0., 0.])
    """
    return assign(self, constant(value=0, shape=(), dtype=self.dtype), "zero_")


def in_place_methods(functions: dict[str, Callable[..., Any]]) -> dict[str, Callable[..., Tensor]]:
    """Return all in-place methods and operators, for the existing public functions."""
    methods: dict[str, Callable[..., Tensor]] = {"copy_": copy_, "fill_": fill_, "zero_": zero_}
    for name in FROM_FUNCTIONS:
        if name in functions:
            methods[f"{name}_"] = in_place(name, functions[name])
    for operator, name in OPERATORS_FROM.items():
        if name in methods:
            methods[operator] = methods[name]
    return methods
