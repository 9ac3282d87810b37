"""What several test files share: running a function eagerly and through a recording, and asking for optional tools."""

import os
from contextlib import contextmanager
from dataclasses import replace

import numpy as np
import pytest

from minitorch.backends import llvm
from minitorch.compiler.codegen import host as host_module
from minitorch.compiler.codegen.host import host
from minitorch.interpreters import Staging, interpreting
from minitorch.tensor import with_value


def flat(result):
    """The tensors of a result that is one, or a tuple or list of them."""
    return list(result) if isinstance(result, (tuple, list)) else [result]


def replay(function, *tensors):
    """The arrays of a function's results when its operations are first written down, and then computed."""
    staging = Staging("the test")
    inputs = [staging.input(tensor.spec, f"x{number}") for number, tensor in enumerate(tensors)]
    with interpreting(staging):
        results = [staging.node_of(tensor) for tensor in flat(function(*map(with_value, inputs)))]
    values = {id(node): tensor._value for node, tensor in zip(inputs, tensors, strict=True)}
    values |= {id(item.input): item.tensor._value for item in staging.captured.values()}
    with np.errstate(all="ignore"):
        for node in staging.nodes:
            operands = [values[id(operand)] for operand in node.inputs]
            value = np.asarray(node.primitive.evaluate(*operands, **node.params))
            assert (value.shape, value.dtype) == (node.shape, node.dtype.numpy), node
            values[id(node)] = value
    return [values[id(node)] for node in results]


def check(function, *arrays, expected=None):
    """Eager = recorded = expected, in shape, type and value; returns the eager arrays."""
    tensors = [with_value(np.asarray(array)) for array in arrays]
    eager = [tensor._value for tensor in flat(function(*tensors))]
    for array, again in zip(eager, replay(function, *tensors), strict=True):
        np.testing.assert_array_equal(again, array, strict=True)
    if expected is not None:
        for array, wanted in zip(eager, flat(expected), strict=True):
            np.testing.assert_allclose(array, wanted, rtol=1e-5, atol=1e-6, strict=True)
    return eager


def of_all_widths():
    """This machine with vectors of 16, 32 and 64 bytes: LLVM takes apart those that are longer than a register."""
    return [replace(host(), vector_bytes=size) for size in (16, 32, 64)]


@contextmanager
def made_for(**fields):
    """Kernels are made for another target meanwhile: this machine, but for some fields of its `Target`."""
    target = replace(host(), **fields)
    with pytest.MonkeyPatch.context() as patch:
        for ways_in in (host_module, llvm):
            patch.setattr(ways_in, "host", lambda: target)
        yield


def require(tool, missing):
    """Skip a test for want of a tool; fail if this machine is said to have it. `missing` says why it cannot be used.

    ``MINITORCH_REQUIRE=chromium,bubblewrap`` names the tools whose absence is a failure; continuous integration does.
    """
    if not missing:
        return
    reason = f"{tool}: {missing}"
    if tool in os.environ.get("MINITORCH_REQUIRE", "").split(","):
        pytest.fail(f"{reason} (MINITORCH_REQUIRE names it)", pytrace=False)
    pytest.skip(reason)
