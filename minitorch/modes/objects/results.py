"""Stand-ins for values among the arguments and results of a trace."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Argument:
    """Result that is one of the arguments itself."""

    position: int


@dataclass(frozen=True)
class Output:
    """Computed result: its position among the graph's outputs."""

    position: int


@dataclass(frozen=True)
class Held:
    """Result that is a tensor from a place, by its number among the trace's."""

    position: int


@dataclass(frozen=True, eq=False)
class New:
    """Result that is made anew in every call, such as an array."""

    value: Any

    def made(self) -> Any:
        """Return a new copy, or the object itself if it cannot be copied."""
        try:
            return np.array(self.value) if isinstance(self.value, np.ndarray) else copy.copy(self.value)
        except Exception:
            return self.value
