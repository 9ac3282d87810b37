"""The classroom, as `minitorch.classroom`: checks of the exercises, what is handed out, and the commands for both."""
