"""The zoo: for every task, wrong solutions that people hand in, each with what its reason must say, and right ones.

One file per exercise, and one with those that a check was wrong about. An animal is a plain function that needs nothing
but what the notebook's first cell imports, so that `as_cell` can put it into a notebook.
"""

from __future__ import annotations

from importlib import import_module
from pathlib import Path

from minitorch.classroom.zoo import ANIMALS, Animal, as_cell, right, wrong

__all__ = ["ANIMALS", "Animal", "as_cell", "right", "wrong"]

FILES = sorted(path.stem for path in Path(__file__).parent.glob("*.py") if path.stem != "__init__")

for _file in FILES:
    import_module(f"{__name__}.{_file}")
