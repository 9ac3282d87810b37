"""One program on many devices: values divided along the axes of a mesh, for functions on ``backend="xla"``.

A `Mesh` names the axes of a grid of devices, `shard` says along which of them a value is divided, and XLA's partitioner
divides the computation. Nothing here communicates by itself: ``f.collectives(x)`` lists what XLA added.
"""

from .mesh import Mesh
from .pictures import Holders, visualize
from .placing import shard, shard_module, use_virtual_devices

__all__ = ["Holders", "Mesh", "shard", "shard_module", "use_virtual_devices", "visualize"]
