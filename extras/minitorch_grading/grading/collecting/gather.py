"""From the entries of a download to attempts: what one student handed in together, for one exercise."""

from __future__ import annotations

import io
import json
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, field
from pathlib import Path

from ..course.gradebook.marks import Who
from ..course.names import refused, visible
from ..limits import Limits
from ..submission.preflight import stripped
from .attempts import Attempt, digest_of
from .entries import BYTES, FILES, OWN_FILES, Entry, FaultError, entries, in_words, members, owner_of
from .exercises import Exercises, plain_name
from .platforms import STAMP, Handed, People, UnknownError, recognise, time_of

LeftOut = list[tuple[str, str]]


@dataclass(frozen=True)
class _File:
    """A file as the student has named it, its number, its content, and how it came, if that is more."""

    name: str
    order: int
    content: bytes
    raw: _File | None = None


@dataclass
class Parcel:
    """All that one person handed in together; it is read as late as can be, since a class's work is large.

    `files` are as they came, `faults` say what could not be read, and `room` is for more, in bytes.
    """

    first: Handed
    entries: list[tuple[Handed, Entry]] = field(default_factory=list)
    notebooks: list[_File] = field(default_factory=list)
    files: list[_File] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    stamp: str | None = None
    room: int = BYTES

    def read(self) -> None:
        """Read all of its files."""
        for handed, entry in self.entries:
            self._read(handed, entry)

    def _read(self, handed: Handed, entry: Entry, inside: bool = False) -> None:
        """Read a file; of a zip that a student has handed in, the notebooks in it."""
        name, order = entry.parts[-1] if inside else handed.short, int(handed.order)
        try:
            content = entry.read(self.room)
            self.room -= len(content)
            if handed.platform.has_stamp and handed.file == STAMP:
                self.stamp = content[:100].decode("utf-8-sig", "replace")
                return
            raw = None if inside else _File(name, order, content)
            self.files += [raw] if raw else []
            if entry.has_suffix(".ipynb"):
                self.notebooks.append(_File(name, order, stripped(content, Limits().notebook), raw))
            elif entry.has_suffix(".zip"):
                if content.count(b"PK\1\2") > OWN_FILES:  # so begins each entry of its directory, whatever its end says
                    raise FaultError(f"it holds more than {OWN_FILES} files")
                for each in members(io.BytesIO(content), (), OWN_FILES):
                    if each.has_suffix(".ipynb"):
                        self._read(handed, each, inside=True)
        except (FaultError, MemoryError) as error:
            self.faults.append(f"{visible(name[:80])}: {in_words(error)}")


@contextmanager
def gathered(source: Path, exercises: Exercises, people: People) -> Iterator[tuple[dict[Who, list[Parcel]], LeftOut]]:
    """Find out who has handed in what in a download, which is open meanwhile, and what is left out, with the reason.

    Args:
        source: a folder or a zip.
        exercises: those of the course.
        people: the students.

    Raises:
        CommandError: if it is no download, or does not say which exercise it is for.
    """
    left_out: LeftOut = []
    parcels: dict[tuple[object, ...], Parcel] = {}
    with ExitStack() as stack:
        waiting = [entries(source, stack)]
        for found in waiting:
            for entry in found:
                if handed := recognise(entry.above, entry.parts, exercises.names):
                    parcels.setdefault(handed.parcel, Parcel(handed)).entries.append((handed, entry))
                elif entry.has_suffix(".zip") and entry.path and not entry.reason:
                    try:
                        file = stack.enter_context(entry.open())
                        waiting.append(iter(members(file, (*entry.above, *entry.parts), FILES)))
                    except (FaultError, OSError) as error:
                        left_out.append((str(entry), visible(error)))
                elif entry.parts[-1] != STAMP:
                    left_out.append((str(entry), entry.reason or "its path does not say whose it is"))
        shared = {each.first.place for each in parcels.values() if each.first.platform.is_shared}
        keys = {each.first.key for each in parcels.values()}
        by_student: dict[Who, list[Parcel]] = {}
        for parcel in parcels.values():
            first = parcel.first
            owners = {owner_of(entry.path) if entry.path else "" for _, entry in parcel.entries}
            others = sorted((owners & keys) - {first.key}) if first.platform.has_stamp else []
            try:
                if others:
                    raise UnknownError(f"it belongs to {visible(others[0])}, who handed in other work")
                if not first.platform.is_shared and any(first.place[: len(each)] == each for each in shared):
                    raise UnknownError("it has not the form of nbgrader's exchange, where everybody can write")
                exercise = first.exercise or exercises.slot(first.place)
                by_student.setdefault((people.student(first), exercise), []).append(parcel)
            except UnknownError as error:
                left_out.append((visible("/".join((*first.place, first.mark))), str(error)))
        yield by_student, left_out


def attempt_of(
    parcel: Parcel, exercise: str, exercises: Exercises, people: People
) -> tuple[Attempt, dict[str, bytes], list[str]] | None:
    """What was handed in at one time: the attempt, its files by the paths that they get, and what could not be read.

    None if it was nothing.
    """
    parcel.read()
    if not parcel.files and not parcel.faults:
        return None
    chosen, problem = _chosen(parcel, exercise, exercises)
    first, files = parcel.first, parcel.files
    if chosen is None or len(chosen.content) > Limits().notebook:
        chosen = _File("", int(first.order), _stand_in(problem))
    when = time_of(first.time) or time_of(parcel.stamp) or people.when(first)
    mark = "" if first.platform.has_stamp else first.mark
    digest = digest_of([chosen.content])
    about = Attempt(digest, first.platform.name, mark, when, when, chosen.order, bool(first.late), problem=problem)
    kept = {f"files/{_kept_as(each)}": each.content for each in files if each is not chosen.raw}
    return about, {f"{exercise}.ipynb": chosen.content, **kept}, [] if problem else parcel.faults


def _chosen(parcel: Parcel, exercise: str, exercises: Exercises) -> tuple[_File | None, str]:
    """The notebook that was meant, if that can be said, and why it cannot be graded.

    Of those that can be graded it is the only one, or the only one with the right name, or the platform's latest.
    """
    problems = {each: exercises.problem(each.content, exercise) for each in parcel.notebooks}
    sound = [each for each, problem in problems.items() if not problem]
    named = [each for each in sound if exercise in (plain_name(each.name), each.name.removesuffix(".ipynb"))]
    latest = [each for each in sound if each.order == max(every.order for every in sound)]
    for group in (sound, named, latest, parcel.notebooks):
        if len(group) == 1:
            return group[0], problems[group[0]]
    if problems:
        return None, f"{len(sound or problems)} notebooks could be the one meant"
    others = ", ".join(visible(each.name) for each in parcel.files)
    return None, ("; ".join(parcel.faults) or f"no notebook was handed in, but {others}")[:300]


def _kept_as(file: _File) -> str:
    """A name for a file that a student has named; the same content has the same one."""
    suffix = Path(file.name).suffix
    name = file.name if refused(file.name) is None else f"file{suffix if suffix[1:].isalnum() else ''}"
    return f"{digest_of([file.content])[:8]}-{name}"


def _stand_in(problem: str) -> bytes:
    """A notebook in the place of one that is not there; the grader finds the reason in it, and tells the student."""
    cell = {"cell_type": "markdown", "metadata": {}, "source": f"Nothing here can be graded: {problem}"}
    notebook = {"cells": [cell], "metadata": {"minitorch": {"problem": problem}}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(notebook).encode()
