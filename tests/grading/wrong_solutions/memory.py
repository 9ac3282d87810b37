"""Solutions of exercise 11, memory."""

from minitorch_grading.harness.memory import ELEMENTWISE, is_buffer, is_view
from tests.grading.wrong_solutions import right, variants, wrong

# --- live_ranges ------------------------------------------------------------------------------------------------


@right("memory.live_ranges")
def goes_backwards(graph):
    def below(node):
        while is_view(node):
            node = node.inputs[0]
        return node

    last = {below(node): len(graph.nodes) for node in graph.outputs}
    for step in reversed(range(len(graph.nodes))):
        for operand in graph.nodes[step].inputs:
            last.setdefault(below(operand), step)
    return {node: (step, last.get(node, step)) for step, node in enumerate(graph.nodes) if is_buffer(node)}


@wrong("memory.live_ranges", says="what reads a view of it reads its memory", points=9)
def overlooks_views(graph):
    found = {node: (step, step) for step, node in enumerate(graph.nodes) if is_buffer(node)}
    for step, node in enumerate(graph.nodes):
        for operand in node.inputs:
            if operand in found:
                found[operand] = found[operand][0], step
    for node in graph.outputs:
        if node in found:
            found[node] = found[node][0], len(graph.nodes)
    return found


@wrong("memory.live_ranges", says="is needed when all steps are done")
def ends_outputs_with_their_last_use(graph):
    found = {}
    for step, node in enumerate(graph.nodes):
        if is_buffer(node):
            users = [later for later, other in enumerate(graph.nodes) if node in other.inputs]
            found[node] = step, max(users, default=step)
    return found


@wrong("memory.live_ranges", says="a view: it has no memory of its own", points=9)
def gives_views_memory(graph):
    found = {}
    for step, node in enumerate(graph.nodes):
        users = [later for later, other in enumerate(graph.nodes) if node in other.inputs]
        found[node] = step, len(graph.nodes) if node in graph.outputs else max(users, default=step)
    return found


@wrong("memory.live_ranges", says="an input, whose memory is the caller's", points=0)
def counts_inputs(graph):
    found = {node: (0, len(graph.nodes)) for node in graph.inputs}
    for step, node in enumerate(graph.nodes):
        found[node] = step, step
    return found


@wrong("memory.live_ranges", says="it ends with the last step that reads it")
def ends_before_the_reader(graph):
    found = {}
    for step, node in enumerate(graph.nodes):
        if is_buffer(node):
            users = [later for later, other in enumerate(graph.nodes) if node in other.inputs]
            found[node] = step, len(graph.nodes) if node in graph.outputs else max(users, default=step + 1) - 1
    return found


@wrong("memory.live_ranges", says="has no live range", points=0)
def forgets_outputs_altogether(graph):
    return {}


@wrong("memory.live_ranges", says="a dict was expected, from nodes to pairs (first, last), and it is [", points=0)
def lists_the_ranges(graph):
    return [(step, step + 1) for step in range(len(graph.nodes))]


# --- best_fit ---------------------------------------------------------------------------------------------------


@right("memory.best_fit")
def measures_every_gap(buffers):
    offsets = []
    for number, (size, first, last) in enumerate(buffers):
        taken = set()
        for other in range(number):
            if buffers[other][1] <= last and first <= buffers[other][2]:
                taken |= {*range(offsets[other], offsets[other] + buffers[other][0])}
        end = max(taken, default=-1) + 1
        begins = [at for at in range(end) if at not in taken and (at == 0 or at - 1 in taken)]
        gaps = [(next(to for to in range(at, end) if to in taken) - at, at) for at in begins]
        offsets.append(min([gap for gap in gaps if gap[0] >= size], default=(0, end))[1])
    return offsets


@wrong("memory.best_fit", says="best fit takes the smallest that is large enough", part="the smallest gap")
def copies_the_planner_of_the_notebook(buffers):
    offsets = {}
    for number, (size, first, last) in enumerate(buffers):
        taken = sorted(
            (offset, offset + buffers[other][0])
            for other, offset in offsets.items()
            if buffers[other][1] <= last and first <= buffers[other][2]
        )
        place = 0
        for begin, end in taken:
            if place + size <= begin:
                break
            place = max(place, end)
        offsets[number] = place
    return [offsets[number] for number in range(len(buffers))]


