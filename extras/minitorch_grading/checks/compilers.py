"""Exercise 15, beside other compilers: whose listing it is, the same operations in two, kernels, and retraces.

Programs are drawn as rows ``(name, operation, operands)``, where an operand is a name or a number, and printed here in
five languages. Nothing of JAX or PyTorch is needed.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from random import Random
from typing import Any

from ..harness import compilers as harness
from ..harness.compilers import SAME
from ..harness.plain import described
from .reasons import expect, hint
from .task import Task

Cases = list[tuple[str, Any]]
Row = tuple[str, str, list[Any]]

UNARY, BINARY = ("exp", "tanh", "neg"), ("add", "sub", "mul", "div")


def program(random: Random, size: int, repeated: bool = True) -> list[Row]:
    """A program of x and y; no two rows compute the same."""
    rows: list[Row] = []
    known: set[tuple[str, tuple[Any, ...]]] = set()
    names = list(SAME) * (1 + repeated)
    while len(rows) < size:
        operation = random.choice(names)
        values = ["x", "y", *(name for name, _, _ in rows)]
        operands: list[Any] = [random.choice(values[-4:])]
        if operation in BINARY:
            operands.append(random.choice(values) if random.random() < 0.6 else random.randint(2, 9) / 2)
        if (operation, tuple(operands)) not in known:
            known.add((operation, tuple(operands)))
            rows.append((f"%{len(rows)}", operation, operands))
            if not repeated:
                names.remove(operation)
    return rows


# --- language ---------------------------------------------------------------------------------------------------

LANGUAGES = ("graph", "jaxpr", "StableHLO", "HLO", "FX")
LANGUAGE = {"whole listings": 8, "excerpts": 7, "evidence": 5}
DISGUISES = ("stablehlo.add", "HloModule", "jaxpr", "graph", "torch", "let", "lambda", "ENTRY", "forward", "module")
LONGEST = 30  # characters of a feature; raising it lets a whole line be one


def _in_graph(rows: list[Row], title: str) -> tuple[str, str, str]:
    shown = [f"  {name} = {operation}({', '.join(map(str, given))}) : f32[4,8]" for name, operation, given in rows]
    body = "\n".join(f"{line}  # {title}.py:{number}" for number, line in enumerate(shown, 2))
    return f"graph {title}(x: f32[4,8], y: f32[4,8]):\n", body, f"\n  return {rows[-1][0]}"


def _in_jaxpr(rows: list[Row], title: str) -> tuple[str, str, str]:
    letters = {name: chr(ord("a") + at) for at, name in enumerate(["x", "y", *(name for name, _, _ in rows)])}
    body = "\n".join(
        f"    {letters[name]}:f32[4,8] = {operation} "
        + " ".join(letters.get(each, f"{each}:f32[]") for each in given)
        + f"  # {title}.py:{number}:8 ({title})"
        for number, (name, operation, given) in enumerate(rows, 2)
    )
    return "{ lambda ; a:f32[4,8] b:f32[4,8]. let\n", body, f"\n  in ({letters[rows[-1][0]]},) }}"


def stablehlo(rows: list[Row]) -> list[Row]:
    """The rows of a program in StableHLO: each number is a constant that is made an array first."""
    found: list[Row] = []
    names: dict[Any, str] = {"x": "%arg0", "y": "%arg1"}
    for name, operation, operands in rows:
        given = []
        for operand in operands:
            if isinstance(operand, float):
                found.append((f"%cst_{len(found)}", "constant", [operand]))
                found.append((f"%{len(found)}", "broadcast_in_dim", [found[-1][0]]))
                given.append(found[-1][0])
            else:
                given.append(names[operand])
        names[name] = f"%{len(found)}"
        found.append((names[name], SAME[operation], given))
    return found


def _in_stablehlo(rows: list[Row], title: str) -> tuple[str, str, str]:
    kind = "tensor<4x8xf32>"
    lines = []
    for name, operation, given in stablehlo(rows):
        if operation == "constant":
            lines.append(f"    {name} = stablehlo.constant dense<{given[0]}> : tensor<f32>")
        elif operation == "broadcast_in_dim":
            lines.append(f"    {name} = stablehlo.{operation} {given[0]}, dims = [] : (tensor<f32>) -> {kind}")
        else:
            lines.append(f'    {name} = stablehlo.{operation} {", ".join(given)} : {kind} loc("{title}.py":3:8)')
    head = f"module @jit_{title} {{\n  func.func public @main(%arg0: {kind}, %arg1: {kind}) -> {kind} {{\n"
    return head, "\n".join(lines), f"\n    return {lines[-1].split()[0]} : {kind}\n  }}\n}}"


def _in_hlo(rows: list[Row], title: str) -> tuple[str, str, str]:
    kind = "f32[4,8]{1,0}"
    names: dict[Any, str] = {"x": "%x.1", "y": "%y.1"}
    lines = ["  %x.1 = f32[4,8]{1,0} parameter(0)", "  %y.1 = f32[4,8]{1,0} parameter(1)"]
    for name, operation, operands in rows:
        for operand in operands:
            if isinstance(operand, float) and operand not in names:
                names[operand] = f"%broadcast.{len(lines) + 1}"
                lines.append(f"  %constant.{len(lines)} = f32[] constant({operand})")
                lines.append(f"  {names[operand]} = {kind} broadcast(%constant.{len(lines) - 1}), dimensions={{}}")
        names[name] = f"%{operation}.{len(lines)}"
        given = ", ".join(names[each] for each in operands)
        origin = f'metadata={{op_name="jit({title})/{operation}" stack_frame_id=3}}'
        lines.append(f"  {names[name]} = {kind} {SAME[operation]}({given}), {origin}")
    lines[-1] = "  ROOT " + lines[-1].strip()
    head = f"HloModule jit_{title}, is_scheduled=true\n\nENTRY %main.7 (x.1: f32[4,8], y.1: f32[4,8]) -> f32[4,8] {{\n"
    return head, "\n".join(lines), "\n}"


def _in_fx(rows: list[Row], title: str) -> tuple[str, str, str]:
    symbols = {"add": "+", "sub": "-", "mul": "*", "div": "/"}
    plain = title.replace(".", "_")
    names: dict[Any, str] = {"x": "l_x_", "y": "l_y_"}
    last = {operand: name for name, _, operands in rows for operand in operands if isinstance(operand, str)}
    lines = []
    for number, (name, operation, operands) in enumerate(rows):
        names[name] = f"{plain if number % 3 == 0 else operation}_{number}"
        given = [names.get(each, str(each)) for each in operands]
        if operation in symbols:
            value = f"{given[0]} {symbols[operation]} {given[1]}"
        else:
            value = f"-{given[0]}" if operation == "neg" else f"torch.{operation}({given[0]})"
        done = [names[each] for each in dict.fromkeys(operands) if last.get(each) == name]
        freed = ";  " + " = ".join([*done, "None"]) if done else ""
        lines.append(f"    {names[name]} = {value}{freed}")
    return (
        "def forward(self, l_x_ : torch.Tensor, l_y_ : torch.Tensor):\n",
        "\n".join(lines),
        (f"\n    return ({names[rows[-1][0]]},)"),
    )


PRINTERS: dict[str, Callable[[list[Row], str], tuple[str, str, str]]] = dict(
    zip(LANGUAGES, (_in_graph, _in_jaxpr, _in_stablehlo, _in_hlo, _in_fx), strict=True)
)


def _listing(name: str, rows: list[Row], title: str, excerpt: bool) -> str:
    head, body, end = PRINTERS[name](rows, title)
    return body if excerpt else f"{head}{body}{end}"


def _language_cases(random: Random) -> Cases:
    cases: Cases = []
    for part in LANGUAGE:
        for name in random.sample(LANGUAGES, len(LANGUAGES)):
            title = random.choice(DISGUISES)
            cases.append((part, (_listing(name, program(random, 5), title, part == "excerpts"),)))
    return cases


def _written_in(listing: str) -> str:
    """The language of a listing that was printed here."""
    features = {" = stablehlo.": "StableHLO", "]{1,0} ": "HLO", ") : f32[": "graph", ":f32[": "jaxpr"}
    return next((name for feature, name in features.items() if feature in listing), "FX")


def _wrong_language(part: str, case: Any, answer: Any) -> str | None:
    (listing,) = case
    expect(answer, tuple[str, str], more="the name of the language and a feature of the listing")
    name, feature = answer
    right = _written_in(listing)
    if name not in LANGUAGES:
        return f"the languages are {', '.join(LANGUAGES)}, and {name!r} is none of them"
    if name != right:
        disguise = next((word for word in DISGUISES if word in listing), "")
        why = f"{disguise!r} is a name that somebody gave to a function" if disguise else ""
        return f"this is {right}, and not {name}{hint(disguise in feature and disguise, why)}"
    if part != "evidence":
        return None
    if feature not in listing or not 2 <= len(feature) <= LONGEST:
        return f"the feature {feature!r} has to be 2 to {LONGEST} characters that stand in the listing"
    draw = Random(feature + listing)
    for _ in range(12):
        rows = program(draw, 6)
        for other in LANGUAGES:
            for title in DISGUISES if other != name else ():
                if feature in _listing(other, rows, title, False):
                    return f"{feature!r} stands in listings of {other}, too, so it decides nothing"
    own = [_listing(name, program(draw, 6), f"model{number}", False) for number in range(8)]
    if sum(feature in each for each in own) < 4:
        return (
            f"{feature!r} stands in few other listings of {name}: it is a feature of this program, not of the language"
        )
    return None


language = Task(
    harness.language, LANGUAGE, _language_cases, _wrong_language, about=lambda case: f"in this listing\n{case[0]}"
)

# --- partners ---------------------------------------------------------------------------------------------------

PARTNERS = {"each operation once": 6, "the same operation twice": 10, "another order": 9}


def meanings(rows: Sequence[Row], names: Mapping[str, str]) -> dict[str, Any]:
    """What each row computes, as nested tuples of operations, inputs and numbers, by the row's name."""
    found: dict[Any, Any] = {name: title for title, name in names.items()}
    for name, operation, operands in rows:
        given = tuple(found.get(each, each) for each in operands)
        found[name] = (
            given[0] if operation in ("constant", "broadcast_in_dim") else (SAME.get(operation, operation), given)
        )
    return {name: found[name] for name, operation, _ in rows if operation not in ("constant", "broadcast_in_dim")}


