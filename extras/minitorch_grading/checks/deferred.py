"""Exercise 05, deferred execution: a stopwatch, lazy values, the key of a run, a loop to repair, golf with runs."""

from __future__ import annotations

import math
from ast import literal_eval
from functools import cache
from random import Random
from typing import Any

from ..harness import deferred as harness
from ..harness.plain import described
from .golf import Golf
from .pairs import key_task
from .reasons import expect, hint, indented
from .samples import in_parts
from .task import Cases, Task, Verdict

# --- seen: what a stopwatch shows for each line of a lazy program ------------------------------------------------

ASK, RECORD, END = "lines that ask", "lines that record", "the end of the block"
SEEN = {ASK: 4, RECORD: 3, END: 3}
Lines = list[tuple[int, bool]]  # of each line the time that its operations take, and whether it asks for a value


def _blocks(random: Random) -> Cases:
    drawn = [random.random() < 0.3 for _ in range(8)]
    asking = ([0, 0, 0, 1], [0, 1, 0, 1, 0], [1, 1, 0], [0, 0], [*drawn, 0, 1, 0])
    blocks = [[(random.randrange(1, 90), bool(each)) for each in lines] for lines in asking]
    return [(part, (block,)) for part in SEEN for block in blocks]


def _about_block(case: tuple[Lines]) -> str:
    lines = ", ".join(f"{work} ms{' and asks' * asks_for_a_value}" for work, asks_for_a_value in case[0])
    return f"lines of {lines}"


def _shown(lines: Lines) -> list[int]:
    """What the stopwatch shows, and last the time of the end of the block."""
    found, waiting = [], 0
    for work, asks_for_a_value in [*lines, (0, True)]:
        waiting += work
        found.append(waiting if asks_for_a_value else 0)
        waiting = 0 if asks_for_a_value else waiting
    return found


def _wrong_seen(part: str, case: tuple[Lines], answer: Any) -> str | None:
    (lines,), wanted = case, _shown(case[0])
    expect(answer, list[int], count=len(wanted))
    places = {
        ASK: [at for at, (_, asked) in enumerate(lines) if asked],
        RECORD: [at for at, (_, asked) in enumerate(lines) if not asked],
        END: [len(lines)],
    }[part]
    at = next((at for at in places if answer[at] != wanted[at]), None)
    if at is None:
        return None
    work = 0 if part == END else lines[at][0]
    name = "the end" if part == END else f"line {at + 1}"
    return f"{name} shows {answer[at]} ms and should show {wanted[at]} ms" + hint(
        part == END,
        "the end of the block runs what is left",
        answer[at] == work,
        "that is the line's own work, as in eager mode",
        answer[at] == sum(each for each, _ in lines[: at + 1]),
        "what has been run before is not run again",
        answer[at] == wanted[at] - work,
        "the operations of the line itself run, too",
    )


def _something_runs(said: dict[str, Verdict], answers: list[Any]) -> dict[str, Verdict]:
    if all(type(answer) is list and not any(answer) for answer in answers):  # right for lines that record, by chance
        return dict.fromkeys(SEEN, "no line takes any time, and neither does the end: nothing ever runs")
    return said


seen = Task(harness.seen, SEEN, _blocks, _wrong_seen, about=_about_block, refine=_something_runs)

# --- lazy: what is run, when, and how often -----------------------------------------------------------------------

NUMBERS = "the right numbers"
LAZY = {NUMBERS: 5, "nothing runs unasked": 5, "all that waits runs at once": 5, "nothing runs twice": 5}
PROGRAMS = {  # `t` makes a tensor of a number; numbers in braces are drawn
    NUMBERS: (
        "a = t({0}); b = a * {1}; c = t({2}); d = b + c; float(d)",
        "a = t({0}); b = a * {1}; c = b + {2}; float(c)",
        "a = t({0}); b = a * -{1}; bool(b); float(b)",
    ),
    "nothing runs unasked": ("a = t({0}); b = t({1}); c = a * b; d = c + {2}", "a = t({0}); float(a)"),
    "all that waits runs at once": (
        "a = t({0}); b = t({1}); c = a * b; d = c * {2}; e = c + {3}; float(d); float(e); float(c)",
        "a = t({0}); b = a + -{0}; c = b + {1}; bool(b); float(c)",
    ),
    "nothing runs twice": (
        "a = t({0}); b = a * {1}; float(b); c = b + b; d = c * b; float(d)",
        "a = t({0}); b = a + {1}; float(b); float(b); c = b * {2}; float(c); float(b)",
    ),
}


