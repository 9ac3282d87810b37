"""Solutions of exercise 03, the computation graph."""

from typing import Any

from tests.grading.wrong_solutions import right, wrong

# --- order ------------------------------------------------------------------------------------------------------


@right("graph.order")
def counts_what_is_missing(outputs):
    needed, found = [], set(outputs)
    pending = list(found)
    while pending:
        node = pending.pop()
        needed.append(node)
        for operand in node.inputs:
            if operand not in found:
                found.add(operand)
                pending.append(operand)
    users: dict[Any, list[Any]] = {node: [] for node in needed}
    missing = {node: len(set(node.inputs)) for node in needed}
    for node in needed:
        for operand in set(node.inputs):
            users[operand].append(node)
    ready = [node for node in needed if not missing[node]]
    for node in ready:
        for user in users[node]:
            missing[user] -= 1
            if not missing[user]:
                ready.append(user)
    return ready


@wrong("graph.order", says="it calls itself too often", points=23)
def recurses(outputs):
    done, result = set(), []

    def visit(node):
        if node not in done:
            done.add(node)
            for operand in node.inputs:
                visit(operand)
            result.append(node)

    for node in outputs:
        visit(node)
    return result


@wrong("graph.order", says="it is reached along several paths")
def forgets_where_it_was(outputs):
    result = []

    def visit(node):
        for operand in node.inputs:
            visit(operand)
        result.append(node)

    for node in outputs:
        visit(node)
    return result


@wrong("graph.order", says="comes before its operand")
def goes_breadth_first(outputs):
    result = list(dict.fromkeys(outputs))
    for node in result:
        for operand in node.inputs:
            if operand not in result:
                result.append(operand)
    return result[::-1]


@wrong("graph.order", says="comes before its operand")
def begins_at_the_end(outputs):
    done, result, pending = set(), [], list(outputs)
    while pending:
        node = pending.pop()
        if node not in done:
            done.add(node)
            result.append(node)
            pending += node.inputs
    return result


@wrong("graph.order", says="look at each node once, and not at each of the 2 ** 40 paths", points=22)
def goes_along_every_path(outputs):
    depth, pending = {}, [(node, 0) for node in outputs]
    while pending:
        node, deep = pending.pop()
        depth[node] = max(deep, depth.get(node, 0))
        pending += [(operand, deep + 1) for operand in node.inputs]
    return sorted(depth, key=depth.get, reverse=True)


@wrong("graph.order", says="an input, which belongs to the order as well")
def leaves_inputs_out(outputs):
    done, result, pending = set(), [], list(outputs)
    while pending:
        node = pending[-1]
        missing = [operand for operand in node.inputs if operand not in done]
        if node in done:
            pending.pop()
        elif missing:
            pending += missing
        else:
            done.add(pending.pop())
            if node.primitive.name != "input":
                result.append(node)
    return result


# --- run --------------------------------------------------------------------------------------------------------


@right("graph.run")
def recurses_with_a_memory(graph, fetches, feeds, compute):
    values = {}

    def value(node):
        if node not in values:
            if node in graph.inputs:
                values[node] = feeds[node.params["name"]]
            else:
                values[node] = compute(node, [value(operand) for operand in node.inputs])
        return values[node]

    return [value(node) for node in fetches]


@wrong("graph.run", says="feeds is the caller's", points=0)
def puts_values_into_the_feeds(graph, fetches, feeds, compute):
    needed = set(fetches)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
    feeds.update({node: feeds[node.params["name"]] for node in graph.inputs if node in needed})
    for node in graph.nodes:
        if node in needed:
            feeds[node] = compute(node, [feeds[operand] for operand in node.inputs])
    return [feeds[node] for node in fetches]


@wrong("graph.run", says="keep what has been computed", points=24)
def recurses_without_a_memory(graph, fetches, feeds, compute):
    def value(node):
        if node in graph.inputs:
            return feeds[node.params["name"]]
        return compute(node, [value(operand) for operand in node.inputs])

    return [value(node) for node in fetches]


