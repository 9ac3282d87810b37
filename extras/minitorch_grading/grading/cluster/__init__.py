"""Grading on the machines of a Dask cluster; the sandbox is on these, and the course stays where it is."""
