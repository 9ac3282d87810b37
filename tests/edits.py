"""Random edits of right solutions, as students and their tools make them; whether a check and a grade agree on them.

    python -m tests.edits                          500 edited notebooks
    python -m tests.edits --edits 100 --seed 7
    python -m tests.edits --only 7000123           one of them

Each notebook is graded in the sandbox, and checked as a student checks it, with the same seeds. The points of all parts
have to be the same. Where all edits are harmless, all points have to be there.
"""

from __future__ import annotations

import argparse
import ast
import json
import re
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from random import Random
from typing import Any

from minitorch_grading.check import check_notebook
from minitorch_grading.checks.task import SEEDS
from minitorch_grading.grading.limits import Limits
from minitorch_grading.grading.sandbox.bubblewrap import Sandbox
from minitorch_grading.grading.sandbox.image import contents
from minitorch_grading.grading.sandbox.kernel import Kernel
from minitorch_grading.grading.sandbox.server import ForkServer
from minitorch_grading.grading.submission.alignment import names
from minitorch_grading.grading.submission.preflight import Part, read, released
from minitorch_grading.grading.submission.run import Setting, grade
from tools.clone import RELEASED, SOLUTIONS

Cell = dict[str, Any]

EXERCISES = ("01-eager", "03-graph", "06-rewriting", "07-fusion", "09-reductions")


@dataclass
class Notebook:
    """A notebook that is being edited."""

    content: dict[str, Any]
    texts: list[Callable[[str], str]] = field(default_factory=list)  # what is done to the text of the file

    @property
    def cells(self) -> list[Cell]:
        found: list[Cell] = self.content["cells"]
        return found

    def code(self) -> list[int]:
        """The places of code cells."""
        return [place for place, cell in enumerate(self.cells) if cell["cell_type"] == "code"]

    def answers(self) -> list[int]:
        """The places of answers; a stub is none."""
        solutions = [place for place, cell in enumerate(self.cells) if about(cell).get("solution")]
        return [place for place in solutions if "raise NotImplementedError()" not in self.cells[place]["source"]]

    def text(self) -> str:
        text = json.dumps(self.content)
        for change in self.texts:
            text = change(text)
        return text


def about(cell: Cell) -> dict[str, Any]:
    found: dict[str, Any] = cell["metadata"].get("nbgrader", {})
    return found


def imported(book: Notebook) -> str:
    """A name that the first code cell imports."""
    nodes = [
        node for node in ast.walk(ast.parse(book.cells[min(book.code())]["source"])) if isinstance(node, ast.Import)
    ]
    return nodes[0].names[0].asname or nodes[0].names[0].name if nodes else "checks"


def new(source: str, kind: str = "code") -> Cell:
    """A cell as an editor makes it."""
    cell: Cell = {"cell_type": kind, "metadata": {}, "source": source}
    return cell | {"outputs": [], "execution_count": None} if kind == "code" else cell


def solution(exercise: str) -> Notebook:
    """What was handed out, with the right answers."""
    handed_out, solved = (
        json.loads((folder / exercise / f"{exercise}.ipynb").read_text()) for folder in (RELEASED, SOLUTIONS)
    )
    for cell, right in zip(handed_out["cells"], solved["cells"], strict=True):
        if about(cell).get("solution"):
            lines = "".join(right["source"]).splitlines()
            cell["source"] = "\n".join(line for line in lines if not line.strip().startswith("###"))
        cell["source"] = "".join(cell["source"])
    return Notebook(handed_out)


# --- harmless edits -----------------------------------------------------------------------------------------------


def insert_a_helper(book: Notebook, random: Random) -> None:
    """Anywhere under the imports: right under them, or under an example, which stands between two released cells."""
    place = random.randrange(min(book.code()) + 1, len(book.cells) + 1)
    book.cells.insert(place, new(f"def helper_{place}():\n    return {imported(book)}\n\nused = helper_{place}()"))


def use_a_helper(book: Notebook, random: Random) -> None:
    """An answer needs what a cell right above it defines."""
    place = random.choice(book.answers())
    book.cells[place]["source"] = f"needed_{place}()\n" + book.cells[place]["source"]
    book.cells.insert(place, new(f"kept = {imported(book)}\ndef needed_{place}():\n    return kept"))


def lose_the_metadata_of_a_cell(book: Notebook, random: Random) -> None:
    cell = random.choice(book.cells)
    cell["metadata"] = {}
    if random.random() < 0.5:
        cell.pop("id", None)


