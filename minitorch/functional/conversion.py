"""Conversion of tensors to Python, NumPy and text, and through DLPack: values leave the engine here.

Everything here needs the numbers themselves, and gets them from `interpreters.concrete`. While a graph is recorded
there are none, and the error says so: ``MT101`` for a branch, ``MT102`` for the rest. Only `repr` never fails: it shows
a traced tensor by its shape, type and the inputs that it depends on.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Iterator
from typing import Any

import numpy as np

from ..autograd import detach
from ..dtypes import DEFAULT_FLOAT, DEFAULT_INT, as_dtype, bool_
from ..errors import DTypeError, ShapeError, ShardingError, compose
from ..interpreters import Trace, concrete, current_staging, is_grad_enabled, made_by, origins_text
from ..ir import Node, user_source, warn_user
from ..tensor import Batched, Remote, Tensor, fetched, note_write, readable, with_value
from .movement.parts import unbind

Array = np.ndarray[Any, Any]

# To Python ------------------------------------------------------------------------------------------------


def _one_number(tensor: Tensor, what: str, code: str = "MT102", fix: str | None = None) -> Any:
    if tensor.numel() != 1:
        raise RuntimeError(f"{what} needs a tensor of one element, this one has the shape {list(tensor.shape)}")
    number = concrete(tensor, what, code, fix).item()
    return float(number) if tensor.dtype.is_floating_point else number


def item(self: Tensor) -> bool | int | float:
    """Return the one element of a tensor as a Python number.

    Raises:
        RuntimeError: if there is not exactly one element.
        TracedValueError: while a graph is recorded (``MT102``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[2.5]]).item()
        2.5
    """
    number: bool | int | float = _one_number(self, "item()")
    return number


def tolist(self: Tensor) -> Any:
    """Return the elements as nested lists of Python numbers; a number, if there are no dimensions.

    Raises:
        TracedValueError: while a graph is recorded (``MT102``).

    Example:
        >>> import minitorch as mt
        >>> mt.tensor([[1, 2], [3, 4]]).tolist()
        [[1, 2], [3, 4]]
    """
    array = concrete(self, "tolist()")
    return (array.astype(np.float64) if self.dtype.is_floating_point else array).tolist()


def _bool(tensor: Tensor) -> bool:
    """Return whether the one element is not zero; ``MT101`` while a graph is recorded."""
    if tensor.numel() != 1:
        raise RuntimeError(
            f"whether a tensor of shape {list(tensor.shape)} is true is ambiguous: use x.any() or x.all() to "
            "ask about its elements, x.numel() to ask whether it has any"
        )
    fix = "mt.where(condition, a, b), which computes both sides; or @mt.script on this function, which keeps branches"
    return bool(_one_number(tensor, "a branch (if, while, assert, and, or, not, in)", "MT101", fix))


def _index(tensor: Tensor) -> int:
    """Return the one element of an integer tensor, for `range`, slices of lists and the like."""
    if tensor.numel() != 1 or tensor.dtype.is_floating_point:
        raise TypeError(f"only an integer tensor of one element can be an index, not {tensor.spec}")
    fix = "pass it as a plain int: each value is compiled for itself; or gather, which takes traced positions"
    return int(_one_number(tensor, "a Python int (range, a size, a slice, a list's index)", fix=fix))


def _int(tensor: Tensor) -> int:
    return int(_one_number(tensor, "int()"))


def _float(tensor: Tensor) -> float:
    return float(_one_number(tensor, "float()"))


def _complex(tensor: Tensor) -> complex:
    return complex(_one_number(tensor, "complex()"))


def _iter(tensor: Tensor) -> Iterator[Tensor]:
    """Iterate over the slices along the first dimension."""
    if tensor.ndim == 0:
        raise TypeError(f"iteration over a 0-dimensional tensor, {tensor.spec}: it holds one number, and has no parts")
    return iter(unbind(tensor))


def _contains(tensor: Tensor, element: Any) -> bool:
    """Return whether some element equals a number, or the elements of a tensor that broadcasts."""
    return bool((tensor == element).any())


# To NumPy -------------------------------------------------------------------------------------------------


def numpy(self: Tensor) -> Array:
    """Return an array that shares the tensor's memory: writes to one are seen in the other.

    The result of `expand` shows one element several times; its array is read-only.

    Raises:
        RuntimeError: if the tensor requires a gradient, whose history would be lost; use ``x.detach()``.
        TracedValueError: while a graph is recorded (``MT102``).

    Example:
        >>> import minitorch as mt
        >>> x = mt.zeros(2)
        >>> x.numpy()[0] = 5
        >>> x
        tensor([5., 0.])
    """
    return _shared(self, "numpy()").view()


def _shared(tensor: Tensor, what: str, error: type[Exception] = RuntimeError, fix: str | None = None) -> Array:
    if tensor.requires_grad and is_grad_enabled():
        raise error(f"{what} on a tensor that requires a gradient would lose its history: use x.detach() first")
    if current_staging() is None:
        fetched(tensor)  # others may write to shared memory
    return concrete(tensor, what, fix=fix)


def _array(tensor: Tensor, dtype: Any = None, copy: bool | None = None) -> Array:
    """Return the tensor as an array, for `numpy.asarray` and functions of NumPy."""
    fix = "use minitorch's own function, which can be recorded (mt.sin for np.sin); or return the tensor"
    return np.array(_shared(tensor, "a conversion to NumPy", fix=fix), dtype, copy=copy)


# DLPack ---------------------------------------------------------------------------------------------------


def _dlpack(tensor: Tensor, **request: Any) -> Any:
    """Return a DLPack capsule of the tensor's memory, for `from_dlpack` of other libraries."""
    if tensor.dtype.numpy.kind not in "biuf":
        raise BufferError(f"{tensor.dtype.name} cannot leave through DLPack: NumPy does not export it; use x.float()")
    return _shared(tensor, "DLPack", BufferError).__dlpack__(**request)


