"""Profiles as text: a table of one, and of two side by side."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from .machines import Machine
from .rows import Row

if TYPE_CHECKING:
    from .profile import Profile

# The parts that the time of a block is made of.
PARTS: dict[str, Callable[[Profile], float]] = {
    "kernels": lambda p: p.kernels,
    "dispatch": lambda p: p.dispatch,
    "tracing": lambda p: p.tracing,
    "compiling": lambda p: p.compiling,
    "outside": lambda p: p.outside,
}


def shares(row: Row, roofs: Machine) -> tuple[float, float]:
    """How much of the machine's bandwidth and of its peak FLOP rate a row has; above 1 for what is in the caches.

    Example:
        >>> row = Row("add", "eager", "", 1, 0.5, 10, 10, 5, 0, {"float32": 5})
        >>> shares(row, Machine("m", 16, 1, (1, 2, 3), 80.0, {"int32": 1.0, "float32": 20.0}))
        (0.5, 0.5)
    """
    if not row.seconds:
        return 0.0, 0.0
    arithmetic = sum(count / roofs.peak(dtype) for dtype, count in row.flops_by_type.items())
    return row.bytes / row.seconds / roofs.bandwidth, arithmetic / row.seconds


def table(profile: Profile, by: str, limit: int, roofs: Machine) -> str:
    """One profile."""
    found = profile.rows(by)
    width = max([len(row.name) for row in found[:limit]] + [9])
    lines = [
        f"{by:<{width}} {'kind':<6}{'calls':>6}{'ms':>9}{'time':>5}{'MB read':>9}{'written':>9}{'MFLOP':>9}"
        f"{'GB/s':>7}{'of copy':>8}{'GFLOP/s':>8}{'of peak':>8}  {'lines' if by == 'operation' else 'operations'}"
    ]
    for row in found[:limit]:
        memory, arithmetic = shares(row, roofs)
        seconds = row.seconds or float("inf")
        lines.append(
            f"{row.name:<{width}} {row.kind:<6}{row.calls:>6}{row.seconds * 1e3:>9.3f}{_share(row, profile):>5.0%}"
            f"{row.bytes_read / 1e6:>9.3f}{row.bytes_written / 1e6:>9.3f}{row.flops / 1e6:>9.3f}"
            f"{row.bytes / seconds / 1e9:>7.1f}{memory:>8.0%}{row.flops / seconds / 1e9:>8.1f}{arithmetic:>8.0%}"
            f"  {row.where[:60]}".rstrip()
        )
    if len(found) > limit:
        lines.append(f"and {len(found) - limit} more")
    parts = ", ".join(f"{name} {part(profile) * 1e3:.3f}" for name, part in PARTS.items())
    peak = roofs.flops["float32"] / 1e9
    lines += [
        f"{profile.total * 1e3:.3f} ms: {parts}",
        f"{profile.bytes_read / 1e6:.3f} MB read, {profile.bytes_written / 1e6:.3f} MB written, "
        f"at most {profile.peak_bytes / 1e6:.3f} MB of new memory at once",
        f"{profile.flops / 1e6:.3f} MFLOP and {profile.transcendentals / 1e6:.3f} million of exp and the like",
        f"a copy moves {roofs.bandwidth / 1e9:.1f} GB/s here, the peak is {peak:.1f} GFLOP/s of float32",
    ]
    return "\n".join(lines)


def _share(row: Row, profile: Profile) -> float:
    return row.seconds / profile.total if profile.total else 0.0


def comparison(one: Profile, other: Profile, by: str) -> str:
    """Two profiles: the rows of both by name, and the sums."""
    pairs: dict[str, list[tuple[int, float, int]]] = {}
    for place, profile in enumerate((one, other)):
        for row in profile.rows(by):
            pair = pairs.setdefault(row.name, [(0, 0.0, 0), (0, 0.0, 0)])
            calls, seconds, moved = pair[place]
            pair[place] = calls + row.calls, seconds + row.seconds, moved + row.bytes
    width = max([len(name) for name in pairs] + [len(name) for name in PARTS] + [9])
    lines = [f"{by:<{width}}{'calls':>8}{'':>8}{'ms':>12}{'':>12}{'ratio':>8}{'MB':>12}{'':>12}{'ratio':>8}"]
    for name, ((calls, seconds, moved), (calls2, seconds2, moved2)) in pairs.items():
        times, sizes = _two(seconds * 1e3, seconds2 * 1e3), _two(moved / 1e6, moved2 / 1e6)
        lines.append(f"{name:<{width}}{calls:>8}{calls2:>8}{times}{sizes}")
    lines += [f"{name:<{width}}{'':>16}{_two(part(one) * 1e3, part(other) * 1e3)}" for name, part in PARTS.items()]
    sums = _two(sum(row.bytes for row in one.rows()) / 1e6, sum(row.bytes for row in other.rows()) / 1e6)
    lines.append(f"{'total':<{width}}{one.calls:>8}{other.calls:>8}{_two(one.total * 1e3, other.total * 1e3)}{sums}")
    lines.append(f"{'peak':<{width}}{'':>16}{'':>32}{_two(one.peak_bytes / 1e6, other.peak_bytes / 1e6)}")
    return "\n".join(line.rstrip() for line in lines)


def _two(before: float, after: float) -> str:
    """Two numbers, and by what the first has to be multiplied to get the second."""
    ratio = f"{after / before:.2f}" if before > 0 and after > 0 else "-"
    return f"{before:>12.3f}{after:>12.3f}{ratio:>8}"
