# Written by `make stubs` from the package itself; do not edit.
"""Neural networks: modules that keep parameters (`Module` and the layers), under PyTorch's names."""

from . import functional as functional
from . import init as init
from . import utils as utils
from .containers import ModuleDict as ModuleDict
from .containers import ModuleList as ModuleList
from .containers import ParameterList as ParameterList
from .containers import Sequential as Sequential
from .functions import CELU as CELU
from .functions import ELU as ELU
from .functions import GELU as GELU
from .functions import GLU as GLU
from .functions import SELU as SELU
from .functions import AdaptiveAvgPool1d as AdaptiveAvgPool1d
from .functions import AdaptiveAvgPool2d as AdaptiveAvgPool2d
from .functions import AdaptiveMaxPool1d as AdaptiveMaxPool1d
from .functions import AdaptiveMaxPool2d as AdaptiveMaxPool2d
from .functions import AvgPool1d as AvgPool1d
from .functions import AvgPool2d as AvgPool2d
from .functions import BCELoss as BCELoss
from .functions import BCEWithLogitsLoss as BCEWithLogitsLoss
from .functions import CircularPad1d as CircularPad1d
from .functions import CircularPad2d as CircularPad2d
from .functions import ConstantPad1d as ConstantPad1d
from .functions import ConstantPad2d as ConstantPad2d
from .functions import CosineEmbeddingLoss as CosineEmbeddingLoss
from .functions import CosineSimilarity as CosineSimilarity
from .functions import CrossEntropyLoss as CrossEntropyLoss
from .functions import CTCLoss as CTCLoss
from .functions import Dropout as Dropout
from .functions import Dropout1d as Dropout1d
from .functions import Dropout2d as Dropout2d
from .functions import Flatten as Flatten
from .functions import Fold as Fold
from .functions import GaussianNLLLoss as GaussianNLLLoss
from .functions import Hardshrink as Hardshrink
from .functions import Hardsigmoid as Hardsigmoid
from .functions import Hardswish as Hardswish
from .functions import Hardtanh as Hardtanh
from .functions import HingeEmbeddingLoss as HingeEmbeddingLoss
from .functions import HuberLoss as HuberLoss
from .functions import Identity as Identity
from .functions import KLDivLoss as KLDivLoss
from .functions import L1Loss as L1Loss
from .functions import LeakyReLU as LeakyReLU
from .functions import LocalResponseNorm as LocalResponseNorm
from .functions import LogSigmoid as LogSigmoid
from .functions import LogSoftmax as LogSoftmax
from .functions import MarginRankingLoss as MarginRankingLoss
from .functions import MaxPool1d as MaxPool1d
from .functions import MaxPool2d as MaxPool2d
from .functions import Mish as Mish
from .functions import MSELoss as MSELoss
from .functions import MultiLabelMarginLoss as MultiLabelMarginLoss
from .functions import MultiLabelSoftMarginLoss as MultiLabelSoftMarginLoss
from .functions import MultiMarginLoss as MultiMarginLoss
from .functions import NLLLoss as NLLLoss
from .functions import PairwiseDistance as PairwiseDistance
from .functions import PixelShuffle as PixelShuffle
from .functions import PixelUnshuffle as PixelUnshuffle
from .functions import PoissonNLLLoss as PoissonNLLLoss
from .functions import ReflectionPad1d as ReflectionPad1d
from .functions import ReflectionPad2d as ReflectionPad2d
from .functions import ReLU as ReLU
from .functions import ReLU6 as ReLU6
from .functions import ReplicationPad1d as ReplicationPad1d
from .functions import ReplicationPad2d as ReplicationPad2d
from .functions import RReLU as RReLU
from .functions import Sigmoid as Sigmoid
from .functions import SiLU as SiLU
from .functions import SmoothL1Loss as SmoothL1Loss
from .functions import SoftMarginLoss as SoftMarginLoss
from .functions import Softmax as Softmax
from .functions import Softmax2d as Softmax2d
from .functions import Softmin as Softmin
from .functions import Softplus as Softplus
from .functions import Softshrink as Softshrink
from .functions import Softsign as Softsign
from .functions import Tanh as Tanh
from .functions import Tanhshrink as Tanhshrink
from .functions import Threshold as Threshold
from .functions import TripletMarginLoss as TripletMarginLoss
from .functions import TripletMarginWithDistanceLoss as TripletMarginWithDistanceLoss
from .functions import Unflatten as Unflatten
from .functions import Unfold as Unfold
from .functions import Upsample as Upsample
from .functions import ZeroPad1d as ZeroPad1d
from .functions import ZeroPad2d as ZeroPad2d
from .layers import Bilinear as Bilinear
from .layers import Conv1d as Conv1d
from .layers import Conv2d as Conv2d
from .layers import ConvTranspose1d as ConvTranspose1d
from .layers import ConvTranspose2d as ConvTranspose2d
from .layers import Embedding as Embedding
from .layers import EmbeddingBag as EmbeddingBag
from .layers import Linear as Linear
from .layers import PReLU as PReLU
from .lazy import LazyBatchNorm1d as LazyBatchNorm1d
from .lazy import LazyBatchNorm2d as LazyBatchNorm2d
from .lazy import LazyConv1d as LazyConv1d
from .lazy import LazyConv2d as LazyConv2d
from .lazy import LazyConvTranspose1d as LazyConvTranspose1d
from .lazy import LazyConvTranspose2d as LazyConvTranspose2d
from .lazy import LazyLinear as LazyLinear
from .module import Module as Module
from .norms import BatchNorm1d as BatchNorm1d
from .norms import BatchNorm2d as BatchNorm2d
from .norms import GroupNorm as GroupNorm
from .norms import InstanceNorm1d as InstanceNorm1d
from .norms import InstanceNorm2d as InstanceNorm2d
from .norms import LayerNorm as LayerNorm
from .norms import RMSNorm as RMSNorm
from .parameter import Parameter as Parameter
from .recurrent.cells import GRUCell as GRUCell
from .recurrent.cells import LSTMCell as LSTMCell
from .recurrent.cells import RNNCell as RNNCell
from .recurrent.networks import GRU as GRU
from .recurrent.networks import LSTM as LSTM
from .recurrent.networks import RNN as RNN
from .transformer import MultiheadAttention as MultiheadAttention
from .transformer import Transformer as Transformer
from .transformer import TransformerDecoder as TransformerDecoder
from .transformer import TransformerDecoderLayer as TransformerDecoderLayer
from .transformer import TransformerEncoder as TransformerEncoder
from .transformer import TransformerEncoderLayer as TransformerEncoderLayer

