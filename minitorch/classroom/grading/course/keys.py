"""Digests of all that a result depends on: the student's work, and the conditions under which it is graded.

They are what makes a rerun cheap, so looking at a folder has bounds, which are those within which it is graded.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping
from functools import cache
from pathlib import Path

from ...parts import PACKAGE, sources
from ..limits import MIB, Limits
from ..submission.preflight import DamagedError, notebooks, read_stripped

BYTES = 64 * MIB
"""Of a submission's notebooks together; of those beyond it, sizes and times count."""


def conditions_of(release: Path, limits: Limits, safe: bool, *sources: Mapping[str, str]) -> str:
    """A digest of what the grader contributes: the notebook that was handed out, the checks, the limits.

    Args:
        release: the notebook.
        limits: of a submission.
        safe: whether there is a sandbox.
        sources: of hidden tests, and of the exercise's own checks.
    """
    digest = hashlib.sha256(json.dumps([limits.to_json(), safe, *filter(None, sources)], sort_keys=True).encode())
    digest.update(_checks())
    digest.update(release.read_bytes())
    return digest.hexdigest()[:32]


ROOM = PACKAGE / "classroom"
JUDGING = ("asks", "checks", "parts.py", "withheld.py")
"""What of the classroom decides on points: how tasks ask and judge, and what of the engine is there meanwhile."""


@cache
def _checks() -> bytes:
    digest = hashlib.sha256()
    for path in sources(ROOM):
        if path.relative_to(ROOM).parts[0] in JUDGING:
            digest.update(b"\0" + path.relative_to(ROOM).as_posix().encode() + b"\0" + path.read_bytes())
    return digest.digest()


def work_of(folder: Path, largest: int) -> str:
    """A digest of what a student has handed in: the notebooks, with their paths.

    Args:
        folder: the student's files for an exercise.
        largest: number of bytes of the largest notebook that is graded; of a larger one, it is known that it is larger.
    """
    digest = hashlib.sha256()
    left = BYTES
    for path in notebooks(folder):
        digest.update(b"\0" + os.fsencode(path.relative_to(folder)) + b"\0")
        try:
            about = path.lstat()
            if about.st_size > left:
                digest.update(f"{about.st_size} {about.st_mtime_ns}".encode())
                continue
            content = read_stripped(path, largest)
            left -= len(content)
            digest.update(content)
        except DamagedError as damaged:
            digest.update(damaged.incident.kind.encode())
        except OSError as error:  # what cannot be read is not graded either
            digest.update(type(error).__name__.encode())
    return digest.hexdigest()[:32]
