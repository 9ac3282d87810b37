"""Panels: a function beside controls, an experiment at each setting, and its views."""
