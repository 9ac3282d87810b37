"""Running a program: each step calls its row, in whatever mode is current.

A value is *known* while a graph is recorded if it is computed from constants and shapes alone. It is then computed at
once, not recorded: that is how the shape of a Reshape, which ONNX computes with Shape, Gather and Concat, is a number.
"""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.autograd import no_grad
from minitorch.errors import MinitorchError, OnnxError
from minitorch.functional.operands import from_array
from minitorch.interpreters import concrete, current_staging, interpreting
from minitorch.ir import Node
from minitorch.sizes import hint_of, is_symbolic
from minitorch.tensor import Tensor

from .decoding.limits import MOST_STEPS, check_numbers, require
from .lengths import SHAPED, computed, of_shape, sized
from .program import Program, Row, Step

Array = np.ndarray[Any, Any]

MOST_KNOWN = 4096
"""Elements of a known value. A longer one, such as a mask, is recorded, so that the graph has no large constants."""


@dataclass(frozen=True)
class Empty:
    """An optional value that is not there."""


@dataclass(slots=True)
class Value:
    """A tensor, a sequence of tensors (a list) or `Empty`.

    Attributes:
        data: the value.
        known: whether it is known while a graph is recorded.
        lengths: of a known tensor that follows the sizes of a shape: its elements as Python numbers.
    """

    data: Any
    known: bool = False
    lengths: Array | None = None


@dataclass(slots=True)
class Frame:
    """The values by name of a program that runs, and those around it."""

    values: dict[str, Value]
    around: Frame | None = None

    def find(self, name: str) -> Value:
        """Return the value of a name."""
        if name in self.values:
            return self.values[name]
        if self.around is None:
            raise KeyError(name)
        return self.around.find(name)


@dataclass(slots=True)
class Run:
    """One call of a model: its layers by the names of their nodes, and how many steps it has taken."""

    layers: Mapping[str, Any] = field(default_factory=dict)
    steps: int = 0

    def step(self, count: int = 1) -> None:
        """Count a step: a node, a turn of a loop, one element of a sequence; or several.

        Raises:
            OnnxError: if there are too many (``MT801``).
        """
        self.steps += hint_of(count)
        require(
            self.steps <= MOST_STEPS, "a call takes more than {} steps: is there a loop without an end?", MOST_STEPS
        )


@dataclass(slots=True)
class Call:
    """An application of an operator, as rows see it beside their inputs.

    Attributes:
        step: the node.
        frame: the values around it.
        run: of the call of the model.
    """

    step: Step
    frame: Frame = field(repr=False)
    run: Run = field(repr=False)

    @property
    def version(self) -> int:
        """The opset that has defined the operator as it is here."""
        return self.step.version

    def wants(self, place: int) -> bool:
        """Return whether somebody wants a result."""
        return len(self.step.outputs) > place and bool(self.step.outputs[place])

    def result(self, inputs: Sequence[Any]) -> Any:
        """Return what the operator's row makes of its inputs, and of the attributes that it names."""
        apply = self.step.apply
        return apply(*inputs, call=self) if "call" in self.step.row.names else apply(*inputs)

    def body(self, name: str, inputs: Sequence[Value], least: int) -> list[Value]:
        """Run a body, which is a step of its own.

        Args:
            name: of the attribute.
            inputs: of the body.
            least: how many results are needed.

        Raises:
            OnnxError: if it has fewer results (``MT801``).
        """
        self.run.step()
        program = self.step.bodies[name]
        text = "its {} gives {} results, and {} are needed"
        require(len(program.outputs) >= least, text, name, len(program.outputs), least)
        return run(program, inputs, {}, self.run, self.frame)


def run(
    program: Program, inputs: Sequence[Value], state: Mapping[str, Tensor], run: Run, around: Frame | None = None
) -> list[Value]:
    """Run a program.

    Args:
        program: what to run.
        inputs: in its order.
        state: the parameters and buffers by name.
        run: counts steps.
        around: the values around a body.

    Raises:
        OnnxError: naming the node that cannot be computed (``MT801``).
    """
    takes = len(program.inputs)
    require(len(inputs) == takes, "{} takes {} values, and is given {}", program.name, takes, len(inputs))
    frame = Frame({}, around)
    for name, tensor in state.items():
        frame.values[name] = Value(tensor)
    for name, array in program.constants.items():
        with interpreting(None):
            frame.values[name] = Value(from_array(array), True)
    for declared, value in zip(program.inputs, inputs, strict=True):
        frame.values[declared.name] = value
    for step in program.steps:
        run.step()
        take(step, frame, run)
    return [frame.find(name) for name in program.outputs]