def _programs(random: Random) -> list[tuple[str, None, str]]:
    """The part, and what is not sent: a program, of which each line is told when it is to be done."""
    return [
        (part, None, program.format(*(random.randrange(1, 60) / 10 for _ in range(4))))
        for part, programs in PROGRAMS.items()
        for program in programs
    ]


class Running:
    """Tells a program line by line, and runs rows; of each line it notes the answer, and the runs until then."""

    def __init__(self, case: tuple[str, None, str]) -> None:
        self._program, self._lines = case[2], case[2].split("; ")
        self._seen: list[Any] = []
        self._runs: list[Any] = []
        self._told = 0

    @property
    def seen(self) -> tuple[str, list[Any]]:
        """The program, and what was noted."""
        return self._program, self._seen

    def reply(self, question: Any) -> Any:
        """The values of rows, or the next line, given the answer to the last one."""
        what, given = question
        if what == "run":
            self._runs.append(given)
            return harness.run_rows(given)
        if self._told:
            self._seen.append((given, self._runs))
        self._runs = []
        self._told += 1
        return self._lines[self._told - 1] if self._told <= len(self._lines) else None


def _right(lines: list[str]) -> list[tuple[float | bool | None, list[list[Any]]]]:
    """Of each line what it answers, and its runs, by the lazy numbers of the notebook."""
    runs: list[list[Any]] = []

    def run(rows: list[Any]) -> list[float]:
        runs.append(rows)
        return harness.run_rows(rows)

    names, found = {"t": harness.Recording(run).number}, []
    for line in lines:
        before = len(runs)
        answer = harness.step(line, names)
        found.append((answer, runs[before:]))
    return found


def _wrong_lazy(part: str, case: None, answer: Any) -> str | None:
    _, (program, seen) = answer
    lines = program.split("; ")
    rights = _right(lines)
    if len(seen) != len(lines):
        return f"{program}: the program was not followed to its end"
    asked = [at for at, line in enumerate(lines) if " = " not in line]
    ran, wanted = ([len(rows) for _, runs in each for rows in runs] for each in (seen, rights))
    numbers, right = ([each[at][0] for at in asked] for each in (seen, rights))
    if numbers != right or [*map(type, numbers)] != [*map(type, right)]:
        return f"{program}: the numbers are {described(numbers)} and should be {right}{_elsewhere(numbers, right, ran)}"
    rows = [rows for _, runs in seen for rows in runs]
    listing = "\n" + indented("\n".join(f"run {at + 1}: {each}" for at, each in enumerate(rows))) if ran else ""
    early = any(runs for at, (_, runs) in enumerate(seen) if at not in asked)
    if ran == wanted and not early:
        returned = {value for each in rows for value in harness.run_rows(each)}
        made_up = any(rights[at][1] and rights[at][0] not in returned for at in asked if "float" in lines[at])
        return f"{program}: the rows do not compute what was asked for{listing}" if made_up else None
    if not ran:
        return f"{program}: run was never called; what is computed in another way is not deferred"
    if not wanted or early:
        why = "nobody has asked for a value" if early else "a number that is known needs no run"
        return f"{program}: there {'was a run' if len(ran) == 1 else f'were {len(ran)} runs'}, and {why}{listing}"
    if len(ran) > len(wanted):
        why = "a value that was computed is kept" if 0 in ran or sum(ran) > sum(wanted) else "all that waits runs"
        return f"{program}: {len(ran)} runs, and {len(wanted)} will do: {why}{listing}"
    if sum(ran) > sum(wanted):
        again = f"{sum(ran)} operations were run, and the program has {sum(wanted)}"
        return f"{program}: {again}: what was run waits no more{listing}"
    return f"{program}: runs of {ran} operations, and {wanted} were expected: all that waits runs, in one run{listing}"


