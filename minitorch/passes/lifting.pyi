from minitorch_operators.lifting import *  # noqa: F403
