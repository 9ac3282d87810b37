"""Recurrent layers that minitorch and PyTorch are given alike: their options, parameters, inputs and states."""

from __future__ import annotations

from typing import Any

import numpy as np

INPUT, HIDDEN, TIME, BATCH = 2, 3, 4, 2

# The layer's name, its options, and which of "batch" and "state" are given.
Case = tuple[str, dict[str, Any], tuple[str, ...]]

BOTH = ("batch", "state")
WHOLE: dict[str, Any] = {"num_layers": 2, "bidirectional": True, "batch_first": True}


def _cases() -> dict[str, Case]:
    rows: dict[str, Case] = {}
    relu, projected = {"nonlinearity": "relu"}, {"proj_size": 2}
    layers: list[tuple[str, dict[str, Any]]] = [
        ("RNN", {}), ("RNN", relu), ("LSTM", {}), ("LSTM", projected), ("GRU", {})
    ]  # fmt: skip
    for name, more in layers:
        label = " ".join([name, *(str(value) for value in more.values())])
        rows[label] = name, more, BOTH
        rows[f"{label}, no bias, no state"] = name, {**more, "bias": False}, ("batch",)
        rows[f"{label}, two layers, two directions"] = name, {**more, **WHOLE}, BOTH
        rows[f"{label}, no batch"] = name, {**more, "bidirectional": True, "batch_first": True}, ("state",)
    cells: list[tuple[str, dict[str, Any]]] = [("RNNCell", {}), ("RNNCell", relu), ("LSTMCell", {}), ("GRUCell", {})]
    for name, more in cells:
        label = " ".join([name, *more.values()])
        rows[label] = name, more, BOTH
        rows[f"{label}, no bias, no state, no batch"] = name, {**more, "bias": False}, ()
    return rows


CASES = _cases()


def parameters(shapes: dict[str, tuple[int, ...]]) -> dict[str, np.ndarray[Any, Any]]:
    """The values of parameters, by name."""
    random = np.random.RandomState(21)
    return {name: random.uniform(-0.8, 0.8, shape) for name, shape in shapes.items()}


def arguments(case: Case) -> list[np.ndarray[Any, Any]]:
    """The input, and the tensors of the first state, if there is one."""
    name, options, given = case
    random = np.random.RandomState(22)
    batch = (BATCH,) if "batch" in given else ()
    if name.endswith("Cell"):
        shape: tuple[int, ...] = (*batch, INPUT)
        places: tuple[int, ...] = ()
    else:
        shape = (*batch, TIME, INPUT) if batch and options.get("batch_first") else (TIME, *batch, INPUT)
        places = (options.get("num_layers", 1) * (1 + options.get("bidirectional", False)),)
    sizes = [options.get("proj_size", HIDDEN), HIDDEN][: 2 if name.startswith("LSTM") else 1]
    states = [(*places, *batch, size) for size in sizes] if "state" in given else []
    return [random.standard_normal(each) for each in (shape, *states)]


def outcome(lib: Any, case: Case, prepare: Any = None, run: Any = None) -> dict[str, Any]:
    """The results of a layer of a library, and the gradients of their weighted sum, all as flat lists.

    Args:
        lib: minitorch or torch.
        case: the layer.
        prepare: applied to the layer, if given.
        run: makes another function of the layer's, if given.
    """
    name, options, _ = case
    layer = getattr(lib.nn, name)(INPUT, HIDDEN, **options, dtype=lib.float64)
    shapes = {key: tuple(value.shape) for key, value in layer.state_dict().items()}
    layer.load_state_dict({key: lib.tensor(value) for key, value in parameters(shapes).items()})
    layer = layer if prepare is None else prepare(layer)
    tensors = [lib.tensor(each, requires_grad=True) for each in arguments(case)]

    def call(x: Any, *states: Any) -> Any:
        hx = states if len(states) > 1 else states[0] if states else None
        results = flat(layer(x, hx))
        weights = [lib.arange(1.0, each.numel() + 1, dtype=each.dtype).reshape(each.shape).sin() for each in results]
        return results, sum((each * weight).sum() for each, weight in zip(results, weights, strict=True))

    results, loss = (call if run is None else run(call))(*tensors)
    loss.backward()
    learned = dict(layer.named_parameters())
    return {
        "results": [each.detach().numpy().reshape(-1).tolist() for each in results],
        "shapes": [list(each.shape) for each in results],
        "inputs": [each.grad.numpy().reshape(-1).tolist() for each in tensors],
        "parameters": {key: each.grad.numpy().reshape(-1).tolist() for key, each in learned.items()},
        "repr": repr(layer),
    }


def flat(value: Any) -> list[Any]:
    """Nested tuples of tensors as one list."""
    return [leaf for each in value for leaf in flat(each)] if isinstance(value, (tuple, list)) else [value]
