"""From a graph to an ONNX model: a row per primitive and operator, and the model around them."""
