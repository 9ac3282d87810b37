"""Derivatives of functions: `grad`, `grad_and_value`, `vjp`, `jvp`, as in `torch.func` and JAX.

They take a function and return a function, change no ``grad``, and nest: the tape records the inner gradient's
computation whenever an outer one will differentiate it.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import Any

from ..autograd.grad_mode import enable_grad
from ..autograd.gradients import detach
from ..autograd.gradients import grad as gradients_of
from ..errors import AutogradError
from ..interpreters import is_grad_enabled
from ..primitives import constant, reshape
from ..tensor import Batched, Tensor, needs_gradient, with_value
from ..tree import Structure, flatten, unflatten
from .batching import own_value
from .mapping import named_like


class _Depth(threading.local):
    """The number of transforms running in this thread."""

    value = 0


_depth = _Depth()


@contextmanager
def _inside() -> Iterator[None]:
    """Run a `with` block inside a transform: what is computed there may be differentiated again."""
    _depth.value += 1
    try:
        yield
    finally:
        _depth.value -= 1


def _is_followed(leaves: Sequence[Any]) -> bool:
    """Return whether derivatives by some tensors may be asked for outside of the transform that begins."""
    return _depth.value > 0 or (is_grad_enabled() and any(map(needs_gradient, leaves)))


def check_float(tensor: Any, what: str) -> None:
    """Refuse what has no derivative.

    Raises:
        AutogradError: ``MT405`` for anything but a float tensor.
    """
    if not isinstance(tensor, Tensor) or not tensor.dtype.is_floating_point:
        found = tensor.spec if isinstance(tensor, Tensor) else type(tensor).__name__
        raise AutogradError(
            "MT405",
            f"{what} is {found}; only float tensors have derivatives",
            fix="pass a float tensor, e.g. mt.tensor(2.0), or choose other arguments with argnums",
        )


def _variable(tensor: Tensor) -> Tensor:
    """Return a tensor of the same value to differentiate by, connected to the outer tape, if any."""
    own = own_value(tensor)
    if own._requires_grad and is_grad_enabled():
        return reshape(own, shape=own.shape)
    leaf = with_value(own._value) if isinstance(own._value, Batched) else detach(own)  # below, history is kept
    leaf._requires_grad = True
    return leaf


def _detached(value: Any) -> Any:
    leaves, structure = flatten(value)
    return unflatten(structure, [detach(leaf) if isinstance(leaf, Tensor) else leaf for leaf in leaves])


class Run:
    """One call of a function to differentiate: its variables, its result, and the backward pass.

    Attributes:
        variables: the leaves of the arguments that derivatives are asked for.
        structures: of these arguments.
        create_graph: whether the derivatives may be differentiated again.
        result: of the function.
        aux: what else it returned, if it does (`has_aux`).
    """

    def __init__(
        self,
        function: Callable[..., Any],
        args: tuple[Any, ...],
        argnums: Sequence[int],
        kwargs: dict[str, Any],
        has_aux: bool = False,
        create_graph: bool = False,
    ) -> None:
        self.variables: list[Tensor] = []
        self.structures: list[Structure] = []
        self.create_graph = create_graph
        new_args = list(args)
        for position in argnums:
            if not -len(args) <= position < len(args):
                raise ValueError(
                    f"argnums={position}, but the function was called with {len(args)} positional arguments"
                )
            leaves, structure = flatten(args[position])
            for leaf in leaves:
                check_float(leaf, f"argument {position}")
            self.create_graph = self.create_graph or _is_followed(leaves)
            variables = list(map(_variable, leaves))
            self.variables += variables
            self.structures.append(structure)
            new_args[position] = unflatten(structure, variables)
        with _inside(), enable_grad():
            result = function(*new_args, **kwargs)
        self.result: Any = result
        self.aux: Any = None
        if has_aux:
            self.result, self.aux = result

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
        return value if self.create_graph else _detached(value)


def as_tuple(argnums: int | Sequence[int]) -> tuple[int, ...]:
    """Return the positions of arguments as a tuple."""
    return (argnums,) if isinstance(argnums, int) else tuple(argnums)


def float_leaves(value: Any, what: str = "the function's result") -> tuple[list[Tensor], Structure]:
    """Return the leaves of a structure of float tensors, and the structure.

    Raises:
        AutogradError: ``MT405`` if one is anything else.
    """
    leaves, structure = flatten(value)
    for leaf in leaves:
        check_float(leaf, what)
    return leaves, structure


def value_and_grad(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the value of `func` and its gradient, as JAX's; PyTorch's is `grad_and_value`.

    Args:
        func: returns a tensor of one element; with `has_aux` a pair of it and anything else.
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

    return _differentiated("value_and_grad", func, argnums, has_aux, lambda value, gradient: (value, gradient))


def _differentiated(
    what: str,
    func: Callable[..., Any],
    argnums: int | Sequence[int],
    has_aux: bool,
    arrange: Callable[[Any, Any], Any],
) -> Callable[..., Any]:
    def run(*args: Any, **kwargs: Any) -> Any:
        call = Run(func, args, as_tuple(argnums), kwargs, has_aux)
        loss = call.result
        check_float(loss, "the function's result")
        if loss.numel() != 1:
            raise AutogradError(
                "MT404",
                f"the gradient of a function that returns {loss.spec}",
                why="a gradient is the derivative of one number",
                fix="reduce the result (sum, mean), or use mt.jacobian or mt.vjp",
            )
        one = constant(value=1, shape=loss.shape, dtype=loss.dtype)
        gradients = call.gradients([loss], [one])
        value = call.finished(loss)
        value = (value, call.finished(call.aux)) if has_aux else value
        return arrange(value, gradients[0] if isinstance(argnums, int) else tuple(gradients))

    return named_like(func, what, run)


def grad_and_value(
    func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False
) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func` and its value; see `value_and_grad` for the arguments.

    Example:
        >>> import minitorch as mt
        >>> gradient, value = mt.func.grad_and_value(lambda x: x * x)(mt.tensor(3.0))
        >>> gradient.item(), value.item()
        (6.0, 9.0)
    """
    return _differentiated("grad_and_value", func, argnums, has_aux, lambda value, gradient: (gradient, value))


