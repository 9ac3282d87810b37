"""`blank`: a function of which the reader types some lines, checked as the cell runs.

The lines that are left out say ``...``. The function is called on a few cases, and the first difference is told. The
answer is folded below the cell. While lines are blank or wrong, the notebook goes on with the answer, so a run from top
to bottom needs no typing. Answers and cases are data: a module of `minitorch.course.blanks` for each topic.
"""

from __future__ import annotations

import ast
import html
import inspect
import re
import textwrap
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field
from importlib import import_module
from traceback import walk_tb
from types import FunctionType
from typing import Any

import numpy as np

from minitorch.tensor import Tensor
from minitorch.tree import flatten

from .catching import box, display

Case = tuple[Any, ...]
Function = Callable[..., Any]
Edit = Mapping[str, str]  # pieces of the answer's source, and what stands there in a wrong function


def call(function: Function, *arguments: Any) -> Any:
    """The usual way to ask: one call."""
    return function(*arguments)


@dataclass(frozen=True)
class Blank:
    """A function that the reader completes.

    Attributes:
        answer: the complete function. Readers see its source, and it runs with the names of the notebook, as if it had
            been typed there: it uses no others, but may use what cells have defined.
        cases: return tuples of a few words and the arguments. They are made anew for each function, which may write to
            them.
        mistakes: what people write in place of pieces of the answer, or a wrong function, by the sentence that says
            what is wrong. A reader whose function agrees with one of them on all cases is told the sentence. They run
            with the names of their own module.
        ask: ``(function, *arguments) -> what is compared``, where that is not the result of one call.
        close: by how much numbers may differ, as a share of the largest one; 0 asks for equal numbers.
    """

    answer: Function
    cases: Callable[[], Iterable[Case]]
    mistakes: Mapping[str, Edit | Function] = field(default_factory=dict)
    ask: Function = call
    close: float = 1e-5

    def wrong(self, attempt: Function) -> str:
        """Say why a function is not the answer; empty if it is right on all cases."""
        answer = as_typed(self.answer, attempt)
        if not (said := self._differs(attempt, answer)):
            return ""
        for sentence in self.mistakes:
            if not self._differs(attempt, self.mistaken(sentence)):
                return sentence
        return said

    def mistaken(self, sentence: str) -> Function:
        """Return the wrong function of which the sentence tells."""
        mistake = self.mistakes[sentence]
        return mistake if callable(mistake) else edited(self.answer, mistake)

    def _differs(self, attempt: Function, other: Function) -> str:
        for (words, *given), (_, *again) in zip(self.cases(), self.cases(), strict=True):
            right = self.ask(other, *again)
            try:
                found = self.ask(attempt, *given)
            except Exception as error:  # whatever the reader's code raises
                return f"{words}: it raises {type(error).__name__}{_line(error, attempt)}: {error}"
            if said := different(found, right, self.close):
                return f"{words}: {said}"
        return ""


def blank(topic: str) -> Callable[[Function], Function]:
    """Check the function below as soon as its cell runs, and go on with the answer while it is blank or wrong.

    The cell of the notebook has the function with ``...`` where the reader types. A comment may say what is missing::

        @course.blank("inference")
        def scale_and_shift(gamma, beta, mean, variance, eps):
            s = ...  # of each channel
            t = ...
            return s, t

    The answer, the cases and known mistakes are a row of `minitorch.course.blanks.inference`, by the name of the
    function (see `Blank`)::

        BLANKS = {"scale_and_shift": Blank(scale_and_shift, cases, mistakes)}

    Args:
        topic: the module in `minitorch.course.blanks`.

    Returns:
        A decorator. The name is bound to the reader's function if it is right, and else to the answer.

    Raises:
        ValueError: if the module has no answer for a function of this name.

    Example:
        >>> @blank("inference")
        ... def scale_and_shift(gamma, beta, mean, variance, eps):
        ...     s = gamma / (variance + eps) ** 0.5
        ...     return s, beta - mean * s
        ✓ scale_and_shift is right. The notebook goes on with your lines.
    """

    def complete(function: Function) -> Function:
        name = function.__name__
        table: Mapping[str, Blank] = import_module(f"{__package__}.blanks.{topic}").BLANKS
        if name not in table:
            raise ValueError(f"the blanks of {topic!r} have no {name!r}; there is {', '.join(map(repr, table))}")
        found = table[name]
        if is_blank(function):
            display(Outcome(name, None, source(found.answer)))
        else:
            reason = found.wrong(function)
            display(Outcome(name, reason, source(found.answer)))
            if not reason:
                return function
        return as_typed(found.answer, function)

    return complete


@dataclass(frozen=True)
class Outcome:
    """What is said below the cell of a blank.

    Attributes:
        name: of the function.
        reason: why it is wrong; empty if it is right, None if it is blank.
        answer: the source of the answer.
    """

    name: str
    reason: str | None
    answer: str

    @property
    def said(self) -> str:
        """The sentences above the answer."""
        if self.reason is None:
            return (
                f"✎ {self.name} is blank: type your lines in place of “...”, and run the cell again. Until then the "
                "notebook goes on with the answer."
            )
        if self.reason:
            return (
                f"✗ {self.name} is not right yet. {self.reason}\nChange it, and run the cell again. Until then the "
                "notebook goes on with the answer."
            )
        return f"✓ {self.name} is right. The notebook goes on with your lines."

    def __repr__(self) -> str:
        return self.said

    def _repr_html_(self) -> str:
        kind = "info" if self.reason is None else "warn" if self.reason else "success"
        said = html.escape(self.said).replace("\n", "<br>")
        answer = f"<details><summary>The answer</summary><pre>{html.escape(self.answer)}</pre></details>"
        return box(kind, said + answer)