def reordered(random: Random, rows: list[Row]) -> list[Row]:
    """The rows in another order, in which each still comes after what it reads."""
    left, found, known = list(rows), [], {"%arg0", "%arg1"}
    while left:
        ready = [row for row in left if all(isinstance(each, float) or each in known for each in row[2])]
        row = random.choice(ready)
        left.remove(row)
        found.append(row)
        known.add(row[0])
    return found


def _partner_cases(random: Random) -> Cases:
    cases: Cases = []
    for part, repeated in zip(PARTNERS, (False, True, True), strict=True):
        for size in (5, 7):
            ours = program(random, size, repeated)
            theirs = stablehlo(ours)
            if part == "another order":
                theirs = reordered(random, theirs)
            cases.append((part, (ours, theirs)))
    pair: list[Row] = [("%0", "mul", ["x", 2.0]), ("%1", "mul", ["x", 3.0]), ("%2", "sub", ["%1", "%0"])]
    turned: list[Row] = [
        ("%0", "exp", ["x"]),
        ("%1", "exp", ["y"]),
        ("%2", "sub", ["%1", "%0"]),
        ("%3", "sub", ["%0", "%1"]),
    ]
    cases += [("another order", (each, reordered(random, stablehlo(each)))) for each in (pair, turned)]
    return cases