__all__ = [
    "CELU",
    "ELU",
    "GELU",
    "GLU",
    "GRU",
    "LSTM",
    "RNN",
    "SELU",
    "AdaptiveAvgPool1d",
    "AdaptiveAvgPool2d",
    "AdaptiveMaxPool1d",
    "AdaptiveMaxPool2d",
    "AvgPool1d",
    "AvgPool2d",
    "BCELoss",
    "BCEWithLogitsLoss",
    "BatchNorm1d",
    "BatchNorm2d",
    "Bilinear",
    "CTCLoss",
    "CircularPad1d",
    "CircularPad2d",
    "ConstantPad1d",
    "ConstantPad2d",
    "Conv1d",
    "Conv2d",
    "ConvTranspose1d",
    "ConvTranspose2d",
    "CosineEmbeddingLoss",
    "CosineSimilarity",
    "CrossEntropyLoss",
    "Dropout",
    "Dropout1d",
    "Dropout2d",
    "Embedding",
    "EmbeddingBag",
    "Flatten",
    "Fold",
    "GRUCell",
    "GaussianNLLLoss",
    "GroupNorm",
    "Hardshrink",
    "Hardsigmoid",
    "Hardswish",
    "Hardtanh",
    "HingeEmbeddingLoss",
    "HuberLoss",
    "Identity",
    "InstanceNorm1d",
    "InstanceNorm2d",
    "KLDivLoss",
    "L1Loss",
    "LSTMCell",
    "LayerNorm",
    "LazyBatchNorm1d",
    "LazyBatchNorm2d",
    "LazyConv1d",
    "LazyConv2d",
    "LazyConvTranspose1d",
    "LazyConvTranspose2d",
    "LazyLinear",
    "LeakyReLU",
    "Linear",
    "LocalResponseNorm",
    "LogSigmoid",
    "LogSoftmax",
    "MSELoss",
    "MarginRankingLoss",
    "MaxPool1d",
    "MaxPool2d",
    "Mish",
    "Module",
    "ModuleDict",
    "ModuleList",
    "MultiLabelMarginLoss",
    "MultiLabelSoftMarginLoss",
    "MultiMarginLoss",
    "MultiheadAttention",
    "NLLLoss",
    "PReLU",
    "PairwiseDistance",
    "Parameter",
    "ParameterList",
    "PixelShuffle",
    "PixelUnshuffle",
    "PoissonNLLLoss",
    "RMSNorm",
    "RNNCell",
    "RReLU",
    "ReLU",
    "ReLU6",
    "ReflectionPad1d",
    "ReflectionPad2d",
    "ReplicationPad1d",
    "ReplicationPad2d",
    "Sequential",
    "SiLU",
    "Sigmoid",
    "SmoothL1Loss",
    "SoftMarginLoss",
    "Softmax",
    "Softmax2d",
    "Softmin",
    "Softplus",
    "Softshrink",
    "Softsign",
    "Tanh",
    "Tanhshrink",
    "Threshold",
    "Transformer",
    "TransformerDecoder",
    "TransformerDecoderLayer",
    "TransformerEncoder",
    "TransformerEncoderLayer",
    "TripletMarginLoss",
    "TripletMarginWithDistanceLoss",
    "Unflatten",
    "Unfold",
    "Upsample",
    "ZeroPad1d",
    "ZeroPad2d",
    "functional",
    "init",
    "utils",
]
