"""docs/grading.md: each of its commands does what the page says, in a course in which an instructor could type it.

A line of a fenced block without a language that begins with `minitorch` is a command. It is run in the order of
the page and as it is typed, in a shell, in the folder of the course; two and more spaces end it, and the purpose
follows. So a new command is tested because it is on the page. The class here is small, and lies where the page says.
"""

from __future__ import annotations

import os
import re
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.grading.classes import ROOT, needs_bubblewrap
from tests.grading.collecting.downloads import canvas, exchange, folder, moodle, packed
from tools.clone import RELEASED, SOLUTIONS

pytest.importorskip("nbgrader", reason="the gradebook is nbgrader's")

EXERCISE = "03-graph"
PAGE = (ROOT / "docs" / "grading.md").read_text()
BLOCK = re.compile(r"^```(\w*)\n(.*?)^```$", re.MULTILINE | re.DOTALL)
STATUS = {"minitorch check exercises/03-graph": 1}  # as the page says; all other work of this class is in order
ROSTER = "student id,name,e-mail,canvas,number\nana,Ana López,ana@uni.edu,1234,u1\neve,Eve Roe,eve@uni.edu,1236,u3\n"
WORKSHEET = (
    'Identifier,"Full name","Email address",Status,Grade,"Maximum grade","Grade can be changed",'
    '"Last modified (submission)","Last modified (grade)","Feedback comments"\n'
    'Participant 901,"Ana López",ana@uni.edu,Submitted,,100.00,Yes,"Sunday, 22 November 2026, 10:00 AM",-,\n'
    'Participant 903,"Eve Roe",eve@uni.edu,Submitted,,100.00,Yes,"Monday, 23 November 2026, 1:00 PM",-,\n'
)
GRADEBOOK = (
    "Student,ID,SIS User ID,SIS Login ID,Section,03 Graph (77),Final Score\n"
    "    Points Possible,,,,,100,(read only)\n"
    '"López, Ana",1234,u1,ana,Group 1,,50\n"Roe, Eve",1236,u3,eve,Group 1,,50\n'
)


def commands(page: str) -> list[str]:
    """The commands of the page in order.

    Example:
        >>> commands("```\\nminitorch grade submitted/      everything\\ncourse/    a folder\\n```\\n")
        ['minitorch grade submitted/']
    """
    lines = [line for language, block in BLOCK.findall(page) if language in ("", "sh") for line in block.splitlines()]
    typed = [re.split(r"\s{2,}", line.strip())[0] for line in lines]
    return [line for line in typed if line.startswith("minitorch ")]


COMMANDS = commands(PAGE)


def files(page: str) -> set[str]:
    """The files of a course that the page names: in its tree, in sentences, and as what a command writes."""
    tree = re.search(r"^```\ncourse/\n(.*?)^```$", page, re.MULTILINE | re.DOTALL)
    assert tree is not None
    found = {line.split()[0] for line in tree[1].splitlines() if line.strip()}
    found |= set(re.findall(r"`([\w/-]+\.(?:html|csv|jsonl|db|toml|py))`", page))
    found |= {target for line in COMMANDS for target in re.findall(r"(?:--to|>) (\S+)", line)}
    return {name.replace("STUDENT", "ana").replace("EXERCISE", EXERCISE) for name in found}


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """A course before its first week ends: an exercise, a roster, rules, and what the platforms gave."""
    root = tmp_path / "course"
    shutil.copytree(SOLUTIONS / EXERCISE, root / "solutions" / EXERCISE)
    shutil.copytree(RELEASED / EXERCISE, root / "exercises" / EXERCISE)
    done = (root / "solutions" / EXERCISE / f"{EXERCISE}.ipynb").read_text()
    blank = (root / "exercises" / EXERCISE / f"{EXERCISE}.ipynb").read_text()
    work = moodle("Ana López", 901, done, f"{EXERCISE}.ipynb") | moodle("Eve Roe", 903, blank, f"{EXERCISE}.ipynb")
    packed(root / "CS101-03-graph-4712.zip", work)
    packed(root / "submissions.zip", canvas("lopezana", 1234, 1, done) | canvas("roeeve", 1236, 2, blank))
    folder(root / "inbound", exchange("ana", "2026-11-22 10:00:00 UTC", done, EXERCISE))
    (rules,) = (block for language, block in BLOCK.findall(PAGE) if language == "toml")
    texts = {"roster.csv": ROSTER, "deadlines.toml": rules, "worksheet.csv": WORKSHEET, "Grades.csv": GRADEBOOK}
    for name, text in texts.items():
        (root / name).write_text(text)
    return root


def test_every_command_of_the_page_does_what_it_says(course: Path) -> None:
    needs_bubblewrap()
    assert len(COMMANDS) == PAGE.count("\nminitorch ") > 15
    path = f"{Path(sys.executable).parent}{os.pathsep}{os.environ['PATH']}"
    environment = {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT), "PYTHONWARNINGS": ""}
    for line in COMMANDS:
        ran = subprocess.run(line, shell=True, cwd=course, env=environment, text=True, capture_output=True)
        assert ran.returncode == STATUS.get(line, 0), f"{line}\n{ran.stdout}\n{ran.stderr}"
    assert [name for name in sorted(files(PAGE)) if not (course / name).exists()] == []


def test_the_page_says_of_each_exercise_what_is_believed() -> None:
    table = (ROOT / "docs" / "sandbox.md").read_text().partition("| what is believed |")[2].partition("\n\n")[0]
    told = re.findall(r"\b\d\d\b", " ".join(row.split("|")[1] for row in table.splitlines()[2:]))
    assert {*told} == {path.name[:2] for path in RELEASED.iterdir()}
