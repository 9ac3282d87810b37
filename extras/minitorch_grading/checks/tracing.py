"""Exercise 04, tracing: a tracer, its cache key, functions traced wrongly or too often, and golf with buckets."""

from __future__ import annotations

import math
import re
from functools import cache
from random import Random
from typing import Any

import numpy as np

from ..harness import tracing as harness
from ..harness.plain import Array, Fault, arrays, described, plain
from ..harness.recording import run_rows
from ..harness.tracing import REFUSED
from .compare import wrong_array
from .golf import Golf
from .pairs import key_task
from .reasons import expect, hint, indented
from .samples import in_parts, unforeseen
from .task import Cases, Table, Task, Verdict

# --- train: a retrace at every step -------------------------------------------------------------------------------

RIGHT, CALLS, ONE_TRACE = "the right numbers", "a call for each step", "one trace"
TRAIN = {RIGHT: 3, CALLS: 4, ONE_TRACE: 8}


def _trainings(random: np.random.Generator) -> Cases:
    return [
        (part, (random.uniform(-1, 1, int(random.integers(2, 5))), (0.5 / (1 + np.arange(steps))).tolist()))
        for part in TRAIN
        for steps in (1 + int(random.integers(2, 5)), 6)
    ]


class Programs:
    """Runs programs of jitted functions. The last digits of its results are its own: nobody can make up a result."""

    def __init__(self, case: tuple[str, Any]) -> None:
        self._programs: list[Any] = []
        self._known = [case[1][0]]
        self._calls = self._outside = 0

    @property
    def seen(self) -> tuple[int, int, int, Array]:
        """Traces, calls, calls with an array like `x` that is neither `x` nor a result, and the last result."""
        return len(self._programs), self._calls, self._outside, self._known[-1]

    def reply(self, question: Any) -> Any:
        """The number of a program, to compile; or its results, to run."""
        what, program, *given = question
        if what == "compile":
            self._programs.append(program)
            return len(self._programs) - 1
        self._calls += 1
        known = {array.tobytes() for array in self._known}
        for array in given[0]:  # one number everywhere, such as a rate, has nothing of `x` in it
            made = array.shape == self._known[0].shape and not (array == array.flat[0]).all()
            self._outside += made and array.tobytes() not in known
        found = harness.run_program(self._programs[program], given[0])
        marked = [_marked(each) for each in found] if isinstance(found, list) else _marked(found)
        self._known += marked if isinstance(marked, list) else [marked]
        return marked


def _marked(array: Array) -> Array:
    """The array with last digits that are drawn, where they are far below what a check tells apart."""
    return array * (1 + 1e-13 * unforeseen().integers(1, 1000, array.shape)) if array.dtype == np.float64 else array


def _about_training(case: tuple[Array, list[float]]) -> str:
    return f"{len(case[1])} steps with the rates {[float(f'{rate:.3g}') for rate in case[1]]}"


def _wrong_train(part: str, case: tuple[Array, list[float]], answer: Any) -> str | None:
    right, rates = case
    given, (traces, calls, outside, last) = answer
    for rate in rates:
        right = right - rate * right
    if reason := wrong_array(given, right, 1e-9):
        return reason + hint(not wrong_array(given, right, 1e-4), "a number has lost digits on its way, as in float32")
    if part == RIGHT:
        return None
    if not calls:
        return "nothing that was jitted is ever called"
    if outside or given.array.tobytes() != last.array.tobytes():
        return "operations with `x` outside of the jitted function, and all of a step belongs into it"
    if part == CALLS and calls != len(rates):
        return f"{calls} calls of jitted functions, and it is one for each step"
    if part == ONE_TRACE and traces != 1:
        many = "one for each step" if traces == len(rates) else "one is enough"
        why = "a function that is jitted anew has traced nothing yet, and a Python number belongs to the signature"
        return f"{traces} traces, {many}; {why}"
    return None


train = Task(
    harness.train, TRAIN, _trainings, _wrong_train, draws=np.random.default_rng, about=_about_training, oracle=Programs
)

# --- trace: rows are run beside the function, with numbers drawn when the rows are there ---------------------------