@wrong("memory.best_fit", says="reads one for the last time while it writes the other")
def repairs_the_order_only(buffers):
    offsets = []
    for number, (size, first, last) in enumerate(buffers):
        busy = sorted(
            (offsets[other], offsets[other] + buffers[other][0])
            for other in range(number)
            if buffers[other][1] < last and first < buffers[other][2]
        )
        at, gaps = 0, []
        for start, end in busy:
            if at + size <= start:
                gaps.append((start - at, at))
            at = max(at, end)
        offsets.append(min(gaps)[1] if gaps else at)
    return offsets


@wrong("memory.best_fit", says="is in the way only if both live in one step", points=10)
def repairs_the_last_step_only(buffers):
    offsets = []
    for number, (size, first, _) in enumerate(buffers):
        busy = sorted(
            (offsets[other], offsets[other] + buffers[other][0])
            for other in range(number)
            if buffers[other][2] >= first
        )
        at, gaps = 0, []
        for start, end in busy:
            if at + size <= start:
                gaps.append((start - at, at))
            at = max(at, end)
        offsets.append(min(gaps)[1] if gaps else at)
    return offsets


@wrong("memory.best_fit", says="nothing is used twice", points=0)
def puts_all_in_a_row(buffers):
    offsets, end = [], 0
    for size, _, _ in buffers:
        offsets.append(end)
        end += size
    return offsets


@wrong("memory.best_fit", says="overlap", points=0)
def puts_all_at_the_start(buffers):
    return [0] * len(buffers)


# --- may_overwrite ----------------------------------------------------------------------------------------------


@right("memory.may_overwrite")
def asks_who_is_left(graph):
    def below(node):
        while is_view(node):
            node = node.inputs[0]
        return node

    found = []
    needed = {below(node) for node in graph.outputs}
    for node in reversed(graph.nodes):
        read = [below(operand) for operand in dict.fromkeys(node.inputs)]
        if node.primitive in ELEMENTWISE:
            for operand in dict.fromkeys(node.inputs):
                mine = operand not in graph.inputs and is_buffer(operand)
                if mine and operand not in needed and read.count(operand) == 1 and operand.spec == node.spec:
                    found.append((node, operand))
        needed.update(read)
    return found


variants(
    asks_who_is_left,
    """
    asks_for_the_shape_alone [10, element by element]: an element of the result needs other elements
    - if node.primitive in ELEMENTWISE:
    + if not is_view(node):
    """,
)


@wrong("memory.may_overwrite", says="it is read again later, itself or through a view")
def overlooks_later_views(graph):
    found = []
    for step, node in enumerate(graph.nodes):
        later = {operand for other in graph.nodes[step + 1 :] for operand in other.inputs} | set(graph.outputs)
        for operand in dict.fromkeys(node.inputs):
            if node.primitive in ELEMENTWISE and operand in graph.nodes and is_buffer(operand) and operand not in later:
                found.append((node, operand))
    return found


@wrong("memory.may_overwrite", says="that is memory of the caller's")
def writes_over_inputs(graph):
    found = []
    for step, node in enumerate(graph.nodes):
        later = {operand for other in graph.nodes[step + 1 :] for operand in other.inputs} | set(graph.outputs)
        for operand in dict.fromkeys(node.inputs):
            if node.primitive in ELEMENTWISE and operand not in later and operand.spec == node.spec:
                found.append((node, operand))
    return found


@wrong("memory.may_overwrite", says="it is an output", part="whose memory it is")
def writes_over_outputs(graph):
    memory = {}
    for node in (*graph.inputs, *graph.nodes):
        memory[node] = memory[node.inputs[0]] if is_view(node) else node
    found = []
    for step, node in enumerate(graph.nodes):
        later = {memory[operand] for other in graph.nodes[step + 1 :] for operand in other.inputs}
        for operand in dict.fromkeys(node.inputs):
            once = [memory[each] for each in dict.fromkeys(node.inputs)].count(operand) == 1
            ours = operand in graph.nodes and is_buffer(operand) and operand not in later and once
            if ours and node.primitive in ELEMENTWISE and operand.spec == node.spec:
                found.append((node, operand))
    return found


