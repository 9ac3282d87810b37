"""Statements about derivatives: by the tape, of functions, of derivatives, and of what is computed again for them."""

from __future__ import annotations

from .program import Ref, Statement
from .scope import Scope, UnfitError
from .values import FLOATS

SMALL = 12  # elements of what has a matrix of second derivatives
STEPS = (
    "({}).sin()", "({}).exp()", "({}).tanh()", "({}) * t", "({}) + 2", "({}).square()", "({}).sigmoid()",
    "mt.relu({})", "mt.softmax({}, 0)", "({}).cumsum(0)", "({}).amax(0)", "({}).T", "({}).flip(0)", "({})[::2]",
    "({}) / 3",
)  # fmt: skip
# Functions of functions and what they are given, of a tensor in the place of {x} and a function of t in that of {f}.
FUNCTIONALS = (
    "mt.checkpoint(lambda t: FUNCTION, {})",
    "mt.grad(lambda t: (FUNCTION).sum())({})",
    "mt.value_and_grad(lambda t: (FUNCTION).sum())({})",
    "mt.grad(lambda t: mt.grad(lambda t: (FUNCTION).sum())(t).square().sum())({})",
    "(lambda pair: pair[1](pair[0].detach()))(mt.vjp(lambda t: FUNCTION, {}))",
    "mt.jacobian(lambda t: FUNCTION)({})",
    "mt.hessian(lambda t: (FUNCTION).sum())({})",
    "mt.func.jacfwd(lambda t: FUNCTION)({})",
    "mt.vmap(lambda t: FUNCTION)({})",
    "mt.vmap(mt.grad(lambda t: (FUNCTION).sum()), in_dims=-1, out_dims=-1)({})",
    "mt.grad(lambda x: mt.vmap(lambda t: FUNCTION)(x).square().sum())({})",
    "(lambda x: mt.func.jvp(lambda t: FUNCTION, (x,), (x,))[1])({})",
)


def functional(scope: Scope) -> Statement:
    """A derivative of a function that is made up on the spot, by one tensor."""
    form = scope.pick(*FUNCTIONALS)
    limit = SMALL if any(name in form for name in ("jac", "hessian")) else 1000
    x = scope.existing(lambda tensor: tensor.is_floating_point() and tensor.ndim > 0 and tensor.numel() <= limit)
    if x is None:
        raise UnfitError
    function = "t"
    for _ in range(scope.pick(1, 2, 3)):
        function = scope.pick(*STEPS).format(function)
    return Statement((scope.name(),), form.replace("FUNCTION", function), (x,))


def loss(scope: Scope) -> list[Statement]:
    """The weighted sum of one or two values that depend on arguments with a gradient; the last statement gives it."""
    names = [name for name, value in scope.values.items() if value.requires_grad and not value.is_leaf]
    statements: list[Statement] = []
    for name in scope.random.sample(names, min(len(names), scope.pick(1, 1, 2))):
        tensor, weighted, total = scope.values[name], scope.name(), scope.name()
        dtype = tensor.dtype.name if tensor.dtype.name in FLOATS else "float32"
        weight = scope.input(tuple(tensor.shape), dtype, "whole")
        before = [statements[-1].gives[0]] if statements else []
        statements.append(Statement((weighted,), "mt.mul", (Ref(name), weight)))
        statements.append(Statement((total,), "mt.sum", (Ref(weighted),)))
        if before:
            statements.append(Statement((scope.name(),), "mt.add", (Ref(before[0]), Ref(total))))
    return statements


def by_the_tape(scope: Scope, total: str) -> list[Statement]:
    """The derivatives of a loss: kept in the arguments, or given, or of the second order."""
    leaves = [each.name for each in scope.inputs if each.requires_grad]
    if scope.chance(0.6):
        return [Statement((), ".backward", (Ref(total),))]
    wanted = scope.pick(*leaves)
    given, length = scope.name(), scope.name()
    again = scope.chance(0.5)
    form = "mt.autograd.grad({}, {}, create_graph=True)[0]" if again else "mt.autograd.grad({}, {})[0]"
    statements = [Statement((given,), form, (Ref(total), Ref(wanted)))]
    if again:
        statements.append(Statement((length,), "({} * {}).sum()", (Ref(given), Ref(given))))
        statements.append(Statement((), ".backward", (Ref(length),)))
    return statements
