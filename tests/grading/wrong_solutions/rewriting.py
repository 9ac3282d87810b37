"""Solutions of exercise 06, rewriting graphs."""

from typing import Any

import numpy as np

from minitorch.graph import Graph, literal
from minitorch.graph.build import with_inputs
from minitorch.graph.values import params_key
from minitorch.passes.patterns import op, wildcard
from minitorch.passes.rewrite import Rule, Rules, integers
from minitorch.primitives import constant
from tests.grading.wrong_solutions import right, wrong

x, y = wildcard("x"), wildcard("y")

# --- dead_code --------------------------------------------------------------------------------------------------


@right("rewriting.dead_code")
def removes_again_and_again(graph):
    while True:
        read = {operand for node in graph.nodes for operand in node.inputs} | set(graph.outputs)
        nodes = [node for node in graph.nodes if node in read]
        if len(nodes) == len(graph.nodes):
            return graph
        graph = graph.with_nodes(nodes, graph.outputs)


@wrong("rewriting.dead_code", says="what only dead code reads is dead itself", points=6)
def removes_once(graph):
    read = {operand for node in graph.nodes for operand in node.inputs} | set(graph.outputs)
    return graph.with_nodes([node for node in graph.nodes if node in read], graph.outputs)


@wrong("rewriting.dead_code", says="what an output needs, itself or over others, has to stay", points=0)
def forgets_that_outputs_are_read(graph):
    read = {operand for node in graph.nodes for operand in node.inputs}
    return graph.with_nodes([node for node in graph.nodes if node in read], graph.outputs)


@wrong("rewriting.dead_code", says="nothing was removed", points=0)
def removes_nothing(graph):
    return graph


@wrong("rewriting.dead_code", says="what an output needs, itself or over others, has to stay", points=0)
def keeps_what_outputs_read_directly(graph):
    needed = set(graph.outputs) | {operand for node in graph.outputs for operand in node.inputs}
    dead = [node for node in graph.nodes if node not in needed]
    return graph.with_nodes([node for node in graph.nodes if node not in dead[1:]][1:], graph.outputs)


@wrong("rewriting.dead_code", says="and so have all inputs")
def removes_inputs(graph):
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    inputs, nodes = ([node for node in each if node in needed] for each in (graph.inputs, graph.nodes))
    return Graph(inputs, graph.outputs, nodes)


@wrong("rewriting.dead_code", says="a pass returns a Graph", points=0)
def returns_the_nodes(graph):
    needed = set(graph.outputs)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    return [node for node in graph.nodes if node in needed]


# --- fold_constants ---------------------------------------------------------------------------------------------


@right("rewriting.fold_constants")
def keeps_the_values(graph):
    values, now, program = {}, {}, []
    for node in graph.inputs:
        now[node] = node
    for node in graph.nodes:
        if node.primitive is constant:
            values[node] = constant.evaluate(**node.params)
        elif all(operand in values for operand in node.inputs):
            values[node] = np.asarray(node.primitive.evaluate(*map(values.get, node.inputs), **node.params))
        now[node] = literal(values[node]) if node in values else with_inputs(node, tuple(map(now.get, node.inputs)))
        program.append(now[node])
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.fold_constants", says="nothing was folded", points=0)
def folds_nothing(graph):
    return graph