@wrong("memory.may_overwrite", says="through a view as well, in another order", points=10)
def overlooks_a_second_look(graph):
    memory = {}
    for node in (*graph.inputs, *graph.nodes):
        memory[node] = memory[node.inputs[0]] if is_view(node) else node
    kept = {memory[node] for node in graph.outputs}
    found = []
    for step, node in enumerate(graph.nodes):
        later = {memory[operand] for other in graph.nodes[step + 1 :] for operand in other.inputs} | kept
        for operand in dict.fromkeys(node.inputs):
            ours = operand in graph.nodes and is_buffer(operand) and operand not in later
            if ours and node.primitive in ELEMENTWISE and operand.spec == node.spec:
                found.append((node, operand))
    return found


@wrong("memory.may_overwrite", says="an element of the result needs other elements")
def writes_sums_in_place(graph):
    memory = {}
    for node in (*graph.inputs, *graph.nodes):
        memory[node] = memory[node.inputs[0]] if is_view(node) else node
    kept = {memory[node] for node in graph.outputs}
    found = []
    for step, node in enumerate(graph.nodes):
        later = {memory[operand] for other in graph.nodes[step + 1 :] for operand in other.inputs} | kept
        for operand in dict.fromkeys(node.inputs):
            once = [memory[each] for each in dict.fromkeys(node.inputs)].count(operand) == 1
            if operand in graph.nodes and is_buffer(operand) and operand not in later and once and is_buffer(node):
                found.append((node, operand))
    return found


@wrong("memory.may_overwrite", says="was expected, and it is a generator", points=0)
def gives_pairs_one_by_one(graph):
    return ((node, node.inputs[0]) for node in graph.nodes)


@wrong("memory.may_overwrite", says="which nobody needs afterwards", points=0)
def never_dares(graph):
    return []


# --- plan -------------------------------------------------------------------------------------------------------


@right("memory.plan")
def improves_by_exchanges(buffers):
    def placed(order):
        offsets = [0] * len(buffers)
        for position, number in enumerate(order):
            size, first, last = buffers[number]
            busy = [other for other in order[:position] if buffers[other][1] <= last and first <= buffers[other][2]]
            ends = [0, *(offsets[other] + buffers[other][0] for other in busy)]
            free = [
                at
                for at in ends
                if all(at + size <= offsets[each] or offsets[each] + buffers[each][0] <= at for each in busy)
            ]
            offsets[number] = min(free)
        return max((at + size for at, (size, _, _) in zip(offsets, buffers, strict=True)), default=0), offsets

    from random import Random

    random = Random(3)
    order = sorted(range(len(buffers)), key=lambda number: -buffers[number][0])
    best = placed(order)
    for _ in range(100):
        trial = order[:]
        random.shuffle(trial)
        now = placed(trial)
        for _ in range(8):
            if len(trial) < 2:
                break
            a, b = random.sample(range(len(trial)), 2)
            trial[a], trial[b] = trial[b], trial[a]
            new = placed(trial)
            if new[0] <= now[0]:
                now = new
            else:
                trial[a], trial[b] = trial[b], trial[a]
        best = min(best, now, key=lambda each: each[0])
    return best[1]


@wrong("memory.plan", says="yours: 232 KiB; best known: 194", points=17.5)
def fits_first(buffers):
    offsets = []
    for number, (size, first, last) in enumerate(buffers):
        busy = sorted(
            (offsets[other], offsets[other] + buffers[other][0])
            for other in range(number)
            if buffers[other][1] <= last and first <= buffers[other][2]
        )
        at = 0
        for start, end in busy:
            if at + size <= start:
                break
            at = max(at, end)
        offsets.append(at)
    return offsets


@wrong("memory.plan", says="best known: 194", points=10)
def knows_the_three_programs(buffers):
    known = {
        (24, 10, 32): [0, 24, 34, 50, 34, 0, 30, 10, 0, 34, 56, 24],
        (12, 32, 16): [0, 32, 0, 0, 64, 30, 4, 0, 36, 48, 0, 6],
        (10, 16, 24): [0, 32, 8, 0, 4, 32, 32, 10, 22, 16, 0, 16],
    }
    found = known.get(tuple(size for size, _, _ in buffers[:3]))
    if found:
        return found
    return [sum(size for size, _, _ in buffers[:number]) for number in range(len(buffers))]


