"""Function transforms: `grad`, `value_and_grad`, `vjp`, `jacobian`, `hessian`, as in `torch.func` and JAX.

They take a function and return a function, change no ``grad``, and nest: the tape records the inner gradient's
computation whenever an outer one will differentiate it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from typing import Any

from ..autograd.grad_mode import enable_grad
from ..autograd.gradients import detach
from ..autograd.gradients import grad as gradients_of
from ..dtypes import int64
from ..errors import AutogradError
from ..interpreters import is_grad_enabled
from ..primitives import concatenate, constant, reshape, scatter
from ..tensor import Tensor
from ..tree import Structure, flatten, unflatten


class _Depth(threading.local):
    """The number of transforms running in this thread."""

    value = 0


_depth = _Depth()


def _check_float(tensor: Any, what: str) -> None:
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_floating_point:
        found = tensor.spec if isinstance(tensor, Tensor) else type(tensor).__name__
        raise AutogradError(
            "MT405",
            f"{what} is {found}; only float tensors have derivatives",
            fix="pass a float tensor, e.g. mt.tensor(2.0), or choose other arguments with argnums",
        )


def _variable(tensor: Tensor) -> Tensor:
    """Return a tensor of the same value to differentiate by, connected to the outer tape, if any."""
    if tensor._requires_grad and is_grad_enabled():
        return reshape(tensor, shape=tensor.shape)
    leaf = detach(tensor)
    leaf._requires_grad = True
    return leaf


class _Run:
    """One call of a function to differentiate: its variables, its result, and the backward pass."""

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: tuple[int, ...],
        kwargs: dict[str, Any],
    ) -> None:
        self.variables: list[Tensor] = []
        self.structures: list[Structure] = []
        new_args = list(args)
        outer = _depth.value > 0
        for position in argnums:
            if not -len(args) <= position < len(args):
                raise ValueError(
                    f"argnums={position}, but the function was called with {len(args)} positional arguments"
                )
            leaves, structure = flatten(args[position])
            for leaf in leaves:
                _check_float(leaf, f"argument {position}")
                outer = outer or (leaf._requires_grad and is_grad_enabled())
            variables = [_variable(leaf) for leaf in leaves]
            self.variables += variables
            self.structures.append(structure)
            new_args[position] = unflatten(structure, variables)
        self.create_graph = outer
        _depth.value += 1
        try:
            with enable_grad():
                self.result = function(*new_args, **kwargs)
        finally:
            _depth.value -= 1

    def gradients(self, outputs: Sequence[Tensor], cotangents: Sequence[Tensor], retain: bool = False) -> list[Any]:
        """Return the derivatives by the variables, in the structure of each argument; zeros for unused variables."""
        pairs = [(y, g) for y, g in zip(outputs, cotangents, strict=True) if y._requires_grad]
        found: Sequence[Tensor | None] = [None] * len(self.variables)
        if pairs:
            found = gradients_of(
                [y for y, _ in pairs],
                self.variables,
                [g for _, g in pairs],
                retain_graph=retain or self.create_graph,
                create_graph=self.create_graph,
                allow_unused=True,
            )
        full = iter(
            constant(value=0, shape=variable.shape, dtype=variable.dtype) if gradient is None else gradient
            for variable, gradient in zip(self.variables, found, strict=True)
        )
        return [unflatten(structure, full) for structure in self.structures]

    def finished(self, value: Any) -> Any:
        """Return a result for the caller, with history only if an outer transform needs it."""
        leaves, structure = flatten(value)
        if self.create_graph:
            return value
        return unflatten(structure, [detach(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves])


def _as_tuple(argnums: int | Sequence[int]) -> tuple[int, ...]:
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def _named_like(function: Any, what: str, result: Callable[..., Any]) -> Callable[..., Any]:
    if not callable(function):
        kind = type(function).__name__
        raise TypeError(f"a function is differentiated, not {kind}: write mt.grad(f)(x), not mt.grad(f(x))")
    name = getattr(function, "__name__", type(function).__name__)
    result.__name__ = result.__qualname__ = f"{what}({name})"
    return result


def value_and_grad(
    function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the value of `function` and its gradient.

    Args:
        function: returns a tensor of one element; with `has_aux` a pair of it and anything else.
        argnums: which positional arguments to differentiate by. Each is a float tensor or a nested structure of them.
        has_aux: whether there is a second, not differentiated result.

    Returns:
        A function that gives ``(value, gradient)``, or ``((value, aux), gradient)``; the gradient has the structure of
        the argument (a tuple of them if `argnums` is a sequence).

    Raises:
        AutogradError: ``MT404`` if the value is not one number, ``MT405`` for an argument that is not of a float type.

    Example:
        >>> import minitorch as mt
        >>> value, gradient = mt.value_and_grad(lambda x: (x ** 2).sum())(mt.tensor([1.0, 2.0]))
        >>> value.item(), gradient.tolist()
        (5.0, [2.0, 4.0])
    """

    def run(*args: Any, **kwargs: Any) -> Any:
        call = _Run(function, args, _as_tuple(argnums), kwargs)
        loss, aux = call.result if has_aux else (call.result, None)
        _check_float(loss, "the function's result")
        if loss.numel() != 1:
            raise AutogradError(
                "MT404",
                f"the gradient of a function that returns {loss.spec}",
                why="a gradient is the derivative of one number",
                fix="reduce the result (sum, mean), or use mt.jacobian or mt.vjp",
            )
        one = constant(value=1, shape=loss.shape, dtype=loss.dtype)
        gradients = call.gradients([loss], [one])
        gradient = gradients[0] if isinstance(argnums, int) else tuple(gradients)
        value = call.finished(loss)
        return ((value, call.finished(aux)), gradient) if has_aux else (value, gradient)

    return _named_like(function, "value_and_grad", run)


