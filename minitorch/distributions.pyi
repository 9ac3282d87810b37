from minitorch_torch.distributions import *  # noqa: F403
