"""The processes of a program under `jax.distributed`; one, if it is not."""

from __future__ import annotations

import jax
import numpy as np
from jax.experimental import multihost_utils


def place() -> tuple[int, int]:
    """The number of this process, and how many there are."""
    return jax.process_index(), jax.process_count()


def agreed(is_well: bool) -> bool:
    """Wait for all processes to ask; whether it is well in all of them."""
    return bool(np.all(multihost_utils.process_allgather(np.array(is_well))))
