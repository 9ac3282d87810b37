"""Dividing values among the devices of a mesh."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from contextlib import suppress
from fnmatch import fnmatchcase
from importlib import import_module
from typing import Any

from minitorch import backends
from minitorch.autograd import Context, Function
from minitorch.errors import ShardingError
from minitorch.interpreters import current_staging, is_grad_enabled
from minitorch.nn import Module
from minitorch.packages import load
from minitorch.tensor import Remote, Tensor, share, with_value

from . import primitive
from .mesh import Axis, Mesh


def _partitions() -> Any:
    """The part of the backend of XLA that places values; JAX is loaded here."""
    backends.get("xla")
    return load("minitorch_xla.backend.partitions")


def shard(x: Tensor, mesh: Mesh, axes: Sequence[Axis]) -> Tensor:
    """The same values, divided among the devices of a mesh, as `jax.device_put` and `distribute_tensor` of PyTorch.

    Outside of a graph the parts are sent to the devices now. Inside of a traced function, a `Session` or a lazy block
    it says how an intermediate value or a result is to be divided (`jax.lax.with_sharding_constraint`); on other
    backends than ``"xla"`` it changes nothing. XLA's partitioner does the rest: it divides what is computed from
    sharded values, and adds the communication. The numbers are those of one device, but for the order of sums.

    A parameter that Python looks at (`repr`, `tolist`, `item`, `mt.save`) stays divided. One that eager mode computes
    with, or `numpy` shares, is in the memory of Python until the next call of a function that uses it from outside,
    which divides it again once nobody else holds that memory. Of what is divided among processes, none can look at the
    whole: ``shard(x, mesh, ())`` gives each of them all of it.

    Args:
        x: any tensor. In a traced function its gradient is divided in the same way; `x.grad` after a `backward` outside
            is in the memory of Python.
        mesh: the devices.
        axes: for each dimension of `x` an axis of the mesh that it is divided along, several, or None; with None
            everywhere, every device has all of it.

    Raises:
        ShardingError: for an axis that the mesh does not have, a dimension that its devices cannot share alike, or
            more devices than JAX sees (``MT204``).
        ModuleNotFoundError: without JAX.

    Example:
        >>> import minitorch as mt
        >>> mesh = mt.sharding.Mesh((1,), ("data",))
        >>> x = mt.sharding.shard(mt.ones(4, 2), mesh, ("data", None))
        >>> x.shape, x.sum().item()
        ((4, 2), 8.0)
    """
    params = {"mesh": mesh.axes, "axes": mesh.division(axes, x.ndim), "devices": mesh.devices}
    if current_staging() is not None:
        return primitive.shard(x, **params)
    primitive.shard.infer(x.spec, **params)
    partitions = _partitions()
    sharding = partitions.sharding_of(**params)
    if isinstance(x._value, Remote):
        if is_grad_enabled() and x.requires_grad:
            placed: Tensor = _Placed.apply(x, mesh, axes)
            return placed
        return with_value(partitions.placed(x._value, sharding))
    result = primitive.shard(x, **params)
    result._value = partitions.placed(result._value, sharding)
    return result


class _Placed(Function):
    """`shard` of a value that is on devices already, which may be those of other processes."""

    @staticmethod
    def forward(ctx: Context, x: Tensor, mesh: Mesh, axes: Sequence[Axis]) -> Tensor:
        ctx.division = mesh, axes  # type: ignore[attr-defined]
        return shard(x, mesh, axes)

    @staticmethod
    def backward(ctx: Context, *cotangents: Tensor) -> tuple[Tensor | None, ...]:
        return shard(cotangents[0], *ctx.division), None, None  # type: ignore[attr-defined]


def shard_module(model: Module, mesh: Mesh, axes: Mapping[str, Sequence[Axis]] | None = None) -> Module:
    """Divide the parameters and buffers of a model among the devices of a mesh, in place, as `Module.to` moves them.

    Args:
        model: any module.
        mesh: the devices.
        axes: for names of parameters, or patterns of names such as ``"layers.*.weight"``, how these are divided (see
            `shard`); the first that fits counts. All others are whole on every device.

    Returns:
        The model.

    Raises:
        ShardingError: for a pattern that no name fits, or a division that does not fit; nothing is changed then
            (``MT204``).

    Example:
        >>> import minitorch as mt
        >>> model = mt.nn.Linear(4, 8)
        >>> mesh = mt.sharding.Mesh((1,), ("model",))
        >>> print(mt.sharding.shard_module(model, mesh, {"weight": ("model", None)}))
        Linear(in_features=4, out_features=8, bias=True)
    """
    rules = dict(axes or {})
    named = dict(model.named_parameters(remove_duplicate=False)) | dict(model.named_buffers(remove_duplicate=False))
    names: dict[int, list[str]] = {}  # of each tensor; tied ones have several
    for name, tensor in named.items():
        names.setdefault(id(tensor), []).append(name)
    chosen = {
        own[0]: next((rules[pattern] for pattern in rules if any(fnmatchcase(name, pattern) for name in own)), ())
        for own in names.values()
    }
    for pattern in rules:
        if not any(fnmatchcase(name, pattern) for name in named):
            raise ShardingError(
                "MT204",
                f"no parameter or buffer is called {pattern!r}",
                why=f"there is {', '.join(named)}",
                fix="use one of these names, or a pattern with *",
            )
    divided = {name: shard(share(named[name]), mesh, axes)._value for name, axes in chosen.items()}
    for name, value in divided.items():
        tensor = named[name]
        tensor._value, tensor._view = value, None
        tensor._version += 1
    return model


def use_virtual_devices(count: int) -> None:
    """Let JAX divide this machine's processor into so many devices, to try programs for many without having them.

    In a program that `minitorch.sharding.launch` runs, they are those of all processes together.

    Raises:
        ShardingError: if JAX has looked for its devices before, and found another number (``MT204``).

    Example:
        >>> import minitorch as mt
        >>> mt.sharding.use_virtual_devices(8)  # doctest: +SKIP
    """
    backends.get("xla")
    jax = import_module("jax")
    with suppress(RuntimeError):  # raised if JAX has begun
        jax.config.update("jax_num_cpu_devices", count)
    if len(jax.devices("cpu")) != count:
        raise ShardingError(
            "MT204",
            f"{count} virtual devices are wanted, and JAX has begun with {len(jax.devices('cpu'))}",
            why="it looks for devices once, when it is first used",
            fix="call this at the beginning of the program, or restart the kernel of the notebook",
        )
