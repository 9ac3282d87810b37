"""`vmap`: a function of one example becomes a function of many, as in `torch.func` and JAX."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from ..primitives import concatenate, permute
from ..tensor import Tensor
from ..tree import Structure, flatten, unflatten
from .batching import Batching, part


def name_of(function: Any, what: str) -> str:
    """Return the name of what a transform makes of a function, which has to be one."""
    if not callable(function):
        kind = type(function).__name__
        does = "called for each example" if what == "vmap" else "differentiated"
        raise TypeError(f"a function is {does}, not {kind}: write {what}(f)(x), not {what}(f(x))")
    return f"{what}({getattr(function, '__name__', type(function).__name__)})"


def named_like(function: Any, what: str, result: Callable[..., Any]) -> Callable[..., Any]:
    """Name the result of a transform after it and its function."""
    result.__name__ = result.__qualname__ = name_of(function, what)
    return result


def vmap(
    func: Callable[..., Any],
    in_dims: Any = 0,
    out_dims: Any = 0,
    randomness: str = "error",
    *,
    chunk_size: int | None = None,
) -> Callable[..., Any]:
    """Return a function that calls `func` once, and computes it for each of many examples.

    `func` is written for one example: it does not see the dimension of the arguments that counts them. Its operations
    are done for all examples at once. It nests, and goes together with `grad`, `jvp`, ``jit`` and ``lazy``, inside and
    outside. ``vmap(grad(loss), in_dims=(None, 0, 0))`` gives the gradient for each sample.

    Args:
        func: takes and returns tensors, or nested structures of them.
        in_dims: which dimension of the arguments counts the examples; None for an argument that all share. One for
            all, or a tuple with one for each argument, which may be nested as that argument is. Keyword arguments are
            shared.
        out_dims: where the results have that dimension; None for a result that is the same for all.
        randomness: whether examples draw ``"different"`` random numbers, the ``"same"`` ones, or none (``"error"``).
        chunk_size: how many examples are computed at a time; all by default.

    Raises:
        ValueError: if dimensions and arguments do not fit.
        TracedValueError: in the call, where the function needs the value of a tensor that differs between examples,
            as a branch or ``item()`` does.
        TracingError: in the call, where it writes such a value in place to a tensor that all share (``MT109``).

    Example:
        >>> import minitorch as mt
        >>> rows = mt.tensor([[1.0, 2.0], [3.0, 4.0]])
        >>> mt.vmap(mt.dot)(rows, rows), mt.vmap(lambda x: x.sum(), in_dims=1)(rows)
        (tensor([ 5., 25.]), tensor([4., 6.]))
        >>> loss = lambda w, x: (w * x).sum() ** 2
        >>> mt.vmap(mt.grad(loss), in_dims=(None, 0))(mt.tensor([1.0, 1.0]), rows)
        tensor([[ 6., 12.],
                [42., 56.]])
    """
    if randomness not in ("error", "different", "same"):
        raise ValueError(f"vmap: randomness is 'error', 'different' or 'same', not {randomness!r}")
    if chunk_size is not None and chunk_size < 1:
        raise ValueError(f"vmap: chunk_size is 1 or more, not {chunk_size}")
    name = name_of(func, "vmap")  # `run` does not refer to itself: a cycle would keep what `func` has seen

    def run(*args: Any, **kwargs: Any) -> Any:
        leaves, structure = flatten(args)
        given = spread(in_dims, structure, f"{name}: in_dims")
        dims = [_checked(leaf, dim, name) for leaf, dim in zip(leaves, given, strict=True)]
        counts = [leaf.shape[dim] for leaf, dim in zip(leaves, dims, strict=True) if dim is not None]
        if not counts:
            raise ValueError(f"{name}: no argument has a dimension to map over")
        if any(count != counts[0] for count in counts):
            raise ValueError(f"{name}: the arguments have different numbers of examples, {counts}")
        size = chunk_size or counts[0]
        parts = []
        for first in range(0, counts[0], size) if size < counts[0] else ():
            bounds = first, min(first + size, counts[0])
            of_some = vmap(func, in_dims, out_dims, randomness)
            chunk = [leaf if dim is None else part(leaf, dim, *bounds) for leaf, dim in zip(leaves, dims, strict=True)]
            parts.append(flatten(of_some(*unflatten(structure, chunk), **kwargs)))
        if parts:
            form = parts[0][1]
            columns = zip(*[results for results, _ in parts], strict=True)
            places = spread(out_dims, form, f"{name}: out_dims")
            pairs = zip(columns, places, strict=True)
            return unflatten(form, [x[0] if d is None else concatenate(*x, dim=d % x[0].ndim) for x, d in pairs])
        layer = Batching(counts[0], randomness)
        inside = [x if d is None else layer.wrapped(_moved(x, d, 0)) for x, d in zip(leaves, dims, strict=True)]
        with layer.entered():
            result, form = flatten(func(*unflatten(structure, inside), **kwargs))
        places = spread(out_dims, form, f"{name}: out_dims")
        return unflatten(form, [_result(layer, x, d, name) for x, d in zip(result, places, strict=True)])

    return named_like(func, "vmap", run)


def spread(dims: Any, structure: Structure, what: str) -> list[int | None]:
    """Return a dimension for each leaf of a structure, of dimensions for all leaves or for parts of it."""
    if dims is None or isinstance(dims, int):
        return [dims] * _size(structure)
    children: list[Any] = []
    if isinstance(dims, Mapping) and set(dims) == set(structure.keys):
        children = [dims[key] for key in structure.keys]
    elif isinstance(dims, (tuple, list)) and not structure.keys:
        children = list(dims)
    if structure.kind is None or len(children) != len(structure.children):
        raise ValueError(f"{what} is a dimension, None, or nested as the tensors are, and is {dims!r}")
    pairs = zip(children, structure.children, strict=True)
    return [dim for child, part in pairs for dim in spread(child, part, what)]


def _size(structure: Structure) -> int:
    return sum(map(_size, structure.children)) + (structure.kind is None)


def _checked(leaf: Any, dim: int | None, what: str) -> int | None:
    """Return the dimension that counts the examples, from the front."""
    if dim is None:
        return None
    if not isinstance(leaf, Tensor):
        raise ValueError(
            f"{what}: an argument with the dimension {dim} is {type(leaf).__name__}; None in in_dims is for arguments "
            "that are not tensors"
        )
    if not -leaf.ndim <= dim < leaf.ndim:
        raise ValueError(f"{what}: in_dims has {dim} for {leaf.spec}, which has no such dimension")
    return dim % leaf.ndim


def _moved(x: Tensor, source: int, target: int) -> Tensor:
    order = [axis for axis in range(x.ndim) if axis != source]
    order.insert(target, source)
    return x if source == target else permute(x, dims=tuple(order))


def _result(layer: Batching, result: Any, dim: int | None, what: str) -> Any:
    """Return one result of the function, with the values of all examples."""
    if not isinstance(result, Tensor):
        if dim is not None:
            raise ValueError(
                f"{what}: the function returned {type(result).__name__}, for which out_dims has to be None"
            )
        return result
    held = layer.examples(result)
    if dim is None:
        if held is not None and held.shape[0] != 1:
            raise ValueError(f"{what}: out_dims has None for {result.spec}, which differs between examples")
        return result if held is None else part(held, 0, 0)
    if not -result.ndim - 1 <= dim <= result.ndim:
        raise ValueError(f"{what}: out_dims has {dim}, and the result of one example is {result.spec}")
    return _moved(layer.of_all(result), 0, dim % (result.ndim + 1))
