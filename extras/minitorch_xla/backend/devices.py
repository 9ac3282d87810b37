"""The devices that JAX sees, by the names that PyTorch's users know."""

from __future__ import annotations

from typing import Any

import jax

from minitorch.errors import DeviceError

PLATFORMS = {"cpu": "cpu", "cuda": "cuda", "gpu": "gpu", "rocm": "rocm", "tpu": "tpu"}


def device_named(name: str | None) -> Any:
    """The device of a name, ``"cuda"`` or ``"cuda:1"``; JAX's first one for None.

    Raises:
        DeviceError: if there is none (``MT203``).
    """
    if name is None:
        return jax.devices()[0]
    kind, _, number = name.partition(":")
    place = int(number or 0) if number.isdecimal() or not number else -1
    try:
        found = jax.devices(PLATFORMS[kind])
    except (KeyError, RuntimeError):
        found = []
    if not 0 <= place < len(found):
        seen = sorted({f"{each.platform}:{each.id}" for each in jax.devices()})
        raise DeviceError(
            "MT203",
            f"there is no device {name!r}",
            why=f"JAX sees {', '.join(seen)} here",
            fix="leave device= out for the first of these, or install JAX for that device",
        )
    return found[place]
