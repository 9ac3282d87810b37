"""What `make bench` measures: minitorch beside NumPy, JAX, and PyTorch and numexpr where they are installed.

`cases` says what is computed, `libraries` how each library says it, `contenders` who takes part; `run` asks a `worker`
process per contender, case by case; `report` makes a table and a verdict of it, `picture` an image. Benchmarks of
their own are `dispatch` (the cost of an operation before any arithmetic), `first` (from the shell to the first compiled
result), `overhead` (of profiling) and `compare` (two checkouts side by side). `targets` restricts everybody to fewer
instructions: `processor` shows a process less than there is, `peaks` says how fast such code can be.
"""
