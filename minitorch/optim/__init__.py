"""Optimisers, under the names of `torch.optim`: they write new values to parameters, in every mode."""

from ..packages import names_from
from . import lr_scheduler
from .adagrad import Adadelta, Adagrad, RMSprop
from .adam import Adam, AdamW
from .adamax import Adamax, NAdam
from .group import ParamGroup
from .lbfgs import LBFGS
from .optimizer import Optimizer
from .sgd import SGD

__all__ = [
    "LBFGS", "SGD", "Adadelta", "Adagrad", "Adam", "AdamW", "Adamax", "NAdam", "Optimizer", "ParamGroup", "RMSprop",
    "lr_scheduler", "swa_utils",
]  # fmt: skip

__getattr__, __dir__ = names_from(__name__, {"swa_utils": f"{__name__}.swa_utils"})
