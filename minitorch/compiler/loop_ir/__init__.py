"""The loop IR: loop nests, expressions and index algebra as data, printed as Python that runs.

Nothing here knows about a machine, or imports LLVM.
"""
