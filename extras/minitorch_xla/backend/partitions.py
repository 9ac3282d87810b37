"""Values that are divided among the devices of a mesh: XLA's partitioner distributes what is computed from them."""

from __future__ import annotations

import math
import threading
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import jax
import numpy as np
from jax.sharding import Mesh, NamedSharding, PartitionSpec

from minitorch.dtypes import BY_NUMPY, DType
from minitorch.errors import ShardingError
from minitorch.graph import Graph
from minitorch.tensor import Remote

from ..sharding import primitive
from ..sharding.mesh import Axes
from .devices import device_named

# JAX's classes and functions are not all annotated.
_spec: Any = PartitionSpec
_constrained: Any = jax.lax.with_sharding_constraint

MeshParam = tuple[tuple[str, int], ...]
Array = np.ndarray[Any, Any]
Box = tuple[tuple[int, int], ...]


DISPATCH = threading.Lock()  # no thread takes memory between the moments when another one looks at it and uses it


@dataclass(frozen=True)
class Part:
    """A part of a value that is divided.

    Attributes:
        box: where it begins and ends in each dimension.
        process: the one that writes it into a checkpoint.
        read: gives the part in the host's memory; in that process alone.
    """

    box: Box
    process: int
    read: Callable[[], Array]


class OnDevice(Remote):
    """A value in the memory of JAX's devices.

    Args:
        array: JAX's array.
    """

    __slots__ = ("array",)

    def __init__(self, array: Any, shape: tuple[int, ...], dtype: DType) -> None:
        super().__init__(shape, dtype)
        self.array = array

    @property
    def home(self) -> Any:
        """How the value is divided among devices."""
        return self.array.sharding

    def copy(self) -> Array:
        """Return a copy in the host's memory.

        Raises:
            ShardingError: if other processes hold parts of it (``MT204``).
        """
        with DISPATCH:
            if is_here(self.array):
                return np.array(self.array)
        raise ShardingError(
            "MT204",
            f"a tensor of shape {self.shape} is divided among processes, and this one has a part of it",
            fix="ask for mt.sharding.shard(x, mesh, ()), in all processes: then each has all of it",
        )


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


def placed(value: Array | OnDevice, sharding: NamedSharding) -> OnDevice:
    """A value in the memory of the devices, each with its part. All processes ask for it, with the same value."""
    with jax.enable_x64(True):
        if type(value) is OnDevice and not value.is_fetched:
            found = jax.jit(lambda x: x, out_shardings=sharding)(value.array)
        else:
            whole: Array = value.fetched if isinstance(value, OnDevice) else value
            found = jax.make_array_from_callback(whole.shape, sharding, lambda index: np.array(whole[index]))
    return OnDevice(found, found.shape, BY_NUMPY[np.dtype(found.dtype)])


def filled(value: OnDevice, read: Callable[[Box], Array]) -> OnDevice:
    """A value that is divided as another one, of parts that are read: each process asks for its own, each once."""
    known: dict[Box, Array] = {}

    def part(index: Any) -> Array:
        box = _box(index, value.shape)
        if box not in known:
            known[box] = read(box)
        return known[box]

    with jax.enable_x64(True):
        found = jax.make_array_from_callback(value.shape, value.array.sharding, part)
    return OnDevice(found, value.shape, value.dtype)


def is_here(array: Any) -> bool:
    """Whether this process has all of a value."""
    return type(array) is np.ndarray or array.is_fully_addressable or array.is_fully_replicated


def parts(value: OnDevice) -> Iterator[Part]:
    """The parts of a value that is divided among processes; none for all others.

    A part that several devices hold is written by one of them, the next one for each part.
    """
    array = value.array
    if is_here(array):
        return
    holders: dict[Box, list[Any]] = {}
    for device, index in array.sharding.devices_indices_map(array.shape).items():
        holders.setdefault(_box(index, array.shape), []).append(device)
    own = {shard.device: shard.data for shard in array.addressable_shards}

    def reader(device: Any) -> Callable[[], Array]:
        return lambda: np.asarray(own[device])

    for place, (box, devices) in enumerate(sorted(holders.items())):
        device = devices[place % len(devices)]
        yield Part(box, device.process_index, reader(device))


def _box(index: tuple[slice, ...], shape: tuple[int, ...]) -> Box:
    return tuple([each.indices(length)[:2] for each, length in zip(index, shape, strict=True)])


def shared_by(value: object) -> Any:
    """How a value is divided; None if it is on one device."""
    if type(value) is not OnDevice:
        return None
    return value.home if is_shared(value.home) else None


def require_one_mesh(graph: Graph, values: Sequence[Any]) -> None:
    """Refuse values that are divided among several sets of devices: a program runs on one.

    Raises:
        ShardingError: saying which are where (``MT204``).
    """
    held: dict[tuple[str, ...], list[str]] = {}
    for node, value in zip(graph.inputs, values, strict=True):
        if type(value) is not np.ndarray and is_shared(value.sharding):
            held.setdefault(_devices(value.sharding), []).append(f"`{node.params['name']}`")
    for node in graph.nodes:
        if node.primitive is primitive.shard and is_shared(division := sharding_of(**node.params)):
            held.setdefault(_devices(division), []).append(f"what is divided at {node.source}")
    if len(held) > 1:
        places = [f"{' and '.join(dict.fromkeys(names))}: {', '.join(devices)}" for devices, names in held.items()]
        raise ShardingError(
            "MT204",
            f"{graph.name} has values on {len(held)} different lists of devices",
            why=f"a program runs on one; here is {'; '.join(places)}",
            fix="divide all of them among the devices of one mesh",
        )


def _devices(division: NamedSharding) -> tuple[str, ...]:
    return tuple([f"{each.platform}:{each.id}" for each in division.mesh.devices.flat])


def is_shared(division: Any) -> bool:
    """Whether a division is one among several devices."""
    return type(division) is NamedSharding and len(division.device_set) > 1
