"""The programs import `torch`: doctest is not to look for examples in them."""

collect_ignore_glob = ["*/*.py"]
