"""Markdown as HTML that can be put on a page: no tags but those of the text's own form, no links, no pictures.

The texts are the instructor's, and those of students between fences (`autograded.verbatim`), which is where they stay:
HTML is escaped in both.
"""

from __future__ import annotations

from typing import Any

import mistune


class _Renderer(mistune.HTMLRenderer):
    """As usual, but for what would lead away from the page."""

    def link(self, text: str, url: str, title: str | None = None) -> str:
        return text

    def image(self, text: str, url: str, title: str | None = None) -> str:
        return text


_markdown: Any = mistune.create_markdown(renderer=_Renderer(escape=True), plugins=["table"])


def html_of(text: str) -> str:
    """A text in Markdown as HTML.

    Example:
        >>> print(html_of("*one* <script>, [two](https://example.org)"), end="")
        <p><em>one</em> &lt;script&gt;, two</p>
    """
    return str(_markdown(text))
