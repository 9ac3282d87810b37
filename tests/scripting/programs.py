"""Functions with Python's control flow, and arguments that take all of their ways."""

from __future__ import annotations

import contextlib
from collections.abc import Callable
from typing import Any, NamedTuple

import minitorch as mt


class Program(NamedTuple):
    """A function, arguments for some calls, and whether a recording has its gradient."""

    function: Callable[..., Any]
    calls: list[tuple[Any, ...]]
    has_gradient: bool


PROGRAMS: list[Program] = []
NUMBERS = [(mt.tensor(value),) for value in (-2.0, 0.5, 3.0)]
VECTORS = [(mt.tensor(value),) for value in ([1.0, 2.0], [-3.0, 1.0], [0.25, 0.5])]
ROWS = [(mt.tensor(value),) for value in ([[1.0, 2], [-3, 1], [4, 2]], [[9.0, 9], [1, 1]], [[-1.0, 0]])]
COUNTS = [(mt.tensor(value),) for value in (0, 1, 2, 7)]


def program(calls: list[tuple[Any, ...]], has_gradient: bool = True) -> Callable[[Callable[..., Any]], Any]:
    """Enter a function into the table."""

    def enter(function: Callable[..., Any]) -> Any:
        PROGRAMS.append(Program(function, calls, has_gradient))
        return function

    return enter


@program(NUMBERS)
def if_alone(x):
    y = x
    if x > 0:
        y = x * 2
    return y


@program(NUMBERS)
def if_else(x):
    if x > 0:
        y = x * 2
        z = y + 1
    else:
        y, z = x - 1, -x
    return y, z


@program(NUMBERS)
def elif_chain(x):
    if x < -1:
        y = x * x
    elif x < 1:
        y = x.exp()
    elif x < 2:
        y = x * 7
    else:
        y = x.sin()
    return y


@program(NUMBERS)
def early_return(x):
    if x < 0:
        return -x
    y = x * 3
    if y > 2:
        return y
    y = y + 10
    return y * y


@program(NUMBERS)
def return_of_partial_branches(x):
    if x < 1:
        if x < 0:
            return x * 5
        y = x + 2
    else:
        y = x * x
    return y * 2


@program(NUMBERS)
def both_return(x):
    if x > 0:
        return x, 1
    else:
        return x * 2, 2


@program(NUMBERS)
def a_number_or_a_tensor(x):
    if x > 0:
        return 0.0
    return x * 2


@program(NUMBERS)
def logic(x):
    if (x > -1 and x < 1) or not x < 2:
        return x * 2
    return x * 3


@program(NUMBERS)
def values_of_logic(x):
    return (x > 0 and x * 2 > 1), (x > 0 or x < -1), not x > 0


@program(NUMBERS)
def chained(x):
    return x * 2 if -1 < x * x <= 4 < 5 else x


@program(NUMBERS)
def conditional_expressions(x):
    return (x if x > 0 else -x) + (1 if x > 1 else x)


@program([(*call, flag) for call in NUMBERS for flag in (True, False)])
def python_conditions(x, flag):
    if flag and x.ndim == 0:
        x = x * 2
    if flag or x > 0:
        x = x + 1
    return x if not flag else -x


@program(NUMBERS)
def assigned_types(x):
    n = 0
    label = "same"
    if x > 0:
        n = 1
        label = "same"
    return x * n if label == "same" else None


@program(NUMBERS)
def containers(x):
    pair = (x, {"a": x * 2, "b": [1, x]})
    if x > 0:
        pair = (x + 1, {"a": x, "b": [2, x * x]})
    return pair


@program(NUMBERS, has_gradient=False)
def while_alone(x):
    while x < 100:
        x = x * x + 2
    return x


@program(NUMBERS, has_gradient=False)
def while_with_numbers(x):
    count, total = 0, 0.0
    while x < 40:
        x = x + 9
        count += 1
        total += x * 0.5
    else:
        total += 1000
    return x, count, total


@program(NUMBERS, has_gradient=False)
def while_break_else(x):
    i = 0
    while i < 10:
        i += 1
        x = x + 1
        if x > 5:
            break
    else:
        x = -x
    return x, i


@program(NUMBERS, has_gradient=False)
def while_true(x):
    while True:
        y = x * 2
        x = y + 1
        if y > 20 or y < -20:
            break
    return x, y


@program(NUMBERS, has_gradient=False)
def while_true_without_break(x):
    n = 0
    while True:
        x = x + 1
        n += 1
        if x > 4:
            return x, n


