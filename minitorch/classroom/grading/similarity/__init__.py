"""Comparing a class's work: `minitorch similar`.

`tokens` makes fingerprints of notebooks, `pairs` finds those that have many in common, `similar` is the command.
"""
