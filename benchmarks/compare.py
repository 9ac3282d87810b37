"""Two checkouts of minitorch side by side, in one run: what became slower, and which kernels and bytes changed.

python -m benchmarks.compare HEAD~10 .              commits, or folders with a checkout
python -m benchmarks.compare main . --check         ends with 1 if a case is slower, or its kernels or bytes changed

Both run the cases of this checkout, each in processes of its own, in turns that change from case to case.
"""

from __future__ import annotations

import argparse
import pickle
import re
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Sequence
from compileall import compile_dir
from dataclasses import dataclass, field
from pathlib import Path

from . import report, targets
from .cases import CASES, Case
from .progress import progress
from .run import QUIET, ROOT, Worker, running

CONTENDER = "llvm"
SLOWER = 0.97  # times as fast as before, at least
ROUNDS, SECONDS, QUICK_SECONDS = 5, 0.02, 0.005
COUNTED = ("kernels", "bytes")


@dataclass
class Pair:
    """A case before and after: the times by round, the first call, what is counted, and why it failed."""

    case: str
    seconds: tuple[dict[int, float], dict[int, float]] = field(default_factory=lambda: ({}, {}))
    counts: tuple[dict[str, int], dict[str, int]] = field(default_factory=lambda: ({}, {}))
    first: list[float] = field(default_factory=lambda: [0.0, 0.0])  # with an empty cache on disk; 0 if not measured
    failed: list[str] = field(default_factory=lambda: ["", ""])

    @property
    def ratio(self) -> report.Ratio | None:
        """How many times as fast as before."""
        return report.ratio(*self.seconds)

    @property
    def is_slower(self) -> bool:
        """Whether it misses the bound."""
        return self.ratio is not None and self.ratio.median < SLOWER

    @property
    def changed(self) -> str:
        """What is counted otherwise than before, in words."""
        before, after = self.counts
        if not (before and after):
            return ""
        return ", ".join(f"{name} {before[name]} -> {after[name]}" for name in COUNTED if before[name] != after[name])

    def __str__(self) -> str:
        times = [report.duration(min(seconds.values(), default=None)) for seconds in self.seconds]
        kernels = self.counts[1].get("kernels", "-")
        text = f"{times[0]:>10}{times[1]:>10}  {self.ratio or '-'!s:20}{kernels:>8}  {self.changed}"
        return f"{self.case:42}{text}{''.join(f' failed: {why}' for why in self.failed if why)}".rstrip()


def place(name: str, folder: Path) -> Path:
    """A folder from which `minitorch` of a checkout and these benchmarks are imported.

    Args:
        name: a folder with a checkout, or a commit of this one.
        folder: where to make it.

    Raises:
        SystemExit: if it is neither.
    """
    folder.mkdir()
    (folder / "benchmarks").symlink_to(ROOT / "benchmarks")
    checkout = Path(name).resolve()
    if not (checkout / "minitorch" / "__init__.py").is_file():
        archive = subprocess.run(["git", "archive", name], cwd=ROOT, capture_output=True, check=False)
        if archive.returncode:
            raise SystemExit(
                f"{name!r} is neither a folder with a checkout nor a commit: {archive.stderr.decode().strip()}"
            )
        checkout = folder / "checkout"
        checkout.mkdir()
        subprocess.run(["tar", "-x", "-C", str(checkout)], input=archive.stdout, check=True)
    for package in (checkout / "minitorch", *(checkout / "extras").glob("minitorch_*")):
        (folder / package.name).symlink_to(package)
        # First calls load modules: one side would have Python compile more of them than the other.
        compile_dir(package, quiet=2)
    return folder


def compare(
    names: Sequence[str],
    cases: Sequence[Case],
    rounds: int,
    seconds: float,
    target: str = targets.NATIVE,
    advance: Callable[[str, str], None] = lambda case, what: None,
) -> list[Pair]:
    """Measure the cases with the checkouts before and after a change.

    Args:
        names: of the two, as `place` takes them.
        cases: rows of the table.
        rounds: how often everything is measured; each starts new processes.
        seconds: how long a measurement takes at least.
        target: to which both are restricted.
        advance: called before each measurement.
    """
    pairs = {case.name: Pair(case.name) for case in cases}
    told = targets.environment(target, ["minitorch"])
    with tempfile.TemporaryDirectory(prefix="minitorch-compare-") as temporary:
        folder = Path(temporary)
        roots = [place(name, folder / label) for name, label in zip(names, ("before", "after"), strict=True)]
        for number in range(rounds):
            both = [Worker(CONTENDER, root, told, root) for root in roots]
            with running(both):
                for position, case in enumerate(cases):
                    (folder / "inputs").write_bytes(pickle.dumps(case.make_inputs(), 5))
                    for side in (0, 1) if (number + position) % 2 else (1, 0):
                        advance(case.name, names[side])
                        _measure(pairs[case.name], side, both[side], number, folder / "inputs", seconds)
    return list(pairs.values())


