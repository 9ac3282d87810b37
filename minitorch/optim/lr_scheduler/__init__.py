"""Learning rates that change from epoch to epoch: factors on the present rate, so that several schedulers multiply.

A rate set by hand is changed by these factors, too, as in PyTorch; `LambdaLR` and those that go up and down start from
the first one. A scheduler writes ``group["lr"]``, which recorded training steps read: none is traced again. `step`
belongs between the epochs, outside of the recorded function, because the number of the epoch is a Python int.
"""

from .combined import ChainedScheduler, ReduceLROnPlateau, SequentialLR
from .cycles import CosineAnnealingLR, CosineAnnealingWarmRestarts, OneCycleLR
from .decay import (
    ConstantLR,
    ExponentialLR,
    LambdaLR,
    LinearLR,
    MultiplicativeLR,
    MultiStepLR,
    PolynomialLR,
    StepLR,
)
from .scheduler import LRScheduler

__all__ = [
    "ChainedScheduler", "ConstantLR", "CosineAnnealingLR", "CosineAnnealingWarmRestarts", "ExponentialLR",
    "LRScheduler", "LambdaLR", "LinearLR", "MultiStepLR", "MultiplicativeLR", "OneCycleLR", "PolynomialLR",
    "ReduceLROnPlateau", "SequentialLR", "StepLR",
]  # fmt: skip
