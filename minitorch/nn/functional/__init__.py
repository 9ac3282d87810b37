"""Functions of neural networks, under the names of `torch.nn.functional`: compositions of primitives.

Modules (`minitorch.nn`) keep parameters and call these; a program that keeps its own parameters needs only these.
"""

from ...functional.arguments import public
from ...functional.arranging import pad
from ...functional.elementwise import sigmoid, tanh
from ...functional.inplace_methods import in_place
from ...methods import install
from .activations import (
    elu,
    gelu,
    hardsigmoid,
    hardswish,
    hardtanh,
    leaky_relu,
    log_sigmoid,
    log_softmax,
    logsigmoid,
    mish,
    relu,
    relu6,
    selu,
    silu,
    softmax,
    softmin,
    softplus,
    softsign,
)
from .attention import scaled_dot_product_attention
from .classification import cross_entropy, nll_loss
from .convolution import (
    conv1d,
    conv2d,
    conv3d,
    linear,
)
from .lookup import embedding, one_hot
from .losses import (
    binary_cross_entropy,
    binary_cross_entropy_with_logits,
    huber_loss,
    kl_div,
    l1_loss,
    mse_loss,
    smooth_l1_loss,
)
from .normalization import (
    batch_norm,
    cosine_similarity,
    dropout,
    group_norm,
    layer_norm,
    normalize,
    rms_norm,
)
from .pooling import (
    adaptive_avg_pool1d,
    adaptive_avg_pool2d,
    avg_pool1d,
    avg_pool2d,
    max_pool1d,
    max_pool2d,
)

__all__ = [
    "adaptive_avg_pool1d",
    "adaptive_avg_pool2d",
    "avg_pool1d",
    "avg_pool2d",
    "batch_norm",
    "binary_cross_entropy",
    "binary_cross_entropy_with_logits",
    "conv1d",
    "conv2d",
    "conv3d",
    "cosine_similarity",
    "cross_entropy",
    "dropout",
    "elu",
    "embedding",
    "gelu",
    "group_norm",
    "hardsigmoid",
    "hardswish",
    "hardtanh",
    "huber_loss",
    "kl_div",
    "l1_loss",
    "layer_norm",
    "leaky_relu",
    "linear",
    "log_sigmoid",
    "log_softmax",
    "logsigmoid",
    "max_pool1d",
    "max_pool2d",
    "mish",
    "mse_loss",
    "nll_loss",
    "normalize",
    "one_hot",
    "pad",
    "relu",
    "relu6",
    "rms_norm",
    "scaled_dot_product_attention",
    "selu",
    "sigmoid",
    "silu",
    "smooth_l1_loss",
    "softmax",
    "softmin",
    "softplus",
    "softsign",
    "tanh",
]

# Those that PyTorch has as methods of a tensor, too.
_METHODS = {"relu": relu, "relu_": in_place("relu", relu), "softmax": softmax, "log_softmax": log_softmax}
install({name: public(name, method) for name, method in _METHODS.items()})

for name in __all__:
    globals()[name] = public(name, globals()[name], __name__, strict=True)
