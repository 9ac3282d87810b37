"""`Building`: the nodes and constants of an ONNX graph while it is written.

A row of the tables turns one node of our graph into nodes of ONNX. Its operands are names of values; it calls `op` for
each operator, and returns the name of the result. Each ONNX node is named after its result, and its `doc_string` is the
line of the user's program.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, NoReturn

import numpy as np

from minitorch import dtypes
from minitorch.dtypes import DType
from minitorch.errors import TranslationError
from minitorch.ir import Node

from ..common import NUMBERS, package
from .polynomials import Atom, Polynomial, as_polynomial
from .sizes import Number, Sizes
from .tracked import Quotient

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
_WIDER: dict[DType, DType] = {
    dtypes.bool_: dtypes.int32,
    dtypes.uint8: dtypes.int32,
    dtypes.int8: dtypes.int32,
    dtypes.int16: dtypes.int32,
    dtypes.uint32: dtypes.int64,
    dtypes.float16: dtypes.float32,
    dtypes.bfloat16: dtypes.float32,
}


NEAR = 64  # nodes that are looked back on for one to be merged with; more find more, and take longer


class Building:
    """An ONNX graph in the making.

    Args:
        opset: the version of the operators.
        sizes: the numbers that are not the same for all calls.

    Attributes:
        held: the arrays that the model holds, by their names.
        nodes: the ONNX nodes so far.
        arrays: the constants so far, by name.
        known: the names that are taken.
        origins: of a constant that was made of an array that the model holds, the name of that one.
        results: the results of nodes that several of ours are, by what these have in common.
    """

    def __init__(self, opset: int, sizes: Sizes) -> None:
        self.opset, self.sizes = opset, sizes
        self.held: Mapping[str, Array] = {}
        self.onnx = package()
        self.nodes: list[Any] = []
        self.arrays: dict[str, Array] = {}
        self.known: set[str] = set()
        self.origins: dict[str, str] = {}
        self.results: dict[tuple[Any, ...], Sequence[str]] = {}
        self.node: Node | None = None  # the one that is being written
        self._constants: dict[tuple[Any, ...], str] = {}
        self._counts: dict[str, int] = {}
        self._sizes: dict[Polynomial, str] = {}

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

    def apply(self, kind: str, dtype: DType, *inputs: str, gives: DType | None = None, **attributes: Any) -> str:
        """An operator on values of one type, in the type that it is computed in; the result is of the same type.

        Args:
            gives: the type of the operator's result, if that is not the operands'.
        """
        wide = self.computed(kind, dtype)
        found = self.op(kind, *[self.cast(each, dtype, wide) for each in inputs], **attributes)
        return found if gives else self.cast(found, wide, dtype)

    # Numbers that may depend on sizes -------------------------------------------------------------------

    def numbers(self, name: str) -> tuple[Number, ...]:
        """A parameter of the node: numbers, or expressions of sizes."""
        assert self.node is not None
        return self.sizes.of(self.node, name)

    def fixed(self, name: str) -> Any:
        """A parameter of the node that may not depend on sizes.

        Raises:
            TranslationError: if it does (``MT803``).
        """
        assert self.node is not None
        return self.sizes.fixed(self.node, name)

    def vector(self, numbers: Sequence[Number]) -> str:
        """A vector of int64, computed from the shapes of the arguments where it depends on them."""
        if all(isinstance(each, int) for each in numbers):
            return self.constant([each for each in numbers if isinstance(each, int)])
        return self.shared(("vector", *numbers), lambda: self._computed_vector(numbers))

    def _computed_vector(self, numbers: Sequence[Number]) -> str:
        parts: list[str] = []
        fixed: list[int] = []
        for each in numbers:
            if isinstance(each, int):
                fixed.append(each)
                continue
            if fixed:
                parts.append(self.constant(fixed))
                fixed = []
            parts.append(self.size(each))
        if fixed:
            parts.append(self.constant(fixed))
        return parts[0] if len(parts) == 1 else self.op("Concat", *parts, axis=0)

    def size(self, formula: Polynomial) -> str:
        """The value of a formula of sizes, as a vector of one element."""
        if formula in self._sizes:
            return self._sizes[formula]
        total = ""
        for monomial, factor in formula.terms:
            part = ""
            for atom in monomial:
                found = self._symbol(atom) if isinstance(atom, str) else self._bounded(atom)
                part = self.op("Mul", part, found) if part else found
            if not part:
                total = self.op("Add", total, self.constant([factor]))
                continue
            if total and factor == -1:
                total = self.op("Sub", total, part)
                continue
            if factor != 1:
                part = self.op("Mul", part, self.constant([factor]))
            total = self.op("Add", total, part) if total else part
        self._sizes[formula] = total
        return total

    def scalar_size(self, number: Number) -> str:
        """A number, or the value of a formula of sizes, without dimensions."""
        formula = as_polynomial(number)
        return self.op("Squeeze", self.size(formula)) if formula.constant is None else self.constant(formula.constant)

    def _symbol(self, symbol: str) -> str:
        name, axis = self.sizes.places[symbol]
        key = ("size", symbol)
        if key not in self._constants:
            shape = self.op("Shape", name)
            self._constants[key] = self.op("Gather", shape, self.constant([axis]), axis=0)
        return self._constants[key]

    def _bounded(self, atom: Atom) -> str:
        """A quotient rounded down, of numbers that are not negative; the smaller or the larger of two."""
        sides = [self.vector([each if each.constant is None else each.constant]) for each in (atom.left, atom.right)]
        return self.op({"//": "Div", "min": "Min", "max": "Max"}[atom.kind], *sides)

    def real(self, formula: Polynomial | Quotient) -> str:
        """The value of a formula, as a number of float64."""
        if isinstance(formula, Polynomial):
            return self.cast(self.scalar_size(formula), dtypes.int64, dtypes.float64)
        left, right = (
            self.real(each) if isinstance(each, (Polynomial, Quotient)) else self.number(each, dtypes.float64)
            for each in (formula.left, formula.right)
        )
        kind = {"+": "Add", "-": "Sub", "*": "Mul", "/": "Div", "//": "Div", "**": "Pow"}.get(formula.kind)
        if kind is None:
            self.refuse(f"the number {formula}", "its rest is that of floats")
        found = self.op(kind, left, right)
        return self.op("Floor", found) if formula.kind == "//" else found

    def scalar(self, name: str, dtype: DType) -> str:
        """A parameter of the node as a scalar of this type, computed where it depends on sizes."""
        assert self.node is not None
        if self.sizes.is_fixed(self.node, name):
            return self.number(self.node.params[name], dtype)
        formula = self.sizes.real(self.node, name)
        if isinstance(formula, Polynomial):
            return self.cast(self.scalar_size(formula), dtypes.int64, dtype)
        return self.cast(self.real(formula), dtypes.float64, dtype)

    def shape(self, node: Node) -> tuple[Number, ...]:
        """The shape of a value: numbers, or expressions of sizes."""
        return self.sizes.shape(node)

    def reshaped(self, name: str, numbers: Sequence[Number], before: Sequence[Number] = ()) -> str:
        """The same elements under another shape.

        Args:
            before: the shape until now; dynamic lengths that stay in their place need not be computed.
        """
        if before and 0 not in numbers:
            kept = [new == old and not isinstance(new, int) for new, old in zip(numbers, before, strict=False)]
            kept += [False] * (len(numbers) - len(kept))
            rest = [-1 if not isinstance(each, int) else each for each in numbers]
            copied = [0 if stays else each for stays, each in zip(kept, rest, strict=True)]
            if copied.count(-1) <= 1:
                return self.op("Reshape", name, self.constant(copied))
        unknown = [each for each in numbers if not isinstance(each, int)]
        if len(unknown) == 1 and 0 not in numbers:
            numbers = [each if isinstance(each, int) else -1 for each in numbers]
        computed = sum(not isinstance(each, int) for each in numbers)  # each may be 0, of an empty batch
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
        if key not in self._constants:
            self._constants[key] = make()
        return self._constants[key]

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


def plain(kind: str, **attributes: Any) -> Row:
    """The row of an operator of the node's type."""

    def row(b: Building, node: Node, operands: list[str]) -> str:
        return b.apply(kind, node.dtype, *operands, **attributes)

    return row
