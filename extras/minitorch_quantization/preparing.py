"""`prepare`, `calibrate` and `convert`: post-training static quantisation; `prepare_qat` and `quantize_dynamic`.

    float model ──prepare──► the same with observers ──calibrate──► they have seen data ──convert──► Q/DQ form
    float model ──prepare_qat──► the same with fake quantisers ──train──► trained for it ──convert──► Q/DQ form

Batch normalization is folded first; for training, it is one module with its layer (`normed`). Each layer of `LAYERS`
quantises its own input, so where an output goes need not be known: passes on the graph find out, and merge what is the
same. Sums and means between layers are quantised, too, where an example shows what flows into them (`finding`).
"""

from __future__ import annotations

import copy
import warnings
from collections.abc import Container, Iterable
from dataclasses import replace
from typing import Any

from minitorch.autograd import no_grad
from minitorch.errors import QuantizationError
from minitorch.nn.functions import Identity
from minitorch.nn.layers import Linear
from minitorch.nn.module import Module
from minitorch.nn.norms import BatchNorm1d, BatchNorm2d
from minitorch.nn.recurrent.cells import RNNCellBase
from minitorch.nn.recurrent.networks import RNNBase

from .arguments import batches_of, inputs_of, kinds_of, names_of, refuse_prepared, require_qconfig
from .finding import find_operations
from .fusing import NORMS, fuse, pairs_to_fuse
from .modules.normed import PreparedWithNorm
from .modules.operations import Operations, PreparedOperation, QuantizedOperation
from .modules.quantized import DynamicQuantized, Prepared, Quantized, observer_of, require_prepared
from .modules.recurrent import DEFAULT, RECURRENT, dynamic
from .qconfig import QConfig, default_qat_qconfig, default_qconfig
from .replacing import LAYERS, is_under, layers_of, replaced, with_layers
from .schemes import QParams


def prepare(
    model: Module, qconfig: QConfig = default_qconfig, example: Any = None, leave_in_float: str | Iterable[str] = ()
) -> Module:
    """A copy of a model, in evaluation, with batch normalization folded and an observer at each layer.

    Args:
        model: with `Linear`, `Conv1d` and `Conv2d` layers, anywhere.
        qconfig: the observers. A module of the model with an attribute `qconfig` has its own for all layers in it, and
            None leaves them in float, as with PyTorch's `propagate_qconfig_`.
        example: an input (or a tuple of them), by which `fuse` finds the normalizations to fold, and `find_operations`
            the sums and means between layers.
        leave_in_float: names of layers, of modules, or of operations (``layer1.quantised.add_0``) that are not
            quantised.

    Raises:
        UserWarning: for normalizations that are not folded, where there is no example.
        QuantizationError: for observers that do not fit, for unknown names, for a model that is prepared or quantised
            already (``MT702``), and for a weight that is not finite (``MT701``).

    Example:
        >>> import minitorch as mt
        >>> _ = mt.manual_seed(0)
        >>> net = mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.ReLU(), mt.nn.Linear(3, 1))
        >>> prepared = mt.quantization.prepare(net)
        >>> data = [mt.randn(8, 2) for _ in range(4)]
        >>> quantized = mt.quantization.convert(mt.quantization.calibrate(prepared, data))
        >>> bool((quantized(data[0]) - net(data[0])).abs().max() < 0.02)
        True
    """
    refuse_prepared(model)
    require_qconfig(qconfig)
    folded = fuse(model, example)
    if example is None:
        _warn_of_norms("prepare", folded, ())
    return _prepared(folded, {}, qconfig, example, leave_in_float)


def _warn_of_norms(function: str, model: Module, known: Container[str]) -> None:
    """Say which normalizations stay layers of their own, of a model whose flow of data is not known."""
    left = [name for name, each in model.named_modules() if isinstance(each, NORMS) and name not in known]
    if left:
        warnings.warn(
            f"{function}: {', '.join(left[:3])}{' and others' if len(left) > 3 else ''} of {type(model).__name__} stay "
            "in float, since without an example only neighbours in a Sequential are known to belong together: pass "
            f"{function}(model, example=x) to fold them into the layers before them",
            stacklevel=3,
        )


