"""Solutions of exercise 04, tracing."""

import numpy as np

from minitorch_grading.harness.tracing import where
from tests.grading.wrong_solutions import right, wrong

# --- trace ------------------------------------------------------------------------------------------------------


@right("tracing.trace")
def keeps_rows_in_a_closure(function, count):
    rows = []

    class Box:
        __hash__ = object.__hash__

        def __init__(self, name):
            self.name = name

        def __bool__(self):
            raise TypeError("no value")

        def __eq__(self, other):
            raise TypeError("no value to compare")

    def note(operation, *operands):
        rows.append((f"t{len(rows)}", operation, tuple(getattr(each, "name", each) for each in operands)))
        return Box(rows[-1][0])

    Box.__neg__ = lambda self: note("neg", self)
    Box.exp = lambda self: note("exp", self)
    for operation in ("add", "sub", "mul"):
        setattr(Box, f"__{operation}__", lambda self, other, name=operation: note(name, self, other))
        setattr(Box, f"__r{operation}__", lambda self, other, name=operation: note(name, other, self))
    return rows, function(*[Box(f"x{place}") for place in range(count)]).name


@wrong("tracing.trace", says="an object without `__bool__` is true", points=16)
def answers_questions(function, count):
    rows = []

    class Tracer:
        def __init__(self, name):
            self.name = name

        def note(self, operation, *operands):
            rows.append((f"%{len(rows)}", operation, [getattr(each, "name", each) for each in operands]))
            return Tracer(rows[-1][0])

        def __add__(self, other):
            return self.note("add", self, other)

        def __radd__(self, other):
            return self.note("add", other, self)

        def __sub__(self, other):
            return self.note("sub", self, other)

        def __rsub__(self, other):
            return self.note("sub", other, self)

        def __mul__(self, other):
            return self.note("mul", self, other)

        def __rmul__(self, other):
            return self.note("mul", other, self)

        def __neg__(self):
            return self.note("neg", self)

        def exp(self):
            return self.note("exp", self)

    return rows, function(*[Tracer(f"x{place}") for place in range(count)]).name


@wrong("tracing.trace", says="`==` without `__eq__` compares objects", points=16)
def refuses_truth_alone(function, count):
    rows = []

    class Tracer:
        def __init__(self, name):
            self.name = name

        def note(self, operation, *operands):
            rows.append((f"%{len(rows)}", operation, [getattr(each, "name", each) for each in operands]))
            return Tracer(rows[-1][0])

        def __bool__(self):
            raise TypeError("there is no value now")

        def __add__(self, other):
            return self.note("add", self, other)

        def __radd__(self, other):
            return self.note("add", other, self)

        def __sub__(self, other):
            return self.note("sub", self, other)

        def __rsub__(self, other):
            return self.note("sub", other, self)

        def __mul__(self, other):
            return self.note("mul", self, other)

        def __rmul__(self, other):
            return self.note("mul", other, self)

        def __neg__(self):
            return self.note("neg", self)

        def exp(self):
            return self.note("exp", self)

    return rows, function(*[Tracer(f"x{place}") for place in range(count)]).name


@wrong("tracing.trace", says="a number on the left is the first operand", part="numbers on the left")
def turns_numbers_round(function, count):
    rows = []

    class Tracer:
        def __init__(self, name):
            self.name = name

        def note(self, operation, *operands):
            rows.append((f"%{len(rows)}", operation, [getattr(each, "name", each) for each in operands]))
            return Tracer(rows[-1][0])

        def __bool__(self):
            raise TypeError("there is no value now")

        __eq__ = __bool__

        def __add__(self, other):
            return self.note("add", self, other)

        def __sub__(self, other):
            return self.note("sub", self, other)

        def __mul__(self, other):
            return self.note("mul", self, other)

        def __neg__(self):
            return self.note("neg", self)

        def exp(self):
            return self.note("exp", self)

        __radd__, __rsub__, __rmul__ = __add__, __sub__, __mul__

    return rows, function(*[Tracer(f"x{place}") for place in range(count)]).name


