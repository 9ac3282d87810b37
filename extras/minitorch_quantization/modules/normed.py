"""Quantisation-aware training of a layer with its batch normalization (Krishnamoorthi, arXiv:1806.08342, 3.2.2).

Trained for 8 bits, a weight has to be rounded as it will be stored, so with the scale of its normalization in it. That
scale is the one of evaluation, by running statistics, since those of a batch change from step to step. It is divided
out again, so the normalization is given what the layer gives, and takes the statistics of the batch from that:

    scale = gamma / sqrt(running_var + eps)
    y     = norm(layer(x, fake_quantise(weight * scale)) / scale + bias)

PyTorch has a class for each pair, `ConvBn2d`, `ConvBnReLU2d`, `LinearBn1d` and others; the law is one.
"""

from __future__ import annotations

import copy

from minitorch.autograd import no_grad
from minitorch.functional.movement.selection import where
from minitorch.functional.pointwise.elementwise import rsqrt
from minitorch.nn.layers import Affine
from minitorch.nn.module import Module
from minitorch.nn.norms import BatchNorm1d, BatchNorm2d
from minitorch.nn.parameter import Parameter
from minitorch.tensor import Tensor

from ..fusing import fuse_conv_bn_weights
from ..qconfig import QConfig
from .quantized import Prepared, observer_of, require_fitting


class Statistics(Module):
    """Whether a normalization is trained by the statistics of batches: its `training`, which the model's leaves alone.

    It is a flag like that one, and so a compiled step that has seen it change is compiled again without a warning.
    """

    def train(self, mode: bool = True) -> Statistics:
        """Nothing; see `freeze_bn_stats`."""
        return self


class PreparedWithNorm(Prepared):
    """A float layer and the batch normalization behind it, whose weight is fake quantised as it will be stored.

    Args:
        name: of the layer in its model, for messages.
        layer: a `Linear`, `Conv1d` or `Conv2d`.
        norm: a normalization by running statistics, of as many channels as the layer makes.
        qconfig: of which `activation` and `weight` are made.
        group: a number that all readers of its input share, if that is known.

    Raises:
        QuantizationError: as of `Prepared`.
    """

    def __init__(
        self, name: str, layer: Affine, norm: BatchNorm1d | BatchNorm2d, qconfig: QConfig, group: int | None = None
    ) -> None:
        super().__init__(name, layer, qconfig, group)
        self.norm = norm
        self.statistics = Statistics()
        with no_grad():
            of_weight = observer_of(self.weight_observer)
            of_weight.reset_min_max_vals()  # the weight alone is nothing that will be stored
            of_weight(self._scaled(self._scale()))

    def forward(self, input: Tensor) -> Tensor:
        """The normalized result.

        Raises:
            ShapeError: if the input has another number of channels than the layer takes (``MT201``).
        """
        require_fitting(self.name, self.layer, input)
        scale, bias = self._scale(), self.layer.bias
        along = -1, *[1] * getattr(self.layer, "dims", 0)
        weight = self.weight_observer(self._scaled(scale))
        made = self.layer.applied(self.activation(input), weight, None) / scale.reshape(along)
        result: Tensor = self.norm(made if bias is None else made + bias.reshape(along))
        return result

    def _scale(self) -> Tensor:
        """The scale of each channel in evaluation; 1 where it is 0, which cannot be divided out again."""
        norm = self.norm
        assert norm.running_var is not None
        scale = rsqrt(norm.running_var + norm.eps)
        scale = scale if norm.weight is None else norm.weight * scale
        return where(scale == 0, 1.0, scale)

    def _scaled(self, scale: Tensor) -> Tensor:
        weight = self.layer.weight
        return weight * scale.reshape(-1, *[1] * (weight.ndim - 1))

    def stored(self) -> Affine:
        """One layer that does both."""
        folded = copy.deepcopy(self.layer)
        weight, bias = fuse_conv_bn_weights(self.layer, self.norm)
        folded.weight, folded.bias = Parameter(weight.detach()), Parameter(bias.detach())
        return folded

    def train(self, mode: bool = True) -> PreparedWithNorm:
        """Training or evaluation; frozen statistics stay those of evaluation."""
        super().train(mode)
        self.norm.train(mode and self.statistics.training)
        return self


def freeze_bn_stats(module: Module) -> None:
    """For ``model.apply``: normalizations go by their running statistics in training, too, and leave them as they are.

    It is for the last epochs of quantisation-aware training: the model is trained as it will be evaluated.

    Example:
        >>> import minitorch as mt
        >>> net = mt.nn.Sequential(mt.nn.Conv2d(1, 2, 3), mt.nn.BatchNorm2d(2))
        >>> prepared = mt.quantization.prepare_qat(net).apply(mt.quantization.freeze_bn_stats)
        >>> prepared[0].norm.training, prepared[0].training
        (False, True)
    """
    _switch(module, True)


def update_bn_stats(module: Module) -> None:
    """For ``model.apply``: normalizations go by the statistics of each batch again, and update their running ones."""
    _switch(module, False)


def _switch(module: Module, frozen: bool) -> None:
    if isinstance(module, PreparedWithNorm):
        module.statistics.training = not frozen
        module.train(module.training)
