"""Machines of the judge: each runs what students hand in as data, and counts, or counts without running it."""
