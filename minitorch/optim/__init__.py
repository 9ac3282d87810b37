"""Optimisers, under the names of `torch.optim`: they write new values to parameters, in every mode."""

from . import lr_scheduler
from .adagrad import Adadelta, Adagrad, RMSprop
from .adam import Adam, AdamW
from .adamax import Adamax, NAdam
from .group import ParamGroup
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "ParamGroup", "RMSprop",
    "lr_scheduler",
]  # fmt: skip
