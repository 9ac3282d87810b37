"""From a group of roots to loop nests, as they are before any schedule."""
