"""What all tests share: compiled code goes to a folder of its own, not to the user's cache."""

from __future__ import annotations

import os
import tempfile

_folder = tempfile.TemporaryDirectory(prefix="minitorch-tests-", ignore_cleanup_errors=True)
os.environ.setdefault("MINITORCH_CACHE_DIR", _folder.name)
