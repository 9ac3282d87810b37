"""The blanks of notebook 16: two ways to a product, a ring, and the seconds of an all-reduce."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

from ..blanking import Blank, Case


def ways(rows: Any, inner: Any, columns: Any, devices: Any) -> Any:
    """Return the bytes that an all-gather of x moves, and those that an all-reduce of the result moves."""
    gather = (devices - 1) * 4 * rows * inner
    reduce = 2 * (devices - 1) * 4 * rows * columns
    return gather, reduce


def _shapes() -> Iterable[Case]:
    yield "For 64 rows, 512 inner, 128 columns and 8 devices", 64, 512, 128, 8
    yield "For 128 rows, 64 inner, 512 columns and 2 devices", 128, 64, 512, 2


def reduce_scatter(devices: Any) -> Any:
    """Return n - 1 steps, after which each device has the sum of one chunk."""
    steps = []
    for step in range(devices - 1):
        sends = []
        for device in range(devices):
            right = (device + 1) % devices
            chunk = (device - step) % devices
            sends.append((device, right, chunk, "add"))
        steps.append(sends)
    return steps


def _carried_out(function: Any, devices: int) -> str:
    """Tell what the devices have at the end, each having begun with a one of its own in each chunk."""
    held, steps = [[10**device] * devices for device in range(devices)], function(devices)
    for step in steps:
        for target, chunk, value in [(target, chunk, held[source][chunk]) for source, target, chunk, _ in step]:
            held[target][chunk] += value
    whole = int("1" * devices)
    complete = [[chunk for chunk in range(devices) if chunks[chunk] == whole] for chunks in held]
    if sorted(map(len, complete)) == [1] * devices and len({each for (each,) in complete}) == devices:
        return f"each device has the sum of a chunk of its own after {len(steps)} steps"
    device = next((device for device, chunks in enumerate(complete) if len(chunks) != 1), 0)
    return f"device {device} ends with {' '.join(f'{value:0{devices}d}' for value in held[device])}"


def _counts() -> Iterable[Case]:
    yield "For 4 devices", 4
    yield "For 5 devices", 5


def all_reduce_seconds(nbytes: Any, devices: Any, latency: Any, bandwidth: Any) -> Any:
    """Return the seconds that a ring of devices needs to sum nbytes bytes that each of them has."""
    steps = 2 * (devices - 1)
    seconds_of_a_step = latency + nbytes / devices / bandwidth
    return steps * seconds_of_a_step


def _networks() -> Iterable[Case]:
    yield "For 8 MB, 8 devices, 2 µs and 50 GB/s", 8e6, 8, 2e-6, 50e9
    yield "For 1 kB, 64 devices, 5 µs and 50 GB/s", 1e3, 64, 5e-6, 50e9


BLANKS = {
    "ways": Blank(
        ways,
        _shapes,
        {
            "You count numbers. A float32 number has 4 bytes.": {" * 4": ""},
            "An all-reduce moves twice what an all-gather of the same array does.": {"2 * ": ""},
            "These are the bytes of each device. All of them together are asked for.": {
                "gather, reduce": "gather / devices, reduce / devices"
            },
        },
        close=1e-9,
    ),
    "reduce_scatter": Blank(
        reduce_scatter,
        _counts,
        {
            "Each device sends the same chunk in every step, so what has arrived is never passed on.": {
                "device - step": "device"
            },
            "Each device sends a chunk to which nothing was added yet. Pass on the one that has just arrived.": {
                "device - step": "device + step"
            },
            "After n - 1 steps each sum is complete. You send once more, and a device is counted twice.": {
                "devices - 1": "devices"
            },
        },
        ask=_carried_out,
    ),
    "all_reduce_seconds": Blank(
        all_reduce_seconds,
        _networks,
        {
            "In each step a device sends one chunk, which is an nth of the bytes.": {"nbytes / devices": "nbytes"},
            "The latency is paid in every step.": {"latency + n": "latency / steps + n"},
            "A reduce-scatter has n - 1 steps, and the all-gather as many again.": {"2 * ": ""},
        },
    ),
}
