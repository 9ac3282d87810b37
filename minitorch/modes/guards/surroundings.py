"""Surroundings of a traced function: its parameters, and the modules and tensors that its variables hold."""

from __future__ import annotations

import functools
import inspect
from collections.abc import Callable, Iterator
from types import FunctionType
from typing import Any

from ...functional.creation.generator import default_generator
from ...nn.module import Module, Stateful
from ...tensor import Tensor
from ...tree import Structure, flatten, paths
from .reads import codes


def name(function: Callable[..., Any]) -> str:
    """Return the name of a function in messages."""
    return str(getattr(function, "__name__", type(function).__name__))


def parameters(function: Callable[..., Any], static_argnames: tuple[str, ...]) -> inspect.Signature | None:
    """Return the signature of a function, if Python knows it.

    Raises:
        ValueError: for a static argument that the function does not have.
    """
    target = function.forward if isinstance(function, Module) else function
    try:
        signature = getattr(function, "__signature__", None) or inspect.signature(target)
    except (TypeError, ValueError):
        return None
    for argument in static_argnames:
        if argument not in signature.parameters:
            has = ", ".join(signature.parameters)
            raise ValueError(f"static_argnames names {argument!r}, but {name(function)} takes ({has})")
    return signature


def has_own_parameters(function: Callable[..., Any]) -> bool:
    """Return whether a signature describes its calls: not if a decorator, a module's hooks or an object take them."""
    plain = getattr(function, "__func__", function)
    return isinstance(plain, FunctionType) and not hasattr(plain, "__wrapped__") and not hasattr(plain, "__signature__")


def usual_length(signature: inspect.Signature | None, static_argnames: tuple[str, ...]) -> int:
    """Return the number of positional arguments of a call in normal form; -1 if there is none."""
    if signature is None or static_argnames:
        return -1
    kinds = [parameter.kind for parameter in signature.parameters.values()]
    plain = (inspect.Parameter.POSITIONAL_ONLY, inspect.Parameter.POSITIONAL_OR_KEYWORD)
    return len(kinds) if all(kind in plain for kind in kinds) else -1


def defaults(signature: inspect.Signature | None) -> tuple[Any, ...]:
    """Return the default values of the last parameters."""
    values = [] if signature is None else [parameter.default for parameter in signature.parameters.values()]
    missing = [number for number, value in enumerate(values) if value is inspect.Parameter.empty]
    return tuple(values[missing[-1] + 1 if missing else 0 :])


def given_defaults(function: Callable[..., Any]) -> tuple[int, ...]:
    """Return the identities of a function's default values, which can be replaced."""
    values = getattr(function, "__defaults__", None), *(getattr(function, "__kwdefaults__", None) or {}).values()
    return tuple(map(id, values))


def leaf_names(signature: inspect.Signature | None, structure: Structure) -> list[str]:
    """Return a name for each leaf of a call ``(args, kwargs)``, such as ``x`` or ``batch.images.0``."""
    positional, keyword = structure.children
    known = [] if signature is None else list(signature.parameters.values())
    names: list[str] = []
    for position, child in enumerate(positional.children):
        if position < len(known) and known[position].kind is not inspect.Parameter.VAR_POSITIONAL:
            base = known[position].name
        else:
            base = f"arg{position}"
        names += paths(child, base)
    for key, child in zip(keyword.keys, keyword.children, strict=True):
        names += paths(child, str(key))
    return [plain_name(found) for found in names]


def plain_name(path: str) -> str:
    """Return ``batch['x'][0]`` as ``batch.x.0``, a valid name in a listing."""
    text = path.replace("[", ".").replace("]", "").replace("'", "").replace('"', "")
    return "".join(letter if letter.isalnum() or letter in "._" else "_" for letter in text)


@functools.cache
def names_in_methods(kind: Any, package: str = "") -> frozenset[str]:
    """Return the attributes that the methods of a class name, constructors and `__repr__` apart.

    Args:
        package: where classes have to be defined for their methods to count; by default, anywhere.
    """
    found: set[str] = set()
    for ancestor in kind.__mro__:
        if ancestor not in (Module, object) and ancestor.__module__.startswith(package):
            for name, method in vars(ancestor).items():
                function = getattr(method, "function", method) if type(method).__name__ == "Jitted" else method
                if isinstance(function, FunctionType) and name not in ("__init__", "__repr__", "extra_repr"):
                    found.update(*(code.co_names for code in codes(function.__code__)))
    return frozenset(found)


def follows_training(module: Module) -> bool:
    """Return whether a module depends on `training`, as far as its code shows.

    Example:
        >>> import minitorch as mt
        >>> follows_training(mt.nn.Dropout()), follows_training(mt.nn.Linear(2, 2))
        (True, False)
    """
    kind: Any = type(module)
    options = getattr(module, "function_parameters", None)
    return "training" in (names_in_methods(kind) if options is None else options)


def tensors_in(variable: str, value: Any) -> Iterator[tuple[str, Tensor]]:
    """Yield the tensors of a variable, with names: of a module, an optimiser or a container, those inside."""
    if isinstance(value, Tensor):
        yield variable, value
    elif isinstance(value, Module):
        prefix = f"{variable}." if variable else ""
        yield from ((prefix + path, tensor) for path, tensor in (*value.named_parameters(), *value.named_buffers()))
    elif isinstance(value, Stateful):
        yield from ((f"{variable or 'optimizer'}.{path}", tensor) for path, tensor in value.named_tensors())
    elif type(value) in (list, tuple, dict):
        leaves, structure = flatten(value)
        for path, leaf in zip(paths(structure, variable), leaves, strict=True):
            if isinstance(leaf, (Tensor, Module)):
                yield from tensors_in(plain_name(path), leaf)


def names_in(variables: dict[str, Any]) -> dict[int, str]:
    """Return names for the tensors behind some variables, in modules and optimisers too, by `id`."""
    found: dict[int, str] = {id(default_generator._state): "random_state"}
    for name, value in variables.items():
        for path, tensor in () if name.startswith("_") else tensors_in(name, value):
            found.setdefault(id(tensor), path)
    return found | {id(value): name for name, value in variables.items() if isinstance(value, Tensor)}


_ALIKE: dict[tuple[str, ...], tuple[str, ...]] = {}


def children_of(space: dict[str, Any], key: Any, default: Any) -> tuple[str, ...]:
    """Return the names of a module's parameters, buffers and children; the same object for the same names."""
    parts = tuple([attribute for attribute, value in space.items() if isinstance(value, (Module, Tensor))])
    return _ALIKE.setdefault(parts, parts)
