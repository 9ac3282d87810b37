"""The answers of `course.blank`, with the cases that a reader's lines are tried on: a module for each topic."""
