"""The widget of a prediction, made of ipywidgets: a number, a choice, or an order by clicking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets  # type: ignore[import-untyped]
from IPython.display import display

from .catching import plain

if TYPE_CHECKING:
    from .predicting import Prediction


def widget(prediction: Prediction) -> None:
    """Show the question, the widget and a note."""
    note = ipywidgets.HTML(prediction.note)
    make = _choice if prediction.choices else _order if prediction.order else _number
    display(ipywidgets.VBox([ipywidgets.HTML(prediction.asked), make(prediction, note), note]))  # type: ignore[no-untyped-call]


def _kept(prediction: Prediction, guess: Any, note: Any) -> None:
    prediction.keep(guess)
    note.value = prediction.note


def _number(prediction: Prediction, note: Any) -> Any:
    before = "" if prediction.guess is None else f"{prediction.guess:.15g}"
    field = ipywidgets.Text(value=before, placeholder="a number, then Enter", continuous_update=False)

    def take(change: dict[str, Any]) -> None:
        try:
            _kept(prediction, float(change["new"].replace(",", "")), note)
        except ValueError:
            note.value = "That is no number."

    field.observe(take, names="value")
    return field


def _choice(prediction: Prediction, note: Any) -> Any:
    guess = prediction.guess if prediction.guess in prediction.choices else None
    options = [(plain(each), each) for each in prediction.choices]
    field = ipywidgets.RadioButtons(options=options, value=guess, layout={"width": "max-content"})
    field.observe(lambda change: _kept(prediction, change["new"], note), names="value")
    return field


def _order(prediction: Prediction, note: Any) -> Any:
    chosen: list[str] = []
    wide = {"width": "max-content"}
    buttons = {name: ipywidgets.Button(description=plain(name), layout=wide) for name in prediction.order}
    looks: dict[str, Any] = {"layout": {**wide, "margin": "2px 2px 2px 2em"}, "style": {"button_color": "transparent"}}
    again = ipywidgets.Button(description="begin again", icon="undo", disabled=True, **looks)  # it is none of them

    def choose(name: str) -> None:
        chosen.append(name)
        buttons[name].disabled, again.disabled = True, False
        buttons[name].description = f"{len(chosen)}. {plain(name)}"
        if len(chosen) == len(buttons):
            _kept(prediction, list(chosen), note)

    def reset(_: Any) -> None:
        chosen.clear()
        again.disabled = True
        for name, button in buttons.items():
            button.description, button.disabled = plain(name), False

    for name, button in buttons.items():
        button.on_click(lambda _, name=name: choose(name))
    again.on_click(reset)
    return ipywidgets.HBox([*buttons.values(), again], layout={"flex_flow": "row wrap"})
