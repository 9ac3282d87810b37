"""`custom_fwd` and `custom_bwd`: PyTorch's types, and errors that say what is missing."""

from __future__ import annotations

from typing import Any

import pytest

import minitorch as mt
from minitorch.errors import DeviceError
from tests.amp import custom_functions
from tests.support.records import read


@pytest.mark.parametrize("name", custom_functions.CASES)
def test_types_are_those_of_pytorch(name: str) -> None:
    assert custom_functions.types(mt, name) == read("custom_functions")[name]


class Product(mt.autograd.Function):
    """A product with its gradients, in the autocast of the call."""

    @staticmethod
    @mt.amp.custom_fwd(device_type="cpu")
    def forward(ctx: Any, a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
        ctx.save_for_backward(a, b)
        return a @ b

    @staticmethod
    @mt.amp.custom_bwd(device_type="cpu")
    def backward(ctx: Any, g: mt.Tensor) -> tuple[mt.Tensor, mt.Tensor]:
        a, b = ctx.saved_tensors
        return g @ b.mT, a.mT @ g


def gradient(a: mt.Tensor, b: mt.Tensor) -> mt.Tensor:
    a.grad = None
    with mt.autocast("cpu"):
        y = Product.apply(a, b)
    y.float().square().sum().backward()
    assert a.grad is not None
    return a.grad.detach()


def test_a_recorded_step_gives_the_same_gradient() -> None:
    mt.manual_seed(0)
    a, b = mt.randn(3, 4, requires_grad=True), mt.randn(4, 2)
    expected = gradient(a, b).tolist()
    assert mt.jit(gradient, backend="interpret")(a, b).tolist() == expected
    with mt.autocast("cpu", enabled=False):
        assert (Product.apply(a, b)).dtype is mt.float32


def test_the_cast_weights_of_a_block_stay_its_own() -> None:
    """The backward pass within a block casts for itself, and leaves no cast behind."""
    a, b = mt.ones(2, 2, requires_grad=True), mt.ones(2, 2)
    with mt.autocast("cpu"):
        (Product.apply(a, b).float().sum() + (a @ b).float().sum()).backward()
    assert a.grad is not None and a.grad.tolist() == [[4.0, 4.0]] * 2


def test_a_forward_without_the_decorator_is_named() -> None:
    class Half(mt.autograd.Function):
        @staticmethod
        def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
            return x * 0.5

        @staticmethod
        @mt.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: mt.Tensor) -> mt.Tensor:
            return g * 0.5

    with pytest.raises(RuntimeError, match="the forward of Half is not decorated with custom_fwd"):
        Half.apply(mt.ones(2, requires_grad=True)).sum().backward()


@pytest.mark.parametrize("decorator", [mt.amp.custom_fwd, mt.amp.custom_bwd])
def test_other_devices_are_refused(decorator: Any) -> None:
    with pytest.raises(DeviceError, match="MT203: there is no device 'cuda'"):
        decorator(device_type="cuda")
    with pytest.raises(ValueError, match="device_type is a string such as 'cpu', not int"):
        decorator(device_type=1)


def test_without_arguments_it_decorates_at_once() -> None:
    def forward(ctx: Any, x: mt.Tensor) -> mt.Tensor:
        """Its own words."""
        return x

    decorated = mt.amp.custom_fwd(forward, device_type="cpu")
    assert decorated.__doc__ == "Its own words." and decorated.__name__ == "forward"
