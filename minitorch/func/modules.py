"""Modules as functions of their parameters, as in `torch.func`: `functional_call` and `stack_module_state`."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from ..autograd import detach
from ..nn import Module
from ..primitives import concatenate, reshape
from ..tensor import Tensor

State = Mapping[str, Tensor]


def functional_call(
    module: Module,
    parameter_and_buffer_dicts: State | Sequence[State],
    args: Any = None,
    kwargs: Mapping[str, Any] | None = None,
    *,
    tie_weights: bool = True,
    strict: bool = False,
) -> Any:
    """Call a module with other parameters and buffers; its own are untouched.

    Args:
        module: called for its result.
        parameter_and_buffer_dicts: tensors by name as in `named_parameters`; names left out have the module's own.
        args: one argument, or a tuple of them.
        kwargs: arguments by name.
        tie_weights: whether a tensor that the module has under several names is replaced under all, if under one.
        strict: whether all names have to be there.

    Raises:
        RuntimeError: for a name that the module does not have; if `strict`, for one that is missing.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.Linear(2, 1, bias=False)
        >>> mt.func.functional_call(layer, {"weight": mt.tensor([[1.0, 10.0]])}, mt.tensor([3.0, 4.0]))
        tensor([43.])
    """
    given: dict[str, Tensor] = {}
    dicts = parameter_and_buffer_dicts
    for each in [dicts] if isinstance(dicts, Mapping) else dicts:
        given.update(each)
    own: dict[str, Tensor] = dict(module.named_parameters(remove_duplicate=False))
    own.update(module.named_buffers(remove_duplicate=False))
    wrong = [name for name in given if name not in own] + [name for name in own if strict and name not in given]
    if wrong:
        raise RuntimeError(f"functional_call of {type(module).__name__}: unexpected or missing: {', '.join(wrong)}")
    if tie_weights:
        tied = {id(own[name]): tensor for name, tensor in given.items()}
        given = {name: given.get(name, tied[id(tensor)]) for name, tensor in own.items() if id(tensor) in tied}
    replaced = []
    try:
        for name, tensor in given.items():
            place, _, attribute = name.rpartition(".")
            holder = module.get_submodule(place)
            replaced.append((holder, attribute, own[name]))
            _put(holder, attribute, tensor)
        return module(*(args if isinstance(args, tuple) else () if args is None else (args,)), **(kwargs or {}))
    finally:
        for holder, attribute, tensor in replaced:
            _put(holder, attribute, tensor)


def _put(holder: Module, name: str, tensor: Tensor) -> None:
    object.__setattr__(holder, name, tensor)  # any tensor in place of a Parameter
    Module.changes += 1


def stack_module_state(models: Sequence[Module]) -> tuple[dict[str, Tensor], dict[str, Tensor]]:
    """Return the parameters and the buffers of several modules of one class, each stacked, for `vmap` over modules.

    Example:
        >>> import minitorch as mt
        >>> models = [mt.nn.Linear(2, 1) for _ in range(3)]
        >>> params, buffers = mt.func.stack_module_state(models)
        >>> x = mt.ones(2)
        >>> y = mt.vmap(lambda p: mt.func.functional_call(models[0], p, x))(params)
        >>> params["weight"].shape, y.shape, mt.equal(y, mt.stack([model(x) for model in models]))
        ((3, 1, 2), (3, 1), True)
    """
    if not models:
        raise RuntimeError("stack_module_state takes at least one module")
    if len({(type(model), model.training) for model in models}) > 1:
        raise RuntimeError("stack_module_state takes modules of one class, all in training or all in evaluation")
    params = [dict(model.named_parameters()) for model in models]
    buffers = [dict(model.named_buffers()) for model in models]
    return {name: _stacked([each[name] for each in params]) for name in params[0]}, {
        name: _stacked([each[name] for each in buffers]) for name in buffers[0]
    }


def _stacked(tensors: Sequence[Tensor]) -> Tensor:
    whole = detach(concatenate(*[reshape(each, shape=(1, *each.shape)) for each in tensors], dim=0))
    return whole.requires_grad_(tensors[0].requires_grad)
