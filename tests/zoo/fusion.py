"""Solutions of exercise 07, operator fusion."""

import math
from collections.abc import Callable
from typing import Any

from minitorch.classroom.asks.fusion import REDUCTIONS, loop_shape, operations
from tests.zoo import right, wrong

# --- kernel_bytes -----------------------------------------------------------------------------------------------


@right("fusion.kernel_bytes")
def goes_node_by_node(graph, kernel):
    inside, total, loaded = set(kernel), 0, set()
    for node in kernel:
        for operand in node.inputs:
            if operand.primitive.name != "constant" and operand not in inside and operand not in loaded:
                loaded.add(operand)
                total += operand.spec.nbytes
        users = [user for user in graph.nodes if node in user.inputs and user not in inside]
        if users or node in graph.outputs:
            total += node.spec.nbytes
    return total


@wrong("fusion.kernel_bytes", says="inside a kernel a value stays in a register")
def fuses_nothing(graph, kernel):
    total = 0
    for node in kernel:
        read = {operand for operand in node.inputs if operand.primitive.name != "constant"}
        total += sum(operand.spec.nbytes for operand in read) + node.spec.nbytes
    return total


@wrong("fusion.kernel_bytes", says="is loaded once")
def loads_at_every_use(graph, kernel):
    read = [operand for node in kernel for operand in node.inputs if operand not in kernel]
    needed = set(graph.outputs) | {operand for node in graph.nodes if node not in kernel for operand in node.inputs}
    return sum(node.spec.nbytes for node in read) + sum(node.spec.nbytes for node in kernel if node in needed)


@wrong("fusion.kernel_bytes", says="a value that nobody outside reads is never written")
def writes_everything(graph, kernel):
    outside = {operand for node in kernel for operand in node.inputs if operand not in kernel}
    read = [operand for operand in outside if operand.primitive.name != "constant"]
    return sum(node.spec.nbytes for node in read) + sum(node.spec.nbytes for node in kernel)


@wrong("fusion.kernel_bytes", says="an output is written even if it is read inside")
def writes_what_nobody_reads_inside(graph, kernel):
    inside = {operand for node in kernel for operand in node.inputs}
    outside = {operand for node in graph.nodes if node not in kernel for operand in node.inputs}
    read = {each for each in inside if each not in kernel and each.primitive.name != "constant"}
    written = [node for node in kernel if node not in inside or node in outside]
    return sum(node.spec.nbytes for node in read) + sum(node.spec.nbytes for node in written)


@wrong("fusion.kernel_bytes", says="those are elements", points=0)
def counts_elements(graph, kernel):
    read = {operand for node in kernel for operand in node.inputs if operand not in kernel}
    needed = set(graph.outputs) | {operand for node in graph.nodes if node not in kernel for operand in node.inputs}
    moved = [node for node in read if node.primitive.name != "constant"] + [node for node in kernel if node in needed]
    return sum(node.spec.size for node in moved)


@wrong("fusion.kernel_bytes", says="a number in the program is part of the instruction")
def loads_constants(graph, kernel):
    read = {operand for node in kernel for operand in node.inputs if operand not in kernel}
    needed = set(graph.outputs) | {operand for node in graph.nodes if node not in kernel for operand in node.inputs}
    return sum(node.spec.nbytes for node in (*read, *[node for node in kernel if node in needed]))


# --- partition --------------------------------------------------------------------------------------------------


@right("fusion.partition")
def goes_by_levels(graph):
    level: dict[Any, int] = {}
    kernels: dict[Any, list[Any]] = {}
    for node in operations(graph):
        at = 0
        for operand in node.inputs:
            if operand in level:
                at = max(at, level[operand] + (operand.primitive in REDUCTIONS))
        while (at, loop_shape(node)) not in kernels and any(key[0] == at for key in kernels):
            at += 1
        level[node] = at
        kernels.setdefault((at, loop_shape(node)), []).append(node)
    return [kernels[key] for key in sorted(kernels, key=lambda key: key[0])]


@wrong("fusion.partition", says="nothing is fused", points=0)
def gives_each_its_own(graph):
    return [[node] for node in operations(graph)]


@wrong("fusion.partition", says="which is done only when all elements are")
def puts_all_into_one(graph):
    return [operations(graph)]


@wrong("fusion.partition", says="two kernels wait for each other")
def groups_by_shape(graph):
    groups: dict[Any, list[Any]] = {}
    for node in operations(graph):
        follows = any(operand.primitive in REDUCTIONS for operand in node.inputs)
        groups.setdefault((loop_shape(node), follows), []).append(node)
    return list(groups.values())


@wrong("fusion.partition", says="which is done only when all elements are")
def fuses_runs_of_one_shape(graph):
    kernels: list[list[Any]] = []
    for node in operations(graph):
        if kernels and loop_shape(kernels[-1][0]) == loop_shape(node):
            kernels[-1].append(node)
        else:
            kernels.append([node])
    return kernels


