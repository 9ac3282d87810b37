"""Devices: the CPU may be asked for wherever PyTorch takes a device, and every other one is refused in words."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import pytest

import minitorch as mt
from minitorch.errors import DeviceError


class device:  # noqa: N801
    """What `torch.device` looks like from here."""

    def __init__(self, name):
        self.name = name

    def __str__(self):
        return self.name


CREATE: dict[str, Callable[..., Any]] = {
    "tensor": lambda device: mt.tensor([1.0], device=device),
    "tensor of tensors": lambda device: mt.tensor([mt.ones(2)], device=device),
    "as_tensor": lambda device: mt.as_tensor([1.0], device=device),
    "full": lambda device: mt.full((2,), 3, device=device),
    "full of a tensor": lambda device: mt.full((2,), mt.tensor(3), device=device),
    "arange": lambda device: mt.arange(3, device=device),
    "linspace": lambda device: mt.linspace(0, 1, 3, device=device),
    "logspace": lambda device: mt.logspace(0, 1, 3, device=device),
    "eye": lambda device: mt.eye(3, device=device),
    "randint": lambda device: mt.randint(3, (2,), device=device),
    "randint_like": lambda device: mt.randint_like(mt.ones(2), 3, device=device),
    "Generator": lambda device: mt.Generator(device=device),
    "randperm": lambda device: mt.randperm(3, device=device),
    "full_like": lambda device: mt.full_like(mt.ones(2), 3, device=device),
    "new_full": lambda device: mt.ones(2).new_full((2,), 3, device=device),
    "new_tensor": lambda device: mt.ones(2).new_tensor([2], device=device),
    "Linear": lambda device: mt.nn.Linear(2, 2, device=device),
    "Conv2d": lambda device: mt.nn.Conv2d(2, 2, 1, device=device),
    "Embedding": lambda device: mt.nn.Embedding(2, 2, device=device),
    "LayerNorm": lambda device: mt.nn.LayerNorm(2, device=device),
    "RMSNorm": lambda device: mt.nn.RMSNorm(2, device=device),
    "GroupNorm": lambda device: mt.nn.GroupNorm(1, 2, affine=False, device=device),
    "BatchNorm2d": lambda device: mt.nn.BatchNorm2d(2, affine=False, device=device),
}
for name in ("zeros", "ones", "empty", "rand", "randn"):
    CREATE[name] = lambda device, name=name: getattr(mt, name)(2, 3, device=device)
    CREATE[f"{name}_like"] = lambda device, name=name: getattr(mt, f"{name}_like")(mt.ones(2), device=device)
for name in ("zeros", "ones", "empty"):
    CREATE[f"new_{name}"] = lambda device, name=name: getattr(mt.ones(2), f"new_{name}")(2, device=device)
MOVE = {
    "to": lambda device: mt.ones(2).to(device),
    "to, by name": lambda device: mt.ones(2).to(device=device),
    "to, and a type": lambda device: mt.ones(2).to(device, mt.float64),
    "a module": lambda device: mt.nn.Linear(2, 2).to(device),
    "a module, by name": lambda device: mt.nn.Linear(2, 2).to(device=device),
    "a module, and a type": lambda device: mt.nn.Linear(2, 2).to(device, dtype=mt.float64),
}


@pytest.mark.parametrize("use", [*CREATE.values(), *MOVE.values()], ids=[*CREATE, *MOVE])
def test_the_cpu_is_taken_and_no_other_device(use):
    for name in ("cpu", "cpu:0", device("cpu")):
        use(name)
    for other in ("cuda", "cuda:1", "mps", device("cuda"), 0):
        with pytest.raises(DeviceError, match=f"MT203: there is no device '{other}'"):
            use(other)


def test_a_tensor_says_where_it_is():
    x = mt.ones(2)
    assert x.device == "cpu" and x.cpu() is x and x.to(x.device) is x
    assert x.to("cpu", mt.float64).dtype is mt.float64 and x.to("cpu", copy=True) is not x
    layer = mt.nn.Linear(2, 2)
    assert layer.cpu() is layer and layer.to("cpu").weight.dtype is mt.float32
    assert layer.to("cpu", mt.float64).weight.dtype is mt.float64
    for each in (x, layer):
        with pytest.raises(DeviceError, match="no device 'cuda'"):
            each.cuda()


def test_in_a_trace_it_is_the_same():
    f = mt.jit(lambda x: x.to(x.device) + mt.ones(2, device="cpu"))
    assert f(mt.ones(2)).tolist() == [2, 2]
    with pytest.raises(DeviceError):
        mt.jit(lambda x: x.to("cuda"))(mt.ones(2))
