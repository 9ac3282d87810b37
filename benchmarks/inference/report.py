"""Tables of models for inference, one for each target and number of cores, and the project's bounds."""

from __future__ import annotations

import statistics
from collections.abc import Sequence

from ..cases import Case
from ..report import Bound, Ratio, at_least, duration, ratio
from ..run import Results
from ..targets import NATIVE
from .contenders import CONTENDERS, FROZEN, INT4_WEIGHTS, INT8, INT8_WEIGHTS, UNFROZEN
from .models import MLP, PRODUCT
from .reasons import reasons

OURS_IN_INT8 = (INT8, INT8_WEIGHTS)  # the faster of the two, as others choose among their ways
TIMES_FLOAT32 = {"avx2": 1.7}  # our int8, in cases that arithmetic bounds, as the project promises it
TIMES_FLOAT32_VNNI = 3.0  # the same, with VNNI
INT4_TIMES_FLOAT32 = 3.0  # of a matrix times a vector
NOT_SLOWER = 0.97  # frozen, times as fast as not frozen: what two runs of one program differ by
# Times the median of a contender's turns in a case: a slower turn is a stall, left out. Raising it leaves fewer out.
STALL = 1.5


def arithmetic_bounds(case: Case) -> bool:
    """Whether weights are used more than once in a call, so that reading them does not take the time."""
    return case.program not in (MLP, PRODUCT) or case.shape[0] > 1


def seconds(results: Results, case: str, name: str) -> dict[int, float]:
    """The time by turn, without stalls; empty if it was not measured."""
    found = results.entry(case, name).seconds if name in results.contenders else {}
    most = STALL * statistics.median(found.values()) if found else 0.0
    return {turn: time for turn, time in found.items() if time <= most}


def left_out(measured: Sequence[Results]) -> str:
    """How many turns are stalls, as a sentence."""
    entries = [(results, key) for results in measured for key in results.entries]
    every = sum(len(results.entries[key].seconds) for results, key in entries)
    kept = sum(len(seconds(results, *key)) for results, key in entries)
    return f"Left out as stalls, {STALL} times as slow as the contender's median or slower: {every - kept} of {every}."


def in_int8(results: Results, case: str) -> dict[int, float]:
    """Our time in int8: of the faster way."""
    ways = [found for name in OURS_IN_INT8 if (found := seconds(results, case, name))]
    return min(ways, key=lambda each: statistics.median(each.values()), default={})


def times_as_fast(results: Results, case: str) -> tuple[Ratio, str] | None:
    """How many times as fast as the fastest rival our int8 is, and which that is."""
    mine = in_int8(results, case)
    rivals = [name for name in results.contenders if CONTENDERS[name].rival]
    found = [(against, name) for name in rivals if (against := ratio(seconds(results, case, name), mine)) is not None]
    return min(found, key=lambda each: each[0].median, default=None)


def times_float32(results: Results, case: str) -> Ratio | None:
    """How many times as fast as our frozen float32 our int8 is."""
    return ratio(seconds(results, case, FROZEN), in_int8(results, case))


