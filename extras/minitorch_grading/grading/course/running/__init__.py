"""A run of `minitorch grade`: what has to be graded, by whom, and what is kept of it."""
