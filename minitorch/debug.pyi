from minitorch_checking.debug import *  # noqa: F403
