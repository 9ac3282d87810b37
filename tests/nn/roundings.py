"""Functions of 16-bit floats that round once, for this library and for PyTorch: their values are recorded."""

from __future__ import annotations

import math
from collections.abc import Callable
from typing import Any

Call = Callable[[Any, Any, Callable[..., Any], str], Any]


def wave(lib: Any, *shape: int, by: float, dtype: str) -> Any:
    """Numbers without a generator: sines of the elements' places, in a type, or in several one after the other."""
    values = lib.tensor([2 * math.sin(by * (place + 1)) for place in range(math.prod(shape))]).reshape(*shape)
    for each in dtype.split():
        values = values.to(getattr(lib, each))
    return values


def attend(lib: Any, F: Any, numbers: Callable[..., Any], **options: Any) -> Any:
    """Of three dimensions, which PyTorch computes by the formula."""
    return F.scaled_dot_product_attention(
        numbers(2, 5, 12, by=0.7), numbers(2, 6, 12, by=1.1), numbers(2, 6, 4, by=1.9), **options
    )


# Each takes the library, its functions, numbers of a 16-bit type, and the type of weights.
CALLS: dict[str, Call] = {
    "attention": lambda lib, F, numbers, of: attend(lib, F, numbers),
    "attention, scaled": lambda lib, F, numbers, of: attend(lib, F, numbers, scale=0.3),
    "attention, causal": lambda lib, F, numbers, of: attend(lib, F, numbers, is_causal=True),
    "attention, mask of bools": lambda lib, F, numbers, of: attend(
        lib, F, numbers, attn_mask=lib.tensor([[(row + column) % 3 != 1 for column in range(6)] for row in range(5)])
    ),
    "attention, mask of floats": lambda lib, F, numbers, of: attend(lib, F, numbers, attn_mask=numbers(5, 6, by=0.4)),
    "layer_norm": lambda lib, F, numbers, of: F.layer_norm(
        numbers(6, 10, by=0.7), (10,), wave(lib, 10, by=1.3, dtype=of), wave(lib, 10, by=0.5, dtype=of)
    ),
    "rms_norm": lambda lib, F, numbers, of: F.rms_norm(numbers(6, 10, by=0.7), (10,), wave(lib, 10, by=1.3, dtype=of)),
    "group_norm": lambda lib, F, numbers, of: F.group_norm(
        numbers(3, 6, 5, by=0.7), 2, wave(lib, 6, by=1.3, dtype=of), wave(lib, 6, by=0.5, dtype=of)
    ),
    "batch_norm": lambda lib, F, numbers, of: F.batch_norm(
        numbers(3, 6, 5, by=0.7),
        wave(lib, 6, by=0.2, dtype=of),
        wave(lib, 6, by=0.9, dtype=of).abs().clamp(0.5),
        wave(lib, 6, by=1.3, dtype=of),
        wave(lib, 6, by=0.5, dtype=of),
    ),
}
# Those that PyTorch rounds more often: exponentials of operands of four dimensions, and statistics of a batch, to the
# type of the weights.
ROUNDED_TWICE: dict[str, Call] = {
    "attention, four dimensions": lambda lib, F, numbers, of: F.scaled_dot_product_attention(
        numbers(1, 2, 5, 12, by=0.7), numbers(1, 2, 6, 12, by=1.1), numbers(1, 2, 6, 12, by=1.9)
    ),
    "batch_norm, training": lambda lib, F, numbers, of: F.batch_norm(
        numbers(3, 6, 5, by=0.7),
        None,
        None,
        wave(lib, 6, by=1.3, dtype=of),
        wave(lib, 6, by=0.5, dtype=of),
        training=True,
    ),
}
ALL = {**CALLS, **ROUNDED_TWICE}
TYPES = {
    f"{lower}, weights in {weights}": (lower, weights)
    for lower in ("bfloat16", "float16")
    for weights in ("float32", lower)
}


def value(lib: Any, F: Any, name: str, case: str) -> list[float]:
    """All elements of a result, in order."""
    lower, weights = TYPES[case]
    result = ALL[name](lib, F, lambda *shape, by: wave(lib, *shape, by=by, dtype=lower), weights)
    assert result.dtype is getattr(lib, lower)
    found: list[float] = result.float().flatten().tolist()
    return found


def exact(lib: Any, F: Any, name: str, case: str) -> list[float]:
    """The same of the same numbers in float64, not rounded."""
    lower, weights = TYPES[case]
    wide = f"{lower} float64"
    result = ALL[name](lib, F, lambda *shape, by: wave(lib, *shape, by=by, dtype=wide), f"{weights} float64")
    found: list[float] = result.flatten().tolist()
    return found


def values(lib: Any, F: Any) -> dict[str, dict[str, list[float]]]:
    """All that is recorded, by function and types."""
    return {name: {case: value(lib, F, name, case) for case in TYPES} for name in ALL}
