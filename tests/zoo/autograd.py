"""Solutions of exercise 02, autograd."""

import math
from typing import Any

from minitorch.classroom.asks.autograd import alternatives
from tests.zoo import right, wrong

# --- shares -----------------------------------------------------------------------------------------------------


@right("autograd.shares")
def goes_through_a_table(name, g, operands, result):
    a, b = (*(operands or ()), math.nan, math.nan)[:2]
    slopes = {
        "add": [1.0, 1.0],
        "sub": [1.0, -1.0],
        "neg": [-1.0],
        "mul": [b, a],
        "div": [1 / b, -a / b / b],
        "exp": [result],
        "sqrt": [0.5 / result if result else math.nan],
        "tanh": [(1 + result) * (1 - result) if result else math.nan],
    }
    return tuple(g * slope for slope in slopes[name])


@wrong("autograd.shares", says="a share is the cotangent times the derivative", points=0)
def forgets_the_cotangent(name, g, operands, result):
    a, b = operands or (0.0, 1.0)
    y = result or 1.0
    return {
        "add": (1.0, 1.0),
        "sub": (1.0, -1.0),
        "neg": (-1.0,),
        "mul": (b, a),
        "div": (1 / b, -a / b**2),
        "exp": (y,),
        "sqrt": (0.5 / y,),
        "tanh": (1 - y * y,),
    }[name]


@wrong("autograd.shares", says="times the *other* factor", points=9)
def multiplies_by_the_factor_itself(name, g, operands, result):
    a, b = operands or (0.0, 1.0)
    y = result or 1.0
    return {
        "add": (g, g),
        "sub": (g, -g),
        "neg": (-g,),
        "mul": (g * a, g * b),
        "div": (g / b, -g * a / b**2),
        "exp": (g * y,),
        "sqrt": (g * 0.5 / y,),
        "tanh": (g * (1 - y * y),),
    }[name]


@wrong("autograd.shares", says="a sign is wrong", points=5)
def forgets_signs(name, g, operands, result):
    a, b = operands or (0.0, 1.0)
    y = result or 1.0
    return {
        "add": (g, g),
        "sub": (g, g),
        "neg": (-g,),
        "mul": (g * b, g * a),
        "div": (g / b, g * a / b**2),
        "exp": (g * y,),
        "sqrt": (g * 0.5 / y,),
        "tanh": (g * (1 - y * y),),
    }[name]


@wrong("autograd.shares", says="the function is applied twice", points=10)
def takes_the_result_for_the_operand(name, g, operands, result):
    a, b = operands or (0.0, 1.0)
    y = result or 1.0
    return {
        "add": (g, g),
        "sub": (g, -g),
        "neg": (-g,),
        "mul": (g * b, g * a),
        "div": (g / b, -g * a / b**2),
        "exp": (g * math.exp(y),),
        "sqrt": (g * 0.5 / math.sqrt(y),),
        "tanh": (g * (1 - math.tanh(y) ** 2),),
    }[name]


# --- difference -------------------------------------------------------------------------------------------------


@right("autograd.difference")
def moves_a_copy_for_each_element(f, x):
    found = []
    for place, number in enumerate(x):
        step = 1e-5 * max(1.0, abs(number))
        above, below = list(x), list(x)
        above[place], below[place] = number + step, number - step
        found.append((f(above) - f(below)) / (above[place] - below[place]))
    return found


@wrong("autograd.difference", says="f was called on one side only", points=0)
def looks_to_one_side(f, x):
    found = []
    for place, number in enumerate(x):
        step = 1e-6 * max(1.0, abs(number))
        moved = list(x)
        moved[place] = number + step
        found.append((f(moved) - f(x)) / step)
    return found


@wrong("autograd.difference", says="so small beside the number that rounding is most of it", points=0)
def takes_the_smallest_step(f, x):
    found = []
    for place, number in enumerate(x):
        above, below = list(x), list(x)
        above[place], below[place] = number + 1e-11, number - 1e-11
        found.append((f(above) - f(below)) / 2e-11)
    return found


@wrong("autograd.difference", says="so small beside the number that rounding is most of it", points=12)
def has_one_step_for_all_numbers(f, x):
    found = []
    for place, number in enumerate(x):
        above, below = list(x), list(x)
        above[place], below[place] = number + 1e-5, number - 1e-5
        found.append((f(above) - f(below)) / 2e-5)
    return found


@wrong("autograd.difference", says="move a copy, the list is the caller's", points=12)
def moves_there_and_back(f, x):
    found = []
    for place in range(len(x)):
        step = 1e-5 * max(1.0, abs(x[place]))
        x[place] += step
        above = f(x)
        x[place] -= 2 * step
        found.append((above - f(x)) / (2 * step))
        x[place] += step
    return found


@wrong("autograd.difference", says="several elements were moved at once", points=4)
def moves_all_at_once(f, x):
    steps = [1e-5 * max(1.0, abs(number)) for number in x]
    above = f([number + step for number, step in zip(x, steps, strict=True)])
    below = f([number - step for number, step in zip(x, steps, strict=True)])
    return [(above - below) / (2 * step) for step in steps]


