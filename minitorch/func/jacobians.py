"""Jacobians: all derivatives of a function, by `vmap` of its derivatives along the axes, as in `torch.func` and JAX."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

from ..dtypes import int64
from ..primitives import add, cast, constant, equal, iota, reshape
from ..tensor import Tensor
from ..tree import flatten, unflatten
from .batching import part
from .mapping import named_like, vmap
from .transforms import Run, as_tuple, float_leaves, jvp


def jacrev(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    *,
    has_aux: bool = False,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that returns the derivatives of all elements of the result by those of some arguments.

    Each has the shape of the result followed by the shape of the argument. The function is called once, and the tape
    walked once, for all elements of the result together: fewer results than arguments are the case for it. For the
    other case there is `jacfwd`.

    Args:
        func: returns a float tensor, or a nested structure of them; with `has_aux` a pair of that and anything else.
        argnums: which positional arguments to differentiate by. Each is a float tensor or a nested structure of them.
        has_aux: whether there is a second, not differentiated result.
        chunk_size: how many elements of the result are differentiated at a time; all by default.

    Returns:
        A function that gives the result's structure, with the structure of the arguments in place of each tensor (a
        tuple of them if `argnums` is a sequence); with `has_aux` ``(jacobian, aux)``.

    Example:
        >>> import minitorch as mt
        >>> mt.func.jacrev(lambda x: x * x)(mt.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        call = Run(func, args, as_tuple(argnums), kwargs, has_aux)
        outputs, form = float_leaves(call.result)

        def pullback(*cotangents: Tensor) -> Any:
            return call.gradients(outputs, cotangents, retain=True)

        rows, inner = flatten(vmap(pullback, chunk_size=chunk_size)(*_axes(outputs)))
        tables = [_parts(row, 0, outputs) for row in rows]  # of an argument, by output
        full = [_by_argument(unflatten(inner, column), argnums) for column in zip(*tables, strict=True)]
        result = call.finished(unflatten(form, full))
        return (result, call.finished(call.aux)) if has_aux else result

    return named_like(func, "jacrev", run)


def jacfwd(
    func: Callable[..., Any],
    argnums: int | Sequence[int] = 0,
    has_aux: bool = False,
    *,
    randomness: str = "error",
) -> Callable[..., Any]:
    """Return a function like that of `jacrev`, which takes `jvp` along all elements of the arguments together.

    Args:
        func, argnums, has_aux: as in `jacrev`.
        randomness: of the function's random numbers, as in `vmap`.

    Example:
        >>> import minitorch as mt
        >>> mt.func.jacfwd(lambda x: x * x)(mt.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        places = as_tuple(argnums)
        primals = tuple([args[place] for place in places])
        points, structure = float_leaves(primals, "an argument")

        def moved(*chosen: Any) -> Any:
            whole = list(args)
            for place, each in zip(places, chosen, strict=True):
                whole[place] = each
            return func(*whole, **kwargs)

        def along(*axes: Tensor) -> Any:
            _, derivative, *aux = jvp(moved, primals, unflatten(structure, axes), has_aux=has_aux)
            return derivative, tuple(aux)

        derivatives, aux = vmap(along, out_dims=(-1, None), randomness=randomness)(*_axes(points))
        columns, form = flatten(derivatives)
        full = [
            _by_argument(unflatten(structure, _parts(column, column.ndim - 1, points)), argnums) for column in columns
        ]
        result = unflatten(form, full)
        return (result, *aux) if has_aux else result

    return named_like(func, "jacfwd", run)


def jacobian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that returns all derivatives of its result: `jacrev`.

    Example:
        >>> import minitorch as mt
        >>> mt.jacobian(lambda x: x * x)(mt.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """
    return named_like(func, "jacobian", jacrev(func, argnums))


def hessian(func: Callable[..., Any], argnums: int | Sequence[int] = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives: `jacrev`, twice.

    Example:
        >>> import minitorch as mt
        >>> mt.hessian(lambda x: (x ** 3).sum())(mt.tensor([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return named_like(func, "hessian", jacrev(jacrev(func, argnums), argnums))


def _axes(leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return for each tensor one of its shape for each element of them all: a one at that element, zeros elsewhere."""
    count, first, found = sum(leaf.numel() for leaf in leaves), 0, []
    for leaf in leaves:
        size = leaf.numel()
        rows = reshape(iota(size=count, dtype=int64), shape=(count, 1))
        places = add(iota(size=size, dtype=int64), constant(value=first, shape=(), dtype=int64))
        found.append(reshape(cast(equal(rows, places), dtype=leaf.dtype), shape=(count, *leaf.shape)))
        first += size
    return found


def _parts(x: Tensor, dim: int, leaves: Sequence[Tensor]) -> list[Tensor]:
    """Return the parts of a dimension that has all elements of some tensors, each in the shape of its tensor."""
    first, found = 0, []
    for leaf in leaves:
        taken = part(x, dim, first, first + leaf.numel())
        found.append(reshape(taken, shape=(*x.shape[:dim], *leaf.shape, *x.shape[dim + 1 :])))
        first += leaf.numel()
    return found


def _by_argument(found: Any, argnums: int | Sequence[int]) -> Any:
    return found[0] if isinstance(argnums, int) else tuple(found)
