"""Exercise 06, rewriting graphs: passes that change a program and not what it computes, and laws of algebra."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from random import Random
from typing import Any

import numpy as np

from minitorch.errors import GraphError
from minitorch.graph import Graph, evaluate
from minitorch.graph.values import params_key
from minitorch.passes import COMMON_SUBEXPRESSIONS, CONSTANT_FOLDING, DEAD_CODE, run_pipeline
from minitorch.primitives import constant

from ..harness import Driver
from ..harness import rewriting as harness
from ..harness.plain import Fault
from .compare import different
from .reasons import Wrong, expect, hint, indented
from .samples import graph_text, in_parts, is_harmless, listing, random_graph, unforeseen, values_for
from .task import Cases, Task, Verdict

RANDOM = "random graphs"
SIZES = (3, 5, 8, 12, 18)  # of the random graphs


def legal(before: Graph, text: object) -> Graph:
    """The graph that a pass has made, if it can take the place of the old one and be run in no time.

    Whoever judges runs it, so it has to be looked at before: the text may be anything.
    """
    expect(text, str, "a graph")
    try:
        after = Graph.parse(str(text))
    except GraphError as error:
        raise Wrong(f"the result is no legal graph: {next(iter(str(error).splitlines()))}") from None
    if not is_harmless(after):
        raise Wrong("the result is far larger than the graph")
    if [(n.params["name"], n.spec) for n in before.inputs] != [(n.params["name"], n.spec) for n in after.inputs]:
        raise Wrong("the inputs have changed; whoever runs the graph gives values by their place")
    if [node.spec for node in before.outputs] != [node.spec for node in after.outputs]:
        raise Wrong("the outputs have changed; whoever runs the graph takes them by their place")
    return after


def changed(before: Graph, text: object) -> Graph:
    """The graph that a pass has made, if it does what the old one did."""
    after = legal(before, text)
    for _ in range(3):
        arrays = values_for(before, unforeseen())
        for place, (new, old) in enumerate(zip(evaluate(after, arrays), evaluate(before, arrays), strict=True)):
            if unlike := different(new, old, 0):
                raise Wrong(f"output {place} is another: {unlike}")
    return after


def _operations(graph: Graph) -> int:
    return sum(node.primitive is not constant for node in graph.nodes)


def _pass_task(
    driver: Driver,
    parts: dict[str, int],
    cases: Callable[[Random], dict[str, list[str]]],
    missed: Callable[[Graph, Graph], str | None],
    values: str,
    refused: str,
    lost: str = "",
    **drawn: Any,
) -> Task:
    """A task in which a pass is written.

    Args:
        driver, parts: of the task.
        cases: programs, for each part but the random graphs.
        missed: ``(before, after) -> what is left to do``, for a graph that computes the same.
        values: the misconception that is mostly behind other values.
        refused: that behind a graph that the verifier refuses.
        lost: that behind one whose output is none of its nodes.
        drawn: what the random graphs are like.
    """

    def make(random: Random) -> Cases:
        written = cases(random)
        graphs = [random_graph(random, size, outputs=1 + size % 2, **drawn) for size in SIZES]
        texts = in_parts(written, lambda program: graph_text("f32[2,3]", program))
        return texts + [(RANDOM, str(graph)) for graph in graphs]

    def wrong(part: str, text: str, answer: Any) -> str | None:
        before, after = Graph.parse(text), answer
        try:
            after = changed(before, answer)
            reason = missed(before, after)
        except Wrong as error:
            reason = f"{error}{hint('another' in str(error), values)}"
        listed = isinstance(answer, str) and f"\nafter\n{indented(str(after))}\nbefore"
        return reason and f"{reason}{listed or ''}"

    def of_a_refused_graph(part: str, fault: Fault) -> str:
        of_old = lost and "is not in the graph" in fault.text
        return f"{hint(of_old, lost, fault.kind in ('GraphError', 'ShapeError', 'DTypeError'), refused)}, given"

    return Task(driver, parts, make, wrong, about=listing, on_fault=of_a_refused_graph, shrinks=True)


# --- dead_code ----------------------------------------------------------------------------------------------------

NEEDED = "what an output needs, itself or over others, has to stay, and so have all inputs"
DEAD = {"one unused node": 6, "a chain of unused nodes": 8, RANDOM: 6}


def _dead(random: Random) -> dict[str, list[str]]:
    return {
        "one unused node": [
            "%0 = neg(x); %1 = exp(x); %0",
            "%0 = exp(x); %1 = neg(%0); %2 = add(%0, y); %2",
            "%0 = exp(y); y",
        ],
        "a chain of unused nodes": [
            "%0 = neg(x); %1 = exp(%0); %2 = abs(%1); %3 = add(x, y); %3",
            "%0 = neg(x); %1 = mul(%0, %0); %2 = add(%1, %0); %0, y",
        ],
    }


def _missed_dead(before: Graph, after: Graph) -> str | None:
    if _operations(after) <= _operations(DEAD_CODE(before)):
        return None
    if _operations(after) == _operations(before):
        return "nothing was removed, although no output needs some of it"
    return "something is left that no output needs: what only dead code reads is dead itself"


dead_code = _pass_task(harness.dead_code, DEAD, _dead, _missed_dead, NEEDED, NEEDED)

# --- fold_constants -----------------------------------------------------------------------------------------------

IN_PLACE = "a constant takes the place of the operation: its type, its shape, and all who read it, the outputs included"
ALL = "only an operation all of whose operands are constants has a value that is known now"
FOLD = {"one operation": 8, "chains": 9, "only constants": 7, RANDOM: 6}


def _constants(random: Random) -> dict[str, list[str]]:
    a, b = random.randint(2, 9), random.randint(2, 9)
    spec, array = ":f32[2,3]", "%0 = constant([[1, 2, 3], [4, 5, 6]]) : f32[2,3]"
    return {
        "one operation": [
            f"%0 = add({a}{spec}, {b}{spec}); %1 = mul(x, %0); %1",
            f"{array}; %1 = neg(%0); %2 = add(x, %1); %2",
            f"{array}; %1 = reduce_sum(%0, dims=[1]); %2 = reduce_sum(y, dims=[1]); %1, %2",
        ],
        "chains": [
            f"%0 = add({a}{spec}, {b}{spec}); %1 = mul(%0, %0); %2 = sub(x, %1); %2",
            f"{array}; %1 = neg(%0); %2 = mul(%1, {b}.0); %3 = add(%2, %0); %4 = add(%3, y); %4",
        ],
        "only constants": [
            f"%0 = mul(x, {a}.0); %1 = mul({a}{spec}, {b}{spec}); %2 = add(%0, %1); %2",
            f"%0 = sub(x, x); %1 = neg({b}{spec}); %2 = mul(%0, %1); %2, y",
        ],
    }


def _missed_folds(before: Graph, after: Graph) -> str | None:
    # The engine's own pass, and then whatever nothing reads any more left out.
    have = _operations(DEAD_CODE(after))
    if have <= _operations(run_pipeline(before, (CONSTANT_FOLDING, DEAD_CODE)).graph):
        return None
    if have == _operations(DEAD_CODE(before)):
        return "nothing was folded, although there is an operation whose operands are all constants"
    return "an operation on constants is left: what was just folded is a constant, too, for whoever reads it"


fold_constants = _pass_task(harness.fold_constants, FOLD, _constants, _missed_folds, ALL, IN_PLACE, constants=0.6)

# --- merge: common subexpressions ---------------------------------------------------------------------------------

SAME = (
    "two nodes are the same only if the primitive, the operands in their order and the parameters are, "
    "and 0.0 and -0.0 are not one number: params_key tells them apart, == does not"
)
OF_OLD = "an output is still the node of the old graph: give the one that has taken its place"
MERGE = {"the same twice": 8, "chains": 8, "parameters, operands, numbers": 9, RANDOM: 5}


def _repeated(random: Random) -> dict[str, list[str]]:
    sums = "; ".join(f"%{place} = reduce_sum(x, dims={dims})" for place, dims in enumerate(([0], [], [1], [0])))
    return {
        "the same twice": [
            "%0 = neg(x); %1 = neg(x); %2 = add(%0, %1); %2",
            "%0 = mul(x, y); %1 = exp(x); %2 = mul(x, y); %0, %1, %2",
        ],
        "chains": [
            "%0 = neg(x); %1 = exp(%0); %2 = neg(x); %3 = exp(%2); %4 = mul(%1, %3); %4",
            "%0 = add(x, y); %1 = abs(%0); %2 = add(x, y); %3 = abs(%2); %4 = sqrt(%3); %1, %4",
        ],
        "parameters, operands, numbers": [
            f"{sums}; %0, %1, %2, %3",
            "%0 = sub(x, y); %1 = sub(y, x); %2 = sub(x, y); %0, %1, %2",
            "%0 = mul(x, 0.0); %1 = mul(x, -0.0); %2 = mul(x, 0.0); %0, %1, %2",
        ],
    }


def _missed_repeats(before: Graph, after: Graph) -> str | None:
    have = _operations(DEAD_CODE(after))
    # Operands of add and mul in another order are the same value as well, but need not be found.
    if have <= max(_operations(DEAD_CODE(COMMON_SUBEXPRESSIONS(before))), _without_symmetry(before)):
        return None
    if have == _operations(DEAD_CODE(before)):
        return "nothing was merged, although there is a value that is computed twice"
    return "a value is still computed twice: look at the operands after they were merged themselves"


def _without_symmetry(graph: Graph) -> int:
    """How many operations are left if only what is written in the same way is the same."""
    known: dict[Any, int] = {}
    place = {node: ~number for number, node in enumerate(graph.inputs)}
    for node in DEAD_CODE(graph).nodes:
        key = node.primitive, tuple(place[operand] for operand in node.inputs), params_key(node.params), node.spec
        place[node] = known.setdefault(key, len(known))
    return sum(key[0] is not constant for key in known)


merge = _pass_task(harness.merge, MERGE, _repeated, _missed_repeats, SAME, SAME, OF_OLD, repeats=0.4)

# --- laws: the student's table is run by the engine's own rewriting, on values at which tempting laws fail ---------

TEMPTED = "no law that fails"
LAWS = {"laws of one": 4, "negation": 4, "the right zero": 4, "with a condition": 4, TEMPTED: 4}

# Of each part expressions, and how many operations a law leaves of them; those of the last part are to be left alone:
# no law holds for them, which is said, or none that was asked for.
WANTED: dict[str, list[tuple[str, int]]] = {
    "laws of one": [("%0 = mul(x, 1.0); %0", 0), ("%0 = div(x, 1.0); %0", 0)],
    "negation": [("%0 = neg(x); %1 = neg(%0); %1", 0), ("%0 = neg(y); %1 = sub(x, %0); %1", 1)],
    "the right zero": [("%0 = sub(x, 0.0); %0", 0), ("%0 = add(x, -0.0); %0", 0)],
    "with a condition": [("%0 = mul(x, 0); %0", 0), ("%0 = sub(x, x); %0", 0)],
}
TEMPTING = {
    "%0 = mul(x, 0.0); %0": "0 times NaN or infinity is NaN, and 0 times -1 is -0.0",
    "%0 = sub(x, x); %0": "infinity minus infinity is NaN",
    "%0 = div(x, x); %0": "0 / 0 is NaN",
    "%0 = add(x, 0.0); %0": "-0.0 + 0.0 is 0.0",
    "%0 = add(x, y); %1 = sub(%0, y); %1": "x + y rounds: what is small beside y is lost",
    "%0 = mul(x, y); %1 = div(%0, y); %1": "x * y may overflow, and y may be 0",
    "%0 = sqrt(x); %1 = mul(%0, %0); %1": "the root is rounded, and that of -1 is NaN",
    "%0 = abs(x); %1 = abs(%0); %1": "",
    "%0 = mul(x, -1.0); %0": "",
}
ROWS = [
    *((part, program, left, "") for part, rows in WANTED.items() for program, left in rows),
    *((TEMPTED, program, -1, why) for program, why in TEMPTING.items()),
]
NUMBERS = (1.0, float("nan"), float("inf"), -1.0, 2.0, 0.0, -0.0, 3e38, 1e-3, float("-inf"), 0.1, 7.0)
FLOATS, INTEGERS = ("f32", "f64"), ("i32", "i64", "i8")


def _expressions(random: Random) -> Cases:
    """The expressions alone: what becomes of them is for the student's table to say."""
    kinds = [INTEGERS if part == "with a condition" else FLOATS for part, *_ in ROWS]
    return [
        ("an expression", graph_text(f"{random.choice(kind)}[4]", program))
        for kind, (_, program, *_) in zip(kinds, ROWS, strict=True)
    ]