# --- walk -------------------------------------------------------------------------------------------------------


@right("autograd.walk")
def turns_a_depth_first_order_round(notes, end):
    done: list[Any] = []
    seen, pending = set(), [(end, False)]
    while pending:
        name, is_left = pending.pop()
        if is_left:
            done.append(name)
        elif name in notes and name not in seen:
            seen.add(name)
            pending.append((name, True))
            pending += [(operand, False) for operand in notes[name]]
    return done[::-1]


@wrong("autograd.walk", says="which still has a share for it")
def goes_deep_with_marks(notes, end):
    found, pending = [], [end]
    while pending:
        name = pending.pop()
        if name in notes and name not in found:
            found.append(name)
            pending += notes[name]
    return found


@wrong("autograd.walk", says="this is the order of the way forward")
def gives_the_way_forward(notes, end):
    done: dict[str, None] = {}
    pending = [end]
    while pending:
        name = pending[-1]
        missing = [operand for operand in notes[name] if operand in notes and operand not in done]
        pending += missing
        if not missing:
            done[pending.pop()] = None
    return list(done)


@wrong("autograd.walk", says="from which no share comes", points=15)
def waits_for_every_user(notes, end):
    users = dict.fromkeys(notes, 0)
    for operands in notes.values():
        for operand in set(operands) & set(notes):
            users[operand] += 1
    found, pending = [], [end]
    while pending:
        name = pending.pop()
        found.append(name)
        for operand in set(notes[name]) & set(notes):
            users[operand] -= 1
            if users[operand] == 0:
                pending.append(operand)
    return found


@wrong("autograd.walk", says="does not depend on it", points=15)
def walks_over_the_whole_tape(notes, end):
    left = {name: {operand for operand in operands if operand in notes} for name, operands in notes.items()}
    users: dict[str, set[str]] = {name: set() for name in notes}
    for name, operands in left.items():
        for operand in operands:
            users[operand].add(name)
    ready = [name for name in notes if not users[name]]
    found = []
    while ready:
        name = ready.pop()
        found.append(name)
        for operand in left[name]:
            users[operand].discard(name)
            if not users[operand]:
                ready.append(operand)
    return found


@wrong("autograd.walk", says="it calls itself too often", points=17)
def recurses_over_the_tape(notes, end):
    done: list[str] = []

    def visit(name):
        if name in notes and name not in done:
            for operand in notes[name]:
                visit(operand)
            done.append(name)

    visit(end)
    return done[::-1]


# --- backward_pass ----------------------------------------------------------------------------------------------


@right("autograd.backward_pass")
def keeps_cotangents_in_the_results(tape, end):
    made = {id(entry.result) for entry in tape.entries}
    end.grad = 1.0
    while tape.entries:
        entry = tape.entries.pop()
        if entry.result.grad is not None:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                operand.grad = (operand.grad or 0.0) + pull(entry.result.grad)
            if id(entry.result) in made:
                entry.result.grad = None


@wrong("autograd.backward_pass", says="a share replaced the one that came before")
def overwrites_shares(tape, end):
    made = {entry.result for entry in tape.entries}
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


@wrong("autograd.backward_pass", says="KeyError", points=20, part="what the end does not depend on")
def expects_a_cotangent_everywhere(tape, end):
    made = {entry.result for entry in tape.entries}
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        for operand, pull in zip(entry.operands, entry.pulls, strict=True):
            cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


@wrong("autograd.backward_pass", says="the walk began with cotangents of the step before", part="a second step")
def keeps_cotangents_between_calls(tape, end, cotangents={}):  # noqa: B006  that is the mistake
    made = {entry.result for entry in tape.entries}
    cotangents[end] = 1.0
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


@wrong("autograd.backward_pass", says="`grad` adds up until somebody clears it")
def replaces_the_gradient(tape, end):
    made = {entry.result for entry in tape.entries}
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = cotangent


@wrong("autograd.backward_pass", says="entries are on the tape afterwards", points=19)
def leaves_the_tape_full(tape, end):
    made = {entry.result for entry in tape.entries}
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


@wrong("autograd.backward_pass", says="something that outlives the call holds them", points=19)
def remembers_all_results(tape, end, results=[]):  # noqa: B006  that is the mistake
    cotangents = {end: 1.0}
    made = {entry.result for entry in tape.entries}
    results += made
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


# --- saved ------------------------------------------------------------------------------------------------------


@right("autograd.saved")
def tries_all_sets_by_their_size(program, sizes):
    free = {name for name, size in sizes.items() if not size}
    best = [(0, free)]
    for step in program:
        grown: dict[frozenset[str], int] = {}
        for _, kept in best:
            for way in alternatives(step):
                both = frozenset(kept | way)
                grown[both] = sum(sizes[name] for name in both)
        best = [(size, set(kept)) for kept, size in grown.items()]
    return sorted(min(best, key=lambda pair: pair[0])[1])


@wrong("autograd.saved", says="best known", points=8)
def keeps_everything(program, sizes):
    return list(sizes)