def _dlpack_device(tensor: Tensor) -> tuple[int, int]:
    """Return the device of the memory: the CPU."""
    return (1, 0)


def from_dlpack(source: Any) -> Tensor:
    """Make a tensor on the memory of another library's array (PyTorch, JAX, NumPy ...), without a copy.

    Of our types, bfloat16 is the one that DLPack knows and we neither import nor export: memory passes through NumPy,
    which has no bfloat16. Convert to float32, in which every bfloat16 is exact, and back.

    Raises:
        DTypeError: if NumPy cannot import the element type (``MT202``).

    Example:
        >>> import minitorch as mt, numpy as np
        >>> array = np.zeros(2)
        >>> x = mt.from_dlpack(array)
        >>> array[0] = 1
        >>> x
        tensor([1., 0.], dtype=minitorch.float64)
    """
    if not hasattr(source, "__dlpack__"):
        raise TypeError(f"from_dlpack takes an object with __dlpack__, not {type(source).__name__}")
    try:
        array = np.from_dlpack(source)
        as_dtype(array.dtype)
    except (BufferError, RuntimeError, TypeError) as error:
        raise DTypeError(
            "MT202",
            f"from_dlpack: this {type(source).__name__} cannot be imported ({error})",
            why="memory is taken over through NumPy, on the CPU, for the types that both have",
            fix="convert it first, e.g. to float32 on the CPU without a gradient",
        ) from None
    return with_value(array)


# To text --------------------------------------------------------------------------------------------------


def _visible(tensor: Tensor) -> Array | None:
    """Return the tensor's values if they can be shown now, without an error and without changing a recording."""
    try:
        value, staging = readable(tensor), current_staging()
    except ShardingError:  # other processes hold parts of it
        return None
    if staging is None:
        return value if isinstance(value, np.ndarray) else None
    if staging.defers:
        ours = isinstance(value, np.ndarray) or (isinstance(value, Node) and value.trace is staging.trace)
        return concrete(tensor, "repr") if ours else None
    return value if isinstance(value, np.ndarray) and not staging._written(tensor._root) else None


def _hidden_text(tensor: Tensor) -> str:
    """Return the `repr` of a tensor without a value."""
    value, staging = tensor._value, current_staging()
    if isinstance(value, np.ndarray) and staging is not None:
        return f"Tensor(traced {tensor.spec}, `{staging.name_of(tensor)}` after an in-place write)"
    if isinstance(value, Batched):
        return f"Tensor({tensor.spec} of each example in vmap: {value.tensor!r})"
    if isinstance(value, Remote):
        return f"Tensor({tensor.spec}, divided among processes)"
    if not isinstance(value, Node):
        return f"Tensor({tensor.spec}, without a value)"
    if isinstance(value.trace, Trace) and value.trace.is_definition:
        return f"Tensor(in a graph: {tensor.spec}, depends on {origins_text(value)})"
    if isinstance(value.trace, Trace) and value.trace.defers:
        return f"Tensor({tensor.spec}, lost: the run that would have computed it failed)"
    ended = "" if staging is not None and value.trace is staging.trace else ", its trace has ended"
    return f"Tensor(traced {tensor.spec}, depends on {origins_text(value)}{ended})"


def _history(tensor: Tensor) -> list[str]:
    if tensor.grad_fn is not None:
        return [f"grad_fn=<{tensor.grad_fn.primitive.name}>"]
    return ["requires_grad=True"] if tensor._requires_grad else []