@program(NUMBERS)
def annotated(x):
    if x > 0:
        y: mt.Tensor = x * 2
    else:
        y = -x
    return y


@program(NUMBERS, has_gradient=False)
def while_continue(x):
    seen = 0
    while x < 12:
        x = x + 1
        if x % 2 < 1:
            continue
        seen += 1
    return seen, x


@program(NUMBERS, has_gradient=False)
def while_return(x):
    while x < 50:
        x = x * 2 + 3
        if x > 20:
            if x < 30:
                return x * 1000
            x = x + 0.5
    return x


@program(NUMBERS, has_gradient=False)
def while_in_while(x):
    n, m = 0, 0
    while x < 30:
        y = x
        while y < 20:
            y = y + 7
            if y > 15:
                break
            n += 1
        x = x + y
        m += 1
    return x, n, m


@program(COUNTS, has_gradient=False)
def fibonacci(n):
    a, b = 0, 1
    while b < n:
        t = a
        a = b
        b += t
    return a, b


@program(COUNTS, has_gradient=False)
def for_range(n):
    total = mt.zeros(())
    for i in range(n):
        total = total + i * 2
    return total


@program(COUNTS, has_gradient=False)
def for_range_steps(n):
    total = 0
    for i in range(n, -1, -2):
        total = total * 2 + i
    for i in range(1, n, 3):
        if i > 3:
            break
        total += i
    else:
        total += 100
    return total


@program(COUNTS, has_gradient=False)
def for_range_return(n):
    for i in range(n):
        if i * i > 8:
            return i
    return n * 100


@program(NUMBERS)
def unrolled_with_break(x):
    y = x
    for i in range(4):
        y = y * 2 + i
        if y > 10:
            break
    return y, i


@program(NUMBERS)
def unrolled_with_continue_and_else(x):
    for step in (1.0, 2.0, 3.0):
        if x * step > 2:
            continue
        x = x + step
    else:
        x = x * 0.5
    return x


@program(NUMBERS)
def unrolled_with_return(x):
    for i in range(3):
        for j in range(2):
            x = x + 0.5
            if x > i + j:
                return x * 10
    return x


@program(ROWS)
def for_rows(xs):
    total = mt.zeros(2)
    for x in xs:
        total = total * 0.5 + x.sin()
    return total


@program(ROWS)
def for_rows_from_none(xs):
    h = None
    for x in xs:
        h = x if h is None else h * 0.5 + x.sin()
    return h


@program(NUMBERS)
def number_under_two_names(x):
    n = 0
    for i in range(3):
        if x > i:
            n += 1
    m = n
    n += 10
    return m, n


@program(NUMBERS)
def in_place(x):
    y = x * 1
    if x > 0:
        y += 5
    return y


@program(ROWS)
def for_rows_last(xs):
    total = 0
    for x in xs:
        y = x * 2
        total = total + y.sum()
    return total, x, y


@program(ROWS)
def for_rows_in_place(xs):
    total = mt.zeros(2)
    for x in xs:
        total += x * x
    total *= 2
    return total


@program(ROWS)
def for_rows_break(xs):
    h = mt.zeros(2)
    for x in xs:
        if x.sum() < 0:
            break
        h = h + x.exp()
    return h


@program(ROWS)
def for_rows_jumps(xs):
    h, n = mt.ones(2), 0
    for x in xs:
        if x[0] < 0:
            continue
        if x.sum() > 5:
            h = h * x
        else:
            h = h + x
        n += 1
        if h.sum() > 15:
            return h, n
    else:
        h = -h
    return h, n


@program(ROWS)
def for_rows_else(xs):
    y = xs[0]
    for x in xs:
        if x.sum() > 8:
            y = x * y
            break
    else:
        y = xs[0] * 3
    return y


@program(ROWS)
def enumerated(xs):
    total = mt.zeros(2)
    for i, (x, y) in enumerate(zip(xs, xs * 2), 1):  # noqa: B905
        total = total + i * x - y if i % 2 == 1 else total
    return total


@program(ROWS)
def enumerated_rows(xs):
    total = mt.zeros(2)
    for i, x in enumerate(xs):
        total += x * i
    return total


@program(ROWS)
def python_iterators(xs):
    total = mt.zeros(2)
    for k, x in enumerate(xs, start=2):
        total = total + x * k
    for x, k in zip(xs, [1, 2]):  # noqa: B905
        total = total - x if x.sum() > k else total
    for x in reversed(xs):
        total = total * 0.5 + x
    return total


