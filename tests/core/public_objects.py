"""A row for each public class: how to make one, to use it, to look at what it does, and to change it.

`ROWS` has the classes of `minitorch` and its public modules (`public_classes` finds them); `test_copies.py` holds
each to the laws of copies and pickles.
"""

from __future__ import annotations

import inspect
import os
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from types import ModuleType
from typing import Any

import numpy as np

import minitorch as mt
from minitorch import nn
from minitorch import quantization as mq
from minitorch.functional.creation.generator import Generator
from minitorch.graph import Graph as BaseGraph

schedules = mt.optim.lr_scheduler

# Classes of these modules and of what their `__all__` names are public.
PACKAGES = ("amp", "autograd", "data", "debug", "dtypes", "errors", "export", "inspect", "nn", "optim", "passes",
            "quantization", "sharding")  # fmt: skip


def public_functions() -> dict[str, Any]:
    """The public functions of the package by place and name."""
    modules = (mt, nn.functional, nn.init, nn.utils, mt.optim.lr_scheduler, *(getattr(mt, name) for name in PACKAGES))
    return {
        f"{module.__name__}.{name}": value
        for module in modules
        for name in getattr(module, "__all__", None) or _own_names(module)
        if inspect.isfunction(value := getattr(module, name))
    }


def public_classes() -> dict[str, type]:
    """The public classes of the package by name, errors left out."""
    found: dict[str, type] = {"Generator": Generator}
    for module in (mt, *(getattr(mt, name) for name in PACKAGES), mt.optim.lr_scheduler):
        for name in getattr(module, "__all__", None) or _own_names(module):
            value = getattr(module, name)
            is_ours = inspect.isclass(value) and value.__module__.startswith("minitorch.")
            if is_ours and not issubclass(value, BaseException):
                found[value.__name__] = value
    return found


def _own_names(module: ModuleType) -> list[str]:
    return [
        name
        for name, value in vars(module).items()
        if not name.startswith("_") and getattr(value, "__module__", "") == module.__name__
    ]