@wrong("rewriting.fold_constants", says="what was just folded is a constant, too")
def does_not_look_at_what_it_folded(graph):
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        new = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        if node.inputs and all(operand.primitive is constant for operand in node.inputs):
            arrays = [constant.evaluate(**operand.params) for operand in node.inputs]
            new = literal(np.asarray(node.primitive.evaluate(*arrays, **node.params)))
        now[node] = new
        program.append(new)
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.fold_constants", says="only an operation all of whose operands are constants")
def takes_the_constant_operands(graph):
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        new = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        if new.inputs and any(operand.primitive is constant for operand in new.inputs):
            known = [
                constant.evaluate(**operand.params) if operand.primitive is constant else np.zeros(operand.shape, "f4")
                for operand in new.inputs
            ]
            new = literal(np.asarray(new.primitive.evaluate(*known, **new.params)))
        now[node] = new
        program.append(new)
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.fold_constants", says="it raises TypeError")
def forgets_the_parameters(graph):
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        new = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        if new.inputs and all(operand.primitive is constant for operand in new.inputs):
            arrays = [constant.evaluate(**operand.params) for operand in new.inputs]
            new = literal(np.asarray(new.primitive.evaluate(*arrays)))
        now[node] = new
        program.append(new)
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.fold_constants", says="a constant takes the place of the operation: its type", points=0)
def computes_in_double(graph):
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        new = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        if new.inputs and all(operand.primitive is constant for operand in new.inputs):
            arrays = [constant.evaluate(**operand.params).astype(np.float64) for operand in new.inputs]
            new = literal(np.asarray(new.primitive.evaluate(*arrays, **new.params)))
        now[node] = new
        program.append(new)
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.fold_constants", says="the outputs included")
def leaves_the_outputs_of_old(graph):
    now = {node: node for node in graph.inputs}
    program = []
    for node in graph.nodes:
        new = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        if new.inputs and all(operand.primitive is constant for operand in new.inputs):
            arrays = [constant.evaluate(**operand.params) for operand in new.inputs]
            new = literal(np.asarray(new.primitive.evaluate(*arrays, **new.params)))
        now[node] = new
        program.append(new)
    return graph.with_nodes(program, graph.outputs)


# --- merge ------------------------------------------------------------------------------------------------------


@right("rewriting.merge")
def numbers_the_values(graph):
    number: dict[Any, Any] = {}
    first, now = {}, {}
    for node in graph.inputs:
        number[node], now[node] = len(number), node
    for node in graph.nodes:
        key = (node.primitive.name, *[number[operand] for operand in node.inputs], params_key(node.params))
        if key not in first:
            first[key] = node
            number[node] = len(number)
            now[node] = with_inputs(node, tuple(now[operand] for operand in node.inputs))
        else:
            number[node], now[node] = number[first[key]], now[first[key]]
    return Graph(graph.inputs, [now[node] for node in graph.outputs], dict.fromkeys(now[node] for node in graph.nodes))


@wrong("rewriting.merge", says="nothing was merged", points=0)
def merges_nothing(graph):
    return graph


@wrong("rewriting.merge", says="look at the operands after they were merged themselves")
def compares_the_operands_of_old(graph):
    now = {node: node for node in graph.inputs}
    known, program = {}, []
    for node in graph.nodes:
        key = node.primitive, node.inputs, params_key(node.params)
        if key not in known:
            known[key] = with_inputs(node, tuple(now[operand] for operand in node.inputs))
            program.append(known[key])
        now[node] = known[key]
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.merge", says="and the parameters are")
def forgets_parameters(graph):
    now = {node: node for node in graph.inputs}
    known, program = {}, []
    for node in graph.nodes:
        operands = tuple(now[operand] for operand in node.inputs)
        if node.primitive is constant:
            now[node] = node
            program.append(node)
            continue
        key = node.primitive, operands
        if key not in known:
            known[key] = with_inputs(node, operands)
            program.append(known[key])
        now[node] = known[key]
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.merge", says="the operands in their order", points=21)
def sorts_all_operands(graph):
    now = {node: node for node in graph.inputs}
    known, program = {}, []
    for node in graph.nodes:
        operands = tuple(now[operand] for operand in node.inputs)
        key = node.primitive, tuple(sorted(map(id, operands))), params_key(node.params)
        if key not in known:
            known[key] = with_inputs(node, operands)
            program.append(known[key])
        now[node] = known[key]
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


@wrong("rewriting.merge", says="an output is still the node of the old graph", points=0)
def keeps_the_outputs_of_old(graph):
    now = {node: node for node in graph.inputs}
    known, program = {}, []
    for node in graph.nodes:
        operands = tuple(now[operand] for operand in node.inputs)
        key = node.primitive, operands, params_key(node.params)
        if key not in known:
            known[key] = with_inputs(node, operands)
            program.append(known[key])
        now[node] = known[key]
    return graph.with_nodes(program, graph.outputs)