def _prepared(
    model: Module,
    norms: dict[str, BatchNorm1d | BatchNorm2d],
    qconfig: QConfig,
    example: Any,
    leave_in_float: str | Iterable[str],
) -> Module:
    """A copy of a model with observers; layers are trained together with their normalizations, given by name."""
    stay, groups = names_of(leave_in_float), {}
    configs = {name: _own_qconfig(model, name, qconfig) for name, _ in layers_of(model)}
    stay += [name for name, own in configs.items() if own is None]
    if example is not None:
        layers = [layer for name, layer in layers_of(model) if not is_under(name, stay)]
        found = find_operations(model, example if isinstance(example, tuple) else (example,), layers, stay)
        for place, sites in found.operations.items():
            of_model = [f"{name} of {place or 'the model'}" for name in sites]
            made = zip(sites, of_model, sites.values(), strict=True)
            observed = {name: PreparedOperation(label, numbers, qconfig) for name, label, numbers in made}
            where = f"{place or 'the model'} ({type(model.get_submodule(place)).__name__})"
            model.get_submodule(place).quantised = Operations(observed, found.totals[place], where)
        groups = found.inputs
        stay = [name for name in stay if name not in found.left]

    def prepared(name: str, layer: Any) -> Module:
        own, group = configs[name] or qconfig, groups.get(name)
        norm = norms.get(name)
        return Prepared(name, layer, own, group) if norm is None else PreparedWithNorm(name, layer, norm, own, group)

    return with_layers(model, prepared, but=stay)


def _own_qconfig(model: Module, name: str, default: QConfig) -> QConfig | None:
    """The configuration of a layer: that of the innermost module around it that has one."""
    found: QConfig | None = default
    parts = name.split(".") if name else []
    for depth in range(len(parts) + 1):
        module = model.get_submodule(".".join(parts[:depth]))
        found = vars(module).get("qconfig", found)
    if found is not None:
        require_qconfig(found)
    return found


def prepare_qat(
    model: Module, qconfig: QConfig = default_qat_qconfig, example: Any = None, leave_in_float: str | Iterable[str] = ()
) -> Module:
    """A copy of a model, in training, with fake quantisers at each layer.

    Its parameters are new ones: make the optimiser afterwards. A layer and the batch normalization behind it are one
    module (`PreparedWithNorm`), whose weight is fake quantised with the normalization's scale in it; ``convert`` folds
    them. For the last epochs, ``model.apply(disable_observer)`` fixes the scales, and ``model.apply(freeze_bn_stats)``
    the statistics. Observers look at all that passes, in evaluation, too.

    Args:
        model: with `Linear`, `Conv1d` and `Conv2d` layers, anywhere.
        qconfig: the fake quantisers.
        example: as of `prepare`.
        leave_in_float: as of `prepare`.

    Raises:
        QuantizationError: as of `prepare`.

    Example:
        >>> import minitorch as mt
        >>> net = mt.quantization.prepare_qat(mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.ReLU(), mt.nn.Linear(3, 1)))
        >>> optimizer = mt.optim.SGD(net.parameters(), lr=0.1)
        >>> net(mt.ones(4, 2)).sum().backward()
        >>> optimizer.step()
        >>> mt.quantization.convert(net)[0].weight.dtype
        minitorch.int8
    """
    refuse_prepared(model)
    require_qconfig(qconfig)
    model, stay = copy.deepcopy(model).eval(), names_of(leave_in_float)
    norms: dict[str, Any] = {}
    pairs = pairs_to_fuse(model, example)
    for name, of_norm in pairs:
        if not is_under(name, stay) and _own_qconfig(model, name, qconfig) is not None:
            norms[name] = model.get_submodule(of_norm)
            model = replaced(model, {of_norm: Identity()})
    if example is None:
        _warn_of_norms("prepare_qat", model, [of_norm for _, of_norm in pairs])
    return _prepared(model, norms, qconfig, example, stay).train()


