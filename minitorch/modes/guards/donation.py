"""Donation: results of a jitted call may take the memory of arguments, which are unusable afterwards."""

from __future__ import annotations

import inspect
from collections.abc import Iterable, Sequence
from typing import Any

from ...errors import AutogradError, TracingError
from ...ir import user_source
from ...tensor import Tensor
from ...tree import Structure, flatten, unflatten

Names = str | int | Iterable[str | int]


class Donated:
    """Value of a donated tensor: every access raises an error that names where the memory went."""

    __slots__ = ("_argument", "_function")

    def __init__(self, argument: str, function: str) -> None:
        self._argument = argument
        self._function = function

    def _refuse(self, *_: Any, **__: Any) -> Any:
        raise TracingError(
            "MT111",
            f"a tensor is used that was donated as the argument `{self._argument}` of {self._function}",
            why="its memory was given away with that call, and may hold a result by now",
            fix=f"use what {self._function} returns in its place, donate a .clone(), or take `{self._argument}` out of "
            "donate=",
        )

    __getattr__ = __array__ = __array_ufunc__ = __array_function__ = __len__ = __bool__ = _refuse


def parameters(donate: Names, signature: inspect.Signature | None, function: str) -> frozenset[str | int]:
    """Return the names and numbers of the parameters to donate.

    Raises:
        ValueError: for a parameter that the function does not have.
    """
    given = (donate,) if isinstance(donate, (str, int)) else tuple(donate)
    names = [] if signature is None else list(signature.parameters)
    found: set[str | int] = set()
    for item in given:
        known = item in names if isinstance(item, str) else -len(names) <= item < len(names)
        if signature is not None and not known:
            raise ValueError(f"donate names {item!r}, but {function} takes ({', '.join(names)})")
        found.add(item if isinstance(item, str) or signature is None else names[item])
    return frozenset(found)


def donated(
    chosen: frozenset[str | int], signature: inspect.Signature | None, structure: Structure, leaves: Sequence[Any]
) -> dict[int, str]:
    """Return the donated tensors of a call ``(args, kwargs)``, with their positions and their arguments' names.

    Positions count the different tensors among the leaves.

    Raises:
        AutogradError: for one that requires a gradient (``MT401``).
    """
    args, kwargs = unflatten(structure, leaves)
    known = [] if signature is None else list(signature.parameters.values())
    names: list[str | int] = list(range(len(args)))
    for number, parameter in enumerate(known[: len(args)]):
        if parameter.kind is inspect.Parameter.VAR_POSITIONAL:
            names[number:] = [parameter.name] * (len(args) - number)
            break
        names[number] = parameter.name
    places: dict[int, int] = {}
    found: dict[int, str] = {}
    for name, value in (*zip(names, args, strict=True), *kwargs.items()):
        for leaf in flatten(value)[0]:
            if isinstance(leaf, Tensor):
                place = places.setdefault(id(leaf), len(places))
                if name in chosen:
                    _check(leaf, name)
                    found[place] = str(name)
    return found


def _check(tensor: Tensor, name: str | int) -> None:
    if tensor._requires_grad:
        raise AutogradError(
            "MT401",
            f"the argument `{name}` is donated, and requires a gradient",
            where=str(user_source()),
            why="a donated tensor is gone after the call, and a gradient could not be stored with it",
            fix=f"donate `{name}`.detach(), or do not donate it",
        )


def give_away(tensor: Tensor, argument: str, function: str) -> None:
    """Make a tensor unusable."""
    tensor._value = Donated(argument, function)
