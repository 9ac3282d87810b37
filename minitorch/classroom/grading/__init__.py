"""Grading a class: submissions are mended, run in a sandbox, judged outside of it, and put into nbgrader's gradebook.

`course` is the run as a whole; `submission` one submission; `sandbox`, `kernel` and `watch` are where student code
runs; `preflight` is what happens before that, `feedback` and `gradebook` after.
"""