OPERATORS, ON_THE_LEFT = "operators", "numbers on the left"
TRACE = {OPERATORS: 6, ON_THE_LEFT: 5, "several values": 5, REFUSED: 4}
OPERATIONS = ("add", "sub", "mul", "neg", "exp")
SOURCES = {  # n and m are numbers that the seed draws, `drawn` is an expression
    OPERATORS: ("lambda x: x * n + x", "lambda x: (-x).exp() - n", "lambda x: ((x * x) * x) * n"),
    ON_THE_LEFT: ("lambda x: n - x", "lambda x: n - m * x", "lambda x: n + x"),
    "several values": (
        "lambda x, y: (x + y) * (x - y)",
        "lambda x, y: (lambda z: z * z + z)(x * y)",
        "lambda x: x * x + x * x",
        "lambda x, y: (x * y, x + y)[1]",
        "lambda x, y: y",
        "lambda x, y: drawn",
    ),
    REFUSED: ("lambda x: x * n if x - 1 else x", "lambda x: x * n if x * m == 0 else x"),
}


def _functions(random: Random) -> Cases:
    """The source of each function and the number of its arguments."""
    drawn, found = "x", []
    for _ in range(6):
        drawn = random.choice(("(n - {})", "({} * y)", "(-{})", "(x + {})", "({} - m)", "({} * x)")).format(drawn)
    for part, source in in_parts(SOURCES):
        source = source.replace("drawn", drawn)
        for number in "nm":
            source = re.sub(rf"\b{number}\b", str(random.choice((2, 3, 0.5, 0.25, 1.5, 5))), source)
        found.append((part, (source, source.partition(":")[0].count(",") + 1)))
    return found


def _about_function(case: tuple[str, int]) -> str:
    return case[0].partition(": ")[2]


def _wrong_trace(part: str, case: tuple[str, int], answer: Any) -> str | None:
    source, count = case
    if part == REFUSED:
        return _wrong_decision(source, answer)
    expect(answer, tuple, "a pair", "the list of rows and the name of the result", 2)
    expect(answer[0], list, "a list of rows")
    rows, result = answer
    listing = "\n" + indented("\n".join(map(str, rows)))
    drawn = unforeseen().uniform(-2, 2, count).tolist()
    program = harness.traced(eval(source, {}), tuple(map(np.asarray, drawn)))
    right = float(harness.run_program(program, [*map(np.asarray, drawn)]))  # type: ignore[arg-type]
    try:
        values = run_rows(rows, OPERATIONS, {f"x{place}": number for place, number in enumerate(drawn)})
    except ValueError as error:
        return f"{error}{listing}"
    if type(result) is not str or result not in values:
        return f"the result is {described(result)}, which no row has made{listing}"
    if not math.isclose(values[result], right, rel_tol=1e-9, abs_tol=1e-9):
        turned = hint(part == ON_THE_LEFT and "-" in source, "a number on the left is the first operand")
        shown = ", ".join(f"x{place} = {each:.6g}" for place, each in enumerate(drawn))
        return f"for {shown} the rows give {values[result]:.6g}, and the function {right:.6g}{turned}{listing}"
    if len(rows) != (done := len(program[0])):
        more = hint(len(rows) < done, "a row is written for each operation, when it is met")
        return f"{len(rows)} rows for {done} operations{more}{listing}"
    return None


def _wrong_decision(source: str, answer: Any) -> str | None:
    if type(answer) is tuple and len(answer) == 2 and type(answer[0]) is str:
        return None if answer[0] == "TypeError" else f"it raises {answer[0]}: {answer[1]}; a TypeError is wanted"
    compared, held = "`==` without `__eq__` compares objects, and is False", "an object without `__bool__` is true"
    return f"one side was traced, and nobody is told; {compared if '==' in source else held}"


def _of_a_tracer(said: dict[str, Verdict], answers: list[Any]) -> dict[str, Verdict]:
    if said[OPERATORS] and all(isinstance(answer, Fault) for answer in answers if type(answer) is not tuple):
        return {part: reason or said[OPERATORS] for part, reason in said.items()}
    return said


trace = Task(
    harness.trace,
    TRACE,
    _functions,
    _wrong_trace,
    about=_about_function,
    refine=_of_a_tracer,
    after={REFUSED: [OPERATORS]},
)

# --- signature: calls that can share a program, and calls that cannot ----------------------------------------------

SIGNATURE = {"values of arrays": 5, "shapes and types": 5, "plain values": 6, "structure": 4}