@wrong("graph.run", says="keep what has been computed", points=24)
def remembers_for_one_fetch(graph, fetches, feeds, compute):
    def run_one(fetch):
        values = {}

        def value(node):
            if node not in values:
                if node in graph.inputs:
                    values[node] = feeds[node.params["name"]]
                else:
                    values[node] = compute(node, [value(operand) for operand in node.inputs])
            return values[node]

        return value(fetch)

    return [run_one(fetch) for fetch in fetches]


@wrong("graph.run", says="a placeholder that no fetch needs may be left out", points=20)
def computes_the_whole_graph(graph, fetches, feeds, compute):
    values = {node: feeds[node.params["name"]] for node in graph.inputs}
    for node in graph.nodes:
        values[node] = compute(node, [values[operand] for operand in node.inputs])
    return [values[node] for node in fetches]


@wrong("graph.run", says="None for a placeholder that was not fed: y; a placeholder that no fetch needs", points=20)
def feeds_none_in_place_of_what_is_missing(graph, fetches, feeds, compute):
    values = {node: feeds.get(node.params["name"]) for node in graph.inputs}
    for node in graph.nodes:
        values[node] = compute(node, [values[operand] for operand in node.inputs])
    return [values[node] for node in fetches]


@wrong("graph.run", says="compute got None for an operand of", points=0)
def takes_what_is_not_computed_yet_for_none(graph, fetches, feeds, compute):
    values = {node: feeds[node.params["name"]] for node in graph.inputs if node.params["name"] in feeds}
    for node in reversed(graph.nodes):
        values[node] = compute(node, [values.get(operand) for operand in node.inputs])
    return [values[node] for node in fetches]


@wrong("graph.run", says="which no fetch needs", points=20)
def computes_whatever_it_can(graph, fetches, feeds, compute):
    values = {node: feeds[node.params["name"]] for node in graph.inputs if node.params["name"] in feeds}
    for node in graph.nodes:
        if all(operand in values for operand in node.inputs):
            values[node] = compute(node, [values[operand] for operand in node.inputs])
    return [values[node] for node in fetches]


@wrong("graph.run", says="a list of", points=0)
def returns_a_dict(graph, fetches, feeds, compute):
    values = {node: feeds[node.params["name"]] for node in graph.inputs if node.params["name"] in feeds}
    for node in graph.nodes:
        if all(operand in values for operand in node.inputs):
            values[node] = compute(node, [values[operand] for operand in node.inputs])
    return {str(node): values[node] for node in fetches}


@wrong("graph.run", says="a list of 3 arrays was expected")
def gives_the_last_fetch(graph, fetches, feeds, compute):
    values = {}

    def value(node):
        if node not in values:
            if node in graph.inputs:
                values[node] = feeds[node.params["name"]]
            else:
                values[node] = compute(node, [value(operand) for operand in node.inputs])
        return values[node]

    return [value(fetches[-1])]


# --- release ----------------------------------------------------------------------------------------------------


@right("graph.release")
def walks_from_the_end(graph):
    kept = set(graph.outputs) | set(graph.inputs)
    plan = []
    for node in reversed(graph.nodes):
        dead = [each for each in dict.fromkeys((*node.inputs, node)) if each not in kept]
        kept.update(dead)
        plan.append(dead)
    return plan[::-1]


@wrong("graph.release", says="nothing is ever forgotten", points=0)
def forgets_nothing(graph):
    return [[] for _ in graph.nodes]


@wrong("graph.release", says="still reads it")
def forgets_after_the_first_use(graph):
    known = set()
    plan = []
    for node in graph.nodes:
        dead = [each for each in dict.fromkeys(node.inputs) if each not in known]
        dead = [each for each in dead if each not in graph.outputs and each not in graph.inputs]
        known.update(dead)
        plan.append(dead)
    return plan


