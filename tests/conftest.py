"""What all tests share: compiled code goes to a folder of its own, and CI draws the same random examples every time."""

from __future__ import annotations

import os
import tempfile

from hypothesis import settings

_folder = tempfile.TemporaryDirectory(prefix="minitorch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("MINITORCH_CACHE_DIR", _folder.name)

# In CI the same examples every time: a red run then is red again, and says something about the change.
settings.register_profile("ci", derandomize=True, deadline=None)
if os.environ.get("CI"):
    settings.load_profile("ci")
