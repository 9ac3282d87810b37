"""Errors and warnings that teach: a code, what was wrong, where, why, and what to write instead.

Each code has a page in `error_pages`, which `explain` gives: a failing snippet and its repair; the tests run both.
Each class is also the built-in exception that Python users expect (`TypeError`, `ValueError`, ...), so ordinary
`except` clauses work.
"""

from __future__ import annotations

import copyreg
import functools
import pickle
import re
import sys
import textwrap
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, Self

from .packages import is_own

WIDTH = 100  # letters of a line that a notebook shows without breaking it


# The public functions, by their code: messages name the called one, not its parts.
PUBLIC: dict[CodeType, str] = {}
PARTS: set[str] = set()  # the names of all functions, public ones and primitives, that a message may begin with


def published(name: str, function: Any) -> Any:
    """Enter a public function or method into the tables; each other name of it gets a separate function and code.

    Python's operators are not entered: `x + y` is known as `add`.
    """
    if not isinstance(function, FunctionType) or name.startswith("__"):
        return function
    if name != function.__name__:
        parts = function.__code__, function.__globals__, name, function.__defaults__, function.__closure__
        original, function = function, FunctionType(*parts)
        function.__kwdefaults__ = original.__kwdefaults__
        functools.update_wrapper(function, original, ("__module__", "__doc__", "__annotations__"))
        function.__wrapped__ = getattr(original, "__wrapped__", original)
    if name != function.__code__.co_name:
        function.__code__ = function.__code__.replace(co_name=name)
    PARTS.add(name)
    PUBLIC[function.__code__] = name
    return function


def called() -> str:
    """Return the name of the public function called by the user, the outermost on the stack, or ""."""
    frame, name = sys._getframe(1), ""
    while frame.f_back is not None and is_own(frame.f_globals.get("__name__")):
        name = PUBLIC.get(frame.f_code, name)
        frame = frame.f_back
    return name


def by_name(text: str) -> str:
    """Return a message that begins with the name of the function called by the user, in place of that of its part.

    Example:
        >>> by_name("less: there is nothing on the stack that a user has called")
        'less: there is nothing on the stack that a user has called'
    """
    name = called()
    if not name or re.search(rf"(?<!\w){name}(?!\w)", text):
        return text
    first = re.match(r"\w+", text)
    if first and first[0] in PARTS:
        return name + text[first.end() :]
    return f"{name}: {text}"


class MinitorchError(Exception):
    """An error with a code.

    Args:
        code: one that has a page.
        what: the fault, with the values concerned.
        where: the user's line, if it is not the line of the traceback.
        why: the reason why it cannot work.
        fix: what to do or write instead.

    Example:
        >>> error = ShapeError("MT201", "add: f32[2] and f32[3] do not broadcast", fix="reshape one of them")
        >>> print(error)
        MT201: add: f32[2] and f32[3] do not broadcast
          instead: reshape one of them
          more: minitorch explain MT201
    """

    _folds = False
    _is_of_a_call = False  # whether the message begins with the function that was called

    def __init__(
        self,
        code: str,
        what: str,
        *,
        where: str | None = None,
        why: str | None = None,
        fix: str | None = None,
    ) -> None:
        self.code = code
        what = by_name(what) if self._is_of_a_call else what
        self._facts = {"what": what, "where": where, "why": why, "fix": fix}
        super().__init__(compose(code, what, where=where, why=why, fix=fix))

    def __reduce__(self) -> tuple[Any, ...]:
        """Copy and pickle the text and all attributes, without `__init__`; the cause, too, unless pickle refuses it."""
        state = {**self.__dict__, "__suppress_context__": self.__suppress_context__}
        with suppress(Exception):
            pickle.dumps(self.__cause__)
            state["__cause__"] = self.__cause__
        return copyreg.__newobj__, (type(self), *self.args), state  # type: ignore[attr-defined]

    def __str__(self) -> str:
        text = super().__str__()
        return folded(text, len(type(self).__name__) + 2) if self._folds else text

    def _render_traceback_(self) -> list[str]:
        """Return IPython's traceback, with the message wrapped, since notebooks break lines within words."""
        from IPython import get_ipython

        shell: Any = get_ipython()
        self._folds = True
        try:
            found: list[str] = shell.InteractiveTB.structured_traceback(type(self), self, self.__traceback__)
            return found
        finally:
            self._folds = False

    @property
    def what(self) -> str:
        """The fault alone, for another error's message."""
        return str(self._facts["what"])

    def locate(self, where: str) -> None:
        """Add the user's line once it is known; an earlier one stays."""
        if self._facts["where"] is None:
            self._facts["where"] = where
            self.args = (compose(self.code, **self._facts),)  # type: ignore[arg-type]


def compose(code: str, what: str, *, where: str | None = None, why: str | None = None, fix: str | None = None) -> str:
    """Return the text of an error or warning, one fact a line."""
    rows = [("where", where), ("why", why), ("instead", fix), ("more", f"minitorch explain {code}")]
    return "\n".join([f"{code}: {what}", *(f"  {label}: {text}" for label, text in rows if text)])