def lose_all_metadata(book: Notebook, random: Random) -> None:
    for cell in book.cells:
        cell["metadata"] = {}
        if random.random() < 0.5:
            cell.pop("id", None)


def retype_an_answer(book: Notebook, random: Random) -> None:
    """In a cell of its own; the one that was handed out is deleted, or left as it was handed out, above or below."""
    place = random.choice(book.answers())
    source = book.cells[place]["source"]
    book.cells[place : place + 1] = [new(f"# mine\n{source}\n")]
    left = random.choice((None, 0, 1))
    stubs = [each for each in book.content["stubs"] if names(each["source"]) <= names(source)]
    if left is not None and stubs:
        book.cells.insert(place + left, json.loads(json.dumps(stubs[0])))


def split_an_answer(book: Notebook, random: Random) -> None:
    """In two, at a line that begins a statement, as JupyterLab does: both halves have the metadata."""
    place = random.choice(book.answers())
    cell = book.cells[place]
    lines = f"first_half = {place}\n{cell['source']}".splitlines()
    second = {**cell, "source": "\n".join(lines[1:])} | ({"metadata": {}} if random.random() < 0.3 else {})
    book.cells[place : place + 1] = [{**cell, "source": lines[0]}, {k: v for k, v in second.items() if k != "id"}]


def merge_an_answer(book: Notebook, random: Random) -> None:
    """With a code cell below or above, which gives the metadata."""
    place = random.choice(book.answers())
    if random.random() < 0.5:
        book.cells.insert(place, new(f"merged = {place}"))
    else:
        book.cells.insert(place + 1, new(f"merged = {place}"))
    first, second = book.cells[place : place + 2]
    book.cells[place : place + 2] = [{**first, "source": f"{first['source']}\n\n{second['source']}"}]


def merge_an_answer_into_the_imports(book: Notebook, random: Random) -> None:
    imports, place = book.cells[min(book.code())], random.choice(book.answers())
    imports["source"] += f"\n\n{book.cells[place]['source']}"
    del book.cells[place]


def copy_a_cell(book: Notebook, random: Random) -> None:
    place = random.randrange(len(book.cells))
    book.cells.insert(place + 1, json.loads(json.dumps(book.cells[place])))


def delete_a_text_or_check(book: Notebook, random: Random) -> None:
    places = [each for each, cell in enumerate(book.cells) if cell["cell_type"] != "code" or about(cell).get("grade")]
    del book.cells[random.choice(places)]


def edit_a_check(book: Notebook, random: Random) -> None:
    book.cells[random.choice([each for each in book.code() if about(book.cells[each]).get("grade")])]["source"] = "30.0"


def move_a_check(book: Notebook, random: Random) -> None:
    cell = book.cells.pop(random.choice([each for each in book.code() if about(book.cells[each]).get("grade")]))
    book.cells.insert(random.randrange(len(book.cells) + 1), cell)


def as_windows(book: Notebook, random: Random) -> None:
    book.texts.append(lambda text: re.sub(r"(?<!\\)((?:\\\\)*)\\n", r"\1\\r\\n", text))


def with_spaces(book: Notebook, random: Random) -> None:
    for cell in book.cells:
        cell["source"] = "\n".join(f"{line}  " if '"""' not in line else line for line in cell["source"].split("\n"))


def as_format_3(book: Notebook, random: Random) -> None:
    cells = []
    for cell in book.cells:
        old = {key: value for key, value in cell.items() if key not in ("id", "execution_count", "source")}
        source = cell["source"].splitlines(keepends=True)
        cells.append(old | ({"input": source, "language": "python"} if "outputs" in cell else {"source": source}))
    book.content = {**book.content, "cells": cells}  # what is edited later finds the cells all the same

    def convert(text: str) -> str:
        now = json.loads(text)
        if "worksheets" in now:
            return text
        for each in now["cells"]:
            if each["cell_type"] == "code" and "source" in each:
                each["input"] = each.pop("source")
        sheet = {"cells": now.pop("cells"), "metadata": {}}
        return json.dumps({"metadata": {"name": ""}, "nbformat": 3, "nbformat_minor": 0, "worksheets": [sheet]})

    for each in cells:
        each.setdefault("source", "".join(each.pop("input", "")))
        each["source"] = "".join(each["source"])
    book.texts.append(convert)


