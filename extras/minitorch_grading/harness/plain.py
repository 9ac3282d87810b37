"""Plain values: what crosses from the student's process to the judge's, as JSON, with exact types.

A tensor, an array or a number of the student's is taken apart here, where the student's code can still run, and put
together again where it cannot: only data cross. A float32 3.0, an int 3 and True stay three different things, NaN and
-0.0 arrive bit for bit, and an object of any other type arrives as an `Unknown`, whatever its `__eq__` says.
"""

from __future__ import annotations

import base64
from collections.abc import Iterator
from dataclasses import dataclass
from itertools import islice
from typing import Any

import numpy as np

from minitorch import dtypes
from minitorch.tensor import Tensor

MOST_ITEMS = 1 << 14  # of all lists and dicts in a value together; answers are small
BYTES_OF_ITEM = 256  # of an array or a text, which count as so many items
MOST_BYTES = MOST_ITEMS * BYTES_OF_ITEM  # of an array
MOST_DEPTH = 20
MOST_TEXT = 1 << 18  # characters
MOST_LINE = 500  # characters of the text of an exception
MOST_NAME = 200  # characters of an exception's name, and of the function that raised it

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Unknown:
    """Something that is no plain value; `what` says what it was."""

    what: str


@dataclass(frozen=True)
class Fault:
    """A call that gave nothing: what was raised, in which line of the student's, or that it took too long."""

    kind: str
    text: str = ""
    where: str = ""

    def __str__(self) -> str:
        if self.kind == TIMEOUT:
            return f"it was stopped after {self.text} seconds: does a loop never end?"
        if self.kind == "NotImplementedError":
            return "it has not been written yet"
        at = f" (in {self.where})" if self.where else ""
        if self.kind in ("WithheldError", MUTATION):
            return f"{self.text}{at}"
        if self.kind == "RecursionError":
            return f"it calls itself too often{at}: a deep graph needs a loop instead"
        return f"it raises {self.kind}{at}: {self.text}" if self.text else f"it raises {self.kind}{at}"


TIMEOUT, MUTATION = "timeout", "mutation"  # kinds of faults that no exception is


@dataclass(frozen=True)
class Question:
    """A message to the judge in the middle of a call, which waits for the reply; `what` is plain data."""

    what: Any


@dataclass(frozen=True)
class Value:
    """An array as it arrived: of a `minitorch.Tensor` or of NumPy, which are not the same answer."""

    array: Array
    is_tensor: bool

    def __str__(self) -> str:
        name = "tensor" if self.is_tensor else "array"
        return f"{name} of shape {list(self.array.shape)} and type {self.array.dtype}"


def encode(value: object) -> Any:
    """A value as JSON.

    Example:
        >>> encode((1, True, -0.0, None))
        {'tuple': [1, True, {'float': '-0x0.0p+0'}, None]}
        >>> decode(encode((1, True, -0.0, None)))
        (1, True, -0.0, None)
    """
    return _encoded(value, 0, iter(range(MOST_ITEMS)))


def _encoded(value: object, depth: int, left: Iterator[int]) -> Any:
    """A value inside of `depth` others; `left` has a number for each item that may still come."""
    kind = type(value)
    if depth > MOST_DEPTH:
        return {"unknown": "something nested too deeply"}
    if value is None or kind is bool:
        return value
    if isinstance(value, str) and kind is str:
        fits = len(value) <= MOST_TEXT and _spend(left, len(value))
        return value if fits else {"unknown": f"a text of {len(value)} characters"}
    if isinstance(value, int) and kind is int:
        return value if value.bit_length() < 64 else {"unknown": "a whole number of more than 63 bits"}
    if isinstance(value, float) and kind is float:
        return {"float": value.hex()}
    if isinstance(value, Fault) and kind is Fault:
        return {"fault": [value.kind, value.text, value.where]}
    if isinstance(value, Question) and kind is Question:
        return {"question": _encoded(value.what, depth + 1, left)}
    if isinstance(value, (list, tuple)) and kind in (list, tuple):
        inside = [_encoded(each, depth + 1, left) for each, _ in zip(value, left, strict=False)]
        return {kind.__name__: inside} if len(inside) == len(value) else {"unknown": _too_large(value)}
    if isinstance(value, dict) and kind is dict:
        pairs = zip(value.items(), left, strict=False)
        inside = [[_encoded(each, depth + 1, left) for each in pair] for pair, _ in pairs]
        return {"dict": inside} if len(inside) == len(value) else {"unknown": _too_large(value)}
    if isinstance(value, Tensor) and kind is Tensor:
        return _of_array(np.asarray(value.detach().numpy()), True, left)
    if isinstance(value, np.ndarray) and kind is np.ndarray:
        return _of_array(value, False, left)
    if isinstance(value, Value) and kind is Value:
        return _of_array(value.array, value.is_tensor, left)
    if isinstance(value, Unknown) and kind is Unknown:
        return {"unknown": value.what}
    if isinstance(value, np.generic):
        return {"unknown": f"a NumPy scalar ({_named(kind)})"}
    return {"unknown": f"a {_named(kind)}"}


