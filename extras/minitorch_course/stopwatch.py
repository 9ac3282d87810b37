"""The stopwatch: contenders take turns, wall time beside CPU time, and a verdict that may be "too noisy".

The time of a call is a distribution, and a busy machine shifts all of it. So contenders take turns, and are compared
round by round: what slows one down slows down its neighbour in the same round. A sentence about which is faster is
computed from these ratios, and says so if they do not agree (Georges, Buytaert and Eeckhout, "Statistically rigorous
Java performance evaluation", 2007, on why one number is not enough).
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from statistics import median
from time import perf_counter, process_time
from typing import Any

from minitorch_inspect.plots.plot import duration

ROUNDS = 9  # of each contender. More of them make quartiles steadier, and take longer.
# A round is so many calls that it takes at least this long. More of it drowns the clock's own noise.
ROUND_SECONDS = 0.004
# The upper quartile of rounds over the lower one, above which only a difference that is larger still is told.
NOISY = 1.6
SAME = 0.04  # the share by which two times have to differ before they are called different
AGAIN = "run the cell again"  # what to do about a measurement that is too noisy, in a cell


@dataclass(frozen=True)
class Times:
    """The time of one call, measured in several rounds.

    Attributes:
        wall: seconds on the clock, for each round.
        cpu: seconds of processor time, of all threads together, for each round.
        calls: how many calls a round has.
    """

    wall: tuple[float, ...]
    cpu: tuple[float, ...]
    calls: int

    @property
    def seconds(self) -> float:
        """The median of the wall times."""
        return median(self.wall)

    @property
    def cpu_seconds(self) -> float:
        """The median of the CPU times."""
        return median(self.cpu)

    @property
    def spread(self) -> float:
        """The upper quartile of the wall times over the lower one: 1 if all rounds are alike."""
        low, high = _quartiles(self.wall)
        return high / low if low else 1.0

    def __repr__(self) -> str:
        return f"{duration(self.seconds)}, {duration(self.cpu_seconds)} of CPU time, spread {self.spread:.2f}"


class Comparison:
    """Contenders that were measured in turns; print it for a table.

    Attributes:
        times: by the contender's name.
    """

    def __init__(self, times: Mapping[str, Times]) -> None:
        self.times = dict(times)

    def __getitem__(self, name: str) -> Times:
        return self.times[name]

    def ratios(self, name: str, other: str) -> list[float]:
        """How many times as fast the first one is as the second, for each round."""
        pairs = zip(self.times[name].wall, self.times[other].wall, strict=True)
        return [theirs / ours if ours else 1.0 for ours, theirs in pairs]

    def faster(self, name: str, other: str) -> bool | None:
        """Whether the first is faster than the second: True, False, or None if this measurement cannot tell.

        Half of the rounds have to agree, by more than `SAME`; if the rounds of one of them differ by more than `NOISY`,
        the two have to differ by more than these.
        """
        low, high = _quartiles(self.ratios(name, other))
        noise = max(self.times[name].spread, self.times[other].spread)
        least = noise if noise > NOISY else 1 + SAME
        return True if low > least else False if high < 1 / least else None

    def is_too_noisy(self, name: str, other: str) -> bool:
        """Whether the rounds of one of two differ by more than `NOISY`, and do not tell which is faster."""
        return self.faster(name, other) is None and max(self.times[each].spread for each in (name, other)) > NOISY

    def ratio(self, name: str, other: str) -> float | None:
        """How many times as fast the first is as the second: the median, to two digits; None if it is too noisy.

        Example:
            >>> cpu = (1.0, 1.0, 1.0, 1.0)
            >>> found = Comparison({"a": Times((1.0, 1.0, 1.1, 1.0), cpu, 1), "b": Times((2.0, 2.1, 2.0, 2.0), cpu, 1)})
            >>> found.ratio("a", "b"), found.fastest()
            (2.0, 'a')
        """
        return None if self.is_too_noisy(name, other) else float(f"{median(self.ratios(name, other)):.2g}")

    def fastest(self) -> str | None:
        """The contender that is faster than all others; None if this measurement cannot tell."""
        name = min(self.times, key=lambda each: self.times[each].seconds)
        return name if all(self.faster(name, other) for other in self.times if other != name) else None

    def verdict(self, name: str, other: str) -> str:
        """A sentence on which of two is faster, by how much; or that the rounds do not tell.

        Example:
            >>> cpu = (1.0, 1.0, 1.0, 1.0)
            >>> a, b = Times((1.0, 1.0, 1.1, 1.0), cpu, 1), Times((2.0, 2.1, 2.0, 2.0), cpu, 1)
            >>> Comparison({"a": a, "b": b}).verdict("a", "b")
            'a is 2 times as fast as b'
            >>> Comparison({"a": a, "b": b}).verdict("b", "a")
            'b takes 2 times as long as a'
            >>> noisy = Times((1.0, 1.0, 3.0, 3.0), cpu, 1)
            >>> Comparison({"a": noisy, "b": b}).verdict("a", "b")
            'a beside b: too noisy to conclude (rounds of a differ by a factor of 3.0); run the cell again'
        """
        low, high = _quartiles(self.ratios(name, other))
        worst = max((name, other), key=lambda each: self.times[each].spread)
        found = self.faster(name, other)
        if self.is_too_noisy(name, other):
            spread = f"rounds of {worst} differ by a factor of {self.times[worst].spread:.1f}"
            return f"{name} beside {other}: too noisy to conclude ({spread}); {AGAIN}"
        if found is None:
            return f"{name} and {other} take the same time, as far as this can tell ({low:.2f} to {high:.2f})"
        if not found:
            return f"{name} takes {_between(1 / high, 1 / low)} times as long as {other}"
        return f"{name} is {_between(low, high)} times as fast as {other}"

    def __repr__(self) -> str:
        width = max([len(name) for name in self.times] + [4])
        first = next(iter(self.times))
        lines = [f"{'':{width}}  {'wall':>9}  {'CPU':>9}  {'spread':>6}  beside {first}"]
        for name, each in self.times.items():
            ratio = self.times[first].seconds / each.seconds if each.seconds else 1.0
            beside = "" if name == first else f"{ratio:.2f} times as fast"
            times = f"{duration(each.seconds):>9}  {duration(each.cpu_seconds):>9}  {each.spread:6.2f}"
            lines.append(f"{name:{width}}  {times}  {beside}".rstrip())
        return "\n".join(lines)


def measure(function: Callable[..., Any], *args: Any, rounds: int = ROUNDS) -> Times:
    """The time of a call, in several rounds, after one call that does not count.

    Args:
        function: what is called. It has to wait for its result: ``lambda: f(x).block_until_ready()`` for JAX.
        args: its arguments.
        rounds: how many.

    Example:
        >>> measure(sum, [1, 2, 3], rounds=3).calls > 100
        True
    """
    return compare({"it": lambda: function(*args)}, rounds=rounds)["it"]


def compare(contenders: Mapping[str, Callable[[], Any]], rounds: int = ROUNDS) -> Comparison:
    """Measure contenders in turns: in each round each of them once, the order turned by one from round to round.

    Args:
        contenders: what is called, without arguments, by name. Each is called once before, which does not count.
        rounds: how many.

    Raises:
        ValueError: if there is nothing to compare, or no round.

    Example:
        >>> found = compare({"short": lambda: sum(range(10)), "long": lambda: sum(range(1000))}, rounds=3)
        >>> list(found.times), found["long"].seconds > found["short"].seconds
        (['short', 'long'], True)
    """
    if not contenders or rounds < 1:
        raise ValueError("a comparison needs a contender and a round")
    calls = {name: _calls(function) for name, function in contenders.items()}
    wall: dict[str, list[float]] = {name: [] for name in contenders}
    cpu: dict[str, list[float]] = {name: [] for name in contenders}
    names = list(contenders)
    for number in range(rounds):
        turned = number % len(names)
        for name in [*names[turned:], *names[:turned]]:
            seconds, cpu_seconds = _round(contenders[name], calls[name])
            wall[name].append(seconds)
            cpu[name].append(cpu_seconds)
    return Comparison({name: Times(tuple(wall[name]), tuple(cpu[name]), calls[name]) for name in names})


def first_call(function: Callable[..., Any], *args: Any) -> tuple[Any, float]:
    """The result of a call that happens once, such as one that compiles, and its seconds on the clock."""
    start = perf_counter()
    result = function(*args)
    return result, perf_counter() - start


@dataclass(frozen=True)
class Laps:
    """Calls one after the other that are not alike: the first of them prepares something.

    Attributes:
        results: of the calls.
        seconds: on the clock, for each call.
    """

    results: tuple[Any, ...]
    seconds: tuple[float, ...]

    @property
    def first(self) -> float:
        """Seconds of the first call."""
        return self.seconds[0]

    @property
    def later(self) -> float:
        """Seconds of a call after the first: the median."""
        return median(self.seconds[1:])

    @property
    def so_far(self) -> list[float]:
        """Seconds from the start to the end of each call."""
        return list(accumulate(self.seconds))

    def ahead_of(self, other: Laps) -> int | None:
        """After how many calls this way has taken less time than another one, preparation included; None for never.

        It follows from the first call and the median of the later ones, and is at least 1.

        Example:
            >>> eager, compiled = Laps((), (2.0, 2.0, 2.0)), Laps((), (9.0, 1.0, 1.0))
            >>> compiled.ahead_of(eager), eager.ahead_of(compiled)
            (9, None)
        """
        saved, spent = other.later - self.later, self.first - other.first
        if saved <= SAME * other.later:
            return None
        return max(1, 2 + int(spent // saved))


def laps(function: Callable[..., Any], arguments: Iterable[tuple[Any, ...]], start: float | None = None) -> Laps:
    """Call a function with one tuple of arguments after the other, and note the time of each call.

    Args:
        function: it has to wait for its result, or the time is that of asking for it.
        arguments: of the calls.
        start: the moment, of `time.perf_counter`, at which the preparation for the first call began.

    Example:
        >>> found = laps(pow, [(2, 3), (2, 4)])
        >>> found.results, len(found.seconds)
        ((8, 16), 2)
    """
    results, seconds = [], []
    for each in arguments:
        begin = perf_counter() if start is None else start
        results.append(function(*each))
        seconds.append(perf_counter() - begin)
        start = None
    return Laps(tuple(results), tuple(seconds))


def _calls(function: Callable[[], Any]) -> int:
    """How many calls make a round; the first call is not counted."""
    function()
    once = max(min(_round(function, 1)[0] for _ in range(3)), 1e-9)
    return max(1, round(ROUND_SECONDS / once))


def _round(function: Callable[[], Any], calls: int) -> tuple[float, float]:
    cpu, start = process_time(), perf_counter()
    for _ in range(calls):
        function()
    return (perf_counter() - start) / calls, (process_time() - cpu) / calls


def _quartiles(numbers: Sequence[float]) -> tuple[float, float]:
    """The lower and the upper quartile, each one of the numbers."""
    inorder = sorted(numbers)
    quarter = len(inorder) // 4
    return inorder[quarter], inorder[-1 - quarter]


def _between(low: float, high: float) -> str:
    one, other = (f"{float(f'{each:.2g}'):g}" for each in (low, high))
    return one if one == other else f"{one} to {other}"
