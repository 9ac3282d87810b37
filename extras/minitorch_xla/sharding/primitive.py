"""The primitive `shard`: the same value, divided among the devices of a mesh. Only XLA's backend reads how."""

from __future__ import annotations

import math

from minitorch.errors import ShardingError
from minitorch.ir import Primitive, Spec
from minitorch.primitives.declare import declare

from .mesh import Axes


def _infer_shard(x: Spec, *, mesh: tuple[tuple[str, int], ...], axes: Axes, devices: tuple[str, ...]) -> Spec:
    lengths = dict(mesh)
    if len(axes) != x.ndim:
        raise ShardingError(
            "MT204",
            f"shard: {len(axes)} dimensions are given axes, and {x} has {x.ndim}",
            fix="name an axis of the mesh, or None, for each dimension",
        )
    for dim, names in enumerate(axes):
        if not lengths.keys() >= set(names):
            raise ShardingError(
                "MT204", f"shard: the mesh has the axes {', '.join(lengths)}, and not {', '.join(names)}"
            )
        parts = math.prod([lengths[name] for name in names])
        if x.shape[dim] % parts:
            raise ShardingError(
                "MT204",
                f"shard: dimension {dim} of {x} has {x.shape[dim]} elements, which {parts} devices cannot share alike",
                why=f"it is divided along {', '.join(f'{name}={lengths[name]}' for name in names)}",
                fix="pad it to a multiple, or give the dimension None",
            )
    return x


shard: Primitive = declare(
    "shard",
    "movement",
    _infer_shard,
    lambda x, *, mesh, axes, devices: x.copy(),
    gradient=(lambda g, y, x, mesh, axes, devices: shard(g, mesh=mesh, axes=axes, devices=devices),),
    is_identity=True,
    doc="the same value, divided among the devices of a mesh where there are such",
)
