"""From measurements to statements: ratios and their spread, the table, and whether the project's bounds are kept."""

from __future__ import annotations

import math
import statistics
from collections.abc import Collection, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

from .cases import LARGE, Case
from .contenders import BASELINE, CONTENDERS, ours
from .run import Results
from .targets import NATIVE
from .worker import COPY

BEGIN, END = "<!-- benchmarks -->", "<!-- end of benchmarks -->"  # around the table in the README

# The project's promises, of the fused backend.
RIGHT = "every case is right"
GEOMETRIC_MEAN = 3.0  # times as fast as the baseline, at least
WORST_CASE = 0.98  # times as fast as the fastest rival, in every case
PRODUCTS = ("contractions", "convolutions")  # the groups of cases in which libraries written by hand take part
WORST_PRODUCT = 0.95  # times as fast as the fastest of OpenBLAS, oneDNN and XLA, in each of these
SHARE_OF_COPY = 0.85  # the time of the same traffic, as a share of ours, in large cases that memory bounds


@dataclass(frozen=True)
class Ratio:
    """A median over the rounds, with the quartiles."""

    median: float
    low: float
    high: float

    def __str__(self) -> str:
        spread = f"({self.low:.2f}-{self.high:.2f})" if self.low < self.high else ""
        return f"{self.median:.2f} {spread:12}"


def ratio(above: dict[int, float], below: dict[int, float]) -> Ratio | None:
    """The ratio within each round: what slows a machine down for a while slows both."""
    values = [above[number] / below[number] for number in sorted(above.keys() & below.keys())]
    if not values:
        return None
    low, median, high = statistics.quantiles(values, n=4, method="inclusive") if values[1:] else values * 3
    return Ratio(median, low, high)


@dataclass(frozen=True)
class Row:
    """A case: the median time of every contender that was timed, and what it means."""

    case: Case
    bytes: int
    seconds: dict[str, float]
    speedup: Ratio | None  # of ours over the baseline
    share: float | None  # the time of the traffic alone, as a share of ours
    behind: dict[str, float]  # how many times as fast as each of the others ours is
    fastest: str | None  # of those that were timed
    ahead: Ratio | None  # how many times as fast as ours the fastest is, if it is not ours


@dataclass(frozen=True)
class Bound:
    """A promise and what became of it; `value` is None if it was not measured."""

    text: str
    value: float | None
    kept: bool
    missed_by: tuple[str, ...] = ()


def rows(results: Results) -> list[Row]:
    """One row per case."""
    best = ours(results.contenders)
    found = []
    for case in results.cases:
        timed = {name: results.entry(case.name, name).seconds for name in (*results.contenders, COPY)}
        mine = timed.get(best or "", {})
        share = ratio(timed[COPY], mine)
        fastest, ahead = _fastest({name: timed[name] for name in results.contenders}, best)
        found.append(
            Row(
                case,
                sum(results.traffic[case.name]),
                {name: statistics.median(times.values()) for name, times in timed.items() if times},
                ratio(timed.get(BASELINE, {}), mine),
                share.median if share else None,
                {
                    name: against.median
                    for name in results.contenders
                    if name != best and (against := ratio(timed[name], mine)) is not None
                },
                fastest,
                ahead,
            )
        )
    return found


def _fastest(timed: dict[str, dict[int, float]], best: str | None) -> tuple[str | None, Ratio | None]:
    """Who was the fastest in a case, and by how much if that is not ours."""
    mine = timed.get(best or "", {})
    ratios = {name: ratio(mine, times) for name, times in timed.items() if name != best}
    ahead = {name: found for name, found in ratios.items() if found is not None}
    if not ahead:
        return None, None
    name = max(ahead, key=lambda each: ahead[each].median)
    return (name, ahead[name]) if ahead[name].median > 1 else (best, None)


def geometric_mean(values: Sequence[float]) -> float | None:
    """Of positive numbers; None of none."""
    return math.exp(statistics.fmean(map(math.log, values))) if values else None


def first_calls(results: Results) -> dict[str, dict[str, float | None]]:
    """For each contender, the sums of its first calls, in the cases where both it and the baseline were timed."""
    sums = {}
    for name in results.contenders:
        entries = [results.entry(case.name, name) for case in results.cases]
        others = [results.entry(case.name, BASELINE) for case in results.cases]
        both = [(a, b) for a, b in zip(entries, others, strict=True) if a.first and (b.first or not b.seconds)]
        cold, base = sum(a.first or 0 for a, _ in both), sum(b.first or 0 for _, b in both)
        warm = sum(statistics.median(a.warm) for a, _ in both) if both and all(a.warm for a, _ in both) else None
        sums[name] = {"cold": cold if both else None, "warm": warm, "baseline": base or None}
    return sums


