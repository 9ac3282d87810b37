"""A course: its folders, journal, gradebook and report."""
