from minitorch_operators import *  # noqa: F403