@wrong("fusion.partition", says="share a kernel, and run over")
def takes_the_result_for_the_loop(graph):
    kernels: list[list[Any]] = []
    for node in operations(graph):
        if kernels and kernels[-1][-1].shape == node.shape:
            kernels[-1].append(node)
        else:
            kernels.append([node])
    return kernels


# The rule of `checks.fusion.measure.joined_to_the_last`, written again: an animal stands in a notebook without checks.
@wrong("fusion.partition", says="kernels (", points=14.5)
def joins_the_last_only(graph):
    kernels: list[list[Any]] = []
    for node in operations(graph):
        ended = kernels and any(each.primitive in REDUCTIONS and each in kernels[-1] for each in node.inputs)
        if kernels and not ended and loop_shape(kernels[-1][0]) == loop_shape(node):
            kernels[-1].append(node)
        else:
            kernels.append([node])
    return kernels


@wrong("fusion.partition", says="is in no kernel")
def forgets_the_outputs(graph):
    return [[node for node in operations(graph) if node not in graph.outputs]]


# --- generate ---------------------------------------------------------------------------------------------------


@right("fusion.generate")
def writes_with_a_table_of_functions(graph):
    write: dict[str, Callable[..., str]] = {
        "add": lambda a, b: f"{a} + {b}",
        "sub": lambda a, b: f"{a} - {b}",
        "mul": lambda a, b: f"{a} * {b}",
        "maximum": lambda a, b: f"{a} if {a} > {b} else {b}",
        "neg": lambda a: f"-{a}",
        "exp": lambda a: f"math.exp({a})",
    }
    names = [node.params["name"] for node in graph.inputs]
    value = {node: f"v{number}" for number, node in enumerate((*graph.inputs, *graph.nodes))}
    lines = [f"def kernel({', '.join([*names, 'out'])}):"]
    loop = ", ".join(value[node] for node in graph.inputs)
    lines.append(f"    for i, ({loop},) in enumerate(zip({', '.join(names)})):")
    for node in graph.nodes:
        if node.primitive.name == "constant":
            lines.append(f"        {value[node]} = {node.params['value']}")
        else:
            text = write[node.primitive.name](*[value[operand] for operand in node.inputs])
            lines.append(f"        {value[node]} = {text}")
    return "\n".join([*lines, f"        out[i] = {value[graph.outputs[0]]}"])


@wrong("fusion.generate", says="a value that is used twice is computed twice", points=17)
def writes_one_expression(graph):
    write = {"add": "({} + {})", "sub": "({} - {})", "mul": "({} * {})", "maximum": "max({}, {})", "neg": "(-{})"}
    write["exp"] = "math.exp({})"
    names = [node.params["name"] for node in graph.inputs]
    value = {node: f"{name}_i" for node, name in zip(graph.inputs, names, strict=True)}
    for node in graph.nodes:
        if node.primitive.name == "constant":
            value[node] = f"({node.params['value']})"
        else:
            value[node] = write[node.primitive.name].format(*[value[operand] for operand in node.inputs])
    loads = "".join(f"        {name}_i = {name}[i]\n" for name in names)
    head = f"def kernel({', '.join(names)}, out):\n    for i in range(len(out)):\n"
    return f"{head}{loads}        out[i] = {value[graph.outputs[0]]}\n"


@wrong("fusion.generate", says="a loop for each operation puts every value into memory")
def writes_a_loop_for_each(graph):
    write = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "maximum": "max({}, {})", "neg": "-{}"}
    write["exp"] = "math.exp({})"
    value = {node: f"{node.params['name']}[i]" for node in graph.inputs}
    lines = [f"def kernel({', '.join(node.params['name'] for node in graph.inputs)}, out):"]
    for number, node in enumerate(graph.nodes):
        if node.primitive.name == "constant":
            value[node] = f"({node.params['value']})"
            continue
        text = write[node.primitive.name].format(*[value[operand] for operand in node.inputs])
        lines += [
            f"    t{number} = [0.0] * len(out)",
            "    for i in range(len(out)):",
            f"        t{number}[i] = {text}",
        ]
        value[node] = f"t{number}[i]"
    return "\n".join([*lines, "    for i in range(len(out)):", f"        out[i] = {value[graph.outputs[0]]}"])


@wrong("fusion.generate", says="keep it in a variable", points=17)
def loads_at_every_use_in_the_loop(graph):
    write = {"add": "{} + {}", "sub": "{} - {}", "mul": "{} * {}", "maximum": "max({}, {})", "neg": "-{}"}
    write["exp"] = "math.exp({})"
    value = {node: f"{node.params['name']}[i]" for node in graph.inputs}
    lines = [f"def kernel({', '.join(node.params['name'] for node in graph.inputs)}, out):"]
    lines.append("    for i in range(len(out)):")
    for number, node in enumerate(graph.nodes):
        if node.primitive.name == "constant":
            value[node] = f"({node.params['value']})"
            continue
        text = write[node.primitive.name].format(*[value[operand] for operand in node.inputs])
        value[node] = f"t{number}"
        lines.append(f"        t{number} = {text}")
    return "\n".join([*lines, f"        out[i] = {value[graph.outputs[0]]}"])