def _shown(rows: Iterable[Row]) -> str:
    return "\n".join(f"{name} = {operation}({', '.join(map(str, given))})" for name, operation, given in rows)


def _wrong_partners(part: str, case: Any, answer: Any) -> str | None:
    ours, theirs = case
    expect(answer, dict, "a dict", "from names of ours to names of StableHLO's")
    means = {value: name for name, value in meanings(theirs, {"x": "%arg0", "y": "%arg1"}).items()}
    operation_of = {name: operation for name, operation, _ in theirs}
    for name, value in meanings(ours, {"x": "x", "y": "y"}).items():
        found, right = answer.get(name), means[value]
        if found != right:
            kind = operation_of.get(found, "") if isinstance(found, str) else ""
            why = hint(
                kind in ("constant", "broadcast_in_dim"), "that is a number on its way to an operation",
                kind == operation_of[right], "the operation is the same, and it reads other values",
            )  # fmt: skip
            return f"{name} is {described(found)} and should be {right!r}{why}"
    extra = [name for name in answer if name not in {row[0] for row in ours}]
    return f"{described(extra[0])} is no name of ours" if extra else None


partners = Task(
    harness.partners,
    PARTNERS,
    _partner_cases,
    _wrong_partners,
    about=lambda case: f"\nours:\n{_shown(case[0])}\nStableHLO:\n{_shown(case[1])}",
)

