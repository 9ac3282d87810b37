"""The report on a quantised model: its figures, tables and pictures."""
