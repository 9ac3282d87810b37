"""The course's `nbgrader_config.py`: the names of its folders, and no running of students' code from formgrader.

What an instructor has written there stays; a file of theirs that lets students' code run is pointed at.
"""

from __future__ import annotations

from pathlib import Path

from .folders import Course
from .private import replace

CONFIG = "nbgrader_config.py"

FOLDERS = """c = get_config()  # noqa: F821  nbgrader gives it
c.CourseDirectory.source_directory = "solutions"
c.CourseDirectory.release_directory = "exercises"
"""

REFUSE = 'c.Autograde.exporter_class = "minitorch_grading.grading.course.refuse.NoAutograde"'

# Read where nbgrader is started in the folder of a course, as formgrader is.
NBGRADER = f"""{FOLDERS}
# `minitorch grade` runs students' code in a sandbox; formgrader's Autograde button would run it without one.
{REFUSE}
"""


def configure(course: Course) -> None:
    """See that formgrader finds the course, and runs nothing of a student's; what an instructor has written stays."""
    path = course.root / CONFIG
    if not path.exists() or path.read_bytes() == FOLDERS.encode():  # the latter was ours, too
        replace(path, NBGRADER)


def lets_code_run(root: Path) -> str | None:
    """Why formgrader's *Autograde* would run students' code, and what to do; None if it would not.

    Args:
        root: the folder of the course.
    """
    path = root / CONFIG
    if not path.exists():
        return f"there is no {path}, so formgrader's Autograde button runs students' code with your rights; grade once"
    if path.read_bytes() == NBGRADER.encode() or _refuses(path):
        return None
    return f"formgrader's Autograde button runs students' code with your rights: add to {path} the line {REFUSE}"


def _refuses(path: Path) -> bool:
    from traitlets.config.loader import PyFileConfigLoader

    try:
        config = PyFileConfigLoader(path.name, path=str(path.parent)).load_config()
    except Exception:  # the instructor's own program, with whatever is wrong in it: nbgrader does not start either
        return False
    named = config.Autograde.get("exporter_class")
    return str(getattr(named, "__name__", named)).rpartition(".")[2] == "NoAutograde"
