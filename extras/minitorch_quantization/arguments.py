"""What users hand to this package, looked at before anything is done with it: models, data, kinds of layers."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Iterator
from typing import Any

import numpy as np

from minitorch.errors import QuantizationError
from minitorch.functional.creation.data import tensor
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from .modules.quantized import Prepared
from .qconfig import QConfig
from .replacing import LAYERS

_POSITIONAL = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)


def names_of(names: str | Iterable[str]) -> list[str]:
    """Names of modules; a string is one name, not many letters."""
    return [names] if isinstance(names, str) else list(names)


def kinds_of(kinds: Any, known: tuple[type[Module], ...] = LAYERS) -> tuple[type[Module], ...]:
    """Classes of layers; one class need not stand in a tuple.

    Raises:
        QuantizationError: for anything but the known classes (``MT702``).
    """
    found = (kinds,) if isinstance(kinds, (type, str)) else tuple(kinds)
    for kind in found:
        if kind not in known:
            raise QuantizationError(
                "MT702",
                f"{getattr(kind, '__name__', repr(kind))} is no class of layers that can be quantised",
                why=f"these are: {', '.join(each.__name__ for each in known)}",
                fix="to leave single layers in float, name them in leave_in_float of prepare",
            )
    return found


def require_qconfig(qconfig: Any) -> None:
    """Refuse what is no configuration (``MT702``), such as an example in its place."""
    if not isinstance(qconfig, QConfig):
        raise QuantizationError(
            "MT702",
            f"qconfig is of type {type(qconfig).__name__}, and no QConfig",
            fix="give an input of the model as example=, and observers as QConfig(activation, weight)",
        )


def refuse_prepared(model: Any) -> None:
    """Refuse a model that is prepared already, and what is no model (``MT702``)."""
    if not isinstance(model, Module):
        what = f"{type(model).__name__} is no module"
        raise QuantizationError("MT702", what, fix="quantise the model first, and freeze or compile the result")
    done = [name for name, module in model.named_modules() if isinstance(module, Prepared)]
    if done:
        raise QuantizationError(
            "MT702",
            f"{type(model).__name__} is prepared already: {done[0] or 'it'} has an observer",
            fix="calibrate(prepared, data) and convert(prepared), or begin with the float model",
        )


def batches_of(data: Any) -> Iterator[tuple[Any, ...]]:
    """Batches as tuples, whose first element is the input, a tensor; a tensor or an array by itself is one batch.

    Raises:
        QuantizationError: for data and inputs that are something else (``MT702``).
    """
    if isinstance(data, (Tensor, np.ndarray)):
        data = [data]
    if isinstance(data, (str, dict, Module)) or not isinstance(data, Iterable):
        raise QuantizationError("MT702", f"data of type {type(data).__name__}", fix="give a list of batches of inputs")
    for batch in data:
        first, *rest = batch if isinstance(batch, (tuple, list)) and len(batch) else (batch,)
        if isinstance(first, np.ndarray):
            first = tensor(first)
        if not isinstance(first, Tensor):
            raise QuantizationError(
                "MT702",
                f"a batch that begins with {type(first).__name__}",
                fix="a batch is a tensor of inputs, or a tuple whose first element is one",
            )
        yield first, *rest


def inputs_of(model: Module, batch: tuple[Any, ...]) -> tuple[Any, ...]:
    """The first elements of a batch, as many as a model has to be given, and at least one; labels come after them.

    Example:
        >>> import minitorch as mt
        >>> class Sum(mt.nn.Module):
        ...     def forward(self, x, y, scale=1.0):
        ...         return x + y * scale
        >>> inputs_of(Sum(), (mt.ones(1), mt.zeros(1), mt.tensor([3])))
        (tensor([1.]), tensor([0.]))
    """
    needed: Any = getattr(model, "input_names", None)  # of a file, whose names may be none in Python
    if needed is None:
        parameters = inspect.signature(model.forward).parameters.values()
        needed = [each for each in parameters if each.kind in _POSITIONAL and each.default is each.empty]
    return tuple([tensor(each) if isinstance(each, np.ndarray) else each for each in batch[: max(len(needed), 1)]])


def labels_of(label: Any, scores: Tensor) -> np.ndarray[Any, Any]:
    """The right classes of a batch.

    Args:
        label: integers, of the shape of the scores without their last dimension.
        scores: [..., classes].

    Raises:
        QuantizationError: for other types and shapes, and for classes that there are not (``MT701``).
    """
    array = label.numpy() if isinstance(label, Tensor) else np.asarray(label)
    shape, classes = scores.shape[:-1], scores.shape[-1] if scores.ndim else 0
    needed = f"labels are integers from 0 to {classes - 1}, of shape {list(shape)}, one for each row of scores"
    fix = "give pairs of inputs and class numbers, or inputs alone to compare decisions with the float model's"
    wrong = array[(array < 0) | (array >= classes)]
    what = None
    if array.dtype.kind not in "iu" or array.shape != shape:
        what = f"labels of type {array.dtype}, shape {list(array.shape)}, and scores of shape {list(scores.shape)}"
    elif wrong.size:
        what = f"the label {wrong.flat[0]}, and {classes} classes"
    if what:
        raise QuantizationError("MT701", f"report: {what}", why=needed, fix=fix)
    return array
