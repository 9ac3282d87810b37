"""Quantisation: 8-bit integers for floats, under the names of `torch.ao.quantization`.

Observers look at data and choose a scale and a zero point; `quantize`, `dequantize` and `fake_quantize` apply them.
Whole models go through `prepare`, `calibrate` and `convert`, or `prepare_qat`, training and `convert`;
`quantize_dynamic` and `quantize_weights_` need no data.
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
from .fusing import fuse, fuse_conv_bn_weights, fuse_modules
from .histogram import HistogramObserver, PercentileObserver
from .modules.normed import PreparedWithNorm, freeze_bn_stats, update_bn_stats
from .modules.quantized import DynamicQuantized, Prepared, Quantized
from .modules.recurrent import DynamicQuantizedCell, DynamicQuantizedRNN
from .modules.weight_only import WeightOnly, quantize_weights_
from .observers import (
    MinMaxObserver,
    MovingAverageMinMaxObserver,
    MovingAveragePerChannelMinMaxObserver,
    Observer,
    PerChannelMinMaxObserver,
)
from .preparing import calibrate, convert, prepare, prepare_qat, quantize_dynamic
from .qconfig import (
    FakeQuantize,
    QConfig,
    default_qat_qconfig,
    default_qconfig,
    disable_fake_quant,
    disable_observer,
    enable_fake_quant,
    enable_observer,
    get_default_qat_qconfig,
    get_default_qconfig,
)
from .reporting.report import LayerReport, Report, report
from .schemes import (
    QParams,
    choose_qparams,
    per_channel_affine,
    per_channel_symmetric,
    per_tensor_affine,
    per_tensor_symmetric,
)

__all__ = [
    "DynamicQuantized",
    "DynamicQuantizedCell",
    "DynamicQuantizedRNN",
    "FakeQuantize",
    "HistogramObserver",
    "LayerReport",
    "MinMaxObserver",
    "MovingAverageMinMaxObserver",
    "MovingAveragePerChannelMinMaxObserver",
    "Observer",
    "PerChannelMinMaxObserver",
    "PercentileObserver",
    "Prepared",
    "PreparedWithNorm",
    "QConfig",
    "QParams",
    "Quantized",
    "Report",
    "WeightOnly",
    "calibrate",
    "choose_qparams",
    "convert",
    "default_qat_qconfig",
    "default_qconfig",
    "dequantize",
    "disable_fake_quant",
    "disable_observer",
    "enable_fake_quant",
    "enable_observer",
    "fake_quantize",
    "fake_quantize_per_channel_affine",
    "fake_quantize_per_tensor_affine",
    "freeze_bn_stats",
    "fuse",
    "fuse_conv_bn_weights",
    "fuse_modules",
    "get_default_qat_qconfig",
    "get_default_qconfig",
    "per_channel_affine",
    "per_channel_symmetric",
    "per_tensor_affine",
    "per_tensor_symmetric",
    "prepare",
    "prepare_qat",
    "quantize",
    "quantize_dynamic",
    "quantize_per_channel",
    "quantize_per_tensor",
    "quantize_weights_",
    "report",
    "update_bn_stats",
]
