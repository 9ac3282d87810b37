"""Drivers of exercise 16: groups of devices, shapes and cuts of matrices, batches in pieces."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from minitorch.tensor import with_value

from .driver import Driver, call_purely, within
from .needs import Needs
from .plain import Array

NEEDS = Needs(engine=("autograd", "functional"))

# --- what the notebook works with, too --------------------------------------------------------------------------

Held = dict[int, list[int | None]]  # of each device its chunks; None is a chunk that it does not have


def carry_out(steps: Any, held: Mapping[int, Sequence[int | None]]) -> Held:
    """What each device of a group holds after steps, which are lists of sends ``(source, target, chunk, how)``.

    Raises:
        ValueError: for a step that a network cannot do.

    Example:
        >>> carry_out([[(5, 2, 0, "add"), (2, 5, 1, "copy")]], {5: [1, 1], 2: [10, 10]})
        {5: [1, 10], 2: [11, 10]}
    """
    found = {device: list(chunks) for device, chunks in held.items()}
    if type(steps) not in (list, tuple) or not all(type(step) in (list, tuple) for step in steps):
        raise ValueError("an algorithm is a list of steps, and a step a list of sends")
    for number, step in enumerate(steps):
        messages: dict[tuple[int, int], tuple[str, int]] = {}
        to: dict[int, int] = {}
        since: dict[int, int] = {}
        for send in step:
            _check(send, found, number)
            source, target, chunk, how = send
            if to.setdefault(source, target) != target:
                raise ValueError(f"step {number}: device {source} sends to devices {to[source]} and {target} at once")
            if since.setdefault(target, source) != source:
                raise ValueError(
                    f"step {number}: device {target} receives from devices {since[target]} and {source} at once"
                )
            if (target, chunk) in messages:
                raise ValueError(f"step {number}: device {source} sends chunk {chunk} twice")
            value = found[source][chunk]
            assert value is not None
            messages[target, chunk] = how, value
        for (target, chunk), (how, value) in messages.items():
            own = found[target][chunk]
            found[target][chunk] = value if how == "copy" or own is None else own + value
    return found


def _check(send: Any, held: Held, number: int) -> None:
    """Whether a send is one."""
    if type(send) not in (list, tuple) or len(send) != 4:
        raise ValueError(f"step {number}: a send is (source, target, chunk, how), and not {send!r}"[:200])
    source, target, chunk, how = send
    for what, device in (("source", source), ("target", target)):
        if type(device) is not int or device not in held:
            raise ValueError(f"step {number}: the {what} of {tuple(send)} is no device of the group {list(held)}"[:200])
    if type(chunk) is not int or not 0 <= chunk < len(held[source]):
        raise ValueError(f"step {number}: the chunk of {tuple(send)} is none of 0 to {len(held[source]) - 1}"[:200])
    if how not in ("add", "copy"):
        raise ValueError(f'step {number}: the end of {tuple(send)} is neither "add" nor "copy"'[:200])
    if source == target:
        raise ValueError(f"step {number}: device {source} sends to itself")
    if held[source][chunk] is None:
        raise ValueError(f"step {number}: device {source} sends chunk {chunk}, which it does not have yet")


# --- the tasks --------------------------------------------------------------------------------------------------

all_gather, all_reduce, messages = (
    Driver(f"devices.{name}", call_purely, NEEDS) for name in ("all_gather", "all_reduce", "messages")
)


def _trained(train: Any, weight: Array, batches: list[list[tuple[Array, Array]]], rate: float) -> Any:
    """Train on batches in pieces; the answer is the weight at the end."""
    w = with_value(weight)
    w.requires_grad = True
    return train(w, [[(with_value(x), with_value(y)) for x, y in batch] for batch in batches], rate)


train = Driver("devices.train", within(_trained), NEEDS)