@wrong("rewriting.merge", says="0.0 and -0.0 are not one number")
def compares_numbers_with_equals(graph):
    now = {node: node for node in graph.inputs}
    known, program = {}, []
    for node in graph.nodes:
        operands = tuple(now[operand] for operand in node.inputs)
        key = (
            node.primitive,
            operands,
            tuple(sorted((name, value) for name, value in node.params.items() if name != "dtype")),
        )
        if key not in known:
            known[key] = with_inputs(node, operands)
            program.append(known[key])
        now[node] = known[key]
    return graph.with_nodes(program, [now[node] for node in graph.outputs])


# --- laws -------------------------------------------------------------------------------------------------------


@right("rewriting.laws")
def adds_tables():
    units = Rules(Rule(x * 1.0, x), Rule(x / 1, x), Rule(x - 0.0, x), Rule(-0.0 + x, x))
    signs = Rules(Rule(op.neg(op.neg(x)), x), Rule(op.sub(x, -y), op.add(y, x)))
    whole = Rules(Rule(0 * x, 0, where=integers("x")), Rule(x - x, 0, where=integers("x")))
    return whole + signs + units


@wrong("rewriting.laws", says="0 times NaN or infinity is NaN", points=16)
def believes_in_zero():
    return Rules(
        Rule(x * 1, x),
        Rule(x / 1, x),
        Rule(op.neg(-x), x),
        Rule(x - -y, x + y),
        Rule(x - 0, x),
        Rule(x + -0.0, x),
        Rule(x * 0, 0),
        Rule(x - x, 0, where=integers("x")),
    )


@wrong("rewriting.laws", says="-0.0 + 0.0 is 0.0")
def has_one_zero():
    return Rules(
        Rule(x * 1, x),
        Rule(x / 1, x),
        Rule(op.neg(-x), x),
        Rule(x - -y, x + y),
        Rule(x - 0, x),
        Rule(x + 0.0, x),
        Rule(x * 0, 0, where=integers("x")),
        Rule(x - x, 0, where=integers("x")),
    )


@wrong("rewriting.laws", says="infinity minus infinity is NaN", points=16)
def forgets_a_condition():
    return Rules(
        Rule(x * 1, x),
        Rule(x / 1, x),
        Rule(op.neg(-x), x),
        Rule(x - -y, x + y),
        Rule(x - 0, x),
        Rule(x + -0.0, x),
        Rule(x * 0, 0, where=integers("x")),
        Rule(x - x, 0),
    )


@wrong("rewriting.laws", says="what is small beside y is lost", points=16)
def does_not_round():
    return Rules(
        Rule(x * 1, x),
        Rule(x / 1, x),
        Rule(op.neg(-x), x),
        Rule(x - -y, x + y),
        Rule(x - 0, x),
        Rule(x + -0.0, x),
        Rule(x * 0, 0, where=integers("x")),
        Rule(x - x, 0, where=integers("x")),
        Rule((x + y) - y, x),
    )


@wrong("rewriting.laws", says="is still there", points=12)
def knows_ones_and_zeros():
    return Rules(Rule(x * 1, x), Rule(x / 1, x), Rule(x - 0, x), Rule(x + -0.0, x))


@wrong("rewriting.laws", says="and no others", points=16)
def adds_a_law_that_nobody_asked_for():
    x, y = wildcard("x"), wildcard("y")
    return Rules(
        Rule(x * 1, x),
        Rule(x / 1, x),
        Rule(x * -1, -x),
        Rule(op.neg(-x), x),
        Rule(x - -y, x + y),
        Rule(x - 0, x),
        Rule(x + -0.0, x),
        Rule(x * 0, 0, where=integers("x")),
        Rule(x - x, 0, where=integers("x")),
    )


@wrong("rewriting.laws", says="an empty table is no achievement", points=0)
def has_no_laws():
    return Rules()


@wrong("rewriting.laws", says="Rules(...) was expected", points=0)
def returns_a_list():
    return [Rule(x * 1, x), Rule(x / 1, x)]
