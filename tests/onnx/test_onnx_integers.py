"""A network in Q/DQ form gives the integers that onnxruntime gives, layer by layer, eagerly and compiled."""

import numpy as np
import pytest

import minitorch as mt
from tests.onnx.onnx_models import ACTIVATIONS, inputs, network
from tests.support.records import read

RECORD = read("onnxruntime")


def results(mode):
    if mode == "eager":
        return network(mt.tensor(inputs()))
    x = mt.tensor(inputs())
    return mt.freeze(network, x)(x) if mode == "frozen" else mt.jit(network)(x)


@pytest.mark.parametrize("mode", ["eager", "jit", "frozen"])
@pytest.mark.parametrize("theirs", ["plain", "optimised"])
def test_integers_are_onnxruntimes(mode, theirs):
    """At most one step apart, and nearly always equal."""
    found = results(mode)
    assert list(found) == list(ACTIVATIONS)
    for name, integers in found.items():
        known = np.asarray(RECORD[f"{theirs} {name}"])
        assert integers.dtype is mt.uint8 and known.max() > known.min()
        apart = np.abs(integers.numpy().astype(int) - known)
        assert apart.max() <= 1 and np.count_nonzero(apart) <= 0.01 * apart.size, name


def test_a_step_more_is_seen():
    """What the comparison would say to a zero point that is off by two."""
    known = np.asarray(RECORD["plain logits"])
    assert np.abs(network(mt.tensor(inputs()))["logits"].numpy().astype(int) + 2 - known).max() > 1


def test_frozen_products_are_those_of_integers():
    x = mt.tensor(inputs())
    frozen = mt.freeze(network, x)
    kernels = "\n".join(kernel.source for kernel in frozen.ledger(x).kernels)
    assert kernels.count("int32") >= 3
