"""The weights that affine folding makes are PyTorch's, to 2 units in the last place."""

from __future__ import annotations

import numpy as np
import pytest

import minitorch as mt
from minitorch.ir import Node
from minitorch_inference.affine import fold_affine
from tests.inference.affine import frozen_graph
from tests.inference.test_torch_folding import MODELS, numbers
from tests.support.graphs import Array
from tests.support.records import read


def filled(name: str) -> mt.nn.Module:
    """A model of the record, with the record's parameters and statistics."""
    (layer, arguments, options), (norm, features) = MODELS[name]
    model = mt.nn.Sequential(getattr(mt.nn, layer)(*arguments, **options), getattr(mt.nn, norm)(features))
    seed = list(MODELS).index(name)
    for key, tensor in [*model.named_parameters(), *model.named_buffers()]:
        if tensor.dtype.is_floating_point:
            tensor.detach().copy_(mt.tensor(numbers(key, tensor.shape, seed)))
    return model.eval()


def literals(name: str) -> tuple[Array, Array]:
    """The folded weights and shift, in the order of PyTorch's."""
    (layer, arguments, _), _ = MODELS[name]
    shape = {"Linear": (2, 7), "Conv1d": (1, 3, 6), "Conv2d": (1, arguments[0], 5, 5)}[layer]
    graph = fold_affine(frozen_graph(filled(name), mt.zeros(*shape))).graph
    (dot,) = (node for node in graph.nodes if node.primitive.name == "dot")
    (add,) = (node for node in graph.nodes if node.primitive.name == "add")
    weights = next(each for each in dot.inputs if each.primitive.name == "constant")
    shift = array_of(add.inputs[1].inputs[0])
    if layer == "Linear":
        return array_of(weights).T.ravel(), shift.ravel()
    return array_of(weights).ravel(), shift.ravel()


def array_of(node: Node) -> Array:
    array: Array = node.params["value"].array
    return array


def magnitude(name: str) -> Array:
    """The terms of a shift made positive: ``(|b| + |mean|) * |s| + |bias|``."""
    values = dict(filled(name).named_buffers()) | dict(filled(name).named_parameters())
    of = {key: np.abs(tensor.detach().numpy().astype(np.float64)) for key, tensor in values.items()}
    scale = of["1.weight"] / np.sqrt(of["1.running_var"] + 1e-5)
    return np.asarray((of.get("0.bias", 0.0) + of["1.running_mean"]) * scale + of["1.bias"])


@pytest.mark.parametrize("name", MODELS)
def test_folded_weights_are_pytorchs_to_two_ulp(name):
    recorded = {key: np.array(values, np.float32) for key, values in read("folding")[name].items()}
    weights, shift = literals(name)
    assert (np.abs(weights - recorded["weight"]) <= 2 * np.spacing(np.abs(recorded["weight"]))).all()
    # A shift is a sum, which may cancel: of its terms made positive.
    allowed = 2 * np.spacing(magnitude(name).astype(np.float32))
    assert (np.abs(shift - recorded["bias"]) <= allowed).all()