def numbers(value: Any) -> Any:
    """Tensors and arrays in nested data as lists, for comparison."""
    if isinstance(value, mt.Tensor):
        return value.dtype.name, value.shape, repr(value.tolist()), value.requires_grad
    if isinstance(value, np.ndarray):
        return repr(value.tolist())
    if isinstance(value, dict):
        return {name: numbers(each) for name, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [numbers(each) for each in value]
    return value


@dataclass(frozen=True)
class Row:
    """One kind of object.

    Attributes:
        make: an object as users make it.
        look: all that it does and shows, as plain data; may change it, in the same way each time it is made.
        use: what a program does with it before it is copied.
        change: write into it; None for an object that never changes.
        refused: for what cannot be copied deeply, a part of the message.
    """

    make: Callable[[], Any]
    look: Callable[[Any], Any]
    use: Callable[[Any], Any] = lambda found: None
    change: Callable[[Any], Any] | None = None
    refused: str = ""


def _ones(*shape: int) -> mt.Tensor:
    return mt.arange(float(np.prod(shape))).reshape(*shape) / 7 - 1


def _module(make: Callable[[], Any], *args: Any, **kwargs: Any) -> Row:
    """A module that is called with these arguments."""

    def made() -> Any:
        mt.manual_seed(0)
        return make()

    def look(module: Any) -> Any:
        mode = module.training
        module.eval()
        try:
            called = numbers(module(*args, **kwargs)) if args else None
        finally:
            module.train(mode)
        shown = "" if isinstance(module, mt.Jitted) else repr(module)
        return shown, mode, numbers(dict(module.state_dict())), called

    def use(module: Any) -> None:
        result = module(*args, **kwargs) if args else None
        if isinstance(result, mt.Tensor) and result.requires_grad:
            result.sum().backward()
        module.train()

    def change(module: Any) -> None:
        module.train(not module.training)
        with mt.no_grad():
            for tensor in (*module.parameters(), *module.buffers()):
                tensor.fill_(1)

    return Row(made, look, use, change)


def scaled(epoch: int) -> float:
    """A factor for `LambdaLR`, which pickles by its name."""
    return 0.5**epoch


def _optimizer(make: Callable[[Any], Any], scheduled: Callable[[Any], Any] | None = None) -> Row:
    def made() -> Any:
        mt.manual_seed(0)
        optimizer = make([nn.Parameter(_ones(3)), nn.Parameter(_ones(2, 2))])
        return optimizer if scheduled is None else scheduled(optimizer)

    def of(found: Any) -> Any:
        return found if scheduled is None else found.optimizer

    def step(found: Any) -> None:
        for each in of(found).param_groups[0]["params"]:
            each.grad = mt.ones_like(each.detach()) * 0.5
        of(found).step(lambda: mt.ones(()))
        if scheduled is not None:
            found.step()

    def look(found: Any) -> Any:
        groups = [{name: numbers(group[name]) for name in group} for group in of(found).param_groups]
        own = [] if scheduled is None else [found.last_epoch, found.get_last_lr()]
        return groups, numbers(of(found).state_dict()["state"]), own

    return Row(made, look, step, step)


def double(x: mt.Tensor) -> mt.Tensor:
    """A function that pickles by its name."""
    return x * 2


class Doubling(mt.autograd.Function):
    """A function with a gradient."""

    @staticmethod
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        return x * 2

    @staticmethod
    def backward(ctx: Any, cotangent: mt.Tensor) -> mt.Tensor:
        return cotangent * 2


class Evens(mt.data.IterableDataset):
    """Three even numbers."""

    def __iter__(self) -> Any:
        return iter((0, 2, 4))


class Backwards(mt.data.Sampler):
    """Three numbers, the last one first."""

    def __iter__(self) -> Any:
        return iter((2, 1, 0))


class Halves(mt.data.Dataset):
    """A dataset of one's own."""

    def __len__(self) -> int:
        return 4

    def __getitem__(self, at: int) -> float:
        return at / 2


class Widest(mq.MinMaxObserver):
    """An observer of one's own."""


class SignDescent(mt.optim.Optimizer):
    """An optimiser of one's own."""

    def __init__(self, params: Any) -> None:
        super().__init__(params, {"lr": 0.5, "maximize": False})

    def slots(self, group: Any) -> tuple[str, ...]:
        return ()

    def update(self, group: Any, parameters: Any, gradients: Any) -> Any:
        return [p.copy_(p - group["lr"] * g.sign()) for p, g in zip(parameters, gradients, strict=True)]


class Halving(mt.optim.lr_scheduler.LRScheduler):
    """A scheduler of one's own."""

    def get_lr(self) -> list[float]:
        return [base * 0.5**self.last_epoch for base in self.base_lrs]


def _plateau() -> Any:
    return schedules.ReduceLROnPlateau(mt.optim.SGD([_ones(2)], lr=0.5), patience=0)


def _data() -> mt.data.TensorDataset:
    return mt.data.TensorDataset(_ones(6, 2), mt.arange(6))


def _calibrated(config: Any = None) -> nn.Module:
    mt.manual_seed(0)
    model = nn.Sequential(nn.Linear(4, 8), nn.ReLU(), nn.Linear(8, 3)).eval()
    prepared = mq.prepare(model) if config is None else mq.prepare(model, config)
    prepared(_ones(5, 4))
    return prepared


def _frozen() -> mt.Frozen[..., Any]:
    mt.manual_seed(0)
    return mt.freeze(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), _ones(2, 4))


def _checkpoint() -> Any:
    path = os.path.join(tempfile.mkdtemp(), "model.safetensors")
    mt.save({"w": _ones(2, 3)}, path)
    _opened.append(mt.export.Checkpoint(path))
    return _opened[-1]


_opened: list[Any] = []


def _read(checkpoint: Any) -> Any:
    found = list(checkpoint), numbers(checkpoint["w"])
    for each in (checkpoint, *_opened):
        each.close()
    return found


def _stages() -> Any:
    return mt.jit(double).stages(_ones(3))


def _observer(kind: type) -> Row:
    def observe(observer: Any) -> None:
        observer(_ones(3, 4) * 2)

    def look(observer: Any) -> Any:
        observe(observer)
        scale, zero = observer.calculate_qparams()
        return numbers([scale, zero])

    return Row(lambda: kind(), look, observe, lambda observer: observer(_ones(3, 4) * 100))


