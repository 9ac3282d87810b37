"""Programs that run in the sandbox. They import nothing of minitorch: inside there is a part of it, or none."""