@wrong("graph.release", says="is an output, and is forgotten")
def forgets_outputs(graph):
    last = {node: step for step, node in enumerate(graph.nodes)}
    for step, node in enumerate(graph.nodes):
        last.update((operand, step) for operand in node.inputs if operand in last)
    return [[node for node in graph.nodes if last[node] == step] for step in range(len(graph.nodes))]


@wrong("graph.release", says="an input, which is the caller's")
def forgets_inputs(graph):
    kept = set(graph.outputs)
    plan = []
    for node in reversed(graph.nodes):
        dead = [each for each in dict.fromkeys((*node.inputs, node)) if each not in kept]
        kept.update(dead)
        plan.append(dead)
    return plan[::-1]


@wrong("graph.release", says="and forgotten never", points=12)
def overlooks_what_nobody_reads(graph):
    last = {}
    for step, node in enumerate(graph.nodes):
        last.update(dict.fromkeys(node.inputs, step))
    kept = {*graph.outputs, *graph.inputs}
    return [[node for node, at in last.items() if at == step and node not in kept] for step in range(len(graph.nodes))]


# --- backward ---------------------------------------------------------------------------------------------------


@right("graph.backward")
def collects_shares(graph, pull):
    shares = {graph.outputs[0]: [1.0]}
    for node in graph.nodes[::-1]:
        for operand, share in zip(node.inputs, pull(node, sum(shares.get(node, [0.0]))), strict=True):
            shares.setdefault(operand, []).append(share)
    return [float(sum(shares.get(node, [0.0]))) for node in graph.inputs]


@wrong("graph.backward", says="the gradient was counted once, the value is used twice", points=4)
def overwrites(graph, pull):
    cotangents = dict.fromkeys((*graph.inputs, *graph.nodes), 0.0)
    cotangents[graph.outputs[0]] = 1.0
    for node in reversed(graph.nodes):
        for operand, share in zip(node.inputs, pull(node, cotangents[node]), strict=True):
            cotangents[operand] = share
    return [cotangents[node] for node in graph.inputs]


@wrong("graph.backward", says="the walk begins at the last node", points=16)
def takes_the_last_node_for_the_output(graph, pull):
    cotangents = dict.fromkeys((*graph.inputs, *graph.nodes), 0.0)
    cotangents[graph.nodes[-1]] = 1.0
    for node in reversed(graph.nodes):
        for operand, share in zip(node.inputs, pull(node, cotangents[node]), strict=True):
            cotangents[operand] += share
    return [cotangents[node] for node in graph.inputs]


@wrong("graph.backward", says="an operand that stands twice", points=16)
def takes_distinct_operands(graph, pull):
    cotangents = dict.fromkeys((*graph.inputs, *graph.nodes), 0.0)
    cotangents[graph.outputs[0]] = 1.0
    for node in reversed(graph.nodes):
        for operand, share in dict(zip(node.inputs, pull(node, cotangents[node]), strict=True)).items():
            cotangents[operand] += share
    return [cotangents[node] for node in graph.inputs]


@wrong("graph.backward", says="raises KeyError")
def knows_only_what_it_met(graph, pull):
    cotangents = {graph.outputs[0]: 1.0}
    for node in reversed(graph.nodes):
        if node in cotangents:
            for operand, share in zip(node.inputs, pull(node, cotangents[node]), strict=True):
                cotangents[operand] = cotangents.get(operand, 0.0) + share
    return [cotangents[node] for node in graph.inputs]


@wrong("graph.backward", says="handed on before it is complete")
def goes_forwards_from_the_output(graph, pull):
    cotangents = dict.fromkeys((*graph.inputs, *graph.nodes), 0.0)
    cotangents[graph.outputs[0]] = 1.0
    pending, done = [graph.outputs[0]], set()
    while pending:
        node = pending.pop()
        if node in done or node in graph.inputs:
            continue
        done.add(node)
        for operand, share in zip(node.inputs, pull(node, cotangents[node]), strict=True):
            cotangents[operand] += share
            pending.append(operand)
    return [cotangents[node] for node in graph.inputs]