@program(ROWS)
def nested_rows(xs):
    total = mt.zeros(())
    for x in xs:
        part = mt.zeros(())
        for y in x:
            if y < 0:
                continue
            part = part + y * y
        if part > 20:
            return total * 100
        total = total + part
    return total


@program(ROWS)
def rows_in_a_branch(xs):
    h = mt.zeros(2)
    if xs.sum() > 0:
        for x in xs:
            h = h + x
    else:
        for x in xs:
            h = h - x
    return h


@program(VECTORS)
def item_assignment(x):
    y = mt.zeros(2)
    if x[0] > 0:
        y[0] = x[0] * 3
    else:
        y[1] = x[1]
    return y


@program(VECTORS)
def items_in_a_loop(x):
    out = mt.zeros(2, 3)
    i = 0
    for row in mt.stack([x, x * 2]):
        out[i, 1] = row.sum()
        i = i + 1
    return out


@program(VECTORS)
def in_place_in_a_branch(x):
    y = x * 1
    if x.sum() > 0:
        y += x
    y *= 2
    return y


@program(VECTORS)
def with_and_try(x):
    steps = []
    with contextlib.suppress(KeyError):
        if x.sum() > 0:
            x = x * 2
        steps.append(1)
    try:
        if x.sum() > 4:
            return x * 3
        y = x + 1
    except ValueError:
        y = x
    else:
        y = y * 2
    finally:
        steps.append(2)
    return y * len(steps)


@program([(*call, k) for call in VECTORS for k in (0, 1, 2)])
def matched(x, k):
    match k:
        case 0:
            if x.sum() > 0:
                return x
            y = x * 2
        case 1 | 3:
            y = x * 5
        case other:
            y = x * other
    return y + 1


@program(VECTORS)
def inner_functions(x):
    scale = 2.0

    def inner(v):
        if v.sum() > 0:
            return v * scale
        return v - scale

    if x[0] > 0:
        x = inner(x)
    apply = lambda v: v if v.sum() > 3 else v * 9  # noqa: E731
    return apply(x) + sum(inner(x * k) for k in range(2))


@program(VECTORS)
def walrus(x):
    if (total := x.sum()) > 0:
        x = x * total
    return x + total


@program(VECTORS)
def deleted(x):
    y = x * 2
    if x.sum() > 0:
        z = y + 1
        x = z * x
        del z
    return x, [y + 1 for y in (1, 2)], {v: v * 2 for v in (3,)}


@program(VECTORS)
def comprehension(x):
    parts = [v * 2 if v > 0 else v for v in x]
    return mt.stack(parts), [v for v in range(4) if v % 2 and v > 1]


@program(VECTORS)
def shadowed(x):
    range = lambda n: [x, x * 2, x * n]  # noqa: E731
    total = mt.zeros(2)
    for part in range(3):
        if part.sum() > 4:
            break
        total = total + part
    return total


@program(VECTORS)
def many_returns(x):
    if x[0] > 2:
        return x
    if x[0] > 1:
        return x * 2
    if x[0] > 0.9:
        return x * 3
    if x[1] > 2:
        return x * 4
    if x[1] > 0.75:
        return x * 5
    return x * 6


@program([(xs, y) for (xs,) in ROWS for y in (mt.tensor(1.0), mt.tensor(-1.0))])
def recurrent(xs, gate):
    h = mt.zeros(2)
    w = mt.tensor([[0.5, -0.25], [0.125, 1.0]])
    for x in xs:
        if gate > 0 and x.sum() > -1:
            h = (h @ w + x).tanh()
        elif x[0] > 0:
            h = h * gate
    return h


@program([(mt.tensor([[3.0, 1.0], [1.0, 2.0]]),), (mt.tensor([[1.0, 0.0], [0.0, 1.0]]),)], has_gradient=False)
def power_iteration(a):
    v = mt.ones(2)
    for _ in range(50):
        w = a @ v
        w = w / (w * w).sum().sqrt()
        if (w - v).abs().max() < 1e-4:
            break
        v = w
    return v


@program(COUNTS, has_gradient=False)
def newton(n):
    guess, count = n * 1.0, 0
    while abs(guess * guess - n) > 1e-3 and count < 30:
        guess = 0.5 * (guess + n / guess)
        count += 1
    return guess, count
