"""ONNX, the Open Neural Network Exchange: models as protobuf files of operators, which many runtimes read.

    Graph ──passes, lifting──► Graph with operators ──writing──► ModelProto        `minitorch.export.onnx`
    ModelProto ──reading──► a module that calls our public functions               `minitorch.export.load_onnx`

The format is specified at https://onnx.ai/onnx/. The package `onnx` is an extra, and imported where it is used.
"""
