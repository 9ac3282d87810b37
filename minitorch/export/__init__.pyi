from minitorch_checkpoints import *  # noqa: F403
