"""Operations between layers whose operands are quantised: residual sums, and the means of poolings.

    x ──► Conv2d ──► ... ──► Conv2d ──► (+) ──► relu ──► next layer        x is stored for the sum, too
    └───────────────────────────────────►┘

A layer quantises its own input, so x is in 8 bits for the first convolution; a sum of floats would need x in 32 bits
once more. In a prepared model the operands of such a sum are observed, as a layer's input is, and the converted model
adds DQ(Q(x)) and DQ(Q(y)): with equal scales, both readers of x read the same 8 bits.

An operation in a `forward` is no module that could be replaced. It is known by its place, the n-th sum or reduction
that the module carries out by itself, as in the names ``add_1`` of PyTorch's FX. `finding` says which of them to take.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from minitorch import primitives as P
from minitorch.dtypes import float32
from minitorch.errors import QuantizationError
from minitorch.functional.pointwise.casting import numel
from minitorch.functional.reducing.quantised import positive
from minitorch.interpreters import Layer, on_top
from minitorch.ir import Primitive
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from ..affine import dequantize, quantize
from ..qconfig import FakeQuantize, QConfig
from ..schemes import QParams
from .quantized import observer_of
from .states import Scaled

COUNTED = (P.add, P.reduce_sum)


def is_counted(primitive: Primitive, inputs: tuple[Tensor, ...]) -> bool:
    """Whether an operation counts: a sum of floats. Those of integers are counters and random bits."""
    return primitive in COUNTED and inputs[0].dtype.is_floating_point


class Operands(Layer):
    """Have a function replace the operands of a module's own operations, not those of the modules that it calls.

    Args:
        replaced: from a primitive and its inputs to others.
    """

    def __init__(self, replaced: Callable[[Primitive, tuple[Tensor, ...]], tuple[Tensor, ...]]) -> None:
        self.replaced = replaced
        self.is_inside = False  # another module, called by this one

    @property
    def operands(self) -> Callable[..., Any] | None:
        """The function, while the module's own operations run."""
        return None if self.is_inside else self.replaced

    @property
    def call(self) -> Callable[..., Any] | None:
        """A compiled function is inlined: its operations are among those of the module that calls it."""
        return self.below.call if self.is_inside else _inlined

    def called(self, module: Module, run: Callable[[], Any]) -> Any:
        """Call a module that has operations of its own."""
        called, outer = self.below.called, self.is_inside
        self.is_inside = True
        try:
            return run() if called is None else called(module, run)
        finally:
            self.is_inside = outer


def _inlined(function: Any, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
    return function.inlined(args, kwargs)


class Operations(Module):
    """The operations of a module whose operands are observed or quantised, by their place among all of them.

    Args:
        sites: the modules that operands go through: ``add_3`` is the fourth of those that `is_counted`, and a sum.
        total: how many of them there are in a call.
        name: of the module, for messages.
    """

    def __init__(self, sites: Mapping[str, Module], total: int, name: str) -> None:
        super().__init__()
        for place, site in sites.items():
            setattr(self, place, site)
        self.total, self.name = total, name

    def around(self, forward: Callable[..., Any], args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """What `forward` returns, with these operands in place of its own.

        Raises:
            QuantizationError: if the call has another number of such operations, as it may have in training, so that
                nobody knows which is which (``MT702``).
        """
        count = 0

        def operands(primitive: Primitive, inputs: tuple[Tensor, ...]) -> tuple[Tensor, ...]:
            nonlocal count
            if not is_counted(primitive, inputs):
                return inputs
            site: Any = getattr(self, f"{primitive.name}_{count}", None)
            count += 1
            if site is None or any(x.dtype is not float32 or not numel(x) for x in inputs):
                return inputs
            found: tuple[Tensor, ...] = site(*inputs)
            return found

        with on_top(Operands(operands)):
            result = forward(*args, **kwargs)
        if count != self.total:
            raise QuantizationError(
                "MT702",
                f"{self.name} carries out {count} sums of floats in this call, and {self.total} with the example",
                why="operations that are quantised are known by their place among these",
                fix="let another module do what is only done in training, or leave this one in float",
            )
        return result


class PreparedOperation(Module):
    """An operation of floats whose operands are observed, or fake quantised.

    Args:
        name: of the operation in its model, for messages.
        groups: for each operand a number that operands and inputs of layers share if they are one value.
        qconfig: of which `activation` is made.
    """

    def __init__(self, name: str, groups: tuple[int, ...], qconfig: QConfig) -> None:
        super().__init__()
        self.groups = groups
        for at in range(len(groups)):
            observer = qconfig.activation()
            observer_of(observer).name = f"operand {at} of {name}"
            setattr(self, f"activation_{at}", observer)

    def observers(self) -> list[Any]:
        """One for each operand."""
        return [getattr(self, f"activation_{at}") for at in range(len(self.groups))]

    def forward(self, *operands: Tensor) -> tuple[Tensor, ...]:
        """What the observers return."""
        return tuple([observer(x) for observer, x in zip(self.observers(), operands, strict=True)])

    def extra_repr(self) -> str:
        """Whether it trains."""
        return "fake quantised" if isinstance(self.observers()[0], FakeQuantize) else "observed"


class QuantizedOperation(Scaled):
    """An operation of dequantised integers: what `convert` makes of a `PreparedOperation`.

    Its buffers: `scale_0` (float32, []) and `zero_point_0` ([], of the integers' type), and so on for each operand.

    Args:
        given: how each operand is quantised.
    """

    def __init__(self, given: list[QParams]) -> None:
        super().__init__()
        self.types = [(each.dtype, each.quant_min, each.quant_max) for each in given]
        for at, each in enumerate(given):
            self.register_buffer(f"scale_{at}", each.scale)
            self.register_buffer(f"zero_point_{at}", each.zero_point)

    def qparams(self) -> list[QParams]:
        """How each operand is quantised."""
        return [
            QParams(positive(getattr(self, f"scale_{at}")), getattr(self, f"zero_point_{at}"), *each)
            for at, each in enumerate(self.types)
        ]

    def forward(self, *operands: Tensor) -> tuple[Tensor, ...]:
        """The operands, rounded to the numbers that integers stand for."""
        pairs = zip(operands, self.qparams(), strict=True)
        return tuple([dequantize(quantize(x, given), given) for x, given in pairs])

    def extra_repr(self) -> str:
        """The types and the scales."""
        return ", ".join(
            f"{each.dtype.name} scale={each.scale.item():.4g}, zero_point={each.zero_point.item()}"
            for each in self.qparams()
        )
