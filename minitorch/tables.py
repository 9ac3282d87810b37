"""`Table`, rows of cells shown as aligned text and as HTML; `Tabular`, a result shown as tables and text.

Both forms are made of the same cells. A notebook shows the HTML, which follows the notebook's theme; a table wider or
longer than a screen scrolls in a box.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, field
from string import Formatter

MOST_LINES = 60  # lines of text that a result shows without `print`; raising it shows more of a long one
HEIGHT = "66em"  # of a table, about 33 rows; raising it shows more rows before a table scrolls
BOX = f"overflow:auto;max-width:100%;max-height:{HEIGHT};margin:0.3em 0"
LINE = "overflow-wrap:anywhere;max-width:100%"
LONG = 24  # letters of a cell that may be broken into lines; raising it breaks shorter cells narrower
NAME = "font-family:var(--jp-code-font-family,monospace)"


@dataclass(frozen=True)
class Table:
    """A table: a template of its lines, a head, and rows.

    Attributes:
        template: a line of text with a place for each cell; ``>`` in a place puts numbers to the right, in HTML too.
        rows: cells, or a text, which is a heading across all columns.
        head: the titles of the columns; empty for none.
        names: the columns of names and code, which HTML sets in a fixed width, by number.

    Example:
        >>> print(Table("{:<6}{:>8}  {}", [("add", "1.5 kB", "a & b")], ("name", "moved", "where")))
        name     moved  where
        add     1.5 kB  a & b
    """

    template: str
    rows: Sequence[Sequence[str] | str]
    head: Sequence[str] = ()
    names: Collection[int] = field(default=(0,))

    def __str__(self) -> str:
        lines = [self.head, *self.rows] if self.head else self.rows
        return "\n".join(line if isinstance(line, str) else self.template.format(*line).rstrip() for line in lines)

    @property
    def html(self) -> str:
        """The table as HTML, in a box in which it scrolls."""
        head = f"<thead>{self._line(self.head, 'th')}</thead>" if self.head else ""
        body = "".join(self._line(row, "td") for row in self.rows)
        return f"<div style='{BOX}'><table style='margin:0'>{head}<tbody>{body}</tbody></table></div>"

    def _line(self, cells: Sequence[str] | str, tag: str) -> str:
        from html import escape

        specs = [spec for _, place, spec, _ in Formatter().parse(self.template) if place is not None]
        if isinstance(cells, str):
            return f"<tr><th colspan='{len(specs)}' style='text-align:left'>{escape(cells)}</th></tr>"
        shown = []
        for number, (cell, spec) in enumerate(zip(cells, specs, strict=True)):
            style = "text-align:right;white-space:nowrap" if spec and spec.startswith(">") else "text-align:left"
            style += ";vertical-align:top"
            if number in self.names and tag == "td":
                style += f";white-space:pre;{NAME}"
            elif len(cell) > LONG:
                style += f";min-width:{LONG // 2}em"  # beside a wide column of code, too
            shown.append(f"<{tag} style='{style}'>{escape(cell.strip())}</{tag}>")
        return f"<tr>{''.join(shown)}</tr>"


class Tabular:
    """A result shown as tables and lines of text: whole by `print` and in a notebook, else the first lines."""

    def _parts(self) -> Iterable[Table | str]:
        """Return the tables and lines, in order."""
        raise NotImplementedError

    def __str__(self) -> str:
        return "\n".join(map(str, self._parts()))

    def __repr__(self) -> str:
        lines = str(self).splitlines()
        if len(lines) > MOST_LINES:
            lines[MOST_LINES - 1 :] = [f"and {len(lines) - MOST_LINES + 1} more lines, which print shows"]
        return "\n".join(lines)

    def _repr_html_(self) -> str:
        from html import escape

        return "".join(
            part.html if isinstance(part, Table) else f"<div style='{LINE}'>{escape(part)}</div>"
            for part in self._parts()
        )
