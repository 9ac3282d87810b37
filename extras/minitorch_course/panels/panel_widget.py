"""The widget of a panel, made of ipywidgets.

A change of a control only notes that something has changed. The experiment runs in the kernel's event loop, once no
control has changed for a moment, with the controls as they are then: however much is clicked while a cell or an
experiment runs, one more experiment follows.
"""

from __future__ import annotations

import asyncio
import html
import warnings
from collections.abc import Callable, Mapping
from contextlib import suppress
from os import cpu_count
from pathlib import Path
from typing import TYPE_CHECKING, Any

import ipywidgets  # type: ignore[import-untyped]

from minitorch.compiler.fusion import FUSIONS

from .experiment import PASSES, Controls, Experiment, ImpossibleError
from .panel_views import VIEWS, facts

if TYPE_CHECKING:
    from .panel import Panel

WAIT = 0.3  # seconds without a change; raising it saves experiments, and makes the panel slower to answer
STYLE = Path(__file__).parents[1] / "static" / "panel.css"
WORKING, READY = "working …", "ready"


def widget(panel: Panel) -> dict[str, Any]:
    """The widget of a panel, as a notebook shows it."""
    shown: dict[str, Any] = Live(panel).box._repr_mimebundle_()
    return shown


def size_of(text: str, name: str) -> int:
    """A size as somebody has typed it.

    Raises:
        ImpossibleError: for anything but a whole number of at least 1.

    Example:
        >>> size_of("4,096", "rows")
        4096
        >>> size_of("-3", "rows")
        Traceback (most recent call last):
        minitorch_course.panels.experiment.ImpossibleError: rows is '-3': a size is a whole number, and at least 1
    """
    plain = text.replace(",", "").replace("_", "").strip()
    if not (plain.isascii() and plain.isdigit()) or int(plain) < 1:
        raise ImpossibleError(f"{name} is {text!r}: a size is a whole number, and at least 1")
    return int(plain)


