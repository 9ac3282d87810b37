"""The command line: ``minitorch``, also as ``python -m minitorch``. A table of commands; each loads what it needs."""

from __future__ import annotations

import argparse
import json
import os
import sys
from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass
from typing import Any, NoReturn

from . import __version__
from .errors import CommandError, codes, explain
from .ir import PRIMITIVES
from .packages import load

Run = Callable[[argparse.Namespace], int | None]


@dataclass(frozen=True)
class Command:
    """One command.

    Attributes:
        text: its purpose, in a sentence.
        run: carries it out, and may return an exit status.
        arguments: the flags or the name of each argument, and its other options for argparse.
        examples: command lines, with their purposes.
        json: whether the result is a table, which ``--json`` prints as such.
    """

    text: str
    run: Run
    arguments: tuple[tuple[tuple[str, ...], dict[str, Any]], ...] = ()
    examples: tuple[tuple[str, str], ...] = ()
    json: bool = False


def argument(*names: str, **about: Any) -> tuple[tuple[str, ...], dict[str, Any]]:
    """Return an argument of a command, as `argparse.ArgumentParser.add_argument` takes it."""
    return names, about


def percent(text: str) -> float:
    """Parse a percentage, with or without the sign, as a fraction."""
    share = float(text.removesuffix("%")) / 100
    if not 0 <= share <= 1:
        raise ValueError(f"{text} is no number from 0 to 100")
    return share


def classroom(name: str) -> Run:
    """Return a command of the classroom, which is loaded when the command is used."""

    def run(options: argparse.Namespace) -> int | None:
        command: Run = getattr(load("minitorch_grading.commands"), name)
        return command(options)

    return run


def _primitives(options: argparse.Namespace) -> None:
    if options.json:
        print_json([{"name": each.name, "kind": each.kind, "doc": each.doc} for each in PRIMITIVES.values()])
    else:
        print(load("minitorch_inspect").primitives_table())


def _cache(options: argparse.Namespace) -> None:
    from .compiler.runtime import cache  # loads LLVM

    cache.cache_command(options)


def _machine(options: argparse.Namespace) -> None:
    here = load("minitorch_profiler").machine(again=options.again)
    print_json(asdict(here)) if options.json else print(here)


def _reproduce(options: argparse.Namespace) -> int:
    try:
        report = load("minitorch_checking.reproducer").reproduce(options.folder)
    except FileNotFoundError as error:
        raise CommandError(f"{options.folder} holds no reproducer: there is no {error.filename}") from None
    print(report)
    return int(not report.ok)


def _explain(options: argparse.Namespace) -> None:
    wanted = options.codes or list(codes())
    unknown = [code for code in wanted if code.upper() not in codes()]
    if unknown:
        raise CommandError(f"there is no {unknown[0]}; `minitorch explain` lists the codes")
    titles = {code.upper(): codes()[code.upper()] for code in wanted}
    if options.json:
        print_json([{"code": code, "title": title, "page": explain(code)} for code, title in titles.items()])
    elif options.codes:
        print("\n".join(map(explain, titles)), end="")
    else:
        print("\n".join(f"{code}  {title}" for code, title in titles.items()))


def print_json(data: object) -> None:
    """Print data as JSON."""
    print(json.dumps(data, indent=2, ensure_ascii=False))


ONLY = argument(
    "--only", nargs="+", action="extend", default=[], metavar="NAME", help="these students, these exercises, or both"
)

