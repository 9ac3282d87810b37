from minitorch.nn import *  # noqa: F403
