"""What all tests share: folders of their own for what is kept, and in CI the same random examples every time."""

from __future__ import annotations

import gc
import os
import tempfile
from contextlib import suppress

import pytest
from hypothesis import settings

from minitorch.classroom.imports import quick_imports

_folder = tempfile.TemporaryDirectory(prefix="minitorch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("MINITORCH_CACHE_DIR", os.path.join(_folder.name, "code"))
os.environ.setdefault("MPLCONFIGDIR", os.path.join(_folder.name, "matplotlib"))  # a user's list may be damaged

with quick_imports(), suppress(ImportError):  # before the test files import it, in each of the processes
    import nbformat  # noqa: F401

# In CI the same examples every time: a red run then is red again, and says something about the change.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweep", action="store_true", help="try all combinations where otherwise some stand for them")
    parser.addoption("--foreign", action="store_true", help="download the models of tests/foreign, and run them")


@pytest.fixture(scope="session")
def sweep(request: pytest.FixtureRequest) -> bool:
    """Whether all combinations are asked for."""
    return bool(request.config.getoption("--sweep"))


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait for a browser, a sandbox or a time limit."""
    return len(os.sched_getaffinity(0)) + 1 if hasattr(os, "sched_getaffinity") else (os.cpu_count() or 1) + 1


def pytest_collection() -> None:
    """No garbage is made while tests are collected."""
    gc.disable()


def pytest_collection_finish() -> None:
    """17,000 tests are 600,000 objects, which stay: `gc.collect()` looks at all others only."""
    gc.collect()
    gc.freeze()
    gc.enable()
