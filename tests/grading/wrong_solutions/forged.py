"""Forgeries: solutions that leave the work, and change what is counted beside them, or make it up.

They run in the process of the drivers, and know their variables. Each had all points once, or many.
"""

from tests.grading.wrong_solutions import wrong

# --- exercise 02 ------------------------------------------------------------------------------------------------


@wrong("autograd.difference", says="should be", points=0)
def looks_up_the_function(f, x):
    import sys

    import minitorch_grading.harness.autograd as harness

    f(list(x))
    frame, found = sys._getframe(), {}
    while frame is not None:
        found = {**frame.f_locals, **found}
        frame = frame.f_back
    name, c = found.get("name"), found.get("c")
    table = getattr(harness, "FUNCTIONS", {})
    if name not in table or not isinstance(c, float):
        return [0.0 for _ in x]
    h = [1e-5 * max(1.0, abs(each)) for each in x]
    return [
        (table[name](c, *x[:i], x[i] + h[i], *x[i + 1 :]) - table[name](c, *x[:i], x[i] - h[i], *x[i + 1 :]))
        / (2 * h[i])
        for i in range(len(x))
    ]


# --- exercise 03 ------------------------------------------------------------------------------------------------


@wrong("graph.run", says="keep what has been computed", points=24)
def cleans_the_list_of_what_was_done(graph, fetches, feeds, compute):
    import sys

    def value(node):
        if node in graph.inputs:
            return feeds[node.params["name"]]
        return compute(node, [value(operand) for operand in node.inputs])

    found = [value(node) for node in fetches]
    frame = sys._getframe()
    while frame is not None:
        for name in ("done", "seen"):
            if isinstance(frame.f_locals.get(name), list):
                frame.f_locals[name][:] = dict.fromkeys(frame.f_locals[name])
        frame = frame.f_back
    return found


@wrong("graph.run", says="what is not its value", points=0)
def calls_compute_with_anything(graph, fetches, feeds, compute):
    import numpy as np

    values = {node: feeds[node.params["name"]] for node in graph.inputs if node.params["name"] in feeds}
    for node in graph.nodes:
        if all(operand in values for operand in node.inputs):
            with np.errstate(all="ignore"):
                values[node] = node.primitive.evaluate(*[values[each] for each in node.inputs], **node.params)
    needed = set(fetches)
    for node in reversed(graph.nodes):
        if node in needed:
            needed.update(node.inputs)
            compute(node, [np.zeros(3) for _ in node.inputs])
    return [values[node] for node in fetches]


# --- exercise 04 ------------------------------------------------------------------------------------------------


@wrong("tracing.train", says="a Python number belongs to the signature", points=7)
def puts_counters_in_place_of_its_functions(jit, x, rates):
    import sys

    for rate in rates:
        x = jit(lambda x, rate: x - rate * x)(x, rate)

    class Counter:
        traces, calls = 1, len(rates)

    frame = sys._getframe()
    while frame is not None:
        if isinstance(frame.f_locals.get("made"), list):
            frame.f_locals["made"][:] = [Counter]
        frame = frame.f_back
    return x


@wrong("tracing.train", says="operations with `x` outside of the jitted function", points=3)
def hides_what_it_computes(jit, x, rates):
    import numpy as np

    do_nothing, x = jit(lambda x: x), np.array(x.tolist())
    for rate in rates:
        do_nothing(x)
        x = x - rate * x
    return x


