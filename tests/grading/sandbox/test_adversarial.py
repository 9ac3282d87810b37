"""Hostile and broken submissions: each ends as a named incident, with the points that could be given.

The whole class is graded by one command, and nothing but its results is different afterwards. Each student hands in two
tasks; the first holds the attack, the second is right. So 30 points for the second say that the attack ended there.
"""

from __future__ import annotations

import hashlib
import json
import os
import sqlite3
import tempfile
from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest

from tests.grading import classes
from tests.grading.classes import BLANK, RIGHT, added, hand_in, known, notebook, sample

MARK = f"98765.{os.getpid():09}1"  # how long the attackers' processes sleep: by it they are found


@dataclass(frozen=True)
class Attack:
    """What is handed in as the first task, what it should come to, and under what name.

    `kinds` are the incidents, of which each that is written as a set may be one of several; `points` are those of the
    first and the second task, where a set, too, says that each of its members may be.
    """

    name: str
    first: str
    kinds: tuple[str | frozenset[str], ...]
    points: tuple[float | frozenset[int], float] = (30, 30)


@dataclass(frozen=True)
class Accident:
    """A submission whose file is broken: the text of the file, and what it should come to."""

    name: str
    content: str
    kinds: tuple[str, ...]
    points: tuple[float, float] = (30, 30)
    file: str = field(default="", kw_only=True)


def then(source: str) -> str:
    """A right solution, and something after it."""
    return f"{RIGHT}\n{source}"


def indent(source: str) -> str:
    """A block."""
    return "\n".join(f"    {line}" for line in source.strip().splitlines())


def inside(source: str) -> str:
    """A solution whose function does something else."""
    return "\ndef {name}(gradient, shape):\n" + indent(source)


SLEEPERS = f"""
import os, subprocess, sys
subprocess.Popen(["sleep", "{MARK}"])
if os.fork() == 0:
    os.setsid()
    os.execlp("sleep", "sleep", "{MARK}")
"""

SEARCH = """
import os
found = []
for folder, inner, names in os.walk("/"):
    inner[:] = [name for name in inner if name not in ("proc", "usr", "lib")]  # `lib`: of Python and its environment
    found += [os.path.join(folder, name) for name in names if name.endswith((".ipynb", ".db", ".jsonl"))]
    hidden = {"solutions", "tests", "submitted", "wrong_solutions"}
    found += [os.path.join(folder, name) for name in inner if name in hidden]
open(found[0] if found else "COURSE/gradebook.db").read(1)
"""


# A frame is what the programs inside send: student code has the socket, too, and can send anything.
def sends(*frames: str) -> str:
    """Source that sends frames, each given as an expression."""
    lines = [f"connection.sendall(pack(len({each})) + {each})" for each in frames]
    begin = "import struct\nconnection, pack = get_ipython().outbox.connection, struct.Struct('!I').pack"
    return "\n".join([begin, *lines])


MANY_FRAMES = "for _ in range(450):\n" + indent(sends("bytes(7 * 2**20)"))

FORGED = """
import json
for message in ({"task": "eager.unbroadcast"}, {"answer": []}, {"answer": {"list": []}}, {"done": {}}):
    content = json.dumps(message).encode()
    get_ipython().outbox.connection.sendall(len(content).to_bytes(4) + content)
return gradient
"""

MEMORY_FILE = """
import os
for _ in range(300):
    handle = os.memfd_create("x")
    os.ftruncate(handle, 10**7); os.write(handle, bytes(10**7))
"""

SEGMENTS = """
import ctypes
libc = ctypes.CDLL(None, use_errno=True)
segment = libc.shmget(0, ctypes.c_size_t(10**9), 0o1600)
if segment < 0: raise OSError(ctypes.get_errno(), "shmget")
"""

OWN_NAMESPACE = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
if libc.unshare(0x10000000 | 0x20000): raise OSError(ctypes.get_errno(), "unshare")
libc.mount(b"tmpfs", b"/tmp", b"tmpfs", 0, b"size=2000000000")
for i in range(40): open(f"/tmp/{i}", "wb").write(bytes(30_000_000))
"""

FIRST_PROCESS = """
import ctypes, os
libc = ctypes.CDLL(None, use_errno=True)
found = []
for path in ("environ", "mem", "fd", "root", "cwd"):
    try:
        found.append(open(f"/proc/1/{path}", "rb").read(1) if path[-1] in "nm" else os.listdir(f"/proc/1/{path}"))
    except OSError: pass
