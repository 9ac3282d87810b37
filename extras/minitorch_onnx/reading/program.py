"""A checked ONNX model as data: steps in an order in which they can run, each with its row, attributes and bodies.

GraphProto ──building──► Program: steps ──running──► values
                           └── bodies of If, Loop and Scan: Programs that see the names around them
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property, partial
from typing import Any

import numpy as np

from minitorch.dtypes import DType
from minitorch.named import by_name

Array = np.ndarray[Any, Any]


@dataclass(frozen=True)
class Row:
    """The translation of an operator: a function of tensors.

    Attributes:
        apply: given the inputs (None for one that is left out), and attributes by the names of its parameters, returns
            the result; several as a tuple. A parameter named `call` gets the `Call`.
        known: positions of inputs whose numbers have to be known when the graph is made, such as the shape of a
            Reshape; they are given as arrays.
        untrained: positions of inputs that are no parameters, such as the statistics of batch normalization.
        folds: whether the result of known inputs is known; not that of random numbers.
        of_shape: whether the result depends on the shape and the type of the inputs alone.
        control: whether `apply` is given `Value`s, and returns them, because it runs bodies or collects sequences.
    """

    apply: Callable[..., Any]
    known: tuple[int, ...] = ()
    untrained: tuple[int, ...] = ()
    folds: bool = True
    of_shape: bool = False
    control: bool = False

    @cached_property
    def names(self) -> tuple[str, ...]:
        """The names of the function's parameters."""
        return tuple(inspect.signature(self.apply).parameters)

    def __reduce__(self) -> Any:
        fields = (self.apply, self.known, self.untrained, self.folds, self.of_shape, self.control)
        return by_name(self, f"{__package__}.rows") or (type(self), fields)


@dataclass(frozen=True)
class Declared:
    """An input of a model: its name, type and shape as the file declares them; None for what it leaves open.

    Attributes:
        shape: lengths, or names that stand for equal lengths.
        nesting: the kinds around the tensors, from outside: "sequence", "optional".
    """

    name: str
    dtype: DType | None
    shape: tuple[int | str | None, ...] | None
    nesting: tuple[str, ...] = ()


@dataclass(frozen=True)
class Step:
    """A node.

    Attributes:
        name: of the node, or of its first output.
        op: the operator.
        version: the opset that has defined the operator as it is here.
        row: its translation.
        inputs, outputs: names of values; empty for those that are left out.
        attributes: by name, with defaults; arrays for tensors.
        bodies: programs by the name of the attribute.
        frees: names that nobody reads afterwards.
    """

    name: str
    op: str
    version: int
    row: Row
    inputs: tuple[str, ...]
    outputs: tuple[str, ...]
    attributes: Mapping[str, Any] = field(default_factory=dict)
    bodies: Mapping[str, Program] = field(default_factory=dict)
    frees: tuple[str, ...] = ()

    @cached_property
    def apply(self) -> Callable[..., Any]:
        """The row's function, with the attributes that it names."""
        named = {name: self.attributes[name] for name in self.row.names if name in self.attributes}
        return partial(self.row.apply, **named) if named else self.row.apply

    def __getstate__(self) -> dict[str, Any]:
        return {name: value for name, value in vars(self).items() if name != "apply"}

    @property
    def place(self) -> str:
        """The node, in messages."""
        return f"the node {self.name!r} ({self.op})"


@dataclass(frozen=True)
class Program:
    """A graph, a body, or a function.

    Attributes:
        name: of the graph.
        inputs: what is given.
        outputs: the names of the results.
        constants: arrays by name, which nobody trains.
        state: names of parameters and buffers, which the module keeps; of the whole model alone.
        steps: the nodes.
    """

    name: str
    inputs: tuple[Declared, ...]
    outputs: tuple[str, ...]
    constants: Mapping[str, Array]
    state: tuple[str, ...]
    steps: tuple[Step, ...]

    def __deepcopy__(self, memo: Any) -> Program:
        return self  # nothing in it is ever changed


def all_steps(steps: Sequence[Step]) -> list[Step]:
    """The steps, each before those of its bodies."""
    found: list[Step] = []
    for step in steps:
        found.append(step)
        for body in step.bodies.values():
            found += all_steps(body.steps)
    return found


def reads(steps: Sequence[Step]) -> set[str]:
    """Return the names that steps read, those that their bodies read around them included."""
    steps = all_steps(steps)
    bodies = {name for step in steps for body in step.bodies.values() for name in body.outputs}
    return bodies.union(*(step.inputs for step in steps)) - {""}


def places_of(program: Program, given: Iterable[str]) -> tuple[set[str], set[str]]:
    """The names whose numbers somebody has to know, and those that are not trained.

    A number that is computed from given names alone, such as the condition of an If, makes all of these known.

    Args:
        program: what reads them.
        given: the names that may become constants: initializers, or the inputs of a function.
    """
    steps = all_steps(program.steps)
    fixed = set(given)
    for step in steps:
        if step.row.of_shape or (not step.bodies and fixed.issuperset(filter(None, step.inputs))):
            fixed.update(step.outputs)
    known: set[str] = set()
    untrained: set[str] = set()
    for step in reversed(steps):
        for places, names in ((step.row.known, known), (step.row.untrained, untrained)):
            names.update(step.inputs[place] for place in places if place < len(step.inputs))
        if known.intersection(step.outputs) and fixed.issuperset(step.outputs):
            known.update(step.inputs)
    return known, untrained
