"""First and later calls of whole networks: minitorch beside `jax.jit` and PyTorch."""
