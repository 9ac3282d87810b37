from minitorch_torch.distributed import *  # noqa: F403