def refutation(before: Graph, after: Graph) -> str:
    """A pair of numbers for which two expressions of floats differ; empty if none of ours does."""
    pairs = np.meshgrid(*[np.array(NUMBERS).astype(before.inputs[0].dtype.numpy)] * 2)
    for x, y in zip(*(each.reshape(-1, 4) for each in pairs), strict=True):
        old, new = (evaluate(graph, [x, y])[0] for graph in (before, after))
        same = ((old == new) & (np.signbit(old) == np.signbit(new))) | ((old != old) & (new != new))
        if not same.all():
            at = int(np.argmin(same))
            return f"for x = {x[at]:g}, y = {y[at]:g} it was {old[at]:g} and now is {new[at]:g}"
    return ""


def _wrong_law(part: str, row: tuple[str, int, str], answer: Any) -> str | None:
    text, left, why = row
    before = Graph.parse(text)
    if before.inputs[0].dtype.is_floating_point and (found := refutation(before, legal(before, answer))):
        return f"a law changes it: {found}{why and f' ({why})'}"
    count = DEAD_CODE(changed(before, answer)).count()
    if left >= 0 and count.total() > left:
        return f"it is still there, though a law makes it {'shorter' if left else 'x'} or a number"
    if left < 0 and count != before.count():
        return "it was rewritten: the laws asked for are those of the list that hold, and no others"
    return None


def _about_law(row: tuple[str, int, str]) -> str:
    return "; ".join(line.partition(" :")[0].strip() for line in str(Graph.parse(row[0])).splitlines()[1:-1])


def _not_empty(said: dict[str, Verdict], answers: list[Any]) -> dict[str, Verdict]:
    if all(said[part] for part in WANTED) and not said[TEMPTED]:
        said[TEMPTED] = "no law of the others holds yet, and an empty table is no achievement"
    return said


_BY_ROW = Task(harness.laws, LAWS, _expressions, _wrong_law, about=_about_law, refine=_not_empty)


def _judged(cases: Cases, answers: Any) -> Any:
    rows = [(part, (text, left, why)) for (part, _, left, why), (_, text) in zip(ROWS, cases, strict=True)]
    return _BY_ROW.verdicts(rows, answers)


laws = replace(_BY_ROW, judges=_judged)

TASKS = (dead_code, fold_constants, merge, laws)
