"""Getting points out: `minitorch export`.

The data that flows: the gradebook and the rules of being late become standings (`standings`), the rows of a platform's
file are matched with students (`filled`), and the file is filled in (`canvas`, `moodle`).
Pages go back as they are (`export`).
"""
