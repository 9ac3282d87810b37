from minitorch_onnx.backend import *  # noqa: F403