@wrong("memory.plan", says="yours: 556 KiB", points=10)
def uses_nothing_twice(buffers):
    offsets, end = [], 0
    for size, _, _ in buffers:
        offsets.append(end)
        end += size
    return offsets


@wrong("memory.plan", says="so both live in it", points=0)
def frees_too_early(buffers):
    offsets = []
    for number, (size, first, last) in enumerate(buffers):
        busy = sorted(
            (offsets[other], offsets[other] + buffers[other][0])
            for other in range(number)
            if buffers[other][1] < last and first < buffers[other][2]
        )
        at = 0
        for start, end in busy:
            if at + size <= start:
                break
            at = max(at, end)
        offsets.append(at)
    return offsets


@wrong("memory.plan", says="begins before the arena", points=0)
def begins_below_zero(buffers):
    return [-size for size, _, _ in buffers]


# --- checkpoints ------------------------------------------------------------------------------------------------


@right("memory.checkpoints")
def chooses_layer_by_layer(sizes, costs, budget):
    best = None
    for largest in {sum(sizes[i:j]) for i in range(len(sizes)) for j in range(i, len(sizes) + 1)}:
        states = {(0, 0): (0, [])}  # kept memory and the run so far, to the cost and the kept layers
        for layer, size in enumerate(sizes):
            new = {}
            for (total, run), (again, kept) in states.items():
                options = [((total + size, 0), (again, [*kept, layer]))]
                if run + size <= largest:
                    options.append(((total, run + size), (again + costs[layer], kept)))
                for state, value in options:
                    if state[0] + largest <= budget and (state not in new or value[0] < new[state][0]):
                        new[state] = value
            states = new
        for again, kept in states.values():
            if best is None or again < best[0]:
                best = again, kept
    return best[1]


@wrong("memory.checkpoints", says="it was stopped after 4 seconds", points=12)
def tries_all_choices(sizes, costs, budget):
    best, least = 0, sum(costs) + 1
    for choice in range(1 << len(sizes)):
        total = run = largest = again = 0
        for layer, size in enumerate(sizes):
            if choice >> layer & 1:
                total, run = total + size, 0
            else:
                run, again = run + size, again + costs[layer]
                largest = max(largest, run)
        if total + largest <= budget and again < least:
            best, least = choice, again
    return [layer for layer in range(len(sizes)) if best >> layer & 1]


@wrong("memory.checkpoints", says="yours: 455 GFLOP; best known: 348", points=21)
def keeps_layers_at_one_distance(sizes, costs, budget):
    found = None
    for choice in range(1 << min(len(sizes), 9)):  # of a short chain, all choices
        if len(sizes) <= 9:
            kept = [layer for layer in range(len(sizes)) if choice >> layer & 1]
        else:
            step = choice // 20 + 1
            kept = list(range(choice % 20 % step, len(sizes), step))
        largest = run = 0
        for layer, size in enumerate(sizes):
            run = 0 if layer in kept else run + size
            largest = max(largest, run)
        again = sum(costs) - sum(costs[layer] for layer in kept)
        if sum(sizes[layer] for layer in kept) + largest <= budget and (found is None or again < found[0]):
            found = again, kept
    return found[1]


@wrong("memory.checkpoints", says="what is computed again is in memory, too", points=0)
def counts_kept_memory_only(sizes, costs, budget):
    by_worth = sorted(range(len(sizes)), key=lambda layer: -costs[layer] / sizes[layer])
    kept, total = [], 0
    for layer in by_worth:
        if total + sizes[layer] <= budget:
            kept, total = [*kept, layer], total + sizes[layer]
    return kept


@wrong("memory.checkpoints", says="MiB; sizes", points=0)
def keeps_everything(sizes, costs, budget):
    return list(range(len(sizes)))


@wrong("memory.checkpoints", says="what is computed again is in memory, too", points=0)
def keeps_every_third(sizes, costs, budget):
    return list(range(2, len(sizes), 3))


@wrong("memory.checkpoints", says="a list of layers was expected", points=0)
def says_yes_or_no(sizes, costs, budget):
    return [cost > 3 for cost in costs]
