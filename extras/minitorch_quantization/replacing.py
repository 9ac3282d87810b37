"""Finding and replacing layers in a tree of modules."""

from __future__ import annotations

import copy
from collections.abc import Callable, Iterable, Iterator
from typing import Any

from minitorch.errors import QuantizationError
from minitorch.nn.layers import Affine, Conv1d, Conv2d, Linear
from minitorch.nn.module import Module

# Layers that are a product of their input and a weight; a subclass may do something else with both.
LAYERS: tuple[type[Affine], ...] = (Linear, Conv1d, Conv2d)


def layers_of(model: Module, kinds: Iterable[type[Module]] = LAYERS) -> Iterator[tuple[str, Any]]:
    """The modules of these very classes, with their names, each once."""
    wanted = set(kinds)
    return ((name, module) for name, module in model.named_modules() if type(module) in wanted)


def replaced(model: Module, new: dict[str, Module]) -> Module:
    """The model with other modules in place of those named, wherever these occur; the model itself is changed.

    Hooks go on to the new modules, as in PyTorch.

    Args:
        model: the root; the name of the root itself is empty.
        new: a module by name.
    """
    by_old: dict[int, Module] = {}
    for name, module in new.items():
        old = model.get_submodule(name)
        by_old[id(old)] = module
        module._hooks = {place: [*hooks] for place, hooks in old._hooks.items()}
    for parent in list(model.modules()):
        for name, child in list(vars(parent).items()):
            if isinstance(child, Module) and id(child) in by_old:
                setattr(parent, name, by_old[id(child)])
    return by_old.get(id(model), model)


def is_under(name: str, places: Iterable[str]) -> bool:
    """Whether a module is one of those named, or a part of one."""
    return any(name == each or name.startswith(f"{each}.") for each in places)


def nothing_found(model: Module, kinds: Iterable[type[Module]]) -> QuantizationError:
    """The error for a model without a layer of these kinds."""
    wanted = tuple(kinds)
    derived = [(name, type(each)) for name, each in model.named_modules() if isinstance(each, wanted)]
    known = f"these are: {', '.join(kind.__name__ for kind in wanted)}"
    why = "".join(f", and not {kind.__name__} ({name or 'the model'}), which may do more" for name, kind in derived[:1])
    fix = "give a copy with layers: model.with_layers()" if hasattr(model, "with_layers") else None
    return QuantizationError("MT702", f"{type(model).__name__} has no layer to quantise", why=known + why, fix=fix)


def with_layers(
    model: Module,
    make: Callable[[str, Any], Module],
    kinds: Iterable[type[Module]] = LAYERS,
    but: Iterable[str] = (),
) -> Module:
    """A copy of a model, in which some layers are replaced.

    Args:
        model: it stays as it is.
        make: the new module, given the name and the old one.
        kinds: the classes of layers.
        but: names of layers, or of modules whose layers, stay.

    Raises:
        QuantizationError: if there is no module of a name, or no layer at all (``MT702``).
    """
    model, stay = copy.deepcopy(model), list(but)
    names = {name for name, _ in model.named_modules(remove_duplicate=False)}
    for name in stay:
        if name not in names:
            raise QuantizationError(
                "MT702",
                f"there is no module {name!r} in {type(model).__name__}",
                fix=f"use names as model.named_modules() has them, such as {', '.join(sorted(names - {''})[:3])}",
            )
    found = [(name, layer) for name, layer in layers_of(model, kinds) if not is_under(name, stay)]
    if not found and not stay:
        raise nothing_found(model, kinds)
    return replaced(model, {name: make(name, layer) for name, layer in found})
