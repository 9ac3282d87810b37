from minitorch.functional.linalg import *  # noqa: F403
