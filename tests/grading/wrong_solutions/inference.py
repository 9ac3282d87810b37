"""Solutions of exercise 12, inference graphs."""

import numpy as np

from minitorch.graph import apply
from minitorch_grading.harness.inference import numbers, stored
from tests.grading.wrong_solutions import right, variants, wrong

# --- fold_layer -------------------------------------------------------------------------------------------------


@right("inference.fold_layer")
def by_rows(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma * (variance + eps) ** -0.5
    old = 0.0 if bias is None else bias
    return np.stack([row * factor for row, factor in zip(weight, s, strict=True)]), beta + (old - mean) * s


@right("inference.fold_layer")
def reshapes_the_scale(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / np.sqrt(variance + eps)
    return weight * s.reshape(-1, *[1] * (weight.ndim - 1)), s * ((0 if bias is None else bias) - mean) + beta


@wrong("inference.fold_layer", says="divides by the variance, not by its root", points=0)
def forgets_the_root(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / (variance + eps)
    return weight * s.reshape(-1, *[1] * (weight.ndim - 1)), s * ((0 if bias is None else bias) - mean) + beta


@wrong("inference.fold_layer", says="does not scale the old bias", points=5)
def adds_the_old_bias(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / np.sqrt(variance + eps)
    new = beta - s * mean
    return weight * s.reshape(-1, *[1] * (weight.ndim - 1)), new if bias is None else bias + new


@wrong("inference.fold_layer", says="forgets eps", points=0)
def leaves_out_eps(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / np.sqrt(variance)
    return weight * s.reshape(-1, *[1] * (weight.ndim - 1)), s * ((0 if bias is None else bias) - mean) + beta


@wrong("inference.fold_layer", says="scales the inputs of the layer, not its outputs")
def broadcasts_along_the_inputs(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / np.sqrt(variance + eps)
    scale = s if weight.ndim == 2 else s[:, None, None] if weight.ndim == 4 else s[:, None]
    return weight * scale, s * ((0 if bias is None else bias) - mean) + beta


@wrong("inference.fold_layer", says="it raises TypeError", points=10)
def expects_a_bias(weight, bias, gamma, beta, mean, variance, eps):
    s = gamma / np.sqrt(variance + eps)
    return weight * s.reshape(-1, *[1] * (weight.ndim - 1)), s * (bias - mean) + beta


@wrong("inference.fold_layer", says="a pair of arrays was expected", points=0)
def gives_the_weights_alone(weight, bias, gamma, beta, mean, variance, eps):
    return weight * (gamma / np.sqrt(variance + eps)).reshape(-1, *[1] * (weight.ndim - 1))


# --- convincing -------------------------------------------------------------------------------------------------


@right("inference.convincing")
def draws_at_random(eps):
    draw = np.random.default_rng(3)
    data = {name: draw.normal(size=2).tolist() for name in ("bias", "gamma", "beta", "mean", "x")}
    return data | {"weight": draw.normal(size=(2, 2)).tolist(), "variance": [0.02, 1.5], "gamma": [-0.7, 1.3]}


@wrong("inference.convincing", says="a fold that only deletes the normalization goes unnoticed", points=0)
def takes_a_new_model(eps):
    one, zero = [1.0, 1.0], [0.0, 0.0]
    return {
        "weight": [[1.0, 2.0], [3.0, -1.0]],
        "bias": zero,
        "gamma": one,
        "beta": zero,
        "mean": zero,
        "variance": [1 - eps, 1 - eps],
        "x": [1.0, 2.0],
    }


@wrong("inference.convincing", says="scales the inputs of the layer, not its outputs goes unnoticed", points=12)
def has_equal_channels(eps):
    return {
        "weight": [[1.0, 2.0], [3.0, -1.0]],
        "bias": [0.5, 0.5],
        "gamma": [-2.0, -2.0],
        "beta": [0.7, 0.7],
        "mean": [1.1, 1.1],
        "variance": [3.0, 3.0],
        "x": [1.0, 2.0],
    }


@wrong("inference.convincing", says="a fold that forgets eps goes unnoticed", points=13)
def has_large_variances(eps):
    return {
        "weight": [[1.0, 2.0], [3.0, -1.0]],
        "bias": [0.5, -0.5],
        "gamma": [-2.0, 3.0],
        "beta": [0.7, 0.2],
        "mean": [1.1, -0.3],
        "variance": [90.0, 80.0],
        "x": [1.0, 2.0],
    }


@wrong("inference.convincing", says="the variance is negative", points=0)
def has_a_negative_variance(eps):
    two = [1.0, 2.0]
    names = ("bias", "gamma", "beta", "mean", "x")
    return dict.fromkeys(names, two) | {"weight": [two, two], "variance": [-1.0, 1.0]}


# --- fold -------------------------------------------------------------------------------------------------------


@right("inference.fold")
def rebuilds_in_program_order(graph):
    users = graph.users()
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        operands = tuple(now[each] for each in node.inputs)
        new = type(node)(node.primitive, operands, node.params, node.spec, node.source)
        if node.primitive.name == "batch_norm":
            old, made = node.inputs[0], operands[0]
            is_alone = users[old] == (node,) and old not in graph.outputs
            is_known = all(not each.inputs and each.primitive.name == "constant" for each in operands[1:])
            if made.primitive.name == "conv" and is_alone and is_known:
                g, b, m, v = map(numbers, operands[1:])
                s = g / np.sqrt(v + node.params["eps"])
                bias = numbers(made.inputs[2]) if len(made.inputs) == 3 else 0 * m
                weights = stored(numbers(made.inputs[1]) * s.reshape(-1, 1, 1, 1)), stored(s * (bias - m) + b)
                new = apply(made.primitive, made.inputs[0], *weights, **made.params)
                program += weights
        now[node] = new
        program.append(new)
    outputs = [now[node] for node in graph.outputs]
    return graph.with_nodes(program, outputs).subgraph(outputs)


@right("inference.fold")
def folds_one_pair_after_another(graph):
    while True:
        users, outputs = graph.users(), graph.outputs
        for norm in graph.nodes:
            conv = norm.inputs[0] if norm.primitive.name == "batch_norm" else None
            if conv is None or conv.primitive.name != "conv" or users[conv] != (norm,) or conv in outputs:
                continue
            if all(each.primitive.name == "constant" for each in norm.inputs[1:]):
                break
        else:
            return graph
        gamma, beta, mean, variance = map(numbers, norm.inputs[1:])
        s = gamma / np.sqrt(variance + norm.params["eps"])
        bias = numbers(conv.inputs[2]) if len(conv.inputs) == 3 else 0
        new = stored(numbers(conv.inputs[1]) * s[:, None, None, None]), stored(s * (bias - mean) + beta)
        graph = graph.substitute({norm: apply(conv.primitive, conv.inputs[0], *new, **conv.params)})
        graph = graph.subgraph(graph.outputs)


variants(
    folds_one_pair_after_another,
    """
    has_no_guard_for_readers: there is one more convolution than before
    - users, outputs = graph.users(), graph.outputs
    - if conv is None or conv.primitive.name != "conv" or users[conv] != (norm,) or conv in outputs:
    + if conv is None or conv.primitive.name != "conv":
    takes_one_reader_for_enough [statistics of the batch]: the numbers of mul are no constants
    - if all(each.primitive.name == "constant" for each in norm.inputs[1:]):
    + if len(norm.inputs) == 5:
    has_no_guard_for_statistics: the numbers of mul are no constants
    - users, outputs = graph.users(), graph.outputs
    + users = graph.users()
    - if conv is None or conv.primitive.name != "conv" or users[conv] != (norm,) or conv in outputs:
    + if conv is None or conv.primitive.name != "conv" or conv in graph.outputs:
    - if all(each.primitive.name == "constant" for each in norm.inputs[1:]):
    + if users[conv] == (norm,) or norm.inputs[3].primitive.name != "constant":
    leaves_dead_code: a convolution is left that no output needs
    - users, outputs = graph.users(), graph.outputs
    - for norm in graph.nodes:
    + users, outputs = graph.subgraph(graph.outputs).users(), graph.outputs
    + for norm in graph.subgraph(outputs).nodes:
    - graph = graph.subgraph(graph.outputs)
    """,
)


@wrong("inference.fold", says="2 batch_norm are left, and 0 have to be")
def folds_the_first_pair(graph):
    users = graph.users()
    for norm in graph.nodes:
        conv = norm.inputs[0] if norm.primitive.name == "batch_norm" else None
        if conv is None or conv.primitive.name != "conv" or users[conv] != (norm,) or conv in graph.outputs:
            continue
        if any(each.primitive.name != "constant" for each in norm.inputs[1:]):
            continue
        gamma, beta, mean, variance = map(numbers, norm.inputs[1:])
        s = gamma / np.sqrt(variance + norm.params["eps"])
        bias = numbers(conv.inputs[2]) if len(conv.inputs) == 3 else 0
        new = stored(numbers(conv.inputs[1]) * s[:, None, None, None]), stored(s * (bias - mean) + beta)
        graph = graph.substitute({norm: apply(conv.primitive, conv.inputs[0], *new, **conv.params)})
        return graph.subgraph(graph.outputs)
    return graph


@wrong("inference.fold", says="output 0 is off by", points=0)
def deletes_the_normalization(graph):
    norms = {node: node.inputs[0] for node in graph.nodes if node.primitive.name == "batch_norm"}
    while norms:
        norm = next(iter(norms))
        graph = graph.substitute({norm: norm.inputs[0]})
        norms = {node: node.inputs[0] for node in graph.nodes if node.primitive.name == "batch_norm"}
    return graph


@wrong("inference.fold", says="batch_norm are left", points=0)
def does_nothing(graph):
    return graph


# --- error_bound ------------------------------------------------------------------------------------------------


@right("inference.error_bound")
def counts_each_program(weight, bias, gamma, beta, mean, variance, eps, x):
    u = 2.0**-24
    s = np.abs(gamma) / np.sqrt(variance + eps)
    terms = s * ((np.abs(weight) * np.abs(x)).sum(1) + np.abs(bias) + np.abs(mean)) + np.abs(beta)
    before, after = len(x) + 5, len(x) + 4
    return (before + after) * u * 1.01 * terms


@right("inference.error_bound")
def counts_roundings_of_both(weight, bias, gamma, beta, mean, variance, eps, x):
    s = np.abs(gamma / np.sqrt(variance + eps))
    terms = s * (np.abs(weight) @ np.abs(x) + np.abs(bias) + np.abs(mean)) + np.abs(beta)
    return 2 * (len(x) + 8) * 1.01 * 2.0**-24 * terms


variants(
    counts_roundings_of_both,
    """
    counts_those_of_one [14]: each of the two programs may be off by as much
    - return 2 * (len(x) + 8) * 1.01 * 2.0**-24 * terms
    + return (len(x) + 8) * 1.01 * 2.0**-24 * terms
    keeps_the_sign_of_the_shift [14]: which is too small
    - terms = s * (np.abs(weight) @ np.abs(x) + np.abs(bias) + np.abs(mean)) + np.abs(beta)
    + terms = s * (np.abs(weight) @ np.abs(x) + np.abs(bias) + np.abs(mean)) + beta
    multiplies_by_the_deviation [14]: which is too small
    - s = np.abs(gamma / np.sqrt(variance + eps))
    + s = np.abs(gamma * np.sqrt(variance + eps))
    """,
)


@wrong("inference.error_bound", says="the error is a share of the terms, not of their sum")
def takes_the_size_of_the_result(weight, bias, gamma, beta, mean, variance, eps, x):
    s = gamma / np.sqrt(variance + eps)
    return 2 * (len(x) + 8) * 2.0**-24 * np.abs(s * (weight @ x + bias - mean) + beta)


@wrong("inference.error_bound", says="the error is a share of the terms, not of their sum", points=7)
def takes_the_size_of_the_shift(weight, bias, gamma, beta, mean, variance, eps, x):
    s = gamma / np.sqrt(variance + eps)
    shift = np.abs(s * (bias - mean) + beta)
    return 2 * (len(x) + 8) * 2.0**-24 * (np.abs(s * (weight @ x)) + shift)


@wrong("inference.error_bound", says="each of the k additions may round", points=7)
def counts_one_rounding_a_step(weight, bias, gamma, beta, mean, variance, eps, x):
    s = np.abs(gamma / np.sqrt(variance + eps))
    terms = s * (np.abs(weight) @ np.abs(x) + np.abs(bias) + np.abs(mean)) + np.abs(beta)
    return 2 * 8 * 2.0**-24 * terms


@wrong("inference.error_bound", says="which is too large", points=0)
def guesses_a_tolerance(weight, bias, gamma, beta, mean, variance, eps, x):
    return np.full(len(weight), 100.0)


@wrong("inference.error_bound", says="an array of bounds was expected", points=0)
def answers_in_words(weight, bias, gamma, beta, mean, variance, eps, x):
    return "small"


# --- serve ------------------------------------------------------------------------------------------------------


@right("inference.serve")
def looks_from_the_largest(rows, bandwidth, peak, rate, deadline):
    found = None
    for batch, size, flops in reversed(rows):
        seconds = size / bandwidth if size / bandwidth > flops / peak else flops / peak
        busy, latency = seconds / (batch / rate), seconds + (batch - 1) / rate
        if busy > 1 or latency > deadline or (found and found[2] < busy):
            continue
        found = batch, latency, busy
    return found


@right("inference.serve")
def lists_what_will_do(rows, bandwidth, peak, rate, deadline):
    found = []
    for batch, size, flops in rows:
        seconds = max(size / bandwidth, flops / peak)
        latency, busy = (batch - 1) / rate + seconds, rate * seconds / batch
        if latency <= deadline and busy <= 1:
            found.append((batch, latency, busy))
    return min(found, key=lambda plan: plan[2], default=None)


variants(
    lists_what_will_do,
    """
    adds_the_times: the longer of the two times counts, not their sum
    - seconds = max(size / bandwidth, flops / peak)
    + seconds = size / bandwidth + flops / peak
    waits_for_itself: waits for n - 1 others, not for n
    - latency, busy = (batch - 1) / rate + seconds, rate * seconds / batch
    + latency, busy = batch / rate + seconds, rate * seconds / batch
    takes_the_shortest_latency: meets the deadline, but keeps the server busier
    - return min(found, key=lambda plan: plan[2], default=None)
    + return min(found, key=lambda plan: plan[1], default=None)
    lets_it_fall_behind_a_little [none]: no batch will do, so None was expected
    - if latency <= deadline and busy <= 1:
    + if latency <= deadline and busy < 2:
    forgets_to_keep_up: no batch will do, so None was expected
    - if latency <= deadline and busy <= 1:
    + if latency <= deadline:
    """,
)


@wrong("inference.serve", says="a tuple of a batch, a latency and a share was expected", points=0)
def gives_the_batch_alone(rows, bandwidth, peak, rate, deadline):
    return rows[0][0]
