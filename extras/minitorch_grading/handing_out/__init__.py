"""From solutions to what students get: exercises, packages, and a new exercise to begin with."""
