"""What all tests share: folders of their own for what is kept, and in CI the same random examples every time."""

from __future__ import annotations

import gc
import os
import tempfile
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

import pytest
from hypothesis import HealthCheck, settings

from minitorch_grading.imports import quick_imports
from tests import suite

_folder = tempfile.TemporaryDirectory(prefix="minitorch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("MINITORCH_CACHE_DIR", os.path.join(_folder.name, "code"))
os.environ.setdefault("MPLCONFIGDIR", os.path.join(_folder.name, "matplotlib"))  # a user's list may be damaged

with quick_imports(), suppress(ImportError):  # before the test files import it, in each of the processes
    import nbformat  # noqa: F401

# How long an example takes says how busy the machine is. In CI the examples are the same every time: a red run then is
# red again, and says something about the change.
settings.register_profile("suite", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.register_profile("ci", settings.get_profile("suite"), derandomize=True)
settings.load_profile("ci" if os.environ.get("CI") else "suite")


def pytest_addoption(parser: pytest.Parser) -> None:
    parser.addoption("--sweep", action="store_true", help="try all combinations where otherwise some stand for them")
    parser.addoption("--foreign", action="store_true", help="download the models of tests/foreign, and run them")
    parser.addoption("--fast", action="store_true", help="run a tenth of the tests, some of every file, none slow")
    parser.addoption("--progress", action="store_true", help="print how far the tests are, not a letter for each")
    parser.addoption("--record-seconds", action="store_true", help="write the times that --fast and --progress know")


def pytest_configure(config: pytest.Config) -> None:
    config.addinivalue_line("markers", "sweep: some cases stand for others, but with --sweep")
    config.addinivalue_line("markers", "user: depends on who runs it, so that .ci/run runs it as an ordinary user, too")
    if config.getoption("progress") and not hasattr(config, "workerinput"):
        config.pluginmanager.register(suite.Progress(config))
    if config.getoption("record_seconds"):
        config.pluginmanager.register(suite.Recorder(config))


@pytest.hookimpl(tryfirst=True)
def pytest_collection_modifyitems(config: pytest.Config, items: list[pytest.Item]) -> None:
    here = Path(__file__).parent
    files = {item.path for item in items if item.path.is_relative_to(here)}
    users = {path for path in files if suite.depends_on_user(path)}
    for item in items:
        if item.path in users:
            item.add_marker("user")
    left_out = set()
    if not config.getoption("sweep"):
        left_out = suite.spared(items)
        suite.with_fewer_examples(items)
    if config.getoption("fast"):
        costs = suite.costs_of(item for item in items if item.nodeid not in left_out)
        left_out = {item.nodeid for item in items} - suite.fast(costs)
    if left_out:
        config.hook.pytest_deselected(items=[item for item in items if item.nodeid in left_out])
        items[:] = [item for item in items if item.nodeid not in left_out]
    suite.slowest_files_first(items)


@pytest.fixture(scope="session")
def sweep(request: pytest.FixtureRequest) -> bool:
    """Whether all combinations are asked for."""
    return bool(request.config.getoption("--sweep"))


def pytest_xdist_auto_num_workers() -> int:
    """One process more than there are cores: some tests wait for a browser, a sandbox or a time limit."""
    return suite.cores() + 1


def pytest_collection() -> None:
    """No garbage is made while tests are collected."""
    gc.disable()


def pytest_collection_finish() -> None:
    """25,000 tests are 900,000 objects, which stay."""
    look_at_new_objects_alone()
    gc.enable()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item: pytest.Item, nextitem: pytest.Item | None) -> Iterator[None]:
    """What a file has loaded stays, too: JAX is half a million objects."""
    result = yield
    if nextitem is not None and nextitem.path != item.path:
        look_at_new_objects_alone()
    return result


def look_at_new_objects_alone() -> None:
    """Let the garbage collector pass over what there is now, all of which it would look at in each `gc.collect()`."""
    gc.collect()
    gc.freeze()
