"""Sentences for students: what an answer is about, the misconception behind it, and the form that it should have."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from itertools import chain
from types import UnionType
from typing import Any, get_args, get_origin

from ..harness.plain import described

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


class Wrong(Exception):  # noqa: N818  it is no fault of a program
    """An answer is wrong, for this reason: raised anywhere below the verdict of a case, which it then is."""


def expect(answer: Any, form: Any, what: str = "", more: str = "", count: int | None = None) -> None:
    """See that an answer has a form.

    Args:
        answer: as it arrived.
        form: a type, such as ``list[int]``, ``tuple[float, int]`` or ``int | None``.
        what: the form in words; by default it is made of a type with elements of one kind.
        more: what else to say of it.
        count: how many elements there are; any number by default.

    Raises:
        Wrong: if it has not.

    Example:
        >>> expect([1, 2], list[int], count=2)
        >>> expect((1.0,), tuple[float, float], more="the ends")
        Traceback (most recent call last):
        minitorch_grading.checks.reasons.Wrong: a tuple of two floats was expected, the ends, and it is (1.0,)
    """
    if (fits := _fits(answer, form)) and (count is None or count == len(answer)):
        return
    if not what:
        kind, inside = get_origin(form), get_args(form)
        many = len(inside) if kind is tuple and ... not in inside else count
        number = "" if many is None else f"{NUMBERS[many] if many < len(NUMBERS) else many} "
        what = f"a {kind.__name__} of {number}{NAMES[get_origin(inside[0]) or inside[0]]}{'s' * (many != 1)}"
    has = f"has {len(answer)}:" if fits else "is"
    raise Wrong(f"{what} was expected,{more and f' {more},'} and it {has} {described(answer)}")


def _fits(answer: Any, form: Any) -> bool:
    kind, inside = get_origin(form) or form, get_args(form)
    if kind in (UnionType, Any):
        return kind is Any or any(_fits(answer, each) for each in inside)
    if type(answer) is not kind or not inside:
        return type(answer) is kind
    several = inside if kind is tuple and ... not in inside else inside[:1] * len(answer)
    return len(several) == len(answer) and all(map(_fits, answer, several))


@contextmanager
def saying(*errors: type[Exception]) -> Iterator[None]:
    """Let the text of these exceptions be the reason.

    Raises:
        Wrong: with the text.
    """
    try:
        yield
    except errors as error:
        raise Wrong(str(error)) from None
