"""Modules without parameters: activations, pooling, dropout and losses, made from the functions they call.

A row of the table says which function, and how many tensors it takes; the function's other arguments are the
module's options. So ``nn.LeakyReLU(0.2)(x)`` is ``F.leaky_relu(x, 0.2)``, and there is nothing else to read.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar

from ..functional.shaping import flatten, unflatten
from ..tensor import Tensor
from . import functional as F
from .module import Module


class FunctionModule(Module):
    """A module that calls one function, with options given when it was made.

    Attributes:
        function: what is called.
        tensors: how many tensors it takes.
        signature: the parameters of the module: the function's, without the tensors.
    """

    function: ClassVar[Callable[..., Any]]
    tensors: ClassVar[int]
    signature: ClassVar[inspect.Signature]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        given = self.signature.bind(*args, **options)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)  # e.g. the class weights of a loss
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Tensor) -> Any:
        """The function of the inputs."""
        if len(inputs) != self.tensors:
            raise TypeError(f"{type(self).__name__} takes {self.tensors} tensors, not {len(inputs)}")
        options = {name: getattr(self, name) for name in self.signature.parameters}
        if "training" in self.function_parameters:
            options["training"] = self.training
        return type(self).function(*inputs, **options)

    function_parameters: ClassVar[frozenset[str]]

    def extra_repr(self) -> str:
        """The options."""
        if self.tensors > 1:
            return ""  # PyTorch's losses show none
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.signature.parameters)


def module_of(name: str, function: Callable[..., Any], tensors: int = 1, **defaults: Any) -> type[FunctionModule]:
    """A class of modules that call a function.

    Args:
        name: of the class.
        function: its first arguments are tensors, the others the options.
        tensors: how many are tensors.
        defaults: defaults that differ from the function's.

    Example:
        >>> from minitorch.nn import functional as F
        >>> module_of("LeakyReLU", F.leaky_relu)(0.2)
        LeakyReLU(negative_slope=0.2)
    """
    parameters = [*inspect.signature(function).parameters.values()]
    options = [
        each.replace(default=defaults.get(each.name, each.default))
        for each in parameters[tensors:]
        if each.name not in ("training", "dtype")
    ]
    summary = (inspect.getdoc(function) or "").splitlines()[0]
    return type(
        name,
        (FunctionModule,),
        {
            "__doc__": f"{summary}\n\nThe module of `{function.__name__}`; see there for what the options mean.",
            "__module__": __name__,
            "__signature__": inspect.Signature(options),
            "function": staticmethod(function),
            "function_parameters": frozenset(each.name for each in parameters),
            "tensors": tensors,
            "signature": inspect.Signature(options),
        },
    )


def _identity(input: Tensor) -> Tensor:
    """The input itself: a place that is left free."""
    return input


Identity = module_of("Identity", _identity)
Flatten = module_of("Flatten", flatten, start_dim=1)
Unflatten = module_of("Unflatten", unflatten)

ReLU = module_of("ReLU", F.relu)
ReLU6 = module_of("ReLU6", F.relu6)
Hardtanh = module_of("Hardtanh", F.hardtanh)
LeakyReLU = module_of("LeakyReLU", F.leaky_relu)
ELU = module_of("ELU", F.elu)
SELU = module_of("SELU", F.selu)
GELU = module_of("GELU", F.gelu)
SiLU = module_of("SiLU", F.silu)
Mish = module_of("Mish", F.mish)
Sigmoid = module_of("Sigmoid", F.sigmoid)
Tanh = module_of("Tanh", F.tanh)
Softplus = module_of("Softplus", F.softplus)
Softsign = module_of("Softsign", F.softsign)
LogSigmoid = module_of("LogSigmoid", F.logsigmoid)
Softmax = module_of("Softmax", F.softmax)
Softmin = module_of("Softmin", F.softmin)
LogSoftmax = module_of("LogSoftmax", F.log_softmax)

Dropout = module_of("Dropout", F.dropout)
MaxPool1d = module_of("MaxPool1d", F.max_pool1d)
MaxPool2d = module_of("MaxPool2d", F.max_pool2d)
AvgPool1d = module_of("AvgPool1d", F.avg_pool1d)
AvgPool2d = module_of("AvgPool2d", F.avg_pool2d)
AdaptiveAvgPool1d = module_of("AdaptiveAvgPool1d", F.adaptive_avg_pool1d)
AdaptiveAvgPool2d = module_of("AdaptiveAvgPool2d", F.adaptive_avg_pool2d)
CosineSimilarity = module_of("CosineSimilarity", F.cosine_similarity, tensors=2)

MSELoss = module_of("MSELoss", F.mse_loss, tensors=2)
L1Loss = module_of("L1Loss", F.l1_loss, tensors=2)
SmoothL1Loss = module_of("SmoothL1Loss", F.smooth_l1_loss, tensors=2)
HuberLoss = module_of("HuberLoss", F.huber_loss, tensors=2)
BCELoss = module_of("BCELoss", F.binary_cross_entropy, tensors=2)
BCEWithLogitsLoss = module_of("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, tensors=2)
KLDivLoss = module_of("KLDivLoss", F.kl_div, tensors=2)
NLLLoss = module_of("NLLLoss", F.nll_loss, tensors=2)
CrossEntropyLoss = module_of("CrossEntropyLoss", F.cross_entropy, tensors=2)