@wrong("fusion.generate", says="mind the order of the operands")
def turns_operands_round(graph):
    write = {"add": "{1} + {0}", "sub": "{1} - {0}", "mul": "{1} * {0}", "maximum": "max({1}, {0})", "neg": "-{0}"}
    write["exp"] = "math.exp({0})"
    names = [node.params["name"] for node in graph.inputs]
    value = {node: f"{name}_i" for node, name in zip(graph.inputs, names, strict=True)}
    lines = [f"def kernel({', '.join(names)}, out):", "    for i in range(len(out)):"]
    lines += [f"        {name}_i = {name}[i]" for name in names]
    for number, node in enumerate(graph.nodes):
        if node.primitive.name == "constant":
            value[node] = f"({node.params['value']})"
            continue
        text = write[node.primitive.name].format(*[value[operand] for operand in node.inputs])
        value[node] = f"t{number}"
        lines.append(f"        t{number} = {text}")
    return "\n".join([*lines, f"        out[i] = {value[graph.outputs[0]]}"])


@wrong("fusion.generate", says="it raises IndentationError", points=0)
def forgets_to_indent(graph):
    names = ", ".join(node.params["name"] for node in graph.inputs)
    return f"def kernel({names}, out):\nfor i in range(len(out)):\nout[i] = x[i]"


@wrong("fusion.generate", says="the source defines no function `kernel`", points=0)
def calls_it_something_else(graph):
    return "def fused(x, y, out):\n    for i in range(len(out)):\n        out[i] = x[i] + y[i]"


# --- merge ------------------------------------------------------------------------------------------------------


@right("fusion.merge")
def puts_the_larger_first(a, b):
    (high, most), (low, rest) = (a, b) if a[0] >= b[0] else (b, a)
    if not rest:
        return high, most
    return high, most + rest * math.exp(low - high)


@wrong("fusion.merge", says="the totals were added as they are", points=3)
def adds_the_totals(a, b):
    return max(a[0], b[0]), a[1] + b[1]


@wrong("fusion.merge", says="where there is nothing yet, there is nothing to rescale", points=7)
def subtracts_infinities(a, b):
    largest = max(a[0], b[0])
    return largest, a[1] * math.exp(a[0] - largest) + b[1] * math.exp(b[0] - largest)


@wrong("fusion.merge", says="OverflowError")
def goes_back_to_plain_exponentials(a, b):
    largest = max(a[0], b[0])
    total = (a[1] * math.exp(a[0]) if a[1] else 0.0) + (b[1] * math.exp(b[0]) if b[1] else 0.0)
    return largest, total / math.exp(largest) if total else 0.0


@wrong("fusion.merge", says="total is")
def scales_the_first_only(a, b):
    largest = max(a[0], b[0])
    if largest == -math.inf:
        return largest, 0.0
    return largest, a[1] * math.exp(a[0] - largest) + b[1]


@wrong("fusion.merge", says="OverflowError")
def scales_the_wrong_way(a, b):
    largest = max(a[0], b[0])
    if -math.inf in (a[0], b[0]):
        return a if b[0] == -math.inf else b
    return largest, a[1] * math.exp(largest - a[0]) + b[1] * math.exp(largest - b[0])


# --- online_softmax ---------------------------------------------------------------------------------------------


@right("fusion.online_softmax")
def goes_number_by_number(so_far, block):
    largest, total = so_far
    for number in block:
        if number > largest:
            total = total * math.exp(largest - number) + 1.0
            largest = number
        else:
            total += math.exp(number - largest)
    return largest, total


@wrong("fusion.online_softmax", says="when the largest number rises, the total so far has to be scaled", points=4)
def never_scales(so_far, block):
    largest = max(so_far[0], *block)
    return largest, so_far[1] + sum(math.exp(number - largest) for number in block)


@wrong("fusion.online_softmax", says="total is")
def never_scales_number_by_number(so_far, block):
    largest, total = so_far
    for number in block:
        largest = max(largest, number)
        total += math.exp(number - largest)
    return largest, total


@wrong("fusion.online_softmax", says="largest is")
def forgets_what_was_before(so_far, block):
    largest = max(block)
    return largest, sum(math.exp(number - largest) for number in block)


@wrong("fusion.online_softmax", says="OverflowError", points=7)
def subtracts_nothing(so_far, block):
    largest = max(so_far[0], *block)
    total = so_far[1] * math.exp(so_far[0]) + sum(math.exp(number) for number in block)
    return largest, total / math.exp(largest) if total else 0.0


@wrong("fusion.online_softmax", says="largest is")
def starts_at_zero(so_far, block):
    largest = max(0.0, so_far[0], *block)
    return largest, so_far[1] * math.exp(so_far[0] - largest) + sum(math.exp(number - largest) for number in block)
