"""`predict`: a guess before the answer, kept beside it, and a page at the end that says where to read again.

An answer that is only read is forgotten; one that was guessed first is remembered (Kornell, Hays and Bjork,
"Unsuccessful retrieval attempts enhance subsequent learning", 2009). In JupyterLab a prediction is a widget. Where
nobody can answer, in a run from top to bottom or without ipywidgets, it is a line of text and asks nothing.

Guesses are kept in a file beside the notebook. Nothing leaves the machine.
"""

from __future__ import annotations

import html
import json
import math
import os
import re
from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from minitorch.tables import Table

from .catching import box, display, plain, wrapped

Guess = float | str | list[str]

TOO_NOISY = "Too noisy to conclude; run the cell again."
FOLDER = ".predictions"  # beside the notebook
KEPT: dict[str, Prediction] = {}  # of this kernel, by the question, in the order in which they were asked


class Prediction:
    """A question to the reader, who guesses before the next cell runs.

    Attributes:
        question: as it is shown.
        guess: what was guessed; None if nothing was.
        value: the answer, once it is known.
    """

    def __init__(
        self, question: str, choices: Sequence[str] = (), order: Sequence[str] = (), within: float = 0.0, read: str = ""
    ) -> None:
        if choices and order:
            raise ValueError("a prediction has choices, or things to put in order, not both")
        self.question, self.choices, self.order = question, list(choices), list(order)
        self.within, self.read = within, read
        self.guess: Guess | None = None
        self.value: Guess | None = None

    @property
    def is_right(self) -> bool:
        """Whether the guess is the answer; of numbers, whether it is near enough."""
        if self.guess is None or self.value is None:
            return False
        if isinstance(self.value, (int, float)) and isinstance(self.guess, (int, float)):
            return math.isclose(self.guess, self.value, rel_tol=self.within, abs_tol=1e-12)
        return self.guess == self.value

    @property
    def asked(self) -> str:
        """The question as HTML: what stands between backticks is code."""
        return f"<b>Predict:</b> {_with_code(self.question)}"

    @property
    def note(self) -> str:
        """A sentence on how far guessing has come."""
        if self.value is not None:
            return "The answer is known."
        if self.guess is None:
            return "Read the next cell, but do not run it yet. Guess first."
        return f"Your guess: {shown(self.guess)}. Run the next cell."

    def answer(self, value: Any) -> None:
        """Set the answer beside the guess; guessing is over.

        Args:
            value: a number, one of the choices, or all things in their right order; None if the answer is a measurement
                that was too noisy. Then the guess is kept for the next run of the cell.

        Raises:
            ValueError: for an answer that could not be guessed.

        Example:
            >>> faster = Prediction("Which is faster?", choices=["this", "that"])
            >>> faster.answer(None)
            Which is faster? Too noisy to conclude; run the cell again.
        """
        if value is None:
            print(wrapped(plain(f"{self.question} {TOO_NOISY}")))
            return
        if self.order and sorted(value) != sorted(self.order):
            raise ValueError(f"the answer has to be an order of {self.order}, not {value!r}")
        if self.choices and value not in self.choices:
            raise ValueError(f"the answer has to be one of {self.choices}, not {value!r}")
        self.value = list(value) if self.order else value if self.choices else float(value)
        _write(self)
        if self.guess is None:
            print(wrapped(plain(self._told())))
        else:
            display(Verdict(self._told(), self.is_right))

    def _told(self) -> str:
        answer = shown(self.value)
        if self.guess is None:
            return f"{self.question} {answer}."
        if self.is_right:
            return f"{self.question} {answer}, as you guessed."
        return f"{self.question} {answer}. You guessed {shown(self.guess)}."

    def __repr__(self) -> str:
        kind = "choose" if self.choices else "put in order" if self.order else "a number"
        options = f": {' | '.join(self.choices or self.order)}" if self.choices or self.order else ""
        return plain(f"Predict: {self.question} ({kind}{options})")

    def ask(self) -> None:
        """Show the question: as a widget where somebody can answer, and as a line of text elsewhere."""
        if not is_answered_live():
            print(self)
            return
        from .widget import widget

        widget(self)

    def keep(self, guess: Guess) -> None:
        """Note a guess, as the widget does; it counts until the answer is known.

        Example:
            >>> question = Prediction("How many?")
            >>> question.keep(3)
            >>> question.answer(4)
            ✗ Not this time; read on to see why. How many? 4. You guessed 3.
        """
        if self.value is None:
            self.guess = guess
            _write(self)


@dataclass(frozen=True)
class Verdict:
    """An answer beside a guess: right and wrong differ in colour and in words.

    Attributes:
        told: question, answer and guess.
        right: whether the guess was.
    """

    told: str
    right: bool

    def __repr__(self) -> str:
        return f"{'✓ Right!' if self.right else '✗ Not this time; read on to see why.'} {self.told}"

    def _repr_html_(self) -> str:
        return box("success" if self.right else "warn", _with_code(repr(self)))


