"""Scheduling: the order in which a loop nest is run, its tiles and vectors. Numbers about a target, and no LLVM."""