def _too_large(value: list[Any] | tuple[Any, ...] | dict[Any, Any]) -> str:
    kind = type(value).__name__
    return f"a {kind} of {len(value)} {'entries' if kind == 'dict' else 'elements'}, more than an answer may have in it"


def _named(kind: type) -> str:
    return str(kind.__name__)[:MOST_NAME]


def _spend(left: Iterator[int], size: int) -> bool:
    """Take the items that so many bytes count as; whether there were as many."""
    wanted = size // BYTES_OF_ITEM
    return sum(1 for _ in islice(left, wanted)) == wanted


def _of_array(array: Array, is_tensor: bool, left: Iterator[int]) -> Any:
    if array.dtype not in dtypes.BY_NUMPY or array.nbytes > MOST_BYTES or not _spend(left, array.nbytes):
        return {"unknown": f"an array of {array.nbytes} bytes and type {array.dtype}"}
    content = base64.b64encode(np.ascontiguousarray(array).tobytes()).decode("ascii")
    return {"array": [is_tensor, dtypes.BY_NUMPY[array.dtype].short, list(array.shape), content]}


def decode(data: Any, depth: int = 0) -> Any:
    """The value that `encode` wrote.

    Raises:
        ValueError: for anything that it does not write.
    """
    if data is None or type(data) in (bool, int, str):
        return data
    if type(data) is not dict or len(data) != 1 or depth > MOST_DEPTH + 1:
        raise ValueError("not an encoded value")
    ((kind, content),) = data.items()
    try:
        return _DECODERS[kind](content, depth)
    except (KeyError, TypeError, AttributeError, OverflowError) as error:
        raise ValueError(f"not an encoded value: {error!r}") from None


def _array_of(content: Any, depth: int) -> Value:
    is_tensor, short, shape, text = content
    dtype = dtypes.BY_SHORT_NAME[short].numpy
    array = np.frombuffer(base64.b64decode(text, validate=True), dtype).reshape([int(length) for length in shape])
    return Value(array.copy(), bool(is_tensor))


def _fault(kind: object, text: object, where: object) -> Fault:
    return Fault(str(kind)[:MOST_NAME], str(text)[:MOST_LINE], str(where)[:MOST_NAME])


_DECODERS: dict[str, Any] = {
    "float": lambda content, depth: float.fromhex(content),
    "list": lambda content, depth: [decode(each, depth + 1) for each in content],
    "tuple": lambda content, depth: tuple(decode(each, depth + 1) for each in content),
    "dict": lambda content, depth: {decode(key, depth + 1): decode(each, depth + 1) for key, each in content},
    "array": _array_of,
    "fault": lambda content, depth: _fault(*content),
    "question": lambda content, depth: Question(decode(content, depth + 1)),
    "unknown": lambda content, depth: Unknown(str(content)),
}


def plain(value: object) -> Any:
    """A value as the judge will see it: there and back."""
    return decode(encode(value))


def arrays(value: Any) -> Any:
    """Decoded data with plain NumPy arrays in place of `Value`, for the inputs of a check."""
    if isinstance(value, Value):
        return value.array
    if isinstance(value, (list, tuple)):
        return type(value)(map(arrays, value))
    if isinstance(value, dict):
        return {key: arrays(each) for key, each in value.items()}
    return value


def described(value: object) -> str:
    """An answer in a few words, for a sentence that says what is wrong with it."""
    if isinstance(value, Unknown):
        return value.what
    if isinstance(value, Value):
        numbers = np.array2string(value.array.reshape(-1)[:6], separator=", ", threshold=6)
        few = f" {numbers}" if value.array.size <= 6 else ""
        return f"{'a' if value.is_tensor else 'an'} {value}{few}"
    if isinstance(value, Fault):
        return str(value)
    text = repr(value)
    if isinstance(value, (list, tuple, dict)) and "Unknown(" in text:  # objects that have no plain form
        one = "entry" if isinstance(value, dict) else "element"
        many = f"{one}s" if one == "element" else "entries"
        strange = [each for each in (value.values() if isinstance(value, dict) else value) if isinstance(each, Unknown)]
        with_it = f", with {strange[0].what} in it" if strange else ""
        return f"a {type(value).__name__} of {len(value)} {one if len(value) == 1 else many}{with_it}"
    return text if len(text) <= 80 else f"{text[:77]}..."
