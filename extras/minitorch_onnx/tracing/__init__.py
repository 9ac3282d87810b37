"""From a function to an ONNX model: traced with one size, or with several where dimensions are dynamic."""
