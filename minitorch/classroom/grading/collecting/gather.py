"""From the entries of a download to attempts: what one student handed in together, for one exercise."""

from __future__ import annotations

import io
import json
from collections.abc import Iterable
from dataclasses import dataclass, field
from pathlib import Path

from ..course.names import refused, visible
from ..limits import Limits
from ..submission.preflight import stripped
from .attempts import Attempt, digest_of
from .entries import BYTES, FILES, OWN_FILES, Entry, FaultError, entries, in_words, members, owner_of
from .exercises import Exercises, plain_name
from .people import People, UnknownError
from .platforms import STAMP, Handed, recognise, time_of

LeftOut = list[tuple[str, str]]


@dataclass(frozen=True)
class Found:
    """An attempt in a download: whose it is, for what, and its files by the paths that they get."""

    student: str
    exercise: str
    attempt: Attempt
    files: dict[str, Path]


@dataclass(frozen=True)
class _File:
    """A file in the temporary folder: its name, as the student gave it, its number, and where it is as it came."""

    name: str
    path: Path
    order: int
    raw: Path | None = None


@dataclass
class _Parcel:
    """All that one person handed in together. `files` are as they came; `room` is for more, in bytes."""

    first: Handed
    notebooks: list[_File] = field(default_factory=list)
    files: list[_File] = field(default_factory=list)
    faults: list[str] = field(default_factory=list)
    owners: set[str] = field(default_factory=set)
    stamp: str | None = None
    room: int = BYTES


class _Reading:
    """What has been read of a download so far."""

    def __init__(self, exercises: list[str], space: Path) -> None:
        self._exercises, self._space, self._count = exercises, space, 0
        self.parcels: dict[tuple[object, ...], _Parcel] = {}
        self.left_out: LeftOut = []

    def take(self, found: Iterable[Entry]) -> None:
        """Read all entries of a download, and of downloads in it."""
        for entry in found:
            handed = recognise(entry.above, entry.parts, self._exercises)
            if handed is not None:
                parcel = self.parcels.setdefault(handed.parcel, _Parcel(handed))
                parcel.owners.add(owner_of(entry.path) if entry.path else "")
                self._read(parcel, handed, entry)
            elif entry.has_suffix(".zip") and entry.path and not entry.reason:
                try:
                    with entry.open() as file:
                        self.take(members(file, (*entry.above, *entry.parts), FILES))
                except FaultError as error:
                    self.left_out.append((str(entry), str(error)))
            elif entry.parts[-1] != STAMP:
                self.left_out.append((str(entry), entry.reason or "its path does not say whose it is"))

    def _read(self, parcel: _Parcel, handed: Handed, entry: Entry, inside: bool = False) -> None:
        """Read a file into its parcel; of a zip that a student has handed in, the notebooks in it."""
        name, order = entry.parts[-1] if inside else handed.short, int(handed.order)
        try:
            content = entry.read(parcel.room)
            parcel.room -= len(content)
            if handed.platform.has_stamp and handed.file == STAMP:
                parcel.stamp = content[:100].decode("utf-8-sig", "replace")
                return
            raw = None if inside else self.write(content)
            if raw is not None:
                parcel.files.append(_File(name, raw, order))
            if entry.has_suffix(".ipynb"):
                parcel.notebooks.append(_File(name, self.write(stripped(content, Limits().notebook)), order, raw))
            elif entry.has_suffix(".zip"):
                if content.count(b"PK\1\2") > OWN_FILES:  # so begins each entry of its directory, whatever its end says
                    raise FaultError(f"it holds more than {OWN_FILES} files")
                for each in members(io.BytesIO(content), (), OWN_FILES):
                    if each.has_suffix(".ipynb"):
                        self._read(parcel, handed, each, inside=True)
        except (FaultError, MemoryError) as error:
            parcel.faults.append(f"{visible(name[:80])}: {in_words(error)}")

    def write(self, content: bytes) -> Path:
        """Keep a file until the attempts are complete."""
        self._count += 1
        path = self._space / str(self._count)
        path.write_bytes(content)
        return path


def gather(source: Path, exercises: Exercises, people: People, space: Path) -> tuple[list[Found], LeftOut]:
    """Find the attempts in a download, and what is none, with the reason.

    Args:
        source: a folder or a zip.
        exercises: those of the course.
        people: the students.
        space: a folder for temporary files.

    Raises:
        CommandError: if it is no download, or does not say which exercise it is for.
    """
    reading = _Reading(exercises.names, space)
    reading.take(entries(source))
    parcels = list(reading.parcels.values())
    shared = {each.first.place for each in parcels if each.first.platform.is_shared}
    keys = {each.first.key for each in parcels}
    found = []
    for parcel in parcels:
        first = parcel.first
        others = sorted((parcel.owners & keys) - {first.key}) if first.platform.has_stamp else []
        try:
            if others:
                raise UnknownError(f"it belongs to {visible(others[0])}, who handed in other work")
            if not first.platform.is_shared and any(first.place[: len(each)] == each for each in shared):
                raise UnknownError("it has not the form of nbgrader's exchange, where everybody can write")
            exercise = first.exercise or exercises.slot(first.place)
            student = people.student(first)
        except UnknownError as error:
            reading.left_out.append((visible("/".join((*first.place, first.mark))), str(error)))
            continue
        if parcel.files or parcel.faults:
            found.append(_attempt(student, exercise, parcel, exercises, people, reading))
    return found, reading.left_out


def _attempt(
    student: str, exercise: str, parcel: _Parcel, exercises: Exercises, people: People, reading: _Reading
) -> Found:
    chosen, problem = _chosen(parcel, exercise, exercises)
    first, files = parcel.first, parcel.files
    if chosen is None or chosen.path.stat().st_size > Limits().notebook:
        chosen = _File("", reading.write(_stand_in(problem)), int(first.order))
    else:
        files = [each for each in files if each.path != chosen.raw]
        reading.left_out += [(f"{student} {exercise}", fault) for fault in parcel.faults if not problem]
    when = time_of(first.time) or time_of(parcel.stamp) or people.when(first)
    mark = "" if first.platform.has_stamp else first.mark
    about = Attempt(
        digest_of([chosen.path]), first.platform.name, mark, when, when, chosen.order, bool(first.late), problem=problem
    )
    kept = {f"files/{_kept_as(each)}": each.path for each in files}
    return Found(student, exercise, about, {f"{exercise}.ipynb": chosen.path, **kept})


def _chosen(parcel: _Parcel, exercise: str, exercises: Exercises) -> tuple[_File | None, str]:
    """The notebook that was meant, if that can be said, and why it cannot be graded.

    Of those that can be graded it is the only one, or the only one with the right name, or the platform's latest.
    """
    problems = {each: exercises.problem(each.path, exercise) for each in parcel.notebooks}
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
    return f"{digest_of([file.path])[:8]}-{name}"


def _stand_in(problem: str) -> bytes:
    """A notebook in the place of one that is not there; the grader finds the reason in it, and tells the student."""
    cell = {"cell_type": "markdown", "metadata": {}, "source": f"Nothing here can be graded: {problem}"}
    notebook = {"cells": [cell], "metadata": {"minitorch": {"problem": problem}}, "nbformat": 4, "nbformat_minor": 4}
    return json.dumps(notebook).encode()