def grad(function: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `function`; see `value_and_grad` for the arguments.

    Example:
        >>> import minitorch as mt
        >>> cube = lambda x: x * x * x
        >>> mt.grad(cube)(mt.tensor(2.0)).item(), mt.grad(mt.grad(cube))(mt.tensor(2.0)).item()
        (12.0, 12.0)
    """
    both = value_and_grad(function, argnums, has_aux)

    def run(*args: Any, **kwargs: Any) -> Any:
        value, gradient = both(*args, **kwargs)
        return (gradient, value[1]) if has_aux else gradient

    return _named_like(function, "grad", run)


def vjp(function: Callable[..., Any], *primals: Any) -> tuple[Any, Callable[..., tuple[Any, ...]]]:
    """Return a function's value, and the function that maps its cotangents to cotangents of the arguments.

    Returns:
        ``(value, pullback)``; ``pullback(cotangent)``, with a cotangent of the value's structure and shapes, returns
        one gradient per primal, and can be called more than once.

    Example:
        >>> import minitorch as mt
        >>> value, pullback = mt.vjp(lambda x: x * x, mt.tensor([1.0, 2.0]))
        >>> pullback(mt.tensor([10.0, 1.0]))[0].tolist()
        [20.0, 4.0]
    """
    call = _Run(function, primals, tuple(range(len(primals))), {})
    outputs, structure = flatten(call.result)
    for output in outputs:
        _check_float(output, "the function's result")

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        cotangents, found = flatten(cotangent)
        if found != structure:
            raise AutogradError("MT404", "the cotangent has another structure than the function's result")
        return tuple(call.gradients(outputs, cotangents, retain=True))

    return call.finished(call.result), pullback


def jacobian(function: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Return a function that returns the derivatives of all elements of the result by those of one argument.

    The result has the shape of the value followed by the shape of the argument. It takes one walk over the tape per
    element of the value.

    Example:
        >>> import minitorch as mt
        >>> mt.jacobian(lambda x: x * x)(mt.tensor([1.0, 2.0])).tolist()
        [[2.0, 0.0], [0.0, 4.0]]
    """

    def run(*args: Any, **kwargs: Any) -> Tensor:
        call = _Run(function, args, (argnums,), kwargs)
        value = call.result
        _check_float(value, "the function's result")
        if len(call.variables) != 1 or not isinstance(args[argnums], Tensor):
            raise AutogradError("MT405", f"argument {argnums} is a structure; jacobian takes a tensor")
        wanted, size = call.variables[0], value.numel()
        rows = []
        for position in range(size):
            (row,) = call.gradients([value], [_unit(position, value)], retain=True)
            rows.append(reshape(row, shape=(1, *wanted.shape)))
        if not rows:
            return constant(value=0, shape=value.shape + wanted.shape, dtype=wanted.dtype)
        result: Tensor = call.finished(reshape(concatenate(*rows, dim=0), shape=value.shape + wanted.shape))
        return result

    return _named_like(function, "jacobian", run)


def _unit(position: int, like: Tensor) -> Tensor:
    """Return zeros of another tensor's shape with a one at a position."""
    size = like.numel()
    zeros = constant(value=0, shape=(size,), dtype=like.dtype)
    one = constant(value=1, shape=(1,), dtype=like.dtype)
    at = constant(value=position, shape=(1,), dtype=int64)
    return reshape(scatter(zeros, one, at), shape=like.shape)


def hessian(function: Callable[..., Any], argnums: int = 0) -> Callable[..., Any]:
    """Return a function that returns the second derivatives of a scalar `function` by one argument.

    Example:
        >>> import minitorch as mt
        >>> mt.hessian(lambda x: (x ** 3).sum())(mt.tensor([1.0, 2.0])).tolist()
        [[6.0, 0.0], [0.0, 12.0]]
    """
    return _named_like(function, "hessian", jacobian(grad(function, argnums), argnums))
