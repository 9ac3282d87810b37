from minitorch_torch.run import *  # noqa: F403
