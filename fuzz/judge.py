"""The rules of comparison: which differences between eager mode and another way of running are findings.

With ``interpret`` the bits are the same. Rewritten by passes and compiled they are the same, too, but for what sums in
another order and functions such as `exp` explain. PyTorch gives the same types, and numbers that rounding explains.
Compared are results, arguments afterwards, gradients, aliases and errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import ml_dtypes
import numpy as np

from . import api, departures
from .modes import COMPILED, FOREIGN, TORCH, XLA
from .noise import Noisy
from .outcome import Outcome, run
from .program import Program

Array = np.ndarray[Any, Any]

TIMES = 4  # the spread that samples of the noise have
MAGNIFIED = 64  # times the noise that can be: what it does not move does not depend on rounding
SAMPLES = (3, 24)  # a few at first, many before anything is said
HALVES = ("float16", "bfloat16")
LOOKED_AT = (
    "nn/functional/lookup.py:_check_classes",
    "functional/operands.py:require_between",
)  # where eager mode looks at values that a trace has not
DATA_DEPENDENT = ("MT101", "MT102", "MT103")  # a trace cannot go on; the error says so


@dataclass(frozen=True)
class Finding:
    """A difference.

    Attributes:
        kind: what sort of thing differs: ``"value"``, ``"dtype"``, ``"error"``, ``"raw error"``, ``"crash"``, ...
        mode: which way of running differs from eager mode.
        detail: what, and where.
        place: where in the engine, for errors.
    """

    kind: str
    mode: str
    detail: str
    place: str = ""

    @property
    def key(self) -> tuple[str, str, str]:
        """What must not change while the program is made smaller."""
        return self.kind, self.mode, self.place


class Reference:
    """A program run eagerly, and how far rounding moves its results."""

    def __init__(self, program: Program, outcome: Outcome) -> None:
        self.program, self.outcome = program, outcome
        self._samples: dict[bool, list[Outcome]] = {False: [], True: []}
        self._wide: Outcome | None = None

    def samples(self, count: int, everywhere: bool) -> list[Outcome]:
        """So many runs with rounding noise."""
        known = self._samples[everywhere]
        while len(known) < count:
            attention = "F.scaled_dot_product_attention" in self.program.callees
            known.append(run(self.program, "eager", Noisy(len(known), everywhere, attention)))
        return known[:count]

    @property
    def wide(self) -> Outcome:
        """What PyTorch finds in float64: of two results that rounding has moved, it tells which was moved further."""
        if self._wide is None:
            self._wide = run(self.program, TORCH, wide=True)
        return self._wide


def judge(reference: Reference, mode: str, found: Outcome) -> list[Finding]:
    """The differences between eager mode and another way."""
    expected = reference.outcome
    if found.skipped:
        return []
    if found.error is not None and found.error.raw and mode != TORCH:
        return [Finding("raw error", mode, f"{found.error.kind}: {found.error.message}", found.error.place)]
    if expected.error is not None or found.error is not None:
        return errors(reference.program, mode, expected, found)
    for rule in (types, numbers, aliases):
        findings = rule(reference, mode, found)
        if findings:
            return findings
    return []


def errors(program: Program, mode: str, expected: Outcome, found: Outcome) -> list[Finding]:
    """Both raise, or neither does."""
    mine, other = expected.error, found.error
    if other is not None and other.code == "MT109" and any(each.view_of for each in program.inputs):
        return []  # two arguments that share memory, one of which is written: no graph can show that
    if other is not None and other.code == "MT401" and "outside the recording" in other.message:
        return []  # "a traced function leaves no history behind"
    if mine is not None and other is not None:
        if mode == TORCH or mine.kind == other.kind or (mine.code and other.code) or other.code in DATA_DEPENDENT:
            return []
        return [
            Finding(
                "another error", mode, f"{other.kind}: {other.message}; eager {mine.kind}: {mine.message}", other.place
            )
        ]
    if other is not None:
        if other.code in DATA_DEPENDENT or (mode == TORCH and departures.permissive(program, other)):
            return []
        if other.code == "MT305":
            return []  # a Python value is no result of a session
        return [Finding("error", mode, f"{other.kind}: {other.message}", other.place)]
    assert mine is not None
    if mode != TORCH and mine.place in LOOKED_AT:
        return []
    if mode == TORCH and departures.strict(program, mine):
        return []
    if mode not in (TORCH, "interpret") and mine.place.endswith(":_check_bounds") and has_dead_code(program):
        return []  # an index that is out of range in what nothing reads is not looked at
    return [Finding("no error", mode, f"eager {mine.kind}: {mine.message}", mine.place)]


def has_dead_code(program: Program) -> bool:
    """Whether a statement gives values that nothing reads, but for their shape, or that are written over at once."""
    if {".copy_", ".fill_", ".zero_"} & set(program.callees):
        return True
    reading = [each for each in program.body if not each.callee.endswith("_like")]
    read = {name for statement in reading for name in statement.takes} | set(program.results)
    return any(statement.gives and not read.intersection(statement.gives) for statement in program.body)


def types(reference: Reference, mode: str, found: Outcome) -> list[Finding]:
    """The same results, of the same types and shapes."""
    expected = reference.outcome
    names = _compared(reference.program, mode, expected)
    missing = set(names).symmetric_difference(_compared(reference.program, mode, found))
    if mode == TORCH:  # a gradient of zero may as well be none
        given = {**found.values, **expected.values}
        second = "create_graph" in reference.program.text  # PyTorch's second derivatives may be none at all
        missing = {name for name in missing if not name.endswith(".grad") or (given[name].any() and not second)}
    if missing:
        return [Finding("missing", mode, f"only one of the two has {', '.join(sorted(missing))}")]
    # After a gradient was taken inside, compiled results have none; of second derivatives PyTorch's may have none.
    ended = any("backward" in callee or ".grad(" in callee for callee in reference.program.callees)
    ended = ended or (mode == TORCH and departures.requires_grad(reference.program))
    if mode != "session" and not ended and expected.differentiable != found.differentiable:
        differ = ", ".join(sorted(expected.differentiable ^ found.differentiable))
        return [Finding("requires_grad", mode, f"only one of the two has a gradient for {differ}")]
    for name in [name for name in names if name in found.values]:
        mine, other = expected.dtypes[name], found.dtypes[name]
        if mine != other and not (mode == TORCH and departures.dtype(reference.program, name)):
            return [Finding("dtype", mode, f"{name}: eager {mine}, {mode} {other}")]
        shapes = np.shape(expected.values[name]), np.shape(found.values[name])
        if shapes[0] != shapes[1] and not (
            mode == TORCH and (departures.shape(reference.program) or _shape_is_rounded(reference, name))
        ):
            return [Finding("shape", mode, f"{name}: eager {shapes[0]}, {mode} {shapes[1]}")]
    return []


def _shape_is_rounded(reference: Reference, name: str) -> bool:
    """Whether a value's shape depends on data so closely that rounding may change it, as that of `unique` does.

    PyTorch finds eager mode's shape in float64, or eager mode finds another one if its own steps are rounded otherwise.
    """
    here = np.shape(reference.outcome.values[name])
    if np.shape(reference.wide.values.get(name, 0)) == here:
        return True
    samples = reference.samples(SAMPLES[-1], everywhere=False)
    return any(np.shape(sample.values[name]) != here for sample in samples if name in sample.values)


def _compared(program: Program, mode: str, outcome: Outcome) -> list[str]:
    """The names of the values that count in a mode."""
    if mode == "session":  # what a graph writes into its placeholders stays in the graph
        return [name for name in outcome.values if name.startswith("call 0")]
    return list(outcome.values)


def numbers(reference: Reference, mode: str, found: Outcome) -> list[Finding]:
    """The same bits, or numbers that rounding explains."""
    expected = reference.outcome
    names = _compared(reference.program, mode, expected)
    wrong = [
        name
        for name in names
        if name in found.values
        and np.shape(expected.values[name]) == np.shape(found.values[name])
        and not same(expected.values[name], found.values[name], mode in FOREIGN)
    ]
    if mode == TORCH:
        _excuse(reference, found, wrong)
    if mode == TORCH and departures.gradient(reference.program):
        inside = any("grad(" in callee for callee in reference.program.callees)
        wrong = [name for name in wrong if not (inside or name.endswith(".grad"))]
    if not wrong or (mode == TORCH and departures.unspecified(reference.program)):
        return []
    for count in SAMPLES:
        wrong = [name for name in wrong if not _within_noise(reference, mode, found, name, count)]
        if not wrong:
            return []
    if mode in COMPILED:
        wrong = [name for name in wrong if not _last_place(reference, found, name)]
    if mode == TORCH:
        wrong = [name for name in wrong if not _nearer(reference, found, name)]
        if not wrong:
            return []
    name = wrong[0]
    kind = "value" if name.startswith("call") else "gradient" if name.endswith("grad") else "argument"
    return [Finding(kind, mode, f"{name}: {where(expected.values[name], found.values[name])}")]


def _excuse(reference: Reference, found: Outcome, names: list[str]) -> None:
    """Take eager mode's numbers where they differ on purpose: at infinities, zeros and NaN of some functions."""
    program, inside = reference.program, any("grad(" in callee for callee in reference.program.callees)
    arrays = [each for each in reference.outcome.values.values() if isinstance(each, np.ndarray)]
    met_nan = any(np.isnan(each).any() for each in arrays if each.dtype.kind not in "biu")
    for name in names:
        mine, other = reference.outcome.values[name], found.values[name]
        if not isinstance(mine, np.ndarray):
            continue
        derived = inside or name.endswith(".grad")
        if departures.singular(program) and derived:
            other = np.where(np.isnan(other), mine, other)
        if met_nan and (departures.unordered(program) or (departures.clamped(program) and derived)):
            other = mine
        if departures.spreading(program) and derived:
            other = np.where(np.isnan(mine), mine, other)
        if departures.carried(program):
            other = np.where(np.isfinite(mine), other, mine)
        if departures.signed_zeros(program):
            other = np.where(np.isinf(mine) & np.isinf(other), mine, other)
        if departures.overflows(program):  # of a gradient as large, the square is infinite as well
            with np.errstate(all="ignore"):
                infinite = np.isinf(mine) | (derived and bool(np.isinf(np.square(other)).any()))
            other = np.where(infinite, mine, other)
        found.values[name] = other


