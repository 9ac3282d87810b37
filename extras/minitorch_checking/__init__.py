"""Programs under a magnifying glass: shadow mode, bisection, ablation, stepping, debugging and reproducers.

Shadow mode runs the function, its trace and the compiled program side by side, and names the faulty part.
"""
