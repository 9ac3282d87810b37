"""Debugging in every mode: `print`, `breakpoint`, and `check_nan`, which names the operation that made a NaN."""

from __future__ import annotations

import builtins
import re
import string
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from types import ModuleType
from typing import Any

import numpy as np

from minitorch.dtypes import BY_NUMPY, DType
from minitorch.errors import NonFiniteError
from minitorch.interpreters import Watcher, block, callback, current_staging, watching
from minitorch.ir import Node, Primitive, Source, Spec
from minitorch.nn import Module
from minitorch.tensor import Tensor, with_value
from minitorch.tree import flatten, unflatten

Array = np.ndarray[Any, Any]

_PLAIN = (bool, int, float, complex, str, bytes, type(None), DType, ModuleType, range, slice)


def _has(test: Callable[[Array], Array], array: Array) -> bool:
    array = np.asarray(array)
    return bool(BY_NUMPY[array.dtype].is_floating_point and np.any(test(array)))


class _NonFinite(Watcher):
    """The watcher of `check_nan`."""

    name = "mt.debug.check_nan"

    def __init__(self, infinities: bool) -> None:
        self.infinities = infinities

    def suspects(self, array: Array) -> bool:
        """Whether a result of a compiled kernel has a NaN or an infinity."""
        return _has(np.isnan, array) or (self.infinities and _has(np.isinf, array))

    def computed(self, primitive: Primitive, operands: Sequence[Array], value: Array, source: Source | None) -> None:
        """Raise an error if this operation made the value's first NaN or infinity."""
        inputs, array = operands, value
        dtype = BY_NUMPY[array.dtype]
        if not dtype.is_floating_point or not inputs:
            return
        nans = int(np.count_nonzero(np.isnan(array)))
        infinite = int(np.count_nonzero(np.isinf(array))) if self.infinities else 0
        if any(_has(np.isnan, operand) for operand in inputs):
            return  # passed on, not made here
        if infinite and any(_has(np.isinf, operand) for operand in inputs):
            infinite = 0
        if not nans and not infinite:
            return
        kinds = [f"{nans} NaN"] * bool(nans) + [f"{infinite} infinite"] * bool(infinite)
        first = np.argwhere(~np.isfinite(array) if self.infinities else np.isnan(array))[0].tolist()
        raise NonFiniteError(
            "MT501",
            f"{primitive.name} made {' and '.join(kinds)} among {array.size} values of {Spec(array.shape, dtype)}",
            where=f"asked for at {source}; the first is at index {first}",
            why="none of its operands had one, so it was made here, and everything computed from it inherits it",
            fix="look at the operands on that line: a log or division near 0, exp of something large, 0 * inf",
        )


@block
def check_nan(infinities: bool = True) -> Iterator[None]:
    """Stop at the first NaN (or infinity) that is computed inside the `with` block.

    In eager mode, and on the backend `interpret`, every value is checked when it is computed, and the error names the
    operation and the user's line. Compiled code runs unchanged, kernel by kernel: the results of each kernel are
    checked, and a kernel with a NaN (or infinity) is run again node by node. A NaN inside a kernel that does not reach
    a result is not found. An operation whose operands already have one (a mask of -inf, a NaN in the data) is not
    blamed.

    Args:
        infinities: whether infinities count as well.

    Raises:
        NonFiniteError: ``MT501``.
        ObserverError: inside of `minitorch.profile` (``MT503``).

    Example:
        >>> import minitorch as mt
        >>> with mt.debug.check_nan():
        ...     mt.log(mt.tensor([1.0, -1.0]))
        Traceback (most recent call last):
        minitorch.errors.NonFiniteError: MT501: log made 1 NaN among 2 values of f32[2]...
    """
    with watching(_NonFinite(infinities)):
        yield


class _Formatter(string.Formatter):
    """`str.format` that refuses unused arguments: the text was most often an f-string by mistake."""

    def check_unused_args(self, used_args: set[int | str], args: Sequence[Any], kwargs: Mapping[str, Any]) -> None:
        """Refuse unused arguments."""
        unused = [repr(name) for name in (*range(len(args)), *kwargs) if name not in used_args]
        if unused:
            raise ValueError(
                f"debug.print has arguments that its text does not use: {', '.join(unused)}; "
                "write print('x = {}', x), not print(f'x = {x}', x)"
            )


class _Checker(_Formatter):
    """Checks text against arguments; the values do not exist yet, and are not looked at."""

    def format_field(self, value: Any, format_spec: str) -> str:
        """Nothing is formatted."""
        return ""

    def convert_field(self, value: Any, conversion: Any) -> Any:
        """Nothing is converted."""
        return value

    def get_field(self, field_name: str, args: Sequence[Any], kwargs: Mapping[str, Any]) -> Any:
        """Look up the argument, without attributes and items."""
        first = re.split(r"[.\[]", field_name, maxsplit=1)[0]
        key: int | str = int(first) if first.isdigit() else first
        return self.get_value(key, args, kwargs), key


