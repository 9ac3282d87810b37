"""Three passes: the student's function runs in the real pipeline, and what comes out is run beside what went in."""

from __future__ import annotations

import re
from collections.abc import Callable
from random import Random
from typing import Any

from ....errors import GraphError
from ....graph import Graph
from ....passes import COMMON_SUBEXPRESSIONS, CONSTANT_FOLDING, DEAD_CODE, run_pipeline
from ....primitives import constant
from ...asks import Ask
from ...asks import rewriting as asks
from ...asks.plain import described
from ..compare import different
from ..samples import evaluate, random_graph, unforeseen, values_for
from ..smaller import Wrong, explained, indented, is_harmless
from ..task import Task, by_case

Cases = list[tuple[str, Any]]
SIZES = (3, 5, 8, 12, 18)  # of the random graphs


def _text(*lines: str) -> str:
    return "\n".join(["graph(x: f32[2,3], y: f32[2,3]):", *lines[:-1], f"return {lines[-1]}"])


def _judge(parts: dict[str, int], wrong: Wrong, hint: str) -> Callable[[Cases, Any], Any]:
    """The verdicts; `hint` is what is mostly behind a graph that the verifier refuses."""

    def told(text: str, attempted: Any) -> str | None:
        reason = explained(text, attempted, wrong)
        if reason and re.match("it raises (Graph|Shape|DType)Error", reason):
            said, given, listing = reason.partition(", given\n")
            return f"{said}; {hint}{given}{listing}"
        return reason

    return lambda cases, answers: by_case(parts, cases, answers, told)


def _task(ask: Ask, parts: dict[str, int], make: Callable[[int], Cases], wrong: Wrong, hint: str) -> Task:
    def wrong_part(part: str, text: str, answer: Any) -> str | None:
        return wrong(text, answer)

    return Task(ask, parts, make, _judge(parts, wrong, hint), shrinks=wrong_part)


def legal(before: Graph, text: object) -> tuple[Graph | None, str]:
    """The graph that a pass has made, if it can take the place of the old one and be run in no time; or why not.

    Whoever judges runs it, so it has to be looked at before: the text may be anything.
    """
    if not isinstance(text, str):
        return None, f"a graph was expected, and it is {described(text)}"
    try:
        after = Graph.parse(text)
    except GraphError as error:
        return None, f"the result is no legal graph: {next(iter(str(error).splitlines()))}"
    if not is_harmless(after):
        return None, "the result is far larger than the graph"
    if [(n.params["name"], n.spec) for n in before.inputs] != [(n.params["name"], n.spec) for n in after.inputs]:
        return None, "the inputs have changed; whoever runs the graph gives values by their place"
    if [node.spec for node in before.outputs] != [node.spec for node in after.outputs]:
        return None, "the outputs have changed; whoever runs the graph takes them by their place"
    return after, ""


def changed(before: Graph, text: object) -> tuple[Graph | None, str]:
    """The graph that a pass has made, if it does what the old one did; and, if it does not, what it does."""
    after, reason = legal(before, text)
    if after is None:
        return None, reason
    for _ in range(3):
        arrays = values_for(before, unforeseen())
        for place, (new, old) in enumerate(zip(evaluate(after, arrays), evaluate(before, arrays), strict=True)):
            if unlike := different(new, old, 0):
                return None, f"output {place} is another: {unlike}"
    return after, ""


def _both(before: str, after: str) -> str:
    return f"\nbefore\n{indented(before)}\nafter\n{indented(after)}"


def _wrong(text: str, answer: Any, missed: Callable[[Graph, Graph], str | None], hint: str) -> str | None:
    """The fault of a pass's result: wrong values, with the likely reason, or something left to do."""
    before = Graph.parse(text)
    after, reason = changed(before, answer)
    if after is None:
        likely = f"; {hint}" if "another" in reason else ""
        return f"{reason}{likely}{_both(str(before), answer) if isinstance(answer, str) else ''}"
    reason = missed(before, after) or ""
    return f"{reason}{_both(str(before), str(after))}" if reason else None


def _random(seed: int, name: str, **about: Any) -> Cases:
    random = Random(seed)
    return [(name, str(random_graph(random, size, outputs=1 + size % 2, **about))) for size in SIZES]


def _operations(graph: Graph) -> int:
    return sum(node.primitive is not constant for node in graph.nodes)


# --- dead code --------------------------------------------------------------------------------------------------

NEEDED = "what an output needs, itself or over others, has to stay, and so have all inputs"
DEAD = {"one unused node": 6, "a chain of unused nodes": 8, "random graphs": 6}


def _dead(seed: int) -> Cases:
    return [
        ("one unused node", _text("%0 = neg(x)", "%1 = exp(x)", "%0")),
        ("one unused node", _text("%0 = exp(x)", "%1 = neg(%0)", "%2 = add(%0, y)", "%2")),
        ("one unused node", _text("%0 = exp(y)", "y")),
        ("a chain of unused nodes", _text("%0 = neg(x)", "%1 = exp(%0)", "%2 = abs(%1)", "%3 = add(x, y)", "%3")),
        ("a chain of unused nodes", _text("%0 = neg(x)", "%1 = mul(%0, %0)", "%2 = add(%1, %0)", "%0, y")),
        *_random(seed, "random graphs"),
    ]


def _missed_dead(before: Graph, after: Graph) -> str | None:
    wanted = _operations(DEAD_CODE(before))
    if _operations(after) <= wanted:
        return None
    if _operations(after) == _operations(before):
        return "nothing was removed, although no output needs some of it"
    return "something is left that no output needs: what only dead code reads is dead itself"


def _wrong_dead(text: str, answer: Any) -> str | None:
    return _wrong(text, answer, _missed_dead, NEEDED)


