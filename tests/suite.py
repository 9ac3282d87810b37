"""Running the whole suite: which tests `make test-fast` takes, and what is printed while tests run.

Both read `recorded/seconds.json`, written by ``--record-seconds``: the processor time of each slow test function (the
mean of its cases, without shared fixtures) and of each slow shared fixture (``file::@name``). Entries of files that
did not run stay as they are. A test that is not listed takes a few hundredths of a second.
"""

from __future__ import annotations

import json
import os
import re
import time
import zlib
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

import pytest
from hypothesis import settings

RECORD = Path(__file__).parent / "recorded" / "seconds.json"
LISTED = 0.2  # seconds from which a function or fixture is listed; lowering it makes a longer list
OTHERS = 0.015  # seconds of a test that is not listed: their mean
FAST = 1.0  # the most seconds of a test, fixtures included, that `make test-fast` may take
EXAMPLES = 3  # of so many random examples that a test asks for, a run without --sweep tries one
SHARE = 10  # of so many tests of a file, `make test-fast` takes one
USER = re.compile(r"minitorch_grading|tests\.grading|tools\.clone|chmod|st_mode|geteuid|browser|setup\.sh")
EVERY = 30.0  # seconds between two lines of progress where the output is no terminal


def cores() -> int:
    """How many cores this process may use."""
    return len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1


def file_of(name: str) -> str:
    """The file of a test's name."""
    return name.partition("::")[0]


def function_of(name: str) -> str:
    """The function of a test's name, without the case."""
    return name.partition("[")[0]


def recorded() -> dict[str, float]:
    """Seconds by test function or fixture."""
    found: dict[str, float] = json.loads(RECORD.read_text(encoding="utf-8"))
    return found


def fixtures_of(item: pytest.Item) -> list[str]:
    """The names in the record of a test's fixtures."""
    found = getattr(item, "_fixtureinfo", None)
    return [key(each[-1]) for each in found.name2fixturedefs.values() if each] if found else []


def key(fixture: Any) -> str:
    """The name of a fixture in the record."""
    return f"{fixture.baseid}::@{fixture.argname}"


def depends_on_user(path: Path) -> bool:
    """Whether a test file is about what root may do and others may not, or about what users change in their clone."""
    return path.suffix == ".py" and USER.search(path.read_text(encoding="utf-8")) is not None


# --- cases that stand for others ----------------------------------------------------------------------------------


def representatives(cases: Mapping[str, Mapping[str, object]]) -> set[str]:
    """Of the cases of a test so many that each value of each parameter occurs, always the same ones.

    One for each value of the parameter that has most, in turn with those values of the others that were seen least.
    Values are told apart by how they print: `support.cases.Case` is the name of its function.

    Args:
        cases: the parameters of each, by its name.

    Example:
        >>> cases = {f"{a}{b}": {"a": a, "b": b} for a in range(3) for b in range(3)}
        >>> sorted(representatives(cases)), len(cases)
        (['00', '11', '22'], 9)
    """
    values = {name: [(key, str(value)) for key, value in each.items()] for name, each in cases.items()}
    names: dict[tuple[str, str], list[str]] = defaultdict(list)
    for name, each in values.items():
        for value in each:
            names[value].append(name)
    sizes, seen, found = Counter(key for key, _ in names), Counter[tuple[str, str]](), set()
    for value in sorted(names, key=lambda value: -sizes[value[0]]):
        if not seen[value]:
            best = min(names[value], key=lambda name: sum(seen[each] for each in values[name]))
            seen.update(values[best])
            found.add(best)
    return found


def spared(items: Iterable[pytest.Item]) -> set[str]:
    """The names of tests marked ``sweep`` that are left out, since others stand for them.

    With a number, as in ``sweep(3)``, one of so many cases is left; without, see `representatives`.
    """
    tests: dict[str, dict[str, Mapping[str, object]]] = defaultdict(dict)
    of: dict[str, int] = {}
    for item in items:
        if mark := item.get_closest_marker("sweep"):
            test = function_of(item.nodeid)
            tests[test][item.nodeid] = item.callspec.params  # type: ignore[attr-defined]
            of[test] = mark.args[0] if mark.args else 0
    return {
        name
        for test, cases in tests.items()
        for name in cases.keys() - ({*list(cases)[:: of[test]]} if of[test] else representatives(cases))
    }


