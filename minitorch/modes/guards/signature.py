"""The signature of a call: equal for calls that can run the same compiled graph.

It is the structure of the arguments, the shapes and types of the tensors among them, the values of everything else, and
the modes of the thread: whether gradients are recorded, and its handler.
"""

from __future__ import annotations

import enum
from collections.abc import Callable, Iterable, Sequence
from typing import Any, NamedTuple
from weakref import ref

import numpy as np

from ...autograd.tape import hooks_of
from ...dtypes import DType
from ...errors import ArgumentError
from ...functional.operands import from_array
from ...interpreters.state import thread
from ...nn import Module
from ...tensor import Remote, Tensor, fetched
from ...tree import LEAF, Parts, Structure
from . import donation, surroundings
from .donation import Names as Donations
from .kinds import exact

PLAIN = (bool, int, float, complex, str, bytes, type(None), type(Ellipsis), DType, np.dtype, range, enum.Enum)


class Given(list[Tensor]):
    """Tensors of a call, each once.

    Attributes:
        containers: the lists, dicts and other containers of the call that can be changed.
        arrays: the arrays that were given for tensors, by their positions.
    """

    __slots__ = ("arrays", "containers")

    def __init__(self, tensors: Iterable[Tensor], containers: list[Any], arrays: dict[int, Any]) -> None:
        super().__init__(tensors)
        self.containers, self.arrays = containers, arrays


class Call(NamedTuple):
    """Leaves of a call, their structure, the tensors among them, and the key shared by calls alike."""

    leaves: list[Any]
    structure: Structure
    tensors: Given
    key: Any
    kinds_at: Sequence[int] = ()  # where the key has the kinds of the tensors

    @property
    def family(self) -> Any:
        """The key without the lengths of dimensions."""
        key = list(self.key)
        for place in self.kinds_at:
            shape, *rest = key[place]
            key[place] = (len(shape), *rest)
        return tuple(key)


def _parts(bounds: slice) -> tuple[Any, Any, Any]:
    """Return the fields of a slice: before Python 3.12 a slice has no hash."""
    return bounds.start, bounds.stop, bounds.step


class Static:
    """Argument named in `static_argnames`: compared by equality, of any hashable type."""

    __slots__ = ("value",)

    def __init__(self, value: Any) -> None:
        self.value = value


def plain(leaves: Iterable[Any]) -> list[Any]:
    """Return the leaves of a call, static arguments unwrapped."""
    return [leaf.value if isinstance(leaf, Static) else leaf for leaf in leaves]


def key_of_tensors(args: tuple[Any, ...]) -> Any:
    """Return the key of the most common kind of call: different tensors that require no gradient.

    Return None for other calls. `Signatures.of` handles them, and gives the same keys for these.
    """
    kinds: list[Any] = [len(args)]
    for leaf in args:
        if type(leaf) is not Tensor or leaf._requires_grad or (leaf._view is not None and leaf.requires_grad):
            return None
        value = leaf._value
        kinds.append((value.shape, value.dtype, False))
    if len(args) > 1 and len(set(map(id, args))) < len(args):
        return None
    return (*kinds, *_modes())


def _modes() -> tuple[Any, Any]:
    """Return the modes of the thread that a trace depends on."""
    handler = thread.handler
    return thread.grad_enabled, None if handler is None else handler.key


