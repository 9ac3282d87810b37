"""Averages of a model's weights over training: stochastic weight averaging, and exponential moving averages.

Izmailov et al., arXiv:1803.05407.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from copy import deepcopy
from typing import Any

from ..autograd import no_grad
from ..dtypes import int64
from ..functional.creation.creation import zeros
from ..functional.inplace import assign
from ..nn.module import Module
from ..nn.norms import _BatchNorm
from ..tensor import Tensor
from .lr_scheduler.scheduler import LRScheduler, checked
from .optimizer import Optimizer

Average = Callable[[Tensor, Tensor, Tensor], Tensor]
Averages = Callable[[list[Tensor], list[Tensor], Tensor], None]


def get_swa_avg_fn() -> Average:
    """Return the rule of an average in which all models count alike."""
    return lambda average, new, count: average + (new - average) / (count + 1)


def get_ema_avg_fn(decay: float = 0.999) -> Average:
    """Return the rule of an exponential moving average: the old average counts `decay`.

    Example:
        >>> import minitorch as mt
        >>> mt.optim.swa_utils.get_ema_avg_fn(0.9)(mt.tensor(1.0), mt.tensor(2.0), mt.tensor(5))
        tensor(1.1000)
    """
    if not 0 <= decay <= 1:
        raise ValueError(f"the decay of an average is from 0 to 1, not {decay}")
    return lambda average, new, count: average * decay + new * (1 - decay)


def _of_several(rule: Average) -> Averages:
    def write(averages: list[Tensor], new: list[Tensor], count: Tensor) -> None:
        for average, each in zip(averages, new, strict=True):
            assign(average, rule(average, each, count), "an average of weights")

    return write


def get_swa_multi_avg_fn() -> Averages:
    """Return the rule of `get_swa_avg_fn`, for a list of tensors that are written in place."""
    return _of_several(get_swa_avg_fn())


def get_ema_multi_avg_fn(decay: float = 0.999) -> Averages:
    """Return the rule of `get_ema_avg_fn`, for a list of tensors that are written in place."""
    return _of_several(get_ema_avg_fn(decay))


class AveragedModel(Module):
    """Copy of a model whose parameters are averages.

    Args:
        model: the model, which is copied.
        device: the CPU, if it is given at all.
        avg_fn: the average, the new value and the number of values so far, to the new average; by default all alike.
        multi_avg_fn: the same for lists of tensors, which it writes.
        use_buffers: whether buffers are averaged, too, and not copied.

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Linear(1, 1, bias=False)
        >>> average = mt.optim.swa_utils.AveragedModel(model)
        >>> for value in (1.0, 2.0):
        ...     _ = mt.nn.init.constant_(model.weight, value)
        ...     average.update_parameters(model)
        >>> average(mt.ones(1, 1)).item()
        1.5
    """

    n_averaged: Tensor

    def __init__(
        self,
        model: Module,
        device: Any = None,
        avg_fn: Average | None = None,
        multi_avg_fn: Averages | None = None,
        use_buffers: bool = False,
    ) -> None:
        super().__init__()
        if avg_fn is not None and multi_avg_fn is not None:
            raise ValueError("AveragedModel: give avg_fn or multi_avg_fn, not both")
        self.module = deepcopy(model)
        self.register_buffer("n_averaged", zeros((), dtype=int64))
        self.write = multi_avg_fn or _of_several(avg_fn or get_swa_avg_fn())
        self.use_buffers = use_buffers

    def forward(self, *args: Any, **kwargs: Any) -> Any:
        """Call the averaged model."""
        return self.module(*args, **kwargs)

    def update_parameters(self, model: Module) -> None:
        """Take the parameters of a model into the averages; the first time, copy them."""

        def tensors(module: Module, averaged: bool) -> list[Tensor]:
            buffers = [each.detach() for each in module.buffers()]
            own = [each.detach() for each in module.parameters()]
            return own + buffers * self.use_buffers if averaged else buffers * (not self.use_buffers)

        with no_grad():
            mine, theirs = tensors(self.module, True), tensors(model, True)
            if self.n_averaged.item():
                self.write(mine, theirs, self.n_averaged)
            else:
                for average, each in zip(mine, theirs, strict=True):
                    assign(average, each, "an average of weights")
            for buffer, each in zip(tensors(self.module, False), tensors(model, False), strict=True):
                assign(buffer, each, "an average of weights")
            assign(self.n_averaged, self.n_averaged + 1, "an average of weights")


def update_bn(loader: Iterable[Any], model: Module, device: Any = None) -> None:
    """Compute the statistics of batch normalization anew, from all batches of a loader.

    Args:
        loader: batches, or tuples that begin with a batch.
        model: the model, which is called with each of them.
        device: the CPU, if it is given at all.
    """
    norms = [each for each in model.modules() if isinstance(each, _BatchNorm)]
    if not norms:
        return
    was_training, momenta = model.training, [each.momentum for each in norms]
    for each in norms:
        each.reset_running_stats()
        each.momentum = None  # the mean over all batches
    model.train()
    with no_grad():
        for batch in loader:
            model(batch[0] if isinstance(batch, (list, tuple)) else batch)
    for each, momentum in zip(norms, momenta, strict=True):
        each.momentum = momentum
    model.train(was_training)


class SWALR(LRScheduler):
    """Learning rates that go to `swa_lr` in `anneal_epochs` epochs, and stay.

    Args:
        optimizer: the optimiser whose groups are changed.
        swa_lr: the last rate, or one for each group.
        anneal_epochs: how many epochs it takes.
        anneal_strategy: ``"cos"`` or ``"linear"``.
        last_epoch: the number of past epochs, minus one.
    """

    def __init__(
        self,
        optimizer: Optimizer,
        swa_lr: Any,
        anneal_epochs: int = 10,
        anneal_strategy: str = "cos",
        last_epoch: int = -1,
    ) -> None:
        if anneal_strategy not in ("cos", "linear"):
            raise ValueError(f'SWALR: anneal_strategy is "cos" or "linear", not {anneal_strategy!r}')
        self.is_line, self.anneal_epochs = anneal_strategy == "linear", anneal_epochs
        count = len(checked(optimizer, "SWALR").param_groups)
        self.targets = [*swa_lr] if isinstance(swa_lr, (list, tuple)) else [swa_lr] * count
        if len(self.targets) != count:
            raise ValueError(f"SWALR: swa_lr is one number, or one for each of {count} groups, not {swa_lr!r}")
        super().__init__(optimizer, last_epoch)

    def _share(self, epoch: int) -> float:
        done = max(0.0, min(1.0, epoch / max(1, self.anneal_epochs)))
        return done if self.is_line else (1 - math.cos(math.pi * done)) / 2

    def get_lr(self) -> list[float]:
        """Return the rates: as if the present ones lay on the way, which they go on."""
        if self._is_initial:
            return self.rates()
        before, now = self._share(self.last_epoch - 1), self._share(self.last_epoch)
        begin = [rate if before == 1 else (rate - before * last) / (1 - before)
                 for rate, last in zip(self.rates(), self.targets, strict=True)]  # fmt: skip
        return [last * now + rate * (1 - now) for rate, last in zip(begin, self.targets, strict=True)]
