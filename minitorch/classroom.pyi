from minitorch_grading import *  # noqa: F403
