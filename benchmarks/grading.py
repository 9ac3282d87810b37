"""How long grading takes: minitorch beside nbgrader, and beside the cells alone.

python -m benchmarks.grading            the tables
python -m benchmarks.grading --save     puts them into docs/sandbox.md
python -m benchmarks.grading --check    ends with 1 if a bound is missed

First a few copies of the blank exercise and of its solutions, by each contender in a process of its own, in turns, in
several rounds: medians of seconds for each submission and worker, and of processor time, which other programs lengthen
less. Then a class of 300 submissions by the command itself, from the shell on, and the same command again.
"""

from __future__ import annotations

import argparse
import contextlib
import json
import os
import pstats
import re
import statistics
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path

from . import machine
from .graders import CONTENDERS, EXERCISES, KINDS, ROOT, Step, make_class
from .progress import progress
from .report import saved

PAGE = ROOT / "docs" / "sandbox.md"
ROUNDS, STUDENTS, CLASS, RERUNS = 3, 8, 300, 5
AT_MOST = 0.3  # seconds of a submission beyond what its cells take: a bound that the project promises
AT_LEAST = 2.0  # times as fast as nbgrader, on one processor
AT_MOST_AGAIN = 2.0  # seconds of a rerun of the class
WORKERS = 2
ALONE, ONE, TWO, RIVAL = CONTENDERS
PLACES = ("1 worker", f"{WORKERS} workers", f"Dask, {WORKERS} workers on this machine")

Key = tuple[str, str, str]  # contender, exercise, kind


@dataclass
class Found:
    """All that was measured.

    Attributes:
        steps: by contender, exercise and kind, the time and processor time of a submission in each round.
        whole: seconds of the command for the class, by what it was run on.
        again: time and processor time of each rerun.
        shares: the parts of a rerun.
        size: of the class.
    """

    steps: dict[Key, list[Step]] = field(default_factory=dict)
    whole: dict[str, float] = field(default_factory=dict)
    again: list[Step] = field(default_factory=list)
    shares: dict[str, float] = field(default_factory=dict)
    size: int = 0

    def median(self, contender: str, exercise: str, kind: str) -> Step:
        """The median of the rounds."""
        times, used = zip(*self.steps[contender, exercise, kind], strict=True)
        return statistics.median(times), statistics.median(used)


# --- a submission ------------------------------------------------------------------------------------------------


def measure(
    found: Found, exercises: list[str], rounds: int, students: int, advance: Callable[[str, str], None]
) -> None:
    """Let each contender grade each exercise, in turns."""
    for number in range(rounds):
        for exercise in exercises:
            for name in list(CONTENDERS)[:: 1 if number % 2 else -1]:
                advance(exercise, name)
                for kind, step in by(name, exercise, students).items():
                    found.steps.setdefault((name, exercise, kind), []).append(step)


def by(name: str, exercise: str, students: int) -> dict[str, Step]:
    """The times of one contender, in a process of its own, by kind.

    Raises:
        SystemExit: if it does not give the points that it should.
    """
    command = [sys.executable, "-m", "benchmarks.graders", name, exercise, str(students)]
    done = subprocess.run(command, cwd=ROOT, env=environment(), capture_output=True, text=True)
    if done.returncode:
        raise SystemExit(f"{name} has not graded {exercise}:\n{done.stderr[-3000:]}")
    return {kind: (wall, used) for kind, (wall, used) in json.loads(done.stdout)["each"].items()}


def environment() -> dict[str, str]:
    """The variables of a process that runs this checkout, and may write bytecode as for everybody else."""
    kept = {name: text for name, text in os.environ.items() if name != "PYTHONDONTWRITEBYTECODE"}
    return {**kept, "PYTHONPATH": str(ROOT)}


# --- a class -----------------------------------------------------------------------------------------------------


