"""Data and parameters of the programs in `tests/programs/`: NumPy draws them, so that every library has the same."""

from __future__ import annotations

from typing import Any

import numpy as np


def normal(*shape: int, seed: int = 0) -> Any:
    """Draw numbers from a standard normal distribution, in float32."""
    return np.random.RandomState(seed).standard_normal(shape).astype("float32")


def uniform(*shape: int, seed: int = 0) -> Any:
    """Draw numbers from 0 up to 1, in float32."""
    return np.random.RandomState(seed).random_sample(shape).astype("float32")


def integers(high: int, *shape: int, seed: int = 0) -> Any:
    """Draw integers from 0 up to `high`, in int64."""
    return np.random.RandomState(seed).randint(0, high, shape).astype("int64")


def filled(module: Any, seed: int = 0) -> Any:
    """Give a module parameters of the usual sizes: weights by their fan-in, small biases; vectors of scales stay."""
    random = np.random.RandomState(seed)
    for name, parameter in module.named_parameters():
        shape = tuple(parameter.shape)
        if len(shape) > 1:
            bound = (3 * shape[0] / parameter.numel()) ** 0.5
        elif "bias" in name.rpartition(".")[2]:
            bound = 0.1
        else:
            continue
        values = random.uniform(-bound, bound, shape)
        parameter.data.copy_(parameter.data.new_tensor(values))
    return module