@wrong("tracing.trace", says="a row is written for each operation, when it is met", part="several values")
def writes_down_what_the_result_needs(function, count):
    class Tracer:
        def __init__(self, name, rows):
            self.name, self.rows = name, rows

        def note(self, operation, *operands):
            before = [row for each in operands for row in getattr(each, "rows", [])]
            rows = [row for place, row in enumerate(before) if row not in before[:place]]
            name = f"({operation} {' '.join(str(getattr(each, 'name', each)) for each in operands)})"
            row = (name, operation, [getattr(each, "name", each) for each in operands])
            return Tracer(name, [*rows, *([] if row in rows else [row])])

        def __bool__(self):
            raise TypeError("there is no value now")

        def __eq__(self, other):
            raise TypeError("there is no value now")

        def __add__(self, other):
            return self.note("add", self, other)

        def __radd__(self, other):
            return self.note("add", other, self)

        def __sub__(self, other):
            return self.note("sub", self, other)

        def __rsub__(self, other):
            return self.note("sub", other, self)

        def __mul__(self, other):
            return self.note("mul", self, other)

        def __rmul__(self, other):
            return self.note("mul", other, self)

        def __neg__(self):
            return self.note("neg", self)

        def exp(self):
            return self.note("exp", self)

    result = function(*[Tracer(f"x{place}", []) for place in range(count)])
    return result.rows, result.name


@wrong("tracing.trace", says="a pair was expected", points=0)
def computes_with_numbers(function, count):
    return function(*[1.0] * count)


# --- signature --------------------------------------------------------------------------------------------------


@right("tracing.signature")
def writes_a_text(args):
    if isinstance(args, np.ndarray):
        return f"array {args.dtype} {args.shape}"
    if isinstance(args, (list, tuple)):
        return f"{type(args).__name__} {len(args)} ({', '.join(map(writes_a_text, args))})"
    if isinstance(args, dict):
        return f"dict {len(args)} ({', '.join(f'{key!r}: {writes_a_text(each)}' for key, each in args.items())})"
    return f"{type(args).__name__} {args!r}"


@wrong("tracing.signature", says="NaN is not equal to itself", points=14, part="plain values")
def compares_numbers_by_value(args):
    if isinstance(args, np.ndarray):
        return args.shape, str(args.dtype)
    if isinstance(args, (list, tuple)):
        return (type(args), *map(compares_numbers_by_value, args))
    if isinstance(args, dict):
        return (dict, *[(key, compares_numbers_by_value(each)) for key, each in args.items()])
    return args


@wrong("tracing.signature", says="written into programs that compute otherwise", points=14, part="plain values")
def takes_one_for_true(args):
    if isinstance(args, np.ndarray):
        return args.shape, str(args.dtype)
    if isinstance(args, (list, tuple)):
        return (type(args), *map(takes_one_for_true, args))
    if isinstance(args, dict):
        return (dict, *[(key, takes_one_for_true(each)) for key, each in args.items()])
    return repr(args) if isinstance(args, float) else args


@wrong("tracing.signature", says="the types float32 and int32 differ", points=15, part="shapes and types")
def knows_shapes_alone(args):
    if isinstance(args, np.ndarray):
        return "array", args.shape
    if isinstance(args, (list, tuple)):
        return (type(args), *map(knows_shapes_alone, args))
    if isinstance(args, dict):
        return (dict, *[(key, knows_shapes_alone(each)) for key, each in args.items()])
    return type(args), repr(args)


@wrong("tracing.signature", says="put together in another way", points=16, part="structure")
def flattens_the_arguments(args):
    pending, found = [args], []
    while pending:
        each = pending.pop()
        if isinstance(each, np.ndarray):
            found.append((each.shape, str(each.dtype)))
        elif isinstance(each, (list, tuple)):
            pending += each
        elif isinstance(each, dict):
            pending += each.values()
        else:
            found.append((type(each), repr(each)))
    return tuple(found)


@wrong("tracing.signature", says="the values of arrays are what changes", points=0)
def writes_values_down(args):
    return repr(args)


@wrong("tracing.signature", says="NaN is not equal to itself", points=14)
def compares_floats(args):
    if isinstance(args, np.ndarray):
        return "array", args.shape, str(args.dtype)
    if isinstance(args, (list, tuple)):
        return (type(args), *map(compares_floats, args))
    if isinstance(args, dict):
        return (dict, *[(key, compares_floats(each)) for key, each in args.items()])
    if isinstance(args, float):
        return float, args, str(args)[0] == "-"
    return type(args), args


@wrong("tracing.signature", says="it has to be hashable", points=0)
def gives_a_list(args):
    return [type(each) for each in args]


@wrong("tracing.signature", says="all calls have one signature", points=0)
def knows_the_number_of_arguments(args):
    return 1


# --- train ------------------------------------------------------------------------------------------------------


@right("tracing.train")
def gives_the_rates_as_one_array(jit, x, rates):
    step = jit(lambda x, rate: x * (1.0 - rate))
    for rate in np.array(rates):
        x = step(x, np.asarray(rate))
    return x


