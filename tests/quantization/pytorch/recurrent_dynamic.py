"""Layers that minitorch and PyTorch quantise dynamically: their options, parameters and inputs."""

from __future__ import annotations

from typing import Any

import numpy as np

INPUT, HIDDEN, TIME, BATCH = 8, 16, 6, 3

CASES: dict[str, tuple[str, dict[str, Any]]] = {
    "LSTM": ("LSTM", {}),
    "LSTM, two layers, two directions": ("LSTM", {"num_layers": 2, "bidirectional": True}),
    "GRU": ("GRU", {"batch_first": True}),
    "GRU, two layers, two directions": ("GRU", {"num_layers": 2, "bidirectional": True}),
    "LSTMCell": ("LSTMCell", {}),
    "GRUCell": ("GRUCell", {}),
    "RNNCell": ("RNNCell", {}),
    "RNNCell relu": ("RNNCell", {"nonlinearity": "relu"}),
    "Linear": ("Linear", {}),
}


def made(lib: Any, label: str) -> Any:
    """The float layer of a library, with parameters that are the same in all."""
    name, options = CASES[label]
    layer = getattr(lib.nn, name)(INPUT, HIDDEN, **options)
    random = np.random.RandomState(31)
    state = {
        key: lib.tensor(random.uniform(-0.6, 0.6, tuple(value.shape)).astype(np.float32))
        for key, value in layer.state_dict().items()
    }
    layer.load_state_dict(state)
    return layer


def arguments(lib: Any, label: str) -> list[Any]:
    """The input, and the first state of a cell (whose product is not that of zeros)."""
    name, options = CASES[label]
    random = np.random.RandomState(32)
    lengths = (BATCH, TIME) if options.get("batch_first") else (TIME, BATCH)
    shape = (*lengths, INPUT) if name in ("LSTM", "GRU") else (BATCH, INPUT)
    x = lib.tensor(random.standard_normal(shape).astype(np.float32))
    if not name.endswith("Cell"):
        return [x]
    states = [lib.tensor(random.uniform(-1, 1, (BATCH, HIDDEN)).astype(np.float32)) for _ in range(2)]
    return [x, (states[0], states[1]) if name == "LSTMCell" else states[0]]
