"""Solutions of exercise 05, deferred execution."""

from tests.grading.wrong_solutions import right, variants, wrong

# --- seen -------------------------------------------------------------------------------------------------------


@right("deferred.seen")
def takes_differences_of_sums(lines):
    sums = [sum(work for work, _ in lines[: at + 1]) for at in range(len(lines))]
    found, done = [], 0
    for at, (_, asks) in enumerate(lines):
        found.append(sums[at] - done if asks else 0)
        done = sums[at] if asks else done
    return [*found, (sums[-1] if sums else 0) - done]


@wrong("deferred.seen", says="that is the line's own work, as in eager mode", points=0)
def thinks_eagerly(lines):
    return [*[work for work, _ in lines], 0]


@wrong("deferred.seen", says="what has been run before is not run again", points=3, part="lines that ask")
def runs_everything_each_time(lines):
    found, waiting = [], 0
    for work, asks in lines:
        waiting += work
        found.append(waiting if asks else 0)
    return [*found, waiting]


@wrong("deferred.seen", says="the operations of the line itself run, too", points=3)
def leaves_the_line_itself_out(lines):
    found, waiting = [], 0
    for work, asks in lines:
        found.append(waiting if asks else 0)
        waiting = work if asks else waiting + work
    return [*found, waiting]


@wrong("deferred.seen", says="the end of the block runs what is left", points=7)
def forgets_the_end(lines):
    found, waiting = [], 0
    for work, asks in lines:
        waiting += work
        found.append(waiting if asks else 0)
        waiting = 0 if asks else waiting
    return [*found, 0]


# --- lazy -------------------------------------------------------------------------------------------------------


@right("deferred.lazy")
def keeps_values_in_a_dict(run):
    waiting, values = [], {}

    class Name(str):
        __slots__ = ()
        __hash__ = str.__hash__

        def __add__(self, other):
            return record("add", self, other)

        def __mul__(self, other):
            return record("mul", self, other)

        def __bool__(self):
            return float(self) != 0.0

        def __float__(self):
            if self not in values:
                rows = [(n, o, [values.get(e, e) if isinstance(e, str) else e for e in es]) for n, o, es in waiting]
                waiting.clear()
                values.update(zip([row[0] for row in rows], run([(str(n), o, es) for n, o, es in rows]), strict=True))
            return values[self]

    def record(operation, *operands):
        waiting.append((f"v{len(values) + len(waiting)}", operation, operands))
        return Name(waiting[-1][0])

    def tensor(number):
        name = Name(f"v{len(values) + len(waiting)} = {number}")
        values[name] = number
        return name

    return tensor


variants(
    keeps_values_in_a_dict,
    """
    takes_negative_numbers_for_false [0]: and should be [True,
    - return float(self) != 0.0
    + return float(self) > 0.0
    """,
)


@wrong("deferred.lazy", says="run was never called", points=0)
def computes_when_asked(run):
    class Later:
        def __init__(self, work):
            self.work = work

        def __add__(self, other):
            return Later(lambda: float(self) + float(other))

        def __mul__(self, other):
            return Later(lambda: float(self) * float(other))

        def __float__(self):
            return self.work()

        def __bool__(self):
            return bool(float(self))

    return lambda number: Later(lambda: number)


@wrong("deferred.lazy", says="nobody has asked for a value", part="nothing runs unasked")
def runs_at_once(run):
    class Now:
        def __init__(self, value):
            self.value = value

        def __add__(self, other):
            return Now(run([("r", "add", [self.value, getattr(other, "value", other)])])[0])

        def __mul__(self, other):
            return Now(run([("r", "mul", [self.value, getattr(other, "value", other)])])[0])

        def __float__(self):
            return self.value

        def __bool__(self):
            return bool(self.value)

    return Now


