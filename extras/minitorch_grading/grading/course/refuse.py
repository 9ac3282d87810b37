"""Formgrader's *Autograde* button, and `nbgrader autograde`: both run students' code with the instructor's rights.

nbgrader makes the exporter of a converter before it touches a submission, a grade or a file. At that time nothing has
happened yet; a hook would come after the old notebook was removed.
"""

from __future__ import annotations

from typing import Any, NoReturn

from nbconvert.exporters import NotebookExporter
from nbgrader.converters.base import NbGraderException

REASON = (
    "students' code is not run here, since nothing would keep it from your files: "
    "`minitorch grade submitted/` grades in a sandbox, and formgrader shows its points"
)


class NoAutograde(NotebookExporter):
    """The exporter of `Autograde` in `nbgrader_config.py`; it cannot be made."""

    def __init__(self, parent: Any = None, **_: Any) -> NoReturn:
        log = getattr(parent, "log", None)
        if log is not None:  # which is what formgrader shows
            log.error(REASON)
        raise NbGraderException(REASON)