def _hooked() -> nn.Module:
    model = nn.Linear(4, 3)
    model.register_forward_hook(halved)
    return model


def halved(module: nn.Module, args: Any, result: mt.Tensor) -> mt.Tensor:
    """A hook that pickles by its name."""
    return result / 2


class Jitting(nn.Module):
    """A module with a jitted method."""

    def __init__(self) -> None:
        super().__init__()
        self.layer = nn.Linear(4, 3)

    @mt.jit
    def forward(self, x: mt.Tensor) -> mt.Tensor:
        return self.layer(x).relu()


def _jitted_attribute() -> nn.Module:
    model: Any = nn.Linear(4, 3)
    model.forward = mt.jit(model.forward)
    return model


jitted_double = mt.jit(double)


@mt.jit
def decorated(x: mt.Tensor) -> mt.Tensor:
    """A jitted function under its own name."""
    return x * 3


def scaled_by(x: mt.Tensor, factor: float) -> mt.Tensor:
    """A function of a number."""
    return x * factor


def _bound() -> Any:
    mt.manual_seed(0)
    return Jitting().forward


def _scheduled() -> Any:
    from minitorch.compiler.scheduling.rewrites import split, vectorise

    jitted = mt.jit(double)
    (kernel,) = jitted.ledger(_ones(64)).kernels
    return jitted.with_schedule(kernel, [split("i0", 8, "i", "lane"), vectorise("lane")])


def _called(make: Callable[[], Any], *args: Any) -> Row:
    return Row(make, lambda f: numbers(f(*args)), lambda f: f(*args))


def _scaler() -> Row:
    def look(scaler: Any) -> Any:
        return numbers(scaler.state_dict()), numbers(scaler.scale(_ones(2)))

    return Row(lambda: mt.amp.GradScaler(init_scale=8.0), look, lambda scaler: scaler.update(4.0),
               lambda scaler: scaler.update(2.0))  # fmt: skip


def _graph() -> BaseGraph:
    return mt.jit(lambda x: chain(x)).graph(_ones(3))


def chain(x: mt.Tensor) -> mt.Tensor:
    """A deep program: nothing recurses over its graph."""
    for _ in range(3000):
        x = x + 1
    return x


def _tensors() -> dict[str, Row]:
    def look(x: mt.Tensor) -> Any:
        grad = None if x.grad is None else numbers(x.grad)
        return type(x).__name__, numbers(x), grad, x.is_contiguous()

    def change(x: mt.Tensor) -> None:
        with mt.no_grad():
            x.zero_()
        if x.grad is not None:
            x.grad.zero_()

    def row(make: Callable[[], Any], use: Callable[[Any], Any] = lambda x: None) -> Row:
        return Row(make, look, use, change)

    def train(x: mt.Tensor) -> None:
        (x * x).sum().backward()

    made = {f"Tensor {dtype.name}": row(partial(mt.tensor, [[1, 0], [1, 1]], dtype=dtype))
            for dtype in mt.dtypes.ALL}  # fmt: skip
    made |= {
        "Tensor": row(lambda: _ones(2, 3)),
        "Tensor leaf": row(lambda: _ones(2, 3).requires_grad_(), train),
        "Tensor 0-d": row(lambda: mt.tensor(1.5, requires_grad=True), train),
        "Tensor empty": row(lambda: mt.zeros(0, 3)),
        "Tensor view": row(lambda: _ones(4, 3)[1:3]),
        "Tensor view of view": row(lambda: _ones(4, 3)[1:3].T[1:]),
        "Tensor strided": row(lambda: _ones(4, 6)[::2, ::3]),
        "Tensor transposed": row(lambda: _ones(4, 3).T),
        "Tensor of an array": row(lambda: mt.from_numpy(np.arange(6.0).reshape(2, 3).T)),
        "Tensor bits": row(lambda: _ones(2, 3).view(mt.int32)),
        "Tensor lazy": row(_deferred),
        "Parameter": row(lambda: nn.Parameter(_ones(2, 3))),  # without its gradient: see `test_copies.py`
        "Parameter view": row(lambda: nn.Parameter(_ones(4, 3)[1:3], requires_grad=False)),
    }
    return made


def _deferred() -> mt.Tensor:
    with mt.lazy():
        return _ones(2, 3) * 2


