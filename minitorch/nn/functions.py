"""Modules without parameters: activations, pooling, dropout and losses, made from the functions they call.

A row of the table names the function and the number of its tensors; its other arguments are the module's options. So
``nn.LeakyReLU(0.2)(x)`` is ``F.leaky_relu(x, 0.2)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any, ClassVar, TypeVar

from ..functional.arguments import ALLOWED
from ..functional.operands import probability, require_tensor
from ..functional.shaping import flatten, unflatten
from ..tensor import Tensor
from . import functional as F
from .functional.activations import require_range
from .module import Module

T = TypeVar("T")


class _Signature:
    """Signature seen by `inspect.signature` and `jit`: of a class the options, of a module its tensors."""

    def __get__(self, module: FunctionModule | None, owner: type[FunctionModule]) -> inspect.Signature:
        return owner.signature if module is None else owner.inputs


class FunctionModule(Module):
    """Module that calls one function, with options given when it was made.

    Attributes:
        function: the function called.
        tensors: how many tensors it takes.
        inputs: the parameters of a call: the function's tensors.
        signature: the parameters of the module: the function's, without the tensors.
        check: refuses invalid options, as early as PyTorch does.
    """

    function: ClassVar[Callable[..., Tensor]]
    tensors: ClassVar[int]
    inputs: ClassVar[inspect.Signature]
    signature: ClassVar[inspect.Signature]
    check: ClassVar[Callable[..., Any]]

    def __init__(self, *args: Any, **options: Any) -> None:
        super().__init__()
        given = self.signature.bind(*args, **options)
        given.apply_defaults()
        for name, value in given.arguments.items():
            if not isinstance(value, ALLOWED.get(str(self.signature.parameters[name].annotation), object)):
                require_tensor(type(self).__name__, name, value)
        self.check(**given.arguments)
        for name, value in given.arguments.items():
            if isinstance(value, Tensor):
                self.register_buffer(name, value)  # e.g. the class weights of a loss
            else:
                setattr(self, name, value)

    def forward(self, *inputs: Tensor, **named: Tensor) -> Tensor:
        """Return the function of the inputs."""
        if named:
            try:
                inputs = self.inputs.bind(*inputs, **named).args
            except TypeError as error:
                raise TypeError(f"{type(self).__name__}: {error}") from None
        if len(inputs) != self.tensors:
            raise TypeError(f"{type(self).__name__} takes {self.tensors} tensors, not {len(inputs)}")
        options = {name: getattr(self, name) for name in self.signature.parameters}
        if "training" in self.function_parameters:
            options["training"] = self.training
        return type(self).function(*inputs, **options)

    function_parameters: ClassVar[frozenset[str]]

    def extra_repr(self) -> str:
        """Return the options as text."""
        if self.tensors > 1:
            return ""  # PyTorch's losses show none
        return ", ".join(f"{name}={getattr(self, name)!r}" for name in self.signature.parameters)


_DOC = """Module of `{function}`; see there for the meaning of its options.

    {summary}

    Example:
        >>> import minitorch as mt
        >>> mt.nn.{call}
        {result}
    """


def module_of(
    name: str,
    function: Callable[..., Any],
    call: str,
    result: str,
    tensors: int = 1,
    check: Callable[..., Any] = lambda **options: None,
    **defaults: Any,
) -> type[FunctionModule]:
    """Return a class of modules that call a function.

    Args:
        name: the name of the class.
        function: its first arguments are tensors, the others the options.
        call: an example for its documentation.
        result: the result of the example.
        tensors: the number of tensors.
        check: refuses invalid options when a module is made.
        defaults: defaults that differ from the function's.

    Example:
        >>> from minitorch.nn import functional as F
        >>> module_of("LeakyReLU", F.leaky_relu, "LeakyReLU()", "LeakyReLU(negative_slope=0.01)")(0.2)
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
            "__doc__": _DOC.format(summary=summary, function=function.__name__, call=call, result=result),
            "__module__": __name__,
            "__signature__": _Signature(),
            "inputs": inspect.Signature(parameters[:tensors]),
            "function": staticmethod(function),
            "function_parameters": frozenset(each.name for each in parameters),
            "tensors": tensors,
            "signature": inspect.Signature(options),
            "check": staticmethod(check),
        },
    )