def predict(
    question: str, *, choices: Sequence[str] = (), order: Sequence[str] = (), within: float = 0.0, read: str = ""
) -> Prediction:
    """Ask the reader for a guess; the next cell calls `answer` on the result.

    The question is a widget where somebody can answer, and a line of text elsewhere.

    Args:
        question: a sentence that ends with a question mark.
        choices: to choose one of; if neither these nor `order` are given, the answer is a number.
        order: things to be put in order.
        within: how far from the answer a number may be, as a share of it.
        read: where to read again, such as ``"section 3"``.

    Example:
        >>> kernels = predict("How many kernels does softmax need?", read="section 4")
        Predict: How many kernels does softmax need? (a number)
        >>> kernels.answer(1)
        How many kernels does softmax need? 1.
    """
    made = Prediction(question, choices, order, within, read)
    before = _read().get(question)
    if isinstance(before, dict):
        made.guess = before.get("guess")
    KEPT[question] = made
    made.ask()
    return made


class Page:
    """What was guessed in a notebook, beside the answers."""

    def __init__(self, kept: Sequence[Prediction]) -> None:
        self.kept = [each for each in kept if each.value is not None]

    def __repr__(self) -> str:
        guessed = [each for each in self.kept if each.guess is not None]
        if not guessed:
            return f"Questions: {len(self.kept)}. No guess was made."
        right = sum(each.is_right for each in guessed)
        lines = [f"Questions: {len(self.kept)}. Guesses that were right: {right} of {len(guessed)}."]
        for each in self.kept:
            lines.append(f"{_mark(each)} {each._told()}{_again(each)}")
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        first, *_ = repr(self).splitlines()
        rows = [
            tuple(
                plain(cell)
                for cell in (_mark(each), each.question, shown(each.guess), shown(each.value), _again(each).strip())
            )
            for each in self.kept
        ]
        table = Table("{} {} {} {} {}", rows, ("", "question", "your guess", "answer", ""), ())
        return f"<p>{html.escape(first)}</p>{table.html}"


def predictions() -> Page:
    """A page with all predictions of this notebook: guess, answer, and where to read again.

    Example:
        >>> question = predict("How many bytes has a float32?", read="section 1")
        Predict: How many bytes has a float32? (a number)
        >>> question.keep(8)
        >>> question.answer(4)
        ✗ Not this time; read on to see why. How many bytes has a float32? 4. You guessed 8.
        >>> print(str(predictions()).splitlines()[-1])
        ✗ How many bytes has a float32? 4. You guessed 8. Read section 1 again.
    """
    return Page(list(KEPT.values()))


def _mark(each: Prediction) -> str:
    return "·" if each.guess is None else "✓" if each.is_right else "✗"


def _with_code(text: str) -> str:
    """A text as HTML: what stands between backticks is code."""
    return re.sub(r"`([^`]+)`", r"<code>\1</code>", html.escape(text, quote=False))


def _again(each: Prediction) -> str:
    wrong = each.guess is not None and not each.is_right
    return f" Read {each.read} again." if wrong and each.read else ""


def shown(value: Guess | None) -> str:
    """A guess or an answer, as it stands in a sentence.

    Example:
        >>> shown(3.0), shown(2.5), shown(3670015.0), shown(["a", "b"]), shown(None)
        ('3', '2.5', '3,670,015', 'a, b', '–')
        >>> shown(["f(a, b)", "c"])
        'f(a, b); c'
    """
    if value is None:
        return "–"
    if isinstance(value, list):
        return ("; " if any("," in each for each in value) else ", ").join(value)
    if isinstance(value, str):
        return f"“{value}”"
    return f"{value:,.0f}" if value == int(value) else f"{value:.6g}"


# Where guesses are kept ---------------------------------------------------------------------------------------------


def is_answered_live() -> bool:
    """Whether somebody sits in front of this notebook: it was opened in Jupyter, and widgets are installed."""
    if notebook() is None:
        return False
    return find_spec("ipywidgets") is not None


def notebook() -> Path | None:
    """The notebook that this kernel belongs to, as Jupyter's server tells; None if no notebook was opened there."""
    name = os.environ.get("JPY_SESSION_NAME", "")
    return Path(name) if name.endswith(".ipynb") else None


def _file() -> Path | None:
    path = notebook()
    return path and path.parent / FOLDER / f"{path.stem}.json"


def _read() -> dict[str, Any]:
    path = _file()
    if path is not None:
        with suppress(OSError, ValueError):  # there is none yet, or somebody has edited it
            found = json.loads(path.read_text(encoding="utf-8"))
            if isinstance(found, dict):
                return found
    return {}


def _write(each: Prediction) -> None:
    path = _file()
    if path is None:
        return
    kept = {**_read(), each.question: {"guess": each.guess, "answer": each.value, "right": each.is_right}}
    with suppress(OSError):  # a folder that cannot be written to keeps no guesses
        path.parent.mkdir(exist_ok=True)
        beside = path.with_suffix(".new")
        beside.write_text(json.dumps(kept, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")
        beside.replace(path)