def _last_place(reference: Reference, found: Outcome, name: str) -> bool:
    """Whether two numbers are neighbours that rounding reaches, which samples of it hardly ever hit.

    An optimiser's step is such a number: what depends on sums there is far smaller than the last place.
    """
    a, b = reference.outcome.values[name], found.values[name]
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray) or a.dtype.kind in "biu":
        return False
    spread: Any = np.zeros(a.shape)
    for seed in range(SAMPLES[0]):
        sample = run(reference.program, "eager", Noisy(seed, times=MAGNIFIED)).values.get(name)
        if not isinstance(sample, np.ndarray) or sample.shape != a.shape:
            return False
        spread = np.maximum(spread, apart(a, sample))
    with np.errstate(all="ignore"):
        place = np.nan_to_num(np.spacing(np.abs(a)).astype(np.float64))
    return bool(np.all(apart(a, b) <= np.where(spread > 0, place, 0)))


def _nearer(reference: Reference, found: Outcome, name: str) -> bool:
    """Whether eager mode is as near to what PyTorch finds in float64 as PyTorch is, or as near as the type allows."""
    a, b, right = reference.outcome.values[name], found.values[name], reference.wide.values.get(name)
    if not isinstance(right, np.ndarray) or right.dtype != np.float64 or right.shape != np.shape(a):
        return False
    with np.errstate(all="ignore"):
        places = np.nan_to_num(TIMES * np.spacing(np.abs(a)).astype(np.float64), posinf=0)
    for sample in reference.samples(SAMPLES[-1], everywhere=True):  # what two large terms leave
        moved = sample.values.get(name)
        if isinstance(moved, np.ndarray) and moved.shape == a.shape:
            places = np.maximum(places, np.nan_to_num(TIMES * apart(a, moved), posinf=0))
    near = apart(a, right) <= np.maximum(apart(b, right), places)
    return bool(np.all(near | zeros(a, right, True)))


