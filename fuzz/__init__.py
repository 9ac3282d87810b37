"""Differential testing of the public functions: random programs, run in every mode, beside eager mode and PyTorch.

`make fuzz` runs a campaign. A program (`program`) is data that prints as Python. It is made statement by statement
(`generate`, with `api`, `arguments` and `recipes` for single calls, `training` for whole training steps), run in child
processes (`campaign`, `child`, `worker`) in several ways (`modes`), and judged (`judge`, with `noise` for what rounding
may change, and `departures` for where PyTorch differs on purpose). What fails is made small (`shrink`) and
written into a folder, as a file that runs.
"""