COMMANDS: dict[str, Command] = {
    "lab": Command(
        "open JupyterLab at the first notebook",
        classroom("lab"),
        (
            argument("--port", type=int, help="this port or none; the next free one from 8888 by default"),
            argument("--no-browser", action="store_true", help="print the address, and start no browser"),
            argument("options", nargs="*", help="JupyterLab's own options, after `--`"),
        ),
        (("minitorch lab", "here"), ("minitorch lab --port 8899 -- --ip=0.0.0.0", "for other machines, too")),
    ),
    "check": Command(
        "run the checks of an exercise, and show the points and the reason for each task",
        classroom("check"),
        (
            argument("paths", nargs="+", metavar="exercise", help="a notebook, or a folder with one"),
            argument("--time", type=float, default=120, metavar="SECONDS", help="for a whole notebook (%(default)s)"),
        ),
        (
            ("minitorch check exercises/03-graph", "one exercise"),
            ("minitorch check exercises/* --json", "all of them, for a program to read"),
        ),
        json=True,
    ),
    "release": Command(
        "make exercises/ from solutions/, as students get them",
        classroom("release"),
        (
            argument("names", nargs="*", metavar="exercise", help="such as 03-graph; all by default"),
            argument("--source", default="solutions", help="the folder of the solutions (%(default)s)"),
            argument("--to", default="exercises", metavar="FOLDER", help="where to write (%(default)s)"),
            argument("--check", action="store_true", help="write nothing; fail if the folder is not up to date"),
            argument(
                "--package",
                nargs="?",
                const="package",
                metavar="FOLDER",
                help="write what students get, too: a zip for each exercise, and a wheel of minitorch (%(const)s)",
            ),
        ),
        (
            ("minitorch release", "after a change in solutions/"),
            ("minitorch release --package", "the files for students, in package/"),
            ("minitorch release --check", "has it been done?"),
        ),
    ),
    "new-exercise": Command(
        "write an exercise with checks of its own and wrong solutions, as a beginning of another one",
        classroom("new_exercise"),
        (
            argument("exercise", help="its name, such as 10-mean"),
            argument("--source", default="solutions", help="the folder of the solutions (%(default)s)"),
            argument(
                "--wrong", default="wrong_solutions", metavar="FOLDER", help="of the wrong solutions (%(default)s)"
            ),
        ),
        (("minitorch new-exercise 10-mean", "then change what is in it"),),
    ),
    "wrong-solutions": Command(
        "run the solution of an exercise, and wrong ones, against its checks",
        classroom("wrong_solutions"),
        (
            argument("exercise", help="such as 10-mean; its wrong solutions are wrong_solutions/10-mean/*.py"),
            argument("--source", default="solutions", help="the folder of the solutions (%(default)s)"),
            argument(
                "--wrong", default="wrong_solutions", metavar="FOLDER", help="of the wrong solutions (%(default)s)"
            ),
            argument("--time", type=float, default=300, metavar="SECONDS", help="for all of it (%(default)s)"),
        ),
        (("minitorch wrong-solutions 10-mean", "after a change in its checks"),),
        json=True,
    ),
    "collect": Command(
        "bring a class's work from a platform's download into submitted/",
        classroom("collect"),
        (
            argument("source", help="a folder or zip, as Moodle, Canvas or nbgrader's exchange made it"),
            argument(
                "--to", default="submitted", metavar="FOLDER", help="the course's folder of submissions (%(default)s)"
            ),
            argument("--exercise", metavar="NAME", help="what all of it is for (the name of the download says it)"),
            argument(
                "--roster", metavar="CSV", help="who is in the course (roster.csv beside FOLDER, if there is one)"
            ),
            argument(
                "--worksheet", action="append", default=[], metavar="CSV", help="Moodle's grading worksheet: times"
            ),
            argument(
                "--column", action="append", default=[], metavar="WHAT=NAME", help="a heading in another language"
            ),
        ),
        (
            ("minitorch collect 03-graph.zip", "from Canvas; the same again changes nothing"),
            ("minitorch collect 03-graph.zip --worksheet Grades.csv", "from Moodle, with names and times"),
            ("minitorch collect download.zip --exercise 03-graph", "a download whose name does not say what it is for"),
        ),
        json=True,
    ),
    "grade": Command(
        "grade a class: run submissions in a sandbox, and write gradebook and feedback",
        classroom("grade"),
        (
            argument("submitted", help="the folder with STUDENT/EXERCISE/EXERCISE.ipynb"),
            ONLY,
            argument("--task", default="", metavar="TASK", help="this task alone; all else stays as it was recorded"),
            argument("--exercises", metavar="FOLDER", help="the released exercises (exercises/, beside SUBMITTED)"),
            argument("--workers", type=int, metavar="N", help="submissions at a time (one for each processor)"),
            argument("--scheduler", default="", metavar="ADDRESS", help="on a Dask cluster, such as tcp://grader:8786"),
            argument("--cell-time", type=float, default=60, metavar="SECONDS", help="for one cell (%(default)s)"),
            argument("--time", type=float, default=300, metavar="SECONDS", help="for one submission (%(default)s)"),
            argument("--memory", type=int, default=2048, metavar="MIB", help="for one submission (%(default)s)"),
            argument("--again", action="store_true", help="grade what has been graded before, too"),
            argument("--unsafe", action="store_true", help="without a sandbox: students' code runs with your rights"),
        ),
        (
            ("minitorch grade submitted/", "everything that is new; the same again after an interruption"),
            ("minitorch grade submitted/ --only ana --again", "one student, from the beginning"),
            ("minitorch grade submitted/ --scheduler tcp://grader:8786", "on all machines of a Dask cluster"),
            ("minitorch grade submitted/ --json", "the report, for a program to read"),
        ),
        json=True,
    ),
    "export": Command(
        "write points and feedback in the forms that Canvas and Moodle import",
        classroom("export"),
        (
            argument("form", choices=("canvas", "moodle", "worksheet", "feedback")),
            argument("file", nargs="?", help="what Canvas (gradebook) or Moodle (grading worksheet) exported"),
            argument("--to", required=True, metavar="PATH", help="the file to write; for feedback a .zip or a folder"),
            argument("--course", default=".", metavar="FOLDER", help="the folder of the course (the present one)"),
            argument("--exercise", action="append", default=[], metavar="NAME", help="only this one"),
            argument(
                "--missing", choices=("empty", "zero"), default="empty", help="who handed in nothing (%(default)s)"
            ),
            argument("--scale", action="store_true", help="scale points to the platform's maximum"),
            argument("--column", action="append", default=[], metavar="WHAT=NAME", help="an exercise's column"),
            argument("--roster", metavar="CSV", help="who is in the course (roster.csv there, if there is one)"),
        ),
        (
            ("minitorch export canvas Grades.csv --to upload.csv", "Canvas's gradebook, filled in"),
            ("minitorch export worksheet Grades.csv --exercise 03-graph --to upload.csv", "an assignment in Moodle"),
            ("minitorch export moodle --to grades.csv --missing zero", "for Moodle's Grades, Import"),
            ("minitorch export feedback --exercise 03-graph --to feedback.zip", "pages, back to the platform"),
        ),
        json=True,
    ),
    "report": Command(
        "show a graded class: points by task, reasons, incidents, and what a person has to look at",
        classroom("report"),
        (
            argument("course", nargs="?", default=".", help="the folder of the course (the present one)"),
            ONLY,
            argument("--page", metavar="FILE", help="where to write the page (report.html in the course)"),
            argument("--csv", action="store_true", help="print a line for each student and task instead"),
        ),
        (
            ("minitorch report", "in the folder of the course; writes report.html, too"),
            ("minitorch report --only 03-graph --csv", "one exercise, for a spreadsheet"),
        ),
        json=True,
    ),
    "similar": Command(
        "compare the submissions for an exercise, and show where code is alike",
        classroom("similar"),
        (
            argument("exercise", help="such as 03-graph"),
            argument("--course", default=".", metavar="FOLDER", help="the folder of the course (the present one)"),
            argument("--pairs", type=int, default=50, metavar="N", help="number of pairs (%(default)s)"),
            argument("--at-least", type=percent, default=0.3, metavar="PERCENT", help="of a submission (30)"),
            argument("--common", type=percent, default=1 / 3, metavar="PERCENT", help="of a class; not counted (33)"),
            argument("--lines", action="store_true", help="print the common lines, too"),
        ),
        (
            ("minitorch similar 03-graph", "writes similar/03-graph.html and .csv"),
            ("minitorch similar 03-graph --pairs 5 --lines", "the five most similar pairs, with their lines"),
        ),
        json=True,
    ),
    "doctor": Command(
        "check this installation, and name faults with their remedies",
        classroom("doctor"),
        examples=(("minitorch doctor", "before a class"), ("minitorch doctor --json", "to put into a report")),
        json=True,
    ),
    "machine": Command(
        "measure what this machine can do, once, and show it",
        _machine,
        (argument("--again", action="store_true", help="measure now, even if it was done before"),),
        (("minitorch machine", "as it was measured"), ("minitorch machine --again", "measured now")),
        json=True,
    ),
    "explain": Command(
        "print the page about an error: what fails, why, and what to write instead",
        _explain,
        (argument("codes", nargs="*", metavar="code", help="as the message begins, such as MT201; none: list them"),),
        (("minitorch explain MT201", "after an error with this code"), ("minitorch explain", "the codes")),
        json=True,
    ),
    "primitives": Command(
        "list the primitives, and count the public functions built on them",
        _primitives,
        examples=(("minitorch primitives", "by family"),),
        json=True,
    ),
    "cache": Command(
        "show or clear the compiled code kept on disk",
        _cache,
        (argument("action", choices=("info", "clear")),),
        (("minitorch cache info", "where it is, and how large"), ("minitorch cache clear", "compile everything again")),
    ),
    "reproduce": Command(
        "run what shadow mode wrote down, and compare again",
        _reproduce,
        (argument("folder", help="the folder that the error names"),),
        (("minitorch reproduce mismatch", "after `mt.jit(f, check=True)` found a difference"),),
    ),
}