def _within_noise(reference: Reference, mode: str, found: Outcome, name: str, count: int) -> bool:
    """Whether rounding explains one value, going by so many samples."""
    # What a traced call contributes to a gradient is added up before it is added to the rest, unlike in eager mode.
    added = reference.program.backward and name.endswith(".grad")
    if mode not in COMPILED and mode != TORCH and not added and not rewritten(reference.program):
        return False
    samples = reference.samples(count, added or mode in FOREIGN)
    return explained(reference.outcome, found, name, samples, mode)


def rewritten(program: Program) -> bool:
    """Whether a tensor is written that is not contiguous: in a trace its new value is, and sums have another order."""
    in_place = {row.callee for row in api.functions() if row.in_place}
    return any(each.view for each in program.inputs) and any(each.callee in in_place for each in program.body)


def aliases(reference: Reference, mode: str, found: Outcome) -> list[Finding]:
    """Views where PyTorch has views; of compiled results, those that are arguments, and no others."""
    if mode == TORCH:
        differ = {
            pair for pair in reference.outcome.sharing ^ found.sharing if not departures.alias(reference.program, pair)
        }
        if differ:
            pair = sorted(differ)[0]
            which = "eager" if pair in reference.outcome.sharing else "only torch"
            return [Finding("aliasing", mode, f"{pair[0]} and {pair[1]} share memory in {which}")]
    elif mode in ("jit", "interpret", "passes", "loops"):
        names = {each.name for each in reference.program.inputs}
        given = names | {one for one, two in reference.outcome.identical if two in names}  # results that are arguments
        identical = reference.outcome.identical
        allowed = {pair for pair in reference.outcome.sharing if pair in identical or given.issuperset(pair)}
        differ = {*(found.sharing - allowed), *(allowed - found.sharing)}
        if differ:
            pair = sorted(differ)[0]
            which = "share memory" if pair in found.sharing else "are one tensor in eager mode alone"
            return [Finding("aliasing", mode, f"{pair[0]} and {pair[1]} {which}", which)]
    return []