def as_colab(book: Notebook, random: Random) -> None:
    keeps = random.random() < 0.5
    for cell in book.cells:
        cell.pop("id", None)
        kept = cell["metadata"] if keeps else {}
        cell["metadata"] = {
            **kept,
            "id": f"{random.randrange(16**12):012x}",
            "colab": {"base_uri": "https://localhost/"},
        }
    spec = {"name": "python3", "display_name": "Python 3"}
    book.content["metadata"] = {"colab": {"provenance": []}, "kernelspec": spec, "language_info": {"name": "python"}}
    book.content["nbformat_minor"] = 0


def as_vs_code(book: Notebook, random: Random) -> None:
    for cell in book.cells:
        cell["metadata"] = {**cell["metadata"], "vscode": {"languageId": "python"}}
        cell["metadata"].pop("tags", None)
    book.content["metadata"] = {"kernelspec": {"display_name": ".venv", "language": "python", "name": "python3"}}


def with_outputs(book: Notebook, random: Random) -> None:
    """Of 6 MB: more than a notebook may have without them."""
    text = {"output_type": "stream", "name": "stdout", "text": ['"]}\\' * 1_500_000]}
    book.cells[random.choice(book.code())]["outputs"] = [text]


HARMLESS = (
    insert_a_helper,
    use_a_helper,
    lose_the_metadata_of_a_cell,
    lose_all_metadata,
    retype_an_answer,
    split_an_answer,
    merge_an_answer,
    merge_an_answer_into_the_imports,
    copy_a_cell,
    delete_a_text_or_check,
    edit_a_check,
    move_a_check,
    as_windows,
    with_spaces,
    as_format_3,
    as_colab,
    as_vs_code,
    with_outputs,
)

# --- edits that may cost points -----------------------------------------------------------------------------------


def answer_wrongly(book: Notebook, random: Random) -> None:
    cell = book.cells[random.choice(book.answers())]
    name = cell["source"].partition("def ")[2].partition("(")[0]
    ways = (
        "return None",
        "return arguments[0]",
        "raise ValueError('no')",
        "return input()",
        "return (",
        "import torch",
    )
    cell["source"] = f"def {name}(*arguments, **named):\n    {random.choice(ways)}"


def use_the_engine(book: Notebook, random: Random) -> None:
    """A part that is withheld, or a package that is not there."""
    lines = (
        "from minitorch.passes import LAWS\nfound = LAWS",
        "import scipy",
        "import minitorch_grading.checks.eager",
    )
    book.cells.insert(random.randrange(len(book.cells) + 1), new(random.choice(lines)))


def return_the_laws(book: Notebook, random: Random) -> None:
    for place in book.answers():
        if "def laws" in book.cells[place]["source"]:
            book.cells[place]["source"] = "def laws():\n    from minitorch.passes import LAWS\n    return LAWS"


def move_a_cell(book: Notebook, random: Random) -> None:
    cell = book.cells.pop(random.randrange(len(book.cells)))
    book.cells.insert(random.randrange(len(book.cells) + 1), cell)


def delete_a_cell(book: Notebook, random: Random) -> None:
    del book.cells[random.randrange(len(book.cells))]


def split_anywhere(book: Notebook, random: Random) -> None:
    place = random.choice(book.code())
    cell = book.cells[place]
    lines = cell["source"].split("\n")
    cut = random.randrange(len(lines) + 1)
    halves = ["\n".join(lines[:cut]), "\n".join(lines[cut:])]
    book.cells[place : place + 1] = [{**cell, "source": half} for half in halves]


def merge_anywhere(book: Notebook, random: Random) -> None:
    code = [each for each in book.code() if each + 1 in book.code()]
    if code:
        place = random.choice(code)
        first, second = book.cells[place : place + 2]
        book.cells[place : place + 2] = [{**first, "source": f"{first['source']}\n{second['source']}"}]


def change_a_type(book: Notebook, random: Random) -> None:
    cell = random.choice(book.cells)
    cell["cell_type"] = random.choice(("code", "markdown", "raw"))
    cell.setdefault("outputs", [])


def forge_a_score(book: Notebook, random: Random) -> None:
    source = "checks.eager = checks.graph = checks.rewriting = None"
    book.cells.insert(random.randrange(len(book.cells) + 1), new(source))


COSTLY = (
    answer_wrongly,
    use_the_engine,
    return_the_laws,
    move_a_cell,
    delete_a_cell,
    split_anywhere,
    merge_anywhere,
    change_a_type,
    forge_a_score,
)


