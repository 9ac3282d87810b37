"""`OnnxModule`: a program as a module. Its parameters are the model's initializers, under their names in the file."""

from __future__ import annotations

import copy
import inspect
from collections.abc import Mapping, Sequence
from keyword import iskeyword
from typing import Any

import numpy as np

from minitorch.errors import DTypeError, OnnxError, ShapeError
from minitorch.functional.operands import from_array, is_operand, operand
from minitorch.interpreters import current_staging, interpreting
from minitorch.nn.module import Module
from minitorch.nn.parameter import Parameter, concretely
from minitorch.sizes import hint_of
from minitorch.tensor import Tensor

from ..common import BUFFERS, PARAMETERS
from .bounded import bounded
from .decoding import limits
from .layers import layers_of
from .program import Declared, Program, places_of
from .running import MOST_KNOWN, Run, Value, run

Array = np.ndarray[Any, Any]


class OnnxModule(Module):
    """A model that was read from an ONNX file; call it with the model's inputs, in order or by name.

    Initializers of float types with dimensions are parameters, and are trained. Statistics of batch normalization,
    scales of quantisation and large arrays of integers are buffers. All others are constants. A model that
    `mt.export.onnx` has written says which are which.

    Args:
        program: the checked graph.
        metadata: texts of the model, by key.

    Attributes:
        program: as given, with the constants that are neither parameters nor buffers.
        input_names, output_names: as the model calls them.
    """

    def __init__(self, program: Program, metadata: Mapping[str, str]) -> None:
        super().__init__()
        self.program = program  # its name, and that of the next, are taken
        self._places: dict[str, str] = {}  # name in the model -> attribute
        self._layers: dict[str, str] = {}  # name of a node -> attribute
        trained, kept, constants = _sorted(program, *[_named(metadata, key) for key in (PARAMETERS, BUFFERS)])
        made: dict[Any, Tensor] = {}  # arrays that lie in one place of a file are one tensor, or one parameter
        with concretely():
            for name, array in {**trained, **kept}.items():
                place = name
                while hasattr(self, place) or not place:
                    place += "_"
                self._places[name] = place
                key = name in trained, (array.ctypes.data, array.dtype, array.shape) if array.size else name
                if key not in made:
                    tensor = from_array(array.copy())
                    made[key] = Parameter(tensor) if name in trained else tensor
                found = made[key]
                if isinstance(found, Parameter):
                    self.register_parameter(place, found)
                else:
                    self.register_buffer(place, found)
        self.program = Program(
            program.name, program.inputs, program.outputs, constants, (*trained, *kept), program.steps
        )

    @property
    def __signature__(self) -> inspect.Signature | None:
        """The parameters of a call, if the names of the inputs can be ones in Python."""
        if not all(name.isidentifier() and not iskeyword(name) for name in self.input_names):
            return None
        kind = inspect.Parameter.POSITIONAL_OR_KEYWORD
        return inspect.Signature([inspect.Parameter(name, kind) for name in self.input_names])

    @property
    def input_names(self) -> tuple[str, ...]:
        """The names of the inputs, in order."""
        return tuple([each.name for each in self.program.inputs])

    @property
    def output_names(self) -> tuple[str, ...]:
        """The names of the results, in order."""
        return self.program.outputs

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """The results of the model: one, or a tuple of several.

        Args:
            args: tensors; lists of them for sequences.
            kwargs: the same by name.

        Raises:
            TypeError: for too few or too many arguments.
            ShapeError: for a shape that is not the declared one (``MT201``).
            DTypeError: for another type than the declared one (``MT202``).
            OnnxError: naming the node that cannot be computed (``MT801``).
        """
        given = self._arguments(args, kwargs)
        lengths: dict[str, int] = {}
        values = [_value(_checked(each, given[each.name], lengths), given[each.name]) for each in self.program.inputs]
        state = {name: getattr(self, self._places[name]) for name in self.program.state}
        layers = {name: getattr(self, place) for name, place in self._layers.items()}
        with bounded(limits.most_held(), limits.refuse):
            results = [each.data for each in run(self.program, values, state, Run(layers))]
        return results[0] if len(results) == 1 else tuple(results)

    def _arguments(self, args: Sequence[Any], kwargs: Mapping[str, Any]) -> dict[str, Any]:
        names = self.input_names
        given = {**dict(zip(names, args, strict=False)), **kwargs}
        if len(args) > len(names) or len(given) != len(args) + len(kwargs) or set(given) != set(names):
            raise TypeError(f"{self.program.name} takes {', '.join(names) or 'nothing'}, each once")
        return given

    def with_layers(self) -> OnnxModule:
        """A copy whose convolutions and products with weights are layers, named after their nodes.

        Then `minitorch.quantization.prepare` finds them, and hooks can be put on them. In the result, the parameters
        have the names of layers, ``conv1.weight``. Batch normalization behind a convolution is a layer, too.

        Example:
            >>> import minitorch as mt
            >>> from minitorch_onnx.reading.loading import module_of
            >>> exported = mt.export.onnx(mt.nn.Sequential(mt.nn.Linear(4, 3), mt.nn.ReLU()).eval(), mt.ones(2, 4))
            >>> module_of(exported).with_layers()
            OnnxModule(
              input -> output, 2 nodes
              (gemm): Linear(in_features=4, out_features=3, bias=True)
            )
        """
        state = {name: getattr(self, self._places[name]) for name in self.program.state}
        with bounded(limits.most_held(), limits.refuse):
            program, layers = layers_of(self.program, state)
        found = copy.deepcopy(self)
        found.program = program
        for name in [name for name in found._places if name not in program.state]:
            delattr(found, found._places.pop(name))
        for name, layer in layers.items():
            place = "".join(letter if letter.isalnum() else "_" for letter in name).strip("_") or "layer"
            while hasattr(found, place) or not place.isidentifier():
                place = f"layer_{place}" if not place.isidentifier() else f"{place}_"
            found.add_module(place, layer.train(self.training))
            found._layers[name] = place
        return found

    def get_parameter(self, target: str) -> Parameter:
        """The parameter of a name as in the model, which may have dots."""
        found = getattr(self, self._places.get(target, ""), None)
        return found if isinstance(found, Parameter) else super().get_parameter(target)

    def extra_repr(self) -> str:
        """The size of the model."""
        return f"{', '.join(self.input_names)} -> {', '.join(self.output_names)}, {len(self.program.steps)} nodes"


