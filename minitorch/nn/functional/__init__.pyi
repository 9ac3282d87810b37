# Written by `make stubs` from the package itself; do not edit.
"""Functions of neural networks, under the names of `torch.nn.functional`: compositions of primitives."""

from minitorch.functional.movement.arranging import pad as pad
from minitorch.functional.movement.selection import relu as relu
from minitorch.functional.pointwise.elementwise import sigmoid as sigmoid
from minitorch.functional.pointwise.elementwise import tanh as tanh
from minitorch.functional.reducing.reductions import log_softmax as log_softmax
from minitorch.functional.reducing.reductions import softmax as softmax

from .activations import celu as celu
from .activations import elu as elu
from .activations import gelu as gelu
from .activations import glu as glu
from .activations import gumbel_softmax as gumbel_softmax
from .activations import hardshrink as hardshrink
from .activations import hardsigmoid as hardsigmoid
from .activations import hardswish as hardswish
from .activations import hardtanh as hardtanh
from .activations import leaky_relu as leaky_relu
from .activations import log_sigmoid as log_sigmoid
from .activations import logsigmoid as logsigmoid
from .activations import mish as mish
from .activations import prelu as prelu
from .activations import relu6 as relu6
from .activations import rrelu as rrelu
from .activations import selu as selu
from .activations import silu as silu
from .activations import softmin as softmin
from .activations import softplus as softplus
from .activations import softshrink as softshrink
from .activations import softsign as softsign
from .activations import tanhshrink as tanhshrink
from .activations import threshold as threshold
from .attention import scaled_dot_product_attention as scaled_dot_product_attention
from .classification import cross_entropy as cross_entropy
from .classification import ctc_loss as ctc_loss
from .classification import nll_loss as nll_loss
from .convolution import bilinear as bilinear
from .convolution import conv1d as conv1d
from .convolution import conv2d as conv2d
from .convolution import conv3d as conv3d
from .convolution import conv_transpose1d as conv_transpose1d
from .convolution import conv_transpose2d as conv_transpose2d
from .convolution import fold as fold
from .convolution import linear as linear
from .convolution import unfold as unfold
from .lookup import embedding as embedding
from .lookup import embedding_bag as embedding_bag
from .lookup import one_hot as one_hot
from .losses import binary_cross_entropy as binary_cross_entropy
from .losses import binary_cross_entropy_with_logits as binary_cross_entropy_with_logits
from .losses import huber_loss as huber_loss
from .losses import kl_div as kl_div
from .losses import l1_loss as l1_loss
from .losses import mse_loss as mse_loss
from .losses import smooth_l1_loss as smooth_l1_loss
from .margins import cosine_embedding_loss as cosine_embedding_loss
from .margins import gaussian_nll_loss as gaussian_nll_loss
from .margins import hinge_embedding_loss as hinge_embedding_loss
from .margins import margin_ranking_loss as margin_ranking_loss
from .margins import multi_margin_loss as multi_margin_loss
from .margins import multilabel_margin_loss as multilabel_margin_loss
from .margins import multilabel_soft_margin_loss as multilabel_soft_margin_loss
from .margins import pairwise_distance as pairwise_distance
from .margins import poisson_nll_loss as poisson_nll_loss
from .margins import soft_margin_loss as soft_margin_loss
from .margins import triplet_margin_loss as triplet_margin_loss
from .margins import triplet_margin_with_distance_loss as triplet_margin_with_distance_loss
from .normalization import batch_norm as batch_norm
from .normalization import cosine_similarity as cosine_similarity
from .normalization import dropout as dropout
from .normalization import dropout1d as dropout1d
from .normalization import dropout2d as dropout2d
from .normalization import group_norm as group_norm
from .normalization import instance_norm as instance_norm
from .normalization import layer_norm as layer_norm
from .normalization import local_response_norm as local_response_norm
from .normalization import normalize as normalize
from .normalization import rms_norm as rms_norm
from .pooling import adaptive_avg_pool1d as adaptive_avg_pool1d
from .pooling import adaptive_avg_pool2d as adaptive_avg_pool2d
from .pooling import adaptive_max_pool1d as adaptive_max_pool1d
from .pooling import adaptive_max_pool2d as adaptive_max_pool2d
from .pooling import avg_pool1d as avg_pool1d
from .pooling import avg_pool2d as avg_pool2d
from .pooling import max_pool1d as max_pool1d
from .pooling import max_pool2d as max_pool2d
from .resampling import interpolate as interpolate
from .resampling import pixel_shuffle as pixel_shuffle
from .resampling import pixel_unshuffle as pixel_unshuffle
from .sampling import affine_grid as affine_grid
from .sampling import grid_sample as grid_sample

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "adaptive_max_pool1d",
    "adaptive_max_pool2d",
    "affine_grid",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "bilinear",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "celu",
    "conv1d",
    "conv2d",
    "conv3d",
    "conv_transpose1d",
    "conv_transpose2d",
    "cosine_embedding_loss",
    "cosine_similarity",
    "cross_entropy",
    "ctc_loss",
    "dropout",
    "dropout1d",
    "dropout2d",
    "elu",
    "embedding",
    "embedding_bag",
    "fold",
    "gaussian_nll_loss",
    "gelu",
    "glu",
    "grid_sample",
    "group_norm",
    "gumbel_softmax",
    "hardshrink",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "hinge_embedding_loss",
    "huber_loss",
    "instance_norm",
    "interpolate",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "local_response_norm",
    "log_sigmoid",
    "log_softmax",
    "logsigmoid",
    "margin_ranking_loss",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "multi_margin_loss",
    "multilabel_margin_loss",
    "multilabel_soft_margin_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "pairwise_distance",
    "pixel_shuffle",
    "pixel_unshuffle",
    "poisson_nll_loss",
    "prelu",
    "relu",
    "relu6",
    "rms_norm",
    "rrelu",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "soft_margin_loss",
    "softmax",
    "softmin",
    "softplus",
    "softshrink",
    "softsign",
    "tanh",
    "tanhshrink",
    "threshold",
    "triplet_margin_loss",
    "triplet_margin_with_distance_loss",
    "unfold",
]
