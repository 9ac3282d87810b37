"""Modules without parameters: activations, pooling, dropout and losses, made from the functions they call.

A row of the table names the function and the number of its tensors; its other arguments are the module's options. So
``nn.LeakyReLU(0.2)(x)`` is ``F.leaky_relu(x, 0.2)``.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable, Sequence
from typing import Any, ClassVar, TypeVar

from ..errors import ShapeError
from ..functional.arguments import ALLOWED, renamed
from ..functional.movement.shaping import flatten, unflatten
from ..functional.options import Ints, as_int, ints, probability, require_tensor
from ..tensor import Tensor
from . import functional
from .functional.activations import require_range
from .module import Module

T = TypeVar("T")


class _First:
    """Functions of `nn.functional` as they are at first: what a test puts in their place for a while is not kept."""

    def __getattr__(self, name: str) -> Any:
        return vars(functional)["__getattr__"](name)


F = _First()


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
        given = self.signature.bind(*args, **renamed(options, self.signature.parameters))
        given.apply_defaults()
        for name, value in given.arguments.items():
            if not isinstance(value, ALLOWED.get(str(self.signature.parameters[name].annotation), object)):
                require_tensor(type(self).__name__, name, value)
        self.check(type(self).__name__, **{name: each for name, each in given.arguments.items() if name != "inplace"})
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
        named = [(name, getattr(self, name)) for name in self.signature.parameters]
        return ", ".join(f"{name}={value!r}" for name, value in named if name != "inplace" or value)


_DOC = """Module of `{function}`; see there for the meaning of its options.

    {summary}

    Example:
        >>> import minitorch as mt
        >>> mt.nn.{name}({options}){inputs}
        {result}
    """


def module_of(
    name: str,
    function: Callable[..., Any],
    result: str,
    options: str = "",
    inputs: str = "(mt.tensor([-1.0, 2.0]))",
    tensors: int = 1,
    check: Callable[..., Any] = lambda name, **options: None,
    without: tuple[str, ...] = ("training", "dtype"),
    **defaults: Any,
) -> type[FunctionModule]:
    """Return a class of modules that call a function.

    Args:
        name: the name of the class.
        function: its first arguments are tensors, the others the options.
        result: the result of the example in its documentation: a module of these `options`, called with these `inputs`.
        options: the options in the example.
        inputs: the arguments in the example.
        tensors: the number of tensors.
        check: refuses invalid options when a module is made.
        without: parameters of the function that are no options.
        defaults: defaults that differ from the function's.

    Example:
        >>> from minitorch.nn import functional as F
        >>> module_of("LeakyReLU", F.leaky_relu, "tensor([-0.0100,  2.0000])")(0.2)
        LeakyReLU(negative_slope=0.2)
    """
    parameters = [*inspect.signature(function).parameters.values()]
    options_of = [
        each.replace(default=defaults.get(each.name, each.default))
        for each in parameters[tensors:]
        if each.name not in without
    ]
    summary = (inspect.getdoc(function) or "").splitlines()[0]
    words = {"summary": summary, "name": name, "options": options, "inputs": inputs, "result": result}
    return type(
        name,
        (FunctionModule,),
        {
            "__doc__": _DOC.format(function=function.__name__, **words),
            "__module__": __name__,
            "__signature__": _Signature(),
            "inputs": inspect.Signature(parameters[:tensors]),
            "function": staticmethod(function),
            "function_parameters": frozenset(each.name for each in parameters),
            "tensors": tensors,
            "signature": inspect.Signature(options_of),
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


Flatten = module_of("Flatten", flatten, "(2, 12)", "", "(mt.zeros(2, 3, 4)).shape", start_dim=1)
Unflatten = module_of("Unflatten", unflatten, "(2, 3, 4)", "1, (3, 4)", "(mt.zeros(2, 12)).shape")

ReLU = module_of("ReLU", F.relu, "tensor([0., 2.])")
ReLU6 = module_of("ReLU6", F.relu6, "tensor([0., 2.])")
Hardtanh = module_of("Hardtanh", F.hardtanh, "tensor([-1.,  1.])", check=require_range)
Hardsigmoid = module_of("Hardsigmoid", F.hardsigmoid, "tensor([0.3333, 0.8333])")
Hardswish = module_of("Hardswish", F.hardswish, "tensor([-0.3333,  1.6667])")
LeakyReLU = module_of("LeakyReLU", F.leaky_relu, "tensor([-0.5000,  2.0000])", "0.5")
ELU = module_of("ELU", F.elu, "tensor([-0.6321,  2.0000])")
CELU = module_of("CELU", F.celu, "tensor([-0.6321,  2.0000])")
SELU = module_of("SELU", F.selu, "tensor([-1.1113,  2.1014])")
GELU = module_of("GELU", F.gelu, "tensor([-0.1587,  1.9545])")
SiLU = module_of("SiLU", F.silu, "tensor([-0.2689,  1.7616])")
Mish = module_of("Mish", F.mish, "tensor([-0.3034,  1.9440])")
GLU = module_of("GLU", F.glu, "tensor([-0.8808])")
Sigmoid = module_of("Sigmoid", F.sigmoid, "tensor([0.2689, 0.8808])")
Tanh = module_of("Tanh", F.tanh, "tensor([-0.7616,  0.9640])")
Softplus = module_of("Softplus", F.softplus, "tensor([0.3133, 2.1269])")
Softsign = module_of("Softsign", F.softsign, "tensor([-0.5000,  0.6667])")
LogSigmoid = module_of("LogSigmoid", F.logsigmoid, "tensor([-1.3133, -0.1269])")
Tanhshrink = module_of("Tanhshrink", F.tanhshrink, "tensor([-0.2384,  1.0360])")
Hardshrink = module_of("Hardshrink", F.hardshrink, "tensor([-1.,  2.])")
Softshrink = module_of("Softshrink", F.softshrink, "tensor([-0.5000,  1.5000])")
Threshold = module_of("Threshold", F.threshold, "tensor([0., 2.])", "1.0, 0.0")
RReLU = module_of("RReLU", F.rrelu, "tensor([-0.5000,  2.0000])", "0.25, 0.75", ".eval()(mt.tensor([-1.0, 2.0]))")
Softmax = module_of("Softmax", F.softmax, "tensor([0.0474, 0.9526])", "dim=0")
Softmin = module_of("Softmin", F.softmin, "tensor([0.9526, 0.0474])", "dim=0")
LogSoftmax = module_of("LogSoftmax", F.log_softmax, "tensor([-3.0486, -0.0486])", "dim=0")


def _softmax2d(input: Tensor) -> Tensor:
    """Apply `softmax` to the channels of [batch, channels, height, width], or [channels, height, width]."""
    if input.ndim not in (3, 4):
        raise ShapeError("MT201", f"Softmax2d: {input.spec} is not [batch, channels, height, width]")
    return F.softmax(input, -3)  # type: ignore[no-any-return]


Softmax2d = module_of("Softmax2d", _softmax2d, "tensor(0.5000)", "", "(mt.zeros(1, 2, 3, 3)).max()")


def _dropout(name: str, function: Callable[..., Any], result: str, inputs: str) -> type[FunctionModule]:
    check = lambda name, p: probability(f"{name}: p", p)  # noqa: E731
    return module_of(name, function, result, "0.5", f".eval()({inputs}", check=check)


Dropout = _dropout("Dropout", F.dropout, "tensor([-1.,  2.])", "mt.tensor([-1.0, 2.0]))")
Dropout1d = _dropout("Dropout1d", F.dropout1d, "(2, 3, 4)", "mt.ones(2, 3, 4)).shape")
Dropout2d = _dropout("Dropout2d", F.dropout2d, "(2, 3, 4, 4)", "mt.ones(2, 3, 4, 4)).shape")


def _pool(name: str, function: Callable[..., Any], ndim: int, places: int = 3) -> type[FunctionModule]:
    inputs = f"(mt.zeros(1, 3{', 6' * ndim})).shape"
    return module_of(name, function, str((1, 3, *(places,) * ndim)), "2", inputs)


MaxPool1d = _pool("MaxPool1d", F.max_pool1d, 1)
MaxPool2d = _pool("MaxPool2d", F.max_pool2d, 2)
AvgPool1d = _pool("AvgPool1d", F.avg_pool1d, 1)
AvgPool2d = _pool("AvgPool2d", F.avg_pool2d, 2)
AdaptiveAvgPool1d = _pool("AdaptiveAvgPool1d", F.adaptive_avg_pool1d, 1, places=2)
AdaptiveAvgPool2d = _pool("AdaptiveAvgPool2d", F.adaptive_avg_pool2d, 2, places=2)


AdaptiveMaxPool1d = _pool("AdaptiveMaxPool1d", F.adaptive_max_pool1d, 1, places=2)
AdaptiveMaxPool2d = _pool("AdaptiveMaxPool2d", F.adaptive_max_pool2d, 2, places=2)
Unfold = module_of("Unfold", F.unfold, "(1, 12, 9)", "2, stride=2", "(mt.zeros(1, 3, 6, 6)).shape")
Fold = module_of("Fold", F.fold, "(1, 3, 6, 6)", "6, 2, stride=2", "(mt.zeros(1, 12, 9)).shape")


_IMAGE = "(mt.zeros(1, 4, 6, 6)).shape"
Upsample = module_of("Upsample", F.interpolate, "(1, 4, 12, 12)", "scale_factor=2", _IMAGE, without=("antialias",))
PixelShuffle = module_of("PixelShuffle", F.pixel_shuffle, "(1, 1, 12, 12)", "2", _IMAGE)
PixelUnshuffle = module_of("PixelUnshuffle", F.pixel_unshuffle, "(1, 16, 3, 3)", "2", _IMAGE)
LocalResponseNorm = module_of("LocalResponseNorm", F.local_response_norm, "(1, 4, 6, 6)", "2", _IMAGE)


def _pad(dims: int, mode: str) -> Callable[..., Tensor]:
    def amounts(padding: Ints) -> tuple[int, ...]:
        """Return a pair for each dimension."""
        given = ints((padding,)) if isinstance(padding, Sequence) else (as_int(padding),) * (2 * dims)
        if len(given) != 2 * dims:
            raise ValueError(f"padding is an int, or two for each of {dims} dimensions, not {padding!r}")
        return given

    def pad(input: Tensor, padding: Ints) -> Tensor:
        """Pad the last dimensions by one amount at all ends, or by a tuple of them, the last dimension first."""
        return F.pad(input, amounts(padding), mode)  # type: ignore[no-any-return]

    def constant(input: Tensor, padding: Ints, value: float) -> Tensor:
        """Pad the last dimensions with a value, by one amount at all ends, or by a tuple, the last dimension first."""
        return F.pad(input, amounts(padding), value=value)  # type: ignore[no-any-return]

    return constant if mode == "value" else pad


def _padding(name: str, dims: int, mode: str, options: str = "1") -> type[FunctionModule]:
    inputs = f"(mt.zeros(1, 3{', 4' * dims})).shape"
    return module_of(name, _pad(dims, mode), str((1, 3, *(6,) * dims)), options, inputs)


ReflectionPad1d = _padding("ReflectionPad1d", 1, "reflect")
ReflectionPad2d = _padding("ReflectionPad2d", 2, "reflect")
ReplicationPad1d = _padding("ReplicationPad1d", 1, "replicate")
ReplicationPad2d = _padding("ReplicationPad2d", 2, "replicate")
CircularPad1d = _padding("CircularPad1d", 1, "circular")
CircularPad2d = _padding("CircularPad2d", 2, "circular")
ZeroPad1d = _padding("ZeroPad1d", 1, "constant")
ZeroPad2d = _padding("ZeroPad2d", 2, "constant")
ConstantPad1d = _padding("ConstantPad1d", 1, "value", "1, 2.0")
ConstantPad2d = _padding("ConstantPad2d", 2, "value", "1, 2.0")


_TWO = "mt.tensor([1.0, 2.0]), mt.tensor([1.0, 4.0])"


def _loss(
    name: str, function: Callable[..., Any], result: str, inputs: str = _TWO, options: str = "", tensors: int = 2
) -> type[FunctionModule]:
    return module_of(name, function, f"tensor({result})", options, f"({inputs})", tensors=tensors)


CosineSimilarity = _loss("CosineSimilarity", F.cosine_similarity, "0.9762", options="dim=0")
MSELoss = _loss("MSELoss", F.mse_loss, "2.")
L1Loss = _loss("L1Loss", F.l1_loss, "1.")
SmoothL1Loss = _loss("SmoothL1Loss", F.smooth_l1_loss, "0.7500")
HuberLoss = _loss("HuberLoss", F.huber_loss, "0.7500")
_HALVES = "mt.tensor([0.5, 0.5]), mt.tensor([1.0, 0.0])"
BCELoss = _loss("BCELoss", F.binary_cross_entropy, "0.6931", _HALVES)
BCEWithLogitsLoss = _loss("BCEWithLogitsLoss", F.binary_cross_entropy_with_logits, "0.7241", _HALVES)
_EQUAL = "mt.tensor([0.5, 0.5]).log(), mt.tensor([0.5, 0.5])"
KLDivLoss = _loss("KLDivLoss", F.kl_div, "0.", _EQUAL, 'reduction="sum"')
NLLLoss = _loss("NLLLoss", F.nll_loss, "1.", "mt.tensor([[-0.5, -1.0]]), mt.tensor([1])")
CrossEntropyLoss = _loss("CrossEntropyLoss", F.cross_entropy, "0.6931", "mt.tensor([[0.0, 0.0]]), mt.tensor([1])")
_SIGNS = "mt.tensor([1.0, 2.0]), mt.tensor([1.0, -1.0])"
HingeEmbeddingLoss = _loss("HingeEmbeddingLoss", F.hinge_embedding_loss, "0.5000", _SIGNS)
SoftMarginLoss = _loss("SoftMarginLoss", F.soft_margin_loss, "1.2201", _SIGNS)
_LABELS = "mt.tensor([[0.0, 2.0]]), mt.tensor([[1.0, 0.0]])"
MultiLabelSoftMarginLoss = _loss("MultiLabelSoftMarginLoss", F.multilabel_soft_margin_loss, "1.4100", _LABELS)
_SCORES = "mt.tensor([[0.0, 2.0]]), mt.tensor("
MultiMarginLoss = _loss("MultiMarginLoss", F.multi_margin_loss, "1.5000", _SCORES + "[0])")
MultiLabelMarginLoss = _loss("MultiLabelMarginLoss", F.multilabel_margin_loss, "1.5000", _SCORES + "[[0, -1]])")
PoissonNLLLoss = _loss("PoissonNLLLoss", F.poisson_nll_loss, "0.5537")
PairwiseDistance = _loss("PairwiseDistance", F.pairwise_distance, "2.0000")
_THREE = "mt.ones(1, 2), mt.zeros(1, 2), mt.ones(1, 2)"
GaussianNLLLoss = _loss("GaussianNLLLoss", F.gaussian_nll_loss, "0.5000", _THREE, tensors=3)
TripletMarginLoss = _loss("TripletMarginLoss", F.triplet_margin_loss, "2.4142", _THREE, tensors=3)
TripletMarginWithDistanceLoss = _loss(
    "TripletMarginWithDistanceLoss", F.triplet_margin_with_distance_loss, "2.4142", _THREE, tensors=3
)
MarginRankingLoss = _loss("MarginRankingLoss", F.margin_ranking_loss, "0.", _THREE, tensors=3)
_VECTORS = "mt.ones(1, 2), mt.ones(1, 2), mt.ones(1)"
CosineEmbeddingLoss = _loss("CosineEmbeddingLoss", F.cosine_embedding_loss, "0.", _VECTORS, tensors=3)
_EVEN = "mt.zeros(3, 1, 2).log_softmax(-1), mt.tensor([[1]]), [3], [1]"
CTCLoss = _loss("CTCLoss", F.ctc_loss, "0.2877", _EVEN, tensors=4)
