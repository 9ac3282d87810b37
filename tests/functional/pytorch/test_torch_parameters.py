"""The record of PyTorch's parameter names is that of the installed PyTorch.

``python -m tests.functional.pytorch.test_torch_parameters`` writes it again.
"""

import inspect

import pytest

import minitorch as mt
from tests.support.records import read, write

OF_TORCHSCRIPT = {"a", "b", "l", "n", "t", "x", "el", "idx", "list"}


def parameters(torch, function, name):
    """The names of the parameters, for each form of a function."""
    try:
        named = inspect.signature(function).parameters.values()
        return [[each.name for each in named if each.kind not in (each.VAR_POSITIONAL, each.VAR_KEYWORD)]]
    except (ValueError, TypeError):
        pass
    forms = []
    for schema in torch._C._jit_get_schemas_for_operator(f"aten::{name}"):
        if not any(each.is_out or "Dimname" in str(each.type) for each in schema.arguments):
            forms.append([each.name for each in schema.arguments])
    return forms


def answers(torch):
    """Forms of functions, of those of `nn.functional`, and of methods, ``self`` left out."""
    found = {}
    optim, classes = torch.optim, lambda where: [name for name in dir(where) if inspect.isclass(getattr(where, name))]
    places = [
        ("nn.", classes(mt.nn), torch.nn, None),
        ("optim.", classes(mt.optim), optim, None),
        ("optim.lr_scheduler.", classes(mt.optim.lr_scheduler), optim.lr_scheduler, None),
        ("nn.init.", [name for name in dir(mt.nn.init) if not name.startswith("_")], torch.nn.init, "tensor"),
        ("", mt.functional.FUNCTIONS, torch, "input"),
        ("F.", mt.nn.functional.__all__, torch.nn.functional, "input"),
        ("Tensor.", [name for name in dir(mt.Tensor) if not name.startswith("_")], torch.Tensor, None),
    ]
    for prefix, names, where, first in places:
        for name in sorted(names):
            function = getattr(where, name, None)
            if not callable(function) or name.endswith("_"):
                continue
            forms = []
            for form in parameters(torch, function, name):
                form = [first if each == "self" else each for each in form]
                form = [each for each in form if each is not None]
                if not OF_TORCHSCRIPT & set(form) and form not in forms:
                    forms.append(form)
            if any(forms):
                found[prefix + name] = forms
    return found


def test_the_record_is_pytorchs():
    torch = pytest.importorskip("torch")
    assert read("parameters") == answers(torch)


if __name__ == "__main__":
    import torch

    write("parameters", answers(torch))
