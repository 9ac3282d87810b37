"""Scenes as PNG or PDF, painted by matplotlib with its own font, so that the bytes depend on no machine's fonts."""

from __future__ import annotations

from io import BytesIO
from pathlib import Path as FilePath
from typing import TYPE_CHECKING, Any

from .scene import Line, Outline, Scene

if TYPE_CHECKING:
    from matplotlib.patches import PathPatch
    from matplotlib.text import Text

MISSING = "a {} needs matplotlib, which is not installed: pip install matplotlib"
POINTS = 72.0  # to an inch
SHARPNESS = 2.0  # pixels to a point
MOST_PIXELS = 40_000_000


def _patch(part: Outline, order: int) -> PathPatch:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    codes = {"M": [Path.MOVETO], "L": [Path.LINETO], "C": [Path.CURVE4] * 3, "Z": [Path.CLOSEPOLY]}
    points: list[tuple[float, float]] = []
    steps: list[Any] = []
    for step in part.steps:
        numbers = [float(each) for each in step[1:]] or [0.0, 0.0]
        points += zip(numbers[::2], numbers[1::2], strict=True)
        steps += codes[str(step[0])]
    return PathPatch(
        Path(points, steps),
        facecolor=part.fill or "none",
        edgecolor=part.stroke,
        linewidth=part.width,
        linestyle=(0, tuple(each / part.width for each in part.dashes)) if part.dashes else "solid",
        zorder=order,
    )


def _text(part: Line, fonts: FilePath, order: int) -> Text:
    from matplotlib.font_manager import FontProperties
    from matplotlib.text import Text

    file = fonts / ("DejaVuSansMono-Bold.ttf" if part.bold else "DejaVuSansMono.ttf")
    return Text(
        part.x,
        part.y,
        part.text,
        color=part.colour,
        fontproperties=FontProperties(fname=str(file), size=part.size),
        horizontalalignment="center" if part.centred else "left",
        verticalalignment="baseline",
        parse_math=False,
        zorder=order,
    )


def png(scene: Scene) -> bytes:
    """A scene as PNG, two pixels to a point; fewer if it would be enormous.

    Raises:
        ModuleNotFoundError: without matplotlib; the message names the extra to install.
    """
    sharpness = min(SHARPNESS, (MOST_PIXELS / (scene.width * scene.height)) ** 0.5)
    return _painted(scene, "png", sharpness, {"Software": None})


def pdf(scene: Scene) -> bytes:
    """A scene as PDF, of one page: outlines and letters, which stay sharp.

    Raises:
        ModuleNotFoundError: without matplotlib; the message names the extra to install.
    """
    return _painted(scene, "pdf", 1.0, {"CreationDate": None, "Creator": None, "Producer": None})


def _painted(scene: Scene, format: str, sharpness: float, metadata: dict[str, None]) -> bytes:
    try:
        import matplotlib
        from matplotlib.backends.backend_agg import FigureCanvasAgg
        from matplotlib.figure import Figure
    except ModuleNotFoundError:
        raise ModuleNotFoundError(MISSING.format(format.upper())) from None
    fonts = FilePath(matplotlib.get_data_path()) / "fonts" / "ttf"
    with matplotlib.rc_context():
        matplotlib.rcdefaults()  # independent of a notebook's style
        figure = Figure(figsize=(scene.width / POINTS, scene.height / POINTS), dpi=POINTS * sharpness)
        FigureCanvasAgg(figure)
        axes = figure.add_axes((0.0, 0.0, 1.0, 1.0), xlim=(0, scene.width), ylim=(scene.height, 0))
        axes.set_axis_off()
        for order, group in enumerate(scene.groups):
            for part in group.parts:
                axes.add_artist(_patch(part, order) if isinstance(part, Outline) else _text(part, fonts, order))
        target = BytesIO()
        figure.savefig(target, format=format, metadata=metadata, facecolor="none")
    return target.getvalue()
