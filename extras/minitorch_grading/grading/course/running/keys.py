"""Digests of all that a result depends on: the student's work, and the conditions under which it is graded.

They are what makes a rerun cheap.
"""

from __future__ import annotations

import hashlib
import json
import os
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path

from ....dependencies import digest_of, sources
from ...limits import Limits
from ...submission.preflight import Files, Part

ROOM = Path(__file__).resolve().parents[3]
# What of the classroom decides on points: how tasks are run and judged, and what of the engine is there meanwhile.
JUDGING = ("harness", "checks", "dependencies.py", "withheld.py")


def conditions_of(release: Sequence[Part], own: Mapping[str, str], limits: Limits, safe: bool) -> str:
    """A digest of what the grader contributes.

    Args:
        release: the cells that were handed out, with their hidden tests.
        own: the sources of the exercise's own checks.
        limits: of a submission.
        safe: whether there is a sandbox.
    """
    plain = [vars(limits), safe, own, [vars(part) for part in release]]
    return hashlib.sha256(json.dumps(plain, sort_keys=True).encode() + judging()).hexdigest()[:32]


@cache
def judging() -> bytes:
    """A digest of the files that decide on points."""
    return digest_of((path for path in sources(ROOM) if path.relative_to(ROOM).parts[0] in JUDGING), ROOM)


def work_of(files: Files) -> str:
    """A digest of what a student has handed in: the notebooks that could be meant, with their paths."""
    digest = hashlib.sha256()
    for name, content in files.items():
        what = content if isinstance(content, bytes) else content.kind.encode()
        digest.update(b"\0" + os.fsencode(name) + b"\0" + what)
    return digest.hexdigest()[:32]
