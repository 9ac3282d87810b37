"""The widget of a prediction, made of ipywidgets: a number, a choice, or an order by clicking."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import ipywidgets  # type: ignore[import-untyped]
from IPython.display import display

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
    field = ipywidgets.RadioButtons(options=prediction.choices, value=guess, layout={"width": "max-content"})
    field.observe(lambda change: _kept(prediction, change["new"], note), names="value")
    return field


def _order(prediction: Prediction, note: Any) -> Any:
    chosen: list[str] = []
    buttons = {name: ipywidgets.Button(description=name, layout={"width": "max-content"}) for name in prediction.order}
    apart = {"width": "max-content", "margin": "2px 2px 2px 2em"}  # it is none of the choices
    again = ipywidgets.Button(description="begin again", icon="undo", layout=apart)

    def choose(button: Any) -> None:
        chosen.append(button.description)
        button.disabled = True
        button.description = f"{len(chosen)}. {button.description}"
        if len(chosen) == len(buttons):
            _kept(prediction, list(chosen), note)

    def reset(_: Any) -> None:
        chosen.clear()
        for name, button in buttons.items():
            button.description, button.disabled = name, False

    for button in buttons.values():
        button.on_click(choose)
    again.on_click(reset)
    return ipywidgets.HBox([*buttons.values(), again], layout={"flex_flow": "row wrap"})