def _named(metadata: Mapping[str, str], key: str) -> frozenset[str] | None:
    """The names of initializers that the writer has listed; None if it has not."""
    text = metadata.get(key)
    return None if text is None else frozenset(text.split("\n"))


def _sorted(
    program: Program, parameters: frozenset[str] | None, buffers: frozenset[str] | None
) -> tuple[dict[str, Array], dict[str, Array], dict[str, Array]]:
    """The initializers that are trained, those that are kept as buffers, and the constants.

    Args:
        program: whose they are.
        parameters, buffers: which are which, if the model says so.
    """
    known, untrained = places_of(program, program.constants)
    trained: dict[str, Array] = {}
    kept: dict[str, Array] = {}
    constants: dict[str, Array] = {}
    for name, array in program.constants.items():
        is_float = array.dtype.kind not in "iub"
        is_kept, is_trained = array.ndim and (is_float or array.size > MOST_KNOWN), name not in untrained
        if parameters is not None and buffers is not None:
            is_kept, is_trained = name in parameters | buffers, name in parameters
        place = constants if name in known or not is_kept else trained if is_float and is_trained else kept
        place[name] = array
    return trained, kept, constants


def _value(tensor: Any, given: Any) -> Value:
    """An argument as a value; numbers of Python, and what a frozen function makes a constant, are known."""
    staging = current_staging()
    if staging is None or not isinstance(tensor, Tensor) or hint_of(tensor.numel()) > MOST_KNOWN:
        return Value(tensor)
    if not isinstance(given, Tensor):
        with interpreting(None):
            return Value(from_array(np.asarray(given, tensor.dtype.numpy)), True)
    return Value(tensor, staging.keeps_values and isinstance(tensor._value, np.ndarray))


def _checked(declared: Declared, value: Any, lengths: dict[str, int]) -> Any:
    """An argument that fits what the model declares; equal names of lengths stand for equal lengths."""
    if "sequence" in declared.nesting or isinstance(value, (list, tuple)):
        if "sequence" not in declared.nesting:
            raise TypeError(f"{declared.name} is a tensor, not {type(value).__name__}")
        return [operand(each) for each in value] if isinstance(value, (list, tuple)) else value
    if not is_operand(value):
        if "optional" in declared.nesting:
            return value
        raise TypeError(f"{declared.name} is a tensor, not {type(value).__name__}; make one with minitorch.tensor(...)")
    tensor: Tensor = operand(value)
    if declared.dtype is not None and tensor.dtype is not declared.dtype:
        raise DTypeError(
            "MT202",
            f"the input {declared.name!r} is {tensor.spec}, and the model takes {declared.dtype.name}",
            fix=f"convert it: x.to(minitorch.{declared.dtype.name})",
        )
    if declared.shape is not None:
        wanted = [lengths.get(each) if isinstance(each, str) else each for each in declared.shape]
        pairs = zip(wanted, tensor.shape, strict=False)
        if len(wanted) != tensor.ndim or any(each not in (None, length) for each, length in pairs):
            shown = ", ".join("any" if each is None else str(each) for each in declared.shape)
            raise ShapeError("MT201", f"the input {declared.name!r} is {tensor.spec}, and the model takes [{shown}]")
        for each, length in zip(declared.shape, tensor.shape, strict=True):
            if isinstance(each, str) and lengths.setdefault(each, length) != length:
                raise ShapeError("MT201", f"{each!r} of {declared.name!r} is {length}, and {lengths[each]} before")
    return tensor


__all__ = ["OnnxError", "OnnxModule"]