def _measure(pair: Pair, side: int, worker: Worker, number: int, inputs: Path, seconds: float) -> None:
    if pair.failed[side]:
        return
    request = {"case": pair.case, "inputs": str(inputs), "reference": None, "seconds": seconds}
    if not number:
        answer = worker.ask({**request, "seconds": 0})
        pair.first[side] = answer.get("first", 0.0)
        pair.counts[side].update(worker.ask({**request, "kind": "count"}))
        if "failed" in pair.counts[side]:
            pair.failed[side] = str(pair.counts[side].pop("failed"))
            return
    time.sleep(QUIET)
    answer = worker.ask(request)
    if "failed" in answer:
        pair.failed[side] = answer["failed"]
    else:
        pair.seconds[side][number] = answer["seconds"]


def verdict(pairs: Sequence[Pair]) -> tuple[str, bool]:
    """What is to be said at the end, and whether nothing got worse."""
    slower = [pair for pair in pairs if pair.is_slower]
    changed = [pair for pair in pairs if pair.changed]
    failed = [pair for pair in pairs if any(pair.failed)]
    mean = report.geometric_mean([pair.ratio.median for pair in pairs if pair.ratio])
    lines = [f"geometric mean of {len(pairs)} cases: {mean:.3f} times as fast" if mean else "nothing was measured"]
    first = [report.duration(sum(pair.first[side] for pair in pairs if all(pair.first))) for side in (0, 1)]
    lines.append(f"first calls, all together: {' and '.join(first)}")
    lines.append(f"below {SLOWER}: {len(slower)}")
    lines += [f"  {pair.case} {pair.ratio}".rstrip() for pair in slower]
    lines.append(f"other kernels or bytes: {len(changed)}")
    lines += [f"  {pair.case}: {pair.changed}" for pair in changed]
    lines += [f"failed: {pair.case}" for pair in failed]
    return "\n".join(lines), not (slower or changed or failed)


def main(arguments: list[str] | None = None) -> int:
    """Compare two checkouts."""
    parser = argparse.ArgumentParser(prog="python -m benchmarks.compare", description=(__doc__ or "").splitlines()[0])
    parser.add_argument("before", help="a commit, or a folder with a checkout")
    parser.add_argument("after", help="the same", nargs="?", default=str(ROOT))
    parser.add_argument("--cases", metavar="REGEX", default="", help="only those whose name matches")
    parser.add_argument("--target", metavar="A,B", default="native", type=targets.chosen, help="one run for each")
    parser.add_argument("--rounds", type=int, help=f"{ROUNDS} unless told")
    parser.add_argument("--quick", action="store_true", help="one round of short measurements")
    parser.add_argument("--check", action="store_true", help="end with 1 if a case is slower, or its kernels changed")
    options = parser.parse_args(arguments)
    cases = [case for case in CASES if re.search(options.cases, case.name)]
    if not cases:
        raise SystemExit(f"no case matches {options.cases!r}")
    rounds = options.rounds or (1 if options.quick else ROUNDS)
    seconds, names, kept = QUICK_SECONDS if options.quick else SECONDS, (options.before, options.after), True
    with progress(2 * rounds * len(cases) * len(options.target)) as advance:
        for target in options.target:
            pairs = compare(names, cases, rounds, seconds, target, advance)
            text, is_kept = verdict(pairs)
            kept = kept and is_kept
            print(f"{target}: {options.before} and {options.after}, {rounds} rounds, best times, medians of the ratios")
            print("\n".join([*map(str, pairs), text]), flush=True)
    return 0 if kept or not options.check else 1


if __name__ == "__main__":
    sys.exit(main())
