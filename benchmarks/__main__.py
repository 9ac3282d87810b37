"""`make bench`, or `python -m benchmarks`: a table for each target, `results.json`, `results.png`."""

from __future__ import annotations

import argparse
import json
import re
import sys
from collections.abc import Sequence
from pathlib import Path

from . import dispatch, machine, picture, report, targets
from .cases import CASES
from .contenders import CONTENDERS, TABLE
from .inference import __main__ as models
from .networks import __main__ as networks
from .progress import progress
from .run import Results, run

FOLDER = Path(__file__).resolve().parent
README = FOLDER.parent / "README.md"
SECONDS, QUICK_SECONDS = 0.02, 0.005  # of a measurement
ROUNDS = 3


def _options(arguments: list[str] | None) -> argparse.Namespace:
    parser = argparse.ArgumentParser(prog="python -m benchmarks", description=(__doc__ or "").splitlines()[0])
    parser.add_argument(
        "--cases",
        metavar="REGEX",
        default="",
        help="only those whose name matches; also `dispatch`, `networks`, `inference`",
    )
    parser.add_argument("--contenders", metavar="A,B", help=f"of {', '.join(CONTENDERS)}")
    parser.add_argument(
        "--target",
        metavar="A,B",
        default=targets.NATIVE,
        type=targets.chosen,
        help="one run for each: native, or all contenders restricted to avx2; sse2: minitorch alone",
    )
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} unless told; in the first, caches on disk are empty")
    parser.add_argument("--quick", action="store_true", help="one round of short measurements")
    parser.add_argument("--check", action="store_true", help="end with 1 if minitorch misses its bounds")
    parser.add_argument("--json", action="store_true", help="print results.json in place of the tables")
    parser.add_argument("--output", type=Path, default=FOLDER, help="the folder of results.json and results.png")
    parser.add_argument("--save", action="store_true", help="write the README's table, of all targets")
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


def _taking_part(contenders: list[str], target: str) -> list[str]:
    """Those that can be restricted to a target: if not all can, minitorch alone."""
    if targets.is_comparable(target):
        return contenders
    return [name for name in contenders if CONTENDERS[name].package == "minitorch"]


def main(arguments: list[str] | None = None) -> int:
    """Run the benchmarks."""
    options = _options(arguments)
    contenders = _contenders(options.contenders)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    with_dispatch = re.search(options.cases, "dispatch") is not None and options.contenders is None
    with_models = re.search(options.cases, "inference") is not None and options.contenders is None
    with_networks = re.search(options.cases, "networks") is not None and options.contenders is None
    if not (cases or with_dispatch or with_networks or with_models):
        raise SystemExit(f"no case matches {options.cases!r}")
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    seconds = QUICK_SECONDS if options.quick else SECONDS
    kept = True
    if cases:
        measured = []
        taking_part = {target: _taking_part(contenders, target) for target in options.target}
        steps = sum(rounds * (len(names) + 1) * (len(cases) + 1) + 1 for names in taking_part.values())
        with progress(steps) as advance:
            for target, names in taking_part.items():
                measured.append(run(cases, names, rounds, seconds, advance, target))
        kept = _show(measured, rounds, seconds, options)
    if with_dispatch and not options.json:
        print("\nwhat an operation costs before any arithmetic: 16 elements")
        kept = dispatch.run(1 if options.quick else dispatch.ROUNDS) and kept
    if with_networks and not options.json:
        print("\nfirst and later calls of whole networks", flush=True)
        wanted = [target for target in options.target if targets.is_comparable(target)]
        kept = networks.run(wanted, 1 if options.quick else networks.ROUNDS) and kept
    if with_models and not options.json:
        print("\nmodels for inference: frozen, in bfloat16, in int8, with int4 weights", flush=True)
        more = ["--target", ",".join(targets.for_models(options.target)), "--rounds", str(rounds)]
        more += ["--output", str(options.output), "--check", *(["--quick"] if options.quick else [])]
        kept = not models.main(more) and kept
    return 0 if kept or not options.check else 1


def _show(measured: Sequence[Results], rounds: int, seconds: float, options: argparse.Namespace) -> bool:
    """Tables, files; whether all bounds are kept."""
    described = machine.describe()
    tables = {results.target: (results, report.rows(results)) for results in measured}
    options.output.mkdir(parents=True, exist_ok=True)
    written, texts = {}, []
    for target, (results, table) in tables.items():
        sentence = machine.sentence(described, report.copy_bandwidth(results, table))
        written[target] = report.as_json(results, table, described, rounds=rounds, seconds=seconds, cases=options.cases)
        versions = ", ".join(f"{name} {version}" for name, version in results.versions.items() if version)
        image = "results.png" if target == targets.NATIVE else f"results-{target}.png"
        picture.draw(results, table, f"{sentence}; {rounds} rounds\n{versions}", options.output / image)
        texts += [sentence, f"{versions}; medians of {rounds} rounds", report.head_text(results)]
        texts += [report.table_text(results, table), "", report.summary_text(results, table)]
    (options.output / "results.json").write_text(json.dumps({"targets": written}, indent=1), encoding="utf-8")
    if options.json:
        print(json.dumps({"targets": written}, indent=1))
    else:
        print("\n".join([*texts, f"written: {options.output / 'results.json'}"]))
    if options.save:
        README.write_text(report.saved(README.read_text(encoding="utf-8"), report.markdown(tables)), encoding="utf-8")
    return all(
        bound.kept
        for target, (results, table) in tables.items()
        for bound in report.bounds(results, table)
        if targets.is_comparable(target) or bound.text == report.RIGHT
    )


if __name__ == "__main__":
    sys.exit(main())
