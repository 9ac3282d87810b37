from minitorch_quantization import *  # noqa: F403
