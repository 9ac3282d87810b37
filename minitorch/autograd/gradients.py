"""`backward` and `grad`; a tensor's ``grad`` and hooks; `detach`."""

from __future__ import annotations

import weakref
from collections.abc import Sequence
from typing import Any

from ..errors import AutogradError
from ..interpreters import current, set_grad_enabled
from ..primitives import add, cast, constant, reshape
from ..tensor import Tensor, up_to_date
from .tape import LeafHooks, copied, key_of, propagate


def _seed(root: Tensor, gradient: Tensor | None) -> Tensor:
    """Return the cotangent to start with: by default one, for a result of one element."""
    if not root.requires_grad:
        raise AutogradError(
            "MT405",
            f"backward from {root.spec}, which depends on no tensor that requires a gradient",
            why="nothing was recorded: no input has requires_grad=True, or it was computed under no_grad",
            fix="set requires_grad=True on the tensors to differentiate by",
        )
    if gradient is None:
        if root.numel() != 1:
            raise AutogradError(
                "MT404",
                f"backward from {root.spec} without a gradient",
                why="a gradient is the derivative of one number; this tensor holds " + str(root.numel()),
                fix="reduce it first (loss.sum(), loss.mean()), or give the cotangent: y.backward(gradient)",
            )
        return constant(value=1, shape=root.shape, dtype=root.dtype)
    if gradient.shape != root.shape:
        raise AutogradError(
            "MT404",
            f"the gradient is {gradient.spec}, the tensor {root.spec}",
            why="the cotangent has one number for each element of the result",
            fix="pass a gradient of the tensor's shape",
        )
    return gradient if gradient.dtype is root.dtype else cast(gradient, dtype=root.dtype)


def _roots(
    outputs: Tensor | Sequence[Tensor], gradients: Tensor | Sequence[Tensor | None] | None
) -> tuple[list[Tensor], list[Tensor]]:
    """Return the results to differentiate, and the cotangents to start with."""
    roots = [outputs] if isinstance(outputs, Tensor) else list(outputs)
    one = gradients is None or isinstance(gradients, Tensor)
    seeds: Sequence[Any] = [gradients] * len(roots) if one else list(gradients or ())
    return roots, [_seed(root, seed) for root, seed in zip(roots, seeds, strict=True)]


def get_grad(tensor: Tensor) -> Tensor | None:
    """Return ``tensor.grad`` at this point of the program."""
    return current().grad_of(tensor)


def set_grad(tensor: Tensor, gradient: Tensor | None) -> None:
    """Assign ``tensor.grad``."""
    if gradient is not None and not isinstance(gradient, Tensor):
        raise TypeError(f"grad is a tensor or None, not {type(gradient).__name__}")
    if gradient is not None and gradient.spec != tensor.spec:
        raise AutogradError(
            "MT404",
            f"the gradient is {gradient.spec}, the tensor {tensor.spec}",
            why="there is one derivative for each element, of the same type",
            fix="assign a gradient of the tensor's shape and type, or None",
        )
    current().set_grad(tensor, gradient)


def backward(
    tensor: Tensor | Sequence[Tensor],
    gradient: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
) -> None:
    """Add the derivative of a tensor by every leaf that requires a gradient to that leaf's ``grad``.

    Args:
        tensor: the result to differentiate, usually a loss, or several results.
        gradient: the cotangent, of the same shape, or one for each; may be left out if the result has one element.
        retain_graph: keep the tape for another backward (default: the value of `create_graph`).
        create_graph: record the computation of the gradients, so that they can be differentiated again.

    Raises:
        AutogradError: ``MT403`` after an earlier backward, ``MT404`` for a tensor of several numbers, ``MT405`` if
            nothing was recorded, ``MT402`` if a saved value was overwritten.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor(3.0, requires_grad=True)
        >>> (x * x).backward()
        >>> x.grad.item()
        6.0
    """
    retain = create_graph if retain_graph is None else retain_graph
    roots, seeds = _roots(tensor, gradient)
    found = propagate(roots, seeds, retain_graph=retain, create_graph=create_graph)
    previous = set_grad_enabled(create_graph)
    try:
        for leaf, amount in found.values():
            _accumulate(leaf, amount)
    finally:
        set_grad_enabled(previous)


def _accumulate(tensor: Tensor, gradient: Tensor) -> None:
    """Add to ``tensor.grad``. The stored gradient belongs to the tensor alone, and may be written in place."""
    known = get_grad(tensor)
    set_grad(tensor, copied(gradient) if known is None else add(known, gradient))


