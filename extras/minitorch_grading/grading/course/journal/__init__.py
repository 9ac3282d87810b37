"""The journal of grading runs, and the history of points: files to which lines are only ever added."""
