"""Constant arrays in listings: as numbers if they are few and print exactly, as base64 otherwise."""

from __future__ import annotations

import base64
from typing import Any

import numpy as np

from ..dtypes import BY_NUMPY, PYTHON_NUMBERS, stored
from ..ir import Shape, Spec
from ..primitives import Literal
from .values import Number, number_text

Array = np.ndarray[Any, Any]

SMALL = 16  # the most elements of a constant that is written out


def array_text(array: Array) -> str:
    """Return the text between the brackets of ``constant(...)``."""
    if 0 < array.size <= SMALL:
        spec = Spec(array.shape, BY_NUMPY[array.dtype])
        numbers = array.reshape(-1).tolist()
        if Literal(_stored(numbers, spec)) == Literal(array):  # false for NaNs with unusual bits
            return _nested([number_text(each, spec.dtype) for each in numbers], array.shape)
    return f'base64="{base64.b64encode(_little_endian(array).tobytes()).decode()}"'


def _nested(texts: list[str], shape: Shape) -> str:
    for length in reversed(shape):
        texts = [f"[{', '.join(texts[at : at + length])}]" for at in range(0, len(texts), length)]
    return texts[0]


def from_base64(text: object, spec: Spec) -> Array:
    """Return the array that a listing has as base64.

    Raises:
        ValueError: if it is not that of an array of this shape and type.
    """
    if not isinstance(text, str):
        raise ValueError("base64 is a string")
    memory = base64.b64decode(text, validate=True)
    if len(memory) != spec.nbytes:
        raise ValueError(f"{spec} has {spec.nbytes} bytes, not {len(memory)}")
    if spec.dtype.category == "bool" and max(memory, default=0) > 1:
        raise ValueError("a bool is 0 or 1")
    return _little_endian(np.frombuffer(memory, spec.dtype.numpy)).reshape(spec.shape)


def from_nested(value: object, spec: Spec) -> Array:
    """Return the array that a listing has as nested tuples of numbers.

    Raises:
        ValueError: if they are not nested as the shape says, or not of the type.
        OverflowError: if the type does not have one of the numbers.
    """
    leaves: list[Any] = [value]
    for length in spec.shape:
        if not all(isinstance(leaf, tuple) and len(leaf) == length for leaf in leaves):
            raise ValueError(f"the numbers are not nested as {spec} says")
        leaves = [element for leaf in leaves for element in leaf]
    if not all(type(leaf) in PYTHON_NUMBERS for leaf in leaves):
        raise ValueError("an array has numbers in it")
    return _stored(leaves, spec)


def _stored(numbers: list[Number], spec: Spec) -> Array:
    """Return an array of these elements, with one canonical NaN."""
    elements = [stored(each, spec.dtype) for each in numbers]
    wide = np.dtype(np.float64) if spec.dtype.is_floating_point else spec.dtype.numpy
    with np.errstate(all="ignore"):
        return np.array(elements, wide).astype(spec.dtype.numpy).reshape(spec.shape)


def _little_endian(array: Array) -> Array:
    """Return the array in little-endian byte order, whatever the machine's is."""
    return array if np.little_endian else array.byteswap()