class Live:
    """A panel that answers: its controls, and what is shown beside them.

    Attributes:
        box: all of it, as a widget.
        runs: how many experiments there were.
    """

    def __init__(self, panel: Panel) -> None:
        self.panel = panel
        self.runs = 0
        self._found: Experiment | None = None
        self._shown: tuple[Controls, str] | None = None
        self._waiting: asyncio.TimerHandle | None = None
        try:
            self._loop: asyncio.AbstractEventLoop | None = asyncio.get_running_loop()
        except RuntimeError:  # outside of a notebook nothing has to wait
            self._loop = None
        first = panel.controls
        self.sizes = {name: ipywidgets.Text(value=f"{size:,}", description=name) for name, size in first.sizes.items()}
        self.dtype = ipywidgets.Dropdown(options=list(panel.dtypes), value=first.dtype, description="dtype")
        cores = max(cpu_count() or 1, first.threads)
        numbers = sorted({first.threads, *(2**power for power in range(cores.bit_length())), cores})
        self.threads = ipywidgets.Dropdown(options=numbers, value=first.threads, description="threads")
        self.passes = _boxes({name: each.doc for name, each in PASSES.items()})
        self.fusions = _boxes(FUSIONS)
        self.view = ipywidgets.ToggleButtons(options=panel.views, value=panel.view)
        self.status, self.facts, self.picture = ipywidgets.HTML(), ipywidgets.HTML(), ipywidgets.HTML()
        self.shown = _classed(ipywidgets.VBox([self.facts, self.view, self.picture]), "shown")
        self.box = self._laid_out()
        self._refresh()
        values = (*self.sizes.values(), self.dtype, self.threads, *self.passes.values(), *self.fusions.values())
        for control in (*values, self.view):
            control.observe(self._changed, names="value")

    def _laid_out(self) -> Any:
        groups = self.panel.groups
        top = [self._size(name, field) for name, field in self.sizes.items()]
        top += [control for name, control in (("dtype", self.dtype), ("threads", self.threads)) if name in groups]
        side = []
        for name, boxes in (("passes", self.passes), ("fusion", self.fusions)):
            if name in groups:
                side.append(_group(name, boxes))
        middle = [_classed(ipywidgets.VBox(side), "side"), self.shown] if side else [self.shown]
        style = ipywidgets.HTML(f"<style>{STYLE.read_text(encoding='utf-8')}</style>", layout={"display": "none"})
        again = ipywidgets.Button(description="measure again", tooltip="the times, with the same controls")
        again.on_click(self._again)
        said = _classed(ipywidgets.HBox([self.status, again]), "said")
        rows = [style, _classed(ipywidgets.HBox(top), "top"), said, _classed(ipywidgets.HBox(middle), "middle")]
        return _classed(ipywidgets.VBox(rows), "minitorch-panel")

    def _size(self, name: str, field: Any) -> Any:
        """A field, and buttons for half of it and twice of it."""

        def times(factor: float) -> Callable[[Any], None]:
            def press(_: Any) -> None:
                with suppress(ImpossibleError):  # the panel says so already
                    field.value = f"{max(1, int(size_of(field.value, name) * factor)):,}"

            return press

        buttons = []
        for text, factor, doc in (("÷2", 0.5, f"half of {name}"), ("×2", 2, f"twice {name}")):
            button = ipywidgets.Button(description=text, tooltip=doc)
            button.on_click(times(factor))
            buttons.append(button)
        return _classed(ipywidgets.HBox([field, *buttons]), "size")

    # What changes ---------------------------------------------------------------------------------------------------

    def _changed(self, change: Any) -> None:
        """Note a change; the message of a control may come in another thread."""
        if self._loop is None:
            self._refresh()
            return
        self._say(WORKING)
        if getattr(change, "owner", None) is not self.view:  # the numbers will be others
            self._dim(True)
        self._loop.call_soon_threadsafe(self._later)

    def _again(self, button: Any) -> None:
        self._shown = self._found = None
        self._changed(button)

    def _later(self) -> None:
        assert self._loop is not None
        if self._waiting is not None:
            self._waiting.cancel()
        self._waiting = self._loop.call_later(WAIT, self._refresh)

    def controls(self) -> Controls:
        """The controls as they are now.

        Raises:
            ImpossibleError: for a size that is none.
        """
        return Controls(
            {name: size_of(field.value, name) for name, field in self.sizes.items()},
            self.dtype.value,
            self.threads.value,
            frozenset(name for name, box in self.passes.items() if not box.value),
            frozenset(name for name, box in self.fusions.items() if not box.value),
        )

    def _refresh(self) -> None:
        """Show what follows from the controls; an error is shown in place of it."""
        self._waiting = None
        try:
            wanted = self.controls(), self.view.value
            if wanted != self._shown:
                self._show(*wanted)
                self._shown = wanted
            self._say(READY)
        except Exception as error:  # of the function, too: at some sizes it cannot be called
            self._shown = self._found = None
            self.facts.value = self.picture.value = ""
            self._say(str(error) or type(error).__name__, trouble=True)
        self._dim(False)

    def _show(self, controls: Controls, view: str) -> None:
        if self._found is None or self._found.controls != controls:
            self.runs += 1
            is_first = self.runs == 1  # which has been measured for those who see no widgets
            self._found = self.panel.first if is_first else Experiment(self.panel.subject, controls)
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # of overflow, in float16: there is no cell to show them in
                self.facts.value = f"<div aria-busy='false'>{facts(self._found)}</div>"
        self.picture.value = (
            f"<div class='view' tabindex='0' role='region' aria-label='{view}'>{VIEWS[view](self._found)}</div>"
        )

    def _dim(self, is_busy: bool) -> None:
        """Show numbers as old ones while new ones are measured, and say so to screen readers."""
        (self.shown.add_class if is_busy else self.shown.remove_class)("busy")
        was, now = ("false", "true") if is_busy else ("true", "false")
        self.facts.value = self.facts.value.replace(f"aria-busy='{was}'", f"aria-busy='{now}'")

    def _say(self, text: str, trouble: bool = False) -> None:
        kind = "trouble" if trouble else "quiet"
        self.status.value = f"<div class='status {kind}' role='status'>{html.escape(text)}</div>"


def _boxes(docs: Mapping[str, str]) -> dict[str, Any]:
    return {
        name: ipywidgets.Checkbox(value=True, description=name, tooltip=doc, indent=False) for name, doc in docs.items()
    }


def _group(name: str, boxes: Mapping[str, Any]) -> Any:
    """Boxes under a heading, and buttons for all and none of them."""

    def all_to(value: bool) -> Callable[[Any], None]:
        def press(_: Any) -> None:
            for box in boxes.values():
                box.value = value

        return press

    buttons = []
    for text, value in (("all", True), ("none", False)):
        button = ipywidgets.Button(description=text, tooltip=f"{name}: {text}")
        button.on_click(all_to(value))
        buttons.append(button)
    heading = _classed(ipywidgets.HBox([ipywidgets.HTML(f"<b>{name}</b>"), *buttons]), "heading")
    return _classed(ipywidgets.VBox([heading, *boxes.values()]), "group")


def _classed(made: Any, name: str) -> Any:
    made.add_class(name)
    return made
