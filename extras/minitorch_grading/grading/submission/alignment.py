"""Align a submitted notebook with the one that was handed out: the cells to be run, in the student's order.

Locked cells, points and checks are the instructor's: they are restored to what was handed out, and put back where they
are missing. All else is the student's, and stays where it is. A cell is known by its `grade_id`; where a tool has lost
that, by its id, by its text, or by the names that it defines. Whatever had to be mended is an incident.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from difflib import SequenceMatcher
from typing import Any

from ...assertions import visible
from ..incidents import Incident
from .preflight import Cell, DamagedError, Part, grade_id

_DEFINITION = re.compile(r"^(?:(?:async +)?def|class) +(\w+)|^(\w+)(?: *:[^=\n]*)? *=(?!=)", re.MULTILINE)


def names(source: str) -> set[str]:
    """Return the names that a source defines at its top level: functions, classes, and what is assigned alone.

    Example:
        >>> sorted(names("import os\\ndef f(x):\\n    y = x\\n\\nclass C: ...\\n\\ng: int = f == 1"))
        ['C', 'f', 'g']
    """
    return {first or second for first, second in _DEFINITION.findall(source)}


def same(one: str, other: str) -> bool:
    """Return whether two sources differ in nothing but white space at the ends of lines, which editors change."""
    return _text(one) == _text(other)


def _text(source: str) -> str:
    return "\n".join(map(str.rstrip, source.strip().splitlines()))


def mend(notebook: Any, release: list[Part]) -> tuple[list[Part], list[Incident]]:
    """Return the cells to be run, and what had to be mended.

    Args:
        notebook: what `preflight.load` returned.
        release: what `preflight.released` returned.

    Raises:
        DamagedError: if no cell of the exercise is in the notebook.
    """
    known = {part.name for part in release}
    dropped = [each for each in notebook["cells"] if _is_dropped(each, known)]
    alignment = _Alignment([each for each in notebook["cells"] if not _is_dropped(each, known)], release)
    if not alignment.is_of_exercise:
        raise _why_none(notebook)
    incidents = _kernel(notebook) + [Incident("check-dropped", grade_id(each) or "") for each in dropped]
    return alignment.parts(), incidents + alignment.incidents()


def _is_dropped(cell: Cell, known: set[str | None]) -> bool:
    """Whether it is a check that the exercise does not have any more: its task would ask for inputs that nobody has."""
    about = cell["metadata"].get("nbgrader")
    is_check = isinstance(about, dict) and about.get("grade") and not about.get("solution")
    return bool(is_check) and grade_id(cell) not in known


class _Alignment:
    """The cells of a notebook beside those of its exercise; cells are numbered by their places in the two.

    Attributes:
        of: for each known cell of the notebook, the released cell that it is.
        chosen: for each released cell that is there, the cell of the notebook that stands for it.
    """

    def __init__(self, cells: list[Cell], release: list[Part]) -> None:
        self.cells, self.release = cells, release
        self.texts = [_text(visible(cell["source"])) for cell in cells]  # of a solution, as it is released

        self.names = [
            names(text) if cell["cell_type"] == "code" else set() for cell, text in zip(cells, self.texts, strict=True)
        ]
        self.handed_out = [_text(part.source) for part in release]
        self.wanted = [names(part.source) if part.solution and part.kind == "code" else set() for part in release]
        self.examples = {text for text, part in zip(self.handed_out, release, strict=True) if part.skipped}
        self.of: dict[int, int] = {}
        self._by_name()
        for is_it in (self._has_its_id, self._has_its_text):
            for number, part in enumerate(release):
                self._find(number, (each for each in self._free(part) if is_it(each, number)))
        self.is_of_exercise = any(release[number].name for number in self.of.values()) or self._is_answered()
        for number, part in enumerate(release):
            if part.solution:
                self._find(number, self._answers(number))
        self.chosen = {number: self._choice(number) for number in self.of.values()}
        pairs = sorted((cell, number) for number, cell in self.chosen.items())
        theirs = [number for _, number in pairs]
        blocks = SequenceMatcher(None, sorted(theirs), theirs, autojunk=False).get_matching_blocks()
        self.in_order = {number for _, begin, size in blocks for number in theirs[begin : begin + size]}

    # --- which cell is which ------------------------------------------------------------------------------------

    def _by_name(self) -> None:
        known = {part.name: number for number, part in enumerate(self.release) if part.name}
        self.of |= {place: known[name] for place, cell in enumerate(self.cells) if (name := grade_id(cell)) in known}

    def _free(self, part: Part) -> Iterator[int]:
        """The cells that are not known yet, and of the kind of a released one."""
        return (each for each, cell in enumerate(self.cells) if each not in self.of and cell["cell_type"] == part.kind)

    def _find(self, number: int, candidates: Iterator[int]) -> None:
        """Make the last of some cells, or the first one that has its text, the released cell, if none is it yet."""
        if number not in self.of.values() and (found := list(candidates)):
            self.of[found[0] if self.texts[found[0]] == self.handed_out[number] else found[-1]] = number

    def _has_its_id(self, place: int, number: int) -> bool:
        known = {self.release[number].name, self.release[number].id} - {None}
        cell = self.cells[place]
        return any(isinstance(each, str) and each in known for each in (cell.get("id"), cell["metadata"].get("id")))

    def _has_its_text(self, place: int, number: int) -> bool:
        return self.texts[place] == self.handed_out[number]

    def _is_answered(self) -> bool:
        """Whether something is defined that the exercise asks for."""
        return any(self._is_elsewhere(number) for number in range(len(self.release)))

    def _answers(self, number: int) -> Iterator[int]:
        """The cells that define what a stub defines; if it defines nothing, those that stand in its place."""
        part, wanted = self.release[number], self.wanted[number]
        if wanted:
            return (each for each in self._free(part) if wanted <= self.names[each])
        before = max((cell for cell, other in self.of.items() if other < number), default=-1)
        after = min((cell for cell, other in self.of.items() if other > number), default=len(self.cells))
        return (each for each in self._free(part) if before < each < after)

    def _choice(self, number: int) -> int:
        """Of several cells, the last that was written in; of a locked one, the first that is as it was."""
        cells = [cell for cell, other in self.of.items() if other == number]
        if self.release[number].solution:
            return max(cells, key=lambda cell: (not self._is_as_handed_out(cell), cell))
        return min(cells, key=lambda cell: (not self._is_as_handed_out(cell), cell))

    def _is_as_handed_out(self, cell: int) -> bool:
        return self.texts[cell] == self.handed_out[self.of[cell]]

    # --- what is defined ----------------------------------------------------------------------------------------

    def _written(self) -> Iterator[int]:
        """The cells that differ from what was handed out."""
        return (each for each in range(len(self.cells)) if not (each in self.of and self._is_as_handed_out(each)))

    def _is_elsewhere(self, number: int) -> bool:
        """Whether the student defines what a stub stands for in other cells, so that it must not run after them."""
        wanted = self.wanted[number]
        return bool(wanted) and wanted <= set().union(*(self.names[each] for each in self._written()))

    def _home(self, number: int) -> int:
        """The cell that the check of an answer has to wait for; -1 if there is none."""
        cell, wanted = self.chosen.get(number, -1), self.wanted[number]
        if cell >= 0 and not self._is_as_handed_out(cell) and wanted <= self.names[cell]:
            return cell
        return max((each for each in self._written() if wanted & self.names[each]), default=cell)

    # --- the cells to be run ------------------------------------------------------------------------------------

    def parts(self) -> list[Part]:
        """The student's cells in their order, with what was handed out among them."""
        early: dict[int, list[Part]] = {}  # what is put back, by the cell that it comes after
        late: dict[int, list[Part]] = {}  # the checks: as late as can be
        place = -1
        for number, part in enumerate(self.release):
            if number in self.in_order:
                place = self.chosen[number]
            if part.is_check:
                late.setdefault(self._place_of_check(number), []).append(part)
            elif number not in self.chosen or (number not in self.in_order and not part.solution):
                early.setdefault(place, []).append(self._restored(number))
        found = early.pop(-1, []) + late.pop(-1, [])
        for cell in range(len(self.cells)):
            found += [*self._here(cell), *early.get(cell, []), *late.get(cell, [])]
        return found

    def _place_of_check(self, number: int) -> int:
        """The cell that a check comes after: it waits for all answers above it in what was handed out."""
        if number in self.in_order:
            place = self.chosen[number]
        else:
            following = [self.chosen[each] for each in self.in_order if each > number]
            place = min(following, default=len(self.cells)) - 1
        above = [each for each, part in enumerate(self.release[:number]) if part.solution]
        return max([place, *map(self._home, above)])

    def _restored(self, number: int) -> Part:
        part = self.release[number]
        if not part.solution:
            return part
        elsewhere = self._is_elsewhere(number)
        return replace(part, blank=not elsewhere, skipped=elsewhere)

    def _here(self, cell: int) -> Iterator[Part]:
        """What is run in the place of a cell of the notebook; checks have places of their own."""
        source, kind = self.cells[cell]["source"], self.cells[cell]["cell_type"]
        number = self.of.get(cell)
        if number is None:
            yield Part(source, kind, skipped=self.texts[cell] in self.examples)
            return
        part, is_chosen, is_edited = self.release[number], self.chosen[number] == cell, not self._is_as_handed_out(cell)
        is_in_order = is_chosen and number in self.in_order
        if part.solution:
            if is_edited:
                yield replace(part, source=source) if is_chosen else Part(source, kind)
            elif is_chosen:
                yield self._restored(number)
            return
        # What others build on, such as imports, is run as it was handed out, and once more where it was moved to.
        if is_in_order and not part.is_check and (part.name or part.kind == "code" or not is_edited):
            yield part
        elif part.kind == "code" and not part.is_check and is_chosen:
            yield Part(part.source, kind, skipped=part.skipped)
        # A cell without a name is the student's to change; what is defined in one with a name was merged into it.
        if is_edited and (part.name is None or (kind == "code" and names(source) - names(part.source))):
            yield Part(source, kind)

    def incidents(self) -> list[Incident]:
        """What had to be mended."""
        found = []
        for number, part in enumerate(self.release):
            if part.name is None:
                continue
            cells = [cell for cell, other in self.of.items() if other == number]
            named = [self.cells[cell] for cell in cells if grade_id(self.cells[cell]) == part.name]
            wrong = {
                "cell-missing": None if cells or (part.solution and self._is_elsewhere(number)) else "",
                "cell-twice": f"{len(cells)} times" if len(cells) > 1 else None,
                "cell-type": "" if any(cell["cell_type"] != part.kind for cell in named) else None,
                "cell-edited": _edited(part, named, not all(map(self._is_as_handed_out, cells))),
            }
            found += [Incident(kind, detail, part.name) for kind, detail in wrong.items() if detail is not None]
        return found


