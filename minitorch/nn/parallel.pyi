from minitorch_torch.parallel import *  # noqa: F403