@wrong("tracing.train", says="one for each step", points=7)
def jits_at_every_step(jit, x, rates):
    for rate in rates:
        step = jit(lambda x, rate: x - rate * x)
        x = step(x, np.asarray(rate))
    return x


@wrong("tracing.train", says="a number has lost digits on its way", points=0)
def gives_the_rates_in_single_precision(jit, x, rates):
    step = jit(lambda x, rate: x - rate * x)
    for rate in rates:
        x = step(x, np.asarray(rate, np.float32))
    return x


@wrong("tracing.train", says="a Python number belongs to the signature", points=7)
def gives_numbers(jit, x, rates):
    step = jit(lambda x, rate: x - rate * x)
    for rate in rates:
        x = step(x, rate)
    return x


@wrong("tracing.train", says="nothing that was jitted is ever called", points=3)
def computes_without_jit(jit, x, rates):
    for rate in rates:
        x = x - rate * x
    return x


@wrong("tracing.train", says="calls of jitted functions, and it is one for each step", points=11)
def unrolls_all_steps_into_one_program(jit, x, rates):
    def steps(x):
        for rate in rates:
            x = x - rate * x
        return x

    return jit(steps)(x)


@wrong("tracing.train", says="should be", points=0)
def writes_the_first_rate_into_the_program(jit, x, rates):
    rate = rates[0]
    step = jit(lambda x: x - rate * x)
    for rate in rates:  # noqa: B007  the mistake is to believe that this changes the program
        x = step(x)
    return x


# --- clipped ----------------------------------------------------------------------------------------------------


@right("tracing.clipped")
def chooses_the_factor(x, limit):
    norm = (x * x).sum().sqrt()
    return x * where(norm <= limit, 1.0, limit / norm), norm


@right("tracing.clipped")
def takes_the_root_as_a_power(x, limit):
    norm = (x * x).sum() ** 0.5
    return where(norm > limit, limit / norm * x, x), norm


@wrong("tracing.clipped", says="there is no value now", points=0)
def still_branches(x, limit):
    norm = (x * x).sum().sqrt()
    if norm > limit:
        x = x * (limit / norm)
    return x, norm


@wrong("tracing.clipped", says="a pair was expected", points=0)
def gives_the_array_alone(x, limit):
    norm = (x * x).sum().sqrt()
    return where(norm > limit, x * (limit / norm), x)


@wrong("tracing.clipped", says="stand-in is alive when the trace is over", points=14)
def keeps_its_history(x, limit, history=[]):  # noqa: B006  that is the mistake
    norm = (x * x).sum().sqrt()
    history.append(norm)
    return where(norm > limit, x * (limit / norm), x), norm


@wrong("tracing.clipped", says="the norm is", points=0)
def gives_the_square_of_the_norm(x, limit):
    square = (x * x).sum()
    norm = square.sqrt()
    return where(norm > limit, x * (limit / norm), x), square


@wrong("tracing.clipped", says="choose a side with `where`, not with a mask", points=12)
def multiplies_by_a_mask(x, limit):
    norm = (x * x).sum().sqrt()
    above = (norm > limit) * 1.0
    return above * (x / norm * limit) + (1.0 - above) * x, norm


# --- buckets ----------------------------------------------------------------------------------------------------


@right("tracing.buckets")
def goes_from_the_longest_down(lengths, cost):
    ordered = sorted(set(lengths))
    count = {length: lengths.count(length) for length in ordered}
    best = {0: (0, [])}
    for end in range(1, len(ordered) + 1):
        top = ordered[end - 1]
        found = []
        for start in range(end):
            before, chosen = best[start]
            found.append((before + cost + top * sum(count[each] for each in ordered[start:end]), [*chosen, top]))
        best[end] = min(found)
    return best[len(ordered)][1]


@wrong("tracing.buckets", says="best known", points=8)
def has_a_bucket_for_each_length(lengths, cost):
    return lengths


@wrong("tracing.buckets", says="best known", points=16.5)
def takes_powers_of_two(lengths, cost):
    return [1 << place for place in range(12)]


@wrong("tracing.buckets", says="best known")
def pads_all_to_the_longest(lengths, cost):
    return [max(lengths)]