# --- kernels ----------------------------------------------------------------------------------------------------

KERNELS = {"pointwise and rows": 7, "a sum over everything": 7, "products": 8, "epilogues": 8}
KINDS = {"p": "pointwise", "r": "row", "a": "all", "d": "product"}
FIXED = {
    "pointwise and rows": ("a=p(x) b=p(a) c=r(b) d=p(b,c)", "a=p(x) b=p(y) c=r(b) d=p(c)"),
    "a sum over everything": ("a=a(x) b=p(x,a)", "a=p(x) b=a(a) c=p(a,b) d=r(c) e=a(d) f=p(e,y)", "a=a(x) b=a(a)"),
    "products": (
        "a=p(x) b=d(a,w) c=p(b)",
        "a=p(x) b=d(a,w) c=p(a,b) d=r(c)",
        "a=d(x,w) b=d(a,v) c=p(a,b)",
        "a=a(x) b=p(a,x) c=p(x) d=d(c,w) e=p(d) f=p(b,e)",
    ),
    "epilogues": (
        "a=d(x,w) b=p(a,y) c=p(b)",
        "a=d(x,w) b=p(a) c=p(a,b) d=d(c,v) e=p(d,c)",
        "a=d(x,w) b=r(a) c=p(a,b)",
        "a=p(x) b=d(x,w) c=p(b,a) d=p(c)",
    ),
}


def read_rows(text: str) -> list[Row]:
    """Rows from a short form, in which a kind is a letter."""
    found = []
    for each in text.split():
        name, _, call = each.partition("=")
        found.append((name, KINDS[call[0]], call[2:-1].split(",")))
    return found


def waves(rows: Sequence[Row], epilogues: bool) -> tuple[dict[str, int], dict[str, str]]:
    """Of each operation the number of boundaries on the longest way to it; and the product whose kernel it is in."""
    kind = {name: each for name, each, _ in rows}
    wave: dict[str, int] = {}
    home: dict[str, str] = {}
    for name, each, operands in rows:
        computed = [operand for operand in operands if operand in kind]
        homes = {home.get(operand) for operand in computed}
        if each == "product":
            home[name] = name
        elif epilogues and each == "pointwise" and len(homes) == 1 and None not in homes:
            home[name] = str(homes.pop())
            wave[name] = wave[home[name]]
            continue
        stored = [operand in home or kind[operand] == "all" or each == "product" for operand in computed]
        wave[name] = max((wave[one] + at for one, at in zip(computed, stored, strict=True)), default=0)
    return wave, home


def partition(rows: Sequence[Row], epilogues: bool) -> set[frozenset[str]]:
    """The kernels: products with their epilogues, and what is connected within a wave."""
    wave, home = waves(rows, epilogues)
    group = {name: {name} for name, _, _ in rows}
    for name, _, operands in rows:
        near = [
            each for each in operands if each in wave and wave[each] == wave[name] and home.get(each) == home.get(name)
        ]
        for each in near:
            group[name] |= group[each]
            for member in group[name]:
                group[member] = group[name]
    return {frozenset(each) for each in group.values()}