def _elsewhere(numbers: list[Any], right: list[Any], ran: list[int]) -> str:
    """Whether numbers are right up to the rounding of a run, which Python's own have not gone through."""
    same = [*map(type, numbers)] == [*map(type, right)]
    called = "they were not computed by run" if ran else "run was never called"
    return hint(
        same and all(math.isclose(have, wanted, rel_tol=1e-6) for have, wanted in zip(numbers, right, strict=True)),
        f"run rounds to 32 bits: {called}, and what is computed in another way is not deferred",
    )


lazy = Task(harness.lazy, LAZY, _programs, _wrong_lazy, oracle=Running, after=NUMBERS)

# --- key: recordings that can share a compiled program, and recordings that cannot --------------------------------

KEY = {"other names": 6, "operations and numbers": 5, "shapes and types": 5, "what is held": 4, "shared memory": 5}
Input = tuple[tuple[int, ...], str, int]  # shape, type, and the number of the memory block
Recorded = tuple[list[tuple[str, str, tuple[Any, ...]]], dict[str, Input], list[str]]

# A recording: inputs with type, length and memory block, operations, and what is held. The pairs that are compared are
# made of it by a change on each side; no key may depend on names, blocks and the order of inputs.
BASE = (
    "a float32 3 0, b float32 3 1, c float32 3 2, d float32 3 3: sub a b, mul %0 2.0, add %1 c, div %2 %0, gt %3 d: %4"
)
BACKWARDS = "backwards"
A1, B1 = "a float32 3 > a float32 1", "b float32 3 > b float32 1"
A64, C64 = "a float32 > a float64", "c float32 > c float64"
HOLD0, HOLD1 = ": %4 > : %0 %4", ": %4 > : %1 %4"
AB, BC, AC = "b float32 3 1 > b float32 3 0", "c float32 3 2 > c float32 3 1", "c float32 3 2 > c float32 3 0"
BCD = "b float32 3 1, c float32 3 2, d float32 3 3 > b float32 3 {}, c float32 3 {}, d float32 3 {}"
PAIRS = {
    "other names": [("", ""), (BACKWARDS, ""), (BC, BC)],
    "operations and numbers": [
        ("", "2.0 > 7.0"),
        ("", "2.0 > 2"),
        ("", "mul > max"),
        ("", "%0 2.0 > 2.0 %0"),
        ("", "%2 %0 > %0 %2"),
        ("", "%2 %0 > %2 %1"),
    ],
    "shapes and types": [("", A1), (B1, A1), ("", A64), (C64, A64)],
    "what is held": [("", HOLD1), (HOLD0, HOLD1)],
    "shared memory": [("", AB), (BC, AB), (AC, BC), (BCD.format(0, 1, 1), BCD.format(1, 0, 1))],
}


def _recorded(random: Random, change: str) -> Recorded:
    """The recording after a change ``old > new``, with names and blocks that are drawn."""
    old, _, new = change.partition(" > ")
    about, rows, held = (BASE.replace(old, new) if new else BASE).split(": ")
    start, blocks = random.randrange(1000), random.sample(range(100), 4)
    name = {each: f"x{start + at}" for at, each in enumerate("abcd")} | {f"%{at}": f"%{start + at}" for at in range(5)}
    kinds = map(str.split, about.split(", "))
    inputs = [(name[each], ((int(size),), kind, blocks[int(at)])) for each, kind, size, at in kinds]
    program = [
        (name[f"%{at}"], operation, tuple(name.get(each) or literal_eval(each) for each in operands))
        for at, (operation, *operands) in enumerate(map(str.split, rows.split(", ")))
    ]
    return program, dict(inputs[::-1] if change == BACKWARDS else inputs), [name[each] for each in held.split()]


