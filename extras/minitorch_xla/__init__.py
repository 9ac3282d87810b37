"""Graphs on JAX's devices: the backend `"xla"`, and `minitorch.sharding`, which divides values among devices."""