def slowest(table: Sequence[Row], others: Collection[str]) -> dict[str, tuple[float, str]]:
    """By case: how many times as fast as the fastest of the others ours is, and which that is."""
    found = {row.case.name: [(row.behind[name], name) for name in others if name in row.behind] for row in table}
    return {name: min(each) for name, each in found.items() if each}


def at_least(least: float, text: str, values: Mapping[str, tuple[float, str]], needed: bool = True) -> Bound:
    """A promise about every case; if there are none at all, it is kept only if it is not `needed`."""
    missed = sorted((value, name, of) for name, (value, of) in values.items() if value < least)
    lines = tuple(f"{name}: {value:.2f} of {of}" for value, name, of in missed)
    return Bound(
        text,
        min((value for value, _ in values.values()), default=None),
        bool(values or not needed) and not lines,
        lines,
    )


def bounds(results: Results, table: Sequence[Row]) -> list[Bound]:
    """The promises. One that could not be measured, for lack of a contender, is not kept."""
    rivals = [row.name for row in CONTENDERS.values() if row.rival]
    mean = geometric_mean([row.speedup.median for row in table if row.speedup])
    products = [row for row in table if row.case.group in PRODUCTS]
    calls = first_calls(results).get(ours(results.contenders) or "", {})
    cold, base = calls.get("cold"), calls.get("baseline")
    shares = {row.case.name: (row.share, "its traffic") for row in table if row.share is not None}
    failed = tuple(
        f"{case.name}: {entry.failed}"
        for case in results.cases
        for entry in [results.entry(case.name, ours(results.contenders) or "")]
        if entry.failed
    )
    return [
        Bound(f"geometric mean at least {GEOMETRIC_MEAN} x {BASELINE}", mean, (mean or 0) >= GEOMETRIC_MEAN),
        at_least(
            WORST_CASE, f"every case at least {WORST_CASE} x the fastest of {', '.join(rivals)}", slowest(table, rivals)
        ),
        at_least(
            WORST_PRODUCT,
            f"matrix products and convolutions at least {WORST_PRODUCT} x the fastest of OpenBLAS, oneDNN and XLA",
            slowest(products, ("numpy", BASELINE, "torch")), needed=bool(products),
        ),
        Bound(
            f"first calls take at most as long as {BASELINE}'s",
            cold / base if cold and base else None, bool(cold and base and cold <= base),
        ),
        at_least(
            SHARE_OF_COPY,
            f"memory-bound cases of {LARGE // 10**6} MB and more at least {SHARE_OF_COPY} x a non-temporal copy of the "
            "same traffic",
            shares, needed=False,
        ),
        Bound(RIGHT, None, not failed, failed),
    ]  # fmt: skip


# --- words ------------------------------------------------------------------------------------------------------------


def duration(seconds: float | None) -> str:
    """Three digits and a unit."""
    if seconds is None:
        return "-"
    for unit, size in (("s", 1.0), ("ms", 1e-3), ("us", 1e-6)):
        if seconds >= size or unit == "us":
            value = seconds / size
            return f"{value:.{0 if value >= 100 else 1 if value >= 10 else 2}f} {unit}"
    raise AssertionError


def table_text(results: Results, table: Sequence[Row]) -> str:
    """The table: times, then what they say."""
    best = ours(results.contenders)
    width = max(len(row.case.name) for row in table) + 2
    columns = [(name, max(10, len(name) + 2)) for name in results.contenders]
    lines = []
    head = f"{'':{width}}{'MB':>6}" + "".join(f"{name:>{size}}" for name, size in columns)
    if best and BASELINE in results.contenders:
        head += f"{f'{BASELINE} / {best}':>22}"
    lines.append(head + f"{'of traffic':>11}  fastest")
    group = ""
    for row in table:
        if row.case.group != group:
            group = row.case.group
            lines.append(group)
        cells = "".join(f"{_cell(results, row, name):>{size}}" for name, size in columns)
        line = f"  {row.case.name:{width - 2}}{row.bytes / 1e6:6.1f}{cells}"
        if best and BASELINE in results.contenders:
            line += f"{row.speedup or '-'!s:>22}"
        line += f"{row.share:>11.2f}" if row.share else " " * 11
        lines.append(f"{line}  {row.fastest or '-'} {row.ahead or ''}".rstrip())
    return "\n".join(lines)


def _cell(results: Results, row: Row, name: str) -> str:
    if name in row.seconds:
        return duration(row.seconds[name])
    return "failed" if results.entry(row.case.name, name).failed else "-"


