"""What all tests share: compiled code goes to a folder of its own, and CI draws the same random examples every time."""

from __future__ import annotations

import os
import tempfile
from contextlib import suppress

from hypothesis import settings

from minitorch.classroom.imports import quick_imports

_folder = tempfile.TemporaryDirectory(prefix="minitorch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("MINITORCH_CACHE_DIR", _folder.name)

with quick_imports(), suppress(ImportError):  # before the test files import it, in each of the processes
    import nbformat  # noqa: F401

# In CI the same examples every time: a red run then is red again, and says something about the change.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
