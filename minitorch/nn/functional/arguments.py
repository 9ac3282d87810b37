"""The check of arguments that all functions of `minitorch.nn.functional` have in common: a tensor is a tensor."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable
from types import NoneType
from typing import Any

from ...functional.operands import require_tensor
from ...tensor import Tensor

# The types that an annotation allows. Parameters with other annotations are checked by their functions.
ALLOWED: dict[str, tuple[type, ...]] = {"Tensor": (Tensor,), "Tensor | None": (Tensor, NoneType)}


def tensors_checked(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function that refuses lists, arrays and numbers where its annotations say ``Tensor``, as PyTorch does.

    Raises:
        TypeError: from the function that is returned, naming the argument.

    Example:
        >>> import minitorch as mt
        >>> tensors_checked(mt.nn.functional.mse_loss)(mt.ones(2), [1, 2])
        Traceback (most recent call last):
        TypeError: mse_loss: target is a tensor, not list; make one with minitorch.tensor(...)
    """
    parameters = inspect.signature(function).parameters
    allowed = {name: ALLOWED.get(str(each.annotation), (object,)) for name, each in parameters.items()}
    kinds = tuple(allowed.values())

    @functools.wraps(function)
    def checked(*args: Any, **options: Any) -> Any:
        right = all(map(isinstance, args, kinds))
        if options and right:
            right = all(isinstance(value, allowed.get(name, object)) for name, value in options.items())
        if not right:
            _refuse(function.__name__, allowed, {**dict(zip(allowed, args, strict=False)), **options})
        return function(*args, **options)

    return checked


def _refuse(function: str, allowed: dict[str, tuple[type, ...]], given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not isinstance(value, allowed.get(name, object)):
            require_tensor(function, name, value)
