"""`Building`: the nodes and constants of an ONNX graph while it is written.

A row of the tables turns one node of our graph into nodes of ONNX. Its operands are names of values; it calls `op` for
each operator, and returns the name of the result. Each ONNX node is named after its result, and its `doc_string` is the
line of the user's program.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from typing import Any, NoReturn

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.errors import TranslationError
from minitorch.ir import Node
from minitorch.polynomials import Atom, Polynomial, least, terms_of
from minitorch.sizes import Real, Size, hint_of, is_symbolic, key_of, same

from ..common import NUMBERS, package

Array = np.ndarray[Any, Any]
Row = Callable[["Building", Node, list[str]], str]
"""(what is built, a node, the names of its operands) -> the name of its result."""

_SMALL_INTS = (dtypes.uint8, dtypes.int8, dtypes.int16)
_INTS = (*_SMALL_INTS, dtypes.int32, dtypes.int64, dtypes.uint32)
_FLOATS = (dtypes.float16, dtypes.float32, dtypes.float64)
_WIDE = (dtypes.int32, dtypes.int64)
_BYTES = (dtypes.uint8, dtypes.int8)
_NUMBERS = (*_INTS, *_FLOATS)

# The types that an operator is computed in. These are the ones that both the standard and the CPU kernels of ONNX
# Runtime 1.32 have, and float64 wherever the standard has it. Others are computed in a wider type and converted back.
COMPUTED: dict[str, tuple[DType, ...]] = {
    "Abs": _NUMBERS,
    "Add": _NUMBERS,
    "ArgMax": (*_BYTES, *_WIDE, *_FLOATS),
    "ArgMin": (*_BYTES, *_WIDE, *_FLOATS),
    "CumSum": (*_WIDE, dtypes.float32, dtypes.float64),
    "Div": _NUMBERS,
    "Equal": (dtypes.bool_, *_NUMBERS),
    "Expand": (dtypes.bool_, *_NUMBERS),
    "Less": _NUMBERS,
    "LessOrEqual": _NUMBERS,
    "MatMul": (*_WIDE, dtypes.uint32, *_FLOATS),
    "Max": (*_BYTES, *_WIDE, dtypes.uint32, *_FLOATS),
    "Mod": (*_INTS, *_FLOATS),
    "Mul": _NUMBERS,
    "Neg": (dtypes.int8, dtypes.int16, *_WIDE, *_FLOATS),
    "Pad": (dtypes.bool_, *_BYTES, *_WIDE, dtypes.uint32, *_FLOATS),
    "Range": (dtypes.int16, *_WIDE, dtypes.float32, dtypes.float64),
    "ReduceMax": (*_BYTES, *_WIDE, *_FLOATS),
    "ReduceProd": (*_WIDE, *_FLOATS),
    "ReduceSum": (*_WIDE, *_FLOATS),
    "ScatterND": (dtypes.bool_, *_NUMBERS, dtypes.bfloat16),
    "Sub": _NUMBERS,
    "TopK": (*_WIDE, dtypes.float32, dtypes.float64),
    "Where": (*_BYTES, *_WIDE, dtypes.uint32, *_FLOATS),
}
_ARITHMETIC = ("Add", "Sub", "Mul", "Div")  # of small integers since opset 14
# How sizes are computed, by the kind of a `Real` or of an atom.
_OPERATORS = {
    "+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "Div", "**": "Pow", "min": "Min", "max": "Max",
}  # fmt: skip
_WIDER: dict[DType, DType] = {
    **dict.fromkeys((dtypes.bool_, *_SMALL_INTS), dtypes.int32),
    dtypes.uint32: dtypes.int64,
    **dict.fromkeys((dtypes.float16, dtypes.bfloat16), dtypes.float32),
}


NEAR = 64  # nodes that are looked back on for one to be merged with; more find more, and take longer


class Building:
    """An ONNX graph in the making.

    Args:
        opset: the version of the operators.
        places: for each symbol of a size, the argument that has it, and the dimension.

    Attributes:
        held: the arrays that the model holds, by their names.
        nodes: the ONNX nodes so far.
        arrays: the constants so far, by name.
        known: the names that are taken.
        origins: of a constant that was made of an array that the model holds, the name of that one.
        results: the results of nodes that several of ours are, by what these have in common.
    """

    def __init__(self, opset: int, places: Mapping[str, tuple[str, int]]) -> None:
        self.opset, self.places = opset, places
        self.held: Mapping[str, Array] = {}
        self.onnx = package()
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self.known: set[str] = set()
        self.origins: dict[str, str] = {}
        self.results: dict[tuple[Any, ...], Sequence[str]] = {}
        self.node: Node | None = None  # the one that is being written
        self._constants: dict[tuple[Any, ...], str] = {}
        self._shared: dict[tuple[Any, ...], str] = {}
        self._counts: dict[str, int] = {}

    def inner(self) -> Building:
        """The graph of a body: it sees all names and constants, and what has been computed around it."""
        found = copy(self)
        found.nodes, found.results, found._shared = [], dict(self.results), dict(self._shared)
        return found

    def name(self, like: str) -> str:
        """A name that is not taken: the one given, or that with a number."""
        found = like
        while found in self.known:
            self._counts[like] = self._counts.get(like, 0) + 1
            found = f"{like}_{self._counts[like]}"
        self.known.add(found)
        return found

    def op(self, kind: str, *inputs: str, result: str = "", **attributes: Any) -> str:
        """Append an operator with one result, and give the result's name."""
        return self.ops(kind, inputs, [result or self.name(kind.lower())], **attributes)[0]

    def ops(self, kind: str, inputs: Sequence[str], results: Sequence[str], **attributes: Any) -> Sequence[str]:
        """Append an operator with results of these names."""
        source = self.node.source if self.node is not None else None
        doc = str(source) if source else None
        named = next(each for each in results if each)
        self.nodes.append(self.onnx.helper.make_node(kind, inputs, results, named, doc, **attributes))
        return results

    def constant(self, array: Array | Sequence[int] | int, dtype: DType = dtypes.int64) -> str:
        """The name of a small constant, shared by all that need it; of int64, if it is not an array."""
        if not isinstance(array, np.ndarray):
            array = np.asarray(array, dtype.numpy)
        key = array.shape, array.dtype, array.tobytes()
        if key not in self._constants:
            self._constants[key] = self.name("constant")
            self.arrays[self._constants[key]] = array
        return self._constants[key]

    def number(self, value: Any, dtype: DType) -> str:
        """The name of a scalar constant."""
        with np.errstate(all="ignore"):
            return self.constant(np.asarray(value).astype(dtype.numpy))

    def cast(self, name: str, old: DType, new: DType) -> str:
        """The same numbers in another type; a constant is converted here."""
        if old is new:
            return name
        array = self.arrays.get(name)
        if array is not None and array.ndim == 0:
            with np.errstate(all="ignore"):
                return self.constant(array.astype(new.numpy))
        return self.op("Cast", name, to=NUMBERS[new])

    def computed(self, kind: str, dtype: DType) -> DType:
        """The type that an operator is computed in."""
        types = COMPUTED.get(kind, _FLOATS)
        old = self.opset < 14 and ((kind in _ARITHMETIC and dtype in _SMALL_INTS) or kind == "CumSum")
        while (dtype not in types or (old and dtype in _SMALL_INTS)) and dtype in _WIDER:
            dtype = _WIDER[dtype]
        return dtype

    def apply(
        self, kind: str, dtype: DType, *inputs: str, rest: Sequence[str] = (), gives: bool = False, **attributes: Any
    ) -> str:
        """An operator on values of one type, in the type that it is computed in; the result is of the same type.

        Args:
            rest: further operands, of types of their own.
            gives: whether the result has a type of its own.
        """
        wide = self.computed(kind, dtype)
        found = self.op(kind, *[self.cast(each, dtype, wide) for each in inputs], *rest, **attributes)
        return found if gives else self.cast(found, wide, dtype)

    # Numbers that may depend on sizes -------------------------------------------------------------------

    def fixed(self, name: str) -> Any:
        """A parameter of the node that may not depend on sizes.

        Raises:
            TranslationError: if it does (``MT802``).
        """
        assert self.node is not None
        value = self.node.params[name]
        if not same(value, hint_of(value)):
            self.refuse(f"{name}={value}", "it is an attribute of the operator, and no value")
        return value

    def vector(self, numbers: Sequence[int]) -> str:
        """A vector of int64, computed from the shapes of the arguments where it depends on them."""
        if not any(map(is_symbolic, numbers)):
            return self.constant(numbers)
        return self.shared(("vector", *map(key_of, numbers)), lambda: self._computed_vector(numbers))

    def _computed_vector(self, numbers: Sequence[int]) -> str:
        parts: list[str] = []
        for is_dynamic, group in itertools.groupby(numbers, is_symbolic):
            alike = list(group)
            parts += [self.size(key_of(each)) for each in alike] if is_dynamic else [self.constant(alike)]
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, formula: Polynomial) -> str:
        """The value of a polynomial of sizes, as a vector of one element."""
        return self.shared(("size", formula), lambda: self._sum(formula))

    def _sum(self, formula: Polynomial) -> str:
        total = ""
        for monomial, factor in terms_of(formula):
            part = ""
            for found in map(self._atom, monomial):
                part = self.op("Mul", part, found) if part else found
            if not part or factor != (-1 if total else 1):
                number = self.constant([factor])
                part = self.op("Mul", part, number) if part and factor != 1 else part or number
            kind = "Sub" if total and factor == -1 and monomial else "Add"
            total = self.op(kind, total, part) if total else part
        return total or self.constant([0])

    def _atom(self, atom: Atom) -> str:
        """A symbol; a quotient rounded down; the smaller or the larger of two polynomials."""
        if not atom.sides:
            name, axis = self.places[atom.kind]
            return self.shared(
                ("symbol", atom.kind),
                lambda: self.op("Gather", self.op("Shape", name), self.constant([axis]), axis=0),
            )
        left, right = map(self.size, atom.sides)
        if atom.kind == "//" and min(map(least, atom.sides)) < 0:  # Div rounds towards zero, Mod is as in Python
            return self.op("Div", self.op("Sub", left, self.op("Mod", left, right)), right)
        return self.op(_OPERATORS[atom.kind], left, right)

    def scalar_size(self, number: Any) -> str:
        """A number, or the value of a polynomial of sizes, without dimensions."""
        return self.op("Squeeze", self.size(key_of(number))) if is_symbolic(number) else self.constant(number)

    def real(self, number: Any) -> str:
        """A number as one of float64, computed where it depends on sizes."""
        if type(number) is Size:
            return self.cast(self.scalar_size(number), dtypes.int64, dtypes.float64)
        if type(number) is not Real:
            return self.number(number, dtypes.float64)
        kind = _OPERATORS.get(number.kind)
        if kind is None:
            self.refuse(f"the number {number}", "its rest is that of floats")
        found = self.op(kind, self.real(number.left), self.real(number.right))
        return self.op("Floor", found) if number.kind == "//" else found

    def scalar(self, number: Any, dtype: DType) -> str:
        """A number as a scalar of this type, computed where it depends on sizes."""
        if type(number) is Size:
            return self.cast(self.scalar_size(number), dtypes.int64, dtype)
        return (
            self.cast(self.real(number), dtypes.float64, dtype) if is_symbolic(number) else self.number(number, dtype)
        )

    def reshaped(self, name: str, numbers: Sequence[int], before: Sequence[int] = ()) -> str:
        """The same elements under another shape.

        Args:
            before: the shape until now; dynamic lengths that stay in their place need not be computed.
        """
        if before and 0 not in numbers:
            kept = [is_symbolic(new) and same(new, old) for new, old in zip(numbers, before, strict=False)]
            kept += [False] * (len(numbers) - len(kept))
            copied = [
                0 if stays else -1 if is_symbolic(each) else each for stays, each in zip(kept, numbers, strict=True)
            ]
            if copied.count(-1) <= 1:
                return self.op("Reshape", name, self.constant(copied))
        if sum(map(is_symbolic, numbers)) == 1 and 0 not in numbers:
            numbers = [-1 if is_symbolic(each) else each for each in numbers]
        computed = any(map(is_symbolic, numbers))  # each may be 0, of an empty batch
        more: dict[str, Any] = {"allowzero": 1} if 0 in numbers or (computed and self.opset >= 14) else {}
        if more and self.opset < 14:
            self.refuse("a tensor without elements", "Reshape takes a length of 0 from opset 14 on", newer=14)
        return self.op("Reshape", name, self.vector(numbers), **more)

    def transposed(self, name: str, dims: Sequence[int]) -> str:
        """Dimensions in another order; a `Transpose` that made the value is merged with this one."""
        made = self._maker(name)
        if made is not None and made.op_type == "Transpose":
            (given,) = made.attribute
            name, dims = made.input[0], [given.ints[axis] for axis in dims]
        return name if list(dims) == sorted(dims) else self.op("Transpose", name, perm=list(dims))

    def kept_by_reduction(self, name: str) -> str:
        """The result of a reduction with its dimensions kept; empty if the value is not a reduction's result."""
        made = self._maker(name)
        if made is None or not made.op_type.startswith("Reduce"):
            return ""
        more = {each.name: self.onnx.helper.get_attribute_value(each) for each in made.attribute}
        return self.op(made.op_type, *made.input, **{**more, "keepdims": 1})

    def _maker(self, name: str) -> Any:
        """The node that computes a value, if it is one of the last ones."""
        return next((node for node in reversed(self.nodes[-NEAR:]) if name in node.output), None)

    def shared(self, key: tuple[Any, ...], make: Callable[[], str]) -> str:
        """The name of a value that several nodes need, made for the first of them."""
        if key not in self._shared:
            self._shared[key] = make()
        return self._shared[key]

    def refuse(self, what: str, why: str, newer: int = 0) -> NoReturn:
        """Raise the error for something that ONNX does not have.

        Args:
            newer: the version of the operators from which on it does.

        Raises:
            TranslationError: ``MT802``.
        """
        node = self.node
        raise TranslationError(
            "MT802",
            f"{node.primitive.name if node else 'the graph'}: {what} cannot be written as ONNX operators of opset "
            f"{self.opset}",
            where=str(node.source) if node is not None and node.source else None,
            why=why,
            fix=f"export with opset_version={newer}, or a newer one" if newer else "compute it outside of the model",
        )


def operator(kind: str, of_bools: str = "", gives: bool = False, **names: str) -> Row:
    """The row of an operator of its operands' type.

    Args:
        kind: the operator.
        of_bools: that of bools, if another one computes these.
        gives: whether the result has a type of its own.
        names: for each attribute, the parameter of the node that it is.
    """

    def row(b: Building, node: Node, operands: list[str]) -> str:
        dtype = node.inputs[0].dtype
        if of_bools and dtype is dtypes.bool_:
            return b.op(of_bools, *operands)
        attributes = {name: node.params[each] for name, each in names.items()}
        return b.apply(kind, dtype, *operands, gives=gives, **attributes)

    return row