if not libc.ptrace(16, 1, 0, 0): found.append("attached")
try:
    import resource
    resource.prlimit(1, resource.RLIMIT_AS, (10**9, 10**9)); found.append("limited")
except PermissionError: pass
for number in (9, 15, 19):
    try: os.kill(1, number)
    except PermissionError: pass
print("FOUND", found)
"""

LISTENS = """
import os
print("SECRETS", [value for value in os.environ.values() if "planted" in value])
def hook(info): print("HOOK", info.raw_cell)
get_ipython().events.register("pre_run_cell", hook)
"""

ALWAYS = """
class Always:
    def __eq__(self, other): return True
    def __getattr__(self, name): return Always()
    def __call__(self, *arguments): return Always()
return Always()
"""

NO_ASSERT = """
import ast
class Remove(ast.NodeTransformer):
    def visit_Assert(self, node): return None
get_ipython().ast_transformers.append(Remove())
def first(gradient, shape): return gradient
"""

PATCHED = """
checks.eager.unbroadcast = lambda student: 30.0
from minitorch.classroom import harness
harness.Driver.__call__ = lambda *arguments: 30.0
def first(gradient, shape): return gradient
"""

STUBBORN = """
import signal
signal.signal(signal.SIGINT, signal.SIG_IGN)
while True:
    pass
"""

# Finds the seeds in the caller's variables, and the right answer in the check's own module.
LOOKS_IT_UP = """
import sys
def first(gradient, shape):
    frame = sys._getframe()
    while frame is not None and "seeds" not in frame.f_locals:
        frame = frame.f_back
    module = sys.modules["minitorch_grading.checks.eager"]
    return type(gradient)(module._sum_to(gradient.numpy(), shape))
