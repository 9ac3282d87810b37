"""`course.rounds`: an algorithm for a collective on simulated devices, as numbers, text and frames."""

from __future__ import annotations

import xml.etree.ElementTree as ET

import pytest

from minitorch import course
from minitorch_course.animations.simulating import Send
from minitorch_course.blanks.devices import reduce_scatter


def ring(devices: int) -> list[list[Send]]:
    """An all-reduce: what a reduce-scatter has completed goes round once more."""
    steps: list[list[Send]] = reduce_scatter(devices)
    for _ in range(devices - 1):
        arrived = {target: chunk for _, target, chunk, _ in steps[-1]}
        steps.append([(device, (device + 1) % devices, arrived[device], "copy") for device in range(devices)])
    return steps


@pytest.mark.parametrize("devices", [2, 3, 4, 7])
def test_a_ring_sums_each_contribution_once(devices: int) -> None:
    shown = course.rounds(ring(devices), devices)
    assert shown.history[-1] == ((int("1" * devices),) * devices,) * devices
    assert shown.sent == (2 * (devices - 1),) * devices and shown.length == 2 * (devices - 1)
    ET.fromstring(shown.frames.svg())
    assert len(str(shown).splitlines()) == (2 * devices - 1) * (devices + 1)


def test_sends_of_a_step_happen_at_once() -> None:
    exchanged = course.rounds([[(0, 1, 0, "copy"), (1, 0, 0, "copy")]], 2)
    assert exchanged.history[-1] == ((10, 1), (1, 10))


def test_only_a_complete_sum_is_marked() -> None:
    twice = course.rounds([[(0, 1, 0, "add")], [(0, 1, 0, "add")]], 2)
    once = course.rounds([[(0, 1, 0, "add")]], 2)
    assert twice.history[-1][1][0] == 12 and "#cdebc5" not in twice.frames.svg(2) and "#cdebc5" in once.frames.svg(1)


@pytest.mark.parametrize("send", [(0, 2, 0, "add"), (0, 1, 2, "add"), (-1, 1, 0, "add"), (0, 1, 0, "sum")])
def test_a_send_that_cannot_be_is_named(send: Send) -> None:
    with pytest.raises(ValueError, match="step 2 has"):
        course.rounds([[], [send]], 2)
