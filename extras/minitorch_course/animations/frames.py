"""`Frames`: successive pictures of one thing, with a slider and a play button, or side by side as one still picture.

In JupyterLab they are a widget. Where widgets are missing, or the notebook runs from top to bottom, they are one SVG,
and always a text. Letters outside of filled shapes have the theme's colour, or a grey that is legible on both themes.
"""

from __future__ import annotations

import html
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from minitorch_inspect.plots.theme import INK, ON_FILL

from ..predicting import is_answered_live

LETTERS, FAINT = (f"var(--jp-ui-font-color{number}, {INK})" for number in (1, 2))  # on the page
SECONDS = 40.0  # for playing all frames; raising it plays slower
FASTEST, SLOWEST = 60, 1200  # milliseconds to a frame
STYLE = (
    f".frames text{{font:12px sans-serif;text-anchor:middle;fill:{LETTERS}}}"
    f".frames .on{{fill:{ON_FILL}}}"
    f".frames .small{{font-size:10px;fill:{FAINT}}}"
    f".frames .left{{text-anchor:start}}"
    f".frames .title{{font-weight:bold;text-anchor:start}}"
)


@dataclass(frozen=True)
class Frames:
    """Pictures of one thing at successive moments.

    Attributes:
        count: the number of frames.
        size: width and height of a frame, in pixels.
        marks: a frame, by its number, as SVG elements whose origin is its upper left corner.
        text: all frames, or those that matter, in words.
        still: the frames of the still picture.
        columns: of the still picture.

    Example:
        >>> frames = Frames(3, (40, 20), lambda number: f"<text y='12'>{number}</text>", "0, 1, 2", (0, 2), 2)
        >>> print(frames)
        0, 1, 2
        >>> frames.svg().count("<text"), frames.svg(1).count("<text")
        (2, 1)
    """

    count: int
    size: tuple[int, int]
    marks: Callable[[int], str]
    text: str
    still: Sequence[int]
    columns: int

    def svg(self, number: int | None = None) -> str:
        """A frame as SVG, or the still picture."""
        numbers = self.still if number is None else [number]
        width, height = self.size
        columns = min(self.columns, len(numbers))
        whole = columns * width, -(-len(numbers) // columns) * height
        placed = "".join(
            f'<g transform="translate({place % columns * width},{place // columns * height})">{self.marks(each)}</g>'
            for place, each in enumerate(numbers)
        )
        return (
            f'<svg xmlns="http://www.w3.org/2000/svg" class="frames" width="{whole[0]}" height="{whole[1]}" '
            f'viewBox="0 0 {whole[0]} {whole[1]}" style="max-width:100%;height:auto" role="img">'
            f"<title>{html.escape(self.text)}</title><style>{STYLE}</style>{placed}</svg>"
        )

    def widget(self) -> Any:
        """A slider, a play button and a frame, above the still picture, which is folded."""
        import ipywidgets  # type: ignore[import-untyped]

        last = self.count - 1
        interval = int(min(max(1000 * SECONDS / self.count, FASTEST), SLOWEST))
        play = ipywidgets.Play(min=0, max=last, interval=interval, show_repeat=False, tooltip="play all frames")
        step = ipywidgets.IntSlider(min=0, max=last, description="step", readout=False, layout={"width": "60%"})
        ipywidgets.jslink((play, "value"), (step, "value"))
        picture = ipywidgets.HTML(self.svg(0))
        step.observe(lambda change: setattr(picture, "value", self.svg(change["new"])), names="value")
        which = "all steps" if len(self.still) == self.count else "some steps"
        side = ipywidgets.HTML(f"<details><summary>{which} side by side</summary>{self.svg()}</details>")
        return ipywidgets.VBox([ipywidgets.HBox([play, step]), picture, side])

    def _repr_mimebundle_(self, include: object = None, exclude: object = None) -> dict[str, Any]:
        """The widget where the notebook is open in JupyterLab, else the still picture."""
        shown: dict[str, Any] = self.widget()._repr_mimebundle_() if is_answered_live() else {}
        return {"image/svg+xml": self.svg(), **shown, "text/plain": self.text}

    def __str__(self) -> str:
        return self.text

    __repr__ = __str__


def rectangle(x: float, y: float, width: float, height: float, fill: str, stroke: str = "none", wide: float = 1) -> str:
    """A rectangle as SVG.

    Example:
        >>> rectangle(0, 1, 8, 9, "#fff")
        '<rect x="0" y="1" width="8" height="9" fill="#fff" stroke="none" stroke-width="1"/>'
    """
    place = f'x="{x:g}" y="{y:g}" width="{width:g}" height="{height:g}"'
    return f'<rect {place} fill="{fill}" stroke="{stroke}" stroke-width="{wide:g}"/>'


def words(x: float, y: float, text: str, kind: str = "") -> str:
    """Words as SVG; `kind` has the classes of `STYLE`.

    Example:
        >>> words(1, 2, "m < s", "small")
        '<text x="1" y="2" class="small">m &lt; s</text>'
    """
    kind = f' class="{kind}"' if kind else ""
    return f'<text x="{x:g}" y="{y:g}"{kind}>{html.escape(text)}</text>'
