"""Optimisers, under the names of `torch.optim`: they write new values to parameters, in every mode."""

from . import lr_scheduler
from .adam import Adam, AdamW
from .group import ParamGroup
from .optimizer import Optimizer
from .sgd import SGD

__all__ = ["SGD", "Adam", "AdamW", "Optimizer", "ParamGroup", "lr_scheduler"]
