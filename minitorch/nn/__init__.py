"""Neural networks: modules that keep parameters (`Module` and the layers), under PyTorch's names.

Layers with parameters are in `layers`, `norms` and `recurrent/`. Those without (activations,
pooling, losses) are rows of the table in `functions`. They compute with `minitorch.nn.functional`. ``make stubs``
writes the names for type checkers.
"""

from ..packages import names_from

_NAMES = {
    "containers": "ModuleDict ModuleList ParameterList Sequential",
    "functions": (
        "AdaptiveAvgPool1d AdaptiveAvgPool2d AdaptiveMaxPool1d AdaptiveMaxPool2d AvgPool1d AvgPool2d BCELoss "
        "BCEWithLogitsLoss CELU CTCLoss CircularPad1d CircularPad2d ConstantPad1d ConstantPad2d CosineEmbeddingLoss "
        "CosineSimilarity CrossEntropyLoss Dropout Dropout1d Dropout2d ELU Flatten Fold GELU GLU GaussianNLLLoss "
        "Hardshrink Hardsigmoid Hardswish Hardtanh HingeEmbeddingLoss HuberLoss Identity KLDivLoss L1Loss "
        "LeakyReLU LocalResponseNorm LogSigmoid LogSoftmax MSELoss MarginRankingLoss MaxPool1d MaxPool2d Mish "
        "MultiLabelMarginLoss MultiLabelSoftMarginLoss MultiMarginLoss NLLLoss PairwiseDistance PixelShuffle "
        "PixelUnshuffle PoissonNLLLoss RReLU ReLU ReLU6 ReflectionPad1d ReflectionPad2d ReplicationPad1d "
        "ReplicationPad2d SELU SiLU Sigmoid SmoothL1Loss SoftMarginLoss Softmax Softmax2d Softmin Softplus "
        "Softshrink Softsign Tanh Tanhshrink Threshold TripletMarginLoss TripletMarginWithDistanceLoss Unflatten "
        "Unfold Upsample ZeroPad1d ZeroPad2d"
    ),
    "lazy": (
        "LazyBatchNorm1d LazyBatchNorm2d LazyConv1d LazyConv2d LazyConvTranspose1d LazyConvTranspose2d LazyLinear"
    ),
    "layers": "Bilinear Conv1d Conv2d ConvTranspose1d ConvTranspose2d Embedding EmbeddingBag Linear PReLU",
    "module": "Module",
    "norms": "BatchNorm1d BatchNorm2d GroupNorm InstanceNorm1d InstanceNorm2d LayerNorm RMSNorm",
    "parameter": "Parameter",
    "recurrent.cells": "GRUCell LSTMCell RNNCell",
    "recurrent.networks": "GRU LSTM RNN",
    "transformer": (
        "MultiheadAttention Transformer TransformerDecoder TransformerDecoderLayer TransformerEncoder "
        "TransformerEncoderLayer"
    ),
}  # of each file, the names; it is loaded for the first of them
_HOMES = {name: f"{__name__}.{file}" for file, names in _NAMES.items() for name in names.split()}
_HOMES |= {name: f"{__name__}.{name}" for name in ("functional", "init", "utils")}

__all__ = sorted(_HOMES)
_BESIDE = dict.fromkeys(("DataParallel",), "minitorch_torch.parallel") | {
    name: f"{__name__}.{name}" for name in ("modules", "parallel")
}  # of a package beside the engine
__getattr__, __dir__ = names_from(__name__, {**_HOMES, **_BESIDE})