X = (2, 4)
_IMAGE = (1, 4, 6, 6)
_ROWS = (2, 4, 6)

# What has no parameters and takes one tensor of any shape.
_POINTWISE = ("ELU", "GELU", "SELU", "Hardsigmoid", "Hardswish", "Hardtanh", "Identity", "LeakyReLU", "LogSigmoid",
              "Mish", "ReLU", "ReLU6", "SiLU", "Sigmoid", "Softplus", "Softsign", "Tanh", "Dropout",
              "Flatten", "GLU", "PReLU", "CELU", "Hardshrink", "RReLU", "Softshrink", "Tanhshrink")  # fmt: skip
_ALONG = ("LogSoftmax", "Softmax", "Softmin")
_PAIRS = (
    "BCELoss",
    "BCEWithLogitsLoss",
    "CosineSimilarity",
    "HuberLoss",
    "KLDivLoss",
    "L1Loss",
    "MSELoss",
    "SmoothL1Loss",
    "HingeEmbeddingLoss",
    "MultiLabelSoftMarginLoss",
    "PairwiseDistance",
    "PoissonNLLLoss",
    "SoftMarginLoss",
)
_TRIPLES = ("GaussianNLLLoss", "MarginRankingLoss", "TripletMarginLoss", "TripletMarginWithDistanceLoss")  # fmt: skip


