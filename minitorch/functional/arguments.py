"""Error messages of public functions: which argument of which function is wrong.

An error of the package's own has a readable message, and gets the name of the function called. One of Python's, such
as ``'list' object has no attribute 'ndim'``, is explained by the annotations: the argument that does not match them.
"""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Collection, Sequence
from types import NoneType
from typing import Any

import numpy as np

from ..errors import MinitorchError, ShapeError, by_name, published
from ..tensor import Tensor
from .operands import is_operand
from .options import require_tensor

# The types that an annotation allows. Parameters with other annotations are checked by their functions.
ALLOWED: dict[str, tuple[type, ...]] = {"Tensor": (Tensor,), "Tensor | None": (Tensor, NoneType)}

OURS = (TypeError, ValueError, IndexError, RuntimeError)  # the built-in errors that the package raises, in words
RAW = (AttributeError, KeyError, OverflowError, RecursionError, ZeroDivisionError)  # errors it never raises


def _is_int(value: object) -> bool:
    return hasattr(value, "__index__")


def _is_number(value: object) -> bool:
    return hasattr(value, "__float__")


def _are_ints(value: object) -> bool:
    return _is_int(value) or (isinstance(value, (Sequence, Tensor, np.ndarray)) and all(map(_is_int, value)))


# The type that an annotation asks for, in words, and whether a value is of it.
KINDS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "Tensor": ("a tensor", lambda value: isinstance(value, Tensor)),
    "Operand": ("a tensor or a number", is_operand),
    "Tensor | Number": ("a tensor or a number", is_operand),
    "int": ("an int", _is_int),
    "float": ("a number", _is_number),
    "Number": ("a number", _is_number),
    "Dims": ("a dimension, or a tuple of them", _are_ints),
    "Ints": ("an int, or a tuple of them", _are_ints),
    "Sequence[int]": ("a list or tuple of ints", _are_ints),
    "str": ("a text", lambda value: isinstance(value, str)),
    "Sequence[Tensor]": ("a list or tuple of tensors", lambda value: isinstance(value, (list, tuple))),
}
# NumPy's and PyTorch's other names for parameters, which both take: ``np.sum(tensor)`` asks for ``sum(axis=, out=)``.
OTHER_NAMES = {
    "axis": "dim", "keepdims": "keepdim", "split_size": "split_size_or_sections",
    "sections": "indices_or_sections", "indices": "indices_or_sections", "unflattened_size": "sizes",
}  # fmt: skip
# Of losses, PyTorch's earlier names for what `reduction` says.
_EARLIER = ("size_average", "reduce")
# Options of PyTorch that change nothing here: there is one layout of memory, and one device.
WITHOUT_EFFECT = ("layout", "memory_format", "non_blocking", "pin_memory")
RENAMED = frozenset([*OTHER_NAMES, *_EARLIER, *WITHOUT_EFFECT, "out"])
ANYTHING: tuple[str, Callable[[Any], bool]] = ("", lambda value: True)


def public(name: str, function: Any, module: str = "", strict: bool = False) -> Any:
    """Wrap a function or method as users call it; an operator, a property or a class is left as it is.

    Args:
        name: the name it is called by.
        function: the function called.
        module: the module where it is found under this name, for pickles.
        strict: whether lists, arrays and numbers are refused where the annotations say ``Tensor``, as PyTorch does.

    Example:
        >>> import minitorch as mt
        >>> public("mse_loss", mt.nn.functional.mse_loss, strict=True)(mt.ones(2), [1, 2])
        Traceback (most recent call last):
        TypeError: mse_loss: target is a tensor, not list; make one with minitorch.tensor(...)
    """
    if not inspect.isfunction(function) or name.startswith("__") or "Callable" in str(function.__annotations__):
        return published(name, function)
    parameters = inspect.signature(function).parameters if strict else {}
    names = [*inspect.signature(function).parameters]
    place = names.index("reduction") if "reduction" in names else None
    allowed = {each: ALLOWED.get(str(parameter.annotation), (object,)) for each, parameter in parameters.items()}
    kinds = tuple(allowed.values())

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Any:
        if place is not None and len(args) > place and not isinstance(args[place], str):
            args, options = _with_reduction(args, place, options)
        if options and not RENAMED.isdisjoint(options):
            taken = inspect.signature(function).parameters
            options = renamed(options, taken)
            if "out" in options and "out" not in taken:
                out = options.pop("out")
                return called(*args, **options) if out is None else _written(out, called(*args, **options))
        if strict:
            right = all(map(isinstance, args, kinds))
            if options and right:
                right = all(isinstance(value, allowed.get(name, object)) for name, value in options.items())
            if not right:
                _refuse(name, allowed, {**dict(zip(allowed, args, strict=False)), **options})
        try:
            return function(*args, **options)
        except MinitorchError:
            raise
        except (*OURS, *RAW) as error:
            raise in_words(error, function, args, options) from None

    called.__name__ = name
    if module:
        called.__module__, called.__qualname__ = module, name
    return published(name, called)