@wrong("deferred.lazy", says="all that waits runs", part="all that waits runs at once")
def runs_what_the_value_needs(run):
    class Lazy:
        def __init__(self, value=None, row=None):
            self.value, self.row = value, row

        def __add__(self, other):
            return Lazy(row=("add", self, other))

        def __mul__(self, other):
            return Lazy(row=("mul", self, other))

        def __bool__(self):
            return bool(float(self))

        def __float__(self):
            if self.value is None:
                order = []

                def visit(each):
                    if isinstance(each, Lazy) and each.value is None and each not in order:
                        visit(each.row[1])
                        visit(each.row[2])
                        order.append(each)

                visit(self)
                names = {each: f"r{at}" for at, each in enumerate(order)}
                rows = []
                for each in order:
                    operands = [names.get(e, e.value if isinstance(e, Lazy) else e) for e in each.row[1:]]
                    rows.append((names[each], each.row[0], operands))
                for each, value in zip(order, run(rows), strict=True):
                    each.value = value
            return self.value

    return Lazy


@wrong("deferred.lazy", says="what was run waits no more", part="nothing runs twice")
def never_empties_the_list(run):
    waiting = []

    class Lazy:
        def __init__(self, value=None):
            self.value = value

        def __add__(self, other):
            return record("add", self, other)

        def __mul__(self, other):
            return record("mul", self, other)

        def __bool__(self):
            return bool(float(self))

        def __float__(self):
            if self.value is None:
                made = {lazy: f"r{at}" for at, (lazy, _, _) in enumerate(waiting)}
                rows = [
                    (made[lazy], name, [made.get(e, e.value if isinstance(e, Lazy) else e) for e in operands])
                    for lazy, name, operands in waiting
                ]
                for (lazy, _, _), value in zip(waiting, run(rows), strict=True):
                    lazy.value = value
            return self.value

    def record(name, *operands):
        waiting.append((Lazy(), name, operands))
        return waiting[-1][0]

    return Lazy


# --- key --------------------------------------------------------------------------------------------------------


@right("deferred.key")
def numbers_names_as_they_come(rows, inputs, held):
    numbers, blocks, found = {}, {}, []
    for target, operation, operands in rows:
        found.append(operation)
        for each in operands:
            if isinstance(each, str):
                if each not in numbers:
                    shape, dtype, block = inputs[each]
                    found.append((shape, dtype, blocks.setdefault(block, len(blocks))))
                found.append(("value", numbers.setdefault(each, len(numbers))))
            else:
                found.append((type(each).__name__, repr(each)))
        numbers[target] = len(numbers)
    return tuple(found), tuple(numbers[each] for each in held)


@wrong("deferred.key", says="are no part of the program", points=0)
def takes_the_names_along(rows, inputs, held):
    return repr((rows, sorted(inputs.items()), held))


