"""The runtime: machine code loaded, cached on disk, and run on threads, in memory from a pool."""