def _calls(seed: int) -> Cases:
    """Pairs of calls, in an order that the seed draws."""
    random = np.random.default_rng(seed)
    n, k = (int(each) for each in random.integers(2, 7, 2))

    def array(*shape: int, dtype: str = "f4") -> Any:
        return random.integers(0, 9, shape).astype(dtype)

    pairs: dict[str, list[Any]] = {
        "values of arrays": [
            ((array(n),), (array(n),)),
            ((array(n, 2), k), (array(n, 2), k)),
            ((array(),), (array(),)),
        ],
        "shapes and types": [
            ((array(n),), (array(n + 1),)),
            ((array(n, n + 1),), (array(n + 1, n),)),
            ((array(),), (array(1),)),
            ((array(n),), (array(n, dtype="f8"),)),
            ((array(n),), (array(n, dtype="i4"),)),
            ((array(2, n),), (array(2, n + 1),)),
            ((array(1100),), (array(1100 + k),)),  # its `str` leaves the middle out
        ],
        "plain values": [
            ((array(n), k), (array(n), k + 1)),
            ((array(n), k), (array(n), float(k))),
            ((1,), (True,)),
            ((0.0,), (-0.0,)),
            ((math.nan,), (math.nan,)),
            (("mean", array(n)), ("sum", array(n))),
            ((array(),), (2.0,)),
            ((array(n), k), (array(n), str(k))),
            ((None,), ("None",)),
        ],
        "structure": [
            (([array(n), array(n)],), (array(n), array(n))),
            (((array(n), k),), ([array(n), k],)),
            (([],), ((),)),
            (({"w": k},), ([("w", k)],)),
            ((["a, b"],), (["a", "b"],)),
            (([array(n)], [array(n)]), ([array(n), array(n)], [])),
            (({"w": array(n)},), ({"b": array(n)},)),
            (({"w": array(n), "b": [array(n), k]},), ({"w": array(n), "b": [array(n), k]},)),
        ],
    }
    found = in_parts(pairs)
    Random(seed).shuffle(found)
    return found


def apart(one: Any, other: Any) -> str:
    """Why two arguments cannot be those of one program; empty if they can.

    Example:
        >>> apart((np.ones(2), 1), (np.zeros(2), 1)), apart((1,), (True,))
        ('', 'the int 1 and the bool True are written into programs that compute otherwise')
    """
    both = one, other
    if all(isinstance(each, np.ndarray) for each in both):
        if one.shape != other.shape:
            return f"the shapes {list(one.shape)} and {list(other.shape)} differ"
        return "" if one.dtype == other.dtype else f"the types {one.dtype} and {other.dtype} differ"
    if any(isinstance(each, np.ndarray) for each in both):
        return "a program knows the value of the number, and does not know that of the array"
    containers = any(isinstance(each, (list, tuple, dict)) for each in both)
    if containers and (type(one) is not type(other) or (type(one) is not dict and len(one) != len(other))):
        return "the arguments are put together in another way"
    if type(one) is not type(other):
        names = " and ".join(f"the {type(each).__name__} {each!r}" for each in both)
        return f"{names} are written into programs that compute otherwise"
    if containers:
        if type(one) is dict and list(one) != list(other):
            return "the keys of the dicts differ"
        inside = [each.values() if type(each) is dict else each for each in both]
        return next((reason for pair in zip(*inside, strict=True) if (reason := apart(*pair))), "")
    if repr(one) == repr(other):
        return ""
    zero = ": 1 / x tells them apart, == does not" if one == other else ""
    return f"{one!r} and {other!r} are written into the program{zero}"


def _shown(value: Any) -> str:
    if isinstance(value, np.ndarray):
        return f"{value.dtype}{list(value.shape)}"
    if isinstance(value, (list, tuple)):
        inside = ", ".join(map(_shown, value))
        return f"[{inside}]" if isinstance(value, list) else f"({inside})"
    if isinstance(value, dict):
        return "{" + ", ".join(f"{key!r}: {_shown(each)}" for key, each in value.items()) + "}"
    return repr(value)


def _alike(pair: Any) -> str:
    if "nan" in _shown(pair):
        return "NaN is not equal to itself, so each call would be traced"
    return "the values of arrays are what changes from call to call"


def _about_calls(pair: Any) -> str:
    return f"the calls {' and '.join(map(_shown, pair))}"


signature = key_task(harness.signature, SIGNATURE, _calls, apart, _alike, _about_calls, "calls", int)

# --- clipped: one side of a branch, and a leaked stand-in ---------------------------------------------------------

LEAKS = "nothing leaks"
CLIPPED = {"both sides": 8, "a norm for each call": 6, LEAKS: 6}