@wrong("tracing.trace", says="the rows give", points=0)
def writes_rows_of_constants(function, count):
    import math

    rows = []

    class Eager(float):
        name = ""

        def __bool__(self):
            raise TypeError("no value")

        __hash__ = float.__hash__

        def __eq__(self, other):
            raise TypeError("no value")

    def computed(operation):
        def method(self, *others):
            value = operation(float(self), *map(float, others))
            rows.append((f"r{len(rows)}", "add", [value, 0.0]))
            made = Eager(value)
            made.name = rows[-1][0]
            return made

        return method

    Eager.__add__ = Eager.__radd__ = computed(lambda a, b: a + b)
    Eager.__mul__ = Eager.__rmul__ = computed(lambda a, b: a * b)
    Eager.__sub__, Eager.__rsub__ = computed(lambda a, b: a - b), computed(lambda a, b: b - a)
    Eager.__neg__, Eager.exp = computed(lambda a: -a), computed(math.exp)
    given = [Eager(each) for each in (0.75, -1.5)[:count]]
    for place, each in enumerate(given):
        each.name = f"x{place}"
    return rows, function(*given).name


@wrong("tracing.clipped", says="should be", points=0)
def puts_a_function_in_place_of_the_program(x, limit):
    import sys

    import numpy as np

    class Programs(dict):
        def __len__(self):
            return 1

        def __getitem__(self, key):
            return clip

    def clip(x, limit):
        norm = np.sqrt((x * x).sum())
        return (x * (limit / norm) if norm > limit else x), np.asarray(norm)

    frame = sys._getframe()
    while frame is not None:
        if hasattr(frame.f_locals.get("self"), "_programs"):
            frame.f_locals["self"]._programs = Programs()
        frame = frame.f_back
    return x, (x * x).sum().sqrt()


# --- exercise 05 ------------------------------------------------------------------------------------------------


@wrong("deferred.lazy", says="nobody has asked for a value", part="nothing runs unasked")
def runs_at_once_and_writes_the_notes_itself(run):
    import sys

    class Now:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return made(run([("r", "add", [self.value, getattr(other, "value", other)])])[0])

        def __mul__(self, other):
            return made(run([("r", "mul", [self.value, getattr(other, "value", other)])])[0])

        def __float__(self):
            return self.value

        def __bool__(self):
            return bool(self.value)

    def made(value):
        frame = sys._getframe()
        while frame is not None:
            name, ran = frame.f_locals.get("name"), frame.f_locals.get("ran")
            if isinstance(ran, list) and isinstance(name, str):
                import minitorch_grading.harness.deferred as harness

                ran[:] = [[("r", "add", [0.0, 0.0])] * count for count in harness.PROGRAMS[name][2]]
            frame = frame.f_back
        return Now(value)

    return Now


@wrong("deferred.lazy", says="the rows do not compute what was asked for", part="the right numbers")
def runs_as_many_rows_of_nothing(run):
    import numpy as np

    waiting = []

    class Local:
        def __init__(self, value, known=True):
            self.value, self.known = value, known

        def __add__(self, other):
            return made(np.float32(self.value) + np.float32(getattr(other, "value", other)))

        def __mul__(self, other):
            return made(np.float32(self.value) * np.float32(getattr(other, "value", other)))

        def __float__(self):
            if not self.known:
                run([(f"r{at}", "add", [0.0, 0.0]) for at in range(len(waiting))])
                for each in waiting:
                    each.known = True
                waiting.clear()
            return self.value

        def __bool__(self):
            return bool(float(self))

    def made(value):
        waiting.append(Local(float(value), False))
        return waiting[-1]

    return Local


@wrong("deferred.descend", says="each `float` asks for a value", points=5)
def resets_the_counters(tensor, start, rates, every):
    import sys

    x, losses = tensor(start), []
    for rate in rates:
        x = x - rate * x
        losses.append(float(x * x))
    frame = sys._getframe()
    while frame is not None:
        recording = frame.f_locals.get("recording")
        if recording is not None:
            recording.runs, recording.programs, recording.most = len(rates) // every, {0}, every
        frame = frame.f_back
    return losses


@wrong("deferred.descend", says="the losses were not computed with lazy numbers", points=5)
def passes_losses_of_python_through_a_run(tensor, start, rates, every):
    x, losses, waiting = start, [], []
    for rate in rates:
        x = x - rate * x
        waiting.append(tensor(x * x) + tensor(0.0))
        if len(waiting) == every:
            losses += map(float, waiting)
            waiting = []
    return losses
