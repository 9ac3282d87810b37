"""Functions of neural networks, under the names of `torch.nn.functional`: compositions of primitives.

Modules (`minitorch.nn`) keep parameters and call these; a program that keeps its own parameters needs only these.
``make stubs`` writes the names for type checkers.
"""

from collections.abc import Callable
from typing import Any

from ...functional.arguments import public, with_inplace
from ...packages import names_from

_NAMES = {
    "activations": (
        "celu elu gelu glu gumbel_softmax hardshrink hardsigmoid hardswish hardtanh leaky_relu log_sigmoid logsigmoid "
        "mish prelu relu6 rrelu selu silu softmin softplus softshrink softsign tanhshrink threshold"
    ),
    "attention": "scaled_dot_product_attention",
    "classification": "cross_entropy ctc_loss nll_loss",
    "convolution": "bilinear conv1d conv2d conv3d conv_transpose1d conv_transpose2d fold linear unfold",
    "lookup": "embedding embedding_bag one_hot",
    "losses": "binary_cross_entropy binary_cross_entropy_with_logits huber_loss kl_div l1_loss mse_loss smooth_l1_loss",
    "margins": (
        "cosine_embedding_loss gaussian_nll_loss hinge_embedding_loss margin_ranking_loss multi_margin_loss "
        "multilabel_margin_loss multilabel_soft_margin_loss pairwise_distance poisson_nll_loss soft_margin_loss "
        "triplet_margin_loss triplet_margin_with_distance_loss"
    ),
    "normalization": (
        "batch_norm cosine_similarity dropout dropout1d dropout2d group_norm instance_norm layer_norm "
        "local_response_norm normalize rms_norm"
    ),
    "pooling": (
        "adaptive_avg_pool1d adaptive_avg_pool2d adaptive_max_pool1d adaptive_max_pool2d avg_pool1d avg_pool2d "
        "max_pool1d max_pool2d"
    ),
    "resampling": "interpolate pixel_shuffle pixel_unshuffle",
    "sampling": "affine_grid grid_sample",
}  # of each file, the names; it is loaded for the first of them
_HOMES = {name: f"{__name__}.{file}" for file, names in _NAMES.items() for name in names.split()}
_HOMES |= {
    "log_softmax": "minitorch.functional.reducing.reductions",
    "pad": "minitorch.functional.movement.arranging",
    "relu": "minitorch.functional.movement.selection",
    "sigmoid": "minitorch.functional.pointwise.elementwise",
    "softmax": "minitorch.functional.reducing.reductions",
    "tanh": "minitorch.functional.pointwise.elementwise",
}

# Functions with PyTorch's option `inplace`.
_INPLACE = (
    "celu dropout dropout1d dropout2d elu hardsigmoid hardswish hardtanh leaky_relu mish relu relu6 rrelu selu silu "
    "threshold"
)


def _made(name: str, function: Callable[..., Any]) -> Any:
    return public(name, with_inplace(function) if name in _INPLACE.split() else function, module=__name__, strict=True)


__all__ = sorted(_HOMES)
__getattr__, __dir__ = names_from(__name__, _HOMES, _made)
