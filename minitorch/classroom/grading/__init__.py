"""Grading a class: submissions are mended, run in a sandbox, judged outside of it, and put into nbgrader's gradebook.

`course` is the run as a whole; `submission` one submission; `sandbox`, `kernel` and `watch` are where student code
runs; `preflight` is what happens before that, `feedback` and `gradebook` after. Before a run, `enrolment` says who is
in the course and until when, and `collecting` gets work in. After it `exporting` gets points out, and `similarity`
compares what was handed in. `sheets` reads and writes tables, and `pages` has the
templates of all HTML.
"""
