"""The modes: `Session`, `jit` and `lazy` record a program into a graph; guards decide when it may be used again."""
