"""Records the programs of notebook 15 in all stacks: ``python -m tools.stacks --save``.

Each program runs in a process of its own, with empty caches; a function once more in another process, which finds them
filled. It needs the packages jax and torch and a compiler for C++, and takes some twenty minutes. Names of programs
after the command, or their beginnings, run these alone; with ``--save`` the others are kept.
"""

from __future__ import annotations

import argparse
import json
import os
import subprocess
import sys
import tempfile
from dataclasses import replace
from datetime import date
from typing import Any

from minitorch import course
from minitorch_course.conditions import version_of
from minitorch_course.libraries.programs import FUNCTIONS, PROGRAMS, installed
from minitorch_course.libraries.records import FOLDER
from minitorch_course.libraries.stacks import Row, as_data, first_calls, stacks_here

COMMAND = "python -m tools.stacks --save"
KEPT = FOLDER / "stacks.json"
INSIDE = "--inside"


def in_process(program: str, what: str, environment: dict[str, str]) -> Any:
    """What a process of its own tells about a program: its rows, or the seconds of first calls."""
    command = [sys.executable, "-m", "tools.stacks", INSIDE, what, program]
    told = subprocess.run(command, env=os.environ | environment, check=True, capture_output=True, text=True).stdout
    return json.loads(told.splitlines()[-1])


def measured(program: str) -> list[Row]:
    """The rows of a program; of a function with both first calls."""
    with tempfile.TemporaryDirectory() as ours, tempfile.TemporaryDirectory() as theirs:
        environment = {"MINITORCH_CACHE_DIR": ours, "TORCHINDUCTOR_CACHE_DIR": theirs, "JAX_PLATFORMS": "cpu"}
        rows = [Row(**row) for row in in_process(program, "rows", environment)]
        if PROGRAMS[program] not in FUNCTIONS:
            return rows
        again = in_process(program, "first", environment)
    return [replace(row, again=again[row.stack]) for row in rows]


def main() -> None:
    """Measure, print, and with ``--save`` write the record."""
    parser = argparse.ArgumentParser(description=(__doc__ or "").splitlines()[0])
    parser.add_argument("programs", nargs="*")
    parser.add_argument("--save", action="store_true")
    parser.add_argument(INSIDE, choices=("rows", "first"), help=argparse.SUPPRESS)
    given = parser.parse_args()
    if given.inside:
        course.settings(fresh=False)
        (program,) = given.programs
        rows = given.inside == "rows"
        print(
            json.dumps(as_data(stacks_here(program, rounds=9).rows) if rows else first_calls(program, installed())[1])
        )
        return
    kept: dict[str, Any] = json.loads(KEPT.read_text(encoding="utf-8")) if KEPT.exists() else {"rows": []}
    for name in PROGRAMS:
        if given.programs and not name.startswith(tuple(given.programs)):
            continue
        rows = measured(name)
        print(course.Stacks(rows, name), flush=True)
        others = [row for row in kept["rows"] if row["program"] != name]
        kept["rows"] = sorted(others + as_data(rows), key=lambda row: list(PROGRAMS).index(row["program"]))
        if given.save:
            conditions = course.settings(threads=None, fresh=False)
            versions = ", ".join(f"{package} {version_of(package)}" for package in ("torch", "jax"))
            where = (
                f"{versions}, Python {conditions.versions['Python']}, {conditions.machine}, one thread, {date.today()}"
            )
            record = {"command": COMMAND, "where": where, "rows": kept["rows"]}
            KEPT.write_text(json.dumps(record, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")


if __name__ == "__main__":
    main()
