"""Values that are divided among the devices of a mesh: XLA's partitioner distributes what is computed from them."""

from __future__ import annotations

import math
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from ...dtypes import BY_NUMPY
from ...errors import ShardingError
from ...tensor import OnDevice
from .devices import device_named

# JAX's classes and functions are not all annotated.
_spec: Any = PartitionSpec
_constrained: Any = jax.lax.with_sharding_constraint

MeshParam = tuple[tuple[str, int], ...]
Axes = tuple[tuple[str, ...], ...]


def sharding_of(mesh: MeshParam, axes: Axes, devices: tuple[str, ...] = ()) -> NamedSharding:
    """JAX's sharding for the parameters of the primitive `shard`.

    Raises:
        ShardingError: if JAX sees fewer devices than the mesh has (``MT204``).
    """
    shape = tuple([length for _, length in mesh])
    count = math.prod(shape)
    seen = [device_named(name) for name in devices] if devices else jax.devices()
    if len(seen) < count:
        raise ShardingError(
            "MT204",
            f"a mesh of {count} devices, and JAX sees {len(seen)}",
            why=f"it has the axes {', '.join(f'{name}={length}' for name, length in mesh)}",
            fix=f"call mt.sharding.use_virtual_devices({count}) before anything runs on backend='xla'",
        )
    grid = np.array(seen[:count]).reshape(shape)
    return NamedSharding(Mesh(grid, tuple([name for name, _ in mesh])), _spec(*axes))


def shard(x: Any, *, mesh: MeshParam, axes: Axes, devices: tuple[str, ...]) -> Any:
    """The rule of the primitive: XLA divides the value in this way."""
    return _constrained(x, sharding_of(mesh, axes, devices))


def placed(value: np.ndarray[Any, Any] | OnDevice, sharding: NamedSharding) -> OnDevice:
    """A value in the memory of the devices, each with its part. All processes ask for it, with the same value."""
    with jax.enable_x64(True):
        if type(value) is OnDevice and not value.is_copied:
            found = jax.jit(lambda x: x, out_shardings=sharding)(value.array)
        else:
            whole: np.ndarray[Any, Any] = value.on_host if isinstance(value, OnDevice) else value
            found = jax.make_array_from_callback(whole.shape, sharding, lambda index: np.array(whole[index]))
    return OnDevice(found, found.shape, BY_NUMPY[np.dtype(found.dtype)], np.array)


def shared_by(value: object) -> Any:
    """How a value is divided; None if it is on one device."""
    if type(value) is not OnDevice:
        return None
    sharding = value.array.sharding
    return sharding if type(sharding) is NamedSharding and len(sharding.device_set) > 1 else None
