"""Pages of `docs/` whose blocks are a session: run in their order, they print what stands there."""

from __future__ import annotations

import contextlib
import doctest
import io
import linecache
import re
from pathlib import Path
from typing import Any

DOCS = Path(__file__).parents[2] / "docs"


def run(name: str) -> int:
    """Run the blocks of a page, and compare; returns how many examples there are."""
    blocks = re.findall(r"```pycon\n(.*?)```", (DOCS / name).read_text(encoding="utf-8"), re.DOTALL)
    space: dict[str, Any] = {}
    examples = [example for block in blocks for example in doctest.DocTestParser().get_examples(block)]
    for example in examples:
        linecache.cache[name] = (len(example.source), None, example.source.splitlines(True), name)
        with contextlib.redirect_stdout(io.StringIO()) as printed:
            exec(compile(example.source, name, "single"), space)
        assert printed.getvalue() == example.want, example.source
    return len(examples)
