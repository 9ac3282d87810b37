"""Profiles as text: one table, and two side by side."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING

from minitorch.tables import Table

from .machines import Machine
from .rows import Row

if TYPE_CHECKING:
    from .profile import Profile


def shares(row: Row, roofs: Machine) -> tuple[float, float]:
    """The shares of the machine's bandwidth and peak FLOP rate that a row reaches; above 1 in the caches.

    Example:
        >>> row = Row("add", "eager", "", 1, 0.5, 10, 10, 5, 0, {"float32": 5})
        >>> shares(row, Machine("m", 16, 1, (1, 2, 3), 80.0, {"int32": 1.0, "float32": 20.0}))
        (0.5, 0.5)
    """
    if not row.seconds:
        return 0.0, 0.0
    arithmetic = sum(count / roofs.peak(dtype) for dtype, count in row.flops_by_type.items())
    return row.bytes / row.seconds / roofs.bandwidth, arithmetic / row.seconds


def parts(profile: Profile, by: str, limit: int, roofs: Machine) -> Iterator[Table | str]:
    """One profile: its rows, and the sums."""
    found = profile.rows(by)
    width = max([len(row.name) for row in found[:limit]] + [9])
    numbers = ("calls", "ms", "time", "MB read", "written", "MFLOP", "GB/s", "of copy", "GFLOP/s", "of peak")
    template = f"{{:<{width}}} {{:<6}}{{:>6}}{{:>9}}{{:>5}}{{:>9}}{{:>9}}{{:>9}}{{:>7}}{{:>8}}{{:>8}}{{:>8}}  {{}}"
    rows = []
    for row in found[:limit]:
        memory, arithmetic = shares(row, roofs)
        seconds = row.seconds or float("inf")
        rows.append((
            row.name, row.kind, str(row.calls), f"{row.seconds * 1e3:.3f}", f"{_share(row, profile):.0%}",
            f"{row.bytes_read / 1e6:.3f}", f"{row.bytes_written / 1e6:.3f}", f"{row.flops / 1e6:.3f}",
            f"{row.bytes / seconds / 1e9:.1f}", f"{memory:.0%}", f"{row.flops / seconds / 1e9:.1f}",
            f"{arithmetic:.0%}", row.where[:60],
        ))  # fmt: skip
    where = "lines" if by == "operation" else "operations"
    yield Table(template, rows, (by, "kind", *numbers, where), (0, 12))
    if len(found) > limit:
        yield f"and {len(found) - limit} more"
    times = ", ".join(f"{name} {seconds * 1e3:.3f}" for name, seconds in profile.times.items())
    peak = roofs.flops["float32"] / 1e9
    yield f"{profile.total * 1e3:.3f} ms: {times}"
    yield (
        f"{profile.bytes_read / 1e6:.3f} MB read, {profile.bytes_written / 1e6:.3f} MB written, "
        f"at most {profile.peak_bytes / 1e6:.3f} MB of new memory at once"
    )
    yield f"{profile.flops / 1e6:.3f} MFLOP and {profile.transcendentals / 1e6:.3f} million of exp and the like"
    yield f"a copy moves {roofs.bandwidth / 1e9:.1f} GB/s here, the peak is {peak:.1f} GFLOP/s of float32"


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
    width = max([len(name) for name in pairs] + [len(name) for name in one.times] + [9])
    lines = [f"{by:<{width}}{'calls':>8}{'':>8}{'ms':>12}{'':>12}{'ratio':>8}{'MB':>12}{'':>12}{'ratio':>8}"]
    for name, ((calls, seconds, moved), (calls2, seconds2, moved2)) in pairs.items():
        times, sizes = _two(seconds * 1e3, seconds2 * 1e3), _two(moved / 1e6, moved2 / 1e6)
        lines.append(f"{name:<{width}}{calls:>8}{calls2:>8}{times}{sizes}")
    for name, seconds in one.times.items():
        lines.append(f"{name:<{width}}{'':>16}{_two(seconds * 1e3, other.times[name] * 1e3)}")
    times = _two(one.total * 1e3, other.total * 1e3)
    sums = _two(one.bytes / 1e6, other.bytes / 1e6)
    lines.append(f"{'total':<{width}}{one.calls:>8}{other.calls:>8}{times}{sums}")
    lines.append(f"{'peak':<{width}}{'':>16}{'':>32}{_two(one.peak_bytes / 1e6, other.peak_bytes / 1e6)}")
    return "\n".join(line.rstrip() for line in lines)


def _two(before: float, after: float) -> str:
    """Two numbers and their ratio, the second to the first."""
    ratio = f"{after / before:.2f}" if before > 0 and after > 0 else "-"
    return f"{before:>12.3f}{after:>12.3f}{ratio:>8}"