class _Parser(argparse.ArgumentParser):
    """A parser whose errors are one sentence that refers to the help."""

    def error(self, message: str) -> NoReturn:
        self.exit(2, f"{self.prog}: {message}; `{self.prog} --help` says more\n")


def parser() -> argparse.ArgumentParser:
    """Return the parser of the command line: a subcommand for each row of `COMMANDS`."""
    whole = _Parser(prog="minitorch", description="A small tensor engine, and its course.", allow_abbrev=False)
    whole.add_argument("--version", action="version", version=f"minitorch {__version__}")
    commands = whole.add_subparsers(dest="command", required=True, metavar="command")
    for name, row in COMMANDS.items():
        width = max((len(line) for line, _ in row.examples), default=0)
        examples = "\n".join(f"  {line:<{width}}   {what}" for line, what in row.examples)
        command = commands.add_parser(
            name,
            help=row.text,
            description=f"{row.text[0].upper()}{row.text[1:]}.",
            epilog=f"examples:\n{examples}" if examples else None,
            formatter_class=argparse.RawDescriptionHelpFormatter,
            allow_abbrev=False,
        )
        for names, about in row.arguments:
            command.add_argument(*names, **about)
        if row.json:
            command.add_argument("--json", action="store_true", help="print the result as JSON")
    return whole


def main(arguments: Sequence[str] | None = None) -> int:
    """Run one command; the result is the process's exit status: 0, or 2 if it could not be done.

    Example:
        >>> main(["primitives", "--json"])
        [
          {
            "name": ...
        0
    """
    options = parser().parse_args(arguments)
    try:
        return COMMANDS[options.command].run(options) or 0
    except CommandError as error:
        print(f"minitorch {options.command}: {error}", file=sys.stderr)
        return 2
    except BrokenPipeError:  # the reader, `head` for instance, has stopped
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        if error.filename is None:
            raise
        said = load("minitorch_grading.grading.course.gradebook.trouble").said
        print(f"minitorch {options.command}: {said(error)}", file=sys.stderr)
        return 2


if __name__ == "__main__":
    sys.exit(main())