def with_fewer_examples(items: Iterable[pytest.Item]) -> None:
    """Have Hypothesis try a part of the random examples that each test asks for."""
    key = "_hypothesis_internal_use_settings"
    for function in {getattr(item, "function", None) for item in items}:
        if asked := getattr(function, key, None):
            setattr(function, key, settings(asked, max_examples=-(-asked.max_examples // EXAMPLES)))


# --- make test-fast ----------------------------------------------------------------------------------------------


def fast(costs: Mapping[str, float]) -> set[str]:
    """The tests that `make test-fast` takes: of each file some of those that are not slow, always the same ones.

    Args:
        costs: seconds by name of the test.
    """
    files: dict[str, list[str]] = defaultdict(list)
    for name, cost in costs.items():
        files[file_of(name)] += [name] if cost <= FAST else []
    return {
        name
        for names in files.values()
        for name in sorted(names, key=lambda name: zlib.crc32(name.encode()))[: -(-len(names) // SHARE)]
    }


def costs_of(items: Iterable[pytest.Item]) -> dict[str, float]:
    """Seconds of each test that runs alone."""
    known = recorded()
    return {
        item.nodeid: known.get(function_of(item.nodeid), OTHERS) + sum(known.get(each, 0) for each in fixtures_of(item))
        for item in items
    }


def slowest_files_first(items: list[pytest.Item]) -> None:
    """Sort tests by file, so that no process is left with a long one at the end.

    Each file runs in one process (``--dist loadfile``): what its tests share is made once.
    """
    known = recorded()
    files: dict[str, float] = defaultdict(float)
    shared: dict[str, float] = {}
    for item in items:
        file = file_of(item.nodeid)
        files[file] += known.get(function_of(item.nodeid), OTHERS)
        shared |= {name: known.get(name, 0.0) for name in fixtures_of(item)}
    for name, cost in shared.items():
        files[file_of(name)] += cost
    items.sort(key=lambda item: -files[file_of(item.nodeid)])


# --- progress ----------------------------------------------------------------------------------------------------


def minutes(seconds: float) -> str:
    """A time as people read it.

    Example:
        >>> minutes(61.4), minutes(3600)
        ('1:01', '60:00')
    """
    return "{}:{:02}".format(*divmod(round(seconds), 60))


class Progress:
    """Prints how many tests there are and how long they may take, then where it is; failures at once, by name.

    On a terminal one line is written again and again; elsewhere there is a line every half a minute.
    """

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.known = recorded()
        self.cores = min(cores(), config.getoption("numprocesses", None) or 1)
        self.tests = self.done = self.failed = 0
        self.work = self.finished = 0.0
        self.said = self.begun = time.monotonic()

    @property
    def reporter(self) -> Any:
        return self.config.pluginmanager.get_plugin("terminalreporter")

    def begin(self, names: Iterable[str]) -> None:
        names = list(names)
        files = {*map(file_of, names)}
        self.tests, self.begun = len(names), time.monotonic()
        self.work = sum(map(self.cost, names))
        self.work += sum(cost for name, cost in self.known.items() if "::@" in name and file_of(name) in files)
        self.write(f"{self.tests:,} tests, about {minutes(self.left())} minutes if this machine does nothing else")

    def cost(self, name: str) -> float:
        return self.known.get(function_of(name), OTHERS)

    def left(self) -> float:
        """Seconds that the rest may take: as fast as so far, of which little is known in the beginning."""
        elapsed, known = time.monotonic() - self.begun, 20.0
        return (self.work - self.finished) * (elapsed + known) / (self.finished + known * self.cores)

    def write(self, line: str, stays: bool = True) -> None:
        self.said = time.monotonic()
        if self.reporter.isatty:
            self.reporter.rewrite(line, erase=True)
        if stays or not self.reporter.isatty:
            self.reporter.write_line("" if self.reporter.isatty else line)
        self.reporter.flush()

    @pytest.hookimpl(optionalhook=True)
    def pytest_xdist_node_collection_finished(self, ids: list[str]) -> None:
        if not self.tests:
            self.begin(ids)

    def pytest_collection_finish(self, session: pytest.Session) -> None:
        if session.items:
            self.begin(item.nodeid for item in session.items)

    @pytest.hookimpl(tryfirst=True)
    def pytest_report_teststatus(self, report: pytest.TestReport) -> tuple[str, str, str] | None:
        """No letter for each test: it is counted alone. The word is for the summary of what failed."""
        if hasattr(report, "wasxfail") or not isinstance(report, pytest.TestReport):
            return None
        if report.passed and report.when != "call":
            return "", "", ""
        kind = "error" if report.failed and report.when != "call" else report.outcome
        return kind, "", kind.upper() if report.failed else ""

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.failed:
            self.failed += 1
            self.write(f"FAILED {report.nodeid}")
        if report.when == "teardown":
            self.done += 1
            self.finished += self.cost(report.nodeid)
        if time.monotonic() > self.said + (0.5 if self.reporter.isatty else EVERY):
            failed = f", {self.failed} failed" if self.failed else ""
            times = f"{minutes(time.monotonic() - self.begun)} minutes, about {minutes(self.left())} left"
            self.write(f"{self.done:,} of {self.tests:,} tests{failed} in {times}", stays=False)


# --- --record-seconds --------------------------------------------------------------------------------------------


def used() -> float:
    """Processor time of this process and of its children that have ended."""
    return sum(os.times()[:4])


class Recorder:
    """Notes the processor time of each test, and of each fixture that several tests share."""

    def __init__(self, config: pytest.Config) -> None:
        self.config = config
        self.seconds: dict[str, list[float]] = defaultdict(list)
        self.shared = 0.0  # of fixtures, within the present test

    @pytest.hookimpl(wrapper=True)
    def pytest_runtest_protocol(self, item: pytest.Item) -> Iterator[None]:
        before, self.shared = used(), 0.0
        result = yield
        self.seconds[function_of(item.nodeid)].append(used() - before - self.shared)
        return result

    @pytest.hookimpl(wrapper=True)
    def pytest_fixture_setup(self, fixturedef: Any) -> Iterator[None]:
        before = used()
        result = yield
        if fixturedef.scope != "function":
            self.seconds[key(fixturedef)].append(used() - before)
            self.shared += used() - before
        return result

    @pytest.hookimpl(optionalhook=True)
    def pytest_testnodedown(self, node: Any) -> None:
        for name, times in getattr(node, "workeroutput", {}).get("seconds", {}).items():
            self.seconds[name] += times

    def pytest_sessionfinish(self) -> None:
        if hasattr(self.config, "workeroutput"):
            self.config.workeroutput["seconds"] = dict(self.seconds)
            return
        ran = {*map(file_of, self.seconds)}
        means = {name: round(sum(times) / len(times), 2) for name, times in self.seconds.items()}
        kept = {name: mean for name, mean in recorded().items() if file_of(name) not in ran}
        kept |= {name: mean for name, mean in means.items() if mean >= LISTED}
        RECORD.write_text(json.dumps(kept, indent=0, sort_keys=True) + "\n", encoding="utf-8")
