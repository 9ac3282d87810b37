"""`QConfig`: which observers look at the input of a layer and at its weight; and `FakeQuantize`, for training."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any, Self

from ..dtypes import int8, uint8
from ..errors import QuantizationError
from ..nn.module import Module
from ..tensor import Tensor
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
        return lambda: cls(**options)

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


ENGINES = ("x86", "fbgemm", "onednn", "qnnpack")  # of PyTorch

_WEIGHT = {"dtype": int8, "qscheme": per_channel_symmetric}

# The observers of PyTorch's configuration for x86; all 8 bits are used, since no kernel here adds products in 16.
default_qconfig = QConfig(HistogramObserver.with_args(dtype=uint8), PerChannelMinMaxObserver.with_args(**_WEIGHT))
default_qat_qconfig = QConfig(
    FakeQuantize.with_args(observer=MovingAverageMinMaxObserver, dtype=uint8),
    FakeQuantize.with_args(observer=MovingAveragePerChannelMinMaxObserver, **_WEIGHT),
)


def get_default_qconfig(backend: str = "x86") -> QConfig:
    """The configuration of `prepare`: a histogram of each input, the range of each channel of each weight.

    Args:
        backend: the name of an engine of PyTorch's; here there is one engine, and so one configuration.
    """
    return _of_engine(backend, default_qconfig)


def get_default_qat_qconfig(backend: str = "x86") -> QConfig:
    """The configuration of `prepare_qat`: fake quantisation by moving averages.

    Args:
        backend: as of `get_default_qconfig`.
    """
    return _of_engine(backend, default_qat_qconfig)


def _of_engine(backend: str, qconfig: QConfig) -> QConfig:
    if backend not in ENGINES:
        raise QuantizationError("MT702", f"there is no engine {backend!r}", why=f"PyTorch has {', '.join(ENGINES)}")
    return qconfig