def _edited(part: Part, cells: list[Cell], is_edited: bool) -> str | None:
    if any(_rights(cell["metadata"]["nbgrader"]) != _rights(part.about or {}) for cell in cells):
        return "its points or rights"
    return "" if is_edited and not part.solution else None


def _rights(about: dict[str, Any]) -> tuple[Any, ...]:
    return (bool(about.get("grade")), bool(about.get("solution")), about.get("points") or 0)


def _why_none(notebook: Any) -> DamagedError:
    """Why no cell of the exercise is in a notebook: `minitorch collect` writes one where it found nothing to grade."""
    about = notebook.get("metadata")
    ours = about.get("minitorch") if isinstance(about, dict) else None
    problem = ours.get("problem") if isinstance(ours, dict) else None
    return DamagedError("unreadable", problem[:300]) if isinstance(problem, str) else DamagedError("wrong-exercise")


def _kernel(notebook: Any) -> list[Incident]:
    about = notebook.get("metadata")
    spec = about.get("kernelspec") if isinstance(about, dict) else None
    if not isinstance(spec, dict):
        return []
    language, name = str(spec.get("language", "")), str(spec.get("name", ""))
    is_python = language.lower() == "python" if language else "py" in name.lower()
    return [] if is_python else [Incident("wrong-kernel", name[:60])]