"""

# Each cell shows less than a cell may, and all of them more than anybody can look at.
SHOW = "display({'text/plain': 'x' * 9000}, raw=True)"
MANY_OUTPUTS = "\n".join(["from IPython.display import display", *[SHOW] * 20])

OVERRUN = frozenset({"processes", "cell-time"})  # on a busy machine the time may be over before anybody has counted
SLOW_DISK = frozenset({"disk", "cell-time"})  # as long as thousands of folders take on a busy machine
TOO_MUCH = frozenset({"output", "memory", "cell-time"})
MAY_DIE = (frozenset({0, 30}), 30)  # it depends on whether the interruption comes before the memory is used up
DIES = (0, 30)  # the cell is lost, and its function with it

ATTACKS = [
    Attack("loop-at-top-level", then("while True: pass"), ("cell-time",)),
    Attack("loop-in-function", inside("while True: pass"), ("cell-time",), DIES),
    Attack("loop-that-ignores-interrupts", then(STUBBORN), ("cell-time",), DIES),
    Attack("os-exit", then("import os; os._exit(0)"), ("kernel-died",), DIES),
    Attack("os-exit-in-function", inside("import os; os._exit(0)"), ("kernel-died",), DIES),
    Attack("kill-itself", then("import os; os.kill(os.getpid(), 9)"), ("kernel-died",), DIES),
    Attack("kill-everybody-else", then("import os\ntry: os.kill(-1, 9)\nexcept OSError: pass"), ()),
    Attack("memory-bomb", then("x = []\nwhile True: x.append(bytearray(10**7))"), ("memory",), DIES),
    Attack("memory-at-once", then("bytearray(10**11)"), ("memory",)),
    Attack("fork-bomb", then("import os\nwhile True:\n  try: os.fork()\n  except OSError: pass"), (OVERRUN,), DIES),
    Attack("disk-fill", then("for i in range(10**6): open(f'/tmp/{i}', 'wb').write(bytes(10**6))"), ("disk",)),
    Attack("large-file", then("open('x', 'wb').truncate(10**11)"), ("disk",)),
    Attack("many-files", then("for i in range(10**6): open(f'/tmp/{i}', 'w').close()"), ("disk",)),
    Attack("nested-folders", then("import os\nwhile True: os.mkdir('x'); os.chdir('x')"), (SLOW_DISK,)),
    Attack("many-descriptors", then("import os\nx = [os.pipe() for _ in range(10000)]"), ("files",)),
    Attack("memory-files", then(MEMORY_FILE), ("refused",)),
    Attack("shared-segments", then(SEGMENTS), ("refused",)),
    Attack("own-namespace", then(OWN_NAMESPACE), ("refused",)),
    Attack("the-first-process", then(FIRST_PROCESS), ()),
    Attack("planted-secret", then(LISTENS), ()),
    Attack("background-process", then(SLEEPERS), ("background",)),
    Attack("write-the-gradebook", then("open('COURSE/gradebook.db', 'wb').write(b'A+')"), ("outside",)),
    Attack("read-solutions", then("open('COURSE/solutions/01-sample/01-sample.ipynb').read()"), ("outside",)),
    Attack("read-another-student", then("open('COURSE/submitted/ana/01-sample/01-sample.ipynb').read()"), ("outside",)),
    Attack("search-for-hidden-tests", then(SEARCH), ("outside",)),
    Attack("network", then("import urllib.request; urllib.request.urlopen('http://192.0.2.1')"), ("outside",)),
    Attack("write-the-image", then("import sys; open(next(p for p in sys.path if 'image' in p), 'w')"), ("outside",)),
    Attack("patch-assert", NO_ASSERT, ("tampered",), DIES),
    Attack("patch-the-checks", PATCHED, ("tampered",), DIES),
    Attack("patch-equality", inside(ALWAYS), (), DIES),
    Attack("forged-answers", inside(FORGED), ("no-answers", "tampered"), DIES),
    Attack("not-json", then(sends("b'x' * 10")), ("tampered",)),
    Attack("json-of-another-shape", then(sends("b'[]'", "b'{}'", "b'{\"stream\": null}'")), ("tampered",)),
    Attack("deep-json", then(sends("b'[' * 10**6")), ("tampered",)),
    Attack("a-number-too-long", then(sends("b'{\"done\": ' + b'9' * 10**6 + b'}'")), ("tampered",)),
    Attack("half-a-frame", then("get_ipython().outbox.connection.sendall(b'\\x00\\x10')"), ("cell-time",), DIES),
    Attack("a-frame-too-long", then(sends("bytes(10**7)")), ("output",), DIES),
    Attack(
        "many-frames", then("for _ in range(450):\n" + indent(sends("bytes(7 * 2**20)"))), ("tampered", "output"), DIES
    ),
    Attack("closed-connection", then("get_ipython().outbox.connection.close()"), ("kernel-died",), DIES),
    Attack("endless-output", then("i = 0\nwhile True: print(i); i += 1"), ("output",)),
    Attack("a-gigabyte", then("for _ in range(10**6): print('x' * 1000)"), (frozenset({"output", "memory"}),), MAY_DIE),
    Attack("a-gigabyte-at-once", then("print('x' * 10**9)"), (TOO_MUCH,), MAY_DIE),
    Attack("html", then("from IPython.display import HTML, display\ndisplay(HTML('<script>alert(1)</script>'))"), ()),
    Attack("looks-it-up", LOOKS_IT_UP, (), DIES),
    Attack("pipe-for-a-time", RIGHT, ("timestamp",)),  # what the grader opens besides the notebook
    Attack("half-a-character", then("half = '\ud800'"), ()),
    Attack("raises-half-a-character", inside("raise ValueError(chr(0xd800))"), (), DIES),
    Attack("input", then("input('password: ')"), ("input",)),
    Attack("input-in-function", inside("input()"), ("input",), DIES),
]

CELLS = sample(RIGHT, RIGHT)
SETUP, FIRST, FIRST_CHECK, SECOND, SECOND_CHECK = CELLS
EASY_CHECK = {**FIRST_CHECK, "source": "30.0"}
MORE_POINTS = json.loads(json.dumps(FIRST_CHECK).replace('"points": 30', '"points": 3000'))
AS_HANDED_OUT = sample(BLANK, BLANK)[1]
LATER = known("def observe(): ...", "third", solution=True, locked=False)
LATER_CHECK = known("checks.eager.observe(observe)", "third-check", grade=True, points=35)

ACCIDENTS = [
    Accident("wrong-kernelspec", notebook(CELLS, "julia-1.11", "julia"), ("wrong-kernel",)),
    Accident("damaged-json", notebook(CELLS)[:-40], ("not-json",), (0, 0)),
    Accident("not-a-notebook", "[1, 2, 3]", ("not-json",), (0, 0)),
    Accident("too-large", notebook([*CELLS, added("#" * 6_000_000)]), ("too-large",), (0, 0)),
    Accident("edited-check", notebook([SETUP, FIRST, EASY_CHECK, SECOND, SECOND_CHECK]), ("cell-edited",)),
    Accident("edited-points", notebook([SETUP, FIRST, MORE_POINTS, SECOND, SECOND_CHECK]), ("cell-edited",)),
    Accident("deleted-check", notebook([SETUP, FIRST, SECOND, SECOND_CHECK]), ("cell-missing",)),
    Accident("deleted-solution", notebook([SETUP, FIRST_CHECK, SECOND, SECOND_CHECK]), ("cell-missing",), DIES),
    Accident("doubled-solution", notebook([SETUP, FIRST, AS_HANDED_OUT, *CELLS[2:]]), ("cell-twice",)),
    Accident("doubled-check", notebook([*CELLS, FIRST_CHECK]), ("cell-twice",)),
    Accident("check-of-a-task-that-was-dropped", notebook([*CELLS, LATER, LATER_CHECK]), ("check-dropped",)),
    Accident("other-order", notebook(CELLS[::-1]), ()),
    Accident("many-outputs", notebook([*CELLS, *[added(MANY_OUTPUTS)] * 30]), ("output",)),
    Accident("renamed-notebook", notebook(CELLS), ("renamed",), file="01-sample (copy).ipynb"),
    Accident("another-exercise", notebook([added("1 + 1")]), ("wrong-exercise",), (0, 0)),
]

ALL = [*ATTACKS, *ACCIDENTS]


def state(root: Path, *ours: str) -> dict[str, str]:
    """What is in each file of a course, but for what grading has to write."""
    return {
        str(path.relative_to(root)): hashlib.sha256(path.read_bytes()).hexdigest()
        for path in sorted(root.rglob("*"))
        if path.is_file() and path.relative_to(root).parts[0] not in ours
    }


def scores(root: Path) -> dict[tuple[str, str], float]:
    """The points in the gradebook, read without nbgrader, which might not show everything."""
    rows = """
        select submitted_assignment.student_id, base_cell.name, grade.auto_score from grade
        join base_cell on grade.cell_id = base_cell.id
        join submitted_notebook on grade.notebook_id = submitted_notebook.id
        join submitted_assignment on submitted_notebook.assignment_id = submitted_assignment.id
    """
    with sqlite3.connect(f"file:{root / 'gradebook.db'}?mode=ro", uri=True) as connection:
        return {(student, cell): score for student, cell, score in connection.execute(rows)}


@pytest.fixture(scope="module")
def graded() -> Iterator[tuple[Path, dict[str, dict[str, Any]], dict[str, str]]]:
    """The course, the report by student, and what was there before."""
    classes.needs_bubblewrap()
    with tempfile.TemporaryDirectory(prefix="minitorch-hostile-") as folder:
        yield _graded(Path(folder))


def _graded(root: Path) -> tuple[Path, dict[str, dict[str, Any]], dict[str, str]]:
    classes.course(root)
    hand_in(root, "ana", notebook(CELLS))
    for attack in ATTACKS:
        source = attack.first.replace("COURSE", str(root)).replace("TEMPORARY", str(classes.temporary(root)))
        hand_in(root, attack.name, notebook(sample(source, RIGHT)))
    for accident in ACCIDENTS:
        hand_in(root, accident.name, accident.content, accident.file)
    os.mkfifo(root / "submitted" / "pipe-for-a-time" / classes.EXERCISE / "timestamp.txt")
    link = hand_in(root, "link-to-another-student", "")
    link.unlink()
    link.symlink_to(root / "submitted" / "ana" / classes.EXERCISE / f"{classes.EXERCISE}.ipynb")
    before = state(root)
    limits = ("--cell-time", "4", "--time", "40", "--memory", "600")
    return root, classes.grade(root, *limits, "--workers", "3"), before


@pytest.mark.parametrize("attack", ALL, ids=lambda attack: attack.name)
def test_ends_as_a_named_incident_with_the_points_that_could_be_given(attack: Attack | Accident, graded: Any) -> None:
    row = graded[1][attack.name]
    found = classes.kinds(row)
    shown = json.dumps(row["incidents"], indent=1)
    assert len(found) == len(attack.kinds), shown
    for kind, expected in zip(found, attack.kinds, strict=True):
        assert kind in ({expected} if isinstance(expected, str) else expected), shown
    second = classes.points(row)["second"]
    assert second == attack.points[1], shown
    first = attack.points[0]
    assert classes.points(row)["first"] in (first if isinstance(first, frozenset) else {first}), shown


def test_a_link_is_not_followed(graded: Any) -> None:
    row = graded[1]["link-to-another-student"]
    assert (row["points"], classes.kinds(row), row["look"]) == (0, ["not-a-file"], True)


def test_no_zero_is_silent(graded: Any) -> None:
    silent = [
        (student, each["cell"])
        for student, row in graded[1].items()
        for each in row["graded"]
        if each["points"] < each["of"] and not each["reason"]
    ]
    assert not silent


def test_nothing_else_was_changed(graded: Any) -> None:
    root, _, before = graded
    assert (
        state(root, "autograded", "feedback", "gradebook.db", "grading.jsonl", "history.jsonl", "nbgrader_config.py")
        == before
    )


def test_the_gradebook_holds_what_the_report_says_and_nothing_else(graded: Any) -> None:
    root, report, _ = graded
    said = {
        (student, each["cell"]): None if each["manual"] else each["points"]
        for student, row in report.items()
        for each in row["graded"]
    }
    assert scores(root) == said


def test_nothing_is_left_running_or_lying_about(graded: Any) -> None:
    root, _, _ = graded
    assert not classes.left_running(root, MARK)
    assert not list(classes.temporary(root).iterdir())


def test_every_submission_has_a_page_that_names_its_incidents(graded: Any) -> None:
    root, report, _ = graded
    for student, row in report.items():
        page = (root / "feedback" / student / classes.EXERCISE / f"{classes.EXERCISE}.html").read_text()
        missing = [kind for kind in classes.kinds(row) if f"<b>{kind}</b>" not in page]
        assert not missing, student
        assert (
            "No points yet of 60" if row["look"] and not row["points"] else f"{row['points']:g} of 60 points"
        ) in page


def test_nothing_of_the_graders_is_on_a_page(graded: Any) -> None:
    root, _, _ = graded
    for path in (root / "feedback").rglob("*.html"):
        assert "SECRETS []" in path.read_text() or path.parts[-3] != "planted-secret"
        assert classes.PLANTED["PLANTED"] not in path.read_text(), path
    page = (root / "feedback" / "the-first-process" / classes.EXERCISE / f"{classes.EXERCISE}.html").read_text()
    assert "FOUND []" in page, "PID 1 can be looked into"


def test_no_output_is_a_program(graded: Any) -> None:
    root, _, _ = graded
    path = root / "autograded" / "html" / classes.EXERCISE / f"{classes.EXERCISE}.ipynb"
    outputs = [output for cell in json.loads(path.read_text())["cells"] for output in cell["outputs"]]
    ours = [output for output in outputs if "application/vnd.minitorch.score+json" in output.get("data", {})]
    assert len(ours) == 2
    assert [output["data"] for output in outputs if output not in ours] == [
        {"text/plain": "<IPython.core.display.HTML object>"}
    ]


def test_hidden_seeds_are_nowhere_but_in_the_journal(graded: Any) -> None:
    root, _, _ = graded
    seeds = json.loads((root / "grading.jsonl").read_text().splitlines()[0])["seeds"]
    for folder in ("autograded", "feedback"):
        for path in (root / folder).rglob("*.*"):
            text = path.read_text()
            assert not [seed for seed in seeds if str(seed) in text], path