dead_code = _task(asks.dead_code, DEAD, _dead, _wrong_dead, NEEDED)

# --- constant folding -------------------------------------------------------------------------------------------

IN_PLACE = "a constant takes the place of the operation: its type, its shape, and all who read it, the outputs included"
ALL = "only an operation all of whose operands are constants has a value that is known now"
FOLD = {"one operation": 8, "chains": 9, "only constants": 7, "random graphs": 6}


def _constants(seed: int) -> Cases:
    random = Random(seed)
    a, b = random.randint(2, 9), random.randint(2, 9)
    spec = ":f32[2,3]"
    array = "%0 = constant([[1, 2, 3], [4, 5, 6]]) : f32[2,3]"
    return [
        ("one operation", _text(f"%0 = add({a}{spec}, {b}{spec})", "%1 = mul(x, %0)", "%1")),
        ("one operation", _text(array, "%1 = neg(%0)", "%2 = add(x, %1)", "%2")),
        ("one operation", _text(array, "%1 = reduce_sum(%0, dims=[1])", "%2 = reduce_sum(y, dims=[1])", "%1, %2")),
        ("chains", _text(f"%0 = add({a}{spec}, {b}{spec})", "%1 = mul(%0, %0)", "%2 = sub(x, %1)", "%2")),
        ("chains", _text(array, "%1 = neg(%0)", f"%2 = mul(%1, {b}.0)", "%3 = add(%2, %0)", "%4 = add(%3, y)", "%4")),
        ("only constants", _text(f"%0 = mul(x, {a}.0)", f"%1 = mul({a}{spec}, {b}{spec})", "%2 = add(%0, %1)", "%2")),
        ("only constants", _text("%0 = sub(x, x)", f"%1 = neg({b}{spec})", "%2 = mul(%0, %1)", "%2, y")),
        *_random(seed, "random graphs", constants=0.6),
    ]


def _missed_folds(before: Graph, after: Graph) -> str | None:
    # The engine's own pass, and then whatever nothing reads any more left out.
    wanted = _operations(run_pipeline(before, (CONSTANT_FOLDING, DEAD_CODE)).graph)
    have = _operations(DEAD_CODE(after))
    if have <= wanted:
        return None
    if have == _operations(DEAD_CODE(before)):
        return "nothing was folded, although there is an operation whose operands are all constants"
    return "an operation on constants is left: what was just folded is a constant, too, for whoever reads it"


def _wrong_fold(text: str, answer: Any) -> str | None:
    return _wrong(text, answer, _missed_folds, ALL)


fold_constants = _task(asks.fold_constants, FOLD, _constants, _wrong_fold, IN_PLACE)

# --- common subexpressions --------------------------------------------------------------------------------------

SAME = (
    "two nodes are the same only if the primitive, the operands in their order and the parameters are, "
    "and 0.0 and -0.0 are not one number: params_key tells them apart, == does not"
)
MERGE = {"the same twice": 8, "chains": 8, "parameters, operands, numbers": 9, "random graphs": 5}


def _repeated(seed: int) -> Cases:
    return [
        ("the same twice", _text("%0 = neg(x)", "%1 = neg(x)", "%2 = add(%0, %1)", "%2")),
        ("the same twice", _text("%0 = mul(x, y)", "%1 = exp(x)", "%2 = mul(x, y)", "%0, %1, %2")),
        ("chains", _text("%0 = neg(x)", "%1 = exp(%0)", "%2 = neg(x)", "%3 = exp(%2)", "%4 = mul(%1, %3)", "%4")),
        (
            "chains",
            _text("%0 = add(x, y)", "%1 = abs(%0)", "%2 = add(x, y)", "%3 = abs(%2)", "%4 = sqrt(%3)", "%1, %4"),
        ),
        (
            "parameters, operands, numbers",
            _text(
                "%0 = reduce_sum(x, dims=[0])",
                "%1 = reduce_sum(x, dims=[])",
                "%2 = reduce_sum(x, dims=[1])",
                "%3 = reduce_sum(x, dims=[0])",
                "%0, %1, %2, %3",
            ),
        ),
        ("parameters, operands, numbers", _text("%0 = sub(x, y)", "%1 = sub(y, x)", "%2 = sub(x, y)", "%0, %1, %2")),
        (
            "parameters, operands, numbers",
            _text("%0 = mul(x, 0.0)", "%1 = mul(x, -0.0)", "%2 = mul(x, 0.0)", "%0, %1, %2"),
        ),
        *_random(seed, "random graphs", repeats=0.4),
    ]


def _missed_repeats(before: Graph, after: Graph) -> str | None:
    def merged(graph: Graph) -> int:
        return _operations(DEAD_CODE(graph))

    # Operands of add and mul in another order are the same value as well, but need not be found.
    if merged(after) <= max(merged(COMMON_SUBEXPRESSIONS(before)), _without_symmetry(before)):
        return None
    if merged(after) == merged(before):
        return "nothing was merged, although there is a value that is computed twice"
    return "a value is still computed twice: look at the operands after they were merged themselves"


def _without_symmetry(graph: Graph) -> int:
    """How many operations are left if only what is written in the same way is the same."""
    from ....graph.values import params_key

    known: dict[Any, int] = {}
    place = {node: ~number for number, node in enumerate(graph.inputs)}
    for node in DEAD_CODE(graph).nodes:
        key = node.primitive, tuple(place[operand] for operand in node.inputs), params_key(node.params), node.spec
        place[node] = known.setdefault(key, len(known))
    return sum(key[0] is not constant for key in known)


def _wrong_merge(text: str, answer: Any) -> str | None:
    return _wrong(text, answer, _missed_repeats, SAME)


merge = _task(asks.merge, MERGE, _repeated, _wrong_merge, SAME)
