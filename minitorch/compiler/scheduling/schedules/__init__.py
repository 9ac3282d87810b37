"""The engine's own schedules: lists of rewrites for a nest and a target, and which of them a nest gets."""
