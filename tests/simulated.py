"""A simulated class: what each student hands in and when, and what has to come of it. All of it follows from a seed.

Students hand in what is right, partly right, wrong in a known way, blank, damaged or hostile, in time or late, once or
twice, in the form of nbgrader's exchange. For every submission the class knows the points of each task, the incidents,
what being late costs, and which attempt counts.

python -m tests.simulated    300 students, 3 exercises; with one worker, two, and on a Dask cluster; `--help`
"""

from __future__ import annotations

import argparse
import contextlib
import json
import random
import subprocess
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Sequence
from dataclasses import dataclass, field
from datetime import UTC, datetime, timedelta
from functools import cache
from pathlib import Path
from typing import Any

from minitorch_grading.checks import EXERCISES as TASKS_OF
from minitorch_grading.checks import TASKS
from minitorch_grading.grading.course.gradebook.ledger import Ledger
from tests.grading import classes
from tests.grading.collecting import downloads
from tests.grading.course.test_cluster import Cluster
from tests.grading.sandbox.test_adversarial import ATTACKS, Attack
from tests.grading.wrong_solutions import KNOWN_SOLUTIONS, KnownSolution, as_cell
from tools.clone import RELEASED, SOLUTIONS

EXERCISES = tuple(sorted(TASKS_OF))[:3]
LIMITS = ("--cell-time", "10", "--time", "120", "--memory", "600")
HOSTILE = 0.05  # of the students, in everything that they hand in
ABSENT = 0.04  # of the submissions, which are none

DUE = datetime(2026, 3, 6, 12, 0)
RULES = """
[late]
grace = "15 minutes"
per_day = "10 %"
at_most = "40 %"
until = "7 days"

"""
LATE = (timedelta(minutes=14), timedelta(hours=5), timedelta(days=1, hours=1), timedelta(days=6), timedelta(days=7.1))
EXTENSION, LATER = "3 days", timedelta(days=3)

# Of `tests.grading.sandbox.test_adversarial`, those that do not depend on what the function is, and do not take long.
NAMES = """
    os-exit kill-itself kill-everybody-else memory-at-once large-file many-descriptors memory-files shared-segments
    own-namespace background-process write-the-gradebook read-solutions network not-json json-of-another-shape deep-json
    a-frame-too-long closed-connection endless-output half-a-character input loop-at-top-level memory-bomb
    os-exit-in-function input-in-function raises-half-a-character
""".split()  # noqa: SIM905  a line for each would be longer
BY_NAME = {attack.name: attack for attack in ATTACKS}
HEAD = "\ndef {name}(gradient, shape):"  # of an attack that takes the place of the function

Kinds = tuple[str | frozenset[str], ...]
Worth = KnownSolution | frozenset[float]  # of a task: a known solution, or the parts of its points of which it gets one
ALL, NOTHING = frozenset({1.0}), frozenset({0.0})


@dataclass(frozen=True)
class Work:
    """A notebook that is handed in.

    Attributes:
        text: its content; COURSE stands for the folder of the course.
        worth: of each task.
        kinds: the incidents, of which each that is written as a set may be one of several.
        sound: whether it can be graded at all.
    """

    text: str
    worth: dict[str, Worth]
    kinds: Kinds = ()
    sound: bool = True

    def points(self, seeds: tuple[int, ...]) -> dict[str, set[float]]:
        """The points that each cell may have."""
        return {f"{cell_of(task)}-check": points_of(task, worth, seeds) for task, worth in self.worth.items()}


@cache
def points_of(task: str, worth: Worth, seeds: tuple[int, ...]) -> set[float]:
    """The points of a task. Known solutions are judged here, in this process."""
    if isinstance(worth, KnownSolution):
        return {TASKS[task].score(worth.function, seeds).points}
    return {part * TASKS[task].points for part in worth}


