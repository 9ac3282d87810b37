"""Tracing: from a called function to a compiled program, its effects and its gradients."""
