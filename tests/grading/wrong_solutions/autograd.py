"""Solutions of exercise 02, autograd."""

import math

from minitorch_grading.harness.autograd import Tape, Var, alternatives, loss
from tests.grading.wrong_solutions import right, variants, wrong

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


@right("autograd.shares")
def has_a_row_for_each_operation(name, g, operands, result):
    a, b = operands or (0.0, 1.0)
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


variants(
    has_a_row_for_each_operation,
    """
    multiplies_by_the_factor_itself [9]: times the *other* factor
    - "mul": (g * b, g * a),
    + "mul": (g * a, g * b),
    forgets_signs [5]: a sign is wrong
    - "sub": (g, -g),
    + "sub": (g, g),
    - "div": (g / b, -g * a / b**2),
    + "div": (g / b, g * a / b**2),
    takes_the_result_for_the_operand [10]: the function is applied twice
    - "exp": (g * y,),
    - "sqrt": (g * 0.5 / y,),
    - "tanh": (g * (1 - y * y),),
    + "exp": (g * math.exp(y),),
    + "sqrt": (g * 0.5 / math.sqrt(y),),
    + "tanh": (g * (1 - math.tanh(y) ** 2),),
    takes_all_numbers_for_positive [9]: should be
    - a, b = operands or (0.0, 1.0)
    + a, b = map(abs, operands or (0.0, 1.0))
    """,
)


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


@wrong("autograd.difference", says="it raises ZeroDivisionError", part="several numbers")
def takes_a_share_of_the_number(f, x):
    found = []
    for place, number in enumerate(x):
        above, below = list(x), list(x)
        above[place], below[place] = number * (1 + 1e-5), number * (1 - 1e-5)
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


@right("autograd.backward_pass")
def collects_cotangents_first(tape, end):
    made = {entry.result for entry in tape.entries}
    cotangents = {end: 1.0}
    for entry in reversed(tape.entries):
        if entry.result in cotangents:
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    tape.entries.clear()
    for each, cotangent in cotangents.items():
        if each not in made:
            each.grad = (each.grad or 0.0) + cotangent


variants(
    collects_cotangents_first,
    """
    overwrites_shares: a share replaced the one that came before
    - cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    + cotangents[operand] = pull(cotangents[entry.result])
    replaces_the_gradient: `grad` adds up until somebody clears it
    - each.grad = (each.grad or 0.0) + cotangent
    + each.grad = cotangent
    leaves_the_tape_full [19]: entries are on the tape afterwards
    - tape.entries.clear()
    """,
)


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


# --- train ------------------------------------------------------------------------------------------------------


@right("autograd.train")
def computes_with_matrices(points, labels, weights, steps):
    import numpy as np

    x, y, found = np.array(points), np.array(labels), []
    for _ in range(steps):
        units = np.array(weights[:-1]).reshape(4, 4)
        hidden = np.tanh(x @ units[:, :2].T + units[:, 2])
        output = 2 * (hidden @ units[:, 3] + weights[-1] - y) / len(y)
        inside = np.outer(output, units[:, 3]) * (1 - hidden**2)
        slope = np.column_stack([inside.T @ x, inside.sum(0), hidden.T @ output]).ravel()
        weights = (np.array(weights) - 0.2 * np.append(slope, output.sum())).tolist()
        found.append(weights)
    return found


@right("autograd.train")
def goes_back_over_the_tape(points, labels, weights, steps):
    found = []
    for _ in range(steps):
        tape, variables = Tape(), [Var(weight) for weight in weights]
        cotangents = {loss(tape, variables, points, labels): 1.0}
        for entry in reversed(tape.entries):
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
        weights = [weight - 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
        found.append(weights)
    return found


variants(
    goes_back_over_the_tape,
    """
    adds_the_gradient [0]: it goes up: subtract
    - weights = [weight - 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
    + weights = [weight + 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
    never_clears_the_gradients [8, further steps]: the gradients of the steps before are in it
    - found = []
    + gradients, found = [0.0] * len(weights), []
    - weights = [weight - 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
    + gradients = [old + cotangents[each] for old, each in zip(gradients, variables, strict=True)]
    + weights = [weight - 0.1 * each for weight, each in zip(weights, gradients, strict=True)]
    lets_the_last_share_win [0]: a share replaced the one that came before
    - cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    + cotangents[operand] = pull(cotangents[entry.result])
    looks_at_the_last_point_alone [0]: it has to be the gradient of the loss of all points
    - cotangents = {loss(tape, variables, points, labels): 1.0}
    + cotangents = {loss(tape, variables, points[-1:], labels[-1:]): 1.0}
    looks_at_the_first_point_alone [0]: or one point alone is in the loss
    - cotangents = {loss(tape, variables, points, labels): 1.0}
    + cotangents = {loss(tape, variables, points[:1], labels[:1]): 1.0}
    begins_with_the_start [0]: each list is of the weights after its step
    - found.append(weights)
    - tape, variables = Tape(), [Var(weight) for weight in weights]
    + found.append(weights)
    + tape, variables = Tape(), [Var(weight) for weight in weights]
    takes_a_tiny_rate [14, XOR is learned]: try larger and smaller rates
    - weights = [weight - 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
    + weights = [weight - 0.01 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
    """,
)


@wrong("autograd.train", says="compute the loss again, with the new weights", points=8, part="further steps")
def computes_the_loss_once(points, labels, weights, steps):
    tape, variables, found = Tape(), [Var(weight) for weight in weights], []
    cotangents = {loss(tape, variables, points, labels): 1.0}
    for entry in reversed(tape.entries):
        for operand, pull in zip(entry.operands, entry.pulls, strict=True):
            cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
    for _ in range(steps):
        weights = [weight - 0.3 * cotangents[each] for weight, each in zip(weights, variables, strict=True)]
        found.append(weights)
    return found


@wrong("autograd.train", says="put a new list of weights into it after each step", points=8, part="further steps")
def changes_one_list_in_place(points, labels, weights, steps):
    found, weights = [], list(weights)
    for _ in range(steps):
        tape, variables = Tape(), [Var(weight) for weight in weights]
        cotangents = {loss(tape, variables, points, labels): 1.0}
        for entry in reversed(tape.entries):
            for operand, pull in zip(entry.operands, entry.pulls, strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + pull(cotangents[entry.result])
        for place, each in enumerate(variables):
            weights[place] -= 0.3 * cotangents[each]
        found.append(weights)
    return found


@wrong("autograd.train", says="the weights after each step, and it is [", points=0)
def returns_the_last_weights_only(points, labels, weights, steps):
    return weights


@wrong("autograd.train", says="does not go down the gradient", points=0)
def knows_a_solution_by_heart(points, labels, weights, steps):
    end = [2.0, 2.0, 2.0, -1.5, 2.0, 2.0, -2.0, 1.5, *[0.0] * 8, 1.5]
    return [[a + (b - a) * step / steps for a, b in zip(weights, end, strict=True)] for step in range(1, steps + 1)]


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
