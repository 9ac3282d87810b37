"""Batch normalization folded into the convolution or linear layer before it, so that one layer is quantised, not two.

In evaluation, batch normalization is a scale and a shift per channel, and both commute into the layer before it:

    scale = gamma / sqrt(var + eps)        weight' = weight * scale (per output channel)
                                           bias'   = (bias - mean) * scale + beta

Pairs are found by the data that flows between modules: one example goes through the model, and a normalization that is
given the very tensor which a layer returned belongs to it. Somebody else may read that tensor, too, which only the
result shows. So the folded model is compared with the original one, and a pair that changes the result is left alone.
"""

from __future__ import annotations

import copy
from collections.abc import Sequence
from itertools import pairwise
from typing import Any

from minitorch.autograd import no_grad
from minitorch.errors import QuantizationError
from minitorch.functional.creation.creation import zeros
from minitorch.functional.pointwise.elementwise import rsqrt
from minitorch.nn.containers import Sequential
from minitorch.nn.functions import Identity, ReLU
from minitorch.nn.layers import Affine
from minitorch.nn.module import Module
from minitorch.nn.norms import BatchNorm1d, BatchNorm2d
from minitorch.nn.parameter import Parameter
from minitorch.tensor import Tensor
from minitorch.tree import flatten

from .replacing import LAYERS, replaced

NORMS = (BatchNorm1d, BatchNorm2d)

# How far results of the folded model may be from the original's, relative to the largest: some hundred roundings of
# float32. A pair with a second reader is off by the whole effect of a normalization.
SAME = 1e-4


def fuse_conv_bn_weights(layer: Affine, norm: Module) -> tuple[Tensor, Tensor]:
    """The weight and the bias of a layer that does its normalization, too: that of PyTorch's function of this name.

    Example:
        >>> import minitorch as mt
        >>> layer, norm = mt.nn.Linear(2, 2), mt.nn.BatchNorm1d(2).eval()
        >>> norm.running_mean.fill_(1.0), norm.running_var.fill_(4.0)
        (tensor([1., 1.]), tensor([4., 4.]))
        >>> weight, bias = fuse_conv_bn_weights(layer, norm)
        >>> x = mt.ones(1, 2)
        >>> mt.allclose(mt.nn.functional.linear(x, weight, bias), norm(layer(x)), atol=1e-5)
        True
    """
    names = ("running_mean", "running_var", "eps", "weight", "bias")
    mean, var, eps, gamma, beta = (getattr(norm, name) for name in names)
    with no_grad():
        scale = rsqrt(var + eps) if gamma is None else gamma * rsqrt(var + eps)
        bias = zeros(mean.shape) if layer.bias is None else layer.bias
        bias = (bias - mean) * scale
        weight = layer.weight * scale.reshape(-1, *[1] * (layer.weight.ndim - 1))
        return weight, bias if beta is None else bias + beta


def fuse_modules(model: Module, modules_to_fuse: Sequence[str] | Sequence[Sequence[str]]) -> Module:
    """A copy of a model with batch normalizations folded into the layers before them.

    Args:
        model: in evaluation (`eval`).
        modules_to_fuse: names of a layer and its normalization, or a list of such pairs. A third name, that of a ReLU,
            changes nothing: the kernel of a compiled layer has it anyway.

    Raises:
        QuantizationError: if a pair is something else, if the normalization has no running statistics or is in
            training, or if it has another number of channels than the layer (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> net = mt.nn.Sequential(mt.nn.Conv2d(1, 2, 3), mt.nn.BatchNorm2d(2), mt.nn.ReLU()).eval()
        >>> mt.quantization.fuse_modules(net, [["0", "1"]])
        Sequential(
          (0): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
          (1): Identity()
          (2): ReLU()
        )
    """
    model = copy.deepcopy(model)
    flat = all(isinstance(each, str) for each in modules_to_fuse)
    groups: Any = [modules_to_fuse] if flat and modules_to_fuse else modules_to_fuse
    for names in groups:
        modules = [model.get_submodule(name) for name in names]
        if len(modules) == 3 and isinstance(modules[2], ReLU):
            del modules[2]
        if len(modules) != 2:
            raise _refused(names, "these are not a layer and its normalization, and perhaps a ReLU")
        layer, norm = modules
        if not isinstance(layer, LAYERS) or not isinstance(norm, NORMS):
            raise _refused(names, f"{type(layer).__name__} and {type(norm).__name__} are no layer and its BatchNorm")
        if norm.training or norm.running_mean is None:
            raise _refused(names, "the normalization is by the statistics of the batch", "call model.eval() first")
        if layer.weight.shape[0] != norm.num_features:
            channels = f"{layer.weight.shape[0]} channels are made, and {norm.num_features} normalized"
            raise _refused(names, channels)
        weight, bias = fuse_conv_bn_weights(layer, norm)
        layer.weight, layer.bias = Parameter(weight), Parameter(bias)
        model = replaced(model, {names[1]: Identity()})
    return model


