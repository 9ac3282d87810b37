"""Which scales and zero points a quantised module takes from a saved state."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from minitorch.dtypes import int8, uint8
from minitorch.functional.pointwise.comparison import isfinite
from minitorch.interpreters import current_staging
from minitorch.nn.module import Module
from minitorch.tensor import Tensor

from ..schemes import integers_of


class Scaled(Module):
    """A module with scales and zero points among its buffers, which have those words in their names."""

    def state_problems(self, given: Mapping[str, Tensor]) -> Iterable[str]:
        """Scales that are no numbers above 0, and zero points that are none of the integers."""
        buffers = dict(self.named_buffers(recurse=False))
        known = [] if current_staging() is not None else [name for name in given if name in buffers]
        for name in known:
            value, dtype = given[name], buffers[name].dtype
            if "scale" in name:
                for wrong in value[~(isfinite(value) & (value > 0))].tolist()[:1]:
                    yield f"{name} is {wrong:g}, and a scale is a finite number above 0"
            elif "zero_point" in name and dtype in (int8, uint8):
                low, high = integers_of(dtype)
                for wrong in value[(value < low) | (value > high)].tolist()[:1]:
                    yield f"{name} is {wrong:g}, and a zero point of {dtype.name} is from {low} to {high}"
