"""Solutions of exercise 16, more than one device."""

import minitorch as mt
from minitorch_grading.harness.devices import carry_out
from tests.grading.wrong_solutions import right, variants, wrong

# --- all_gather -------------------------------------------------------------------------------------------------


@right("devices.all_gather")
def sends_to_the_left_what_has_just_arrived(group):
    steps, newest = [], list(range(len(group)))
    while len(steps) < len(group) - 1:
        steps.append([(device, group[at - 1], newest[at], "copy") for at, device in enumerate(group)])
        newest = newest[1:] + newest[:1]
    return steps


@right("devices.all_gather")
def serves_each_distance_in_a_step(group):
    steps = []
    for distance in range(1, len(group)):
        turned = group[distance:] + group[:distance]
        steps.append([(device, turned[at], at, "copy") for at, device in enumerate(group)])
    return steps


@wrong("devices.all_gather", says="sends to devices", points=0)
def broadcasts_in_one_step(group):
    return [[(a, b, chunk, "copy") for chunk, a in enumerate(group) for b in group if a != b]]


@wrong("devices.all_gather", says="is no device of the group", points=0)
def takes_places_for_devices(group):
    size = len(group)
    return [[(at, (at + 1) % size, (at - step) % size, "copy") for at in range(size)] for step in range(size - 1)]


@wrong("devices.all_gather", says="chunks are sent one after the other", points=10)
def goes_through_the_first(group):
    first, *others = group
    there = [[(device, first, at, "copy")] for at, device in enumerate(others, 1)]
    return there + [[(first, device, chunk, "copy") for chunk in range(len(group))] for device in others]


@wrong("devices.all_gather", says="which it does not have yet", points=0)
def passes_chunks_on_too_early(group):
    size = len(group)
    return [
        [(group[at], group[(at + 1) % size], (at + step) % size, "copy") for at in range(size)]
        for step in range(size - 1)
    ]


@wrong("devices.all_gather", says="does not have chunk", points=0)
def sends_its_own_chunk_always(group):
    size = len(group)
    return [[(group[at], group[(at + 1) % size], at, "copy") for at in range(size)] for _ in range(size - 1)]


@wrong("devices.all_gather", says="was added to", points=0)
def adds_what_arrives(group):
    size = len(group)
    return [
        [(group[at], group[(at + 1) % size], (at - step) % size, "add") for at in range(size)] for step in range(size)
    ]