def take(step: Step, frame: Frame, run: Run) -> None:
    """One step: its results become values of the frame."""
    given = [frame.find(name) if name else None for name in step.inputs]
    call = Call(step, frame, run)
    try:
        results = call.result(given) if step.row.control else _apply(call, step.row, given)
        if not isinstance(results, (tuple, list)):
            results = (results,)
        count = len(step.outputs)
        require(len(results) >= count, "it gives {} results, and {} are named", len(results), count)
    except MinitorchError as error:
        error.locate(step.place)
        raise
    except (Exception, MemoryError) as error:
        operands = ", ".join(_text(value) for value in given) or "none"
        text = f"{type(error).__name__}: {error}"
        raise OnnxError("MT801", text, where=step.place, why=f"its operands are {operands}") from error
    for name, result in zip(step.outputs, results, strict=False):
        if name:
            frame.values[name] = result
    for name in step.frees:
        frame.values.pop(name, None)


def _text(value: Value | None) -> str:
    """A value in messages."""
    if value is None:
        return "left out"
    return str(value.data.spec) if isinstance(value.data, Tensor) else type(value.data).__name__


def _apply(call: Call, row: Row, given: Sequence[Value | None]) -> tuple[Value, ...]:
    """The results of a row without bodies."""
    is_plain = all(value is None or isinstance(value.data, Tensor) for value in given)
    require(is_plain, "it is given a sequence or an optional value, and takes tensors")
    staged = current_staging() is not None
    shape = of_shape(given[0].data.shape) if staged and row.of_shape and given[0] is not None else None
    if shape is not None and call.step.op in ("Shape", "Size"):
        is_shape, options = call.step.op == "Shape", call.step.attributes
        found = shape[options["start"] : options["end"]] if is_shape else np.asarray(math.prod(shape), object)
        with interpreting(None):
            return (_sized(from_array(np.asarray(hint_of(tuple(found.flat)), np.int64).reshape(found.shape)), found),)
    is_known = staged and row.folds and all(value is None or value.known for value in given)
    if is_known or (staged and row.of_shape and shape is None):
        with interpreting(None), no_grad():
            results = _values(call.result(_prepared(call, row, given, False)), True)
        if any(value is not None and value.lengths is not None for value in given):
            results = _with_lengths(call, given, results)
        if all(each.known and hint_of(each.data.numel()) <= MOST_KNOWN for each in results):
            return results
    return _values(call.result(_prepared(call, row, given, staged)), False)


def _sized(data: Tensor, lengths: Array) -> Value:
    """A known value that follows the sizes of a shape, if it does."""
    return Value(data, True, lengths if any(map(is_symbolic, lengths.flat)) else None)


def _with_lengths(call: Call, given: Sequence[Value | None], results: tuple[Value, ...]) -> tuple[Value, ...]:
    """Results that follow the sizes of a shape with their lengths, or as values that are not known."""
    op, data = call.step.op, results[0].data
    found = None
    if len(results) == 1 and not (op in SHAPED and any(each and each.lengths is not None for each in given[1:])):
        arrays = [(each.data._value, each.lengths) for each in given if each is not None]
        operands = [array.astype(object) if lengths is None else lengths for array, lengths in arrays]
        found = computed(op, operands, data._value, data.dtype, call.step.attributes.get("axis"))
    return tuple([Value(each.data) for each in results]) if found is None else (_sized(data, found),)


def _values(results: Any, known: bool) -> tuple[Value, ...]:
    return tuple([Value(each, known) for each in (results if isinstance(results, tuple) else (results,))])


def _prepared(call: Call, row: Row, given: Sequence[Value | None], staged: bool) -> list[Any]:
    """The inputs as a row takes them: arrays where the numbers have to be known, tensors elsewhere."""
    return [
        None
        if value is None
        else numbers(call, place, value, staged)
        if place in row.known
        else literal(value)
        if staged
        else value.data
        for place, value in enumerate(given)
    ]


def literal(value: Value) -> Any:
    """A known tensor as a literal of the graph that is recorded; any other value as it is.

    An array of one number is that number, repeated.
    """
    if value.lengths is not None:
        dtype = value.data.dtype
        parts = [P.constant(value=each, shape=(1,), dtype=dtype) for each in value.lengths.flat]
        return P.reshape(P.concatenate(*parts, dim=0), shape=value.data.shape)
    if value.known and isinstance(value.data, Tensor) and not isinstance(value.data._value, Node):
        array: Array = value.data._value
        bits = np.ascontiguousarray(array).reshape(-1).view(np.uint8).reshape(array.size, array.itemsize)
        if array.size and (bits == bits[0]).all():
            return P.constant(value=array.flat[0].item(), shape=array.shape, dtype=value.data.dtype)
        return from_array(array)
    return value.data


def numbers(call: Call, place: int, value: Value, staged: bool = True) -> Array:
    """The numbers of an input, symbolic ones while a graph is recorded.

    Raises:
        TracedValueError: if they are not known while a graph is recorded (``MT103``).
    """
    check_numbers(f"its input {place}", value.data.numel())
    if value.known:
        return sized(value.data._value, value.lengths if staged else None)
    return concrete(value.data, f"input {place} of {call.step.place}", "MT103", "run the model eagerly")