def calibrate(prepared: Module, data: Iterable[Any]) -> Module:
    """Run a prepared model on data, in evaluation and without gradients; returns the model.

    Args:
        prepared: by `prepare`.
        data: batches; of a batch that is a tuple or list, such as an input and its label, the first elements are the
            inputs, as many as the model has to be given. A tensor by itself is one batch.

    Raises:
        QuantizationError: naming the layer whose input or weight has a NaN or an infinity (``MT701``), and for
            data that is not batches of inputs (``MT702``).
    """
    require_prepared("calibrate", prepared)
    prepared.eval()
    with no_grad():
        for batch in batches_of(data):
            prepared(*inputs_of(prepared, batch))
    return prepared


def convert(prepared: Module) -> Module:
    """A copy of a prepared model in Q/DQ form, in evaluation: weights are int8, scales are fixed.

    Compiled, it multiplies integers, whose sums are exact; in eager mode it multiplies the floats that they stand for.
    So a number half-way between two steps of the next layer's scale may be rounded to the one or to the other.

    Args:
        prepared: by `prepare` and then calibrated, or by `prepare_qat` and then trained.

    Raises:
        QuantizationError: naming a layer whose observer saw nothing (``MT701``); if no layer is prepared (``MT702``).
    """
    shared: dict[int, QParams] = {}  # of values that have several readers

    def given(observer: Any, group: int | None) -> QParams:
        own: QParams = observer.qparams()
        own = replace(own, zero_point=own.zero_point.to(own.dtype))
        known = shared.setdefault(group, own) if group is not None and group >= 0 else own
        return known if _are_equal(known, own) else own

    def made(name: str, layer: Any) -> Module:
        if isinstance(layer, PreparedOperation):
            pairs = zip(layer.observers(), layer.groups, strict=True)
            return QuantizedOperation([given(observer, group) for observer, group in pairs])
        of_weight = observer_of(layer.weight_observer)
        if layer.weight_observer is of_weight:  # no training: of the weight as it is, not as it was
            of_weight.reset_min_max_vals()
            of_weight(layer.layer.weight)
        return Quantized(layer, given(layer.activation, layer.group))

    if not any(isinstance(module, Prepared) for module in prepared.modules()):
        raise QuantizationError(
            "MT702",
            f"{type(prepared).__name__} has no prepared layer to convert",
            fix="call prepare(model) and calibrate(prepared, data) first; what is converted stays as it is",
        )
    return with_layers(copy.deepcopy(prepared), made, [Prepared, PreparedWithNorm, PreparedOperation]).eval()


def _are_equal(one: QParams, other: QParams) -> bool:
    """Whether two inputs are quantised alike."""
    same = (one.dtype, one.quant_min, one.quant_max) == (other.dtype, other.quant_min, other.quant_max)
    return same and one.scale.item() == other.scale.item() and one.zero_point.item() == other.zero_point.item()


def quantize_dynamic(model: Module, kinds: type[Module] | Iterable[type[Module]] = (Linear, *DEFAULT)) -> Module:
    """A copy of a model, in evaluation, whose layers have weights in int8 and quantise each input by its range.

    There is no calibration; the range costs a pass over the input. It pays where reading the weights takes the time.

    Args:
        model: any module.
        kinds: the classes of layers, of `Linear`, `Conv1d`, `Conv2d`, `LSTM`, `GRU`, `RNN` and their cells; subclasses
            are not meant. By default PyTorch's: linear and recurrent layers without `RNN`. Each layer takes the range
            of its input in every call, which for convolutions takes longer than 8 bits save.

    Raises:
        QuantizationError: for other kinds, and if there is no such layer (``MT702``).

    Example:
        >>> import minitorch as mt
        >>> net = mt.quantization.quantize_dynamic(mt.nn.Sequential(mt.nn.Linear(2, 3), mt.nn.ReLU()))
        >>> net[0].weight.dtype, net(mt.ones(4, 2)).shape
        (minitorch.int8, (4, 3))
    """

    def made(name: str, layer: Any) -> Module:
        if isinstance(layer, (RNNBase, RNNCellBase)):
            return dynamic(name, layer)
        return DynamicQuantized(name, layer, Prepared(name, layer, default_qconfig).weight_observer.qparams())

    refuse_prepared(model)
    return with_layers(model, made, kinds_of(kinds, (*LAYERS, *RECURRENT))).eval()
