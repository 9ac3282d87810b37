"""`Picture`: the result of `show()`, which notebooks display."""

from __future__ import annotations

import math
from functools import cached_property
from pathlib import Path
from typing import Any

from .drawings.drawing import Drawing
from .drawings.summary import bare, closed, summarised
from .painting.layout import lay_out
from .painting.png import pdf, png
from .painting.scene import Scene, scene
from .painting.svg import SCALE, svg
from .painting.text import text

NOTEBOOK_WIDTH = 900  # pixels
WIDEST = 1150  # points; wider pictures have letters of less than 9 pixels in a notebook


class Picture:
    """A drawing that a notebook shows: as SVG, as PNG where SVG is not trusted, and as text.

    Attributes:
        drawing: the content, as data.

    Example:
        >>> import minitorch as mt
        >>> graph = mt.Graph.parse("graph(x: f32[2]): %0 = exp(x) return %0")
        >>> picture = mt.inspect.show(graph)
        >>> print(picture)
        graph: 1 operation
        output: f32[2]
        %0 = exp(x)  f32[2]
        x            f32[2], input
        >>> picture.svg[:4], picture.png[1:4]
        ('<svg', b'PNG')
    """

    def __init__(self, drawing: Drawing) -> None:
        self.drawing = drawing

    @staticmethod
    def readable(drawing: Drawing, limit: int | None) -> Picture:
        """A picture of a drawing; if it has too many marks, or is too wide, without bodies of loops, or summarised.

        Args:
            limit: None if it is never to be summarised.
        """
        for each in (drawing, closed(drawing)):
            picture = Picture(each)
            if limit is None or (len(each.marks) <= limit and picture._fits):
                return picture
        small = Picture(summarised(picture.drawing))
        return small if small._fits else Picture(bare(small.drawing))

    @property
    def _fits(self) -> bool:
        try:
            return self._scene.width <= WIDEST
        except ModuleNotFoundError:
            return True  # as text

    @cached_property
    def _scene(self) -> Scene:
        return scene(self.drawing, lay_out(self.drawing))

    @property
    def _pixels(self) -> float:
        """The width in a notebook, where an SVG is an image that does not shrink by itself; wider ones scroll."""
        return min(self._scene.width * SCALE, NOTEBOOK_WIDTH if self._scene.width <= WIDEST else math.inf)

    @cached_property
    def svg(self) -> str:
        """The picture as SVG.

        Raises:
            ModuleNotFoundError: without pygraphviz; the message names the extra to install.
        """
        return svg(self._scene, self._pixels)

    @cached_property
    def png(self) -> bytes:
        """The picture as PNG, for screens with two pixels to a point.

        Raises:
            ModuleNotFoundError: without pygraphviz or matplotlib; the message names the extra to install.
        """
        return png(self._scene)

    @cached_property
    def pdf(self) -> bytes:
        """The picture as PDF, for documents.

        Raises:
            ModuleNotFoundError: without pygraphviz or matplotlib; the message names the extra to install.
        """
        return pdf(self._scene)

    @cached_property
    def text(self) -> str:
        """The drawing as text."""
        return text(self.drawing)

    def save(self, path: str | Path) -> Path:
        """Write the picture to a file; the ending says in which format: ``.svg``, ``.pdf``, ``.png`` or ``.txt``.

        Returns:
            The path.

        Raises:
            ValueError: for another ending.
        """
        path = Path(path)
        formats = {
            ".svg": lambda: self.svg.encode(),
            ".pdf": lambda: self.pdf,
            ".png": lambda: self.png,
            ".txt": lambda: self.text.encode(),
        }
        if path.suffix not in formats:
            raise ValueError(f"a picture is saved as {', '.join(formats)}, by its ending, not as {path.name!r}")
        path.write_bytes(formats[path.suffix]())
        return path

    def __str__(self) -> str:
        return self.text

    def __repr__(self) -> str:
        return f"<picture of {self.drawing.title}>"

    def _repr_mimebundle_(self, include: Any = None, exclude: Any = None) -> Any:
        """The notebook's display: SVG in a trusted notebook, else PNG; text where neither can be made."""
        bundle: dict[str, Any] = {"text/plain": self.text}
        try:
            bundle["image/svg+xml"] = self.svg
            bundle["image/png"] = self.png
        except ModuleNotFoundError as missing:
            bundle["text/plain"] = f"{missing}\n\n{self.text}"
            return bundle, {}
        return bundle, {"image/png": {"width": round(self._pixels)}}
