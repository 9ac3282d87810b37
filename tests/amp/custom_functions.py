"""Functions with a gradient of their own under autocast, for this library and for PyTorch: types are recorded."""

from __future__ import annotations

from typing import Any

# The types of `cast_inputs`, of the argument, and of autocast, at the call and around `backward()`; None is off.
CASES: dict[str, tuple[str | None, str, str | None, str | None]] = {
    "as it is": (None, "float32", "bfloat16", None),
    "as it is, of float16": (None, "float32", "float16", "bfloat16"),
    "outside": (None, "float32", None, "bfloat16"),
    "cast to float32": ("float32", "bfloat16", "bfloat16", "bfloat16"),
    "cast to float16": ("float16", "float32", "bfloat16", None),
    "cast, outside": ("float16", "float32", None, None),
    "float64 is not cast": ("float32", "float64", "bfloat16", None),
}


def block(lib: Any, dtype: str | None) -> Any:
    """Autocast to a type, or off."""
    return lib.autocast("cpu", getattr(lib, dtype or "bfloat16"), enabled=dtype is not None)


def types(lib: Any, name: str) -> list[Any]:
    """What `forward` is given, its product, whether autocast is on there; the same in `backward`; the gradient."""
    cast_inputs, given, forward_in, backward_in = CASES[name]
    seen: list[Any] = []
    dtype = None if cast_inputs is None else getattr(lib, cast_inputs)

    class Square(lib.autograd.Function):  # type: ignore[misc]
        @staticmethod
        @lib.amp.custom_fwd(device_type="cpu", cast_inputs=dtype)
        def forward(ctx: Any, x: Any, parts: Any) -> Any:
            product = x @ parts["y"][0]
            seen.extend([x.dtype, parts["y"][0].dtype, product.dtype, lib.is_autocast_enabled("cpu")])
            return product

        @staticmethod
        @lib.amp.custom_bwd(device_type="cpu")
        def backward(ctx: Any, g: Any) -> Any:
            ones = lib.ones(2, 2)
            seen.extend([(ones @ ones).dtype, lib.is_autocast_enabled("cpu")])
            return g, None

    x = lib.ones(2, 2, dtype=getattr(lib, given), requires_grad=True)
    with block(lib, forward_in):
        result = Square.apply(x, {"y": [lib.ones(2, 2, dtype=getattr(lib, given))]})
    with block(lib, backward_in):
        result.sum().backward()
    return [str(each).rpartition(".")[2] for each in [*seen, x.grad.dtype]]


def all_of(lib: Any, F: Any) -> dict[str, Any]:
    """All that is recorded, by name."""
    return {name: types(lib, name) for name in CASES}
