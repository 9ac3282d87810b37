"""Measuring: what a machine can do (`machine`), and what a program does with it (`profile`)."""

from .machines import Machine, machine
from .profile import Profile, profile
from .rows import Row

__all__ = ["Machine", "Profile", "Row", "machine", "profile"]
