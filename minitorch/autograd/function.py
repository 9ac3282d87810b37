"""`Function`: an operation with a hand-written gradient, as `torch.autograd.Function`."""

from __future__ import annotations

import threading
from collections.abc import Iterable
from dataclasses import dataclass
from typing import Any

from ..dtypes import DType
from ..interpreters import current, is_grad_enabled, set_grad_enabled
from ..ir import Spec
from ..primitives import cast, constant
from ..tensor import Batched, Tensor, needs_gradient
from .gradients import detach
from .tape import copied, overwritten, record_many


class Context:
    """The state that `forward` leaves for `backward`; attributes may be set freely.

    Attributes:
        needs_input_grad: for each argument of `apply`, whether its gradient will be used.
    """

    def __init__(self, needs_input_grad: tuple[bool, ...], name: str = "Function") -> None:
        self.needs_input_grad = needs_input_grad
        self._name = name
        self._saved: tuple[Any, ...] = ()
        self._versions: tuple[int, ...] = ()  # of the saved tensors, at the end of `forward`
        self._outputs: dict[int, Tensor] = {}
        self._dirty: tuple[Tensor, ...] = ()
        self._constant: tuple[Tensor, ...] = ()
        self._fills = True

    def mark_dirty(self, *tensors: Tensor) -> None:
        """Say which arguments `forward` writes in place; one that it returns has the function as its history."""
        self._dirty = tensors

    def mark_non_differentiable(self, *outputs: Tensor) -> None:
        """Say which results have no gradient; `backward` gets zeros for them."""
        self._constant = outputs

    def set_materialize_grads(self, value: bool) -> None:
        """Choose what `backward` gets for a result that the loss does not depend on: zeros, or None if False."""
        self._fills = value

    def save_for_backward(self, *tensors: Tensor | None) -> None:
        """Keep tensors (inputs, outputs or others) for `backward`."""
        self._saved = tensors

    def place(self, outputs: Iterable[tuple[int, Any]]) -> None:
        """Note the positions of saved outputs, in place of these."""
        positions = {id(output): position for position, output in outputs}
        self._saved = tuple(Output(positions[id(item)]) if id(item) in positions else item for item in self._saved)

    @property
    def saved_tensors(self) -> tuple[Any, ...]:
        """The tensors given to `save_for_backward`, in the same order.

        Raises:
            AutogradError: if one of them was overwritten since (``MT402``).
        """
        for item, version in zip(self._saved, self._versions, strict=False):
            if isinstance(item, Tensor) and item._root._version != version:
                raise overwritten(self._name, "something that was saved", item)
        return tuple(self._outputs.get(item.position) if isinstance(item, Output) else item for item in self._saved)


@dataclass(frozen=True)
class Output:
    """A placeholder for one of the function's outputs among the saved tensors: the tape must not hold its results."""

    position: int


class _Forward(threading.local):
    """The number of `Function.forward` running in this thread."""

    depth = 0


_forward = _Forward()


def in_forward() -> bool:
    """Return whether a `Function.forward` is running: its result has a derivative, its operations are not recorded."""
    return _forward.depth > 0


