"""Grading a class: submissions are mended, run in a sandbox, judged outside of it, and put into nbgrader's gradebook.

The data that flows: `collecting` turns a download into attempts, of which one of each student lies in `submitted/`; a
folder there is read into `preflight.Files`, which travel in a `worker.Job`; a worker answers with a `results.Result`,
which the journal keeps as an `Entry`; the gradebook has the `Mark` of each cell; journal and gradebook together are the
`report.Row` that the table, the `overview` and `exporting` show.

`course` is the run as a whole, on this machine or on a `cluster`; `submission` one submission; `sandbox` is where
student code runs. `enrolment` says who is in the course and until when, `similar` compares what was handed in, `sheets`
reads and writes tables, and `pages` has the templates of all HTML.
"""