@wrong("deferred.key", says="the types differ", part="shapes and types", points=20)
def ignores_types(rows, inputs, held):
    numbers, blocks, found = {}, {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in numbers:
                found.append((inputs[each][0], blocks.setdefault(inputs[each][2], len(blocks))))
            value = numbers.setdefault(each, len(numbers)) if isinstance(each, str) else repr(each)
            found.append((operation, value))
        numbers[target] = len(numbers)
    return tuple(found), tuple(numbers[each] for each in held)


@wrong("deferred.key", says="the inputs that share memory differ", part="shared memory", points=20)
def ignores_shared_memory(rows, inputs, held):
    numbers, found = {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in numbers:
                found.append(inputs[each][:2])
            value = numbers.setdefault(each, len(numbers)) if isinstance(each, str) else repr(each)
            found.append((operation, value))
        numbers[target] = len(numbers)
    return tuple(found), tuple(numbers[each] for each in held)


@wrong("deferred.key", says="the values that are held differ", part="what is held", points=21)
def ignores_what_is_held(rows, inputs, held):
    numbers, blocks, found = {}, {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in numbers:
                found.append((*inputs[each][:2], blocks.setdefault(inputs[each][2], len(blocks))))
            value = numbers.setdefault(each, len(numbers)) if isinstance(each, str) else repr(each)
            found.append((operation, value))
        numbers[target] = len(numbers)
    return tuple(found)


@wrong("deferred.key", says="the numbers differ", part="operations and numbers", points=20)
def compares_numbers_by_value(rows, inputs, held):
    numbers, blocks, found = {}, {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in numbers:
                found.append((*inputs[each][:2], blocks.setdefault(inputs[each][2], len(blocks))))
            value = f"v{numbers.setdefault(each, len(numbers))}" if isinstance(each, str) else each
            found.append((operation, value))
        numbers[target] = len(numbers)
    return tuple(found), tuple(numbers[each] for each in held)


@wrong("deferred.key", says="all recordings have one key", points=0)
def knows_the_number_of_operations(rows, inputs, held):
    return len(rows)


# --- descend ----------------------------------------------------------------------------------------------------


@right("deferred.descend")
def goes_by_blocks(tensor, start, rates, every):
    x, losses = tensor(start), []
    for first in range(0, len(rates), every):
        block = []
        for rate in map(tensor, rates[first : first + every]):
            x = x * (1.0 - rate)
            block.append(x * x)
        losses += [float(loss) for loss in reversed(block)][::-1]
    return losses


@wrong("deferred.descend", says="each `float` asks for a value", points=12)
def looks_in_every_round(tensor, start, rates, every):
    x, losses = tensor(start), []
    for rate in rates:
        x = x - tensor(rate) * x
        losses.append(float(x * x))
    return losses


@wrong("deferred.descend", says="memory grows with the loop", points=5)
def looks_at_the_end(tensor, start, rates, every):
    x, losses = tensor(start), []
    for rate in rates:
        x = x - tensor(rate) * x
        losses.append(x * x)
    return [*map(float, losses)]


@wrong("deferred.descend", says="a plain number is a part of the program", points=13)
def writes_rates_into_the_program(tensor, start, rates, every):
    x, losses, waiting = tensor(start), [], []
    for number, rate in enumerate(rates, 1):
        x = x - rate * x
        waiting.append(x * x)
        if number % every == 0:
            losses += map(float, waiting)
            waiting.clear()
    return losses


@wrong("deferred.descend", says="the losses were not computed with lazy numbers", points=5)
def computes_in_python(tensor, start, rates, every):
    x, losses = start, []
    for rate in rates:
        x = x - rate * x
        losses.append(x * x)
    return losses


@wrong("deferred.descend", says="the loss of round 1 is", points=0)
def reports_the_loss_before_the_step(tensor, start, rates, every):
    x, losses = tensor(start), []
    for rate in rates:
        losses.append(float(x * x))
        x = x - tensor(rate) * x
    return losses


# --- runs -------------------------------------------------------------------------------------------------------


@right("deferred.runs")
def tries_by_memory(costs, requests):
    best = {}

    def cheapest(last):
        if last not in best:
            open_ = [(made, needed) for made, needed in requests if made > last]
            found = (0, [])
            if open_:
                end = min(needed for _, needed in open_)
                found = min((costs[at] + cheapest(at)[0], [at, *cheapest(at)[1]]) for at in range(last + 1, end))
            best[last] = found
        return best[last]

    return cheapest(-1)[1]


@wrong("deferred.runs", says="best known", points=8)
def runs_after_each_operation(costs, requests):
    return list(range(len(costs)))


@wrong("deferred.runs", says="best known", points=16.5)
def runs_as_late_as_possible(costs, requests):
    found = []
    for made, needed in sorted(requests, key=lambda request: request[1]):
        if not any(made <= at < needed for at in found):
            found.append(needed - 1)
    return found


@wrong("deferred.runs", says="best known")
def takes_the_cheapest_place_of_each(costs, requests):
    return [min(range(made, needed), key=lambda at: costs[at]) for made, needed in requests]


@wrong("deferred.runs", says="best known", points=17.5)
def takes_the_cheapest_place_where_none_is_yet(costs, requests):
    found = []
    for made, needed in sorted(requests, key=lambda request: request[1]):
        if not any(made <= at < needed for at in found):
            found.append(min(range(made, needed), key=lambda at: costs[at]))
    return found


@wrong("deferred.runs", says="no run is in between", points=0)
def runs_once_at_the_end(costs, requests):
    return [len(costs) - 1]


@wrong("deferred.runs", says="no run is in between", points=0)
def runs_one_too_late(costs, requests):
    return [min(needed, len(costs) - 1) for _, needed in requests]


# --- found by a hostile reading ---------------------------------------------------------------------------------


@wrong("deferred.seen", says="nothing ever runs", points=0)
def takes_no_time(lines):
    return [0] * (len(lines) + 1)


@wrong("deferred.lazy", says="they were not computed by run", points=0)
def runs_for_show(run):
    waiting = []

    class Lazy:
        def __init__(self, value, row=None):
            self.value, self.row = value, row

        def __add__(self, other):
            return record("add", self, other, self.value + getattr(other, "value", other))

        def __mul__(self, other):
            return record("mul", self, other, self.value * getattr(other, "value", other))

        def __float__(self):
            if self in waiting:
                run([(f"r{place}", each.row[0], [1.0, 1.0]) for place, each in enumerate(waiting)])
                waiting.clear()
            return self.value

        def __bool__(self):
            return bool(float(self))

    def record(operation, a, b, value):
        waiting.append(Lazy(value, (operation, a, b)))
        return waiting[-1]

    return Lazy


@wrong("deferred.lazy", says="a value that is known already goes in as a number", points=15)
def names_what_was_run_before(run):
    waiting, made = [], []

    class Lazy:
        def __init__(self, value=None, row=None):
            self.value, self.row, self.name = value, row, f"r{len(made)}"
            made.append(self)

        def __add__(self, other):
            return record("add", self, other)

        def __mul__(self, other):
            return record("mul", self, other)

        def __float__(self):
            if self.value is None:
                for each, value in zip(waiting, run([each.row for each in waiting]), strict=True):
                    each.value = value
                waiting.clear()
            return self.value

        def __bool__(self):
            return bool(float(self))

    def record(operation, *operands):
        written = [
            each if isinstance(each, float) else each.name if each.row is not None else each.value for each in operands
        ]
        made_now = Lazy()
        made_now.row = (made_now.name, operation, written)
        waiting.append(made_now)
        return made_now

    return Lazy


@wrong("deferred.lazy", says="an operand is the name of a row or a float, and not a Lazy", points=0)
def hands_over_lazy_values(run):
    waiting = []

    class Lazy:
        def __init__(self, value=None, row=None):
            self.value, self.row = value, row

        def __add__(self, other):
            waiting.append(Lazy(None, ("add", [self, other])))
            return waiting[-1]

        def __mul__(self, other):
            waiting.append(Lazy(None, ("mul", [self, other])))
            return waiting[-1]

        def __float__(self):
            if self.value is None:
                rows = [(f"r{place}", *each.row) for place, each in enumerate(waiting)]
                for each, value in zip(waiting, run(rows), strict=True):
                    each.value = value
                waiting.clear()
            return self.value

        def __bool__(self):
            return bool(float(self))

    return Lazy


@wrong("deferred.key", says="or where they read from, differ", part="operations and numbers", points=20)
def forgets_what_rows_read(rows, inputs, held):
    places, blocks, program, kinds = {}, {}, [], []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in places:
                shape, dtype, block = inputs[each]
                places[each] = len(places)
                kinds.append((shape, dtype, blocks.setdefault(block, len(blocks))))
        read = tuple("value" if isinstance(each, str) else (type(each), each) for each in operands)
        program.append((operation, read))
        places[target] = len(places)
    return tuple(program), tuple(kinds), tuple(places[each] for each in held)


@wrong("deferred.key", says="the types differ", part="shapes and types", points=20)
def sorts_shapes_and_types(rows, inputs, held):
    places, blocks, program = {}, {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in places:
                places[each] = len(places)
                blocks.setdefault(inputs[each][2], []).append(places[each])
        read = tuple(places[each] if isinstance(each, str) else repr(each) for each in operands)
        program.append((operation, read))
        places[target] = len(places)
    kinds = tuple(sorted(each[:2] for each in inputs.values()))
    return tuple(program), kinds, repr(list(blocks.values())), tuple(places[each] for each in held)


@wrong("deferred.key", says="the inputs that share memory differ", part="shared memory", points=20)
def counts_blocks(rows, inputs, held):
    places, program = {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in places:
                places[each] = len(places)
                program.append(inputs[each][:2])
        read = tuple(places[each] if isinstance(each, str) else repr(each) for each in operands)
        program.append((operation, read))
        places[target] = len(places)
    return tuple(program), len({each[2] for each in inputs.values()}), tuple(places[each] for each in held)


@wrong("deferred.key", says="the inputs that share memory differ", part="shared memory", points=20)
def counts_the_inputs_of_each_block(rows, inputs, held):
    blocks, places, program = [block for *_, block in inputs.values()], {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in places:
                places[each] = len(places)
                program.append((*inputs[each][:2], blocks.count(inputs[each][2])))
        program.append((operation, tuple(places[each] if isinstance(each, str) else repr(each) for each in operands)))
        places[target] = len(places)
    return tuple(program), tuple(places[each] for each in held)


@wrong("deferred.key", says="the values that are held differ", part="what is held", points=21)
def counts_what_is_held(rows, inputs, held):
    places, blocks, program = {}, {}, []
    for target, operation, operands in rows:
        for each in operands:
            if isinstance(each, str) and each not in places:
                shape, dtype, block = inputs[each]
                places[each] = len(places)
                program.append((shape, dtype, blocks.setdefault(block, len(blocks))))
        read = tuple(places[each] if isinstance(each, str) else repr(each) for each in operands)
        program.append((operation, read))
        places[target] = len(places)
    return tuple(program), len(held)


@wrong("deferred.key", says="the order of `inputs` are no part of the program", points=0)
def numbers_inputs_by_the_dict(rows, inputs, held):
    places = {name: place for place, name in enumerate(inputs)}
    blocks, program = {}, []
    kinds = tuple((*each[:2], blocks.setdefault(each[2], len(blocks))) for each in inputs.values())
    for target, operation, operands in rows:
        read = tuple(places[each] if isinstance(each, str) else repr(each) for each in operands)
        program.append((operation, read))
        places[target] = len(places)
    return tuple(program), kinds, tuple(places[each] for each in held)


@wrong("deferred.descend", says="the losses were not computed with lazy numbers", points=5)
def runs_something_else(tensor, start, rates, every):
    x, losses = start, []
    for place, rate in enumerate(rates, 1):
        x = x - rate * x
        losses.append(x * x)
        if place % every == 0:
            float(tensor(1.0) * 2.0)
    return losses


@wrong("deferred.descend", says="each `float` asks for a value", points=5)
def writes_the_counts_itself(tensor, start, rates, every):
    x, losses = tensor(start), []
    for rate in rates:
        x = x - rate * x
        losses.append(float(x * x))
    tensor.recording.runs, tensor.recording.programs = len(rates) // every, {()}
    return losses


@wrong("deferred.descend", says="more than 3 rounds waited for one", points=5)
def waits_for_one_round_more(tensor, start, rates, every):
    x, losses, waiting = tensor(start), [], []
    for rate in rates:
        x = x - tensor(rate) * x
        waiting.append(x * x)
        if len(waiting) > every > 1 or every == 1:
            losses += [float(each) for each in waiting]
            waiting = []
    return losses + [float(each) for each in waiting]


@wrong("deferred.lazy", says="lazy returns a function, and that is a NoneType", points=0)
def returns_nothing(run):
    def tensor(number):
        return number