class Function:
    """An operation with a hand-written gradient: define `forward` and `backward` as static methods, call `apply`.

    `forward(ctx, *args)` computes a tensor, or a tuple of them, with any operations; none of them is recorded. Where
    there is a `setup_context(ctx, inputs, output)`, it saves what is needed, and `forward` takes the arguments alone.
    `backward(ctx, *cotangents)` gets one cotangent per output and returns one gradient (or None) per argument of
    `forward`. Written with tensor operations, it can itself be differentiated, and works in every mode.

    Example:
        >>> import minitorch as mt
        >>> class Cube(mt.autograd.Function):
        ...     @staticmethod
        ...     def forward(ctx, x):
        ...         ctx.save_for_backward(x)
        ...         return x * x * x
        ...     @staticmethod
        ...     def backward(ctx, g):
        ...         (x,) = ctx.saved_tensors
        ...         return g * 3 * x * x
        >>> x = mt.tensor(2.0, requires_grad=True)
        >>> Cube.apply(x).backward()
        >>> x.grad.item()
        12.0
    """

    @staticmethod
    def forward(ctx: Context, *args: Any) -> Any:
        """Compute the result."""
        raise TypeError("a Function needs a static method forward(ctx, *args)")

    @staticmethod
    def setup_context(ctx: Context, inputs: tuple[Any, ...], output: Any) -> None:
        """Save what `backward` needs, in place of `forward`."""
        raise TypeError("setup_context is called where a Function has one")

    @staticmethod
    def backward(ctx: Context, *cotangents: Any) -> Any:
        """Compute the gradient of each argument from the cotangents of the outputs."""
        raise TypeError("a Function needs a static method backward(ctx, *cotangents)")

    @classmethod
    def _run(cls, context: Context, args: tuple[Any, ...], recording: bool) -> Any:
        """Run `forward`, of which the tape notes nothing."""
        previous = set_grad_enabled(False)
        _forward.depth += recording  # under no_grad it is an ordinary function
        try:
            if cls.setup_context is Function.setup_context:
                return cls.forward(context, *args)
            result = cls.forward(*args)
            cls.setup_context(context, args, result)
            return result
        finally:
            _forward.depth -= recording
            set_grad_enabled(previous)

    @classmethod
    def apply(cls, *args: Any) -> Any:
        """Run `forward`, and put the function on the tape."""
        recording = is_grad_enabled()
        needs = tuple(recording and isinstance(arg, Tensor) and arg.requires_grad for arg in args)
        layer = _layer_of(args) if recording else None
        if layer is not None and any(map(needs_gradient, layer.below_of(args))):
            context = Context(tuple(isinstance(arg, Tensor) for arg in args), cls.__name__)
            result = layer.custom(cls, context, args)
        else:
            context = Context(needs, cls.__name__)
            result = cls._run(context, args, recording)
        if not any(needs):
            return result
        outputs = list(result) if isinstance(result, tuple) else [result]
        written: dict[int, Tensor] = {}
        for position, output in enumerate(outputs):
            if any(output is each for each in context._dirty):
                written[position], outputs[position] = output, detach(copied(output))
            elif any(output is arg for arg in args):
                outputs[position] = detach(output)
        for output in outputs:
            view = output._view if isinstance(output, Tensor) else None
            if view is not None and any(isinstance(arg, Tensor) and arg._root is view.root for arg in args):
                above = None if view.base._view is None else view.base._view.owner
                view.owner = view.base if above is None else above
                view.seen, view.is_foreign, view.is_detached = view.owner._entry, True, False
        _record(cls, context, args, outputs, written)
        for position, tensor in written.items():
            outputs[position] = tensor.copy_(outputs[position])
        return tuple(outputs) if isinstance(result, tuple) else outputs[0]


def _layer_of(args: tuple[Any, ...]) -> Any:
    """Return the topmost layer of `func.vmap` that one of the arguments belongs to, or None."""
    layers = [arg._value.layer for arg in args if isinstance(arg, Tensor) and isinstance(arg._value, Batched)]
    layer: Any = current().mapped if layers else None
    while layer is not None and layer not in layers:
        layer = layer.below.mapped
    return layer


def _record(
    function: type[Function],
    context: Context,
    args: tuple[Any, ...],
    outputs: list[Any],
    written: dict[int, Tensor],
) -> None:
    """Put the function on the tape, with `backward` as its gradient; `written` are arguments that are results, too."""
    tensor_positions = [index for index, arg in enumerate(args) if isinstance(arg, Tensor)]
    specs = [output.spec if isinstance(output, Tensor) else None for output in outputs]
    context.place([*enumerate(outputs), *written.items()])
    context._versions = tuple([item._root._version if isinstance(item, Tensor) else 0 for item in context._saved])
    saved_outputs = {item.position for item in context._saved if isinstance(item, Output)}

    def backward(cotangents: dict[int, Tensor], outputs: dict[int, Tensor], asked: list[bool]) -> list[Tensor | None]:
        context._outputs = outputs
        try:
            gradients = function.backward(context, *_filled(cotangents, specs, context._fills))
        finally:
            context._outputs = {}
        gradients = gradients if isinstance(gradients, tuple) else (gradients,)
        if len(gradients) != len(args):
            raise TypeError(
                f"{function.__name__}.backward returned {len(gradients)} gradients for {len(args)} arguments of "
                "forward; return one for each, None where there is none"
            )
        for index in tensor_positions:
            gradient = gradients[index]
            if gradient is not None and gradient.shape != given[index].shape:
                raise ValueError(
                    f"{function.__name__}.backward returned a gradient of shape {gradient.shape} "
                    f"for argument {index}, which has shape {given[index].shape}"
                )
        return [
            _typed(gradients[index], given[index].dtype) if wanted else None
            for index, wanted in zip(tensor_positions, asked, strict=True)
        ]

    given = {index: args[index].spec for index in tensor_positions}
    inputs = tuple(args[index] for index in tensor_positions)
    without = {id(each) for each in context._constant}
    record_many(function.__name__, inputs, outputs, backward, saved_outputs, without)


def _typed(gradient: Tensor | None, dtype: DType) -> Tensor | None:
    """Cast a gradient to the type of its argument: in mixed precision `backward` may compute in another type."""
    if gradient is None or gradient.dtype is dtype or not gradient.dtype.is_floating_point:
        return gradient
    return cast(gradient, dtype=dtype)


def _filled(cotangents: dict[int, Tensor], specs: list[Spec | None], fills: bool) -> list[Tensor | None]:
    """Return one cotangent per output; zeros, or None, for outputs that the loss does not depend on."""
    return [
        cotangents.get(position)
        if position in cotangents or not fills or spec is None
        else constant(value=0, shape=spec.shape, dtype=spec.dtype)
        for position, spec in enumerate(specs)
    ]