def _modules() -> dict[str, Row]:
    half = mt.full(X, 0.5)
    rows = {name: _module(getattr(nn, name), _ones(*X)) for name in _POINTWISE}
    rows |= {name: _module(partial(getattr(nn, name), dim=-1), _ones(*X)) for name in _ALONG}
    rows |= {name: _module(getattr(nn, name), half, half) for name in _PAIRS}
    rows |= {name: _module(getattr(nn, name), half, half, half) for name in _TRIPLES}
    for name, args, shape in (
        ("AdaptiveAvgPool1d", (2,), _ROWS), ("AdaptiveAvgPool2d", (2,), _IMAGE), ("AvgPool1d", (2,), _ROWS),
        ("AvgPool2d", (2,), _IMAGE), ("MaxPool1d", (2,), _ROWS), ("MaxPool2d", (2,), _IMAGE),
        ("Conv1d", (4, 2, 3), _ROWS), ("Conv2d", (4, 2, 3), _IMAGE), ("Linear", (4, 3), X),
        ("ConvTranspose1d", (4, 2, 3), _ROWS), ("ConvTranspose2d", (4, 2, 3), _IMAGE),
        ("BatchNorm1d", (4,), X), ("BatchNorm2d", (4,), _IMAGE),
        ("GroupNorm", (2, 4), _IMAGE), ("LayerNorm", (4,), X), ("RMSNorm", (4,), X), ("GRU", (4, 3), (2, 1, 4)),
        ("LSTM", (4, 3), (2, 1, 4)), ("RNN", (4, 3), (2, 1, 4)), ("GRUCell", (4, 3), X), ("LSTMCell", (4, 3), X),
        ("Dropout1d", (), _ROWS), ("Dropout2d", (), _IMAGE), ("InstanceNorm1d", (4,), _ROWS),
        ("InstanceNorm2d", (4,), _IMAGE), ("LocalResponseNorm", (2,), _IMAGE), ("PixelShuffle", (2,), _IMAGE),
        ("PixelUnshuffle", (2,), _IMAGE), ("Upsample", (7,), _IMAGE),
        ("ConstantPad1d", (1, 2.0), _ROWS), ("ConstantPad2d", (1, 2.0), _IMAGE),
        *((f"{mode}Pad{dims}d", (1,), shape) for mode in ("Circular", "Reflection", "Replication", "Zero")
          for dims, shape in ((1, _ROWS), (2, _IMAGE))),
        ("RNNCell", (4, 3), X), ("Unflatten", (1, (2, 2)), X), ("LazyLinear", (3,), X),
        *((f"LazyConv{kind}{dims}d", (2, 3), shape) for kind in ("", "Transpose")
          for dims, shape in ((1, _ROWS), (2, _IMAGE))),
        ("AdaptiveMaxPool1d", (2,), _ROWS), ("AdaptiveMaxPool2d", (2,), _IMAGE), ("Unfold", (2,), _IMAGE),
        ("Fold", (3, 2), (1, 8, 4)), ("Threshold", (0.5, 1.0), X), ("Softmax2d", (), _IMAGE),
        ("LazyBatchNorm1d", (), X), ("LazyBatchNorm2d", (), _IMAGE),
    ):  # fmt: skip
        rows[name] = _module(partial(getattr(nn, name), *args), _ones(*shape))
    classes = mt.tensor([0, 3])
    rows |= {
        "MultiheadAttention": _module(lambda: nn.MultiheadAttention(4, 2), *[_ones(2, 1, 4)] * 3),
        "Transformer": _module(lambda: nn.Transformer(4, 2, 1, 1, 8, 0.0), _ones(2, 1, 4), _ones(2, 1, 4)),
        "TransformerEncoderLayer": _module(lambda: nn.TransformerEncoderLayer(4, 2, 8, 0.0), _ones(2, 1, 4)),
        "TransformerEncoder": _module(
            lambda: nn.TransformerEncoder(nn.TransformerEncoderLayer(4, 2, 8, 0.0), 2), _ones(2, 1, 4)
        ),
        "TransformerDecoderLayer": _module(
            lambda: nn.TransformerDecoderLayer(4, 2, 8, 0.0), _ones(2, 1, 4), _ones(2, 1, 4)
        ),
        "TransformerDecoder": _module(
            lambda: nn.TransformerDecoder(nn.TransformerDecoderLayer(4, 2, 8, 0.0), 2), _ones(2, 1, 4), _ones(2, 1, 4)
        ),
        "CrossEntropyLoss": _module(lambda: nn.CrossEntropyLoss(weight=mt.ones(4)), _ones(*X), classes),
        "CTCLoss": _module(nn.CTCLoss, _ones(5, 2, 3), mt.tensor([[1], [2]]), mt.tensor([5, 4]), mt.tensor([1, 1])),
        "MultiMarginLoss": _module(nn.MultiMarginLoss, _ones(*X), classes),
        "MultiLabelMarginLoss": _module(nn.MultiLabelMarginLoss, _ones(*X), mt.zeros(X, dtype=mt.int64)),
        "CosineEmbeddingLoss": _module(nn.CosineEmbeddingLoss, half, half, mt.ones(2)),
        "NLLLoss": _module(nn.NLLLoss, _ones(*X), classes),
        "Embedding": _module(lambda: nn.Embedding(5, 3), classes),
        "EmbeddingBag": _module(lambda: nn.EmbeddingBag(5, 3), classes, classes[:1]),
        "Bilinear": _module(lambda: nn.Bilinear(4, 4, 3), half, half),
        "Module": _module(nn.Module),
        "Module hooked": _module(_hooked, _ones(*X)),
        "Module jitted": _module(Jitting, _ones(*X)),
        "Module jitted attribute": _module(_jitted_attribute, _ones(*X)),
        "ModuleDict": _module(lambda: nn.ModuleDict({"a": nn.Linear(4, 3)})),
        "ModuleList": _module(lambda: nn.ModuleList([nn.Linear(4, 3)])),
        "ParameterList": _module(lambda: nn.ParameterList([nn.Parameter(_ones(2))])),
        "Sequential": _module(lambda: nn.Sequential(nn.Linear(4, 3), nn.ReLU()), _ones(*X)),
        "JittedModule": _module(lambda: mt.jit(nn.Linear(4, 3)), _ones(*X)),
    }
    linear = _ones(5, 4)
    rows |= {
        "Prepared": _module(_calibrated, linear),
        "PreparedWithNorm": _module(
            lambda: mq.prepare_qat(nn.Sequential(nn.Conv2d(4, 4, 3), nn.BatchNorm2d(4))), _ones(*_IMAGE)
        ),
        "Quantized": _module(lambda: mq.convert(_calibrated()), linear),
        "DynamicQuantized": _module(lambda: mq.quantize_dynamic(nn.Sequential(nn.Linear(4, 3)).eval()), linear),
        "DynamicQuantizedCell": _module(
            lambda: mq.quantize_dynamic(nn.Sequential(nn.LSTMCell(4, 3)).eval()), _ones(*X)
        ),
        "DynamicQuantizedRNN": _module(
            lambda: mq.quantize_dynamic(nn.Sequential(nn.LSTM(4, 3)).eval()), _ones(2, 1, 4)
        ),
        "WeightOnly": _module(lambda: mq.quantize_weights_(nn.Sequential(nn.Linear(4, 3)).eval(), bits=4), linear),
        "FakeQuantize": _module(mq.FakeQuantize, linear),
        "OnnxModule": _module(_onnx, linear),
        "OnnxModule layers": _module(lambda: _onnx().with_layers(), linear),
    }
    return rows


