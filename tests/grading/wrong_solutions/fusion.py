"""Solutions of exercise 07, operator fusion."""

from collections.abc import Callable
from typing import Any

from minitorch_grading.harness.fusion import REDUCTIONS, loop_shape, operations
from tests.grading.wrong_solutions import right, variants, wrong

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


variants(
    goes_node_by_node,
    """
    knows_float32_alone [12]: an element of float64 is 8 bytes
    - total += operand.spec.nbytes
    + total += 4 * operand.spec.size
    - total += node.spec.nbytes
    + total += 4 * node.spec.size
    """,
)


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


@wrong("fusion.kernel_bytes", says="and so is what a node outside reads")
def writes_only_what_nothing_inside_reads(graph, kernel):
    inside = {operand for node in kernel for operand in node.inputs}
    read = {each for each in inside if each not in kernel and each.primitive.name != "constant"}
    return sum(node.spec.nbytes for node in (*read, *[node for node in kernel if node not in inside]))


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


# The rule of `checks.fusion.measure.joined_to_the_last`, written again: a solution stands in a notebook without checks.
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


# --- roofline ---------------------------------------------------------------------------------------------------


@right("fusion.roofline")
def computes_from_what_it_has_read():
    read = {"a": (0.25, 4), "b": (2, 8), "c": (1, 16), "d": (16, 64), "e": (8, 8), "f": (0.5, 32)}
    found = {"ridge": 64 / 16, "memory": [], "arithmetic": [], "below": [], "above": []}
    for name, (intensity, rate) in read.items():
        slope = 16 * intensity
        at = "memory" if slope < 64 else "arithmetic"
        roof = min(slope, 64)
        found["below" if rate < roof else "above" if rate > roof else at].insert(0, name)
    found["bytes"] = read["b"][0] / read["a"][0]
    found["time"] = read["b"][1] / read["a"][1]
    return found


@right("fusion.roofline")
def lists_what_it_sees():
    lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    return {"ridge": 4, "bytes": 8, "time": 2, **lists}


variants(
    lists_what_it_sees,
    """
    swaps_the_roofs [10]: the slope is memory, and the flat roof arithmetic
    - lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    + lists = {"memory": ["d"], "arithmetic": ["a", "c"], "below": ["b", "e"], "above": ["f"]}
    goes_by_the_side_of_the_ridge [10]: only where a mark touches it is it the limit
    - lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    + lists = {"memory": ["a", "b", "c", "f"], "arithmetic": ["d", "e"], "below": ["b", "e"], "above": ["f"]}
    takes_low_marks_for_slow_ones [11]: compare it with the roof straight above
    - lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    + lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["a", "b", "e"], "above": ["f"]}
    believes_that_no_kernel_is_above_a_roof [11]: the slope is that of main memory alone
    - lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    + lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": []}
    takes_bytes_for_time [12]: the bytes would say so
    - return {"ridge": 4, "bytes": 8, "time": 2, **lists}
    + return {"ridge": 4, "bytes": 8, "time": 8, **lists}
    reads_the_axes_as_rulers [9]: equal lengths are equal factors
    - return {"ridge": 4, "bytes": 8, "time": 2, **lists}
    + return {"ridge": 7, "bytes": 1.9, "time": 1.2, **lists}
    says_how_high_the_ridge_is [12]: the ridge is a place on the other axis
    - return {"ridge": 4, "bytes": 8, "time": 2, **lists}
    + return {"ridge": 64, "bytes": 8, "time": 2, **lists}
    writes_letters_in_one_text [6]: a list of names was expected
    - lists = {"memory": ["a", "c"], "arithmetic": ["d"], "below": ["b", "e"], "above": ["f"]}
    + lists = {"memory": "ac", "arithmetic": "d", "below": "be", "above": "f"}
    """,
)


# --- measure ----------------------------------------------------------------------------------------------------


@right("fusion.measure")
def takes_one_clock_for_the_end_and_the_next_start(run, wait, clock, rounds):
    import itertools
    import statistics

    ends = []
    for _ in range(rounds + 1):
        run()
        wait()
        ends.append(clock())
    return statistics.median(after - before for before, after in itertools.pairwise(ends))


@right("fusion.measure")
def reads_the_clock_before_and_after(run, wait, clock, rounds):
    import statistics

    times = []
    for _ in range(rounds + 1):
        start = clock()
        run()
        wait()
        times.append(clock() - start)
    return statistics.median(times[1:])


variants(
    reads_the_clock_before_and_after,
    """
    counts_the_first_call [3, the first call]: which compiles, and comes once
    - return statistics.median(times[1:])
    + return statistics.median(times)
    takes_the_shortest [6, disturbed calls]: no typical one
    - return statistics.median(times[1:])
    + return min(times[1:])
    answers_in_milliseconds [0]: it is in milliseconds
    - return statistics.median(times[1:])
    + return 1000 * statistics.median(times[1:])
    does_not_wait [7, a call that returns early]: wait for it before you look at the clock again
    - wait()
    takes_the_upper_one_of_two [6, disturbed calls]: the mean of the two in the middle
    - return statistics.median(times[1:])
    + return sorted(times[1:])[rounds // 2]
    has_no_call_before [0]: the program was run
    - for _ in range(rounds + 1):
    + for _ in range(rounds):
    - return statistics.median(times[1:])
    + return statistics.median(times)
    """,
)


@wrong("fusion.measure", says="which one disturbed call moves", points=6, part="disturbed calls")
def takes_the_mean(run, wait, clock, rounds):
    run()
    wait()
    start = clock()
    for _ in range(rounds):
        run()
        wait()
    return (clock() - start) / rounds


@right("fusion.measure")
def takes_the_median_of_numpy(run, wait, clock, rounds):
    import numpy as np

    times = []
    for _ in range(rounds + 1):
        start = clock()
        run()
        wait()
        times.append(clock() - start)
    return np.median(times[1:])


@wrong("fusion.measure", says="wait for it, too", points=7, part="a call that returns early")
def does_not_wait_for_the_first(run, wait, clock, rounds):
    import statistics

    run()
    times = []
    for _ in range(rounds):
        start = clock()
        run()
        wait()
        times.append(clock() - start)
    return statistics.median(times)


@wrong("fusion.measure", says="should be", points=0)
def looks_at_a_clock_of_its_own(run, wait, clock, rounds):
    import time

    start = time.perf_counter()
    for _ in range(rounds):
        run()
        wait()
    return (time.perf_counter() - start) / rounds
