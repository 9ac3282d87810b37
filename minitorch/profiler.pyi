from minitorch_profiler import *  # noqa: F403