def summary_text(results: Results, table: Sequence[Row]) -> str:
    """First calls, failures, and the bounds."""
    lines = [f"first calls, all cases together ({BASELINE}'s of the same cases in brackets)"]
    for name, sums in first_calls(results).items():
        if not CONTENDERS[name].compiles:
            continue
        cold, warm, base = sums["cold"], sums["warm"], sums["baseline"]
        lines.append(f"  {name:14}{duration(cold):>9} ({duration(base)}){f', warm {duration(warm)}' if warm else ''}")
    for (case, name), entry in results.entries.items():
        if entry.failed:
            lines.append(f"not timed: {name} in {case}: {entry.failed}")
    best = ours(results.contenders)
    if best and (known := [row for row in table if row.fastest]):
        first = sum(row.ahead is None for row in known)
        level = sum(row.ahead is not None and row.ahead.median * WORST_CASE <= 1 for row in known)
        lines.append(
            f"{best} is the fastest in {first} of {len(known)} cases, and level with the fastest in {level} more"
        )
    if best and BASELINE in results.contenders:
        lines.append(f"{best} against the bounds")
        for bound in bounds(results, table):
            value = "" if bound.value is None else f": {bound.value:.2f}"
            lines.append(f"  {'kept  ' if bound.kept else 'MISSED'}  {bound.text}{value}")
            lines += [f"            {name}" for name in bound.missed_by]
        lost = sorted({name.rpartition(": ")[0] for bound in bounds(results, table) for name in bound.missed_by})
        lines.append(f"{len(lost)} of {len(table)} cases are losses" + (f": {'; '.join(lost)}" if lost else ""))
    return "\n".join(lines)


def copy_bandwidth(results: Results, table: Sequence[Row]) -> float | None:
    """Bytes per second of the largest copy, read and written."""
    copied = [(row.bytes, row.seconds[COPY]) for row in table if COPY in row.seconds]
    return max(copied)[0] / max(copied)[1] if copied else None


def head_text(results: Results) -> str:
    """To which target everything is restricted, how, and how that was verified; empty if to none."""
    if not results.probes:
        return "" if results.target == NATIVE else f"restricted to {results.target}"
    return "\n".join([f"restricted to {results.target}", *map(str, results.probes), ""])


def markdown(measured: Mapping[str, tuple[Results, Sequence[Row]]]) -> str:
    """The README's table: for each target the time of ours, and how many times as fast as the fastest rival that is."""
    rivals = [row.name for row in CONTENDERS.values() if row.rival]
    found: dict[str, list[str]] = {}
    for results, table in measured.values():
        best, behind = ours(results.contenders), slowest(table, rivals)
        for row in table:
            against = f"{behind[row.case.name][0]:.2f} × {behind[row.case.name][1]}" if row.case.name in behind else "-"
            found.setdefault(row.case.name, []).extend([duration(row.seconds.get(best or "")), against])
    heads = [text for target in measured for text in (f"minitorch, {target}", "as fast as")]
    lines = [["float32", *heads], ["---"] * (1 + len(heads)), *([name, *cells] for name, cells in found.items())]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def saved(text: str, table: str) -> str:
    """A page with another table between its marks.

    Raises:
        ValueError: if it has no marks.
    """
    before, begin, rest = text.partition(BEGIN)
    _, end, after = rest.partition(END)
    if not end:
        raise ValueError(f"there is no {BEGIN} with an {END} after it")
    return f"{before}{begin}\n{table}\n{end}{after}"


def as_json(results: Results, table: Sequence[Row], machine: dict[str, object], **options: Any) -> dict[str, Any]:
    """Everything, for programs."""
    return {
        "machine": machine,
        "target": results.target,
        "restrictions": [asdict(probe) | {"obeyed": probe.obeyed} for probe in results.probes],
        "versions": results.versions,
        "options": options,
        "copy_bytes_per_second": copy_bandwidth(results, table),
        "start_seconds": results.starts,
        "cases": {
            row.case.name: {
                "group": row.case.group,
                "shape": row.case.shape,
                "bytes": row.bytes,
                "traffic": results.traffic[row.case.name],
                "streaming": row.case.streaming,
                "speedup": asdict(row.speedup) if row.speedup else None,
                "share_of_copy": row.share,
                "behind": row.behind,
                "fastest": row.fastest,
                "ahead": asdict(row.ahead) if row.ahead else None,
                "contenders": {
                    name: {**asdict(entry), "seconds": list(entry.seconds.values()), "median": row.seconds.get(name)}
                    for (case, name), entry in results.entries.items()
                    if case == row.case.name
                },
            }
            for row in table
        },
        "first_calls": first_calls(results),
        "geometric_mean": geometric_mean([row.speedup.median for row in table if row.speedup]),
        "bounds": [asdict(bound) for bound in bounds(results, table)],
    }
