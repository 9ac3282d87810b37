"""docs/loops.md: its session runs."""

from __future__ import annotations

from tests.support import pages


def test_the_session() -> None:
    assert pages.run("loops.md") > 12
