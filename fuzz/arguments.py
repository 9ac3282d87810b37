"""Arguments for a function, found by the names and annotations of its parameters: what is called alike means the same.

Functions whose arguments depend on each other in ways that names do not tell have a row in `recipes`.
"""

from __future__ import annotations

import inspect
from collections.abc import Callable
from typing import Any

from .api import Function
from .program import Ref
from .scope import Scope, UnfitError

Call = tuple[tuple[Any, ...], dict[str, Any]]  # positional and named operands
Maker = Callable[[Scope, "Ref | None"], Any]


def a_dim(scope: Scope, first: Ref | None) -> int:
    """A dimension of the first operand, from the front or the back; rarely one that it does not have."""
    dims = max(1, scope.tensor_of(first).ndim) if first else 1
    if scope.chance(0.02):
        return dims
    return scope.random.randint(-dims, dims - 1)


def some_dims(scope: Scope, first: Ref | None) -> Any:
    """A dimension, several, or None."""
    dims = scope.tensor_of(first).ndim if first else 1
    choice = scope.below(4)
    if choice == 0 or not dims:
        return None
    if choice == 1:
        return a_dim(scope, first)
    chosen = scope.random.sample(range(dims), scope.random.randint(1, dims))
    return tuple(dim - dims if scope.chance(0.3) else dim for dim in chosen)


def another(scope: Scope, first: Ref | None) -> Ref:
    """A tensor that broadcasts with the first operand, often of its type."""
    if first is None:
        return scope.tensor()
    tensor = scope.tensor_of(first)
    shape = scope.broadcastable(tuple(tensor.shape))
    return scope.tensor(shape, tensor.dtype.name if scope.chance(0.65) else "")


def operand(scope: Scope, first: Ref | None) -> Any:
    """A tensor, or a number."""
    if scope.chance(0.3):
        return scope.number(scope.tensor_of(first).dtype.name if first else "float32")
    return another(scope, first)


def a_mask(scope: Scope, first: Ref | None) -> Ref:
    """Booleans that broadcast with the first operand."""
    return scope.tensor(scope.broadcastable(tuple(scope.tensor_of(first).shape)) if first else None, "bool")


BY_NAME: dict[str, Maker] = {
    "dim": a_dim,
    "dim0": a_dim,
    "dim1": a_dim,
    "dim2": a_dim,
    "dims": some_dims,
    "mask": a_mask,
    "condition": a_mask,
    "dtype": lambda scope, first: scope.dtype_code("float" if scope.chance(0.5) else ""),
    "alpha": lambda scope, first: scope.number(scope.tensor_of(first).dtype.name if first else "float32"),
    "beta": lambda scope, first: scope.pick(0.5, 1.0, 2, 0),
    "value": lambda scope, first: scope.number(scope.tensor_of(first).dtype.name if first else "float32"),
    "rounding_mode": lambda scope, first: scope.pick("trunc", "floor", None),
    "reduction": lambda scope, first: scope.pick("none", "mean", "sum"),
    "approximate": lambda scope, first: scope.pick("none", "tanh"),
    "side": lambda scope, first: scope.pick("left", "right"),
    "decimals": lambda scope, first: scope.pick(0, 1, 2, -1),
    "diagonal": lambda scope, first: scope.random.randint(-3, 3),
    "offset": lambda scope, first: scope.random.randint(-2, 2),
    "correction": lambda scope, first: scope.pick(0, 1, 2),
    "p": lambda scope, first: scope.pick(1, 2, 2.0, 1.5, 0.5, 0, 3, float("inf")),
    "eps": lambda scope, first: scope.pick(1e-5, 1e-3, 0.1),
    "k": lambda scope, first: scope.pick(1, 2, 3),
    "chunks": lambda scope, first: scope.pick(1, 2, 3, 5),
    "shifts": lambda scope, first: scope.pick(0, 1, -1, 2, 3),
    "min": operand,
    "max": operand,
    "threshold": lambda scope, first: scope.pick(20.0, 1.0),
    "slope": lambda scope, first: scope.pick(0.01, 0.2),
    "fill_value": lambda scope, first: scope.number(),
}
BY_ANNOTATION: dict[str, Maker] = {
    "Tensor": another,
    "Tensor | None": another,
    "Operand": operand,
    "Operand | None": operand,
    "Tensor | Number": operand,
    "Number": lambda scope, first: scope.number(),
    "Number | None": lambda scope, first: scope.number(),
    "bool": lambda scope, first: scope.chance(0.5),
    "int": lambda scope, first: scope.random.randint(-1, 4),
    "int | None": lambda scope, first: scope.pick(None, 1, 2),
    "float": lambda scope, first: scope.pick(0.01, 0.5, 1.0, 2.0),
    "float | None": lambda scope, first: scope.pick(None, 0.01, 0.5),
    "Dims": some_dims,
    "Ints": a_dim,
    "Ints | None": some_dims,
    "DType | None": BY_NAME["dtype"],
}
PLACES = ("device", "generator", "requires_grad", "non_blocking", "memory_format", "out")  # never given


def by_names(scope: Scope, function: Function) -> Call:
    """Operands for each parameter that has to have one, and for some of the others."""
    args: list[Any] = []
    kwargs: dict[str, Any] = {}
    first: Ref | None = None
    skipped = False
    for name, parameter in function.signature.parameters.items():
        if parameter.kind in (parameter.VAR_POSITIONAL, parameter.VAR_KEYWORD):
            raise UnfitError
        annotation = str(parameter.annotation)
        optional = parameter.default is not inspect.Parameter.empty
        if name in PLACES or (optional and scope.chance(0.7)):
            skipped = True
            continue
        if first is None and (name == "self" or annotation in ("Tensor", "Operand", "Any")):
            first = scope.tensor()
            args.append(first)
            continue
        maker = BY_NAME.get(name) or BY_ANNOTATION.get(annotation)
        if maker is None:
            raise UnfitError
        made = maker(scope, first)
        if parameter.kind is parameter.KEYWORD_ONLY or name == "dtype" or skipped or (optional and scope.chance(0.5)):
            kwargs[name] = made
            skipped = True
        else:
            args.append(made)
    return tuple(args), kwargs
