"""Quantisation: 8-bit integers for floats, under the names of `torch.ao.quantization`.

Observers look at data and choose a scale and a zero point; `quantize`, `dequantize` and `fake_quantize` apply them.
"""

from .affine import (
    dequantize,
    fake_quantize,
    fake_quantize_per_channel_affine,
    fake_quantize_per_tensor_affine,
    quantize,
    quantize_per_channel,
    quantize_per_tensor,
)
from .histogram import HistogramObserver, PercentileObserver
from .observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    Observer,
    PerChannelMinMaxObserver,
)
from .schemes import (
    QParams,
    choose_qparams,
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)

__all__ = [
    "HistogramObserver",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "Observer",
    "PerChannelMinMaxObserver",
    "PercentileObserver",
    "QParams",
    "choose_qparams",
    "dequantize",
    "fake_quantize",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "quantize",
    "quantize_per_channel",
    "quantize_per_tensor",
]
