"""`QConfig`: which observers look at the input of a layer and at its weight; and `FakeQuantize`, for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import Any, Self

from minitorch.dtypes import int8, uint8
from minitorch.errors import QuantizationError
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from .affine import fake_quantize
from .histogram import HistogramObserver
from .observers import (
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    Observer,
    PerChannelMinMaxObserver,
)
from .schemes import QParams, per_channel_symmetric


class FakeQuantize(Module):
    """An observer, and fake quantisation by what it has seen: `torch.ao.quantization.FakeQuantize`.

    Args:
        observer: a class of observers, or a function that makes one.
        options: the observer's.

    Attributes:
        observer: the observer.
        observer_enabled: whether it looks at what passes.
        fake_quant_enabled: whether what passes is fake quantised.

    Example:
        >>> import minitorch as mt
        >>> fake = mt.quantization.FakeQuantize(mt.quantization.MinMaxObserver)
        >>> fake(mt.tensor([0.0, 0.1234, 2.55]))
        tensor([0.0000, 0.1200, 2.5500])
    """

    def __init__(self, observer: Callable[..., Observer] = MovingAverageMinMaxObserver, **options: Any) -> None:
        super().__init__()
        self.observer = observer(**options)
        self.observer_enabled = self.fake_quant_enabled = True

    @classmethod
    def with_args(cls, **options: Any) -> Callable[[], Self]:
        """A function that makes modules with these arguments."""
        return partial(cls, **options)

    def forward(self, input: Tensor) -> Tensor:
        """Of the same shape and type; in range, the gradient passes unchanged."""
        if self.observer_enabled:
            self.observer(input)
        return fake_quantize(input, self.qparams()) if self.fake_quant_enabled else input

    def qparams(self) -> QParams:
        """How to quantise what the observer has seen."""
        return self.observer.qparams()

    def calculate_qparams(self) -> tuple[Tensor, Tensor]:
        """The scale and the zero point."""
        return self.observer.calculate_qparams()


def enable_observer(module: Module) -> None:
    """For ``model.apply``: the observers of fake quantisers look at what passes."""
    _switch(module, "observer_enabled", True)


def disable_observer(module: Module) -> None:
    """For ``model.apply``: scales stay as they are, as in the last epochs of training."""
    _switch(module, "observer_enabled", False)


def enable_fake_quant(module: Module) -> None:
    """For ``model.apply``: numbers are fake quantised."""
    _switch(module, "fake_quant_enabled", True)


def disable_fake_quant(module: Module) -> None:
    """For ``model.apply``: numbers pass as they are."""
    _switch(module, "fake_quant_enabled", False)


def _switch(module: Module, name: str, on: bool) -> None:
    if isinstance(module, FakeQuantize):
        setattr(module, name, on)


@dataclass(frozen=True)
class QConfig:
    """The observers of a layer.

    Attributes:
        activation: a function that makes the observer (or `FakeQuantize`) of a layer's input; uint8 or int8, one scale
            for the whole tensor.
        weight: the same for its weight; int8 and symmetric, of the whole tensor or per channel of axis 0.

    Raises:
        QuantizationError: for what is no such function, such as an observer itself (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> q = mt.quantization
        >>> mine = q.QConfig(q.PercentileObserver.with_args(percentile=99.9), q.default_qconfig.weight)
        >>> mine.activation()
        PercentileObserver(min_val=inf, max_val=-inf)
    """

    activation: Callable[[], Observer | FakeQuantize]
    weight: Callable[[], Observer | FakeQuantize]

    def __post_init__(self) -> None:
        for name in ("activation", "weight"):
            given = getattr(self, name)
            if isinstance(given, Module) or not callable(given):
                raise QuantizationError(
                    "MT702",
                    f"QConfig: {name} is {given!r}",
                    why="every layer has an observer of its own, which a function makes",
                    fix="give a class, such as MinMaxObserver, or MinMaxObserver.with_args(dtype=mt.uint8)",
                )


# The engines of PyTorch, and whether activations have 7 bits for them (`reduce_range`).
ENGINES = {"x86": True, "fbgemm": True, "onednn": False, "qnnpack": False}

_WEIGHT = {"dtype": int8, "qscheme": per_channel_symmetric}


def _static(reduce_range: bool) -> QConfig:
    activation = HistogramObserver.with_args(dtype=uint8, reduce_range=reduce_range)
    return QConfig(activation, PerChannelMinMaxObserver.with_args(**_WEIGHT))


def _in_training(reduce_range: bool) -> QConfig:
    options = {"observer": MovingAverageMinMaxObserver, "dtype": uint8, "reduce_range": reduce_range}
    return QConfig(
        FakeQuantize.with_args(**options),
        FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, **_WEIGHT),
    )


_STATIC, _IN_TRAINING = ({reduced: make(reduced) for reduced in (True, False)} for make in (_static, _in_training))
default_qconfig, default_qat_qconfig = _STATIC[False], _IN_TRAINING[False]


def get_default_qconfig(backend: str = "x86") -> QConfig:
    """A histogram of each input, the range of each channel of each weight.

    For the engines ``"x86"`` and ``"fbgemm"`` activations have 7 bits, 0 to 127, as in PyTorch; for ``"onednn"`` and
    ``"qnnpack"`` 8, as in `prepare` without a configuration. Results are exact products of these integers on every
    processor. On one without VNNI, products of 7 bits are faster: AVX2 adds two of them in 16 bits.

    Args:
        backend: the name of an engine of PyTorch's.

    Raises:
        QuantizationError: for another name (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> [mt.quantization.get_default_qconfig(name).activation().quant_max for name in ("x86", "onednn")]
        [127, 255]
    """
    return _STATIC[_is_reduced(backend)]


def get_default_qat_qconfig(backend: str = "x86") -> QConfig:
    """The configuration of `prepare_qat`: fake quantisation by moving averages.

    Args:
        backend: as of `get_default_qconfig`.

    Raises:
        QuantizationError: for another name (``MT702``).
    """
    return _IN_TRAINING[_is_reduced(backend)]


def _is_reduced(backend: str) -> bool:
    if backend not in ENGINES:
        raise QuantizationError("MT702", f"there is no engine {backend!r}", why=f"PyTorch has {', '.join(ENGINES)}")
    return ENGINES[backend]
