"""The ways in: `Session`, `jit` and `lazy`."""