def grad(
    outputs: Tensor | Sequence[Tensor],
    inputs: Tensor | Sequence[Tensor],
    grad_outputs: Tensor | Sequence[Tensor | None] | None = None,
    retain_graph: bool | None = None,
    create_graph: bool = False,
    only_inputs: bool = True,
    allow_unused: bool = False,
) -> tuple[Tensor | None, ...]:
    """Return the derivatives of the sum of `outputs` by each of `inputs`, as `torch.autograd.grad`; change no ``grad``.

    `only_inputs`, which PyTorch still takes, changes nothing.

    Raises:
        AutogradError: ``MT405`` if an input was not used, unless `allow_unused` (which gives None for it).

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor(3.0, requires_grad=True)
        >>> (d,) = mt.autograd.grad(x * x * x, x, create_graph=True)
        >>> mt.autograd.grad(d, x)[0].item()
        18.0
    """
    wanted = [up_to_date(each) for each in ([inputs] if isinstance(inputs, Tensor) else inputs)]
    roots, cotangents = _roots(outputs, grad_outputs)
    retain = create_graph if retain_graph is None else retain_graph
    keys = [key_of(tensor) for tensor in wanted]
    found = propagate(roots, cotangents, retain_graph=retain, create_graph=create_graph, wanted=set(keys))
    gradients = [found[key][1] if key in found else None for key in keys]
    for tensor, gradient in zip(wanted, gradients, strict=True):
        if gradient is None and not allow_unused:
            raise AutogradError(
                "MT405",
                f"the outputs do not depend on the input {tensor.spec}",
                why="no recorded operation leads from it to the outputs",
                fix="check that it has requires_grad=True and is used, or pass allow_unused=True to get None",
            )
    return tuple(gradients)


class HookHandle:
    """The handle that `register_hook` returns; `remove()` removes the hook."""

    def __init__(self, hooks: list[Any], hook: Any) -> None:
        self._hooks, self._hook = hooks, hook

    def remove(self) -> None:
        """Remove the hook; a second call does nothing."""
        if self._hook in self._hooks:
            self._hooks.remove(self._hook)
            LeafHooks.changes += 1
        self._hooks = []


def register_hook(tensor: Tensor, hook: Any) -> HookHandle:
    """Call a function with a tensor's gradient in `backward`; its result, if any, replaces the gradient.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor(3.0, requires_grad=True)
        >>> handle = x.register_hook(lambda g: g * 10)
        >>> (x * 2).backward()
        >>> x.grad.item()
        20.0
    """
    if not tensor.requires_grad:
        raise AutogradError("MT405", "a hook on a tensor that requires no gradient would never be called")
    if tensor._entry is None:
        hooks = tensor._hooks = getattr(tensor, "_hooks", None) or LeafHooks()
        LeafHooks.changes += 1
    else:
        hooks = tensor._entry.hooks = tensor._entry.hooks or []
    hooks.append(hook)
    return HookHandle(hooks, hook)


def retain_grad(tensor: Tensor) -> None:
    """Keep the gradient of a recorded result as its ``grad``, as leaves do.

    Example:
        >>> import minitorch as mt
        >>> x = mt.tensor(3.0, requires_grad=True)
        >>> y = x * x
        >>> y.retain_grad()
        >>> (y * 2).backward()
        >>> y.grad.item(), x.grad.item()
        (2.0, 12.0)
    """
    if not tensor.requires_grad:
        raise AutogradError("MT405", f"retain_grad of {tensor.spec}, which requires no gradient")
    if tensor._entry is None:
        return
    reference = weakref.ref(tensor)  # weak: the tape must not keep its results alive

    def keep(gradient: Tensor) -> None:
        result = reference()
        if result is not None:
            _accumulate(result, gradient)

    tensor._entry.retain = keep


def detach(tensor: Tensor) -> Tensor:
    """Return a tensor that shares the value and has no history; writes to one are seen in the other.

    Example:
        >>> import minitorch as mt
        >>> x = mt.ones(2, requires_grad=True)
        >>> x.detach().requires_grad
        False
    """
    previous = set_grad_enabled(False)
    try:
        detached = reshape(tensor, shape=tensor.shape)
    finally:
        set_grad_enabled(previous)
    if detached._view is not None:
        detached._view.is_detached = True
    return detached


def retains_grad(tensor: Tensor) -> bool:
    """Return whether `backward` keeps this recorded result's gradient as its ``grad``."""
    return tensor.grad_fn is not None and tensor.grad_fn.retain is not None


OPERATORS = {each.__name__: each for each in (backward, detach, register_hook, retain_grad)}
PROPERTIES = {
    "grad": property(get_grad, set_grad, doc="The gradient that `backward` accumulated here, or None."),
    "retains_grad": property(retains_grad, doc=retains_grad.__doc__),
}