def print(fmt: str, *args: Any, **kwargs: Any) -> None:
    """Print values, also from inside compiled code: whenever it runs, and in program order.

    The text is that of ``fmt.format(*args, **kwargs)`` with arrays in place of the tensors, as in JAX's function of
    this name. In a function that is traced, an ordinary `print` prints once, while it is traced, and has no values.

    The values are computed by a program of their own, before the compiled one: printing changes no kernel and no
    number. In a `Session`, a print happens in every `run` whose feeds it needs, whatever is fetched; in a `lazy` block,
    when the pending operations run.

    Args:
        fmt: a text with ``{}``, ``{name}`` or ``{0:.3f}`` in it, not an f-string.
        args, kwargs: tensors, plain values, and nested tuples, lists and dicts of them.

    Raises:
        TypeError: if `fmt` is not a text.
        ValueError: if the text does not use all arguments.
        IndexError, KeyError: if it uses an argument that does not exist.

    Example:
        >>> import minitorch as mt
        >>> @mt.jit
        ... def f(x):
        ...     y = x * 2
        ...     mt.debug.print("y = {}, its sum {total:.1f}", y, total=y.sum())
        ...     return y + 1
        >>> _ = f(mt.tensor([1.0, 2.0]))
        y = [2. 4.], its sum 6.0
    """
    if not isinstance(fmt, str):
        raise TypeError(f'debug.print: the first argument is a text, such as "x = {{}}", not {type(fmt).__name__}')
    leaves, structure = flatten((args, kwargs))
    places = [place for place, leaf in enumerate(leaves) if isinstance(leaf, Tensor)]
    plain: list[Any] = [None if isinstance(leaf, Tensor) else leaf for leaf in leaves]
    formatter = _Formatter()
    _Checker().vformat(fmt, args, kwargs)

    def show(arrays: list[Array]) -> None:
        found = list(plain)
        for place, array in zip(places, arrays, strict=True):
            found[place] = array
        positional, named = unflatten(structure, found)
        builtins.print(formatter.vformat(fmt, positional, named))

    callback(show, [leaves[place] for place in places])


def breakpoint() -> None:
    """Stop in Python's debugger, also from inside compiled code: whenever it runs, and in program order.

    In eager mode this is the builtin function. In compiled code the debugger shows the line of this call, and the
    variables that the function had there, with their values in this run: ``p x``, ``p x.mean()`` and the like. The
    function itself is over, so there is no next line; ``c`` goes on with the run, ``q`` ends it before it has changed
    anything. Like `print`, it changes no number.

    A debugger that is set by ``sys.breakpointhook`` or ``PYTHONBREAKPOINT`` is used instead.

    Example:
        >>> import minitorch as mt, os
        >>> os.environ["PYTHONBREAKPOINT"] = "0"   # pass over breakpoints
        >>> @mt.jit
        ... def f(x):
        ...     y = x * 2
        ...     mt.debug.breakpoint()
        ...     return y + 1
        >>> f(mt.ones(2))
        tensor([3., 3.])
        >>> del os.environ["PYTHONBREAKPOINT"]
    """
    from . import debugger

    frame = sys._getframe(1)
    staging = current_staging()
    if staging is None:
        callback(lambda _: debugger.stop_in(frame), [])
        return
    # A traced tensor may not be kept alive, so each is left out, and its value put in when it exists. One
    # of another recording, such as a graph that was defined in an earlier cell of a notebook, has none, and stays.
    leaves, structure = flatten({name: value for name, value in frame.f_locals.items() if _can_be_kept(value)})
    recorded = {
        place: leaf
        for place, leaf in enumerate(leaves)
        if isinstance(leaf, Tensor)
        and (id(leaf) in staging.captured or (isinstance(leaf._value, Node) and leaf._value.trace is staging.trace))
    }
    kept = [None if place in recorded else leaf for place, leaf in enumerate(leaves)]
    places = list(recorded)
    source = Source(frame.f_code.co_filename, frame.f_lineno)
    function, outside = frame.f_code.co_name, frame.f_globals

    def stop(arrays: list[Array]) -> None:
        found = list(kept)
        for place, array in zip(places, arrays, strict=True):
            found[place] = with_value(array)
        debugger.stop_at(source, function, outside, unflatten(structure, found))

    callback(stop, list(recorded.values()))


def _can_be_kept(value: Any) -> bool:
    """Whether a variable cannot contain a traced tensor that we do not see."""
    leaves, _ = flatten(value)
    return all(isinstance(leaf, (Tensor, Module, np.ndarray, *_PLAIN)) or callable(leaf) for leaf in leaves)
