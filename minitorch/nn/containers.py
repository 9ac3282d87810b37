"""Modules that hold others: `Sequential`, `ModuleList` and `ModuleDict`; and `ParameterList`.

The modules held are attributes, named by their position or key. Their parameters are named accordingly.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Self, overload

from ..tensor import Tensor
from .module import Module
from .parameter import Parameter


class _Listed(Module):
    """Base class of `Sequential` and `ModuleList`: modules named 0, 1, 2, ... (or by the keys of a dict)."""

    def _fill(self, named: Iterable[tuple[str, Module]]) -> None:
        """Set the modules held, in this order."""
        named = list(named)
        for name, module in named:
            self._require_module(name, module)
        for name in [name for name, value in vars(self).items() if isinstance(value, Module)]:
            delattr(self, name)
        for name, module in named:
            self.add_module(name, module)

    def _held(self) -> list[tuple[str, Module]]:
        return [(name, value) for name, value in vars(self).items() if isinstance(value, Module)]

    def _renumber(self, modules: Iterable[Module]) -> None:
        self._fill((str(position), module) for position, module in enumerate(modules))

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[Any]:
        return (module for _, module in self._held())

    @overload
    def __getitem__(self, index: int) -> Any: ...
    @overload
    def __getitem__(self, index: slice) -> Self: ...
    def __getitem__(self, index: int | slice) -> Any:
        held = self._held()
        if isinstance(index, slice):
            part = type(self)()
            part._fill(held[index]) if isinstance(self, Sequential) else part._renumber([m for _, m in held[index]])
            return part
        return held[index][1]

    def __setitem__(self, index: int, module: Module) -> None:
        self.add_module(self._held()[index][0], module)

    def __delitem__(self, index: int | slice) -> None:
        modules = list(self)
        del modules[index]
        self._renumber(modules)

    def append(self, module: Module) -> Self:
        """Add a module at the end."""
        self.add_module(str(len(self)), module)
        return self

    def extend(self, modules: Iterable[Module]) -> Self:
        """Add modules at the end."""
        for module in modules:
            self.append(module)
        return self

    def insert(self, index: int, module: Module) -> Self:
        """Add a module before the one at a position."""
        modules = list(self)
        modules.insert(index, module)
        self._renumber(modules)
        return self


class Sequential(_Listed):
    """Modules called one after another, each with the result of the one before.

    Args:
        args: the modules; or one dict of them by name.

    Example:
        >>> import minitorch as mt
        >>> net = mt.nn.Sequential(mt.nn.Flatten(), mt.nn.Linear(4, 2), mt.nn.ReLU())
        >>> net(mt.zeros(3, 2, 2)).shape
        (3, 2)
        >>> net[1:]
        Sequential(
          (1): Linear(in_features=4, out_features=2, bias=True)
          (2): ReLU()
        )
    """

    def __init__(self, *args: Module | Mapping[str, Module]) -> None:
        super().__init__()
        if len(args) == 1 and isinstance(args[0], Mapping):
            self._fill(args[0].items())
        else:
            self._renumber(args)  # type: ignore[arg-type]

    def forward(self, input: Any) -> Any:
        """Call all modules in order."""
        for module in self:
            input = module(input)
        return input


class ModuleList(_Listed):
    """List of modules whose parameters are found; it has no `forward` of its own.

    Example:
        >>> import minitorch as mt
        >>> layers = mt.nn.ModuleList(mt.nn.Linear(2, 2) for _ in range(3))
        >>> len(layers), len(list(layers.parameters()))
        (3, 6)
    """

    def __init__(self, modules: Iterable[Module] = ()) -> None:
        super().__init__()
        if not isinstance(modules, Iterable):
            raise TypeError(f"ModuleList takes a list of modules, not {type(modules).__name__}")
        self._renumber(modules)


class ModuleDict(Module):
    """Dict of modules whose parameters are found; it has no `forward` of its own.

    Example:
        >>> import minitorch as mt
        >>> heads = mt.nn.ModuleDict({"digit": mt.nn.Linear(4, 10), "sign": mt.nn.Linear(4, 2)})
        >>> heads["sign"](mt.zeros(1, 4)).shape
        (1, 2)
    """

    def __init__(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]] = ()) -> None:
        super().__init__()
        self.update(modules)

    def _held(self) -> dict[str, Module]:
        return {name: value for name, value in vars(self).items() if isinstance(value, Module)}

    def update(self, modules: Mapping[str, Module] | Iterable[tuple[str, Module]]) -> None:
        """Add modules, or replace those of the same names."""
        for name, module in dict(modules).items():
            self[name] = module

    def __getitem__(self, key: str) -> Any:
        return self._held()[key]

    def __setitem__(self, key: str, module: Module) -> None:
        if hasattr(type(self), key) or key in ("training", "_buffer_names", "_hooks", "_kinds"):
            raise KeyError(f"a module in a ModuleDict cannot be called {key!r}, which is an attribute of every Module")
        self.add_module(key, module)

    def __delitem__(self, key: str) -> None:
        delattr(self, key)

    def __len__(self) -> int:
        return len(self._held())

    def __iter__(self) -> Iterator[str]:
        return iter(self._held())

    def __contains__(self, key: object) -> bool:
        return key in self._held()

    def keys(self) -> Iterable[str]:
        """Return the names."""
        return self._held().keys()

    def values(self) -> Iterable[Any]:
        """Return the modules."""
        return self._held().values()

    def items(self) -> Iterable[tuple[str, Any]]:
        """Return names and modules."""
        return self._held().items()

    def pop(self, key: str) -> Any:
        """Take a module out."""
        module = self[key]
        del self[key]
        return module


class ParameterList(Module):
    """List of parameters that are found; tensors become parameters.

    Example:
        >>> import minitorch as mt
        >>> weights = mt.nn.ParameterList([mt.zeros(2), mt.ones(3)])
        >>> len(weights), [name for name, _ in weights.named_parameters()]
        (2, ['0', '1'])
    """

    def __init__(self, values: Iterable[Tensor] = ()) -> None:
        super().__init__()
        self.extend(values)

    def append(self, value: Tensor) -> Self:
        """Add a parameter at the end."""
        self.register_parameter(str(len(self)), value if isinstance(value, Parameter) else Parameter(value))
        return self

    def extend(self, values: Iterable[Tensor]) -> Self:
        """Add parameters at the end."""
        for value in values:
            self.append(value)
        return self

    def __len__(self) -> int:
        return len(self._own_parameters())

    def __iter__(self) -> Iterator[Parameter]:
        return iter(self._own_parameters().values())

    def __getitem__(self, index: int) -> Parameter:
        return list(self)[index]
