from minitorch_torch.cudnn import *  # noqa: F403