def is_blank(function: Function) -> bool:
    """Whether lines are still left out: there is an ``...`` that is not part of an index.

    Example:
        >>> def first(x):
        ...     ...
        >>> is_blank(first), is_blank(lambda x: x[..., 0])
        (True, False)
    """
    try:
        tree = ast.parse(textwrap.dedent(inspect.getsource(function)))
    except (OSError, SyntaxError):  # without a source, or within an expression: it is no blank of a notebook
        return False
    inside = {id(part) for each in ast.walk(tree) if isinstance(each, ast.Subscript) for part in ast.walk(each.slice)}
    return any(
        isinstance(each, ast.Constant) and each.value is ... and id(each) not in inside for each in ast.walk(tree)
    )


def source(function: Function) -> str:
    """The text of a function as a notebook has it: without types.

    Example:
        >>> print(source(call).splitlines()[0])
        def call(function: Function, *arguments):
    """
    return re.sub(": Any| -> Any", "", inspect.getsource(function).strip())


def edited(function: Function, edit: Edit) -> Function:
    """Return a function whose source has other pieces, and which runs with the same names."""
    text = inspect.getsource(function)
    for old, new in edit.items():
        if old not in text:
            raise ValueError(f"{function.__name__} has no piece {old!r}")
        text = text.replace(old, new)
    names: dict[str, Any] = {}
    exec(compile(text, "<a mistake>", "exec"), function.__globals__, names)
    made: Function = names[function.__name__]
    return made


def as_typed(function: Function, like: Function) -> Function:
    """A function as if its text stood where another one's does: its names are those of that place."""
    if not (isinstance(function, FunctionType) and isinstance(like, FunctionType)):
        return function
    made = FunctionType(
        function.__code__, like.__globals__, function.__name__, function.__defaults__, function.__closure__
    )
    made.__kwdefaults__ = function.__kwdefaults__
    made.__doc__ = function.__doc__
    return made


def different(found: Any, right: Any, close: float) -> str:
    """Say where a result is not as it should be; empty if it is.

    Args:
        found, right: numbers, texts, arrays or tensors, or nested containers of these.
        close: by how much numbers may differ, as a share of the largest one.

    Example:
        >>> different([1.0, 2.0], [1.0, 2.5], 1e-5), different(1.0, 1.0 + 1e-9, 1e-5)
        ('result 1 is 2 and should be 2.5', '')
        >>> different(None, (1, 2), 0)
        'it returns NoneType in place of tuple of 2'
    """
    (leaves, structure), (wanted, other) = flatten(found), flatten(right)
    if structure != other:
        size = f" of {len(right)}" if isinstance(right, (tuple, list, dict)) else ""
        return f"it returns {_kind(found)} in place of {_kind(right)}{size}"
    for number, (one, two) in enumerate(zip(leaves, wanted, strict=True)):
        name = f"result {number}" if len(wanted) > 1 else "the result"
        if isinstance(two, (Tensor, np.ndarray, float)):
            if said := _apart(one, two, close):
                return f"{name} {said}"
        elif type(one) is not type(two) or one != two:
            return f"{name} is {one!r} and should be {two!r}"
    return ""


def _apart(one: Any, two: Any, close: float) -> str:
    if isinstance(two, (Tensor, np.ndarray)) and type(one) is not type(two):
        return f"is of type {_kind(one)} and should be of type {_kind(two)}"
    try:
        ours, theirs = (np.asarray(_numpy(each), np.float64) for each in (one, two))
    except (TypeError, ValueError):
        return f"is of type {_kind(one)} and should be of type {_kind(two)}"
    if getattr(one, "dtype", None) != getattr(two, "dtype", None):
        return f"has the type {one.dtype} and should have {two.dtype}"
    if ours.shape != theirs.shape:
        return f"has the shape {list(ours.shape)} and should have {list(theirs.shape)}"
    with np.errstate(invalid="ignore"):  # infinity less infinity
        near = (ours == theirs) | (np.abs(ours - theirs) <= close * np.abs(theirs).max(initial=0.0))
    near |= np.isnan(ours) & np.isnan(theirs)
    if near.all():
        return ""
    at = tuple(map(int, np.unravel_index(int(np.argmin(near)), near.shape))) if near.ndim else ()
    place = f"has, at {list(at)}, " if at else "is "
    return f"{place}{ours[at]:.6g} and should {'have' if at else 'be'} {theirs[at]:.6g}"


def _numpy(value: Any) -> Any:
    return value.detach().numpy() if isinstance(value, Tensor) else value


def _kind(value: Any) -> str:
    return type(value).__name__.lower() if isinstance(value, Tensor) else type(value).__name__


def _line(error: BaseException, function: Function) -> str:
    """Where in a function an exception came from, in words; empty if it did not."""
    lines = [at for frame, at in walk_tb(error.__traceback__) if frame.f_code is getattr(function, "__code__", None)]
    return f" (in line {lines[0]})" if lines else ""
