"""From the entries of a download to attempts: what one student handed in together, for one exercise."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path

from ..course.handed_in import parsed
from ..course.names import visible
from ..submission.preflight import DamagedError
from .attempts import Attempt, digest_of
from .entries import Entry
from .exercises import Exercises, in_short
from .people import People, UnknownError
from .platforms import Handed, Sender, recognise

LeftOut = list[tuple[str, str]]


@dataclass(frozen=True)
class Found:
    """An attempt in a download, with its notebooks by the names that they get."""

    student: str
    exercise: str
    attempt: Attempt
    files: dict[str, Path]


@dataclass
class _Notebook:
    """A notebook, as it was read into a temporary file; without a path if it could not be read."""

    handed: Handed
    path: Path | None
    problem: str
    exercise: str | None


@dataclass
class _Parcel:
    """All that one sender has in one place: notebooks, a time stamp, and the names of other files."""

    notebooks: list[_Notebook] = field(default_factory=list)
    others: list[Handed] = field(default_factory=list)
    stamp: datetime | None = None


def gather(found: Iterable[Entry], exercises: Exercises, people: People, space: Path) -> tuple[list[Found], LeftOut]:
    """The attempts in a download, and what is none, with the reason.

    Args:
        found: its files; they are read while they come.
        exercises: those of the course.
        people: the students.
        space: a folder for temporary files.
    """
    left_out: LeftOut = []
    parcels: Parcels = {}
    for number, entry in enumerate(found):
        handed = recognise(entry, exercises.names)
        if handed is None:
            if entry.parts[-1] != "timestamp.txt":
                left_out.append((str(entry), entry.reason or "its path does not say whose it is"))
            continue
        parcel = parcels.setdefault((handed.sender, handed.place), _Parcel())
        _open(handed, parcel, exercises, space / str(number))
    around = _Around(parcels)
    complete = [
        each
        for (sender, place), parcel in sorted(parcels.items(), key=lambda item: item[0][1])
        for each in _attempts(sender, place, parcel, around, exercises, people, left_out)
    ]
    return complete, left_out


Parcels = dict[tuple[Sender, tuple[str, ...]], _Parcel]


class _Around:
    """The rest of the download that a parcel is in."""

    def __init__(self, parcels: Parcels) -> None:
        self._exercises: dict[tuple[str, ...], set[str]] = {}
        self._senders: set[tuple[str, tuple[str, ...]]] = set()
        self._keys = {sender.key for sender, _ in parcels}
        for (sender, place), parcel in parcels.items():
            known = {each.exercise for each in parcel.notebooks if each.exercise and not each.problem}
            self._exercises.setdefault(place[:-1], set()).update(known)
            if parcel.notebooks:
                self._senders.add((sender.key, place[:-1]))

    def forger(self, sender: Sender, parcel: _Parcel) -> str:
        """Another student who owns files of a parcel: in nbgrader's exchange anybody can write in anybody's name."""
        if sender.platform != "nbgrader":
            return ""
        owners = {each.handed.entry.owner for each in parcel.notebooks}
        return next((owner for owner in sorted(owners) if owner != sender.key and owner in self._keys), "")

    def exercise(self, place: tuple[str, ...]) -> str | None:
        """The exercise that all notebooks of the download are for, if there is one: damaged ones are for it, too."""
        found = self._exercises.get(place[:-1], set())
        return next(iter(found)) if len(found) == 1 else None

    def has_notebook(self, sender: Sender, place: tuple[str, ...]) -> bool:
        """Whether the download has a notebook of the sender, perhaps in another place: in Canvas each file is one."""
        return (sender.key, place[:-1]) in self._senders


def _open(handed: Handed, parcel: _Parcel, exercises: Exercises, path: Path) -> None:
    """Read a file into its parcel."""
    if handed.entry.read is None:
        parcel.others.append(handed)
        return
    try:
        content = handed.entry.read()
    except DamagedError as error:
        exercise = handed.exercise or exercises.only or exercises.by_name(handed.file)
        parcel.notebooks.append(_Notebook(handed, None, in_short(error.incident), exercise))
        return
    if handed.file == "timestamp.txt":
        try:
            parcel.stamp = parsed(content[:100].decode("utf-8-sig").strip())
        except (ValueError, OverflowError):  # a student may have written it
            parcel.stamp = None
        return
    path.write_bytes(content)
    exercise, problem = exercises.look(path, handed.file)
    parcel.notebooks.append(_Notebook(handed, path, problem, handed.exercise or exercise))


def _attempts(
    sender: Sender,
    place: tuple[str, ...],
    parcel: _Parcel,
    around: _Around,
    exercises: Exercises,
    people: People,
    left_out: LeftOut,
) -> list[Found]:
    """The attempts in a parcel: one for each exercise that it has notebooks of."""
    likely = exercises.only or around.exercise(place)
    if not parcel.notebooks and not parcel.others:
        return []
    if owner := around.forger(sender, parcel):
        left_out.append(("/".join(map(visible, place)), f"it belongs to {visible(owner)}, who handed in other work"))
        return []
    try:
        student = people.student(sender, place[:-1])
    except UnknownError as error:
        left_out.append(("/".join(map(visible, place)), str(error)))
        return []
    parcel.stamp = people.when(sender) or parcel.stamp
    if not parcel.notebooks and not around.has_notebook(sender, place) and likely is not None:
        problem = (
            f"no notebook was handed in, but {visible(parcel.others[0].file[:80])} ({parcel.others[0].entry.reason})"
        )
        return [_found(student, likely, sender, parcel, [], problem)]
    left_out += [(str(each.entry), each.entry.reason) for each in parcel.others]
    groups: dict[str, list[_Notebook]] = {}
    for each in parcel.notebooks:
        exercise = each.exercise or likely
        if exercise is None:
            left_out.append((str(each.handed.entry), each.problem or "it does not say which exercise it is for"))
        else:
            groups.setdefault(exercise, []).append(each)
    return [_group(student, exercise, sender, parcel, group) for exercise, group in sorted(groups.items())]


def _group(student: str, exercise: str, sender: Sender, parcel: _Parcel, group: list[_Notebook]) -> Found:
    """One attempt: the notebook with the right name, or the only one that can be graded, or all of them."""
    named = [each for each in group if each.handed.file == f"{exercise}.ipynb"]
    sound = [each for each in group if not each.problem]
    for chosen in (named if len(named) == 1 and not named[0].problem else [], sound, group):
        if len(chosen) == 1:
            return _found(student, exercise, sender, parcel, chosen, chosen[0].problem)
    several = sound or group
    return _found(student, exercise, sender, parcel, several, f"{len(several)} notebooks could be the one meant")


def _found(student: str, exercise: str, sender: Sender, parcel: _Parcel, group: list[_Notebook], problem: str) -> Found:
    paths = [each.path for each in group if each.path is not None]
    names = (
        [f"{exercise}.ipynb"]
        if len(paths) == 1
        else [f"candidate-{number}.ipynb" for number in range(1, len(paths) + 1)]
    )
    handed = [each.handed for each in group] or parcel.others
    when = max((each.when for each in handed if each.when), default=parcel.stamp)
    order = max((each.order for each in handed), default=0)
    attempt = Attempt(
        digest_of(paths, f"{sender.mark} {order} {problem}"),
        sender.platform,
        sender.mark,
        when,
        when,
        order,
        any(each.late for each in handed),
        problem=problem,
    )
    return Found(student, exercise, attempt, dict(zip(names, paths, strict=True)))