def _random_rows(random: Random, letters: str) -> list[Row]:
    rows: list[Row] = []
    for name in "abcdefg":
        values = ["x", "y", *(each for each, _, _ in rows)]
        letter = random.choice(letters)
        first, second = random.choice(values[-2:]), random.choice(values)
        operands = [first, "w"] if letter == "d" else [first] if letter in "ra" or first == second else [first, second]
        rows.append((name, KINDS[letter], operands))
    return rows


def _kernel_cases(random: Random) -> Cases:
    cases: Cases = [(part, (read_rows(text), part == "epilogues")) for part, texts in FIXED.items() for text in texts]
    for part, letters in zip(FIXED, ("pppr", "ppra", "ppprad", "pppprd"), strict=True):
        cases += [(part, (_random_rows(random, letters), part == "epilogues")) for _ in range(3)]
    return cases


def _wrong_kernels(part: str, case: Any, answer: Any) -> str | None:
    rows, epilogues = case
    names_of_one = list[str] | tuple[str, ...]
    expect(answer, list[names_of_one] | tuple[names_of_one, ...], "a list of kernels", "each a list of names")
    names = [name for each in answer for name in each]
    if sorted(names) != sorted(name for name, _, _ in rows):
        return "each operation has to be in one kernel"
    found, right = {frozenset(each) for each in answer}, partition(rows, epilogues)
    if found == right:
        return None
    wave, home = waves(rows, epilogues)
    kind = {name: each for name, each, _ in rows}
    of = {name: each for each in right for name in each}
    for kernel in sorted(map(sorted, found)):
        for other in kernel[1:]:
            one = kernel[0]
            if other not in of[one]:
                product = "a product is a kernel of its own, and its result is stored"
                why = hint(
                    home.get(one) != home.get(other) and "product" in (kind[one], kind[other]), product,
                    wave[one] != wave[other], f"{max(one, other, key=wave.__getitem__)!r} waits for another kernel",
                    True, "no edge within a wave connects them",
                )  # fmt: skip
                return f"{one!r} and {other!r} cannot share a kernel{why}"
    missing = next(each for each in sorted(map(sorted, right)) if frozenset(each) not in found)
    return f"{', '.join(missing)} are one kernel{hint(epilogues and missing[0] in home, 'they are the epilogue')}"


kernels = Task(
    harness.kernels,
    KERNELS,
    _kernel_cases,
    _wrong_kernels,
    about=lambda case: f"\n{_shown(case[0])}\nepilogues: {case[1]}",
)

# --- retraces ---------------------------------------------------------------------------------------------------

POLICIES = {"numbers are constants": 8, "numbers are inputs": 7, "changes become symbols": 10}
Places = dict[tuple[str, str, int], Any]  # argument, what of it, and of a shape the dimension


def places_of(policy: str, call: Mapping[str, Any]) -> Places:
    """All that a program may be fixed to, for a call."""
    found: Places = {}
    for name, given in call.items():
        if isinstance(given, (int, float)):
            found[name, "dtype", 0] = type(given).__name__
            if policy != "numbers are inputs":
                found[name, "value", 0] = given
        else:
            dtype, shape = given
            found[name, "dtype", 0], found[name, "rank", 0] = dtype, len(shape)
            found |= {(name, "shape", dimension): size for dimension, size in enumerate(shape)}
    return found


def traced(policy: str, calls: Sequence[Mapping[str, Any]]) -> list[list[tuple[str, str]] | None]:
    """For each call None if a program fits, or in what it differs from the newest one; [] for the first."""
    programs: list[Places] = []
    answers: list[list[tuple[str, str]] | None] = []
    for call in calls:
        places = places_of(policy, call)

        def differing(kept: Places, places: Places = places) -> set[tuple[str, str, int]]:
            everywhere = kept.keys() | places.keys()
            return {at for at in everywhere if kept.get(at) != places.get(at) and kept.get(at) != "symbol"}

        if any(not differing(kept) for kept in programs):
            answers.append(None)
            continue
        changed = differing(programs[-1]) if programs else set()
        kinds = {(name, "shape" if what == "rank" else what) for name, what, _ in changed}
        # Of a number with another type the value is another one as well; the type is the reason.
        answers.append(sorted(each for each in kinds if not (each[1] == "value" and (each[0], "dtype") in kinds)))
        made = dict(places)
        if policy == "changes become symbols" and programs:
            for at in places.keys() & programs[-1].keys():
                name, what, _ = at
                alike = not {(name, "dtype", 0), (name, "rank", 0)} & changed
                if alike and what in ("shape", "value") and (at in changed or programs[-1][at] == "symbol"):
                    made[at] = "symbol"
        programs.append(made)
    return answers