def _repr(tensor: Tensor) -> str:
    """Return the values as PyTorch prints them; of a traced tensor, the known facts."""
    from .printing import array_text, with_suffixes

    array = _visible(tensor)
    if array is None:
        return _hidden_text(tensor)
    usual = (DEFAULT_FLOAT,) if array.size == 0 else (DEFAULT_FLOAT, DEFAULT_INT, bool_)
    facts = [f"size={tensor.shape}"] if array.size == 0 and array.ndim != 1 else []
    facts += [] if tensor.dtype in usual else [f"dtype={tensor.dtype}"]
    prefix = "tensor("
    return with_suffixes(prefix + array_text(array, len(prefix)), facts + _history(tensor), len(prefix))


def _text(tensor: Tensor) -> str:
    if _visible(tensor) is None and (staging := current_staging()) is not None and not staging.defers:
        made = f", {made_by(tensor._value)}," if isinstance(tensor._value, Node) else ""
        warn_user(
            compose(
                "MT105",
                f"a traced {tensor.spec}{made} is turned into text",
                where=str(user_source()),
                why=f"{staging.trace.name} is being recorded into a graph: this line runs once, now, and not at each "
                "run of the graph; and there is no value to show yet",
                fix=staging.remedy,
            )
        )
    return _repr(tensor)


def _str(tensor: Tensor) -> str:
    """Return the `repr`; while a graph is recorded, with a warning (``MT105``), since it happens once."""
    return _text(tensor)


def _format(tensor: Tensor, spec: str) -> str:
    """Format a 0-dimensional tensor like its number; any other one has no format but its text."""
    if tensor.ndim == 0 and (spec or _visible(tensor) is not None):
        number = _one_number(tensor, "a format, as in f'{x:.2f}',")
        return format(float(number) if tensor.dtype.is_floating_point else number, spec)
    if spec:
        raise TypeError(f"the format {spec!r} is for one number, not for a tensor of shape {list(tensor.shape)}")
    return _text(tensor)


def _repr_html(tensor: Tensor) -> str:
    """Return the notebook's display: shape, type and values; a table if it is small, the text otherwise."""
    from .printing import html_table

    array = _visible(tensor)
    facts = [f"shape {list(tensor.shape)}", tensor.dtype.name, *_history(tensor)]
    table = None if array is None else html_table(array, ", ".join(facts))
    return table or f"<div><code>{html.escape(', '.join(facts))}</code></div><pre>{html.escape(_repr(tensor))}</pre>"


_SPECIAL = (
    *(_bool, _index, _int, _float, _complex, _iter, _contains, _array, _dlpack, _dlpack_device),
    *(_repr, _str, _format),
)
OPERATORS: dict[str, Callable[..., Any]] = {f"_{each.__name__}__": each for each in _SPECIAL}
OPERATORS["_repr_html_"] = _repr_html


def _replace_data(tensor: Tensor, value: Tensor) -> None:
    """Replace a tensor's numbers, of its shape and type, unseen by the tape: in new memory, copied from the value.

    Views keep the memory that they have. In a program that is recorded the value is written into the tensor, and seen
    in views from outside, too, so reading these afterwards is refused there.
    """
    if not isinstance(value, Tensor):
        raise TypeError(f"x.data is set to a tensor, not to {type(value).__name__}: mt.tensor(...) makes one")
    if (value.shape, value.dtype) != (tensor.shape, tensor.dtype):
        raise ShapeError(
            "MT201",
            f"x.data: {value.spec} cannot take the place of {tensor.spec}",
            why="shape and type of a tensor never change",
            fix="make a new tensor instead",
        )
    is_own = value._view is not None and value._view.base is tensor and value._view.is_detached
    staging = current_staging()
    if staging is not None and not staging.defers:
        if not is_own:  # `x.data -= y` has written it
            staging.exchange(tensor)
            detach(tensor).copy_(value)
        return
    old, new = concrete(tensor, "x.data = ..."), concrete(value, "x.data = ...")
    if not is_own or old.__array_interface__ != new.__array_interface__:
        tensor._value, tensor._view = np.array(new), None
        note_write(tensor)


_DATA_DOC = """The value without its history, as `detach`; set to a tensor, the value is exchanged unseen by the tape.

    The new one has the same shape and type, and is copied, where PyTorch shares its memory; in a recording it is
    written into the tensor.

    Example:
        >>> import minitorch as mt
        >>> x = mt.ones(2, requires_grad=True)
        >>> x.data = x.data - 0.5
        >>> x
        tensor([0.5000, 0.5000], requires_grad=True)
    """

PROPERTIES: dict[str, Callable[[Tensor], Any] | property] = {"data": property(detach, _replace_data, doc=_DATA_DOC)}
