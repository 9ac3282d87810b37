"""`Mesh`, a grid of devices with named axes, and which axes the dimensions of a value are divided along."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from itertools import product

from minitorch.errors import ShardingError

from .pictures import Holders, Part

Axis = str | None | tuple[str, ...]
Axes = tuple[tuple[str, ...], ...]  # for each dimension, the axes of a mesh that it is divided among


@dataclass(frozen=True)
class Mesh:
    """A grid of devices whose axes have names, as `jax.sharding.Mesh` and PyTorch's `DeviceMesh`.

    Args:
        shape: the number of devices along each axis.
        names: of the axes, such as ``("data", "model")``.
        devices: by name, in row-major order; by default the first that JAX sees, when the mesh is used.

    Raises:
        ShardingError: for shapes, names or devices that do not fit each other (``MT204``).

    Example:
        >>> import minitorch as mt
        >>> mesh = mt.sharding.Mesh((4, 2), ("data", "model"))
        >>> mesh.size, str(mesh)
        (8, 'data=4, model=2')
    """

    shape: tuple[int, ...]
    names: tuple[str, ...]
    devices: tuple[str, ...] = field(default=())

    def __post_init__(self) -> None:
        for name in ("shape", "names", "devices"):
            given: object = getattr(self, name)
            if isinstance(given, str) or not isinstance(given, Iterable):
                raise ShardingError("MT204", f"{name}={given!r}", why="a tuple is wanted", fix=f"write ({given!r},)")
            object.__setattr__(self, name, tuple(given))
        if not self.shape or any(type(length) is not int or length < 1 for length in self.shape):
            raise ShardingError("MT204", f"a mesh of shape {self.shape}", fix="give each axis one device or more")
        if len(self.names) != len(self.shape) or len(set(self.names)) < len(self.names):
            raise ShardingError(
                "MT204",
                f"a mesh of shape {self.shape} with the names {self.names}",
                fix="give each axis a name of its own",
            )
        if not all(str(name).isidentifier() for name in self.names):
            raise ShardingError("MT204", f"{self.names} are no names of axes", fix="write words, such as 'data'")
        if self.devices and len(set(self.devices)) != self.size:
            raise ShardingError(
                "MT204",
                f"a mesh of {self.size} devices is given {len(set(self.devices))}",
                fix="name as many as it has, or leave devices out",
            )

    @property
    def size(self) -> int:
        """The number of devices."""
        return math.prod(self.shape)

    @property
    def axes(self) -> tuple[tuple[str, int], ...]:
        """Each axis with its length."""
        return tuple(zip(self.names, self.shape, strict=True))

    def __str__(self) -> str:
        return ", ".join(f"{name}={length}" for name, length in self.axes)

    def holders(self, shape: Sequence[int], axes: Sequence[Axis]) -> Holders:
        """Which device would hold which part of a value of this shape; no device is needed for that.

        Args:
            shape: of the value.
            axes: for each dimension an axis of the mesh that it is divided along, several, or None (see `shard`).

        Returns:
            Holders: what `visualize` says of the value once it is sharded; devices are numbered in row-major order.

        Raises:
            ShardingError: for an axis that the mesh does not have, or a dimension that its devices cannot share alike
                (``MT204``).

        Example:
            >>> print(Mesh((4, 2), ("data", "model")).holders((32, 16), (None, "model")))
                  0:8                 8:16
            0:32  devices 0, 2, 4, 6  devices 1, 3, 5, 7
        """
        division, lengths = self.division(axes, len(shape)), dict(self.axes)
        held: dict[Part, list[int]] = {}
        for device, place in enumerate(product(*map(range, self.shape))):
            at, part = dict(zip(self.names, place, strict=True)), []
            for length, names in zip(shape, division, strict=True):
                parts, index = 1, 0
                for name in names:
                    parts, index = parts * lengths[name], index * lengths[name] + at[name]
                if length % parts:
                    raise ShardingError(
                        "MT204",
                        f"{length} elements, which {parts} devices cannot share alike",
                        fix=f"choose a length that {parts} divides, or None for this dimension",
                    )
                part.append((index * length // parts, (index + 1) * length // parts))
            held.setdefault(tuple(part), []).append(device)
        return Holders(tuple(shape), tuple((part, tuple(devices)) for part, devices in sorted(held.items())))

    def division(self, axes: Sequence[Axis], ndim: int) -> Axes:
        """For each dimension, the axes that it is divided along.

        Args:
            axes: for each dimension the name of an axis, several, or None; dimensions without an entry are not divided.
            ndim: the number of dimensions.

        Raises:
            ShardingError: for names that the mesh does not have, or that are there twice (``MT204``).

        Example:
            >>> Mesh((4, 2), ("data", "model")).division(("data", None), 3)
            (('data',), (), ())
        """
        given: object = axes
        if isinstance(given, str) or not isinstance(given, Sequence):
            raise ShardingError(
                "MT204",
                f"axes={axes!r}",
                why="a tuple is wanted, with an entry for each dimension",
                fix="write (), and every device has all of it" if given is None else f"write ({given!r},)",
            )
        for each in given:
            if not (each is None or _is_name(each) or (isinstance(each, tuple) and all(map(_is_name, each)))):
                raise ShardingError(
                    "MT204",
                    f"{each!r} is no axis of a mesh",
                    fix="write the name of one, a tuple of names, or None",
                )
        if len(axes) > ndim:
            raise ShardingError(
                "MT204",
                f"{tuple(axes)} has {len(axes)} entries, and the tensor {ndim} dimensions",
                fix="name an axis of the mesh, or None, for each dimension",
            )
        found = tuple([() if each is None else (each,) if isinstance(each, str) else tuple(each) for each in axes])
        used = [name for names in found for name in names]
        for name in used:
            if name not in self.names:
                raise ShardingError(
                    "MT204", f"the mesh {self} has no axis {name!r}", fix=f"use one of {', '.join(self.names)}, or None"
                )
            if used.count(name) > 1:
                raise ShardingError(
                    "MT204",
                    f"the axis {name!r} is there twice in {tuple(axes)}",
                    why="a device has one place along it, and so one part",
                    fix="divide one of the dimensions along it",
                )
        return (*found, *[()] * (ndim - len(found)))


def _is_name(value: object) -> bool:
    return isinstance(value, str)
