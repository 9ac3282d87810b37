"""The blanks of notebook 17: a test for leaks, attention of all heads at once, and attention with a cache."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterable
from typing import Any

import numpy as np

import minitorch as mt
from minitorch.nn import functional as F

from ..blanking import Blank, Case

CONTEXT, WIDTH, HEADS = 32, 64, 4
alphabet = " .abcdefghiklmnopqrstuw"


def attention(queries: Any, keys: Any, values: Any) -> Any:
    """Return causal attention, as in the notebook."""
    places = mt.arange(queries.shape[-2])
    scores = queries @ keys.transpose(-2, -1) / math.sqrt(queries.shape[-1])
    return scores.masked_fill(places[None, :] > places[:, None], -math.inf).softmax(-1) @ values


# A test for leaks ---------------------------------------------------------------------------------------------------


def changed_before(model: Any, text: Any, place: Any) -> Any:
    """Return at how many places before `place` the scores change when the character at `place` does."""
    other = text.clone()
    other[0, place] = (text[0, place] + 1) % len(alphabet)
    with mt.no_grad():
        first = model(text)[0].numpy()
        second = model(other)[0].numpy()
    return int((first[:place] != second[:place]).any(1).sum())


def _sees(ahead: int) -> Callable[[Any], Any]:
    """A model whose scores are sums of what it sees: the past, and so many characters after it."""

    def model(text: Any) -> Any:
        places = mt.arange(text.shape[1])
        seen = (places[None, :] <= places[:, None] + ahead).float()
        return seen @ (F.one_hot(text, len(alphabet)).float() * (places[:, None] + 1.0))

    return model


def _texts() -> Iterable[Case]:
    text = mt.from_numpy(np.random.default_rng(17).integers(0, len(alphabet), (1, CONTEXT)))
    for place in (5, 31):
        yield f"For a model that sees only the past, at place {place}", _sees(0), text.clone(), place
        yield f"For a model that sees two characters ahead, at place {place}", _sees(2), text.clone(), place
    for same in (0, 1, len(alphabet) - 1):
        letters = mt.full((1, CONTEXT), same, dtype=mt.int64)
        yield f"For a text that has the number {same} everywhere", _sees(1), letters, 7


# All heads at once --------------------------------------------------------------------------------------------------


def all_heads(qkv: Any) -> Any:
    """Return what all heads make of their queries, keys and values: [batch, places, 192] to [batch, places, 64]."""
    batch, places, _ = qkv.shape
    queries, keys, values = qkv.reshape(batch, places, 3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)
    mixed = attention(queries, keys, values)  # [batch, HEADS, places, 16]
    return mixed.transpose(1, 2).reshape(batch, places, WIDTH)


def _projected() -> Iterable[Case]:
    draw = np.random.default_rng(17)
    for batch, places in ((2, 5), (1, CONTEXT)):
        words = f"For a batch of {batch} with {places} places"
        yield words, mt.from_numpy(draw.normal(size=(batch, places, 3 * WIDTH)).astype(np.float32))


# With a cache -------------------------------------------------------------------------------------------------------


def attention_now(query: Any, key: Any, value: Any, keys: Any, values: Any, place: Any) -> Any:
    """Return what the query at `place` gets, the keys and the values; the new key and value are written at `place`."""
    here = (mt.arange(CONTEXT) == place)[:, None]
    keys = mt.where(here, key, keys)
    values = mt.where(here, value, values)
    scores = query @ keys.transpose(-2, -1) / math.sqrt(WIDTH // HEADS)
    unseen = mt.arange(CONTEXT) > place
    return scores.masked_fill(unseen, -math.inf).softmax(-1) @ values, keys, values


def _caches() -> Iterable[Case]:
    draw = np.random.default_rng(17)
    for place in (0, 9, CONTEXT - 1):
        shapes = [(2, HEADS, 1, WIDTH // HEADS)] * 3 + [(2, HEADS, CONTEXT, WIDTH // HEADS)] * 2
        arrays = [mt.from_numpy(draw.normal(size=shape).astype(np.float32)) for shape in shapes]
        words = f"At place {place}, with a cache that another text has left"
        yield words, *arrays, mt.tensor(place)


BLANKS = {
    "changed_before": Blank(
        changed_before,
        _texts,
        {
            "Both texts are the same: change a copy of the text, at `place`.": {"other[0, place] = ": "_ = "},
            "The new character may be the old one: make it depend on the old one.": {
                "(text[0, place] + 1) % len(alphabet)": "0"
            },
        },
        close=0,
    ),
    "all_heads": Blank(
        all_heads,
        _projected,
        {
            "The result of attention is [batch, HEADS, places, 16]: bring places before heads.": {
                ".transpose(1, 2)": ""
            },
            "The 192 numbers are [3, HEADS, 16]: all queries come first.": {
                "3, HEADS, WIDTH // HEADS).permute(2, 0, 3, 1, 4)": "HEADS, 3, WIDTH // HEADS).permute(3, 0, 2, 1, 4)"
            },
            "Attention looks along the last but one axis. That has to be places, and yours is heads.": {
                "permute(2, 0, 3, 1, 4)": "permute(2, 0, 1, 3, 4)",
                ".transpose(1, 2)": "",
            },
        },
    ),
    "attention_now": Blank(
        attention_now,
        _caches,
        {
            "Nothing is hidden: what lies behind `place` is left over from another text.": {"> place": "< 0"},
            "The query must not see its own place in yours, and it has to.": {
                "mt.arange(CONTEXT) > place": "mt.arange(CONTEXT) >= place.maximum(mt.tensor(1))"
            },
            "The scores have to be divided by the root of 16.": {"/ math.sqrt(WIDTH // HEADS)": ""},
            "The new key has to be among the keys before the scores are computed.": {
                "    keys = mt.where(here, key, keys)\n": "    old, keys = keys, mt.where(here, key, keys)\n",
                "keys.transpose": "old.transpose",
            },
        },
    ),
}