def same(a: Any, b: Any, signs: bool = False) -> bool:
    """The same bits, but for those inside a NaN; with `signs`, zeros of both signs are alike."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return bool(a == b or (a != a and b != b))
    if a.dtype != b.dtype:
        return False
    bits = (
        np.ascontiguousarray(a).view(np.uint8) == np.ascontiguousarray(b).view(np.uint8)
        if a.ndim
        else a.tobytes() == b.tobytes()
    )
    if np.all(bits):
        return True
    if a.dtype.kind in "biu":
        return False
    unsigned = f"u{a.dtype.itemsize}"
    with np.errstate(all="ignore"):
        alike = (a != a) & (b != b) | ((a == b) if signs else (_raw(a, unsigned) == _raw(b, unsigned)))
    return bool(np.all(alike))


def _raw(array: Array, unsigned: str) -> Array:
    return np.ascontiguousarray(array).view(unsigned).reshape(array.shape)


def explained(expected: Outcome, found: Outcome, name: str, samples: list[Outcome], mode: str) -> bool:
    """Whether the noise accounts for all that differs in one value."""
    a, b = expected.values[name], found.values[name]
    if isinstance(a, str) or isinstance(b, str):
        return False
    spread: Any = np.zeros(np.shape(a))
    usable = [sample for sample in samples if name in sample.values]
    if len(usable) < len(samples):
        return True  # with a little noise, the program does something else altogether
    for sample in usable:
        if np.shape(sample.values[name]) != np.shape(a):
            return True
        spread = np.maximum(spread, apart(a, sample.values[name]))
    times = TIMES * (4 if mode in FOREIGN else 1)
    allowed = times * spread
    if isinstance(a, np.ndarray) and a.dtype.kind not in "biu" and a.size and (spread > 0).any():
        with np.errstate(all="ignore"):
            allowed = allowed + np.nan_to_num(2 * np.spacing(np.abs(a)).astype(np.float64))
    if mode == XLA and isinstance(a, np.ndarray) and a.dtype.kind not in "biu":  # it takes denormal numbers for 0
        allowed = allowed + float(ml_dtypes.finfo(a.dtype).smallest_normal)
    if mode == TORCH and expected.dtypes[name] in HALVES:
        allowed = allowed + departures.HALF_STEPS * float(ml_dtypes.finfo(a.dtype).eps) * largest(a)
        with np.errstate(all="ignore"):  # what overflows in 16 bits may not in the 32 that PyTorch takes on the way
            allowed = np.where(np.isfinite(a), allowed, np.inf)
    return bool(np.all((apart(a, b) <= allowed) | zeros(a, b, mode in FOREIGN or bool((spread > 0).any()))))


def largest(array: Array) -> float:
    """The size of the largest finite element, and at least 1."""
    finite = np.abs(array.astype(np.float64))
    return float(np.max(finite, initial=1.0, where=np.isfinite(finite)))


def zeros(a: Any, b: Any, allowed: bool) -> Any:
    """Where both are zero, if their signs may differ."""
    if not allowed:
        return False
    return (np.asarray(a).astype(np.float64) == 0) & (np.asarray(b).astype(np.float64) == 0)


def apart(a: Any, b: Any) -> Array:
    """The distance of numbers; infinite if only one is finite, or only one NaN, or a zero has another sign."""
    x, y = np.asarray(a).astype(np.float64), np.asarray(b).astype(np.float64)
    with np.errstate(all="ignore"):
        distance = np.abs(x - y)
        alike = ((x == y) & (np.signbit(x) == np.signbit(y))) | (np.isnan(x) & np.isnan(y))
    if np.asarray(a).dtype.kind in "iu" and np.asarray(b).dtype.kind in "iu":
        alike = np.asarray(a == b)
        distance = np.maximum(distance, 1)
    return np.where(alike, 0.0, np.where(np.isfinite(distance) & (distance > 0), distance, np.inf))


def where(a: Any, b: Any) -> str:
    """The place at which two values are the furthest apart, and both numbers there."""
    if not isinstance(a, np.ndarray) or not isinstance(b, np.ndarray):
        return f"eager {a}, found {b}"
    distance = apart(a, b)
    index = tuple(int(place) for place in np.unravel_index(int(distance.argmax()), distance.shape))
    count = int((distance > 0).sum())
    return f"eager {a[index]!s}, found {b[index]!s} at {list(index)}; {count} of {a.size} differ"