class Identity(Module):
    """Identity: returns its input. It takes any arguments, so it can replace any module.

    Example:
        >>> import minitorch as mt
        >>> mt.nn.Identity(54, unused=0.1)(mt.tensor([-1.0, 2.0]))
        tensor([-1.,  2.])
    """

    def __init__(self, *args: Any, **kwargs: Any) -> None:
        super().__init__()

    def forward(self, input: T) -> T:
        """Return the input."""
        return input


Flatten = module_of("Flatten", flatten, "Flatten()(mt.zeros(2, 3, 4)).shape", "(2, 12)", start_dim=1)
Unflatten = module_of("Unflatten", unflatten, "Unflatten(1, (3, 4))(mt.zeros(2, 12)).shape", "(2, 3, 4)")

ReLU = module_of("ReLU", F.relu, "ReLU()(mt.tensor([-1.0, 2.0]))", "tensor([0., 2.])")
ReLU6 = module_of("ReLU6", F.relu6, "ReLU6()(mt.tensor([-1.0, 2.0]))", "tensor([0., 2.])")
Hardtanh = module_of(
    "Hardtanh",
    F.hardtanh,
    "Hardtanh()(mt.tensor([-1.0, 2.0]))",
    "tensor([-1.,  1.])",
    check=lambda min_val, max_val: require_range("Hardtanh", min_val, max_val),
)
Hardsigmoid = module_of(
    "Hardsigmoid", F.hardsigmoid, "Hardsigmoid()(mt.tensor([-4.0, 1.5]))", "tensor([0.0000, 0.7500])"
)
Hardswish = module_of("Hardswish", F.hardswish, "Hardswish()(mt.tensor([-1.0, 1.5]))", "tensor([-0.3333,  1.1250])")
LeakyReLU = module_of("LeakyReLU", F.leaky_relu, "LeakyReLU(0.5)(mt.tensor([-1.0, 2.0]))", "tensor([-0.5000,  2.0000])")
ELU = module_of("ELU", F.elu, "ELU()(mt.tensor([-1.0, 2.0]))", "tensor([-0.6321,  2.0000])")
SELU = module_of("SELU", F.selu, "SELU()(mt.tensor([-1.0, 2.0]))", "tensor([-1.1113,  2.1014])")
GELU = module_of("GELU", F.gelu, "GELU()(mt.tensor([-1.0, 2.0]))", "tensor([-0.1587,  1.9545])")
SiLU = module_of("SiLU", F.silu, "SiLU()(mt.tensor([-1.0, 2.0]))", "tensor([-0.2689,  1.7616])")
Mish = module_of("Mish", F.mish, "Mish()(mt.tensor([-1.0, 2.0]))", "tensor([-0.3034,  1.9440])")
Sigmoid = module_of("Sigmoid", F.sigmoid, "Sigmoid()(mt.tensor([-1.0, 2.0]))", "tensor([0.2689, 0.8808])")
Tanh = module_of("Tanh", F.tanh, "Tanh()(mt.tensor([-1.0, 2.0]))", "tensor([-0.7616,  0.9640])")
Softplus = module_of("Softplus", F.softplus, "Softplus()(mt.tensor([-1.0, 2.0]))", "tensor([0.3133, 2.1269])")
Softsign = module_of("Softsign", F.softsign, "Softsign()(mt.tensor([-1.0, 2.0]))", "tensor([-0.5000,  0.6667])")
LogSigmoid = module_of("LogSigmoid", F.logsigmoid, "LogSigmoid()(mt.tensor([-1.0, 2.0]))", "tensor([-1.3133, -0.1269])")
Softmax = module_of("Softmax", F.softmax, "Softmax(dim=0)(mt.tensor([-1.0, 2.0]))", "tensor([0.0474, 0.9526])")
Softmin = module_of("Softmin", F.softmin, "Softmin(dim=0)(mt.tensor([-1.0, 2.0]))", "tensor([0.9526, 0.0474])")
LogSoftmax = module_of(
    "LogSoftmax", F.log_softmax, "LogSoftmax(dim=0)(mt.tensor([-1.0, 2.0]))", "tensor([-3.0486, -0.0486])"
)