def folded(text: str, before: int = 0) -> str:
    """Wrap the long lines of a text between words, and indent the continuations.

    Args:
        before: letters before the text in its first line.

    Example:
        >>> print(folded("MT999: a b" + " word" * 20 + "\\n  why: short"))
        MT999: a b word word word word word word word word word word word word word word word word word word
            word word
          why: short
    """
    lines = []
    for line in text.splitlines():
        more = " " * (len(line) - len(line.lstrip()) + 4)
        start = " " * before
        lines += textwrap.wrap(
            start + line, WIDTH, subsequent_indent=more, break_long_words=False, break_on_hyphens=False
        ) or [""]
        lines[0], before = lines[0][before:] if before else lines[0], 0
    return "\n".join(lines)


class Page(str):
    """A text in Markdown, which notebooks render."""

    __slots__ = ()

    def __repr__(self) -> str:
        return str(self)

    def _repr_markdown_(self) -> str:
        return str(self)


@functools.cache
def codes() -> dict[str, str]:
    """Return the fault that each code stands for, by the titles of the pages.

    Example:
        >>> codes()["MT201"]
        'shapes that do not fit'
    """
    pages = [page.read_text(encoding="utf-8") for page in _pages().iterdir() if page.name.startswith("MT")]
    return dict(sorted(page.partition("\n")[0].removeprefix("# ").split(": ", 1) for page in pages))


def _pages() -> Any:
    from importlib.resources import files  # reads from a zip archive, too

    return files(__package__) / "error_pages"


def explain(code: str) -> Page:
    """Return the page about an error or a warning: the fault, its reason, its repair, and how JAX and PyTorch behave.

    Args:
        code: the beginning of the message, such as ``"MT201"``.

    Raises:
        ValueError: if there is no such code.

    Example:
        >>> print(explain("MT201"))
        # MT201: shapes that do not fit
        ...
    """
    name = code.strip().upper()
    if name not in codes():
        raise ValueError(f"there is no error {code!r}; the codes are {', '.join(codes())}")
    return Page((_pages() / f"{name}.md").read_text(encoding="utf-8"))


class TracedValueError(MinitorchError, TypeError):
    """The error for a traced value used where a number is needed."""


class TracingError(MinitorchError, RuntimeError):
    """The error for an operation that a trace cannot record."""


class ArgumentError(MinitorchError, TypeError):
    """The error for an argument that a compiled function cannot take."""


class ShapeError(MinitorchError, ValueError):
    """The error for shapes that do not fit."""

    _is_of_a_call = True


class DTypeError(MinitorchError, TypeError):
    """The error for element types that do not fit."""

    _is_of_a_call = True


class DeviceError(MinitorchError, RuntimeError):
    """The error for a device that does not exist: everything is computed on the CPU."""


class ShardingError(MinitorchError, ValueError):
    """The error for a mesh of devices, or a value's division among them, that does not fit."""


class FeedError(MinitorchError, ValueError):
    """The error for wrong or missing feeds of a session."""


class FetchError(MinitorchError, ValueError):
    """The error for a fetch that a session does not have."""


class FrozenError(MinitorchError, ValueError):
    """The error for a folder without an intact frozen program."""


class AutogradError(MinitorchError, RuntimeError):
    """The error for a gradient that cannot be computed."""

    def again(self) -> Self:
        """Return the same error to be raised later, without references to the place where it was raised."""
        return type(self)(self.code, **self._facts)  # type: ignore[arg-type]


class NonFiniteError(MinitorchError, FloatingPointError):
    """The error for a NaN or an infinity that `minitorch.debug.check_nan` found."""


class MismatchError(MinitorchError, ArithmeticError):
    """The error for compiled code whose numbers differ from those of eager mode."""


class ObserverError(MinitorchError, RuntimeError):
    """The error for a program already watched by an observer that does not share it."""


class GraphError(MinitorchError, ValueError):
    """The error for a graph that breaks a rule of the intermediate representation."""


class ParseError(GraphError):
    """The error for a graph's text that cannot be parsed; `line` is the line number, from 1."""

    def __init__(self, what: str, line: int, *, why: str | None = None, fix: str | None = None) -> None:
        self.line = line
        super().__init__("MT602", f"line {line}: {what}", why=why, fix=fix)

    @classmethod
    def of(cls, error: Exception, primitive: str, line: int) -> ParseError:
        """Make a parse error of another error: one message, not one within another."""
        if not isinstance(error, MinitorchError):
            return cls(f"{primitive}: {error}", line)
        what, why, fix = (error._facts[name] for name in ("what", "why", "fix"))
        named = str(what) if str(what).startswith(primitive) else f"{primitive}: {what}"
        return cls(named, line, why=why, fix=fix)


class ScheduleError(MinitorchError, ValueError):
    """The error for a schedule step that would change a kernel's results, or cannot be carried out."""


class QuantizationError(MinitorchError, ValueError):
    """The error for numbers that cannot be quantised as requested."""


class OnnxError(MinitorchError, ValueError):
    """The error for an ONNX model that breaks a rule of the format, or cannot be computed."""


class TranslationError(MinitorchError, ValueError):
    """The error for a program without a translation to or from another format."""


class CheckpointError(MinitorchError, ValueError):
    """The error for a checkpoint that cannot be read or written, or does not fit its target."""


class CommandError(Exception):
    """The error for a command that cannot be carried out; the text is the one sentence that the user reads."""


class TracingWarning(UserWarning):
    """The warning about an effect that a trace has once, not at every call."""


class ScheduleWarning(UserWarning):
    """The warning about an engine schedule that breaks a law: the kernel runs more slowly, with correct results."""
