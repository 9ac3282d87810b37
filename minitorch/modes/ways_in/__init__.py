"""Entry points of the modes: `Session`, `jit` and `lazy`."""