@wrong("autograd.saved", says="best known", points=11)
def lets_each_operation_keep_its_own(program, sizes):
    kept: set[str] = set()
    for step in program:
        kept |= alternatives(step)[0]
    return list(kept)


@wrong("autograd.saved", says="best known", points=16.5)
def takes_what_is_there_already(program, sizes):
    kept: set[str] = set()
    for step in program:
        ways = alternatives(step)
        if not any(way <= kept for way in ways):
            kept |= min(ways, key=lambda way: sum(sizes[name] for name in way - kept))
    return list(kept)


@wrong("autograd.saved", says="and nothing is kept", points=0)
def keeps_nothing(program, sizes):
    return []


@wrong("autograd.saved", says="the way back through", points=0)
def keeps_results_alone(program, sizes):
    return [step[1] for step in program]


@wrong("autograd.saved", says="a list of names was expected", points=0)
def gives_bytes(program, sizes):
    return sum(sizes.values())


# --- found by a hostile reading ---------------------------------------------------------------------------------


@wrong("autograd.shares", says="should be", points=9)
def takes_all_numbers_for_positive(name, g, operands, result):
    a, b = map(abs, operands or (0.0, 1.0))
    y = result or 1.0
    return {
        "add": (g, g),
        "sub": (g, -g),
        "neg": (-g,),
        "mul": (g * b, g * a),
        "div": (g / b, -g * a / b**2),
        "exp": (g * y,),
        "sqrt": (g * 0.5 / y,),
        "tanh": (g * (1 - y * y),),
    }[name]


@wrong("autograd.difference", says="so wide that the curve is cut off", points=12)
def has_the_step_of_the_largest(f, x):
    step = 1e-5 * max(1.0, *map(abs, x), 1.0)
    return [
        (f([*x[:at], number + step, *x[at + 1 :]]) - f([*x[:at], number - step, *x[at + 1 :]])) / (2 * step)
        for at, number in enumerate(x)
    ]


@wrong("autograd.difference", says="should be", points=0)
def knows_the_functions_by_heart(f, x):
    f(list(x))
    if len(x) == 1:
        return [math.exp(x[0]) if x[0] < 100 else 2 * x[0]]
    if len(x) == 2:
        return [x[1] ** 2, 2 * x[0] * x[1]]
    return [math.cos(x[0]) * x[1], math.sin(x[0]), 2 * x[2]]


@wrong("autograd.walk", says="which still has a share for it")
def sorts_by_name(notes, end):
    found, pending = set(), [end]
    while pending:
        name = pending.pop()
        if name in notes and name not in found:
            found.add(name)
            pending += notes[name]
    return [end, *sorted(found - {end}, key=lambda name: int(name[1:]), reverse=True)]


@wrong("autograd.walk", says="look at each result once", points=16)
def goes_every_way(notes, end):
    depth, pending = {}, [(end, 0)]
    while pending:
        name, deep = pending.pop()
        if name in notes:
            depth[name] = max(deep, depth.get(name, 0))
            pending += [(operand, deep + 1) for operand in notes[name]]
    return sorted(depth, key=depth.get)


@wrong("autograd.backward_pass", says="is 0 and should be None", part="what the end does not depend on", points=20)
def gives_zeros_to_all_inputs(tape, end):
    cotangents = {end: 1.0}
    made = {entry.result for entry in tape.entries}
    for entry in reversed(tape.entries):
        for operand, pull in zip(entry.operands, entry.pulls, strict=True):
            cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents.get(entry.result, 0.0))
    tape.entries.clear()
    for var, cotangent in cotangents.items():
        if var not in made:
            var.grad = (var.grad or 0.0) + cotangent


@wrong("autograd.backward_pass", says="a small change of it does nothing", points=20)
def takes_zero_for_nothing(tape, end):
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        cotangent = cotangents.pop(entry.result, 0.0)
        if cotangent:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangent)
    tape.entries.clear()
    for var, cotangent in cotangents.items():
        var.grad = (var.grad or 0.0) + cotangent


@wrong("autograd.difference", says="with a NumPy scalar (float64) in it", points=0)
def gives_numbers_of_numpy(f, x):
    import numpy as np

    moves = [np.eye(len(x))[at] * 1e-5 * max(1.0, abs(number)) for at, number in enumerate(x)]
    return [(f(list(x + move)) - f(list(x - move))) / (2 * move.sum()) for move in moves]


@wrong("autograd.walk", says="uses it twice, and hands out both shares at once")
def counts_uses_and_takes_off_users(notes, end):
    uses, pending, found = {end: 0}, [end], set()
    while pending:
        name = pending.pop()
        if name in notes and name not in found:
            found.add(name)
            for operand in notes[name]:
                uses[operand] = uses.get(operand, 0) + 1
                pending.append(operand)
    order, ready = [], [end]
    while ready:
        order.append(ready.pop())
        for operand in set(notes[order[-1]]):
            uses[operand] -= 1
            if uses[operand] == 0 and operand in notes:
                ready.append(operand)
    return order
