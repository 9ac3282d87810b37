"""Scenes as SVG: text that a browser paints, the same bytes on every machine."""

from __future__ import annotations

from collections.abc import Iterator
from xml.sax.saxutils import escape, quoteattr

from .scene import Group, Line, Outline, Scene

FONT = "'DejaVu Sans Mono', Menlo, Consolas, 'Liberation Mono', monospace"  # all about equally wide


SCALE = 1.2  # pixels to a point; letters then have the size of a notebook's


def number(value: float) -> str:
    """A length, to a hundredth of a point.

    Example:
        >>> number(3.0), number(2.347), number(-0.001)
        ('3', '2.35', '0')
    """
    text = f"{value:.2f}".rstrip("0").rstrip(".")
    return "0" if text == "-0" else text


def _outline(part: Outline) -> str:
    path = " ".join(f"{step[0]}{' '.join(number(float(each)) for each in step[1:])}" for step in part.steps)
    dashes = f' stroke-dasharray="{" ".join(map(number, part.dashes))}"' if part.dashes else ""
    return (
        f'<path d="{path}" fill="{part.fill or "none"}" stroke="{part.stroke}" '
        f'stroke-width="{number(part.width)}"{dashes}/>'
    )


def _line(part: Line) -> str:
    anchor = ' text-anchor="middle"' if part.centred else ""
    bold = ' font-weight="bold"' if part.bold else ""
    return (
        f'<text x="{number(part.x)}" y="{number(part.y)}" font-size="{number(part.size)}" fill="{part.colour}"'
        f'{anchor}{bold} xml:space="preserve">{escape(part.text)}</text>'
    )


def _group(group: Group) -> Iterator[str]:
    yield f"<g data-id={quoteattr(group.name)}>"
    if group.title:
        yield f"<title>{escape(group.title)}</title>"
    for part in group.parts:
        yield _outline(part) if isinstance(part, Outline) else _line(part)
    yield "</g>"


def svg(scene: Scene, pixels: float) -> str:
    """The scene as SVG, so many pixels wide, or as the page allows."""
    width, height = number(scene.width), number(scene.height)
    lines = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{number(pixels)}" '
        f'height="{number(scene.height * pixels / scene.width)}" viewBox="0 0 {width} {height}" '
        f'font-family="{FONT}" style="max-width: 100%; height: auto" role="img">',
        f"<title>{escape(scene.title)}</title>",
    ]
    for group in scene.groups:
        lines += _group(group)
    return "\n".join([*lines, "</svg>", ""])
