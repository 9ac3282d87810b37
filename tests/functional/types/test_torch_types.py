"""The record of the types of PyTorch's results is that of the installed PyTorch.

``python -m tests.functional.types.test_torch_types`` writes it again. The table of cases is executed with PyTorch in
place of this library.
"""

import sys
import types
import warnings
from pathlib import Path
from typing import Any

import pytest

from tests.functional.types.typed import answers, numbered
from tests.support import cases
from tests.support.records import read, write


class Library:
    """PyTorch, with other names for a few of its functions."""

    def __init__(self, module, **others):
        self.module, self.others = module, others

    def __getattr__(self, name):
        return self.others[name] if name in self.others else getattr(self.module, name)


def cases_of(torch):
    """The table of cases, of PyTorch's functions."""
    functional = torch.nn.functional
    lines = Path(cases.__file__).read_text().splitlines()
    text = "\n".join("" if line in ("import minitorch as mt", IMPORT) else line for line in lines)
    made: Any = types.ModuleType("cases_of_torch")
    made.mt = Library(torch, pad=functional.pad, checkpoint=lambda function, *x: function(*x))
    made.F = Library(functional, log_sigmoid=functional.logsigmoid)
    sys.modules[made.__name__] = made  # dataclasses look for it
    try:
        exec(compile(text, cases.__file__, "exec"), made.__dict__)
    finally:
        del sys.modules[made.__name__]
    return made.CASES


IMPORT = "from minitorch.nn import functional as F"


def all_answers(torch):
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        return {name: answers(torch, case) for name, case in numbered(cases_of(torch))}


def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    assert read("types") == all_answers(torch)


if __name__ == "__main__":
    import torch

    write("types", all_answers(torch))
