"""What `make bench` measures: minitorch beside NumPy, JAX, and PyTorch and numexpr where they are installed.

`cases` says what is computed, `libraries` how each library says it, `contenders` who takes part; `run` asks a `worker`
process per contender, case by case; `report` makes a table and a verdict of it, `picture` an image. `dispatch` is a
benchmark of its own: what an operation costs before any arithmetic.
"""
