"""Sentences for students: what an answer is about, the misconception behind it, and the form that it should have."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from itertools import chain
from typing import Any

from ..asks.plain import described

NAMES = {int: "whole number", float: "float", str: "name", list: "list"}
LONG = 60  # characters of a line that stands before a reason; raising it lets longer ones push the reason back
NUMBERS = ("no", "one", "two", "three", "four")


def indented(text: str) -> str:
    """A listing as it stands in a reason."""
    return "\n".join(f"  {line}" for line in text.splitlines())


def in_context(reason: str, about: str) -> str:
    """A reason with what it is about: of that the first line stands before it, or behind it if it is long.

    The other lines are a listing below.

    Example:
        >>> print(in_context("it is 3", "step 1\\nx = 1\\ny = 2"))
        step 1: it is 3
          x = 1
          y = 2
        >>> in_context("it is 3", "step 1")
        'step 1: it is 3'
    """
    head, _, listing = about.partition("\n")
    if head and len(head) > LONG:
        said, _, more = reason.partition("\n")
        reason = f"{said}; {head}\n{more}".rstrip()
    elif head:
        reason = f"{head}: {reason}"
    return f"{reason}\n{indented(listing)}" if listing else reason


def hint(*known: Any) -> str:
    """The first sentence whose condition holds, for the end of a reason; empty if none does.

    Args:
        known: conditions and sentences in turn.

    Example:
        >>> hint(1 > 2, "one is small", 2 > 1, "two is large")
        '; two is large'
    """
    pairs = zip(known[::2], known[1::2], strict=True)
    return next((f"; {sentence}" for condition, sentence in pairs if condition), "")


def recognised(known: Iterable[tuple[str, Any]], is_given: Callable[[Any], bool]) -> str:
    """The sentence of the first wrong answer that was given, for the end of a reason; empty if none was.

    Args:
        known: sentences, and the answers of those who make a mistake.
        is_given: whether an answer is the student's.

    Example:
        >>> recognised([("it is twice as large", 4), ("a sign is wrong", -2)], (-2).__eq__)
        '; a sign is wrong'
    """
    return hint(*chain.from_iterable((is_given(answer), why) for why, answer in known))


def wrong_form(
    answer: Any, kind: type[list[Any]] | type[tuple[Any, ...]], of: type, count: int | None = None, what: str = ""
) -> str | None:
    """Why an answer is not a list, or tuple, of so many elements of a type; None if it is.

    Args:
        answer: as it arrived.
        kind: `list` or `tuple`.
        of: the type of each element.
        count: how many there are; any number by default.
        what: names the form, where its types do not say enough.

    Example:
        >>> wrong_form([1, 2], list, int), wrong_form([1, 2.0], list, int)
        (None, 'a list of whole numbers was expected, and it is [1, 2.0]')
        >>> wrong_form((1.0,), tuple, float, 2, "the value and its square")
        'a tuple of two floats was expected, the value and its square, and it is (1.0,)'
    """
    if isinstance(answer, kind) and count in (None, len(answer)) and all(type(each) is of for each in answer):
        return None
    many = "" if count is None else f"{NUMBERS[count] if count < len(NUMBERS) else count} "
    form = f"a {kind.__name__} of {many}{NAMES[of]}{'s' * (count != 1)}"
    return f"{form} was expected,{what and f' {what},'} and it is {described(answer)}"