def grad(func: Callable[..., Any], argnums: int | Sequence[int] = 0, has_aux: bool = False) -> Callable[..., Any]:
    """Return a function that returns the gradient of `func`; see `value_and_grad` for the arguments.

    Example:
        >>> import minitorch as mt
        >>> cube = lambda x: x * x * x
        >>> mt.grad(cube)(mt.tensor(2.0)).item(), mt.grad(mt.grad(cube))(mt.tensor(2.0)).item()
        (12.0, 12.0)
    """

    def arrange(value: Any, gradient: Any) -> Any:
        return (gradient, value[1]) if has_aux else gradient

    return _differentiated("grad", func, argnums, has_aux, arrange)


def vjp(func: Callable[..., Any], *primals: Any, has_aux: bool = False) -> tuple[Any, ...]:
    """Return a function's value, and the function that maps its cotangents to cotangents of the arguments.

    Args:
        func: takes float tensors, or nested structures of them, and returns such.
        primals: its arguments.
        has_aux: whether it returns a pair of that and anything else.

    Returns:
        ``(value, pullback)``, or ``(value, pullback, aux)``; ``pullback(cotangent)``, with a cotangent of the value's
        structure and shapes, returns one gradient per primal, and can be called more than once.

    Example:
        >>> import minitorch as mt
        >>> value, pullback = mt.vjp(lambda x: x * x, mt.tensor([1.0, 2.0]))
        >>> pullback(mt.tensor([10.0, 1.0]))[0].tolist()
        [20.0, 4.0]
    """
    call = Run(func, primals, range(len(primals)), {}, has_aux)
    outputs, structure = float_leaves(call.result)

    def pullback(cotangent: Any) -> tuple[Any, ...]:
        cotangents, found = flatten(cotangent)
        if found != structure:
            raise AutogradError("MT404", "the cotangent has another structure than the function's result")
        return tuple(call.gradients(outputs, cotangents, retain=True))

    aux = (call.finished(call.aux),) if has_aux else ()
    return call.finished(call.result), pullback, *aux


def jvp(
    func: Callable[..., Any], primals: Any, tangents: Any, *, strict: bool = False, has_aux: bool = False
) -> tuple[Any, ...]:
    """Return a function's value, and its derivative along a direction: the Jacobian times the tangents.

    It is computed in reverse, twice: the pullback of `vjp` is linear in its cotangent, and its own pullback maps
    tangents to tangents. In a graph, what serves the first walk alone is dead code.

    Args:
        func: takes float tensors, or nested structures of them, and returns such.
        primals: a tuple of its arguments.
        tangents: the direction, of the structure and the shapes of the primals.
        strict: whether a result that does not depend on the primals is an error, and not of derivative 0.
        has_aux: whether the function returns a pair of its result and anything else.

    Returns:
        ``(value, derivative)``, or ``(value, derivative, aux)``.

    Example:
        >>> import minitorch as mt
        >>> x, v = mt.tensor([1.0, 2.0]), mt.tensor([1.0, 10.0])
        >>> mt.func.jvp(lambda x: x * x, (x,), (v,))
        (tensor([1., 4.]), tensor([ 2., 40.]))
    """
    if not isinstance(primals, tuple) or not isinstance(tangents, tuple):
        raise TypeError("jvp takes tuples of primals and of tangents: jvp(f, (x,), (v,))")
    (points, structure), (directions, found) = float_leaves(primals, "a primal"), float_leaves(tangents, "a tangent")
    if found != structure or [each.shape for each in directions] != [each.shape for each in points]:
        raise AutogradError("MT404", "the tangents have another structure or other shapes than the primals")
    followed = _is_followed([*points, *directions])
    with _inside():
        value, pullback, *aux = vjp(func, *primals, has_aux=has_aux)
    outputs, form = flatten(value)
    if strict and not all(output._requires_grad for output in outputs):
        raise AutogradError("MT405", "a result of the function does not depend on the primals")
    zeros = tuple([constant(value=0, shape=output.shape, dtype=output.dtype) for output in outputs])
    call = Run(lambda *c: pullback(unflatten(form, c)), zeros, range(len(zeros)), {}, create_graph=followed)
    derivative = unflatten(form, call.gradients(flatten(call.result)[0], directions))
    return call.finished(value), derivative, *map(call.finished, aux)