def _recordings(random: Random) -> Cases:
    found = in_parts(PAIRS, lambda pair: tuple(_recorded(random, change) for change in pair))
    random.shuffle(found)
    return found


def parts_of(recorded: Recorded) -> dict[str, Any]:
    """What a program depends on, with names replaced by places."""
    rows, inputs, held = recorded
    place: dict[str, Any] = {}
    for target, _, operands in rows:
        for each in operands:
            if type(each) is str and each in inputs:
                place.setdefault(each, f"input {sum(name in inputs for name in place)}")
        place[target] = f"row {sum(name not in inputs for name in place)}"
    used = [name for name in place if name in inputs]
    blocks = list(dict.fromkeys(inputs[name][2] for name in used))
    return {
        "the operations, or where they read from,": [
            (operation, [place[each] if type(each) is str else None for each in operands])
            for _, operation, operands in rows
        ],
        "the numbers": [repr(each) for *_, operands in rows for each in operands if type(each) is not str],
        "the shapes": [inputs[name][0] for name in used],
        "the types": [inputs[name][1] for name in used],
        "the values that are held": [place[name] for name in held],
        "the inputs that share memory": [blocks.index(inputs[name][2]) for name in used],
    }


WHY = {
    "the values that are held": ": a program computes what is held, and writes only that into memory",
    "the inputs that share memory": ": a write into one would change the other",
    "the numbers": ": they are written into the program, with their types",
    "the types": ": a program for float32 reads four bytes for each element",
}


def _apart(one: Recorded, other: Recorded) -> str:
    first, second = parts_of(one), parts_of(other)
    return next((f"{name} differ{WHY.get(name, '')}" for name in first if first[name] != second[name]), "")


def _alike(pair: Any) -> str:
    return "names, the numbers of blocks and the order of `inputs` are no part of the program"


def _line(recorded: Recorded) -> str:
    rows, inputs, held = recorded
    lines = [f"{target} = {operation}({', '.join(map(str, operands))})" for target, operation, operands in rows]
    about = [f"{name}: {dtype}{list(shape)} in block {block}" for name, (shape, dtype, block) in inputs.items()]
    return "; ".join([*about, *lines, f"held: {', '.join(held)}"])


def _about_recordings(pair: Any) -> str:
    return "\n".join(["", *map(_line, pair)])


key = key_task(harness.key, KEY, _recordings, _apart, _alike, _about_recordings, "recordings")

# --- descend: a loop that looks in every round, each of which is another program ----------------------------------

ROUNDED = 1e-5  # lazy numbers have 32 bits
MOST = 5  # operations of a round; three will do
RIGHT, FEW_RUNS, ONE_PROGRAM = NUMBERS, "few runs", "one program"
DESCEND = {RIGHT: 5, FEW_RUNS: 8, ONE_PROGRAM: 7}


def _descents(random: Random) -> Cases:
    return [
        (part, (random.uniform(1, 3), [random.uniform(0.05, 0.4) for _ in range(every * times)], every))
        for part in DESCEND
        for every, times in ((3, 4), (5, 2), (1, 3))
    ]


class Runs:
    """Runs rows; notes of each run how many there were, the program, its inputs, and the values."""

    def __init__(self, case: Any) -> None:
        self.seen: list[tuple[int, str, list[float], list[float]]] = []

    def reply(self, rows: Any) -> list[float]:
        """The values of rows."""
        values = harness.run_rows(rows)
        inputs = [each[0] for *_, operands in rows for each in operands if type(each) is tuple]
        self.seen.append((len(rows), harness.program_of(rows), inputs, values))
        return values