def measure_class(found: Found, exercises: list[str], size: int, advance: Callable[[str, str], None]) -> None:
    """Grade a class by the command: one worker, two workers, a Dask cluster; then again, with nothing to do."""
    for name in PLACES:
        advance(f"a class of {size}", name)
        with tempfile.TemporaryDirectory(prefix="minitorch-class-") as folder:
            root = Path(folder) / "course"
            make_class(root, tuple(exercises), size // len(exercises), ("right",))
            with cluster(Path(folder)) if "Dask" in name else contextlib.nullcontext() as address:
                options = ["--scheduler", address] if address else ["--workers", name.split()[0]]
                found.whole[name] = run(root, *options)[0]
            if name == PLACES[0]:
                advance(f"a class of {size}", "again")
                found.again = [run(root, *options) for _ in range(RERUNS)]
                found.shares = shares(root)
    found.size = size // len(exercises) * len(exercises)


def run(root: Path, *options: str, profile: str = "") -> Step:
    """Run the command; its time and processor time.

    Raises:
        SystemExit: if the class is not graded as it should be.
    """
    profiled = ["-m", "cProfile", "-o", profile] if profile else []
    command = [sys.executable, *profiled, "-m", "minitorch", "grade", str(root / "submitted"), "--json", *options]
    begun, before = time.perf_counter(), os.times()
    done = subprocess.run(command, cwd=root, env=environment(), capture_output=True, text=True)
    step = time.perf_counter() - begun, sum(os.times()[2:4]) - sum(before[2:4])
    rows = json.loads(done.stdout or "{}").get("submissions", [])
    if done.returncode or not rows or any(row["points"] != row["of"] for row in rows):
        raise SystemExit(f"not all have all points:\n{done.stderr[-3000:]}")
    return step


@contextlib.contextmanager
def cluster(folder: Path) -> Iterator[str]:
    """A Dask scheduler and its workers: the address."""
    file, log = folder / "scheduler.json", folder / "cluster.log"
    dask = [sys.executable, "-m", "dask"]
    scheduler = ["scheduler", "--host", "127.0.0.1", "--port", "0", "--no-dashboard", "--scheduler-file", str(file)]
    worker = ["worker", "--scheduler-file", str(file), "--nthreads", "1", "--no-nanny", "--no-dashboard"]
    started: list[subprocess.Popen[bytes]] = []
    with log.open("wb") as out:
        try:
            for command in (scheduler, *[worker] * WORKERS):
                started.append(
                    subprocess.Popen([*dask, *command], cwd=folder, env=environment(), stdout=out, stderr=out)
                )
                end = time.monotonic() + 60
                while not file.exists() or log.read_text().count("Register worker") < len(started) - 1:
                    if time.monotonic() > end:
                        raise SystemExit(f"the cluster did not start:\n{log.read_text()}")
                    time.sleep(0.05)
            yield json.loads(file.read_text())["address"]
        finally:
            for process in started:
                process.kill()
                process.wait()


PARTS = {
    "importing modules": ("<frozen importlib._bootstrap>", "_find_and_load"),
    "trying the sandbox": ("grading/course/running/grade.py", "check_safety"),
    "finding the folders": ("grading/course/folders.py", "submissions"),
    "reading the notebooks": ("grading/course/running/plan.py", "looked_at"),
    "reading journal, gradebook and history": ("grading/course/gradebook/recorder.py", "__init__"),
    "comparing them": ("grading/course/running/keeper.py", "known"),
}
"""The functions that a rerun consists of. None of them is called by another."""


def shares(root: Path) -> dict[str, float]:
    """The shares of a rerun, by a profile, which makes all of it slower."""
    with tempfile.TemporaryDirectory(prefix="minitorch-profile-") as folder:
        file = str(Path(folder) / "profile")
        run(root, profile=file)
        stats = vars(pstats.Stats(file))
    found = dict.fromkeys(PARTS, 0.0)
    for (path, _, name), (_, _, _, seconds, _) in stats["stats"].items():
        for part, (end, wanted) in PARTS.items():
            if path.endswith(end) and name == wanted:
                found[part] += seconds / stats["total_tt"]
    return {**found, "all else": 1 - sum(found.values())}


# --- the tables --------------------------------------------------------------------------------------------------


def overhead(found: Found, exercise: str, kind: str, contender: str) -> Step:
    """Seconds of a submission beyond its cells, and of processor time."""
    (wall, used), (alone, least) = found.median(contender, exercise, kind), found.median(ALONE, exercise, kind)
    return wall - alone, used - least


def missed(found: Found) -> list[str]:
    """The bounds that are not kept."""
    said = []
    for exercise, kind in rows(found):
        for contender in (ONE, TWO):
            if (more := overhead(found, exercise, kind, contender)[0]) > AT_MOST:
                said.append(f"{exercise}, {kind}, {contender}: {more:.2f} s beyond its cells, at most {AT_MOST} s")
            if (times := ratio(found, exercise, kind, contender)) < AT_LEAST:
                said.append(f"{exercise}, {kind}, {contender}: {times:.1f} × as fast as nbgrader, at least {AT_LEAST}")
    if found.again and (again := statistics.median(wall for wall, _ in found.again)) > AT_MOST_AGAIN:
        said.append(f"a rerun: {again:.2f} s, at most {AT_MOST_AGAIN} s")
    return said


def ratio(found: Found, exercise: str, kind: str, contender: str) -> float:
    """How many times as fast as nbgrader one worker of ours is."""
    return found.median(RIVAL, exercise, kind)[0] / found.median(contender, exercise, kind)[0]


def rows(found: Found) -> list[tuple[str, str]]:
    """Exercises and kinds that were measured."""
    return [(each, kind) for each in EXERCISES for kind in KINDS if (ALONE, each, kind) in found.steps]


def markdown(found: Found, described: dict[str, object], how: str) -> str:
    """The tables, with the machine in a sentence, and how it was measured."""
    lines = [f"{described['processor']}, {described['cores']} cores, Python {described['python']}; {how}."]
    if found.steps:
        names = ["the cells alone", ONE, TWO, "beyond the cells", RIVAL, "minitorch is"]
        lines += ["", f"| seconds of a submission | {' | '.join(names)} |", f"|---{'|---' * len(names)}|"]
    for exercise, kind in rows(found):
        cells = [f"{wall:.2f} ({used:.2f})" for wall, used in (found.median(x, exercise, kind) for x in CONTENDERS)]
        more = ", ".join("{:.2f} ({:.2f})".format(*overhead(found, exercise, kind, each)) for each in (ONE, TWO))
        times = " / ".join(f"{ratio(found, exercise, kind, each):.1f} ×" for each in (ONE, TWO))
        lines.append(f"| {exercise}, {kind} | {' | '.join(cells[:3])} | {more} | {cells[3]} | {times} as fast |")
    if found.whole:
        lines += ["", f"| {found.size} right submissions | submissions a minute | the whole command |", "|---|---|---|"]
        lines += [f"| {name} | {60 * found.size / time:.0f} | {time:.0f} s |" for name, time in found.whole.items()]
        wall, used = (statistics.median(values) for values in zip(*found.again, strict=True))
        lines += [f"| the same command again | | {wall:.2f} s ({used:.2f}) |", ""]
        parts = sorted(found.shares.items(), key=lambda item: -item[1])
        lines += [f"Of the time of a rerun: {', '.join(f'{name} {share:.0%}' for name, share in parts)}."]
    return "\n".join(lines)


def main(arguments: list[str] | None = None) -> int:
    """Measure, print and save."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.grading", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--rounds", type=int, default=ROUNDS)
    parser.add_argument("--students", type=int, default=STUDENTS, help="of each kind, in a round")
    parser.add_argument("--class", type=int, default=CLASS, dest="size", help="submissions of the class; 0 for none")
    parser.add_argument("--exercises", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--save", action="store_true", help=f"write the tables into {PAGE.relative_to(ROOT)}")
    parser.add_argument("--check", action="store_true", help="end with 1 if a bound is missed")
    options = parser.parse_args(arguments)
    exercises = [name for name in EXERCISES if re.search(options.exercises, name)]
    if not exercises:
        raise SystemExit(f"no exercise matches {options.exercises!r}")
    if options.students <= WORKERS:
        raise SystemExit(f"--students has to be more than {WORKERS}")
    found, load = Found(), f"{os.getloadavg()[0]:.1f} programs were running before"
    how = f"rounds: {options.rounds}, students of each kind: {options.students}; {load}"
    with progress(options.rounds * len(exercises) * len(CONTENDERS) + len(PLACES) + 1) as advance:
        measure(found, exercises, options.rounds, options.students, advance)
        if options.size:
            measure_class(found, exercises, options.size, advance)
    table = markdown(found, machine.describe(), how)
    print(table)
    for sentence in (bounds := missed(found)):
        print(f"MISSED: {sentence}")
    if options.save:
        PAGE.write_text(saved(PAGE.read_text(encoding="utf-8"), table), encoding="utf-8")
    return int(bool(bounds) and options.check)


if __name__ == "__main__":
    sys.exit(main())
