"""Sentences of a small grammar: text of known entropy for a language model. No download, no licence, no files.

A rule is a tuple of alternatives, chosen with equal probability; a name in braces stands for another rule. No rule
leads back to itself, so there are finitely many sentences, and each has one derivation only. So the entropy can be
computed, and a regular expression recognises the sentences.

Subject and verb agree: in "the dog that the cats see sings" the dog decides how "sings" ends, across four words.
"""

from __future__ import annotations

import math
import re
from collections import Counter
from functools import cache
from random import Random

GRAMMAR: dict[str, tuple[str, ...]] = {
    "sentence": ("{one} {does}. ", "{many} {do}. "),
    "one": ("{cat}", "{cat}", "{cat} that {does}", "{cat} that {others see}"),
    "many": ("{cat}s", "{cat}s", "{cat}s that {do}", "{cat}s that {others see}"),
    "does": ("{sing}s", "{see}s {other}"),
    "do": ("{sing}", "{see} {other}"),
    "others see": ("{cat} {see}s", "{cat}s {see}"),
    "other": ("{cat}", "{cat}s"),
    "cat": ("the {noun}", "the {noun}", "the {adjective} {noun}"),
    "noun": ("cat", "dog", "bird", "snail", "king", "cook"),
    "adjective": ("old", "small", "quiet", "red"),
    "sing": ("run", "sleep", "sing", "wait"),
    "see": ("see", "find", "follow", "like"),
}
NAME = re.compile(r"\{(.+?)\}")


def load_sentences() -> tuple[str, str]:
    """Return text for training and text for testing, made by `GRAMMAR`; always the same.

    Returns:
        32,655 and 6,640 characters: sentences that each end with a full stop and a space.

    Example:
        >>> from minitorch.data import load_sentences
        >>> training, test = load_sentences()
        >>> training[:35]
        'the dogs that the kings find sing. '
        >>> len(training), len(test), len(set(training))
        (32655, 6640, 23)
    """
    draw = Random(0)

    def made(name: str) -> str:
        alternatives = GRAMMAR[name]
        chosen = alternatives[int(draw.random() * len(alternatives))]
        return NAME.sub(lambda found: made(found[1]), chosen)

    training, test = ("".join(made("sentence") for _ in range(count)) for count in (1000, 200))
    return training, test


def is_sentence(text: str) -> bool:
    """Return whether the grammar makes this sentence, without the space at its end.

    Example:
        >>> from minitorch.data import is_sentence
        >>> is_sentence("the dog that the cats see sings."), is_sentence("the dog that the cats see sing.")
        (True, False)
    """
    return re.fullmatch(_pattern("sentence"), text + " ") is not None


def sentence_entropy() -> float:
    """Return the entropy of the text in nats per character: the least mean loss of a model that only sees the past.

    It is the entropy of a sentence, divided by the mean number of its characters (Shannon, 1948).

    Example:
        >>> from minitorch.data import sentence_entropy
        >>> round(sentence_entropy(), 4)
        0.3284
    """
    entropy, length = _of_rule("sentence")
    return entropy / length


@cache
def _pattern(name: str) -> str:
    """Return the regular expression of a rule."""
    parts = (re.split(r"\{(.+?)\}", each) for each in GRAMMAR[name])
    texts = ["".join(_pattern(p) if n % 2 else re.escape(p) for n, p in enumerate(each)) for each in parts]
    return f"(?:{'|'.join(dict.fromkeys(texts))})"


@cache
def _of_rule(name: str) -> tuple[float, float]:
    """Return the entropy in nats, and the mean number of characters."""
    alternatives = GRAMMAR[name]
    entropy, length = 0.0, 0.0
    for text, count in Counter(alternatives).items():
        share = count / len(alternatives)
        inside = [_of_rule(each) for each in NAME.findall(text)]
        entropy += share * (sum(each for each, _ in inside) - math.log(share))
        length += share * (sum(each for _, each in inside) + len(NAME.sub("", text)))
    return entropy, length