def _onnx() -> Any:
    path = os.path.join(tempfile.mkdtemp(), "model.onnx")
    mt.export.onnx(nn.Sequential(nn.Linear(4, 3), nn.ReLU()).eval(), _ones(5, 4), path=path)
    return mt.export.load_onnx(path)


def _shown(make: Callable[[], Any], look: Callable[[Any], Any] = str) -> Row:
    return Row(make, look)


def _generator() -> Row:
    def draw(generator: Any) -> Any:
        return numbers(mt.rand(3, generator=generator)), generator.initial_seed(), generator.draws()

    return Row(lambda: Generator(3), draw, draw, draw)


def _loaded() -> Any:
    with tempfile.TemporaryDirectory() as folder:
        _frozen().save(folder)
        return mt.load_frozen(folder)


def _ledger() -> Any:
    return mt.jit(nn.Sequential(nn.Linear(4, 3), nn.ReLU())).ledger(_ones(2, 4))


def _within(context: Any) -> Any:
    with context:
        return mt.is_grad_enabled(), mt.is_autocast_enabled("cpu")


def _same(value: Any) -> Any:
    return value


def _graph_small() -> BaseGraph:
    return mt.Graph.parse("graph(x: f32[2]): %0 = neg(x) %1 = neg(x) %2 = add(%0, %1) return %2")


def _refused(make: Callable[[], Any], message: str) -> Row:
    return Row(make, str, refused=message)


def _defined() -> tuple[Any, ...]:
    w = nn.Parameter(_ones(3))
    with mt.Graph() as graph:
        x = mt.placeholder((3,), name="x")
        train = mt.optim.SGD([w], lr=0.5).minimize((w * x).sum())
        update = w.detach().mul_(2)
    return graph, x, train, update


def _explained() -> Any:
    jitted = mt.jit(double)
    jitted(_ones(3))
    return jitted.explain()


def _context() -> Any:
    context = mt.autograd.Context((True, False))
    context.save_for_backward(_ones(2))
    return context


def _report() -> Any:
    mt.manual_seed(0)
    return mq.report(nn.Sequential(nn.Linear(4, 3)).eval(), [_ones(5, 4)])


def _profile() -> Any:
    with mt.profile() as found:
        double(_ones(3))
    return found