# The norms of the arrays that the program is run on, as shares of the limit.
NORMS = {"both sides": (3.0, 0.5, 0.0, 0.9), "a norm for each call": (0.5, 3.0, 0.7, 0.5), LEAKS: (3.0, 0.5)}


def _limits(random: Random) -> Cases:
    """The length of the arrays, and the limit; the arrays are drawn when the program is there."""
    return [(part, (random.randrange(2, 5), float(random.randrange(2, 5)))) for part in CLIPPED]


def _wrong_clipped(part: str, case: tuple[int, float], answer: Any) -> str | None:
    length, limit = case
    program, alive = arrays(answer)
    for place, share in enumerate(NORMS[part]):
        drawn = unforeseen().uniform(0.1, 1, length)
        array = drawn * (limit * share / float(np.sqrt((drawn * drawn).sum())))
        with np.errstate(all="ignore"):
            found = harness.run_program(program, [array])
        pair = plain(tuple(found) if isinstance(found, list) else found)
        norm = np.sqrt((array * array).sum())
        where = f"call {place + 1} of one jitted function, with a norm of {norm:.4g} and the limit {limit:g}"
        expect(pair, tuple, f"{where}: a pair", "the clipped array and the norm", 2)
        clipped_array = array * (limit / max(norm, 1e-300))
        right, other = (clipped_array, array) if norm > limit else (array, clipped_array)
        if reason := wrong_array(pair[0], right, 1e-9):
            return f"{where}: {reason}" + hint(
                not norm,
                "0 * NaN is NaN: choose a side with `where`, not with a mask",
                place and wrong_array(pair[0], other, 1e-9) is None,
                "one side was chosen while tracing, for all calls",
            )
        if reason := wrong_array(pair[1], np.asarray(norm), 1e-9):
            return f"{where}: the norm is wrong: {reason}"
    if part == LEAKS and alive:
        are = "stand-in is" if alive == 1 else "stand-ins are"
        return f"{alive} {are} alive when the trace is over: something outside of the function holds them"
    return None


clipped = Task(harness.clipped, CLIPPED, _limits, _wrong_clipped)

# --- buckets: golf with the lengths to which texts are padded -----------------------------------------------------

FITS, FEW = "every text fits", "few elements"
BUCKETS = {FITS: 8, FEW: 17}
Texts = tuple[list[int], int]  # the lengths of texts, and what a trace costs in elements

# Of the courses below together. Start: a bucket for each length. Par: powers of two. Best: by dynamic programming over
# the last bucket of the texts by length.
ELEMENTS = Golf("elements", start=69120, par=35496, best=27987)


@cache
def _courses() -> tuple[Texts, ...]:
    """Texts that are the same for everybody."""
    random = Random(4)
    short = [random.randrange(5, 40) for _ in range(30)]
    long = [random.randrange(300, 400) for _ in range(10)]
    spread = [int(2 ** random.uniform(3, 9)) for _ in range(40)]
    clusters = [center + random.randrange(-6, 7) for center in (33, 65, 130, 257) for _ in range(12)]
    return (short + long, 300), (spread, 700), (clusters, 400), (spread + short, 60)


def _texts(random: Random) -> Table:
    drawn = [([random.randrange(1, 200) for _ in range(many)], random.randrange(10, 500)) for many in (1, 6, 20)]
    shuffled = [(random.sample(lengths, len(lengths)), cost) for lengths, cost in _courses()]
    return {FITS: drawn, FEW: shuffled}


def _about_texts(case: Texts) -> str:
    return f"{len(case[0])} texts of up to {max(case[0])} elements"


def _wrong_buckets(part: str, case: Texts, answer: Any) -> str | None:
    expect(answer, list[int])
    if max(case[0]) > max(answer, default=0):
        most = f"the longest is {max(answer)}" if answer else "there is none"
        return f"a text of {max(case[0])} fits into no bucket, {most}"
    return None


def _elements(part: str, case: Texts, buckets: list[int]) -> int:
    """The elements of all texts, padded to the smallest bucket that they fit into, and what the traces cost."""
    lengths, cost = case
    padded = [min(bucket for bucket in buckets if bucket >= length) for length in lengths]
    return sum(padded) + cost * len(set(padded))


buckets = Task(
    harness.buckets, BUCKETS, _texts, _wrong_buckets, about=_about_texts, golf={FEW: ELEMENTS}, count=_elements
)

TASKS = (train, trace, signature, clipped, buckets)