class Signatures:
    """Signatures of a function's calls.

    Attributes:
        parameters: the function's parameters, if Python knows them.
        usual_length: the number of positional arguments of a call in normal form; -1 if there is none.
        donated: the names and numbers of the donated parameters.
        takes_devices: whether calls may be given values on a device.
        has_own_parameters: whether calls are bound here, by `parameters`, or else by the callee.
    """

    def __init__(
        self,
        function: Callable[..., Any],
        static_argnames: tuple[str, ...],
        donate: Donations,
        takes_devices: bool = False,
    ) -> None:
        self.takes_devices = takes_devices
        self._function = function
        self._name = surroundings.name(function)
        self._static_argnames = static_argnames
        self.has_own_parameters = surroundings.has_own_parameters(function)
        self._read_parameters()
        self.usual_length = surroundings.usual_length(self.parameters, static_argnames)
        self.donated = donation.parameters(donate, self.parameters, self._name)

    def _read_parameters(self) -> None:
        self._given = surroundings.given_defaults(self._function)
        self.parameters = surroundings.parameters(self._function, self._static_argnames)
        self._defaults = surroundings.defaults(self.parameters)

    def of(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Call:
        """Return the signature of a call, and the contents of its arguments: leaves, tensors, aliases."""
        missing = self.usual_length - len(args)
        if not self.has_own_parameters:
            args, kwargs = self._as_given(args, kwargs) if self._static_argnames else (args, kwargs)
        elif kwargs or missing:
            if surroundings.given_defaults(self._function) != self._given:
                self._read_parameters()
            if not kwargs and 0 < missing <= len(self._defaults):
                args += self._defaults[-missing:]
            else:
                args, kwargs = self._normal_form(args, kwargs)
        parts = Parts()
        structure, leaves = parts.add((args, kwargs)), parts.leaves
        arrays: dict[int, Any] = {}
        tensors: dict[int, Tensor] = {}  # by id: a tensor that is given twice is one input of the graph
        simple = not kwargs and all(child is LEAF for child in structure.children[0].children)
        kinds: list[Any] = [len(leaves) if simple else structure]
        kinds_at: list[int] = []
        for index, leaf in enumerate(leaves):
            if isinstance(leaf, (np.ndarray, np.generic)):
                arrays[len(tensors)] = leaf
                leaf = leaves[index] = from_array(np.array(leaf) if self.donated else np.asarray(leaf))
            if isinstance(leaf, Tensor):
                if id(leaf) in tensors:
                    kinds.append(list(tensors).index(id(leaf)))
                    continue
                tensors[id(leaf)] = leaf
                needs = leaf.requires_grad and (2 if leaf._entry is None else 1)
                kinds_at.append(len(kinds))
                kinds.append((leaf._value.shape, self._type_of(leaf), needs))
                if needs == 2 and (hooks := hooks_of(leaf)):  # a backward inside runs them
                    kinds.append(hooks)
            elif isinstance(leaf, Static):
                kinds.append(exact(leaf.value))
            elif isinstance(leaf, PLAIN):
                kinds.append(exact(leaf))
            elif isinstance(leaf, slice) and all(type(part) in (int, type(None)) for part in _parts(leaf)):
                kinds.append((slice, *_parts(leaf)))
            elif isinstance(leaf, Module):
                kinds.append((Static, ref(leaf)))
            elif callable(leaf):
                kinds.append((Static, leaf))
            else:
                raise self._not_plain(leaf, self.leaf_names(structure)[index])
        found = Given(tensors.values(), parts.containers, arrays)
        return Call(leaves, structure, found, (*kinds, *_modes()), kinds_at)

    def _type_of(self, tensor: Tensor) -> Any:
        """Return NumPy's type of a tensor's elements; copy a value on a device, unless the backend takes it there."""
        value = tensor._value
        if not isinstance(value, Remote):
            return value.dtype
        if not self.takes_devices:
            fetched(tensor)
        return value.dtype.numpy

    def leaf_names(self, structure: Structure) -> list[str]:
        """Return a name for each leaf of a call, such as ``x`` or ``batch.images.0``."""
        return surroundings.leaf_names(self.parameters, structure)

    def given_away(self, leaves: list[Any], structure: Structure) -> dict[int, str]:
        """Return the donated tensors of a call: their positions among its tensors, and their arguments' names."""
        return donation.donated(self.donated, self.parameters, structure, leaves) if self.donated else {}

    def _normal_form(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the same call with arguments by position where possible, defaults filled in, static ones wrapped."""
        if self.parameters is None:
            return args, kwargs
        try:
            bound = self.parameters.bind(*args, **kwargs)
        except TypeError as error:
            raise TypeError(f"{self._name}{self.parameters}: {error}") from None
        bound.apply_defaults()
        for name in self._static_argnames:
            if name in bound.arguments:
                bound.arguments[name] = self._static(name, bound.arguments[name])
        return bound.args, bound.kwargs

    def _as_given(self, args: tuple[Any, ...], kwargs: dict[str, Any]) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """Return the same call with static arguments wrapped, its arguments left for the callee to bind."""
        names = [*(self.parameters.parameters if self.parameters else ()), *[""] * len(args)]

        def wrapped(name: str, value: Any) -> Any:
            return self._static(name, value) if name in self._static_argnames else value

        return tuple(map(wrapped, names, args)), {name: wrapped(name, each) for name, each in kwargs.items()}

    def _static(self, name: str, value: Any) -> Static:
        try:
            hash(value)
        except TypeError:
            raise ArgumentError(
                "MT108",
                f"the static argument `{name}` of {self._name} is a {type(value).__name__}, which is not hashable",
                why="the compiled graphs are looked up by the values of the static arguments",
                fix="pass something hashable, such as a tuple or a frozen dataclass",
            ) from None
        return Static(value)

    def _not_plain(self, leaf: Any, name: str) -> ArgumentError:
        return ArgumentError(
            "MT108",
            f"the argument `{name}` of {self._name} is of type {type(leaf).__name__}",
            why="a traced function takes tensors, plain values (numbers, strings, types, slices, None), modules, and "
            "nested tuples, lists, dicts, sets and dataclasses of these",
            fix=f"pass its tensors, or, if it is hashable and never changes, make it static: "
            f"mt.jit(f, static_argnames='{name.split('.')[0]}')",
        )