def _refused(names: Sequence[str], why: str, fix: str | None = None) -> QuantizationError:
    return QuantizationError("MT702", f"{' and '.join(map(repr, names))} cannot be folded", why=why, fix=fix)


def fuse(model: Module, example: Any = None) -> Module:
    """A copy of a model, in evaluation, with every batch normalization folded that can be.

    Args:
        model: any module.
        example: an input, or a tuple of them, by which pairs are found and checked. Without one, only neighbours in a
            `Sequential` are pairs.

    Example:
        >>> import minitorch as mt
        >>> class Net(mt.nn.Module):
        ...     def __init__(self):
        ...         super().__init__()
        ...         self.conv, self.norm = mt.nn.Conv2d(1, 2, 3), mt.nn.BatchNorm2d(2)
        ...     def forward(self, x):
        ...         return self.norm(self.conv(x)).relu()
        >>> mt.quantization.fuse(Net(), mt.zeros(1, 1, 5, 5))
        Net(
          (conv): Conv2d(1, 2, kernel_size=(3, 3), stride=(1, 1))
          (norm): Identity()
        )
    """
    model = copy.deepcopy(model).eval()
    return fuse_modules(model, pairs_to_fuse(model, example))


def pairs_to_fuse(model: Module, example: Any = None) -> list[tuple[str, str]]:
    """The names of layers and of the normalizations that `fuse` folds into them.

    Args:
        model: in evaluation.
        example: as of `fuse`.
    """
    if example is None:
        return _neighbours(model)
    arguments = example if isinstance(example, tuple) else (example,)
    found = []
    with no_grad():
        expected = _leaves(model(*arguments))
        for pair in _connected(model, arguments):
            folded = fuse_modules(model, [pair])
            if _are_close(_leaves(folded(*arguments)), expected):
                model = folded
                found.append(pair)
    return found


def _neighbours(model: Module) -> list[tuple[str, str]]:
    """Layers that a normalization follows in a `Sequential`."""
    pairs = []
    for place, parent in model.named_modules():
        if type(parent) is Sequential:
            named = list(parent.named_children())
            pairs += [
                (f"{place}.{one}".lstrip("."), f"{place}.{two}".lstrip("."))
                for (one, layer), (two, norm) in pairwise(named)
                if type(layer) in LAYERS and _is_fixed(norm)
            ]
    return pairs


def _connected(model: Module, arguments: tuple[Any, ...]) -> list[tuple[str, str]]:
    """Layers and normalizations that are called once, the second with the tensor that the first returned."""
    names = {id(module): name for name, module in model.named_modules()}
    calls: list[tuple[Module, Any, Any]] = []  # which keeps the tensors: no two of them have one id
    watched = [module for module in model.modules() if type(module) in LAYERS or _is_fixed(module)]
    handles = [
        module.register_forward_hook(lambda module, given, result: calls.append((module, given[0], result)))
        for module in watched
    ]
    model(*arguments)
    for handle in handles:
        handle.remove()
    made = {id(result): module for module, _, result in calls if type(module) in LAYERS}
    often = [id(module) for module, _, _ in calls]
    return [
        (names[id(layer)], names[id(norm)])
        for norm, given, _ in calls
        if _is_fixed(norm) and (layer := made.get(id(given))) is not None
        if often.count(id(layer)) == often.count(id(norm)) == 1
    ]


def _is_fixed(module: Module) -> bool:
    """Whether a module is a normalization by running statistics."""
    return isinstance(module, NORMS) and module.running_mean is not None


def _leaves(result: Any) -> list[Tensor]:
    return [leaf for leaf in flatten(result)[0] if isinstance(leaf, Tensor)]


def _are_close(found: list[Tensor], expected: list[Tensor]) -> bool:
    return all(
        (one - two).abs().max().item() <= SAME * max(two.abs().max().item(), 1e-30)
        for one, two in zip(found, expected, strict=True)
    )