@dataclass(frozen=True)
class Entry:
    """All that a student hands in for an exercise.

    Attributes:
        student, exercise: whose it is, and for what.
        attempts: with their times, in order.
        counts: the number of the attempt that counts.
        extended: whether the student has an extension.
    """

    student: str
    exercise: str
    attempts: tuple[tuple[Work, datetime], ...]
    counts: int
    extended: bool = False

    @property
    def work(self) -> Work:
        """What counts."""
        return self.attempts[self.counts][0]

    @property
    def when(self) -> datetime:
        """When it was handed in for the first time."""
        return next(when for work, when in self.attempts if work.text == self.work.text)

    def cost(self, earned: float, of: float) -> float:
        """The points that being late costs, by hand: ten percent for each day begun, forty at the most."""
        late = self.when - (DUE + LATER if self.extended else DUE)
        if late <= timedelta(minutes=15):
            return 0.0
        days = -(-late // timedelta(days=1))
        return earned if days > 7 else min(earned, of * min(0.1 * days, 0.4))


@dataclass
class Class:
    """All entries, and who has an extension."""

    entries: dict[tuple[str, str], Entry] = field(default_factory=dict)
    extended: list[str] = field(default_factory=list)
    absent: list[tuple[str, str]] = field(default_factory=list)

    def make(self, root: Path) -> None:
        """Write the course, and collect what was handed in by the command line."""
        for exercise in EXERCISES:
            released = (RELEASED / exercise / f"{exercise}.ipynb").read_text()
            classes.course(root, released, exercise)
        extensions = ", ".join(f'{student} = "{EXTENSION}"' for student in self.extended)
        tables = [f"[exercises.{each}]\ndue = {DUE.isoformat()}\nextensions = {{ {extensions} }}" for each in EXERCISES]
        (root / "deadlines.toml").write_text(RULES + "\n\n".join(tables) + "\n")
        students = sorted({student for student, _ in [*self.entries, *self.absent]})
        (root / "roster.csv").write_text("\n".join(["student id", *students]) + "\n")
        for entry in self.entries.values():
            for work, when in entry.attempts:
                text = work.text.replace("COURSE", str(root))
                downloads.folder(
                    root / "inbound", downloads.exchange(entry.student, f"{when} UTC", text, entry.exercise)
                )
        collect = [sys.executable, "-m", "minitorch", "collect", "inbound", "--to", "submitted"]
        done = subprocess.run(collect, cwd=root, env=classes.environment(root), capture_output=True, text=True)
        assert done.returncode in (0, 1), done.stderr


def simulated(seed: int, students: int) -> Class:
    """A class."""
    dice = random.Random(f"class {seed}")
    found = Class()
    names = [f"s{number:03}" for number in range(students)]
    hostile = set(dice.sample(names, max(1, round(HOSTILE * students))))
    found.extended = dice.sample(names, max(1, students // 20))
    for student in names:
        for exercise in EXERCISES:
            if dice.random() < ABSENT:
                found.absent.append((student, exercise))
                continue
            works = [attacking(dice, exercise)] if student in hostile else some(dice, exercise)
            found.entries[student, exercise] = entry(dice, student, exercise, works, student in found.extended)
    return found


def entry(dice: random.Random, student: str, exercise: str, works: Sequence[Work], extended: bool) -> Entry:
    """When each attempt was handed in, and which of them counts: the latest that can be graded."""
    sound = [number for number, work in enumerate(works) if work.sound]
    counts = sound[-1] if sound else len(works) - 1
    when = DUE + (dice.choice(LATE) if dice.random() < 0.25 else timedelta(hours=-2))
    times = [when + timedelta(hours=9) * (number - counts) for number in range(len(works))]
    return Entry(student, exercise, tuple(zip(works, times, strict=True)), counts, extended)


# --- what is handed in -------------------------------------------------------------------------------------------


def cell_of(task: str) -> str:
    """The grade_id of the cell in which a task is solved."""
    return task.partition(".")[2].replace("_", "-")


@cache
def read(folder: Path, exercise: str) -> Any:
    """A notebook of the repository."""
    return json.loads((folder / exercise / f"{exercise}.ipynb").read_text())


@cache
def solutions(exercise: str) -> dict[str, str]:
    """The right source for each task."""
    by_id = {cell["id"]: "".join(cell["source"]) for cell in read(SOLUTIONS, exercise)["cells"]}
    return {task.name: by_id[cell_of(task.name)] for task in TASKS_OF[exercise]}


def filled(exercise: str, sources: dict[str, str]) -> str:
    """The exercise with sources for some of its tasks."""
    made = json.loads(json.dumps(read(RELEASED, exercise)))
    by_cell = {cell_of(task): source for task, source in sources.items()}
    for cell in made["cells"]:
        cell["source"] = by_cell.get(cell["id"], cell["source"])
    return json.dumps(made)


def right(exercise: str) -> Work:
    """Our own solutions."""
    return Work(filled(exercise, solutions(exercise)), dict.fromkeys(solutions(exercise), ALL))


def blank(exercise: str) -> Work:
    """The exercise as it was handed out."""
    return Work(filled(exercise, {}), dict.fromkeys(solutions(exercise), NOTHING))


def partly(dice: random.Random, exercise: str) -> Work:
    """Some of the tasks."""
    tasks = solutions(exercise)
    done = dice.sample(sorted(tasks), dice.randrange(1, len(tasks)))
    text = filled(exercise, {task: tasks[task] for task in done})
    return Work(text, {task: ALL if task in done else NOTHING for task in tasks})


def known_solutions(dice: random.Random, exercise: str) -> Work:
    """A known solution for each task, most of them wrong."""
    chosen = {
        task: dice.choice([each for each in KNOWN_SOLUTIONS if each.task == task]) for task in solutions(exercise)
    }
    return Work(filled(exercise, {task: as_cell(one) for task, one in chosen.items()}), dict(chosen))


def damaged(exercise: str) -> Work:
    """Half a file."""
    text = right(exercise).text
    return Work(text[: len(text) // 2], dict.fromkeys(solutions(exercise), NOTHING), ("not-json",), sound=False)


def attacking(dice: random.Random, exercise: str) -> Work:
    """An attack in the last task, all others right."""
    return attacked(exercise, BY_NAME[dice.choice(NAMES)])


def attacked(exercise: str, attack: Attack) -> Work:
    """The same with a certain attack."""
    sources = dict(solutions(exercise))
    *_, last = sources
    if attack.first.startswith(classes.RIGHT):
        sources[last] += attack.first.removeprefix(classes.RIGHT)
    else:
        sources[last] = attack.first.replace(HEAD, f"def {last.partition('.')[2]}(*_):")
    first = attack.points[0]
    parts = frozenset(points / 30 for points in (first if isinstance(first, frozenset) else (first,)))
    worth: dict[str, Worth] = dict.fromkeys(sources, ALL)
    return Work(filled(exercise, sources), worth | {last: parts}, attack.kinds)


def some(dice: random.Random, exercise: str) -> list[Work]:
    """The attempts of somebody who means well."""
    kinds: dict[Callable[[], list[Work]], float] = {
        lambda: [right(exercise)]: 25,
        lambda: [partly(dice, exercise)]: 20,
        lambda: [known_solutions(dice, exercise)]: 25,
        lambda: [blank(exercise)]: 10,
        lambda: [damaged(exercise)]: 2,
        lambda: [blank(exercise), right(exercise)]: 6,
        lambda: [right(exercise), partly(dice, exercise)]: 4,
        lambda: [known_solutions(dice, exercise), damaged(exercise)]: 4,
        lambda: [partly(dice, exercise)] * 2: 4,
    }
    return dice.choices(list(kinds), list(kinds.values()))[0]()


# --- grading it, with interruptions ------------------------------------------------------------------------------


def journal(root: Path) -> list[dict[str, Any]]:
    """The lines of the journal that are whole."""
    path = root / "grading.jsonl"
    return [json.loads(line) for line in path.read_bytes().split(b"\n")[:-1]] if path.exists() else []


def lines(root: Path) -> int:
    """The number of lines of the journal."""
    path = root / "grading.jsonl"
    return path.read_bytes().count(b"\n") if path.exists() else 0


def graded(root: Path) -> list[tuple[str, str]]:
    """Whose results are in the journal."""
    return [(line["student"], line["exercise"]) for line in journal(root) if "result" in line]


def killed(
    root: Path, options: Sequence[str], moment: float, done: int, workers: Sequence[subprocess.Popen[bytes]] = ()
) -> None:
    """Grade, and kill the grader so many seconds after so many are done; these workers of a cluster with the last."""
    known = graded(root)
    with classes.start(root, *LIMITS, *options, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL) as process:
        while process.poll() is None and lines(root) <= done:  # the first line has the seeds
            time.sleep(0.05)
        for worker in workers:
            worker.kill()
        time.sleep(moment)
        process.kill()
    assert graded(root)[: len(known)] == known, "what was done is kept"


def kill_and_finish(
    root: Path,
    options: Sequence[str],
    seed: int,
    kills: int,
    size: int,
    workers: Sequence[subprocess.Popen[bytes]] = (),
) -> dict[str, Any]:
    """Grade a class in spite of so many interruptions; what the report says at last.

    Args:
        root: the course.
        options: how it is graded.
        seed: from which the moments follow.
        kills: how often the grader is killed.
        size: number of submissions.
        workers: of a cluster; the first is killed halfway.
    """
    dice = random.Random(f"kills {seed} {options[0]}")
    for number in range(kills):
        done = dice.randrange(number * size // kills, (number + 1) * size // kills)
        killed(root, options, dice.uniform(0, 2), done, workers[: number == kills // 2])
        if "--scheduler" not in options:
            left = [*classes.left_running(root), *classes.temporary(root).iterdir()]
            assert not left, f"left of a run that was killed: {left}"
    with classes.start(root, *LIMITS, *options, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        said, complaints = process.communicate()
    assert process.returncode in (0, 1), complaints
    return dict(json.loads(said))


@contextlib.contextmanager
def on_dask(root: Path, workers: int) -> Iterator[tuple[tuple[str, ...], list[subprocess.Popen[bytes]]]]:
    """A cluster on this machine: the options to grade on it, and its workers."""
    cluster = Cluster(root)
    try:
        address = cluster.scheduler()
        yield ("--scheduler", address), cluster.workers(address, workers)
        assert not list(classes.temporary(root).rglob("*.ipynb")), "workers write no submission to a disk"
    finally:
        cluster.end()


# --- is it as it has to be? --------------------------------------------------------------------------------------


def wrong(root: Path, made: Class, said: dict[str, Any]) -> list[str]:
    """All that is not as expected of a class that was graded: empty if nothing is."""
    seeds = tuple(journal(root)[0]["seeds"])
    rows = {(row["student"], row["exercise"]): row for row in said["submissions"]}
    ledger = Ledger.read(root / "gradebook.db")
    found = [*_differing("the report", rows, made.entries), *_differing("the gradebook", ledger.marks, made.entries)]
    found += [f"{who} is in the journal {n} times" for who, n in Counter(graded(root)).items() if n > 1]
    found += _differing("the journal", graded(root), made.entries)
    for who in sorted(made.entries.keys() & rows.keys() & ledger.marks.keys()):
        found += [f"{' '.join(who)}: {each}" for each in _wrong(root, made.entries[who], rows[who], ledger, seeds)]
    missing = {f"Nothing was handed in for {exercise} by" for _, exercise in made.absent}
    found += [f"the report does not say: {each}" for each in missing if each not in " ".join(said["notes"])]
    pages = sum(1 for _ in (root / "feedback").rglob("*.*"))
    if pages != len(made.entries):
        found.append(f"{pages} pages")
    return [*found, *_left(root)]


def _differing(where: str, names: Iterable[tuple[str, str]], wanted: Iterable[tuple[str, str]]) -> list[str]:
    return [f"{' '.join(who)} is not as it should be in {where}" for who in sorted({*names} ^ {*wanted})]


def _wrong(root: Path, entry: Entry, row: dict[str, Any], ledger: Ledger, seeds: tuple[int, ...]) -> Iterator[str]:
    """The same of one submission."""
    who, work = (entry.student, entry.exercise), entry.work
    expected = work.points(seeds)
    points = {each["cell"]: each["points"] for each in row["graded"]}
    if points.keys() != expected.keys() or any(points[cell] not in expected[cell] for cell in points):
        yield f"{points}, and not {expected}: {[each['reason'][:200] for each in row['graded']]}"
    marks = {cell: mark.program for cell, mark in ledger.marks[who].items()}
    known = {each["cell"]: None if each["manual"] else each["points"] for each in row["graded"]}
    if marks != known or row["points"] != sum(points.values()):
        yield f"{marks} in the gradebook, {row['points']} in the table, and {points}"
    slow = {f"{cell_of(task)}-check" for task, worth in work.worth.items() if isinstance(worth, KnownSolution)}
    incidents = [each for each in row["incidents"] if each["kind"] != "call-time" or each["cell"] not in slow]
    kinds = classes.kinds({"incidents": incidents})
    sets = [{each} if isinstance(each, str) else each for each in work.kinds]
    if len(kinds) != len(sets) or any(kind not in each for kind, each in zip(kinds, sets, strict=True)):
        yield f"{kinds}, and not {sets}: {row['incidents']}"
    earned = sum(points.values())
    cost = entry.cost(earned, row["of"])
    if abs(ledger.penalties[who] - cost) > 1e-6:
        yield f"{ledger.penalties[who]:g} points less for being late, and not {cost:g}"
    if ledger.handed_in[who] != entry.when:
        yield f"handed in at {ledger.handed_in[who]}, and not at {entry.when}"
    there = (root / "submitted" / entry.student / entry.exercise / f"{entry.exercise}.ipynb").read_text()
    if there != work.text.replace("COURSE", str(root)):
        yield "another attempt was graded than the one that counts"
    page = (root / "feedback" / entry.student / entry.exercise / f"{entry.exercise}.html").read_text()
    unknown = row["look"] and not earned
    if (f"No points yet of {row['of']:g}" if unknown else f"{earned:g} of {row['of']:g} points") not in page:
        yield "its page has other points"


def _left(root: Path) -> Iterator[str]:
    """What a run must not leave behind."""
    yield from (f"still running: {line}" for line in classes.left_running(root))
    theirs = "dask-scratch-space"  # of a cluster; what we had in it is looked for in `on_dask`
    yield from (f"left: {path}" for path in classes.temporary(root).iterdir() if path.name != theirs)
    ours = {"exercises", "solutions", "inbound", "submitted", "collected", "autograded", "feedback", "temporary"}
    ours |= {"grading.jsonl", "history.jsonl", "gradebook.db", "nbgrader_config.py", "deadlines.toml", "roster.csv"}
    ours |= {"scheduler.json", "cluster.log"}
    yield from (f"left: {path}" for path in root.iterdir() if path.name not in ours)


# --- the command -------------------------------------------------------------------------------------------------


def main() -> int:
    """Grade the class in every way; the status is 1 if anything is not as it should be."""
    parser = argparse.ArgumentParser(prog="python -m tests.simulated", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--students", type=int, default=300)
    parser.add_argument("--seed", type=int, default=int(datetime.now(UTC).timestamp()))
    parser.add_argument("--kills", type=int, default=5, help="how often the grader is killed")
    parser.add_argument("--ways", default="1,2,dask", help="numbers of workers, or dask")
    options = parser.parse_args()
    made = simulated(options.seed, options.students)
    size = len(made.entries)
    print(
        f"seed {options.seed}, {options.students} students: {size} submissions, {len(made.absent)} missing", flush=True
    )
    bad = False
    for way in options.ways.split(","):
        with tempfile.TemporaryDirectory(prefix="minitorch-simulated-") as folder:
            root = Path(folder)
            made.make(root)
            begun = time.monotonic()
            with contextlib.ExitStack() as stack:
                alone = ("--workers", way), list[subprocess.Popen[bytes]]()
                how, workers = stack.enter_context(on_dask(root, 3)) if way == "dask" else alone
                said = kill_and_finish(root, how, options.seed, options.kills, size, workers)
                seconds = time.monotonic() - begun
            found = wrong(root, made, said)
            rate = f"{60 * size / seconds:.0f} submissions a minute, {options.kills} interruptions included"
            print(f"{way}: {seconds:.0f} s, {rate}; {len(found)} not as expected", flush=True)
            for each in found:
                print(f"  {each}")
            bad = bad or bool(found)
    return int(bad)


if __name__ == "__main__":
    sys.exit(main())
