"""docs/transformations.md: its session runs."""

from tests.support import pages


def test_the_session_prints_what_stands_there() -> None:
    assert pages.run("transformations.md") > 12
