"""Data and observers that minitorch and PyTorch are given alike, for the record of PyTorch's scales and zero points."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import numpy as np

SCHEMES = ("per_tensor_affine", "per_tensor_symmetric", "per_channel_affine", "per_channel_symmetric")


def batches(name: str) -> list[np.ndarray[Any, Any]]:
    """Three batches of 4 by 50 numbers in float32, the same everywhere; or those of `HOSTILE`, as rows."""
    random = np.random.RandomState(sum(map(ord, name)))
    if name in HOSTILE:
        return [np.asarray(batch, np.float32).reshape(1, -1) for batch in HOSTILE[name](random)]
    shapes = {
        "normal": lambda: random.standard_normal((4, 50)),
        "positive": lambda: random.exponential(size=(4, 50)) + 0.25,
        "outlier": lambda: np.where(random.random_sample((4, 50)) < 0.02, 40.0, random.standard_normal((4, 50))),
        "constant": lambda: np.full((4, 50), 3.0),
        "zeros": lambda: np.zeros((4, 50)),
        "channels": lambda: random.standard_normal((4, 50)) * np.array([[1e-9], [0.1], [1.0], [30.0]]),
        "widening": lambda: random.standard_normal((4, 50)) * random.choice([1.0, 3.0, 9.0]),
    }
    return [shapes[name]().astype(np.float32) for _ in range(3)]


# Data on which a histogram is hard to make: label -> batches, from random numbers.
HOSTILE: dict[str, Callable[[np.random.RandomState], list[Any]]] = {
    "constant 1e30": lambda random: [[1e30] * 50],
    "constant -1e30": lambda random: [[-1e30] * 50],
    "constant 2**25": lambda random: [[2.0**25] * 50] * 2,
    "constants that grow": lambda random: [[1e30] * 8, [2e30] * 8],
    "constants that grow a little": lambda random: [[3.0] * 8, [5.0] * 8],
    "a constant first": lambda random: [[3.0] * 8, random.standard_normal(100)],
    "one number": lambda random: [[0.7]],
    "one zero": lambda random: [[0.0]],
    "huge": lambda random: [random.standard_normal(200) * 1e37],
    "the largest": lambda random: [[3e38, 1e38, 1.0]],
    "tiny": lambda random: [random.standard_normal(200) * 1e-30],
    "denormal": lambda random: [random.randint(1, 1 << 20, 200).astype(np.uint32).view(np.float32)],
    "neighbours": lambda random: [[1e8, 1e8 + 8]],
    "two clusters": lambda random: [[*random.standard_normal(300), *(1e6 + random.standard_normal(300))]],
    "two narrow clusters": lambda random: (
        [[*random.standard_normal(300) * 1e-3, *(100 + random.random_sample(300))]] * 2
    ),
    "growing": lambda random: [random.standard_normal(64) * 1.3**turn for turn in range(25)],
    "growing fast": lambda random: [random.standard_normal(64) * 10.0**turn for turn in range(12)],
    "shrinking": lambda random: [random.standard_normal(64) * 0.5**turn for turn in range(12)],
    "drifting": lambda random: [random.standard_normal(64) + 3 * turn for turn in range(12)],
}


def _rows() -> dict[str, tuple[str, dict[str, Any], str]]:
    """Label -> the observer's name, its arguments (type and scheme by name), and the data."""
    rows: dict[str, tuple[str, dict[str, Any], str]] = {}
    tensor = ("normal", "positive", "outlier", "constant", "zeros")
    for kind, axis, data in (
        ("MinMaxObserver", "per_tensor", tensor),
        ("MovingAverageMinMaxObserver", "per_tensor", tensor),
        ("PerChannelMinMaxObserver", "per_channel", ("normal", "channels")),
        ("MovingAveragePerChannelMinMaxObserver", "per_channel", ("normal", "channels")),
        ("HistogramObserver", "per_tensor", ("normal", "positive", "outlier", "widening")),
    ):
        for scheme in ("affine", "symmetric"):
            for dtype in ("uint8", "int8"):
                for name in data:
                    rows[f"{kind} {scheme} {dtype} {name}"] = (
                        kind,
                        {"dtype": dtype, "qscheme": f"{axis}_{scheme}"},
                        name,
                    )
    for name in HOSTILE:
        rows[f"HistogramObserver of {name}"] = "HistogramObserver", {"dtype": "uint8", "qscheme": SCHEMES[0]}, name
    plain: dict[str, Any] = {"dtype": "int8", "qscheme": "per_tensor_affine"}
    rows["reduced"] = "MinMaxObserver", {**plain, "reduce_range": True}, "normal"
    rows["reduced, uint8"] = "MinMaxObserver", {**plain, "dtype": "uint8", "reduce_range": True}, "normal"
    rows["4 bits"] = "MinMaxObserver", {**plain, "quant_min": -8, "quant_max": 7, "reduce_range": False}, "normal"
    symmetric: dict[str, Any] = {"dtype": "uint8", "qscheme": "per_tensor_symmetric", "quant_min": 0, "quant_max": 15}
    rows["4 bits, symmetric"] = "MinMaxObserver", {**symmetric, "reduce_range": False}, "normal"
    rows["coarse"] = "MinMaxObserver", {**plain, "eps": 0.1}, "normal"
    rows["slow average"] = "MovingAverageMinMaxObserver", {**plain, "averaging_constant": 0.3}, "outlier"
    return rows


OBSERVERS = _rows()

TIES = [[-9.0, -0.75, -0.25, 0.0, 0.25, 0.75, 1.25], [1.75, 3.5, 4.0, 4.25, 7.75, 8.0, 100.0]]

# Label -> numbers, scale, zero point, the least and the largest integer, the axis.
ROUNDED: dict[str, tuple[Any, Any, Any, int, int, int | None]] = {
    "ties": (TIES, 0.5, 3, 0, 15, None),
    "tenths": (TIES, 0.1, -20, -128, 127, None),
    "signed": (TIES, 0.03, 0, -8, 7, None),
    "channels": (TIES, [0.5, 0.25], [0, 4], -8, 7, 0),
    "columns": (TIES, [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7], [0, 1, 2, 3, 4, 5, 6], 0, 255, 1),
}


def network() -> dict[str, np.ndarray[Any, Any]]:
    """Parameters and statistics of Conv, BatchNorm, ReLU, Conv, ReLU, Flatten, Linear, by PyTorch's names of them."""
    random = np.random.RandomState(16)
    shapes = {
        "0.weight": (6, 3, 3, 3), "0.bias": (6,), "1.weight": (6,), "1.bias": (6,), "1.running_mean": (6,),
        "1.running_var": (6,), "3.weight": (8, 6, 3, 3), "3.bias": (8,), "6.weight": (10, 128), "6.bias": (10,),
    }  # fmt: skip
    values = {name: random.standard_normal(shape).astype(np.float32) * 0.3 for name, shape in shapes.items()}
    values["1.running_var"] = np.abs(values["1.running_var"]) + np.float32(0.1)
    return values


def pictures() -> list[np.ndarray[Any, Any]]:
    """Three batches of 4 pictures of 3 by 8 by 8."""
    random = np.random.RandomState(17)
    return [random.standard_normal((4, 3, 8, 8)).astype(np.float32) for _ in range(3)]


def linear_inputs() -> list[np.ndarray[Any, Any]]:
    """Three batches of 4 rows of 128 numbers, of different sizes."""
    random = np.random.RandomState(18)
    return [(random.standard_normal((4, 128)) * size).astype(np.float32) for size in (0.1, 1.0, 30.0)]
