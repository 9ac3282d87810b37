"""The checks of an exercise that are the instructor's own: `checks.py` in its folder, and `harness.py` if there is one.

They are loaded where answers are judged, never where student code runs. There, `checks` is a module that is made here,
with a driver in place of each task. Files are loaded from their text, which may have come from another machine.
"""

from __future__ import annotations

import sys
import traceback
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from functools import cache
from pathlib import Path
from types import ModuleType

from minitorch.errors import CommandError

from .checks import TASKS, Task
from .handing_out.release import OWN
from .harness import call_with_arguments

CHECKS, HARNESS = (name.removesuffix(".py") for name in OWN)


@dataclass(frozen=True)
class Checks:
    """The tasks that the cells of an exercise may ask for: those of the package, or its own.

    Attributes:
        tasks: by their names.
        sources: of `checks.py` and `harness.py`, by name without the ending; none if the tasks are the package's.
        driven: the names of the tasks whose driver is in `harness.py`.
    """

    tasks: Mapping[str, Task]
    sources: Mapping[str, str] = field(default_factory=dict)
    driven: frozenset[str] = frozenset()

    @property
    def inside(self) -> dict[str, str]:
        """The modules that are where student code runs, by their names: a driver in place of each task."""
        if not self.sources:
            return {}
        lines = ["from minitorch_grading.harness import Needs, call_with_arguments, driver"]
        for name, task in self.tasks.items():
            made = f"{name} = driver({name!r}, Needs(), {task.driver.seconds!r})(call_with_arguments)"
            lines.append(f"from {HARNESS} import {name}" if name in self.driven else made)
        return {**self.sources, CHECKS: "\n".join([*lines, ""])}


PACKAGED = Checks(TASKS)


def sources_in(folder: Path) -> dict[str, str]:
    """The sources of an exercise's own checks; empty if it has none."""
    if not (folder / OWN[0]).is_file():
        return {}
    return {Path(name).stem: (folder / name).read_text(encoding="utf-8") for name in OWN if (folder / name).is_file()}


def checks_from(sources: Mapping[str, str], folder: str) -> Checks:
    """The checks of an exercise with such sources; those of the package if there are none.

    Args:
        sources: as `sources_in` gives them.
        folder: where they are from.

    Raises:
        CommandError: as `load` does.
    """
    return load(tuple(sorted(sources.items())), folder) if sources else PACKAGED


@cache
def load(texts: tuple[tuple[str, str], ...], folder: str) -> Checks:
    """Load an exercise's own checks, and try what inputs they make.

    Args:
        texts: names without the ending, and sources.
        folder: where they are from.

    Raises:
        CommandError: with file and line, if they fail, or what they define is no task that can be graded.
    """
    sources = dict(texts)
    files = {name: str(Path(folder) / f"{name}.py") for name in sources}
    before = {name: sys.modules.pop(name, None) for name in (HARNESS, CHECKS)}
    try:
        with naming_the_line(set(files.values())):
            # `checks` imports `harness`, as it does in the folder of the exercise.
            modules = {name: _module(name, sources[name], files[name]) for name in (HARNESS, CHECKS) if name in sources}
            tasks = {name: each for name, each in vars(modules[CHECKS]).items() if isinstance(each, Task)}
            for each in tasks.values():
                each.inputs(0)
    finally:
        for name, module in before.items():
            sys.modules.pop(name, None)
            if module is not None:
                sys.modules[name] = module
    if not tasks:
        raise CommandError(f'{files[CHECKS]} defines no task: `mean = task("mean", ...)`')
    for name, each in tasks.items():
        if each.name != name:
            raise CommandError(f"{files[CHECKS]}: the task {each.name} has to have its own name, and is called {name}")
    driven = {name for name in tasks if HARNESS in modules and vars(modules[HARNESS]).get(name) is tasks[name].driver}
    for name, each in tasks.items():
        if name not in driven and each.driver.function is not call_with_arguments:
            raise CommandError(
                f"{files[CHECKS]}: the driver of the task {name} has to be in {OWN[1]}, under the name {name}"
            )
    return Checks(tasks, sources, frozenset(driven))


def _module(name: str, source: str, file: str) -> ModuleType:
    module = ModuleType(name)
    module.__file__ = file
    sys.modules[name] = module
    exec(compile(source, file, "exec", dont_inherit=True), vars(module))
    return module


@contextmanager
def naming_the_line(files: set[str]) -> Iterator[None]:
    """Make any exception a `CommandError` with the innermost line that is in one of the files."""
    try:
        yield
    except CommandError:
        raise
    except (Exception, SystemExit) as error:
        place = ", ".join(sorted(files))
        if isinstance(error, SyntaxError) and error.filename in files:
            place = f"{error.filename}, line {error.lineno}"
        elif frames := [each for each in traceback.extract_tb(error.__traceback__) if each.filename in files]:
            place = f"{frames[-1].filename}, line {frames[-1].lineno}"
        said = (str(error).splitlines() or [""])[0]
        raise CommandError(f"{place}: {type(error).__name__}: {said}") from error