ROWS: dict[str, Row] = {
    **_tensors(),
    **_modules(),
    "DType": _shown(lambda: mt.float32),
    **{f"DType {dtype.name}": _shown(partial(mt.dtypes.as_dtype, dtype)) for dtype in mt.dtypes.ALL},
    "Generator": _generator(),
    "Jitted": _called(lambda: mt.jit(double), _ones(3)),
    "Jitted global": _called(lambda: jitted_double, _ones(3)),
    "Jitted decorated": _called(lambda: decorated, _ones(3)),
    "Jitted method": _module(lambda: mt.jit(Jitting()), _ones(*X)),
    "Jitted bound": _called(_bound, _ones(*X)),
    "Jitted partial": _called(lambda: mt.jit(partial(scaled_by, factor=3.0)), _ones(3)),
    "Jitted options": _called(
        lambda: mt.jit(scaled_by, static_argnames="factor", donate=(), backend="interpret"), _ones(3), 2.0
    ),
    "Jitted schedule": _called(_scheduled, _ones(64)),
    "Jitted trained": _module(lambda: mt.jit(nn.Sequential(nn.Linear(4, 3), nn.BatchNorm1d(3))), _ones(*X)),
    "Frozen": _called(_frozen, _ones(2, 4)),
    "Frozen loaded": _called(_loaded, _ones(2, 4)),
    "Graph": _shown(lambda: mt.Graph.parse("graph(x: f32[2]): %0 = neg(x) return %0")),
    "Graph traced": _shown(_graph, lambda graph: (len(graph.nodes), str(graph)[-300:])),
    "SGD": _optimizer(lambda p: mt.optim.SGD(p, lr=0.5, momentum=0.9)),
    "Adam": _optimizer(lambda p: mt.optim.Adam(p, lr=0.5)),
    "AdamW": _optimizer(lambda p: mt.optim.AdamW(p, lr=0.5)),
    **{
        name: _optimizer(lambda p, name=name: getattr(mt.optim, name)(p, lr=0.5))  # type: ignore[misc]
        for name in ("Adadelta", "Adagrad", "Adamax", "NAdam", "RMSprop")
    },
    "LBFGS": _optimizer(mt.optim.LBFGS),
    "StepLR": _optimizer(lambda p: mt.optim.SGD(p, lr=0.5), lambda o: mt.optim.lr_scheduler.StepLR(o, 1)),
    "CosineAnnealingLR": _optimizer(
        lambda p: mt.optim.SGD(p, lr=0.5), lambda o: mt.optim.lr_scheduler.CosineAnnealingLR(o, 5)
    ),
    "LambdaLR": _optimizer(lambda p: mt.optim.Adam(p, lr=0.5), lambda o: mt.optim.lr_scheduler.LambdaLR(o, scaled)),
    **{
        name: _optimizer(lambda p: mt.optim.SGD(p, lr=0.5, momentum=0.5), make)
        for name, make in {
            "ChainedScheduler": lambda o: schedules.ChainedScheduler([schedules.StepLR(o, 1), schedules.ConstantLR(o)]),
            "ConstantLR": lambda o: schedules.ConstantLR(o, total_iters=1),
            "CosineAnnealingWarmRestarts": lambda o: schedules.CosineAnnealingWarmRestarts(o, 2, 2),
            "ExponentialLR": lambda o: schedules.ExponentialLR(o, 0.5),
            "LinearLR": lambda o: schedules.LinearLR(o, total_iters=2),
            "MultiStepLR": lambda o: schedules.MultiStepLR(o, [1]),
            "MultiplicativeLR": lambda o: schedules.MultiplicativeLR(o, scaled),
            "OneCycleLR": lambda o: schedules.OneCycleLR(o, 0.5, 9),
            "PolynomialLR": lambda o: schedules.PolynomialLR(o, 3),
            "SequentialLR": lambda o: schedules.SequentialLR(
                o, [schedules.ConstantLR(o), schedules.ExponentialLR(o, 0.5)], [1]
            ),
        }.items()
    },
    "ReduceLROnPlateau": _shown(_plateau, lambda plateau: [plateau.step(1.0), plateau.state_dict()]),
    "ParamGroup": Row(
        lambda: mt.optim.SGD([_ones(2)], lr=0.5).param_groups[0],
        lambda group: {name: numbers(group[name]) for name in group},
        lambda group: group.update(lr=0.25),
        lambda group: group.update(lr=0.125),
    ),
    "GradScaler": _scaler(),
    "TensorDataset": _shown(_data, lambda data: numbers([data[at] for at in range(len(data))])),
    "Subset": _shown(lambda: mt.data.Subset(_data(), [1, 2]), lambda data: numbers([data[at] for at in range(2)])),
    "BatchSampler": _shown(lambda: mt.data.BatchSampler([3, 1, 2], 2, False), list),
    "ConcatDataset": _shown(lambda: mt.data.ConcatDataset([[1, 2], [3]]), list),
    "RandomSampler": _shown(lambda: mt.data.RandomSampler(range(5), generator=Generator(1)), list),
    "SequentialSampler": _shown(lambda: mt.data.SequentialSampler(range(5)), list),
    "SubsetRandomSampler": _shown(lambda: mt.data.SubsetRandomSampler([4, 2, 7], Generator(1)), list),
    "WeightedRandomSampler": _shown(lambda: mt.data.WeightedRandomSampler([1.0, 3.0], 5, True, Generator(1)), list),
    "IterableDataset": _shown(Evens, list),
    "Sampler": _shown(Backwards, list),
    "device": _shown(lambda: mt.device("cuda", 1), lambda each: (each.type, each.index)),
    "Dataset": _shown(Halves, lambda data: [data[at] for at in range(4)]),
    "DataLoader": _shown(
        lambda: mt.data.DataLoader(_data(), batch_size=2, shuffle=True, generator=Generator(1)),
        lambda loader: [numbers(each) for each in loader],
    ),
    "autocast": _shown(lambda: mt.autocast("cpu", mt.bfloat16), _within),
    "set_grad_enabled": _shown(lambda: mt.set_grad_enabled(True), _within),
    "no_grad": _shown(mt.no_grad, _within),
    "Function": _shown(lambda: Doubling, lambda kind: numbers(kind.apply(_ones(2)))),
    "Checkpoint": Row(_checkpoint, _read, lambda found: found["w"]),
    "QConfig": _shown(lambda: mq.get_default_qat_qconfig(), lambda config: repr(config.activation())),
    "QParams": _shown(
        lambda: mq.choose_qparams(mt.tensor(-1.0), mt.tensor(1.0)),
        lambda found: numbers([found.scale, found.zero_point]),
    ),
    "MinMaxObserver": _observer(mq.MinMaxObserver),
    "MovingAverageMinMaxObserver": _observer(mq.MovingAverageMinMaxObserver),
    "PerChannelMinMaxObserver": _observer(mq.PerChannelMinMaxObserver),
    "MovingAveragePerChannelMinMaxObserver": _observer(mq.MovingAveragePerChannelMinMaxObserver),
    "HistogramObserver": _observer(mq.HistogramObserver),
    "PercentileObserver": _observer(mq.PercentileObserver),
    "Report": _shown(_report),
    "LayerReport": _shown(lambda: _report().rows[0], repr),
    "Mesh": _shown(lambda: mt.sharding.Mesh((4, 2), ("data", "model"))),
    "Holders": _shown(lambda: mt.sharding.Holders((4,), ((((0, 4),), (0, 1)),))),
    "Pass": _shown(lambda: mt.passes.DEFAULT[0], lambda found: str(found(_graph_small()))),
    **{
        f"Pass {each.name}": _shown(partial(_same, each), repr)
        for each in (*mt.passes.DEFAULT, *mt.passes.FREEZING, *mt.passes.LOWERING)
    },
    "Run": _shown(
        lambda: mt.passes.run_pipeline(_graph_small()),
        lambda run: (str(run.graph), [str(stage.after) for stage in run]),
    ),
    "Stage": _shown(
        lambda: mt.passes.run_pipeline(_graph_small()).stages[1], lambda stage: (str(stage.applied), str(stage.after))
    ),
    "Stages": _refused(_stages, "keep the text"),
    "Session": _refused(lambda: mt.Session(_defined()[0]), "freeze"),
    "Graph defined": _refused(lambda: _defined()[0], "freeze"),
    "Operation": _refused(lambda: _defined()[2], "freeze"),
    "placeholder": _refused(lambda: _defined()[1], "no value that could be copied"),
    "Update": _refused(lambda: _defined()[3], "no value that could be copied"),
    "RejectedLaw": _shown(lambda: next(iter(mt.passes.REJECTED_LAWS))),
    "Ledger": _shown(_ledger),
    "Kernel": _shown(lambda: _ledger().kernels[0], lambda kernel: (kernel.source, repr(kernel.schedule))),
    "Schedule": _shown(lambda: _ledger().kernels[0].schedule, repr),
    "Cost": _shown(lambda: mt.jit(double).cost(_ones(3))),
    "Explanation": _refused(_explained, "keep the text"),
    "Primitive": _shown(lambda: mt.primitives.add, repr),
    "Machine": _shown(mt.machine),
    "Profile": _refused(_profile, "chrome_trace"),
    "Context": _shown(_context, lambda context: (context.needs_input_grad, numbers(context.saved_tensors))),
    "Optimizer": _optimizer(SignDescent),
    "LRScheduler": _optimizer(lambda p: mt.optim.SGD(p, lr=0.5), Halving),
    "Observer": _observer(Widest),
    "Plot": _shown(lambda: mt.inspect.plot_traffic(jitted_double, _ones(3))),
    "Page": _shown(lambda: mt.errors.explain("MT201")),
}
