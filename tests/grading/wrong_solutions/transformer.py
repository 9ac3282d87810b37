"""Solutions of exercise 17, the capstone."""

import numpy as np

from minitorch_grading.harness.transformer import columns, joined
from tests.grading.wrong_solutions import right, wrong

# --- mask -------------------------------------------------------------------------------------------------------


@right("transformer.mask")
def goes_place_by_place(texts):
    found = np.zeros((len(texts), len(texts)), bool)
    for looks, text in enumerate(texts):
        for seen in range(looks + 1):
            found[looks, seen] = texts[seen] == text
    return found


@wrong("transformer.mask", says="a place sees the one after it, which is its own target", points=0)
def keeps_a_diagonal_too_many(texts):
    number = np.array(texts)
    return np.tri(len(number), k=1, dtype=bool) & (number[:, None] == number)


@wrong("transformer.mask", says="places of another text are visible", points=7)
def forgets_the_texts(texts):
    return np.tri(len(texts), dtype=bool)


@wrong("transformer.mask", says="a place has to see itself, too", points=0)
def sees_only_what_is_before(texts):
    number = np.array(texts)
    return np.tri(len(number), k=-1, dtype=bool) & (number[:, None] == number)


@wrong("transformer.mask", says="a row is the place that looks, a column the one that is seen", part="several texts")
def exchanges_rows_and_columns(texts):
    number = np.array(texts)
    return (np.tri(len(number), dtype=bool) & (number[:, None] == number)).T


@wrong("transformer.mask", says="it is True where a place may look", points=0)
def hides_what_is_visible(texts):
    number = np.array(texts)
    return ~(np.tri(len(number), dtype=bool) & (number[:, None] == number))


@wrong("transformer.mask", says="later places of the same text are visible", part="one text")
def looks_at_texts_alone(texts):
    number = np.array(texts)
    return number[:, None] == number


@wrong("transformer.mask", says="the places are right, and the type has to be bool", points=0)
def makes_floats(texts):
    number = np.array(texts)
    return np.tri(len(number)) * (number[:, None] == number)


# --- cached_step ------------------------------------------------------------------------------------------------


@right("transformer.cached_step")
def hides_with_infinity_and_writes_in_place(query, key, value, keys, values, place):
    keys[:, place], values[:, place] = key, value
    heads, context, size = keys.shape
    found = np.zeros((heads, size), np.float32)
    for head in range(heads):
        scores = keys[head] @ query[head] / size**0.5
        scores[np.arange(context) > place] = -np.inf
        shares = np.exp(scores - scores.max())
        found[head] = shares @ values[head] / shares.sum()
    return found, keys, values


@wrong("transformer.cached_step", says="what lies behind the place is seen", points=4)
def forgets_the_mask(query, key, value, keys, values, place):
    keys[:, place], values[:, place] = key, value
    scores = np.einsum("hs,hcs->hc", query, keys) / np.sqrt(np.float32(query.shape[-1]))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hc,hcs->hs", shares / shares.sum(-1, keepdims=True), values), keys, values


@wrong("transformer.cached_step", says="the scores are not divided by the root of the size", part="every place")
def forgets_the_root(query, key, value, keys, values, place):
    keys[:, place], values[:, place] = key, value
    seen = slice(place + 1)
    scores = np.einsum("hs,hcs->hc", query, keys[:, seen])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hc,hcs->hs", shares / shares.sum(-1, keepdims=True), values[:, seen]), keys, values


@wrong("transformer.cached_step", says="divided by the size, and not by its root", part="every place")
def divides_by_the_size(query, key, value, keys, values, place):
    keys[:, place], values[:, place] = key, value
    seen = slice(place + 1)
    scores = np.einsum("hs,hcs->hc", query, keys[:, seen]) / np.float32(query.shape[-1])
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hc,hcs->hs", shares / shares.sum(-1, keepdims=True), values[:, seen]), keys, values


@wrong("transformer.cached_step", says="the query has to see its own place", part="every place")
def writes_after_it_has_looked(query, key, value, keys, values, place):
    seen = slice(max(place, 1))
    scores = np.einsum("hs,hcs->hc", query, keys[:, seen]) / np.sqrt(np.float32(query.shape[-1]))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    found = np.einsum("hc,hcs->hs", shares / shares.sum(-1, keepdims=True), values[:, seen])
    keys[:, place], values[:, place] = key, value
    return found, keys, values