@wrong("tracing.buckets", says="fits into no bucket", points=0)
def takes_the_mean(lengths, cost):
    return [sum(lengths) // len(lengths)]


# --- found by a hostile reading ---------------------------------------------------------------------------------


@right("tracing.train")
def makes_ones_like_the_array(jit, x, rates):
    step = jit(lambda x, rate: (x - rate * x,))
    x = x.copy()
    for rate in rates:
        (x,) = step(x, np.ones_like(x) * rate) if rate is rates[0] else step(x, np.full(x.shape, rate))
    return x


@wrong("tracing.train", says="operations with `x` outside of the jitted function", points=3)
def jits_a_program_that_does_nothing(jit, x, rates):
    step = jit(lambda x: x)
    for rate in rates:
        x = x - rate * x
        step(x)
    return x


@wrong("tracing.train", says="has no setter", points=0)
def writes_the_number_of_traces(jit, x, rates):
    for rate in rates:
        step = jit(lambda x, rate: x - rate * x)
        x = step(x, rate)
        step.traces = 0
    return x


@wrong("tracing.signature", says="the int 5 and the str '5' are written", part="plain values", points=10)
def writes_plain_values_as_text(args):
    if isinstance(args, np.ndarray):
        return f"{args.dtype}{args.shape}"
    if isinstance(args, (list, tuple)):
        return f"{type(args).__name__}({', '.join(map(writes_plain_values_as_text, args))})"
    if isinstance(args, dict):
        return f"dict({', '.join(f'{key}: {writes_plain_values_as_text(each)}' for key, each in args.items())})"
    return str(args)


@wrong("tracing.signature", says="put together in another way", part="structure", points=16)
def takes_lists_for_tuples(args):
    if isinstance(args, np.ndarray):
        return args.shape, args.dtype
    if isinstance(args, (list, tuple)):
        return tuple(map(takes_lists_for_tuples, args))
    if isinstance(args, dict):
        return tuple((key, takes_lists_for_tuples(each)) for key, each in args.items())
    return type(args), repr(args)


@wrong("tracing.signature", says="the types float32 and int32 differ", part="shapes and types", points=15)
def knows_the_size_of_elements(args):
    if isinstance(args, np.ndarray):
        return args.shape, args.itemsize
    if isinstance(args, (list, tuple)):
        return (type(args), *map(knows_the_size_of_elements, args))
    if isinstance(args, dict):
        return (dict, *((key, knows_the_size_of_elements(each)) for key, each in args.items()))
    return type(args), repr(args)


@wrong("tracing.signature", says="the keys of the dicts differ", points=16, part="structure")
def forgets_the_keys(args):
    if isinstance(args, np.ndarray):
        return "array", args.shape, args.dtype
    if isinstance(args, dict):
        args = args.values()
    elif not isinstance(args, (list, tuple)):
        return type(args), repr(args)
    return (type(args), *map(forgets_the_keys, args))


@wrong("tracing.signature", says="differ", part="shapes and types", points=15)
def knows_the_first_length(args):
    if isinstance(args, np.ndarray):
        return args.ndim, args.shape[:1], args.dtype
    if isinstance(args, (list, tuple)):
        return (type(args), *map(knows_the_first_length, args))
    if isinstance(args, dict):
        return (dict, *((key, knows_the_first_length(each)) for key, each in args.items()))
    return type(args), repr(args)


@wrong("tracing.trace", says="two results are called", part="several values", points=15)
def calls_results_by_what_they_are(function, count):
    rows = []

    class Tracer:
        def __init__(self, name):
            self.name = name

        def __bool__(self):
            raise TypeError("there is no value now")

        def __eq__(self, other):
            raise TypeError("there is no value now")

        def __add__(self, other):
            return record("add", self, other)

        def __radd__(self, other):
            return record("add", other, self)

        def __sub__(self, other):
            return record("sub", self, other)

        def __rsub__(self, other):
            return record("sub", other, self)

        def __mul__(self, other):
            return record("mul", self, other)

        def __rmul__(self, other):
            return record("mul", other, self)

        def __neg__(self):
            return record("neg", self)

        def exp(self):
            return record("exp", self)

    def record(operation, *operands):
        names = [each.name if isinstance(each, Tracer) else each for each in operands]
        made = Tracer(f"{operation}({', '.join(map(str, names))})")
        rows.append((made.name, operation, names))
        return made

    result = function(*[Tracer(f"x{place}") for place in range(count)])
    return rows, result.name


@wrong("tracing.clipped", says="one side was chosen while tracing", points=0)
def takes_the_array_from_a_frame(x, limit):
    import sys

    given = sys._getframe(1).f_locals["args"][0]
    norm = (x * x).sum().sqrt()
    return (x * (limit / norm) if (given * given).sum() > limit * limit else x), norm
