"""A graded class as a whole: `figures` are the data, which `table` and `page` show. Nothing is graded here."""
