"""Python objects around a traced call: results, containers that it changes, and tensors that it assigns."""
