"""`minitorch.cuda.amp`: mixed precision on GPUs, of which there are none: both are switched off, as in PyTorch."""

from __future__ import annotations

from typing import Any

import minitorch_amp


def autocast(enabled: bool = True, dtype: Any = None, cache_enabled: bool = True) -> minitorch_amp.autocast:
    """Return a block that changes nothing. On the CPU mixed precision is ``minitorch.autocast("cpu")``."""
    return minitorch_amp.autocast("cpu", enabled=False)


def GradScaler(*args: Any, **kwargs: Any) -> minitorch_amp.GradScaler:  # noqa: N802  PyTorch's name
    """Return a scaler that changes nothing: gradients are those of float32."""
    return minitorch_amp.GradScaler(enabled=False)