def _wrong_descent(part: str, case: Any, answer: Any) -> str | None:
    start, rates, every = case
    losses, ran = answer
    right, states, x = [], [], start
    for rate in rates:
        x = x - rate * x
        right.append(x * x)
        states += [x, x * x]
    expect(losses, list[float], count=len(right))
    if off := [at for at in range(len(right)) if not _near(losses[at], right[at])]:
        return f"the loss of round {off[0] + 1} is {losses[off[0]]:.6g} and should be {right[off[0]]:.6g}"
    if part == RIGHT:
        return None
    wanted, returned, elsewhere = len(rates) // every, set[float](), False
    for *_, inputs, values in ran:  # what comes in and is like a state has been computed by an earlier run
        elsewhere |= any(_near(each, state) for each in {*inputs} - returned for state in states)
        returned.update(values)
    if elsewhere or not returned.issuperset(losses):
        return f"{'' if ran else 'there was no run: '}the losses were not computed with lazy numbers"
    most = max(count for count, *_ in ran)
    if most > MOST * every:
        return f"{most} operations waited at once, of more than {every} rounds: memory grows with the loop"
    if len(ran) < wanted:
        return f"{len(ran)} runs, and more than {every} rounds waited for one: memory grows with the loop"
    if part == FEW_RUNS and len(ran) > wanted:
        why = "each `float` asks for a value, and runs all that waits" if len(ran) >= len(rates) else "look less often"
        return f"{len(ran)} runs, and {wanted} will do; {why}"
    programs = len({program for _, program, *_ in ran})
    if part == ONE_PROGRAM and programs > 1:
        why = "a plain number is a part of the program; made a tensor, it is an input"
        return f"{programs} programs were compiled, and one will do; {why}"
    return None


def _near(have: float, wanted: float) -> bool:
    return math.isclose(have, wanted, rel_tol=ROUNDED)


def _about_descent(case: Any) -> str:
    return f"{len(case[1])} rounds, {case[2]} of which may wait"


descend = Task(harness.descend, DESCEND, _descents, _wrong_descent, about=_about_descent, oracle=Runs)

# --- runs: where a recording is run; each run cuts the program, and what is alive there goes through memory --------

MET, FEW = "every request is met", "few bytes"
RUNS = {MET: 8, FEW: 17}
Cuts = tuple[list[int], list[tuple[int, int]]]  # costs; requests: made by which operation, and needed before which

# Of the courses below together. Start: a run after each operation. Par: runs as late as possible, as lazy mode does by
# itself. Best: by dynamic programming over the last run so far.
BYTES = Golf("bytes", start=276348, par=30956, best=26224)


def _drawn(random: Random, size: int, requests: int) -> Cuts:
    costs = [random.choice((40, 400, 4000)) + 4 * random.randrange(10) for _ in range(size)]
    made = [random.randrange(size - 1) for _ in range(requests)]
    return costs, [(at, random.randrange(at + 1, min(at + 12, size) + 1)) for at in made]


@cache
def _courses() -> tuple[Cuts, ...]:
    """Costs and requests, the same for each student, on which the cheapest place for each request is no good answer."""
    random = Random(199)
    return tuple(_drawn(random, size, requests) for size, requests in ((20, 6), (40, 12), (60, 25), (60, 10)))


def _cuts(random: Random) -> Cases:
    found: Cases = [(MET, _drawn(random, size, size // 2)) for size in (4, 10, 20)]
    return found + [(FEW, (costs, random.sample(requests, len(requests)))) for costs, requests in _courses()]


def _wrong_cuts(part: str, case: Cuts, answer: Any) -> str | None:
    costs, requests = case
    expect(answer, list[int])
    if strange := [each for each in answer if not 0 <= each < len(costs)]:
        return f"there is no operation {strange[0]}"
    for made, needed in requests:
        if not any(made <= at < needed for at in answer):
            early = [at for at in answer if at < made]
            why = f"; the run after {early[-1]} is too early, the value is not recorded yet" if early else ""
            return f"a value of operation {made} is needed before {needed}, and no run is in between{why}"
    return None


runs = Task(
    harness.runs,
    RUNS,
    _cuts,
    _wrong_cuts,
    about=lambda case: f"{len(case[0])} operations, {len(case[1])} requests",
    golf={FEW: BYTES},
    count=lambda part, case, answer: sum(case[0][at] for at in set(answer)),  # each run once
)

TASKS = (seen, lazy, key, descend, runs)
