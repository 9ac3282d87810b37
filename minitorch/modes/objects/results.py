"""What stands for a value among the arguments and results of a trace."""

from __future__ import annotations

import copy
from dataclasses import dataclass
from typing import Any

import numpy as np


@dataclass(frozen=True)
class Argument:
    """A result that is one of the arguments itself."""

    position: int


@dataclass(frozen=True)
class Output:
    """A result that is computed: its position among the graph's outputs."""

    position: int


@dataclass(frozen=True)
class Held:
    """A result that is a tensor from a place, by its number among the trace's."""

    position: int


@dataclass(frozen=True, eq=False)
class New:
    """A result that is made anew in every call, such as an array."""

    value: Any

    def made(self) -> Any:
        """Another one; itself, if it cannot be copied."""
        try:
            return np.array(self.value) if isinstance(self.value, np.ndarray) else copy.copy(self.value)
        except Exception:
            return self.value