def bounds(results: Results) -> list[Bound]:
    """The promises, of all cases together. One that could not be measured, for lack of a contender, is not kept."""
    names = [case.name for case in results.cases]
    rivals = {name: (each[0].median, each[1]) for name in names if (each := times_as_fast(results, name))}
    least = TIMES_FLOAT32.get(results.target, TIMES_FLOAT32_VNNI)
    by_arithmetic = [case.name for case in results.cases if arithmetic_bounds(case)]
    products = [case.name for case in results.cases if case.program is PRODUCT]

    def compared(which: Sequence[str], slow: str, fast: str) -> dict[str, tuple[float, str]]:
        pairs = ((name, ratio(seconds(results, name, slow), seconds(results, name, fast))) for name in which)
        return {name: (found.median, slow) for name, found in pairs if found}

    wrong = [
        f"{case}: {name} {entry.failed}"
        for (case, name), entry in results.entries.items()
        if entry.failed and CONTENDERS.get(name) and CONTENDERS[name].package == "minitorch"
    ]
    int8 = {name: (found.median, FROZEN) for name in by_arithmetic if (found := times_float32(results, name))}
    return [
        at_least(1.0, "int8 at least as fast as the fastest of the others", rivals),
        at_least(least, f"int8 at least {least} x our float32 where arithmetic bounds", int8, bool(by_arithmetic)),
        at_least(
            INT4_TIMES_FLOAT32, f"int4 weights at least {INT4_TIMES_FLOAT32} x our float32, matrix times vector",
            compared(products, FROZEN, INT4_WEIGHTS), bool(products),
        ),
        at_least(NOT_SLOWER, f"frozen at least {NOT_SLOWER} x not frozen", compared(names, UNFROZEN, FROZEN)),
        Bound("every case of ours is right", None, not wrong, tuple(wrong)),
    ]  # fmt: skip


# --- words ------------------------------------------------------------------------------------------------------------


def head(results: Results) -> str:
    """The target and the number of cores."""
    cores = "" if results.cores is None else f", {results.cores} core{'s' if results.cores > 1 else ''}"
    return f"{'all instructions' if results.target == NATIVE else results.target}{cores}"


def _cell(results: Results, case: str, name: str) -> str:
    if found := seconds(results, case, name):
        return duration(statistics.median(found.values()))
    return "failed" if results.entry(case, name).failed else "-"


def markdown(results: Results) -> str:
    """The table: a row for each way, a column for each case; then what it means, case by case."""
    cases = [case.name for case in results.cases]
    lines = [[head(results), *cases], ["---"] * (1 + len(cases))]
    lines += [[name, *(_cell(results, case, name) for case in cases)] for name in results.contenders]
    rivals = [times_as_fast(results, case) for case in cases]
    floats = [times_float32(results, case) for case in cases]
    lines.append(["int8 as fast as", *(f"{str(each[0]).strip()} × {each[1]}" if each else "-" for each in rivals)])
    lines.append(["int8 as fast as our float32", *(str(each).strip() if each else "-" for each in floats)])
    return "\n".join(f"| {' | '.join(cells)} |" for cells in lines)


def verdicts(results: Results) -> str:
    """Each bound, kept or missed, by which cases and why; who was not timed; the ways that were chosen."""
    lines = []
    for bound in bounds(results):
        value = "" if bound.value is None else f": {bound.value:.2f} at the least"
        lines.append(f"- {'kept' if bound.kept else '**MISSED**'}: {bound.text}{value}")
        for each in bound.missed_by:
            lines.append(f"  - {each}")
            cases = [case for case in results.cases if each.startswith(f"{case.name}: ")]
            lines += [f"    - {reason}" for case in cases for reason in reasons(results.target, bound.text, case)]
    for (case, name), entry in results.entries.items():
        if entry.failed:
            lines.append(f"- not timed: {name}, {case}: {entry.failed}")
    forms = {
        name: sorted({results.entry(case.name, name).form for case in results.cases} - {""})
        for name in results.contenders
    }
    chosen = "; ".join(f"{name}: {', '.join(found)}" for name, found in forms.items() if len(found) > 1)
    return "\n".join([*lines, *([f"- the fastest ways were, of {chosen}"] if chosen else [])])


def restrictions(results: Results) -> str:
    """How everybody was held to the target."""
    return "\n".join(f"    {line}" for probe in results.probes for line in str(probe).splitlines())


def text(results: Results) -> str:
    """The table, and the verdicts."""
    return f"{markdown(results)}\n\n{verdicts(results)}"


def texts(measured: Sequence[Results]) -> list[str]:
    """Those of all runs; before the first of a target, how everybody was held to it."""
    found, before = [], ""
    for results in measured:
        if results.target != before and results.probes:
            found.append(f"Held to {results.target}:\n\n{restrictions(results)}")
        found.append(text(results))
        before = results.target
    return found
