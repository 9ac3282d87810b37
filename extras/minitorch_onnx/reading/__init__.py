"""ONNX models as modules: bytes are bounded and checked, graphs become programs, and each node calls a row."""