@wrong("transformer.cached_step", says="what lies behind keeps what it had", part="the cache")
def clears_what_is_behind(query, key, value, keys, values, place):
    keys[:, place], values[:, place] = key, value
    keys[:, place + 1 :], values[:, place + 1 :] = 0, 0
    seen = slice(place + 1)
    scores = np.einsum("hs,hcs->hc", query, keys[:, seen]) / np.sqrt(np.float32(query.shape[-1]))
    shares = np.exp(scores - scores.max(-1, keepdims=True))
    return np.einsum("hc,hcs->hs", shares / shares.sum(-1, keepdims=True), values[:, seen]), keys, values


@wrong("transformer.cached_step", says="at place 1: element", part="every place")
def never_writes(query, key, value, keys, values, place):
    return value, keys, values


# --- call_arguments ---------------------------------------------------------------------------------------------


@right("transformer.call_arguments")
def pads_with_numpy(text, context):
    end = text[max(0, len(text) - context) :]
    return np.pad(end, (0, context - len(end))), np.array([min(len(text), context) - 1])


@wrong("transformer.call_arguments", says="a Python number is part of the signature", points=8)
def gives_a_python_number(text, context):
    end = text[-context:]
    return np.pad(end, (0, context - len(end))), len(end) - 1


@wrong("transformer.call_arguments", says="shapes differ", points=8)
def grows(text, context):
    end = text[-context:]
    return end, np.array(len(end) - 1)


@wrong("transformer.call_arguments", says="the padding is in front", points=0)
def pads_in_front(text, context):
    end = text[-context:]
    return np.pad(end, (context - len(end), 0)), np.array(len(end) - 1)


@wrong("transformer.call_arguments", says="that is the beginning of the text", points=0)
def keeps_the_beginning(text, context):
    begin = text[:context]
    return np.pad(begin, (0, context - len(begin))), np.array(len(begin) - 1)


@wrong("transformer.call_arguments", says="count from the beginning of the window", points=0)
def counts_in_the_text(text, context):
    end = text[-context:]
    return np.pad(end, (0, context - len(end))), np.array(len(text) - 1)


@wrong("transformer.call_arguments", says="not of the one behind it", points=0)
def asks_for_the_next_place(text, context):
    end = text[-context:]
    return np.pad(end, (0, context - len(end))), np.array(len(end))


# --- cheaper ----------------------------------------------------------------------------------------------------


@right("transformer.cheaper")
def takes_the_factor_first(x, queries, keys, values):
    square = (x.T * (1 / x.shape[0])) @ x
    return x @ joined(
        [query @ (key.T @ square @ value) for query, key, value in zip(queries, keys, values, strict=True)]
    )


@wrong("transformer.cheaper", says="yours: 11190 kB", points=5)
def gives_back_what_was_given(x, queries, keys, values):
    heads = []
    for query, key, value in zip(queries, keys, values, strict=True):
        heads.append(((x @ query) @ (x @ key).T @ (x @ value)) * (1 / x.shape[0]))
    return joined(heads)


@wrong("transformer.cheaper", says="yours: 2810 kB", part="bytes moved")
def changes_the_order_alone(x, queries, keys, values):
    heads = []
    for query, key, value in zip(queries, keys, values, strict=True):
        heads.append((x @ query) @ ((x @ key).T @ (x @ value)) * (1 / x.shape[0]))
    return joined(heads)


@wrong("transformer.cheaper", says="yours: 1368 kB", part="bytes moved")
def reads_the_input_once_and_keeps_all_projections(x, queries, keys, values):
    wide, heads, size = x @ joined([*queries, *keys, *values]), len(queries), queries[0].shape[1]
    parts = [columns(wide, size * number, size * (number + 1)) for number in range(3 * heads)]
    found = []
    for query, key, value in zip(parts[:heads], parts[heads : 2 * heads], parts[2 * heads :], strict=True):
        found.append(query @ ((key.T @ value) * (1 / x.shape[0])))
    return joined(found)


@wrong("transformer.cheaper", says="the factor 1 / rows is missing", points=0)
def forgets_the_factor(x, queries, keys, values):
    square = x.T @ x
    return x @ joined(
        [query @ (key.T @ square @ value) for query, key, value in zip(queries, keys, values, strict=True)]
    )


@wrong("transformer.cheaper", says="queries and keys are exchanged", points=0)
def exchanges_queries_and_keys(x, queries, keys, values):
    square = (x.T @ x) * (1 / x.shape[0])
    return x @ joined(
        [key @ (query.T @ square @ value) for query, key, value in zip(queries, keys, values, strict=True)]
    )


@wrong("transformer.cheaper", says="the inner lengths differ", points=0)
def forgets_to_transpose(x, queries, keys, values):
    return joined(
        [(x @ query) @ ((x @ key) @ (x @ value)) for query, key, value in zip(queries, keys, values, strict=True)]
    )
