"""Foreign models are compared by their results: a schedule that is refused is an error in all other tests."""

from __future__ import annotations

import pytest


@pytest.fixture(autouse=True)
def schedules_are_legal() -> None:
    """In place of the fixture of all tests."""