@wrong("devices.all_gather", says="does not have chunk", points=5)
def works_for_powers_of_two(group):
    size, steps, distance = len(group), [], 1
    while distance < size:
        step = []
        for at in range(size):
            if at ^ distance < size:
                mine = [chunk for chunk in range(size) if chunk // distance == at // distance]
                step += [(group[at], group[at ^ distance], chunk, "copy") for chunk in mine]
        steps.append(step)
        distance *= 2
    return steps


# --- train ------------------------------------------------------------------------------------------------------


@right("devices.train")
def weighs_the_means_of_pieces(w, batches, rate):
    for batch in batches:
        w.grad = None
        rows = [x.shape[0] for x, _ in batch]
        for (x, y), count in zip(batch, rows, strict=True):
            if count:
                (((x @ w - y) ** 2).mean() * (count / sum(rows))).backward()
        with mt.no_grad():
            w.sub_(w.grad * rate)
    return w


@right("devices.train")
def divides_at_the_end(w, batches, rate):
    for batch in batches:
        total, rows = mt.zeros(w.shape[0]), 0
        for x, y in batch:
            error = x @ w.detach() - y
            total, rows = total + 2 * (error @ x), rows + len(y)
        with mt.no_grad():
            w -= rate * total / rows
    return w


@right("devices.train")
def divides_each_sum_by_all_rows(w, batches, rate):
    for batch in batches:
        w.grad = None
        rows = sum(len(y) for _, y in batch)
        for x, y in batch:
            (((x @ w - y) ** 2).sum() / rows).backward()
        with mt.no_grad():
            w -= rate * w.grad
    return w


variants(
    divides_each_sum_by_all_rows,
    """
    keeps_gradients_of_earlier_batches [20]: clear it after each update
    - w.grad = None
    sums_all_losses [0]: grows with the batch
    - rows = sum(len(y) for _, y in batch)
    - (((x @ w - y) ** 2).sum() / rows).backward()
    + ((x @ w - y) ** 2).sum().backward()
    divides_by_the_rows_of_an_empty_piece [20]: ZeroDivisionError
    - (((x @ w - y) ** 2).sum() / rows).backward()
    + (((x @ w - y) ** 2).sum() * (1 / len(y)) * (len(y) / rows)).backward()
    """,
)


@wrong("devices.train", says="the mean of the pieces' means", points=5)
def takes_the_mean_of_means(w, batches, rate):
    for batch in batches:
        w.grad = None
        for x, y in batch:
            if len(y):
                (((x @ w - y) ** 2).mean() / len(batch)).backward()
        with mt.no_grad():
            w -= rate * w.grad
    return w


@wrong("devices.train", says="a batch is one update", points=0)
def updates_after_each_piece(w, batches, rate):
    for batch in batches:
        for x, y in batch:
            if len(y):
                w.grad = None
                ((x @ w - y) ** 2).mean().backward()
                with mt.no_grad():
                    w -= rate * w.grad
    return w


@wrong("devices.train", says="grows with the number of pieces", points=0)
def adds_means(w, batches, rate):
    for batch in batches:
        w.grad = None
        for x, y in batch:
            if len(y):
                ((x @ w - y) ** 2).mean().backward()
        with mt.no_grad():
            w -= rate * w.grad
    return w


# --- messages ---------------------------------------------------------------------------------------------------


@right("devices.messages")
def decides_case_by_case(x, w, y, shape, devices, itemsize):
    rows, inner, columns = shape
    size = {"x": itemsize * rows * inner, "w": itemsize * inner * columns, "y": itemsize * rows * columns}

    def finished(plan, total, cut):
        if cut == y:
            return total, plan
        if cut == "terms" and y is None:
            half = (devices - 1) * size["y"]  # a reduce-scatter and an all-gather are an all-reduce
            return total + 2 * half, [*plan, ("reduce-scatter", "y"), ("all-gather", "y")]
        if cut == "terms":
            return total + (devices - 1) * size["y"], [*plan, ("reduce-scatter", "y")]
        if y is None:
            return total + (devices - 1) * size["y"], [*plan, ("all-gather", "y")]
        return total + size["y"] - size["y"] // devices, [*plan, ("all-to-all", "y")]

    def without(array):
        return [("all-gather", array)], (devices - 1) * size[array]

    ways = []
    if x in ("rows", None) and w is None:
        ways.append(finished([], 0, x if x else y))
    if x is None and w == "columns":
        ways.append(finished([], 0, "columns"))
    if "inner" in (x, w) and {x, w} <= {"inner", None}:
        ways.append(finished([], 0, "terms"))
    if x:
        plan, total = without("x")
        if w != "inner" or w is None:
            ways.append(finished(plan, total, w or y))
        else:
            ways.append(finished(plan, total, "terms"))
    if w:
        plan, total = without("w")
        ways.append(finished(plan, total, "terms" if x == "inner" else x or y))
    if x and w:
        (plan, total), (more, rest) = without("x"), without("w")
        ways.append(finished(plan + more, total + rest, y))
    total, plan = min(ways, key=lambda way: way[0])
    return plan, total


variants(
    decides_case_by_case,
    """
    adds_up_what_does_not_fit [22]: so two parts that do not fit
    - if "inner" in (x, w) and {x, w} <= {"inner", None}:
    + if "inner" in (x, w):
    """,
)


@wrong("devices.messages", says="each has", points=5)
def counts_elements(x, w, y, shape, devices, itemsize):
    def cheapest(x, w, y, shape, devices):
        rows, inner, columns = shape
        sizes = {"x": rows * inner, "w": inner * columns, "y": rows * columns}
        parts = {("rows", None): "rows", (None, "columns"): "columns", (None, None): y}
        times = {"all-gather": devices, "reduce-scatter": devices, "all-reduce": 2 * devices, "all-to-all": 1}
        plans = []
        for of_x in {x, None}:
            for of_w in {w, None}:
                plan = [("all-gather", array) for array, a, b in (("x", x, of_x), ("w", w, of_w)) if a != b]
                terms = "inner" in (of_x, of_w) and {of_x, of_w} <= {"inner", None}
                cut = "terms" if terms else parts.get((of_x, of_w), "nothing")
                if cut == "nothing":
                    continue
                if cut != y and terms:
                    plan.append(("reduce-scatter" if y else "all-reduce", "y"))
                elif cut != y:
                    plan.append(("all-to-all" if y else "all-gather", "y"))
                plans.append((sum((devices - 1) * sizes[of] * times[kind] // devices for kind, of in plan), plan))
        total, plan = min(plans, key=lambda each: each[0])
        return plan, total

    return cheapest(x, w, y, shape, devices)


@wrong("devices.messages", says="are enough", points=5)
def gathers_operands_always(x, w, y, shape, devices, itemsize):
    rows, inner, columns = shape
    if (x, w) in (("rows", None), (None, None)) and y in ("rows", x):
        return [], 0
    if (x, w, y) == (None, "columns", "columns"):
        return [], 0
    size = itemsize * (devices - 1)
    if (x, w) == ("inner", "inner"):
        kind, factor = ("reduce-scatter", 1) if y else ("all-reduce", 2)
        return [(kind, "y")], factor * size * rows * columns
    plan = [("all-gather", array) for array, cut in (("x", x), ("w", w)) if cut]
    return plan, size * sum({"x": rows * inner, "w": inner * columns}[array] for _, array in plan)


@wrong("devices.messages", says="are enough", points=21)
def gathers_only_where_parts_do_not_fit(x, w, y, shape, devices, itemsize):
    rows, inner, columns = shape
    size = {"x": itemsize * rows * inner, "w": itemsize * inner * columns, "y": itemsize * rows * columns}
    plan, total = [], 0
    if (x, w) == ("inner", "columns") or (x == "rows" and w):
        array = "w" if y == "rows" else "x"
        plan, total = [("all-gather", array)], (devices - 1) * size[array]
        x, w = (x, None) if array == "w" else (None, w)
    if "inner" in (x, w):
        kind, factor = ("reduce-scatter", 1) if y else ("all-reduce", 2)
        return [*plan, (kind, "y")], total + factor * (devices - 1) * size["y"]
    if (x or w or y) == y:
        return plan, total
    if y is None:
        return [*plan, ("all-gather", "y")], total + (devices - 1) * size["y"]
    return [*plan, ("all-to-all", "y")], total + (devices - 1) * size["y"] // devices


@wrong("devices.messages", says="a term of each sum on every device, and should be", points=5)
def forgets_the_sum(x, w, y, shape, devices, itemsize):
    return [], 0


@wrong("devices.messages", says="so two parts that do not fit", points=5)
def lets_everybody_compute_a_block(x, w, y, shape, devices, itemsize):
    if (x, w) == ("rows", "columns"):
        return [], 0
    if "inner" in (x, w) and x != "rows":
        kind, factor = ("reduce-scatter", 1) if y else ("all-reduce", 3)
        return [(kind, "y")], factor * (devices - 1) * itemsize * shape[0] * shape[2]
    return [], 0


@wrong("devices.messages", says="that is what one device sends", points=5)
def counts_the_bytes_of_a_device(x, w, y, shape, devices, itemsize):
    if (x, w) == ("inner", "inner"):
        kind, factor = ("reduce-scatter", 1) if y else ("all-reduce", 2)
        return [(kind, "y")], factor * (devices - 1) * itemsize * shape[0] * shape[2] // devices
    return [], 0


# --- all_reduce -------------------------------------------------------------------------------------------------


@right("devices.all_reduce")
def halves_the_low_bits_first(group):
    first, second, distance, size = [], [], 1, len(group)
    while distance < size:
        there, back = [], []
        for at in range(size):
            to = at ^ distance
            for chunk in range(size):
                same = (chunk ^ at) % distance == 0  # they agree in the bits that are done
                if same and chunk & distance == to & distance:
                    there.append((group[at], group[to], chunk, "add"))
                    back.append((group[to], group[at], chunk, "copy"))
        first.append(there)
        second.insert(0, back)
        distance *= 2
    return first + second


@wrong("devices.all_reduce", says="steps, and", points=20)
def goes_round_a_ring(group):
    size = len(group)
    there = [
        [(group[at], group[(at + 1) % size], (at - step) % size, "add") for at in range(size)]
        for step in range(size - 1)
    ]
    back = [
        [(group[at], group[(at + 1) % size], (at + 1 - step) % size, "copy") for at in range(size)]
        for step in range(size - 1)
    ]
    return there + back


@wrong("devices.all_reduce", says="in a ring", points=20)
def doubles(group):
    size = len(group)
    bits = [1 << bit for bit in range(size.bit_length() - 1)]
    return [[(group[at], group[at ^ bit], chunk, "add") for at in range(size) for chunk in range(size)] for bit in bits]


@wrong("devices.all_reduce", says="one after the other", points=10)
def sums_on_the_first(group):
    first, *others = group
    chunks = range(len(group))
    there = [[(device, first, chunk, "add") for chunk in chunks] for device in others]
    return there + [[(first, device, chunk, "copy") for chunk in chunks] for device in others]


@wrong("devices.all_reduce", says="is counted more than once", points=0)
def passes_everything_on(group):
    size = len(group)
    step = [(group[at], group[(at + 1) % size], chunk, "add") for at in range(size) for chunk in range(size)]
    return [step] * (size - 1)


@wrong("devices.all_reduce", says="had is missing", points=0)
def stops_after_the_reduce_scatter(group):
    size = len(group)
    return [
        [(group[at], group[(at + 1) % size], (at - step) % size, "add") for at in range(size)]
        for step in range(size - 1)
    ]


@wrong("devices.all_reduce", says="receives from devices", points=0)
def all_send_to_the_first_at_once(group):
    first, *others = group
    there = [[(device, first, chunk, "add") for device in others for chunk in range(len(group))]]
    return there + [[(first, device, chunk, "copy") for chunk in range(len(group))] for device in others]


@wrong("devices.all_reduce", says="is counted more than once", points=0)
def adds_on_the_way_back(group):
    size = len(group)
    steps, own = [], {at: list(range(size)) for at in range(size)}
    distances = [1 << bit for bit in range(size.bit_length() - 1)]
    for distance in distances[::-1]:
        pairs = [(at, at ^ distance) for at in range(size)]
        steps.append(
            [
                (group[a], group[b], chunk, "add")
                for a, b in pairs
                for chunk in own[a]
                if chunk & distance == b & distance
            ]
        )
        own = {at: [chunk for chunk in own[at] if chunk & distance == at & distance] for at in own}
    for distance in distances:
        steps.append([(group[at], group[at ^ distance], chunk, "add") for at in own for chunk in own[at]])
        own = {at: own[at] + own[at ^ distance] for at in own}
    return steps


@wrong("devices.all_reduce", says="an algorithm is a list of steps", points=0)
def carries_it_out_itself(group):
    return carry_out([], {device: [10**at] * len(group) for at, device in enumerate(group)})
