"""Solutions that a check once took for right, or for wrong with a reason that was not true."""

import numpy as np

from tests.grading.wrong_solutions import right, wrong


@wrong("eager.unbroadcast", says="a tensor was expected, and it is an array", points=0)
def leaves_the_engine(gradient, shape):
    array = gradient.numpy()
    while array.ndim > len(shape):
        array = array.sum(0)
    for dim, length in enumerate(shape):
        if length == 1:
            array = array.sum(dim, keepdims=True)
    return array


@wrong("eager.unbroadcast", says="a dimension was summed that was not expanded")
def aligns_on_the_left(gradient, shape):
    while gradient.ndim > len(shape):
        gradient = gradient.sum(dim=-1)
    for dim, length in enumerate(shape):
        if length == 1:
            gradient = gradient.sum(dim=dim, keepdim=True)
    return gradient


@wrong("eager.observe", says="every operand is read, not only the first", points=8)
def goes_by_the_shape(ledger, primitive, operands, value):
    ledger["dispatches"] += 1
    if not primitive.is_view:
        same = len(operands) > 1 and operands[0].shape == operands[1].shape
        ledger["read"] += sum(each.nbytes for each in (operands[:1] if same else operands))
        ledger["written"] += value.nbytes


@wrong("eager.mean_squared_error", says="a ValueError is wanted", points=6)
def asserts_equal_shapes(prediction, target):
    assert prediction.shape == target.shape, f"{prediction.shape} and {target.shape}"
    return ((prediction - target) ** 2).mean()


@wrong("eager.mean_squared_error", says="mean of the absolute differences", points=9)
def forgets_the_square(prediction, target):
    if prediction.shape != target.shape:
        raise ValueError(f"{prediction.shape} and {target.shape}")
    return (prediction - target).abs().mean()


@wrong("eager.first_bad", says="only passes on what it got", points=13)
def looks_at_the_first_operand(records):
    for position, (_, operands, result) in enumerate(records):
        if not np.isfinite(result).all() and np.isfinite(operands[0]).all():
            return position
    return None


@wrong("eager.first_bad", says="operation 1 makes one, too, but 0 is the first", points=12)
def keeps_the_last_culprit(records):
    found = None
    for position, (_, operands, result) in enumerate(records):
        if not np.isfinite(result).all() and all(np.isfinite(each).all() for each in operands):
            found = position
    return found


@wrong("graph.run", says="compute was never called for %0", points=0)
def computes_without_compute(graph, fetches, feeds, compute):
    values = {node: feeds[node.params["name"]] for node in graph.inputs if node.params["name"] in feeds}
    for node in graph.nodes:
        if all(operand in values for operand in node.inputs):
            values[node] = node.primitive.evaluate(*[values[operand] for operand in node.inputs], **node.params)
    return [values[node] for node in fetches]


@wrong("graph.run", says="should be")
def gives_fetches_in_program_order(graph, fetches, feeds, compute):
    values = {}

    def value_of(node):
        if node not in values:
            operands = [value_of(operand) for operand in node.inputs]
            values[node] = feeds[node.params["name"]] if node in graph.inputs else compute(node, operands)
        return values[node]

    for node in fetches:
        value_of(node)
    return [values[node] for node in (*graph.inputs, *graph.nodes) if node in fetches]


@wrong("graph.release", says="is forgotten twice", points=4)
def forgets_again_and_again(graph):
    kept = {*graph.outputs, *graph.inputs}
    plan = []
    for step in range(len(graph.nodes)):
        needed = {operand for node in graph.nodes[step + 1 :] for operand in node.inputs}
        plan.append([node for node in graph.nodes[: step + 1] if node not in needed | kept])
    return plan


@right("fusion.generate")
def loops_with_while(graph):
    expressions = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "maximum": "max({}, {})",
        "neg": "-{}",
        "exp": "math.exp({})",
    }
    names = {node: f"{node.params['name']}_i" for node in graph.inputs}
    parameters = [node.params["name"] for node in graph.inputs]
    lines = [f"{each}_i = {each}[i]" for each in parameters]
    for number, node in enumerate(graph.nodes):
        if node.primitive.name == "constant":
            names[node] = repr(float(node.params["value"]))
        else:
            expression = expressions[node.primitive.name].format(*[names[operand] for operand in node.inputs])
            lines.append(f"v{number} = {expression}")
            names[node] = f"v{number}"
    lines += [f"out[i] = {names[graph.outputs[0]]}", "i = i + 1"]
    body = "\n".join(f"        {line}" for line in lines)
    return f"def kernel({', '.join(parameters)}, out):\n    i = 0\n    while i < len(out):\n{body}\n"


@wrong("graph.order", says="no output needs it", points=0)
def takes_the_order_from_whoever_calls(outputs):
    import sys

    frame = sys._getframe()
    while "graph" not in frame.f_locals:
        frame = frame.f_back
    graph = frame.f_locals["graph"]
    return [*graph.inputs, *graph.nodes]


@wrong("fusion.generate", says="element [0] is", points=0)
def writes_down_results(graph):
    names = ", ".join(node.params["name"] for node in graph.inputs)
    return f"def kernel({names}, out):\n    for i in range(len(out)):\n        out[i] = {[0.5] * 5}[i]"


@wrong("fusion.generate", says="the source uses math.interpreted", points=0)
def calls_an_interpreter(graph):
    import math

    import numpy as np

    def interpreted(*arrays):
        values = dict(zip(graph.inputs, map(np.array, arrays), strict=True))
        for node in graph.nodes:
            values[node] = node.primitive.evaluate(*[values[each] for each in node.inputs], **node.params)
        return values[graph.outputs[0]].tolist()

    setattr(math, "interpreted", interpreted)  # noqa: B010  as a student writes it, a type checker objects
    names = ", ".join(node.params["name"] for node in graph.inputs)
    return (
        f"def kernel({names}, out):\n    found = math.interpreted({names})\n"
        "    for i in range(len(out)):\n        out[i] = found[i]"
    )


@wrong("fusion.generate", says="the source uses import minitorch", points=0)
def imports_the_engine(graph):
    names = ", ".join(node.params["name"] for node in graph.inputs)
    return f"import minitorch\ndef kernel({names}, out):\n    for i in range(len(out)):\n        out[i] = 0.0"


@right("fusion.generate")
def imports_from_math_in_the_source(graph):
    expressions = {
        "add": "{} + {}",
        "sub": "{} - {}",
        "mul": "{} * {}",
        "maximum": "max({}, {})",
        "neg": "-{}",
        "exp": "exp({})",
    }
    inputs = [node.params["name"] for node in graph.inputs]
    value = dict(zip(graph.inputs, [f"{name}_i" for name in inputs], strict=True))
    lines = [f"{name}_i = {name}[i]" for name in inputs]
    for node in graph.nodes:
        if node.primitive.name == "constant":
            value[node] = f"({node.params['value']!r})"
            continue
        value[node] = f"t{len(value)}"
        operands = [value[each] for each in node.inputs]
        lines.append(f"{value[node]} = {expressions[node.primitive.name].format(*operands)}")
    lines.append(f"out[i] = {value[graph.outputs[0]]}")
    head = f"from math import exp\n\ndef kernel({', '.join(inputs)}, out):\n    for i in range(len(out)):\n"
    return head + "".join(f"        {line}\n" for line in lines)
