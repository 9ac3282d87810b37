"""Parametrizations: a parameter of a module becomes a function of others, which are trained in its place.

The module's class becomes one with a property of the parameter's name: reading it computes the function.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

from ...autograd import no_grad
from ...functional.inplace import assign
from ...tensor import Tensor
from ..containers import ModuleDict, ModuleList
from ..module import Module
from ..parameter import Parameter


def parameter_of(module: Module, name: str) -> Parameter:
    """Return a parameter that a function is to replace.

    Raises:
        ValueError: if the module has none of this name.
    """
    found = vars(module).get(name)
    if not isinstance(found, Parameter):
        raise ValueError(f"{type(module).__name__} has no parameter {name!r} that could be computed from others")
    return found


def computed(module: Any, name: str, value: Callable[[Any], Tensor] | None, write: Any = None, title: str = "") -> None:
    """Make an attribute of a module a function of the module; an ordinary one again if the function is None."""
    kind = type(module)
    base, properties = vars(kind).get("_computed", (kind, {}))
    properties = {each: made for each, made in properties.items() if each != name}
    if value is not None:
        delattr(module, name)
        properties[name] = property(value, write)
    space = {**properties, "__module__": base.__module__, "_computed": (base, properties)}
    module.__class__ = type(title + base.__name__, (base,), space) if properties else base


def restored(module: Module, name: str, value: Tensor) -> None:
    """Make a computed attribute a parameter of this value."""
    computed(module, name, None)
    module.register_parameter(name, Parameter(value.detach().clone()))


class ParametrizationList(ModuleList):
    """Functions applied one after another to the original parameters; calling it computes the parameter.

    A function may have a ``right_inverse``, which gives the originals of a value: a tensor, or a tuple of them.
    """

    def __init__(self, modules: list[Module], value: Parameter) -> None:
        super().__init__(modules)
        originals = self._originals_of(value)
        for at, each in enumerate(originals):
            made = value if each is value else Parameter(each.detach().clone(), value.requires_grad)
            self.register_parameter("original" if len(originals) == 1 else f"original{at}", made)

    def _originals_of(self, value: Any) -> tuple[Tensor, ...]:
        with no_grad():
            for module in reversed([*self]):
                value = module.right_inverse(value) if hasattr(module, "right_inverse") else value
        return value if isinstance(value, tuple) else (value,)

    @property
    def originals(self) -> tuple[Parameter, ...]:
        """The parameters that are trained."""
        return tuple(self._own_parameters().values())

    def forward(self) -> Tensor:
        """Compute the parameter."""
        first, *others = self
        value: Tensor = first(*self.originals)
        for module in others:
            value = module(value)
        return value

    def write(self, value: Tensor) -> None:
        """Write the originals of a value."""
        with no_grad():
            for original, new in zip(self.originals, self._originals_of(value), strict=True):
                assign(original, new, "a parametrized parameter")


def register_parametrization(module: Any, tensor_name: str, parametrization: Module, *, unsafe: bool = False) -> Any:
    """Make a parameter of a module the result of another module, whose argument is trained in its place.

    Args:
        module: the module, which is changed.
        tensor_name: the name of the parameter.
        parametrization: its `forward` takes the original and returns the parameter.
        unsafe: without effect: the shapes may differ.

    Example:
        >>> import minitorch as mt
        >>> class Symmetric(mt.nn.Module):
        ...     def forward(self, x):
        ...         return x.triu() + x.triu(1).mT
        >>> layer = mt.nn.Linear(2, 2)
        >>> _ = mt.nn.utils.parametrize.register_parametrization(layer, "weight", Symmetric())
        >>> mt.equal(layer.weight, layer.weight.mT), list(layer.state_dict())
        (True, ['bias', 'parametrizations.weight.original'])
    """
    if is_parametrized(module, tensor_name):
        module.parametrizations[tensor_name].append(parametrization)
        return module
    made = ParametrizationList([parametrization], parameter_of(module, tensor_name))
    if not is_parametrized(module):
        module.parametrizations = ModuleDict()
    module.parametrizations[tensor_name] = made

    def write(self: Any, value: Tensor) -> None:
        self.parametrizations[tensor_name].write(value)

    computed(module, tensor_name, lambda self: self.parametrizations[tensor_name](), write, "Parametrized")
    return module


def is_parametrized(module: Module, tensor_name: str | None = None) -> bool:
    """Return whether a parameter of a module, or this one, is computed from others."""
    found = vars(module).get("parametrizations")
    return found is not None and (tensor_name is None or tensor_name in found)


def remove_parametrizations(module: Any, tensor_name: str, leave_parametrized: bool = True) -> Any:
    """Undo `register_parametrization`: the parameter keeps its computed value, or takes that of the original.

    Example:
        >>> import minitorch as mt
        >>> layer = mt.nn.utils.parametrizations.weight_norm(mt.nn.Linear(2, 2))
        >>> list(mt.nn.utils.parametrize.remove_parametrizations(layer, "weight").state_dict())
        ['bias', 'weight']
    """
    if not is_parametrized(module, tensor_name):
        raise ValueError(f"{type(module).__name__}: {tensor_name!r} has no parametrization")
    each = module.parametrizations[tensor_name]
    if not leave_parametrized and len(each.originals) > 1:
        raise ValueError(f"{tensor_name!r} is computed from several originals: leave it parametrized")
    with no_grad():
        value = each() if leave_parametrized else each.originals[0]
    del module.parametrizations[tensor_name]
    if not len(module.parametrizations):
        del module.parametrizations
    restored(module, tensor_name, value)
    return module