Dropout = module_of(
    "Dropout",
    F.dropout,
    "Dropout(0.5).eval()(mt.tensor([-1.0, 2.0]))",
    "tensor([-1.,  2.])",
    check=lambda p: probability("Dropout: p", p),
)
MaxPool1d = module_of("MaxPool1d", F.max_pool1d, "MaxPool1d(2)(mt.zeros(1, 3, 6)).shape", "(1, 3, 3)")
MaxPool2d = module_of("MaxPool2d", F.max_pool2d, "MaxPool2d(2)(mt.zeros(1, 3, 6, 6)).shape", "(1, 3, 3, 3)")
AvgPool1d = module_of("AvgPool1d", F.avg_pool1d, "AvgPool1d(2)(mt.zeros(1, 3, 6)).shape", "(1, 3, 3)")
AvgPool2d = module_of("AvgPool2d", F.avg_pool2d, "AvgPool2d(2)(mt.zeros(1, 3, 6, 6)).shape", "(1, 3, 3, 3)")
AdaptiveAvgPool1d = module_of(
    "AdaptiveAvgPool1d", F.adaptive_avg_pool1d, "AdaptiveAvgPool1d(2)(mt.zeros(1, 3, 6)).shape", "(1, 3, 2)"
)
AdaptiveAvgPool2d = module_of(
    "AdaptiveAvgPool2d", F.adaptive_avg_pool2d, "AdaptiveAvgPool2d(2)(mt.zeros(1, 3, 6, 6)).shape", "(1, 3, 2, 2)"
)
CosineSimilarity = module_of(
    "CosineSimilarity",
    F.cosine_similarity,
    "CosineSimilarity(dim=0)(mt.tensor([1.0, 0.0]), mt.tensor([1.0, 1.0]))",
    "tensor(0.7071)",
    tensors=2,
)

MSELoss = module_of(
    "MSELoss", F.mse_loss, "MSELoss()(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 4.0]))", "tensor(2.)", tensors=2
)
L1Loss = module_of(
    "L1Loss", F.l1_loss, "L1Loss()(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 4.0]))", "tensor(1.)", tensors=2
)
SmoothL1Loss = module_of(
    "SmoothL1Loss",
    F.smooth_l1_loss,
    "SmoothL1Loss()(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 4.0]))",
    "tensor(0.7500)",
    tensors=2,
)
HuberLoss = module_of(
    "HuberLoss", F.huber_loss, "HuberLoss()(mt.tensor([1.0, 2.0]), mt.tensor([1.0, 4.0]))", "tensor(0.7500)", tensors=2
)
BCELoss = module_of(
    "BCELoss",
    F.binary_cross_entropy,
    "BCELoss()(mt.tensor([0.5, 0.5]), mt.tensor([1.0, 0.0]))",
    "tensor(0.6931)",
    tensors=2,
)
BCEWithLogitsLoss = module_of(
    "BCEWithLogitsLoss",
    F.binary_cross_entropy_with_logits,
    "BCEWithLogitsLoss()(mt.tensor([0.5, 0.5]), mt.tensor([1.0, 0.0]))",
    "tensor(0.7241)",
    tensors=2,
)
KLDivLoss = module_of(
    "KLDivLoss",
    F.kl_div,
    'KLDivLoss(reduction="sum")(mt.tensor([0.5, 0.5]).log(), mt.tensor([0.5, 0.5]))',
    "tensor(0.)",
    tensors=2,
)
NLLLoss = module_of(
    "NLLLoss", F.nll_loss, "NLLLoss()(mt.tensor([[-0.5, -1.0]]), mt.tensor([1]))", "tensor(1.)", tensors=2
)
CrossEntropyLoss = module_of(
    "CrossEntropyLoss",
    F.cross_entropy,
    "CrossEntropyLoss()(mt.tensor([[0.0, 0.0]]), mt.tensor([1]))",
    "tensor(0.6931)",
    tensors=2,
)