def _with_reduction(
    args: tuple[Any, ...], place: int, options: dict[str, Any]
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """Take PyTorch's earlier ``(..., size_average, reduce, reduction)``, where reduction alone is expected now."""
    given = dict(zip((*_EARLIER, "reduction"), args[place:], strict=False))
    return args[:place], {**given, **options}


def renamed(options: dict[str, Any], taken: Collection[str]) -> dict[str, Any]:
    """Return options under the names that a function takes.

    Example:
        >>> renamed({"axis": 1, "size_average": False}, ("dim", "reduction"))
        {'dim': 1, 'reduction': 'sum'}
    """
    options = {n: value for n, value in options.items() if n in taken or n not in WITHOUT_EFFECT}
    options = {OTHER_NAMES[n] if OTHER_NAMES.get(n) in taken else n: value for n, value in options.items()}
    if "reduction" in taken:
        size_average, reduce = (options.pop(name, None) for name in _EARLIER)
        if size_average is not None or reduce is not None:
            options["reduction"] = "none" if reduce is False else "sum" if size_average is False else "mean"
    return options


def with_inplace(function: Callable[..., Tensor]) -> Callable[..., Tensor]:
    """Return a function with PyTorch's option `inplace`: whether the result is written into the first argument.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor([-1.0, 2.0])
        >>> with_inplace(mt.nn.functional.softplus)(x, inplace=True) is x
        True
    """
    signature = inspect.signature(function)
    option = inspect.Parameter("inplace", inspect.Parameter.POSITIONAL_OR_KEYWORD, default=False, annotation="bool")
    most = len(signature.parameters)

    @functools.wraps(function)
    def called(*args: Any, **options: Any) -> Tensor:
        inplace = options.pop("inplace", False) if len(args) <= most else args[most]
        if not inplace:
            return function(*args[:most], **options)
        target = args[0] if args else options.pop("input")
        read = target.clone() if target.requires_grad else target  # for the gradient, which may read it
        result = function(read, *args[1:most], **options)
        written: Tensor = target if result is read else target.copy_(result)
        return written

    called.__signature__ = signature.replace(parameters=[*signature.parameters.values(), option])  # type: ignore[attr-defined]
    return called


def _written(out: Any, result: Any) -> Any:
    """Write a result to the tensors given as `out`, of its shape, and return these."""
    if isinstance(out, (tuple, list)):
        return type(result)(*map(_written, out, result))
    require_tensor("this function", "out", out)
    if out.shape != result.shape:
        raise ShapeError("MT201", f"out is {out.spec}, the result {result.spec}", fix="make out in the result's shape")
    return out.copy_(result)


def in_words(error: Exception, function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> Exception:
    """Return the error of a call: about an argument that does not match its annotation, or the same with a name."""
    text = str(error)
    if isinstance(error, RAW) or by_name(text) != text:
        wrong = _wrong_argument(function, args, options)
        if wrong is not None:
            return TypeError(by_name(wrong))
    if type(error) in OURS and len(error.args) == 1:
        error.args = (by_name(text),)
    return error


def _wrong_argument(function: Any, args: tuple[Any, ...], options: dict[str, Any]) -> str | None:
    """Return, in words, the first argument that does not match its annotation."""
    try:
        given = inspect.signature(function).bind(*args, **options)
    except TypeError:
        return None
    for name, value in given.arguments.items():
        parameter = given.signature.parameters[name]
        text = str(parameter.annotation)
        annotation = "Tensor" if name in ("tensors", "operands") else text.removesuffix(" | None")
        what, fits = KINDS.get(annotation, ANYTHING)
        for each in value if parameter.kind is parameter.VAR_POSITIONAL else (value,):
            if not fits(each) and (each is not None or annotation == text == "Tensor"):
                return f"{name} is {what}, not {type(each).__name__}: {each!r:.60}"
    return None


def _refuse(function: str, allowed: dict[str, tuple[type, ...]], given: dict[str, Any]) -> None:
    for name, value in given.items():
        if not isinstance(value, allowed.get(name, object)):
            require_tensor(function, name, value)
