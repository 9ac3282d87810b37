"""Frozen and quantised models beside onnxruntime, PyTorch and JAX.

python -m benchmarks.inference                               this machine's code, all cores
python -m benchmarks.inference --target vnni,avx2 --cores 1,2     tables for fewer instructions, and for fewer cores
python -m benchmarks.inference --save                        writes the tables of docs/inference.md
"""

from __future__ import annotations

import argparse
import json
import os
import re
import sys
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path

from .. import machine, targets
from ..progress import progress
from ..report import saved
from ..run import Results, run
from . import report
from .contenders import CONTENDERS, TABLE
from .models import CASES

# Of new processes; of measurements in each; of each measurement. More and longer ones are less noise. With these, two
# targets on one and on two cores take about ten minutes of an idle machine with two cores, half of them to prepare.
ROUNDS, TURNS, SECONDS = 1, 7, 0.03
QUICK_TURNS, QUICK_SECONDS = 3, 0.01
FOLDER = Path(__file__).resolve().parents[1]
PAGE = FOLDER.parent / "docs" / "inference.md"


def _options(arguments: Sequence[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks.inference", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--contenders", metavar="A,B", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--target", metavar="A,B", default=targets.NATIVE, type=targets.chosen, help="one run for each")
    parser.add_argument("--cores", metavar="1,2", default="", help="one run for each number; all cores unless told")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} unless told; each starts new processes")
    parser.add_argument("--turns", type=int, help=f"{TURNS} unless told: measurements in a round")
    parser.add_argument("--quick", action="store_true", help="one round of few and short measurements")
    parser.add_argument("--check", action="store_true", help="end with 1 if a bound is missed")
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder of results.inference.json")
    parser.add_argument("--save", action="store_true", help=f"write the tables of docs/{PAGE.name}")
    parser.add_argument("--remark", default="", help="a sentence for the saved page, such as that the machine was busy")
    return parser.parse_args(arguments)


def _contenders(wanted: str | None) -> list[str]:
    names = [row.name for row in TABLE] if wanted is None else wanted.split(",")
    for name in names:
        if name not in CONTENDERS:
            raise SystemExit(f"there is no contender {name!r}; there are {', '.join(CONTENDERS)}")
    return [name for name in CONTENDERS if name in names and CONTENDERS[name].installed()]


def _load() -> str:
    """How busy the machine is with other programs, where the system tells."""
    return f"{os.getloadavg()[0]:.1f}" if hasattr(os, "getloadavg") else "unknown"


def described(measured: Sequence[Results], rounds: int, turns: int, before: str, remark: str) -> str:
    """The machine, the versions, how it was measured, and how busy the machine was before."""
    versions = {name: version for results in measured for name, version in results.versions.items() if version}
    packages = {CONTENDERS[name].package: version for name, version in versions.items() if name in CONTENDERS}
    lines = [
        f"{machine.sentence(machine.describe(), None)}; {machine.describe()['system']}.",
        f"{', '.join(f'{package} {version}' for package, version in packages.items())}.",
        f"Medians of {rounds * turns} turns ({rounds} × new processes); ratios are medians of those within a turn.",
        f"{report.left_out(measured)}",
        f"Processes that were running before: {before} (load average).",
    ]
    return " ".join([*lines, *([remark] if remark else [])])


def measured(options: argparse.Namespace) -> tuple[list[Results], str]:
    """All runs that are asked for, and the text about them."""
    names = _contenders(options.contenders)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    if not cases or not names:
        raise SystemExit(f"no case matches {options.cases!r}, or no contender is installed")
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    turns = options.turns or (QUICK_TURNS if options.quick else TURNS)
    cores: list[int | None] = [int(number) for number in options.cores.split(",") if number]
    before, found = _load(), []
    runs = [(target, number) for target in options.target for number in cores or [None]]
    probed: dict[str, list[targets.Probe]] = {}
    with progress(len(runs) * rounds * (len(names) + 1) * (len(cases) + 1)) as advance:
        for target, number in runs:
            every = QUICK_SECONDS if options.quick else SECONDS
            found.append(run(cases, names, rounds, every, advance, target, number, turns, probed.get(target)))
            probed[target] = found[-1].probes
    parts = [described(found, rounds, turns, before, options.remark), *report.texts(found)]
    return found, "\n\n".join(parts)


def as_json(results: Results) -> dict[str, object]:
    """Everything that was measured, for programs."""
    return {
        "target": results.target,
        "cores": results.cores,
        "versions": results.versions,
        "bounds": [asdict(bound) for bound in report.bounds(results)],
        "entries": [
            {"case": case, "contender": name, **asdict(entry)} for (case, name), entry in results.entries.items()
        ],
    }


def main(arguments: Sequence[str] | None = None) -> int:
    """Measure, print, write."""
    options = _options(arguments)
    found, text = measured(options)
    print(text)
    options.output.mkdir(parents=True, exist_ok=True)
    path = options.output / "results.inference.json"
    path.write_text(json.dumps([as_json(results) for results in found], indent=1), encoding="utf-8")
    if options.save:
        PAGE.write_text(saved(PAGE.read_text(encoding="utf-8"), text), encoding="utf-8")
    kept = all(bound.kept for results in found for bound in report.bounds(results))
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