def edited(seed: int) -> tuple[str, str, list[str], bool]:
    """An exercise, an edited notebook for it, the names of the edits, and whether it has to have all points."""
    random = Random(seed)
    exercise = random.choice(EXERCISES)
    is_right = random.random() < 0.6
    edits = [random.choice(HARMLESS if is_right else HARMLESS + COSTLY) for _ in range(random.randrange(1, 5))]
    return exercise, made(exercise, edits, random), [each.__name__ for each in edits], is_right


def made(exercise: str, edits: Sequence[Callable[[Notebook, Random], None]], random: Random) -> str:
    """The text of a solution after some edits. An edit for which nothing is left that it could change is left out."""
    book = solution(exercise)
    handed_out = json.loads((RELEASED / exercise / f"{exercise}.ipynb").read_text())["cells"]
    book.content["stubs"] = [
        {**cell, "source": "".join(cell["source"])} for cell in handed_out if about(cell).get("solution")
    ]
    for edit in edits:
        try:
            edit(book, random)
        except IndexError:  # metadata are lost already: there is no answer to be found
            continue
    del book.content["stubs"]
    return book.text()


# --- the law ------------------------------------------------------------------------------------------------------

Said = dict[str, tuple[float, float, dict[str, float]]]


class Both(ExitStack):
    """A course in which notebooks are graded and checked; a context manager."""

    def __init__(self, folder: Path) -> None:
        super().__init__()
        self.folder = folder
        self._servers: dict[str, tuple[list[Part], ForkServer]] = {}

    def _server(self, exercise: str) -> tuple[list[Part], ForkServer]:
        if exercise not in self._servers:
            path = self.folder / "exercises" / exercise / f"{exercise}.ipynb"
            path.parent.mkdir(parents=True)
            path.write_bytes((RELEASED / exercise / path.name).read_bytes())
            release = released(path)
            server = self.enter_context(
                ForkServer(Sandbox(Limits(cell_seconds=30), contents=contents(part.task for part in release)))
            )
            server.wait()
            self._servers[exercise] = release, server
        return self._servers[exercise]

    def points(self, exercise: str, text: str) -> tuple[Said, Said, str]:
        """The points of each task and part by the grader and by a check, and the incidents."""
        release, server = self._server(exercise)
        path = self.folder / "submitted" / "ana" / exercise / f"{exercise}.ipynb"
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)
        files = read(path.parent, exercise, Limits().notebook)
        result = grade(files, exercise, Setting(release, SEEDS, partial(Kernel, server), server.sandbox.limits))
        graded = {each.task: (each.points, each.of, parts(each.parts)) for each in result.graded}
        checked = {row.task: (row.points, row.of, parts(row.parts)) for row in check_notebook(path, 120).rows}
        return graded, checked, "; ".join(map(str, result.incidents))


def parts(found: Sequence[dict[str, Any]]) -> dict[str, float]:
    return {each["name"]: each["points"] for each in found}


def disagreement(both: Both, seed: int) -> str:
    """Why the law does not hold for an edited notebook; empty if it does."""
    exercise, text, edits, is_right = edited(seed)
    graded, checked, incidents = both.points(exercise, text)
    wrong = "" if graded == checked else f"check says {checked}, grade says {graded}"
    if is_right and not wrong:
        wrong = "".join(f" {task} has {has:g} of {of:g}" for task, (has, of, _) in graded.items() if has < of)
    return f"{seed} {exercise} ({', '.join(edits)}): {wrong} [{incidents}]" if wrong else ""


def disagreements(seeds: Sequence[int]) -> Iterator[str]:
    """One for each seed; empty where there is none."""
    with tempfile.TemporaryDirectory(prefix="minitorch-edits-") as folder, Both(Path(folder)) as both:
        for seed in seeds:
            yield disagreement(both, seed)


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--edits", type=int, default=500, help="how many notebooks (%(default)s)")
    parser.add_argument("--seed", type=int, default=7)
    parser.add_argument("--only", type=int, nargs="*", metavar="SEED", help="these notebooks alone")
    options = parser.parse_args()
    seeds = options.only or [1_000_000 * options.seed + number for number in range(options.edits)]
    failed = 0
    for done, wrong in enumerate(disagreements(seeds), 1):
        failed += bool(wrong)
        if wrong:
            print(wrong, flush=True)
        if done % 50 == 0 or done == len(seeds):
            print(f"{done} of {len(seeds)}: {failed} disagree", file=sys.stderr, flush=True)
    return int(bool(failed))


if __name__ == "__main__":
    sys.exit(main())
