"""Exercise 17, the capstone: a mask, a step with a cache, arguments that keep one trace, and a cheaper program."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import numpy as np

from minitorch import primitives as P
from minitorch.graph import Graph, evaluate
from minitorch.modes.tracing.program import replay
from minitorch.modes.ways_in.jit import jit
from minitorch.tensor import with_value
from minitorch_course.golfing import TARGET

from ..harness import transformer as harness
from ..harness.plain import Array, Value, described
from .compare import off, wrong_array
from .golf import Golf
from .machines.graphs import graph_in
from .reasons import expect, hint, recognised
from .samples import unforeseen
from .task import Task

Cases = Iterator[tuple[str, tuple[Any, ...]]]

# --- mask -------------------------------------------------------------------------------------------------------

MASK = {"one text": 7, "several texts": 8}


def visible(texts: list[int], reach: int = 0) -> Array:
    """Whether the place of a row may see that of a column; `reach` is 1 if it also sees the next one."""
    number = np.asarray(texts)
    return np.asarray(np.tri(len(texts), k=reach, dtype=bool) & (number[:, None] == number))


def _masks(draw: np.random.Generator) -> Cases:
    yield "one text", ([3] * int(draw.integers(4, 9)),)
    yield "one text", ([0],)
    for count in (2, 4):
        numbers = np.repeat(draw.permutation(9)[:count], draw.integers(2, 5, count))
        yield "several texts", ([int(each) for each in numbers],)


def _wrong_mask(part: str, case: Any, answer: Any) -> str | None:
    (texts,) = case
    right = visible(texts)
    said = wrong_array(answer, right, 0)
    if said is None or type(answer) is not Value or answer.array.shape != right.shape:
        return said
    given = answer.array.astype(bool)
    alone = [0] * len(texts)
    known = (
        ("the places are right, and the type has to be bool", [right]),
        ("places of another text are visible", [visible(alone)]),
        ("a place sees the one after it, which is its own target", [visible(texts, 1), visible(alone, 1)]),
        ("a place has to see itself, too", [visible(texts, -1), visible(alone, -1)]),
        ("it is True where a place may look, and not where it may not", [~right]),
        ("a row is the place that looks, a column the one that is seen", [right.T, visible(alone).T]),
        ("later places of the same text are visible", [np.equal.outer(texts, texts)]),
    )
    return said + recognised(known, lambda masks: any((given == each).all() for each in masks))


mask = Task(harness.mask, MASK, _masks, _wrong_mask, draws=np.random.default_rng, about=lambda case: f"texts {case[0]}")

# --- cached_step ------------------------------------------------------------------------------------------------

CACHED_STEP = {"the first place": 5, "every place": 9, "after another text": 7, "the cache": 4}


def attended(queries: Array, keys: Array, values: Array, divisor: float = 0, reach: int = 0) -> Array:
    """Causal attention of a whole text, all [places, heads, size]; `divisor` 0 is the root of the size."""
    scores = np.einsum("phs,ohs->hpo", queries, keys) / (divisor or queries.shape[-1] ** 0.5)
    scores = np.where(np.tri(scores.shape[1], scores.shape[2], reach, bool), scores, -np.inf)
    with np.errstate(invalid="ignore"):  # a row that sees nothing is NaN
        shares = np.exp(scores - scores.max(-1, keepdims=True))
        shares /= shares.sum(-1, keepdims=True)
        return np.asarray(np.einsum("hpo,ohs->phs", shares, values))


def _steps(draw: np.random.Generator) -> Cases:

    def text(places: int, context: int, stale: bool) -> tuple[Any, ...]:
        heads, size = int(draw.integers(2, 4)), int(draw.choice([2, 5, 8]))
        own = [draw.normal(0, 2, (places, heads, size)) for _ in range(3)]
        old = [draw.normal(0, 2 * stale, (heads, context, size)) for _ in range(2)]
        return tuple(each.astype(np.float32) for each in own + old)

    yield "the first place", text(1, 1, False)
    yield "the first place", text(1, 6, False)
    yield "every place", text(6, 6, False)
    yield "every place", text(4, 9, False)
    yield "after another text", text(5, 8, True)
    yield "the cache", text(3, 5, True)


def _wrong_step(part: str, case: Any, answer: Any) -> str | None:
    queries, keys, values, old_keys, old_values = case
    places = len(queries)
    expect(answer, tuple[list[Any], Any, Any], "a tuple of what the query gets, the keys and the values")
    if part == "the cache":
        for name, given, new, old in zip(
            ("keys", "values"), answer[1:], (keys, values), (old_keys, old_values), strict=True
        ):
            right = old.copy()
            right[:, :places] = new.transpose(1, 0, 2)
            if said := wrong_array(given, right):
                return f"the {name} after place {places - 1}: {said}; what lies behind keeps what it had"
        return None
    right = attended(*(each.astype(np.float64) for each in case[:3])).astype(np.float32)
    for place, given in enumerate(answer[0]):
        if said := wrong_array(given, right[place], 1e-4):
            return f"at place {place}: {said}{_why_step(case, answer[0])}"
    return None


def _why_step(case: Any, given: list[Any]) -> str:
    """The misconception behind wrong results."""
    queries, keys, values, old_keys, old_values = case
    if not all(type(each) is Value and each.array.shape == queries.shape[1:] for each in given):
        return ""
    found = np.array([each.array for each in given])

    def seeing_everything() -> Array:
        rows = []
        for place, query in enumerate(queries, start=1):
            all_keys, all_values = (
                np.concatenate([new[:place], old.transpose(1, 0, 2)[place:]])
                for new, old in ((keys, old_keys), (values, old_values))
            )
            rows.append(attended(np.repeat(query[None], len(all_keys), 0), all_keys, all_values)[-1])
        return np.array(rows)

    def is_near(wrong: Array, first: int = 0) -> bool:
        off = np.abs(found - wrong)[first:] > 1e-4 * np.maximum(1, np.abs(wrong[first:]))
        return bool(len(off) and not off.any())

    return hint(
        is_near(seeing_everything()),
        "what lies behind the place is seen: zeros, or what another text has left",
        is_near(attended(queries, keys, values, 1)),
        "the scores are not divided by the root of the size",
        is_near(attended(queries, keys, values, queries.shape[-1])),
        "the scores are divided by the size, and not by its root",
        is_near(attended(queries, keys, values, reach=-1), 1),
        "the query has to see its own place, so write the key and the value first",
    )


def _about_step(case: Any) -> str:
    places, heads, size = case[0].shape
    return f"{places} places, {heads} heads of size {size}, a cache of {case[3].shape[1]}"


cached_step = Task(
    harness.cached_step, CACHED_STEP, _steps, _wrong_step, draws=np.random.default_rng, about=_about_step
)

# --- call_arguments ---------------------------------------------------------------------------------------------

ARGUMENTS = {"what the model sees": 8, "one trace": 12}


def _growing(draw: np.random.Generator) -> Cases:
    context = int(draw.integers(5, 9))

    def texts(*lengths: int) -> list[Any]:
        return [draw.integers(1, 23, length) for length in lengths]

    yield "what the model sees", (texts(1, context - 1), context)
    yield "what the model sees", (texts(context, context + 1, 3 * context), context)
    yield "one trace", (texts(1, 2, 3, context - 1, context, context + 1, context + 4), context)


def signature(arguments: tuple[Any, ...]) -> tuple[str, ...]:
    """What decides whether a call can use a trace: shape and type of an array, and a Python number itself."""
    return tuple(
        f"{each.array.dtype}{list(each.array.shape)}" if type(each) is Value else f"the number {each!r}"
        for each in arguments
    )


def _wrong_arguments(part: str, case: Any, answer: Any) -> str | None:
    texts, context = case
    expect(answer, list, "one answer for each text", count=len(texts))
    for text, arguments in zip(texts, answer, strict=True):
        if said := _unlike_the_end(text, context, arguments):
            return f"{len(text)} characters in a context of {context}: {said}"
    signatures = list(dict.fromkeys(map(signature, answer)))
    if part == "one trace" and len(signatures) > 1:
        one, other = next(pair for pair in zip(*signatures[:2], strict=True) if pair[0] != pair[1])
        why = "a Python number is part of the signature" if "number" in one else "shapes differ"
        return f"{len(texts)} texts are {len(signatures)} traces: {why}; {one}, and then {other}"
    return None


def _unlike_the_end(text: Array, context: int, arguments: Any) -> str | None:
    """Why a model does not see the end of the text; the signature does not matter here."""
    if type(arguments) is not tuple or len(arguments) != 2 or type(arguments[0]) is not Value:
        return f"a tuple of an array and a place was expected, and it is {described(arguments)}"
    window, place = arguments[0].array, arguments[1]
    if type(place) is Value and place.array.size == 1 and place.array.dtype.kind in "iu":
        place = place.array.item()
    if type(place) is not int:
        return f"the place is one integer, and it is {described(place)}"
    end = text[-context:]
    if window.ndim != 1 or not len(end) <= len(window) <= context:
        return f"the window has the shape {list(window.shape)}"
    if place != len(end) - 1:
        return f"the place is {place} and should be {len(end) - 1}" + hint(
            place == len(text) - 1,
            "count from the beginning of the window, and not of the text",
            place == len(end),
            "the row wanted is that of the last character, and not of the one behind it",
        )
    if not (window[: len(end)] == end).all():
        return f"the window begins with {window[: len(end)].tolist()} and should begin with {end.tolist()}" + hint(
            (window[len(window) - len(end) :] == end).all(),
            "the padding is in front, so all characters stand at other places than in training",
            (window[: len(end)] == text[: len(end)]).all(),
            "that is the beginning of the text, and the model should see its end",
        )
    return "behind the text the window has other numbers than 0" if window[len(end) :].any() else None


call_arguments = Task(harness.call_arguments, ARGUMENTS, _growing, _wrong_arguments, draws=np.random.default_rng)

# --- cheaper ----------------------------------------------------------------------------------------------------

SAME, MOVED = "the same numbers", "bytes moved"
CHEAPER = {SAME: 5, MOVED: 20}
SIZES = (512, 64, 4, 16)  # rows, width, heads and the size of a head: those that bytes are counted for
BYTES = Golf("kB", start=11200, par=2900, best=598)
GIVEN = (P.concatenate, P.constant, P.dot, P.expand, P.mul, P.permute, P.reshape, P.slice_)
MOST = 200  # nodes of a program; the given one has 33


def linear_attention(x: Array, query: list[Array], key: list[Array], value: list[Array]) -> Array:
    """Attention without a softmax, of all heads, in float64."""
    x = x.astype(np.float64)
    return np.concatenate(
        [(x @ q) @ ((x @ k).T @ (x @ v)) / len(x) for q, k, v in zip(query, key, value, strict=True)], axis=1
    )


def program(answer: Any, sizes: Any) -> Graph:
    """The graph of an answer."""
    rows, width, heads, size = sizes
    return graph_in(answer, [(rows, width), *[(width, size)] * (3 * heads)], GIVEN, MOST)


def _programs(draw: np.random.Generator) -> list[tuple[str, Any]]:
    small = tuple(int(each) for each in (draw.integers(5, 9), draw.integers(3, 7), draw.integers(2, 5), 2))
    return [(SAME, small), (SAME, SIZES), (MOVED, SIZES)]


def _wrong_program(part: str, sizes: Any, answer: Any) -> str | None:
    graph = program(answer, sizes)
    draw, heads = unforeseen(), sizes[2]
    x, *weights = (draw.normal(size=node.shape).astype(np.float32) for node in graph.inputs)
    query, key, value = weights[:heads], weights[heads : 2 * heads], weights[2 * heads :]
    (found,), right = evaluate(graph, [x, *weights]), linear_attention(x, query, key, value)

    def unlike(right: Array) -> str | None:
        return off(found, right, lambda found, right: np.abs(found - right) <= 1e-4 * np.abs(right).max())

    known = (
        ("the factor 1 / rows is missing", right * len(x)),
        ("the factor 1 / rows is there twice", right / len(x)),
        ("the heads are in another order", linear_attention(x, query[::-1], key[::-1], value[::-1])),
        ("queries and keys are exchanged", linear_attention(x, key, query, value)),
        ("keys and values are exchanged", linear_attention(x, query, value, key)),
    )
    said = unlike(right)
    return said and said + recognised(known, lambda wrong: unlike(wrong) is None)


def moved(part: str, sizes: Any, answer: Any) -> int:
    """The kilobytes that the kernels of a program read and write."""
    graph = program(answer, sizes)
    tensors = [with_value(np.zeros(node.shape, np.float32)) for node in graph.inputs]
    kernels = jit(lambda *given: replay(graph, given)[0]).ledger(*tensors).for_target(TARGET).kernels
    return round(sum(each.bytes_read + each.bytes_written for each in kernels) / 1e3)


cheaper = Task(
    harness.cheaper,
    CHEAPER,
    _programs,
    _wrong_program,
    draws=np.random.default_rng,
    about=lambda sizes: "{} rows of {}, {} heads of {}".format(*sizes),
    golf={MOVED: BYTES},
    count=moved,
)

TASKS = (mask, cached_step, call_arguments, cheaper)