def _calls(random: Random, size: int) -> list[dict[str, Any]]:
    """Calls that differ from the one before in one argument, or repeat an old one."""
    calls: list[dict[str, Any]] = [{"x": ("f32", (4, 8)), "n": 2}]
    while len(calls) < size:
        call, choice = dict(calls[-1]), random.random()
        dtype, shape = call["x"]
        if choice < 0.2:
            call = dict(random.choice(calls))
        elif choice < 0.55:
            rows, *rest = shape
            call["x"] = (dtype, (rows + random.randint(1, 3), *rest))
        elif choice < 0.85:
            call["n"] = call["n"] + random.randint(1, 3)
        elif choice < 0.93:
            call["x"] = (random.choice(["f32", "i32"]), shape)
        else:
            call["n"] = float(call["n"]) if isinstance(call["n"], int) else int(call["n"])
        calls.append(call)
    return calls


def _first(*given: tuple[tuple[int, ...], Any] | tuple[tuple[int, ...], Any, str]) -> list[dict[str, Any]]:
    return [{"x": (dtype[0] if dtype else "f32", shape), "n": n} for shape, n, *dtype in given]


_FIXED = (
    _first(((4,), 2), ((4,), 3), ((4,), 2), ((4,), 2.0)),
    _first(((4,), 2), ((5,), 2), ((6,), 2), ((6,), 2, "i32"), ((4,), 2)),
    _first(((4, 8), 2), ((4,), 2), ((5, 9), 3), ((6, 8), 4)),
    _first(((4, 8), 2), ((5, 8), 2), ((5, 9), 2), ((7, 10), 2), ((7, 10), 5), ((8, 11), 6)),
)


def _retrace_cases(random: Random) -> Cases:
    found = [(policy, (policy, calls)) for policy in POLICIES for calls in _FIXED]
    return [*found, *((policy, (policy, _calls(random, 8))) for policy in POLICIES for _ in range(3))]


def _told(call: Mapping[str, Any]) -> str:
    return ", ".join(
        f"{name} = {given}" if isinstance(given, (int, float)) else f"{name}: {given[0]}{list(given[1])}"
        for name, given in call.items()
    )


def _wrong_retraces(policy: str, case: Any, answer: Any) -> str | None:
    _, calls = case
    right = traced(policy, calls)
    expect(answer, list, f"a list of {len(calls)}", "one for each call", len(calls))
    for number, (found, wanted) in enumerate(zip(answer, right, strict=True)):
        if found == wanted and type(found) is type(wanted):
            continue
        about = f"call {number}, {_told(calls[number])}"
        if wanted is None:
            by_symbol = policy == "changes become symbols" and calls[number] not in calls[:number]
            why = hint(
                by_symbol, "a symbol of a program fits any size or number",
                calls[number] in calls[:number], f"it is call {calls.index(calls[number])} again",
                True, "only the value of a number changed, and that is an input",
            )  # fmt: skip
            return f"{about}: a program fits, so None is right{why}"
        if found is None:
            return f"{about}: no program fits; {described(wanted)} is what differs from the newest one"
        return f"{about}: {described(found)} should be {described(wanted)}"
    return None


retraces = Task(
    harness.retraces,
    POLICIES,
    _retrace_cases,
    _wrong_retraces,
    about=lambda case: "\n" + "\n".join(f"{number}: {_told(call)}" for number, call in enumerate(case[1])),
)

TASKS = (language, partners, kernels, retraces)
