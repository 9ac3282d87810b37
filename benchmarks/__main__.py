"""`make bench`, or `python -m benchmarks`: everything measured, a table, `results.json` and `results.png`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from pathlib import Path

from tqdm import tqdm

from . import dispatch, machine, picture, report
from .cases import CASES
from .contenders import CONTENDERS, TABLE
from .run import Results, run

FOLDER = Path(__file__).resolve().parent
SECONDS, QUICK_SECONDS = 0.02, 0.005  # of a measurement
ROUNDS = 3


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("--cases", metavar="REGEX", default="", help="only those whose name matches; `dispatch` is one")
    parser.add_argument("--contenders", metavar="A,B", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} unless told; in the first, caches on disk are empty")
    parser.add_argument("--quick", action="store_true", help="one round of short measurements")
    parser.add_argument("--check", action="store_true", help="end with 1 if minitorch misses its bounds")
    parser.add_argument("--json", action="store_true", help="print results.json in place of the tables")
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder of results.json and results.png")
    return parser.parse_args(arguments)


def _contenders(wanted: str | None) -> list[str]:
    """The names of those that take part.

    Raises:
        SystemExit: if one is asked for that is unknown or not installed.
    """
    if wanted is None:
        return [row.name for row in TABLE if row.installed()]
    names = wanted.split(",")
    for name in names:
        if name not in CONTENDERS:
            raise SystemExit(f"there is no contender {name!r}; there are {', '.join(CONTENDERS)}")
        if not CONTENDERS[name].installed():
            raise SystemExit(f"{name} is not here: it takes {CONTENDERS[name].package}")
    return [name for name in CONTENDERS if name in names]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks."""
    options = _options(arguments)
    contenders = _contenders(options.contenders)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    with_dispatch = re.search(options.cases, "dispatch") is not None and options.contenders is None
    if not cases and not with_dispatch:
        raise SystemExit(f"no case matches {options.cases!r}")
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    kept = True
    if cases:
        seconds = QUICK_SECONDS if options.quick else SECONDS
        steps = rounds * (len(contenders) + 1) * (len(cases) + 1)
        with tqdm(total=steps, leave=False, dynamic_ncols=True, bar_format="{percentage:3.0f}% {bar} {desc}") as bar:

            def advance(text: str) -> None:
                bar.set_description_str(f"{text:45}", refresh=False)
                bar.update()

            results = run(cases, contenders, rounds, seconds, advance)
        kept = _show(results, rounds, seconds, options)
    if with_dispatch and not options.json:
        print("\nwhat an operation costs before any arithmetic: 16 elements")
        kept = dispatch.run(1 if options.quick else dispatch.ROUNDS) and kept
    return 0 if kept or not options.check else 1


def _show(results: Results, rounds: int, seconds: float, options: argparse.Namespace) -> bool:
    """Tables, files; whether all bounds are kept."""
    table = report.rows(results)
    described = machine.describe()
    sentence = machine.sentence(described, report.copy_bandwidth(results, table))
    everything = report.as_json(results, table, described, rounds=rounds, seconds=seconds, cases=options.cases)
    options.output.mkdir(parents=True, exist_ok=True)
    (options.output / "results.json").write_text(json.dumps(everything, indent=1), encoding="utf-8")
    versions = ", ".join(f"{name} {version}" for name, version in results.versions.items() if version)
    drawn = picture.draw(results, table, f"{sentence}; {rounds} rounds\n{versions}", options.output / "results.png")
    if options.json:
        print(json.dumps(everything, indent=1))
    else:
        print(sentence)
        print(f"{versions}; medians of {rounds} rounds\n")
        print(report.table_text(results, table))
        print()
        print(report.summary_text(results, table))
        print(f"written: {options.output / 'results.json'}" + (" and results.png" if drawn else ""))
    return all(bound.kept for bound in report.bounds(results, table))


if __name__ == "__main__":
    sys.exit(main())
